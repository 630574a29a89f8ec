//! The resources of single objects: one drive, pool, volume, snapshot, schedule, host or mapping.

use api::*;
use axum::Router;
use axum::extract::State as Shared;
use axum::routing::get;

use super::copies::all_snapshots;
use super::extract::{Pieces, json_response};
use super::request::{Answer, State, array_status};
use crate::rest::*;

pub(super) fn router() -> Router<State> {
    Router::new()
        .route("/v1/drives/{drive}", get(get_drive))
        .route("/v1/pools/{name}", get(get_pool))
        .route("/v1/volumes/{name}", get(get_volume))
        .route("/v1/snapshots/{volume}/{name}", get(get_snapshot))
        .route("/v1/schedules/{name}", get(get_schedule))
        .route("/v1/hosts/{name}", get(get_host))
        .route("/v1/mappings/{host}/{volume}", get(get_mapping))
}

/// The one that is meant, or that there is none.
fn found<T>(kind: &str, name: &str, mut all: Vec<T>, is_it: impl Fn(&T) -> bool) -> Result<T, CommandError> {
    match all.iter().position(is_it) {
        Some(index) => Ok(all.swap_remove(index)),
        None => {
            let hint = format!("`tangelo {kind} list` shows what there is");
            Err(CommandError::new(
                CommandErrorKind::NotFound,
                format!("there is no {kind} called \"{name}\""),
                hint,
            ))
        }
    }
}

fn problems_of(array: &[Problem], subject: Subject) -> Vec<Problem> {
    array.iter().filter(|problem| problem.subject == subject).cloned().collect()
}

/// One drive, looked at afresh
///
/// By its path, or by the beginning of its id, 4 digits or more.
#[utoipa::path(get, path = "/v1/drives/{drive}", tag = "drives", params(("drive" = String, Path, description = "Its path, with %2F for each slash; or the beginning of its id")), responses((status = 200, body = OneDrive), (status = "default", body = CommandError)))]
pub(super) async fn get_drive(Shared(state): Shared<State>, Pieces(name): Pieces<String>) -> Answer {
    let drives = match state.array.call(Command::DriveList).await? {
        Reply::Drives(drives) => drives,
        other => unreachable!("the array answered a drive list with {other:?}"),
    };
    let by_id = |drive: &DriveStatus| name.len() >= 4 && drive.id.starts_with(name.as_str());
    if drives.iter().filter(|drive| by_id(drive)).count() > 1 {
        let message = format!("several drives' ids begin with {name}");
        let hint = "give more of the id, or the path";
        return Err(CommandError::new(CommandErrorKind::Invalid, message, hint).into());
    }
    let drive = found("drive", &name, drives, |drive| drive.path == name || by_id(drive))?;
    let problems = problems_of(&array_status(&state).await?.problems, Subject::drive(&drive.path));
    Ok(json_response(&OneDrive { schema: SCHEMA, drive, problems }))
}

/// One pool, with its volumes
#[utoipa::path(get, path = "/v1/pools/{name}", tag = "pools", params(("name" = String, Path)), responses((status = 200, body = OnePool), (status = "default", body = CommandError)))]
pub(super) async fn get_pool(Shared(state): Shared<State>, Pieces(name): Pieces<String>) -> Answer {
    let array = array_status(&state).await?;
    let pool = found("pool", &name, array.pools, |pool| pool.name == name)?;
    let in_it = |volume: &VolumeStatus| matches!(&volume.backing, VolumeBacking::Pool(pool) if *pool == name);
    Ok(json_response(&OnePool {
        schema: SCHEMA,
        problems: problems_of(&array.problems, Subject::pool(&name)),
        pool,
        volumes: array.volumes.into_iter().filter(in_it).collect(),
        bin: array.bin.into_iter().filter(|binned| binned.pool == name).collect(),
    }))
}

