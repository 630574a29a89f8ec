//! A drive is known by its identity, not by its path: a device or a file may have several paths.
//!
//! A path may also lead to another drive later. If the file of a drive was removed, the drive is served as long as the
//! file is open, and is then gone.

use std::collections::BTreeSet;

use catalog::VolumeKind;
use env::{DriveIdentity, DriveInfo, DriveKind, IoError};
use pool::Member;

use crate::error::drive_error;
use crate::manager::Manager;
use crate::state::{Drive, State};
use api::{CommandError, CommandErrorKind, FileUse, Problem, ProblemFacts, Subject};

/// The object of the array that a drive belongs to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum User {
    /// A drive of an open pool, with the path by which the pool opened it.
    Pool { name: String, path: String },
    /// The device of a raw volume, with the volume's path.
    Raw { volume: String, path: String },
}

impl User {
    fn path(&self) -> &str {
        match self {
            User::Pool { path, .. } | User::Raw { path, .. } => path,
        }
    }

    /// Why it is not available, in terms of the requested path.
    pub(crate) fn refusal(&self, asked: &str) -> CommandError {
        let which = match self.path() == asked {
            true => asked.to_owned(),
            false => format!("{asked} is the same as {}, which", self.path()),
        };
        let message = match self {
            User::Pool { name, .. } => format!("{which} is a drive of pool {name}, which is in use"),
            User::Raw { volume, .. } => format!("{which} is exported as volume {volume}"),
        };
        CommandError::new(CommandErrorKind::InUse, message, "name another drive")
    }
}

impl State {
    /// Open drives, with their identities and owners.
    fn in_use(&self) -> impl Iterator<Item = (DriveIdentity, User)> + '_ {
        let of_pools = self.pools.iter().flat_map(|pool| {
            let members = pool.membership.iter().flat_map(|membership| &membership.members);
            let here = members.filter(|member| member.state.is_readable());
            here.filter_map(|member| {
                let info = pool.infos.iter().find(|info| info.path == member.path)?;
                Some((info.identity, User::Pool { name: pool.name.clone(), path: member.path.clone() }))
            })
        });
        let raw = self.raw.iter().filter_map(|raw| {
            let (_, info) = raw.drive.as_ref().ok()?;
            let volume = self.catalog.volume(raw.volume)?.name.to_string();
            Some((info.identity, User::Raw { volume, path: info.path.clone() }))
        });
        of_pools.chain(raw)
    }

    fn user_of(&self, identity: DriveIdentity) -> Option<User> {
        self.in_use().find(|(other, _)| *other == identity).map(|(_, user)| user)
    }

    /// The raw volume that exports this drive.
    pub(crate) fn exported_as(&self, drive: &Drive) -> Option<String> {
        let by_path = || {
            let mut volumes = self.catalog.volumes().iter();
            let at = |volume: &&catalog::Volume| matches!(&volume.backing, VolumeKind::Raw { path } if *path == drive.path);
            volumes.find(at).map(|volume| volume.name.to_string())
        };
        match drive.info.as_ref().and_then(|info| self.user_of(info.identity)) {
            Some(User::Raw { volume, .. }) => Some(volume),
            _ => by_path(),
        }
    }
}

impl Manager {
    /// Refuses a drive that the array itself uses.
    pub(crate) fn check_not_ours(&self, path: &str) -> Result<(), CommandError> {
        if let Some(name) = self.pool_of_drive(path) {
            return Err(User::Pool { name, path: path.to_owned() }.refusal(path));
        }
        match self.raw_volume_at(path) {
            Some(volume) => {
                Err(User::Raw { volume: volume.to_string(), path: path.to_owned() }.refusal(path))
            }
            None => Ok(()),
        }
    }

