//! When a drive is taken out: by evidence, never for one hiccup.
//!
//! A drive that is gone is out at once. One that returns errors is borne with as long as it stays below the
//! limits, what it lacks is written anew elsewhere, and each error is counted for ever. It is not taken out where that
//! would leave less than the protection needs, or something that stands nowhere else any more: a drive with errors is
//! better than none.

use std::collections::VecDeque;

use base::Nanos;

use crate::decision::Decision;
use crate::lane::Lane;

/// How many errors of one kind, within a while, are borne before a drive is taken out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Patience {
    /// Writes that failed although they were tried again.
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
        recent.push_back(now);
        while recent.front().is_some_and(|&then| then.0 + patience.window.0 < now.0) {
            recent.pop_front();
        }
        recent.len() >= limit.max(1) as usize
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

    /// Whether something of this lane may be readable only as long as a drive is. What is incomplete may be so because of
    /// the drive's own failed writes; those who read from it find it lacking elsewhere.
    fn is_needed(&self, drive: u8, fault: Fault) -> bool {
        let segments = self.segments.borrow();
        segments.iter().any(|(_, segment)| {
            let mut columns = segment.columns.columns.iter().flatten();
            let lacking = fault != Fault::Write && segment.incomplete;
            segment.live > 0
                && (lacking || segments.lost_columns(segment) >= segment.columns.shape().parity())
                && columns.any(|column| column.drive == drive)
        })
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
