//! Two heads, as they run: `pair` and `mirror` decide, and this moves the bytes.
//!
//! ```text
//!   owner                                                  partner
//!   engine ─► MirrorEnv ─► own drives                      Partner ─► its drives
//!                  └────────── connection for drives ────────┘
//! ```
//!
//! | file | what |
//! |---|---|
//! | `wire` | a connection between the heads: bytes of `pair::link` in both directions |
//! | `dial` | the owner's connection for drives: made, opened for a term, made again |
//! | `center` | the owner's mirrored drives: what `mirror` orders, carried out |
//! | `mirror_env` | the world as the engine of an owner sees it: its drives are mirrored |
//! | `partner` | the partner's drives: writes of one owner, in one term |
//! | `record` | the record of a mirrored drive, read and written |

mod center;
mod dial;
mod mirror_env;
mod partner;
mod record;
mod wire;

pub use center::Report;
pub use dial::PartnerAddress;
pub use mirror_env::{Mail, MirrorEnv, MirrorOptions, Mirrored};
pub use partner::Partner;
pub use record::make_twin;
pub use wire::{Identity, WireEnd};
