//! Drives: what is found on the configured ones, and which are in use.

use base::{ArrayId, Nanos, PoolId};
use env::{DriveHandle, DriveInfo, IoError};
use pool::Content;
use task::join_all;

use super::Array;
use crate::command::{DriveContent, DriveErrors, DriveState, DriveStatus};

/// A configured drive that belongs to no open pool, as it was found when it was last looked at.
pub(super) struct Drive {
    pub(super) path: String,
    pub(super) info: Option<DriveInfo>,
    pub(super) content: DriveContent,
    /// The pool that its label names, and that pool's array.
    pub(super) member_of: Option<(PoolId, ArrayId)>,
}

/// A drive that was opened for writing, and what it holds.
pub(super) struct Probed {
    pub(super) handle: DriveHandle,
    pub(super) info: DriveInfo,
    pub(super) content: Content,
}

impl Array {
    /// Opens a drive for writing and looks at it. The caller closes it.
    pub(super) async fn open_and_probe(&self, path: &str) -> Result<Probed, IoError> {
        let io = &self.context.io;
        let (handle, info) = io.drive_open(path, true).await?;
        let content = pool::probe(io, handle).await;
        Ok(Probed { handle, info, content })
    }

    /// As [`Array::open_and_probe`], for a drive of a pool that is being opened: where another process has it, that
    /// is shown, and waited out.
    pub(super) async fn open_member(&self, pool: PoolId, path: &str) -> Result<Probed, IoError> {
        let opened = self.open_and_probe(path).await;
        if opened.as_ref().err() != Some(&IoError::Busy) {
            return opened;
        }
        self.state.borrow_mut().set_offline(pool, format!("it waits for {path}, which is {}", IoError::Busy));
        let (handle, info) = pool::open_when_free(&self.context.io, path, self.busy_until()).await?;
        let content = pool::probe(&self.context.io, handle).await;
        Ok(Probed { handle, info, content })
    }

    /// Until when drives that are in use are waited for at the start.
    pub(super) fn busy_until(&self) -> Nanos {
        self.began.get() + pool::BUSY_PATIENCE
    }

    /// Looks at a drive without taking it from anybody.
    async fn look_at(&self, path: String) -> Drive {
        let io = &self.context.io;
        match io.drive_open(&path, false).await {
            Err(error) => {
                let content = DriveContent::Unreadable(error.to_string());
                Drive { path, info: None, content, member_of: None }
            }
            Ok((handle, info)) => {
                let content = pool::probe(io, handle).await;
                self.close_drive(handle).await;
                let member_of = match &content {
                    Content::Member(label) => Some((label.pool, label.array)),
                    _ => None,
                };
                Drive { path, info: Some(info), content: describe(&content), member_of }
            }
        }
    }

    pub(super) async fn close_drive(&self, handle: DriveHandle) {
        // a drive that fails to close is closed
        let _ = self.context.io.drive_close(handle).await;
    }

    /// Looks at every configured drive that no open pool uses, all at once.
    pub(super) async fn look_at_drives(&self) {
        let configured = self.parameters.drives.borrow().clone();
        let paths = configured.iter().filter(|path| self.pool_of_drive(path).is_none());
        let drives = join_all(paths.map(|path| self.look_at(path.clone())).collect::<Vec<_>>()).await;
        self.state.borrow_mut().drives = drives;
    }

    pub(super) async fn list_drives(&self) -> Vec<DriveStatus> {
        self.look_at_drives().await;
        let mut drives = self.known_drives();
        for (pool, _) in self.pool_statuses().await {
            drives.extend(pool.drives.into_iter().filter(|drive| !drive.path.is_empty()));
        }
        drives.sort_by(|a, b| a.path.cmp(&b.path));
        drives
    }

    /// Drives that belong to no open pool, as they were last seen.
    pub(super) fn known_drives(&self) -> Vec<DriveStatus> {
        let state = self.state.borrow();
        let statuses = state.drives.iter().map(|drive| DriveStatus {
            path: drive.path.clone(),
            size_bytes: drive.info.as_ref().map_or(0, |info| info.size_bytes),
            model: drive.info.as_ref().map(|info| info.model.clone()).unwrap_or_default(),
            serial: drive.info.as_ref().map(|info| info.serial.clone()).unwrap_or_default(),
            content: drive.content.clone(),
            pool: match &drive.content {
                DriveContent::Member(pool) => Some(pool.clone()),
                _ => None,
            },
            state: match drive.content {
                DriveContent::Unreadable(_) => DriveState::Missing,
                _ => DriveState::Unused,
            },
            errors: DriveErrors::default(),
        });
        statuses.collect()
    }
}

pub(super) fn describe(content: &Content) -> DriveContent {
    match content {
        Content::Blank => DriveContent::Blank,
        Content::Foreign(what) => DriveContent::Foreign(what.clone()),
        Content::Member(label) => DriveContent::Member(label.pool_name.clone()),
        Content::FutureVersion(_) => DriveContent::FutureVersion,
        Content::Damaged => DriveContent::Damaged("neither of its labels can be read".to_owned()),
        Content::Unreadable(error) => DriveContent::Unreadable(error.to_string()),
    }
}
