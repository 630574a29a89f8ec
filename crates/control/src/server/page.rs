//! The routes of the page for browsers. The TLS listener serves them beside the API.
//!
//! What always holds: a handler here is reached by who has signed in, and finds a `Who` among the request's extensions. Who has not
//! is sent to `/sign-in` before. What changes something must check nothing of its own: the CSRF token, `Origin` and `Sec-Fetch-Site` are
//! checked before the handler.

use axum::Router;

use super::request::State;

/// Merged beside the resources of the API (`web.rs`).
pub(super) fn page_router() -> Router<State> {
    Router::new()
}
