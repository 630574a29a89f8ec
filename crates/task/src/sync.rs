//! How tasks of one shard wait for each other.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use smallvec::SmallVec;

use crate::executor::TaskId;
use crate::io::Io;

struct Oneshot<T> {
    value: Option<T>,
    sender_alive: bool,
    waiting: Option<TaskId>,
}

/// The sending half of [`oneshot`].
pub struct OneshotSender<T> {
    io: Io,
    shared: Rc<RefCell<Oneshot<T>>>,
}

/// The receiving half of [`oneshot`]: a future of the value, or of `None` where the sender was dropped.
pub struct OneshotReceiver<T> {
    io: Io,
    shared: Rc<RefCell<Oneshot<T>>>,
}

/// A place for one value, handed from one task to another.
pub fn oneshot<T>(io: &Io) -> (OneshotSender<T>, OneshotReceiver<T>) {
    let shared = Rc::new(RefCell::new(Oneshot { value: None, sender_alive: true, waiting: None }));
    (OneshotSender { io: io.clone(), shared: shared.clone() }, OneshotReceiver { io: io.clone(), shared })
}

impl<T> OneshotSender<T> {
    pub fn send(self, value: T) {
        self.shared.borrow_mut().value = Some(value);
    }
}

impl<T> Drop for OneshotSender<T> {
    fn drop(&mut self) {
        let mut shared = self.shared.borrow_mut();
        shared.sender_alive = false;
        if let Some(task) = shared.waiting.take() {
            self.io.wake(task);
        }
    }
}

impl<T> Future for OneshotReceiver<T> {
    type Output = Option<T>;

    fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<T>> {
        let mut shared = self.shared.borrow_mut();
        if let Some(value) = shared.value.take() {
            return Poll::Ready(Some(value));
        }
        if !shared.sender_alive {
            return Poll::Ready(None);
        }
        shared.waiting = Some(self.io.current());
        Poll::Pending
    }
}

/// Wakes every task that waits for it. A notification without a waiting task is lost: check the condition,
/// then wait, in a loop.
pub struct Notify {
    io: Io,
    generation: Cell<u64>,
    waiting: RefCell<SmallVec<[TaskId; 2]>>,
}

impl Notify {
    pub fn new(io: &Io) -> Notify {
        Notify { io: io.clone(), generation: Cell::new(0), waiting: RefCell::default() }
    }

    pub fn notify(&self) {
        self.generation.set(self.generation.get() + 1);
        for task in self.waiting.borrow_mut().drain(..) {
            self.io.wake(task);
        }
    }

    /// Ends at the first notification after this call.
    pub fn wait(&self) -> impl Future<Output = ()> + '_ {
        let generation = self.generation.get();
        std::future::poll_fn(move |_| {
            if self.generation.get() != generation {
                return Poll::Ready(());
            }
            let task = self.io.current();
            let mut waiting = self.waiting.borrow_mut();
            if !waiting.contains(&task) {
                waiting.push(task);
            }
            Poll::Pending
        })
    }
}

/// A door that is open or closed; tasks wait while it is closed.
pub struct Gate {
    open: Cell<bool>,
    notify: Notify,
}

impl Gate {
    pub fn new(io: &Io, open: bool) -> Gate {
        Gate { open: Cell::new(open), notify: Notify::new(io) }
    }

    pub fn is_open(&self) -> bool {
        self.open.get()
    }

    pub fn open(&self) {
        self.open.set(true);
        self.notify.notify();
    }

    pub fn close(&self) {
        self.open.set(false);
    }

    pub async fn pass(&self) {
        while !self.open.get() {
            self.notify.wait().await;
        }
    }
}

struct Waiter {
    wanted: usize,
    task: TaskId,
    granted: Rc<Cell<bool>>,
}

struct SemaphoreInner {
    io: Io,
    available: Cell<usize>,
    waiters: RefCell<VecDeque<Waiter>>,
}

/// Counted permits, granted in the order in which they were asked for.
#[derive(Clone)]
pub struct Semaphore(Rc<SemaphoreInner>);

/// Gives its permits back when dropped.
pub struct SemaphorePermit {
    semaphore: Semaphore,
    permits: usize,
}

impl Semaphore {
    pub fn new(io: &Io, permits: usize) -> Semaphore {
        Semaphore(Rc::new(SemaphoreInner {
            io: io.clone(),
            available: Cell::new(permits),
            waiters: RefCell::new(VecDeque::new()),
        }))
    }

    pub fn available(&self) -> usize {
        self.0.available.get()
    }

