//! Drives: each is opened once and used by every shard of the process.
//!
//! What always holds:
//! - a drive's descriptor is closed only when nothing uses it any more: every operation increments a counter of
//!   its shard before it checks whether the drive is being closed ([`DriveUse`]);
//! - handles are never reused, so a stale handle returns [`IoError::Gone`] and never refers to another drive.

pub mod helper;
pub mod memory;
mod nvme;
pub mod open;
mod reservation;
mod scsi;
pub mod system;
pub mod transfer;

use std::os::fd::{BorrowedFd, FromRawFd, IntoRawFd, OwnedFd, RawFd};
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use base::limits::SHARDS_MAX;
use base::{BLOCK_BYTES, HashMap, SECTOR_BYTES, ShardId};
use env::{DriveHandle, DriveKind, IoError};
use rustix::fs::{FlockOperation, flock};

use crate::errno::{Asked, drive_error};

/// `_IOR(0x12, 114, size_t)`: the size of a block device in bytes.
const BLKGETSIZE64: libc::Ioctl = 0x8008_1272;

/// A counter on a cache line of its own: shards do not disturb each other.
#[repr(align(64))]
#[derive(Default)]
struct Counter(AtomicU32);

/// An open drive.
pub struct Drive {
    descriptor: AtomicI32,
    pub kind: DriveKind,
    /// Where its last whole sector ends, as far as is known.
    end_bytes: AtomicU64,
    /// The largest that this has been: who asks for what was there is told by the kernel that the drive is another now.
    largest_bytes: AtomicU64,
    /// It has ended inside a 4 KiB block: sectors of that block are read and written by themselves.
    has_had_tail: AtomicBool,
    /// What direct I/O takes.
    sector_bytes: u32,
    pub writable: bool,
    /// A file in memory: its operations wait for nothing.
    pub in_memory: bool,
    closing: AtomicBool,
    in_use: [Counter; SHARDS_MAX],
}

impl Drive {
    /// `sector_bytes`: what direct I/O takes; `size_bytes`: what the system says.
    pub fn new(
        descriptor: OwnedFd,
        kind: DriveKind,
        size_bytes: u64,
        sector_bytes: u32,
        writable: bool,
    ) -> Drive {
        let end_bytes = size_bytes - size_bytes % u64::from(sector_bytes);
        // a block device's node stands on devtmpfs, which says of itself that it is a tmpfs; the device is elsewhere
        let in_memory = kind == DriveKind::File
            && rustix::fs::fstatfs(&descriptor).is_ok_and(|known| memory::is_in_memory(known.f_type as u64));
        Drive {
            descriptor: AtomicI32::new(descriptor.into_raw_fd()),
            kind,
            end_bytes: AtomicU64::new(end_bytes),
            largest_bytes: AtomicU64::new(end_bytes),
            has_had_tail: AtomicBool::new(has_tail(end_bytes)),
            sector_bytes,
            writable,
            in_memory,
            closing: AtomicBool::new(false),
            in_use: Default::default(),
        }
    }

    /// Where the drive ends, as far as is known.
    pub fn end_bytes(&self) -> u64 {
        self.end_bytes.load(Ordering::Relaxed)
    }

    /// The part of a range that the drive has: all of it, or, of a range that ends with the drive's last 4 KiB block, up
    /// to the drive's end. `None`: the drive does not reach so far.
    pub fn part_within(&self, offset_bytes: u64, length_bytes: u64) -> Option<u64> {
        let (asked, end) = (offset_bytes.checked_add(length_bytes)?, self.end_bytes());
        if asked > end && offset_bytes <= end && asked == end.next_multiple_of(BLOCK_BYTES as u64) {
            return Some(end - offset_bytes);
        }
        (asked <= self.largest_bytes.load(Ordering::Relaxed)).then_some(length_bytes)
    }

    /// Whether direct I/O of this length is asked for on purpose: whole blocks, or sectors where the drive has ended with
    /// some.
    pub fn takes_length(&self, length_bytes: u64) -> bool {
        let unit = if self.has_had_tail.load(Ordering::Relaxed) { SECTOR_BYTES } else { BLOCK_BYTES };
        length_bytes.is_multiple_of(unit as u64)
    }

    /// Looks how large the drive is now, and lets it be used up to there. May block.
    pub fn measure(&self) -> Result<u64, IoError> {
        let size_bytes = match self.kind {
            DriveKind::BlockDevice => self.device_bytes().ok_or(IoError::Gone)?,
            _ => {
                // SAFETY: whoever asks has a hold on the descriptor.
                let descriptor = unsafe { BorrowedFd::borrow_raw(self.descriptor.load(Ordering::Relaxed)) };
                let known = rustix::fs::fstat(descriptor);
                let known = known.map_err(|e| drive_error(self.kind, Asked::Open, e.raw_os_error()))?;
                u64::try_from(known.st_size).unwrap_or(0)
            }
        };
        if size_bytes == 0 && self.kind == DriveKind::BlockDevice {
            return Err(IoError::Gone);
        }
        let end_bytes = size_bytes - size_bytes % u64::from(self.sector_bytes);
        // what is refused because of its length is known to be possible before it is asked for
        self.has_had_tail.fetch_or(has_tail(end_bytes), Ordering::SeqCst);
        self.largest_bytes.fetch_max(end_bytes, Ordering::SeqCst);
        self.end_bytes.store(end_bytes, Ordering::SeqCst);
        Ok(end_bytes)
    }

