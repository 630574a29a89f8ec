//! NVMe: the SMART / Health Information log page (NVM Express Base 2.0 §5.16.1.3) and the self-test log.

use api::{DriveFault, DriveSelfTest};
use serde_json::Value;

use super::json::{at, bool_at, number, rows};
use super::{Reading, celsius, percent, share, threshold};

const LOG: &str = "nvme_smart_health_information_log";
/// Bytes of a data unit.
const DATA_UNIT_BYTES: u64 = 512_000;
/// Bits of the critical warning, and what they say. Bit 1 is heat, which the temperature tells better.
const WARNINGS: [(u64, DriveFault); 5] = [
    (1, DriveFault::Spare),
    (4, DriveFault::Reliability),
    (8, DriveFault::ReadOnly),
    (16, DriveFault::MemoryBackup),
    (32, DriveFault::PersistentMemory),
];

pub(super) fn read(root: &Value, reading: &mut Reading) {
    reading.celsius_warning = threshold(root, "nvme_composite_temperature_threshold.warning");
    reading.celsius_critical = threshold(root, "nvme_composite_temperature_threshold.critical");
    reading.self_test = self_test(root);
    // one whose page could not be read may have said the rest
    let Some(log) = root.get(LOG) else { return judge(root, None, reading) };
    reading.celsius = reading.celsius.or_else(|| celsius(log, "temperature"));
    reading.used_percent = percent(log, "percentage_used").or(reading.used_percent);
    reading.spare_percent = share(log, "available_spare");
    reading.spare_percent_min = share(log, "available_spare_threshold");
    let units = number(log, "data_units_written");
    reading.written_bytes = units.and_then(|units| units.checked_mul(DATA_UNIT_BYTES));
    reading.power_on_hours = reading.power_on_hours.or_else(|| number(log, "power_on_hours"));
    reading.power_cycles = reading.power_cycles.or_else(|| number(log, "power_cycles"));
    reading.unsafe_shutdowns = number(log, "unsafe_shutdowns");
    // all ones: the drive does not count them
    reading.media_errors = number(log, "media_errors").filter(|errors| *errors != u64::MAX);
    judge(root, Some(log), reading);
}

fn judge(root: &Value, log: Option<&Value>, reading: &mut Reading) {
    let warning = number(root, "smart_status.nvme.value");
    match warning.or_else(|| number(log?, "critical_warning")) {
        Some(bits) => {
            let set = WARNINGS.into_iter().filter(|(bit, _)| bits & bit != 0);
            reading.says_failing = set.map(|(_, fault)| fault).collect();
        }
        None if bool_at(root, "smart_status.passed") == Some(false) => {
            reading.says_failing = vec![DriveFault::SelfAssessment];
        }
        None => {}
    }
}

/// §5.16.1.7: result 0 is good, 5 to 7 are failures, the others were aborted.
fn self_test(root: &Value) -> Option<DriveSelfTest> {
    rows(root, "nvme_self_test_log.table").find_map(|row| {
        let has_passed = match at(row, "self_test_result.value")?.as_u64()? {
            0 => true,
            5..=7 => false,
            _ => return None,
        };
        Some(DriveSelfTest { has_passed, at_hours: number(row, "power_on_hours") })
    })
}
