//! Whether a volume can be used: a value, with its health and its words.

use crate::{DeviceTrouble, Health, ProblemFacts};

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum VolumeCondition {
    Healthy,
    PoolOffline {
        pool: String,
    },
    /// The device of a raw volume has not been opened yet.
    DeviceNotOpened {
        path: String,
    },
    DeviceUnusable {
        path: String,
        trouble: DeviceTrouble,
    },
    /// The device ends before the volume does.
    DeviceSmaller {
        left_bytes: u64,
        volume_bytes: u64,
    },
}

impl VolumeCondition {
    pub fn health(&self) -> Health {
        match self {
            VolumeCondition::Healthy => Health::Healthy,
            VolumeCondition::DeviceSmaller { .. } => Health::Degraded,
            VolumeCondition::PoolOffline { .. }
            | VolumeCondition::DeviceNotOpened { .. }
            | VolumeCondition::DeviceUnusable { .. } => Health::Offline,
        }
    }

    /// Why the volume is not healthy; empty if it is.
    pub fn reason(&self) -> String {
        match self {
            VolumeCondition::Healthy => String::new(),
            VolumeCondition::PoolOffline { pool } => format!("pool {pool} is offline"),
            VolumeCondition::DeviceNotOpened { path } => format!("{path} has not been opened"),
            VolumeCondition::DeviceUnusable { path, trouble } => format!("{path}: {trouble}"),
            &VolumeCondition::DeviceSmaller { left_bytes, volume_bytes } => {
                ProblemFacts::VolumeDeviceSmaller { left_bytes, volume_bytes }.reason()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_volume_that_is_not_healthy_has_a_reason() {
        let path = || "/dev/sdx".to_owned();
        let all = [
            VolumeCondition::Healthy,
            VolumeCondition::PoolOffline { pool: "fast".to_owned() },
            VolumeCondition::DeviceNotOpened { path: path() },
            VolumeCondition::DeviceUnusable { path: path(), trouble: DeviceTrouble::Another },
            VolumeCondition::DeviceSmaller { left_bytes: 4096, volume_bytes: 8192 },
        ];
        for condition in all {
            let is_healthy = condition.health() == Health::Healthy;
            assert_eq!(condition.reason().is_empty(), is_healthy, "{condition:?}");
        }
    }
}
