//! Commands about snapshots and clones.
//!
//! The layer is made in every lane, then the catalog names it, then it is answered; a layer that no catalog names is
//! dropped, by the next start at the latest. While a snapshot is taken, writes to its volume are held back on every
//! shard: what was acknowledged before is in it, in all lanes, and nothing that came later.

use base::{BLOCK_BYTES, LayerId, Nanos, PoolId, VolumeId};
use catalog::{Change, Volume, VolumeKind};

use super::Array;
use super::change::Planned;
use crate::command::{CommandError, CommandErrorKind, CopyOrder, Made, Reply, SnapshotStatus};
use crate::message::Call;

/// How long writes that are under way when a snapshot is asked for may take to end; later ones wait meanwhile.
const HOLD_TIME_MAX: Nanos = Nanos::from_secs(5);

impl Array {
    pub(super) async fn copy(&self, order: CopyOrder, dry_run: bool) -> Result<Reply, CommandError> {
        let now = self.context.io.wall_clock_ms();
        let (change, line) = match &order {
            CopyOrder::Snapshot { volume, name } => (
                Change::TakeSnapshot { volume: volume.clone(), name: name.parse()?, created_ms: now },
                format!("take snapshot {volume}@{name}"),
            ),
            CopyOrder::DeleteSnapshot { volume, snapshot } => (
                Change::DeleteSnapshot { volume: volume.clone(), snapshot: snapshot.clone() },
                format!("delete snapshot {volume}@{snapshot}"),
            ),
            CopyOrder::RollBack { volume, snapshot } => (
                Change::RollBack { volume: volume.clone(), snapshot: snapshot.clone() },
                format!("roll volume {volume} back to {volume}@{snapshot}; what was written since is gone"),
            ),
            CopyOrder::Clone { volume, snapshot, name } => (
                Change::CloneVolume {
                    volume: volume.clone(),
                    snapshot: snapshot.clone(),
                    name: name.parse()?,
                    created_ms: now,
                },
                format!("create volume {name}, a clone of {volume}@{snapshot}"),
            ),
        };
        let planned = self.plan(&change)?.line(line);
        let volume = match &order {
            CopyOrder::Snapshot { volume, .. }
            | CopyOrder::DeleteSnapshot { volume, .. }
            | CopyOrder::RollBack { volume, .. }
            | CopyOrder::Clone { volume, .. } => volume,
        };
        let volume = self.state.borrow().catalog.find_volume(volume).expect("the plan found it").clone();
        let (pool, _) = place(&volume);
        self.check_pool_online(planned.next.pool(pool).expect("the pool of a volume").name.as_str())?;
        if dry_run {
            return Ok(planned.reply(true, None));
        }
        let made = self.carry_out_copy(&order, &volume, &planned).await?;
        Ok(planned.reply(false, made))
    }

    async fn carry_out_copy(
        &self,
        order: &CopyOrder,
        volume: &Volume,
        planned: &Planned,
    ) -> Result<Option<Made>, CommandError> {
        let (pool, layer) = place(volume);
        let frozen = |name: &str| {
            let state = self.state.borrow();
            state.catalog.find_snapshot(volume.id, name).expect("the plan found it").layer
        };
        match order {
            CopyOrder::Snapshot { .. } => {
                let held = self.hold_writes(volume).await;
                let grown = match held {
                    Ok(()) => self.grow_volume(planned, volume.id, layer).await,
                    Err(error) => Err(error),
                };
                self.context.ask_all(|| Call::HoldWrites(volume.id, false)).await;
                grown?;
                Ok(self.volume_status(volume.id).map(|status| Made::Volume(Box::new(status))))
            }
            CopyOrder::DeleteSnapshot { snapshot, .. } => {
                let layer = frozen(snapshot);
                self.commit(&planned.next).await?;
                self.drop_layer(pool, layer).await;
                Ok(None)
            }
            CopyOrder::RollBack { snapshot, .. } => {
                self.grow_volume(planned, volume.id, frozen(snapshot)).await?;
                self.drop_layer(pool, layer).await;
                Ok(self.volume_status(volume.id).map(|status| Made::Volume(Box::new(status))))
            }
            CopyOrder::Clone { snapshot, name, .. } => {
                let clone = planned.next.find_volume(name).expect("just made").id;
                self.grow_volume(planned, clone, frozen(snapshot)).await?;
                Ok(self.volume_status(clone).map(|status| Made::Volume(Box::new(status))))
            }
        }
    }

