//! Browsers that have signed in. A session is known by SHA-256 of the secret in its cookie, and is kept in memory alone: a restart of the daemon ends all.
//!
//! What always holds: a session ends after [`IDLE_MAX`] without a request and after [`ABSOLUTE_MAX`] in any case; a user has at most
//! [`SESSIONS_OF_USER_MAX`], so all together are bounded.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use crate::SESSIONS_OF_USER_MAX;
use crate::secret::SecretHash;

/// Without a request.
pub const IDLE_MAX: Duration = Duration::from_secs(30 * 60);
/// In any case.
pub const ABSOLUTE_MAX: Duration = Duration::from_secs(12 * 3600);

/// A browser that has signed in. Moments are since some start, on a clock that is never set.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Session {
    /// For people: it is no secret, and never used again.
    pub number: u64,
    pub user: String,
    /// What the browser must send back with each change.
    pub csrf: Arc<str>,
    /// Where it signed in from.
    pub address: String,
    pub began: Duration,
    pub last_used: Duration,
    /// The wall clock, in milliseconds since 1970.
    pub began_ms: u64,
}

impl Session {
    fn is_over(&self, now: Duration) -> bool {
        now.saturating_sub(self.last_used) >= IDLE_MAX || now.saturating_sub(self.began) >= ABSOLUTE_MAX
    }
}

/// All of them.
#[derive(Default, Debug)]
pub struct Sessions {
    by_secret: BTreeMap<SecretHash, Session>,
    newest: u64,
}

impl Sessions {
    /// Begins one. `session.number` is given here.
    pub fn begin(&mut self, secret: SecretHash, session: Session, now: Duration) -> u64 {
        self.sweep(now);
        let of_user = |other: &&SecretHash| self.by_secret[other].user == session.user;
        let known: Vec<SecretHash> = self.by_secret.keys().filter(of_user).copied().collect();
        if known.len() >= SESSIONS_OF_USER_MAX {
            let oldest = known.into_iter().min_by_key(|secret| self.by_secret[secret].last_used);
            self.by_secret.remove(&oldest.expect("there are several"));
        }
        self.newest += 1;
        self.by_secret.insert(secret, Session { number: self.newest, ..session });
        self.newest
    }

    /// The session of this secret, which is used now.
    pub fn using(&mut self, secret: &SecretHash, now: Duration) -> Option<&Session> {
        if self.by_secret.get(secret)?.is_over(now) {
            self.by_secret.remove(secret);
            return None;
        }
        let session = self.by_secret.get_mut(secret)?;
        session.last_used = now;
        Some(session)
    }

    /// The same without counting as a use.
    pub fn look(&self, secret: &SecretHash, now: Duration) -> Option<&Session> {
        self.by_secret.get(secret).filter(|session| !session.is_over(now))
    }

    /// Those that have not ended, in the order in which they began.
    pub fn list(&self, now: Duration) -> Vec<&Session> {
        let mut sessions: Vec<&Session> =
            self.by_secret.values().filter(|session| !session.is_over(now)).collect();
        sessions.sort_by_key(|session| session.number);
        sessions
    }

    /// Ends the session of this secret.
    pub fn end(&mut self, secret: &SecretHash) -> Option<Session> {
        self.by_secret.remove(secret)
    }

    /// Ends those that are meant, but for the one that is `kept`. Gives their number.
    pub fn end_all(&mut self, is_meant: impl Fn(&Session) -> bool, kept: Option<&SecretHash>) -> u64 {
        let before = self.by_secret.len();
        self.by_secret.retain(|secret, session| Some(secret) == kept || !is_meant(session));
        (before - self.by_secret.len()) as u64
    }

    fn sweep(&mut self, now: Duration) {
        self.by_secret.retain(|_, session| !session.is_over(now));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::secret::Secret;

    fn minutes(minutes: u64) -> Duration {
        Duration::from_secs(60 * minutes)
    }

    fn begin(sessions: &mut Sessions, user: &str, now: Duration) -> SecretHash {
        let secret = Secret::random().hash();
        let session = Session {
            number: 0,
            user: user.to_owned(),
            csrf: "token".into(),
            address: "10.0.0.9".to_owned(),
            began: now,
            last_used: now,
            began_ms: 0,
        };
        sessions.begin(secret, session, now);
        secret
    }

    #[test]
    fn a_session_that_is_not_used_ends() {
        let mut sessions = Sessions::default();
        let secret = begin(&mut sessions, "alice", minutes(0));
        assert!(sessions.using(&secret, minutes(29)).is_some());
        assert!(sessions.using(&secret, minutes(58)).is_some(), "each use counts");
        assert!(sessions.look(&secret, minutes(87)).is_some());
        assert!(sessions.using(&secret, minutes(88)).is_none(), "a look is no use");
        assert!(sessions.using(&secret, minutes(58)).is_none(), "it is over for good");
    }

    #[test]
    fn a_session_that_is_used_ends_after_half_a_day() {
        let mut sessions = Sessions::default();
        let secret = begin(&mut sessions, "alice", minutes(7));
        for minute in (7..7 + 12 * 60).step_by(20) {
            assert!(sessions.using(&secret, minutes(minute)).is_some(), "{minute}");
        }
        assert!(sessions.list(minutes(7 + 12 * 60 - 1)).len() == 1);
        assert!(sessions.using(&secret, minutes(7 + 12 * 60)).is_none());
        assert!(sessions.list(minutes(7 + 12 * 60)).is_empty());
    }

    #[test]
    fn a_secret_that_was_not_given_out_has_no_session() {
        let mut sessions = Sessions::default();
        begin(&mut sessions, "alice", minutes(0));
        assert!(sessions.using(&Secret::random().hash(), minutes(0)).is_none());
    }

    #[test]
    fn a_user_has_a_bounded_number_and_pushes_out_nobody_else() {
        let mut sessions = Sessions::default();
        let other = begin(&mut sessions, "bob", minutes(0));
        let first = begin(&mut sessions, "alice", minutes(1));
        let second = begin(&mut sessions, "alice", minutes(1));
        sessions.using(&first, minutes(2)).unwrap();
        for _ in 2..=SESSIONS_OF_USER_MAX {
            begin(&mut sessions, "alice", minutes(3));
        }
        let of_alice = |session: &&&Session| session.user == "alice";
        assert_eq!(sessions.list(minutes(3)).iter().filter(of_alice).count(), SESSIONS_OF_USER_MAX);
        assert!(sessions.using(&other, minutes(3)).is_some() && sessions.using(&first, minutes(3)).is_some());
        assert!(sessions.using(&second, minutes(3)).is_none(), "it was used last the longest ago");
    }

    #[test]
    fn sessions_of_a_user_end_together() {
        let mut sessions = Sessions::default();
        let mine = begin(&mut sessions, "alice", minutes(0));
        let others = [begin(&mut sessions, "alice", minutes(0)), begin(&mut sessions, "bob", minutes(0))];
        assert_eq!(sessions.end_all(|session| session.user == "alice", Some(&mine)), 1);
        assert!(
            sessions.using(&mine, minutes(0)).is_some() && sessions.using(&others[0], minutes(0)).is_none()
        );
        assert_eq!(sessions.end(&others[1]).unwrap().user, "bob");
        assert!(sessions.end(&others[1]).is_none());
    }
}
