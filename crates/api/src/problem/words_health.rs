//! The words of problems about the health of drives. See `words.rs`.

use base::calendar::month;

use crate::DriveFault;

fn threshold(is_stated: bool) -> &'static str {
    if is_stated { "its own warning threshold" } else { "the usual warning threshold of such drives" }
}

pub(super) fn warm(celsius: i16, warning: i16, is_stated: bool) -> String {
    let (below, threshold) = (warning.saturating_sub(celsius), threshold(is_stated));
    match below {
        1.. => format!("it is {celsius} °C, {below} °C below {threshold}"),
        // just below the threshold in a reading before
        _ => format!("it is {celsius} °C, close to {threshold} of {warning} °C"),
    }
}

pub(super) fn hot(celsius: i16, warning: i16, is_stated: bool, critical: Option<i16>) -> String {
    let threshold = threshold(is_stated);
    match critical {
        Some(critical) => {
            format!(
                "it is {celsius} °C; {threshold} is {warning} °C, and it may shut itself off at {critical} °C"
            )
        }
        None => format!("it is {celsius} °C; {threshold} is {warning} °C"),
    }
}

pub(super) fn overheats(drives: u64, survivable: u64) -> String {
    let close = if drives == 1 { "1 drive is" } else { &format!("{drives} drives are") };
    format!("{close} close to shutting off for heat; the pool survives the loss of {survivable}")
}

pub(super) fn wear(used_percent: u16, runs_out_ms: Option<u64>) -> String {
    let used = format!("{used_percent} % of its rated endurance is used");
    match runs_out_ms {
        Some(ms) if used_percent < 100 => format!("{used}; at this rate it is used up about {}", month(ms)),
        _ => used,
    }
}

pub(super) fn failing(faults: &[DriveFault]) -> String {
    let faults: Vec<String> = faults.iter().map(ToString::to_string).collect();
    format!("it says of itself that it fails: {}", faults.join(", "))
}

pub(super) fn media_errors(new: u64, all: u64) -> String {
    let errors = if new == 1 { "1 new media error" } else { &format!("{new} new media errors") };
    format!("{errors} within a day ({all} in all)")
}

pub(super) fn test_failed(at_hours: Option<u64>) -> String {
    match at_hours {
        Some(hours) => format!("its newest self-test has failed, after {hours} hours of power-on"),
        None => "its newest self-test has failed".to_owned(),
    }
}
