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

/// A size for people to read, as `1.5 TiB`. It is rounded down, so that no space is shown that is not there.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Size(pub u64);

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const UNITS: [&str; 6] = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
        let mut unit = 0;
        while unit + 1 < UNITS.len() && self.0 >= 1 << (10 * (unit + 1)) {
            unit += 1;
        }
        let scale = 1u64 << (10 * unit);
        let (whole, part) = (self.0 / scale, self.0 % scale);
        let tenths = u128::from(part) * 10 / u128::from(scale);
        match part {
            0 => f.pad(&format!("{whole} {}", UNITS[unit])),
            _ => f.pad(&format!("{whole}.{tenths} {}", UNITS[unit])),
        }
    }
}

/// The same as text.
pub fn size(bytes: u64) -> String {
    Size(bytes).to_string()
}

#[cfg(test)]
mod tests {
    use super::{Size, size};

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
        assert_eq!(size((1 << 30) - 1), "1023.9 MiB", "it is not 1024 MiB yet");
        assert_eq!(format!("{:>9}|{:<7}|", Size(4096), Size(0)), "    4 KiB|0 B    |");
    }
}
