//! Transfers of whole volumes by the control plane: exports of what a snapshot or a volume is, and imports of new
//! content. The design is in `docs/design/0015-bulk-channel.md`.
//!
//! ```text
//!   export of a volume:  freeze it, as for a copy ─► read the frozen layer ─► the lease is gone: forget it
//!   import:  set a layer aside, durably ─► write it ─► flush ─► one change of the catalog: it is the volume's
//!                                             └─ the lease is gone: drop it
//! ```
//!
//! What always holds: a transfer is announced to the shards before it is granted, and a layer is dropped after they know
//! that its transfer has ended. Until an import is complete, its volume is what it was.

use std::rc::Rc;

use api::{
    Command, CommandError, CommandErrorKind, Lease, Reply, TransferGrant, TransferId, TransferOrder,
    VolumeStep,
};
use base::limits::TRANSFERS_MAX;
use base::units::size;
use base::{LayerId, Nanos, PoolId, VolumeId};
use catalog::{Change, Volume};
use shard::{ShardCall, Transfer, pool_layer};
use task::race;

use crate::change::Planned;
use crate::layers::offline;
use crate::manager::Manager;
use crate::state::{RunningTransfer, TransferKind};

/// How often the manager looks whether a transfer is still wanted.
const LOOK: Nanos = Nanos::from_millis(500);
/// How long the last requests of a transfer may take.
const LEAVE_TIME_MAX: Nanos = Nanos::from_secs(30);

impl Manager {
    pub(crate) async fn transfer(self: &Rc<Self>, command: Command) -> Result<Reply, CommandError> {
        match command {
            Command::TransferBegin { order, lease, dry_run } => {
                self.begin_transfer(order, lease, dry_run).await
            }
            Command::TransferComplete { transfer, volume } => self.complete_transfer(transfer, &volume).await,
            other => unreachable!("{other:?} is not about transfers"),
        }
    }

    async fn begin_transfer(
        self: &Rc<Self>,
        order: TransferOrder,
        lease: Lease,
        dry_run: bool,
    ) -> Result<Reply, CommandError> {
        if self.transfers.borrow().len() >= TRANSFERS_MAX {
            let message = format!("{TRANSFERS_MAX} exports and imports are under way already");
            return Err(CommandError::new(CommandErrorKind::Unavailable, message, "try again later"));
        }
        match order {
            TransferOrder::Export { volume, snapshot } => {
                let volume = self.movable(&volume)?;
                let (kind, layer, size_bytes) = match snapshot {
                    Some(name) => self.frozen(&volume, &name)?,
                    None => self.freeze_for_export(&volume).await?,
                };
                self.announce_transfer(&volume, (kind, layer, size_bytes), lease).await
            }
            TransferOrder::Import { volume, length_bytes, overwrite } => {
                let volume = self.movable(&volume)?;
                let (aside, layer) = self.plan_import(&volume, length_bytes, overwrite).await?;
                if dry_run {
                    return Ok(aside.reply(true, None));
                }
                self.commit(&aside.next).await?;
                let (pool, _) = volume.place().expect("in a pool");
                if let Err(error) = self.create_layer(pool, layer, volume.size_bytes, None).await {
                    self.drop_layer(pool, layer).await;
                    return Err(error);
                }
                self.announce_transfer(
                    &volume,
                    (TransferKind::Import(volume.id), layer, volume.size_bytes),
                    lease,
                )
                .await
            }
        }
    }

    /// A volume in a pool that is online.
    fn movable(&self, name: &str) -> Result<Volume, CommandError> {
        let volume = self.state.borrow().catalog.find_volume(name).cloned();
        let Some(volume) = volume else {
            let message = format!("there is no volume called \"{name}\"");
            let hint = "`tangelo volume list` shows what there is";
            return Err(CommandError::new(CommandErrorKind::NotFound, message, hint));
        };
        let Some((pool, _)) = volume.place() else {
            let message =
                format!("volume {name} is not in a pool: only those that are can be exported and imported");
            return Err(CommandError::new(
                CommandErrorKind::Invalid,
                message,
                "read its device, if it has one",
            ));
        };
        let name = self.state.borrow().catalog.pool(pool).expect("the pool of a volume").name.clone();
        self.check_pool_online(name.as_str())?;
        Ok(volume)
    }

