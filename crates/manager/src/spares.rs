//! Hot spares: blank drives that join a pool to replace a drive that is lost or too slow.
//!
//! Rebuilding begins at once and needs no spare. A spare restores the number of drives, which matters if the pool has
//! too little room, or too few drives, to rebuild. A spare is known only by its path and holds no data. It is probed
//! when it is needed. If it is not blank then, it is never erased.
//!
//! ```text
//!   lost ─► awaiting (a spare is needed), on record ─► due ─► a spare joins ─► joined, on record ─► the loss is repaired: forgotten
//!             └─ the drive is back ─► no longer awaiting
//! ```
//!
//! The pool records the need before a spare is due. So neither a quick repair nor a restart makes the array forget it.
//! If a crash happens between the join and its record, the spare is found among the members.

use base::limits::DRIVE_BYTES_MIN;
use base::{DriveId, Nanos, PoolId};
use catalog::{CatalogError, Change, Joined, Spares};
use env::IoError;
use pool::{DriveState, Member, Membership};

use crate::drive_commands::done;
use crate::manager::Manager;
use crate::probed::without_contents;
use crate::remembered;
use crate::state::{Drive, State};
use api::{
    CommandError, CommandErrorKind, DriveContent, DriveStep, PoolActivity, Problem, ProblemFacts, Reply,
    SpareObstacle, Subject,
};

/// How often spares are looked at while none is needed.
const LOOK_EVERY: Nanos = Nanos::from_secs(600);
/// How long to wait after a spare could not join.
const AGAIN_AFTER: Nanos = Nanos::from_secs(60);

/// The state of a present or former member, for the decision about spares.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Condition {
    Serves,
    /// Missing, and may come back.
    Away,
    /// Lost: a spare must replace it.
    Lost,
    /// No longer a member.
    Left,
}

/// What is to be done about a pool's spares.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Plan {
    /// Their new record.
    spares: Spares,
    /// The lost drive for which a spare must join now.
    due: Option<DriveId>,
}

/// `members`: each with its path and state, in the order in which they joined.
fn plan(mut spares: Spares, members: &[(DriveId, &str, Condition)]) -> Plan {
    use Condition::{Away, Left, Lost, Serves};
    let is =
        |id| members.iter().find(|(member, ..)| *member == id).map_or(Left, |&(.., condition)| condition);
    let gone: Vec<DriveId> =
        members.iter().filter(|(.., is)| matches!(is, Away | Lost)).map(|&(id, ..)| id).collect();
    // the pool has repaired the loss: from now on the spare is an ordinary drive
    spares.joined.retain(|joined| gone.contains(&joined.instead_of));
    spares.awaiting.retain(|&id| is(id) != Serves);
    let covered = |spares: &Spares, id| spares.joined.iter().any(|joined| joined.instead_of == id);
    // it has joined, and is not recorded yet; or it was added by command
    let member_at = |path: &String| members.iter().any(|(_, at, is)| at == path && *is != Left);
    let (joined, free) = std::mem::take(&mut spares.free).into_iter().partition(member_at);
    spares.free = free;
    for path in joined {
        let uncovered = gone.iter().copied().find(|&id| !covered(&spares, id));
        if let Some(instead_of) = spares.awaiting.first().copied().or(uncovered) {
            spares.awaiting.retain(|&id| id != instead_of);
            if is(instead_of) != Left {
                spares.joined.push(Joined { path, instead_of });
            }
        }
    }
    for id in gone {
        if !covered(&spares, id)
            && !spares.awaiting.contains(&id)
            && spares.awaiting.len() < spares.free.len()
        {
            spares.awaiting.push(id);
        }
    }
    let due = spares.awaiting.iter().copied().find(|&id| is(id) != Away).filter(|_| !spares.free.is_empty());
    Plan { spares, due }
}

