//! The memory budget for the commands of all sessions of one shard: their data and their state.
//!
//! A command that does not fit is refused with BUSY or TASK SET FULL (SAM-5 §5.3.1) before any of its data is kept. The
//! initiator sends it again. So memory does not grow with the number of sessions.

use std::cell::Cell;
use std::rc::Rc;

/// See the module's words.
#[derive(Debug)]
pub struct Budget {
    bytes_max: usize,
    used: Cell<usize>,
}

/// Part of a budget; given back when dropped.
#[derive(Debug)]
pub struct Held {
    budget: Rc<Budget>,
    bytes: usize,
}

impl Budget {
    pub fn new(bytes_max: usize) -> Rc<Budget> {
        Rc::new(Budget { bytes_max, used: Cell::new(0) })
    }

    /// `None` where there is no room.
    pub fn try_hold(self: &Rc<Budget>, bytes: usize) -> Option<Held> {
        let fits = bytes <= self.bytes_max.saturating_sub(self.used.get());
        fits.then(|| self.hold(bytes))
    }

    /// Whether or not there is room: for a command that has begun and cannot be refused any more.
    pub fn hold(self: &Rc<Budget>, bytes: usize) -> Held {
        self.used.set(self.used.get() + bytes);
        Held { budget: self.clone(), bytes }
    }

    pub fn used_bytes(&self) -> usize {
        self.used.get()
    }

    pub fn bytes_max(&self) -> usize {
        self.bytes_max
    }
}

impl Held {
    /// Takes in more of the same budget: all of it is given back together.
    pub fn absorb(&mut self, mut other: Held) {
        assert!(Rc::ptr_eq(&self.budget, &other.budget), "parts of different budgets");
        self.bytes += std::mem::take(&mut other.bytes);
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.budget.used.set(self.budget.used.get() - self.bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_held_comes_back() {
        let budget = Budget::new(100);
        let mut first = budget.try_hold(60).unwrap();
        assert!(budget.try_hold(41).is_none());
        let second = budget.try_hold(40).unwrap();
        let beyond = budget.hold(10);
        assert!(budget.try_hold(1).is_none());
        first.absorb(second);
        assert_eq!(budget.used_bytes(), 110);
        drop(first);
        assert_eq!(budget.used_bytes(), 10);
        drop(beyond);
        assert!(budget.try_hold(100).is_some());
    }
}
