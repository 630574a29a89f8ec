//! A block device: a loop device over a temporary file. Needs root.

use std::process::Command;
use std::time::Duration;

use base::{BLOCK_BYTES, SECTOR_BYTES};
use env::{DriveHandle, DriveInfo, DriveKind, IoError, Operation, Token};

use super::{Driver, TempDirectory, done, on_a_shard, pattern};

const BLOCK: u64 = BLOCK_BYTES as u64;
const SECTOR: u64 = SECTOR_BYTES as u64;

/// A loop device that goes away with this value.
pub struct LoopDevice(String);

impl LoopDevice {
    pub fn path(&self) -> &str {
        &self.0
    }

    /// Gives the file below another size, and has the device notice.
    fn resize(&self, file: &str, size_bytes: u64) {
        std::fs::OpenOptions::new()
            .write(true)
            .open(file)
            .and_then(|file| file.set_len(size_bytes))
            .expect("resized");
        let status = Command::new("losetup").args(["--set-capacity", &self.0]).status();
        assert!(status.expect("util-linux is there").success());
    }

    fn protect(&self, protect: bool) {
        let how = if protect { "--setro" } else { "--setrw" };
        let status = Command::new("blockdev").args([how, &self.0]).status();
        assert!(status.expect("util-linux is there").success());
    }

    pub fn over(path: &str) -> LoopDevice {
        LoopDevice::of_sectors(path, 512)
    }

    fn of_sectors(path: &str, bytes: u32) -> LoopDevice {
        let sectors = bytes.to_string();
        let output =
            Command::new("losetup").args(["--find", "--show", "--sector-size", &sectors, path]).output();
        let output = output.expect("util-linux is there");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "this test makes a loop device: run it as root ({said})");
        LoopDevice(String::from_utf8(output.stdout).expect("a path").trim().to_owned())
    }
}

/// Opens the device to write. Where other tests are about to start programs, their children have our descriptors
/// for a moment, and with them the kernel's exclusive claim.
fn claim(driver: &mut Driver<()>, device: &LoopDevice) -> (DriveHandle, DriveInfo) {
    for _ in 0..1000 {
        match driver.open(&device.0, true) {
            Err(IoError::Busy) => std::thread::sleep(Duration::from_millis(2)),
            result => return result.expect("opened"),
        }
    }
    panic!("still busy after two seconds");
}

impl Drop for LoopDevice {
    fn drop(&mut self) {
        // the next one to have this number would be protected, too
        let _ = Command::new("blockdev").args(["--setrw", &self.0]).status();
        let _ = Command::new("losetup").args(["--detach", &self.0]).status();
    }
}

#[test]
fn a_block_device_is_a_drive() {
    on_a_shard(|mut driver| {
        let directory = TempDirectory::new("block");
        let file = directory.file("disk", 8 << 20);
        let device = LoopDevice::over(&file);
        let (drive, info) = claim(&mut driver, &device);
        assert_eq!((info.kind, info.size_bytes), (DriveKind::BlockDevice, 8 << 20));
        // its node is on a file system in memory, which says nothing of where the device keeps what it is given
        let (opened, _) = crate::drive::open::open(&device.0, false).expect("opened");
        assert!(!opened.in_memory, "nothing would be flushed, and the shard would wait for each operation");
        // alone, also against ourselves
        assert_eq!(driver.open(&device.0, true).err(), Some(IoError::Busy));

        driver
            .write(drive, 4 * BLOCK, vec![pattern(4, 8).into_bytes(), pattern(12, 4).into_bytes()])
            .expect("written");
        let data = vec![pattern(100, 1).into_bytes()];
        done(driver.run(Operation::DriveWrite { drive, offset_bytes: 100 * BLOCK, data, durable: true }))
            .expect("written");
        assert!(driver.read(drive, 4 * BLOCK, 12).expect("read")[..] == pattern(4, 12)[..]);
        done(driver.run(Operation::DriveFlush { drive })).expect("flushed");
        let content = std::fs::read(&file).expect("readable");
        assert!(content[100 * BLOCK_BYTES..101 * BLOCK_BYTES] == pattern(100, 1)[..]);

        // the helper thread discards: the hole reaches the file below
        let tokens: Vec<Token> = (0..4)
            .map(|i| {
                let offset_bytes = (4 + i) * BLOCK;
                driver.start(Operation::DriveDiscard { drive, offset_bytes, length_bytes: BLOCK })
            })
            .collect();
        for token in tokens {
            done(driver.wait(token)).expect("discarded");
        }
        assert!(driver.read(drive, 4 * BLOCK, 4).expect("read").iter().all(|&byte| byte == 0));
        assert!(driver.read(drive, 8 * BLOCK, 8).expect("read")[..] == pattern(8, 8)[..]);

        assert_eq!(driver.read(drive, 8 << 20, 1).err(), Some(IoError::Media));
        driver.close(drive).expect("closed");
        let (drive, _) = claim(&mut driver, &device);
        driver.close(drive).expect("closed");
    });
}

