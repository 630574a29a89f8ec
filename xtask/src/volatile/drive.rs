//! A drive with a cache that forgets: of what was written since the last flush, a power cut leaves a random part.
//!
//! ```text
//!   write ──► unsynced blocks ── flush, or at random ──► file
//!                   └── power cut: some go to the file, the others are gone
//! durable write ──────────────────────────────────────► file
//! ```
//!
//! What always holds: a read sees the newest content; what was flushed or written durably is in the file; a power cut leaves each
//! block, by itself, as one of the contents that it had since it was durable last.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, ErrorKind};
use std::os::unix::fs::FileExt;

use base::BLOCK_BYTES;
use base::prng::Prng;
use rustix::fs::{FallocateFlags, fallocate};

const BLOCK: u64 = BLOCK_BYTES as u64;
/// The cache of a drive, 64 MiB. What is too much goes to the file.
const UNSYNCED_BLOCKS_MAX: usize = 16_384;
/// A longer discard takes effect at once.
const DISCARD_BLOCKS_MAX: u64 = 1_024;
/// So often, of 1,000 times, a block that is overwritten in the cache was on its way to the file already.
const WRITTEN_BACK_PERMILLE: u32 = 250;

/// What a block holds; nothing is zeros.
type Content = Option<Box<[u8]>>;

/// What became of the unsynced blocks at a power cut.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Loss {
    pub kept: u64,
    pub dropped: u64,
}

pub struct Drive {
    file: File,
    unsynced: BTreeMap<u64, Content>,
}

impl Drive {
    pub fn new(file: File) -> Drive {
        Drive { file, unsynced: BTreeMap::new() }
    }

    pub fn size_bytes(&self) -> io::Result<u64> {
        Ok(self.file.metadata()?.len())
    }

    /// As durable as it is for a file whose size is what makes it a drive.
    pub fn resize(&mut self, size_bytes: u64) -> io::Result<()> {
        self.unsynced.split_off(&(size_bytes / BLOCK));
        self.file.set_len(size_bytes)
    }

    /// Less than `length` only at the end.
    pub fn read(&self, offset_bytes: u64, length: usize) -> io::Result<Vec<u8>> {
        let end = self.size_bytes()?;
        let length = length.min(end.saturating_sub(offset_bytes).try_into().unwrap_or(usize::MAX));
        let mut data = vec![0; length];
        self.file.read_exact_at(&mut data, offset_bytes)?;
        let last = (offset_bytes + length as u64).div_ceil(BLOCK);
        for (&block, content) in self.unsynced.range(offset_bytes / BLOCK..last) {
            // the part of the block that is asked for
            let from = (block * BLOCK).max(offset_bytes);
            let to = ((block + 1) * BLOCK).min(offset_bytes + length as u64);
            let piece = &mut data[(from - offset_bytes) as usize..(to - offset_bytes) as usize];
            match content {
                Some(bytes) => {
                    let start = (from % BLOCK) as usize;
                    piece.copy_from_slice(&bytes[start..start + piece.len()]);
                }
                None => piece.fill(0),
            }
        }
        Ok(data)
    }

    pub fn write(&mut self, offset_bytes: u64, data: &[u8], random: &mut Prng) -> io::Result<()> {
        for (at, piece) in pieces(offset_bytes, data) {
            let block = at / BLOCK;
            let content = if piece.len() == BLOCK_BYTES {
                piece.into()
            } else {
                let mut whole = self.block(block)?;
                let start = (at % BLOCK) as usize;
                whole[start..start + piece.len()].copy_from_slice(piece);
                whole
            };
            self.cache(block, Some(content), random)?;
        }
        Ok(())
    }

    /// It is in the file before this returns, and nothing else is.
    pub fn write_durably(&mut self, offset_bytes: u64, data: &[u8]) -> io::Result<()> {
        for (at, piece) in pieces(offset_bytes, data) {
            let block = at / BLOCK;
            if piece.len() == BLOCK_BYTES {
                self.unsynced.remove(&block);
            } else if self.unsynced.contains_key(&block) {
                let mut whole = self.block(block)?;
                let start = (at % BLOCK) as usize;
                whole[start..start + piece.len()].copy_from_slice(piece);
                self.unsynced.insert(block, Some(whole));
            }
        }
        self.file.write_all_at(data, offset_bytes)
    }

