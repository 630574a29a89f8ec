//! JSON in which a structure is an object. A derived `Deserialize` takes an array of its fields in their order, too, at any depth; the
//! description of the API does not allow that, and nobody means it.

use std::fmt;
use std::marker::PhantomData;

use serde::Deserializer;
use serde::de::{
    DeserializeOwned, DeserializeSeed, EnumAccess, Error, MapAccess, SeqAccess, Unexpected, VariantAccess,
    Visitor,
};

/// The value in `bytes`, in which each structure is an object.
pub(super) fn from_slice<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, serde_json::Error> {
    let mut json = serde_json::Deserializer::from_slice(bytes);
    let value = Strict::seed(PhantomData).deserialize(&mut json)?;
    json.end()?;
    Ok(value)
}

/// Around whatever reads: a deserializer, a visitor, a seed, what gives the items of a map or list.
struct Strict<T> {
    inner: T,
    /// Of a visitor: a structure is to be read.
    of_structure: bool,
}

impl<T> Strict<T> {
    fn seed(inner: T) -> Strict<T> {
        Strict { inner, of_structure: false }
    }
}

impl<'de, T: DeserializeSeed<'de>> DeserializeSeed<'de> for Strict<T> {
    type Value = T::Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<T::Value, D::Error> {
        self.inner.deserialize(Strict::seed(deserializer))
    }
}

/// Hands on what is asked for, with a visitor that sees to the items.
macro_rules! hand_on {
    ($($method:ident($($name:ident: $type:ty),*), $of_structure:literal;)*) => {
        $(fn $method<V: Visitor<'de>>(self, $($name: $type,)* visitor: V) -> Result<V::Value, D::Error> {
            self.inner.$method($($name,)* Strict { inner: visitor, of_structure: $of_structure })
        })*
    };
}

