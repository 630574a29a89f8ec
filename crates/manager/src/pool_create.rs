//! Makes a pool: checks whom the drives belong to before it writes anything.

use base::limits::DRIVE_BYTES_MIN;
use base::{ArrayId, PoolId};
use catalog::Change;
use env::{DriveHandle, DriveInfo};
use pool::{Content, CreateOptions, PlannedPool, PoolError, Protection};
use task::join_all;

use crate::change::Planned;
use crate::error::{DriveRefusal, drive_error};
use crate::failure::pool_failure;
use crate::manager::Manager;
use crate::probed::{Probed, without_contents};
use api::{CommandError, CommandErrorKind, DriveStep, Made, NewPool, PoolStep, Reply};

impl Manager {
    pub(crate) async fn create_pool(&self, new: NewPool, dry_run: bool) -> Result<Reply, CommandError> {
        let protection = self.check_new_pool(&new)?;
        let drives = self.take_drives(&new.drives, &new.force).await?;
        let losses = self.losses(&drives);
        let drives = without_contents(drives);
        let checked = self.plan_pool(&new, protection, &drives);
        let checked = checked.map(|(planned, pool)| (planned.steps(losses), pool));
        let (planned, pool) = match checked {
            Ok((planned, pool)) if !dry_run => (planned, pool),
            checked => {
                self.give_up(&drives).await;
                return checked.map(|(planned, _)| planned.reply(true, None));
            }
        };
        if let Err(error) = self.go_ahead() {
            self.give_up(&drives).await;
            return Err(error);
        }
        self.waits_for("it waits for the drives to take the new pool's labels");
        let membership = match pool.make(&self.context.io).await {
            Ok(membership) => membership,
            Err(error) => {
                self.give_up(&drives).await;
                return Err(pool_error(&new.name, error));
            }
        };
        let id = membership.pool;
        let infos = drives.iter().map(|(_, info)| info.clone()).collect();
        if let Err(error) = self.open_new_pool(membership, infos).await {
            self.forget_pool(id);
            self.give_up(&drives).await;
            return Err(pool_error(&new.name, error));
        }
        let attach = self.plan(&Change::AttachPool { id, name: new.name.parse()? })?;
        self.commit(&attach.next).await?;
        self.look_at_drives().await;
        self.tell_spaces().await;
        let made =
            self.pool_statuses().await.into_iter().map(|(pool, _)| pool).find(|pool| pool.name == new.name);
        Ok(planned.reply(false, made.map(|pool| Made::Pool(Box::new(pool)))))
    }

    /// Checks that need no look at a drive.
    fn check_new_pool(&self, new: &NewPool) -> Result<Protection, CommandError> {
        let invalid =
            |message: String, hint: &str| Err(CommandError::new(CommandErrorKind::Invalid, message, hint));
        self.plan(&Change::AttachPool { id: PoolId(0), name: new.name.parse()? })?;
        let Ok(protection) = new.protection.parse::<Protection>() else {
            let names: Vec<String> =
                Protection::ALL.iter().map(|protection| protection.to_string()).collect();
            let message = format!("\"{}\" is not a protection", new.protection);
            return invalid(message, &format!("choose one of {}", names.join(", ")));
        };
        check_names(&new.drives, &new.force)?;
        protection.width(new.drives.len(), new.width).map_err(|_| {
            let (have, min) = (new.drives.len(), protection.width_min());
            let message = match new.width {
                Some(width) => format!("{protection} on {have} drives cannot have the width {width}"),
                None => format!("{protection} needs at least {min} drives, {have} are named"),
            };
            CommandError::new(
                CommandErrorKind::Invalid,
                message,
                "name more drives, or choose another protection",
            )
        })?;
        Ok(protection)
    }

    /// Opens the drives, all or none, and checks that nobody needs what is on them. Returns what was found, so that
    /// nobody probes twice.
    pub(crate) async fn take_drives(
        &self,
        drives: &[String],
        force: &[String],
    ) -> Result<Vec<Probed>, DriveRefusal> {
        for path in drives {
            self.check_not_ours(path)?;
        }
        self.waits_for(format!("it waits for drives to be opened and looked at: {}", drives.join(", ")));
        let probes = drives.iter().map(|path| self.open_and_probe(path)).collect::<Vec<_>>();
        let mut taken = Vec::new();
        let mut refusal = None;
        let results = join_all(probes).await;
        let opened: Vec<DriveInfo> =
            results.iter().filter_map(|result| Some(result.as_ref().ok()?.info.clone())).collect();
        for (path, result) in drives.iter().zip(results) {
            match result {
                Ok(drive) => {
                    let (forced, Probed { info, content, .. }) = (force.contains(path), &drive);
                    refusal = refusal
                        .or_else(|| self.check_not_needed(path, content).err().map(DriveRefusal::from));
                    refusal = refusal.or_else(|| self.check_content(path, content, forced).err());
                    refusal =
                        refusal.or_else(|| self.check_not_failed(info, forced).err().map(DriveRefusal::from));
                    taken.push(drive);
                }
                Err(error) if refusal.is_none() => {
                    refusal = Some(self.why_not_opened(path, error, &opened).await.into());
                }
                Err(_) => {}
            }
        }
        match refusal.or_else(|| self.still_wanted().err().map(DriveRefusal::from)) {
            None => Ok(taken),
            Some(refusal) => {
                self.give_up(&without_contents(taken)).await;
                Err(refusal)
            }
        }
    }

