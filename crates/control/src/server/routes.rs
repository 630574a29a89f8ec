//! The routes to all resources, and the bounds that hold for each request.

use std::time::Duration;

use api::*;
use axum::Router;
use axum::extract::{Request, State as Shared};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};

use super::client::{Asking, Connected};
use super::extract::{Refusal, with_whole_body};
use super::request::{State, no_such_method};
use super::{alerts, copies, data, events, names, one, openapi, pair, resources, roles, upkeep, users, who};

/// How long a request may take that is here with its body; making a pool of many drives is the longest.
const REQUEST_TIME_MAX: Duration = Duration::from_secs(120);

/// Every resource, with the bounds that hold for each request, and the role that each needs.
pub(super) fn router(state: State) -> Router {
    with_page(state, Router::new())
}

/// The same resources, and the routes of the page.
pub(super) fn with_page(state: State, page: Router<State>) -> Router {
    Router::new()
        .merge(resources::router())
        .merge(upkeep::router())
        .merge(copies::router())
        .merge(events::router())
        .merge(names::router())
        .merge(one::router())
        .merge(pair::router())
        .merge(alerts::router())
        .merge(users::router())
        .merge(openapi::router())
        .merge(page)
        .fallback(no_such_resource)
        .method_not_allowed_fallback(no_such_method)
        .layer(middleware::from_fn_with_state(state.clone(), bounded))
        .merge(data::router())
        .layer(middleware::from_fn(roles::check_route))
        .with_state(state)
}

/// The same resources for this machine's users.
pub(super) fn local(router: Router) -> Router {
    router.layer(middleware::from_fn(who::of_this_machine))
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
