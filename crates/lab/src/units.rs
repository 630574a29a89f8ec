//! Numbers for people: sizes, rates and times, short and always with a unit.

/// `912 k`, `1.25 M`: a count in thousands or millions.
pub fn count(value: f64) -> String {
    match value {
        1e6.. => format!("{} M", short(value / 1e6)),
        1e4.. => format!("{} k", short(value / 1e3)),
        _ => short(value),
    }
}

/// `87 us`, `1.2 ms`, of nanoseconds.
pub fn time(ns: u64) -> String {
    match ns {
        0..1_000 => format!("{ns} ns"),
        1_000..1_000_000 => format!("{} us", short(ns as f64 / 1e3)),
        1_000_000..1_000_000_000 => format!("{} ms", short(ns as f64 / 1e6)),
        _ => format!("{} s", short(ns as f64 / 1e9)),
    }
}

/// Three digits that count.
pub fn short(value: f64) -> String {
    let text = match value.abs() {
        100.0.. => format!("{value:.0}"),
        10.0.. => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    };
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

/// `4096`, `4k`, `512KiB`, `2G`: a size as people write it. Suffixes are powers of 1024.
pub fn parse_bytes(text: &str) -> Result<u64, String> {
    let wrong = || format!("\"{text}\" is no size: use such as 512, 4k, 64KiB, 1M, 2GiB");
    let digits = text.trim_end_matches(|character: char| character.is_ascii_alphabetic());
    let factor: u64 = match text[digits.len()..].to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "k" | "kib" => 1 << 10,
        "m" | "mib" => 1 << 20,
        "g" | "gib" => 1 << 30,
        "t" | "tib" => 1 << 40,
        _ => return Err(wrong()),
    };
    digits.parse::<u64>().ok().and_then(|number| number.checked_mul(factor)).ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short() {
        for (value, text) in [(12.0, "12"), (9_999.0, "9999"), (10_000.0, "10 k"), (1_250_000.0, "1.25 M")] {
            assert_eq!(count(value), text);
        }
        for (value, text) in
            [(999, "999 ns"), (87_000, "87 us"), (1_234_000, "1.23 ms"), (2_000_000_000, "2 s")]
        {
            assert_eq!(time(value), text);
        }
    }

    #[test]
    fn sizes_are_read_as_they_are_written() {
        for (text, value) in
            [("512", 512), ("4k", 4096), ("64KiB", 65536), ("1M", 1 << 20), ("2GiB", 2 << 30)]
        {
            assert_eq!(parse_bytes(text), Ok(value));
        }
        for text in ["", "k", "4x", "-1", "99999999999T"] {
            assert!(parse_bytes(text).is_err(), "{text}");
        }
    }
}
