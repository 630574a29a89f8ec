//! The handle through which tasks use the environment: operations, timers, spawning, randomness.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeSet, VecDeque};
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use base::{AlignedBuffer, Nanos};
use bytes::Bytes;
use env::{DriveHandle, DriveInfo, IoError, Operation, Outcome, Reservation, ReservationAsk, Token};

use crate::executor::{Task, TaskId};
use crate::sync::{OneshotReceiver, oneshot};

enum Slot {
    Free {
        next: Option<u32>,
    },
    /// Submitted; the task that waits for it, if any does yet.
    Waiting(Option<TaskId>, Asked),
    Completed(Outcome),
    /// The drive was given up: the task gets this outcome, and the completion is discarded.
    GivenUp(Outcome),
    /// No task waits any more: the completion is discarded.
    Abandoned,
}

/// When an operation began; and on which drive, if it reads, writes or flushes one.
#[derive(Clone, Copy)]
struct Asked {
    at: Nanos,
    drive: Option<DriveHandle>,
    reads: bool,
}

impl Asked {
    fn of(operation: &Operation, at: Nanos) -> Asked {
        let (drive, reads) = match operation {
            Operation::DriveRead { drive, .. } => (Some(*drive), true),
            Operation::DriveWrite { drive, .. } | Operation::DriveFlush { drive } => (Some(*drive), false),
            _ => (None, false),
        };
        Asked { at, drive, reads }
    }
}

#[derive(Default)]
struct Slots {
    slots: Vec<Slot>,
    free: Option<u32>,
}

impl Slots {
    fn take(&mut self, asked: Asked) -> u32 {
        match self.free {
            Some(index) => {
                let Slot::Free { next } = self.slots[index as usize] else { unreachable!("free list") };
                self.free = next;
                self.slots[index as usize] = Slot::Waiting(None, asked);
                index
            }
            None => {
                self.slots.push(Slot::Waiting(None, asked));
                (self.slots.len() - 1) as u32
            }
        }
    }

    fn release(&mut self, index: u32) -> Slot {
        let next = self.free.replace(index);
        std::mem::replace(&mut self.slots[index as usize], Slot::Free { next })
    }
}

#[derive(Default)]
struct Inner {
    now: Cell<Nanos>,
    wall_clock_ms: Cell<u64>,
    uptime: Cell<Nanos>,
    current: Cell<Option<TaskId>>,
    ready: RefCell<VecDeque<TaskId>>,
    next_turn: RefCell<Vec<TaskId>>,
    spawned: RefCell<Vec<Task>>,
    slots: RefCell<Slots>,
    outgoing: RefCell<Vec<(Token, Operation)>>,
    timers: RefCell<BTreeSet<(Nanos, u64, TaskId)>>,
    timers_made: Cell<u64>,
    random: RefCell<VecDeque<u64>>,
}

/// A task's way to the world. All clones are the same handle.
#[derive(Clone)]
pub struct Io(Rc<Inner>);

impl Io {
    pub(crate) fn new() -> Io {
        Io(Rc::new(Inner::default()))
    }

    /// The environment's clock at the start of this turn.
    pub fn now(&self) -> Nanos {
        self.0.now.get()
    }

    /// Wall-clock milliseconds since 1970 at the start of this turn, for people to read.
    pub fn wall_clock_ms(&self) -> u64 {
        self.0.wall_clock_ms.get()
    }

    /// How long the machine had been up at the start of this turn, the time in which it was suspended included.
    pub fn uptime(&self) -> Nanos {
        self.0.uptime.get()
    }

    pub fn set_clocks(&self, wall_clock_ms: u64, uptime: Nanos) {
        self.0.wall_clock_ms.set(wall_clock_ms);
        self.0.uptime.set(uptime);
    }

    /// Unpredictable bits from the environment's reservoir, which the shard refills every turn.
    pub fn random_u64(&self) -> u64 {
        self.0.random.borrow_mut().pop_front().expect("the shard refills the reservoir before it runs tasks")
    }

