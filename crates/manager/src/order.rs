//! A command that is running or waits for the change lock.

use std::cell::{Cell, RefCell};

use api::{Caller, CommandError, CommandErrorKind};

/// A command that is running, or waits for the change lock.
pub(crate) struct Order {
    pub(crate) caller: Caller,
    /// It has changed something, or is about to.
    pub(crate) begun: Cell<bool>,
    /// Nobody waits for it any more.
    pub(crate) given_up: Cell<bool>,
    pub(crate) waits_for: RefCell<String>,
}

impl Order {
    pub(crate) fn new(caller: Caller) -> Order {
        Order {
            caller,
            begun: Cell::new(false),
            given_up: Cell::new(false),
            waits_for: RefCell::new("it waits for the array to start".to_owned()),
        }
    }

    /// Refuses to continue if nobody waits for the command any more.
    pub(crate) fn check(&self) -> Result<(), CommandError> {
        if self.begun.get() || !(self.given_up.get() || self.caller.is_gone()) {
            return Ok(());
        }
        let message = "given up before it had changed anything";
        Err(CommandError::new(CommandErrorKind::TimedOut, message, "ask again"))
    }
}
