//! When a drive is taken out: only at an error threshold, never for a single error.
//!
//! A drive that is gone is taken out at once. A drive that returns errors stays in service below the thresholds. The
//! data that it lacks is written anew elsewhere, and each error is counted permanently. The drive is not taken out if
//! fewer drives would remain than the protection needs, or if it may hold the only copy of some data: a drive with
//! errors is better than none. This is asked again, of all lanes, when it is taken out ([`super::departure::Departure`]).
//!
//! A threshold applies to a drive, over all lanes of its pool. A lane that reaches one alone acts at once. The pool's
//! owner adds up the errors of several lanes ([`crate::LaneStats::recent_faults`]), and also reports why a drive stays
//! in service.

use std::collections::VecDeque;

use base::Nanos;

/// The error thresholds of a drive: how many errors of one kind within a time window take the drive out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Patience {
    /// Writes that failed although they were retried.
    pub write_errors: u32,
    /// Reads that failed.
    pub read_errors: u32,
    /// Blocks whose content was not what had been written.
    pub checksum_errors: u32,
    /// Errors older than this do not count.
    pub window: Nanos,
    /// A drive is slow if it takes this many times as long as its siblings; 0: no drive is ever slow.
    pub slow_factor: u32,
    /// Latencies below this are not slow, whatever the siblings' are.
    pub slow_latency: Nanos,
    /// How long a drive must be slow without a break.
    pub slow_time: Nanos,
    /// A drive that has not answered for this time is given up, if its siblings answer; zero: never.
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
            // less than hosts wait before they abort a command
            hung_time: Nanos::from_secs(15),
        }
    }
}

/// A fault of a drive.
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
    /// Adds a fault; `true` if the drive has reached the threshold of this kind.
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
        // more faults than the threshold change nothing
        while recent.len() > limit || recent.front().is_some_and(|&then| then.0 + patience.window.0 < now.0) {
            recent.pop_front();
        }
        recent.len() >= limit
    }

    /// For each drive: how many recent faults of each kind it has.
    pub fn recent(&self, now: Nanos, window: Nanos) -> Vec<[u32; 3]> {
        let counted =
            |faults: &VecDeque<Nanos>| faults.iter().filter(|then| then.0 + window.0 >= now.0).count() as u32;
        self.0.iter().map(|kinds| [counted(&kinds[0]), counted(&kinds[1]), counted(&kinds[2])]).collect()
    }

    /// The drive has been taken out: its faults no longer count if it comes back.
    pub fn forget(&mut self, drive: u8) {
        if let Some(faults) = self.0.get_mut(usize::from(drive)) {
            faults.iter_mut().for_each(VecDeque::clear);
        }
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
