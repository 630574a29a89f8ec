//! Idle shards, threads, and environments that are dropped with operations in flight.

use std::net::{TcpListener, TcpStream};
use std::time::Duration;

use base::{AlignedBuffer, Nanos};
use bytes::{Bytes, BytesMut};
use env::{Env, IoError, Operation, Outcome, Wait};
use rustix::time::{ClockId, clock_gettime};

use super::{Driver, TempDirectory, on_a_shard, pattern};
use crate::{Options, spawn_shards};

/// Processor time of this thread.
fn thread_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

#[test]
fn an_idle_shard_costs_nothing() {
    on_a_shard(|mut driver| {
        // something has just happened, something is outstanding
        let listening = driver.run(Operation::Listen { address: "127.0.0.1:0".parse().expect("an address") });
        let Outcome::Listening(listener, _) = listening else { panic!("{listening:?}") };
        driver.start(Operation::Accept { listener });
        let (before, deadline) = (thread_time(), driver.env.now() + Nanos::from_millis(200));
        while driver.env.now() < deadline {
            driver.poll(Wait::Until(deadline));
        }
        let used = thread_time() - before;
        assert!(used < Duration::from_millis(4), "200 ms of waiting took {used:?} of processor time");
    });
}

#[test]
fn dropping_an_environment_with_operations_outstanding_ends_them() {
    let directory = TempDirectory::new("dropped");
    let path = directory.file("drive", 64 << 20);
    let (address_sender, address) = std::sync::mpsc::channel();
    let dropped_path = path.clone();
    let run = move |mut driver: Driver<()>| {
        let (drive, _) = driver.open(&dropped_path, true).expect("opened");
        let listening = driver.run(Operation::Listen { address: "127.0.0.1:0".parse().expect("an address") });
        let Outcome::Listening(listener, address) = listening else { panic!("{listening:?}") };
        let accept = driver.start(Operation::Accept { listener });
        let peer = TcpStream::connect(address).expect("connected");
        let Outcome::Accepted { connection, .. } = driver.wait(accept) else { panic!("accepted") };
        for block in 0..64u64 {
            let offset_bytes = block << 16;
            let data = vec![pattern(block, 16).into_bytes(); 2];
            driver.start(Operation::DriveWrite { drive, offset_bytes, data, durable: block % 2 == 0 });
            driver.start(Operation::DriveRead { drive, offset_bytes, buffer: AlignedBuffer::zeroed(16) });
        }
        driver.start(Operation::DriveFlush { drive });
        driver.start(Operation::Accept { listener });
        driver.start(Operation::Receive { connection, buffer: BytesMut::with_capacity(1 << 16) });
        driver.start(Operation::Send { connection, data: vec![Bytes::from(vec![1; 1 << 20]); 64] });
        // nobody answers there: it would take minutes
        driver.start(Operation::Connect { address: "127.255.255.255:1".parse().expect("an address") });
        driver.poll(Wait::No);
        // these are queued only
        driver.start(Operation::DriveRead { drive, offset_bytes: 0, buffer: AlignedBuffer::zeroed(256) });
        driver.start(Operation::Accept { listener });
        let start = driver.env.now();
        address_sender.send(address).expect("somebody waits");
        drop(driver);
        assert!(crate::clock::now() - start < Nanos::from_secs(5), "the kernel let go too late");
        drop(peer);
    };
    on_a_shard(run);
    // the address is free, the lock is gone
    drop(TcpListener::bind(address.recv().expect("sent")).expect("free"));
    on_a_shard(move |mut driver| {
        driver.open(&path, true).expect("free");
    });
}

#[test]
fn shards_run_on_the_cores_they_are_given() {
    let allowed = rustix::thread::sched_getaffinity(None).expect("known");
    let cores: Vec<usize> = (0..1024).filter(|&core| allowed.is_set(core)).take(2).collect();
    let all = allowed.count();
    let options = Options { cores: cores.clone(), ..Options::new(3) };
    let shards = spawn_shards::<(), _>(&options, move |env| {
        let set = rustix::thread::sched_getaffinity(None).expect("known");
        match cores.get(usize::from(env.shard().0)) {
            Some(&core) => assert!(set.count() == 1 && set.is_set(core)),
            None => assert_eq!(set.count(), all, "wherever the system puts it"),
        }
        let descriptors = rustix::process::getrlimit(rustix::process::Resource::Nofile);
        assert_eq!(descriptors.current, descriptors.maximum);
        assert_eq!(std::thread::current().name(), Some(format!("shard-{}", env.shard()).as_str()));
    })
    .expect("shards");
    assert_eq!((shards.mailboxes.len(), shards.threads.len()), (3, 3));
    for thread in shards.threads {
        thread.join().expect("on its core");
    }
}

#[test]
fn a_core_that_is_not_there_is_an_error_and_no_shard_runs() {
    for core in [1023, usize::MAX] {
        let options = Options { cores: vec![0, core], ..Options::new(2) };
        let result = spawn_shards::<(), _>(&options, |_| panic!("must not run"));
        let error = result.err().expect("refused");
        assert!(error.to_string().contains(&format!("core {core}")), "{error}");
    }
}

#[test]
fn a_shard_serves_after_many_connections_came_and_went() {
    on_a_shard(|mut driver| {
        let listening = driver.run(Operation::Listen { address: "127.0.0.1:0".parse().expect("an address") });
        let Outcome::Listening(listener, address) = listening else { panic!("{listening:?}") };
        for _ in 0..500 {
            let accept = driver.start(Operation::Accept { listener });
            let peer = TcpStream::connect(address).expect("connected");
            let Outcome::Accepted { connection, .. } = driver.wait(accept) else { panic!("accepted") };
            let receive =
                driver.start(Operation::Receive { connection, buffer: BytesMut::with_capacity(64) });
            let close = driver.start(Operation::CloseConnection { connection });
            assert!(matches!(driver.wait(receive), Outcome::Received(_, Err(IoError::Closed))));
            assert!(matches!(driver.wait(close), Outcome::Done));
            drop(peer);
        }
        assert_eq!(driver.env.core.connections.iter().count(), 0);
        assert!(driver.env.core.slots.in_flight() == 0 && driver.outcomes.is_empty());
    });
}