#[test]
fn closing_waits_for_the_helper_thread() {
    on_a_shard(|mut driver| {
        let directory = TempDirectory::new("block-close");
        let device = LoopDevice::over(&directory.file("disk", 8 << 20));
        for _ in 0..20 {
            let (drive, _) = claim(&mut driver, &device);
            let discard =
                driver.start(Operation::DriveDiscard { drive, offset_bytes: 0, length_bytes: 8 << 20 });
            let close = driver.start(Operation::DriveClose { drive });
            done(driver.wait(close)).expect("closed");
            done(driver.wait(discard)).expect("discarded");
        }
    });
}

#[test]
fn a_mounted_device_is_busy() {
    on_a_shard(|mut driver| {
        let directory = TempDirectory::new("block-mounted");
        let device = LoopDevice::over(&directory.file("disk", 8 << 20));
        let claimed = {
            use std::os::unix::fs::OpenOptionsExt;
            // what mounting does: the kernel's exclusive claim
            let mut options = std::fs::OpenOptions::new();
            options.read(true).custom_flags(libc::O_EXCL).open(&device.0).expect("claimed")
        };
        assert_eq!(driver.open(&device.0, true).err(), Some(IoError::Busy));
        assert!(driver.open(&device.0, false).is_ok(), "it may be looked at");
        drop(claimed);
        claim(&mut driver, &device);
    });
}

/// What Linux does to a device that is removed: it has the size 0 from then on. Writes answer ENOSPC, reads nothing.
#[test]
fn a_device_that_is_removed_is_gone_and_not_full() {
    on_a_shard(|mut driver| {
        let directory = TempDirectory::new("block-removed");
        let file = directory.file("disk", 8 << 20);
        let device = LoopDevice::over(&file);
        let (drive, _) = claim(&mut driver, &device);
        driver.write(drive, 0, vec![pattern(0, 4).into_bytes()]).expect("written");
        device.resize(&file, 0);
        for durable in [false, true] {
            let data = vec![pattern(4, 4).into_bytes()];
            let write = Operation::DriveWrite { drive, offset_bytes: 4 * BLOCK, data, durable };
            assert_eq!(done(driver.run(write)).err(), Some(IoError::Gone));
        }
        assert_eq!(driver.read(drive, 0, 4).err(), Some(IoError::Gone));
        assert_eq!(driver.open(&device.0, false).err(), Some(IoError::Gone), "it is there by name only");
        driver.close(drive).expect("closed");
    });
}

#[test]
fn a_device_that_has_become_smaller_is_not_the_one_that_was_opened() {
    on_a_shard(|mut driver| {
        let directory = TempDirectory::new("block-shrunk");
        let file = directory.file("disk", 8 << 20);
        let device = LoopDevice::over(&file);
        let (drive, _) = claim(&mut driver, &device);
        device.resize(&file, 4 << 20);
        let data = vec![pattern(4, 4).into_bytes()];
        let beyond = Operation::DriveWrite { drive, offset_bytes: 6 << 20, data, durable: true };
        assert_eq!(done(driver.run(beyond)).err(), Some(IoError::Gone));
        assert_eq!(driver.read(drive, 6 << 20, 1).err(), Some(IoError::Gone));
        driver.write(drive, 1 << 20, vec![pattern(0, 4).into_bytes()]).expect("what is left can be used");
        driver.close(drive).expect("closed");
    });
}

