//! What somebody may do with the array.

use std::fmt;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// What a user or a token may do. Each role may do what those before it may.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// See everything that is no secret, and change nothing.
    Look,
    /// Change what can be changed back: snapshots, mappings, scrubs, drives.
    Operate,
    /// Everything: also what destroys data, and who gets in.
    Administer,
}

impl Role {
    pub const ALL: [Role; 3] = [Role::Look, Role::Operate, Role::Administer];

    pub fn word(self) -> &'static str {
        match self {
            Role::Look => "look",
            Role::Operate => "operate",
            Role::Administer => "administer",
        }
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}
