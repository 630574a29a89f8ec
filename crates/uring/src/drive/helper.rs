//! The helper thread: what a drive can only do by a system call that blocks. Today that is discarding a range of a
//! block device (`BLKDISCARD`; io_uring has it from Linux 6.12 on, older kernels are to be served as well).
//!
//! One thread for the process, started when first needed, with a bounded queue. A discard is a hint: where the
//! queue is full it is let go.

use std::os::fd::RawFd;
use std::sync::mpsc::{SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex};

use super::SendableUse;
use crate::mailbox::Doorbell;

/// Discards waiting for the helper.
const JOBS_MAX: usize = 256;

/// `_IO(0x12, 119)`: discards a range, given as offset and length in bytes.
const BLKDISCARD: libc::Ioctl = 0x1277;

/// A range of a block device to discard.
pub struct Job {
    pub drive: SendableUse,
    pub offset_bytes: u64,
    pub length_bytes: u64,
    pub answer: Arc<Answers>,
    /// The operation's slot on the shard that asked.
    pub slot: u32,
}

/// What the helper has done for one shard: slots, and results in the manner of a completion.
pub struct Answers {
    done: Mutex<Vec<(u32, i32)>>,
    doorbell: Arc<Doorbell>,
}

impl Answers {
    pub fn new(doorbell: Arc<Doorbell>) -> Answers {
        Answers { done: Mutex::new(Vec::new()), doorbell }
    }

    fn put(&self, slot: u32, result: i32) {
        self.done.lock().expect("no panic under the lock").push((slot, result));
        self.doorbell.ring();
    }

    pub fn take(&self) -> Vec<(u32, i32)> {
        std::mem::take(&mut *self.done.lock().expect("no panic under the lock"))
    }

    pub fn is_empty(&self) -> bool {
        self.done.lock().expect("no panic under the lock").is_empty()
    }
}

/// The way to the helper thread, which ends when this is dropped.
#[derive(Default)]
pub struct Helper {
    jobs: Mutex<Option<SyncSender<Job>>>,
}

impl Helper {
    /// Gives the job back where it cannot be taken.
    pub fn submit(&self, job: Job) -> Result<(), Box<Job>> {
        let mut jobs = self.jobs.lock().expect("no panic under the lock");
        if jobs.is_none() {
            let (sender, receiver) = sync_channel::<Job>(JOBS_MAX);
            let work = move || receiver.into_iter().for_each(run);
            match std::thread::Builder::new().name("drive-helper".to_owned()).spawn(work) {
                Ok(_) => *jobs = Some(sender),
                Err(_) => return Err(Box::new(job)),
            }
        }
        let sender = jobs.as_ref().expect("just made");
        sender.try_send(job).map_err(|error| match error {
            TrySendError::Full(job) | TrySendError::Disconnected(job) => Box::new(job),
        })
    }
}

fn run(job: Job) {
    let result = discard(job.drive.descriptor(), job.offset_bytes, job.length_bytes);
    let Job { drive, answer, slot, .. } = job;
    drop(drive); // before the answer: the one who gets it may close the drive
    answer.put(slot, result);
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
