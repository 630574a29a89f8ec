//! Helper threads: they run system calls on drives that may block. Opening or closing a faulty drive can take
//! minutes; a shard that waited for it could serve nobody meanwhile. `BLKDISCARD` blocks, too. (io_uring has it
//! from Linux 6.12 on, but older kernels must work as well.)
//!
//! Threads start when they are needed, up to a limit, and end after some idle time. What always holds:
//! - no job waits for a job of another drive, as long as fewer threads than the limit are blocked;
//! - discards of one drive run one after the other, so they block at most one thread. A discard is a hint: if too many
//!   are queued for a drive, further ones are dropped.

use std::collections::{BTreeMap, VecDeque};
use std::os::fd::RawFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::Duration;

use env::{DriveInfo, IoError, Reservation, ReservationAsk};

use super::{Drive, SendableUse, open, reservation};
use crate::mailbox::Doorbell;

/// Threads at once. This is more than the hung drives of a machine, so healthy drives do not wait for hung ones.
pub const THREADS_MAX: usize = 64;
/// Discards of one drive that wait.
const DISCARDS_MAX: usize = 256;
/// How long a thread waits for something to do before it ends.
const IDLE_TIME: Duration = Duration::from_secs(10);
/// They call the system and little else.
const STACK_BYTES: usize = 256 << 10;

/// `_IO(0x12, 119)`: discards a range, given as offset and length in bytes.
const BLKDISCARD: libc::Ioctl = 0x1277;

/// What is to be done.
pub enum Job {
    Open {
        path: String,
        writable: bool,
    },
    /// Of a drive that is no longer in use.
    Close(Arc<Drive>),
    /// How large a drive is now.
    Measure(SendableUse),
    Reserve {
        drive: SendableUse,
        ask: ReservationAsk,
    },
    /// Of a range of a block device.
    Discard {
        drive: SendableUse,
        offset_bytes: u64,
        length_bytes: u64,
    },
}

/// How it went.
pub enum Done {
    Opened(Result<(Arc<Drive>, DriveInfo), IoError>),
    Closed,
    Measured(Result<u64, IoError>),
    /// With what it was asked to report.
    Reserved(Result<Option<Reservation>, IoError>),
    /// In the manner of a completion.
    Discarded(i32),
}

/// A job, and who waits for it.
pub struct Order {
    pub job: Job,
    pub answers: Arc<Answers>,
    /// The operation's slot on the shard that asked.
    pub slot: u32,
}

/// What has been done for one shard, by slot.
pub struct Answers {
    done: Mutex<Vec<(u32, Done)>>,
    /// To look at without the lock.
    any: AtomicBool,
    doorbell: Arc<Doorbell>,
}

impl Answers {
    pub fn new(doorbell: Arc<Doorbell>) -> Answers {
        Answers { done: Mutex::new(Vec::new()), any: AtomicBool::new(false), doorbell }
    }

    fn put(&self, slot: u32, done: Done) {
        {
            let mut all = self.done.lock().expect("no panic under the lock");
            all.push((slot, done));
            self.any.store(true, Ordering::SeqCst);
        }
        self.doorbell.ring();
    }

    pub fn take(&self) -> Vec<(u32, Done)> {
        if self.is_empty() {
            return Vec::new();
        }
        let mut all = self.done.lock().expect("no panic under the lock");
        self.any.store(false, Ordering::SeqCst);
        std::mem::take(&mut *all)
    }

    pub fn is_empty(&self) -> bool {
        !self.any.load(Ordering::SeqCst)
    }
}

/// The way to the helper threads, which end when this is dropped and they are done.
#[derive(Default)]
pub struct Helper(Arc<Crew>);

#[derive(Default)]
struct Crew {
    state: Mutex<State>,
    something_to_do: Condvar,
}

#[derive(Default)]
struct State {
    waiting: VecDeque<Step>,
    /// By drive: those that wait, while one is being done or about to be.
    discards: BTreeMap<usize, VecDeque<Order>>,
    threads: usize,
    /// Threads that wait for something to do.
    idle: usize,
    ended: bool,
}

enum Step {
    Once(Order),
    /// All discards of a drive, one after the other.
    Discards(usize),
}

