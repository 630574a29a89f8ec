//! Files as drives.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use base::{AlignedBuffer, BLOCK_BYTES};
use bytes::Bytes;
use env::{DriveHandle, DriveKind, IoError, Operation, Outcome, Token};

use super::{Driver, TempDirectory, done, on_a_shard, on_shards, pattern};

const BLOCK: u64 = BLOCK_BYTES as u64;

/// Every operation on one drive of 64 MiB.
fn exercise(driver: &mut Driver<()>, path: &str) {
    let (drive, info) = driver.open(path, true).expect("opened");
    assert_eq!((info.kind, info.size_bytes, info.volatile_cache), (DriveKind::File, 64 << 20, true));
    assert_eq!((info.path.as_str(), info.model.as_str(), info.serial.as_str()), (path, "", ""));

    // one piece; several; more than the kernel takes at once; none
    let many = pattern(1000, 3000).into_bytes();
    let pieces: Vec<Bytes> = (0..3000).map(|i| many.slice(i * BLOCK_BYTES..(i + 1) * BLOCK_BYTES)).collect();
    for durable in [false, true] {
        let mut write = |offset_bytes, data| {
            done(driver.run(Operation::DriveWrite { drive, offset_bytes, data, durable })).expect("written");
        };
        write(0, vec![pattern(0, 1).into_bytes()]);
        write(BLOCK, vec![pattern(1, 2).into_bytes(), Bytes::new(), pattern(3, 5).into_bytes()]);
        write(1000 * BLOCK, pieces.clone());
        write(0, vec![]);
        assert!(driver.read(drive, 0, 8).expect("read")[..] == pattern(0, 8)[..]);
        assert!(driver.read(drive, 1000 * BLOCK, 3000).expect("read")[..] == pattern(1000, 3000)[..]);
        assert!(driver.read(drive, 8 * BLOCK, 2).expect("read").iter().all(|&byte| byte == 0));
        done(driver.run(Operation::DriveFlush { drive })).expect("flushed");
        let discard =
            Operation::DriveDiscard { drive, offset_bytes: 1000 * BLOCK, length_bytes: 3000 * BLOCK };
        done(driver.run(discard)).expect("discarded");
        let after = driver.read(drive, 999 * BLOCK, 3).expect("read");
        assert!(after.iter().all(|&byte| byte == 0), "a file's hole reads as zeros");
    }
    assert_eq!(driver.read(drive, info.size_bytes, 0).map(|buffer| buffer.len()), Ok(0));

    driver.close(drive).expect("closed");
    assert_eq!(driver.close(drive), Err(IoError::Gone));
    assert_eq!(driver.read(drive, 0, 1).err(), Some(IoError::Gone));
    assert_eq!(driver.write(drive, 0, vec![]), Err(IoError::Gone));
    assert_eq!(done(driver.run(Operation::DriveFlush { drive })), Err(IoError::Gone));
}

#[test]
fn files_do_everything_a_drive_does() {
    on_a_shard(|mut driver| {
        for parent in [std::env::temp_dir(), "/dev/shm".into()] {
            let directory = TempDirectory::below(&parent, "drive");
            exercise(&mut driver, &directory.file("drive", 64 << 20));
        }
    });
}

