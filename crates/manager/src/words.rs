//! Amounts for people to read.

use base::BLOCK_BYTES;

/// What people are told of a deletion; `referred`: copies by reference keep something in its pool.
pub(crate) fn given_back(blocks: u64, referred: bool) -> String {
    let bytes = size(blocks * BLOCK_BYTES as u64);
    match referred {
        false => format!("{bytes} are given back"),
        // which of them keeps what, only a walk of the map could tell
        true => format!(
            "at least {bytes} are given back; what only its copies by reference have kept comes back some seconds later"
        ),
    }
}

/// A size for people to read.
pub(crate) fn size(bytes: u64) -> String {
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
