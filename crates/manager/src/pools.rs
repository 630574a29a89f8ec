//! Pools: found on the drives at the start, opened on every shard, informed of failed drives, closed.

use std::collections::BTreeMap;

use base::{ArrayId, Nanos, PoolId};
use bytes::Bytes;
use catalog::{Catalog, Change};
use env::{DriveHandle, DriveInfo, IoError};
use pool::{Content, Member, Membership, PoolError};
use task::join_all;

use shard::{Answer, ShardCall};

use crate::alone::TwinRefusal;
use crate::failure::{lane_failure, pool_failure};
use crate::manager::Manager;
use crate::probed::Probed;
use crate::start::decode;
use crate::state::{OpenAttempt, Pool};
use api::{
    CatalogPlace, CommandError, CommandErrorKind, DriveLoss, EventFacts, LostDrive, NotStored, PoolFailure,
    PoolOffline, StartFailure, StoreFailure, Subject,
};

/// Drives of a pool that is to be claimed.
#[derive(Default)]
struct OpenedMembers {
    drives: Vec<(DriveHandle, DriveInfo)>,
    /// Drives that another process has.
    held: usize,
    /// An array of two heads uses some of them, and this head is not one of these.
    is_of_a_pair: bool,
}

impl Manager {
    /// Looks at every configured drive and opens the pools of this array that are there: of the `wanted` one, where that is known.
    /// Returns the newest catalog, of theirs and the `kept` one; `None` if there is no array yet.
    pub(crate) async fn open_pools(
        &self,
        kept: Option<Catalog>,
        wanted: Option<ArrayId>,
    ) -> Result<Option<Catalog>, StartFailure> {
        self.look_at_drives().await;
        let found = self.found_pools();
        let array = match &kept {
            _ if wanted.is_some() => wanted,
            Some(kept) if !kept.is_pristine() => Some(kept.array()),
            _ => most_frequent(found.values().map(|found| (found.array, found.paths.len()))),
        };
        let ours = found.iter().filter(|(_, found)| Some(found.array) == array);
        join_all(ours.map(|(id, found)| self.claim_pool(*id, found)).collect::<Vec<_>>()).await;
        let kept = kept.filter(|kept| array.is_none_or(|array| kept.array() == array));
        let newest = self.newest_catalog(kept).await?;
        self.look_at_drives().await;
        match (newest, array) {
            (None, Some(array)) => self.catalog_of_pools_without(array).map(Some),
            (newest, _) => Ok(newest),
        }
    }

    /// The newest of the `kept` catalog and those in the pools. A pool whose catalog cannot be read is closed.
    async fn newest_catalog(&self, kept: Option<Catalog>) -> Result<Option<Catalog>, StartFailure> {
        let mut newest = kept;
        let online = self.state.borrow().online();
        for membership in online {
            let lane = self.context.lanes.get(membership.pool, 0).expect("lane 0 lives on shard 0");
            let bytes = match lane.load_catalog().await {
                Ok(bytes) => bytes,
                Err(error) => {
                    let why = PoolOffline::CatalogUnreadable { cause: lane_failure(error) };
                    self.close_pool(membership.pool, why).await;
                    continue;
                }
            };
            let place = CatalogPlace::Pool(membership.name.clone());
            let stored = bytes.map(|bytes| decode(&bytes, place)).transpose()?;
            let is_newer = |stored: &Catalog| newest.as_ref().is_none_or(|known| stored.is_newer_than(known));
            if let Some(stored) = stored.filter(|stored| stored.array() == membership.array).filter(is_newer)
            {
                newest = Some(stored);
            }
        }
        Ok(newest)
    }

    /// The catalog of pools that hold none: the program ended while it stored the first one. Refused if some pool is not
    /// open, because the catalog may be there.
    fn catalog_of_pools_without(&self, array: ArrayId) -> Result<Catalog, StartFailure> {
        for pool in &self.state.borrow().pools {
            if let Some(why) = &pool.offline {
                return Err(StartFailure::CatalogOffline { pool: pool.name.clone(), why: why.clone() });
            }
        }
        Ok(Catalog::new(array, self.parameters.array_name.parse()?))
    }

