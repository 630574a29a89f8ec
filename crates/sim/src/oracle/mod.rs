//! The oracle: what every sector of every volume may hold, derived from requests and answers.
//!
//! It sees requests begin and end, and crashes; it knows nothing of pools. The rules:
//!
//! - an acknowledged write is there until a write that began later is; overlapping writes take effect in any order,
//!   each as a whole for each 4 KiB block, or for each sector if it wrote less;
//! - a write in flight, or a failed write, may or may not be there; once a read has returned a write, it is there, and
//!   the version that it replaced is gone, for every read that begins afterwards;
//! - after `kill -9` the same rules hold, and each write that was in flight is either there or not, permanently;
//! - after power loss the same rules hold on a write-through volume. On a write-back volume, each block by itself holds
//!   any write from the last stable one on, including those in flight; a write is stable if it was acknowledged as
//!   durable, or before a flush began that was answered. The first read fixes the version permanently.

mod content;
mod history;
mod holds;
mod range_copies;
mod snapshots;
mod violation;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use base::{BLOCK_BYTES, HashMap};

pub use content::{SECTOR_BYTES, SECTORS_PER_BLOCK, Sector, fill, identify};
use history::{History, WriteId, Wrong};
use holds::CopyId;
pub use range_copies::{Contended, CopyTicket};
use range_copies::{Copied, RangeCopy};
pub use snapshots::SnapshotTicket;
use snapshots::{Groups, Taken};
pub use violation::{Violation, ViolationKind};

/// A write that has begun. Its data is version `version` (0: zeros) of the sectors.
#[derive(Clone, Debug)]
pub struct WriteTicket {
    pub volume: u32,
    pub sectors: Range<u64>,
    pub version: u64,
    id: WriteId,
    began: u64,
}

/// A read that has begun.
#[derive(Clone, Debug)]
pub struct ReadTicket {
    pub volume: u32,
    pub sectors: Range<u64>,
    began: u64,
}

/// A flush that has begun.
#[derive(Clone, Copy, Debug)]
pub struct FlushTicket {
    volume: u32,
    began: u64,
}

#[derive(Default)]
struct Volume {
    /// Whose number its sectors bear: its own, or that of the volume that it is a copy of.
    family: u32,
    write_back: bool,
    blocks: HashMap<u64, History>,
    /// Acknowledged and not stable: when, and which.
    unstable: Vec<(u64, WriteId, Range<u64>)>,
    /// Sectors and the versions of theirs that a compare-and-write has matched, and thereby replaced for ever.
    replaced: BTreeSet<(u64, u64)>,
    /// Of a snapshot that was taken while writes went on.
    taken: Option<Taken>,
}

/// Knows what may be read. One for a whole run, across crashes.
#[derive(Default)]
pub struct Oracle {
    volumes: BTreeMap<u32, Volume>,
    clock: u64,
    ids: u64,
    /// When each read began that has not ended.
    open_reads: Vec<u64>,
    checked_blocks: u64,
    groups: Groups,
    copied: Copied,
    /// Copies of ranges that are under way.
    copies: BTreeMap<CopyId, RangeCopy>,
}

impl Oracle {
    pub fn new() -> Oracle {
        Oracle::default()
    }

    fn tick(&mut self) -> u64 {
        self.clock += 1;
        self.clock
    }

    pub fn add_volume(&mut self, volume: u32, write_back: bool) {
        let added = self.volumes.insert(volume, Volume { family: volume, write_back, ..Volume::default() });
        assert!(added.is_none(), "volume {volume} exists");
    }

    pub fn remove_volume(&mut self, volume: u32) {
        self.volumes.remove(&volume).expect("a volume that exists");
    }

    /// Whose number a volume's sectors bear.
    pub fn family(&self, volume: u32) -> u32 {
        self.volumes.get(&volume).map_or(volume, |volume| volume.family)
    }

