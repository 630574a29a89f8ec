//! One drive of an owner and its twin on the partner: where the two may differ, and what of that is recorded.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;

use crate::bits::Bits;
use crate::geometry::Geometry;
use crate::message::TwinNews;
use crate::order::OwnDrive;
use crate::record::{Record, Synchrony, TwinId};

/// Regions that are marked at a time while the copies are in sync, before idle ones are unmarked.
const MARKED_MAX: u32 = 32;
/// Of these, the ones that were written last stay marked: they are likely to be written again.
const MARKED_KEPT: usize = 8;

/// How a twin is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TwinState {
    /// Its drive takes writes.
    Sound,
    /// Its drive is new: it takes writes, and gets everything else meanwhile.
    Filling,
    /// Its drive has failed: it gets nothing.
    Out,
}

/// What is known of a region that was written.
#[derive(Clone, Copy, Debug, Default)]
struct Activity {
    /// Writes that were accepted and have not ended.
    accepted: u32,
    /// Serial number of the last write.
    written: u64,
}

#[derive(Debug)]
pub(crate) struct Twin {
    pub geometry: Geometry,
    pub state: TwinState,
    /// Which opening of the partner's drive that is.
    opening: Option<u64>,
    /// Pieces that the partner may lack.
    pub lacking: Bits,
    /// The newest record on the own drive, and whether a newer one is being written.
    recorded: Record,
    writing: Option<Record>,
    /// What the next record is to say.
    wanted: Bits,
    /// Whether it may say something else than the newest record: this is asked after each request.
    may_differ: bool,
    synchrony: Synchrony,
    active: BTreeMap<u32, Activity>,
    /// Regions that drives may hold in their caches, with the serial number of the last write of which that is so.
    volatile: BTreeMap<u32, u64>,
    /// Idle regions are to be unmarked even if no other needs a mark.
    settles: bool,
    /// Pieces of the writes that are under way, by their serial numbers.
    writes: BTreeMap<u64, RangeInclusive<u32>>,
    /// Pieces that are being copied.
    pub copying: BTreeSet<u32>,
}

impl Twin {
    pub fn id(&self) -> TwinId {
        self.recorded.twin
    }

    pub fn new(drive: OwnDrive) -> Twin {
        let OwnDrive { id, geometry, record } = drive;
        let fits = |record: &Record| {
            record.twin == id
                && record.marked.end() == geometry.regions()
                && record.region_bytes == geometry.region_bytes()
                && record.mirrored_bytes == geometry.drive_bytes()
        };
        let recorded = record.filter(fits).unwrap_or_else(|| Record {
            twin: id,
            generation: 0,
            synchrony: Synchrony(0),
            region_bytes: geometry.region_bytes(),
            mirrored_bytes: geometry.drive_bytes(),
            marked: Bits::full(geometry.regions()),
        });
        let mut twin = Twin {
            state: TwinState::Sound,
            opening: None,
            lacking: Bits::empty(geometry.pieces()),
            wanted: recorded.marked.clone(),
            may_differ: true,
            synchrony: recorded.synchrony,
            recorded,
            writing: None,
            active: BTreeMap::new(),
            volatile: BTreeMap::new(),
            settles: false,
            writes: BTreeMap::new(),
            copying: BTreeSet::new(),
            geometry,
        };
        twin.lacks_what_is_marked();
        twin
    }

    /// The partner may lack whatever was written since a record cleared it.
    pub fn lacks_what_is_marked(&mut self) {
        let regions: Vec<u32> = self.wanted.iter().chain(self.recorded.marked.iter()).collect();
        regions.into_iter().for_each(|region| self.lacks_region(region));
    }

    pub fn lacks(&mut self, offset_bytes: u64, length_bytes: u64) {
        self.geometry.pieces_of(offset_bytes, length_bytes).for_each(|piece| self.lacking.insert(piece));
    }

    pub fn lacks_region(&mut self, region: u32) {
        self.geometry.pieces_of_region(region).for_each(|piece| self.lacking.insert(piece));
    }

    /// Whether a write there may begin: its regions are marked on the drive, and nothing there is being copied.
    pub fn may_write(&self, offset_bytes: u64, length_bytes: u64) -> bool {
        let mut regions = self.geometry.regions_of(offset_bytes, length_bytes);
        let pieces = self.geometry.pieces_of(offset_bytes, length_bytes);
        regions.all(|region| self.recorded.marked.has(region) && self.stays_marked(region))
            && self.copying.range(pieces).next().is_none()
    }

    /// Whether no record without this mark is on its way.
    fn stays_marked(&self, region: u32) -> bool {
        self.writing.as_ref().is_none_or(|record| record.marked.has(region))
    }

    /// A write was accepted: its regions are to be marked.
    pub fn accepted(&mut self, offset_bytes: u64, length_bytes: u64) {
        self.settles = false;
        for region in self.geometry.regions_of(offset_bytes, length_bytes) {
            self.may_differ |= !self.recorded.marked.has(region);
            self.wanted.insert(region);
            self.active.entry(region).or_default().accepted += 1;
        }
    }

