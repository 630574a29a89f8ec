//! The resource of the pair of heads. It answers on both heads: also on the one that does not own the array.

use api::*;
use axum::Router;
use axum::extract::State as Shared;
use axum::routing::{get, post};

use super::extract::{Options, Pieces, json_response};
use super::request::{Answer, ChangeOptions, State};
use crate::rest::*;

pub(super) fn router() -> Router<State> {
    Router::new()
        .route("/v1/pair", get(pair))
        .route("/v1/pair/handover", post(hand_over))
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

/// Gives each drive of a pool a twin on the other head
///
/// The pool's data is copied in the background. The array is started again for that: hosts wait for about a second.
#[utoipa::path(post, path = "/v1/pools/{name}/convert", tag = "pools", params(("name" = String, Path), ChangeOptions), responses((status = 200, body = Changed), (status = "default", body = CommandError)))]
pub(super) async fn convert_pool(
    Shared(state): Shared<State>,
    Pieces(pool): Pieces<String>,
    Options(options): Options<ChangeOptions>,
) -> Answer {
    match state.array.convert(pool, options.dry_run).await? {
        Reply::Changed(change) => Ok(json_response(&Changed::from(change))),
        other => unreachable!("the array answered a change with {other:?}"),
    }
}
