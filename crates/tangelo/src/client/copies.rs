//! The commands of snapshots and clones.

use control::api::*;
use control::client::{Server, path_piece};

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
        cli::Snapshot::List { volume } => {
            let only = volume.as_ref().map_or(String::new(), |name| format!("?volume={}", path_piece(name)));
            Ok(show(server.get::<SnapshotList>(&format!("/v1/snapshots{only}")).await?))
        }
        cli::Snapshot::Delete { snapshot, change } => {
            changed(server.delete(&change_path(&path(snapshot, ""), change)).await?)
        }
        cli::Snapshot::Rollback { snapshot, change } => {
            changed(server.post(&change_path(&path(snapshot, "/rollback"), change), &()).await?)
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

fn path(snapshot: &cli::SnapshotOf, what: &str) -> String {
    format!("/v1/snapshots/{}/{}{what}", path_piece(&snapshot.volume), path_piece(&snapshot.snapshot))
}
