//! Drives join pools, leave them and replace each other by the administrator's command.

use base::limits::{DRIVE_BYTES_MIN, DRIVES_MAX};
use base::{BLOCK_BYTES, PoolId};
use env::{DriveHandle, DriveInfo};
use pool::{DriveState, Member, Membership, PoolError, TooFewDrives};

use shard::DriveUse;

use crate::error::DriveRefusal;
use crate::failure::pool_failure;
use crate::manager::Manager;
use crate::probed::{Probed, without_contents};
use api::{Change, ChangeStep, CommandError, CommandErrorKind, DriveStep, Made, PoolOffline, Reply};
use base::units::size;

impl Manager {
    pub(crate) async fn add_drives(
        &self,
        name: &str,
        drives: &[String],
        force: &[String],
        dry_run: bool,
    ) -> Result<Reply, CommandError> {
        let membership = self.served_pool(name)?;
        if drives.is_empty() {
            return Err(invalid("no drive is named", "name the drives to add"));
        }
        let taken = self.take_new_drives(&membership, drives, force).await?;
        let mut steps: Vec<ChangeStep> = taken.iter().map(|drive| add_step(&drive.info, name)).collect();
        steps.extend(self.losses(&taken).into_iter().map(ChangeStep::from));
        let taken = without_contents(taken);
        if dry_run {
            self.give_up(&taken).await;
            return Ok(done(steps, true, None));
        }
        let infos: Vec<DriveInfo> = taken.iter().map(|(_, info)| info.clone()).collect();
        self.join(&membership, taken).await?;
        self.forgive(infos.iter()).await;
        Ok(done(steps, false, self.pool_made(name).await))
    }

    /// Opens drives that are to join a pool, all or none, and checks that nobody needs what is on them.
    pub(crate) async fn take_new_drives(
        &self,
        membership: &Membership,
        drives: &[String],
        force: &[String],
    ) -> Result<Vec<Probed>, DriveRefusal> {
        super::pool_create::check_names(drives, force)?;
        let known = membership.members.len();
        if known + drives.len() > DRIVES_MAX {
            let message = format!(
                "pool {} has had {known} drives; it can have {DRIVES_MAX} in its life",
                membership.name
            );
            let hint = "move its volumes to a new pool";
            return Err(CommandError::new(CommandErrorKind::Full, message, hint).into());
        }
        let taken = self.take_drives(drives, force).await?;
        if let Some(Probed { info, .. }) = taken.iter().find(|drive| drive.info.size_bytes < DRIVE_BYTES_MIN)
        {
            let message = format!(
                "{} has {}; the smallest drive has {}",
                info.path,
                size(info.size_bytes),
                size(DRIVE_BYTES_MIN)
            );
            self.give_up(&without_contents(taken)).await;
            return Err(invalid(message, "name a larger drive").into());
        }
        Ok(taken)
    }

    /// Makes drives members, one after the other.
    pub(crate) async fn join(
        &self,
        membership: &Membership,
        drives: Vec<(DriveHandle, DriveInfo)>,
    ) -> Result<(), CommandError> {
        let (id, io) = (membership.pool, &self.context.io);
        if let Err(error) = self.go_ahead() {
            self.give_up(&drives).await;
            return Err(error);
        }
        self.waits_for(format!("it waits for the drives of pool {} to take their labels", membership.name));
        for (position, (handle, info)) in drives.iter().enumerate() {
            let added = self.alter(id, async |membership| match membership.add(io, *handle, info).await {
                Ok(()) => {
                    Ok(Ok(membership.members.last().is_some_and(|new| new.state == DriveState::Online)))
                }
                Err(PoolError::TooManyFailed) => Err(TooFewDrives),
                Err(error) => Ok(Err(error)),
            });
            let error = match added.await {
                Ok(Ok(true)) => {
                    if let Some(pool) = self.state.borrow_mut().pool_mut(id) {
                        pool.infos.retain(|known| known.path != info.path);
                        pool.infos.push(info.clone());
                    }
                    self.state.borrow_mut().drives.retain(|drive| drive.path != info.path);
                    continue;
                }
                // it is a member that has failed, and will leave again by itself
                Ok(Ok(false)) => {
                    self.give_up(&drives[position + 1..]).await;
                    format!("{} did not take its label", info.path)
                }
                Ok(Err(error)) => {
                    self.give_up(&drives[position..]).await;
                    pool_failure(error).to_string()
                }
                Err(TooFewDrives) => {
                    self.give_up(&drives[position + 1..]).await;
                    PoolOffline::TooManyFailed.to_string()
                }
            };
            let added = if position == 0 { "nothing was added" } else { "those named before it were added" };
            return Err(CommandError::new(CommandErrorKind::Io, error, added));
        }
        Ok(())
    }