impl Manager {
    /// Makes drives spares of a pool, or removes them.
    pub(crate) async fn set_spares(
        &self,
        name: &str,
        drives: &[String],
        release: bool,
        dry_run: bool,
    ) -> Result<Reply, CommandError> {
        let membership = self.served_pool(name)?;
        let mut spares = self.spares_of(membership.pool);
        let mut steps = Vec::new();
        for path in drives {
            match (spares.free.iter().position(|free| free == path), release) {
                (Some(index), true) => {
                    spares.free.remove(index);
                }
                (None, false) => {
                    spares.free.push(path.clone());
                }
                (Some(_), false) => {
                    let message = format!("{path} is a spare of pool {name} already");
                    return Err(CommandError::new(CommandErrorKind::AlreadyExists, message, ""));
                }
                (None, true) => {
                    return Err(CatalogError::NotFound { kind: "spare", name: path.clone() }.into());
                }
            }
            let step = DriveStep::SetSpare { drive: path.clone(), pool: name.to_owned(), release };
            steps.push(step.into());
        }
        let change = Change::SetSpares { pool: name.to_owned(), spares };
        let planned = self.plan(&change)?;
        if !release {
            let taken = self.take_new_drives(&membership, drives, &[]).await.map_err(|refusal| {
                let blank =
                    "a spare must be blank: erase it (`tangelo drive wipe DRIVE`), or name another drive";
                let hint = if refusal.holds_contents { blank } else { "name another drive" };
                CommandError { hint: hint.to_owned(), ..refusal.error }
            })?;
            self.give_up(&without_contents(taken)).await;
        }
        if !dry_run {
            self.commit(&planned.next).await?;
            self.look_at_spares().await;
            self.wake_keeper.notify();
        }
        Ok(done(steps, dry_run, self.pool_made_unless(name, dry_run).await))
    }

    fn spares_of(&self, id: PoolId) -> Spares {
        self.state.borrow().catalog.pool(id).map(|entry| entry.spares.clone()).unwrap_or_default()
    }

    /// Paths of unused spares.
    pub(crate) fn spare_paths(&self) -> Vec<String> {
        let state = self.state.borrow();
        state.catalog.pools().iter().flat_map(|entry| entry.spares.free.clone()).collect()
    }

    /// Looks at spares that were not checked for a while: so a failed spare is reported before it is needed.
    pub(crate) async fn see_to_spares(&self) {
        let now = self.context.io.now();
        let due = self.spares_seen.get().is_none_or(|seen| now.saturating_sub(seen) >= LOOK_EVERY);
        if due && !self.spare_paths().is_empty() {
            self.look_at_spares().await;
        }
    }

    async fn look_at_spares(&self) {
        self.look_at_drives().await;
        self.spares_seen.set(Some(self.context.io.now()));
    }

    /// Lets a spare join if one is due, and keeps the record of losses that need a spare and of joined spares.
    pub(crate) async fn keep_spares(&self, id: PoolId) {
        let nothing = |(plan, spares): (Plan, Spares)| plan.due.is_none() && plan.spares == spares;
        if self.plan_spares(id).is_none_or(nothing) {
            return;
        }
        let _turn = self.changes.acquire(1).await;
        // administrators may have changed it meanwhile
        let Some((plan, spares)) = self.plan_spares(id) else { return };
        if plan.spares != spares && self.record_spares(id, plan.spares).await.is_err() {
            return;
        }
        if let Some(lost) = plan.due.filter(|_| self.may_join(id)) {
            let joined = self.join_spare(id, lost).await;
            let now = self.context.io.now();
            if let Some(pool) = self.state.borrow_mut().pool_mut(id) {
                pool.keeper.spare_failed = (!joined).then_some(now);
            }
            self.wake_keeper.notify();
        }
    }

    fn may_join(&self, id: PoolId) -> bool {
        let now = self.context.io.now();
        let state = self.state.borrow();
        let failed = state.pools.iter().find(|pool| pool.id == id).and_then(|pool| pool.keeper.spare_failed);
        failed.is_none_or(|failed| now.saturating_sub(failed) >= AGAIN_AFTER)
    }

    /// What is to be done, and the recorded spares. `None`: the pool has none, or is not in service.
    fn plan_spares(&self, id: PoolId) -> Option<(Plan, Spares)> {
        let now = self.context.io.now();
        let mut state = self.state.borrow_mut();
        let spares = state.catalog.pool(id)?.spares.clone();
        if spares.is_empty() {
            return None;
        }
        let pool = state.pool_mut(id).filter(|pool| pool.offline.is_none())?;
        let keeper = &mut pool.keeper;
        let membership = pool.membership.as_ref()?;
        keeper.see_missing(membership, now);
        let away = |id| keeper.is_awaited(id, now);
        let condition = |member: &Member| match member.state {
            DriveState::Failed => Condition::Lost,
            DriveState::Missing if away(member.id) => Condition::Away,
            DriveState::Missing => Condition::Lost,
            DriveState::Draining if member.slow => Condition::Lost,
            DriveState::Online if keeper.slow_stays == Some(member.id) => Condition::Lost,
            DriveState::Online | DriveState::Draining => Condition::Serves,
            DriveState::Removed => Condition::Left,
        };
        let members = membership.members.iter().map(|m| (m.id, m.path.as_str(), condition(m)));
        Some((plan(spares.clone(), &members.collect::<Vec<_>>()), spares))
    }

