//! Bytes as hexadecimal digits.

/// Two lower-case digits for each byte.
pub fn of(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// As many bytes as are wanted, of two digits each and nothing else; of either case.
pub fn parse<const N: usize>(text: &str) -> Option<[u8; N]> {
    if text.len() != 2 * N || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    let byte = |at: usize| u8::from_str_radix(&text[2 * at..2 * at + 2], 16).expect("they are two digits");
    Some(std::array::from_fn(byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits() {
        assert_eq!(of(&[0, 0x0a, 0xff]), "000aff");
        assert_eq!(parse("000aFf"), Some([0, 0x0a, 0xff]));
        assert_eq!(parse(""), Some([]));
        for wrong in ["", "000af", "000aff0", "000aff00", "+00aff", "00 aff", "000afg", "0ä0aff", "00ä0f"] {
            assert_eq!(parse::<3>(wrong), None, "{wrong}");
        }
    }

    proptest::proptest! {
        #[test]
        fn what_is_written_is_read(bytes: [u8; 16]) {
            proptest::prop_assert_eq!(parse(&of(&bytes)), Some(bytes));
        }
    }
}
