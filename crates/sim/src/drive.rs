//! A simulated drive: its medium, its speed, and its faults.
//!
//! What always holds: a fault changes only what this drive answers or stores; a write that a healthy drive acknowledged
//! as durable is never lost. The workload decides which drives may be unhealthy.

use std::collections::BTreeSet;
use std::rc::Rc;

use base::{AlignedBuffer, BLOCK_BYTES, Nanos};
use bytes::Bytes;
use env::{DriveIdentity, DriveInfo, DriveKind, IoError};

use crate::fault::{FaultCounts, FaultKind, FaultRates};
use crate::medium::{Block, Medium, Mood, SECTOR_BYTES};
use crate::prng::Prng;
use crate::reservations::Reservations;
use crate::world::ProcessId;

/// Which drive of the world; not the handle that a process holds.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct DriveNumber(pub u32);

/// How a drive is made.
#[derive(Clone, Debug)]
pub struct DriveOptions {
    pub path: String,
    /// A multiple of 512.
    pub size_bytes: u64,
    /// Whether completed writes that are not durable can be lost with the power.
    pub volatile_cache: bool,
    /// Whether places never written hold noise instead of zeros, as a used drive does.
    pub litter: bool,
    /// Whether power loss may leave a block half written, by 512-byte sectors.
    pub tearing: bool,
    /// The machine whose power it shares.
    pub machine: u16,
    /// All machines see it, and it keeps its power when one of them loses its own. It has persistent reservations.
    pub shared: bool,
}

impl DriveOptions {
    pub fn new(path: &str, size_bytes: u64) -> DriveOptions {
        let (volatile_cache, litter, tearing, machine, shared) = (true, false, true, 0, false);
        DriveOptions { path: path.to_owned(), size_bytes, volatile_cache, litter, tearing, machine, shared }
    }
}

/// Attempts of each kind that fail from now on, and succeed when they are repeated.
#[derive(Clone, Copy, Default, Debug)]
pub struct Failing {
    pub opens: u8,
    pub reads: u8,
    pub writes: u8,
}

/// Whether this attempt fails.
pub(crate) fn fails(left: &mut u8) -> bool {
    let fails = *left > 0;
    *left = left.saturating_sub(1);
    fails
}

pub(crate) struct Drive {
    pub(crate) options: DriveOptions,
    pub(crate) medium: Medium,
    pub(crate) rates: FaultRates,
    pub(crate) present: bool,
    /// It was pulled and is still known to the system: it answers with errors until it vanishes.
    pub(crate) dying: bool,
    /// Counts pulls, so that a drive which has come back does not vanish by an earlier one.
    pub(crate) pulls: u32,
    /// Counts appearances: a handle from before the drive was pulled may be dead for ever.
    pub(crate) appearance: u32,
    /// New blocks cannot be allocated, as on a file system that is full.
    pub(crate) no_space: bool,
    /// When that last ended.
    pub(crate) space_since: Nanos,
    pub(crate) stuck_until: Nanos,
    /// Before this it does not get stuck again.
    pub(crate) stuck_again: Nanos,
    /// Typical time of one operation.
    pub(crate) latency: (Nanos, Nanos),
    /// So many times slower than it should be.
    pub(crate) slowness: u64,
    /// So much longer writes take.
    pub(crate) writes_later: Nanos,
    /// Who holds it for writing: one process of a machine.
    pub(crate) writers: Vec<(u16, ProcessId)>,
    pub(crate) reservations: Reservations,
    /// Machines that do not reach it, and until when.
    pub(crate) paths_cut: Vec<(u16, Nanos)>,
    /// Blocks that cannot be read until they are rewritten.
    latent: BTreeSet<u64>,
    pub(crate) writes: u64,
    /// So many of the next attempts fail, each once.
    pub(crate) failing: Failing,
    /// It has ended inside a 4 KiB block, and takes single sectors of it.
    pub(crate) has_had_tail: bool,
}

impl Drive {
    pub(crate) fn new(options: DriveOptions, prng: &mut Prng) -> Drive {
        assert!(options.size_bytes.is_multiple_of(SECTOR_BYTES as u64));
        let litter = options.litter.then(|| prng.next_u64());
        let fast = prng.between(5, 80);
        Drive {
            medium: Medium::new(litter),
            has_had_tail: !options.size_bytes.is_multiple_of(BLOCK_BYTES as u64),
            options,
            rates: FaultRates::NONE,
            present: true,
            dying: false,
            pulls: 0,
            appearance: 0,
            no_space: false,
            space_since: Nanos(0),
            stuck_until: Nanos(0),
            stuck_again: Nanos(0),
            latency: (Nanos::from_micros(fast), Nanos::from_micros(fast * prng.between(2, 40))),
            slowness: 1,
            writes_later: Nanos(0),
            writers: Vec::new(),
            reservations: Reservations::default(),
            paths_cut: Vec::new(),
            latent: BTreeSet::new(),
            writes: 0,
            failing: Failing::default(),
        }
    }