    pub fn random_u128(&self) -> u128 {
        u128::from(self.random_u64()) << 64 | u128::from(self.random_u64())
    }

    /// Fills the reservoir up to `level` values.
    pub fn refill_random(&self, level: usize, mut draw: impl FnMut() -> u64) {
        let mut random = self.0.random.borrow_mut();
        while random.len() < level {
            random.push_back(draw());
        }
    }

    /// Starts a task of its own; it runs later in this turn.
    pub fn spawn(&self, future: impl Future<Output = ()> + 'static) {
        self.0.spawned.borrow_mut().push(Box::pin(future));
    }

    /// Starts a task whose result can be awaited. Dropping the receiver does not stop it.
    pub fn spawn_join<T: 'static>(&self, future: impl Future<Output = T> + 'static) -> OneshotReceiver<T> {
        let (sender, receiver) = oneshot(self);
        self.spawn(async move { sender.send(future.await) });
        receiver
    }

    /// Begins an operation now; the future gives its outcome.
    pub fn operation(&self, operation: Operation) -> OperationFuture {
        let slot = self.0.slots.borrow_mut().take(Asked::of(&operation, self.now()));
        self.0.outgoing.borrow_mut().push((Token(u64::from(slot)), operation));
        OperationFuture { io: self.clone(), slot: Some(slot) }
    }

    /// The start of the oldest read, write or flush of a drive that has not ended and that a task waits for.
    pub fn oldest_on_drive(&self, handle: DriveHandle) -> Option<Nanos> {
        let slots = self.0.slots.borrow();
        let began = slots.slots.iter().filter_map(|slot| match slot {
            Slot::Waiting(_, asked) if asked.drive == Some(handle) => Some(asked.at),
            _ => None,
        });
        began.min()
    }

    /// For each drive: its reads, writes and flushes that have not ended and that a task waits for.
    pub fn in_flight_on(&self, drives: &[Option<DriveHandle>]) -> Vec<usize> {
        let mut counts = vec![0; drives.len()];
        for slot in &self.0.slots.borrow().slots {
            let Slot::Waiting(_, Asked { drive: Some(drive), .. }) = slot else { continue };
            if let Some(index) = drives.iter().position(|other| other == &Some(*drive)) {
                counts[index] += 1;
            }
        }
        counts
    }

    /// Ends every read, write and flush of a drive for the waiting tasks, as on a drive that is gone. The environment still
    /// has the operations and their buffers, so they may change the drive later. Closing the handle waits for them. So the
    /// handle must be closed before anything relies on the content of the drive.
    pub fn give_up_drive(&self, handle: DriveHandle) {
        for slot in &mut self.0.slots.borrow_mut().slots {
            let Slot::Waiting(task, asked) = *slot else { continue };
            if asked.drive != Some(handle) {
                continue;
            }
            *slot = Slot::GivenUp(match asked.reads {
                true => Outcome::DriveRead(AlignedBuffer::zeroed(0), Err(IoError::Gone)),
                false => Outcome::Failed(IoError::Gone),
            });
            if let Some(task) = task {
                self.wake(task);
            }
        }
    }

    pub async fn drive_open(&self, path: &str, writable: bool) -> Result<(DriveHandle, DriveInfo), IoError> {
        match self.operation(Operation::DriveOpen { path: path.to_owned(), writable }).await {
            Outcome::DriveOpened(drive, info) => Ok((drive, info)),
            outcome => Err(failure(outcome)),
        }
    }

    pub async fn drive_close(&self, drive: DriveHandle) -> Result<(), IoError> {
        done(self.operation(Operation::DriveClose { drive }).await)
    }

    /// Fills `buffer` from the drive. It comes back in either case; an empty one where the drive was given up.
    pub fn drive_read(
        &self,
        drive: DriveHandle,
        offset_bytes: u64,
        buffer: AlignedBuffer,
    ) -> impl Future<Output = (AlignedBuffer, Result<(), IoError>)> + use<> {
        let operation = self.operation(Operation::DriveRead { drive, offset_bytes, buffer });
        async move {
            match operation.await {
                Outcome::DriveRead(buffer, result) => (buffer, result),
                outcome => unreachable!("a read ends as a read, not {outcome:?}"),
            }
        }
    }

    /// Writes the pieces one after the other. The operation begins now, not when first polled.
    pub fn drive_write(
        &self,
        drive: DriveHandle,
        offset_bytes: u64,
        data: Vec<Bytes>,
        durable: bool,
    ) -> impl Future<Output = Result<(), IoError>> + use<> {
        let operation = self.operation(Operation::DriveWrite { drive, offset_bytes, data, durable });
        async move { done(operation.await) }
    }

    pub fn drive_flush(&self, drive: DriveHandle) -> impl Future<Output = Result<(), IoError>> + use<> {
        let operation = self.operation(Operation::DriveFlush { drive });
        async move { done(operation.await) }
    }

    pub async fn drive_discard(
        &self,
        drive: DriveHandle,
        offset_bytes: u64,
        length_bytes: u64,
    ) -> Result<(), IoError> {
        done(self.operation(Operation::DriveDiscard { drive, offset_bytes, length_bytes }).await)
    }

    /// How large the drive is now, to its last whole sector.
    pub fn drive_measure(&self, drive: DriveHandle) -> impl Future<Output = Result<u64, IoError>> + use<> {
        let operation = self.operation(Operation::DriveMeasure { drive });
        async move {
            match operation.await {
                Outcome::DriveMeasured(end_bytes) => Ok(end_bytes),
                outcome => Err(failure(outcome)),
            }
        }
    }

    pub async fn drive_reservation(&self, drive: DriveHandle) -> Result<Reservation, IoError> {
        match self.operation(Operation::DriveReservation { drive, ask: ReservationAsk::Report }).await {
            Outcome::DriveReservation(reservation) => Ok(reservation),
            outcome => Err(failure(outcome)),
        }
    }

    /// Changes it; what is asked is no report.
    pub async fn drive_reserve(&self, drive: DriveHandle, ask: ReservationAsk) -> Result<(), IoError> {
        assert!(ask != ReservationAsk::Report, "a report has an answer");
        done(self.operation(Operation::DriveReservation { drive, ask }).await)
    }

    pub fn sleep_until(&self, deadline: Nanos) -> Sleep {
        Sleep { io: self.clone(), deadline, key: None }
    }

    pub fn sleep(&self, time: Nanos) -> Sleep {
        self.sleep_until(self.now() + time)
    }

    /// The task that is being polled; leaf futures note it, to have it woken.
    pub fn current(&self) -> TaskId {
        self.0.current.get().expect("futures are polled by the executor only")
    }

    /// Makes a task ready. Waking a task twice polls it twice; futures accept that.
    pub fn wake(&self, task: TaskId) {
        self.0.ready.borrow_mut().push_back(task);
    }

    /// Makes a task ready when this turn has ended.
    pub(crate) fn wake_next_turn(&self, task: TaskId) {
        self.0.next_turn.borrow_mut().push(task);
    }

    pub(crate) fn set_current(&self, task: Option<TaskId>) {
        self.0.current.set(task);
    }

    pub(crate) fn set_now(&self, now: Nanos) {
        assert!(now >= self.0.now.get(), "the clock ran backwards");
        self.0.now.set(now);
        let mut timers = self.0.timers.borrow_mut();
        while let Some(&(deadline, _, task)) = timers.first() {
            if deadline > now {
                break;
            }
            timers.pop_first();
            self.wake(task);
        }
    }

    pub(crate) fn next_deadline(&self) -> Option<Nanos> {
        self.0.timers.borrow().first().map(|&(deadline, ..)| deadline)
    }

    pub(crate) fn pop_ready(&self) -> Option<TaskId> {
        self.0.ready.borrow_mut().pop_front()
    }

    pub(crate) fn has_ready(&self) -> bool {
        !self.0.ready.borrow().is_empty()
            || !self.0.spawned.borrow().is_empty()
            || !self.0.next_turn.borrow().is_empty()
    }

    pub(crate) fn begin_turn(&self) {
        self.0.ready.borrow_mut().extend(self.0.next_turn.borrow_mut().drain(..));
    }

    /// Swaps the list with an empty one: both keep their memory.
    pub(crate) fn take_spawned(&self, into: &mut Vec<Task>) {
        std::mem::swap(&mut *self.0.spawned.borrow_mut(), into);
    }

    /// Swaps the list with an empty one: both keep their memory.
    pub(crate) fn take_operations(&self, into: &mut Vec<(Token, Operation)>) {
        assert!(into.is_empty(), "operations that were taken are submitted");
        std::mem::swap(&mut *self.0.outgoing.borrow_mut(), into);
    }

    pub(crate) fn complete(&self, token: Token, outcome: Outcome) {
        let index = u32::try_from(token.0).expect("a token that was given out");
        let mut slots = self.0.slots.borrow_mut();
        match slots.slots[index as usize] {
            Slot::Waiting(task, _) => {
                slots.slots[index as usize] = Slot::Completed(outcome);
                if let Some(task) = task {
                    self.wake(task);
                }
            }
            Slot::Abandoned => drop(slots.release(index)),
            Slot::GivenUp(_) => {
                let slot = &mut slots.slots[index as usize];
                let told = std::mem::replace(slot, Slot::Abandoned);
                let Slot::GivenUp(told) = told else { unreachable!("just seen") };
                *slot = Slot::Completed(told);
            }
            Slot::Free { .. } | Slot::Completed(_) => panic!("operation {index} completed twice"),
        }
    }
}

