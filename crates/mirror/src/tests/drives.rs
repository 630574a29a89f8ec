//! A drive with a cache, and the record in its first blocks.

use std::collections::BTreeMap;

use base::prng::Prng;

use crate::record::Record;

#[derive(Clone, Debug)]
pub struct Drive {
    durable: Vec<u64>,
    cache: BTreeMap<usize, u64>,
    records: [Option<Record>; 2],
}

impl Drive {
    pub fn new(blocks: usize) -> Drive {
        Drive { durable: vec![0; blocks], cache: BTreeMap::new(), records: [None, None] }
    }

    pub fn write(&mut self, block: usize, value: u64, durable: bool) {
        if durable {
            self.durable[block] = value;
            self.cache.remove(&block);
        } else {
            self.cache.insert(block, value);
        }
    }

    pub fn read(&self, block: usize) -> u64 {
        self.cache.get(&block).copied().unwrap_or(self.durable[block])
    }

    pub fn durable(&self, block: usize) -> u64 {
        self.durable[block]
    }

    pub fn flush(&mut self) {
        for (block, value) in std::mem::take(&mut self.cache) {
            self.durable[block] = value;
        }
    }

    /// Each block of the cache may have reached the medium.
    pub fn lose_power(&mut self, prng: &mut Prng) {
        for (block, value) in std::mem::take(&mut self.cache) {
            if prng.chance(500) {
                self.durable[block] = value;
            }
        }
    }

    pub fn write_record(&mut self, record: Record) {
        let slot = (record.generation % 2) as usize;
        self.records[slot] = Some(record);
    }

    pub fn record(&self) -> Option<Record> {
        self.records.iter().flatten().max_by_key(|record| record.generation).cloned()
    }
}

/// Where two drives of one synchrony differ, one of them has a mark; regions have so many blocks.
pub fn check_marks(one: &Drive, other: &Drive, region_blocks: u64) {
    let (Some(record), Some(others)) = (one.record(), other.record()) else { return };
    if record.synchrony != others.synchrony {
        return;
    }
    for block in (0..one.durable.len()).filter(|&block| one.durable(block) != other.durable(block)) {
        let region = (block as u64 / region_blocks) as u32;
        let is_marked = record.marked.has(region) || others.marked.has(region);
        assert!(is_marked, "block {block} differs without a mark");
    }
}
