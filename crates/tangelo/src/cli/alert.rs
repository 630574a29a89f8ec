//! `tangelo alert`: who is told what is wrong.

use clap::{Subcommand, ValueEnum};

#[derive(Subcommand, Debug)]
pub enum Alert {
    /// Show where this head's alerts go, whether they arrive, and what each channel was told
    List,
    /// Send a test message, and tell whether it has arrived
    Test {
        /// By this channel only
        #[arg(long, value_enum)]
        channel: Option<AlertChannelName>,
    },
}

#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub enum AlertChannelName {
    Mail,
    Webhook,
    Command,
    Heartbeat,
}

impl AlertChannelName {
    pub fn word(self) -> &'static str {
        match self {
            AlertChannelName::Mail => "mail",
            AlertChannelName::Webhook => "webhook",
            AlertChannelName::Command => "command",
            AlertChannelName::Heartbeat => "heartbeat",
        }
    }
}
