//! CHAP (RFC 1994) as iSCSI uses it (RFC 7143 §12.1.3): algorithms, encodings, responses.
//!
//! Responses are compared in constant time. Nothing here keeps state.

use base::limits::CHAP_CHALLENGE_BYTES_MAX;
use md5::{Digest, Md5};
use sha2::Sha256;
use sha3::Sha3_256;

/// A hash both ends know, by its number in `CHAP_A`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Algorithm {
    Md5,
    Sha256,
    Sha3,
}

impl Algorithm {
    pub const ALL: [Algorithm; 3] = [Algorithm::Sha3, Algorithm::Sha256, Algorithm::Md5];

    pub fn number(self) -> &'static str {
        match self {
            Algorithm::Md5 => "5",
            Algorithm::Sha256 => "7",
            Algorithm::Sha3 => "8",
        }
    }

    /// The first of a list in its sender's order of preference that we know.
    pub fn choose(offered: &str) -> Option<Algorithm> {
        offered.split(',').find_map(|number| Algorithm::ALL.into_iter().find(|a| a.number() == number))
    }

    /// Length of a challenge of ours, and of every response.
    pub fn response_bytes(self) -> usize {
        match self {
            Algorithm::Md5 => 16,
            Algorithm::Sha256 | Algorithm::Sha3 => 32,
        }
    }

    /// The response to a challenge: hash of identifier, secret and challenge.
    pub fn respond(self, identifier: u8, secret: &[u8], challenge: &[u8]) -> Vec<u8> {
        fn hash<D: Digest>(parts: [&[u8]; 3]) -> Vec<u8> {
            let mut digest = D::new();
            for part in parts {
                digest.update(part);
            }
            digest.finalize().to_vec()
        }
        let parts = [&[identifier][..], secret, challenge];
        match self {
            Algorithm::Md5 => hash::<Md5>(parts),
            Algorithm::Sha256 => hash::<Sha256>(parts),
            Algorithm::Sha3 => hash::<Sha3_256>(parts),
        }
    }
}

/// Random bytes for a challenge.
pub(crate) fn challenge(algorithm: Algorithm, random: &mut dyn FnMut() -> u64) -> Vec<u8> {
    let mut out = Vec::with_capacity(algorithm.response_bytes());
    while out.len() < algorithm.response_bytes() {
        out.extend_from_slice(&random().to_be_bytes());
    }
    out
}

pub(crate) fn to_hex(bytes: &[u8]) -> String {
    format!("0x{}", base::hex::of(bytes))
}

/// A large binary value (RFC 7143 §6.1): `0x` hexadecimal or `0b` base64, 1 to 1024 bytes. None: it is
/// neither, or out of bounds.
pub(crate) fn from_binary_value(text: &str) -> Option<Vec<u8>> {
    let bytes = match text.as_bytes() {
        [b'0', b'x' | b'X', digits @ ..] => from_hex(digits)?,
        [b'0', b'b' | b'B', digits @ ..] => from_base64(digits)?,
        _ => return None,
    };
    (1..=CHAP_CHALLENGE_BYTES_MAX).contains(&bytes.len()).then_some(bytes)
}

fn from_hex(digits: &[u8]) -> Option<Vec<u8>> {
    let nibble = |digit: u8| char::from(digit).to_digit(16).map(|value| value as u8);
    if digits.len() > 2 * CHAP_CHALLENGE_BYTES_MAX {
        return None;
    }
    let mut out = Vec::with_capacity(digits.len().div_ceil(2));
    let (odd, pairs) = digits.split_at(digits.len() % 2);
    for &digit in odd {
        out.push(nibble(digit)?);
    }
    for pair in pairs.chunks_exact(2) {
        out.push(nibble(pair[0])? << 4 | nibble(pair[1])?);
    }
    Some(out)
}

