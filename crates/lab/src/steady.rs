//! Detects the steady state of a drive or a pool. A new drive is faster at first, so earlier rounds do not count.

use crate::result::median;

/// Rounds that are looked at together, as the SNIA's Performance Test Specification has it.
pub const WINDOW: usize = 5;
/// Rounds until it is given up.
pub const ROUNDS_MAX: u32 = 25;
/// Largest less smallest of the window, and the rise or fall over it, as shares of its mean.
const EXCURSION_MAX: f64 = 0.20;
const SLOPE_MAX: f64 = 0.10;

/// The rate in steady state, where the last rounds show one.
pub fn steady(rates: &[f64]) -> Option<f64> {
    let window = rates.len().checked_sub(WINDOW).map(|start| &rates[start..])?;
    let count = WINDOW as f64;
    let mean = window.iter().sum::<f64>() / count;
    let (low, high) =
        window.iter().fold((f64::MAX, f64::MIN), |(low, high), &rate| (low.min(rate), high.max(rate)));
    // least squares over 0, 1, 2 ...
    let middle = (count - 1.0) / 2.0;
    let (above, below) = window.iter().enumerate().fold((0.0, 0.0), |(above, below), (index, rate)| {
        let x = index as f64 - middle;
        (above + x * (rate - mean), below + x * x)
    });
    let rise = (above / below * (count - 1.0)).abs();
    let is_steady = mean > 0.0 && high - low <= EXCURSION_MAX * mean && rise <= SLOPE_MAX * mean;
    is_steady.then(|| median(window.iter().copied())).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pace_is_found_and_a_decline_is_not_one() {
        assert_eq!(steady(&[900.0, 400.0, 100.0, 102.0, 99.0, 101.0, 100.0]), Some(100.0));
        assert_eq!(steady(&[100.0, 100.0, 100.0, 100.0]), None, "too few");
        assert_eq!(steady(&[120.0, 115.0, 110.0, 105.0, 100.0]), None, "it still falls");
        assert_eq!(steady(&[100.0, 130.0, 100.0, 130.0, 100.0]), None, "it swings");
        assert_eq!(steady(&[0.0; 5]), None);
    }
}