pub(crate) fn done(outcome: Outcome) -> Result<(), IoError> {
    match outcome {
        Outcome::Done => Ok(()),
        outcome => Err(failure(outcome)),
    }
}

pub(crate) fn failure(outcome: Outcome) -> IoError {
    match outcome {
        Outcome::Failed(error) => error,
        outcome => unreachable!("the environment answered another operation: {outcome:?}"),
    }
}

/// An operation in flight. See the module's words on dropping it.
pub struct OperationFuture {
    io: Io,
    slot: Option<u32>,
}

impl Future for OperationFuture {
    type Output = Outcome;

    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Outcome> {
        let index = self.slot.expect("polled after it was ready");
        let mut slots = self.io.0.slots.borrow_mut();
        let slot = &mut slots.slots[index as usize];
        let outcome = match slot {
            Slot::Waiting(task, _) => {
                *task = Some(self.io.current());
                return Poll::Pending;
            }
            Slot::GivenUp(_) => std::mem::replace(slot, Slot::Abandoned),
            _ => slots.release(index),
        };
        let (Slot::Completed(outcome) | Slot::GivenUp(outcome)) = outcome else {
            unreachable!("slot of a living future")
        };
        drop(slots);
        self.slot = None;
        Poll::Ready(outcome)
    }
}

impl Drop for OperationFuture {
    fn drop(&mut self) {
        let Some(index) = self.slot else { return };
        let mut slots = self.io.0.slots.borrow_mut();
        match slots.slots[index as usize] {
            Slot::Completed(_) => drop(slots.release(index)),
            _ => slots.slots[index as usize] = Slot::Abandoned,
        }
    }
}

/// Ends when the clock reaches the deadline.
pub struct Sleep {
    io: Io,
    deadline: Nanos,
    key: Option<(Nanos, u64, TaskId)>,
}

impl Sleep {
    fn disarm(&mut self) {
        if let Some(key) = self.key.take() {
            self.io.0.timers.borrow_mut().remove(&key);
        }
    }
}

impl Future for Sleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<()> {
        if self.io.now() >= self.deadline {
            self.disarm();
            return Poll::Ready(());
        }
        let task = self.io.current();
        if self.key.is_none_or(|key| key.2 != task) {
            self.disarm();
            let serial = self.io.0.timers_made.get();
            self.io.0.timers_made.set(serial + 1);
            let key = (self.deadline, serial, task);
            self.io.0.timers.borrow_mut().insert(key);
            self.key = Some(key);
        }
        Poll::Pending
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        self.disarm();
    }
}
