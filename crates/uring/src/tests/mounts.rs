//! Special file systems, mounted in a mount namespace of the test. They disappear with its thread. Need root.

use std::path::Path;
use std::process::Command;

use base::BLOCK_BYTES;
use env::{IoError, Operation};
use rustix::mount::{MountFlags, MountPropagationFlags, UnmountFlags, mount, mount_change, unmount};
use rustix::thread::{UnshareFlags, unshare_unsafe};

use super::block_device::LoopDevice;
use super::{Driver, TempDirectory, done, on_a_shard, pattern};

const BLOCK: u64 = BLOCK_BYTES as u64;

/// A mounted file system that goes away with this value, though it may be in use.
pub(super) struct Mount<'a>(&'a Path);

impl Drop for Mount<'_> {
    fn drop(&mut self) {
        let _ = unmount(self.0, UnmountFlags::DETACH);
    }
}

/// Mounts a file system for this thread alone.
pub(super) fn mount_privately<'a>(kind: &str, source: &str, options: &str, at: &'a Path) -> Mount<'a> {
    // SAFETY: the thread's directories and mounts become its own; no descriptor table is unshared.
    unsafe { unshare_unsafe(UnshareFlags::FS | UnshareFlags::NEWNS) }
        .expect("this test mounts a file system: run it as root");
    mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC).expect("private mounts");
    let options = std::ffi::CString::new(options).expect("no zero in it");
    mount(source, at, kind, MountFlags::empty(), Some(options.as_c_str())).expect("mounted");
    Mount(at)
}

#[test]
fn a_full_file_system_in_memory_is_no_space() {
    on_a_shard(|mut driver| {
        let directory = TempDirectory::new("full");
        let _mount = mount_privately("tmpfs", "none", "size=1m", directory.path());
        fill(&mut driver, &directory.file("drive", 16 << 20));
    });
}

#[test]
fn a_full_file_system_on_a_disk_is_no_space() {
    on_a_shard(|mut driver| {
        let (disk, directory) = (TempDirectory::new("full-disk"), TempDirectory::new("full"));
        let device = LoopDevice::over(&disk.file("disk", 6 << 20));
        let made = Command::new("mkfs.ext4")
            .args(["-q", "-b", "4096", "-O", "^has_journal", device.path()])
            .status();
        assert!(made.expect("e2fsprogs are there").success());
        let _mount = mount_privately("ext4", device.path(), "", directory.path());
        fill(&mut driver, &directory.file("drive", 16 << 20));
    });
}

/// Writes to a drive that is larger than the file system below (allowed, until it is written) until that is full.
fn fill(driver: &mut Driver<()>, path: &str) {
    let (drive, _) = driver.open(path, true).expect("opened");
    let mut written = 0;
    let error = loop {
        let data = vec![pattern(written, 16).into_bytes()];
        let write = Operation::DriveWrite { drive, offset_bytes: written * BLOCK, data, durable: true };
        match done(driver.run(write)) {
            Ok(()) => written += 16,
            Err(error) => break error,
        }
        assert!(written <= 2048, "8 MiB do not fit");
    };
    assert_eq!(error, IoError::NoSpace);
    assert!(written >= 128, "only {written} blocks were written");
    let content = driver.read(drive, 0, written as usize).expect("read");
    assert!(content[..] == pattern(0, written as usize)[..]);
    // a write that fits in part fails as a whole
    let data = vec![pattern(0, 512).into_bytes()];
    assert_eq!(driver.write(drive, 8 << 20, data), Err(IoError::NoSpace));
    // giving some back makes room
    let discard = Operation::DriveDiscard { drive, offset_bytes: 0, length_bytes: written * BLOCK };
    done(driver.run(discard)).expect("discarded");
    driver.write(drive, 0, vec![pattern(9, 16).into_bytes()]).expect("room again");
}

#[test]
fn a_file_system_without_direct_io_serves_as_well() {
    on_a_shard(|mut driver: Driver<()>| {
        let directory = TempDirectory::new("buffered");
        let _mount = mount_privately("ramfs", "none", "", directory.path());
        let path = directory.file("drive", 1 << 20);
        let direct = {
            use std::os::unix::fs::OpenOptionsExt;
            std::fs::OpenOptions::new().read(true).custom_flags(libc::O_DIRECT).open(&path)
        };
        assert_eq!(direct.expect_err("ramfs knows no O_DIRECT").raw_os_error(), Some(libc::EINVAL));
        let (drive, _) = driver.open(&path, true).expect("opened");
        let data = vec![pattern(0, 3).into_bytes()];
        done(driver.run(Operation::DriveWrite { drive, offset_bytes: BLOCK, data, durable: true }))
            .expect("written");
        assert!(driver.read(drive, BLOCK, 3).expect("read")[..] == pattern(0, 3)[..]);
        done(driver.run(Operation::DriveFlush { drive })).expect("flushed");
        // it cannot punch holes either: a hint is a hint
        let discard = Operation::DriveDiscard { drive, offset_bytes: 0, length_bytes: BLOCK };
        done(driver.run(discard)).expect("ignored");
    });
}
