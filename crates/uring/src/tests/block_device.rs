//! A block device: a loop device over a temporary file. Needs root.

use std::process::Command;
use std::time::Duration;

use base::BLOCK_BYTES;
use env::{DriveHandle, DriveInfo, DriveKind, IoError, Operation, Token};

use super::{Driver, TempDirectory, done, on_a_shard, pattern};

const BLOCK: u64 = BLOCK_BYTES as u64;

/// A loop device that goes away with this value.
pub struct LoopDevice(String);

impl LoopDevice {
    pub fn path(&self) -> &str {
        &self.0
    }

    pub fn over(path: &str) -> LoopDevice {
        let output =
            Command::new("losetup").args(["--find", "--show", path]).output().expect("util-linux is there");
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
