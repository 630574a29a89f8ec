//! The contents of a drive: the medium that survives power loss, and the volatile cache above it.
//!
//! ```text
//!   write completes ──► cache: versions of a block, oldest first ──flush, drain──► medium
//!         durable ─────────────────────────────────────────────────────────────►
//!   power loss: each cached block becomes any of {medium, version 1 .. n}, or half of one and half of another
//! ```
//!
//! What always holds: a read sees the newest completed version; the medium changes only by durable writes, flushes,
//! draining and power loss. Storage is sparse: a simulated terabyte uses only the memory that was written.

use std::collections::BTreeMap;
use std::rc::Rc;

use base::{BLOCK_BYTES, HashMap};

use crate::fault::{FaultCounts, FaultKind};
use crate::prng::{Prng, scatter};

/// One stored 4 KiB block.
pub(crate) type Block = Rc<[u8]>;

/// The unit in which a block may tear.
pub(crate) const SECTOR_BYTES: usize = 512;

/// Cached versions of one drive beyond which old ones are written back.
const CACHED_VERSIONS_MAX: usize = 8192;

#[derive(Clone)]
struct Cached {
    /// The drive's write counter when this version completed.
    completed: u64,
    data: Block,
}

/// How power loss treats what was unsettled at that moment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Mood {
    KeepAll,
    DropAll,
    /// Each block by itself; torn ones among them where asked for.
    Random {
        torn_permille: u32,
    },
}

impl Mood {
    pub(crate) fn draw(prng: &mut Prng, tearing: bool) -> Mood {
        match prng.below(8) {
            0 => Mood::KeepAll,
            1 => Mood::DropAll,
            _ => Mood::Random { torn_permille: if tearing { 150 } else { 0 } },
        }
    }
}

#[derive(Clone)]
pub(crate) struct Medium {
    durable: HashMap<u64, Block>,
    cache: BTreeMap<u64, Vec<Cached>>,
    cached_versions: usize,
    writes_completed: u64,
    /// Every block that was ever written, once.
    written: Vec<u64>,
    /// Seed of what places hold that were never written; zeros where there is none.
    litter: Option<u64>,
    zeros: Block,
}

impl Medium {
    pub(crate) fn new(litter: Option<u64>) -> Medium {
        Medium {
            durable: HashMap::default(),
            cache: BTreeMap::new(),
            cached_versions: 0,
            writes_completed: 0,
            written: Vec::new(),
            litter,
            zeros: Rc::from([0; BLOCK_BYTES]),
        }
    }

    fn newest(&self, block: u64) -> Option<&Block> {
        let cached = self.cache.get(&block).and_then(|versions| versions.last());
        cached.map(|version| &version.data).or_else(|| self.durable.get(&block))
    }

    /// Fills `into` with the block's newest content.
    pub(crate) fn read(&self, block: u64, into: &mut [u8]) {
        match (self.newest(block), self.litter) {
            (Some(data), _) => into.copy_from_slice(data),
            (None, None) => into.fill(0),
            (None, Some(seed)) => fill_litter(seed, block, into),
        }
    }

    pub(crate) fn is_allocated(&self, block: u64) -> bool {
        self.newest(block).is_some()
    }

    /// Every block that was ever written, in the order of their places.
    pub(crate) fn allocated(&self) -> Vec<u64> {
        let mut blocks = self.written.clone();
        blocks.sort_unstable();
        blocks.dedup();
        blocks
    }

    pub(crate) fn write(&mut self, block: u64, data: Block, durable: bool) {
        assert_eq!(data.len(), BLOCK_BYTES);
        // a whole drive is copied in some runs: what nobody has written there takes no memory
        let data = if data.iter().any(|&byte| byte != 0) { data } else { self.zeros.clone() };
        self.writes_completed += 1;
        if !self.is_allocated(block) {
            self.written.push(block);
        }
        if durable {
            self.forget_cached(block);
            self.durable.insert(block, data);
            return;
        }
        self.cache.entry(block).or_default().push(Cached { completed: self.writes_completed, data });
        self.cached_versions += 1;
        if self.cached_versions > CACHED_VERSIONS_MAX {
            let (&oldest, _) = self.cache.first_key_value().expect("there are cached versions");
            self.settle(oldest, u64::MAX);
        }
    }

    fn forget_cached(&mut self, block: u64) {
        if let Some(versions) = self.cache.remove(&block) {
            self.cached_versions -= versions.len();
        }
    }

