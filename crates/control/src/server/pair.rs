//! The resource of the pair of heads. It answers on both heads: also on the one that does not own the array.

use api::*;
use axum::Router;
use axum::extract::State as Shared;
use axum::routing::{get, post};

use super::extract::{Body, Options, Pieces, json_response};
use super::request::{Answer, ChangeOptions, State};
use crate::rest::*;

pub(super) fn router() -> Router<State> {
    Router::new()
        .route("/v1/pair", get(pair))
        .route("/v1/pair/handover", post(hand_over))
        .route("/v1/pair/maintenance", post(maintain))
        .route("/v1/pair/fence", post(test_fence))
        .route("/v1/pair/forget", post(forget))
        .route("/v1/pools/{name}/convert", post(convert_pool))
}

/// The two heads, as the one that is asked sees them.
#[utoipa::path(get, path = "/v1/pair", tag = "pair", responses((status = 200, body = Pair), (status = "default", body = CommandError)))]
pub(super) async fn pair(Shared(state): Shared<State>) -> Answer {
    let pair = state.array.pair(PairOrder::Status).await?;
    Ok(json_response(&Pair { schema: SCHEMA, pair }))
}

/// Has the other head become the owner.
///
/// It is answered when that has begun. The head that hands over then stops the array in order, and starts again as the partner.
#[utoipa::path(post, path = "/v1/pair/handover", tag = "pair", responses((status = 200, body = Pair), (status = "default", body = CommandError)))]
pub(super) async fn hand_over(Shared(state): Shared<State>) -> Answer {
    let pair = state.array.pair(PairOrder::HandOver).await?;
    Ok(json_response(&Pair { schema: SCHEMA, pair }))
}

/// Begins or ends maintenance: meanwhile the partner does not take over, and a stop of the owner hands nothing over
///
/// Either head takes it, as long as the register answers.
#[utoipa::path(post, path = "/v1/pair/maintenance", tag = "pair", request_body = PairMaintenance, responses((status = 200, body = Pair), (status = "default", body = CommandError)))]
pub(super) async fn maintain(
    Shared(state): Shared<State>,
    Body(PairMaintenance { on }): Body<PairMaintenance>,
) -> Answer {
    let pair = state.array.pair(PairOrder::Maintenance(on)).await?;
    Ok(json_response(&Pair { schema: SCHEMA, pair }))
}

/// Tries the fence agent of this head, and fences the other head if that is wanted
#[utoipa::path(post, path = "/v1/pair/fence", tag = "pair", params(ChangeOptions), request_body = FenceTest, responses((status = 200, body = Changed), (status = "default", body = CommandError)))]
pub(super) async fn test_fence(
    Shared(state): Shared<State>,
    Options(options): Options<ChangeOptions>,
    Body(how): Body<FenceTest>,
) -> Answer {
    let carried_out = tokio::spawn(state.array.test_fence(how, options.dry_run));
    match carried_out.await.expect("no request is given up by the server")? {
        Reply::Changed(change) => Ok(json_response(&Changed::from(change))),
        other => unreachable!("the array answered a change with {other:?}"),
    }
}

/// Makes the array one of this head alone, the one that owns it
///
/// It is answered when the other head can own nothing any more. The array is then started again: hosts wait for about a second.
#[utoipa::path(post, path = "/v1/pair/forget", tag = "pair", params(ChangeOptions), request_body = PairForgetting, responses((status = 200, body = Changed), (status = "default", body = CommandError)))]
pub(super) async fn forget(
    Shared(state): Shared<State>,
    Options(options): Options<ChangeOptions>,
    Body(how): Body<PairForgetting>,
) -> Answer {
    // it is carried out also where the client has gone meanwhile
    let carried_out = tokio::spawn(state.array.forget(how, options.dry_run));
    match carried_out.await.expect("no request is given up by the server")? {
        Reply::Changed(change) => Ok(json_response(&Changed::from(change))),
        other => unreachable!("the array answered a change with {other:?}"),
    }
}

/// Has both heads hold a pool that one of them has
///
/// Each drive gets a twin on the other head, and the data is copied in the background; or both heads see the drives. The array is started
/// again for that: hosts wait for about a second.
#[utoipa::path(post, path = "/v1/pools/{name}/convert", tag = "pools", params(("name" = String, Path), ChangeOptions), request_body = Converting, responses((status = 200, body = Changed), (status = "default", body = CommandError)))]
pub(super) async fn convert_pool(
    Shared(state): Shared<State>,
    Pieces(pool): Pieces<String>,
    Options(options): Options<ChangeOptions>,
    Body(Converting { shared }): Body<Converting>,
) -> Answer {
    match state.array.convert(pool, shared, options.dry_run).await? {
        Reply::Changed(change) => Ok(json_response(&Changed::from(change))),
        other => unreachable!("the array answered a change with {other:?}"),
    }
}
