//! The commands of snapshots, schedules, clones and the bin.

use api::Keep;
use control::client::{Server, path_piece};
use control::rest::*;

use super::ask::Ask;
use super::{Failure, Shown, change_path, changed, show};
use crate::cli;

pub(super) async fn snapshot(snapshot: &cli::Snapshot, server: &Server) -> Result<Shown, Failure> {
    match snapshot {
        cli::Snapshot::Create { snapshots, change } => {
            let new = snapshots.iter().cloned();
            let new = new.map(|cli::SnapshotOf { volume, snapshot }| NewSnapshot { volume, name: snapshot });
            let new = NewSnapshots { snapshots: new.collect() };
            changed(server.post(&change_path("/v1/snapshots", change), &new).await?)
        }
        cli::Snapshot::Show { .. } => unreachable!("it has been shown"),
        cli::Snapshot::List { volume } => {
            let only = volume.as_ref().map_or(String::new(), |name| format!("?volume={}", path_piece(name)));
            Ok(show(server.get::<SnapshotList>(&format!("/v1/snapshots{only}")).await?))
        }
        cli::Snapshot::Delete { snapshot, change } => {
            Ask::Delete(path(snapshot, "")).destroy(change, server).await
        }
        cli::Snapshot::Rollback { snapshot, change } => {
            Ask::post(path(snapshot, "/rollback"), &()).destroy(change, server).await
        }
        cli::Snapshot::Rename { snapshot, new_name, change } => {
            Ask::post(path(snapshot, "/rename"), &NewName { name: new_name.clone() })
                .change(change, server)
                .await
        }
    }
}

pub(super) async fn clone(
    from: &cli::SnapshotOf,
    name: &str,
    change: &cli::Change,
    server: &Server,
) -> Result<Shown, Failure> {
    let clone = NewClone { name: name.to_owned() };
    changed(server.post(&change_path(&path(from, "/clone"), change), &clone).await?)
}

pub(super) async fn schedule(schedule: &cli::Schedule, server: &Server) -> Result<Shown, Failure> {
    match schedule {
        &cli::Schedule::Create { ref name, ref volumes, hourly, daily, weekly, monthly, ref change } => {
            let keep = Keep { hourly, daily, weekly, monthly };
            let new = NewSchedule { name: name.clone(), volumes: volumes.clone(), keep };
            changed(server.post(&change_path("/v1/schedules", change), &new).await?)
        }
        cli::Schedule::List => Ok(show(server.get::<ScheduleList>("/v1/schedules").await?)),
        cli::Schedule::Show { .. } => unreachable!("it has been shown"),
        cli::Schedule::Rename(rename) => super::names::rename("schedules", rename, server).await,
        cli::Schedule::Delete { name, change } => {
            let path = format!("/v1/schedules/{}", path_piece(name));
            changed(server.delete(&change_path(&path, change)).await?)
        }
    }
}

/// What is done to a volume by its name alone.
pub(super) async fn volume(volume: &cli::Volume, server: &Server) -> Result<Shown, Failure> {
    match volume {
        cli::Volume::Refresh { to, clones_of, remap, change } => {
            let refresh = Refresh { clones_of: clones_of.clone(), remap: *remap };
            Ask::post(path(to, "/refresh"), &refresh).destroy(change, server).await
        }
        cli::Volume::Copy { from, name, change } => {
            let path = format!("/v1/volumes/{}/copy", path_piece(from));
            let copy = NewClone { name: name.clone() };
            changed(server.post(&change_path(&path, change), &copy).await?)
        }
        cli::Volume::Promote { name, change } => {
            let path = format!("/v1/volumes/{}/promote", path_piece(name));
            changed(server.post(&change_path(&path, change), &()).await?)
        }
        cli::Volume::Delete { name, unmap, eradicate, change } => {
            let path = format!("/v1/volumes/{}?unmap={unmap}&eradicate={eradicate}", path_piece(name));
            match eradicate {
                true => Ask::Delete(path).destroy(change, server).await,
                false => Ask::Delete(path).change(&cli::Change { dry_run: change.dry_run }, server).await,
            }
        }
        cli::Volume::Bin => Ok(show(server.get::<Bin>("/v1/bin").await?)),
        cli::Volume::Undelete { name, change } => {
            let path = format!("/v1/bin/{}/undelete", path_piece(name));
            changed(server.post(&change_path(&path, change), &()).await?)
        }
        cli::Volume::Eradicate { name, change } => {
            Ask::Delete(format!("/v1/bin/{}", path_piece(name))).destroy(change, server).await
        }
        other => unreachable!("{other:?} is carried out elsewhere"),
    }
}

fn path(snapshot: &cli::SnapshotOf, what: &str) -> String {
    format!("/v1/snapshots/{}/{}{what}", path_piece(&snapshot.volume), path_piece(&snapshot.snapshot))
}