    /// An accepted write begins. `is_alone`: the partner does not get it.
    pub fn began(&mut self, offset_bytes: u64, length_bytes: u64, serial: u64, is_alone: bool) {
        for region in self.geometry.regions_of(offset_bytes, length_bytes) {
            self.active.get_mut(&region).expect("the write was accepted").written = serial;
        }
        if is_alone {
            self.lacks(offset_bytes, length_bytes);
        }
        self.writes.insert(serial, self.geometry.pieces_of(offset_bytes, length_bytes));
    }

    /// An accepted write has ended. `began` is its serial number if it had begun, `volatile` the present one if it is not durable.
    pub fn ended(&mut self, offset_bytes: u64, length_bytes: u64, began: Option<u64>, volatile: Option<u64>) {
        for region in self.geometry.regions_of(offset_bytes, length_bytes) {
            let activity = self.active.get_mut(&region).expect("the write was accepted");
            activity.accepted -= 1;
            if let Some(serial) = volatile {
                self.volatile.insert(region, serial);
            }
        }
        if let Some(serial) = began {
            self.writes.remove(&serial);
        }
    }

    /// Both drives have flushed everything that had ended at `serial`.
    pub fn flushed(&mut self, serial: u64) {
        self.volatile.retain(|_, volatile| *volatile > serial);
    }

    /// Whether a write to this piece is under way.
    pub fn is_written(&self, piece: u32) -> bool {
        self.writes.values().any(|pieces| pieces.contains(&piece))
    }

    /// What the partner says of its drive, on a new connection and out of sync. A drive of another synchrony, or without a record, lacks
    /// everything.
    pub fn on_partner(&mut self, news: &TwinNews) {
        let TwinNews::There { opening, record } = news else {
            (self.state, self.opening) = (TwinState::Out, None);
            return;
        };
        self.opening = Some(*opening);
        let was_out = std::mem::replace(&mut self.state, TwinState::Sound) == TwinState::Out;
        let is_known = |record: &&Record| {
            record.twin == self.recorded.twin
                && record.synchrony == self.synchrony
                && self.synchrony != Synchrony(0)
                && record.marked.end() == self.geometry.regions()
        };
        match record.as_ref().filter(is_known) {
            Some(record) => {
                if was_out {
                    // nothing was unmarked meanwhile
                    self.lacking = Bits::empty(self.geometry.pieces());
                    self.lacks_what_is_marked();
                }
                record.marked.iter().for_each(|region| self.lacks_region(region));
            }
            None => self.lacking.insert_all(),
        }
    }

    /// Whether the partner speaks of the drive that it has spoken of before.
    pub fn is_opening_of(&self, news: &TwinNews) -> bool {
        match news {
            TwinNews::Absent => false,
            TwinNews::There { opening, .. } => self.opening == Some(*opening),
        }
    }

    /// The copies are in sync from now on, by this name.
    pub fn joined(&mut self, synchrony: Synchrony) {
        (self.synchrony, self.may_differ) = (synchrony, true);
        self.unmark_idle(0);
    }

    /// Nothing is to be written for a while.
    pub fn settle(&mut self) {
        self.settles = true;
    }

    /// Unmarks regions in which both copies are durably equal, except those that were written last.
    pub fn unmark_idle(&mut self, kept: usize) {
        let idle = |region: u32| {
            self.active.get(&region).is_none_or(|activity| activity.accepted == 0)
                && !self.volatile.contains_key(&region)
        };
        let written = |region: u32| self.active.get(&region).map_or(0, |activity| activity.written);
        let equal =
            |region: u32| !self.geometry.pieces_of_region(region).any(|piece| self.lacking.has(piece));
        let mut regions: Vec<u32> =
            self.wanted.iter().filter(|&region| idle(region) && equal(region)).collect();
        regions.sort_by_key(|&region| std::cmp::Reverse(written(region)));
        for region in regions.into_iter().skip(kept) {
            self.wanted.remove(region);
            self.active.remove(&region);
        }
    }

    /// The record that is to be written next, if one is needed and none is being written.
    pub fn next_record(&mut self, is_in_sync: bool) -> Option<Record> {
        if self.settles && is_in_sync {
            self.unmark_idle(0);
            self.may_differ = true;
        }
        if self.writing.is_some() || !std::mem::take(&mut self.may_differ) || !self.needs_a_record() {
            return None;
        }
        if is_in_sync && self.wanted.len() > MARKED_MAX {
            self.unmark_idle(MARKED_KEPT);
        }
        let record = Record {
            twin: self.recorded.twin,
            generation: self.recorded.generation + 1,
            synchrony: self.synchrony,
            region_bytes: self.geometry.region_bytes(),
            mirrored_bytes: self.geometry.drive_bytes(),
            marked: self.wanted.clone(),
        };
        self.writing = Some(record.clone());
        Some(record)
    }

    fn needs_a_record(&self) -> bool {
        self.synchrony != self.recorded.synchrony
            || !self.wanted.is_within(&self.recorded.marked)
            || self.settles && self.wanted != self.recorded.marked
    }

    /// The record that was begun has been written durably, or may have been.
    pub fn on_recorded(&mut self, durably: bool) {
        let record = self.writing.take().expect("a record was begun");
        self.may_differ = true;
        if durably {
            self.recorded = record;
        } else {
            // the slot may hold either: the next record goes there again, and only what both say counts as marked
            self.recorded.marked.retain(|region| record.marked.has(region));
        }
    }
}