    /// Makes the layer in which the plan has the volume go on, over `parent`, then the plan durable.
    async fn grow_volume(
        &self,
        planned: &Planned,
        volume: VolumeId,
        parent: LayerId,
    ) -> Result<(), CommandError> {
        let volume = planned.next.volume(volume).expect("the plan has it");
        let (pool, layer) = place(volume);
        let made = match self.create_layer(pool, layer, volume.size_bytes, Some(parent)).await {
            Ok(()) => self.commit(&planned.next).await,
            Err(error) => Err(error),
        };
        if made.is_err() {
            self.take_back(pool, layer).await;
        }
        made
    }

    /// The layer is not needed; what was below it can be written again. The catalog that names it may have come into
    /// some pool: a newer one, which does not, goes over it.
    async fn take_back(&self, pool: PoolId, layer: LayerId) {
        let current = self.state.borrow().catalog.clone();
        let same = Change::RenameArray { name: current.name().clone() };
        let newer = current.apply(&same).and_then(|next| next.apply(&same));
        if let Ok(newer) = newer {
            // where this fails too, the start finds out which catalog counts
            let _ = self.commit(&newer).await;
        }
        self.drop_layer(pool, layer).await;
    }

    /// On every shard; comes back when no write is under way on any. Hosts do not wait for ever.
    async fn hold_writes(&self, volume: &Volume) -> Result<(), CommandError> {
        let held = self.context.ask_all(|| Call::HoldWrites(volume.id, true));
        match task::race(held, self.context.io.sleep(HOLD_TIME_MAX)).await {
            Ok(_) => Ok(()),
            Err(_) => {
                let message = format!("writes to volume {} do not end", volume.name);
                let hint = "`tangelo status` says what is wrong; no snapshot was taken";
                Err(CommandError::new(CommandErrorKind::Unavailable, message, hint))
            }
        }
    }

    pub(super) async fn list_snapshots(&self, volume: &str) -> Result<Reply, CommandError> {
        let (found, snapshots) = {
            let state = self.state.borrow();
            let Some(found) = state.catalog.find_volume(volume).cloned() else {
                let message = format!("there is no volume called \"{volume}\"");
                let hint = "`tangelo volume list` shows what there is";
                return Err(CommandError::new(CommandErrorKind::NotFound, message, hint));
            };
            let snapshots: Vec<_> = state.catalog.snapshots_of(found.id).cloned().collect();
            (found, snapshots)
        };
        let mut listed = Vec::new();
        for snapshot in snapshots {
            let usage = match found.backing {
                VolumeKind::Pool { pool, .. } => self.layer_usage(pool, snapshot.layer).await,
                _ => None,
            };
            listed.push(SnapshotStatus {
                volume: found.name.to_string(),
                name: snapshot.name.to_string(),
                size_bytes: snapshot.size_bytes,
                created_ms: snapshot.created_ms,
                own_bytes: usage.map(|usage| usage.own_blocks * BLOCK_BYTES as u64),
                freed_bytes: usage.map(|usage| usage.freed_blocks * BLOCK_BYTES as u64),
            });
        }
        Ok(Reply::Snapshots(listed))
    }
}

/// Where a volume is. Only those in pools have copies, which the catalog has checked.
fn place(volume: &Volume) -> (PoolId, LayerId) {
    match volume.backing {
        VolumeKind::Pool { pool, layer } => (pool, layer),
        _ => unreachable!("the catalog refuses copies of what is not in a pool"),
    }
}