    /// `copy` is what `volume` is now, durably. No write is under way to `volume`.
    pub fn copy_volume(&mut self, volume: u32, copy: u32) {
        self.gather_all(volume);
        let now = self.tick();
        let of = &self.volumes[&volume];
        let mut blocks = of.blocks.clone();
        for history in blocks.values_mut() {
            // what was cut off, or failed, is in it or not, for ever
            history.crashed(false, of.write_back, now);
        }
        let copied = Volume { family: of.family, blocks, ..Volume::default() };
        assert!(self.volumes.insert(copy, copied).is_none(), "volume {copy} exists");
    }

    /// `volume` is again what `snapshot` is. No request is under way to `volume`.
    pub fn roll_back(&mut self, volume: u32, snapshot: u32) {
        let blocks = self.volumes[&snapshot].blocks.clone();
        let rolled = self.volumes.get_mut(&volume).expect("a volume that exists");
        (rolled.blocks, rolled.unstable) = (blocks, Vec::new());
        // what had been replaced may be there again
        rolled.replaced.clear();
    }

    /// Blocks that reads have checked so far.
    pub fn checked_blocks(&self) -> u64 {
        self.checked_blocks
    }

    /// Every block of the volume that anything ever happened to; `None` where there is no such volume any more.
    pub fn touched_blocks(&self, volume: u32) -> Option<Vec<u64>> {
        let mut blocks: Vec<u64> = self.volumes.get(&volume)?.blocks.keys().copied().collect();
        blocks.sort_unstable();
        Some(blocks)
    }

    fn begin(&mut self, volume: u32, sectors: Range<u64>, zeros: bool) -> WriteTicket {
        let now = self.tick();
        self.ids += 1;
        let (id, version) = (WriteId(self.ids), if zeros { 0 } else { self.ids });
        let volume_now = self.volumes.get_mut(&volume).expect("a volume that exists");
        // what a copy holds tells nothing any more of when it was made
        volume_now.taken = None;
        for (block, mask) in masks(&sectors) {
            volume_now.blocks.entry(block).or_default().begin(id, version, mask, now);
        }
        WriteTicket { volume, sectors, version, id, began: now }
    }

    pub fn begin_write(&mut self, volume: u32, sectors: Range<u64>) -> WriteTicket {
        self.begin(volume, sectors, false)
    }

    /// A compare-and-write, which also reads.
    pub fn begin_compare(&mut self, volume: u32, sectors: Range<u64>) -> WriteTicket {
        let ticket = self.begin(volume, sectors, false);
        self.open_reads.push(ticket.began);
        ticket
    }

    /// An unmap or a write of zeros.
    pub fn begin_zero(&mut self, volume: u32, sectors: Range<u64>) -> WriteTicket {
        self.begin(volume, sectors, true)
    }

    /// The write was acknowledged; `durable` where that was asked for.
    pub fn end_write(&mut self, ticket: WriteTicket, durable: bool) {
        let now = self.tick();
        let oldest = self.oldest_read();
        let Some(volume) = self.volumes.get_mut(&ticket.volume) else { return };
        let stable = durable || !volume.write_back;
        let blocks = blocks(&ticket.sectors);
        for block in blocks.clone() {
            if let Some(history) = volume.blocks.get_mut(&block) {
                history.acknowledged(ticket.id, stable, now);
                history.prune(oldest, volume.write_back);
            }
        }
        if !stable {
            volume.unstable.push((now, ticket.id, blocks));
        }
    }

    /// The write was answered with an error: it may be there or not.
    pub fn fail_write(&mut self, ticket: &WriteTicket) {
        let now = self.tick();
        self.close_read(ticket.began);
        let Some(volume) = self.volumes.get_mut(&ticket.volume) else { return };
        for block in blocks(&ticket.sectors) {
            if let Some(history) = volume.blocks.get_mut(&block) {
                history.failed(ticket.id, now);
            }
        }
    }

    /// The write was aborted, and its end waited for: it is there or not, and does not land later.
    pub fn abort_write(&mut self, ticket: &WriteTicket) {
        let now = self.tick();
        self.close_read(ticket.began);
        let Some(volume) = self.volumes.get_mut(&ticket.volume) else { return };
        for block in blocks(&ticket.sectors) {
            if let Some(history) = volume.blocks.get_mut(&block) {
                history.aborted(ticket.id, now);
            }
        }
    }

