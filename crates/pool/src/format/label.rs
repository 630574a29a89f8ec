//! The label: the identity of a drive, the pool it belongs to, and the other drives of this pool.
//!
//! The label is one 4 KiB block. It is written to two slots in turn, so the newest good label is never overwritten. The
//! label with the highest (epoch, generation) on the drives of a pool describes the pool.

use base::limits::DRIVES_MAX;
use base::{ArrayId, BLOCK_BYTES, DriveId, Epoch, PoolId};
use zerocopy::little_endian::{U16, U32, U64, U128};
use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes, KnownLayout, Unaligned};

use super::{
    COUNT_MAX, FORMAT_VERSION, FORMAT_VERSION_MIN, Features, FormatError, check_magic, check_seal, seal,
};
use crate::counters::DriveErrors;
use crate::geometry::protection::{Protection, Shape};

const MAGIC: &[u8; 8] = b"TANGELO\x01";
const CRC_OFFSET: usize = 12;
/// Longest name of a pool, in bytes.
pub const NAME_BYTES_MAX: usize = 64;

/// The state of a drive in its pool.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DriveState {
    /// The drive is read and written.
    Online,
    /// The drive was not there when the pool was opened.
    Missing,
    /// The drive was taken out after errors.
    Failed,
    /// The drive is read, and nothing new is written to it: it is being emptied.
    Draining,
    /// Nothing of the pool is on the drive any more.
    Removed,
}

impl DriveState {
    fn code(self) -> u8 {
        match self {
            DriveState::Online => 1,
            DriveState::Missing => 2,
            DriveState::Failed => 3,
            DriveState::Draining => 4,
            DriveState::Removed => 5,
        }
    }

    fn from_code(code: u8) -> Option<DriveState> {
        use DriveState::{Draining, Failed, Missing, Online, Removed};
        [Online, Missing, Failed, Draining, Removed].into_iter().find(|state| state.code() == code)
    }

    /// Whether the drive's data can be read.
    pub fn is_readable(self) -> bool {
        matches!(self, DriveState::Online | DriveState::Draining)
    }

    /// Whether the drive's data cannot be reached.
    pub fn is_lost(self) -> bool {
        matches!(self, DriveState::Missing | DriveState::Failed)
    }
}

/// A drive as its pool knows it. Its index in [`Label::drives`] is its number in segments' columns.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LabelDrive {
    pub id: DriveId,
    pub state: DriveState,
    /// Chunks after the label region.
    pub chunks: u32,
    /// The epoch in which the state last changed.
    pub since: Epoch,
    /// Errors counted since the drive joined the pool, as of the previous label.
    pub errors: DriveErrors,
}

/// A drive's label.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Label {
    pub array: ArrayId,
    pub pool: PoolId,
    pub pool_name: String,
    pub drive: DriveId,
    /// Increases with every label written in an epoch.
    pub generation: u64,
    pub epoch: Epoch,
    pub protection: Protection,
    pub width: u8,
    pub lanes: u16,
    /// A power of two.
    pub chunk_bytes: u64,
    pub created_ms: u64,
    /// The newest generation that is known to have reached every drive that was online then. If one of these drives has
    /// an older label, it has lost writes or was restored to an older state.
    pub settled: u64,
    /// 5 or 6.
    pub version: u16,
    /// None before version 6.
    pub features: Features,
    pub drives: Vec<LabelDrive>,
}

#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct RawDrive {
    id: U128,
    since: U64,
    chunks: U32,
    state: u8,
    reserved: [u8; 7],
    read_errors: U32,
    write_errors: U32,
    checksum_errors: U32,
}

#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct RawLabel {
    magic: [u8; 8],
    version: U16,
    drives_count: U16,
    crc: U32,
    array: U128,
    pool: U128,
    drive: U128,
    generation: U64,
    epoch: U64,
    chunk_bytes: U64,
    created_ms: U64,
    lanes: U16,
    protection: u8,
    width: u8,
    name_bytes: u8,
    reserved: [u8; 3],
    settled: U64,
    features: U64,
    reserved_too: [u8; 40],
    name: [u8; NAME_BYTES_MAX],
    drives: [RawDrive; DRIVES_MAX],
    tail: [u8; BLOCK_BYTES - 224 - 48 * DRIVES_MAX],
}

const _: () = assert!(size_of::<RawDrive>() == 48);
const _: () = assert!(size_of::<RawLabel>() == BLOCK_BYTES);
const _: () = assert!(std::mem::offset_of!(RawLabel, crc) == CRC_OFFSET);
const _: () = assert!(std::mem::offset_of!(RawLabel, drives) == 224);

