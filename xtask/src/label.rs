//! Forges the labels of a drive, for conformance: a version that this program does not know.
//!
//! The layout is that of `docs/format.md`: two slots for each of two heads, 16 KiB apart from 16 KiB on; magic at 0,
//! version at 8, CRC-32C of the block with a zeroed checksum at 12.

use std::fs::OpenOptions;
use std::os::unix::fs::FileExt;
use std::path::Path;

use base::BLOCK_BYTES;

use crate::shell::Result;

const SLOT_OFFSETS_BYTES: [u64; 4] = [16 << 10, 32 << 10, 48 << 10, 64 << 10];
const MAGIC: &[u8; 8] = b"TANGELO\x01";

pub fn set_version(drive: &Path, version: u16) -> Result {
    let why = |error: std::io::Error| format!("{}: {error}", drive.display());
    let file = OpenOptions::new().read(true).write(true).open(drive).map_err(why)?;
    let mut changed = 0;
    for offset in SLOT_OFFSETS_BYTES {
        let mut block = vec![0; BLOCK_BYTES];
        file.read_exact_at(&mut block, offset).map_err(why)?;
        if block.starts_with(MAGIC) {
            forge(&mut block, version);
            file.write_all_at(&block, offset).map_err(why)?;
            changed += 1;
        }
    }
    if changed == 0 {
        return Err(format!("{} has no label", drive.display()));
    }
    println!("{}: {changed} labels have version {version} now", drive.display());
    file.sync_all().map_err(why)
}

fn forge(block: &mut [u8], version: u16) {
    block[8..10].copy_from_slice(&version.to_le_bytes());
    block[12..16].fill(0);
    let checksum = base::crc32c(block);
    block[12..16].copy_from_slice(&checksum.to_le_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_label_gets_the_version_and_a_good_checksum() {
        let file = tempfile::NamedTempFile::new().unwrap();
        file.as_file().set_len(1 << 20).unwrap();
        assert!(set_version(file.path(), 2).is_err(), "a blank drive has no label");
        file.as_file().write_all_at(MAGIC, SLOT_OFFSETS_BYTES[1]).unwrap();
        set_version(file.path(), 2).unwrap();
        let mut block = vec![0; BLOCK_BYTES];
        file.as_file().read_exact_at(&mut block, SLOT_OFFSETS_BYTES[1]).unwrap();
        assert_eq!(block[8..10], [2, 0]);
        let stored = u32::from_le_bytes(block[12..16].try_into().unwrap());
        block[12..16].fill(0);
        assert_eq!(stored, base::crc32c(&block));
    }
}
