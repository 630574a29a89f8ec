//! Which initiators are logged in, array-wide: at most one session for each initiator, ISID and portal group.
//!
//! Shard 0 keeps the register. A login with the same name as an older session first ends that session, on whichever
//! shard it is, and waits until none of its commands can touch a volume any more (RFC 7143 §6.3.5).

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

use base::Nanos;
use iscsi::SessionIdentity;
use shard::{AddressSource, Context, FrontCall, SessionKey, SessionLimit, SessionPlace, SessionRequest};
use task::{Io, Semaphore};
use wire::scsi::reservation::initiator_port_name;

use crate::admission::Load;

/// The name of a session (RFC 7143 §4.4.3).
pub(crate) fn key_of(identity: &SessionIdentity) -> SessionKey {
    SessionKey {
        initiator: identity.initiator_name.clone(),
        isid: identity.isid,
        portal_group_tag: identity.portal_group_tag,
    }
}

/// How long status reports logins that met a limit, and how many of them.
const TOLD_FOR: Nanos = Nanos::from_secs(600);
const REFUSED_MAX: usize = 16;

struct Entry {
    /// Logins with the same name take turns.
    turn: Semaphore,
    owner: Cell<Option<SessionPlace>>,
    source: Cell<Option<AddressSource>>,
}

/// The register of sessions, on shard 0.
pub(crate) struct Register {
    io: Io,
    entries: RefCell<BTreeMap<SessionKey, Rc<Entry>>>,
    /// For each limit and initiator: how many logins were refused, and when the last one was.
    refused: RefCell<BTreeMap<(SessionLimit, String), (u64, Nanos)>>,
    last_tsih: Cell<u16>,
}

impl Register {
    pub(crate) fn new(io: &Io) -> Register {
        let (entries, refused, last_tsih) = (RefCell::default(), RefCell::default(), Cell::new(0));
        Register { io: io.clone(), entries, refused, last_tsih }
    }

    /// Gives the name to the session when the older session has ended. Returns the session's TSIH, or the limit that
    /// was met. A login that replaces an older session of its name meets no limit.
    pub(crate) async fn register(
        &self,
        context: &Context,
        key: SessionKey,
        place: SessionPlace,
        request: SessionRequest,
    ) -> Result<u16, SessionLimit> {
        let new_entry = || {
            let turn = Semaphore::new(&self.io, 1);
            Rc::new(Entry { turn, owner: Cell::new(None), source: Cell::new(None) })
        };
        let entry = self.entries.borrow_mut().entry(key.clone()).or_insert_with(new_entry).clone();
        let permit = entry.turn.acquire(1).await;
        if let Some(older) = entry.owner.get() {
            context.ask(older.shard, FrontCall::EndSession(older)).await;
        } else if let Err(limit) = self.load(&request).check() {
            drop((permit, entry));
            self.forget_unused(&key);
            self.note_refused(limit, key.initiator);
            return Err(limit);
        }
        entry.owner.set(Some(place));
        entry.source.set(Some(request.source));
        let tsih = self.last_tsih.get().checked_add(1).unwrap_or(1);
        self.last_tsih.set(tsih);
        Ok(tsih)
    }

    fn load(&self, request: &SessionRequest) -> Load {
        let entries = self.entries.borrow();
        let of = |initiator: &String| {
            let key = |isid: u8, portal_group_tag: u16| SessionKey {
                initiator: initiator.clone(),
                isid: [isid; 6],
                portal_group_tag,
            };
            let all = entries.range(key(0, 0)..=key(u8::MAX, u16::MAX));
            all.filter(|(_, entry)| entry.owner.get().is_some()).count()
        };
        let here =
            |entry: &&Rc<Entry>| entry.owner.get().is_some() && entry.source.get() == Some(request.source);
        Load {
            host: request.initiators.iter().map(of).sum(),
            address: entries.values().filter(here).count(),
            shard: request.on_shard,
        }
    }

    fn note_refused(&self, limit: SessionLimit, initiator: String) {
        let mut refused = self.refused.borrow_mut();
        let (now, known) = (self.io.now(), (limit, initiator));
        refused.retain(|_, (_, last)| now.saturating_sub(*last) < TOLD_FOR);
        if refused.len() < REFUSED_MAX || refused.contains_key(&known) {
            let (count, last) = refused.entry(known).or_insert((0, now));
            (*count, *last) = (*count + 1, now);
        }
    }

    /// The initiators whose logins met a limit in the last minutes, and how often.
    pub(crate) fn refused(&self) -> Vec<(SessionLimit, String, u64)> {
        let now = self.io.now();
        let refused = self.refused.borrow();
        let recent = refused.iter().filter(|(_, (_, last))| now.saturating_sub(*last) < TOLD_FOR);
        recent.map(|((limit, initiator), (count, _))| (*limit, initiator.clone(), *count)).collect()
    }

    /// The names of an initiator's ports that are logged in.
    pub(crate) fn ports_of(&self, initiator: &str) -> Vec<String> {
        let entries = self.entries.borrow();
        let live = |(key, entry): &(&SessionKey, &Rc<Entry>)| {
            entry.owner.get().is_some() && key.initiator.eq_ignore_ascii_case(initiator)
        };
        entries.iter().filter(live).map(|(key, _)| initiator_port_name(&key.initiator, key.isid)).collect()
    }

    /// The session has ended; the name is free unless a newer one has taken it.
    pub(crate) fn unregister(&self, key: &SessionKey, place: SessionPlace) {
        let entries = self.entries.borrow();
        let Some(entry) = entries.get(key) else { return };
        if entry.owner.get() == Some(place) {
            entry.owner.set(None);
        }
        drop(entries);
        self.forget_unused(key);
    }

    /// Removes a name that nobody has or waits for.
    fn forget_unused(&self, key: &SessionKey) {
        let mut entries = self.entries.borrow_mut();
        let unused = |entry: &Rc<Entry>| entry.owner.get().is_none() && Rc::strong_count(entry) == 1;
        if entries.get(key).is_some_and(unused) {
            entries.remove(key);
        }
    }
}
