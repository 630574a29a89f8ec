//! Looks into JSON of which nothing is certain.

use base::text::printable;
use serde_json::Value;

/// A model, a serial number, the name of an attribute.
pub(super) const NAME_BYTES_MAX: usize = 64;
/// A message of smartctl.
pub(super) const MESSAGE_BYTES_MAX: usize = 160;
/// Entries of a table that are looked at.
const ROWS_MAX: usize = 256;

/// The value at `a.b.c`.
pub(super) fn at<'a>(root: &'a Value, path: &str) -> Option<&'a Value> {
    path.split('.').try_fold(root, |value, key| value.get(key))
}

pub(super) fn bool_at(root: &Value, path: &str) -> Option<bool> {
    at(root, path)?.as_bool()
}

/// A whole number. One that JSON's readers may not hold has a twin in text, `NAME_s`, which is exact.
pub(super) fn number(root: &Value, path: &str) -> Option<u64> {
    let twin = at(root, &format!("{path}_s")).and_then(Value::as_str);
    twin.and_then(|text| text.parse().ok()).or_else(|| at(root, path)?.as_u64())
}

pub(super) fn text(root: &Value, path: &str, bytes_max: usize) -> Option<String> {
    printable(at(root, path)?.as_str()?.as_bytes(), bytes_max)
}

/// The rows of a table.
pub(super) fn rows<'a>(root: &'a Value, path: &str) -> impl Iterator<Item = &'a Value> {
    at(root, path).and_then(Value::as_array).into_iter().flatten().take(ROWS_MAX)
}
