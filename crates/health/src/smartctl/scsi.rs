//! SAS: the informational exceptions, the error counters, the endurance indicator (SPC-4, SBC-3).

use api::{DriveFault, DriveSelfTest};
use serde_json::Value;

use super::json::{at, bool_at, number, text};
use super::{Reading, percent, threshold};

/// How far below the temperature at which a drive trips it is time to warn.
const WARNING_BELOW_TRIP: i16 = 10;
/// WARNING - SPECIFIED TEMPERATURE EXCEEDED.
const TOO_HOT: (u64, u64) = (0x0b, 0x01);

pub(super) fn read(root: &Value, reading: &mut Reading) {
    if reading.model.is_empty() {
        reading.model = text(root, "product", super::json::NAME_BYTES_MAX).unwrap_or_default();
    }
    // 0: the drive has no sensor
    reading.celsius = reading.celsius.filter(|celsius| *celsius != 0);
    reading.celsius_critical = threshold(root, "temperature.drive_trip");
    reading.celsius_warning = reading.celsius_critical.map(|trip| trip - WARNING_BELOW_TRIP);
    // a number; a reader of others expects an object
    let used = "scsi_percentage_used_endurance_indicator";
    let used = percent(root, used).or_else(|| percent(root, &format!("{used}.value")));
    reading.used_percent = used.or(reading.used_percent);
    let uncorrected =
        |what: &str| number(root, &format!("scsi_error_counter_log.{what}.total_uncorrected_errors"));
    let counts = ["read", "write", "verify"].into_iter().filter_map(uncorrected);
    let counts: Vec<u64> = counts.chain(number(root, "scsi_grown_defect_list")).collect();
    reading.media_errors =
        (!counts.is_empty()).then(|| counts.iter().fold(0, |all: u64, one| all.saturating_add(*one)));
    reading.written_bytes = written(root);
    let code = (number(root, "smart_status.scsi.asc"), number(root, "smart_status.scsi.ascq"));
    let is_heat = code == (Some(TOO_HOT.0), Some(TOO_HOT.1));
    if bool_at(root, "smart_status.passed") == Some(false) && !is_heat {
        reading.says_failing = vec![DriveFault::SelfAssessment];
    }
    reading.self_test = self_test(root);
}

/// Gigabytes of 10^9 bytes, as text with three digits behind the point.
fn written(root: &Value) -> Option<u64> {
    let gigabytes = at(root, "scsi_error_counter_log.write.gigabytes_processed")?;
    let gigabytes: f64 = match gigabytes.as_str() {
        Some(text) => text.parse().ok()?,
        None => gigabytes.as_f64()?,
    };
    // up to 10^18 bytes, which a float holds well enough for a rate
    (gigabytes > 0.0 && gigabytes < 1e9).then_some((gigabytes * 1e9) as u64)
}

/// SPC-4, self-test results log page: 0 is good, 3 to 7 are failures, the others were aborted. smartctl numbers the entries.
fn self_test(root: &Value) -> Option<DriveSelfTest> {
    (0..20).find_map(|entry| {
        let row = root.get(format!("scsi_self_test_{entry}"))?;
        let has_passed = match number(row, "result.value")? {
            0 => true,
            3..=7 => false,
            _ => return None,
        };
        Some(DriveSelfTest { has_passed, at_hours: number(row, "power_on_time.hours") })
    })
}
