//! Tests against the real kernel: temporary files, loopback sockets, threads.
//!
//! Some need root (a full file system, a file system without direct I/O, a loop device). Without root they fail and
//! say so, because a check that is skipped silently checks nothing.

mod block_device;
mod drives;
mod lifetime;
mod messages;
mod mounts;
mod slow_opens;
mod sockets;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use base::{AlignedBuffer, HashMap, Nanos};
use bytes::Bytes;
use env::{DriveHandle, DriveInfo, Env, Event, IoError, Operation, Outcome, Token, Wait};

use crate::{Options, UringEnv, spawn_shards};

/// A directory that goes away with this value.
pub struct TempDirectory(PathBuf);

impl TempDirectory {
    /// Below the system's directory for temporary files.
    pub fn new(name: &str) -> TempDirectory {
        TempDirectory::below(&std::env::temp_dir(), name)
    }

    /// Below another directory.
    pub fn below(parent: &Path, name: &str) -> TempDirectory {
        static MADE: AtomicU32 = AtomicU32::new(0);
        let serial = MADE.fetch_add(1, Ordering::Relaxed);
        let path = parent.join(format!("tangelo-uring-{name}-{}-{serial}", std::process::id()));
        std::fs::create_dir_all(&path).expect("a directory for temporary files");
        TempDirectory(path)
    }

    pub fn path(&self) -> &Path {
        &self.0
    }

    /// A sparse file of this size.
    pub fn file(&self, name: &str, bytes: u64) -> String {
        let path = self.0.join(name);
        std::fs::File::create(&path).and_then(|file| file.set_len(bytes)).expect("a temporary file");
        path.to_str().expect("we chose the name").to_owned()
    }
}

impl Drop for TempDirectory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Runs a test on shards, and fails if one of them does.
fn on_shards<M, F>(count: u16, run: F)
where
    M: Send + 'static,
    F: FnOnce(Driver<M>) + Clone + Send + 'static,
{
    let shards = spawn_shards(&Options::new(count), move |env| run(Driver::new(env))).expect("shards");
    let results: Vec<_> = shards.threads.into_iter().map(|thread| thread.join()).collect();
    assert!(results.iter().all(Result::is_ok), "a shard has failed");
}

fn on_a_shard(run: impl FnOnce(Driver<()>) + Clone + Send + 'static) {
    on_shards(1, run);
}

/// Drives an environment step by step.
struct Driver<M: Send + 'static> {
    env: UringEnv<M>,
    started: u64,
    outcomes: HashMap<Token, Outcome>,
    /// In the order in which operations ended.
    ended: Vec<Token>,
    messages: Vec<M>,
}

impl<M: Send + 'static> Driver<M> {
    /// No test waits longer for anything.
    const PATIENCE: Nanos = Nanos::from_secs(20);

    fn new(env: UringEnv<M>) -> Driver<M> {
        Driver { env, started: 0, outcomes: HashMap::default(), ended: Vec::new(), messages: Vec::new() }
    }

    fn start(&mut self, operation: Operation) -> Token {
        self.started += 1;
        let token = Token(self.started);
        self.env.submit(token, operation);
        token
    }

    fn poll(&mut self, wait: Wait) {
        let mut events = Vec::new();
        self.env.poll(&mut events, wait);
        for event in events {
            match event {
                Event::Message(message) => self.messages.push(message),
                Event::Completion(completion) => {
                    self.ended.push(completion.token);
                    let before = self.outcomes.insert(completion.token, completion.outcome);
                    assert!(before.is_none(), "completed twice");
                }
            }
        }
    }

    fn poll_until(&mut self, what: &str, mut reached: impl FnMut(&Driver<M>) -> bool) {
        let deadline = self.env.now() + Self::PATIENCE;
        while !reached(self) {
            assert!(self.env.now() < deadline, "waited too long for {what}");
            self.poll(Wait::Until(deadline));
        }
    }

    fn wait(&mut self, token: Token) -> Outcome {
        self.poll_until("an operation", |driver| driver.outcomes.contains_key(&token));
        self.outcomes.remove(&token).expect("just seen")
    }

    fn run(&mut self, operation: Operation) -> Outcome {
        let token = self.start(operation);
        self.wait(token)
    }

    fn message(&mut self) -> M {
        self.poll_until("a message", |driver| !driver.messages.is_empty());
        self.messages.remove(0)
    }

    fn open(&mut self, path: &str, writable: bool) -> Result<(DriveHandle, DriveInfo), IoError> {
        match self.run(Operation::DriveOpen { path: path.to_owned(), writable }) {
            Outcome::DriveOpened(drive, info) => Ok((drive, info)),
            Outcome::Failed(error) => Err(error),
            other => panic!("opening ended as {other:?}"),
        }
    }

    fn read(
        &mut self,
        drive: DriveHandle,
        offset_bytes: u64,
        blocks: usize,
    ) -> Result<AlignedBuffer, IoError> {
        let buffer = AlignedBuffer::zeroed(blocks);
        match self.run(Operation::DriveRead { drive, offset_bytes, buffer }) {
            Outcome::DriveRead(buffer, result) => {
                assert_eq!(buffer.blocks(), blocks, "the buffer comes back whole");
                result.map(|()| buffer)
            }
            other => panic!("reading ended as {other:?}"),
        }
    }

    fn measure(&mut self, drive: DriveHandle) -> Result<u64, IoError> {
        match self.run(Operation::DriveMeasure { drive }) {
            Outcome::DriveMeasured(end_bytes) => Ok(end_bytes),
            outcome => done(outcome).map(|()| unreachable!("it is measured or fails")),
        }
    }

    fn write(&mut self, drive: DriveHandle, offset_bytes: u64, data: Vec<Bytes>) -> Result<(), IoError> {
        done(self.run(Operation::DriveWrite { drive, offset_bytes, data, durable: false }))
    }

    fn close(&mut self, drive: DriveHandle) -> Result<(), IoError> {
        done(self.run(Operation::DriveClose { drive }))
    }
}

fn done(outcome: Outcome) -> Result<(), IoError> {
    match outcome {
        Outcome::Done => Ok(()),
        Outcome::Failed(error) => Err(error),
        other => panic!("ended as {other:?}"),
    }
}

/// Blocks that tell where they belong, from block number `first` on.
fn pattern(first: u64, blocks: usize) -> AlignedBuffer {
    let mut buffer = AlignedBuffer::zeroed(blocks);
    for index in 0..blocks {
        let number = first + index as u64;
        for (at, bytes) in buffer.block_mut(index).chunks_exact_mut(8).enumerate() {
            bytes.copy_from_slice(&((number << 16) | at as u64).to_le_bytes());
        }
    }
    buffer
}