    async fn record_spares(&self, id: PoolId, spares: Spares) -> Result<(), CommandError> {
        let name = self.state.borrow().catalog.pool(id).map(|entry| entry.name.to_string());
        let Some(name) = name else { return Ok(()) };
        let planned = self.plan(&Change::SetSpares { pool: name, spares })?;
        // if this cannot be stored, the pool reports why, and the next round tries again
        self.commit(&planned.next).await
    }

    /// Lets the best spare join: the smallest one that is as large as the lost drive, otherwise the largest.
    async fn join_spare(&self, id: PoolId, lost: DriveId) -> bool {
        self.look_at_spares().await;
        let Some(membership) = self.state.borrow().online_pool(id) else { return false };
        let chunks = membership.members.iter().find(|member| member.id == lost).map_or(0, |lost| lost.chunks);
        let needed = pool::LABEL_REGION_BYTES + u64::from(chunks) * membership.chunk_bytes;
        let mut usable = self.usable_spares(id);
        usable.sort_by_key(|&(_, bytes)| if bytes >= needed { (0, bytes) } else { (1, u64::MAX - bytes) });
        for (path, _) in usable {
            if self.join_one(&membership, &path).await {
                let mut spares = self.spares_of(id);
                spares.free.retain(|free| *free != path);
                spares.awaiting.retain(|&awaiting| awaiting != lost);
                spares.joined.push(Joined { path, instead_of: lost });
                // if this is not recorded now, the next round finds the spare among the members
                let _ = self.record_spares(id, spares).await;
                return true;
            }
        }
        false
    }

    async fn join_one(&self, membership: &Membership, path: &String) -> bool {
        match self.take_new_drives(membership, std::slice::from_ref(path), &[]).await {
            Ok(taken) => self.join(membership, without_contents(taken)).await.is_ok(),
            Err(_) => false,
        }
    }

    /// Spares that could join, as they were last found, with their sizes.
    fn usable_spares(&self, id: PoolId) -> Vec<(String, u64)> {
        let free = self.spares_of(id).free;
        let state = self.state.borrow();
        let usable = free.into_iter().filter_map(|path| {
            let drive = state.drives.iter().find(|drive| drive.path == path)?;
            obstacle(&state, Some(drive)).is_none().then(|| (path, drive.size_bytes()))
        });
        usable.collect()
    }

    /// The problems of spares that could not join.
    pub(crate) fn spare_problems(&self) -> Vec<Problem> {
        let state = self.state.borrow();
        let mut problems = Vec::new();
        for entry in state.catalog.pools() {
            for path in &entry.spares.free {
                let drive = state.drives.iter().find(|drive| drive.path == *path);
                let looked = drive.is_some() || self.spares_seen.get().is_some();
                let why = match self.pool_of_drive(path) {
                    // it has just joined; the record of spares follows
                    Some(pool) if pool == entry.name.to_string() => None,
                    Some(pool) => Some(SpareObstacle::Member { pool }),
                    None => obstacle(&state, drive).filter(|_| looked),
                };
                let Some(why) = why else { continue };
                let facts = ProblemFacts::SpareUnusable { pool: entry.name.to_string(), obstacle: why };
                problems.push(Problem::new(Subject::drive(path), facts));
            }
        }
        problems
    }
}

/// The spares that have joined.
pub(crate) fn activity(spares: &Spares) -> impl Iterator<Item = PoolActivity> + '_ {
    let joined = |Joined { path, instead_of }: &Joined| PoolActivity::SpareJoined {
        spare: path.clone(),
        instead_of: instead_of.to_string(),
    };
    spares.joined.iter().map(joined)
}