/// The backup header of a GPT is in the last sectors, whatever the size of a page is.
#[test]
fn the_last_sectors_of_a_device_are_read_and_written() {
    on_a_shard(|mut driver| {
        let directory = TempDirectory::new("block-odd");
        let file = directory.file("disk", (8 << 20) + 5 * SECTOR);
        let device = LoopDevice::over(&file);
        let (drive, info) = claim(&mut driver, &device);
        assert_eq!((info.size_bytes, info.end_bytes), (8 << 20, (8 << 20) + 5 * SECTOR));
        super::drives::exercise_tail(&mut driver, drive, info.end_bytes, &file);
        // it grows while it is open, to another odd size and to an even one
        for size_bytes in [(9 << 20) + SECTOR, 10 << 20] {
            device.resize(&file, size_bytes);
            let last = vec![pattern(0, 1).into_bytes()];
            let offset_bytes = size_bytes - size_bytes % BLOCK;
            assert_eq!(driver.read(drive, offset_bytes - BLOCK, 1).err(), Some(IoError::Media), "not yet");
            assert_eq!(driver.measure(drive), Ok(size_bytes));
            driver.write(drive, offset_bytes - BLOCK, last).expect("written");
            assert!(driver.read(drive, offset_bytes - BLOCK, 1).expect("read")[..] == pattern(0, 1)[..]);
            if offset_bytes < size_bytes {
                super::drives::exercise_tail(&mut driver, drive, size_bytes, &file);
            }
        }
        device.resize(&file, 4 << 20);
        assert_eq!(driver.measure(drive), Ok(4 << 20));
        assert_eq!(driver.read(drive, 6 << 20, 1).err(), Some(IoError::Gone));
        device.resize(&file, 0);
        assert_eq!(driver.measure(drive), Err(IoError::Gone));
        driver.close(drive).expect("closed");
    });
}

/// A device that takes whole 4 KiB only ends with a whole one, whatever the file below it does.
#[test]
fn a_device_of_4_kib_sectors_has_no_tail() {
    on_a_shard(|mut driver| {
        let directory = TempDirectory::new("block-4k");
        let device = LoopDevice::of_sectors(&directory.file("disk", (8 << 20) + 5 * SECTOR), 4096);
        let (drive, info) = claim(&mut driver, &device);
        assert_eq!((info.size_bytes, info.end_bytes), (8 << 20, 8 << 20));
        assert_eq!(driver.measure(drive), Ok(8 << 20));
        driver.write(drive, (8 << 20) - BLOCK, vec![pattern(0, 1).into_bytes()]).expect("written");
        driver.close(drive).expect("closed");
    });
}

/// As a thin device that is full: the device is as large as ever, what is below it has no space.
#[test]
fn a_thin_device_that_is_full_is_full_and_not_gone() {
    on_a_shard(|mut driver| {
        let directory = TempDirectory::new("block-thin");
        let _mount = super::mounts::mount_privately("tmpfs", "none", "size=1m", directory.path());
        let device = LoopDevice::over(&directory.file("disk", 64 << 20));
        let (drive, _) = claim(&mut driver, &device);
        let mut full = None;
        for step in 0..8 {
            let data = vec![pattern(step, 512).into_bytes()];
            let offset_bytes = step * 512 * BLOCK;
            let write = Operation::DriveWrite { drive, offset_bytes, data, durable: true };
            full = full.or(done(driver.run(write)).err());
        }
        assert_eq!(full, Some(IoError::NoSpace));
        driver.read(drive, 0, 4).expect("it can still be read");
        driver.close(drive).expect("closed");
        drop(device);
    });
}

#[test]
fn a_write_protected_device_is_read_only() {
    on_a_shard(|mut driver| {
        let directory = TempDirectory::new("block-protected");
        let device = LoopDevice::over(&directory.file("disk", 8 << 20));
        let (drive, _) = claim(&mut driver, &device);
        device.protect(true);
        let data = vec![pattern(4, 4).into_bytes()];
        let write = Operation::DriveWrite { drive, offset_bytes: 0, data, durable: true };
        assert_eq!(done(driver.run(write)).err(), Some(IoError::ReadOnly));
        driver.close(drive).expect("closed");
        assert_eq!(driver.open(&device.0, true).err(), Some(IoError::ReadOnly));
        assert!(driver.open(&device.0, false).is_ok());
        device.protect(false);
    });
}