    /// A last block of which it has a part counts.
    pub(crate) fn size_blocks(&self) -> u64 {
        self.options.size_bytes.div_ceil(BLOCK_BYTES as u64)
    }

    /// It ends elsewhere from now on.
    pub(crate) fn set_size(&mut self, size_bytes: u64) {
        assert!(size_bytes.is_multiple_of(SECTOR_BYTES as u64));
        self.options.size_bytes = size_bytes;
        self.has_had_tail |= !size_bytes.is_multiple_of(BLOCK_BYTES as u64);
    }

    /// By its path, of which it has one.
    fn identity(&self) -> DriveIdentity {
        let inode = self
            .options
            .path
            .bytes()
            .fold(0, |sum: u64, byte| (sum ^ u64::from(byte)).wrapping_mul(0x0100_0000_01B3));
        DriveIdentity::File { file_system: 0, inode }
    }

    pub(crate) fn info(&self) -> DriveInfo {
        DriveInfo {
            path: self.options.path.clone(),
            kind: DriveKind::Simulated,
            size_bytes: self.options.size_bytes - self.options.size_bytes % BLOCK_BYTES as u64,
            end_bytes: self.options.size_bytes,
            volatile_cache: self.options.volatile_cache,
            model: "simulated".to_owned(),
            serial: self.options.path.clone(),
            bay: String::new(),
            identity: self.identity(),
        }
    }

    /// How long the next operation takes, if nothing holds it up.
    pub(crate) fn draw_latency(&self, prng: &mut Prng, counts: &mut FaultCounts) -> Nanos {
        let mut time = prng.skewed(self.latency.0.0, self.latency.1.0) * self.slowness;
        if prng.chance(self.rates.slow) {
            counts.add(FaultKind::SlowOperation);
            time *= 100;
        }
        Nanos(time)
    }

    /// Makes a place unreadable until it is rewritten.
    pub(crate) fn spoil(&mut self, block: u64, counts: &mut FaultCounts) {
        if self.latent.insert(block) {
            counts.add(FaultKind::ReadError);
        }
    }

    /// Puts garbage over so much of what was ever written, from the start of the drive on.
    pub(crate) fn overwrite(&mut self, permille: usize, prng: &mut Prng, counts: &mut FaultCounts) {
        counts.add(FaultKind::DriveOverwritten);
        let blocks = self.medium.allocated();
        for &block in &blocks[..blocks.len() * permille / 1000] {
            let mut garbage = vec![0; BLOCK_BYTES];
            garbage.chunks_mut(8).for_each(|word| word.copy_from_slice(&prng.next_u64().to_le_bytes()));
            self.latent.remove(&block);
            self.medium.write(block, Rc::from(garbage), true);
        }
    }

    /// Flips a bit somewhere in what is stored.
    pub(crate) fn rot_somewhere(&mut self, prng: &mut Prng, counts: &mut FaultCounts) {
        if let Some(block) = self.medium.some_allocated(prng)
            && self.medium.rot(block, prng.index(BLOCK_BYTES * 8))
        {
            counts.add(FaultKind::BitRot);
        }
    }

    /// Ends a read. `in_flight` are the pieces of unfinished writes that overlap it.
    pub(crate) fn read(
        &mut self,
        offset_bytes: u64,
        buffer: &mut AlignedBuffer,
        in_flight: &[(u64, Bytes)],
        prng: &mut Prng,
        counts: &mut FaultCounts,
    ) -> Result<(), IoError> {
        let first = offset_bytes / BLOCK_BYTES as u64;
        let blocks = buffer.blocks() as u64;
        if first + blocks > self.size_blocks() {
            return Err(IoError::Gone);
        }
        if self.dying {
            buffer.fill(0xBD);
            return Err(IoError::Media);
        }
        if fails(&mut self.failing.reads) {
            buffer.fill(0xBD);
            return Err(IoError::Media);
        }
        if prng.chance(self.rates.read_error) {
            let at = first + prng.below(blocks.max(1));
            self.spoil(at, counts);
        }
        if self.latent.range(first..first + blocks).next().is_some() {
            buffer.fill(0xBD);
            return Err(IoError::Media);
        }
        for index in 0..buffer.blocks() {
            self.medium.read(first + index as u64, buffer.block_mut(index));
        }
        for (block, data) in in_flight {
            if prng.chance(500) {
                buffer.block_mut((block - first) as usize)[..data.len()].copy_from_slice(data);
                counts.add(FaultKind::ReadOfWriteInFlight);
            }
        }
        // nobody may count on what lies behind the end
        let end = self.options.size_bytes.saturating_sub(offset_bytes).min(buffer.len() as u64);
        buffer[end as usize..].fill(0xEE);
        Ok(())
    }