/// Why a spare cannot join.
fn obstacle(state: &State, drive: Option<&Drive>) -> Option<SpareObstacle> {
    let Some(drive) = drive else { return Some(SpareObstacle::Absent) };
    let failed = drive.info.as_ref().and_then(|info| remembered::failure(state, info));
    if let Some(failed) = failed.filter(|_| drive.content == DriveContent::Blank) {
        return Some(SpareObstacle::GivenUp(failed.into()));
    }
    match drive.content {
        DriveContent::Blank if drive.size_bytes() < DRIVE_BYTES_MIN => {
            Some(SpareObstacle::TooSmall { has_bytes: drive.size_bytes() })
        }
        DriveContent::Blank => None,
        DriveContent::Foreign => Some(SpareObstacle::Holds { what: drive.detail.clone() }),
        DriveContent::Member => {
            Some(SpareObstacle::Member { pool: drive.pool_name.clone().unwrap_or_default() })
        }
        DriveContent::FutureVersion => Some(SpareObstacle::OtherVersion),
        DriveContent::Damaged => Some(SpareObstacle::Damaged),
        DriveContent::Unreadable => {
            Some(SpareObstacle::Unreadable { error: drive.error.unwrap_or(IoError::Gone) })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Condition::{Away, Left, Lost, Serves};

    const A: DriveId = DriveId(1);
    const B: DriveId = DriveId(2);
    const C: DriveId = DriveId(3);

    fn spares(free: &[&str], awaiting: &[DriveId], joined: &[(&str, DriveId)]) -> Spares {
        let joined = joined.iter().map(|&(path, instead_of)| Joined { path: path.to_owned(), instead_of });
        let free = free.iter().copied().map(str::to_owned).collect();
        Spares { free, awaiting: awaiting.to_vec(), joined: joined.collect() }
    }

    #[test]
    fn one_spare_joins_for_each_drive_that_is_lost_for_good() {
        let two = || spares(&["/s", "/t"], &[], &[]);
        let one_awaiting = |awaiting| spares(&["/s", "/t"], &[awaiting], &[]);
        let in_use = || spares(&["/t"], &[], &[("/s", A)]);
        #[rustfmt::skip]
        let cases = [
            ("nothing is lost", two(), vec![(A, "/a", Serves)], two(), None),
            ("it may come back", two(), vec![(A, "", Away)], one_awaiting(A), None),
            ("it is back", one_awaiting(A), vec![(A, "/a", Serves)], two(), None),
            ("it is lost", two(), vec![(A, "", Lost), (B, "/b", Serves)], one_awaiting(A), Some(A)),
            ("the pool got over it before", one_awaiting(A), vec![(A, "", Left)], one_awaiting(A), Some(A)),
            ("it left long ago", two(), vec![(A, "", Left)], two(), None),
            ("one has joined for it", in_use(), vec![(A, "", Lost), (C, "/s", Serves)], in_use(), None),
            ("and is lost, too", in_use(), vec![(A, "", Lost), (C, "", Lost)],
                spares(&["/t"], &[C], &[("/s", A)]), Some(C)),
            ("the pool has got over it", in_use(), vec![(A, "", Left), (C, "/s", Serves)],
                spares(&["/t"], &[], &[]), None),
            ("it has come back after all", in_use(), vec![(A, "/a", Serves), (C, "/s", Serves)],
                spares(&["/t"], &[], &[]), None),
            ("joined, and then the power went", one_awaiting(A), vec![(A, "", Away), (C, "/s", Serves)], in_use(), None),
            ("the same, and the pool got over it", one_awaiting(A), vec![(A, "", Left), (C, "/s", Serves)],
                spares(&["/t"], &[], &[]), None),
            ("added by hand", two(), vec![(A, "/a", Serves), (C, "/s", Serves)], spares(&["/t"], &[], &[]), None),
            ("there is none left", spares(&[], &[], &[("/s", A)]), vec![(A, "", Lost), (B, "", Lost), (C, "/s", Serves)],
                spares(&[], &[], &[("/s", A)]), None),
            ("two for two", two(), vec![(A, "", Away), (B, "", Lost)], spares(&["/s", "/t"], &[A, B], &[]), Some(B)),
        ];
        for (what, before, members, after, due) in cases {
            assert_eq!(plan(before, &members), Plan { spares: after, due }, "{what}");
        }
    }
}
