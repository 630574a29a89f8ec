//! Commands do not wait forever, and an abandoned command does not take effect later.
//!
//! A command that has changed nothing yet is abandoned when its time is over or its caller is gone. From then on it
//! changes nothing. A command that has begun a change continues; its caller learns this, and what the command waits
//! for.

use std::pin::pin;
use std::rc::Rc;

use base::Nanos;
use task::race;

use crate::manager::Manager;
use crate::order::Order;
use api::{Caller, Command, CommandError, CommandErrorKind, ReplyChannel};

/// How long a command may take before its caller gets an answer.
pub(crate) const COMMAND_TIME_MAX: Nanos = Nanos::from_secs(50);

/// The change lock, held for a command. Without a command, it is held for the array itself.
pub(crate) struct ChangeLock<'a> {
    array: &'a Manager,
    _permit: task::SemaphorePermit,
}

impl Drop for ChangeLock<'_> {
    fn drop(&mut self) {
        self.array.order.borrow_mut().take();
    }
}

impl Manager {
    /// Carries out a command and answers it, in time.
    pub(crate) async fn answer(self: Rc<Self>, command: Command, reply: ReplyChannel, caller: Caller) {
        let order = Rc::new(Order::new(caller));
        let patient = command == Command::Shutdown;
        let asked = command.asked_change();
        let mut work = pin!(async {
            let result = self.clone().carry_out(command, &order).await;
            self.record_change(asked, &order.caller.origin, &result);
            result
        });
        if patient {
            return reply(work.await);
        }
        match race(work.as_mut(), self.context.io.sleep(COMMAND_TIME_MAX)).await {
            Ok(result) => reply(result),
            Err(()) => {
                reply(Err(self.give_up_order(&order)));
                // it ends by itself; what it has begun is completed in order
                let _ = work.await;
            }
        }
    }

    /// Nobody waits for the command any more; returns the answer.
    fn give_up_order(&self, order: &Rc<Order>) -> CommandError {
        order.given_up.set(true);
        let seconds = COMMAND_TIME_MAX.0 / 1_000_000_000;
        let mut why = order.waits_for.borrow().clone();
        let other = self.order.borrow().clone();
        if let Some(other) = other.filter(|other| !Rc::ptr_eq(other, order)) {
            why += &format!("; that one says: {}", other.waits_for.borrow());
        }
        match order.begun.get() {
            true => CommandError::new(
                CommandErrorKind::Unfinished,
                format!("accepted, and not done after {seconds} s: {why}"),
                "it goes on by itself when it can; `tangelo status` shows what stands in its way",
            ),
            false => CommandError::new(
                CommandErrorKind::TimedOut,
                format!("not carried out within {seconds} s: {why}"),
                "nothing was changed, and nothing will be; `tangelo status` shows what stands in its way",
            ),
        }
    }

    /// Waits for the change lock.
    pub(crate) async fn lock_changes(&self, order: &Rc<Order>) -> Result<ChangeLock<'_>, CommandError> {
        *order.waits_for.borrow_mut() = "it waits for an earlier change".to_owned();
        let permit = self.changes.acquire(1).await;
        order.check()?;
        *order.waits_for.borrow_mut() = "it waits for the pools' drives".to_owned();
        *self.order.borrow_mut() = Some(order.clone());
        Ok(ChangeLock { array: self, _permit: permit })
    }

    /// Records what the running command waits for from now on, for people to read.
    pub(crate) fn waits_for(&self, what: impl Into<String>) {
        if let Some(order) = &*self.order.borrow() {
            *order.waits_for.borrow_mut() = what.into();
        }
    }

    /// Whether a caller still waits for the running command, if there is one.
    pub(crate) fn still_wanted(&self) -> Result<(), CommandError> {
        let order = self.order.borrow().clone();
        order.map_or(Ok(()), |order| order.check())
    }

    /// Must be called before a command changes anything: from then on it is not abandoned any more.
    pub(crate) fn go_ahead(&self) -> Result<(), CommandError> {
        self.still_wanted()?;
        if let Some(order) = &*self.order.borrow() {
            order.begun.set(true);
        }
        Ok(())
    }
}