    pub fn begin_read(&mut self, volume: u32, sectors: Range<u64>) -> ReadTicket {
        let began = self.tick();
        self.open_reads.push(began);
        ReadTicket { volume, sectors, began }
    }

    fn close_read(&mut self, began: u64) {
        if let Some(index) = self.open_reads.iter().position(|&open| open == began) {
            self.open_reads.swap_remove(index);
        }
    }

    fn oldest_read(&self) -> u64 {
        self.open_reads.iter().copied().min().unwrap_or(u64::MAX)
    }

    /// The read gave no data.
    pub fn fail_read(&mut self, ticket: &ReadTicket) {
        self.close_read(ticket.began);
    }

    /// The read gave this.
    pub fn end_read(&mut self, ticket: &ReadTicket, data: &[u8]) -> Result<(), Violation> {
        let now = self.tick();
        self.close_read(ticket.began);
        blocks(&ticket.sectors).for_each(|block| self.gather(ticket.volume, block));
        let Some(volume) = self.volumes.get_mut(&ticket.volume) else { return Ok(()) };
        let violation = |sector: u64, kind| {
            Err(Violation { volume: ticket.volume, block: sector / SECTORS_PER_BLOCK, sector, kind })
        };
        let expected = (ticket.sectors.end - ticket.sectors.start) as usize * SECTOR_BYTES;
        if data.len() != expected {
            return violation(
                ticket.sectors.start,
                ViolationKind::WrongLength { expected, seen: data.len() },
            );
        }
        for (block, mask) in masks(&ticket.sectors) {
            let mut seen = [None; SECTORS_PER_BLOCK as usize];
            for (index, version) in seen.iter_mut().enumerate().filter(|(index, _)| mask >> index & 1 == 1) {
                let sector = block * SECTORS_PER_BLOCK + index as u64;
                let at = (sector - ticket.sectors.start) as usize * SECTOR_BYTES;
                *version = match self.copied.identify(volume.family, sector, &data[at..at + SECTOR_BYTES]) {
                    Sector::Version(version) => Some(version),
                    Sector::Misplaced { volume, sector: from, version } => {
                        return violation(sector, ViolationKind::Misplaced { volume, sector: from, version });
                    }
                    Sector::Garbage => return violation(sector, ViolationKind::Garbage),
                };
            }
            self.checked_blocks += 1;
            let untouched =
                seen.iter().flatten().all(|&version| version == 0) && !volume.blocks.contains_key(&block);
            if untouched {
                continue;
            }
            let history = volume.blocks.entry(block).or_default();
            if let Err((index, wrong)) = history.observe(&seen, ticket.began, now) {
                let kind = match wrong {
                    Wrong::Torn => ViolationKind::Torn { seen: seen.to_vec() },
                    Wrong::NotPermitted => ViolationKind::NotPermitted {
                        seen: seen[index].expect("it was read"),
                        permitted: history.permitted(index, ticket.began),
                    },
                };
                return violation(block * SECTORS_PER_BLOCK + index as u64, kind);
            }
            if let Some(taken) = &volume.taken
                && !Oracle::see_moment(&mut self.groups, taken, block, &seen)
            {
                return violation(block * SECTORS_PER_BLOCK, ViolationKind::NotOneMoment);
            }
        }
        Ok(())
    }

    /// A compare-and-write succeeded: `expected` (one version per sector) was there, and is replaced.
    pub fn end_compare_matched(
        &mut self,
        ticket: WriteTicket,
        expected: &[u64],
        durable: bool,
    ) -> Result<(), Violation> {
        self.close_read(ticket.began);
        blocks(&ticket.sectors).for_each(|block| self.gather(ticket.volume, block));
        if let Some(volume) = self.volumes.get_mut(&ticket.volume) {
            for (sector, &version) in ticket.sectors.clone().zip(expected) {
                let (block, index) = (sector / SECTORS_PER_BLOCK, (sector % SECTORS_PER_BLOCK) as usize);
                let history = volume.blocks.entry(block).or_default();
                if !history.permitted(index, ticket.began).contains(&version) {
                    let kind = ViolationKind::FalseMatch { expected: version };
                    return Err(Violation { volume: ticket.volume, block, sector, kind });
                }
                // zeros can come back, and so can what a copy brings
                let returns = version == 0 || history.copy_may_bring(index, version, ticket.began);
                if !returns && !volume.replaced.insert((sector, version)) {
                    let kind = ViolationKind::MatchedTwice { version };
                    return Err(Violation { volume: ticket.volume, block, sector, kind });
                }
            }
        }
        self.end_write(ticket, durable);
        Ok(())
    }

