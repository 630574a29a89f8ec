//! Deletes a pool: first the catalog forgets it, then its lanes are closed, then its labels are erased.
//!
//! The catalog remembers that the pool was deleted. So labels that a crash leaves on drives, and drives that were away,
//! do not bring the pool back.

use base::PoolId;
use catalog::{CatalogError, Change};
use pool::{Content, Member};
use task::join_all;

use crate::change::Planned;
use crate::drive_commands::shown;
use crate::manager::Manager;
use crate::probed::Probed;
use crate::state::Drive;
use api::{CommandError, DriveStep, LabelLeft, PoolOffline, PoolStep, Reply};

impl Manager {
    pub(crate) async fn delete_pool(
        &self,
        name: &str,
        eradicate: bool,
        dry_run: bool,
    ) -> Result<Reply, CommandError> {
        let entry = self.state.borrow().catalog.find_pool(name).cloned();
        let entry = entry.ok_or_else(|| CatalogError::NotFound { kind: "pool", name: name.to_owned() })?;
        let planned = self.plan_deletion(name, eradicate)?;
        let planned =
            self.plan_labels(entry.id, planned.step(PoolStep::DeletePool { pool: name.to_owned() }));
        if dry_run {
            return Ok(planned.reply(true, None));
        }
        self.commit(&planned.next).await?;
        let left = self.take_apart(entry.id).await;
        self.broadcast().await;
        Ok(planned.steps(left).reply(false, None))
    }

    /// At a start: removes what is left of pools that were deleted.
    pub(crate) async fn finish_deletions(&self) {
        let deleted: Vec<PoolId> = {
            let state = self.state.borrow();
            let ids = state.pools.iter().map(|pool| pool.id);
            ids.filter(|&id| state.catalog.deleted_pool(id).is_some()).collect()
        };
        for id in deleted {
            // a label that cannot be erased now is still there at the next start
            self.take_apart(id).await;
        }
    }

    fn plan_deletion(&self, name: &str, eradicate: bool) -> Result<Planned, CommandError> {
        let pool = name.to_owned();
        if !eradicate {
            return self.plan(&Change::DetachPool { pool });
        }
        let catalog = self.state.borrow().catalog.clone();
        let emptied = catalog.apply(&Change::EmptyBin { pool: pool.clone() })?;
        let next = emptied.apply(&Change::DetachPool { pool })?;
        let held = catalog.bin().len() - emptied.bin().len();
        let planned = Planned { next, steps: Vec::new(), hosts_affected: Vec::new() };
        Ok(match held as u64 {
            0 => planned,
            volumes => planned.step(PoolStep::EmptyBin { pool: name.to_owned(), volumes }),
        })
    }

    /// Which labels of the pool are erased, and which ones stay.
    fn plan_labels(&self, id: PoolId, planned: Planned) -> Planned {
        let members = self.state.borrow().online_pool(id).map(|m| m.members).unwrap_or_default();
        let away = members.iter().filter(|member| member.state.is_lost());
        let leave = |member: &Member| DriveStep::LeaveLabel { drive: shown(member), cause: LabelLeft::Away };
        let erase = |drive| DriveStep::EraseLabel { drive };
        planned.steps(self.paths_of(id).into_iter().map(erase)).steps(away.map(leave))
    }

    /// Closes a pool and erases its labels. Returns which labels could not be erased.
    async fn take_apart(&self, id: PoolId) -> Vec<DriveStep> {
        let mut paths = self.paths_of(id);
        self.close_pool(id, PoolOffline::Deleting).await;
        self.forget_pool(id);
        self.look_at_drives().await;
        paths.extend(self.paths_of(id));
        paths.sort_unstable();
        paths.dedup();
        let erased =
            join_all(paths.iter().map(|path| self.erase_drive_of(id, path)).collect::<Vec<_>>()).await;
        self.look_at_drives().await;
        let failed = paths.iter().zip(erased).filter_map(|(path, erased)| {
            let error = erased.err()?;
            Some(DriveStep::LeaveLabel { drive: path.clone(), cause: LabelLeft::Error { error } })
        });
        failed.collect()
    }

    /// The paths of a pool's drives: its members, if it is open, and others that have its label.
    fn paths_of(&self, id: PoolId) -> Vec<String> {
        let state = self.state.borrow();
        let members = state.online_pool(id).map(|membership| membership.members).unwrap_or_default();
        let here = members.iter().filter(|member| member.state.is_readable()).map(shown);
        let labelled = |drive: &&Drive| drive.member_of.is_some_and(|(of, _)| of == id);
        here.chain(state.drives.iter().filter(labelled).map(|drive| drive.path.clone())).collect()
    }

    async fn erase_drive_of(&self, id: PoolId, path: &str) -> Result<(), env::IoError> {
        let Probed { handle, info, content } = self.open_and_probe(path).await?;
        let erased = match content {
            Content::Member(label) if label.pool == id => {
                pool::wipe(&self.context.io, handle, info.size_bytes).await
            }
            // it is another drive by now
            _ => Ok(()),
        };
        self.close_drive(handle).await;
        erased
    }
}
