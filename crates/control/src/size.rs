//! Sizes as people write them: `500GiB`, `1TB`, `4096`.

use thiserror::Error;

/// Why a text is not a size.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum SizeError {
    #[error("\"{0}\" is not a size: write a number and a unit, such as 500GiB, 1.5TiB or 1TB")]
    Format(String),
    #[error(
        "the unit \"{0}\" is not known: use B, KiB, MiB, GiB, TiB, PiB (powers of 1024) or kB, MB, GB, TB, PB (powers of 1000)"
    )]
    Unit(String),
    #[error("\"{0}\" has no unit: write {0}GiB, {0}MiB, or {0}B for bytes")]
    NoUnit(String),
    #[error("\"{0}\" is not a whole number of bytes")]
    Fraction(String),
    #[error("\"{0}\" is larger than any size can be")]
    TooLarge(String),
}

/// Bytes of a text: a decimal number, and a unit. `K`, `M`, `G`, `T` and `P` alone are powers of 1024, as
/// lvm, zfs and qemu-img have it. A number without a unit is refused: others take it for MiB or GiB, and it is hardly meant as
/// bytes.
pub fn parse_size(text: &str) -> Result<u64, SizeError> {
    let trimmed = text.trim();
    let split = trimmed.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(trimmed.len());
    let (number, unit) = (&trimmed[..split], trimmed[split..].trim_start());
    let scale = unit_bytes(unit).ok_or_else(|| match number {
        "" => SizeError::Format(text.to_owned()),
        _ => SizeError::Unit(unit.to_owned()),
    })?;
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let digits = !whole.is_empty() && fraction.bytes().all(|b| b.is_ascii_digit());
    if !digits || number.ends_with('.') {
        return Err(SizeError::Format(text.to_owned()));
    }
    if unit.is_empty() {
        return Err(SizeError::NoUnit(number.to_owned()));
    }
    if whole.len() > 20 || fraction.len() > 15 {
        return Err(SizeError::TooLarge(text.to_owned()));
    }
    // Both parse: at most 20 and 15 digits.
    let whole: u128 = whole.parse().unwrap_or(u128::MAX);
    let parts = 10u128.pow(fraction.len() as u32);
    let fraction: u128 = if fraction.is_empty() { 0 } else { fraction.parse().unwrap_or(0) };
    let scaled = fraction * scale;
    if !scaled.is_multiple_of(parts) {
        return Err(SizeError::Fraction(text.to_owned()));
    }
    let bytes = whole.checked_mul(scale).map(|bytes| bytes + scaled / parts);
    bytes.and_then(|bytes| u64::try_from(bytes).ok()).ok_or_else(|| SizeError::TooLarge(text.to_owned()))
}

fn unit_bytes(unit: &str) -> Option<u128> {
    let lower = unit.to_ascii_lowercase();
    let (letter, decimal) = match lower.as_bytes() {
        [] | [b'b'] => return Some(1),
        [letter] | [letter, b'i', b'b'] => (*letter, false),
        [letter, b'b'] => (*letter, true),
        _ => return None,
    };
    let power = b"kmgtp".iter().position(|&l| l == letter)? as u32 + 1;
    Some(if decimal { 1000u128.pow(power) } else { 1024u128.pow(power) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_people_write() {
        let table = [
            ("0B", 0),
            ("4096B", 4096),
            ("1k", 1024),
            ("1KiB", 1024),
            ("1kB", 1000),
            ("500GiB", 500 << 30),
            ("500 GiB", 500 << 30),
            ("500G", 500 << 30),
            ("1TB", 1_000_000_000_000),
            ("1.5TiB", 3 << 39),
            ("0.5k", 512),
            ("2PiB", 2 << 50),
        ];
        for (text, bytes) in table {
            assert_eq!(parse_size(text), Ok(bytes), "{text}");
        }
    }

    #[test]
    fn what_is_not_a_size() {
        let kind = |text: &str| match parse_size(text).unwrap_err() {
            SizeError::Format(_) => "format",
            SizeError::Unit(_) => "unit",
            SizeError::NoUnit(_) => "no unit",
            SizeError::Fraction(_) => "fraction",
            SizeError::TooLarge(_) => "large",
        };
        let table = [
            ("", "format"),
            ("GiB", "format"),
            ("1.", "format"),
            (".5G", "format"),
            ("1.2.3G", "format"),
            ("-1G", "format"),
            ("ten", "format"),
            ("1GG", "unit"),
            ("1 bytes", "unit"),
            ("1XiB", "unit"),
            ("0.3k", "fraction"),
            ("1.5B", "fraction"),
            ("100", "no unit"),
            (" 1.5 ", "no unit"),
            ("8", "no unit"),
            ("99999999999999999999P", "large"),
            ("16384PiB", "large"),
            ("999999999999999999999B", "large"),
        ];
        for (text, expected) in table {
            assert_eq!(kind(text), expected, "{text}");
        }
    }

    proptest! {
        #[test]
        fn any_text_has_an_answer(text in "[0-9.]{0,24} ?[a-zA-Z]{0,4}") {
            let _ = parse_size(&text);
        }

        #[test]
        fn bytes_are_themselves(bytes: u64) {
            prop_assert_eq!(parse_size(&format!("{bytes}B")), Ok(bytes));
        }
    }
}
