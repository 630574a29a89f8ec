//! The format of everything on a drive, as bytes. `docs/format.md` draws it.
//!
//! Integers are little-endian; sizes are asserted at compile time. Parsing trusts nothing: it returns an error for all
//! bytes that `emit` does not write exactly so, and it never panics.

mod codec;
mod features;
pub mod header;
pub mod label;
pub mod page;
pub mod root;
pub mod table;

use base::{BLOCK_BYTES, crc32c};

pub use features::Features;

/// The newest version of labels that this program writes and reads. A pool has the oldest one that can say what it uses.
pub const FORMAT_VERSION: u16 = 6;
/// Versions of labels from this one on are read.
pub const FORMAT_VERSION_MIN: u16 = 5;
/// The version of roots, headers and pages.
const LOG_VERSION: u16 = 5;

/// The region of labels at the start of every drive; chunks begin after it.
pub const LABEL_REGION_BYTES: u64 = 1 << 20;
/// The offset of a label slot of head `head` (0 or 1): there are two slots, written in turn.
pub fn label_offset_bytes(head: usize, slot: usize) -> u64 {
    assert!(head < 2 && slot < 2);
    (16 + (head * 2 + slot) as u64 * 16) << 10
}

/// The offset of a root slot of a lane: there are two, written in turn.
pub fn root_offset_bytes(lane: usize, slot: usize) -> u64 {
    assert!(lane < base::limits::SHARDS_MAX && slot < 2);
    (128 + (lane * 2 + slot) as u64 * (ROOT_SLOT_BYTES >> 10)) << 10
}

/// Room for one root.
pub const ROOT_SLOT_BYTES: u64 = 16 << 10;

const _: () =
    assert!((128 << 10) + (base::limits::SHARDS_MAX as u64) * 2 * ROOT_SLOT_BYTES <= LABEL_REGION_BYTES);

/// Epochs, generations and sequences increase by one at a time, so a higher value than this cannot be correct.
pub const COUNT_MAX: u64 = 1 << 62;
/// New segments get no ids beyond this.
pub const SEGMENT_MAX: u32 = u32::MAX - (1 << 20);

/// Why bytes from a drive are not a valid structure.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FormatError {
    /// Not a structure of Tangelo: the magic differs.
    Foreign,
    /// A structure of a newer program.
    FutureVersion(u16),
    /// The label of a pool that uses something which this program does not know.
    UnknownFeatures(Features),
    /// A structure of Tangelo with a wrong checksum or field.
    Damaged,
}

/// Writes the checksum of a structure into its checksum field at `offset`.
fn seal(bytes: &mut [u8], offset: usize) {
    bytes[offset..offset + 4].fill(0);
    let crc = crc32c(bytes);
    bytes[offset..offset + 4].copy_from_slice(&crc.to_le_bytes());
}

/// Seals a label or a batch's header, whatever its content.
pub(crate) fn seal_again(bytes: &mut [u8]) {
    seal(bytes, 12);
}

fn check_seal(bytes: &[u8], offset: usize) -> Result<(), FormatError> {
    let mut crc = base::Crc32c::new();
    crc.update(&bytes[..offset]);
    crc.update(&[0; 4]);
    crc.update(&bytes[offset + 4..]);
    if crc.finish().to_le_bytes() == bytes[offset..offset + 4] { Ok(()) } else { Err(FormatError::Damaged) }
}

/// Checks the magic of a structure.
fn check_magic(bytes: &[u8], magic: &[u8; 8]) -> Result<(), FormatError> {
    if bytes.len() < BLOCK_BYTES || bytes[..8] != magic[..] { Err(FormatError::Foreign) } else { Ok(()) }
}

/// Checks the version of a structure whose checksum is correct: so a flipped bit is never taken for a newer program.
/// The place and the extent of checksums are the same in every version.
fn check_version(version: u16) -> Result<(), FormatError> {
    if version != LOG_VERSION { Err(FormatError::FutureVersion(version)) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_do_not_overlap() {
        let mut regions: Vec<(u64, u64)> = Vec::new();
        for head in 0..2 {
            regions.extend((0..2).map(|slot| (label_offset_bytes(head, slot), 16 << 10)));
        }
        for lane in 0..base::limits::SHARDS_MAX {
            regions.extend((0..2).map(|slot| (root_offset_bytes(lane, slot), ROOT_SLOT_BYTES)));
        }
        regions.sort_unstable();
        assert!(regions.windows(2).all(|pair| pair[0].0 + pair[0].1 <= pair[1].0));
        assert!(regions.last().is_some_and(|last| last.0 + last.1 <= LABEL_REGION_BYTES));
    }
}
