//! Makes a pair of two servers and a third machine (`docs/design/0019-setting-up-a-pair.md`).
//!
//! What always holds: files with secrets have mode 600 and are replaced as a whole. The file that makes a server a part of the pair
//! is written last, so a step that broke off can be repeated. This crate does not touch the array or its drives.
//!
//! | file | what |
//! |---|---|
//! | `error` | why a step was not done, and what to do |
//! | `files` | small files with secrets, replaced as a whole; locks |
//! | `hex` | ids and keys in JSON |
//! | `pair_file` | `pair.json`: what a head knows of its pair |
//! | `ports` | an address, and the four ports that are used there |
//! | `token` | what an administrator carries to the server that joins |
#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "outside of shards")]

mod error;
mod files;
mod hex;
mod pair_file;
mod ports;
mod token;

pub use error::{ReadOnly, SetupError};
pub use pair_file::{Keys, PAIR_FILE_VERSION, PairFile};
pub use ports::{ADDRESSES_MAX, PORT_DEFAULT, Ports, PortsError};
pub use token::{Purpose, Token, TokenError};