impl Label {
    /// Exactly one block.
    pub fn emit(&self) -> Vec<u8> {
        assert!(self.drives.len() <= DRIVES_MAX && self.pool_name.len() <= NAME_BYTES_MAX);
        let mut raw = RawLabel::new_zeroed();
        raw.magic = *MAGIC;
        assert!(self.version >= 6 || self.features == Features::NONE, "version 5 has no features");
        raw.version = U16::new(self.version);
        raw.features = U64::new(self.features.bits());
        raw.drives_count = U16::new(self.drives.len() as u16);
        raw.array = U128::new(self.array.0);
        raw.pool = U128::new(self.pool.0);
        raw.drive = U128::new(self.drive.0);
        raw.generation = U64::new(self.generation);
        raw.epoch = U64::new(self.epoch.0);
        raw.chunk_bytes = U64::new(self.chunk_bytes);
        raw.created_ms = U64::new(self.created_ms);
        raw.settled = U64::new(self.settled);
        raw.lanes = U16::new(self.lanes);
        raw.protection = self.protection.code();
        raw.width = self.width;
        raw.name_bytes = self.pool_name.len() as u8;
        raw.name[..self.pool_name.len()].copy_from_slice(self.pool_name.as_bytes());
        for (slot, drive) in raw.drives.iter_mut().zip(&self.drives) {
            slot.id = U128::new(drive.id.0);
            slot.since = U64::new(drive.since.0);
            slot.chunks = U32::new(drive.chunks);
            slot.state = drive.state.code();
            let count = |count: u64| U32::new(u32::try_from(count).unwrap_or(u32::MAX));
            slot.read_errors = count(drive.errors.read);
            slot.write_errors = count(drive.errors.write);
            slot.checksum_errors = count(drive.errors.checksum);
        }
        let mut bytes = raw.as_bytes().to_vec();
        seal(&mut bytes, CRC_OFFSET);
        bytes
    }

    /// Reads a label slot.
    pub fn parse(bytes: &[u8]) -> Result<Label, FormatError> {
        let (raw, _) = RawLabel::ref_from_prefix(bytes).map_err(|_| FormatError::Foreign)?;
        check_magic(bytes, MAGIC)?;
        check_seal(raw.as_bytes(), CRC_OFFSET)?;
        if !(FORMAT_VERSION_MIN..=FORMAT_VERSION).contains(&raw.version.get()) {
            return Err(FormatError::FutureVersion(raw.version.get()));
        }
        let label = Label::from_raw(raw).ok_or(FormatError::Damaged)?;
        match label.features.unknown() {
            Features::NONE => Ok(label),
            unknown => Err(FormatError::UnknownFeatures(unknown)),
        }
    }

    fn from_raw(raw: &RawLabel) -> Option<Label> {
        let name = raw.name.get(..usize::from(raw.name_bytes))?;
        let drives = raw.drives.get(..usize::from(raw.drives_count.get()))?;
        let label = Label {
            array: ArrayId(raw.array.get()),
            pool: PoolId(raw.pool.get()),
            pool_name: String::from_utf8(name.to_vec()).ok()?,
            drive: DriveId(raw.drive.get()),
            generation: raw.generation.get(),
            epoch: Epoch(raw.epoch.get()),
            protection: Protection::from_code(raw.protection)?,
            width: raw.width,
            lanes: raw.lanes.get(),
            chunk_bytes: raw.chunk_bytes.get(),
            created_ms: raw.created_ms.get(),
            settled: raw.settled.get(),
            version: raw.version.get(),
            features: match raw.version.get() {
                ..6 => Features::NONE,
                _ => Features::from_bits(raw.features.get()),
            },
            drives: drives.iter().map(RawDrive::meaning).collect::<Option<_>>()?,
        };
        label.is_sane().then_some(label)
    }

    fn is_sane(&self) -> bool {
        let drives = self.drives.len();
        (1..=base::limits::SHARDS_MAX).contains(&usize::from(self.lanes))
            && self.chunk_bytes.is_power_of_two()
            && (CHUNK_BYTES_MIN..=CHUNK_BYTES_MAX).contains(&self.chunk_bytes)
            && self.protection.width(drives, Some(self.width)).is_ok()
            && self.drives.iter().any(|drive| drive.id == self.drive)
            && [self.epoch.0, self.generation, self.settled].into_iter().all(|count| count <= COUNT_MAX)
    }

