//! The API server: a Unix socket by default, TCP only behind a token.
//!
//! Everything about a client is bounded: how many are connected, how many of their requests are at work, how
//! long a request's head, body and answer may take, and how large a body may be. The Unix socket has
//! limits of its own, so clients over TCP cannot keep out an administrator on this machine.

mod alerts;
mod client;
mod connection;
mod copies;
#[cfg(test)]
mod crowd_tests;
mod data;
#[cfg(test)]
mod data_tests;
#[cfg(test)]
mod event_tests;
mod events;
mod extract;
pub mod fuzz;
mod listen;
mod metrics;
mod names;
mod objects;
mod one;
mod openapi;
mod page;
mod pair;
mod request;
mod resources;
mod routes;
#[cfg(test)]
mod tests;
mod upkeep;
mod who;
mod work;

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::JoinSet;

pub use self::listen::{ListenError, Listeners, Token};
pub use self::openapi::openapi_json;

use self::request::State;
use crate::alerts::Alerts;
use crate::array::Array;
use crate::events::EventLog;

/// How long a stopping daemon waits for the requests that are at work.
const STOP_TIME_MAX: Duration = Duration::from_secs(10);

/// Serves the API until `stop` turns true; then lets the requests at work finish, for as long as they may take.
pub async fn serve(
    listeners: Listeners,
    array: Arc<dyn Array>,
    events: Arc<EventLog>,
    alerts: Arc<dyn Alerts>,
    stop: watch::Receiver<bool>,
) {
    let host_name: Arc<str> = rustix::system::uname().nodename().to_string_lossy().into();
    let state = || State::new(array.clone(), events.clone(), alerts.clone(), host_name.clone());
    let router = || routes::router(state());
    let local = routes::local(router());
    let local = connection::serve_socket(&listeners.unix, &local, stop.clone());
    let remote = async {
        let Some((listener, token)) = &listeners.tcp else { return JoinSet::new() };
        let guarded = routes::behind_token(router(), token.clone(), array.clone());
        connection::serve_socket(listener, &guarded, stop.clone()).await
    };
    let (mut local, mut remote) = tokio::join!(local, remote);
    drop(listeners);
    let all_done = async {
        for clients in [&mut local, &mut remote] {
            while clients.join_next().await.is_some() {}
        }
    };
    let _ = tokio::time::timeout(STOP_TIME_MAX, all_done).await;
}
