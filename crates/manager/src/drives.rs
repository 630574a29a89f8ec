//! Drives: what the configured drives hold, and which are in use.

use base::{BLOCK_BYTES, Nanos, PoolId};
use env::{DriveHandle, IoError};
use pool::Content;
use task::{join_all, race};

use crate::manager::Manager;
use crate::probed::Probed;
use crate::remembered;
use crate::state::{Drive, State};
use api::{DriveContent, DriveErrors, DriveNote, DriveState, DriveStatus, PoolOffline};

/// A drive that does not report its size within this time keeps its known size.
const MEASURE_TIME: Nanos = Nanos::from_secs(2);

impl Manager {
    /// Like [`Manager::open_and_probe`], for a drive of a pool that is being opened: if another process uses it, this
    /// is shown, and waited for.
    pub(crate) async fn open_member(&self, pool: PoolId, path: &str) -> Result<Probed, IoError> {
        let opened = self.open_and_probe(path).await;
        if opened.as_ref().err() != Some(&IoError::Busy) {
            return opened;
        }
        self.state.borrow_mut().set_offline(pool, PoolOffline::WaitsForDrive { path: path.to_owned() });
        self.open_when_free(path).await
    }

    /// Finds what is on a drive without taking it from another process.
    async fn look_at(&self, path: String) -> Drive {
        match self.open_to_look(&path).await {
            Err(error) => {
                let why = match error {
                    IoError::TimedOut => "it does not answer".to_owned(),
                    error => error.to_string(),
                };
                Drive {
                    path,
                    info: None,
                    content: DriveContent::Unreadable,
                    error: Some(error),
                    detail: why,
                    member_of: None,
                    pool_name: None,
                    id: None,
                }
            }
            Ok(Probed { handle, info, content }) => {
                self.close_drive(handle).await;
                let label = match &content {
                    Content::Member(label) => Some(label),
                    _ => None,
                };
                let member_of = label.map(|label| (label.pool, label.array));
                let pool_name = label.map(|label| label.pool_name.clone());
                let id = label.map(|label| label.drive);
                let error = match &content {
                    Content::Unreadable(error) => Some(*error),
                    _ => None,
                };
                let (content, detail) = describe(&content);
                Drive { path, info: Some(info), content, error, detail, member_of, pool_name, id }
            }
        }
    }

    pub(crate) async fn close_drive(&self, handle: DriveHandle) {
        // an error while closing a drive still closes it
        let _ = self.context.io.drive_close(handle).await;
    }

    /// Looks at every configured drive that no open pool uses, and at the last paths of drives of open pools, all at
    /// once.
    pub(crate) async fn look_at_drives(&self) {
        let mut paths = self.parameters.drives.borrow().clone();
        let last_seen = {
            let state = self.state.borrow();
            let members = state.online().into_iter().flat_map(|membership| membership.members);
            members.filter(|member| member.state.is_lost()).map(|member| member.path).collect::<Vec<_>>()
        };
        for path in last_seen.into_iter().chain(self.spare_paths()) {
            if !path.is_empty() && !paths.contains(&path) {
                paths.push(path);
            }
        }
        paths.retain(|path| self.pool_of_drive(path).is_none());
        let drives = join_all(paths.into_iter().map(|path| self.look_at(path)).collect::<Vec<_>>()).await;
        let drives = self.distinct(drives);
        self.state.borrow_mut().drives = drives;
    }

    /// Checks which drives of pools have become larger. The pool itself finds drives that became smaller.
    async fn measure_members(&self) {
        let open: Vec<(String, DriveHandle)> = {
            let state = self.state.borrow();
            let members = state.pools.iter().filter_map(|pool| pool.membership.as_ref());
            let online = members.flat_map(|m| &m.members).filter(|m| m.state == pool::DriveState::Online);
            online.filter_map(|member| Some((member.path.clone(), member.handle?))).collect()
        };
        let io = &self.context.io;
        let measured = open.into_iter().map(|(path, handle)| {
            let measured = race(io.drive_measure(handle), io.sleep(MEASURE_TIME));
            async move { Some((path, measured.await.ok()?.ok()?)) }
        });
        let measured = join_all(measured.collect::<Vec<_>>()).await;
        let mut state = self.state.borrow_mut();
        for (path, end_bytes) in measured.into_iter().flatten() {
            let infos = state.pools.iter_mut().flat_map(|pool| &mut pool.infos);
            for info in infos.filter(|info| info.path == path && info.end_bytes < end_bytes) {
                info.end_bytes = end_bytes;
                info.size_bytes = end_bytes - end_bytes % BLOCK_BYTES as u64;
            }
        }
    }

    pub(crate) async fn list_drives(&self) -> Vec<DriveStatus> {
        self.look_at_drives().await;
        self.measure_members().await;
        let mut drives = self.known_drives();
        for (pool, _) in self.pool_statuses().await {
            drives.extend(pool.drives);
        }
        drives.sort_by(|a, b| a.path.cmp(&b.path));
        drives
    }

