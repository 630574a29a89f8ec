//! Two heads of one array: who owns it, when writes may be acknowledged and reads answered, and how a head takes over,
//! hands over, leaves and joins again. A state machine without I/O, clocks or randomness of its own.
//!
//! The *owner* runs the log; its *partner* keeps a copy and forwards hosts' commands. The *register* holds who owns the
//! array, in which term, and whether the partner is in sync. Only a compare-and-set changes it. Heartbeats that the
//! partner answers give the owner a lease for reads. `docs/design/0016-ownership.md` has the rules and their reasons.
//!
//! What always holds:
//! - Nothing is acknowledged in a term by more than one head, and no term by the same head twice.
//! - The register says "in sync" only while the partner holds everything that is acknowledged.
//! - A compare-and-set whose outcome is unknown is taken for won and for lost, whichever allows less.
//!
//! | file | what |
//! |---|---|
//! | `register` | the value of the register and its changes |
//! | `timing` | lease, grace and the other times, and how they depend on each other |
//! | `message` | what heads say to each other |
//! | `portal` | portals of a head, as the other one is told of them |
//! | `asking` | questions to the register |
//! | `relation` | how the owner stands to its partner: alone, copying, joining, in sync, leaving |
//! | `store` | what a head tells its log, and what the log tells the head |
//! | `decision` | what a head has decided, for logs and counts |
//! | `link` | the connection between two heads: who is there (`hello`), messages with checksums (`frame`), any bytes instead (`fuzz`) |
//! | `head` | the state machine: a head that starts (`boot`), the `partner`, the `owner`, handing over (`handover`), giving back (`giving_back`) |

mod asking;
mod decision;
mod head;
pub mod link;
mod message;
mod portal;
mod register;
mod relation;
mod store;
mod timing;

pub use asking::Question;
pub use decision::Decision;
pub use head::{Action, HandoverRefusal, Head, ReadPermit, Reads, RoleName};
pub use link::{
    HOSTS_BYTES_MAX, HOSTS_PORT_BEHIND, Link, LinkError, LinkEvent, LinkKey, LinkOptions, Purpose, Start,
    VERSIONS, Versions,
};
pub use message::{Message, Stamp};
pub use portal::Portal;
pub use register::{Maintenance, Register, RegisterError, Revision, Term};
pub use relation::{CommitRule, Relation};
pub use store::{StoreEvent, StoreOrder};
pub use timing::{TAKEOVER_MS_DEFAULT, TAKEOVER_MS_MAX, TAKEOVER_MS_MIN, Timing, TimingError};
