//! Problems of data that is damaged beyond repair. They are reported as long as the data is in use.

use base::BLOCK_BYTES;
use pool::LaneStats;

use api::{LastScrub, Problem, ProblemFacts, Subject};

/// Bytes that are known to be neither readable nor rebuildable.
pub(crate) fn lost_bytes(lanes: &[&LaneStats]) -> u64 {
    lanes.iter().map(|lane| lane.lost_blocks).sum::<u64>() * BLOCK_BYTES as u64
}

/// The problem of `pool`, if it has lost bytes; `drives_missing`: some of its drives are missing.
pub(crate) fn problem(pool: &str, lost_bytes: u64, drives_missing: bool) -> Option<Problem> {
    let facts = ProblemFacts::DataLost { lost_bytes, drives_missing };
    (lost_bytes > 0).then(|| Problem::new(Subject::pool(pool), facts))
}

/// The problem if the last scrub found losses, and none are known now.
pub(crate) fn doubt(pool: &str, last: Option<LastScrub>) -> Option<Problem> {
    let last = last.filter(|last| last.unreadable > 0)?;
    let facts = ProblemFacts::DataDoubted { unreadable_batches: last.unreadable };
    Some(Problem { subject: Subject::pool(pool), since_ms: Some(last.ended_ms), facts })
}

#[cfg(test)]
mod tests {
    use super::*;
    use api::ProblemCode;

    #[test]
    fn what_is_lost_is_said_until_it_is_not() {
        let last = LastScrub { ended_ms: 1, complete: true, repaired: 3, unreadable: 1 };
        assert_eq!(problem("fast", 0, true), None);
        let now = problem("fast", 8192, false).unwrap();
        assert_eq!(now.code(), ProblemCode::DataLost);
        assert!(now.reason().contains("damaged beyond repair (8 KiB"), "{now:?}");
        assert!(problem("fast", 8192, true).unwrap().action().starts_with("bring its missing drives back"));
        let doubted = doubt("fast", Some(last)).unwrap();
        assert_eq!((doubted.code(), doubted.since_ms), (ProblemCode::DataDoubted, Some(1)));
        assert_eq!(doubt("fast", Some(LastScrub { unreadable: 0, ..last })), None);
        assert_eq!(doubt("fast", None), None);
    }
}
