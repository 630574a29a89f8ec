//! Ids and bytes as hexadecimal digits, in JSON.

/// 128-bit ids as 32 digits.
pub(crate) mod id {
    use std::fmt::Display;
    use std::str::FromStr;

    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    pub fn serialize<T: Display, S: Serializer>(id: &T, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(id)
    }

    pub fn deserialize<'de, T: FromStr, D: Deserializer<'de>>(deserializer: D) -> Result<T, D::Error> {
        let text = String::deserialize(deserializer)?;
        let digits = text.len() == 32 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        let id = text.parse().ok().filter(|_| digits);
        id.ok_or_else(|| D::Error::custom("not an id of 32 hexadecimal digits"))
    }
}

/// An array of bytes.
pub(crate) mod bytes {
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    pub fn serialize<const N: usize, S: Serializer>(
        bytes: &[u8; N],
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&base::hex::of(bytes))
    }

    pub fn deserialize<'de, const N: usize, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<[u8; N], D::Error> {
        let text = String::deserialize(deserializer)?;
        base::hex::parse(&text).ok_or_else(|| D::Error::custom(format!("not {} hexadecimal digits", 2 * N)))
    }
}

/// The key of the link between the heads.
pub(crate) mod link_key {
    use pair::LinkKey;
    use serde::{Deserializer, Serializer};

    pub fn serialize<S: Serializer>(key: &LinkKey, serializer: S) -> Result<S::Ok, S::Error> {
        super::bytes::serialize(&key.0, serializer)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<LinkKey, D::Error> {
        super::bytes::deserialize(deserializer).map(LinkKey)
    }
}
