//! A set of numbers below a fixed end: regions, or pieces, of a drive.

use std::cell::Cell;

/// See the header of this file.
#[derive(Clone, Debug)]
pub struct Bits {
    words: Vec<u64>,
    end: u32,
    count: u32,
    /// No word before this one has a number: sets are emptied from the front.
    floor: Cell<usize>,
}

impl PartialEq for Bits {
    fn eq(&self, other: &Bits) -> bool {
        self.end == other.end && self.count == other.count && self.words == other.words
    }
}

impl Eq for Bits {}

impl Bits {
    /// The empty set of numbers below `end`.
    pub fn empty(end: u32) -> Bits {
        Bits { words: vec![0; end.div_ceil(64) as usize], end, count: 0, floor: Cell::new(0) }
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
        self.floor.set(self.floor.get().min(number as usize / 64));
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
        self.floor.set(0);
    }

    /// Whether `other` has all of these numbers.
    pub fn is_within(&self, other: &Bits) -> bool {
        let has = |index: usize| other.words.get(index).copied().unwrap_or(0);
        self.words.iter().enumerate().all(|(index, word)| word & !has(index) == 0)
    }

    /// The lowest number from `from` on. One after the other from 0 on, while they are removed: no word is looked at again that has become
    /// empty.
    pub fn next(&self, from: u32) -> Option<u32> {
        if from >= self.end || self.count == 0 {
            return None;
        }
        let floor = self.floor.get();
        let from = from as usize;
        let (first, mask) =
            if from / 64 < floor { (floor, u64::MAX) } else { (from / 64, u64::MAX << (from % 64)) };
        let masked = self.words.get(first)? & mask;
        let rest = self.words[first + 1..].iter().copied();
        let (index, word) = std::iter::once(masked).chain(rest).enumerate().find(|(_, word)| *word != 0)?;
        if from / 64 <= floor && mask == u64::MAX {
            self.floor.set(first + index);
        }
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

    #[test]
    fn the_lowest_number_is_found_again_after_smaller_ones_came_and_went() {
        let mut bits = Bits::empty(1000);
        [70, 300, 999].into_iter().for_each(|number| bits.insert(number));
        assert_eq!(bits.next(0), Some(70));
        bits.remove(70);
        assert_eq!((bits.next(0), bits.floor.get()), (Some(300), 4));
        assert_eq!(bits.next(301), Some(999));
        assert_eq!(bits.next(0), Some(300), "a look further on does not hide what is before");
        bits.insert(5);
        assert_eq!(bits.next(0), Some(5));
        bits.retain(|number| number == 999);
        assert_eq!((bits.next(0), bits.len()), (Some(999), 1));
        bits.remove(999);
        assert_eq!(bits.next(0), None);
        assert_eq!(bits, Bits::empty(1000), "what was looked at does not count");
    }

    #[test]
    fn a_set_is_within_another_if_that_has_all_of_its_numbers() {
        let of = |numbers: &[u32]| {
            let mut bits = Bits::empty(200);
            numbers.iter().for_each(|&number| bits.insert(number));
            bits
        };
        assert!(of(&[]).is_within(&of(&[])) && of(&[3, 150]).is_within(&of(&[3, 4, 150])));
        assert!(!of(&[3, 151]).is_within(&of(&[3, 4, 150])));
    }
}
