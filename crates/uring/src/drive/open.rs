//! Opening a drive: the checks, the lock, direct I/O.
//!
//! A writable open is exclusive: `flock` protects against other Tangelo processes; `O_EXCL` on a block device protects
//! against mounts, md, dm and other users in the kernel. Opening creates, writes and truncates nothing.

use std::fs::{File, OpenOptions};
use std::io::{self, Seek, SeekFrom};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::{FileExt, FileTypeExt, MetadataExt, OpenOptionsExt};
use std::time::{Duration, Instant};

use base::{AlignedBuffer, BLOCK_BYTES, SECTOR_BYTES};
use env::{DriveIdentity, DriveInfo, DriveKind, IoError};
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

use super::{Drive, system};
use crate::errno::{Asked, drive_error};

/// `_IO(0x12, 104)`: the logical block size of a block device, as an int.
const BLKSSZGET: libc::Ioctl = 0x1268;

/// How long a program may look at a drive before it counts as one that uses it: udev looks at each device that somebody has closed after
/// writing to it.
const LOOKING_TIME: Duration = Duration::from_secs(5);
const AGAIN_AFTER: Duration = Duration::from_millis(10);

/// Locks the drive against other processes. Another exclusive lock is refused at once; a shared one, as udev's is, is waited for. May block.
fn lock(file: &File) -> rustix::io::Result<()> {
    let began = Instant::now();
    loop {
        match flock(file, FlockOperation::NonBlockingLockExclusive) {
            Err(Errno::AGAIN) if began.elapsed() < LOOKING_TIME => {}
            result => return result,
        }
        // two who look share a lock, two who write do not
        flock(file, FlockOperation::NonBlockingLockShared)?;
        flock(file, FlockOperation::Unlock)?;
        std::thread::sleep(AGAIN_AFTER);
    }
}

/// Opens the drive, with direct I/O where the file system knows it.
pub fn open(path: &str, writable: bool) -> Result<(Drive, DriveInfo), IoError> {
    // looked at before it is opened: to open a pipe would block, and devices may do anything
    let kind = kind_of(&std::fs::metadata(path).map_err(error_of)?)?;
    let mut file = open_direct(path, kind, writable).map_err(error_of)?;
    let metadata = file.metadata().map_err(error_of)?;
    if kind_of(&metadata)? != kind {
        return Err(IoError::NotADrive);
    }
    if writable {
        lock(&file).map_err(|error| drive_error(kind, Asked::Open, error.raw_os_error()))?;
    }
    // some drivers let a write-protected device be opened to write, and refuse the first write
    if writable && kind == DriveKind::BlockDevice && system::is_write_protected(metadata.rdev()) {
        return Err(IoError::ReadOnly);
    }
    // the end of a block device is its size, too
    let size_bytes = file.seek(SeekFrom::End(0)).map_err(error_of)?;
    if size_bytes == 0 && kind == DriveKind::BlockDevice {
        // it was removed, and is kept by those who have it open
        return Err(IoError::Gone);
    }
    if size_bytes < BLOCK_BYTES as u64 {
        return Err(IoError::NotADrive);
    }
    let sector_bytes = sector_bytes(&file, kind);
    let known = match kind {
        DriveKind::BlockDevice => system::describe(metadata.rdev()),
        _ => system::Description { volatile_cache: true, ..Default::default() },
    };
    let drive = Drive::new(OwnedFd::from(file), kind, size_bytes, sector_bytes, writable);
    let end_bytes = drive.end_bytes();
    let info = DriveInfo {
        path: path.to_owned(),
        kind,
        size_bytes: end_bytes - end_bytes % BLOCK_BYTES as u64,
        end_bytes,
        volatile_cache: known.volatile_cache,
        model: known.model,
        serial: known.serial,
        bay: known.bay,
        identity: match kind {
            DriveKind::BlockDevice => DriveIdentity::Device(metadata.rdev()),
            _ => DriveIdentity::File { file_system: metadata.dev(), inode: metadata.ino() },
        },
    };
    Ok((drive, info))
}

/// What direct I/O takes: 512 bytes or, where that is refused, 4 KiB.
fn sector_bytes(file: &File, kind: DriveKind) -> u32 {
    let mut logical: libc::c_int = 0;
    let takes_sectors = match kind {
        DriveKind::BlockDevice => {
            // SAFETY: the request writes an int, which lives across the call.
            let result = unsafe { libc::ioctl(file.as_raw_fd(), BLKSSZGET, &raw mut logical) };
            result == 0 && logical <= SECTOR_BYTES as libc::c_int
        }
        // a file system tells by refusing; what it cannot read it does not refuse
        _ => {
            let mut buffer = AlignedBuffer::zeroed(1);
            let read = file.read_at(&mut buffer[..SECTOR_BYTES], 0);
            read.map_or_else(|error| error.raw_os_error() != Some(libc::EINVAL), |_| true)
        }
    };
    (if takes_sectors { SECTOR_BYTES } else { BLOCK_BYTES }) as u32
}

fn kind_of(metadata: &std::fs::Metadata) -> Result<DriveKind, IoError> {
    let kind = metadata.file_type();
    match (kind.is_file(), kind.is_block_device()) {
        (true, _) => Ok(DriveKind::File),
        (_, true) => Ok(DriveKind::BlockDevice),
        _ => Err(IoError::NotADrive),
    }
}

/// Some file systems refuse `O_DIRECT` when opening: then through the page cache. Durable writes and flushes are
/// as durable there.
fn open_direct(path: &str, kind: DriveKind, writable: bool) -> io::Result<File> {
    let exclusive = if kind == DriveKind::BlockDevice && writable { libc::O_EXCL } else { 0 };
    let open = |flags: i32| OpenOptions::new().read(true).write(writable).custom_flags(flags).open(path);
    match open(libc::O_DIRECT | exclusive) {
        Err(error) if error.raw_os_error() == Some(libc::EINVAL) => open(exclusive),
        result => result,
    }
}

fn error_of(error: io::Error) -> IoError {
    // the kernel was not asked: the path has a zero byte, and so is no path
    error.raw_os_error().map_or(IoError::NotFound, |errno| drive_error(DriveKind::File, Asked::Open, errno))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_with_a_zero_byte_is_not_there() {
        let refused = open_direct("drive\0.img", DriveKind::File, false).expect_err("it is no path");
        assert_eq!(error_of(refused), IoError::NotFound);
    }
}
