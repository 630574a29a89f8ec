//! `tangelo pair`, `tangelo witness` and `tangelo register`: the two heads of an array, and the third vote.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

use super::Destruction;

#[derive(Subcommand, Debug)]
pub enum Pair {
    /// Make this head the first of a pair; prints the commands for the other head and for the witness
    Create(Listen),
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
            Pair::Create(_)
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