fn from_base64(digits: &[u8]) -> Option<Vec<u8>> {
    if digits.len() > 4 * CHAP_CHALLENGE_BYTES_MAX.div_ceil(3) || !digits.len().is_multiple_of(4) {
        return None;
    }
    let end = digits.len() - digits.iter().rev().take_while(|&&digit| digit == b'=').count();
    if digits.len() - end > 2 {
        return None;
    }
    let (mut out, mut bits, mut count) = (Vec::with_capacity(digits.len() / 4 * 3), 0u32, 0);
    for &digit in &digits[..end] {
        let value = match digit {
            b'A'..=b'Z' => digit - b'A',
            b'a'..=b'z' => digit - b'a' + 26,
            b'0'..=b'9' => digit - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => return None,
        };
        bits = bits << 6 | u32::from(value);
        count += 6;
        if count >= 8 {
            count -= 8;
            out.push((bits >> count) as u8);
            bits &= (1 << count) - 1;
        }
    }
    (bits == 0).then_some(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn responses_are_the_hash_of_identifier_secret_and_challenge() {
        // computed with md5sum, sha256sum and Python's hashlib over the bytes 01 "secret" 02 03
        let md5 = Algorithm::Md5.respond(1, b"secret", &[2, 3]);
        let sha = Algorithm::Sha256.respond(1, b"secret", &[2, 3]);
        assert_eq!(to_hex(&md5), "0xf506c24f35d1c70e450edb8fdf933478");
        assert_eq!(to_hex(&sha), "0x0139bffdf152606a2cbffc12059829afee1ca9ddf6a682afd2c3d9c5572c387b");
        let sha3 = Algorithm::Sha3.respond(1, b"secret", &[2, 3]);
        assert_eq!(to_hex(&sha3), "0xf8d632f4120d63e6e132e32a335afbe79b4e84798b132a7a241688ff14c6fd5f");
    }

    #[test]
    fn the_first_known_algorithm_of_the_list_is_taken() {
        assert_eq!(Algorithm::choose("5"), Some(Algorithm::Md5));
        assert_eq!(Algorithm::choose("8,6,7,5"), Some(Algorithm::Sha3));
        assert_eq!(Algorithm::choose("6,7,5"), Some(Algorithm::Sha256));
        assert_eq!(Algorithm::choose("6"), None);
        assert_eq!(Algorithm::choose(""), None);
    }

    #[test]
    fn binary_values_in_both_forms() {
        assert_eq!(from_binary_value("0xaBc"), Some(vec![0x0a, 0xbc]));
        assert_eq!(from_binary_value("0X00ff"), Some(vec![0, 0xff]));
        assert_eq!(from_binary_value("0bAP8="), Some(vec![0, 0xff]));
        assert_eq!(from_binary_value("0bTWFu"), Some(b"Man".to_vec()));
        assert_eq!(from_binary_value("0bTQ=="), Some(b"M".to_vec()));
        for bad in ["", "0x", "0b", "12", "0xzz", "0bT", "0bTWF", "0bT===", "0bT=Fu", "0bTR==", "0b=="] {
            assert_eq!(from_binary_value(bad), None, "{bad:?}");
        }
        let longest = format!("0x{}", "11".repeat(CHAP_CHALLENGE_BYTES_MAX));
        assert_eq!(from_binary_value(&longest).map(|v| v.len()), Some(CHAP_CHALLENGE_BYTES_MAX));
        assert_eq!(from_binary_value(&format!("{longest}11")), None);
    }

    proptest! {
        #[test]
        fn hexadecimal_comes_back(bytes in proptest::collection::vec(any::<u8>(), 1..200)) {
            prop_assert_eq!(from_binary_value(&to_hex(&bytes)), Some(bytes));
        }

        #[test]
        fn any_text_is_decoded_or_refused(text in "0[xb][A-Za-z0-9+/=]{0,64}") {
            let _ = from_binary_value(&text);
        }

        #[test]
        fn comparison_is_equality(a in proptest::collection::vec(0u8..2, 0..4), b in proptest::collection::vec(0u8..2, 0..4)) {
            prop_assert_eq!(base::secret::is_same(&a, &b), a == b);
        }
    }
}