    /// A compare-and-write found something else: nothing was written.
    pub fn end_compare_missed(&mut self, ticket: &WriteTicket, expected: &[u64]) -> Result<(), Violation> {
        let now = self.tick();
        self.close_read(ticket.began);
        let Some(volume) = self.volumes.get_mut(&ticket.volume) else { return Ok(()) };
        let certain = ticket.sectors.clone().zip(expected).all(|(sector, &version)| {
            let history = volume.blocks.entry(sector / SECTORS_PER_BLOCK).or_default();
            history.is_certain((sector % SECTORS_PER_BLOCK) as usize, version, ticket.began, now, ticket.id)
        });
        let sector = ticket.sectors.start;
        let block = sector / SECTORS_PER_BLOCK;
        let violation = |kind| Err(Violation { volume: ticket.volume, block, sector, kind });
        if certain {
            return violation(ViolationKind::FalseMiscompare);
        }
        for block in blocks(&ticket.sectors) {
            if volume.blocks.get_mut(&block).is_some_and(|history| !history.refused(ticket.id)) {
                return violation(ViolationKind::RefusedButSeen { version: ticket.version });
            }
        }
        Ok(())
    }

    pub fn begin_flush(&mut self, volume: u32) -> FlushTicket {
        FlushTicket { volume, began: self.tick() }
    }

    /// The flush was answered well: what was acknowledged before it began is stable.
    pub fn end_flush(&mut self, ticket: FlushTicket) {
        let Some(volume) = self.volumes.get_mut(&ticket.volume) else { return };
        let blocks = &mut volume.blocks;
        volume.unstable.retain(|(acknowledged, id, range)| {
            let covered = *acknowledged < ticket.began;
            if covered {
                for block in range.clone() {
                    if let Some(history) = blocks.get_mut(&block) {
                        history.flushed(*id);
                    }
                }
            }
            !covered
        });
    }

    /// Every process that used the volumes has ended; requests in flight will never be answered.
    pub fn crash(&mut self, power_lost: bool) {
        self.cut_off_snapshots();
        self.cut_off_copies();
        let now = self.tick();
        self.open_reads.clear();
        for volume in self.volumes.values_mut() {
            for history in volume.blocks.values_mut() {
                history.crashed(power_lost, volume.write_back, now);
                history.prune(u64::MAX, volume.write_back);
            }
            if power_lost {
                volume.unstable.clear();
            }
            if power_lost && volume.write_back {
                // what has replaced them may be gone
                volume.replaced.clear();
            }
        }
    }
}

fn blocks(sectors: &Range<u64>) -> Range<u64> {
    sectors.start / SECTORS_PER_BLOCK..sectors.end.div_ceil(SECTORS_PER_BLOCK)
}

/// The blocks of a range, and which of their sectors it has.
fn masks(sectors: &Range<u64>) -> impl Iterator<Item = (u64, u8)> + use<> {
    let sectors = sectors.clone();
    blocks(&sectors).map(move |block| {
        let first = block * SECTORS_PER_BLOCK;
        let inside = |index: &u64| sectors.contains(&(first + index));
        (block, (0..SECTORS_PER_BLOCK).filter(inside).fold(0u8, |mask, index| mask | 1 << index))
    })
}

const _: () = assert!(BLOCK_BYTES as u64 == SECTORS_PER_BLOCK * SECTOR_BYTES as u64);

#[cfg(test)]
mod tests {
    use super::*;

    fn read(oracle: &mut Oracle, sectors: Range<u64>, versions: &[u64]) -> Result<(), ViolationKind> {
        let ticket = oracle.begin_read(1, sectors.clone());
        let data = oracle.compose(1, sectors.start, versions);
        oracle.end_read(&ticket, &data).map_err(|violation| violation.kind)
    }

