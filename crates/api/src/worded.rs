//! Values in JSON with their words: each is an object with its fields and a `text` that is made from them. A reader uses
//! the fields and makes its own words.
//!
//! A field of such a value names [`list`] or [`optional`] in `serde(with)`, and [`Worded`] in its schema.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A value whose words follow from it.
pub trait InWords {
    /// One line, without a full stop.
    fn text(&self) -> String;
}

/// The value in JSON.
#[derive(Serialize, Deserialize, ToSchema)]
pub struct Worded<T> {
    #[serde(flatten)]
    value: T,
    /// The same in words, for people; the words may change.
    #[serde(default)]
    text: String,
}

impl<'a, T: InWords> Worded<&'a T> {
    fn of(value: &'a T) -> Worded<&'a T> {
        Worded { value, text: value.text() }
    }
}

/// Values, one after the other.
pub mod list {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use super::{InWords, Worded};

    pub fn serialize<T: InWords + Serialize, S: Serializer>(values: &[T], to: S) -> Result<S::Ok, S::Error> {
        to.collect_seq(values.iter().map(Worded::of))
    }

    pub fn deserialize<'a, T: Deserialize<'a>, D: Deserializer<'a>>(from: D) -> Result<Vec<T>, D::Error> {
        let worded = Vec::<Worded<T>>::deserialize(from)?;
        Ok(worded.into_iter().map(|worded| worded.value).collect())
    }
}

/// A value, or null.
pub mod optional {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use super::{InWords, Worded};

    pub fn serialize<T: InWords + Serialize, S: Serializer>(
        value: &Option<T>,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        value.as_ref().map(Worded::of).serialize(to)
    }

    pub fn deserialize<'a, T: Deserialize<'a>, D: Deserializer<'a>>(from: D) -> Result<Option<T>, D::Error> {
        Ok(Option::<Worded<T>>::deserialize(from)?.map(|worded| worded.value))
    }
}

/// A value is in JSON what it is, with its words, and is read back.
#[cfg(test)]
pub(crate) fn check<T>(value: T)
where
    T: InWords + Serialize + for<'a> Deserialize<'a> + PartialEq + std::fmt::Debug,
{
    #[derive(Serialize, Deserialize, PartialEq, Debug)]
    #[serde(bound = "T: InWords + Serialize + for<'b> Deserialize<'b>")]
    struct Both<T> {
        #[serde(with = "list")]
        all: Vec<T>,
        #[serde(with = "optional")]
        one: Option<T>,
    }
    let text = value.text();
    let both = Both { all: vec![value], one: None };
    let json = serde_json::to_value(&both).unwrap();
    assert_eq!(json["all"][0]["text"], text);
    assert!(json["all"][0]["code"].is_string() && json["one"].is_null(), "{json}");
    assert_eq!(serde_json::from_value::<Both<T>>(json).unwrap(), both);
}
