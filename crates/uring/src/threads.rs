//! The shards' threads: one for each shard, pinned to a core if configured.

use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

use base::limits::SHARDS_MAX;
use base::{Nanos, ShardId};
use env::Env;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustix::thread::{CpuSet, sched_setaffinity};

use crate::core::Common;
use crate::mailbox::Mailbox;
use crate::{DEFAULT_SPIN_MAX, UringEnv};

/// How to run the shards of a process.
#[derive(Clone, Debug)]
pub struct Options {
    /// From 1 to [`SHARDS_MAX`].
    pub shards: u16,
    /// Cores by the system's number, one for each shard. Shards for which there is none run wherever the system puts them.
    pub cores: Vec<usize>,
    /// How long a shard that has just had something to do looks for more before it sleeps, at most: as long as gaps
    /// have lately been. Zero: not at all, as where the process has a single core, which whoever it waits for needs.
    pub spin_max: Nanos,
}

impl Options {
    pub fn new(shards: u16) -> Options {
        let alone = std::thread::available_parallelism().is_ok_and(|cores| cores.get() == 1);
        let spin_max = if alone { Nanos(0) } else { DEFAULT_SPIN_MAX };
        Options { shards, cores: Vec::new(), spin_max }
    }
}

/// Running shards.
pub struct Shards<M> {
    /// By shard.
    pub mailboxes: Vec<Mailbox<M>>,
    /// By shard. A thread ends when the closure it runs does.
    pub threads: Vec<JoinHandle<()>>,
}

/// Starts the shards' threads and runs a clone of the closure on each, with that shard's environment. Returns once
/// all environments are there; where one cannot be made, none runs and the reason is returned.
///
/// Panics where the number of shards is not one that a process can have.
pub fn spawn_shards<M, F>(options: &Options, run: F) -> io::Result<Shards<M>>
where
    M: Send + 'static,
    F: FnOnce(UringEnv<M>) + Clone + Send + 'static,
{
    assert!((1..=SHARDS_MAX).contains(&usize::from(options.shards)), "{} shards", options.shards);
    raise_descriptor_limit();
    let ids = (0..options.shards).map(ShardId);
    let mailboxes = ids.map(|shard| Mailbox::new(shard, options.shards)).collect::<io::Result<Vec<_>>>()?;
    let common = Arc::new(Common::default());
    let (made, all_made) = channel();
    let mut starts = Vec::new();
    let mut threads = Vec::new();
    for mailbox in &mailboxes {
        let shard = mailbox.shard();
        let (start, started) = channel::<()>();
        starts.push(start);
        let (options, mailboxes, common) = (options.clone(), mailboxes.clone(), common.clone());
        let (made, run) = (made.clone(), run.clone());
        let thread = std::thread::Builder::new().name(format!("shard-{shard}"));
        threads.push(thread.spawn(move || {
            if let Some(env) = prepare(shard, &options, mailboxes, common, &made, &started) {
                run(env);
            }
        })?);
    }
    for _ in &threads {
        // where one fails, the threads that wait find nobody to start them, and end
        all_made.recv().expect("every thread reports, and we hold a sender")?;
    }
    for start in starts {
        start.send(()).expect("the thread waits for it");
    }
    Ok(Shards { mailboxes, threads })
}

/// Shells give a process 1024 descriptors, and let it take more: a connection is one. As many as it may have; where
/// that is refused, accepting one too many is an error of its own.
fn raise_descriptor_limit() {
    let limit = getrlimit(Resource::Nofile);
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum });
}

/// On the shard's thread: makes the environment, reports, and waits for the start.
fn prepare<M: Send + 'static>(
    shard: ShardId,
    options: &Options,
    mailboxes: Vec<Mailbox<M>>,
    common: Arc<Common>,
    made: &Sender<io::Result<()>>,
    started: &Receiver<()>,
) -> Option<UringEnv<M>> {
    let result =
        pin(shard, &options.cores).and_then(|()| UringEnv::new(shard, mailboxes, common, options.spin_max));
    let (env, result) = match result {
        Ok(env) => (Some(env), Ok(())),
        Err(error) => (None, Err(error)),
    };
    assert!(env.as_ref().is_none_or(|env| env.shard() == shard));
    made.send(result).ok()?;
    started.recv().ok()?;
    env
}

fn pin(shard: ShardId, cores: &[usize]) -> io::Result<()> {
    let Some(&core) = cores.get(usize::from(shard.0)) else { return Ok(()) };
    if core >= CpuSet::MAX_CPU {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, format!("there is no core {core}")));
    }
    let mut set = CpuSet::new();
    set.set(core);
    sched_setaffinity(None, &set).map_err(|error| {
        let error = io::Error::from(error);
        io::Error::new(error.kind(), format!("shard {shard} cannot run on core {core}: {error}"))
    })
}
