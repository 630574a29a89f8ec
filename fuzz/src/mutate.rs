//! Makes inputs out of inputs, without looking at what they reach: for smoke tests on any toolchain.
//!
//! One seed decides everything, so that a batch is run again by its seed.

/// xorshift64*.
pub struct Dice(u64);

impl Dice {
    pub fn new(seed: u64) -> Dice {
        Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 16) as usize % end.max(1)
    }
}

/// Bytes that parsers trip over.
const INTERESTING: [u8; 8] = [0, 1, 0x7f, 0x80, 0xff, b'=', b'"', 0x40];

/// One to eight changes to `input`.
pub fn mutate(input: &mut Vec<u8>, other: &[u8], dice: &mut Dice, bytes_max: usize) {
    for _ in 0..=dice.below(8) {
        let at = dice.below(input.len() + 1);
        match dice.below(8) {
            0 if at < input.len() => input[at] ^= 1 << dice.below(8),
            1 if at < input.len() => input[at] = dice.below(256) as u8,
            2 if at < input.len() => input[at] = INTERESTING[dice.below(INTERESTING.len())],
            3 => input.truncate(at),
            4 => input.insert(at, dice.below(256) as u8),
            5 if at < input.len() => {
                let end = at + dice.below((input.len() - at).min(64)) + 1;
                let copy = input[at..end].to_vec();
                input.splice(at..at, copy);
            }
            6 if at < input.len() => {
                let end = at + dice.below((input.len() - at).min(16)) + 1;
                input.drain(at..end);
            }
            _ if !other.is_empty() => {
                let from = dice.below(other.len());
                let end = from + dice.below((other.len() - from).min(128)) + 1;
                let keep = (at + end - from).min(input.len());
                input.splice(at..keep, other[from..end].iter().copied());
            }
            _ => input.push(dice.below(256) as u8),
        }
        input.truncate(bytes_max);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_seed_makes_the_same_inputs_within_the_bound() {
        let make = |seed| {
            let (mut dice, mut input) = (Dice::new(seed), b"something".to_vec());
            for _ in 0..1000 {
                mutate(&mut input, b"other", &mut dice, 100);
                assert!(input.len() <= 100);
            }
            input
        };
        assert_eq!(make(1), make(1));
        assert_ne!(make(1), make(2));
    }
}
