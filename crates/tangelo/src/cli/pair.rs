//! `tangelo pair`, `tangelo witness` and `tangelo register`: the two heads of an array, and the third vote.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

use super::Destruction;

#[derive(Subcommand, Debug)]
pub enum Pair {
    /// Make this head the first of a pair; prints the commands for the other head and for the witness
    Create {
        #[command(flatten)]
        listen: Listen,
        /// After which time without a sign of the owner the partner takes over: 300ms to 30s. All other times of the pair, and of etcd, are
        /// in proportion. Longer ones are for slow or overloaded machines and networks; hosts then wait longer
        #[arg(long, value_name = "TIME", default_value = "500ms", value_parser = takeover_ms)]
        takeover_after: u32,
    },
    /// Print another command for a server that joins; each works once, within an hour
    Token {
        /// What joins
        #[arg(value_enum)]
        purpose: Joiner,
        #[command(flatten)]
        place: Place,
    },
    /// Make this server the other head of a pair
    Join {
        /// What `tangelo pair create` has printed
        token: String,
        #[command(flatten)]
        listen: Listen,
    },
    /// Make room for another server in the place of the other head, which is gone for good; prints the command for it
    Replace(Place),
    /// Keep the partner from taking over while you work on the network, the witness or a head; either head takes this command
    Maintenance {
        #[arg(value_enum)]
        state: Switch,
    },
    /// The agent that fences the other head after a takeover
    #[command(subcommand)]
    Fence(Fence),
    /// Go back to one head, the one that owns the array and gets this command; hosts wait for about a second
    Forget {
        /// Even if the other head is in sync
        #[arg(long)]
        force: bool,
        #[command(flatten)]
        change: Destruction,
    },
    /// Make this head, whose daemon is stopped, one that is alone, without asking anybody: the last resort when the other head and the
    /// witness are both gone
    Disband {
        /// The other head is gone for good, or will never be started with its drives again
        #[arg(long, required = true)]
        other_head_is_gone: bool,
        #[command(flatten)]
        place: Place,
    },
    /// Tell which head owns the array, and whether the other one could take over
    Status,
    /// Have the other head own the array; hosts reach it there
    Handover,
}

impl Pair {
    /// Whether it is carried out here, without asking a daemon.
    pub fn is_local(&self) -> bool {
        matches!(
            self,
            Pair::Create { .. }
                | Pair::Token { .. }
                | Pair::Join { .. }
                | Pair::Replace(_)
                | Pair::Disband { .. }
        )
    }
}

#[derive(Subcommand, Debug)]
pub enum Witness {
    /// Make this machine the third vote of a pair
    Join {
        /// What `tangelo pair create` has printed
        token: String,
        #[command(flatten)]
        listen: Listen,
    },
}

#[derive(Subcommand, Debug)]
pub enum Register {
    /// Run this machine's member of etcd, which holds who owns the array
    Serve(Place),
}

#[derive(Subcommand, Debug)]
pub enum Fence {
    /// Ask this head's fence agent what it takes, and whether the other head is on
    Test {
        /// Fence the other head, too: it is switched off, and on again unless the head's file says otherwise
        #[arg(long)]
        really: bool,
        #[command(flatten)]
        change: Destruction,
    },
}

#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub enum Switch {
    On,
    Off,
}

#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub enum Joiner {
    Head,
    Witness,
}

/// Where this server keeps what it knows of the pair.
#[derive(Args, Debug)]
pub struct Place {
    /// The head's file, which names the state directory [default: as for `serve`]
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
}

#[derive(Args, Debug)]
pub struct Listen {
    /// The address of this server that the others of the pair connect to; five ports from 3261 on, or from the one given. May be given
    /// for several networks
    #[arg(long = "listen", required = true, value_name = "ADDRESS[:PORT]")]
    pub addresses: Vec<String>,
    #[command(flatten)]
    pub place: Place,
}

/// A time in milliseconds or seconds, as milliseconds.
fn takeover_ms(text: &str) -> Result<u32, String> {
    let (number, factor) = match text.strip_suffix("ms") {
        Some(number) => (number, 1),
        None => (text.strip_suffix('s').unwrap_or_default(), 1000),
    };
    let ms = number.parse::<u32>().ok().and_then(|number| number.checked_mul(factor));
    let range = pair::TAKEOVER_MS_MIN..=pair::TAKEOVER_MS_MAX;
    ms.filter(|ms| range.contains(ms)).ok_or_else(|| "it must be 300ms to 30s".to_owned())
}

#[cfg(test)]
mod tests {
    use super::takeover_ms;

    #[test]
    fn the_time_of_a_takeover_has_a_unit_and_a_range() {
        for (text, ms) in [("500ms", 500), ("300ms", 300), ("2s", 2000), ("30s", 30_000)] {
            assert_eq!(takeover_ms(text), Ok(ms));
        }
        for text in ["", "500", "299ms", "31s", "s", "ms", "-1s", "5000000s", "0.5s"] {
            assert!(takeover_ms(text).is_err(), "{text}");
        }
    }
}
