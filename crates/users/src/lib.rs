//! Who may use the API and the page: users with passwords, tokens of programs, sessions of browsers, and limits for those who guess.
//!
//! | file | what it is |
//! |---|---|
//! | `name` | what users and tokens may be called |
//! | `password` | which passwords are taken, and their hashes (argon2id) |
//! | `secret` | random secrets of 256 bits, of which only SHA-256 is kept |
//! | `list` | all users and tokens: one value, and its changes |
//! | `store` | the file that holds it |
//! | `session` | browsers that have signed in |
//! | `guess` | who has guessed wrong has to wait |
//!
//! What always holds: nothing here knows a clock, a socket or a thread; moments come as values. No value of this room holds a password or a
//! secret that somebody could sign in with, except while it is given out. All numbers are bounded.

mod guess;
mod list;
mod name;
mod password;
mod secret;
mod session;
mod store;

pub use guess::{Guesses, Verdict};
pub use list::{Token, User, UserChange, Users};
pub use name::check_name;
pub use password::{PASSWORD_BYTES, PasswordHash, check_password};
pub use secret::{Secret, SecretHash};
pub use session::{ABSOLUTE_MAX, IDLE_MAX, Session, Sessions};
pub use store::{Store, StoreError};

/// Users at most.
pub const USERS_MAX: usize = 64;
/// Tokens at most.
pub const TOKENS_MAX: usize = 128;
/// Sessions of a user at most: with one more, the one that was used last the longest ago ends.
pub const SESSIONS_OF_USER_MAX: usize = 8;
