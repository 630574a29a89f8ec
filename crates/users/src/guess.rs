//! Who has guessed wrong has to wait: an address is refused for a growing time, and attempts on one user are answered more slowly.
//!
//! What always holds: an address is refused for what came from it alone, so nobody locks out another address, whatever name is tried. What
//! is tried from many addresses on one user is only slowed down ([`SLOW_MAX`]), because refusing it would lock out the user. What is
//! remembered is bounded; what is forgotten first is what has happened the longest ago.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv6Addr};
use std::time::Duration;

/// Wrong attempts that cost nothing: people mistype.
const FREE: u32 = 3;
/// After the first that costs.
const WAIT_FIRST: Duration = Duration::from_secs(1);
/// An address waits no longer than so long.
const WAIT_MAX: Duration = Duration::from_secs(60);
/// An attempt on a user waits no longer than so long.
const SLOW_MAX: Duration = Duration::from_secs(3);
/// After so long without a wrong attempt, all is forgotten.
const FORGOTTEN: Duration = Duration::from_secs(15 * 60);
/// Addresses, and users, that are remembered.
const KEYS_MAX: usize = 1024;

/// What becomes of an attempt.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// It is looked at after so long.
    After(Duration),
    /// It is not looked at: the next one may be in so long.
    Refused(Duration),
}

#[derive(Clone, PartialEq, Eq, Debug)]
struct Wrong {
    count: u32,
    last: Duration,
    /// The user that all of them were for; `None`: there were several.
    user: Option<String>,
}

/// Wrong attempts that are remembered. Moments are since some start, on a clock that is never set.
#[derive(Default, Debug)]
pub struct Guesses {
    addresses: BTreeMap<IpAddr, Wrong>,
    users: BTreeMap<String, Wrong>,
}

impl Guesses {
    /// Somebody at this address tries to be this user. An attempt that is looked at counts as wrong until [`Guesses::was_right`] takes it
    /// back, so that many at once are no way around the limit.
    pub fn attempt(&mut self, address: IpAddr, user: &str, now: Duration) -> Verdict {
        let network = network(address);
        if let Some(wrong) = self.addresses.get(&network).filter(|wrong| !is_forgotten(wrong, now)) {
            let next = wrong.last + wait(wrong.count);
            if next > now {
                return Verdict::Refused(next - now);
            }
        }
        let of_user = self.users.get(user).filter(|wrong| !is_forgotten(wrong, now));
        let slow = wait(of_user.map_or(0, |wrong| wrong.count)).min(SLOW_MAX);
        count(&mut self.addresses, network, user, now);
        count(&mut self.users, user.to_owned(), user, now);
        Verdict::After(slow)
    }

    /// The password was right. What this address got wrong for this user is forgotten; what it tried on others is not.
    pub fn was_right(&mut self, address: IpAddr, user: &str) {
        let network = network(address);
        if let Some(wrong) = self.addresses.get_mut(&network) {
            match wrong.user.as_deref() == Some(user) {
                true => drop(self.addresses.remove(&network)),
                false => wrong.count = wrong.count.saturating_sub(1),
            }
        }
        if let Some(wrong) = self.users.get_mut(user) {
            wrong.count = wrong.count.saturating_sub(1);
        }
    }
}

/// An IPv6 host has a network of 2^64 addresses.
fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() & !u128::from(u64::MAX)).into(),
        address => address,
    }
}

fn is_forgotten(wrong: &Wrong, now: Duration) -> bool {
    now.saturating_sub(wrong.last) >= FORGOTTEN
}

/// After so many wrong attempts.
fn wait(count: u32) -> Duration {
    match count.checked_sub(FREE) {
        None => Duration::ZERO,
        Some(doublings) => WAIT_FIRST.saturating_mul(1 << doublings.min(16)).min(WAIT_MAX),
    }
}

