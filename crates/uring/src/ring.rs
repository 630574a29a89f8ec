//! The io_uring of one shard. It is set up with the best flags that this kernel supports. Submissions use as few system
//! calls as possible, and completions are taken in batches.
//!
//! What always holds:
//! - every pushed entry is submitted, in order: entries that do not fit into the queue wait in a backlog;
//! - no completion is lost: the kernel keeps those that do not fit into the completion queue (NODROP, checked).

use std::collections::VecDeque;
use std::io;

use io_uring::types::{SubmitArgs, Timespec};
use io_uring::{IoUring, cqueue, squeue};

use base::Nanos;

/// Entries submitted by one system call at most.
const SUBMISSIONS: u32 = 1024;
/// Completions that wait without overflowing into the kernel.
const COMPLETIONS: u32 = 8192;

/// How long to wait before submissions are retried that the kernel refused for want of a resource.
const BACKLOG_WAIT: Nanos = Nanos::from_millis(1);

/// One completion as the kernel tells it.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    pub user_data: u64,
    /// Not negative, or a negated error number.
    pub result: i32,
    /// For receives: more has arrived than was taken.
    pub socket_has_more: bool,
}

pub struct Ring {
    ring: IoUring,
    backlog: VecDeque<squeue::Entry>,
}

impl Ring {
    /// Needs Linux 5.11; from 6.1 on completions are only worked on when we ask for them, which is faster. To be
    /// called on the thread that uses the ring.
    pub fn new() -> io::Result<Ring> {
        let mut last = None;
        for attempt in 0..3 {
            let mut builder = IoUring::builder();
            builder.setup_cqsize(COMPLETIONS).setup_clamp();
            match attempt {
                0 => builder
                    .setup_single_issuer()
                    .setup_defer_taskrun()
                    .setup_taskrun_flag()
                    .setup_submit_all(),
                1 => builder.setup_coop_taskrun().setup_taskrun_flag().setup_submit_all(),
                _ => &mut builder,
            };
            match builder.build(SUBMISSIONS) {
                Ok(ring) => return Ring::check(ring),
                Err(error) if error.raw_os_error() == Some(libc::EINVAL) => last = Some(error),
                Err(error) => return Err(error),
            }
        }
        Err(last.expect("every attempt failed"))
    }

    fn check(ring: IoUring) -> io::Result<Ring> {
        let parameters = ring.params();
        if !parameters.is_feature_ext_arg() || !parameters.is_feature_nodrop() {
            return Err(io::Error::new(
                io::ErrorKind::Unsupported,
                "this kernel's io_uring is too old: 5.11 is needed",
            ));
        }
        Ok(Ring { ring, backlog: VecDeque::new() })
    }

    /// Queues an entry.
    ///
    /// # Safety
    /// All memory that the entry points to stays valid, and untouched by us as the operation demands, until its
    /// completion has been taken.
    pub unsafe fn push(&mut self, entry: squeue::Entry) {
        if self.backlog.is_empty() {
            // SAFETY: the caller's promise is the one that is asked for.
            if unsafe { self.ring.submission().push(&entry) }.is_ok() {
                return;
            }
            self.submit();
        }
        self.backlog.push_back(entry);
        self.refill();
    }

    /// Moves as much as fits from the backlog into the submission queue.
    fn refill(&mut self) {
        let mut queue = self.ring.submission();
        while let Some(entry) = self.backlog.front() {
            // SAFETY: whoever pushed it has promised that its memory stays.
            if unsafe { queue.push(entry) }.is_err() {
                return;
            }
            self.backlog.pop_front();
        }
    }

    /// Whether the kernel has anything to be told, or completions that it works on only when asked.
    pub fn wants_enter(&mut self) -> bool {
        let queue = self.ring.submission();
        !queue.is_empty() || queue.taskrun() || queue.cq_overflow()
    }

    pub fn has_completions(&mut self) -> bool {
        !self.ring.completion().is_empty()
    }

    /// Submits what is queued and lets the kernel work on completions, without waiting; no system call where
    /// there is nothing to do.
    pub fn submit(&mut self) {
        while self.wants_enter() {
            let before = self.ring.submission().len();
            check_enter(self.ring.submitter().submit());
            self.refill();
            // all gone; or the kernel is short of something until completions are taken
            let now = self.ring.submission().len();
            if self.backlog.is_empty() || now >= before {
                return;
            }
        }
    }

