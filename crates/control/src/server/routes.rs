//! The resources. Each handler turns a request into a command for the array, and its answer into JSON.

use std::net::IpAddr;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use api::*;
use axum::Router;
use axum::extract::{Request, State as Shared};
use axum::http::{HeaderMap, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::{delete, get, post};
use serde::Deserialize;

use super::client::{Asking, Client, Connected};
use super::extract::{Body, Options, Pieces, Refusal, json_response, with_whole_body};
use super::{
    REQUEST_TIME_MAX, State, Token, copies, data, events, metrics, names, one, openapi_json, upkeep,
};
use crate::array::Array;
use crate::repeats::Repeats;
use crate::rest::*;
use crate::summary;

/// Every resource, with the bounds that hold for each request.
pub(super) fn router(state: State) -> Router {
    Router::new()
        .route("/v1/status", get(status))
        .route("/v1/drives", get(list_drives))
        .route("/v1/pools", get(list_pools).post(create_pool))
        .merge(upkeep::router())
        .merge(copies::router())
        .merge(events::router())
        .merge(names::router())
        .merge(one::router())
        .route("/v1/volumes", get(list_volumes).post(create_volume))
        .route("/v1/volumes/{name}", delete(delete_volume).patch(update_volume))
        .route("/v1/volumes/{name}/access", post(set_access))
        .route("/v1/hosts", get(list_hosts).post(create_host))
        .route("/v1/hosts/{name}", delete(delete_host))
        .route("/v1/mappings", get(list_mappings).post(create_mapping))
        .route("/v1/mappings/{host}/{volume}", delete(delete_mapping))
        .route("/v1/openapi.json", get(openapi))
        .route("/metrics", get(prometheus))
        .fallback(no_such_resource)
        .method_not_allowed_fallback(no_such_method)
        .layer(middleware::from_fn_with_state(state.clone(), bounded))
        .merge(data::router())
        .with_state(state)
}

/// The same resources for who knows the token.
pub(super) fn behind_token(router: Router, token: Token, array: Arc<dyn Array>) -> Router {
    let guard = Guard { token, array, strangers: Arc::default() };
    router.layer(middleware::from_fn_with_state(guard, check_token))
}

/// The token, and who has not known it.
#[derive(Clone)]
struct Guard {
    token: Token,
    array: Arc<dyn Array>,
    strangers: Arc<Mutex<Repeats<IpAddr>>>,
}

impl Guard {
    fn report_stranger(&self, request: &Request) {
        let connected = request.extensions().get::<Connected>();
        let Some(Connected { client: Client::Tcp(address), .. }) = connected else { return };
        let said = self.strangers.lock().expect("nobody panics with it").say(address.ip(), Instant::now());
        let Some(more) = said else { return };
        let (subject, count) = (Subject::Address(address.ip().to_string()), more + 1);
        let report = Command::Report { subject, facts: EventFacts::ApiRefused {}, count };
        // nobody waits for the answer
        drop(tokio::spawn(self.array.call(report)));
    }
}

async fn check_token(Shared(guard): Shared<Guard>, request: Request, next: Next) -> Response {
    let header =
        request.headers().get(header::AUTHORIZATION).map(|value| value.as_bytes()).unwrap_or_default();
    let known = header.split_at_checked("Bearer ".len()).is_some_and(|(scheme, presented)| {
        scheme.eq_ignore_ascii_case(b"Bearer ") && guard.token.matches(presented)
    });
    if known {
        return next.run(request).await;
    }
    guard.report_stranger(&request);
    let hint = "send `Authorization: Bearer TOKEN` with the content of the token_file";
    Refusal(CommandError::new(CommandErrorKind::Unauthorized, "no token, or a wrong one", hint))
        .into_response()
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

pub(super) async fn no_such_method(request: Request) -> Refusal {
    let message = format!("{} cannot be used on {}", request.method(), request.uri().path());
    let hint = "/v1/openapi.json describes every resource";
    Refusal(CommandError::new(CommandErrorKind::MethodNotAllowed, message, hint))
}

#[derive(Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct ChangeOptions {
    /// Check everything and tell what would change, but change nothing.
    #[serde(default)]
    pub(super) dry_run: bool,
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

pub(super) type Answer = Result<Response, Refusal>;

pub(super) async fn array_status(state: &State) -> Result<ArrayStatus, CommandError> {
    match state.array.call(Command::Status).await? {
        Reply::Status(status) => Ok(*status),
        other => unreachable!("the array answered a status command with {other:?}"),
    }
}

pub(super) async fn change(state: &State, command: Command) -> Answer {
    // It is carried out also where the client has gone meanwhile.
    let carried_out = tokio::spawn(state.array.call_for(command, Asking::current().origin()));
    match carried_out.await.expect("no request is given up by the server")? {
        Reply::Changed(change) => Ok(json_response(&Changed::from(change))),
        other => unreachable!("the array answered a change with {other:?}"),
    }
}

/// What is to be told with the status.
#[derive(Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct StatusOptions {
    /// The snapshots, too, if there are no more than so many. What each takes is counted for it, which reads from the drives.
    #[serde(default)]
    snapshots: u16,
}

/// The whole array, with a summary for people.
#[utoipa::path(get, path = "/v1/status", tag = "array", params(StatusOptions), responses((status = 200, body = Status), (status = "default", body = CommandError)))]
async fn status(
    Shared(state): Shared<State>,
    Options(StatusOptions { snapshots: most }): Options<StatusOptions>,
) -> Answer {
    let array = array_status(&state).await?;
    let there: u64 = array.volumes.iter().map(|volume| volume.snapshots).sum();
    let mut status = summary::describe(array, &state.host_name);
    if (1..=u64::from(most)).contains(&there) {
        status.snapshots = Some(copies::all_snapshots(&state, None).await?);
    }
    Ok(json_response(&status))
}

/// Looks at every configured drive afresh.
#[utoipa::path(get, path = "/v1/drives", tag = "drives", responses((status = 200, body = DriveList), (status = "default", body = CommandError)))]
async fn list_drives(Shared(state): Shared<State>) -> Answer {
    match state.array.call(Command::DriveList).await? {
        Reply::Drives(drives) => Ok(json_response(&DriveList { schema: SCHEMA, drives })),
        other => unreachable!("the array answered a drive list with {other:?}"),
    }
}

/// Lists the pools.
#[utoipa::path(get, path = "/v1/pools", tag = "pools", responses((status = 200, body = PoolList), (status = "default", body = CommandError)))]
async fn list_pools(Shared(state): Shared<State>) -> Answer {
    let pools = array_status(&state).await?.pools;
    Ok(json_response(&PoolList { schema: SCHEMA, pools }))
}

/// Makes a pool of drives. What they hold is destroyed; a drive that is not blank must be named in `force`.
#[utoipa::path(post, path = "/v1/pools", tag = "pools", params(ChangeOptions), request_body = NewPool, responses((status = 200, body = Changed), (status = "default", body = CommandError)))]
async fn create_pool(
    Shared(state): Shared<State>,
    Options(options): Options<ChangeOptions>,
    Body(pool): Body<NewPool>,
) -> Answer {
    change(&state, Command::PoolCreate { pool, dry_run: options.dry_run }).await
}

/// Lists the volumes.
#[utoipa::path(get, path = "/v1/volumes", tag = "volumes", responses((status = 200, body = VolumeList), (status = "default", body = CommandError)))]
async fn list_volumes(Shared(state): Shared<State>) -> Answer {
    let volumes = array_status(&state).await?.volumes;
    Ok(json_response(&VolumeList { schema: SCHEMA, volumes }))
}

/// Makes a volume.
#[utoipa::path(post, path = "/v1/volumes", tag = "volumes", params(ChangeOptions), request_body = NewVolume, responses((status = 200, body = Changed), (status = "default", body = CommandError)))]
async fn create_volume(
    Shared(state): Shared<State>,
    Options(options): Options<ChangeOptions>,
    Body(volume): Body<NewVolume>,
) -> Answer {
    change(&state, Command::VolumeCreate { volume, dry_run: options.dry_run }).await
}

/// Makes a volume larger or smaller, while hosts use it; they are told by a unit attention (2Ah/09h).
#[utoipa::path(patch, path = "/v1/volumes/{name}", tag = "volumes", params(("name" = String, Path), ChangeOptions), request_body = VolumeUpdate, responses((status = 200, body = Changed), (status = "default", body = CommandError)))]
async fn update_volume(
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
async fn set_access(
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
async fn delete_volume(
    Shared(state): Shared<State>,
    Pieces(name): Pieces<String>,
    Options(VolumeDeleteOptions { dry_run, unmap, eradicate }): Options<VolumeDeleteOptions>,
) -> Answer {
    change(&state, Command::VolumeDelete { name, unmap, eradicate, dry_run }).await
}

/// Lists the hosts.
#[utoipa::path(get, path = "/v1/hosts", tag = "hosts", responses((status = 200, body = HostList), (status = "default", body = CommandError)))]
async fn list_hosts(Shared(state): Shared<State>) -> Answer {
    let hosts = array_status(&state).await?.hosts;
    Ok(json_response(&HostList { schema: SCHEMA, hosts }))
}

/// Makes a host known.
#[utoipa::path(post, path = "/v1/hosts", tag = "hosts", params(ChangeOptions), request_body = NewHost, responses((status = 200, body = Changed), (status = "default", body = CommandError)))]
async fn create_host(
    Shared(state): Shared<State>,
    Options(options): Options<ChangeOptions>,
    Body(host): Body<NewHost>,
) -> Answer {
    change(&state, Command::HostCreate { host, dry_run: options.dry_run }).await
}

/// Deletes a host and ends its sessions.
#[utoipa::path(delete, path = "/v1/hosts/{name}", tag = "hosts", params(("name" = String, Path), DeleteOptions), responses((status = 200, body = Changed), (status = "default", body = CommandError)))]
async fn delete_host(
    Shared(state): Shared<State>,
    Pieces(name): Pieces<String>,
    Options(options): Options<DeleteOptions>,
) -> Answer {
    change(&state, Command::HostDelete { name, unmap: options.unmap, dry_run: options.dry_run }).await
}

/// Lists which host sees which volume.
#[utoipa::path(get, path = "/v1/mappings", tag = "mappings", responses((status = 200, body = MappingList), (status = "default", body = CommandError)))]
async fn list_mappings(Shared(state): Shared<State>) -> Answer {
    let mappings = array_status(&state).await?.mappings;
    Ok(json_response(&MappingList { schema: SCHEMA, mappings }))
}

/// Gives a volume to a host.
#[utoipa::path(post, path = "/v1/mappings", tag = "mappings", params(ChangeOptions), request_body = NewMapping, responses((status = 200, body = Changed), (status = "default", body = CommandError)))]
async fn create_mapping(
    Shared(state): Shared<State>,
    Options(options): Options<ChangeOptions>,
    Body(NewMapping { volume, host, lun, read_only }): Body<NewMapping>,
) -> Answer {
    change(&state, Command::Map { volume, host, lun, read_only, dry_run: options.dry_run }).await
}

/// Takes a volume away from a host.
#[utoipa::path(delete, path = "/v1/mappings/{host}/{volume}", tag = "mappings", params(("host" = String, Path), ("volume" = String, Path), ChangeOptions), responses((status = 200, body = Changed), (status = "default", body = CommandError)))]
async fn delete_mapping(
    Shared(state): Shared<State>,
    Pieces((host, volume)): Pieces<(String, String)>,
    Options(options): Options<ChangeOptions>,
) -> Answer {
    change(&state, Command::Unmap { volume, host, dry_run: options.dry_run }).await
}

/// This description.
#[utoipa::path(get, path = "/v1/openapi.json", tag = "array", responses((status = 200, content_type = "application/json"), (status = "default", body = CommandError)))]
async fn openapi() -> Response {
    ([(header::CONTENT_TYPE, "application/json")], openapi_json()).into_response()
}

/// Figures for monitoring: in the text format of Prometheus, or as OpenMetrics if the client accepts that.
#[utoipa::path(get, path = "/metrics", tag = "array", responses((status = 200, content_type = "text/plain"), (status = "default", body = CommandError)))]
async fn prometheus(Shared(state): Shared<State>, headers: HeaderMap) -> Answer {
    let accept = headers.get(header::ACCEPT).and_then(|accept| accept.to_str().ok()).unwrap_or_default();
    match state.array.call(Command::Metrics).await? {
        Reply::Metrics(figures) => Ok(metrics::page(*figures, accept).await),
        other => unreachable!("the array answered a command for metrics with {other:?}"),
    }
}

/// The description of all of the above.
#[derive(utoipa::OpenApi)]
#[openapi(
    info(
        title = "Tangelo",
        description = "The API of a Tangelo array. It is served over a Unix socket, and over TCP with a bearer token.",
        license(name = "Apache-2.0 OR MIT", identifier = "Apache-2.0 OR MIT")
    ),
    paths(
        status,
        list_drives,
        list_pools,
        create_pool,
        one::get_drive,
        one::get_pool,
        one::get_volume,
        one::get_snapshot,
        one::get_schedule,
        one::get_host,
        one::get_mapping,
        names::delete_pool,
        names::rename_pool,
        names::rename_volume,
        names::update_host,
        names::rename_host,
        names::rename_schedule,
        names::rename_snapshot,
        names::wipe_drive,
        names::clear_drives,
        upkeep::add_drives,
        upkeep::remove_drive,
        upkeep::replace_drive,
        upkeep::set_spares,
        upkeep::locate_drive,
        upkeep::scrub,
        upkeep::set,
        list_volumes,
        create_volume,
        update_volume,
        set_access,
        delete_volume,
        data::export_volume,
        data::import_volume,
        data::export_snapshot,
        copies::list_snapshots,
        copies::create_snapshots,
        copies::delete_snapshot,
        copies::roll_back,
        copies::clone_volume,
        copies::refresh_clones,
        copies::copy_volume,
        copies::promote_volume,
        copies::list_schedules,
        copies::create_schedule,
        copies::delete_schedule,
        copies::list_bin,
        copies::undelete_volume,
        copies::eradicate_volume,
        events::list_events,
        events::stream_events,
        list_hosts,
        create_host,
        delete_host,
        list_mappings,
        create_mapping,
        delete_mapping,
        openapi,
        prometheus
    )
)]
pub(super) struct Description;
