//! The task set of one I_T_L nexus: in which order its commands may begin (SAM-5 §8.6). Every nexus has its own task
//! set (TST 001b of the control mode page).
//!
//! ```text
//!   SIMPLE         begins unless an older ORDERED command is running or waiting
//!   ORDERED        begins when every older command has ended
//!   HEAD OF QUEUE  begins at once
//! ```
//!
//! Commands that another session has aborted are a barrier: no later command begins before they have ended, so the
//! initiator does not learn of the abort earlier. Otherwise an aborted write could take effect after the write that its
//! initiator sent to replace it.

use std::cell::{Cell, RefCell};

use iscsi::TaskAttribute;
use task::{Io, Notify};

/// A command's place in the order of the task set.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Place(u64);

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    Free,
    Ordered,
    /// Aborted by another nexus.
    Aborted,
}

/// The task set; see the header of this file.
pub(crate) struct TaskSet {
    next: Cell<u64>,
    /// Every command that has not ended. Bounded by the session's command window.
    commands: RefCell<Vec<(Place, Kind)>>,
    /// How many of the commands delay others that are not ORDERED: nearly always none.
    barriers: Cell<usize>,
    /// A command has ended.
    pub(crate) ended: Notify,
}

impl TaskSet {
    pub(crate) fn new(io: &Io) -> TaskSet {
        let (next, commands, barriers) = (Cell::new(0), RefCell::default(), Cell::new(0));
        TaskSet { next, commands, barriers, ended: Notify::new(io) }
    }

    /// Whether a command that arrives now must wait.
    pub(crate) fn must_wait(&self, attribute: TaskAttribute) -> bool {
        self.is_held_up(attribute, Place(u64::MAX))
    }

    /// Whether an older command than this place has to end first.
    fn is_held_up(&self, attribute: TaskAttribute, place: Place) -> bool {
        if self.barriers.get() == 0 && attribute != TaskAttribute::Ordered {
            return false;
        }
        let commands = self.commands.borrow();
        commands.iter().filter(|(older, _)| *older < place).any(|(_, kind)| match attribute {
            TaskAttribute::HeadOfQueue => *kind == Kind::Aborted,
            TaskAttribute::Ordered => true,
            _ => *kind != Kind::Free,
        })
    }

    /// Adds a command that has arrived.
    pub(crate) fn enter(&self, attribute: TaskAttribute) -> Place {
        let place = Place(self.next.get());
        self.next.set(place.0 + 1);
        let kind = if attribute == TaskAttribute::Ordered { Kind::Ordered } else { Kind::Free };
        self.barriers.set(self.barriers.get() + usize::from(kind != Kind::Free));
        self.commands.borrow_mut().push((place, kind));
        place
    }

    /// Whether a command that had to wait may begin.
    pub(crate) fn may_begin(&self, attribute: TaskAttribute, place: Place) -> bool {
        !self.is_held_up(attribute, place)
    }

    /// All commands in the set have been aborted by another nexus.
    pub(crate) fn fence(&self) {
        let mut commands = self.commands.borrow_mut();
        commands.iter_mut().for_each(|(_, kind)| *kind = Kind::Aborted);
        self.barriers.set(commands.len());
    }

    /// A command has ended.
    pub(crate) fn leave(&self, place: Place) {
        let mut commands = self.commands.borrow_mut();
        let index = commands.iter().position(|(other, _)| *other == place).expect("a command leaves once");
        let (_, kind) = commands.swap_remove(index);
        self.barriers.set(self.barriers.get() - usize::from(kind != Kind::Free));
        if !commands.is_empty() {
            self.ended.notify();
        }
    }
}

#[cfg(test)]
mod tests {
    use TaskAttribute::{HeadOfQueue, Ordered, Simple};
    use task::Executor;

    use super::*;

    #[test]
    fn ordered_commands_are_barriers_and_the_head_of_the_queue_is_not_held_up() {
        let executor = Executor::new();
        let set = TaskSet::new(executor.io());
        assert!(!set.must_wait(Ordered));
        let first = set.enter(Simple);
        assert!(!set.must_wait(Simple) && set.must_wait(Ordered));
        let second = set.enter(Simple);
        let barrier = set.enter(Ordered);
        assert!(set.must_wait(Simple) && !set.must_wait(HeadOfQueue));
        let later = set.enter(Simple);
        let urgent = set.enter(HeadOfQueue);
        set.leave(first);
        assert!(!set.may_begin(Ordered, barrier) && !set.may_begin(Simple, later));
        set.leave(second);
        assert!(set.may_begin(Ordered, barrier), "what came later does not hold it up");
        assert!(!set.may_begin(Simple, later));
        let another = set.enter(Ordered);
        set.leave(barrier);
        assert!(set.may_begin(Simple, later) && !set.may_begin(Ordered, another));
        set.leave(later);
        assert!(!set.may_begin(Ordered, another));
        set.leave(urgent);
        assert!(set.may_begin(Ordered, another));
        set.leave(another);
        assert!(!set.must_wait(Ordered));
    }

    #[test]
    fn what_another_has_aborted_is_a_fence() {
        let executor = Executor::new();
        let set = TaskSet::new(executor.io());
        let aborted = set.enter(Simple);
        set.fence();
        for attribute in [Simple, Ordered, HeadOfQueue] {
            assert!(set.must_wait(attribute));
        }
        let later = set.enter(Simple);
        set.leave(aborted);
        assert!(set.may_begin(Simple, later) && !set.must_wait(Simple));
    }
}