    /// Whole blocks of the range become zeros.
    pub fn discard(&mut self, offset_bytes: u64, length_bytes: u64, random: &mut Prng) -> io::Result<()> {
        let end = offset_bytes.saturating_add(length_bytes).min(self.size_bytes()?);
        let (first, last) = (offset_bytes.div_ceil(BLOCK), end / BLOCK);
        if last.saturating_sub(first) > DISCARD_BLOCKS_MAX {
            self.unsynced.retain(|block, _| !(first..last).contains(block));
            return self.zero(first, last - first);
        }
        (first..last).try_for_each(|block| self.cache(block, None, random))
    }

    pub fn flush(&mut self) -> io::Result<()> {
        let unsynced = std::mem::take(&mut self.unsynced);
        unsynced.iter().try_for_each(|(&block, content)| self.store(block, content))
    }

    /// The power goes: of the unsynced blocks, some are in the file from now on, and the others are lost.
    pub fn lose(&mut self, random: &mut Prng) -> io::Result<Loss> {
        // drives differ: one was about to flush, another has just begun to write
        let kept_permille = *random.pick(&[0, 100, 500, 900, 1_000]);
        let mut loss = Loss::default();
        for (block, content) in std::mem::take(&mut self.unsynced) {
            if random.chance(kept_permille) {
                self.store(block, &content)?;
                loss.kept += 1;
            } else {
                loss.dropped += 1;
            }
        }
        Ok(loss)
    }

    fn cache(&mut self, block: u64, content: Content, random: &mut Prng) -> io::Result<()> {
        if let Some(earlier) = self.unsynced.insert(block, content)
            && random.chance(WRITTEN_BACK_PERMILLE)
        {
            self.store(block, &earlier)?;
        }
        if self.unsynced.len() > UNSYNCED_BLOCKS_MAX
            && let Some((block, content)) = self.unsynced.pop_first()
        {
            self.store(block, &content)?;
        }
        Ok(())
    }

    /// The newest content of a block; zeros behind the end.
    fn block(&self, block: u64) -> io::Result<Box<[u8]>> {
        let mut data = self.read(block * BLOCK, BLOCK_BYTES)?;
        data.resize(BLOCK_BYTES, 0);
        Ok(data.into())
    }

    fn store(&self, block: u64, content: &Content) -> io::Result<()> {
        match content {
            Some(data) => self.file.write_all_at(data, block * BLOCK),
            None => self.zero(block, 1),
        }
    }

    fn zero(&self, block: u64, count: u64) -> io::Result<()> {
        let mode = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        loop {
            match fallocate(&self.file, mode, block * BLOCK, count * BLOCK) {
                Err(error) if io::Error::from(error).kind() == ErrorKind::Interrupted => {}
                result => return Ok(result?),
            }
        }
    }
}