    /// Pools according to the labels of the drives that were looked at.
    pub(crate) fn found_pools(&self) -> BTreeMap<PoolId, FoundPool> {
        let mut found = BTreeMap::new();
        let state = self.state.borrow();
        for drive in &state.drives {
            if let (Some((pool, array)), Some(name)) = (drive.member_of, &drive.pool_name) {
                let new = || FoundPool { array, name: name.clone(), paths: Vec::new() };
                found.entry(pool).or_insert_with(new).paths.push(drive.path.clone());
            }
        }
        found
    }

    /// Claims a pool of drives that carry its label, and opens it.
    pub(crate) async fn claim_pool(&self, id: PoolId, found: &FoundPool) {
        self.state.borrow_mut().pools.push(Pool::offline(
            &self.context.io,
            id,
            &found.name,
            PoolOffline::Opening,
        ));
        let mut opened = self.open_members(id, found).await;
        let Err(error) = self.claim_opened(&mut opened).await else { return };
        for (handle, _) in &opened.drives {
            self.close_drive(*handle).await;
        }
        let why = match error {
            // the pool does not exist: its drives can be used for another one
            PoolError::Unfinished => {
                return self.state.borrow_mut().pools.retain(|pool| pool.id != id);
            }
            PoolError::OfTwoHeads => PoolOffline::CannotOpen { cause: PoolFailure::OfTwoHeads },
            _ if opened.drives.is_empty() => PoolOffline::NoUsableDrive,
            error => PoolOffline::CannotOpen { cause: pool_failure(error) },
        };
        self.state.borrow_mut().set_offline(id, why.clone());
        // it may be tried again and again
        self.context.report(Subject::pool(&found.name), EventFacts::PoolFailed { why });
        self.problems_may_differ();
    }

    /// Opens the drives of a pool, and records which of them cannot be used.
    async fn open_members(&self, id: PoolId, found: &FoundPool) -> OpenedMembers {
        let open = found.paths.iter().map(|path| self.open_member(id, path));
        let results = join_all(open.collect::<Vec<_>>()).await;
        let (mut opened, mut unusable) = (OpenedMembers::default(), Vec::new());
        let lost = |path: &String, error| LostDrive {
            drive: path.clone(),
            bay: String::new(),
            how: DriveLoss::Unusable { error },
        };
        for (path, result) in found.paths.iter().zip(results) {
            let (handle, info) = match result {
                Ok(Probed { handle, info, content: Content::Member(label) }) if label.pool == id => {
                    (handle, info)
                }
                Ok(Probed { handle, .. }) => {
                    self.close_drive(handle).await;
                    continue;
                }
                Err(error) => {
                    opened.held += usize::from(error == IoError::Busy);
                    unusable.push(lost(path, error));
                    continue;
                }
            };
            match self.forget_twin(handle).await {
                Ok(()) => {
                    opened.drives.push((handle, info));
                    continue;
                }
                Err(TwinRefusal::OfTwoHeads) => opened.is_of_a_pair = true,
                Err(TwinRefusal::Drive(error)) => unusable.push(lost(path, error)),
            }
            self.close_drive(handle).await;
        }
        let tried = OpenAttempt { paths: found.paths.iter().cloned().collect(), in_use: opened.held > 0 };
        self.tried.borrow_mut().insert(id, tried);
        let mut state = self.state.borrow_mut();
        let pool = state.pool_mut(id).expect("just added");
        pool.infos = opened.drives.iter().map(|(_, info)| info.clone()).collect();
        (pool.offline, pool.unusable) = (Some(PoolOffline::Opening), unusable);
        opened
    }

    /// Claims a pool of the drives that are open, and opens its lanes. Leaves the drives that are to be closed if that fails.
    async fn claim_opened(&self, opened: &mut OpenedMembers) -> Result<(), PoolError> {
        if opened.is_of_a_pair {
            return Err(PoolError::OfTwoHeads);
        }
        let io = &self.context.io;
        let membership = pool::claim(io, opened.drives.clone(), opened.held, self.parameters.heads()).await?;
        // the pool continues without some drives that have its label: they are refused, with the reason
        let used = |handle: DriveHandle| membership.members.iter().any(|m| m.handle == Some(handle));
        let (kept, refused) =
            std::mem::take(&mut opened.drives).into_iter().partition(|(handle, _)| used(*handle));
        opened.drives = kept;
        self.give_up(&refused).await;
        self.open_lanes(membership).await
    }

