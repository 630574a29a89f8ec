//! Portals of a head, as the other one is told of them.

use std::net::SocketAddr;

use serde::{Deserialize, Serialize};

/// An address at which hosts reach a head.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Portal {
    pub address: SocketAddr,
    /// Its portal group: no other head has it.
    pub group: u16,
    /// The hosts that it admits; none named: all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<String>,
}
