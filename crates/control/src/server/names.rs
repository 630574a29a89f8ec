//! The resources that rename, change hosts, delete pools and erase drives.

use api::*;
use axum::Router;
use axum::extract::State as Shared;
use axum::routing::{delete, patch, post};
use serde::Deserialize;

use super::extract::{Body, Options, Pieces};
use super::request::{Answer, ChangeOptions, State, change};
use crate::rest::*;

pub(super) fn router() -> Router<State> {
    Router::new()
        .route("/v1/pools/{name}", delete(delete_pool))
        .route("/v1/pools/{name}/rename", post(rename_pool))
        .route("/v1/volumes/{name}/rename", post(rename_volume))
        .route("/v1/hosts/{name}", patch(update_host))
        .route("/v1/hosts/{name}/rename", post(rename_host))
        .route("/v1/schedules/{name}/rename", post(rename_schedule))
        .route("/v1/snapshots/{volume}/{name}/rename", post(rename_snapshot))
        .route("/v1/drives/wipe", post(wipe_drive))
        .route("/v1/drives/clear", post(clear_drives))
}

async fn rename(state: &State, of: Named, name: String, options: &ChangeOptions) -> Answer {
    change(state, Command::Rename { of, name, dry_run: options.dry_run }).await
}

#[derive(Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct PoolDeleteOptions {
    /// Check everything and tell what would change, but change nothing.
    #[serde(default)]
    dry_run: bool,
    /// What is in its bin is deleted for good; otherwise the pool stays as long as its bin holds something.
    #[serde(default)]
    eradicate: bool,
}

/// Deletes a pool that has no volumes. The labels of its drives are erased; there is no undo.
#[utoipa::path(delete, path = "/v1/pools/{name}", tag = "pools", params(("name" = String, Path), PoolDeleteOptions), responses((status = 200, body = Changed), (status = "default", body = CommandError)))]
pub(super) async fn delete_pool(
    Shared(state): Shared<State>,
    Pieces(name): Pieces<String>,
    Options(PoolDeleteOptions { dry_run, eradicate }): Options<PoolDeleteOptions>,
) -> Answer {
    change(&state, Command::PoolDelete { name, eradicate, dry_run }).await
}

/// Gives a pool another name.
#[utoipa::path(post, path = "/v1/pools/{name}/rename", tag = "pools", params(("name" = String, Path), ChangeOptions), request_body = NewName, responses((status = 200, body = Changed), (status = "default", body = CommandError)))]
pub(super) async fn rename_pool(
    Shared(state): Shared<State>,
    Pieces(pool): Pieces<String>,
    Options(options): Options<ChangeOptions>,
    Body(NewName { name }): Body<NewName>,
) -> Answer {
    rename(&state, Named::Pool(pool), name, &options).await
}

/// Gives a volume another name. Hosts see no difference.
#[utoipa::path(post, path = "/v1/volumes/{name}/rename", tag = "volumes", params(("name" = String, Path), ChangeOptions), request_body = NewName, responses((status = 200, body = Changed), (status = "default", body = CommandError)))]
pub(super) async fn rename_volume(
    Shared(state): Shared<State>,
    Pieces(volume): Pieces<String>,
    Options(options): Options<ChangeOptions>,
    Body(NewName { name }): Body<NewName>,
) -> Answer {
    rename(&state, Named::Volume(volume), name, &options).await
}

/// Changes a host's initiators and CHAP. Sessions that are still valid go on.
#[utoipa::path(patch, path = "/v1/hosts/{name}", tag = "hosts", params(("name" = String, Path), ChangeOptions), request_body = HostUpdate, responses((status = 200, body = Changed), (status = "default", body = CommandError)))]
pub(super) async fn update_host(
    Shared(state): Shared<State>,
    Pieces(name): Pieces<String>,
    Options(options): Options<ChangeOptions>,
    Body(update): Body<HostUpdate>,
) -> Answer {
    change(&state, Command::HostUpdate { name, update, dry_run: options.dry_run }).await
}

/// Gives a host another name. Its sessions go on.
#[utoipa::path(post, path = "/v1/hosts/{name}/rename", tag = "hosts", params(("name" = String, Path), ChangeOptions), request_body = NewName, responses((status = 200, body = Changed), (status = "default", body = CommandError)))]
pub(super) async fn rename_host(
    Shared(state): Shared<State>,
    Pieces(host): Pieces<String>,
    Options(options): Options<ChangeOptions>,
    Body(NewName { name }): Body<NewName>,
) -> Answer {
    rename(&state, Named::Host(host), name, &options).await
}

/// Gives a schedule another name. The snapshots that it has taken stay its own, under the names that they have.
#[utoipa::path(post, path = "/v1/schedules/{name}/rename", tag = "snapshots", params(("name" = String, Path), ChangeOptions), request_body = NewName, responses((status = 200, body = Changed), (status = "default", body = CommandError)))]
pub(super) async fn rename_schedule(
    Shared(state): Shared<State>,
    Pieces(schedule): Pieces<String>,
    Options(options): Options<ChangeOptions>,
    Body(NewName { name }): Body<NewName>,
) -> Answer {
    rename(&state, Named::Schedule(schedule), name, &options).await
}

/// Gives a snapshot another name.
#[utoipa::path(post, path = "/v1/snapshots/{volume}/{name}/rename", tag = "snapshots", params(("volume" = String, Path), ("name" = String, Path), ChangeOptions), request_body = NewName, responses((status = 200, body = Changed), (status = "default", body = CommandError)))]
pub(super) async fn rename_snapshot(
    Shared(state): Shared<State>,
    Pieces((volume, snapshot)): Pieces<(String, String)>,
    Options(options): Options<ChangeOptions>,
    Body(NewName { name }): Body<NewName>,
) -> Answer {
    rename(&state, Named::Snapshot { volume, snapshot }, name, &options).await
}

/// Erases what tells what a drive holds, at its beginning and its end. Refused while anything uses it; there is no undo.
#[utoipa::path(post, path = "/v1/drives/wipe", tag = "drives", params(ChangeOptions), request_body = DriveWipe, responses((status = 200, body = Changed), (status = "default", body = CommandError)))]
pub(super) async fn wipe_drive(
    Shared(state): Shared<State>,
    Options(options): Options<ChangeOptions>,
    Body(DriveWipe { path }): Body<DriveWipe>,
) -> Answer {
    change(&state, Command::DriveWipe { path, dry_run: options.dry_run }).await
}

/// Takes note of what drives did that pools have had to do without: `status` says it no more. They stay refused without force.
#[utoipa::path(post, path = "/v1/drives/clear", tag = "drives", params(ChangeOptions), request_body = DriveClear, responses((status = 200, body = Changed), (status = "default", body = CommandError)))]
pub(super) async fn clear_drives(
    Shared(state): Shared<State>,
    Options(options): Options<ChangeOptions>,
    Body(DriveClear { drive }): Body<DriveClear>,
) -> Answer {
    change(&state, Command::DriveClear { drive, dry_run: options.dry_run }).await
}