    /// Drives that belong to no open pool, as last seen.
    pub(crate) fn known_drives(&self) -> Vec<DriveStatus> {
        let state = self.state.borrow();
        // a drive that is no longer there is shown with its pool
        let members =
            || state.pools.iter().filter_map(|pool| pool.membership.as_ref()).flat_map(|m| &m.members);
        let lost = |drive: &&Drive| {
            let unreadable = drive.content == DriveContent::Unreadable;
            unreadable && members().any(|member| member.state.is_lost() && member.path == drive.path)
        };
        let statuses = state.drives.iter().filter(|drive| !lost(drive)).map(|drive| DriveStatus {
            path: drive.path.clone(),
            size_bytes: drive.size_bytes(),
            model: drive.info.as_ref().map(|info| info.model.clone()).unwrap_or_default(),
            serial: drive.info.as_ref().map(|info| info.serial.clone()).unwrap_or_default(),
            bay: drive.info.as_ref().map(|info| info.bay.clone()).unwrap_or_default(),
            content: drive.content,
            detail: drive.detail.clone(),
            pool: drive.pool_name.clone(),
            state: match drive.content {
                DriveContent::Unreadable => DriveState::Missing,
                _ if state.exported_as(drive).is_some() => DriveState::Exported,
                _ if spare_of(&state, drive).is_some() => DriveState::Spare,
                _ => DriveState::Unused,
            },
            errors: DriveErrors::default(),
            id: String::new(),
            read_latency_us: None,
            write_latency_us: None,
            note: note(&state, drive),
            health: self.health_of_drive(&drive.path),
        });
        statuses.collect()
    }
}

/// Notes about a drive of no open pool.
fn note(state: &State, drive: &Drive) -> Option<DriveNote> {
    if let Some(volume) = state.exported_as(drive) {
        return Some(DriveNote::Exported { volume: volume.to_string() });
    }
    let spare = || spare_of(state, drive).map(|pool| DriveNote::Spare { pool: pool.to_owned() });
    let failed = || {
        let failed = drive.info.as_ref().and_then(|info| remembered::failure(state, info))?;
        Some(DriveNote::NotTrusted { did: failed.into() })
    };
    refusal(state, drive).or_else(failed).or_else(spare).or_else(|| departure(state, drive))
}

/// The first of the pools whose spare it is.
fn spare_of<'a>(state: &'a State, drive: &Drive) -> Option<&'a str> {
    let waits = |entry: &&catalog::PoolEntry| entry.spares.free.contains(&drive.path);
    state.catalog.pools().iter().find(waits).map(|entry| entry.name.as_str())
}

/// Why a drive with a pool's label is not in that pool, although the pool is in service.
fn refusal(state: &State, drive: &Drive) -> Option<DriveNote> {
    let (pool, _) = drive.member_of?;
    let path = drive.path.clone();
    if let Some(deleted) = state.catalog.deleted_pool(pool) {
        return Some(DriveNote::PoolDeleted { pool: deleted.name.to_string(), drive: path });
    }
    let membership = state.online_pool(pool)?;
    let name = membership.name.clone();
    let member = membership.members.iter().find(|member| Some(member.id) == drive.id);
    Some(match member.map(|member| member.state) {
        Some(pool::DriveState::Missing) => DriveNote::Returning { pool: name },
        Some(pool::DriveState::Failed) => DriveNote::TakenOut { pool: name, drive: path },
        Some(pool::DriveState::Removed) | None => DriveNote::OutOfDate { pool: name, drive: path },
        Some(pool::DriveState::Online | pool::DriveState::Draining) => DriveNote::LabelTwice { pool: name },
    })
}

/// Why a drive that is free now left its pool by itself.
fn departure(state: &State, drive: &Drive) -> Option<DriveNote> {
    let pool = state.pools.iter().find(|pool| pool.keeper.left.contains(&drive.path))?;
    let blank = drive.content == DriveContent::Blank;
    blank.then(|| DriveNote::Emptied { pool: pool.name.clone() })
}

/// The content of a drive, and details about it.
pub(crate) fn describe(content: &Content) -> (DriveContent, String) {
    match content {
        Content::Blank => (DriveContent::Blank, String::new()),
        Content::Foreign(what) => (DriveContent::Foreign, what.clone()),
        Content::Member(label) => (DriveContent::Member, format!("pool {}", label.pool_name)),
        Content::FutureVersion(_) | Content::UnknownFeatures(_) => {
            (DriveContent::FutureVersion, String::new())
        }
        Content::Damaged => (DriveContent::Damaged, "neither of its labels can be read".to_owned()),
        Content::Unreadable(error) => (DriveContent::Unreadable, error.to_string()),
    }
}
