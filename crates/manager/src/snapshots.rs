//! Commands about snapshots and clones.
//!
//! The layer is made in every lane, then the catalog names it, then the command is answered. A layer that no catalog
//! names is dropped, at the latest at the next start. While snapshots are taken, every shard holds back writes to their
//! volumes. So the snapshots contain all writes that were acknowledged before, in all lanes of all volumes, and no
//! later write.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use base::{BLOCK_BYTES, LayerId, Nanos, PoolId, VolumeId};
use catalog::{Catalog, Change, Name, Snapshot, Volume};
use pool::LayerSpace;
use task::{join_all, race};

use shard::{ShardCall, pool_layer};

use crate::bin::given_back;
use crate::change::Planned;
use crate::manager::Manager;
use api::{
    CommandError, CommandErrorKind, CopyOrder, CopySpace, Made, PoolStep, Reply, SnapshotStatus, SnapshotStep,
};

/// How long running writes may take to end when a snapshot is requested, and how long the snapshot may take then; later
/// writes wait meanwhile.
const HOLD_TIME_MAX: Nanos = Nanos::from_secs(5);

impl Manager {
    pub(crate) async fn copy(&self, order: CopyOrder, dry_run: bool) -> Result<Reply, CommandError> {
        match &order {
            CopyOrder::Promote { volume } => return self.promote(volume, dry_run).await,
            CopyOrder::Refresh { .. } => return self.refresh_clones(&order, dry_run).await,
            CopyOrder::Undelete { volume } => return self.undelete(volume, dry_run).await,
            CopyOrder::Eradicate { volume } => return self.eradicate(volume, dry_run).await,
            _ => {}
        }
        let (change, steps) = planned_change(&order, self.context.io.wall_clock_ms())?;
        let planned = self.plan(&change)?.steps(steps);
        let names: Vec<&String> = match &order {
            CopyOrder::Snapshot { snapshots } => snapshots.iter().map(|(volume, _)| volume).collect(),
            CopyOrder::DeleteSnapshot { volume, .. }
            | CopyOrder::RollBack { volume, .. }
            | CopyOrder::Clone { volume, .. }
            | CopyOrder::CopyVolume { volume, .. } => vec![volume],
            CopyOrder::Promote { .. }
            | CopyOrder::Refresh { .. }
            | CopyOrder::Undelete { .. }
            | CopyOrder::Eradicate { .. } => unreachable!("carried out above"),
        };
        let known = |name: &&String| {
            let state = self.state.borrow();
            state.catalog.find_volume(name).expect("the plan found it").clone()
        };
        let volumes: Vec<Volume> = names.iter().map(known).collect();
        for volume in &volumes {
            let pool = planned.next.pool(place(volume).0).expect("the pool of a volume");
            self.check_pool_online(pool.name.as_str())?;
        }
        let planned = planned.steps(self.gives_back(&order, &volumes[0]).await);
        if dry_run {
            return Ok(planned.reply(true, None));
        }
        let made = self.carry_out_copy(&order, &volumes, &planned).await?;
        Ok(planned.reply(false, made))
    }

    /// The space that deleting a snapshot frees.
    async fn gives_back(&self, order: &CopyOrder, volume: &Volume) -> Option<PoolStep> {
        let CopyOrder::DeleteSnapshot { snapshot, .. } = order else { return None };
        let layer = self.state.borrow().catalog.find_snapshot(volume.id, snapshot)?.layer;
        let freed_blocks = self.freed_by(place(volume).0, layer).await?;
        Some(given_back(freed_blocks, self.has_copies(place(volume).0)))
    }