/// The parts of a range, each in one block, with their places.
fn pieces(offset_bytes: u64, data: &[u8]) -> impl Iterator<Item = (u64, &[u8])> {
    let mut at = offset_bytes;
    let mut rest = data;
    std::iter::from_fn(move || {
        let length = rest.len().min((BLOCK - at % BLOCK) as usize);
        let (piece, behind) = rest.split_at(length);
        let place = at;
        (at, rest) = (at + length as u64, behind);
        (length > 0).then_some((place, piece))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const BLOCKS: u64 = 16;

    fn drive() -> Drive {
        let file = tempfile::tempfile().unwrap();
        file.set_len(BLOCKS * BLOCK).unwrap();
        Drive::new(file)
    }

    /// What the file itself holds.
    fn stored(drive: &Drive) -> Vec<u8> {
        let mut data = vec![0; (BLOCKS * BLOCK) as usize];
        drive.file.read_exact_at(&mut data, 0).unwrap();
        data
    }

    #[test]
    fn what_was_not_flushed_is_lost_in_part() {
        let mut sum = Loss::default();
        for seed in 0..100 {
            let (mut drive, mut random) = (drive(), Prng::new(seed));
            drive.write(0, &vec![7; (BLOCKS * BLOCK) as usize], &mut random).unwrap();
            assert!(stored(&drive).iter().all(|byte| *byte == 0), "nothing is stored before a flush");
            let loss = drive.lose(&mut random).unwrap();
            assert_eq!(loss.kept + loss.dropped, BLOCKS);
            let kept = stored(&drive).chunks(BLOCK_BYTES).filter(|block| block[0] == 7).count();
            assert_eq!(kept as u64, loss.kept, "what a read finds afterwards is what was counted");
            assert_eq!(drive.read(0, stored(&drive).len()).unwrap(), stored(&drive));
            sum = Loss { kept: sum.kept + loss.kept, dropped: sum.dropped + loss.dropped };
        }
        assert!(sum.kept > 400 && sum.dropped > 400, "{sum:?}");
    }

    #[test]
    fn what_was_flushed_or_written_durably_stays() {
        let (mut drive, mut random) = (drive(), Prng::new(1));
        drive.write(0, &[1; 2 * BLOCK_BYTES], &mut random).unwrap();
        drive.flush().unwrap();
        drive.write_durably(2 * BLOCK, &[2; BLOCK_BYTES]).unwrap();
        let before = stored(&drive);
        assert_eq!(drive.lose(&mut random).unwrap(), Loss::default());
        assert_eq!(stored(&drive), before);
        assert_eq!((before[0], before[2 * BLOCK_BYTES], before[3 * BLOCK_BYTES]), (1, 2, 0));
    }

    #[test]
    fn a_drive_that_ends_gets_shorter_and_reads_less() {
        let (mut drive, mut random) = (drive(), Prng::new(1));
        drive.write(0, &[1; 4 * BLOCK_BYTES], &mut random).unwrap();
        drive.resize(BLOCK).unwrap();
        assert_eq!(drive.read(0, 4 * BLOCK_BYTES).unwrap().len(), BLOCK_BYTES);
        assert_eq!(drive.lose(&mut random).map(|loss| loss.kept + loss.dropped).unwrap(), 1);
        assert_eq!(drive.size_bytes().unwrap(), BLOCK);
    }

    /// Each byte against all contents that it may have: since it was durable last, and the newest for reads.
    #[test]
    fn a_block_is_what_it_was_at_some_time_since_the_last_flush() {
        const PART: usize = 512;
        for seed in 0..300 {
            let (mut drive, mut random) = (drive(), Prng::new(seed));
            let parts = stored(&drive).len() / PART;
            let mut may = vec![vec![0u8]; parts];
            for step in 1..60u8 {
                let at = random.index(parts);
                let count = (1 + random.index(3 * BLOCK_BYTES / PART)).min(parts - at);
                let offset = (at * PART) as u64;
                match random.below(10) {
                    0 => {
                        drive.flush().unwrap();
                        may.iter_mut().for_each(|parts| *parts = vec![*parts.last().unwrap()]);
                    }
                    1 => {
                        drive.lose(&mut random).unwrap();
                        for (part, may) in stored(&drive).chunks(PART).zip(&mut may) {
                            assert!(may.contains(&part[0]), "seed {seed}, step {step}");
                            *may = vec![part[0]];
                        }
                    }
                    2 | 3 => {
                        drive.write_durably(offset, &vec![step; count * PART]).unwrap();
                        may[at..at + count].iter_mut().for_each(|parts| *parts = vec![step]);
                    }
                    4 => {
                        drive.discard(offset, (count * PART) as u64, &mut random).unwrap();
                        let whole = BLOCK_BYTES / PART;
                        let (first, last) = (at.div_ceil(whole) * whole, (at + count) / whole * whole);
                        may[first.min(last)..last].iter_mut().for_each(|parts| parts.push(0));
                    }
                    _ => {
                        drive.write(offset, &vec![step; count * PART], &mut random).unwrap();
                        may[at..at + count].iter_mut().for_each(|parts| parts.push(step));
                    }
                }
                let seen = drive.read(0, parts * PART).unwrap();
                for (part, may) in seen.chunks(PART).zip(&may) {
                    assert!(part.iter().all(|byte| byte == may.last().unwrap()), "seed {seed}, step {step}");
                }
            }
        }
    }
}
