//! Self-describing blocks, and what is known of each block of a unit.
//!
//! ```text
//!   0 "TANGELO!"   8 run   16 LBA   24 version   32 noise drawn from those …   4092 CRC-32C of all before
//! ```
//! A write that was answered must be read from then on. A write that was not answered may or may not have taken effect;
//! the first read decides which, and every later read must agree.

use std::collections::BTreeMap;

use base::{BLOCK_BYTES, crc32c};

const MAGIC: [u8; 8] = *b"TANGELO!";
const CRC_AT: usize = BLOCK_BYTES - 4;

/// Versions of every block of 4 KiB; 0: never written, which reads as zeros.
pub struct Known {
    run: u64,
    stable: Vec<u32>,
    /// The newest version that was ever sent.
    issued: Vec<u32>,
    /// Versions whose writes were not answered.
    doubtful: BTreeMap<u64, Vec<u32>>,
}

impl Known {
    /// Of a unit that reads as zeros; `run` tells its blocks from those of other runs.
    pub fn new(run: u64, blocks: u64) -> Known {
        let none = vec![0; blocks as usize];
        Known { run, stable: none.clone(), issued: none, doubtful: BTreeMap::new() }
    }

    pub fn blocks(&self) -> u64 {
        self.stable.len() as u64
    }

    /// The next content of a block. Nothing else may be on its way to it.
    pub fn next_content(&mut self, block: u64, to: &mut [u8]) -> u32 {
        let issued = &mut self.issued[block as usize];
        *issued += 1;
        emit(self.run, block, *issued, to);
        *issued
    }

    /// A write was answered.
    pub fn written(&mut self, block: u64, version: u32) {
        self.stable[block as usize] = version;
        self.doubtful.remove(&block);
    }

    /// A write will not be answered any more.
    pub fn unanswered(&mut self, block: u64, version: u32) {
        self.doubtful.entry(block).or_default().push(version);
    }

    /// Takes in what was read of a block.
    pub fn read(&mut self, block: u64, content: &[u8]) -> Result<(), String> {
        let version = parse(self.run, block, content).map_err(|what| format!("block {block}: {what}"))?;
        let stable = &mut self.stable[block as usize];
        if version != *stable && !self.doubtful.get(&block).is_some_and(|may| may.contains(&version)) {
            let may = self.doubtful.get(&block).cloned().unwrap_or_default();
            return Err(format!("block {block}: version {version} instead of {stable}, or one of {may:?}"));
        }
        *stable = version;
        self.doubtful.remove(&block);
        Ok(())
    }
}

fn emit(run: u64, block: u64, version: u32, to: &mut [u8]) {
    assert_eq!(to.len(), BLOCK_BYTES);
    let words = [u64::from_le_bytes(MAGIC), run, block, u64::from(version)];
    let mut noise = run ^ block.rotate_left(24) ^ u64::from(version).rotate_left(48) | 1;
    for (index, word) in to.chunks_exact_mut(8).enumerate() {
        // xorshift64
        noise ^= noise << 13;
        noise ^= noise >> 7;
        noise ^= noise << 17;
        word.copy_from_slice(&words.get(index).copied().unwrap_or(noise).to_le_bytes());
    }
    let crc = crc32c(&to[..CRC_AT]);
    to[CRC_AT..].copy_from_slice(&crc.to_le_bytes());
}

/// The version that a block says it is.
fn parse(run: u64, block: u64, content: &[u8]) -> Result<u32, String> {
    if content.iter().all(|&byte| byte == 0) {
        return Ok(0);
    }
    let crc = u32::from_le_bytes(content[CRC_AT..].try_into().expect("four bytes"));
    let word =
        |index: usize| u64::from_le_bytes(content[index * 8..index * 8 + 8].try_into().expect("eight"));
    if content[..8] != MAGIC || crc != crc32c(&content[..CRC_AT]) {
        return Err(format!("it is none of ours, or torn; it begins {:02x?}", &content[..32]));
    }
    if (word(1), word(2)) != (run, block) {
        return Err(format!("it holds block {} of run {:x}", word(2), word(1)));
    }
    u32::try_from(word(3)).map_err(|_| format!("it says that it is version {}", word(3)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(known: &mut Known, block: u64) -> (Vec<u8>, u32) {
        let mut content = vec![0; BLOCK_BYTES];
        let version = known.next_content(block, &mut content);
        (content, version)
    }

    #[test]
    fn what_was_answered_is_what_must_be_read() {
        let mut known = Known::new(7, 10);
        let zeros = vec![0; BLOCK_BYTES];
        assert_eq!(known.read(3, &zeros), Ok(()));
        let (first, version) = block(&mut known, 3);
        known.written(3, version);
        assert!(known.read(3, &zeros).unwrap_err().contains("version 0 instead of 1"));
        assert_eq!(known.read(3, &first), Ok(()));
        assert!(known.read(4, &first).unwrap_err().contains("holds block 3"));
        let mut torn = first.clone();
        torn[4000] ^= 1;
        assert!(known.read(3, &torn).unwrap_err().contains("torn"));
        assert!(Known::new(8, 10).read(3, &first).unwrap_err().contains("of run 7"));
    }

    #[test]
    fn what_was_not_answered_is_decided_by_the_first_read() {
        let mut known = Known::new(7, 10);
        let (first, version) = block(&mut known, 5);
        known.written(5, version);
        let (second, lost) = block(&mut known, 5);
        known.unanswered(5, lost);
        let (third, also_lost) = block(&mut known, 5);
        known.unanswered(5, also_lost);
        assert_eq!(known.read(5, &second), Ok(()));
        assert!(known.read(5, &first).is_err() && known.read(5, &third).is_err());
        let (fourth, version) = block(&mut known, 5);
        known.unanswered(5, version);
        let (fifth, version) = block(&mut known, 5);
        known.written(5, version);
        assert!(known.read(5, &fourth).is_err(), "an older write does not come after an answered one");
        assert_eq!(known.read(5, &fifth), Ok(()));
    }
}