    async fn carry_out_copy(
        &self,
        order: &CopyOrder,
        volumes: &[Volume],
        planned: &Planned,
    ) -> Result<Option<Made>, CommandError> {
        let volume = &volumes[0];
        let (pool, layer) = place(volume);
        let frozen = |name: &str| {
            let state = self.state.borrow();
            state.catalog.find_snapshot(volume.id, name).expect("the plan found it").layer
        };
        match order {
            CopyOrder::Snapshot { snapshots } => {
                self.take_snapshots(volumes, planned).await?;
                let taken = snapshots.iter().zip(volumes).filter_map(|((_, name), volume)| {
                    Some((volume.clone(), planned.next.find_snapshot(volume.id, name)?.clone()))
                });
                Ok(Some(Made::Snapshots(self.snapshot_statuses(taken.collect()).await)))
            }
            CopyOrder::DeleteSnapshot { snapshot, .. } => {
                let layer = frozen(snapshot);
                self.commit(&planned.next).await?;
                self.drop_layer(pool, layer).await;
                Ok(None)
            }
            CopyOrder::RollBack { snapshot, .. } => {
                self.grow_volumes(planned, &[(volume.id, frozen(snapshot))]).await?;
                self.drop_layer(pool, layer).await;
                Ok(self.made_volume(volume.id).await)
            }
            CopyOrder::Clone { snapshot, name, .. } => {
                let clone = planned.next.find_volume(name).expect("just made").id;
                self.grow_volumes(planned, &[(clone, frozen(snapshot))]).await?;
                Ok(self.made_volume(clone).await)
            }
            CopyOrder::CopyVolume { name, .. } => {
                let copy = planned.next.find_volume(name).expect("just made").id;
                self.grow_held(planned, &[volume.id], &[(volume.id, layer), (copy, layer)]).await?;
                // both volumes are above it, and it belongs to nobody
                self.drop_layer(pool, layer).await;
                Ok(self.made_volume(copy).await)
            }
            CopyOrder::Promote { .. }
            | CopyOrder::Refresh { .. }
            | CopyOrder::Undelete { .. }
            | CopyOrder::Eradicate { .. } => unreachable!("carried out elsewhere"),
        }
    }

    /// Promotes a clone. Only the catalog changes: layers stay where they are.
    async fn promote(&self, name: &str, dry_run: bool) -> Result<Reply, CommandError> {
        let planned = self.plan(&Change::PromoteVolume { volume: name.to_owned() })?;
        let id = planned.next.find_volume(name).expect("the plan found it").id;
        let steps: Vec<SnapshotStep> = {
            let state = self.state.borrow();
            let owner = |snapshot: &&Snapshot| {
                let before = state.catalog.snapshots().iter().find(|one| one.layer == snapshot.layer)?;
                state.catalog.volume(before.volume).filter(|owner| owner.id != id)
            };
            let taken = planned.next.snapshots_of(id).filter_map(|one| Some((owner(&one)?, &one.name)));
            let step = |(owner, one): (&Volume, &Name)| SnapshotStep::MoveSnapshot {
                snapshot: one.to_string(),
                from_volume: owner.name.to_string(),
                to_volume: name.to_owned(),
            };
            taken.map(step).collect()
        };
        let planned = planned.steps(steps);
        if dry_run {
            return Ok(planned.reply(true, None));
        }
        self.commit(&planned.next).await?;
        let made = self.made_volume(id).await;
        Ok(planned.reply(false, made))
    }

    /// Holds back writes to all these volumes, moves the volumes to new layers above their present ones, and releases
    /// the writes.
    pub(crate) async fn take_snapshots(
        &self,
        volumes: &[Volume],
        planned: &Planned,
    ) -> Result<(), CommandError> {
        let ids: Vec<VolumeId> = volumes.iter().map(|volume| volume.id).collect();
        let grown: Vec<_> = volumes.iter().map(|volume| (volume.id, place(volume).1)).collect();
        self.grow_held(planned, &ids, &grown).await
    }

    /// Like [`Manager::grow_volumes`], while writes to these volumes are held back.
    async fn grow_held(
        &self,
        planned: &Planned,
        held: &[VolumeId],
        grown: &[(VolumeId, LayerId)],
    ) -> Result<(), CommandError> {
        let held: Arc<[VolumeId]> = held.into();
        let let_go = || self.context.ask_all(|| ShardCall::HoldWrites(held.clone(), false));
        if let Err(error) = self.hold_writes(&held).await {
            let_go().await;
            return Err(error);
        }
        let mut growing = std::pin::pin!(self.grow_volumes(planned, grown));
        let made = loop {
            match race(growing.as_mut(), self.context.io.sleep(HOLD_TIME_MAX)).await {
                Ok(made) => break Some(made),
                // this may last forever: layers that are already frozen refuse writes for want of space
                Err(_) if self.waits_for_space(&pools_of(planned, grown)).await => break None,
                Err(_) => {}
            }
        };
        let_go().await;
        match made {
            Some(made) => made,
            None => growing.await,
        }
    }