    /// Why a drive could not be opened. If it is in use, the array itself may use it by another path, or this command
    /// may have opened it in `opened`.
    pub(crate) async fn why_not_opened(
        &self,
        path: &str,
        error: IoError,
        opened: &[DriveInfo],
    ) -> CommandError {
        let identity = match error {
            IoError::Busy => self.identity_of(path).await.ok(),
            _ => None,
        };
        let Some(identity) = identity else { return drive_error(path, error) };
        if let Some(first) = opened.iter().find(|info| info.identity == identity) {
            let message = format!("{} and {path} are the same drive", first.path);
            return CommandError::new(CommandErrorKind::Invalid, message, "name each drive once");
        }
        match self.state.borrow().user_of(identity) {
            Some(user) => user.refusal(path),
            None => drive_error(path, error),
        }
    }

    /// The identity of what is at a path now.
    async fn identity_of(&self, path: &str) -> Result<DriveIdentity, IoError> {
        let opened = self.open_to_look(path).await?;
        self.close_drive(opened.handle).await;
        Ok(opened.info.identity)
    }

    /// Each drive once, by its path as a spare, if it is one; without open drives.
    pub(crate) fn distinct(&self, mut drives: Vec<Drive>) -> Vec<Drive> {
        let state = self.state.borrow();
        let spares: BTreeSet<&String> =
            state.catalog.pools().iter().flat_map(|entry| &entry.spares.free).collect();
        let identity = |drive: &Drive| drive.info.as_ref().map(|info| info.identity);
        let members: BTreeSet<DriveIdentity> = state
            .in_use()
            .filter(|(_, user)| matches!(user, User::Pool { .. }))
            .map(|(identity, _)| identity)
            .collect();
        let mut seen = BTreeSet::new();
        let spare_first: Vec<DriveIdentity> =
            drives.iter().filter(|drive| spares.contains(&drive.path)).filter_map(identity).collect();
        drives.retain(|drive| {
            let Some(is) = identity(drive) else { return true };
            let is_spare = spares.contains(&drive.path);
            !members.contains(&is) && (is_spare || !spare_first.contains(&is)) && seen.insert(is)
        });
        drives
    }

    /// Checks whether the files of drives and raw volumes are still at their paths. Devices that disappear report this
    /// themselves.
    pub(crate) async fn watch_files(&self) {
        let files: Vec<(String, DriveIdentity)> = {
            let state = self.state.borrow();
            let of_pools = state.pools.iter().flat_map(|pool| {
                let members = pool.membership.iter().flat_map(|membership| &membership.members);
                let here = |member: &&Member| member.state.is_readable();
                let infos = &pool.infos;
                members.filter(here).filter_map(|member| infos.iter().find(|info| info.path == member.path))
            });
            let raw = state.raw.iter().filter_map(|raw| Some(&raw.drive.as_ref().ok()?.1));
            let files = of_pools.chain(raw).filter(|info| info.kind == DriveKind::File);
            files.map(|info| (info.path.clone(), info.identity)).collect()
        };
        let mut removed = BTreeSet::new();
        for (path, identity) in files {
            match self.identity_of(&path).await {
                Ok(found) if found == identity => {}
                Ok(_) | Err(IoError::NotFound) => drop(removed.insert(path)),
                // unknown at the moment
                Err(_) if self.removed_files.borrow().contains(&path) => drop(removed.insert(path)),
                Err(_) => {}
            }
        }
        *self.removed_files.borrow_mut() = removed;
    }

    /// Files in service that have no name any more: their content is lost when the daemon ends.
    pub(crate) fn file_problems(&self) -> Vec<Problem> {
        let problem = |path: &String| {
            let state = self.state.borrow();
            let (_, user) = state.in_use().find(|(_, user)| user.path() == path)?;
            let used_by = match user {
                User::Raw { volume, .. } => FileUse::Volume(volume.to_string()),
                User::Pool { name, .. } => FileUse::Pool(name.to_string()),
            };
            Some(Problem::new(Subject::drive(path), ProblemFacts::DriveFileRemoved { used_by }))
        };
        self.removed_files.borrow().iter().filter_map(problem).collect()
    }
}
