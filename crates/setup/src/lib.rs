//! Makes a pair of two servers and a third machine (`docs/design/0019-setting-up-a-pair.md`).
//!
//! What always holds: files with secrets have mode 600 and are replaced as a whole. The file that makes a server a part of the pair
//! is written last, so a step that broke off can be repeated. This crate does not touch the array or its drives.
//!
//! | file | what |
//! |---|---|
//! | `blank` | whether a server that joins has an array of its own |
//! | `cluster` | the members of etcd, through its gateway |
//! | `create` | a head that is alone becomes the first of a pair |
//! | `door` | where the others join, with a token |
//! | `error` | why a step was not done, and what to do |
//! | `exchange` | what the door and the joiner say to each other |
//! | `files` | small files with secrets, replaced as a whole; locks |
//! | `forget` | the array goes back to one head |
//! | `hex` | ids and keys in JSON |
//! | `issued` | the tokens that a head has issued |
//! | `join` | the other side of the door |
//! | `maintenance` | begins and ends maintenance |
//! | `member` | supervises this server's member of etcd |
//! | `member_file` | what that member is started with |
//! | `membership` | which member is which server; votes and the leader |
//! | `pair_file` | `pair.json`: what a head knows of its pair |
//! | `ports` | an address, and the five ports that are used there |
//! | `replace` | another server takes the place of the other head |
//! | `refusal` | why the door does not let somebody in |
//! | `tls` | TLS of the door |
//! | `token` | what an administrator carries to the server that joins |
#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "outside of shards")]

mod blank;
mod cluster;
mod create;
mod door;
mod error;
mod exchange;
mod files;
mod forget;
mod hex;
mod issued;
mod join;
mod maintenance;
mod member;
mod member_file;
mod membership;
mod pair_file;
mod ports;
mod refusal;
mod replace;
mod tls;
mod token;

pub use create::{Created, create, found_register};
pub use door::{Door, DoorEvent, refresh_members};
pub use error::{ReadOnly, SetupError};
pub use forget::{AloneAfterPair, disband, disown, finish_forgetting};
pub use issued::{TOKEN_TIME, new_token};
pub use join::{join_head, join_witness};
pub use maintenance::set_maintenance;
pub use member::{Member, MemberEnd, MemberEvent};
pub use membership::{Leader, answering, lead_by_witness, members};
pub use pair_file::{Keys, PAIR_FILE_VERSION, PairFile};
pub use ports::{ADDRESSES_MAX, PORT_DEFAULT, Ports, PortsError};
pub use refusal::Refusal;
pub use replace::replace;
pub use token::{Purpose, Token, TokenError};

/// Random bytes of the system.
fn random<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).expect("the system gives random bytes");
    bytes
}
