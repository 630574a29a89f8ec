//! Steps about the array as a whole: names, access states, portals.

use reservation::AccessState;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{InWords, Subject};

/// A step about the array.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(tag = "code", rename_all = "kebab-case")]
pub enum ArrayStep {
    Rename {
        what: Subject,
        name: String,
    },
    /// How a portal group reaches a volume.
    SetAccess {
        volume: String,
        group: u16,
        before: AccessState,
        after: AccessState,
    },
    ListenOn {
        address: String,
        /// The array does not listen there any more.
        stop: bool,
    },
    /// Which hosts may log in at a portal.
    AdmitHosts {
        portal: String,
        /// Empty: all may.
        hosts: Vec<String>,
    },
    /// A step that an earlier version has recorded in words only.
    Recorded {
        words: String,
    },
}

impl InWords for ArrayStep {
    fn text(&self) -> String {
        use ArrayStep::*;
        match self {
            Rename { what, name } => format!("rename {what} to {name}"),
            SetAccess { volume, group, before, after } => {
                let (before, after) = (before.words(), after.words());
                format!("portal group {group} of volume {volume} from {before} to {after}")
            }
            ListenOn { address, stop: false } => format!("listen on {address}"),
            ListenOn { address, stop: true } => format!("no longer listen on {address}"),
            AdmitHosts { portal, hosts } if hosts.is_empty() => format!("{portal} is for all hosts"),
            AdmitHosts { portal, hosts } => format!("{portal} is for {}", hosts.join(", ")),
            Recorded { words } => words.clone(),
        }
    }
}
