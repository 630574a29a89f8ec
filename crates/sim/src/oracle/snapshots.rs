//! Snapshots of volumes that are written meanwhile: what they may hold, and that those of a group are of one moment.
//!
//! A snapshot is taken at some moment between the request and its answer, or the crash that cut it off. It may hold
//! what a read in that time may have returned, and keeps it for ever. Every sector that is read from it then limits the
//! moment: the write in it had begun before, and a later write was not yet certain to be there. For all
//! snapshots of a group together, some moment must remain. So no snapshot holds a write without also holding each write
//! that was acknowledged before it was sent, whatever their volumes.

use std::collections::{BTreeMap, BTreeSet};

use base::HashMap;

use super::history::History;
use super::{Oracle, Volume};

/// A request for snapshots.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct SnapshotTicket(u64);

/// Snapshots that are being taken, or were, at one moment.
#[derive(Default)]
pub(super) struct Groups {
    /// Volumes and the numbers of their snapshots to be.
    open: BTreeMap<SnapshotTicket, Vec<(u32, u32)>>,
    /// Of those, what is to be written afterwards as its volume is.
    copies: BTreeSet<u32>,
    moments: BTreeMap<SnapshotTicket, Moment>,
}

/// When a group was taken, as far as is known: after the one and before the other.
struct Moment {
    after: u64,
    before: u64,
}

/// What a snapshot was taken of.
pub(super) struct Taken {
    ticket: SnapshotTicket,
    /// The volume's histories as they were when the snapshot was answered.
    origin: HashMap<u64, History>,
}

impl Oracle {
    /// Snapshots of these volumes are asked for, each with its number.
    pub fn begin_snapshots(&mut self, of: Vec<(u32, u32)>) -> SnapshotTicket {
        let began = self.tick();
        // nothing that may be in them is forgotten meanwhile
        self.open_reads.push(began);
        self.groups.open.insert(SnapshotTicket(began), of);
        SnapshotTicket(began)
    }

    /// A copy of a volume is asked for, which is a volume like it.
    pub fn begin_volume_copy(&mut self, of: u32, copy: u32) -> SnapshotTicket {
        self.groups.copies.insert(copy);
        self.begin_snapshots(vec![(of, copy)])
    }

    /// They are there, or may be: they are volumes from now on. Nothing where a crash has ended it.
    pub fn end_snapshots(&mut self, ticket: SnapshotTicket) {
        let Some(of) = self.groups.open.remove(&ticket) else { return };
        let now = self.tick();
        self.close_read(ticket.0);
        self.groups.moments.insert(ticket, Moment { after: ticket.0, before: now });
        for (volume, copy) in of {
            self.gather_all(volume);
            let of = &self.volumes[&volume];
            let frozen = of.blocks.iter().map(|(&block, history)| (block, history.frozen(ticket.0, now)));
            let copied = Volume {
                family: of.family,
                blocks: frozen.collect(),
                taken: Some(Taken { ticket, origin: of.blocks.clone() }),
                write_back: self.groups.copies.remove(&copy) && of.write_back,
                ..Volume::default()
            };
            assert!(self.volumes.insert(copy, copied).is_none(), "volume {copy} exists");
        }
    }

    /// The process has ended: what was asked for may be there.
    pub(super) fn cut_off_snapshots(&mut self) {
        let open: Vec<SnapshotTicket> = self.groups.open.keys().copied().collect();
        open.into_iter().for_each(|ticket| self.end_snapshots(ticket));
    }

    /// As [`Oracle::copy_volume`], where the copy is written afterwards.
    pub fn copy_to_volume(&mut self, of: u32, copy: u32, write_back: bool) {
        self.copy_volume(of, copy);
        self.volumes.get_mut(&copy).expect("just made").write_back = write_back;
    }

    /// The volume, to which no write is under way, has ended here, in blocks: what was behind is gone.
    pub fn cut_volume(&mut self, volume: u32, blocks: u64) {
        let volume = self.volumes.get_mut(&volume).expect("a volume that exists");
        volume.blocks.retain(|&block, _| block < blocks);
    }

    /// Whether something else than zeros is certain to be behind this block.
    pub fn holds_behind(&self, volume: u32, blocks: u64) -> bool {
        let behind = self.volumes[&volume].blocks.iter().filter(|(block, _)| **block >= blocks);
        behind
            .into_iter()
            .any(|(_, history)| (0..8).any(|sector| !history.permitted(sector, self.clock).contains(&0)))
    }

    /// A sector of a snapshot has been read. `false`: there is no moment at which all that has been seen was there.
    pub(super) fn see_moment(groups: &mut Groups, taken: &Taken, block: u64, seen: &[Option<u64>]) -> bool {
        let Some(moment) = groups.moments.get_mut(&taken.ticket) else { return true };
        let Some(origin) = taken.origin.get(&block) else { return true };
        for (sector, version) in seen.iter().enumerate() {
            let Some(version) = *version else { continue };
            if let Some((began, dead)) = origin.life(sector, version, taken.ticket.0) {
                (moment.after, moment.before) = (moment.after.max(began), moment.before.min(dead));
            }
        }
        moment.after < moment.before
    }
}

#[cfg(test)]
mod tests {
    use super::super::ViolationKind;
    use super::*;

    /// Writes a block; its version.
    fn write(oracle: &mut Oracle, volume: u32, block: u64) -> u64 {
        let ticket = oracle.begin_write(volume, block * 8..block * 8 + 8);
        let version = ticket.version;
        oracle.end_write(ticket, true);
        version
    }