    /// Makes the new layers of the plan's volumes, each above another layer, and then makes the plan durable.
    pub(crate) async fn grow_volumes(
        &self,
        planned: &Planned,
        grown: &[(VolumeId, LayerId)],
    ) -> Result<(), CommandError> {
        let tops = grown.iter().map(|&(volume, below)| {
            let volume = planned.next.volume(volume).expect("the plan has it");
            let (pool, layer) = place(volume);
            (pool, layer, volume.size_bytes, below)
        });
        let tops: Vec<_> = tops.collect();
        for pool in pools_of(planned, grown) {
            self.check_takes_writes(pool).await?;
        }
        let create = |&(pool, layer, size_bytes, below): &(PoolId, LayerId, u64, LayerId)| {
            self.create_layer(pool, layer, size_bytes, Some(below))
        };
        let created = join_all(tops.iter().map(create).collect::<Vec<_>>()).await;
        let layers: Vec<(PoolId, LayerId)> = tops.iter().map(|&(pool, layer, ..)| (pool, layer)).collect();
        if let Err(error) = created.into_iter().collect::<Result<(), _>>() {
            self.pass_over_layers(&planned.next);
            self.drop_layers(layers).await;
            return Err(error);
        }
        let made = self.commit(&planned.next).await;
        if made.is_err() {
            self.pass_over_layers(&planned.next);
            self.leftover.borrow_mut().extend(layers);
            self.drop_leftover().await;
        }
        made
    }

    /// Layers of a failed plan, complete or not, must not become part of another plan.
    pub(crate) fn pass_over_layers(&self, plan: &Catalog) {
        self.state.borrow_mut().catalog.pass_over_layers(plan.next_layer());
    }

    /// Drops layers of plans that could not be made durable, but only after a newer catalog is durable: a start might
    /// still find the plan, and would miss them.
    pub(crate) async fn drop_leftover(&self) {
        if self.leftover.borrow().is_empty() || !self.forget_plan().await {
            return;
        }
        let layers = std::mem::take(&mut *self.leftover.borrow_mut());
        self.drop_layers(layers).await;
    }

    async fn drop_layers(&self, layers: Vec<(PoolId, LayerId)>) {
        for (pool, layer) in layers {
            self.drop_layer(pool, layer).await;
        }
    }

    /// A catalog that was not made durable everywhere may be in some pool: writes a newer one with the earlier contents
    /// over it. Returns whether that is durable.
    async fn forget_plan(&self) -> bool {
        let current = self.state.borrow().catalog.clone();
        let same = Change::RenameArray { name: current.name().clone() };
        match current.apply(&same).and_then(|next| next.apply(&same)) {
            Ok(newer) => self.commit(&newer).await.is_ok(),
            Err(_) => false,
        }
    }

    /// On every shard; ends when no write is in flight on any. Hosts do not wait forever.
    pub(crate) async fn hold_writes(&self, volumes: &Arc<[VolumeId]>) -> Result<(), CommandError> {
        let held = self.context.ask_all(|| ShardCall::HoldWrites(volumes.clone(), true));
        match race(held, self.context.io.sleep(HOLD_TIME_MAX)).await {
            Ok(_) => Ok(()),
            Err(_) => {
                let seconds = HOLD_TIME_MAX.0 / Nanos::from_secs(1).0;
                let message = format!("writes that are under way do not end within {seconds} s");
                let hint = "`tangelo status` says what is wrong; nothing was changed";
                Err(CommandError::new(CommandErrorKind::Unavailable, message, hint))
            }
        }
    }

    /// The snapshots of one volume, or of all.
    pub(crate) async fn list_snapshots(&self, volume: Option<String>) -> Result<Reply, CommandError> {
        let found: Vec<(Volume, Snapshot)> = {
            let state = self.state.borrow();
            let only = match &volume {
                Some(name) => Some(state.catalog.find_volume(name).ok_or_else(|| missing(name))?.id),
                None => None,
            };
            let wanted = |of: VolumeId| only.is_none_or(|only| only == of);
            let snapshots = state.catalog.snapshots().iter().filter(|snapshot| wanted(snapshot.volume));
            let with_volume = |snapshot: &Snapshot| {
                (state.catalog.volume(snapshot.volume).expect("it has one").clone(), snapshot.clone())
            };
            snapshots.map(with_volume).collect()
        };
        Ok(Reply::Snapshots(self.snapshot_statuses(found).await))
    }

