//! Text: `key=value` pairs, each ended by a zero byte (RFC 7143 §6.1).

use std::fmt;

/// RFC 7143 §6.1: keys have at most 63 bytes, values at most 255 unless the key says otherwise.
pub const KEY_BYTES_MAX: usize = 63;
/// The longest value that any key we know may have (large binary values, CHAP_C and CHAP_R).
pub const VALUE_BYTES_MAX: usize = 8192;

/// What is wrong with a text.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TextError {
    /// A pair without `=`.
    NoValue,
    /// An empty key, one that is too long, or one with characters no key may have.
    BadKey,
    /// A value that is too long or not UTF-8.
    BadValue,
}

impl fmt::Display for TextError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            TextError::NoValue => "a key without a value",
            TextError::BadKey => "not a key",
            TextError::BadValue => "a value that is too long or not UTF-8",
        })
    }
}

impl std::error::Error for TextError {}

/// The pairs of a text, in order. Empty pairs (padding) are passed over; the last pair may lack its zero.
#[derive(Clone, Debug)]
pub struct TextPairs<'a> {
    rest: &'a [u8],
}

impl<'a> TextPairs<'a> {
    pub fn new(text: &'a [u8]) -> TextPairs<'a> {
        TextPairs { rest: text }
    }
}

impl<'a> Iterator for TextPairs<'a> {
    type Item = Result<(&'a str, &'a str), TextError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if self.rest.is_empty() {
                return None;
            }
            let end = self.rest.iter().position(|&byte| byte == 0).unwrap_or(self.rest.len());
            let pair = &self.rest[..end];
            self.rest = self.rest.get(end + 1..).unwrap_or(&[]);
            if !pair.is_empty() {
                return Some(parse_pair(pair));
            }
        }
    }
}

fn parse_pair(pair: &[u8]) -> Result<(&str, &str), TextError> {
    let equals = pair.iter().position(|&byte| byte == b'=').ok_or(TextError::NoValue)?;
    let (key, value) = (&pair[..equals], &pair[equals + 1..]);
    let is_key = (1..=KEY_BYTES_MAX).contains(&key.len()) && key.iter().all(|&byte| is_key_byte(byte));
    let key = std::str::from_utf8(key).ok().filter(|_| is_key).ok_or(TextError::BadKey)?;
    if value.len() > VALUE_BYTES_MAX {
        return Err(TextError::BadValue);
    }
    Ok((key, std::str::from_utf8(value).map_err(|_| TextError::BadValue)?))
}

/// Standard labels, and what vendors' `X-` keys add to them.
fn is_key_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b".-+@_#".contains(&byte)
}

/// Appends one pair. Panics where the pair could not be parsed again.
pub fn emit_pair(out: &mut Vec<u8>, key: &str, value: &str) {
    assert!((1..=KEY_BYTES_MAX).contains(&key.len()) && key.bytes().all(is_key_byte), "{key:?} is not a key");
    assert!(value.len() <= VALUE_BYTES_MAX && !value.contains('\0'), "the value of {key} is not a value");
    out.extend_from_slice(key.as_bytes());
    out.push(b'=');
    out.extend_from_slice(value.as_bytes());
    out.push(0);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn golden() {
        let mut out = Vec::new();
        emit_pair(&mut out, "HeaderDigest", "CRC32C,None");
        emit_pair(&mut out, "X-org.example.a", "");
        assert_eq!(out, b"HeaderDigest=CRC32C,None\0X-org.example.a=\0");
        let pairs: Result<Vec<_>, _> = TextPairs::new(b"a=b=c\0\0\0D=").collect();
        assert_eq!(pairs, Ok(vec![("a", "b=c"), ("D", "")]));
        assert!(TextPairs::new(b"\0\0\0").next().is_none());
    }

    #[test]
    fn nonsense_is_refused() {
        let table: &[(&[u8], TextError)] = &[
            (b"NoEquals\0", TextError::NoValue),
            (b"=value\0", TextError::BadKey),
            (b"a key=value\0", TextError::BadKey),
            (b"k\xc3\xa9y=value\0", TextError::BadKey),
            (&[b'k'; 65], TextError::NoValue),
            (b"0123456789012345678901234567890123456789012345678901234567890123=1\0", TextError::BadKey),
            (b"key=\xff\0", TextError::BadValue),
        ];
        for (text, error) in table {
            assert_eq!(TextPairs::new(text).next(), Some(Err(*error)), "{text:?}");
        }
        let mut long = b"key=".to_vec();
        long.resize(4 + VALUE_BYTES_MAX + 1, b'v');
        assert_eq!(TextPairs::new(&long).next(), Some(Err(TextError::BadValue)));
        long.pop();
        assert!(TextPairs::new(&long).next().unwrap().is_ok());
    }

    proptest! {
        #[test]
        fn parse_is_the_inverse_of_emit(pairs in proptest::collection::vec(("[A-Za-z0-9.+@_#-]{1,63}", "[^\0]{0,80}"), 0..8)) {
            let mut out = Vec::new();
            for (key, value) in &pairs {
                emit_pair(&mut out, key, value);
            }
            let parsed: Result<Vec<_>, _> = TextPairs::new(&out).collect();
            let expected: Vec<_> = pairs.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
            prop_assert_eq!(parsed, Ok(expected));
        }

        #[test]
        fn any_bytes_come_to_an_end(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            let pairs = TextPairs::new(&bytes).count();
            prop_assert!(pairs <= bytes.len());
        }
    }
}
