//! A head of a pair: the head's own thread beside the shards, which wait until this head owns the array.
//!
//! ```text
//!   register (etcd) ◄── asking ◄─┐                      ┌─► threads of the shards: MirrorEnv, engine
//!                                ├─ Seat ◄─ head's thread ─► other head
//!   API ──► PairArray ──► attend ┘   (RunningHead)      └─► partner's drives
//! ```
//!
//! What always holds: the process ends as soon as its head has lost the term in which it served; it ends with code 75 then, and is to be
//! started again at once.

mod array;
mod asking;
mod attend;
mod company;
mod fencing;
mod forget;
pub(super) mod portals;
mod problems;
mod seat;
mod threads;
mod twins;
mod view;

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

use setup::PairFile;
use tokio::runtime::Runtime;

use super::mailbox::EngineArray;
use super::{Failure, Prepared};

/// How long the answer to a command that has this process start again may take.
const ANSWER_TIME: Duration = Duration::from_millis(100);

/// The exit code of a process that is to be started again at once (EX_TEMPFAIL of sysexits.h).
pub const START_AGAIN: u8 = 75;

/// How this process ends when its head has nothing more to do in it.
#[derive(Clone)]
pub struct Ending(Arc<AtomicU8>);

impl Ending {
    fn new() -> Ending {
        Ending(Arc::new(AtomicU8::new(START_AGAIN)))
    }

    /// It is not to be started again.
    fn for_good(&self) {
        self.0.store(0, Ordering::Relaxed);
    }

    /// Stops the array in order, then ends the process, which is started again. An answer that is under way gets a moment.
    fn start_again_after(&self, engine: Arc<EngineArray>) {
        let ending = self.clone();
        tokio::spawn(async move {
            tokio::time::sleep(ANSWER_TIME).await;
            if let Err(why) = engine.shut_down().await {
                tracing::error!("{why}");
            }
            ending.now();
        });
    }

    /// Ends the process, with everything that is under way in it.
    fn now(&self) -> ! {
        std::process::exit(i32::from(self.0.load(Ordering::Relaxed)));
    }
}

/// Runs this head until a signal ends it, or it has lost its term.
pub fn serve(prepared: Prepared<'_>, file: PairFile, runtime: &Runtime) -> Result<(), Failure> {
    let ending = Ending::new();
    let threads = threads::start(&prepared, &file, &ending)?;
    runtime.block_on(attend::run(prepared, file, threads, &ending))?;
    tracing::info!("stopped");
    ending.now()
}
