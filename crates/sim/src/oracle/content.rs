//! The contents that the workload writes: every 512-byte sector holds its volume, address and version.
//!
//! Version 0 is all zeros: never written, or unmapped. So a sector from the wrong address, or a mix of two sectors,
//! is always detected.

use crate::prng::scatter;

/// The unit of self-description: a host's smallest logical block.
pub const SECTOR_BYTES: usize = 512;
/// Sectors of a block.
pub const SECTORS_PER_BLOCK: u64 = (base::BLOCK_BYTES / SECTOR_BYTES) as u64;

const MAGIC: u64 = 0x54_4E_47_5F_53_45_43_54;

/// What a sector says that it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Sector {
    Version(u64),
    /// It belongs elsewhere.
    Misplaced {
        volume: u32,
        sector: u64,
        version: u64,
    },
    /// Neither zeros nor anything that was ever written.
    Garbage,
}

/// Fills `out`, whole sectors, with `version` of the sectors from `first` on.
pub fn fill(volume: u32, first: u64, version: u64, out: &mut [u8]) {
    assert!(out.len().is_multiple_of(SECTOR_BYTES));
    for (index, bytes) in out.chunks_exact_mut(SECTOR_BYTES).enumerate() {
        fill_sector(volume, first + index as u64, version, bytes);
    }
}

fn fill_sector(volume: u32, sector: u64, version: u64, out: &mut [u8]) {
    if version == 0 {
        return out.fill(0);
    }
    let mut state = scatter(version ^ scatter(sector ^ (u64::from(volume) << 40)));
    let head = [MAGIC, u64::from(volume), sector, version];
    for (index, word) in out.chunks_exact_mut(8).enumerate() {
        state = state.wrapping_mul(0xD134_2543_DE82_EF95).wrapping_add(0x2545_F491_4F6C_DD1D);
        let value = head.get(index).copied().unwrap_or(state);
        word.copy_from_slice(&value.to_le_bytes());
    }
}

/// Reads what a sector says, and checks every byte of it.
pub fn identify(volume: u32, sector: u64, bytes: &[u8]) -> Sector {
    let word =
        |index: usize| u64::from_le_bytes(bytes[index * 8..index * 8 + 8].try_into().expect("eight bytes"));
    if bytes.iter().all(|&byte| byte == 0) {
        return Sector::Version(0);
    }
    let (said_volume, said_sector, version) = (word(1), word(2), word(3));
    let Ok(said_volume) = u32::try_from(said_volume) else { return Sector::Garbage };
    let mut expected = [0; SECTOR_BYTES];
    fill_sector(said_volume, said_sector, version, &mut expected);
    if version == 0 || bytes != expected {
        return Sector::Garbage;
    }
    if (said_volume, said_sector) != (volume, sector) {
        return Sector::Misplaced { volume: said_volume, sector: said_sector, version };
    }
    Sector::Version(version)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sector_says_what_it_is_and_nothing_else_passes_for_it() {
        let mut bytes = [0; 4 * SECTOR_BYTES];
        fill(3, 100, 7, &mut bytes);
        let sector = |index: usize| &bytes[index * SECTOR_BYTES..(index + 1) * SECTOR_BYTES];
        assert_eq!(identify(3, 101, sector(1)), Sector::Version(7));
        assert_eq!(identify(3, 100, sector(1)), Sector::Misplaced { volume: 3, sector: 101, version: 7 });
        assert_eq!(identify(4, 101, sector(1)), Sector::Misplaced { volume: 3, sector: 101, version: 7 });
        assert_eq!(identify(3, 100, &[0; SECTOR_BYTES]), Sector::Version(0));
        for byte in [0, 9, 20, 30, 200, 511] {
            let mut broken = sector(1).to_vec();
            broken[byte] ^= 4;
            assert_eq!(identify(3, 101, &broken), Sector::Garbage, "byte {byte}");
        }
    }
}
