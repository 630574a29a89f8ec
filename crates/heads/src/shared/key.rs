//! The key of an owner's reservations. Whoever reads it knows which head it is of, and of which term.

use base::ArrayId;
use pair::Term;

use crate::wire::Identity;

/// `head (8) | array (16) | term (40)`. A term has one owner, so no two heads ever have the same.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ClaimKey(u64);

const TERM_BITS: u32 = 40;

impl ClaimKey {
    pub(crate) fn new(identity: &Identity, term: Term) -> ClaimKey {
        let head = if identity.me < identity.other { 1 } else { 2 };
        ClaimKey::of(head, identity.array, term)
    }

    fn of(head: u64, array: ArrayId, term: Term) -> ClaimKey {
        assert!(term.0 < 1 << TERM_BITS, "a term each millisecond for thirty years");
        ClaimKey(head << 56 | short(array) << TERM_BITS | term.0)
    }

    pub(crate) fn number(self) -> u64 {
        self.0
    }

    fn term(self) -> u64 {
        self.0 & ((1 << TERM_BITS) - 1)
    }

    /// Of a key that was read from a drive: by how many terms it is later than this one. `None`: it is not of this array.
    pub(crate) fn is_later(self, other: u64) -> Option<bool> {
        let other = ClaimKey(other);
        let is_of_array = matches!(other.0 >> 56, 1 | 2) && other.0 << 8 >> 48 == self.0 << 8 >> 48;
        is_of_array.then(|| other.term() > self.term())
    }
}

/// The low bits of the array's id.
fn short(array: ArrayId) -> u64 {
    array.0 as u64 & 0xFFFF
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_says_whose_it_is_and_of_which_term() {
        let array = ArrayId(0xABCD_1234);
        let key = ClaimKey::of(1, array, Term(7));
        assert_eq!(key.number(), 0x0112_3400_0000_0007);
        assert_eq!(key.is_later(ClaimKey::of(2, array, Term(8)).number()), Some(true));
        assert_eq!(key.is_later(ClaimKey::of(2, array, Term(6)).number()), Some(false));
        assert_eq!(key.is_later(ClaimKey::of(2, ArrayId(5), Term(8)).number()), None);
        assert_eq!(key.is_later(0x1234), None, "of something else");
    }
}
