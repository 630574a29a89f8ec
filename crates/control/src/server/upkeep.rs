//! The resources of a pool's upkeep: adding, removing and replacing drives, spares, scrubs, settings.

use api::*;
use axum::Router;
use axum::extract::State as Shared;
use axum::routing::post;

use super::extract::{Body, Options, Pieces};
use super::request::{Answer, ChangeOptions, State, change};
use crate::rest::*;

pub(super) fn router() -> Router<State> {
    Router::new()
        .route("/v1/drives/locate", post(locate_drive))
        .route("/v1/pools/{name}/drives", post(add_drives))
        .route("/v1/pools/{name}/drives/remove", post(remove_drive))
        .route("/v1/pools/{name}/drives/replace", post(replace_drive))
        .route("/v1/pools/{name}/spares", post(set_spares))
        .route("/v1/pools/{name}/scrub", post(scrub))
        .route("/v1/pools/{name}/settings", post(set))
        .route("/v1/pools/{name}/upgrade", post(upgrade))
}

async fn carry_out(state: &State, upkeep: Upkeep, options: &ChangeOptions) -> Answer {
    change(state, Command::Upkeep { upkeep, dry_run: options.dry_run }).await
}

/// Adds drives to a pool. What they hold is destroyed; a drive that is not blank must be named in `force`.
#[utoipa::path(post, path = "/v1/pools/{name}/drives", tag = "drives", params(("name" = String, Path), ChangeOptions), request_body = NewDrives, responses((status = 200, body = Changed), (status = "default", body = CommandError)))]
pub(super) async fn add_drives(
    Shared(state): Shared<State>,
    Pieces(pool): Pieces<String>,
    Options(options): Options<ChangeOptions>,
    Body(NewDrives { drives, force }): Body<NewDrives>,
) -> Answer {
    carry_out(&state, Upkeep::DriveAdd { pool, drives, force }, &options).await
}

/// Empties a drive; it leaves the pool when nothing stands on it any more.
#[utoipa::path(post, path = "/v1/pools/{name}/drives/remove", tag = "drives", params(("name" = String, Path), ChangeOptions), request_body = DriveRemoval, responses((status = 200, body = Changed), (status = "default", body = CommandError)))]
pub(super) async fn remove_drive(
    Shared(state): Shared<State>,
    Pieces(pool): Pieces<String>,
    Options(options): Options<ChangeOptions>,
    Body(DriveRemoval { drive, cancel }): Body<DriveRemoval>,
) -> Answer {
    carry_out(&state, Upkeep::DriveRemove { pool, drive, cancel }, &options).await
}

/// Puts a new drive in the place of another, which is emptied if it can still be read.
#[utoipa::path(post, path = "/v1/pools/{name}/drives/replace", tag = "drives", params(("name" = String, Path), ChangeOptions), request_body = DriveReplacement, responses((status = 200, body = Changed), (status = "default", body = CommandError)))]
pub(super) async fn replace_drive(
    Shared(state): Shared<State>,
    Pieces(pool): Pieces<String>,
    Options(options): Options<ChangeOptions>,
    Body(DriveReplacement { old, new, force }): Body<DriveReplacement>,
) -> Answer {
    carry_out(&state, Upkeep::DriveReplace { pool, old, new, force }, &options).await
}

/// Has blank drives be hot spares of a pool, or not any more. A spare joins by itself when a drive is lost.
#[utoipa::path(post, path = "/v1/pools/{name}/spares", tag = "drives", params(("name" = String, Path), ChangeOptions), request_body = Spares, responses((status = 200, body = Changed), (status = "default", body = CommandError)))]
pub(super) async fn set_spares(
    Shared(state): Shared<State>,
    Pieces(pool): Pieces<String>,
    Options(options): Options<ChangeOptions>,
    Body(Spares { drives, release }): Body<Spares>,
) -> Answer {
    carry_out(&state, Upkeep::Spare { pool, drives, release }, &options).await
}

/// Has a drive's light blink.
#[utoipa::path(post, path = "/v1/drives/locate", tag = "drives", request_body = Locating, responses((status = 200, body = Changed), (status = "default", body = CommandError)))]
pub(super) async fn locate_drive(
    Shared(state): Shared<State>,
    Body(Locating { path, seconds }): Body<Locating>,
) -> Answer {
    change(&state, Command::DriveLocate { path, seconds }).await
}

/// Begins to read everything in a pool and to repair what is wrong, or stops that.
#[utoipa::path(post, path = "/v1/pools/{name}/scrub", tag = "pools", params(("name" = String, Path), ChangeOptions), request_body = Scrubbing, responses((status = 200, body = Changed), (status = "default", body = CommandError)))]
pub(super) async fn scrub(
    Shared(state): Shared<State>,
    Pieces(pool): Pieces<String>,
    Options(options): Options<ChangeOptions>,
    Body(Scrubbing { stop }): Body<Scrubbing>,
) -> Answer {
    carry_out(&state, Upkeep::Scrub { pool, stop }, &options).await
}

/// Changes how a pool is looked after, and tells how it is.
#[utoipa::path(post, path = "/v1/pools/{name}/settings", tag = "pools", params(("name" = String, Path), ChangeOptions), request_body = NewSettings, responses((status = 200, body = Changed), (status = "default", body = CommandError)))]
pub(super) async fn set(
    Shared(state): Shared<State>,
    Pieces(pool): Pieces<String>,
    Options(options): Options<ChangeOptions>,
    Body(settings): Body<NewSettings>,
) -> Answer {
    carry_out(&state, Upkeep::Set { pool, settings }, &options).await
}

/// Moves a pool to the newest disk format, while hosts go on. Does nothing to one that has it. Programs of before cannot open the pool
/// any more, so both heads of a pair are to be upgraded first.
#[utoipa::path(post, path = "/v1/pools/{name}/upgrade", tag = "pools", params(("name" = String, Path), ChangeOptions), responses((status = 200, body = Changed), (status = "default", body = CommandError)))]
pub(super) async fn upgrade(
    Shared(state): Shared<State>,
    Pieces(pool): Pieces<String>,
    Options(options): Options<ChangeOptions>,
) -> Answer {
    carry_out(&state, Upkeep::Upgrade { pool }, &options).await
}
