//! The control plane: REST API, configuration, health, the head's state file.
//!
//! Runs on tokio beside the shards and reaches them through [`Array`] alone, a command and an answer at a time,
//! so that a slow client of the API never slows I/O, and the reverse. Nothing here knows how the array works.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "the control plane has files, sockets and clocks of its own"
)]

pub mod access;
pub mod alerts;
pub mod array;
mod channel_body;
pub mod client;
pub mod config;
pub mod events;
#[cfg(any(test, feature = "fake"))]
pub mod fake;
#[cfg(any(test, feature = "fake"))]
mod fake_alerts;
#[cfg(any(test, feature = "fake"))]
mod fake_metrics;
pub mod repeats;
pub mod rest;
pub mod secret_file;
pub mod server;
pub mod size;
pub mod state;
pub mod summary;
pub mod transfer;
