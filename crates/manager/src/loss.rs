//! What is said of data that is damaged beyond repair, for as long as it is in use.

use base::BLOCK_BYTES;
use pool::LaneStats;

use crate::words::size;
use api::{Harm, Health, LastScrub, Problem};

/// What can neither be read nor rebuilt, as far as is known.
pub(crate) fn lost_bytes(lanes: &[&LaneStats]) -> u64 {
    lanes.iter().map(|lane| lane.lost_blocks).sum::<u64>() * BLOCK_BYTES as u64
}

/// What is to be said of it, if there is any; `missing`: drives of the pool are.
pub(crate) fn problem(subject: &str, lost_bytes: u64, missing: bool) -> Option<Problem> {
    let action = match missing {
        true => {
            "bring its missing drives back: with them it may be readable; else restore what hosts cannot read from a backup"
        }
        false => "restore what hosts cannot read from a backup, or delete it; then scrub",
    };
    (lost_bytes > 0).then(|| Problem {
        harm: Harm::Lost,
        health: Health::Degraded,
        subject: subject.to_owned(),
        reason: format!(
            "some of its data is damaged beyond repair ({}, as far as is known); hosts get errors where it cannot be read",
            size(lost_bytes)
        ),
        action: action.to_owned(),
    })
}

/// What is to be said where the last scrub found some, and none is known of now.
pub(crate) fn doubt(subject: &str, last: Option<LastScrub>) -> Option<Problem> {
    last.filter(|last| last.unreadable > 0).map(|_| Problem {
        harm: Harm::Lost,
        health: Health::Degraded,
        subject: subject.to_owned(),
        reason:
            "the last scrub found data that could neither be read nor rebuilt; none is known to be lost now"
                .to_owned(),
        action: "scrub again".to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_lost_is_said_until_it_is_not() {
        let last = LastScrub { ended_ms: 1, complete: true, repaired: 3, unreadable: 1 };
        assert_eq!(problem("pool fast", 0, true), None);
        let now = problem("pool fast", 8192, false).unwrap();
        assert!(now.reason.contains("damaged beyond repair (8 KiB"), "{now:?}");
        assert!(
            problem("pool fast", 8192, true).unwrap().action.starts_with("bring its missing drives back")
        );
        assert!(doubt("pool fast", Some(last)).is_some());
        assert_eq!(doubt("pool fast", Some(LastScrub { unreadable: 0, ..last })), None);
        assert_eq!(doubt("pool fast", None), None);
    }
}