    /// `permits` must not exceed what the semaphore was made with.
    pub async fn acquire(&self, permits: usize) -> SemaphorePermit {
        let mut ticket = Ticket { semaphore: self, permits, granted: None, taken: false };
        std::future::poll_fn(|_| ticket.poll()).await;
        SemaphorePermit { semaphore: self.clone(), permits }
    }

    pub fn try_acquire(&self, permits: usize) -> Option<SemaphorePermit> {
        if !self.0.waiters.borrow().is_empty() || self.0.available.get() < permits {
            return None;
        }
        self.0.available.set(self.0.available.get() - permits);
        Some(SemaphorePermit { semaphore: self.clone(), permits })
    }

    fn release(&self, permits: usize) {
        self.0.available.set(self.0.available.get() + permits);
        self.grant();
    }

    fn grant(&self) {
        let mut waiters = self.0.waiters.borrow_mut();
        while let Some(waiter) = waiters.front() {
            if waiter.wanted > self.0.available.get() {
                break;
            }
            self.0.available.set(self.0.available.get() - waiter.wanted);
            waiter.granted.set(true);
            self.0.io.wake(waiter.task);
            waiters.pop_front();
        }
    }
}

/// A place in the queue of a semaphore; dropped before its turn, it gives the place up.
struct Ticket<'a> {
    semaphore: &'a Semaphore,
    permits: usize,
    granted: Option<Rc<Cell<bool>>>,
    taken: bool,
}

impl Ticket<'_> {
    fn poll(&mut self) -> Poll<()> {
        let inner = &self.semaphore.0;
        match &self.granted {
            None => {
                if inner.waiters.borrow().is_empty() && inner.available.get() >= self.permits {
                    inner.available.set(inner.available.get() - self.permits);
                    self.taken = true;
                    return Poll::Ready(());
                }
                let granted = Rc::new(Cell::new(false));
                let waiter =
                    Waiter { wanted: self.permits, task: inner.io.current(), granted: granted.clone() };
                inner.waiters.borrow_mut().push_back(waiter);
                self.granted = Some(granted);
                Poll::Pending
            }
            Some(granted) if granted.get() => {
                self.taken = true;
                Poll::Ready(())
            }
            Some(_) => Poll::Pending,
        }
    }
}

impl Drop for Ticket<'_> {
    fn drop(&mut self) {
        let Some(granted) = self.granted.take().filter(|_| !self.taken) else { return };
        if granted.get() {
            self.semaphore.release(self.permits);
        } else {
            self.semaphore.0.waiters.borrow_mut().retain(|waiter| !Rc::ptr_eq(&waiter.granted, &granted));
            self.semaphore.grant();
        }
    }
}

impl SemaphorePermit {
    /// Takes another permit of the same semaphore in: both are given back together.
    pub fn absorb(&mut self, mut other: SemaphorePermit) {
        assert!(Rc::ptr_eq(&self.semaphore.0, &other.semaphore.0), "permits of different semaphores");
        self.permits += std::mem::take(&mut other.permits);
    }
}

impl Drop for SemaphorePermit {
    fn drop(&mut self) {
        // none: absorbed by another
        if self.permits > 0 {
            self.semaphore.release(self.permits);
        }
    }
}

/// Several futures at once; ends with all their results, in order.
pub struct JoinAll<F: Future> {
    futures: Vec<Result<F::Output, Pin<Box<F>>>>,
}

pub fn join_all<F: Future>(futures: impl IntoIterator<Item = F>) -> JoinAll<F> {
    JoinAll { futures: futures.into_iter().map(|future| Err(Box::pin(future))).collect() }
}

impl<F: Future> Unpin for JoinAll<F> {}

impl<F: Future> Future for JoinAll<F> {
    type Output = Vec<F::Output>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Vec<F::Output>> {
        let mut pending = false;
        for entry in &mut self.futures {
            if let Err(future) = entry {
                match future.as_mut().poll(context) {
                    Poll::Ready(output) => *entry = Ok(output),
                    Poll::Pending => pending = true,
                }
            }
        }
        if pending {
            return Poll::Pending;
        }
        let results = std::mem::take(&mut self.futures);
        Poll::Ready(results.into_iter().map(|entry| entry.ok().expect("all are ready")).collect())
    }
}

/// Whichever ends first; the other is dropped. `Ok` is the first future's result.
pub async fn race<A: Future, B: Future>(first: A, second: B) -> Result<A::Output, B::Output> {
    let mut first = std::pin::pin!(first);
    let mut second = std::pin::pin!(second);
    std::future::poll_fn(|context| {
        if let Poll::Ready(output) = first.as_mut().poll(context) {
            return Poll::Ready(Ok(output));
        }
        second.as_mut().poll(context).map(Err)
    })
    .await
}