fn count<K: Ord + Clone>(all: &mut BTreeMap<K, Wrong>, key: K, user: &str, now: Duration) {
    if let Some(wrong) = all.get_mut(&key).filter(|wrong| !is_forgotten(wrong, now)) {
        wrong.count = wrong.count.saturating_add(1);
        wrong.last = now;
        wrong.user = wrong.user.take().filter(|known| known == user);
        return;
    }
    if all.len() >= KEYS_MAX {
        all.retain(|_, wrong| !is_forgotten(wrong, now));
    }
    if all.len() >= KEYS_MAX
        && let Some(oldest) = all.iter().min_by_key(|(_, wrong)| wrong.last).map(|(key, _)| key.clone())
    {
        all.remove(&oldest);
    }
    all.insert(key, Wrong { count: 1, last: now, user: Some(user.to_owned()) });
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    fn address(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    /// Tries as fast as it can for so long. Gives how many attempts were looked at.
    fn guess_for(guesses: &mut Guesses, from: &str, seconds: u64) -> u32 {
        let mut looked_at = 0;
        for tenth in 0..10 * seconds {
            let now = Duration::from_millis(100 * tenth);
            looked_at += u32::from(matches!(guesses.attempt(address(from), "alice", now), Verdict::After(_)));
        }
        looked_at
    }

    #[test]
    fn waiting_grows() {
        let mut guesses = Guesses::default();
        let mut now = at(0);
        let mut waits = Vec::new();
        for _ in 0..12 {
            match guesses.attempt(address("10.0.0.66"), "alice", now) {
                Verdict::After(_) => waits.push(0),
                Verdict::Refused(wait) => {
                    waits.push(wait.as_secs());
                    now += wait;
                    assert!(matches!(guesses.attempt(address("10.0.0.66"), "alice", now), Verdict::After(_)));
                }
            }
        }
        assert_eq!(waits, [0, 0, 0, 1, 2, 4, 8, 16, 32, 60, 60, 60]);
    }

    #[test]
    fn who_never_stops_gets_one_in_a_minute() {
        let looked_at = guess_for(&mut Guesses::default(), "10.0.0.66", 3600);
        assert!((60..=70).contains(&looked_at), "{looked_at}");
    }

    #[test]
    fn another_address_is_never_refused_for_it_and_waits_a_little() {
        let mut guesses = Guesses::default();
        for number in 0..=255 {
            for _ in 0..20 {
                guesses.attempt(address(&format!("10.0.1.{number}")), "alice", at(1));
            }
        }
        let verdict = guesses.attempt(address("10.0.0.9"), "alice", at(2));
        assert_eq!(verdict, Verdict::After(SLOW_MAX));
        assert_eq!(guesses.attempt(address("10.0.0.9"), "bob", at(2)), Verdict::After(Duration::ZERO));
    }

    #[test]
    fn many_at_once_are_no_way_around_it() {
        let mut guesses = Guesses::default();
        let verdicts = (0..100).map(|_| guesses.attempt(address("10.0.0.66"), "alice", at(1)));
        assert_eq!(verdicts.filter(|verdict| matches!(verdict, Verdict::After(_))).count(), FREE as usize);
    }

    #[test]
    fn who_mistypes_and_then_does_not_starts_anew() {
        let mut guesses = Guesses::default();
        let home = address("10.0.0.9");
        for round in 0..10 {
            for _ in 0..FREE {
                assert_eq!(
                    guesses.attempt(home, "alice", at(round)),
                    Verdict::After(Duration::ZERO),
                    "{round}"
                );
                // a user that somebody else has tried is slow, which is not tested here
                guesses.users.clear();
            }
            guesses.was_right(home, "alice");
        }
    }

    /// A user with a password of one's own does not get new attempts on others by it.
    #[test]
    fn a_right_password_of_another_user_forgets_nothing() {
        let mut guesses = Guesses::default();
        let from = address("10.0.0.66");
        let mut looked_at = 0;
        for _ in 0..50 {
            looked_at += u32::from(matches!(guesses.attempt(from, "alice", at(1)), Verdict::After(_)));
            if let Verdict::After(_) = guesses.attempt(from, "mallory", at(1)) {
                guesses.was_right(from, "mallory");
            }
        }
        assert_eq!(looked_at, FREE);
    }

    #[test]
    fn it_is_forgotten_after_a_while() {
        let mut guesses = Guesses::default();
        guess_for(&mut guesses, "10.0.0.66", 600);
        let later = at(600) + FORGOTTEN;
        assert_eq!(guesses.attempt(address("10.0.0.66"), "alice", later), Verdict::After(Duration::ZERO));
    }

    #[test]
    fn a_network_of_ipv6_is_one_address_and_what_is_remembered_is_bounded() {
        let mut guesses = Guesses::default();
        for host in 0..100 {
            guesses.attempt(address(&format!("2001:db8::{host:x}")), "alice", at(1));
        }
        assert_eq!(guesses.addresses.len(), 1);
        assert_eq!(network(address("::ffff:10.0.0.1")), address("10.0.0.1"));
        for host in 0..5 * KEYS_MAX {
            let from = IpAddr::from([10, 1, (host >> 8) as u8, host as u8]);
            guesses.attempt(from, &format!("u{host}"), at(host as u64 / 100));
        }
        assert_eq!((guesses.addresses.len(), guesses.users.len()), (KEYS_MAX, KEYS_MAX));
    }
}
