//! etcd's gateway: messages of its API as JSON, in which bytes are base64 and 64-bit numbers are strings
//! (etcd documentation, "gRPC gateway"; etcdserverpb `RangeRequest`, `TxnRequest`).

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};

pub const RANGE: &str = "/v3/kv/range";
pub const TRANSACTION: &str = "/v3/kv/txn";

/// Bytes as base64.
pub fn encoded(bytes: &[u8]) -> String {
    STANDARD.encode(bytes)
}

/// A value with the revision of etcd in which it was written.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Held {
    pub value: Vec<u8>,
    pub written_at: u64,
}

#[derive(Serialize)]
pub struct Range {
    key: String,
}

/// "If the key was written at that revision, put this; then tell what it holds."
#[derive(Serialize)]
pub struct Transaction {
    compare: [Compare; 1],
    success: [Operation; 2],
    failure: [Operation; 1],
}

#[derive(Serialize)]
struct Compare {
    key: String,
    target: &'static str,
    result: &'static str,
    mod_revision: String,
}

#[derive(Serialize)]
enum Operation {
    #[serde(rename = "request_put")]
    Put { key: String, value: String },
    #[serde(rename = "request_range")]
    Range(Range),
}

impl Range {
    pub fn of(key: &[u8]) -> Range {
        Range { key: encoded(key) }
    }
}

impl Transaction {
    /// A key that was never written has revision 0.
    pub fn replacing(key: &[u8], written_at: u64, value: &[u8]) -> Transaction {
        let put = Operation::Put { key: encoded(key), value: encoded(value) };
        Transaction {
            compare: [Compare {
                key: encoded(key),
                target: "MOD",
                result: "EQUAL",
                mod_revision: written_at.to_string(),
            }],
            success: [put, Operation::Range(Range::of(key))],
            failure: [Operation::Range(Range::of(key))],
        }
    }
}

#[derive(Deserialize)]
struct KeyValue {
    #[serde(default)]
    value: String,
    mod_revision: String,
}

#[derive(Deserialize)]
struct RangeAnswer {
    #[serde(default)]
    kvs: Vec<KeyValue>,
}

#[derive(Deserialize)]
struct TransactionAnswer {
    #[serde(default)]
    responses: Vec<OperationAnswer>,
}

#[derive(Deserialize)]
struct OperationAnswer {
    response_range: Option<RangeAnswer>,
}

/// What etcd says when it cannot do it.
#[derive(Deserialize)]
struct Failure {
    #[serde(default)]
    error: String,
    #[serde(default)]
    message: String,
}

fn held(answer: RangeAnswer) -> Result<Option<Held>, String> {
    let Some(found) = answer.kvs.into_iter().next() else { return Ok(None) };
    let value =
        STANDARD.decode(&found.value).map_err(|error| format!("a value that is not base64: {error}"))?;
    let written_at = found.mod_revision.parse().map_err(|_| "a revision that is no number".to_owned())?;
    Ok(Some(Held { value, written_at }))
}

pub fn parse_range(bytes: &[u8]) -> Result<Option<Held>, String> {
    held(serde_json::from_slice(bytes).map_err(|error| error.to_string())?)
}

/// What the key holds after the transaction.
pub fn parse_transaction(bytes: &[u8]) -> Result<Option<Held>, String> {
    let answer: TransactionAnswer = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
    let mut ranges = answer.responses.into_iter().rev().filter_map(|one| one.response_range);
    held(ranges.next().ok_or("an answer without what the key holds")?)
}

/// The reason that etcd gives; what it sent if that is no reason.
pub fn parse_failure(bytes: &[u8]) -> String {
    let reason = serde_json::from_slice(bytes)
        .map(|failure: Failure| if failure.message.is_empty() { failure.error } else { failure.message });
    reason.unwrap_or_else(|_| String::from_utf8_lossy(&bytes[..bytes.len().min(200)]).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_transaction_compares_puts_and_reads() {
        let json =
            serde_json::to_string(&Transaction::replacing(b"foo", 7, b"bar")).expect("it has a JSON form");
        assert_eq!(
            json,
            r#"{"compare":[{"key":"Zm9v","target":"MOD","result":"EQUAL","mod_revision":"7"}],"success":[{"request_put":{"key":"Zm9v","value":"YmFy"}},{"request_range":{"key":"Zm9v"}}],"failure":[{"request_range":{"key":"Zm9v"}}]}"#
        );
    }

    #[test]
    fn answers_of_etcd_are_understood() {
        let kvs = r#"{"kvs":[{"key":"Zm9v","create_revision":"2","mod_revision":"9","version":"1","value":"YmFy"}]}"#;
        let bar = Some(Held { value: b"bar".to_vec(), written_at: 9 });
        assert_eq!(parse_range(kvs.as_bytes()), Ok(bar.clone()));
        assert_eq!(parse_range(br#"{"header":{"revision":"1"}}"#), Ok(None));
        let won = format!(
            r#"{{"succeeded":true,"responses":[{{"response_put":{{}}}},{{"response_range":{kvs}}}]}}"#
        );
        assert_eq!(parse_transaction(won.as_bytes()), Ok(bar));
        assert!(parse_transaction(br#"{"succeeded":true}"#).is_err());
        assert_eq!(
            parse_failure(br#"{"error":"etcdserver: request timed out","code":14}"#),
            "etcdserver: request timed out"
        );
        assert_eq!(parse_failure(b"404 page not found"), "404 page not found");
    }
}
