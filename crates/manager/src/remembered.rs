//! Drives that the array remembers: the names of a pool's members, and the drives that a pool has lost.
//!
//! A lost drive is in `status` until the administrator acknowledges it. The drive is refused until a command uses it
//! anew.

use base::PoolId;
use catalog::{Change, DriveChange, DriveName, FailedDrive, KnownDrive, Trouble};
use env::DriveInfo;
use pool::{DriveState, Member, Membership};

use crate::drive_commands::done;
use crate::manager::Manager;
use crate::state::State;
use api::{CommandError, CommandErrorKind, DriveGivenUp, DriveStep, Problem, ProblemFacts, Reply, Subject};

impl Manager {
    /// Records the names of a pool's members, and which drives it has lost, if this is new.
    pub(crate) async fn remember_drives(&self, id: PoolId) {
        if news(&self.state.borrow(), id, self.context.io.wall_clock_ms()).is_none() {
            return;
        }
        let _turn = self.changes.acquire(1).await;
        let change = news(&self.state.borrow(), id, self.context.io.wall_clock_ms());
        if let Some(planned) = change.and_then(|change| self.plan(&change).ok()) {
            // if this cannot be stored, the pool reports why, and the next round tries again
            let _ = self.commit(&planned.next).await;
        }
    }

    /// Names missing members by their last paths, if no other drive is there now.
    pub(crate) fn name_missing(&self) {
        let mut state = self.state.borrow_mut();
        let state = &mut *state;
        for pool in &mut state.pools {
            let Some(membership) = &mut pool.membership else { continue };
            let known = state.catalog.pool(pool.id).map(|entry| entry.members.clone()).unwrap_or_default();
            let taken: Vec<String> = membership.members.iter().map(|member| member.path.clone()).collect();
            for member in membership.members.iter_mut().filter(|member| member.path.is_empty()) {
                let name = known.iter().find(|one| one.id == member.id).map(|one| &one.name);
                let path = name.map(|name| name.path.clone()).filter(|path| !taken.contains(path));
                member.path = path.unwrap_or_default();
            }
        }
    }

    /// Refuses a drive that a pool has lost.
    pub(crate) fn check_not_failed(&self, info: &DriveInfo, forced: bool) -> Result<(), CommandError> {
        let state = self.state.borrow();
        match failure(&state, info) {
            Some(failed) if !forced => Err(CommandError::new(
                CommandErrorKind::InUse,
                format!("{} is not to be trusted: {}", info.path, what_it_did(failed)),
                format!("name another drive; --force {} takes it all the same", info.path),
            )),
            _ => Ok(()),
        }
    }

    /// Forgets the failures of drives that were used again: from now on they are like any other drive.
    pub(crate) async fn forgive(&self, infos: impl Iterator<Item = &DriveInfo>) {
        let drives: Vec<DriveName> = {
            let state = self.state.borrow();
            infos.filter(|info| failure(&state, info).is_some()).map(name_of).collect()
        };
        if drives.is_empty() {
            return;
        }
        if let Ok(planned) = self.plan(&Change::Drives(DriveChange::Forgive(drives))) {
            // if this cannot be stored, they are refused once more the next time
            let _ = self.commit(&planned.next).await;
        }
    }

    /// Acknowledges what drives did: for one drive, by its path or the beginning of its id, or for all.
    pub(crate) async fn clear_drives(
        &self,
        drive: Option<&str>,
        dry_run: bool,
    ) -> Result<Reply, CommandError> {
        let matches = |failed: &&FailedDrive| {
            let named = |drive: &str| failed.name.path == drive || failed.id.to_string().starts_with(drive);
            !failed.cleared && drive.is_none_or(named)
        };
        let known: Vec<FailedDrive> = {
            let state = self.state.borrow();
            state.catalog.failed_drives().iter().filter(matches).cloned().collect()
        };
        if let (Some(drive), true) = (drive, known.is_empty()) {
            let message = format!("there is nothing to take note of about drive {drive}");
            return Err(CommandError::new(
                CommandErrorKind::NotFound,
                message,
                "`tangelo status` shows what there is",
            ));
        }
        let step = |failed: &FailedDrive| {
            DriveStep::ClearDrive { drive: failed.name.path.clone(), did: failed.into() }.into()
        };
        let steps = known.iter().map(step).collect();
        if !dry_run && !known.is_empty() {
            let drives = known.iter().map(|failed| failed.id).collect();
            let planned = self.plan(&Change::Drives(DriveChange::Clear(drives)))?;
            self.commit(&planned.next).await?;
        }
        Ok(done(steps, dry_run, None))
    }

