//! A set of numbers below a fixed end: regions, or pieces, of a drive.

/// See the header of this file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Bits {
    words: Vec<u64>,
    end: u32,
    count: u32,
}

impl Bits {
    /// The empty set of numbers below `end`.
    pub fn empty(end: u32) -> Bits {
        Bits { words: vec![0; end.div_ceil(64) as usize], end, count: 0 }
    }

    /// All numbers below `end`.
    pub fn full(end: u32) -> Bits {
        let mut bits = Bits::empty(end);
        bits.insert_all();
        bits
    }

    /// From bytes as [`Bits::to_bytes`] makes them. `None` if a number is not below `end`.
    pub fn from_bytes(end: u32, bytes: &[u8]) -> Option<Bits> {
        let mut bits = Bits::empty(end);
        for (index, byte) in bytes.iter().enumerate() {
            for bit in (0..8).filter(|bit| byte >> bit & 1 == 1) {
                let number = index * 8 + bit;
                if number >= end as usize {
                    return None;
                }
                bits.insert(number as u32);
            }
        }
        Some(bits)
    }

    /// One bit for each number, the lowest bit of the first byte is number 0.
    pub fn to_bytes(&self) -> Vec<u8> {
        let bytes = self.words.iter().flat_map(|word| word.to_le_bytes());
        bytes.take(self.end.div_ceil(8) as usize).collect()
    }

    pub fn end(&self) -> u32 {
        self.end
    }

    pub fn len(&self) -> u32 {
        self.count
    }

    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    pub fn has(&self, number: u32) -> bool {
        number < self.end && self.words[number as usize / 64] >> (number % 64) & 1 == 1
    }

    pub fn insert(&mut self, number: u32) {
        assert!(number < self.end, "{number} is outside of the set, which ends at {}", self.end);
        let (word, bit) = (&mut self.words[number as usize / 64], 1 << (number % 64));
        self.count += u32::from(*word & bit == 0);
        *word |= bit;
    }

    pub fn remove(&mut self, number: u32) {
        if self.has(number) {
            self.words[number as usize / 64] &= !(1 << (number % 64));
            self.count -= 1;
        }
    }

    /// Keeps the numbers for which this holds.
    pub fn retain(&mut self, keep: impl Fn(u32) -> bool) {
        let gone: Vec<u32> = self.iter().filter(|&number| !keep(number)).collect();
        gone.into_iter().for_each(|number| self.remove(number));
    }

    pub fn insert_all(&mut self) {
        self.words.fill(u64::MAX);
        let rest = self.end % 64;
        if let Some(last) = self.words.last_mut().filter(|_| rest > 0) {
            *last = (1 << rest) - 1;
        }
        self.count = self.end;
    }

    /// The lowest number from `from` on.
    pub fn next(&self, from: u32) -> Option<u32> {
        if from >= self.end {
            return None;
        }
        let first = from as usize / 64;
        let masked = self.words[first] & (u64::MAX << (from % 64));
        let rest = self.words[first + 1..].iter().copied();
        let (index, word) = std::iter::once(masked).chain(rest).enumerate().find(|(_, word)| *word != 0)?;
        Some((first + index) as u32 * 64 + word.trailing_zeros())
    }

    pub fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        std::iter::successors(self.next(0), |&number| self.next(number + 1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_come_back_in_order() {
        for end in [1, 63, 64, 65, 200] {
            let mut bits = Bits::empty(end);
            let numbers: Vec<u32> =
                [0, 5, 63, 64, 127, 199].into_iter().filter(|&number| number < end).collect();
            numbers.iter().for_each(|&number| bits.insert(number));
            assert_eq!(bits.iter().collect::<Vec<_>>(), numbers);
            assert_eq!(bits.len() as usize, numbers.len());
            assert_eq!(Bits::from_bytes(end, &bits.to_bytes()), Some(bits.clone()));
            bits.remove(0);
            assert_eq!(bits.next(0), numbers.get(1).copied());
            let full = Bits::full(end);
            assert_eq!((full.len(), full.iter().count()), (end, end as usize));
            assert_eq!(Bits::from_bytes(end, &full.to_bytes()), Some(full));
        }
        assert_eq!(Bits::from_bytes(3, &[0b1000]), None);
    }
}
