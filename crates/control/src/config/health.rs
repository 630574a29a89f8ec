//! How the health of drives is watched: `[health]`.

use std::collections::BTreeMap;
use std::time::Duration;

use base::limits::CONFIGURED_DRIVES_MAX;

use super::error::ConfigError;
use super::reader::Section;

const PROGRAM: &str = "smartctl";
/// What has nobody asked.
const OFF: &str = "off";
const EVERY_SECONDS: u64 = 600;
const EVERY_SECONDS_MIN: u64 = 5;
const EVERY_SECONDS_MAX: u64 = 86_400;
const TIMEOUT_SECONDS: u64 = 20;
const TIMEOUT_SECONDS_MAX: u64 = 120;

/// See the header of this file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DriveHealth {
    /// A name that is looked for in PATH, or an absolute path; `None`: it is not used.
    pub smartctl: Option<String>,
    /// Each drive is asked that often.
    pub every: Duration,
    pub timeout: Duration,
    /// The device of a drive where it is another one than its path: a node, or `TYPE NODE`.
    pub devices: BTreeMap<String, String>,
}

impl Default for DriveHealth {
    fn default() -> DriveHealth {
        DriveHealth {
            smartctl: Some(PROGRAM.to_owned()),
            every: Duration::from_secs(EVERY_SECONDS),
            timeout: Duration::from_secs(TIMEOUT_SECONDS),
            devices: BTreeMap::new(),
        }
    }
}

pub(super) fn read(mut section: Section) -> Result<DriveHealth, ConfigError> {
    let mut health = DriveHealth::default();
    if let Some(value) = section.take("smartctl") {
        let wanted = "a program's name in quotes, such as \"smartctl\", its absolute path, or \"off\"";
        let name = value.text(wanted)?;
        let is_path = name.starts_with('/');
        if name.is_empty() || name.contains(['\0', '\n']) || name.contains('/') && !is_path {
            return Err(value.refuse(format!("smartctl must be {wanted}")));
        }
        health.smartctl = (name != OFF).then(|| name.to_owned());
    }
    if let Some(value) = section.take("every_seconds") {
        health.every = Duration::from_secs(value.integer(EVERY_SECONDS_MIN, EVERY_SECONDS_MAX)?);
    }
    if let Some(value) = section.take("timeout_seconds") {
        health.timeout = Duration::from_secs(value.integer(1, TIMEOUT_SECONDS_MAX)?);
    }
    if let Some(devices) = section.section("devices")? {
        for (path, value) in devices.entries() {
            let wanted =
                "a device in quotes, such as \"/dev/sg3\", or a type and a device: \"megaraid,0 /dev/bus/0\"";
            let device = value.text(wanted)?.trim();
            let mut words = device.split_whitespace();
            let (first, last, more) = (words.next(), words.next_back(), words.next());
            let is_path = last.or(first).is_some_and(|node| node.starts_with('/'));
            // a type that looks like an option would be one
            let is_type = last.is_none() || first.is_some_and(|kind| !kind.starts_with(['-', '/']));
            if !is_path || !is_type || more.is_some() || device.contains(char::is_control) {
                return Err(value.refuse(format!("the device of a drive must be {wanted}")));
            }
            if !path.starts_with('/') {
                return Err(value.refuse(format!("\"{path}\" is no absolute path of a drive")));
            }
            health.devices.insert(path.to_owned(), device.to_owned());
        }
        if health.devices.len() > CONFIGURED_DRIVES_MAX {
            let count = health.devices.len();
            return Err(
                devices.refuse(format!("{CONFIGURED_DRIVES_MAX} devices are possible, here are {count}"))
            );
        }
    }
    section.finish()?;
    Ok(health)
}
