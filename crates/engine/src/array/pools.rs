//! Pools: found on drives, opened, created, closed.

use base::{LayerId, PoolId};
use bytes::Bytes;
use catalog::Catalog;

use super::{Array, State};
use crate::command::{CommandError, CommandErrorKind, DriveStatus, NewPool, PoolStatus, Reply};

impl State {
    pub(super) fn is_pool_online(&self, _pool: PoolId) -> bool {
        false
    }
}

impl Array {
    pub(super) async fn open_pools(&self, kept: Option<Catalog>) -> Result<Option<Catalog>, CommandError> {
        Ok(kept)
    }

    pub(super) async fn settle_pools(&self) -> Result<(), CommandError> {
        Ok(())
    }

    pub(super) async fn store_catalog(&self, _bytes: &Bytes) -> Result<(), CommandError> {
        Ok(())
    }

    pub(super) async fn close_pools(&self) {}

    pub(super) async fn drop_layer(&self, _pool: PoolId, _layer: LayerId) {}

    pub(super) fn check_pool_online(&self, pool: &str) -> Result<(), CommandError> {
        Err(CommandError::new(CommandErrorKind::Unavailable, format!("pool {pool} is offline"), ""))
    }

    pub(super) fn pool_of_drive(&self, _path: &str) -> Option<String> {
        None
    }

    pub(super) async fn release_drive(&self, _path: &str) {}

    pub(super) async fn create_pool(&self, _pool: NewPool, _dry_run: bool) -> Result<Reply, CommandError> {
        Err(CommandError::new(CommandErrorKind::Unavailable, "pools are not there yet", ""))
    }

    pub(super) async fn list_drives(&self) -> Vec<DriveStatus> {
        Vec::new()
    }

    pub(super) fn known_drives(&self) -> Vec<DriveStatus> {
        Vec::new()
    }

    pub(super) async fn pool_statuses(&self) -> Vec<PoolStatus> {
        Vec::new()
    }
}
