//! What smartctl prints (`--json`, smartmontools 7.0 and newer), as a value.
//!
//! ```text
//!   bytes ─► JSON ─► device.protocol ─┬─ NVMe ─► nvme.rs ─┐
//!                                     ├─ ATA  ─► ata.rs  ─┼─► Reading
//!                                     └─ SCSI ─► scsi.rs ─┘
//! ```
//!
//! What always holds: every field is optional and no type is trusted; text is printable and short. The exit code of smartctl is a mask of
//! bits, most of which are no failure: the JSON decides.

mod ata;
mod json;
mod nvme;
mod scsi;
#[cfg(test)]
mod tests;

use api::{DriveFault, DriveSelfTest, HealthUnread};
use serde_json::Value;

use self::json::{at, bool_at, number, text};

/// The commands of a drive, which say what its health is made of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Protocol {
    Nvme,
    Ata,
    Scsi,
}

/// What a drive says of itself. `None`: it does not say.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Reading {
    pub protocol: Protocol,
    pub model: String,
    pub serial: String,
    pub firmware: String,
    pub celsius: Option<i16>,
    pub celsius_warning: Option<i16>,
    pub celsius_critical: Option<i16>,
    /// Share of the rated endurance that is used; may be more than 100.
    pub used_percent: Option<u16>,
    /// It is worked out of an attribute that not every vendor means so.
    pub is_wear_guessed: bool,
    pub spare_percent: Option<u8>,
    /// Below that, the drive warns.
    pub spare_percent_min: Option<u8>,
    pub written_bytes: Option<u64>,
    pub power_on_hours: Option<u64>,
    pub power_cycles: Option<u64>,
    pub unsafe_shutdowns: Option<u64>,
    pub media_errors: Option<u64>,
    /// Heat is none of it.
    pub says_failing: Vec<DriveFault>,
    /// The newest one that was not aborted.
    pub self_test: Option<DriveSelfTest>,
}

/// smartctl could not open the device, or it sleeps.
const EXIT_OPEN_FAILED: i32 = 2;

/// Reads the output of one call. `code`: how it has ended; `None` by a signal.
pub fn parse(output: &[u8], code: Option<i32>) -> Result<Reading, HealthUnread> {
    let not_understood = |why: &str| Err(HealthUnread::NotUnderstood { why: why.to_owned() });
    let Ok(root) = serde_json::from_slice::<Value>(output) else {
        return match code {
            None => not_understood("it was ended by a signal"),
            Some(_) => not_understood("it has printed no JSON (version 7.0 or newer is needed)"),
        };
    };
    let protocol = match at(&root, "device.protocol").and_then(Value::as_str) {
        Some("NVMe") => Protocol::Nvme,
        Some("ATA") => Protocol::Ata,
        Some("SCSI") => Protocol::Scsi,
        _ => return Err(without_health(&root, code)),
    };
    if !HEALTH.iter().any(|key| root.get(key).is_some()) {
        return Err(without_health(&root, code));
    }
    let mut reading = common(&root, protocol);
    match protocol {
        Protocol::Nvme => nvme::read(&root, &mut reading),
        Protocol::Ata => ata::read(&root, &mut reading),
        Protocol::Scsi => scsi::read(&root, &mut reading),
    }
    Ok(reading)
}

/// Objects of which one at least is there if the drive has said something of its health.
const HEALTH: [&str; 7] = [
    "smart_status",
    "nvme_smart_health_information_log",
    "ata_smart_attributes",
    "ata_device_statistics",
    "scsi_error_counter_log",
    "scsi_percentage_used_endurance_indicator",
    "temperature",
];

/// Why the output says nothing of health: its first message that is an error, else the exit code.
fn without_health(root: &Value, code: Option<i32>) -> HealthUnread {
    let messages = at(root, "smartctl.messages").and_then(Value::as_array);
    let texts = |severity: &'static str| {
        let messages = messages.into_iter().flatten();
        let of = messages.filter(move |message| at(message, "severity").is_some_and(|is| is == severity));
        of.filter_map(|message| text(message, "string", json::MESSAGE_BYTES_MAX))
    };
    let Some(why) = texts("error").next() else {
        let sleeps = |text: &String| text.contains("STANDBY") || text.contains("SLEEP");
        return match code {
            _ if texts("information").any(|text| sleeps(&text)) => HealthUnread::Asleep,
            _ if bool_at(root, "smart_support.available") == Some(false) => HealthUnread::NoSmart,
            Some(code) if code & EXIT_OPEN_FAILED != 0 => {
                HealthUnread::NotUnderstood { why: "it could not open the drive".to_owned() }
            }
            Some(_) => HealthUnread::NoSmart,
            None => HealthUnread::NotUnderstood { why: "it was ended by a signal".to_owned() },
        };
    };
    match () {
        () if why.contains("Permission denied") || why.contains("Operation not permitted") => {
            HealthUnread::NotPermitted
        }
        () if why.contains("lacks SMART capability") => HealthUnread::NoSmart,
        () => HealthUnread::NotUnderstood { why },
    }
}

/// What smartctl names alike for all protocols.
fn common(root: &Value, protocol: Protocol) -> Reading {
    let name = |path: &str| text(root, path, json::NAME_BYTES_MAX);
    Reading {
        protocol,
        model: name("model_name").or_else(|| name("scsi_model_name")).unwrap_or_default(),
        serial: name("serial_number").unwrap_or_default(),
        firmware: ["firmware_version", "scsi_revision", "revision"]
            .into_iter()
            .find_map(name)
            .unwrap_or_default(),
        celsius: celsius(root, "temperature.current"),
        celsius_warning: None,
        celsius_critical: None,
        used_percent: percent(root, "endurance_used.current_percent"),
        is_wear_guessed: false,
        spare_percent: None,
        spare_percent_min: None,
        written_bytes: None,
        power_on_hours: number(root, "power_on_time.hours"),
        power_cycles: number(root, "power_cycle_count"),
        unsafe_shutdowns: None,
        media_errors: None,
        says_failing: Vec::new(),
        self_test: None,
    }
}

/// A temperature that a drive can have: 0 K of an absent sensor, and what makes no sense, are none.
fn celsius(root: &Value, path: &str) -> Option<i16> {
    let value = at(root, path)?.as_i64()?;
    i16::try_from(value).ok().filter(|celsius| (-60..=200).contains(celsius))
}

/// A temperature that can be a threshold of an SSD.
fn threshold(root: &Value, path: &str) -> Option<i16> {
    celsius(root, path).filter(|celsius| (40..=130).contains(celsius))
}

/// Endurance used: up to 255 % (NVMe Base 2.0, figure 207).
fn percent(root: &Value, path: &str) -> Option<u16> {
    number(root, path)?.try_into().ok().filter(|percent| *percent <= 255)
}

/// A share of what there was.
fn share(root: &Value, path: &str) -> Option<u8> {
    number(root, path)?.try_into().ok().filter(|percent| *percent <= 100)
}
