//! What a pool uses beyond the format of version 5. A program that does not know all of it leaves the pool alone.

use std::fmt;

/// A set of features, as its label has it.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Features(u64);

/// Every known feature: its bit and its name.
const KNOWN: [(Features, &str); 1] = [(Features::TWO_HEADS, "two heads")];

impl Features {
    pub const NONE: Features = Features(0);
    /// Two heads have the pool: its drives have twins, or both heads see them. A head that is alone must not write to it.
    pub const TWO_HEADS: Features = Features(1);

    pub fn from_bits(bits: u64) -> Features {
        Features(bits)
    }

    pub fn bits(self) -> u64 {
        self.0
    }

    pub fn has(self, other: Features) -> bool {
        self.0 & other.0 == other.0
    }

    #[must_use]
    pub fn with(self, other: Features) -> Features {
        Features(self.0 | other.0)
    }

    #[must_use]
    pub fn without(self, other: Features) -> Features {
        Features(self.0 & !other.0)
    }

    /// Those that this program does not know.
    pub fn unknown(self) -> Features {
        KNOWN.iter().fold(self, |rest, (known, _)| rest.without(*known))
    }
}

impl fmt::Display for Features {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let known = KNOWN.iter().filter(|(known, _)| self.has(*known)).map(|(_, name)| (*name).to_owned());
        let unknown =
            (0..64).filter(|bit| self.unknown().0 >> bit & 1 == 1).map(|bit| format!("number {bit}"));
        let names: Vec<String> = known.chain(unknown).collect();
        f.write_str(&names.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_features_are_told_by_number() {
        let all = Features::TWO_HEADS.with(Features::from_bits(1 << 7 | 1 << 63));
        assert_eq!(all.to_string(), "two heads, number 7, number 63");
        assert_eq!(all.unknown(), Features::from_bits(1 << 7 | 1 << 63));
        assert_eq!(all.without(all.unknown()), Features::TWO_HEADS);
        assert!(all.has(Features::TWO_HEADS) && !Features::NONE.has(Features::TWO_HEADS));
    }
}
