//! Names of what there is, and what can be changed of a host.

use crate::NewChap;

/// A thing that can be given another name.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Named {
    Volume(String),
    Pool(String),
    Host(String),
    Snapshot { volume: String, snapshot: String },
    Schedule(String),
}

/// What to change of a host; what is not named stays as it is.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct HostUpdate {
    pub add_initiators: Vec<String>,
    pub remove_initiators: Vec<String>,
    /// What the host must prove to know from its next login on.
    pub chap: Option<NewChap>,
    /// What the array proves to know from then on.
    pub mutual_chap: Option<NewChap>,
    /// No CHAP is asked for any more, and none given.
    pub no_chap: bool,
    /// The array proves nothing any more.
    pub no_mutual_chap: bool,
}
