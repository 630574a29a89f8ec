//! Pools: found on the drives at the start, opened on every shard, told of failed drives, closed.

use std::collections::BTreeMap;

use base::{ArrayId, PoolId};
use bytes::Bytes;
use catalog::{Catalog, Change};
use env::{DriveInfo, IoError};
use pool::{Content, Membership, PoolError};
use task::{Semaphore, join_all};

use super::drives::Probed;
use super::start::decode;
use super::{Array, State};
use crate::command::{CommandError, CommandErrorKind};
use crate::lanes;
use crate::message::{Answer, Call};

/// A pool of this array.
pub(super) struct Pool {
    pub(super) id: PoolId,
    pub(super) name: String,
    /// Who belongs to it; nothing where it could not be claimed.
    pub(super) membership: Option<Membership>,
    /// What is known of the drives that are here.
    pub(super) infos: Vec<DriveInfo>,
    /// Why it is not served; nothing where it is.
    pub(super) offline: Option<String>,
    /// Failed drives are recorded one at a time.
    recording: Semaphore,
}

impl State {
    pub(super) fn is_pool_online(&self, id: PoolId) -> bool {
        self.pools.iter().any(|pool| pool.id == id && pool.offline.is_none())
    }

    pub(super) fn online_pool(&self, id: PoolId) -> Option<Membership> {
        let pool = self.pools.iter().find(|pool| pool.id == id && pool.offline.is_none());
        pool.and_then(|pool| pool.membership.clone())
    }

    fn pool_mut(&mut self, id: PoolId) -> Option<&mut Pool> {
        self.pools.iter_mut().find(|pool| pool.id == id)
    }

    /// Pools that are served.
    pub(super) fn online(&self) -> Vec<Membership> {
        let online = self.pools.iter().filter(|pool| pool.offline.is_none());
        online.filter_map(|pool| pool.membership.clone()).collect()
    }
}

impl Array {
    /// Looks at every configured drive and opens the pools of this array that are there. Gives the newest
    /// catalog of those and the `kept` one; nothing where there is no array yet.
    pub(super) async fn open_pools(&self, kept: Option<Catalog>) -> Result<Option<Catalog>, CommandError> {
        self.look_at_drives().await;
        let found = self.found_pools();
        let array = match &kept {
            Some(kept) if !kept.is_pristine() => Some(kept.array()),
            _ => most_frequent(found.iter().map(|(_, (array, paths))| (*array, paths.len()))),
        };
        let ours = found.iter().filter(|(_, (of, _))| Some(*of) == array);
        join_all(ours.map(|(id, (_, paths))| self.claim_pool(*id, paths)).collect::<Vec<_>>()).await;
        let kept = kept.filter(|kept| array.is_none_or(|array| kept.array() == array));
        let newest = self.newest_catalog(kept).await?;
        self.look_at_drives().await;
        match (newest, array) {
            (None, Some(array)) => self.catalog_of_pools_without(array).map(Some),
            (newest, _) => Ok(newest),
        }
    }

    /// The newest of the `kept` catalog and those in the pools. A pool whose catalog cannot be read is closed.
    async fn newest_catalog(&self, kept: Option<Catalog>) -> Result<Option<Catalog>, CommandError> {
        let mut newest = kept;
        let online = self.state.borrow().online();
        for membership in online {
            let lane = self.context.lanes.get(membership.pool, 0).expect("lane 0 lives on shard 0");
            let bytes = match lane.load_catalog().await {
                Ok(bytes) => bytes,
                Err(error) => {
                    self.close_pool(membership.pool, format!("its catalog cannot be read: {error}")).await;
                    continue;
                }
            };
            let whence = format!("pool {}", membership.name);
            let stored = bytes.map(|bytes| decode(&bytes, &whence)).transpose()?;
            let is_newer =
                |stored: &Catalog| newest.as_ref().is_none_or(|known| stored.version() > known.version());
            if let Some(stored) = stored.filter(|stored| stored.array() == membership.array).filter(is_newer)
            {
                newest = Some(stored);
            }
        }
        Ok(newest)
    }

    /// Pools without a catalog: the program ended in the middle of making the first one. Unless one of them
    /// is not open: then the catalog may be there.
    fn catalog_of_pools_without(&self, array: ArrayId) -> Result<Catalog, CommandError> {
        for pool in &self.state.borrow().pools {
            if let Some(reason) = &pool.offline {
                let message =
                    format!("what describes the array is in pool {}, which is offline: {reason}", pool.name);
                let hint = "bring its drives back, and restart";
                return Err(CommandError::new(CommandErrorKind::Unavailable, message, hint));
            }
        }
        Ok(Catalog::new(array, self.parameters.array_name.parse()?))
    }

