//! The executor: a slab of tasks and a queue of ready tasks.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Waker};

use base::Nanos;
use env::{Completion, Operation, Token};

use crate::io::Io;

/// Names a task while it lives; reused afterwards (a stale wake-up is a spurious poll).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct TaskId(pub(crate) u32);

pub(crate) type Task = Pin<Box<dyn Future<Output = ()>>>;

enum TaskSlot {
    Free {
        next: Option<u32>,
    },
    Idle(Task),
    /// Being polled right now.
    Running,
}

/// Runs the tasks of one shard.
pub struct Executor {
    io: Io,
    /// Empty; its memory is used again and again.
    spawned: Vec<Task>,
    tasks: Vec<TaskSlot>,
    free: Option<u32>,
    live: usize,
}

impl Executor {
    pub fn new() -> Executor {
        Executor { io: Io::new(), spawned: Vec::new(), tasks: Vec::new(), free: None, live: 0 }
    }

    /// The handle that tasks use; cheap to clone.
    pub fn io(&self) -> &Io {
        &self.io
    }

    /// Tells the tasks what time it is. Timers that have come due make their tasks ready.
    pub fn set_now(&mut self, now: Nanos) {
        self.io.set_now(now);
    }

    /// Hands over the end of an operation that [`Executor::take_operations`] gave out.
    pub fn on_completion(&mut self, completion: Completion) {
        self.io.complete(completion.token, completion.outcome);
    }

    /// One turn: runs every ready task, and those that become ready by it, until none is but those that let the turn end.
    pub fn run_ready(&mut self) {
        self.io.begin_turn();
        loop {
            self.adopt_spawned();
            let Some(id) = self.io.pop_ready() else { return };
            self.run(id);
        }
    }

    /// The operations that tasks have asked for since the last call, in order.
    pub fn take_operations(&mut self) -> Vec<(Token, Operation)> {
        let mut operations = Vec::new();
        self.io.take_operations(&mut operations);
        operations
    }

    /// The same, into an empty list whose memory is used again and again.
    pub fn take_operations_into(&mut self, operations: &mut Vec<(Token, Operation)>) {
        self.io.take_operations(operations);
    }

    /// When the next timer comes due.
    pub fn next_deadline(&self) -> Option<Nanos> {
        self.io.next_deadline()
    }

    /// Whether a task could run now.
    pub fn has_ready(&self) -> bool {
        self.io.has_ready()
    }

    /// Tasks that have not ended.
    pub fn live(&self) -> usize {
        self.live
    }

    fn adopt_spawned(&mut self) {
        self.io.take_spawned(&mut self.spawned);
        for task in self.spawned.drain(..) {
            let index = match self.free {
                Some(index) => {
                    let TaskSlot::Free { next } = self.tasks[index as usize] else {
                        unreachable!("the free list holds free slots only")
                    };
                    self.free = next;
                    self.tasks[index as usize] = TaskSlot::Idle(task);
                    index
                }
                None => {
                    self.tasks.push(TaskSlot::Idle(task));
                    (self.tasks.len() - 1) as u32
                }
            };
            self.live += 1;
            self.io.wake(TaskId(index));
        }
    }

    fn run(&mut self, id: TaskId) {
        let slot = &mut self.tasks[id.0 as usize];
        let mut task = match std::mem::replace(slot, TaskSlot::Running) {
            TaskSlot::Idle(task) => task,
            TaskSlot::Free { next } => {
                *slot = TaskSlot::Free { next };
                return;
            }
            TaskSlot::Running => unreachable!("a task is polled by one caller only"),
        };
        self.io.set_current(Some(id));
        let ended = task.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_ready();
        self.io.set_current(None);
        self.tasks[id.0 as usize] = if ended {
            self.live -= 1;
            let next = self.free.replace(id.0);
            TaskSlot::Free { next }
        } else {
            TaskSlot::Idle(task)
        };
    }
}

impl Drop for Executor {
    /// Tasks hold the handle. Those that have not been adopted yet are held by it, too, so nobody else would drop them.
    fn drop(&mut self) {
        self.adopt_spawned();
    }
}