    /// Adds a newly made pool, and opens it.
    pub(crate) async fn open_new_pool(
        &self,
        membership: Membership,
        infos: Vec<DriveInfo>,
    ) -> Result<(), PoolError> {
        let opening =
            Pool::offline(&self.context.io, membership.pool, &membership.name, PoolOffline::Opening);
        self.state.borrow_mut().pools.push(Pool { infos, is_being_made: true, ..opening });
        self.open_lanes(membership).await
    }

    /// Opens all lanes of a claimed pool, each on its shard, all at the same time.
    async fn open_lanes(&self, membership: Membership) -> Result<(), PoolError> {
        let (id, shards) = (membership.pool, self.context.shards);
        if let Some(pool) = self.state.borrow_mut().pool_mut(id) {
            pool.membership = Some(membership.clone());
        }
        let open =
            |lane| self.context.ask(shard::home(lane, shards), ShardCall::OpenLane(membership.clone(), lane));
        let answers = join_all((0..membership.lanes).map(open).collect::<Vec<_>>()).await;
        let failed = answers.into_iter().find_map(|answer| match answer {
            Answer::LaneOpened(result) => result.err(),
            other => unreachable!("the answer to opening a lane, not {other:?}"),
        });
        if let Some(error) = failed {
            self.context.ask_all(|| ShardCall::CloseLanes(id)).await;
            if let Some(pool) = self.state.borrow_mut().pool_mut(id) {
                pool.membership = None;
            }
            return Err(error);
        }
        {
            let mut state = self.state.borrow_mut();
            let pool = state.pool_mut(id).expect("it is being opened");
            (pool.offline, pool.is_being_made) = (None, false);
        }
        let lost_drives = membership.lost() as u64;
        let drives = membership.members.iter().filter(|member| member.state.is_readable()).count() as u64;
        self.record(Subject::pool(&membership.name), EventFacts::PoolOpened { drives, lost_drives });
        self.problems_may_differ();
        Ok(())
    }

    /// Makes the catalog and the pools consistent: finishes or undoes what a crash has left half done.
    pub(crate) async fn settle_pools(&self) -> Result<(), StartFailure> {
        self.finish_deletions().await;
        let unknown: Vec<Membership> = {
            let state = self.state.borrow();
            let known = |membership: &Membership| state.catalog.pool(membership.pool).is_some();
            state.online().into_iter().filter(|membership| !known(membership)).collect()
        };
        for membership in unknown {
            let change = Change::AttachPool { id: membership.pool, name: membership.name.parse()? };
            let next = self.state.borrow().catalog.apply(&change)?;
            self.state.borrow_mut().catalog = next;
        }
        self.add_absent_pools();
        self.settle_names().await;
        let online = self.state.borrow().online();
        for membership in online {
            if let Err(cause) = self.settle_layers(&membership).await {
                let why = PoolOffline::CannotOpen { cause };
                self.close_pool(membership.pool, why).await;
            }
        }
        let bytes = Bytes::from(self.state.borrow().catalog.encode());
        // the next change stores it, too
        if let Err(error) = self.store_catalog(&bytes).await {
            self.unsettled.borrow_mut().push(error);
        }
        Ok(())
    }

    /// Gives pools the names in the catalog, even if a crash came before their labels were written.
    async fn settle_names(&self) {
        let entries = self.state.borrow().catalog.pools().to_vec();
        for entry in entries {
            self.name_pool(entry.id, &entry.name).await;
        }
    }

    /// Adds pools that the catalog knows and no drive has shown.
    pub(crate) fn add_absent_pools(&self) {
        let mut state = self.state.borrow_mut();
        let entries = state.catalog.pools().to_vec();
        for entry in entries {
            if state.pools.iter().any(|pool| pool.id == entry.id) {
                continue;
            }
            let (name, why) = (entry.name.as_str(), PoolOffline::NotFound);
            let absent = Pool::offline(&self.context.io, entry.id, name, why);
            state.pools.push(absent);
        }
    }

