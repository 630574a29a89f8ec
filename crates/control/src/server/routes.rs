//! The routes to all resources, the bounds that hold for each request, and the token of the TCP socket.

use std::net::IpAddr;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use api::*;
use axum::Router;
use axum::extract::{Request, State as Shared};
use axum::http::header;
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};

use super::client::{Asking, Client, Connected};
use super::extract::{Refusal, with_whole_body};
use super::request::{State, no_such_method};
use super::who::{self, Who};
use super::{Token, alerts, copies, data, events, names, one, openapi, page, pair, resources, upkeep};
use crate::array::Array;
use crate::repeats::Repeats;

/// How long a request may take that is here with its body; making a pool of many drives is the longest.
const REQUEST_TIME_MAX: Duration = Duration::from_secs(120);

/// Every resource, with the bounds that hold for each request.
pub(super) fn router(state: State) -> Router {
    Router::new()
        .merge(resources::router())
        .merge(upkeep::router())
        .merge(copies::router())
        .merge(events::router())
        .merge(names::router())
        .merge(one::router())
        .merge(pair::router())
        .merge(alerts::router())
        .merge(openapi::router())
        .fallback(no_such_resource)
        .method_not_allowed_fallback(no_such_method)
        .layer(middleware::from_fn_with_state(state.clone(), bounded))
        .merge(data::router())
        .with_state(state)
}

/// What the TLS listener serves to browsers and programs: the resources, and the page.
#[expect(dead_code, reason = "the listener comes with the next change")]
pub(super) fn web(state: State) -> Router {
    router(state.clone()).merge(page::page_router().with_state(state))
}

/// The same resources for this machine's users.
pub(super) fn local(router: Router) -> Router {
    router.layer(middleware::from_fn(who::of_this_machine))
}

/// The same resources for who knows the token.
pub(super) fn behind_token(router: Router, token: Token, array: Arc<dyn Array>) -> Router {
    let guard = Guard { token, array, strangers: Arc::default() };
    router.layer(middleware::from_fn_with_state(guard, check_token))
}

/// The token, and who has not known it.
#[derive(Clone)]
struct Guard {
    token: Token,
    array: Arc<dyn Array>,
    strangers: Arc<Mutex<Repeats<IpAddr>>>,
}

impl Guard {
    fn report_stranger(&self, request: &Request) {
        let connected = request.extensions().get::<Connected>();
        let Some(Connected { client: Client::Tcp(address), .. }) = connected else { return };
        let said = self.strangers.lock().expect("nobody panics with it").say(address.ip(), Instant::now());
        let Some(more) = said else { return };
        let (subject, count) = (Subject::Address(address.ip().to_string()), more + 1);
        let report = Command::Report { subject, facts: EventFacts::ApiRefused {}, count };
        // nobody waits for the answer
        drop(tokio::spawn(self.array.call(report)));
    }
}

async fn check_token(Shared(guard): Shared<Guard>, mut request: Request, next: Next) -> Response {
    let header =
        request.headers().get(header::AUTHORIZATION).map(|value| value.as_bytes()).unwrap_or_default();
    let known = header.split_at_checked("Bearer ".len()).is_some_and(|(scheme, presented)| {
        scheme.eq_ignore_ascii_case(b"Bearer ") && guard.token.matches(presented)
    });
    if known {
        request.extensions_mut().insert(Who {
            name: "token-file".to_owned(),
            role: Role::Administer,
            csrf: None,
        });
        return next.run(request).await;
    }
    guard.report_stranger(&request);
    let hint = "send `Authorization: Bearer TOKEN` with the content of the token_file";
    Refusal(CommandError::new(CommandErrorKind::Unauthorized, "no token, or a wrong one", hint))
        .into_response()
}

/// Bounds how long a request's body may take, how many requests are at work, and for how long.
async fn bounded(Shared(state): Shared<State>, request: Request, next: Next) -> Response {
    let (asking, connected) = (Asking::new(&request), request.extensions().get::<Connected>().cloned());
    let request = match with_whole_body(request).await {
        Ok(request) => request,
        Err(error) => return Refusal(error).into_response(),
    };
    let _under_way = connected.map(|connected| connected.work.begin());
    let work = async {
        let _permit = state.requests.acquire().await.expect("the semaphore is never closed");
        asking.while_serving(next.run(request)).await
    };
    match tokio::time::timeout(REQUEST_TIME_MAX, work).await {
        Ok(response) => response,
        Err(_) => {
            let message = format!("not answered within {} seconds", REQUEST_TIME_MAX.as_secs());
            let hint = "it may still be carried out: `tangelo status` tells";
            Refusal(CommandError::new(CommandErrorKind::Unfinished, message, hint)).into_response()
        }
    }
}

async fn no_such_resource(request: Request) -> Refusal {
    let message = format!("there is no resource {}", request.uri().path());
    let hint = "/v1/openapi.json describes every resource";
    Refusal(CommandError::new(CommandErrorKind::NotFound, message, hint))
}
