//! The resources of snapshots, clones, schedules and the bin.

use api::*;
use axum::Router;
use axum::extract::State as Shared;
use axum::routing::{delete, get, post};
use serde::Deserialize;

use super::extract::{Body, Options, Pieces, json_response};
use super::request::{Answer, ChangeOptions, State, array_status, change};
use crate::rest::*;

pub(super) fn router() -> Router<State> {
    Router::new()
        .route("/v1/snapshots", get(list_snapshots).post(create_snapshots))
        .route("/v1/snapshots/{volume}/{name}", delete(delete_snapshot))
        .route("/v1/snapshots/{volume}/{name}/rollback", post(roll_back))
        .route("/v1/snapshots/{volume}/{name}/clone", post(clone_volume))
        .route("/v1/snapshots/{volume}/{name}/refresh", post(refresh_clones))
        .route("/v1/volumes/{name}/copy", post(copy_volume))
        .route("/v1/volumes/{name}/promote", post(promote_volume))
        .route("/v1/schedules", get(list_schedules).post(create_schedule))
        .route("/v1/schedules/{name}", delete(delete_schedule))
        .route("/v1/bin", get(list_bin))
        .route("/v1/bin/{name}", delete(eradicate_volume))
        .route("/v1/bin/{name}/undelete", post(undelete_volume))
}

async fn carry_out(state: &State, order: CopyOrder, options: &ChangeOptions) -> Answer {
    change(state, Command::Copy { order, dry_run: options.dry_run }).await
}

/// Which snapshots to list.
#[derive(Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct ListOptions {
    /// Only those of this volume.
    volume: Option<String>,
}

/// The snapshots of a volume, or all, with what each takes, counted afresh.
#[utoipa::path(get, path = "/v1/snapshots", tag = "snapshots", params(ListOptions), responses((status = 200, body = SnapshotList), (status = "default", body = CommandError)))]
pub(super) async fn list_snapshots(
    Shared(state): Shared<State>,
    Options(ListOptions { volume }): Options<ListOptions>,
) -> Answer {
    let snapshots = all_snapshots(&state, volume).await?;
    Ok(json_response(&SnapshotList { schema: SCHEMA, snapshots }))
}

/// Those of a volume, or all.
pub(super) async fn all_snapshots(
    state: &State,
    volume: Option<String>,
) -> Result<Vec<SnapshotStatus>, CommandError> {
    match state.array.call(Command::SnapshotList { volume }).await? {
        Reply::Snapshots(snapshots) => Ok(snapshots),
        other => unreachable!("the array answered a list of snapshots with {other:?}"),
    }
}

/// Takes snapshots of volumes in pools, all at one moment: everything acknowledged before is in them, in all of them,
/// and nothing that came later.
#[utoipa::path(post, path = "/v1/snapshots", tag = "snapshots", params(ChangeOptions), request_body = NewSnapshots, responses((status = 200, body = Changed), (status = "default", body = CommandError)))]
pub(super) async fn create_snapshots(
    Shared(state): Shared<State>,
    Options(options): Options<ChangeOptions>,
    Body(NewSnapshots { snapshots }): Body<NewSnapshots>,
) -> Answer {
    let snapshots = snapshots.into_iter().map(|NewSnapshot { volume, name }| (volume, name)).collect();
    carry_out(&state, CopyOrder::Snapshot { snapshots }, &options).await
}

/// Deletes a snapshot; clones of it stay.
#[utoipa::path(delete, path = "/v1/snapshots/{volume}/{name}", tag = "snapshots", params(("volume" = String, Path), ("name" = String, Path), ChangeOptions), responses((status = 200, body = Changed), (status = "default", body = CommandError)))]
pub(super) async fn delete_snapshot(
    Shared(state): Shared<State>,
    Pieces((volume, snapshot)): Pieces<(String, String)>,
    Options(options): Options<ChangeOptions>,
) -> Answer {
    carry_out(&state, CopyOrder::DeleteSnapshot { volume, snapshot }, &options).await
}

/// Makes a volume what it was; what was written since is gone. Refused while it is mapped.
#[utoipa::path(post, path = "/v1/snapshots/{volume}/{name}/rollback", tag = "snapshots", params(("volume" = String, Path), ("name" = String, Path), ChangeOptions), responses((status = 200, body = Changed), (status = "default", body = CommandError)))]
pub(super) async fn roll_back(
    Shared(state): Shared<State>,
    Pieces((volume, snapshot)): Pieces<(String, String)>,
    Options(options): Options<ChangeOptions>,
) -> Answer {
    carry_out(&state, CopyOrder::RollBack { volume, snapshot }, &options).await
}

/// Makes a volume, with an identity of its own, that begins as what the snapshot is and does not depend on it.
#[utoipa::path(post, path = "/v1/snapshots/{volume}/{name}/clone", tag = "snapshots", params(("volume" = String, Path), ("name" = String, Path), ChangeOptions), request_body = NewClone, responses((status = 200, body = Changed), (status = "default", body = CommandError)))]
pub(super) async fn clone_volume(
    Shared(state): Shared<State>,
    Pieces((volume, snapshot)): Pieces<(String, String)>,
    Options(options): Options<ChangeOptions>,
    Body(NewClone { name }): Body<NewClone>,
) -> Answer {
    carry_out(&state, CopyOrder::Clone { volume, snapshot, name }, &options).await
}

