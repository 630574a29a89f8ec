//! How fields are written in JSON: ids as numbers or digits.

use base::{LayerId, VolumeId};

/// 128-bit ids as 32 hexadecimal digits.
pub(crate) mod hexadecimal {
    use std::fmt::Display;
    use std::str::FromStr;

    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    pub fn serialize<T: Display, S: Serializer>(id: &T, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(id)
    }

    pub fn deserialize<'de, T: FromStr, D: Deserializer<'de>>(deserializer: D) -> Result<T, D::Error> {
        let text = String::deserialize(deserializer)?;
        let digits = text.len() == 32 && text.bytes().all(|b| b.is_ascii_hexdigit());
        let id = text.parse().ok().filter(|_| digits);
        id.ok_or_else(|| D::Error::custom("not an id of 32 hexadecimal digits"))
    }
}

macro_rules! number_id {
    ($module:ident, $id:ident) => {
        pub(crate) mod $module {
            use super::$id;
            use serde::{Deserialize, Deserializer, Serializer};

            pub fn serialize<S: Serializer>(id: &$id, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_u32(id.0)
            }

            pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<$id, D::Error> {
                u32::deserialize(deserializer).map($id)
            }
        }
    };
}
number_id!(volume, VolumeId);
number_id!(layer, LayerId);

/// Some volumes.
pub(crate) mod volumes {
    use super::VolumeId;
    use serde::{Deserialize, Deserializer, Serializer};

    pub fn serialize<S: Serializer>(ids: &[VolumeId], serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(ids.iter().map(|id| id.0))
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<VolumeId>, D::Error> {
        Vec::<u32>::deserialize(deserializer).map(|ids| ids.into_iter().map(VolumeId).collect())
    }
}

/// Some drives of a pool.
pub(crate) mod drives {
    use base::DriveId;
    use serde::{Deserialize, Deserializer, Serializer};

    #[derive(Deserialize)]
    struct Id(#[serde(with = "super::hexadecimal")] DriveId);

    pub fn serialize<S: Serializer>(ids: &[DriveId], serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(ids.iter().map(DriveId::to_string))
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<DriveId>, D::Error> {
        Vec::<Id>::deserialize(deserializer).map(|ids| ids.into_iter().map(|Id(id)| id).collect())
    }
}

/// A layer that may be missing.
pub(crate) mod some_layer {
    use super::LayerId;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub fn serialize<S: Serializer>(id: &Option<LayerId>, serializer: S) -> Result<S::Ok, S::Error> {
        id.map(|id| id.0).serialize(serializer)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<LayerId>, D::Error> {
        Option::<u32>::deserialize(deserializer).map(|id| id.map(LayerId))
    }
}