    async fn snapshot_statuses(&self, snapshots: Vec<(Volume, Snapshot)>) -> Vec<SnapshotStatus> {
        let mut pools = BTreeMap::new();
        let mut statuses = Vec::new();
        for (volume, snapshot) in snapshots {
            let (pool, _) = place(&volume);
            if let Entry::Vacant(entry) = pools.entry(pool) {
                entry.insert(self.copy_spaces(pool).await);
            }
            let space = pools[&pool].get(&pool_layer(snapshot.layer)).copied();
            let freed_blocks = self.freed_by(pool, snapshot.layer).await;
            statuses.push(SnapshotStatus {
                volume: volume.name.to_string(),
                name: snapshot.name.to_string(),
                size_bytes: snapshot.size_bytes,
                created_ms: snapshot.created_ms,
                schedule: snapshot.schedule.as_ref().map(|schedule| schedule.to_string()),
                // hosts write meanwhile: the two figures are not of the same moment
                space: space.zip(freed_blocks).map(|(space, freed_blocks)| {
                    let unique_bytes = bytes(freed_blocks).min(space.used_bytes);
                    CopySpace::new(space.written_bytes, space.used_bytes, unique_bytes)
                }),
            });
        }
        statuses
    }

    /// The space of a pool's volumes and snapshots, by the ids of their layers, according to the counts.
    pub(crate) async fn copy_spaces(&self, pool: PoolId) -> BTreeMap<LayerId, CopySpace> {
        let Some(membership) = self.state.borrow().online_pool(pool) else { return BTreeMap::new() };
        let mut layers = self.layer_spaces(pool).await;
        layers.retain(|_, (lanes, _)| *lanes == membership.lanes);
        let space = |LayerSpace { own_blocks, below_blocks, alone_blocks }| {
            CopySpace::new(bytes(own_blocks), bytes(own_blocks + below_blocks), bytes(alone_blocks))
        };
        layers.into_iter().map(|(layer, (_, found))| (layer, space(found))).collect()
    }
}

/// The change of the catalog, and its steps.
fn planned_change(order: &CopyOrder, created_ms: u64) -> Result<(Change, Vec<SnapshotStep>), CommandError> {
    Ok(match order.clone() {
        CopyOrder::Snapshot { snapshots } => {
            let step = |(volume, snapshot): &(String, String)| {
                let (volume, snapshot) = (volume.clone(), snapshot.clone());
                SnapshotStep::TakeSnapshot { volume, snapshot }
            };
            let steps = snapshots.iter().map(step).collect();
            let named = |(volume, name): (String, String)| Ok((volume, name.parse::<Name>()?));
            let snapshots = snapshots.into_iter().map(named).collect::<Result<_, CommandError>>()?;
            (Change::TakeSnapshots { snapshots, created_ms }, steps)
        }
        CopyOrder::DeleteSnapshot { volume, snapshot } => {
            let step = SnapshotStep::DeleteSnapshot { volume: volume.clone(), snapshot: snapshot.clone() };
            (Change::DeleteSnapshot { volume, snapshot }, vec![step])
        }
        CopyOrder::RollBack { volume, snapshot } => {
            let step = SnapshotStep::RollBackVolume { volume: volume.clone(), snapshot: snapshot.clone() };
            (Change::RollBack { volume, snapshot }, vec![step])
        }
        CopyOrder::Clone { volume, snapshot, name } => {
            let clone = Change::CloneVolume {
                volume: volume.clone(),
                snapshot: snapshot.clone(),
                name: name.parse()?,
                created_ms,
            };
            (clone, vec![SnapshotStep::CloneVolume { clone: name, volume, snapshot }])
        }
        CopyOrder::CopyVolume { volume, name } => {
            let copy = Change::CopyVolume { volume: volume.clone(), name: name.parse()?, created_ms };
            (copy, vec![SnapshotStep::CopyVolume { copy: name, volume }])
        }
        CopyOrder::Promote { .. }
        | CopyOrder::Refresh { .. }
        | CopyOrder::Undelete { .. }
        | CopyOrder::Eradicate { .. } => unreachable!("carried out elsewhere"),
    })
}

/// The pools of the volumes that get new layers by a plan.
fn pools_of(planned: &Planned, grown: &[(VolumeId, LayerId)]) -> BTreeSet<PoolId> {
    grown.iter().map(|&(id, _)| place(planned.next.volume(id).expect("the plan has it")).0).collect()
}

/// The pool and layer of a volume. Only volumes in pools have copies, which the catalog has checked.
fn place(volume: &Volume) -> (PoolId, LayerId) {
    volume.place().expect("the catalog refuses copies of what is not in a pool")
}

fn missing(volume: &str) -> CommandError {
    let message = format!("there is no volume called \"{volume}\"");
    CommandError::new(CommandErrorKind::NotFound, message, "`tangelo volume list` shows what there is")
}

fn bytes(blocks: u64) -> u64 {
    blocks * BLOCK_BYTES as u64
}
