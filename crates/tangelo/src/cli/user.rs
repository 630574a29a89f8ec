//! `tangelo user`, `tangelo token` and `tangelo web`: who gets in over the network.

use std::path::PathBuf;

use api::Role;
use base::calendar::parse_moment;
use clap::{ArgGroup, Args, Subcommand, ValueEnum};

use super::Change;
use super::events::{now_ms, time_ms};

#[derive(Subcommand, Debug)]
pub enum User {
    /// Add a user; asks for the password at the terminal
    Add {
        name: String,
        /// What the user may do
        #[arg(long, value_enum)]
        role: RoleName,
        /// File with the password, 10 to 256 bytes, instead of asking
        #[arg(long, value_name = "FILE")]
        password_file: Option<PathBuf>,
        /// From then on nobody signs in as this user: 90d, 2027-03-01, "2027-03-01 18:00"
        #[arg(long, value_name = "TIME", value_parser = end)]
        expires: Option<u64>,
        #[command(flatten)]
        change: Change,
    },
    /// List the users of this head
    List,
    /// Change a user's role, password or end date, or disable a user; the user's sessions end
    Set(UserSet),
    /// Delete a user; the user's sessions end at once
    Delete {
        name: String,
        #[command(flatten)]
        change: Change,
    },
    /// List the browsers that have signed in, or have them sign in again
    Sessions {
        /// End this session
        #[arg(long, value_name = "NUMBER", conflicts_with = "end_all")]
        end: Option<u64>,
        /// End all sessions of this user
        #[arg(long, value_name = "USER")]
        end_all: Option<String>,
        #[command(flatten)]
        change: Change,
    },
}

#[derive(Args, Debug)]
#[command(group = ArgGroup::new("what").required(true).multiple(true))]
pub struct UserSet {
    pub name: String,
    /// What the user may do
    #[arg(long, value_enum, group = "what")]
    pub role: Option<RoleName>,
    /// Another password; asks for it at the terminal
    #[arg(long, group = "what")]
    pub password: bool,
    /// File with another password, 10 to 256 bytes
    #[arg(long, value_name = "FILE", conflicts_with = "password", group = "what")]
    pub password_file: Option<PathBuf>,
    /// Let nobody sign in as this user for now
    #[arg(long, group = "what")]
    pub disable: bool,
    /// Let the user sign in again
    #[arg(long, conflicts_with = "disable", group = "what")]
    pub enable: bool,
    /// From then on nobody signs in as this user: 90d, 2027-03-01; or never
    #[arg(long, value_name = "TIME", value_parser = end_or_never, group = "what")]
    pub expires: Option<End>,
    #[command(flatten)]
    pub change: Change,
}

#[derive(Subcommand, Debug)]
pub enum Token {
    /// Make a token for a program, and print its secret, which is never shown again
    Add {
        name: String,
        /// What the program may do
        #[arg(long, value_enum)]
        role: RoleName,
        /// From then on it is refused: 90d, 2027-03-01, "2027-03-01 18:00"
        #[arg(long, value_name = "TIME", value_parser = end)]
        expires: Option<u64>,
        #[command(flatten)]
        change: Change,
    },
    /// List the tokens of this head, without their secrets
    List,
    /// Refuse a token from now on
    Revoke {
        name: String,
        #[command(flatten)]
        change: Change,
    },
}

#[derive(Subcommand, Debug)]
pub enum Web {
    /// Show where this head is reached over TLS, and its certificate's fingerprint
    Show,
    /// Print the certificate (PEM), for --ca and for browsers
    Certificate,
}

#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub enum RoleName {
    /// See everything that is no secret
    Look,
    /// And change what can be changed back: snapshots, mappings, scrubs, drives
    Operate,
    /// And everything else: what destroys data, and who gets in
    Administer,
}

impl From<RoleName> for Role {
    fn from(name: RoleName) -> Role {
        match name {
            RoleName::Look => Role::Look,
            RoleName::Operate => Role::Operate,
            RoleName::Administer => Role::Administer,
        }
    }
}

/// When a user ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum End {
    Never,
    /// Milliseconds since 1970.
    At(u64),
}

fn end_or_never(text: &str) -> Result<End, String> {
    match text {
        "never" => Ok(End::Never),
        text => end(text).map(End::At),
    }
}

/// Milliseconds since 1970.
fn end(text: &str) -> Result<u64, String> {
    end_after(text, now_ms())
}

fn end_after(text: &str, now_ms: u64) -> Result<u64, String> {
    if let Some(ms) = parse_moment(text) {
        return Ok(ms);
    }
    // nobody means minutes, and some mean months
    time_ms(text)
        .filter(|_| text.ends_with(['h', 'd', 'w']))
        .and_then(|time_ms| now_ms.checked_add(time_ms))
        .filter(|ms| i64::try_from(*ms).is_ok())
        .ok_or_else(|| {
            "not a time from now (12h, 90d, 4w) and not a moment (2027-03-01, \"2027-03-01 18:00\")"
                .to_owned()
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends() {
        let now_ms = 1_700_000_000_000;
        for (text, expected) in [
            ("12h", Some(now_ms + 43_200_000)),
            ("90d", Some(now_ms + 7_776_000_000)),
            ("1w", Some(now_ms + 604_800_000)),
            ("2023-11-14 22:13:20Z", Some(now_ms)),
            ("", None),
            ("d", None),
            ("-1d", None),
            ("90", None),
            ("5m", None),
            ("never", None),
            ("99999999999999999999d", None),
            ("18446744073709551615h", None),
            ("99999999999999h", None),
        ] {
            assert_eq!(end_after(text, now_ms).ok(), expected, "{text}");
        }
        assert_eq!(end_or_never("never"), Ok(End::Never));
    }
}
