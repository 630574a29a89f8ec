//! A pool's settings as its lanes take them: what the administrator has set, and the program's choice for the rest.

use base::Nanos;
use pool::{LaneOptions, Patience};

/// The share of repairs in percent, and how much is borne with.
pub fn effective(settings: &catalog::PoolSettings) -> (u8, Patience) {
    let default = LaneOptions::default();
    let Patience { write_errors, read_errors, checksum_errors, window, .. } = default.patience;
    let Patience { slow_factor, slow_latency, slow_time, hung_time, .. } = default.patience;
    let patience = Patience {
        write_errors: settings.write_errors.unwrap_or(write_errors),
        read_errors: settings.read_errors.unwrap_or(read_errors),
        checksum_errors: settings.checksum_errors.unwrap_or(checksum_errors),
        window: settings.error_window_seconds.map_or(window, |seconds| Nanos::from_secs(seconds.into())),
        slow_factor: settings.slow_factor.unwrap_or(slow_factor),
        slow_latency: settings.slow_latency_ms.map_or(slow_latency, |ms| Nanos::from_millis(ms.into())),
        slow_time: settings.slow_seconds.map_or(slow_time, |seconds| Nanos::from_secs(seconds.into())),
        hung_time: settings.hung_seconds.map_or(hung_time, |seconds| Nanos::from_secs(seconds.into())),
    };
    (settings.repair_share_percent.unwrap_or(default.repair_share_percent), patience)
}
