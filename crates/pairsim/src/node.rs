//! A head in the world: its process, its clock, its state machine, its copy of the log.

use base::{HeadId, Nanos};
use pair::{Head, Reads, Timing};

use crate::copy::Copy;
use crate::log::Log;

/// A clock that runs fast or slow, and stops while its machine is paused if that is a virtual one.
#[derive(Debug)]
pub struct Clock {
    /// Thousandths more or less than real time.
    pub error_permille: i64,
    pub stops: bool,
    /// When its machine was started, in real time, and what it showed then.
    pub started: Nanos,
    pub offset: Nanos,
    /// For how long it has stopped since.
    pub stopped: Nanos,
}

impl Clock {
    pub fn at(&self, real: Nanos) -> Nanos {
        let running = (real - self.started).0 - self.stopped.0;
        let scaled = i128::from(running) * i128::from(1000 + self.error_permille) / 1000;
        Nanos(scaled as u64) + self.offset
    }

    /// Its machine starts again.
    pub fn restart(&mut self, real: Nanos, offset: Nanos) {
        (self.started, self.offset, self.stopped) = (real, offset, Nanos(0));
    }
}

/// A read that waits until the partner has confirmed it.
#[derive(Clone, Copy, Debug)]
pub struct WaitingRead {
    pub block: usize,
    pub floor: u64,
    pub came: Nanos,
}

#[derive(Debug)]
pub struct Node {
    pub id: HeadId,
    pub is_up: bool,
    /// Counts the starts.
    pub start: u64,
    pub paused_until: Nanos,
    /// Its drives answer nothing until then.
    pub drives_stall_until: Nanos,
    /// A head that becomes the owner before finds no drives.
    pub drives_come_at: Nanos,
    pub clock: Clock,
    pub reads: Reads,
    pub head: Head,
    pub copy: Copy,
    pub log: Option<Log>,
    pub waiting_reads: Vec<WaitingRead>,
}

impl Node {
    pub fn local(&self, real: Nanos) -> Nanos {
        self.clock.at(real)
    }

    pub fn boot(&mut self, real: Nanos) {
        let now = self.local(real);
        self.is_up = true;
        self.head = Head::new(self.id, Timing::default(), self.reads, now);
        self.forget();
    }

    /// What is in memory only is gone.
    pub fn forget(&mut self) {
        self.log = None;
        self.waiting_reads.clear();
    }
}