    fn frozen(&self, volume: &Volume, name: &str) -> Result<(TransferKind, LayerId, u64), CommandError> {
        let state = self.state.borrow();
        let snapshot = state.catalog.find_snapshot(volume.id, name).ok_or_else(|| {
            let message = format!("there is no snapshot called \"{}@{name}\"", volume.name);
            let hint = format!("`tangelo snapshot list {}` shows what there is", volume.name);
            CommandError::new(CommandErrorKind::NotFound, message, hint)
        })?;
        Ok((TransferKind::OfSnapshot, snapshot.layer, snapshot.size_bytes))
    }

    /// The volume goes on in a new layer, and its present one stays as it is now.
    async fn freeze_for_export(&self, volume: &Volume) -> Result<(TransferKind, LayerId, u64), CommandError> {
        let since_ms = self.context.io.wall_clock_ms();
        let planned = self.plan(&Change::FreezeVolume { volume: volume.name.to_string(), since_ms })?;
        self.take_snapshots(std::slice::from_ref(volume), &planned).await?;
        let (_, layer) = volume.place().expect("in a pool");
        Ok((TransferKind::OfVolume, layer, volume.size_bytes))
    }

    /// Sets a layer aside, where the volume can take a new content.
    async fn plan_import(
        &self,
        volume: &Volume,
        length_bytes: Option<u64>,
        overwrite: bool,
    ) -> Result<(Planned, LayerId), CommandError> {
        if let Some(length_bytes) = length_bytes.filter(|&length| length > volume.size_bytes) {
            let message = format!(
                "volume {} has {}, and there are {} to import",
                volume.name,
                size(volume.size_bytes),
                size(length_bytes)
            );
            let name = &volume.name;
            let hint = format!("`tangelo volume resize {name} SIZE` makes it larger");
            return Err(CommandError::new(CommandErrorKind::Invalid, message, hint));
        }
        let layer = self.state.borrow().catalog.next_layer();
        let aside = self.plan(&Change::SetLayerAside)?;
        // what would be refused at the end is refused now
        aside.next.apply(&replacement(volume, layer))?;
        let holds_data = self.beyond(volume, 0, false).await?;
        if holds_data && !overwrite {
            let message = format!("volume {} holds data, which an import would replace", volume.name);
            let hint = "import into a new volume, or use --overwrite";
            return Err(CommandError::new(CommandErrorKind::InUse, message, hint));
        }
        let fill = VolumeStep::FillVolume { volume: volume.name.to_string(), replaces: holds_data };
        Ok((aside.step(fill), layer))
    }

    /// Tells the shards of the transfer, and grants it.
    async fn announce_transfer(
        self: &Rc<Self>,
        volume: &Volume,
        (kind, layer, size_bytes): (TransferKind, LayerId, u64),
        lease: Lease,
    ) -> Result<Reply, CommandError> {
        let (pool, _) = volume.place().expect("in a pool");
        let Some(membership) = self.state.borrow().online_pool(pool) else { return Err(offline()) };
        self.last_transfer.set(self.last_transfer.get() + 1);
        let id = TransferId(self.last_transfer.get());
        let transfer = Transfer {
            id,
            pool,
            layer: pool_layer(layer),
            dealt_as: pool_layer(self.dealt_as(volume)),
            size_bytes,
            writes: matches!(kind, TransferKind::Import(_)).then_some(membership.epoch),
        };
        self.transfers.borrow_mut().insert(id, RunningTransfer { transfer, layer, kind });
        self.context.io.spawn(self.clone().watch_transfer(id, lease));
        self.broadcast().await;
        let array = self.state.borrow().catalog.array();
        Ok(Reply::TransferBegan(TransferGrant {
            transfer: id,
            shard: (layer.0 % u32::from(self.context.shards)) as u16,
            size_bytes,
            content: format!("{array}-{}", layer.0),
            can_resume: kind == TransferKind::OfSnapshot,
        }))
    }

    /// As the catalog says it now: freezing a volume records it.
    fn dealt_as(&self, volume: &Volume) -> LayerId {
        let state = self.state.borrow();
        let now = state.catalog.volume(volume.id).unwrap_or(volume);
        now.dealt_as.unwrap_or(volume.place().expect("in a pool").1)
    }