    /// Ends a write: stores it, or does what the drive's faults decide instead.
    pub(crate) fn write(
        &mut self,
        offset_bytes: u64,
        data: &[Bytes],
        durable: bool,
        prng: &mut Prng,
        counts: &mut FaultCounts,
    ) -> Result<(), IoError> {
        self.writes += 1;
        let length: usize = data.iter().map(Bytes::len).sum();
        if offset_bytes + length as u64 > self.options.size_bytes {
            return Err(IoError::Gone);
        }
        let blocks = self.whole_blocks(offset_bytes, data);
        if self.dying {
            return Err(IoError::Media);
        }
        let durable = !self.options.volatile_cache || durable && !self.lies(prng, counts);
        if self.no_space && blocks.iter().any(|&(block, _)| !self.medium.is_allocated(block)) {
            counts.add(FaultKind::NoSpace);
            self.store_part(&blocks, prng, |_, drive, block| drive.medium.is_allocated(block));
            return Err(IoError::NoSpace);
        }
        if fails(&mut self.failing.writes) {
            self.store_part(&blocks, prng, |prng, _, _| prng.chance(500));
            return Err(IoError::Media);
        }
        if prng.chance(self.rates.write_error) {
            counts.add(FaultKind::WriteError);
            self.store_part(&blocks, prng, |prng, _, _| prng.chance(500));
            return Err(IoError::Media);
        }
        if prng.chance(self.rates.lost_write) {
            counts.add(FaultKind::LostWrite);
            return Ok(());
        }
        let mut shift = 0;
        if prng.chance(self.rates.misdirected_write) {
            counts.add(FaultKind::MisdirectedWrite);
            shift = prng.below(self.size_blocks());
        }
        for (block, data) in &blocks {
            let at = (block + shift) % self.size_blocks();
            self.latent.remove(&at);
            self.medium.write(at, block_of(data), durable);
        }
        if prng.chance(self.rates.bit_rot) {
            self.rot_somewhere(prng, counts);
        }
        Ok(())
    }

    /// Whether it says that something is durable and leaves it in its cache.
    fn lies(&self, prng: &mut Prng, counts: &mut FaultCounts) -> bool {
        // a drive that never lies leaves the seed's other draws what they were
        let may = self.options.volatile_cache && self.rates.lying_flush > 0;
        let lies = may && prng.chance(self.rates.lying_flush);
        if lies {
            counts.add(FaultKind::FlushLied);
        }
        lies
    }

    /// Ends a flush that was submitted at this point.
    pub(crate) fn flush(&mut self, until: u64, prng: &mut Prng, counts: &mut FaultCounts) {
        if !self.lies(prng, counts) {
            self.medium.flush(until);
        }
    }

    /// A write, block by block; of a block that it ends in, the rest is as it was.
    fn whole_blocks(&self, offset_bytes: u64, data: &[Bytes]) -> Vec<(u64, Bytes)> {
        let mut blocks = write_blocks(offset_bytes, data);
        if let Some((block, data)) = blocks.last_mut().filter(|(_, data)| data.len() < BLOCK_BYTES) {
            let mut whole = vec![0; BLOCK_BYTES];
            self.medium.read(*block, &mut whole);
            whole[..data.len()].copy_from_slice(data);
            *data = Bytes::from(whole);
        }
        blocks
    }

    fn store_part(
        &mut self,
        blocks: &[(u64, Bytes)],
        prng: &mut Prng,
        mut stored: impl FnMut(&mut Prng, &Drive, u64) -> bool,
    ) {
        for (block, data) in blocks {
            if stored(prng, self, *block) {
                self.medium.write(*block, block_of(data), false);
            }
        }
    }

    /// Power loss, or the death of the process, catches an unfinished write.
    pub(crate) fn interrupt_write(
        &mut self,
        offset_bytes: u64,
        data: &[Bytes],
        durable: bool,
        mood: Mood,
        prng: &mut Prng,
        counts: &mut FaultCounts,
    ) {
        let mut kept = 0;
        let blocks = self.whole_blocks(offset_bytes, data);
        let end = self.size_blocks();
        for (block, data) in blocks.iter().filter(|(block, _)| *block < end) {
            if self.medium.interrupt(*block, &block_of(data), durable, mood, prng, counts) {
                self.latent.remove(block);
                kept += 1;
            }
        }
        if kept > 0 && kept < blocks.len() {
            counts.add(FaultKind::WriteSplit);
        }
    }
}

/// A write, block by block.
pub(crate) fn write_blocks(offset_bytes: u64, data: &[Bytes]) -> Vec<(u64, Bytes)> {
    let mut at = offset_bytes / BLOCK_BYTES as u64;
    let mut blocks = Vec::new();
    for piece in data {
        for start in (0..piece.len()).step_by(BLOCK_BYTES) {
            blocks.push((at, piece.slice(start..piece.len().min(start + BLOCK_BYTES))));
            at += 1;
        }
    }
    blocks
}

