//! Why the door does not let somebody in. It is sent to the one who wants to join, as a value, and becomes words there.

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::token::Purpose;

/// Why a join was refused. The token is used up, except where it says otherwise.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, Error)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Refusal {
    #[error(
        "this token has been used, and a token works once; make another with `tangelo pair token {purpose}` on the head"
    )]
    Used { purpose: Purpose },
    #[error("this token has expired; make another with `tangelo pair token {purpose}` on the head")]
    Expired { purpose: Purpose },
    #[error(
        "the head does not know this token; make another with `tangelo pair token {purpose}` on the head"
    )]
    Unknown { purpose: Purpose },
    /// The token stays good.
    #[error("this token is for a {purpose}; {}", command(*purpose))]
    OtherPurpose { purpose: Purpose },
    /// The token stays good.
    #[error(
        "the head does not speak version {version} of joining; install the same version of Tangelo on both servers"
    )]
    Version { version: u32 },
    #[error(
        "{address} is an address of another server of this array; give an address of this server to --listen, and make another token"
    )]
    AddressTaken { address: String },
    #[error("the addresses to listen on cannot be used: {why}; give others, and make another token")]
    Addresses { why: String },
    #[error(
        "{member} is part of the array and answers at {address}; stop it first if this server is to take its place, then make another token"
    )]
    MemberLives { member: String, address: String },
    #[error(
        "the array has its second head already, {member}; if that one is gone for good, `tangelo pair replace` on the owner makes room and prints a token"
    )]
    HasHead { member: String },
    #[error(
        "{member} has not finished joining; wait until its etcd runs, or let it join again with another token. Then make another token for this server"
    )]
    JoinPending { member: String },
    #[error(
        "the head's etcd does not take a new member: {why}; see that the members of etcd run, and make another token"
    )]
    Etcd { why: String },
    #[error("the head could not do its part: {why}; put that right, and make another token")]
    Head { why: String },
    /// The token may be good still.
    #[error(
        "the head did not understand what this server sent; install the same version of Tangelo on both servers"
    )]
    NotUnderstood,
}

fn command(purpose: Purpose) -> &'static str {
    match purpose {
        Purpose::Head => "use it with `tangelo pair join` on the other head",
        Purpose::Witness => "use it with `tangelo witness join` on the third machine",
    }
}
