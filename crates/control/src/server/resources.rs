//! The resources of the array as a whole, and of its drives, pools, volumes, hosts and mappings. Each handler turns a
//! request into a command for the array, and its answer into JSON.

use api::*;
use axum::Router;
use axum::extract::State as Shared;
use axum::http::{HeaderMap, header};
use axum::routing::{delete, get, post};
use serde::Deserialize;

use super::extract::{Body, Options, Pieces, json_response};
use super::request::{Answer, ChangeOptions, State, array_status, change};
use super::{copies, metrics};
use crate::rest::*;
use crate::summary;

pub(super) fn router() -> Router<State> {
    Router::new()
        .route("/v1/status", get(status))
        .route("/v1/drives", get(list_drives))
        .route("/v1/pools", get(list_pools).post(create_pool))
        .route("/v1/volumes", get(list_volumes).post(create_volume))
        .route("/v1/volumes/{name}", delete(delete_volume).patch(update_volume))
        .route("/v1/volumes/{name}/access", post(set_access))
        .route("/v1/hosts", get(list_hosts).post(create_host))
        .route("/v1/hosts/{name}", delete(delete_host))
        .route("/v1/mappings", get(list_mappings).post(create_mapping))
        .route("/v1/mappings/{host}/{volume}", delete(delete_mapping))
        .route("/metrics", get(prometheus))
}

#[derive(Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct DeleteOptions {
    /// Check everything and tell what would change, but change nothing.
    #[serde(default)]
    dry_run: bool,
    /// Delete it even while it is mapped, and its mappings with it.
    #[serde(default)]
    unmap: bool,
}

#[derive(Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct VolumeDeleteOptions {
    /// Check everything and tell what would change, but change nothing.
    #[serde(default)]
    dry_run: bool,
    /// Delete it even while it is mapped.
    #[serde(default)]
    unmap: bool,
    /// Not into the bin: at once, and for good. Refused while it has snapshots.
    #[serde(default)]
    eradicate: bool,
}

/// What is to be told with the status.
#[derive(Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct StatusOptions {
    /// The snapshots, too, if there are no more than so many. What each takes is counted for it, which reads from the drives.
    #[serde(default)]
    snapshots: u16,
}

/// The whole array, with a summary for people.
#[utoipa::path(get, path = "/v1/status", tag = "array", params(StatusOptions), responses((status = 200, body = Status), (status = "default", body = CommandError)))]
pub(super) async fn status(
    Shared(state): Shared<State>,
    Options(StatusOptions { snapshots: most }): Options<StatusOptions>,
) -> Answer {
    let array = array_status(&state).await?;
    let there: u64 = array.volumes.iter().map(|volume| volume.snapshots).sum();
    let mut status = summary::describe(array, &state.host_name);
    // a head that is alone has none
    if let Ok(pair) = state.array.pair(PairOrder::Status).await {
        summary::describe_pair(&mut status, pair);
    }
    if (1..=u64::from(most)).contains(&there) {
        status.snapshots = Some(copies::all_snapshots(&state, None).await?);
    }
    Ok(json_response(&status))
}

/// Looks at every configured drive afresh.
#[utoipa::path(get, path = "/v1/drives", tag = "drives", responses((status = 200, body = DriveList), (status = "default", body = CommandError)))]
pub(super) async fn list_drives(Shared(state): Shared<State>) -> Answer {
    match state.array.call(Command::DriveList).await? {
        Reply::Drives(drives) => Ok(json_response(&DriveList { schema: SCHEMA, drives })),
        other => unreachable!("the array answered a drive list with {other:?}"),
    }
}

/// Lists the pools.
#[utoipa::path(get, path = "/v1/pools", tag = "pools", responses((status = 200, body = PoolList), (status = "default", body = CommandError)))]
pub(super) async fn list_pools(Shared(state): Shared<State>) -> Answer {
    let pools = array_status(&state).await?.pools;
    Ok(json_response(&PoolList { schema: SCHEMA, pools }))
}

/// Makes a pool of drives. What they hold is destroyed; a drive that is not blank must be named in `force`.
#[utoipa::path(post, path = "/v1/pools", tag = "pools", params(ChangeOptions), request_body = NewPool, responses((status = 200, body = Changed), (status = "default", body = CommandError)))]
pub(super) async fn create_pool(
    Shared(state): Shared<State>,
    Options(options): Options<ChangeOptions>,
    Body(pool): Body<NewPool>,
) -> Answer {
    change(&state, Command::PoolCreate { pool, dry_run: options.dry_run }).await
}

/// Lists the volumes.
#[utoipa::path(get, path = "/v1/volumes", tag = "volumes", responses((status = 200, body = VolumeList), (status = "default", body = CommandError)))]
pub(super) async fn list_volumes(Shared(state): Shared<State>) -> Answer {
    let volumes = array_status(&state).await?.volumes;
    Ok(json_response(&VolumeList { schema: SCHEMA, volumes }))
}

/// Makes a volume.
#[utoipa::path(post, path = "/v1/volumes", tag = "volumes", params(ChangeOptions), request_body = NewVolume, responses((status = 200, body = Changed), (status = "default", body = CommandError)))]
pub(super) async fn create_volume(
    Shared(state): Shared<State>,
    Options(options): Options<ChangeOptions>,
    Body(volume): Body<NewVolume>,
) -> Answer {
    change(&state, Command::VolumeCreate { volume, dry_run: options.dry_run }).await
}

