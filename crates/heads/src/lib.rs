//! Two heads, as they run: `pair` and `mirror` decide, and this moves the bytes.
//!
//! ```text
//!   owner                                                  partner
//!   engine ─► MirrorEnv ─► own drives                      Partner ─► its drives
//!        ▲         └────────── connection for drives ────────┘ ▲
//!   RunningHead ◄───────────── connection for control ──────► RunningHead
//! ```
//!
//! | file | what |
//! |---|---|
//! | `wire` | a connection between the heads: bytes of `pair::link` in both directions |
//! | `dial` | the owner's connection for drives: made, opened for a term, made again |
//! | `head` | a head as it runs: what `pair` decides, carried out |
//! | `own_copy` | an owner whose own copy cannot serve gives the array back |
//! | `trouble` | what ends connections with the other head |
//! | `watch` | whether the shards of its array answer |
//! | `head_shard` | its thread |
//! | `control` | its connections with the other head |
//! | `permit` | whether answers may be sent to hosts |
//! | `center` | the owner's mirrored drives: what the mirror orders, carried out; `sending` does it |
//! | `drive_work` | operations of an owner's engine on its drives |
//! | `shared` | drives that both heads see: what makes a drive one (`record`, `make`), the owner holds them by reservations (`key`, `claim`, `owned`) |
//! | `parts` | long writes in parts that a message can hold |
//! | `mirror_env` | the world as the engine of an owner sees it: its drives are mirrored |
//! | `twins` | drives of the two heads become twins |
//! | `partner` | the partner's drives: writes of one owner, in one term |
//! | `partner_drives` | these drives: opened, opened again, and closed |
//! | `forward` | hosts at the partner's portals: the partner's end (`forwarder`, `shard`), the owner's (`door`), what is said (`frame`) |
//! | `record` | the record of a mirrored drive, read and written |

mod center;
mod control;
mod dial;
mod drive_work;
mod forward;
mod head;
mod head_shard;
mod mirror_env;
mod own_copy;
mod partner;
mod partner_drives;
mod parts;
mod permit;
mod record;
mod shared;
mod trouble;
mod twins;
mod watch;
mod wire;

pub use center::{Copies, Report};
pub use dial::PartnerAddress;
pub use drive_work::Mirrored;
pub use forward::{ForwardOptions, ForwardShard, Heard, Portals, WINDOW_BYTES};
pub use head::{Contents, Ending, HeadMail, HeadOptions, HeadView, Patience, RunningHead, Surroundings};
pub use head_shard::HeadShard;
pub use mirror::{RECORD_BYTES, TwinId};
pub use mirror_env::{HeadTask, Mail, MirrorEnv, MirrorOptions, OwnerOptions, is_of_engine};
pub use permit::Permit;
pub use record::{make_twin, twin_of};
pub use shared::{ClaimError, ClaimKey, SharedRecord, SharedWish, make_shared};
pub use twins::{InUse, OfferedDrive, Pairing, TwinsError, TwinsWish};
pub use wire::{Identity, WireEnd};
