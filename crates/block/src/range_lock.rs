//! Locks on byte ranges. Tasks get overlapping ranges one after the other, in the order of their requests.
//!
//! A task holds one range at a time, so there is no deadlock. The number of ranges is the number of
//! requests in flight, which the transports limit.

use std::cell::{Cell, RefCell};
use std::ops::Range;
use std::rc::Rc;

use task::{Io, Notify};

struct Entry {
    id: u64,
    range: Range<u64>,
}

struct Inner {
    /// Held and waited for, oldest first: an entry is held when no older one overlaps it.
    entries: RefCell<Vec<Entry>>,
    next_id: Cell<u64>,
    waiting: Cell<usize>,
    released: Notify,
}

#[derive(Clone)]
pub(crate) struct RangeLock(Rc<Inner>);

/// Gives the range back when dropped.
pub(crate) struct RangeGuard {
    lock: RangeLock,
    id: u64,
}

impl RangeLock {
    pub(crate) fn new(io: &Io) -> RangeLock {
        RangeLock(Rc::new(Inner {
            entries: RefCell::default(),
            next_id: Cell::new(0),
            waiting: Cell::new(0),
            released: Notify::new(io),
        }))
    }

    /// Waits until no older holder overlaps. The place in the order is taken when this is first polled.
    pub(crate) async fn acquire(&self, range: Range<u64>) -> RangeGuard {
        let id = self.0.next_id.get();
        self.0.next_id.set(id + 1);
        self.0.entries.borrow_mut().push(Entry { id, range: range.clone() });
        // from here on dropping the future gives the place up
        let guard = RangeGuard { lock: self.clone(), id };
        while self.is_blocked(id, &range) {
            self.0.waiting.set(self.0.waiting.get() + 1);
            self.0.released.wait().await;
        }
        guard
    }

    fn is_blocked(&self, id: u64, range: &Range<u64>) -> bool {
        let entries = self.0.entries.borrow();
        let mut older = entries.iter().take_while(|entry| entry.id != id);
        older.any(|entry| entry.range.start < range.end && range.start < entry.range.end)
    }
}

impl Drop for RangeGuard {
    fn drop(&mut self) {
        let inner = &self.lock.0;
        inner.entries.borrow_mut().retain(|entry| entry.id != self.id);
        if inner.waiting.replace(0) > 0 {
            inner.released.notify();
        }
    }
}

#[cfg(test)]
mod tests {
    use task::Executor;

    use super::*;

    #[test]
    fn overlapping_ranges_are_held_in_order_and_others_side_by_side() {
        let mut executor = Executor::new();
        let lock = RangeLock::new(executor.io());
        let log = Rc::new(RefCell::new(Vec::new()));
        let gates: Vec<_> = (0..4).map(|_| Rc::new(task::Gate::new(executor.io(), false))).collect();
        for (index, range) in [0..10, 5..15, 20..30, 8..9].into_iter().enumerate() {
            let (lock, log, gate) = (lock.clone(), log.clone(), gates[index].clone());
            executor.io().spawn(async move {
                let _guard = lock.acquire(range).await;
                log.borrow_mut().push(index);
                gate.pass().await;
            });
        }
        executor.run_ready();
        assert_eq!(*log.borrow(), [0, 2]);
        gates[2].open();
        executor.run_ready();
        assert_eq!(*log.borrow(), [0, 2]);
        gates[0].open();
        executor.run_ready();
        assert_eq!(*log.borrow(), [0, 2, 1], "3 overlaps 1, which is older");
        gates[1].open();
        executor.run_ready();
        assert_eq!(*log.borrow(), [0, 2, 1, 3]);
        gates[3].open();
        executor.run_ready();
        assert_eq!(executor.live(), 0);
    }

    #[test]
    fn a_waiter_that_is_dropped_gives_its_place_up() {
        let mut executor = Executor::new();
        let lock = RangeLock::new(executor.io());
        let done = Rc::new(Cell::new(false));
        let (first, last) = (lock.clone(), done.clone());
        executor.io().spawn(async move {
            let held = first.acquire(0..10).await;
            let abandoned = task::race(first.acquire(0..10), std::future::ready(())).await;
            assert!(abandoned.is_err());
            drop(held);
            let _held = first.acquire(0..10).await;
            last.set(true);
        });
        executor.run_ready();
        assert!(done.get());
    }
}
