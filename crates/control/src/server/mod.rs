//! The API server: a Unix socket by default, TCP only behind a token, TLS for users and tokens.
//!
//! Everything about a client is bounded: how many are connected, how many of their requests are at work, how
//! long a request's head, body and answer may take, and how large a body may be. The Unix socket has
//! limits of its own, so clients over TCP cannot keep out an administrator on this machine.

mod alerts;
mod certificate;
mod client;
mod connection;
mod copies;
#[cfg(test)]
mod crowd_tests;
mod data;
#[cfg(test)]
mod data_tests;
mod doors;
#[cfg(test)]
mod event_tests;
mod events;
mod extract;
pub mod fuzz;
mod guard;
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
mod roles;
mod routes;
mod sign_in;
#[cfg(test)]
mod tests;
mod upkeep;
mod users;
mod web;
#[cfg(test)]
mod web_tests;
mod who;
mod work;

use std::sync::Arc;
use std::time::Duration;

use axum::middleware;
use tokio::sync::watch;
use tokio::task::JoinSet;

pub use self::doors::Doors;
pub use self::listen::{ListenError, Listeners, Token};
pub use self::openapi::openapi_json;

use self::guard::Guard;
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
    let access = listeners.doors.access();
    let who_gets_in = (access.clone(), listeners.doors.shown());
    let state =
        || State::new(array.clone(), events.clone(), alerts.clone(), who_gets_in.clone(), host_name.clone());
    let local = routes::local(routes::router(state()));
    let local = connection::serve_socket(&listeners.unix, &local, stop.clone());
    let token = listeners.tcp.as_ref().map(|(_, token)| token.clone());
    let remote = async {
        let Some((listener, token)) = &listeners.tcp else { return JoinSet::new() };
        let guard = Guard::of_tcp(access.clone(), token.clone(), array.clone());
        let guarded = routes::router(state()).layer(middleware::from_fn_with_state(guard, guard::check));
        connection::serve_socket(listener, &guarded, stop.clone()).await
    };
    let web = async {
        let mut sockets = JoinSet::new();
        let guard = Guard::of_web(access.clone(), token, array.clone());
        let router = web::router(state(), guard);
        for listener in &listeners.web {
            let (listener, router, stop) = (listener.clone(), router.clone(), stop.clone());
            sockets.spawn(async move { connection::serve_socket(&*listener, &router, stop).await });
        }
        sockets.join_all().await
    };
    let renewal = listeners.doors.clone().keep_certificate(stop.clone());
    let (mut local, mut remote, mut web, ()) = tokio::join!(local, remote, web, renewal);
    drop(listeners);
    let all_done = async {
        for clients in [&mut local, &mut remote].into_iter().chain(&mut web) {
            while clients.join_next().await.is_some() {}
        }
    };
    let _ = tokio::time::timeout(STOP_TIME_MAX, all_done).await;
}
