//! Drives that take long to open: the shard continues meanwhile.
//!
//! A lease simulates the slow drive: opening a file on which another process has a lease blocks in the system call
//! until the lease is released.

use std::fs::File;
use std::os::fd::AsRawFd;
use std::time::{Duration, Instant};

use base::BLOCK_BYTES;
use env::{DriveHandle, Env, IoError, Operation, Outcome, Token, Wait};

use super::{Driver, TempDirectory, done, on_a_shard, pattern};
use crate::drive::helper::THREADS_MAX;

const BLOCK: u64 = BLOCK_BYTES as u64;
/// Of fcntl(2): which signal tells of those who wait for a lease.
const F_SETSIG: libc::c_int = 10;

/// A file that nobody can open before this is dropped.
struct SlowFile {
    holder: File,
    path: String,
}

impl SlowFile {
    fn new(path: String) -> SlowFile {
        let holder = File::open(&path).expect("just made");
        // the signal that tells us of those who wait would otherwise end the process
        // SAFETY: these commands take numbers, no pointers.
        let signal = unsafe { libc::fcntl(holder.as_raw_fd(), F_SETSIG, libc::SIGURG) };
        assert_eq!(signal, 0, "{}", std::io::Error::last_os_error());
        // SAFETY: as above.
        let lease = unsafe { libc::fcntl(holder.as_raw_fd(), libc::F_SETLEASE, libc::F_RDLCK) };
        assert_eq!(lease, 0, "{}", std::io::Error::last_os_error());
        SlowFile { holder, path }
    }

    fn start_open(&self, driver: &mut Driver<()>) -> Token {
        // a lease of a reader stands in the way of writers alone
        driver.start(Operation::DriveOpen { path: self.path.clone(), writable: true })
    }

    /// Opening it ends from now on.
    fn let_go(self) {
        // SAFETY: the command takes a number, no pointer.
        let result = unsafe { libc::fcntl(self.holder.as_raw_fd(), libc::F_SETLEASE, libc::F_UNLCK) };
        assert_eq!(result, 0, "{}", std::io::Error::last_os_error());
    }
}

/// What hosts would see: writes and reads of another drive.
fn serve(driver: &mut Driver<()>, drive: DriveHandle) {
    for block in 0..32 {
        driver.write(drive, block * BLOCK, vec![pattern(block, 1).into_bytes()]).expect("written");
        let read = driver.read(drive, block * BLOCK, 1).expect("read");
        assert!(read[..] == pattern(block, 1)[..]);
        done(driver.run(Operation::DriveFlush { drive })).expect("flushed");
    }
}

#[test]
fn a_slow_open_holds_up_nothing_else() {
    on_a_shard(|mut driver| {
        let directory = TempDirectory::new("slow-open");
        let (drive, _) = driver.open(&directory.file("well", 64 * BLOCK), true).expect("opened");
        let slow = SlowFile::new(directory.file("slow", 8 * BLOCK));
        let began = Instant::now();
        let opening = slow.start_open(&mut driver);
        assert!(began.elapsed() < Duration::from_secs(1), "the shard waited for the system call");
        serve(&mut driver, drive);
        // others are opened and closed, too
        let (other, _) = driver.open(&directory.file("other", 8 * BLOCK), true).expect("opened");
        driver.close(other).expect("closed");
        driver.close(drive).expect("closed");
        assert!(!driver.outcomes.contains_key(&opening), "the slow one has not been slow");
        slow.let_go();
        let Outcome::DriveOpened(drive, _) = driver.wait(opening) else { panic!("it can be opened now") };
        serve_eight(&mut driver, drive);
        driver.close(drive).expect("closed");
    });
}

fn serve_eight(driver: &mut Driver<()>, drive: DriveHandle) {
    driver.write(drive, 0, vec![pattern(7, 8).into_bytes()]).expect("written");
    assert!(driver.read(drive, 0, 8).expect("read")[..] == pattern(7, 8)[..]);
}

/// With every helper thread held up, opening and closing wait, and reading and writing do not: none of the two is done on
/// the shard's thread.
#[test]
fn where_every_helper_thread_is_held_up_io_goes_on() {
    on_a_shard(|mut driver| {
        let directory = TempDirectory::new("slow-opens");
        let (drive, _) = driver.open(&directory.file("well", 64 * BLOCK), true).expect("opened");
        let (idle, _) = driver.open(&directory.file("idle", 8 * BLOCK), true).expect("opened");
        let slow = SlowFile::new(directory.file("slow", 8 * BLOCK));
        let openings: Vec<Token> = (0..THREADS_MAX + 8).map(|_| slow.start_open(&mut driver)).collect();
        let closing = driver.start(Operation::DriveClose { drive: idle });
        let path = directory.file("other", 8 * BLOCK);
        let other = driver.start(Operation::DriveOpen { path, writable: true });
        serve(&mut driver, drive);
        let held_up = [closing, other].into_iter().chain(openings.iter().copied());
        assert!(held_up.into_iter().all(|token| !driver.outcomes.contains_key(&token)));
        slow.let_go();
        done(driver.wait(closing)).expect("closed");
        assert!(matches!(driver.wait(other), Outcome::DriveOpened(..)));
        // one has it, alone
        let opened = openings.into_iter().map(|token| driver.wait(token)).filter(|outcome| match outcome {
            Outcome::DriveOpened(..) => true,
            Outcome::Failed(IoError::Busy) => false,
            other => panic!("opening ended as {other:?}"),
        });
        assert_eq!(opened.count(), 1);
        driver.close(drive).expect("closed");
    });
}

#[test]
fn an_environment_ends_while_a_drive_is_being_opened() {
    let directory = TempDirectory::new("slow-dropped");
    let path = directory.file("slow", 8 * BLOCK);
    let slow_path = path.clone();
    on_a_shard(move |mut driver| {
        let slow = SlowFile::new(slow_path);
        slow.start_open(&mut driver);
        driver.poll(Wait::No);
        let began = driver.env.now();
        drop(driver);
        assert!(crate::clock::now() - began < base::Nanos::from_secs(2), "it waited for the slow open");
        slow.let_go();
    });
    // what was opened for nobody is closed: its lock is gone
    on_a_shard(move |mut driver| {
        for _ in 0..1000 {
            match driver.open(&path, true) {
                Err(IoError::Busy) => std::thread::sleep(Duration::from_millis(2)),
                result => return drop(result.expect("opened")),
            }
        }
        panic!("still locked after two seconds");
    });
}
