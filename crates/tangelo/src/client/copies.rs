//! The commands of snapshots and clones.

use control::api::*;
use control::client::{Server, path_piece};

use super::{Failure, Shown, change_path, changed, show};
use crate::cli;

pub(super) async fn snapshot(snapshot: &cli::Snapshot, server: &Server) -> Result<Shown, Failure> {
    match snapshot {
        cli::Snapshot::Create { volume, name, change } => {
            let new = NewSnapshot { name: name.clone() };
            changed(server.post(&change_path(&of(volume), change), &new).await?)
        }
        cli::Snapshot::List { volume } => Ok(show(server.get::<SnapshotList>(&of(volume)).await?)),
        cli::Snapshot::Delete { volume, name, change } => {
            changed(server.delete(&change_path(&one(volume, name), change)).await?)
        }
        cli::Snapshot::Rollback { volume, name, change } => {
            let path = format!("{}/rollback", one(volume, name));
            changed(server.post(&change_path(&path, change), &()).await?)
        }
    }
}

pub(super) async fn clone(
    from: &cli::SnapshotOf,
    name: &str,
    change: &cli::Change,
    server: &Server,
) -> Result<Shown, Failure> {
    let path = format!("{}/clone", one(&from.volume, &from.snapshot));
    changed(server.post(&change_path(&path, change), &NewClone { name: name.to_owned() }).await?)
}

fn of(volume: &str) -> String {
    format!("/v1/volumes/{}/snapshots", path_piece(volume))
}

fn one(volume: &str, snapshot: &str) -> String {
    format!("{}/{}", of(volume), path_piece(snapshot))
}
