//! The words of problems about the health of drives. See `words.rs`.

use base::calendar::month;

use super::ProblemFacts;
use crate::DriveFault;

/// The facts whose words are in this file.
macro_rules! health_facts {
    () => {
        ProblemFacts::HealthUnwatched { .. }
            | ProblemFacts::DriveHealthUnknown { .. }
            | ProblemFacts::DriveWarm { .. }
            | ProblemFacts::DriveHot { .. }
            | ProblemFacts::PoolOverheats { .. }
            | ProblemFacts::DriveWears { .. }
            | ProblemFacts::DriveWorn { .. }
            | ProblemFacts::DriveFailing { .. }
            | ProblemFacts::DriveMediaErrors { .. }
            | ProblemFacts::DriveTestFailed { .. }
            | ProblemFacts::DriveLinkSlow(_)
    };
}
pub(super) use health_facts;

pub(super) fn reason(facts: &ProblemFacts) -> String {
    use ProblemFacts::*;
    match facts {
        HealthUnwatched { program } => {
            format!(
                "{program} is not installed: nobody sees wear, media errors and what drives say of themselves"
            )
        }
        DriveHealthUnknown { why } => format!("its health is not known: {why}"),
        DriveWarm { celsius, celsius_warning, is_stated } => warm(*celsius, *celsius_warning, *is_stated),
        DriveHot { celsius, celsius_warning, is_stated, celsius_critical } => {
            hot(*celsius, *celsius_warning, *is_stated, *celsius_critical)
        }
        PoolOverheats { drives, survivable } => overheats(*drives, *survivable),
        DriveWears { used_percent, runs_out_ms } | DriveWorn { used_percent, runs_out_ms } => {
            wear(*used_percent, *runs_out_ms)
        }
        DriveFailing { faults } => failing(faults),
        DriveMediaErrors { new, all } => media_errors(*new, *all),
        DriveTestFailed { at_hours } => test_failed(*at_hours),
        DriveLinkSlow(link) => format!("its PCIe link runs at {link}"),
        other => unreachable!("{other:?} is not about the health of drives"),
    }
}

fn threshold(is_stated: bool) -> &'static str {
    if is_stated { "its own warning threshold" } else { "the usual warning threshold of such drives" }
}

fn warm(celsius: i16, warning: i16, is_stated: bool) -> String {
    let (below, threshold) = (warning.saturating_sub(celsius), threshold(is_stated));
    match below {
        1.. => format!("it is {celsius} °C, {below} °C below {threshold}"),
        // just below the threshold in a reading before
        _ => format!("it is {celsius} °C, close to {threshold} of {warning} °C"),
    }
}

fn hot(celsius: i16, warning: i16, is_stated: bool, critical: Option<i16>) -> String {
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

fn overheats(drives: u64, survivable: u64) -> String {
    let close = if drives == 1 { "1 drive is" } else { &format!("{drives} drives are") };
    format!("{close} close to shutting off for heat; the pool survives the loss of {survivable}")
}

fn wear(used_percent: u16, runs_out_ms: Option<u64>) -> String {
    let used = format!("{used_percent} % of its rated endurance is used");
    match runs_out_ms {
        Some(ms) if used_percent < 100 => format!("{used}; at this rate it is used up about {}", month(ms)),
        _ => used,
    }
}

fn failing(faults: &[DriveFault]) -> String {
    let faults: Vec<String> = faults.iter().map(ToString::to_string).collect();
    format!("it says of itself that it fails: {}", faults.join(", "))
}

fn media_errors(new: u64, all: u64) -> String {
    let errors = if new == 1 { "1 new media error" } else { &format!("{new} new media errors") };
    format!("{errors} within a day ({all} in all)")
}

fn test_failed(at_hours: Option<u64>) -> String {
    match at_hours {
        Some(hours) => format!("its newest self-test has failed, after {hours} hours of power-on"),
        None => "its newest self-test has failed".to_owned(),
    }
}