impl<'de, D: Deserializer<'de>> Deserializer<'de> for Strict<D> {
    type Error = D::Error;

    hand_on! {
        deserialize_any(), false;
        deserialize_bool(), false;
        deserialize_i8(), false;
        deserialize_i16(), false;
        deserialize_i32(), false;
        deserialize_i64(), false;
        deserialize_i128(), false;
        deserialize_u8(), false;
        deserialize_u16(), false;
        deserialize_u32(), false;
        deserialize_u64(), false;
        deserialize_u128(), false;
        deserialize_f32(), false;
        deserialize_f64(), false;
        deserialize_char(), false;
        deserialize_str(), false;
        deserialize_string(), false;
        deserialize_bytes(), false;
        deserialize_byte_buf(), false;
        deserialize_option(), false;
        deserialize_unit(), false;
        deserialize_unit_struct(name: &'static str), false;
        deserialize_newtype_struct(name: &'static str), false;
        deserialize_seq(), false;
        deserialize_tuple(len: usize), false;
        deserialize_tuple_struct(name: &'static str, len: usize), false;
        deserialize_map(), false;
        deserialize_struct(name: &'static str, fields: &'static [&'static str]), true;
        deserialize_enum(name: &'static str, variants: &'static [&'static str]), false;
        deserialize_identifier(), false;
        deserialize_ignored_any(), false;
    }

    fn is_human_readable(&self) -> bool {
        self.inner.is_human_readable()
    }
}

/// Plain values are what they are.
macro_rules! plain {
    ($($method:ident: $type:ty;)*) => {
        $(fn $method<E: Error>(self, value: $type) -> Result<V::Value, E> {
            self.inner.$method(value)
        })*
    };
}

impl<'de, V: Visitor<'de>> Visitor<'de> for Strict<V> {
    type Value = V::Value;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.expecting(formatter)
    }

    plain! {
        visit_bool: bool;
        visit_i64: i64;
        visit_i128: i128;
        visit_u64: u64;
        visit_u128: u128;
        visit_f64: f64;
        visit_char: char;
        visit_str: &str;
        visit_borrowed_str: &'de str;
        visit_string: String;
        visit_bytes: &[u8];
        visit_borrowed_bytes: &'de [u8];
        visit_byte_buf: Vec<u8>;
    }

    fn visit_none<E: Error>(self) -> Result<V::Value, E> {
        self.inner.visit_none()
    }

    fn visit_unit<E: Error>(self) -> Result<V::Value, E> {
        self.inner.visit_unit()
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<V::Value, D::Error> {
        self.inner.visit_some(Strict::seed(deserializer))
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(self, deserializer: D) -> Result<V::Value, D::Error> {
        self.inner.visit_newtype_struct(Strict::seed(deserializer))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, items: A) -> Result<V::Value, A::Error> {
        if self.of_structure {
            return Err(A::Error::invalid_type(Unexpected::Seq, &self.inner));
        }
        self.inner.visit_seq(Strict::seed(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, items: A) -> Result<V::Value, A::Error> {
        self.inner.visit_map(Strict::seed(items))
    }

    fn visit_enum<A: EnumAccess<'de>>(self, data: A) -> Result<V::Value, A::Error> {
        self.inner.visit_enum(Strict::seed(data))
    }
}

impl<'de, A: SeqAccess<'de>> SeqAccess<'de> for Strict<A> {
    type Error = A::Error;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, A::Error> {
        self.inner.next_element_seed(Strict::seed(seed))
    }

    fn size_hint(&self) -> Option<usize> {
        self.inner.size_hint()
    }
}

impl<'de, A: MapAccess<'de>> MapAccess<'de> for Strict<A> {
    type Error = A::Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, A::Error> {
        self.inner.next_key_seed(seed)
    }

    fn next_value_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<T::Value, A::Error> {
        self.inner.next_value_seed(Strict::seed(seed))
    }

    fn size_hint(&self) -> Option<usize> {
        self.inner.size_hint()
    }
}

impl<'de, A: EnumAccess<'de>> EnumAccess<'de> for Strict<A> {
    type Error = A::Error;
    type Variant = Strict<A::Variant>;

    fn variant_seed<S: DeserializeSeed<'de>>(
        self,
        seed: S,
    ) -> Result<(S::Value, Strict<A::Variant>), A::Error> {
        let (value, variant) = self.inner.variant_seed(seed)?;
        Ok((value, Strict::seed(variant)))
    }
}

impl<'de, A: VariantAccess<'de>> VariantAccess<'de> for Strict<A> {
    type Error = A::Error;

    fn unit_variant(self) -> Result<(), A::Error> {
        self.inner.unit_variant()
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<T::Value, A::Error> {
        self.inner.newtype_variant_seed(Strict::seed(seed))
    }

    fn tuple_variant<V: Visitor<'de>>(self, len: usize, visitor: V) -> Result<V::Value, A::Error> {
        self.inner.tuple_variant(len, Strict::seed(visitor))
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, A::Error> {
        self.inner.struct_variant(fields, Strict { inner: visitor, of_structure: true })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde::Deserialize;

    use super::*;

    #[derive(Deserialize, PartialEq, Debug)]
    #[serde(deny_unknown_fields)]
    struct Point {
        x: u32,
        #[serde(default)]
        y: i8,
    }

    #[derive(Deserialize, PartialEq, Debug, Default)]
    #[serde(deny_unknown_fields, default)]
    struct Everything {
        text: Option<String>,
        list: Vec<Point>,
        maybe: Option<Point>,
        by_name: BTreeMap<String, Point>,
        kind: Option<Kind>,
        pair: (u8, bool),
    }

    #[derive(Deserialize, PartialEq, Debug)]
    #[serde(rename_all = "kebab-case")]
    enum Kind {
        Plain,
        Wrapped(Point),
        Open { x: u32 },
    }

    fn read(text: &str) -> Result<Everything, String> {
        from_slice(text.as_bytes()).map_err(|error| error.to_string())
    }

    #[test]
    fn structures_are_objects_at_any_depth() {
        assert_eq!(read("{}"), Ok(Everything::default()));
        for wrong in [
            "[]",
            r#"{"list":[[1,2]]}"#,
            r#"{"maybe":[1,2]}"#,
            r#"{"by_name":{"a":[1,2]}}"#,
            r#"{"kind":{"wrapped":[1,2]}}"#,
            r#"{"kind":{"open":[1]}}"#,
        ] {
            let refusal = read(wrong).expect_err(wrong);
            assert!(refusal.starts_with("invalid type: sequence, expected struct"), "{wrong}: {refusal}");
        }
    }

    #[test]
    fn everything_else_is_read_as_ever() {
        let text = r#"{"text":"a\u0062","list":[{"x":1,"y":-2}],"maybe":{"x":3},"by_name":{"n":{"x":4}},"kind":"plain","pair":[5,true]}"#;
        assert_eq!(read(text).unwrap(), serde_json::from_str(text).unwrap());
        for kind in [r#"{"wrapped":{"x":1}}"#, r#"{"open":{"x":2}}"#, "\"plain\"", "null"] {
            let text = format!(r#"{{"kind":{kind}}}"#);
            assert_eq!(read(&text).unwrap(), serde_json::from_str(&text).unwrap());
        }
        for wrong in ["", "{} {}", "null", "3", r#"{"more":1}"#, r#"{"text":3}"#, r#"{"list":{"x":1}}"#, "{"]
        {
            let expected = serde_json::from_str::<Everything>(wrong).expect_err(wrong).to_string();
            assert_eq!(read(wrong).expect_err(wrong), expected);
        }
    }
}