    #[test]
    fn writes_reads_and_unmaps_of_many_blocks() {
        let mut oracle = Oracle::new();
        oracle.add_volume(1, false);
        let write = oracle.begin_write(1, 4..20);
        let version = write.version;
        oracle.end_write(write, false);
        assert_eq!(read(&mut oracle, 0..8, &[0, 0, 0, 0, version, version, version, version]), Ok(()));
        assert!(matches!(
            read(&mut oracle, 18..21, &[version; 3]),
            Err(ViolationKind::NotPermitted { seen: 1, .. })
        ));
        let zero = oracle.begin_zero(1, 8..16);
        oracle.end_write(zero, false);
        assert_eq!(read(&mut oracle, 8..16, &[0; 8]), Ok(()));
        assert!(read(&mut oracle, 8..16, &[version; 8]).is_err());
        assert_eq!(oracle.touched_blocks(1), Some(vec![0, 1, 2]));
    }

    #[test]
    fn data_of_another_place_is_named() {
        let mut oracle = Oracle::new();
        oracle.add_volume(1, false);
        let write = oracle.begin_write(1, 0..8);
        let ticket = oracle.begin_read(1, 8..16);
        let wrong = oracle.compose(1, 0, &[write.version; 8]);
        let violation = oracle.end_read(&ticket, &wrong).unwrap_err();
        assert_eq!(violation.kind, ViolationKind::Misplaced { volume: 1, sector: 0, version: write.version });
    }

    #[test]
    fn compare_and_write_must_be_right_both_ways() {
        let mut oracle = Oracle::new();
        oracle.add_volume(1, false);
        let swap = oracle.begin_compare(1, 0..8);
        let error = oracle.end_compare_missed(&swap, &[0; 8]).unwrap_err();
        assert_eq!(error.kind, ViolationKind::FalseMiscompare);
        let swap = oracle.begin_compare(1, 0..8);
        let error = oracle.end_compare_matched(swap, &[9; 8], false).unwrap_err();
        assert_eq!(error.kind, ViolationKind::FalseMatch { expected: 9 });
        let first = oracle.begin_write(1, 8..16);
        let version = first.version;
        oracle.end_write(first, false);
        let (one, other) = (oracle.begin_compare(1, 8..16), oracle.begin_compare(1, 8..16));
        assert_eq!(oracle.end_compare_matched(one, &[version; 8], false), Ok(()));
        let error = oracle.end_compare_matched(other, &[version; 8], false).unwrap_err();
        assert_eq!(error.kind, ViolationKind::MatchedTwice { version });
    }

    #[test]
    fn an_aborted_write_is_there_or_not_for_ever() {
        let mut oracle = Oracle::new();
        oracle.add_volume(1, false);
        let aborted = |oracle: &mut Oracle| {
            let write = oracle.begin_write(1, 0..8);
            oracle.abort_write(&write);
            write.version
        };
        let first = aborted(&mut oracle);
        assert_eq!(read(&mut oracle, 0..8, &[first; 8]), Ok(()), "it took effect");
        let second = aborted(&mut oracle);
        assert_eq!(read(&mut oracle, 0..8, &[first; 8]), Ok(()), "it did not");
        assert!(read(&mut oracle, 0..8, &[second; 8]).is_err(), "it landed late");
    }

    #[test]
    fn a_flush_covers_what_was_acknowledged_before_it_began() {
        let mut oracle = Oracle::new();
        oracle.add_volume(1, true);
        let mut version = 0;
        for durable in [false, false] {
            let write = oracle.begin_write(1, 0..8);
            version = write.version;
            oracle.end_write(write, durable);
        }
        let flush = oracle.begin_flush(1);
        let late = oracle.begin_write(1, 8..16);
        oracle.end_write(late, false);
        oracle.end_flush(flush);
        oracle.crash(true);
        assert!(read(&mut oracle, 0..8, &[version - 1; 8]).is_err());
        assert_eq!(read(&mut oracle, 0..16, &[[version; 8], [0; 8]].concat()), Ok(()));
    }
}