    /// Moves the newest version that completed by `until` to the medium, and forgets the older ones.
    fn settle(&mut self, block: u64, until: u64) {
        let Some(versions) = self.cache.get_mut(&block) else { return };
        let settled = versions.iter().take_while(|version| version.completed <= until).count();
        if let Some(newest) = versions.drain(..settled).next_back() {
            self.durable.insert(block, newest.data);
            self.cached_versions -= settled;
        }
        if versions.is_empty() {
            self.cache.remove(&block);
        }
    }

    /// The point up to which a flush that is submitted now must make writes durable.
    pub(crate) fn flush_point(&self) -> u64 {
        self.writes_completed
    }

    pub(crate) fn flush(&mut self, until: u64) {
        let blocks: Vec<u64> = self.cache.keys().copied().collect();
        for block in blocks {
            self.settle(block, until);
        }
    }

    /// The content is not needed any more: what a read gives afterwards is anybody's guess.
    pub(crate) fn discard(&mut self, block: u64, prng: &mut Prng) {
        match prng.below(3) {
            0 => {}
            1 => self.write(block, Rc::from([0; BLOCK_BYTES]), false),
            _ => {
                let mut litter = [0; BLOCK_BYTES];
                fill_litter(prng.next_u64(), block, &mut litter);
                self.write(block, Rc::from(litter), false);
            }
        }
    }

    /// Flips one bit of what is stored. `false`: nothing was ever written there.
    pub(crate) fn rot(&mut self, block: u64, bit: usize) -> bool {
        let Some(data) = self.newest(block) else { return false };
        let mut data = data.to_vec();
        data[bit / 8 % BLOCK_BYTES] ^= 1 << (bit % 8);
        let data: Block = Rc::from(data);
        match self.cache.get_mut(&block).and_then(|versions| versions.last_mut()) {
            Some(version) => version.data = data,
            None => drop(self.durable.insert(block, data)),
        }
        true
    }

    /// A block that something is stored at.
    pub(crate) fn some_allocated(&self, prng: &mut Prng) -> Option<u64> {
        (0..16)
            .filter(|_| !self.written.is_empty())
            .map(|_| *prng.pick(&self.written))
            .find(|&block| self.is_allocated(block))
    }

    /// The cache is lost, or some of it was on its way.
    pub(crate) fn lose_cache(&mut self, mood: Mood, prng: &mut Prng, counts: &mut FaultCounts) {
        self.cached_versions = 0;
        let (mut oldest_dropped, mut newest_kept) = (u64::MAX, 0);
        for (block, versions) in std::mem::take(&mut self.cache) {
            let kept = match mood {
                Mood::KeepAll => versions.len(),
                Mood::DropAll => 0,
                Mood::Random { .. } => prng.index(versions.len() + 1),
            };
            counts.add(if kept == 0 { FaultKind::WriteDropped } else { FaultKind::WriteKept });
            let torn = matches!(mood, Mood::Random { torn_permille } if prng.chance(torn_permille));
            if kept > 0 {
                newest_kept = newest_kept.max(versions[kept - 1].completed);
                self.durable.insert(block, versions[kept - 1].data.clone());
            }
            if let Some(dropped) = versions.get(kept) {
                oldest_dropped = oldest_dropped.min(dropped.completed);
            }
            if torn {
                let other = prng.pick(&versions).data.clone();
                self.tear(block, &other, prng, counts);
            }
        }
        if oldest_dropped < newest_kept {
            counts.add(FaultKind::WriteReordered);
        }
    }

    /// Power loss, or the end of the writing process, caught this block while it was being written. What is
    /// kept is as lasting as `durable` says.
    pub(crate) fn interrupt(
        &mut self,
        block: u64,
        data: &Block,
        durable: bool,
        mood: Mood,
        prng: &mut Prng,
        counts: &mut FaultCounts,
    ) -> bool {
        let torn = matches!(mood, Mood::Random { torn_permille } if prng.chance(torn_permille));
        if torn {
            self.tear(block, data, prng, counts);
            return true;
        }
        let kept = match mood {
            Mood::KeepAll => true,
            Mood::DropAll => false,
            Mood::Random { .. } => prng.chance(500),
        };
        counts.add(if kept { FaultKind::WriteKept } else { FaultKind::WriteDropped });
        if kept {
            self.write(block, data.clone(), durable);
        }
        kept
    }