    /// Makes the catalog durable in every pool in service.
    pub(crate) async fn store_catalog(&self, bytes: &Bytes) -> Result<(), StoreFailure> {
        let online = self.state.borrow().online();
        let store = |membership: &Membership| {
            let lane = self.context.lanes.get(membership.pool, 0).expect("lane 0 lives on shard 0");
            let bytes = bytes.clone();
            async move { lane.store_catalog(&bytes).await }
        };
        let results = join_all(online.iter().map(store).collect::<Vec<_>>()).await;
        let mut errors = online.iter().zip(&results).filter_map(|(membership, result)| {
            let error = lane_failure(*result.as_ref().err()?);
            Some(StoreFailure { pool: membership.name.clone(), what: NotStored::Catalog, error })
        });
        match errors.next() {
            // if one pool has it, it is the newest at the next start
            Some(failure) if results.iter().all(|result| result.is_err()) => Err(failure),
            _ => Ok(()),
        }
    }

    /// Closes every pool, for the shutdown.
    pub(crate) async fn close_pools(&self) {
        let ids: Vec<PoolId> = self.state.borrow().pools.iter().map(|pool| pool.id).collect();
        let stats = self.lane_stats().await;
        for id in ids {
            let lanes = stats.iter().filter(|(pool, _)| *pool == id).map(|(_, stats)| stats);
            self.take_stock(id, &lanes.collect::<Vec<_>>());
            self.record_errors(id, Nanos(0)).await;
            self.close_pool(id, PoolOffline::Stopping).await;
        }
    }

    /// Writes last checkpoints, closes every lane of the pool, and closes its drives.
    pub(crate) async fn close_pool(&self, id: PoolId, why: PoolOffline) {
        let (membership, closing) = {
            let mut state = self.state.borrow_mut();
            let pool = state.pool_mut(id).expect("a pool that is known");
            let was_served = pool.offline.replace(why.clone()).is_none();
            let subject = Subject::pool(&pool.name);
            if was_served {
                self.record(
                    subject,
                    match why {
                        PoolOffline::Stopping | PoolOffline::Deleting => EventFacts::PoolClosed { why },
                        why => EventFacts::PoolFailed { why },
                    },
                );
            }
            // handles that are already being closed are closed by that task
            (pool.membership.take(), pool.keeper.closing.clone())
        };
        self.problems_may_differ();
        self.context.ask_all(|| ShardCall::CloseLanes(id)).await;
        let handles = membership.iter().flat_map(|m| &m.members).filter_map(|member| member.handle);
        for handle in handles.filter(|handle| !closing.contains(handle)) {
            self.close_drive(handle).await;
        }
    }

    pub(crate) fn check_pool_online(&self, name: &str) -> Result<(), CommandError> {
        let state = self.state.borrow();
        let offline = state.pools.iter().find(|pool| pool.name == name).and_then(|pool| pool.offline.clone());
        match offline {
            None => Ok(()),
            Some(reason) => {
                let message = format!("pool {name} is offline: {reason}");
                Err(CommandError::new(
                    CommandErrorKind::Unavailable,
                    message,
                    "`tangelo status` says what to do",
                ))
            }
        }
    }

    /// The open pool that this drive belongs to.
    pub(crate) fn pool_of_drive(&self, path: &str) -> Option<String> {
        let state = self.state.borrow();
        let serves = |member: &Member| member.path == path && member.state.is_readable();
        let has = |membership: &Membership| membership.members.iter().any(serves);
        let mut pools = state.pools.iter().filter(|pool| pool.membership.as_ref().is_some_and(has));
        pools.next().map(|pool| pool.name.clone())
    }
}

/// A pool according to the drives' labels.
pub(crate) struct FoundPool {
    pub(crate) array: ArrayId,
    pub(crate) name: String,
    pub(crate) paths: Vec<String>,
}

/// The array to which most drives belong.
fn most_frequent(arrays: impl Iterator<Item = (ArrayId, usize)>) -> Option<ArrayId> {
    let mut counts: BTreeMap<ArrayId, usize> = BTreeMap::new();
    arrays.for_each(|(array, drives)| *counts.entry(array).or_default() += drives);
    counts.into_iter().max_by_key(|(_, drives)| *drives).map(|(array, _)| array)
}
