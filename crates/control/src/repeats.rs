//! Limits how often the same message is logged, whatever causes it.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// For how long the same thing is not said again.
pub const QUIET: Duration = Duration::from_secs(60);
/// Things that are remembered at once.
const KEYS_MAX: usize = 256;

/// What has been said lately.
pub struct Repeats<K> {
    said: BTreeMap<K, Said>,
}

struct Said {
    at: Instant,
    held_back: u64,
}

impl<K: Ord> Default for Repeats<K> {
    fn default() -> Repeats<K> {
        Repeats { said: BTreeMap::new() }
    }
}

impl<K: Ord> Repeats<K> {
    /// Whether to say it now: then how often it has happened since it was said last, this time not counted. `None` where it
    /// has been said within [`QUIET`], or where too many other things have been.
    pub fn say(&mut self, key: K, now: Instant) -> Option<u64> {
        let lately = |said: &Said| now.duration_since(said.at) < QUIET;
        if let Some(said) = self.said.get_mut(&key) {
            if lately(said) {
                said.held_back += 1;
                return None;
            }
            let held_back = said.held_back;
            *said = Said { at: now, held_back: 0 };
            return Some(held_back);
        }
        if self.said.len() >= KEYS_MAX {
            self.said.retain(|_, said| lately(said));
        }
        if self.said.len() >= KEYS_MAX {
            return None;
        }
        self.said.insert(key, Said { at: now, held_back: 0 });
        Some(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_thing_is_said_once_a_minute_with_a_count() {
        let mut repeats = Repeats::default();
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        assert_eq!(repeats.say("a", at(0)), Some(0));
        assert_eq!(repeats.say("a", at(1)), None);
        assert_eq!(repeats.say("b", at(1)), Some(0));
        assert_eq!(repeats.say("a", at(59)), None);
        assert_eq!(repeats.say("a", at(60)), Some(2));
        assert_eq!(repeats.say("a", at(120)), Some(0));
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let mut repeats = Repeats::default();
        let start = Instant::now();
        let said = (0..10 * KEYS_MAX).filter(|&key| repeats.say(key, start).is_some()).count();
        assert_eq!((said, repeats.said.len()), (KEYS_MAX, KEYS_MAX));
        assert_eq!(repeats.say(usize::MAX, start + QUIET), Some(0), "room is made by those that are over");
        assert_eq!(repeats.said.len(), 1);
    }
}