/// Reads and writes the last 4 KiB block of a drive that ends inside it. `file`: what is below.
pub fn exercise_tail(driver: &mut Driver<()>, drive: DriveHandle, end_bytes: u64, file: &str) {
    let (start, tail) = (end_bytes - end_bytes % BLOCK, (end_bytes % BLOCK) as usize);
    assert!(tail > 0, "it has none");
    let data = pattern(start / BLOCK - 1, 2).into_bytes();
    let piece = data.slice(..BLOCK_BYTES + tail);
    for (at, piece, durable) in
        [(start, piece.slice(BLOCK_BYTES..), true), (start - BLOCK, piece.clone(), false)]
    {
        let write = Operation::DriveWrite { drive, offset_bytes: at, data: vec![piece], durable };
        done(driver.run(write)).expect("written");
        let read = driver.read(drive, start, 1).expect("read");
        assert!(read[..tail] == data[BLOCK_BYTES..BLOCK_BYTES + tail]);
    }
    let read = driver.read(drive, start - BLOCK, 2).expect("read");
    assert!(read[..BLOCK_BYTES + tail] == piece[..]);
    done(driver.run(Operation::DriveFlush { drive })).expect("flushed");
    let content = std::fs::read(file).expect("readable");
    assert_eq!(content.len() as u64, end_bytes, "nothing is written behind the end");
    assert!(content[(start - BLOCK) as usize..] == piece[..]);
    // behind the end is nothing
    assert_eq!(driver.read(drive, start, 2).err(), Some(IoError::Media));
    assert_eq!(driver.read(drive, start + BLOCK, 1).err(), Some(IoError::Media));
    assert_eq!(driver.write(drive, start, vec![pattern(0, 1).into_bytes()]), Err(IoError::Media));
}

#[test]
fn files_that_end_with_some_sectors() {
    on_a_shard(|mut driver| {
        for parent in [std::env::temp_dir(), "/dev/shm".into()] {
            let directory = TempDirectory::below(&parent, "odd");
            let path = directory.file("drive", 16 * BLOCK + 3 * 512);
            let (drive, info) = driver.open(&path, true).expect("opened");
            assert_eq!((info.size_bytes, info.end_bytes), (16 * BLOCK, 16 * BLOCK + 3 * 512));
            exercise_tail(&mut driver, drive, info.end_bytes, &path);
            let grow = |bytes| {
                let file = std::fs::OpenOptions::new().write(true).open(&path);
                file.and_then(|file| file.set_len(bytes)).expect("resized");
            };
            grow(32 * BLOCK + 512);
            assert_eq!(driver.read(drive, 31 * BLOCK, 1).err(), Some(IoError::Media), "not yet");
            assert_eq!(driver.measure(drive), Ok(32 * BLOCK + 512));
            exercise_tail(&mut driver, drive, 32 * BLOCK + 512, &path);
            grow(8 * BLOCK + 100);
            assert_eq!(driver.measure(drive), Ok(8 * BLOCK), "whole sectors only");
            assert!(driver.read(drive, 7 * BLOCK, 1).is_ok());
            grow(8 * BLOCK + 512);
            assert_eq!(driver.measure(drive), Ok(8 * BLOCK + 512));
            assert!(driver.read(drive, 8 * BLOCK, 1).is_ok(), "the tail of one that got smaller");
            assert_eq!(driver.read(drive, 12 * BLOCK, 1).err(), Some(IoError::Media));
            driver.close(drive).expect("closed");
            assert_eq!(driver.measure(drive), Err(IoError::Gone));
        }
    });
}

#[test]
fn what_was_written_is_in_the_file() {
    on_a_shard(|mut driver| {
        let directory = TempDirectory::new("content");
        let path = directory.file("drive", 16 * BLOCK + 100);
        let (drive, info) = driver.open(&path, true).expect("opened");
        assert_eq!(info.size_bytes, 16 * BLOCK, "rounded down to whole blocks");
        let data = vec![pattern(7, 2).into_bytes()];
        done(driver.run(Operation::DriveWrite { drive, offset_bytes: 3 * BLOCK, data, durable: true }))
            .expect("written");
        let content = std::fs::read(&path).expect("readable");
        assert_eq!(content.len(), 16 * BLOCK_BYTES + 100);
        assert!(content[3 * BLOCK_BYTES..5 * BLOCK_BYTES] == pattern(7, 2)[..]);
        assert!(content[..3 * BLOCK_BYTES].iter().chain(&content[5 * BLOCK_BYTES..]).all(|&byte| byte == 0));
    });
}