    fn read(oracle: &mut Oracle, copy: u32, block: u64, version: u64) -> Result<(), ViolationKind> {
        let ticket = oracle.begin_read(copy, block * 8..block * 8 + 8);
        let data = oracle.compose(copy, block * 8, &[version; 8]);
        oracle.end_read(&ticket, &data).map_err(|violation| violation.kind)
    }

    /// Two volumes, written one after the other while both are snapshotted as 11 and 12.
    fn group() -> (Oracle, u64, u64) {
        let mut oracle = Oracle::new();
        oracle.add_volume(1, false);
        oracle.add_volume(2, false);
        let ticket = oracle.begin_snapshots(vec![(1, 11), (2, 12)]);
        let first = write(&mut oracle, 1, 5);
        let second = write(&mut oracle, 2, 7);
        oracle.end_snapshots(ticket);
        (oracle, first, second)
    }

    #[test]
    fn a_group_is_of_one_moment() {
        for (first_there, second_there) in [(false, false), (true, false), (true, true)] {
            let (mut oracle, first, second) = group();
            let seen = |there: bool, version| if there { version } else { 0 };
            assert_eq!(read(&mut oracle, 11, 5, seen(first_there, first)), Ok(()));
            assert_eq!(read(&mut oracle, 12, 7, seen(second_there, second)), Ok(()));
        }
        let (mut oracle, _, second) = group();
        assert_eq!(read(&mut oracle, 12, 7, second), Ok(()));
        assert_eq!(read(&mut oracle, 11, 5, 0), Err(ViolationKind::NotOneMoment));
    }

    #[test]
    fn a_snapshot_holds_what_was_there_and_stays() {
        let mut oracle = Oracle::new();
        oracle.add_volume(1, true);
        let old = write(&mut oracle, 1, 0);
        let ticket = oracle.begin_snapshots(vec![(1, 11)]);
        let new = write(&mut oracle, 1, 0);
        oracle.crash(true);
        assert_eq!(read(&mut oracle, 11, 0, old), Ok(()));
        assert!(read(&mut oracle, 11, 0, new).is_err(), "it has been seen");
        oracle.end_snapshots(ticket);
        let ticket = oracle.begin_snapshots(vec![(1, 12)]);
        oracle.end_snapshots(ticket);
        let newer = write(&mut oracle, 1, 0);
        assert!(read(&mut oracle, 12, 0, old).is_err(), "it was overwritten before");
        assert!(read(&mut oracle, 12, 0, newer).is_err(), "it was written after");
        assert_eq!(read(&mut oracle, 12, 0, new), Ok(()));
    }

    #[test]
    fn what_was_written_meanwhile_is_not_certain_to_hide_what_was_there() {
        for written_before in [false, true] {
            let mut oracle = Oracle::new();
            oracle.add_volume(1, true);
            let before = written_before.then(|| write(&mut oracle, 1, 0));
            let ticket = oracle.begin_snapshots(vec![(1, 11)]);
            let meanwhile = write(&mut oracle, 1, 0);
            oracle.end_snapshots(ticket);
            oracle.copy_to_volume(11, 12, true);
            let lost = oracle.begin_write(12, 0..8);
            oracle.end_write(lost, false);
            oracle.crash(true);
            assert_eq!(read(&mut oracle, 12, 0, before.unwrap_or(0)), Ok(()), "what was there before");
            assert!(read(&mut oracle, 12, 0, meanwhile).is_err(), "it is settled now");
        }
        let mut oracle = Oracle::new();
        oracle.add_volume(1, true);
        write(&mut oracle, 1, 0);
        let ticket = oracle.begin_snapshots(vec![(1, 11)]);
        oracle.end_snapshots(ticket);
        oracle.copy_to_volume(11, 12, true);
        oracle.crash(true);
        assert!(read(&mut oracle, 12, 0, 0).is_err(), "what was over before is there");
    }

    #[test]
    fn a_copy_is_of_one_moment_until_it_is_written() {
        // a write is sent when the first is acknowledged; a copy that has it only is of no moment
        for written in 0..3 {
            let mut oracle = Oracle::new();
            oracle.add_volume(1, true);
            let ticket = oracle.begin_volume_copy(1, 11);
            write(&mut oracle, 1, 5);
            let second = write(&mut oracle, 1, 7);
            oracle.end_snapshots(ticket);
            match written {
                1 => drop(write(&mut oracle, 11, 9)),
                2 => drop(oracle.begin_copy((1, 160), (11, 80), 8)),
                _ => {}
            }
            assert_eq!(read(&mut oracle, 11, 7, second), Ok(()));
            let none = if written == 0 { Err(ViolationKind::NotOneMoment) } else { Ok(()) };
            assert_eq!(read(&mut oracle, 11, 5, 0), none);
        }
    }

    #[test]
    fn what_is_behind_the_end_is_gone() {
        let mut oracle = Oracle::new();
        oracle.add_volume(1, false);
        let version = write(&mut oracle, 1, 9);
        assert!(oracle.holds_behind(1, 9) && !oracle.holds_behind(1, 10));
        oracle.cut_volume(1, 9);
        assert!(!oracle.holds_behind(1, 0));
        assert!(read(&mut oracle, 1, 9, version).is_err());
        assert_eq!(read(&mut oracle, 1, 9, 0), Ok(()));
    }
}