    /// The size of a block device, as the kernel has it.
    fn device_bytes(&self) -> Option<u64> {
        let mut size_bytes: u64 = 0;
        let descriptor = self.descriptor.load(Ordering::Relaxed);
        // SAFETY: the request writes a u64, which lives across the call; whoever asks has a hold on the descriptor.
        let result = unsafe { libc::ioctl(descriptor, BLKGETSIZE64, &raw mut size_bytes) };
        (result == 0).then_some(size_bytes)
    }

    /// Whether the drive, as it is now, reaches as far as `end_bytes`. Linux gives a block device that was removed the size
    /// 0, and answers what is beyond the end of one with ENOSPC, or with nothing read.
    pub fn is_there(&self, end_bytes: u64) -> bool {
        let descriptor = self.descriptor.load(Ordering::Relaxed);
        if self.kind != DriveKind::BlockDevice || descriptor < 0 {
            return true;
        }
        self.device_bytes().is_some_and(|size_bytes| size_bytes >= end_bytes)
    }

    /// Lets no further operation begin.
    fn begin_close(&self) {
        self.closing.store(true, Ordering::SeqCst);
    }

    /// Whether it is being closed and no operation is in flight on any shard: none will be again.
    pub fn is_unused(&self) -> bool {
        assert!(self.closing.load(Ordering::SeqCst), "closed without being told so");
        self.in_use.iter().all(|counter| counter.0.load(Ordering::SeqCst) == 0)
    }

    /// Closes the descriptor of a drive that is unused, and thereby ends the lock. May block.
    pub fn close(&self) {
        assert!(self.is_unused(), "closed while it is in use");
        self.close_descriptor();
    }

    fn close_descriptor(&self) {
        let descriptor = self.descriptor.swap(-1, Ordering::SeqCst);
        if descriptor >= 0 {
            // SAFETY: the descriptor came from an `OwnedFd` and was taken out of the only place that has it.
            let descriptor = unsafe { OwnedFd::from_raw_fd(descriptor) };
            // Not left to closing: a child process between fork and exec has the file open, too.
            let _ = flock(&descriptor, FlockOperation::Unlock);
        }
    }
}

/// Whether a drive that ends there ends inside a 4 KiB block.
fn has_tail(end_bytes: u64) -> bool {
    !end_bytes.is_multiple_of(BLOCK_BYTES as u64)
}

impl Drop for Drive {
    fn drop(&mut self) {
        self.close_descriptor();
    }
}

/// The drives of the process, by handle.
#[derive(Default)]
pub struct Drives {
    table: Mutex<Table>,
}

#[derive(Default)]
struct Table {
    drives: HashMap<DriveHandle, Arc<Drive>>,
    opened: u32,
}

impl Drives {
    pub fn add(&self, drive: Arc<Drive>) -> Result<DriveHandle, IoError> {
        let mut table = self.table.lock().expect("no panic under the lock");
        let handle = DriveHandle(table.opened);
        table.opened = table.opened.checked_add(1).ok_or(IoError::TooMany)?;
        table.drives.insert(handle, drive);
        Ok(handle)
    }

    fn find(&self, handle: DriveHandle) -> Option<Arc<Drive>> {
        self.table.lock().expect("no panic under the lock").drives.get(&handle).cloned()
    }

    /// Takes the drive out. It may be closed as soon as it is unused ([`Drive::is_unused`]).
    pub fn remove(&self, handle: DriveHandle) -> Result<Arc<Drive>, IoError> {
        let drive = self.table.lock().expect("no panic under the lock").drives.remove(&handle);
        let drive = drive.ok_or(IoError::Gone)?;
        drive.begin_close();
        Ok(drive)
    }
}

/// What one shard knows of the drives: those it has used, found without a lock.
pub struct ShardDrives {
    shard: ShardId,
    all: Arc<Drives>,
    known: HashMap<DriveHandle, Rc<ShardDrive>>,
}

struct ShardDrive {
    drive: Arc<Drive>,
    shard: ShardId,
}

impl ShardDrives {
    pub fn new(shard: ShardId, all: Arc<Drives>) -> ShardDrives {
        ShardDrives { shard, all, known: HashMap::default() }
    }

