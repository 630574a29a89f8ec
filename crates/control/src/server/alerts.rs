//! The resource of alerts. Both heads of a pair have it: each has its own channels.

use api::*;
use axum::Router;
use axum::extract::State as Shared;
use axum::routing::{get, post};

use super::extract::{Body, json_response};
use super::request::{Answer, State};
use crate::rest::*;

pub(super) fn router() -> Router<State> {
    Router::new().route("/v1/alerts", get(list_alerts)).route("/v1/alerts/test", post(test_alerts))
}

/// Lists this head's channels of alerts: where each leads, whether it works, and what it was told.
#[utoipa::path(get, path = "/v1/alerts", tag = "alerts", responses((status = 200, body = AlertList), (status = "default", body = CommandError)))]
pub(super) async fn list_alerts(Shared(state): Shared<State>) -> Answer {
    Ok(json_response(&AlertList { schema: SCHEMA, channels: state.alerts.list() }))
}

/// Sends a test message by one channel, or by each
///
/// It is answered when each has delivered it or failed, which takes at most a minute and a half. A channel that failed before, and works now,
/// tells at once what it has to tell.
#[utoipa::path(post, path = "/v1/alerts/test", tag = "alerts", request_body = AlertTest, responses((status = 200, body = AlertTested), (status = "default", body = CommandError)))]
pub(super) async fn test_alerts(Shared(state): Shared<State>, Body(test): Body<AlertTest>) -> Answer {
    let results = state.alerts.test(test.channel).await?;
    Ok(json_response(&AlertTested { schema: SCHEMA, results }))
}
