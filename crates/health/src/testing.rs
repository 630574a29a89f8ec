//! What tests begin with.

use crate::{Protocol, Reading};

/// A healthy NVMe drive that says nothing.
pub fn reading() -> Reading {
    Reading {
        protocol: Protocol::Nvme,
        model: "M".to_owned(),
        serial: "S".to_owned(),
        firmware: "F".to_owned(),
        celsius: None,
        celsius_warning: None,
        celsius_critical: None,
        used_percent: None,
        is_wear_guessed: false,
        spare_percent: None,
        spare_percent_min: None,
        written_bytes: None,
        power_on_hours: None,
        power_cycles: None,
        unsafe_shutdowns: None,
        media_errors: None,
        says_failing: Vec::new(),
        self_test: None,
    }
}