    /// Some sectors of the block become those of `data`.
    fn tear(&mut self, block: u64, data: &Block, prng: &mut Prng, counts: &mut FaultCounts) {
        let mut mixed = [0; BLOCK_BYTES];
        self.read(block, &mut mixed);
        let sectors = BLOCK_BYTES / SECTOR_BYTES;
        let mask = prng.between(1, (1 << sectors) - 2);
        for sector in (0..sectors).filter(|sector| mask >> sector & 1 == 1) {
            let bytes = sector * SECTOR_BYTES..(sector + 1) * SECTOR_BYTES;
            mixed[bytes.clone()].copy_from_slice(&data[bytes]);
        }
        counts.add(FaultKind::WriteTorn);
        self.write(block, Rc::from(mixed), true);
    }
}

/// What an unwritten place of a used drive holds: noise that depends on nothing but seed and place.
fn fill_litter(seed: u64, block: u64, into: &mut [u8]) {
    let mut at = scatter(seed ^ block);
    for word in into.chunks_exact_mut(8) {
        at = at.wrapping_mul(0xD134_2543_DE82_EF95).wrapping_add(1);
        word.copy_from_slice(&at.to_le_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(byte: u8) -> Block {
        Rc::from([byte; BLOCK_BYTES])
    }

    fn read(medium: &Medium, at: u64) -> Vec<u8> {
        let mut into = vec![0xEE; BLOCK_BYTES];
        medium.read(at, &mut into);
        into
    }

    #[test]
    fn flush_settles_what_completed_before_it_and_no_more() {
        let (mut prng, mut counts) = (Prng::new(1), FaultCounts::default());
        let mut medium = Medium::new(None);
        medium.write(1, block(1), false);
        let point = medium.flush_point();
        medium.write(1, block(2), false);
        medium.write(2, block(3), false);
        medium.flush(point);
        assert_eq!(read(&medium, 1), [2; BLOCK_BYTES]);
        medium.lose_cache(Mood::DropAll, &mut prng, &mut counts);
        assert_eq!(read(&medium, 1), [1; BLOCK_BYTES]);
        assert_eq!(read(&medium, 2), [0; BLOCK_BYTES]);
    }

    #[test]
    fn a_durable_write_outlives_every_older_cached_version() {
        let mut prng = Prng::new(2);
        for _ in 0..100 {
            let mut medium = Medium::new(None);
            medium.write(9, block(1), false);
            medium.write(9, block(2), true);
            medium.lose_cache(Mood::Random { torn_permille: 500 }, &mut prng, &mut FaultCounts::default());
            assert_eq!(read(&medium, 9), [2; BLOCK_BYTES]);
        }
    }

    #[test]
    fn a_torn_block_is_made_of_whole_sectors_of_both() {
        let (mut prng, mut counts) = (Prng::new(3), FaultCounts::default());
        let mut medium = Medium::new(None);
        medium.write(5, block(1), true);
        medium.interrupt(5, &block(2), true, Mood::Random { torn_permille: 1000 }, &mut prng, &mut counts);
        let sectors: Vec<u8> = read(&medium, 5)
            .chunks(SECTOR_BYTES)
            .map(|sector| {
                assert!(sector.iter().all(|&byte| byte == sector[0]));
                sector[0]
            })
            .collect();
        assert!(sectors.contains(&1) && sectors.contains(&2), "{sectors:?}");
        assert_eq!(counts.get(FaultKind::WriteTorn), 1);
    }

    #[test]
    fn rot_flips_one_bit_of_the_newest_version_silently() {
        let mut medium = Medium::new(None);
        assert!(!medium.rot(4, 9));
        medium.write(4, block(0), true);
        assert!(medium.rot(4, 8 * 100 + 3));
        let content = read(&medium, 4);
        assert_eq!(content[100], 1 << 3);
        assert_eq!(content.iter().map(|byte| byte.count_ones()).sum::<u32>(), 1);
    }

    #[test]
    fn litter_is_stable_and_differs_by_place() {
        let medium = Medium::new(Some(77));
        assert_eq!(read(&medium, 3), read(&medium, 3));
        assert_ne!(read(&medium, 3), read(&medium, 4));
        assert!(!medium.is_allocated(3));
    }

    #[test]
    fn a_full_cache_is_written_back() {
        let mut medium = Medium::new(None);
        for at in 0..CACHED_VERSIONS_MAX as u64 + 10 {
            medium.write(at, block(1), false);
        }
        assert!(medium.cached_versions <= CACHED_VERSIONS_MAX);
        medium.lose_cache(Mood::DropAll, &mut Prng::new(1), &mut FaultCounts::default());
        assert_eq!(read(&medium, 0), [1; BLOCK_BYTES]);
    }
}
