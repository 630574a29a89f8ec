//! Counts what commands have done: by volume, and by session. A session's figures are added to those of its host and its
//! portal when it ends, so the sums only grow, however often hosts log in.
//!
//! ```text
//!   command answered ─► its unit's Figures, its session's Figures           two additions, no clock is read
//!   session ends     ─► sums of its host, its portal, the shard
//!   volume, host or portal is gone ─► one sum for all that are gone
//! ```

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::net::SocketAddr;

use api::{SessionsLoad, Traffic};
use base::Nanos;
use scsi::Response;
use shard::Replica;

/// What is known of a command from its beginning to its answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Arrival {
    kind: scsi::Traffic,
    at: Nanos,
}

#[cfg(test)]
impl Arrival {
    pub(crate) const SAMPLE: Arrival = Arrival { kind: scsi::Traffic::Other, at: Nanos(0) };
}

/// A command that was answered.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Answered {
    kind: scsi::Traffic,
    bytes: u64,
    failed: bool,
    took: Nanos,
}

impl Arrival {
    pub(crate) fn new(cdb: &[u8], now: Nanos) -> Arrival {
        Arrival { kind: scsi::Traffic::of(cdb), at: now }
    }

    pub(crate) fn answered(self, response: &Response, now: Nanos) -> Answered {
        Answered {
            kind: self.kind,
            bytes: self.kind.bytes(response) as u64,
            failed: response.is_failure(),
            took: now.saturating_sub(self.at),
        }
    }
}

/// The figures of one volume or session. They take memory only after its first command.
#[derive(Default)]
pub(crate) struct Figures(RefCell<Option<Box<Traffic>>>);

impl Figures {
    pub(crate) fn add(&self, answered: Answered) {
        let mut traffic = self.0.borrow_mut();
        let traffic = traffic.get_or_insert_default();
        let operations = match answered.kind {
            scsi::Traffic::Read => &mut traffic.reads,
            scsi::Traffic::Write | scsi::Traffic::CompareAndWrite => &mut traffic.writes,
            scsi::Traffic::Other => &mut traffic.others,
        };
        operations.bytes += answered.bytes;
        operations.failures += u64::from(answered.failed);
        operations.latency.add(answered.took);
    }

    /// `None`: there was no command.
    pub(crate) fn get(&self) -> Option<Traffic> {
        self.0.borrow().as_deref().copied()
    }
}

/// What the sessions that have ended had done, and all logins.
#[derive(Default)]
pub(crate) struct Sums {
    pub(crate) hosts: RefCell<BTreeMap<String, SessionsLoad>>,
    pub(crate) other_hosts: RefCell<SessionsLoad>,
    pub(crate) portals: RefCell<BTreeMap<SocketAddr, SessionsLoad>>,
    pub(crate) other_portals: RefCell<SessionsLoad>,
    pub(crate) shard: RefCell<SessionsLoad>,
    /// Volumes that are gone.
    pub(crate) other_volumes: RefCell<Traffic>,
}

impl Sums {
    /// Calls `add` with every sum that a session of this host at this portal belongs to.
    fn each(
        &self,
        replica: &Replica,
        host: Option<&str>,
        portal: SocketAddr,
        add: impl Fn(&mut SessionsLoad),
    ) {
        add(&mut self.shard.borrow_mut());
        match replica.portal(portal) {
            Some(_) => add(self.portals.borrow_mut().entry(portal).or_default()),
            None => add(&mut self.other_portals.borrow_mut()),
        }
        match host {
            Some(host) if replica.catalog.find_host(host).is_some() => {
                add(self.hosts.borrow_mut().entry(host.to_owned()).or_default());
            }
            Some(_) => add(&mut self.other_hosts.borrow_mut()),
            None => {}
        }
    }

    /// A session has begun.
    pub(crate) fn logged_in(&self, replica: &Replica, host: &str, portal: SocketAddr) {
        self.each(replica, Some(host), portal, |sum| sum.logins += 1);
    }

    /// A connection has ended: a session of `host` that has done this, or one that never became a session.
    pub(crate) fn ended(
        &self,
        replica: &Replica,
        host: Option<&str>,
        portal: SocketAddr,
        traffic: Option<Traffic>,
    ) {
        match (host, traffic) {
            (None, _) => self.each(replica, None, portal, |sum| sum.refused_logins += 1),
            (Some(_), None) => {}
            (_, Some(traffic)) => self.each(replica, host, portal, |sum| sum.load.traffic.merge(&traffic)),
        }
    }

    /// Applies the new state of the array: what is gone is added to one sum. So memory is bounded by the catalog.
    pub(crate) fn follow(&self, replica: &Replica, volumes_gone: &[Traffic]) {
        volumes_gone.iter().for_each(|traffic| self.other_volumes.borrow_mut().merge(traffic));
        let mut other = self.other_hosts.borrow_mut();
        self.hosts
            .borrow_mut()
            .retain(|host, sum| kept(replica.catalog.find_host(host).is_some(), sum, &mut other));
        let mut other = self.other_portals.borrow_mut();
        self.portals
            .borrow_mut()
            .retain(|portal, sum| kept(replica.portal(*portal).is_some(), sum, &mut other));
    }
}

fn kept(is_known: bool, sum: &SessionsLoad, other: &mut SessionsLoad) -> bool {
    if !is_known {
        other.merge(sum);
    }
    is_known
}