    pub(crate) async fn remove_drive(
        &self,
        name: &str,
        drive: &str,
        cancel: bool,
        dry_run: bool,
    ) -> Result<Reply, CommandError> {
        let membership = self.served_pool(name)?;
        let index = find_member(&membership, drive)?;
        let path = shown(&membership.members[index]);
        let state = membership.members[index].state;
        if cancel {
            if state != DriveState::Draining {
                return Err(invalid(format!("{path} is not being emptied"), ""));
            }
            let step = DriveStep::KeepDrive { drive: path, pool: name.to_owned() };
            if !dry_run {
                self.set_draining(membership.pool, index, false).await?;
            }
            return Ok(done(vec![step.into()], dry_run, self.pool_made_unless(name, dry_run).await));
        }
        match state {
            DriveState::Online => {}
            DriveState::Draining => {
                return Err(invalid(
                    format!("{path} is being emptied already"),
                    "`tangelo status` shows how far it is; --cancel calls it off",
                ));
            }
            DriveState::Missing | DriveState::Failed | DriveState::Removed => {
                return Err(invalid(
                    format!("{path} is out already; it leaves the pool when what stood on it is rebuilt"),
                    "`tangelo status` shows how far that is",
                ));
            }
        }
        self.check_removable(&membership, index, None).await?;
        let step = DriveStep::EmptyDrive { drive: path, pool: name.to_owned() };
        if !dry_run {
            self.set_draining(membership.pool, index, true).await?;
        }
        Ok(done(vec![step.into()], dry_run, self.pool_made_unless(name, dry_run).await))
    }

    pub(crate) async fn replace_drive(
        &self,
        name: &str,
        old: &str,
        new: &str,
        force: bool,
        dry_run: bool,
    ) -> Result<Reply, CommandError> {
        let membership = self.served_pool(name)?;
        let index = find_member(&membership, old)?;
        let member = membership.members[index].clone();
        let path = shown(&member);
        let (drives, force) = ([new.to_owned()], if force { vec![new.to_owned()] } else { Vec::new() });
        let taken = self.take_new_drives(&membership, &drives, &force).await?;
        let losses = self.losses(&taken);
        let taken = without_contents(taken);
        let chunks = (taken[0].1.size_bytes - pool::LABEL_REGION_BYTES) / membership.chunk_bytes;
        let chunks = u32::try_from(chunks).unwrap_or(u32::MAX);
        // the new drive must be as large as the old one, because it takes over all data
        if chunks < member.chunks
            && let Err(error) = self.check_removable(&membership, index, Some(chunks)).await
        {
            self.give_up(&taken).await;
            let hint = format!("{new} is smaller than {path} was; {}", error.hint);
            return Err(CommandError { hint, ..error });
        }
        let mut steps = vec![add_step(&taken[0].1, name)];
        steps.extend(losses.into_iter().map(ChangeStep::from));
        let old = match member.state {
            DriveState::Online | DriveState::Draining => {
                DriveStep::EmptyDrive { drive: path, pool: name.to_owned() }
            }
            _ => DriveStep::RebuildDrive { drive: path },
        };
        steps.push(old.into());
        if dry_run {
            self.give_up(&taken).await;
            return Ok(done(steps, true, None));
        }
        let info = taken[0].1.clone();
        self.join(&membership, taken).await?;
        self.forgive([&info].into_iter()).await;
        if member.state == DriveState::Online {
            self.set_draining(membership.pool, index, true).await?;
        }
        Ok(done(steps, false, self.pool_made(name).await))
    }

    /// Refuses if the pool could not do without a drive, or with a replacement of this many chunks.
    pub(crate) async fn check_removable(
        &self,
        membership: &Membership,
        index: usize,
        instead: Option<u32>,
    ) -> Result<(), CommandError> {
        let refuse = |message, hint: &str| Err(CommandError::new(CommandErrorKind::InUse, message, hint));
        let online = membership.online().into_iter().filter(|&online| online).count();
        let needed = usize::from(membership.protection.width_min());
        if online <= needed && instead.is_none() {
            let message = format!(
                "pool {} has {online} drives in service, and {} needs {needed}",
                membership.name, membership.protection
            );
            return refuse(message, "add a drive first, or use `tangelo drive replace`");
        }
        let Some(lanes) = self.drive_use(membership, index as u8, instead).await else {
            return refuse(format!("pool {} is not open as a whole", membership.name), "try again later");
        };
        let short = |lane: &DriveUse| lane.stored_blocks.saturating_sub(lane.possible_blocks);
        let short: u64 = lanes.iter().map(short).sum();
        if short > 0 {
            let how = if instead.is_some() { "with this one in its place" } else { "without it" };
            let message = format!(
                "what pool {} stores would not fit {how}: {} too much",
                membership.name,
                size(short * BLOCK_BYTES as u64)
            );
            return refuse(message, "add a drive first, delete volumes, or discard what hosts do not need");
        }
        Ok(())
    }

