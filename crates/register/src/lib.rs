//! The register of a pair, kept in etcd: one key whose value only compare-and-set changes. etcd is spoken to through its
//! HTTP gateway (v3.4 and later: `/v3/...`), with TLS on both sides.
//!
//! What always holds: an answer tells what the register held after the question; a question without an answer may have been
//! carried out; nothing is asked for longer than [`client::ANSWER_TIME_MAX`], or in proportion where a pair takes over later than usual.
//!
//! | file | what |
//! |---|---|
//! | `client` | reads and changes of the register, over whichever member answers |
//! | `connection` | one HTTP connection with TLS to a member |
//! | `gateway` | the requests and answers of etcd's gateway, as JSON |
//! | `keys` | the array's certificate authority, and the keys of heads and members |
#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "outside of shards")]

pub mod client;
pub mod connection;
mod gateway;
pub mod keys;

pub use client::{Client, ClientError};
pub use keys::{Authority, Identity, KeyError};