    /// Whether a drive may join a pool. The refusal names its content.
    fn check_content(&self, path: &str, content: &Content, forced: bool) -> Result<(), DriveRefusal> {
        let found = match content {
            Content::Blank => return Ok(()),
            Content::Unreadable(error) => return Err(drive_error(path, *error).into()),
            _ if forced => return Ok(()),
            Content::Foreign(what) => what.clone(),
            Content::Member(_) => self.labelled(content).expect("it has a label").to_string(),
            Content::FutureVersion(version) => {
                let age = if *version > pool::FORMAT_VERSION { "a newer" } else { "an older" };
                format!("a drive of {age} Tangelo's pool (format version {version})")
            }
            Content::UnknownFeatures(features) => {
                format!("a drive of a newer Tangelo's pool (feature {features})")
            }
            Content::Damaged => "a drive of a Tangelo pool whose label is damaged".to_owned(),
        };
        let hint = format!("if nobody needs what is on it, add --force {path}");
        let error = CommandError::new(CommandErrorKind::InUse, format!("{path} holds {found}"), hint);
        Err(DriveRefusal { error, holds_contents: true })
    }

    /// Refuses a drive that a pool counts as lost and has not repaired yet. Erased, it could not come back, and as a
    /// new member it would count as two of the drives that may fail.
    fn check_not_needed(&self, path: &str, content: &Content) -> Result<(), CommandError> {
        let Content::Member(label) = content else { return Ok(()) };
        let pool = self.state.borrow().online_pool(label.pool);
        let lost = |member: &pool::Member| member.id == label.drive && member.state.is_lost();
        match pool.filter(|pool| pool.members.iter().any(lost)) {
            None => Ok(()),
            Some(pool) => Err(CommandError::new(
                CommandErrorKind::InUse,
                format!("{path} is a drive of pool {}, which has not been rebuilt without it yet", pool.name),
                "wait until it comes back or has left the pool: `tangelo status` shows how far that is",
            )),
        }
    }

    pub(crate) async fn give_up(&self, drives: &[(DriveHandle, DriveInfo)]) {
        for (handle, _) in drives {
            self.close_drive(*handle).await;
        }
    }

    /// The plan, checked as far as possible without carrying it out.
    fn plan_pool(
        &self,
        new: &NewPool,
        protection: Protection,
        drives: &[(DriveHandle, DriveInfo)],
    ) -> Result<(Planned, PlannedPool), CommandError> {
        let options = self.options(new, protection, self.state.borrow().catalog.array());
        let pool = PlannedPool::check(&self.context.io, drives.to_vec(), &options);
        let pool = pool.map_err(|error| pool_error(&new.name, error))?;
        let planned = self.plan(&Change::AttachPool { id: PoolId(0), name: new.name.parse()? })?;
        let create = PoolStep::CreatePool {
            pool: new.name.clone(),
            protection: protection.to_string(),
            drives: drives.len() as u64,
        };
        let erase = |(_, info): &(DriveHandle, DriveInfo)| DriveStep::EraseDrive {
            drive: info.path.clone(),
            size_bytes: info.size_bytes,
            holds: None,
        };
        Ok((planned.step(create).steps(drives.iter().map(erase)), pool))
    }

    fn options(&self, new: &NewPool, protection: Protection, array: ArrayId) -> CreateOptions {
        CreateOptions {
            array,
            name: new.name.clone(),
            protection,
            width: new.width,
            lanes: self.context.shards,
            chunk_bytes: None,
            heads: self.parameters.heads(),
            drive_bytes_min: DRIVE_BYTES_MIN,
        }
    }
}

/// Each drive is named once, and `--force` names some of them.
pub(crate) fn check_names(drives: &[String], force: &[String]) -> Result<(), CommandError> {
    let invalid =
        |message: String, hint: &str| Err(CommandError::new(CommandErrorKind::Invalid, message, hint));
    for (index, path) in drives.iter().enumerate() {
        if drives[..index].contains(path) {
            return invalid(format!("{path} is named twice"), "name each drive once");
        }
    }
    match force.iter().find(|path| !drives.contains(path)) {
        Some(path) => {
            invalid(format!("--force names {path}, which is not among the drives"), "correct --force")
        }
        None => Ok(()),
    }
}

fn pool_error(name: &str, error: PoolError) -> CommandError {
    let kind = match error {
        PoolError::Io { .. } | PoolError::TooManyFailed => CommandErrorKind::Io,
        _ => CommandErrorKind::Invalid,
    };
    CommandError::new(kind, format!("pool {name} cannot be made: {}", pool_failure(error)), "")
}
