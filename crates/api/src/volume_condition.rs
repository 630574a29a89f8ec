//! Whether a volume can be used, and if not, why: a value, its health and its words.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{DeviceTrouble, Health, ProblemFacts};

/// Whether a volume can be used.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
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

/// The condition in JSON, with the words that are made from it.
pub(crate) mod condition_json {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};
    use utoipa::ToSchema;

    use super::VolumeCondition;

    #[derive(Serialize, Deserialize, ToSchema)]
    #[schema(as = VolumeReason)]
    pub(crate) struct ConditionJson {
        /// Why it is not healthy, in words; empty if it is healthy.
        reason: String,
        condition: VolumeCondition,
    }

    pub(crate) fn serialize<S: Serializer>(condition: &VolumeCondition, to: S) -> Result<S::Ok, S::Error> {
        ConditionJson { reason: condition.reason(), condition: condition.clone() }.serialize(to)
    }

    pub(crate) fn deserialize<'a, D: Deserializer<'a>>(from: D) -> Result<VolumeCondition, D::Error> {
        ConditionJson::deserialize(from).map(|json| json.condition)
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
