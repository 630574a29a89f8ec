//! The API server: a Unix socket by default, TCP only behind a token.
//!
//! Everything about a client is bounded: how many are connected, how many of their requests are at work, how
//! long a request's head, body and answer may take, and how large a body may be.

mod connection;
mod copies;
mod extract;
pub mod fuzz;
mod listen;
mod metrics;
mod names;
mod openapi;
mod routes;
#[cfg(test)]
mod tests;
mod upkeep;

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Semaphore, watch};

pub use self::listen::{ListenError, Listeners, Token};
pub use self::openapi::openapi_json;

use crate::array::Array;

/// How long a client may take to send a request's head.
const HEADER_TIME_MAX: Duration = Duration::from_secs(10);
/// How long a request may take, body and all; making a pool of many drives is the longest.
const REQUEST_TIME_MAX: Duration = Duration::from_secs(120);
/// How long a stopping daemon waits for the requests that are at work.
const STOP_TIME_MAX: Duration = Duration::from_secs(10);

/// What every request is served from.
#[derive(Clone)]
struct State {
    array: Arc<dyn Array>,
    /// Permits for requests at work.
    requests: Arc<Semaphore>,
    /// What `uname` calls this machine.
    host_name: Arc<str>,
}

/// Serves the API until `stop` turns true; then lets the requests at work finish, for as long as they may take.
pub async fn serve(listeners: Listeners, array: Arc<dyn Array>, stop: watch::Receiver<bool>) {
    let host_name = rustix::system::uname().nodename().to_string_lossy().into_owned();
    let state = State {
        array,
        requests: Arc::new(Semaphore::new(base::limits::API_REQUESTS_MAX)),
        host_name: host_name.into(),
    };
    connection::serve_all(listeners, routes::router(state), stop).await;
}