impl Helper {
    /// Gives the order back where it cannot be taken: too many discards of a drive wait, or there can be no thread.
    pub fn submit(&self, order: Order) -> Result<(), Box<Order>> {
        let mut state = self.0.lock();
        let step = match &order.job {
            Job::Discard { drive, .. } => {
                let key = drive.key();
                if let Some(waiting) = state.discards.get_mut(&key) {
                    if waiting.len() >= DISCARDS_MAX {
                        return Err(Box::new(order));
                    }
                    waiting.push_back(order);
                    return Ok(());
                }
                state.discards.insert(key, VecDeque::from([order]));
                Step::Discards(key)
            }
            Job::Open { .. } | Job::Close(_) | Job::Measure(_) | Job::Reserve { .. } => Step::Once(order),
        };
        state.waiting.push_back(step);
        if state.waiting.len() > state.idle && state.threads < THREADS_MAX {
            state.threads += usize::from(self.0.start_thread());
        }
        if state.threads == 0 {
            return Err(Box::new(state.give_back()));
        }
        drop(state);
        self.0.something_to_do.notify_one();
        Ok(())
    }
}

impl Drop for Helper {
    fn drop(&mut self) {
        self.0.lock().ended = true;
        self.0.something_to_do.notify_all();
    }
}

impl State {
    /// Takes back what has just been put in.
    fn give_back(&mut self) -> Order {
        match self.waiting.pop_back().expect("just put in") {
            Step::Once(order) => order,
            Step::Discards(key) => {
                let mut orders = self.discards.remove(&key).expect("just put in");
                orders.pop_back().expect("just put in")
            }
        }
    }
}

impl Crew {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no panic under the lock")
    }

    /// Whether there is one more thread.
    fn start_thread(self: &Arc<Self>) -> bool {
        let crew = self.clone();
        let thread = std::thread::Builder::new().name("drive-helper".to_owned()).stack_size(STACK_BYTES);
        thread.spawn(move || crew.work()).is_ok()
    }

    fn work(&self) {
        while let Some(step) = self.next() {
            match step {
                Step::Once(order) => carry_out(order),
                Step::Discards(key) => {
                    while let Some(order) = self.next_discard(key) {
                        carry_out(order);
                    }
                }
            }
        }
    }

    /// Waits for something to do. Nothing: the thread ends.
    fn next(&self) -> Option<Step> {
        let mut state = self.lock();
        loop {
            if let Some(step) = state.waiting.pop_front().filter(|_| !state.ended) {
                return Some(step);
            }
            if state.ended {
                state.threads -= 1;
                return None;
            }
            state.idle += 1;
            let (woken, waited) =
                self.something_to_do.wait_timeout(state, IDLE_TIME).expect("no panic under the lock");
            state = woken;
            state.idle -= 1;
            if waited.timed_out() && state.waiting.is_empty() {
                state.threads -= 1;
                return None;
            }
        }
    }

    fn next_discard(&self, key: usize) -> Option<Order> {
        let mut state = self.lock();
        let order = state.discards.get_mut(&key).expect("there while its discards are done").pop_front();
        if order.is_none() {
            state.discards.remove(&key);
        }
        order
    }
}

/// Where the shard has ended meanwhile nobody takes the answer: a drive that was opened is closed with it, here.
fn carry_out(order: Order) {
    let Order { job, answers, slot } = order;
    let done = match job {
        Job::Open { path, writable } => {
            Done::Opened(open::open(&path, writable).map(|(drive, info)| (Arc::new(drive), info)))
        }
        Job::Close(drive) => {
            drive.close();
            Done::Closed
        }
        Job::Measure(drive) => {
            let result = drive.measure();
            drop(drive); // before the answer, as below
            Done::Measured(result)
        }
        Job::Reserve { drive, ask } => {
            let result = reservation::carry_out(&drive, ask);
            drop(drive); // before the answer, as below
            Done::Reserved(result)
        }
        Job::Discard { drive, offset_bytes, length_bytes } => {
            let result = discard(drive.descriptor(), offset_bytes, length_bytes);
            drop(drive); // before the answer: the one who gets it may close the drive
            Done::Discarded(result)
        }
    };
    answers.put(slot, done);
}

fn discard(descriptor: RawFd, offset_bytes: u64, length_bytes: u64) -> i32 {
    let range = [offset_bytes, length_bytes];
    // SAFETY: the request takes a pointer to two u64, which live across the call; the hold keeps the descriptor open.
    let result = unsafe { libc::ioctl(descriptor, BLKDISCARD, range.as_ptr()) };
    if result < 0 {
        return -std::io::Error::last_os_error().raw_os_error().unwrap_or(libc::EIO);
    }
    0
}