/// One volume, with its mappings and snapshots
#[utoipa::path(get, path = "/v1/volumes/{name}", tag = "volumes", params(("name" = String, Path)), responses((status = 200, body = OneVolume), (status = "default", body = CommandError)))]
pub(super) async fn get_volume(Shared(state): Shared<State>, Pieces(name): Pieces<String>) -> Answer {
    let array = array_status(&state).await?;
    let volume = found("volume", &name, array.volumes, |volume| volume.name == name)?;
    let snapshots = match volume.snapshots {
        0 => Vec::new(),
        _ => all_snapshots(&state, Some(name.clone())).await?,
    };
    Ok(json_response(&OneVolume {
        schema: SCHEMA,
        problems: problems_of(&array.problems, Subject::volume(&name)),
        volume,
        mappings: array.mappings.into_iter().filter(|mapping| mapping.volume == name).collect(),
        snapshots,
        schedules: array.schedules.into_iter().filter(|schedule| schedule.volumes.contains(&name)).collect(),
    }))
}

/// One snapshot, with its clones
#[utoipa::path(get, path = "/v1/snapshots/{volume}/{name}", tag = "snapshots", params(("volume" = String, Path), ("name" = String, Path)), responses((status = 200, body = OneSnapshot), (status = "default", body = CommandError)))]
pub(super) async fn get_snapshot(
    Shared(state): Shared<State>,
    Pieces((volume, name)): Pieces<(String, String)>,
) -> Answer {
    let whole = format!("{volume}@{name}");
    let snapshots = all_snapshots(&state, Some(volume)).await?;
    let snapshot = found("snapshot", &whole, snapshots, |snapshot| snapshot.name == name)?;
    let clones = array_status(&state).await?.volumes.into_iter();
    let clones = clones.filter(|clone| clone.clone_of.as_ref() == Some(&whole)).map(|clone| clone.name);
    Ok(json_response(&OneSnapshot { schema: SCHEMA, snapshot, clones: clones.collect() }))
}

/// One schedule
#[utoipa::path(get, path = "/v1/schedules/{name}", tag = "snapshots", params(("name" = String, Path)), responses((status = 200, body = OneSchedule), (status = "default", body = CommandError)))]
pub(super) async fn get_schedule(Shared(state): Shared<State>, Pieces(name): Pieces<String>) -> Answer {
    let schedules = array_status(&state).await?.schedules;
    let schedule = found("schedule", &name, schedules, |schedule| schedule.name == name)?;
    Ok(json_response(&OneSchedule { schema: SCHEMA, schedule }))
}

/// One host, with its mappings and sessions
#[utoipa::path(get, path = "/v1/hosts/{name}", tag = "hosts", params(("name" = String, Path)), responses((status = 200, body = OneHost), (status = "default", body = CommandError)))]
pub(super) async fn get_host(Shared(state): Shared<State>, Pieces(name): Pieces<String>) -> Answer {
    let array = array_status(&state).await?;
    let host = found("host", &name, array.hosts, |host| host.name == name)?;
    Ok(json_response(&OneHost {
        schema: SCHEMA,
        host,
        mappings: array.mappings.into_iter().filter(|mapping| mapping.host == name).collect(),
        sessions: array.sessions.into_iter().filter(|session| session.host == name).collect(),
    }))
}

/// One mapping
#[utoipa::path(get, path = "/v1/mappings/{host}/{volume}", tag = "mappings", params(("host" = String, Path), ("volume" = String, Path)), responses((status = 200, body = OneMapping), (status = "default", body = CommandError)))]
pub(super) async fn get_mapping(
    Shared(state): Shared<State>,
    Pieces((host, volume)): Pieces<(String, String)>,
) -> Answer {
    let mappings = array_status(&state).await?.mappings;
    let whole = format!("{volume} of {host}");
    let is_it = |mapping: &MappingStatus| mapping.volume == volume && mapping.host == host;
    let mapping = found("mapping", &whole, mappings, is_it)?;
    Ok(json_response(&OneMapping { schema: SCHEMA, mapping }))
}
