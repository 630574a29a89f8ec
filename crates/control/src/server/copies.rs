//! The resources of snapshots and clones.

use axum::Router;
use axum::extract::State as Shared;
use axum::routing::{delete, get, post};

use super::State;
use super::extract::{Body, Options, Pieces, json_response};
use super::routes::{Answer, ChangeOptions, change};
use crate::api::*;

pub(super) fn router() -> Router<State> {
    Router::new()
        .route("/v1/volumes/{name}/snapshots", get(list_snapshots).post(create_snapshot))
        .route("/v1/volumes/{name}/snapshots/{snapshot}", delete(delete_snapshot))
        .route("/v1/volumes/{name}/snapshots/{snapshot}/rollback", post(roll_back))
        .route("/v1/volumes/{name}/snapshots/{snapshot}/clone", post(clone_volume))
}

/// A volume's snapshots, with what each holds, counted afresh.
#[utoipa::path(get, path = "/v1/volumes/{name}/snapshots", tag = "snapshots", params(("name" = String, Path)), responses((status = 200, body = SnapshotList), (status = "default", body = ApiError)))]
pub(super) async fn list_snapshots(Shared(state): Shared<State>, Pieces(volume): Pieces<String>) -> Answer {
    match state.array.call(Command::SnapshotList { volume }).await? {
        Reply::Snapshots(snapshots) => Ok(json_response(&SnapshotList { schema: SCHEMA, snapshots })),
        other => unreachable!("the array answered a list of snapshots with {other:?}"),
    }
}

/// Takes a snapshot of a volume in a pool: all that was acknowledged, and nothing that came later.
#[utoipa::path(post, path = "/v1/volumes/{name}/snapshots", tag = "snapshots", params(("name" = String, Path), ChangeOptions), request_body = NewSnapshot, responses((status = 200, body = Changed), (status = "default", body = ApiError)))]
pub(super) async fn create_snapshot(
    Shared(state): Shared<State>,
    Pieces(volume): Pieces<String>,
    Options(options): Options<ChangeOptions>,
    Body(snapshot): Body<NewSnapshot>,
) -> Answer {
    let order = CopyOrder::Snapshot(snapshot);
    change(&state, Command::Copy { volume, order, dry_run: options.dry_run }).await
}

/// Deletes a snapshot; clones of it stay.
#[utoipa::path(delete, path = "/v1/volumes/{name}/snapshots/{snapshot}", tag = "snapshots", params(("name" = String, Path), ("snapshot" = String, Path), ChangeOptions), responses((status = 200, body = Changed), (status = "default", body = ApiError)))]
pub(super) async fn delete_snapshot(
    Shared(state): Shared<State>,
    Pieces((volume, snapshot)): Pieces<(String, String)>,
    Options(options): Options<ChangeOptions>,
) -> Answer {
    let order = CopyOrder::DeleteSnapshot { snapshot };
    change(&state, Command::Copy { volume, order, dry_run: options.dry_run }).await
}

/// Makes a volume what it was; what was written since is gone. Refused while it is mapped.
#[utoipa::path(post, path = "/v1/volumes/{name}/snapshots/{snapshot}/rollback", tag = "snapshots", params(("name" = String, Path), ("snapshot" = String, Path), ChangeOptions), responses((status = 200, body = Changed), (status = "default", body = ApiError)))]
pub(super) async fn roll_back(
    Shared(state): Shared<State>,
    Pieces((volume, snapshot)): Pieces<(String, String)>,
    Options(options): Options<ChangeOptions>,
) -> Answer {
    let order = CopyOrder::RollBack { snapshot };
    change(&state, Command::Copy { volume, order, dry_run: options.dry_run }).await
}

/// Makes a volume, with an identity of its own, that begins as what the snapshot is.
#[utoipa::path(post, path = "/v1/volumes/{name}/snapshots/{snapshot}/clone", tag = "snapshots", params(("name" = String, Path), ("snapshot" = String, Path), ChangeOptions), request_body = NewClone, responses((status = 200, body = Changed), (status = "default", body = ApiError)))]
pub(super) async fn clone_volume(
    Shared(state): Shared<State>,
    Pieces((volume, snapshot)): Pieces<(String, String)>,
    Options(options): Options<ChangeOptions>,
    Body(clone): Body<NewClone>,
) -> Answer {
    let order = CopyOrder::Clone { snapshot, clone };
    change(&state, Command::Copy { volume, order, dry_run: options.dry_run }).await
}
