//! Who is logged in, array-wide: at most one session for each initiator, ISID and portal group.
//!
//! Kept by shard 0. A login that meets an older session of its name ends it first, wherever it is served,
//! and waits until none of its commands can touch a volume any more (RFC 7143 §6.3.5).

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

use base::ShardId;
use iscsi::SessionIdentity;
use task::{Io, Semaphore};
use wire::scsi::reservation::initiator_port_name;

use crate::context::Context;
use crate::message::Call;

/// Names a session (RFC 7143 §4.4.3).
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct SessionKey {
    initiator: String,
    isid: [u8; 6],
    portal_group_tag: u16,
}

impl SessionKey {
    pub(crate) fn of(identity: &SessionIdentity) -> SessionKey {
        SessionKey {
            initiator: identity.initiator_name.clone(),
            isid: identity.isid,
            portal_group_tag: identity.portal_group_tag,
        }
    }
}

/// Where a session is served: the shard, and its number there.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct SessionPlace {
    pub shard: ShardId,
    pub number: u64,
}

struct Entry {
    /// Logins of one name take turns.
    turn: Semaphore,
    owner: Cell<Option<SessionPlace>>,
}

/// The register of sessions, on shard 0.
pub(crate) struct Register {
    io: Io,
    entries: RefCell<BTreeMap<SessionKey, Rc<Entry>>>,
    last_tsih: Cell<u16>,
}

impl Register {
    pub(crate) fn new(io: &Io) -> Register {
        Register { io: io.clone(), entries: RefCell::new(BTreeMap::new()), last_tsih: Cell::new(0) }
    }

    /// The session takes the name, once the older one has ended. Gives the session's TSIH.
    pub(crate) async fn register(&self, context: &Rc<Context>, key: SessionKey, place: SessionPlace) -> u16 {
        let new_entry = || Rc::new(Entry { turn: Semaphore::new(&self.io, 1), owner: Cell::new(None) });
        let entry = self.entries.borrow_mut().entry(key).or_insert_with(new_entry).clone();
        let _permit = entry.turn.acquire(1).await;
        if let Some(older) = entry.owner.get() {
            context.ask(older.shard, Call::EndSession(older)).await;
        }
        entry.owner.set(Some(place));
        let tsih = self.last_tsih.get().checked_add(1).unwrap_or(1);
        self.last_tsih.set(tsih);
        tsih
    }

    /// The names of all initiator ports that are logged in.
    pub(crate) fn initiator_ports(&self) -> Vec<String> {
        let entries = self.entries.borrow();
        let live = entries.iter().filter(|(_, entry)| entry.owner.get().is_some());
        live.map(|(key, _)| initiator_port_name(&key.initiator, key.isid)).collect()
    }

    /// The session has ended; the name is free unless a newer one has taken it.
    pub(crate) fn unregister(&self, key: &SessionKey, place: SessionPlace) {
        let mut entries = self.entries.borrow_mut();
        let Some(entry) = entries.get(key) else { return };
        if entry.owner.get() == Some(place) {
            entry.owner.set(None);
        }
        if entry.owner.get().is_none() && Rc::strong_count(entry) == 1 {
            entries.remove(key);
        }
    }
}
