//! SATA: attributes by vendors, the device statistics of ACS, the SCT temperatures.
//!
//! The numbers of attributes mean different things at different vendors. So wear is taken from the statistics if they have it, else from
//! an attribute whose *name* in smartctl's database says what it is.

use api::{DriveFault, DriveSelfTest};
use serde_json::Value;

use super::json::{self, at, bool_at, number, rows, text};
use super::{Reading, percent, share, threshold};

/// Attributes whose normalized value is the endurance that is left, in percent.
const LEFT: [&str; 5] = [
    "Percent_Lifetime_Remain",
    "Percent_Life_Remaining",
    "SSD_Life_Left",
    "Media_Wearout_Indicator",
    "Remaining_Lifetime_Perc",
];
/// One that is so for most drives.
const LEFT_PROBABLY: &str = "Wear_Leveling_Count";
/// Reallocated, reported as uncorrectable, pending, and uncorrectable when tested.
const MEDIA: [u64; 4] = [5, 187, 197, 198];
/// Counts are in the lower half of the raw value; some vendors keep something else above.
const COUNT_MASK: u64 = 0xffff_ffff;

/// A row of the table of attributes.
struct Attribute<'a> {
    id: u64,
    name: String,
    row: &'a Value,
}

impl Attribute<'_> {
    fn raw(&self) -> Option<u64> {
        number(self.row, "raw.value")
    }
}

pub(super) fn read(root: &Value, reading: &mut Reading) {
    let attributes: Vec<Attribute> = rows(root, "ata_smart_attributes.table")
        .filter_map(|row| {
            let id = number(row, "id")?;
            Some(Attribute { id, name: text(row, "name", json::NAME_BYTES_MAX).unwrap_or_default(), row })
        })
        .collect();
    let by_id = |id: u64| attributes.iter().find(|attribute| attribute.id == id);
    let by_name = |name: &str| attributes.iter().find(|attribute| attribute.name == name);
    let heat = || by_id(194).or_else(|| by_id(190))?.raw().map(|raw| i16::from((raw & 0xff) as u8 as i8));
    reading.celsius = reading.celsius.or_else(heat).filter(|celsius| *celsius > 0);
    reading.celsius_warning = threshold(root, "temperature.op_limit_max");
    reading.celsius_critical = threshold(root, "temperature.limit_max");
    let left = |attribute: &Attribute| share(attribute.row, "value").map(|left| 100 - u16::from(left));
    reading.used_percent = reading
        .used_percent
        .or_else(|| used_by_statistics(root))
        .or_else(|| LEFT.iter().find_map(|name| left(by_name(name)?)));
    if reading.used_percent.is_none() {
        reading.used_percent = by_name(LEFT_PROBABLY).and_then(left);
        reading.is_wear_guessed = reading.used_percent.is_some();
    }
    if let Some(spare) = by_name("Available_Reservd_Space") {
        reading.spare_percent = share(spare.row, "value");
        reading.spare_percent_min = share(spare.row, "thresh");
    }
    let errors: Vec<u64> =
        MEDIA.iter().filter_map(|id| by_id(*id)?.raw()).map(|raw| raw & COUNT_MASK).collect();
    reading.media_errors = (!errors.is_empty()).then(|| errors.iter().sum());
    let unsafe_shutdowns = || by_id(174).or_else(|| by_id(192));
    reading.unsafe_shutdowns = unsafe_shutdowns().and_then(Attribute::raw).map(|raw| raw & COUNT_MASK);
    reading.written_bytes = written(root, &attributes);
    reading.says_failing = failing(root, &attributes);
    reading.self_test = self_test(root);
}

/// ACS-4 §9.5.10: page 7, "Percentage Used Endurance Indicator".
fn used_by_statistics(root: &Value) -> Option<u16> {
    let page = rows(root, "ata_device_statistics.pages").find(|page| number(page, "number") == Some(7))?;
    let named =
        |row: &&Value| at(row, "name").is_some_and(|name| name == "Percentage Used Endurance Indicator");
    let row = rows(page, "table").find(named)?;
    let is_valid = bool_at(row, "flags.valid").unwrap_or(false);
    percent(row, "value").filter(|_| is_valid)
}

fn written(root: &Value, attributes: &[Attribute]) -> Option<u64> {
    let block_bytes =
        number(root, "logical_block_size").filter(|bytes| matches!(bytes, 512 | 4096)).unwrap_or(512);
    attributes.iter().filter(|attribute| matches!(attribute.id, 241 | 246)).find_map(|attribute| {
        let unit_bytes = match attribute.name.as_str() {
            "Total_LBAs_Written" | "Total_Host_Sector_Write" => block_bytes,
            "Host_Writes_32MiB" => 32 << 20,
            "Host_Writes_GiB" | "Lifetime_Writes_GiB" | "Total_Writes_GiB" => 1 << 30,
            _ => return None,
        };
        attribute.raw()?.checked_mul(unit_bytes)
    })
}

/// An attribute below its threshold counts if the vendor says that it foretells a failure, and if that is so now.
fn failing(root: &Value, attributes: &[Attribute]) -> Vec<DriveFault> {
    let fails = |attribute: &&Attribute| {
        at(attribute.row, "when_failed").is_some_and(|when| when == "now")
            && bool_at(attribute.row, "flags.prefailure") == Some(true)
    };
    let names = attributes.iter().filter(fails).map(|attribute| match attribute.name.as_str() {
        "" => format!("attribute {}", attribute.id),
        name => name.to_owned(),
    });
    let mut faults: Vec<DriveFault> = names.take(8).map(|name| DriveFault::Attribute { name }).collect();
    if faults.is_empty() && bool_at(root, "smart_status.passed") == Some(false) {
        faults.push(DriveFault::SelfAssessment);
    }
    faults
}

/// A test that was aborted, or is running, has no verdict.
fn self_test(root: &Value) -> Option<DriveSelfTest> {
    let log = ["standard", "extended"];
    log.iter().find_map(|log| {
        rows(root, &format!("ata_smart_self_test_log.{log}.table")).find_map(|row| {
            let has_passed = bool_at(row, "status.passed")?;
            Some(DriveSelfTest { has_passed, at_hours: number(row, "lifetime_hours") })
        })
    })
}