    /// Pools by the labels of the drives that were looked at: the array that they belong to, and the drives.
    fn found_pools(&self) -> BTreeMap<PoolId, (ArrayId, Vec<String>)> {
        let mut found = BTreeMap::new();
        for drive in &self.state.borrow().drives {
            if let Some((pool, array)) = drive.member_of {
                found.entry(pool).or_insert((array, Vec::new())).1.push(drive.path.clone());
            }
        }
        found
    }

    /// Claims a pool of drives that carry its label, and opens it.
    async fn claim_pool(&self, id: PoolId, paths: &[String]) {
        let opened = join_all(paths.iter().map(|path| self.open_and_probe(path)).collect::<Vec<_>>()).await;
        let mut drives = Vec::new();
        let mut name = id.to_string();
        for Probed { handle, info, content } in opened.into_iter().flatten() {
            match content {
                Content::Member(label) if label.pool == id => {
                    name = label.pool_name;
                    drives.push((handle, info));
                }
                _ => self.close_drive(handle).await,
            }
        }
        let infos = drives.iter().map(|(_, info)| info.clone()).collect();
        self.state.borrow_mut().pools.push(Pool {
            id,
            name,
            membership: None,
            infos,
            offline: Some("it is being opened".to_owned()),
            recording: Semaphore::new(&self.context.io, 1),
        });
        let result = match pool::claim(&self.context.io, drives.clone()).await {
            Ok(membership) => self.open_lanes(membership).await,
            Err(error) => Err(error),
        };
        if let Err(error) = result {
            for (handle, _) in drives {
                self.close_drive(handle).await;
            }
            let mut state = self.state.borrow_mut();
            match error {
                // there is none: its drives can be used for another
                PoolError::Unfinished => state.pools.retain(|pool| pool.id != id),
                error => state.pool_mut(id).expect("just added").offline = Some(error.to_string()),
            }
        }
    }

    /// Adds a pool that was just made, and opens it.
    pub(super) async fn open_new_pool(
        &self,
        membership: Membership,
        infos: Vec<DriveInfo>,
    ) -> Result<(), PoolError> {
        let (id, name) = (membership.pool, membership.name.clone());
        let recording = Semaphore::new(&self.context.io, 1);
        let offline = Some("it is being opened".to_owned());
        self.state.borrow_mut().pools.push(Pool { id, name, membership: None, infos, offline, recording });
        self.open_lanes(membership).await
    }

    /// Opens all lanes of a claimed pool, each on its shard, side by side.
    async fn open_lanes(&self, membership: Membership) -> Result<(), PoolError> {
        let (id, shards) = (membership.pool, self.context.shards);
        if let Some(pool) = self.state.borrow_mut().pool_mut(id) {
            pool.membership = Some(membership.clone());
        }
        let open =
            |lane| self.context.ask(lanes::home(lane, shards), Call::OpenLane(membership.clone(), lane));
        let answers = join_all((0..membership.lanes).map(open).collect::<Vec<_>>()).await;
        let failed = answers.into_iter().find_map(|answer| match answer {
            Answer::LaneOpened(result) => result.err(),
            other => unreachable!("the answer to opening a lane, not {other:?}"),
        });
        if let Some(error) = failed {
            self.context.ask_all(|| Call::CloseLanes(id)).await;
            if let Some(pool) = self.state.borrow_mut().pool_mut(id) {
                pool.membership = None;
            }
            return Err(error);
        }
        self.state.borrow_mut().pool_mut(id).expect("it is being opened").offline = None;
        Ok(())
    }

    /// Brings the catalog and the pools in line: what a sudden end has left half done is finished or undone.
    pub(super) async fn settle_pools(&self) -> Result<(), CommandError> {
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
        let online = self.state.borrow().online();
        for membership in online {
            if let Err(error) = self.settle_layers(&membership).await {
                self.close_pool(membership.pool, error.to_string()).await;
            }
        }
        let bytes = Bytes::from(self.state.borrow().catalog.encode());
        // the next change stores it too
        if let Err(error) = self.store_catalog(&bytes).await {
            self.unsettled.borrow_mut().push(error);
        }
        Ok(())
    }

    /// Pools that the catalog knows and no drive has shown.
    fn add_absent_pools(&self) {
        let mut state = self.state.borrow_mut();
        let entries = state.catalog.pools().to_vec();
        for entry in entries {
            if state.pools.iter().any(|pool| pool.id == entry.id) {
                continue;
            }
            state.pools.push(Pool {
                id: entry.id,
                name: entry.name.to_string(),
                membership: None,
                infos: Vec::new(),
                offline: Some("none of its drives has been found".to_owned()),
                recording: Semaphore::new(&self.context.io, 1),
            });
        }
    }