/// Makes clones of another snapshot clones of this one, all at once: they begin anew as what it is, and keep their names,
/// identities and mappings. What was written to them is gone; their own snapshots stay.
#[utoipa::path(post, path = "/v1/snapshots/{volume}/{name}/refresh", tag = "snapshots", params(("volume" = String, Path), ("name" = String, Path), ChangeOptions), request_body = Refresh, responses((status = 200, body = Changed), (status = "default", body = CommandError)))]
pub(super) async fn refresh_clones(
    Shared(state): Shared<State>,
    Pieces((volume, snapshot)): Pieces<(String, String)>,
    Options(options): Options<ChangeOptions>,
    Body(Refresh { clones_of, remap }): Body<Refresh>,
) -> Answer {
    carry_out(&state, CopyOrder::Refresh { volume, snapshot, clones_of, remap }, &options).await
}

/// Makes a volume, with an identity of its own, that begins as what this one is now, with all that was acknowledged, and does
/// not depend on it. No data moves: both share what is not written to either.
#[utoipa::path(post, path = "/v1/volumes/{name}/copy", tag = "volumes", params(("name" = String, Path), ChangeOptions), request_body = NewClone, responses((status = 200, body = Changed), (status = "default", body = CommandError)))]
pub(super) async fn copy_volume(
    Shared(state): Shared<State>,
    Pieces(volume): Pieces<String>,
    Options(options): Options<ChangeOptions>,
    Body(NewClone { name }): Body<NewClone>,
) -> Answer {
    carry_out(&state, CopyOrder::CopyVolume { volume, name }, &options).await
}

/// A clone takes over the snapshots that it stands on, down to the first that was not its origin's. The origin is a clone of it
/// from then on. No data moves, and hosts see nothing of it.
#[utoipa::path(post, path = "/v1/volumes/{name}/promote", tag = "volumes", params(("name" = String, Path), ChangeOptions), responses((status = 200, body = Changed), (status = "default", body = CommandError)))]
pub(super) async fn promote_volume(
    Shared(state): Shared<State>,
    Pieces(volume): Pieces<String>,
    Options(options): Options<ChangeOptions>,
) -> Answer {
    carry_out(&state, CopyOrder::Promote { volume }, &options).await
}

/// Brings a volume back from the bin, with its snapshots, and its mappings where their numbers are still free.
#[utoipa::path(post, path = "/v1/bin/{name}/undelete", tag = "bin", params(("name" = String, Path), ChangeOptions), responses((status = 200, body = Changed), (status = "default", body = CommandError)))]
pub(super) async fn undelete_volume(
    Shared(state): Shared<State>,
    Pieces(volume): Pieces<String>,
    Options(options): Options<ChangeOptions>,
) -> Answer {
    carry_out(&state, CopyOrder::Undelete { volume }, &options).await
}

/// Deletes for good what is in the bin, with its snapshots.
#[utoipa::path(delete, path = "/v1/bin/{name}", tag = "bin", params(("name" = String, Path), ChangeOptions), responses((status = 200, body = Changed), (status = "default", body = CommandError)))]
pub(super) async fn eradicate_volume(
    Shared(state): Shared<State>,
    Pieces(volume): Pieces<String>,
    Options(options): Options<ChangeOptions>,
) -> Answer {
    carry_out(&state, CopyOrder::Eradicate { volume }, &options).await
}

/// Volumes that were deleted and can be brought back.
#[utoipa::path(get, path = "/v1/bin", tag = "bin", responses((status = 200, body = Bin), (status = "default", body = CommandError)))]
pub(super) async fn list_bin(Shared(state): Shared<State>) -> Answer {
    let bin = array_status(&state).await?.bin;
    Ok(json_response(&Bin { schema: SCHEMA, bin }))
}

/// Lists the schedules.
#[utoipa::path(get, path = "/v1/schedules", tag = "snapshots", responses((status = 200, body = ScheduleList), (status = "default", body = CommandError)))]
pub(super) async fn list_schedules(Shared(state): Shared<State>) -> Answer {
    let schedules = array_status(&state).await?.schedules;
    Ok(json_response(&ScheduleList { schema: SCHEMA, schedules }))
}

/// Has snapshots taken by themselves, of some volumes at one moment, the first at once. Snapshots that an earlier schedule of
/// the name has left are its own.
#[utoipa::path(post, path = "/v1/schedules", tag = "snapshots", params(ChangeOptions), request_body = NewSchedule, responses((status = 200, body = Changed), (status = "default", body = CommandError)))]
pub(super) async fn create_schedule(
    Shared(state): Shared<State>,
    Options(options): Options<ChangeOptions>,
    Body(NewSchedule { name, volumes, keep }): Body<NewSchedule>,
) -> Answer {
    let order = ScheduleOrder::Create { name, volumes, keep };
    change(&state, Command::Schedule { order, dry_run: options.dry_run }).await
}

/// Ends a schedule; the snapshots that it has taken stay.
#[utoipa::path(delete, path = "/v1/schedules/{name}", tag = "snapshots", params(("name" = String, Path), ChangeOptions), responses((status = 200, body = Changed), (status = "default", body = CommandError)))]
pub(super) async fn delete_schedule(
    Shared(state): Shared<State>,
    Pieces(name): Pieces<String>,
    Options(options): Options<ChangeOptions>,
) -> Answer {
    let order = ScheduleOrder::Delete { name };
    change(&state, Command::Schedule { order, dry_run: options.dry_run }).await
}
