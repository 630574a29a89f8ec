//! Opens drives and probes what is on them, with a time limit.
//!
//! ```text
//!   asked ─► it answers in time ─► the caller has it
//!     └────► the time is over: the caller gets an error and continues ─► it answers ─► it is closed, and may be asked again
//! ```
//!
//! A drive that does not answer delays neither the other drives nor a caller that asks about all drives. It is asked
//! again only after it has answered, so the number of waiting requests stays bounded.

use std::cell::Cell;
use std::rc::Rc;

use crate::change_lock::COMMAND_TIME_MAX;
use crate::manager::Manager;
use crate::probed::Probed;
use base::Nanos;
use env::IoError;
use task::{Io, race};

/// How long a caller that looks at all drives waits for each of them.
const LOOK_TIME: Nanos = Nanos::from_secs(5);
/// How long the keeper waits for a drive that is to be used.
const TAKE_TIME: Nanos = Nanos::from_secs(10);
/// How long a command waits for a drive. The kernel's own time limit for a request to a drive is 30 s.
const COMMAND_TIME: Nanos = Nanos::from_secs(40);
/// How long everybody waits at the start, when no host is served yet.
const START_TIME: Nanos = Nanos::from_secs(35);

// the caller learns which drive does not answer, and the next command gets the change lock
const _: () = assert!(COMMAND_TIME.0 < COMMAND_TIME_MAX.0);

#[derive(Clone, Copy, PartialEq, Eq)]
enum How {
    /// Look at the drive without taking it from another process.
    Look,
    Take,
    /// If another process uses the drive, wait for it until this time.
    TakeWhenFree(Nanos),
}

impl Manager {
    /// Opens a drive for looking, without taking it from another process. The caller closes it.
    pub(crate) async fn open_to_look(&self, path: &str) -> Result<Probed, IoError> {
        self.open_within(path, How::Look, LOOK_TIME).await
    }

    /// Opens a drive for writing and probes it. The caller closes it.
    pub(crate) async fn open_and_probe(&self, path: &str) -> Result<Probed, IoError> {
        let time = if self.order.borrow().is_some() { COMMAND_TIME } else { TAKE_TIME };
        self.open_within(path, How::Take, time).await
    }

    /// The same at the start, when the process that used it may be ending.
    pub(crate) async fn open_when_free(&self, path: &str) -> Result<Probed, IoError> {
        let until = self.began.get() + pool::BUSY_PATIENCE;
        let wait = until.saturating_sub(self.context.io.now());
        self.open_within(path, How::TakeWhenFree(until), wait + TAKE_TIME).await
    }

    async fn open_within(&self, path: &str, how: How, time: Nanos) -> Result<Probed, IoError> {
        let unanswered = &self.unanswered;
        if unanswered.0.borrow().contains(path) {
            return Err(IoError::TimedOut);
        }
        let time = if self.ready.is_open() { time } else { time.max(START_TIME) };
        let (io, late) = (self.context.io.clone(), Rc::new(Cell::new(false)));
        let opened = self.context.io.spawn_join({
            let (path, late, unanswered) = (path.to_owned(), late.clone(), unanswered.clone());
            async move {
                let opened = open_and_probe(&io, &path, how).await;
                if !late.get() {
                    return opened;
                }
                if let Ok(Probed { handle, .. }) = opened {
                    // an error while closing a drive still closes it
                    let _ = io.drive_close(handle).await;
                }
                unanswered.0.borrow_mut().remove(&path);
                Err(IoError::TimedOut)
            }
        });
        match race(opened, self.context.io.sleep(time)).await {
            Ok(opened) => opened.unwrap_or(Err(IoError::Closed)),
            Err(()) => {
                late.set(true);
                unanswered.0.borrow_mut().insert(path.to_owned());
                Err(IoError::TimedOut)
            }
        }
    }
}

async fn open_and_probe(io: &Io, path: &str, how: How) -> Result<Probed, IoError> {
    let (handle, info) = match how {
        How::Look => io.drive_open(path, false).await?,
        How::Take => io.drive_open(path, true).await?,
        How::TakeWhenFree(until) => pool::open_when_free(io, path, until).await?,
    };
    let content = pool::probe(io, handle).await;
    Ok(Probed { handle, info, content })
}
