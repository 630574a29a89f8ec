//! Tells people what is wrong with the array: by mail, by a webhook, by a program. Beside that, a heartbeat for who wants to hear of silence.
//!
//! ```text
//!   Source ─► looker ─► View ─► channel: observe ─► plan (pure) ─► Letter ─► Means (mail, webhook, command)
//!                                  ▲                                          │
//!                                  └──────── alerts.json ◄── attempt, delivered ◄┘
//! ```
//!
//! What always holds: alerts follow from what is there now and what a channel was told, not from events; so nothing is queued, and a
//! channel that was away gets one message. What a channel may know is stored durably before an attempt, and what it knows after one.
//! A channel waits for no other one, and the array waits for none.
#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "outside of shards")]

mod channel;
mod command;
mod deliver;
#[cfg(test)]
mod deliver_tests;
mod heartbeat;
mod http;
mod letter;
mod mail;
mod net;
mod office;
#[cfg(test)]
mod office_tests;
mod plan;
#[cfg(test)]
mod plan_tests;
mod retry;
mod rules;
mod store;
mod teller;
mod webhook;

pub use command::Command;
pub use deliver::{Means, ReadSecret};
pub use heartbeat::Heartbeat;
pub use http::Url;
pub use mail::{Mail, MailTls};
pub use office::{Office, Settings, Source, Start};
pub use rules::{Quiet, Rules, Scope, View};
pub use webhook::Webhook;
