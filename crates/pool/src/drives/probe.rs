//! Finds what is on a drive without changing it: a Tangelo label, foreign data, or nothing.

use base::{AlignedBuffer, BLOCK_BYTES, Nanos};
use env::{DriveHandle, DriveInfo, IoError};
use task::Io;

use crate::drives::labels::read_label;
use crate::format::label::Label;
use crate::format::{Features, FormatError};

/// The content of a drive.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Content {
    /// Zeros at the beginning, where every known format has its mark.
    Blank,
    /// Foreign data, with a description of it.
    Foreign(String),
    /// A drive of a pool.
    Member(Label),
    /// A drive of a pool of a newer program.
    FutureVersion(u16),
    /// A drive of a pool that uses what this program does not know.
    UnknownFeatures(Features),
    /// A former drive of a pool; neither label can be read.
    Damaged,
    Unreadable(IoError),
}

/// Each slot of the record of a drive with a twin on another head begins so.
pub(crate) const TWIN_RECORD: &[u8] = b"TNGMIRR\x01";

/// The record of a drive that two heads see begins so.
pub(crate) const SHARED_RECORD: &[u8] = b"TNGSHAR\x01";

/// A known mark: its offset, and what it means.
const MARKS: &[(usize, &[u8], &str)] = &[
    (0, b"LUKS\xba\xbe", "LUKS-encrypted data"),
    (0, b"XFSB", "an XFS file system"),
    (0, b"hsqs", "a squashfs file system"),
    (0, b"QFI\xfb", "a QEMU qcow2 image"),
    (0x218, b"LVM2 001", "an LVM physical volume"),
    (0x200, b"EFI PART", "a GPT partition table"),
    (0x1000, b"EFI PART", "a GPT partition table"),
    (0x438, b"\x53\xef", "an ext2/3/4 file system"),
    (0x1000, b"\xfc\x4e\x2b\xa9", "a Linux RAID (md) member"),
    (0, b"\xfc\x4e\x2b\xa9", "a Linux RAID (md) member"),
    (0, TWIN_RECORD, "what belongs to a Tangelo array of two heads"),
    (0x2000, TWIN_RECORD, "what belongs to a Tangelo array of two heads"),
    (0, SHARED_RECORD, "what belongs to a Tangelo array of two heads"),
    (0x10040, b"_BHRfS_M", "a btrfs file system"),
    (0x10034, b"ReIsEr", "a ReiserFS file system"),
    (0xff6, b"SWAPSPACE2", "Linux swap space"),
    (0x8001, b"CD001", "an ISO 9660 file system"),
    (0x03, b"NTFS    ", "an NTFS file system"),
    (0x36, b"FAT1", "a FAT file system"),
    (0x52, b"FAT32", "a FAT32 file system"),
    (0x400, b"\x10\x20\xf5\xf2", "an F2FS file system"),
    (0, b"bluestore block device", "a Ceph BlueStore device"),
    (0x1fe, b"\x55\xaa", "a partition table or boot sector"),
];
/// ZFS writes its uberblocks from 128 KiB on.
const ZFS_UBERBLOCKS: std::ops::Range<usize> = (128 << 10)..(256 << 10);
const ZFS_MAGIC: u64 = 0x00ba_b10c;
/// How much of the drive's beginning is read.
pub(crate) const LOOK_BYTES: usize = 256 << 10;

/// How long a start waits for a drive that another process uses. Operations of a killed process keep its drives locked
/// until the drives have answered; the kernel gives a disk that does not answer 30 s.
pub const BUSY_PATIENCE: Nanos = Nanos::from_secs(35);
const BUSY_RETRY: Nanos = Nanos::from_millis(10);

/// Opens a drive for writing. If it is in use, this waits until the given time, because the other process may have just
/// been killed.
pub async fn open_when_free(io: &Io, path: &str, until: Nanos) -> Result<(DriveHandle, DriveInfo), IoError> {
    loop {
        match io.drive_open(path, true).await {
            Err(IoError::Busy) if io.now() < until => io.sleep(BUSY_RETRY).await,
            result => return result,
        }
    }
}

/// Finds what is on a drive.
pub async fn probe(io: &Io, drive: DriveHandle) -> Content {
    match read_label(io, drive).await {
        Ok((_, label)) => return Content::Member(label),
        Err(FormatError::FutureVersion(version)) => return Content::FutureVersion(version),
        Err(FormatError::UnknownFeatures(features)) => return Content::UnknownFeatures(features),
        Err(FormatError::Damaged | FormatError::Foreign) => {}
    }
    let (start, result) = io.drive_read(drive, 0, AlignedBuffer::zeroed(LOOK_BYTES / BLOCK_BYTES)).await;
    match result {
        Ok(()) => recognise(&start),
        Err(error) => Content::Unreadable(error),
    }
}

fn recognise(start: &[u8]) -> Content {
    let has = |offset: usize, mark: &[u8]| start.get(offset..offset + mark.len()) == Some(mark);
    if let Some((.., what)) = MARKS.iter().find(|(offset, mark, _)| has(*offset, mark)) {
        return Content::Foreign((*what).to_owned());
    }
    let uberblock = |block: &[u8]| {
        block.first_chunk().is_some_and(|bytes| {
            [u64::from_le_bytes(*bytes), u64::from_be_bytes(*bytes)].contains(&ZFS_MAGIC)
        })
    };
    if start.get(ZFS_UBERBLOCKS).is_some_and(|area| area.chunks(1024).any(uberblock)) {
        return Content::Foreign("a ZFS pool member".to_owned());
    }
    let ours = |slot| has(crate::format::label_offset_bytes(0, slot) as usize, b"TANGELO");
    if ours(0) || ours(1) {
        return Content::Damaged;
    }
    if start.iter().all(|&byte| byte == 0) {
        return Content::Blank;
    }
    Content::Foreign("data of an unknown kind".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recognises_what_admins_have() {
        assert_eq!(recognise(&[0; LOOK_BYTES]), Content::Blank);
        for (offset, mark, what) in MARKS {
            let mut start = vec![0; LOOK_BYTES];
            start[*offset..*offset + mark.len()].copy_from_slice(mark);
            assert_eq!(recognise(&start), Content::Foreign((*what).to_owned()));
        }
        let mut start = vec![0; LOOK_BYTES];
        start[ZFS_UBERBLOCKS.start + 1024..][..8].copy_from_slice(&ZFS_MAGIC.to_le_bytes());
        assert_eq!(recognise(&start), Content::Foreign("a ZFS pool member".to_owned()));
        let mut start = vec![0; LOOK_BYTES];
        start[77] = 1;
        assert!(matches!(recognise(&start), Content::Foreign(_)));
        let mut start = vec![0; LOOK_BYTES];
        start[16 << 10..][..7].copy_from_slice(b"TANGELO");
        assert_eq!(recognise(&start), Content::Damaged);
    }
}