/// Makes a volume larger or smaller, while hosts use it; they are told by a unit attention (2Ah/09h).
#[utoipa::path(patch, path = "/v1/volumes/{name}", tag = "volumes", params(("name" = String, Path), ChangeOptions), request_body = VolumeUpdate, responses((status = 200, body = Changed), (status = "default", body = CommandError)))]
pub(super) async fn update_volume(
    Shared(state): Shared<State>,
    Pieces(name): Pieces<String>,
    Options(options): Options<ChangeOptions>,
    Body(VolumeUpdate { size_bytes, force }): Body<VolumeUpdate>,
) -> Answer {
    change(&state, Command::VolumeResize { name, size_bytes, force, dry_run: options.dry_run }).await
}

/// Gives a portal group another access state for a volume. Hosts are told by a unit attention (2Ah/06h); the state is kept
/// over a restart. At least one group stays active.
#[utoipa::path(post, path = "/v1/volumes/{name}/access", tag = "volumes", params(("name" = String, Path), ChangeOptions), request_body = GroupAccess, responses((status = 200, body = Changed), (status = "default", body = CommandError)))]
pub(super) async fn set_access(
    Shared(state): Shared<State>,
    Pieces(name): Pieces<String>,
    Options(options): Options<ChangeOptions>,
    Body(access): Body<GroupAccess>,
) -> Answer {
    change(&state, Command::VolumeAccess { name, access, dry_run: options.dry_run }).await
}

/// Deletes a volume. One in a pool goes into the bin, with its snapshots and mappings, from where it can be brought back
/// for a while. What a raw volume exported is left as it is.
#[utoipa::path(delete, path = "/v1/volumes/{name}", tag = "volumes", params(("name" = String, Path), VolumeDeleteOptions), responses((status = 200, body = Changed), (status = "default", body = CommandError)))]
pub(super) async fn delete_volume(
    Shared(state): Shared<State>,
    Pieces(name): Pieces<String>,
    Options(VolumeDeleteOptions { dry_run, unmap, eradicate }): Options<VolumeDeleteOptions>,
) -> Answer {
    change(&state, Command::VolumeDelete { name, unmap, eradicate, dry_run }).await
}

/// Lists the hosts.
#[utoipa::path(get, path = "/v1/hosts", tag = "hosts", responses((status = 200, body = HostList), (status = "default", body = CommandError)))]
pub(super) async fn list_hosts(Shared(state): Shared<State>) -> Answer {
    let hosts = array_status(&state).await?.hosts;
    Ok(json_response(&HostList { schema: SCHEMA, hosts }))
}

/// Makes a host known.
#[utoipa::path(post, path = "/v1/hosts", tag = "hosts", params(ChangeOptions), request_body = NewHost, responses((status = 200, body = Changed), (status = "default", body = CommandError)))]
pub(super) async fn create_host(
    Shared(state): Shared<State>,
    Options(options): Options<ChangeOptions>,
    Body(host): Body<NewHost>,
) -> Answer {
    change(&state, Command::HostCreate { host, dry_run: options.dry_run }).await
}

/// Deletes a host and ends its sessions.
#[utoipa::path(delete, path = "/v1/hosts/{name}", tag = "hosts", params(("name" = String, Path), DeleteOptions), responses((status = 200, body = Changed), (status = "default", body = CommandError)))]
pub(super) async fn delete_host(
    Shared(state): Shared<State>,
    Pieces(name): Pieces<String>,
    Options(options): Options<DeleteOptions>,
) -> Answer {
    change(&state, Command::HostDelete { name, unmap: options.unmap, dry_run: options.dry_run }).await
}

/// Lists which host sees which volume.
#[utoipa::path(get, path = "/v1/mappings", tag = "mappings", responses((status = 200, body = MappingList), (status = "default", body = CommandError)))]
pub(super) async fn list_mappings(Shared(state): Shared<State>) -> Answer {
    let mappings = array_status(&state).await?.mappings;
    Ok(json_response(&MappingList { schema: SCHEMA, mappings }))
}

/// Gives a volume to a host.
#[utoipa::path(post, path = "/v1/mappings", tag = "mappings", params(ChangeOptions), request_body = NewMapping, responses((status = 200, body = Changed), (status = "default", body = CommandError)))]
pub(super) async fn create_mapping(
    Shared(state): Shared<State>,
    Options(options): Options<ChangeOptions>,
    Body(NewMapping { volume, host, lun, read_only }): Body<NewMapping>,
) -> Answer {
    change(&state, Command::Map { volume, host, lun, read_only, dry_run: options.dry_run }).await
}

/// Takes a volume away from a host.
#[utoipa::path(delete, path = "/v1/mappings/{host}/{volume}", tag = "mappings", params(("host" = String, Path), ("volume" = String, Path), ChangeOptions), responses((status = 200, body = Changed), (status = "default", body = CommandError)))]
pub(super) async fn delete_mapping(
    Shared(state): Shared<State>,
    Pieces((host, volume)): Pieces<(String, String)>,
    Options(options): Options<ChangeOptions>,
) -> Answer {
    change(&state, Command::Unmap { volume, host, dry_run: options.dry_run }).await
}

/// Figures for monitoring: in the text format of Prometheus, or as OpenMetrics if the client accepts that.
#[utoipa::path(get, path = "/metrics", tag = "array", responses((status = 200, content_type = "text/plain"), (status = "default", body = CommandError)))]
pub(super) async fn prometheus(Shared(state): Shared<State>, headers: HeaderMap) -> Answer {
    let accept = headers.get(header::ACCEPT).and_then(|accept| accept.to_str().ok()).unwrap_or_default();
    match state.array.call(Command::Metrics).await? {
        Reply::Metrics(array) => {
            let figures = metrics::Figures { array: *array, channels: state.alerts.list() };
            Ok(metrics::page(figures, accept).await)
        }
        other => unreachable!("the array answered a command for metrics with {other:?}"),
    }
}
