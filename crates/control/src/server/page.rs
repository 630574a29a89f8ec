//! The routes of the page for browsers. The TLS listener serves them beside the API (`web.rs`).
//!
//! What always holds: a handler of [`page_router`] is reached by who has signed in, and finds a `Who` among the request's extensions. Who has not
//! is sent to `/sign-in` before. A handler that changes something checks nothing of its own: the CSRF token, `Origin` and `Sec-Fetch-Site` are
//! checked before it. The role is up to the handler: the page calls the API, which checks it.

use axum::Router;

use super::request::State;

/// For who has signed in.
pub(super) fn page_router() -> Router<State> {
    Router::new()
}

/// For everybody: what the form for signing in needs.
pub(super) fn open_router() -> Router {
    Router::new()
}