    /// Counts an operation in. [`IoError::Gone`] where the handle is not valid (any more).
    pub fn begin(&mut self, handle: DriveHandle) -> Result<DriveUse, IoError> {
        let known = match self.known.get(&handle) {
            Some(known) => known.clone(),
            None => {
                // the moment to forget those that were closed, here or by another shard
                self.known.retain(|_, known| !known.drive.closing.load(Ordering::SeqCst));
                let drive = self.all.find(handle).ok_or(IoError::Gone)?;
                let known = Rc::new(ShardDrive { drive, shard: self.shard });
                self.known.insert(handle, known.clone());
                known
            }
        };
        DriveUse::begin(known)
    }
}

/// An operation's hold on a drive: its descriptor stays open until this is dropped.
pub struct DriveUse(Rc<ShardDrive>);

impl DriveUse {
    fn begin(known: Rc<ShardDrive>) -> Result<DriveUse, IoError> {
        // Counted in first, then looked: whoever closes marks first, then counts. One of the two sees the other.
        known.drive.in_use[known.shard.0 as usize].0.fetch_add(1, Ordering::SeqCst);
        let used = DriveUse(known);
        match used.0.drive.closing.load(Ordering::SeqCst) {
            false => Ok(used),
            true => Err(IoError::Gone),
        }
    }

    pub fn descriptor(&self) -> RawFd {
        self.0.drive.descriptor.load(Ordering::Relaxed)
    }

    pub fn borrow(&self) -> BorrowedFd<'_> {
        // SAFETY: the descriptor stays open for as long as this hold is there, which the borrow does not outlive.
        unsafe { BorrowedFd::borrow_raw(self.descriptor()) }
    }

    /// The same hold, for a helper thread.
    pub fn to_sendable(&self) -> SendableUse {
        let (drive, shard) = (self.0.drive.clone(), self.0.shard);
        drive.in_use[shard.0 as usize].0.fetch_add(1, Ordering::SeqCst);
        SendableUse { drive, shard }
    }
}

impl std::ops::Deref for DriveUse {
    type Target = Drive;
    fn deref(&self) -> &Drive {
        &self.0.drive
    }
}

impl Drop for DriveUse {
    fn drop(&mut self) {
        self.0.drive.in_use[self.0.shard.0 as usize].0.fetch_sub(1, Ordering::SeqCst);
    }
}

/// A hold on a drive that may go to another thread.
pub struct SendableUse {
    drive: Arc<Drive>,
    shard: ShardId,
}

impl SendableUse {
    /// Equal for holds on the same drive, different for holds on others.
    pub fn key(&self) -> usize {
        Arc::as_ptr(&self.drive).addr()
    }

    pub fn descriptor(&self) -> RawFd {
        self.drive.descriptor.load(Ordering::Relaxed)
    }

    pub fn measure(&self) -> Result<u64, IoError> {
        self.drive.measure()
    }

    pub fn kind(&self) -> DriveKind {
        self.drive.kind
    }
}

impl Drop for SendableUse {
    fn drop(&mut self) {
        self.drive.in_use[self.shard.0 as usize].0.fetch_sub(1, Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use super::*;

    fn some_drive() -> Arc<Drive> {
        let file = File::open("/dev/zero").expect("there is one everywhere");
        Arc::new(Drive::new(file.into(), DriveKind::File, 4096, 4096, false))
    }

    #[test]
    fn a_drive_closes_when_the_last_use_on_any_shard_has_ended() {
        let all = Arc::new(Drives::default());
        let handle = all.add(some_drive()).expect("room");
        let mut here = ShardDrives::new(ShardId(0), all.clone());
        let mut there = ShardDrives::new(ShardId(1), all.clone());
        let (used, also_used) = (here.begin(handle).expect("open"), there.begin(handle).expect("open"));
        let drive = all.remove(handle).expect("open");
        assert!(!drive.is_unused());
        assert_eq!(here.begin(handle).err(), Some(IoError::Gone));
        drop(used);
        let helper = also_used.to_sendable();
        drop(also_used);
        assert!(!drive.is_unused(), "a helper still works on it");
        assert!(helper.descriptor() >= 0);
        drop(helper);
        assert!(drive.is_unused());
        drive.close();
        assert_eq!(drive.descriptor.load(Ordering::SeqCst), -1);
        assert_eq!(all.remove(handle).err(), Some(IoError::Gone));
    }

    #[test]
    fn handles_are_not_reused_and_closed_drives_are_forgotten() {
        let all = Arc::new(Drives::default());
        let mut shard = ShardDrives::new(ShardId(0), all.clone());
        let first = all.add(some_drive()).expect("room");
        drop(shard.begin(first).expect("open"));
        all.remove(first).expect("open").close();
        let second = all.add(some_drive()).expect("room");
        assert_ne!(first, second);
        drop(shard.begin(second).expect("open"));
        assert_eq!(shard.known.len(), 1);
    }
}
