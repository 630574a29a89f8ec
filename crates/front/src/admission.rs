//! Decides which host may open one more session, and which one has to wait before it tries a secret again.
//!
//! A host without a session is always admitted, however many sessions others have: a share of each shard's connections
//! is reserved for such hosts. No host and no address may take all of the remaining connections.

use std::cell::RefCell;
use std::collections::BTreeMap;

use base::Nanos;
use base::limits::{
    FAILED_SOURCES_MAX, SESSIONS_PER_ADDRESS_MAX, SESSIONS_PER_HOST_MAX, SESSIONS_PER_SHARD_MAX,
};

use shard::{AddressSource, SessionLimit};

/// Numbers of existing sessions.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Load {
    /// Sessions of the host, on all shards.
    pub(crate) host: usize,
    /// Sessions from the address, on all shards.
    pub(crate) address: usize,
    /// Sessions of all hosts, on the shard that would serve the new one.
    pub(crate) shard: usize,
}

impl Load {
    pub(crate) fn check(self) -> Result<(), SessionLimit> {
        match self {
            Load { host: 0, .. } => Ok(()),
            Load { host, .. } if host >= SESSIONS_PER_HOST_MAX => Err(SessionLimit::Host),
            Load { address, .. } if address >= SESSIONS_PER_ADDRESS_MAX => Err(SessionLimit::Address),
            Load { shard, .. } if shard >= SESSIONS_PER_SHARD_MAX => Err(SessionLimit::Shard),
            _ => Ok(()),
        }
    }
}

/// The number of failures without a delay: people mistype.
const FREE_FAILURES: u32 = 2;
const FIRST_DELAY: Nanos = Nanos::from_millis(100);
const DELAY_MAX: Nanos = Nanos::from_secs(5);
/// Less than the time allowed for a login. If the wait would be longer, the connection is closed.
const WAIT_MAX: Nanos = Nanos::from_secs(10);
/// An address is forgotten after this time without a failure.
const FORGET_AFTER: Nanos = Nanos::from_secs(60);

const _: () = assert!(WAIT_MAX.0 < base::limits::LOGIN_NS_MAX && DELAY_MAX.0 < WAIT_MAX.0);

/// When a new connection may send its login.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Turn {
    Now,
    At(Nanos),
    Never,
}

#[derive(Clone, Copy)]
struct FailedLogins {
    failures: u32,
    last: Nanos,
    /// When the next connection may send its login.
    next: Nanos,
}

/// Addresses that have sent a wrong secret, on one shard. Each further connection from such an address waits for its
/// turn, longer after each failure, so opening many connections at once gains nothing. Other addresses are not delayed.
#[derive(Default)]
pub(crate) struct LoginBackoff(RefCell<BTreeMap<AddressSource, FailedLogins>>);

impl LoginBackoff {
    pub(crate) fn note_failure(&self, source: AddressSource, now: Nanos) {
        let mut sources = self.0.borrow_mut();
        sources.retain(|_, failed| now.saturating_sub(failed.last) < FORGET_AFTER);
        if sources.len() >= FAILED_SOURCES_MAX && !sources.contains_key(&source) {
            let oldest = sources.iter().min_by_key(|(_, failed)| failed.last).map(|(&source, _)| source);
            oldest.map(|source| sources.remove(&source));
        }
        let failed = sources.entry(source).or_insert(FailedLogins { failures: 0, last: now, next: now });
        failed.failures = failed.failures.saturating_add(1);
        failed.last = now;
        failed.next = failed.next.max(now + delay(failed.failures));
    }

    /// The turn of a connection that arrives now.
    pub(crate) fn turn(&self, source: AddressSource, now: Nanos) -> Turn {
        let mut sources = self.0.borrow_mut();
        let Some(failed) = sources.get_mut(&source) else { return Turn::Now };
        let delay = delay(failed.failures);
        if delay == Nanos(0) || now.saturating_sub(failed.last) >= FORGET_AFTER {
            return Turn::Now;
        }
        let turn = failed.next.max(now);
        if turn.saturating_sub(now) > WAIT_MAX {
            return Turn::Never;
        }
        failed.next = turn + delay;
        if turn == now { Turn::Now } else { Turn::At(turn) }
    }
}

fn delay(failures: u32) -> Nanos {
    match failures.saturating_sub(FREE_FAILURES) {
        0 => Nanos(0),
        more => Nanos((FIRST_DELAY.0 << (more - 1).min(16)).min(DELAY_MAX.0)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_has_none_gets_one_and_nobody_gets_all() {
        let check = |host, address, shard| Load { host, address, shard }.check();
        const HOST: usize = SESSIONS_PER_HOST_MAX;
        const ADDRESS: usize = SESSIONS_PER_ADDRESS_MAX;
        const SHARD: usize = SESSIONS_PER_SHARD_MAX;
        let table = [
            ((0, ADDRESS, SHARD), Ok(())),
            ((1, 1, SHARD - 1), Ok(())),
            ((HOST - 1, ADDRESS - 1, SHARD - 1), Ok(())),
            ((HOST, 0, 0), Err(SessionLimit::Host)),
            ((1, ADDRESS, 0), Err(SessionLimit::Address)),
            ((1, 1, SHARD), Err(SessionLimit::Shard)),
        ];
        for ((host, address, shard), expected) in table {
            assert_eq!(check(host, address, shard), expected, "{host}, {address}, {shard}");
        }
    }

    fn source(last: u8) -> AddressSource {
        AddressSource::of(std::net::IpAddr::from([10, 0, 0, last]))
    }

    #[test]
    fn failed_logins_come_one_after_the_other_and_ever_slower() {
        let backoff = LoginBackoff::default();
        let (mut now, mut tried) = (Nanos::from_secs(1), 0);
        let end = now + Nanos::from_secs(600);
        // hundred connections at once, again and again
        while now < end {
            let turns: Vec<Turn> = (0..100).map(|_| backoff.turn(source(1), now)).collect();
            for turn in turns {
                let at = match turn {
                    Turn::Now => now,
                    Turn::At(at) => at,
                    Turn::Never => continue,
                };
                now = now.max(at);
                backoff.note_failure(source(1), now);
                tried += 1;
            }
            now = now + Nanos::from_millis(1);
        }
        // those of the first moment, and one each five seconds
        assert!((100..=100 + 600 / 5 + 10).contains(&tried), "{tried}");
        assert_eq!(backoff.turn(source(2), now), Turn::Now, "another address is not held up");
        assert_eq!(backoff.turn(source(1), now + FORGET_AFTER), Turn::Now, "forgotten");
    }

    #[test]
    fn few_mistakes_cost_nothing_and_few_are_remembered() {
        let (backoff, now) = (LoginBackoff::default(), Nanos::from_secs(1));
        for _ in 0..FREE_FAILURES {
            backoff.note_failure(source(1), now);
            assert_eq!(backoff.turn(source(1), now), Turn::Now);
        }
        backoff.note_failure(source(1), now);
        assert_eq!(backoff.turn(source(1), now), Turn::At(now + FIRST_DELAY));
        for number in 0..2 * FAILED_SOURCES_MAX as u32 {
            let address = std::net::IpAddr::from((0x0B00_0000 + number).to_be_bytes());
            backoff.note_failure(AddressSource::of(address), now + Nanos(u64::from(number)));
        }
        assert_eq!(backoff.0.borrow().len(), FAILED_SOURCES_MAX);
    }
}
