//! Units of storage.

use std::fmt;

/// A block: the unit of mapping, checksums and direct I/O.
pub const BLOCK_BYTES: usize = 4096;

/// The smallest unit in which a drive can end.
pub const SECTOR_BYTES: usize = 512;

/// A logical block address, in the logical blocks of the volume it belongs to (512 or 4096 bytes).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Lba(pub u64);

impl fmt::Debug for Lba {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Lba({})", self.0)
    }
}

impl fmt::Display for Lba {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// A size for people to read.
pub fn size(bytes: u64) -> String {
    const UNITS: [&str; 6] = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
    let mut unit = 0;
    while unit + 1 < UNITS.len() && bytes >= 1 << (10 * (unit + 1)) {
        unit += 1;
    }
    let whole = 1u64 << (10 * unit);
    if bytes.is_multiple_of(whole) {
        format!("{} {}", bytes / whole, UNITS[unit])
    } else {
        format!("{}.{} {}", bytes / whole, bytes % whole * 10 / whole, UNITS[unit])
    }
}

#[cfg(test)]
mod tests {
    use super::size;

    #[test]
    fn sizes_read_well() {
        let cases = [
            (0, "0 B"),
            (4096, "4 KiB"),
            (1 << 30, "1 GiB"),
            ((1 << 30) + (1 << 29), "1.5 GiB"),
            (1023, "1023 B"),
            (u64::MAX, "16383.9 PiB"),
        ];
        for (bytes, text) in cases {
            assert_eq!(size(bytes), text);
        }
    }
}