    /// Remembered failures, until an administrator acknowledges them. If a drive is still a member, its pool reports it
    /// instead.
    pub(crate) fn remembered_problems(&self) -> Vec<Problem> {
        let state = self.state.borrow();
        let mut problems = Vec::new();
        for failed in state.catalog.failed_drives().iter().filter(|failed| !failed.cleared) {
            let path = &failed.name.path;
            if !is_member(&state, failed) {
                let facts = ProblemFacts::DriveGivenUp(failed.into());
                let since_ms = Some(failed.since_ms);
                problems.push(Problem { subject: Subject::drive(path), since_ms, facts });
            }
            let entry = state.catalog.find_pool(failed.pool.as_str());
            if failed.spare.is_some() && entry.is_some_and(|entry| entry.spares.free.is_empty()) {
                let facts = ProblemFacts::NoSpareLeft { drive: path.clone() };
                problems.push(Problem::new(Subject::pool(failed.pool.as_str()), facts));
            }
        }
        problems.dedup_by(|a, b| a.subject == b.subject && a.facts == b.facts);
        problems
    }
}

/// The last remembered failure of a drive.
pub(crate) fn failure<'a>(state: &'a State, info: &DriveInfo) -> Option<&'a FailedDrive> {
    state.catalog.failure_of(&name_of(info))
}

/// Describes what the drive did.
pub(crate) fn what_it_did(failed: &FailedDrive) -> String {
    DriveGivenUp::from(failed).to_string()
}

fn name_of(info: &DriveInfo) -> DriveName {
    let DriveInfo { path, model, serial, bay, .. } = info.clone();
    DriveName { path, model, serial, bay }
}

fn is_member(state: &State, failed: &FailedDrive) -> bool {
    let pools = state.pools.iter().filter_map(|pool| pool.membership.as_ref());
    let mut members = pools.flat_map(|membership| &membership.members);
    members.any(|member| member.id == failed.id && member.state != DriveState::Removed)
}

fn trouble(member: &Member) -> Option<Trouble> {
    match member.state {
        DriveState::Failed => Some(Trouble::Failed),
        DriveState::Missing => Some(Trouble::Missing),
        DriveState::Draining if member.slow => Some(Trouble::Slow),
        DriveState::Online | DriveState::Draining | DriveState::Removed => None,
    }
}

/// What the catalog does not know yet of a pool's drives.
fn news(state: &State, id: PoolId, now_ms: u64) -> Option<Change> {
    let membership = state.online_pool(id)?;
    let entry = state.catalog.pool(id)?;
    let infos = state.pools.iter().find(|pool| pool.id == id).map(|pool| &pool.infos)?;
    let known = |member: &Member| entry.members.iter().find(|known| known.id == member.id);
    let now = |member: &Member| -> KnownDrive {
        let info = infos.iter().find(|info| info.path == member.path && member.state.is_readable());
        let before = known(member).map(|known| known.name.clone());
        let name = info.map(name_of).or(before);
        let name = name.unwrap_or_else(|| DriveName { path: member.path.clone(), ..DriveName::default() });
        KnownDrive { id: member.id, name, trouble: trouble(member) }
    };
    let there = membership.members.iter().filter(|member| member.state != DriveState::Removed);
    let members: Vec<KnownDrive> = there.map(now).collect();
    let failed = failures(state, &membership, &members, now_ms);
    let is_news = members != entry.members || !failed.is_empty();
    is_news.then_some(Change::Drives(DriveChange::Note { pool: id, members, failed }))
}

/// Drives that have failed, or left because of what they did, and are not recorded yet.
fn failures(state: &State, membership: &Membership, members: &[KnownDrive], now_ms: u64) -> Vec<FailedDrive> {
    let Some(entry) = state.catalog.pool(membership.pool) else { return Vec::new() };
    let on_record =
        |known: &KnownDrive| state.catalog.failed_drives().iter().find(|failed| failed.id == known.id);
    let new = |known: &KnownDrive, trouble: Trouble| FailedDrive {
        id: known.id,
        name: known.name.clone(),
        pool: entry.name.clone(),
        trouble,
        since_ms: now_ms,
        spare: spare_for(state, membership, known),
        cleared: false,
    };
    let failed = members.iter().filter(|known| known.trouble == Some(Trouble::Failed));
    let left = entry.members.iter().filter(|known| members.iter().all(|member| member.id != known.id));
    let mut news: Vec<FailedDrive> = failed
        .chain(left)
        .filter(|known| on_record(known).is_none())
        .filter_map(|known| Some(new(known, known.trouble?)))
        .collect();
    // a spare that has joined since
    for joined in &entry.spares.joined {
        let waits = |failed: &&FailedDrive| failed.id == joined.instead_of && failed.spare.is_none();
        if let Some(failed) = state.catalog.failed_drives().iter().find(waits) {
            news.push(FailedDrive { spare: Some(joined.path.clone()), ..failed.clone() });
        }
    }
    news
}

fn spare_for(state: &State, membership: &Membership, known: &KnownDrive) -> Option<String> {
    let spares = &state.catalog.pool(membership.pool)?.spares;
    let joined = spares.joined.iter().find(|joined| joined.instead_of == known.id)?;
    Some(joined.path.clone())
}
