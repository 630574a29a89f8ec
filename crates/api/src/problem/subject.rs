//! What a problem or an event is about.

use std::fmt;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A thing that can have a problem, or to which something can happen: its kind, and what it is called.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize, ToSchema)]
#[serde(tag = "kind", content = "name", rename_all = "kebab-case")]
#[schema(as = ProblemSubject)]
pub enum Subject {
    Array,
    /// The wall clock of the head.
    Clock,
    Pool(String),
    /// By its path.
    Drive(String),
    Volume(String),
    /// As volume@snapshot.
    Snapshot(String),
    Host(String),
    /// An initiator of no known host.
    Initiator(String),
    /// Of a peer on the network.
    Address(String),
    /// By its address.
    Portal(String),
    Schedule(String),
    /// Of alerts, such as `mail`.
    Channel(String),
    /// Of the API and the page.
    User(String),
    /// Of the API.
    Token(String),
}

impl Subject {
    pub fn pool(name: impl Into<String>) -> Subject {
        Subject::Pool(name.into())
    }

    pub fn drive(path: impl Into<String>) -> Subject {
        Subject::Drive(path.into())
    }

    pub fn volume(name: impl Into<String>) -> Subject {
        Subject::Volume(name.into())
    }

    /// Its kind, and its name, which is empty if there is only one.
    fn parts(&self) -> (&'static str, &str) {
        match self {
            Subject::Array => ("array", ""),
            Subject::Clock => ("clock", ""),
            Subject::Pool(name) => ("pool", name),
            Subject::Drive(path) => ("drive", path),
            Subject::Volume(name) => ("volume", name),
            Subject::Snapshot(name) => ("snapshot", name),
            Subject::Host(name) => ("host", name),
            Subject::Initiator(name) => ("initiator", name),
            Subject::Address(address) => ("address", address),
            Subject::Portal(address) => ("portal", address),
            Subject::Schedule(name) => ("schedule", name),
            Subject::Channel(name) => ("channel", name),
            Subject::User(name) => ("user", name),
            Subject::Token(name) => ("token", name),
        }
    }

    pub fn name(&self) -> &str {
        self.parts().1
    }
}

/// Such as `pool fast` or `drive /dev/sdb`.
impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.parts() {
            (kind, "") => f.write_str(kind),
            (kind, name) => write!(f, "{kind} {name}"),
        }
    }
}