fn block_of(data: &Bytes) -> Block {
    Rc::from(&data[..])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drive(rates: FaultRates) -> (Drive, Prng, FaultCounts) {
        let mut prng = Prng::new(11);
        let mut drive = Drive::new(DriveOptions::new("/sim/a", 1 << 30), &mut prng);
        drive.rates = rates;
        (drive, prng, FaultCounts::default())
    }

    fn write(
        drive: &mut Drive,
        at: u64,
        byte: u8,
        prng: &mut Prng,
        counts: &mut FaultCounts,
    ) -> Result<(), IoError> {
        let data = [AlignedBuffer::copied_from(&[byte; BLOCK_BYTES]).into_bytes()];
        drive.write(at * BLOCK_BYTES as u64, &data, true, prng, counts)
    }

    fn read(drive: &mut Drive, at: u64, prng: &mut Prng, counts: &mut FaultCounts) -> Result<u8, IoError> {
        let mut buffer = AlignedBuffer::zeroed(1);
        drive.read(at * BLOCK_BYTES as u64, &mut buffer, &[], prng, counts)?;
        Ok(buffer[0])
    }

    #[test]
    fn each_silent_fault_answers_well_and_stores_ill() {
        let (mut drive, mut prng, mut counts) = drive(FaultRates { lost_write: 1000, ..FaultRates::NONE });
        assert_eq!(write(&mut drive, 3, 7, &mut prng, &mut counts), Ok(()));
        assert_eq!(read(&mut drive, 3, &mut prng, &mut counts), Ok(0));
        drive.rates = FaultRates { misdirected_write: 1000, ..FaultRates::NONE };
        assert_eq!(write(&mut drive, 3, 7, &mut prng, &mut counts), Ok(()));
        assert_eq!(read(&mut drive, 3, &mut prng, &mut counts), Ok(0));
        assert!(drive.medium.some_allocated(&mut prng).is_some_and(|block| block != 3));
        drive.rates = FaultRates { bit_rot: 1000, ..FaultRates::NONE };
        assert_eq!(write(&mut drive, 3, 7, &mut prng, &mut counts), Ok(()));
        let seen = [FaultKind::LostWrite, FaultKind::MisdirectedWrite, FaultKind::BitRot];
        assert_eq!(seen.map(|kind| counts.get(kind)), [1, 1, 1]);
    }

    #[test]
    fn a_lying_flush_is_answered_and_not_done() {
        let (mut drive, mut prng, mut counts) = drive(FaultRates { lying_flush: 1000, ..FaultRates::NONE });
        assert_eq!(write(&mut drive, 3, 7, &mut prng, &mut counts), Ok(()));
        let point = drive.medium.flush_point();
        drive.flush(point, &mut prng, &mut counts);
        drive.medium.lose_cache(Mood::DropAll, &mut prng, &mut counts);
        assert_eq!(read(&mut drive, 3, &mut prng, &mut counts), Ok(0));
        assert_eq!(counts.get(FaultKind::FlushLied), 2);
    }

    #[test]
    fn a_latent_error_lasts_until_the_place_is_rewritten() {
        let (mut drive, mut prng, mut counts) = drive(FaultRates::NONE);
        write(&mut drive, 3, 7, &mut prng, &mut counts).unwrap();
        drive.spoil(3, &mut counts);
        assert_eq!(read(&mut drive, 3, &mut prng, &mut counts), Err(IoError::Media));
        assert_eq!(read(&mut drive, 3, &mut prng, &mut counts), Err(IoError::Media));
        write(&mut drive, 3, 8, &mut prng, &mut counts).unwrap();
        assert_eq!(read(&mut drive, 3, &mut prng, &mut counts), Ok(8));
    }

    #[test]
    fn a_full_file_system_still_takes_overwrites() {
        let (mut drive, mut prng, mut counts) = drive(FaultRates::NONE);
        write(&mut drive, 3, 7, &mut prng, &mut counts).unwrap();
        drive.no_space = true;
        assert_eq!(write(&mut drive, 3, 8, &mut prng, &mut counts), Ok(()));
        assert_eq!(write(&mut drive, 4, 8, &mut prng, &mut counts), Err(IoError::NoSpace));
    }

    #[test]
    fn past_the_end_nothing_is_read_or_written() {
        let (mut drive, mut prng, mut counts) = drive(FaultRates::NONE);
        let end = drive.size_blocks();
        assert_eq!(read(&mut drive, end, &mut prng, &mut counts), Err(IoError::Gone));
        assert_eq!(write(&mut drive, end, 1, &mut prng, &mut counts), Err(IoError::Gone));
    }
}