#[test]
fn what_is_not_a_drive_is_not_opened() {
    on_a_shard(|mut driver| {
        let directory = TempDirectory::new("not-a-drive");
        let in_directory = |name: &str| directory.path().join(name).to_str().expect("our name").to_owned();
        let pipe = in_directory("pipe");
        let made = Command::new("mkfifo").arg(&pipe).status().expect("coreutils are there");
        assert!(made.success());
        let cases = [
            (in_directory("missing"), IoError::NotFound),
            (in_directory("missing/below"), IoError::NotFound),
            (directory.file("file", 4095) + "/below", IoError::NotFound),
            (in_directory(""), IoError::NotADrive),
            ("/dev/null".to_owned(), IoError::NotADrive),
            (pipe, IoError::NotADrive),
            (directory.file("small", 4095), IoError::NotADrive),
            (directory.file("empty", 0), IoError::NotADrive),
        ];
        for (path, expected) in cases {
            for writable in [false, true] {
                assert_eq!(driver.open(&path, writable).err(), Some(expected), "{path}");
            }
        }
    });
}

#[test]
fn ranges_and_rights_are_checked_before_the_kernel_sees_them() {
    on_a_shard(|mut driver| {
        let directory = TempDirectory::new("ranges");
        let path = directory.file("drive", 8 * BLOCK);
        let (drive, _) = driver.open(&path, true).expect("opened");
        for offset in [7 * BLOCK, 8 * BLOCK, u64::MAX - BLOCK + 1] {
            assert_eq!(driver.read(drive, offset, 2).err(), Some(IoError::Media), "{offset}");
            let data = vec![pattern(0, 2).into_bytes()];
            assert_eq!(driver.write(drive, offset, data).err(), Some(IoError::Media), "{offset}");
            let discard = Operation::DriveDiscard { drive, offset_bytes: offset, length_bytes: 2 * BLOCK };
            assert_eq!(done(driver.run(discard)), Err(IoError::Media), "{offset}");
        }
        assert_eq!(std::fs::metadata(&path).expect("there").len(), 8 * BLOCK, "nothing grew");
        let (readable, _) = driver.open(&path, false).expect("to read it needs no lock");
        assert!(driver.read(readable, 0, 8).is_ok());
        assert_eq!(driver.write(readable, 0, vec![pattern(0, 1).into_bytes()]), Err(IoError::ReadOnly));
    });
}

#[test]
fn a_file_that_was_cut_short_is_a_media_error() {
    on_a_shard(|mut driver| {
        let directory = TempDirectory::new("short");
        let path = directory.file("drive", 8 * BLOCK);
        let (drive, _) = driver.open(&path, true).expect("opened");
        let file = std::fs::OpenOptions::new().write(true).open(&path).expect("there");
        for length in [4 * BLOCK, 4 * BLOCK - 1000, 100, 0] {
            file.set_len(length).expect("cut");
            assert_eq!(driver.read(drive, 0, 8).err(), Some(IoError::Media), "{length}");
        }
        file.set_len(4 * BLOCK - 1000).expect("grown");
        assert!(driver.read(drive, 0, 3).is_ok());
    });
}

