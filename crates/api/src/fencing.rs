//! Fencing the other head: what an agent is worth, and what has become of it.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// How the fence agent is to be tried.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct FenceTest {
    /// Fence the other head, too.
    #[serde(default)]
    pub really: bool,
}

/// How far the word of a fence agent counts.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum FenceTrust {
    /// It was not tried yet while the other head was heard.
    NotTried,
    /// It has said "on" while the other head was heard.
    Trusted,
    /// It has no status: it can be asked to fence, and nobody knows whether it has.
    AsksOnly,
    /// What it says is wrong, or it cannot tell.
    Doubted,
    /// It cannot be used at all.
    Unusable,
}

/// Why the other head was fenced.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum FenceCause {
    /// This head has taken over.
    Takeover,
    /// An administrator has asked for it.
    Command,
}

/// What has become of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum FenceOutcome {
    /// It is under way.
    Running,
    /// The agent says that the other head was off.
    Fenced,
    /// It was off already.
    WasOff,
    /// The agent was asked; it has no way to tell what became of it.
    Asked,
    /// The other head was heard again before.
    NotNeeded,
    /// There is maintenance.
    Maintenance,
    Failed,
}

/// The newest attempt to fence the other head.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct FenceRecord {
    /// When it began, in milliseconds since 1970.
    pub at_ms: u64,
    pub cause: FenceCause,
    pub outcome: FenceOutcome,
    /// Why it has failed; empty otherwise.
    pub detail: String,
}

/// How the head that answers fences the other one.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct FenceStatus {
    pub agent: String,
    pub trust: FenceTrust,
    /// Why it is doubted or unusable; empty otherwise.
    pub detail: String,
    /// Since this head has started; none if nothing was to be fenced.
    pub last: Option<FenceRecord>,
}
