//! The requests of transfers that are at work on a shard, and the credit that they hold.

use std::cell::{Cell, RefCell};

use api::{Lease, TransferId};
use block::Held;

/// The requests at work and the credit that was given.
#[derive(Default)]
pub(crate) struct BulkCredit {
    pub(crate) at_work: Cell<usize>,
    pub(crate) lent: RefCell<Vec<Lent>>,
    pub(crate) is_sweeping: Cell<bool>,
}

/// Credit that was given to a transfer, as long as its token is there.
pub(crate) struct Lent {
    pub(crate) transfer: TransferId,
    pub(crate) bytes: usize,
    pub(crate) token: Lease,
    pub(crate) _held: Held,
}

impl BulkCredit {
    pub(crate) fn sweep(&self) {
        self.lent.borrow_mut().retain(|lent| !lent.token.is_gone());
    }

    /// Bytes that one transfer holds, and that all hold.
    pub(crate) fn lent_bytes(&self, transfer: TransferId) -> (usize, usize) {
        self.lent.borrow().iter().fold((0, 0), |(own, all), lent| {
            let is_own = lent.transfer == transfer;
            (own + if is_own { lent.bytes } else { 0 }, all + lent.bytes)
        })
    }
}
