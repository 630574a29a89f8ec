//! A pool's settings as its lanes use them: the administrator's values, and the program's defaults for the rest.

use api::PoolSettings;
use base::Nanos;
use pool::Patience;

/// The share of repairs in percent, and the error thresholds.
pub fn effective(settings: &catalog::PoolSettings) -> (u8, Patience) {
    let now = PoolSettings::from(settings);
    let patience = Patience {
        write_errors: now.write_errors,
        read_errors: now.read_errors,
        checksum_errors: now.checksum_errors,
        window: Nanos::from_secs(now.error_window_seconds.into()),
        slow_factor: now.slow_factor,
        slow_latency: Nanos::from_millis(now.slow_latency_ms.into()),
        slow_time: Nanos::from_secs(now.slow_seconds.into()),
        hung_time: Nanos::from_secs(now.hung_seconds.into()),
    };
    (now.repair_share_percent as u8, patience)
}

#[cfg(test)]
mod tests {
    use pool::LaneOptions;

    use super::*;

    #[test]
    fn a_pool_by_itself_has_the_same_defaults() {
        let LaneOptions { repair_share_percent, patience, .. } = LaneOptions::default();
        assert_eq!(effective(&catalog::PoolSettings::default()), (repair_share_percent, patience));
    }
}
