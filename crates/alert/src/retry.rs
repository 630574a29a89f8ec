//! When a channel that fails is tried again.

use std::time::Duration;

/// After the first failures; after more of them, the last one.
const PAUSES_SECONDS: [u64; 6] = [10, 30, 60, 120, 300, 900];

/// The pause after so many failures in a row, with up to a fifth more by `random`, so that many heads do not come at once.
pub(crate) fn pause(failures: u64, random: u8) -> Duration {
    let place = (failures.max(1) - 1).min(PAUSES_SECONDS.len() as u64 - 1) as usize;
    let seconds = Duration::from_secs(PAUSES_SECONDS[place]);
    seconds + seconds.mul_f64(f64::from(random) / f64::from(u8::MAX) / 5.0)
}

pub(crate) fn random() -> u8 {
    let mut byte = [0];
    // without random bits, heads come at the same time
    let _none = getrandom::fill(&mut byte);
    byte[0]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_to_a_quarter_of_an_hour() {
        let seconds = |failures, random| pause(failures, random).as_secs();
        assert_eq!(
            [1, 2, 3, 4, 5, 6, 7, u64::MAX].map(|n| seconds(n, 0)),
            [10, 30, 60, 120, 300, 900, 900, 900]
        );
        assert_eq!((seconds(1, 255), seconds(6, 255)), (12, 1080));
    }
}
