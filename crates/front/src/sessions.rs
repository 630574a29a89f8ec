//! The sessions of one shard.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

use shard::SessionPlace;

use crate::session::Session;

/// The sessions of a shard.
#[derive(Default)]
pub(crate) struct Sessions {
    by_number: RefCell<BTreeMap<u64, Rc<Session>>>,
    next_number: Cell<u64>,
    next_tsih: Cell<u16>,
}

impl Sessions {
    pub(crate) fn next_number(&self) -> u64 {
        let number = self.next_number.get();
        self.next_number.set(number + 1);
        number
    }

    pub(crate) fn insert(&self, session: &Rc<Session>) {
        let replaced = self.by_number.borrow_mut().insert(session.place.number, session.clone());
        assert!(replaced.is_none(), "session numbers are not reused");
    }

    pub(crate) fn remove(&self, place: SessionPlace) {
        let removed = self.by_number.borrow_mut().remove(&place.number);
        assert!(removed.is_some(), "a session ends once");
    }

    pub(crate) fn get(&self, place: SessionPlace) -> Option<Rc<Session>> {
        self.by_number.borrow().get(&place.number).cloned()
    }

    pub(crate) fn all(&self) -> Vec<Rc<Session>> {
        self.by_number.borrow().values().cloned().collect()
    }

    pub(crate) fn len(&self) -> usize {
        self.by_number.borrow().len()
    }

    /// Discovery sessions may exist at the same time. Their TSIH may be any number except 0.
    pub(crate) fn discovery_tsih(&self) -> u16 {
        let tsih = self.next_tsih.get().checked_add(1).unwrap_or(1);
        self.next_tsih.set(tsih);
        tsih
    }
}