    /// The shape of this pool's segments when all drives are there.
    pub fn shape(&self) -> Shape {
        Shape::new(self.width, self.protection.parity())
    }
}

impl RawDrive {
    fn meaning(&self) -> Option<LabelDrive> {
        Some(LabelDrive {
            id: DriveId(self.id.get()),
            state: DriveState::from_code(self.state)?,
            chunks: self.chunks.get(),
            since: Epoch(self.since.get()),
            errors: DriveErrors {
                read: self.read_errors.get().into(),
                write: self.write_errors.get().into(),
                checksum: self.checksum_errors.get().into(),
            },
        })
    }
}

/// The smallest chunk: 16 rows.
pub const CHUNK_BYTES_MIN: u64 = 16 * BLOCK_BYTES as u64;
/// The largest chunk: a row's number fits 16 bits.
pub const CHUNK_BYTES_MAX: u64 = 65536 * BLOCK_BYTES as u64;

#[cfg(test)]
pub(crate) fn example() -> Label {
    let drive = |n: u128, state| LabelDrive {
        id: DriveId(n),
        state,
        chunks: 1000 + n as u32,
        since: Epoch(n as u64),
        errors: DriveErrors { read: n as u64, write: 0, checksum: 7 },
    };
    Label {
        array: ArrayId(0xA11A),
        pool: PoolId(0xB00B),
        pool_name: "fast".into(),
        drive: DriveId(2),
        generation: 9,
        epoch: Epoch(4),
        protection: Protection::Parity1,
        width: 3,
        lanes: 2,
        chunk_bytes: 1 << 20,
        created_ms: 1_700_000_000_000,
        settled: 4,
        version: 6,
        features: Features::TWO_HEADS,
        drives: vec![
            drive(1, DriveState::Online),
            drive(2, DriveState::Failed),
            drive(3, DriveState::Missing),
        ],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn parses_what_it_emits_and_has_stable_bytes() {
        let bytes = example().emit();
        assert_eq!(bytes.len(), BLOCK_BYTES);
        assert_eq!(&bytes[..12], b"TANGELO\x01\x06\x00\x03\x00");
        assert_eq!((&bytes[112..120], &bytes[160..164]), (&[1, 0, 0, 0, 0, 0, 0, 0][..], &b"fast"[..]));
        assert_eq!(Label::parse(&bytes), Ok(example()));
        let old = Label { version: 5, features: Features::NONE, ..example() };
        assert_eq!((old.emit()[8], Label::parse(&old.emit())), (5, Ok(old)));
    }

    #[test]
    fn a_pool_with_features_that_are_not_known_is_refused() {
        let unknown = Features::from_bits(1 << 9);
        let label = Label { features: Features::TWO_HEADS.with(unknown), ..example() };
        assert_eq!(Label::parse(&label.emit()), Err(FormatError::UnknownFeatures(unknown)));
    }

    #[test]
    fn refuses_what_is_not_a_label_of_this_version() {
        let mut bytes = example().emit();
        assert_eq!(Label::parse(&[0; BLOCK_BYTES]), Err(FormatError::Foreign));
        assert_eq!(Label::parse(&bytes[..100]), Err(FormatError::Foreign));
        bytes[8] = FORMAT_VERSION as u8 + 1;
        assert_eq!(Label::parse(&bytes), Err(FormatError::Damaged), "a flipped bit");
        seal(&mut bytes, CRC_OFFSET);
        assert_eq!(Label::parse(&bytes), Err(FormatError::FutureVersion(FORMAT_VERSION + 1)));
    }

    #[test]
    fn refuses_nonsense_behind_a_good_checksum() {
        for (offset, value) in
            [(10, 65), (0x60, 200), (0x62, 99), (0x63, 1), (0x50, 3), (0x64, 65), (0x30, 9)]
        {
            let mut bytes = example().emit();
            bytes[offset] = value;
            seal(&mut bytes, CRC_OFFSET);
            assert_eq!(Label::parse(&bytes), Err(FormatError::Damaged), "offset {offset:#x}");
        }
    }

    proptest! {
        #[test]
        fn any_flipped_bit_is_noticed(bit in 0usize..BLOCK_BYTES * 8) {
            let mut bytes = example().emit();
            bytes[bit / 8] ^= 1 << (bit % 8);
            prop_assert!(Label::parse(&bytes).is_err());
        }
    }
}
