//! When a drive is taken out: by evidence, never for one hiccup.
//!
//! A drive that is gone is out at once. One that returns errors stays in service below the limits; what it lacks is written
//! anew elsewhere, and each error is counted for ever. It is not taken out where that would leave less than the protection
//! needs, or something that stands nowhere else any more: a drive with errors is better than none.
//!
//! Limits are a drive's, over all lanes of its pool. A lane that reaches one by itself acts at once; what several lanes have met
//! together is added up by the pool's owner ([`crate::LaneStats::recent_faults`]), who also says what keeps a drive in service.

use std::collections::VecDeque;

use base::Nanos;

use crate::decision::Decision;
use crate::lane::Lane;
use crate::space::segments::{Segment, Segments};

/// How many errors of one kind, within a while, have a drive taken out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Patience {
    /// Writes that failed although they were tried again: a drive with so many is out.
    pub write_errors: u32,
    /// Reads that failed.
    pub read_errors: u32,
    /// Blocks that were read and were not what had been written.
    pub checksum_errors: u32,
    /// What is older than this is forgiven.
    pub window: Nanos,
    /// A drive is slow that takes so many times as long as its siblings; 0: none ever is.
    pub slow_factor: u32,
    /// What is faster than this is not slow, whatever its siblings are.
    pub slow_latency: Nanos,
    /// For how long it must have been, without a break.
    pub slow_time: Nanos,
    /// A drive that has not answered for so long is given up, if its siblings answer; zero: never.
    pub hung_time: Nanos,
}

impl Default for Patience {
    fn default() -> Self {
        Patience {
            write_errors: 4,
            read_errors: 64,
            checksum_errors: 256,
            window: Nanos::from_secs(600),
            slow_factor: 16,
            slow_latency: Nanos::from_millis(2),
            slow_time: Nanos::from_secs(60),
            // less than hosts wait before they give a command up
            hung_time: Nanos::from_secs(15),
        }
    }
}

/// What a drive did wrong.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Fault {
    Write,
    Read,
    Checksum,
}

/// The recent faults of each drive, by index.
#[derive(Default)]
pub(crate) struct Evidence(Vec<[VecDeque<Nanos>; 3]>);

impl Evidence {
    /// Adds a fault; `true` when there is enough of that kind to take the drive out.
    pub fn add(&mut self, drive: u8, fault: Fault, now: Nanos, patience: &Patience) -> bool {
        let index = usize::from(drive);
        if self.0.len() <= index {
            self.0.resize_with(index + 1, Default::default);
        }
        let limit = match fault {
            Fault::Write => patience.write_errors,
            Fault::Read => patience.read_errors,
            Fault::Checksum => patience.checksum_errors,
        };
        let recent = &mut self.0[index][fault as usize];
        let limit = limit.max(1) as usize;
        recent.push_back(now);
        // more than the limit says no more than the limit does
        while recent.len() > limit || recent.front().is_some_and(|&then| then.0 + patience.window.0 < now.0) {
            recent.pop_front();
        }
        recent.len() >= limit
    }

    /// Of each drive: how many faults of each kind are not forgiven yet.
    fn recent(&self, now: Nanos, window: Nanos) -> Vec<[u32; 3]> {
        let counted =
            |faults: &VecDeque<Nanos>| faults.iter().filter(|then| then.0 + window.0 >= now.0).count() as u32;
        self.0.iter().map(|kinds| [counted(&kinds[0]), counted(&kinds[1]), counted(&kinds[2])]).collect()
    }

    /// The drive has been taken out: what was held against it counts no more should it come back.
    pub fn forget(&mut self, drive: u8) {
        if let Some(faults) = self.0.get_mut(usize::from(drive)) {
            faults.iter_mut().for_each(VecDeque::clear);
        }
    }
}

impl Lane {
    /// Whether a drive stays in although it did this.
    pub(crate) fn bears_with(&self, drive: u8, fault: Fault) -> bool {
        let enough =
            self.evidence.borrow_mut().add(drive, fault, self.io.now(), &self.options.get().patience);
        let membership = self.membership.borrow();
        let spare = membership.lost() < usize::from(membership.protection.parity())
            && !(enough && self.is_needed(drive, fault));
        if enough && spare {
            self.evidence.borrow_mut().forget(drive);
            match fault {
                Fault::Write => Decision::CondemnedWrites.taken(),
                Fault::Read => Decision::CondemnedReads.taken(),
                Fault::Checksum => Decision::CondemnedChecksums.taken(),
            }
        } else if enough {
            Decision::LastDriveKept.taken();
        }
        !(enough && spare)
    }

    /// Whether something of this lane may be readable only as long as a drive is. What the drive itself lacks does not speak for
    /// it. Where it is not known what lacks something, that may be another's; after a failed write it is the drive's own, and
    /// those who read from it find it lacking elsewhere.
    fn is_needed(&self, drive: u8, fault: Fault) -> bool {
        needs(&self.segments.borrow(), drive, fault != Fault::Write)
    }

    /// Faults of each drive that are not forgiven yet, by kind.
    pub(crate) fn recent_faults(&self) -> Vec<[u32; 3]> {
        let patience = self.options.get().patience;
        self.evidence.borrow().recent(self.io.now(), patience.window)
    }
}

fn needs(segments: &Segments, drive: u8, unknown_counts: bool) -> bool {
    segments.iter().any(|(_, segment)| segment_needs(segments, segment, drive, unknown_counts))
}

fn segment_needs(segments: &Segments, segment: &Segment, drive: u8, unknown_counts: bool) -> bool {
    let mut columns = segment.columns.columns.iter().flatten();
    let unknown = unknown_counts && segment.lacking.is_unknown();
    segment.live > 0
        && columns.any(|column| column.drive == drive)
        && (unknown || segments.useless_beside(segment, Some(drive)) >= segment.columns.shape().parity())
}

/// Notes which drives a segment needs. One of which every column is sound needs none, where there is parity at all: most are.
pub(crate) fn note_needed(segments: &Segments, segment: &Segment, needed: &mut [bool]) {
    if segment.lacking.is_nothing() && segments.lost_columns(segment) < segment.columns.shape().parity() {
        return;
    }
    for column in segment.columns.columns.iter().flatten() {
        let drive = usize::from(column.drive);
        needed[drive] = needed[drive] || segment_needs(segments, segment, column.drive, true);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_faults_are_forgiven_and_kinds_are_not_mixed() {
        let patience = Patience { write_errors: 3, window: Nanos::from_secs(10), ..Patience::default() };
        let mut evidence = Evidence::default();
        let mut add = |seconds, fault| evidence.add(2, fault, Nanos::from_secs(seconds), &patience);
        assert!(!add(0, Fault::Write) && !add(1, Fault::Write));
        assert!(!add(2, Fault::Read));
        assert!(!add(11, Fault::Write), "the first is forgiven");
        assert!(add(11, Fault::Write));
        evidence.forget(2);
        assert!(!evidence.add(2, Fault::Write, Nanos::from_secs(11), &patience));
    }
}