    /// Ends a transfer that nobody wants any more.
    async fn watch_transfer(self: Rc<Self>, id: TransferId, lease: Lease) {
        while !lease.is_gone() {
            self.context.io.sleep(LOOK).await;
            if !self.transfers.borrow().contains_key(&id) {
                return;
            }
        }
        let _turn = self.changes.acquire(1).await;
        if self.stopping.get() {
            return;
        }
        if let Some(moving) = self.end_transfer(id).await
            && let TransferKind::Import(_) = moving.kind
        {
            self.drop_layer(moving.transfer.pool, moving.layer).await;
        }
    }

    /// Afterwards no shard takes requests for it.
    async fn end_transfer(&self, id: TransferId) -> Option<RunningTransfer> {
        let moving = self.transfers.borrow_mut().remove(&id)?;
        self.broadcast().await;
        self.wake_keeper.notify();
        Some(moving)
    }

    /// What an import has written becomes the content of its volume.
    async fn complete_transfer(&self, id: TransferId, name: &str) -> Result<Reply, CommandError> {
        let is_there = self.transfers_now().iter().any(|transfer| transfer.id == id);
        let moving = self.end_transfer(id).await.filter(|_| is_there);
        let Some(RunningTransfer { transfer, layer, kind: TransferKind::Import(volume) }) = moving else {
            let message = format!("the import into volume {name} has ended: its pool was opened anew");
            let hint = "nothing was changed; import again";
            return Err(CommandError::new(CommandErrorKind::Unavailable, message, hint));
        };
        let (pool, planned) = (transfer.pool, self.plan_content(&transfer, volume, layer).await);
        let (before, planned) = match planned {
            Ok(planned) => planned,
            Err(error) => {
                self.drop_layer(pool, layer).await;
                return Err(error);
            }
        };
        if let Err(error) = self.commit(&planned.next).await {
            self.leftover.borrow_mut().push((pool, layer));
            self.drop_leftover().await;
            return Err(error);
        }
        self.drop_layer(pool, before).await;
        let made = self.made_volume(volume).await;
        Ok(planned.reply(false, made))
    }

    /// Makes what was written durable. Returns the layer that it replaces, and the change.
    async fn plan_content(
        &self,
        transfer: &Transfer,
        volume: VolumeId,
        layer: LayerId,
    ) -> Result<(LayerId, Planned), CommandError> {
        let left = self.context.ask_all(|| ShardCall::LeaveLayer(transfer.pool, transfer.layer));
        if race(left, self.context.io.sleep(LEAVE_TIME_MAX)).await.is_err() {
            let message = "the last writes of the import do not end";
            let hint = "`tangelo status` says what is wrong; nothing was changed";
            return Err(CommandError::new(CommandErrorKind::Unavailable, message, hint));
        }
        self.check_takes_writes(transfer.pool).await?;
        let volume = self.state.borrow().catalog.volume(volume).cloned().ok_or_else(|| {
            let message = "the volume was deleted while it was imported";
            CommandError::new(CommandErrorKind::NotFound, message, "")
        })?;
        let of_import = Volume { size_bytes: transfer.size_bytes, ..volume.clone() };
        let planned = self.plan(&replacement(&of_import, layer))?;
        let (_, before) = volume.place().expect("in a pool");
        Ok((before, planned.step(VolumeStep::ImportVolume { volume: volume.name.to_string() })))
    }

    /// The transfers of which shards are to know: those whose layer is there.
    pub(crate) fn transfers_now(&self) -> Vec<Transfer> {
        let state = self.state.borrow();
        let goes_on = |moving: &&RunningTransfer| match moving.kind {
            TransferKind::OfSnapshot => {
                state.catalog.all_snapshots().any(|snapshot| snapshot.layer == moving.layer)
            }
            TransferKind::OfVolume => state.catalog.is_copied_from(moving.transfer.pool, moving.layer),
            // a pool that was opened anew has dropped it
            TransferKind::Import(_) => state
                .online_pool(moving.transfer.pool)
                .is_none_or(|membership| Some(membership.epoch) == moving.transfer.writes),
        };
        self.transfers.borrow().values().filter(goes_on).map(|moving| moving.transfer.clone()).collect()
    }

    /// Whether a transfer reads this layer.
    pub(crate) fn is_exported(&self, pool: PoolId, layer: LayerId) -> bool {
        let transfers = self.transfers.borrow();
        transfers.values().any(|moving| moving.transfer.pool == pool && moving.layer == layer)
    }
}

fn replacement(volume: &Volume, layer: LayerId) -> Change {
    Change::ReplaceContent { volume: volume.name.to_string(), layer, size_bytes: volume.size_bytes }
}
