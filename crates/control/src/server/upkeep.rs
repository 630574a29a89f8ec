//! The resources of a pool's upkeep: its drives' life, scrubbing, settings.

use axum::Router;
use axum::extract::State as Shared;
use axum::routing::post;

use super::State;
use super::extract::{Body, Options, Pieces};
use super::routes::{Answer, ChangeOptions, change};
use crate::api::*;

pub(super) fn router() -> Router<State> {
    Router::new()
        .route("/v1/drives/locate", post(locate_drive))
        .route("/v1/pools/{name}/drives", post(add_drives))
        .route("/v1/pools/{name}/drives/remove", post(remove_drive))
        .route("/v1/pools/{name}/drives/replace", post(replace_drive))
        .route("/v1/pools/{name}/spares", post(set_spares))
        .route("/v1/pools/{name}/scrub", post(scrub))
        .route("/v1/pools/{name}/settings", post(set))
}

/// Adds drives to a pool. What they hold is destroyed; a drive that is not blank must be named in `force`.
#[utoipa::path(post, path = "/v1/pools/{name}/drives", tag = "drives", params(("name" = String, Path), ChangeOptions), request_body = NewDrives, responses((status = 200, body = Changed), (status = "default", body = ApiError)))]
pub(super) async fn add_drives(
    Shared(state): Shared<State>,
    Pieces(pool): Pieces<String>,
    Options(options): Options<ChangeOptions>,
    Body(drives): Body<NewDrives>,
) -> Answer {
    change(&state, Command::Upkeep { pool, upkeep: Upkeep::DriveAdd(drives), dry_run: options.dry_run }).await
}

/// Empties a drive; it leaves the pool when nothing stands on it any more.
#[utoipa::path(post, path = "/v1/pools/{name}/drives/remove", tag = "drives", params(("name" = String, Path), ChangeOptions), request_body = DriveRemoval, responses((status = 200, body = Changed), (status = "default", body = ApiError)))]
pub(super) async fn remove_drive(
    Shared(state): Shared<State>,
    Pieces(pool): Pieces<String>,
    Options(options): Options<ChangeOptions>,
    Body(removal): Body<DriveRemoval>,
) -> Answer {
    change(&state, Command::Upkeep { pool, upkeep: Upkeep::DriveRemove(removal), dry_run: options.dry_run })
        .await
}

/// Puts a new drive in the place of another, which is emptied if it can still be read.
#[utoipa::path(post, path = "/v1/pools/{name}/drives/replace", tag = "drives", params(("name" = String, Path), ChangeOptions), request_body = DriveReplacement, responses((status = 200, body = Changed), (status = "default", body = ApiError)))]
pub(super) async fn replace_drive(
    Shared(state): Shared<State>,
    Pieces(pool): Pieces<String>,
    Options(options): Options<ChangeOptions>,
    Body(replacement): Body<DriveReplacement>,
) -> Answer {
    let upkeep = Upkeep::DriveReplace(replacement);
    change(&state, Command::Upkeep { pool, upkeep, dry_run: options.dry_run }).await
}

/// Has blank drives be hot spares of a pool, or not any more. A spare joins by itself when a drive is lost.
#[utoipa::path(post, path = "/v1/pools/{name}/spares", tag = "drives", params(("name" = String, Path), ChangeOptions), request_body = Spares, responses((status = 200, body = Changed), (status = "default", body = ApiError)))]
pub(super) async fn set_spares(
    Shared(state): Shared<State>,
    Pieces(pool): Pieces<String>,
    Options(options): Options<ChangeOptions>,
    Body(spares): Body<Spares>,
) -> Answer {
    change(&state, Command::Upkeep { pool, upkeep: Upkeep::Spare(spares), dry_run: options.dry_run }).await
}

/// Has a drive's light blink.
#[utoipa::path(post, path = "/v1/drives/locate", tag = "drives", request_body = Locating, responses((status = 200, body = Changed), (status = "default", body = ApiError)))]
pub(super) async fn locate_drive(Shared(state): Shared<State>, Body(locating): Body<Locating>) -> Answer {
    change(&state, Command::DriveLocate(locating)).await
}

/// Begins to read everything in a pool and to repair what is wrong, or stops that.
#[utoipa::path(post, path = "/v1/pools/{name}/scrub", tag = "pools", params(("name" = String, Path), ChangeOptions), request_body = Scrubbing, responses((status = 200, body = Changed), (status = "default", body = ApiError)))]
pub(super) async fn scrub(
    Shared(state): Shared<State>,
    Pieces(pool): Pieces<String>,
    Options(options): Options<ChangeOptions>,
    Body(scrubbing): Body<Scrubbing>,
) -> Answer {
    change(&state, Command::Upkeep { pool, upkeep: Upkeep::Scrub(scrubbing), dry_run: options.dry_run }).await
}

/// Changes how a pool is looked after, and tells how it is.
#[utoipa::path(post, path = "/v1/pools/{name}/settings", tag = "pools", params(("name" = String, Path), ChangeOptions), request_body = NewSettings, responses((status = 200, body = Changed), (status = "default", body = ApiError)))]
pub(super) async fn set(
    Shared(state): Shared<State>,
    Pieces(pool): Pieces<String>,
    Options(options): Options<ChangeOptions>,
    Body(settings): Body<NewSettings>,
) -> Answer {
    change(&state, Command::Upkeep { pool, upkeep: Upkeep::Set(settings), dry_run: options.dry_run }).await
}