#[test]
fn a_writable_open_excludes_every_other() {
    on_a_shard(|mut driver| {
        let directory = TempDirectory::new("lock");
        let path = directory.file("drive", 8 * BLOCK);
        // another process holds it
        let mut holder = Command::new("flock")
            .args(["--exclusive", &path, "sh", "-c", "echo held; cat"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("util-linux is there");
        let mut line = String::new();
        BufReader::new(holder.stdout.take().expect("piped")).read_line(&mut line).expect("it says so");
        assert_eq!(line, "held\n");
        assert_eq!(driver.open(&path, true).err(), Some(IoError::Busy));
        drop(holder.stdin.take());
        assert!(holder.wait().expect("it ends").success());
        // now it is ours, and nobody else's, in this process or in another
        let (drive, _) = driver.open(&path, true).expect("free again");
        assert_eq!(driver.open(&path, true).err(), Some(IoError::Busy));
        let others_may = || {
            let status = Command::new("flock").args(["--exclusive", "--nonblock", &path, "true"]).status();
            status.expect("util-linux is there").success()
        };
        assert!(!others_may());
        driver.close(drive).expect("closed");
        assert!(others_may());
    });
}

#[test]
fn many_operations_in_flight_end_once_each() {
    on_a_shard(|mut driver| {
        let directory = TempDirectory::new("many");
        let count = 4096;
        let (drive, _) = driver.open(&directory.file("drive", count * BLOCK), true).expect("opened");
        let tokens: Vec<Token> = (0..count)
            .map(|block| {
                let data = vec![pattern(block, 1).into_bytes()];
                driver.start(Operation::DriveWrite {
                    drive,
                    offset_bytes: block * BLOCK,
                    data,
                    durable: false,
                })
            })
            .collect();
        for token in tokens {
            done(driver.wait(token)).expect("written");
        }
        let tokens: Vec<(u64, Token)> = (0..count)
            .map(|block| {
                let (offset_bytes, buffer) = (block * BLOCK, AlignedBuffer::zeroed(1));
                (block, driver.start(Operation::DriveRead { drive, offset_bytes, buffer }))
            })
            .collect();
        for (block, token) in tokens {
            let Outcome::DriveRead(buffer, Ok(())) = driver.wait(token) else { panic!("read") };
            assert!(buffer[..] == pattern(block, 1)[..]);
        }
    });
}

#[test]
fn closing_a_drive_lets_operations_in_flight_complete_first() {
    on_a_shard(|mut driver| {
        let directory = TempDirectory::new("close");
        let path = directory.file("drive", 64 << 20);
        let (drive, _) = driver.open(&path, true).expect("opened");
        let write = |driver: &mut Driver<()>, block: u64| {
            let data = vec![pattern(block, 256).into_bytes()];
            driver.start(Operation::DriveWrite { drive, offset_bytes: block * BLOCK, data, durable: true })
        };
        let mut tokens: Vec<Token> = (0..16).map(|i| write(&mut driver, i * 256)).collect();
        let close = driver.start(Operation::DriveClose { drive });
        let late = write(&mut driver, 0);
        done(driver.wait(close)).expect("closed");
        let ended = driver.ended.clone();
        tokens.push(late);
        let place = |token: Token| ended.iter().position(|&ended| ended == token).expect("ended before");
        for token in &tokens {
            assert!(place(*token) < place(close));
        }
        for token in &tokens[..16] {
            done(driver.wait(*token)).expect("written");
        }
        assert_eq!(done(driver.wait(late)), Err(IoError::Gone));
        driver.open(&path, true).expect("the lock is gone with the descriptor");
    });
}

#[test]
fn a_handle_is_valid_on_every_shard() {
    on_shards::<DriveHandle, _>(2, |mut driver| {
        use base::ShardId;
        use env::Env;
        let directory = TempDirectory::new("shared");
        if driver.env.shard() == ShardId(1) {
            let drive = driver.message();
            driver.write(drive, 5 * BLOCK, vec![pattern(5, 1).into_bytes()]).expect("written");
            driver.env.send(ShardId(0), drive).expect("room");
            // until the other one has closed it
            driver.message();
            assert_eq!(driver.read(drive, 0, 1).err(), Some(IoError::Gone));
            return;
        }
        let (drive, _) = driver.open(&directory.file("drive", 8 * BLOCK), true).expect("opened");
        driver.env.send(ShardId(1), drive).expect("room");
        assert_eq!(driver.message(), drive);
        assert!(driver.read(drive, 5 * BLOCK, 1).expect("read")[..] == pattern(5, 1)[..]);
        driver.close(drive).expect("closed");
        driver.env.send(ShardId(1), drive).expect("room");
    });
}
