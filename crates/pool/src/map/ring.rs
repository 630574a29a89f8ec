//! A ring of cached items, evicted by a second-chance clock: a search for an item to evict continues where the last
//! search stopped, and skips items that were used since they were last passed. Nothing is sorted, so evicting a page
//! takes no longer in a large cache than in a small one.

/// Keys at places that do not change while they are in the ring.
pub(crate) struct Ring<K> {
    places: Vec<Option<K>>,
    free: Vec<usize>,
    hand: usize,
}

impl<K: Copy> Ring<K> {
    pub fn new() -> Ring<K> {
        Ring { places: Vec::new(), free: Vec::new(), hand: 0 }
    }

    /// Returns the place that [`Ring::remove`] needs.
    pub fn insert(&mut self, key: K) -> usize {
        match self.free.pop() {
            Some(place) => {
                self.places[place] = Some(key);
                place
            }
            None => {
                self.places.push(Some(key));
                self.places.len() - 1
            }
        }
    }

    pub fn remove(&mut self, place: usize) {
        let taken = self.places[place].take();
        assert!(taken.is_some(), "a key is removed once");
        self.free.push(place);
    }

    /// Advances by one place; returns the key there.
    pub fn turn(&mut self) -> Option<K> {
        self.hand = if self.hand + 1 < self.places.len() { self.hand + 1 } else { 0 };
        self.places.get(self.hand).copied().flatten()
    }

    /// The number of places, including free ones.
    pub fn places(&self) -> usize {
        self.places.len()
    }

    /// Refills the ring with these keys, in as few places as possible; each gets its place.
    pub fn refill<'a>(&mut self, keys: impl Iterator<Item = (K, &'a mut usize)>) {
        *self = Ring::new();
        for (key, place) in keys {
            *place = self.insert(key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn goes_round_what_is_there() {
        let mut ring = Ring::new();
        assert_eq!(ring.turn(), None);
        let places: Vec<usize> = (10..13).map(|key| ring.insert(key)).collect();
        ring.remove(places[1]);
        let round: Vec<Option<i32>> = (0..3).map(|_| ring.turn()).collect();
        assert_eq!(
            round.iter().flatten().copied().collect::<std::collections::BTreeSet<_>>(),
            [10, 12].into()
        );
        assert_eq!(ring.insert(14), places[1], "a free place is used again");
        assert_eq!(ring.places(), 3);
    }
}