    /// Makes the catalog durable in every pool that is served.
    pub(super) async fn store_catalog(&self, bytes: &Bytes) -> Result<(), CommandError> {
        let online = self.state.borrow().online();
        let store = |membership: &Membership| {
            let lane = self.context.lanes.get(membership.pool, 0).expect("lane 0 lives on shard 0");
            let bytes = bytes.clone();
            async move { lane.store_catalog(&bytes).await }
        };
        let results = join_all(online.iter().map(store).collect::<Vec<_>>()).await;
        let mut errors = online.iter().zip(&results).filter_map(|(membership, result)| {
            let error = result.as_ref().err()?;
            Some(format!("pool {} cannot store the change: {error}", membership.name))
        });
        match errors.next() {
            // where one pool has it, it is the newest at the next start
            Some(message) if results.iter().all(|result| result.is_err()) => Err(CommandError::new(
                CommandErrorKind::Unavailable,
                message,
                "`tangelo status` says what is wrong",
            )),
            _ => Ok(()),
        }
    }

    /// A lane has met a drive that does not answer or refuses writes: recorded on the others, and told to all
    /// lanes. `false` where service cannot go on.
    pub(crate) async fn drive_failed(&self, id: PoolId, drive: u8, error: IoError) -> bool {
        let recording = self.state.borrow_mut().pool_mut(id).map(|pool| pool.recording.clone());
        let Some(recording) = recording else { return false };
        let _turn = recording.acquire(1).await;
        let known = self.state.borrow_mut().pool_mut(id).and_then(|pool| pool.membership.clone());
        let Some(mut membership) = known else { return false };
        if membership.members[usize::from(drive)].state == pool::DriveState::Online {
            let recorded = membership.take_out(&self.context.io, drive, error).await;
            let mut state = self.state.borrow_mut();
            let Some(pool) = state.pool_mut(id) else { return false };
            pool.membership = Some(membership.clone());
            if recorded.is_err() {
                pool.offline = Some("more drives have failed than its protection allows".to_owned());
                return false;
            }
        }
        self.context.ask_all(|| Call::Adopt(membership.clone())).await;
        true
    }

    /// Closes every pool, for the end.
    pub(super) async fn close_pools(&self) {
        let ids: Vec<PoolId> = self.state.borrow().pools.iter().map(|pool| pool.id).collect();
        for id in ids {
            self.close_pool(id, "the array is stopping".to_owned()).await;
        }
    }

    /// Writes last checkpoints, closes every lane of the pool, and gives its drives up.
    async fn close_pool(&self, id: PoolId, reason: String) {
        let membership = {
            let mut state = self.state.borrow_mut();
            let pool = state.pool_mut(id).expect("a pool that is known");
            pool.offline = Some(reason);
            pool.membership.take()
        };
        self.context.ask_all(|| Call::CloseLanes(id)).await;
        for handle in membership.iter().flat_map(|m| &m.members).filter_map(|member| member.handle) {
            self.close_drive(handle).await;
        }
    }

    pub(super) fn check_pool_online(&self, name: &str) -> Result<(), CommandError> {
        let state = self.state.borrow();
        let offline = state.pools.iter().find(|pool| pool.name == name).and_then(|pool| pool.offline.clone());
        match offline {
            None => Ok(()),
            Some(reason) => {
                let message = format!("pool {name} is offline: {reason}");
                Err(CommandError::new(
                    CommandErrorKind::Unavailable,
                    message,
                    "bring its drives back, and restart",
                ))
            }
        }
    }

    /// The open pool that this drive belongs to.
    pub(super) fn pool_of_drive(&self, path: &str) -> Option<String> {
        let state = self.state.borrow();
        let has = |membership: &Membership| membership.members.iter().any(|member| member.path == path);
        let mut pools = state.pools.iter().filter(|pool| pool.membership.as_ref().is_some_and(has));
        pools.next().map(|pool| pool.name.clone())
    }
}

/// The array to which the most drives belong.
fn most_frequent(arrays: impl Iterator<Item = (ArrayId, usize)>) -> Option<ArrayId> {
    let mut counts: BTreeMap<ArrayId, usize> = BTreeMap::new();
    arrays.for_each(|(array, drives)| *counts.entry(array).or_default() += drives);
    counts.into_iter().max_by_key(|(_, drives)| *drives).map(|(array, _)| array)
}