    async fn set_draining(&self, id: PoolId, index: usize, drain: bool) -> Result<(), CommandError> {
        let io = &self.context.io;
        self.go_ahead()?;
        self.waits_for("it waits for the pool's drives to take their labels");
        let set = self.alter(id, async |membership| match (membership.members[index].state, drain) {
            (DriveState::Online, true) => membership.drain(io, index as u8).await,
            (DriveState::Draining, false) => membership.keep(io, index as u8).await,
            // it has failed meanwhile
            _ => Ok(()),
        });
        set.await.map_err(|TooFewDrives| {
            CommandError::new(CommandErrorKind::Io, PoolOffline::TooManyFailed.to_string(), "")
        })
    }

    /// The membership of a pool in service.
    pub(crate) fn served_pool(&self, name: &str) -> Result<Membership, CommandError> {
        let known = self.state.borrow().catalog.find_pool(name).map(|entry| entry.id);
        let Some(id) = known else {
            return Err(catalog::CatalogError::NotFound { kind: "pool", name: name.to_owned() }.into());
        };
        self.check_pool_online(name)?;
        self.state.borrow().online_pool(id).ok_or_else(|| {
            CommandError::new(CommandErrorKind::Unavailable, format!("pool {name} is not open"), "")
        })
    }

    /// The present state of a pool, for the answer to a change.
    pub(crate) async fn pool_made(&self, name: &str) -> Option<Made> {
        let pools = self.pool_statuses().await.into_iter().map(|(pool, _)| pool);
        pools.into_iter().find(|pool| pool.name == name).map(|pool| Made::Pool(Box::new(pool)))
    }

    pub(crate) async fn pool_made_unless(&self, name: &str, dry_run: bool) -> Option<Made> {
        if dry_run { None } else { self.pool_made(name).await }
    }
}

pub(crate) fn done(steps: Vec<ChangeStep>, dry_run: bool, made: Option<Made>) -> Reply {
    Reply::Changed(Change { dry_run, steps, hosts_affected: Vec::new(), made })
}

fn add_step(info: &DriveInfo, pool: &str) -> ChangeStep {
    let (drive, size_bytes) = (info.path.clone(), info.size_bytes);
    DriveStep::AddDrive { drive, pool: pool.to_owned(), size_bytes }.into()
}

fn invalid(message: impl Into<String>, hint: &str) -> CommandError {
    CommandError::new(CommandErrorKind::Invalid, message, hint)
}

/// The name of a member: its path, or its id if it is not here.
pub(crate) fn shown(member: &Member) -> String {
    if member.path.is_empty() { format!("drive {}", member.id) } else { member.path.clone() }
}

/// Minimum number of digits of an id that names a drive.
const ID_DIGITS_MIN: usize = 4;

/// A drive of the pool by its path, or by the beginning of its id.
fn find_member(membership: &Membership, name: &str) -> Result<usize, CommandError> {
    let members = || membership.members.iter().enumerate().filter(|(_, m)| m.state != DriveState::Removed);
    // a drive that is out may have had the path of a present one
    let by_path = members().filter(|(_, member)| member.path == name);
    if let Some((index, _)) = by_path.max_by_key(|(_, member)| member.state.is_readable()) {
        return Ok(index);
    }
    let id = name.strip_prefix("id-").unwrap_or(name);
    let by_id = || members().filter(|(_, member)| member.id.to_string().starts_with(id));
    match (id.len() >= ID_DIGITS_MIN, by_id().count()) {
        (true, 1) => Ok(by_id().next().expect("one was counted").0),
        (true, 2..) => Err(invalid(format!("several drives' ids begin with {id}"), "give more of the id")),
        _ => Err(CommandError::new(
            CommandErrorKind::NotFound,
            format!("pool {} has no drive {name}", membership.name),
            "`tangelo drive list` shows paths and ids",
        )),
    }
}