    /// Submits what is queued and waits for a completion, at most for `timeout`. May return early.
    pub fn wait(&mut self, mut timeout: Option<Nanos>) {
        if !self.backlog.is_empty() {
            // what sleeps in the queue may wait for what is still in the backlog
            self.submit();
            if !self.backlog.is_empty() {
                timeout = Some(timeout.map_or(BACKLOG_WAIT, |timeout| timeout.min(BACKLOG_WAIT)));
            }
        }
        let submitter = self.ring.submitter();
        match timeout {
            None => check_enter(submitter.submit_and_wait(1)),
            Some(timeout) => {
                let timespec =
                    Timespec::new().sec(timeout.0 / 1_000_000_000).nsec((timeout.0 % 1_000_000_000) as u32);
                check_enter(submitter.submit_with_args(1, &SubmitArgs::new().timespec(&timespec)));
            }
        }
    }

    /// Takes all completions that are there.
    pub fn take(&mut self, entries: &mut Vec<Entry>) {
        for entry in self.ring.completion() {
            entries.push(Entry {
                user_data: entry.user_data(),
                result: entry.result(),
                socket_has_more: cqueue::sock_nonempty(entry.flags()),
            });
        }
    }
}

/// Entering the kernel may time out, be interrupted, or be refused until completions have been taken: all are the
/// loop's daily bread. Anything else is a bug of ours.
fn check_enter(result: io::Result<usize>) {
    if let Err(error) = result {
        let errno = error.raw_os_error();
        let expected = [libc::ETIME, libc::EINTR, libc::EBUSY, libc::EAGAIN, libc::ENOMEM];
        assert!(errno.is_some_and(|errno| expected.contains(&errno)), "io_uring_enter: {error}");
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsRawFd;

    use io_uring::opcode;
    use io_uring::types::Fd;

    use super::*;

    #[test]
    fn more_entries_than_the_queues_hold_all_complete_in_the_end() {
        let mut ring = Ring::new().expect("a ring");
        let count = 3 * COMPLETIONS as usize;
        for user_data in 0..count {
            // SAFETY: a no-op points to no memory.
            unsafe { ring.push(opcode::Nop::new().build().user_data(user_data as u64)) };
        }
        let mut seen = vec![false; count];
        let mut entries = Vec::new();
        while !seen.iter().all(|&seen| seen) {
            ring.wait(Some(Nanos::from_secs(5)));
            ring.take(&mut entries);
            assert!(!entries.is_empty(), "a completion was lost");
            for entry in entries.drain(..) {
                assert!(!std::mem::replace(&mut seen[entry.user_data as usize], true));
            }
        }
        assert!(ring.backlog.is_empty() && !ring.has_completions());
    }

    #[test]
    fn an_entry_in_the_backlog_is_not_left_behind_those_that_wait() {
        let mut ring = Ring::new().expect("a ring");
        let never = rustix::event::eventfd(0, rustix::event::EventfdFlags::CLOEXEC).expect("an eventfd");
        for _ in 0..3 * SUBMISSIONS {
            let value: &'static mut [u8; 8] = Box::leak(Box::new([0; 8]));
            let read = opcode::Read::new(Fd(never.as_raw_fd()), value.as_mut_ptr(), 8).build();
            // SAFETY: the value is never freed.
            unsafe { ring.push(read.user_data(1)) };
        }
        // SAFETY: a no-op points to no memory.
        unsafe { ring.push(opcode::Nop::new().build().user_data(2)) };
        ring.wait(Some(Nanos::from_secs(10)));
        let mut entries = Vec::new();
        ring.take(&mut entries);
        assert_eq!(entries.iter().map(|entry| entry.user_data).collect::<Vec<_>>(), [2]);
    }

    #[test]
    fn waiting_ends_with_the_timeout() {
        let mut ring = Ring::new().expect("a ring");
        ring.wait(Some(Nanos::from_millis(1)));
        assert!(!ring.has_completions());
    }
}
