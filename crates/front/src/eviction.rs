//! Connections that have not logged in yet, and discovery sessions. They carry no commands, so they are closed if others
//! need their place.
//!
//! If a shard has the maximum number of them, it still accepts the next one and closes the oldest connection of the
//! address that has most of them. So an address that opens many idle connections shuts out only itself.

use std::net::IpAddr;
use std::rc::Rc;

use base::limits::{CONNECTIONS_PER_SHARD_MAX, LOGINS_PER_SHARD_MAX};
use iscsi::SessionKind;
use shard::AddressSource;

use crate::session::{Login, Session};
use crate::sessions::Sessions;
use api::{LoginRefusal, SessionEnd};

/// Which of these connections, oldest first, is closed for a newcomer: the oldest one of the address that has most of
/// them.
fn victim(candidates: &[AddressSource], newcomer: AddressSource) -> Option<usize> {
    let count = |source: AddressSource| {
        candidates.iter().filter(|&&other| other == source).count() + usize::from(source == newcomer)
    };
    let most = candidates.iter().map(|&source| count(source)).max()?;
    candidates.iter().position(|&source| count(source) == most)
}

impl Session {
    /// Whether this is a connection without a login, or a discovery session.
    fn is_evictable(&self) -> bool {
        let login = self.login.borrow();
        let discovers = login.as_ref().is_none_or(|login| login.identity.kind == SessionKind::Discovery);
        discovers && !self.ended.get() && !self.login_pending.get()
    }
}

impl Sessions {
    /// Sessions that carry commands.
    pub(crate) fn normal(&self) -> usize {
        let is_normal = |session: &Rc<Session>| {
            let login = session.login.borrow();
            login.as_ref().is_some_and(Login::is_normal)
        };
        self.all().iter().filter(|session| is_normal(session)).count()
    }

    /// Whether a connection from this address is accepted. A connection may be closed for it.
    pub(crate) fn has_room_for(&self, newcomer: IpAddr) -> bool {
        let candidates: Vec<Rc<Session>> =
            self.all().into_iter().filter(|session| session.is_evictable()).collect();
        if candidates.len() < LOGINS_PER_SHARD_MAX && self.len() < CONNECTIONS_PER_SHARD_MAX {
            return true;
        }
        let sources: Vec<AddressSource> =
            candidates.iter().map(|session| AddressSource::of(session.peer().ip())).collect();
        let Some(index) = victim(&sources, AddressSource::of(newcomer)) else { return false };
        candidates[index].note_refusal(LoginRefusal::GaveWay);
        candidates[index].drop_now(SessionEnd::GaveWay);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sources(addresses: &[&str]) -> Vec<AddressSource> {
        addresses.iter().map(|address| AddressSource::of(address.parse().unwrap())).collect()
    }

    #[test]
    fn the_oldest_of_the_address_with_most_is_closed() {
        let [a, b, c] = ["10.0.0.1", "10.0.0.2", "10.0.0.3"];
        let choose =
            |candidates: &[&str], newcomer: &str| victim(&sources(candidates), sources(&[newcomer])[0]);
        assert_eq!(choose(&[], a), None);
        assert_eq!(choose(&[b, a, a], c), Some(1));
        assert_eq!(choose(&[b, a, a], a), Some(1), "an address with many shuts out only itself");
        assert_eq!(choose(&[a, b], b), Some(1), "the newcomer counts");
        assert_eq!(choose(&[a, b], c), Some(0), "the oldest, if no address has more than another");
    }
}