impl Default for Executor {
    fn default() -> Self {
        Executor::new()
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::rc::Rc;

    use base::AlignedBuffer;
    use env::{DriveHandle, IoError, Outcome};

    use super::*;
    use crate::sync::{join_all, oneshot};

    #[test]
    fn an_operation_suspends_its_task_until_its_completion() {
        let mut executor = Executor::new();
        let seen = Rc::new(RefCell::new(Vec::new()));
        let io = executor.io().clone();
        let log = seen.clone();
        executor.io().spawn(async move {
            let (buffer, result) = io.drive_read(DriveHandle(1), 4096, AlignedBuffer::zeroed(1)).await;
            log.borrow_mut().push((buffer.len(), result));
        });
        executor.run_ready();
        let operations = executor.take_operations();
        assert_eq!(operations.len(), 1);
        assert!(seen.borrow().is_empty());
        let outcome = Outcome::DriveRead(AlignedBuffer::zeroed(1), Err(IoError::Media));
        executor.on_completion(Completion { token: operations[0].0, outcome });
        executor.run_ready();
        assert_eq!(*seen.borrow(), [(4096, Err(IoError::Media))]);
        assert_eq!(executor.live(), 0);
    }

    #[test]
    fn dropping_a_future_leaves_the_slot_until_the_completion() {
        let mut executor = Executor::new();
        let io = executor.io().clone();
        executor.io().spawn(async move {
            let future = io.drive_flush(DriveHandle(0));
            // poll it once by racing it against something ready, then drop it
            assert!(crate::sync::race(future, std::future::ready(())).await.is_err());
        });
        executor.run_ready();
        let operations = executor.take_operations();
        assert_eq!((operations.len(), executor.live()), (1, 0));
        executor.on_completion(Completion { token: operations[0].0, outcome: Outcome::Done });
        executor.run_ready();
    }

    #[test]
    fn timers_fire_in_order_and_only_when_due() {
        let mut executor = Executor::new();
        let order = Rc::new(RefCell::new(Vec::new()));
        for (name, at) in [("late", 30), ("early", 10), ("also early", 10)] {
            let (io, order) = (executor.io().clone(), order.clone());
            executor.io().spawn(async move {
                io.sleep_until(Nanos(at)).await;
                order.borrow_mut().push(name);
            });
        }
        executor.run_ready();
        assert_eq!(executor.next_deadline(), Some(Nanos(10)));
        executor.set_now(Nanos(10));
        executor.run_ready();
        assert_eq!(*order.borrow(), ["early", "also early"]);
        executor.set_now(Nanos(40));
        executor.run_ready();
        assert_eq!(order.borrow().len(), 3);
        assert_eq!(executor.next_deadline(), None);
    }

    /// A walk lets others of its turn run first, or lets the turn end: only then it hears of what happened meanwhile.
    #[test]
    fn a_turn_ends_where_a_task_lets_it_end_and_not_where_it_yields() {
        let mut executor = Executor::new();
        let steps = Rc::new(RefCell::new(0));
        let (io, count) = (executor.io().clone(), steps.clone());
        executor.io().spawn(async move {
            for step in 0..6 {
                match step % 2 {
                    0 => io.yield_now().await,
                    _ => io.next_turn().await,
                }
                *count.borrow_mut() += 1;
            }
        });
        let mut seen = Vec::new();
        while executor.has_ready() {
            executor.run_ready();
            seen.push(*steps.borrow());
        }
        assert_eq!(seen, [1, 3, 5, 6]);
    }

    #[test]
    fn join_all_waits_for_every_one_and_oneshot_carries_a_value() {
        let mut executor = Executor::new();
        let total = Rc::new(RefCell::new(0));
        let (senders, receivers): (Vec<_>, Vec<_>) = (0..5).map(|_| oneshot::<u32>(executor.io())).unzip();
        let sum = total.clone();
        executor.io().spawn(async move {
            *sum.borrow_mut() = join_all(receivers).await.into_iter().map(Option::unwrap).sum();
        });
        executor.run_ready();
        for (index, sender) in senders.into_iter().enumerate() {
            assert_eq!(*total.borrow(), 0);
            sender.send(index as u32 + 1);
            executor.run_ready();
        }
        assert_eq!(*total.borrow(), 15);
    }
}
