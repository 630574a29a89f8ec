//! Makes volumes larger and smaller while hosts use them.
//!
//! The catalog changes first, so a crash never takes back a size that a host has seen. After that, the blocks beyond
//! the new end are freed. The volume cannot grow again before this is done, so no host ever sees their old contents.

use std::sync::Arc;

use base::{BLOCK_BYTES, VolumeId};
use catalog::{Change, Volume};
use pool::{LaneOutput, LaneRequest, PoolVolume};

use shard::{Answer, Call, ShardCall, pool_layer};

use crate::change::Planned;
use crate::failure::lane_failure;
use crate::layers::offline;
use crate::manager::Manager;
use api::{CommandError, CommandErrorKind, Reply, VolumeStep};
use base::units::size;

impl Manager {
    pub(crate) async fn resize_volume(
        &self,
        name: &str,
        size_bytes: u64,
        force: bool,
        dry_run: bool,
    ) -> Result<Reply, CommandError> {
        let known = self.state.borrow().catalog.find_volume(name).cloned();
        if let Some(volume) = known.filter(|volume| volume.untrimmed && !dry_run) {
            self.trim(&volume).await?;
        }
        let planned = self.plan(&Change::ResizeVolume { volume: name.to_owned(), size_bytes })?;
        let volume = self.state.borrow().catalog.find_volume(name).expect("the plan found it").clone();
        if let Some((pool, _)) = volume.place() {
            let entry = planned.next.pool(pool).expect("the pool of a volume");
            self.check_pool_online(entry.name.as_str())?;
        }
        let resize = VolumeStep::ResizeVolume {
            volume: name.to_owned(),
            before_bytes: volume.size_bytes,
            after_bytes: size_bytes,
        };
        let mut planned = planned.step(resize);
        let shrinks = size_bytes < volume.size_bytes;
        if shrinks && self.beyond(&volume, size_bytes, false).await? {
            if !force {
                return Err(holds_data(&volume, size_bytes));
            }
            let lose = VolumeStep::LoseData { volume: name.to_owned(), behind_bytes: size_bytes };
            planned = planned.step(lose);
        }
        if dry_run {
            return Ok(planned.reply(true, None));
        }
        match shrinks {
            true => self.shrink(&volume, &planned, size_bytes, force).await?,
            false => self.commit(&planned.next).await?,
        }
        let made = self.made_volume(volume.id).await;
        Ok(planned.reply(false, made))
    }

    /// Makes a volume smaller while writes are held back: no write that was accepted at the old size takes effect
    /// behind the new end.
    async fn shrink(
        &self,
        volume: &Volume,
        planned: &Planned,
        size_bytes: u64,
        force: bool,
    ) -> Result<(), CommandError> {
        let ids: Arc<[VolumeId]> = Arc::new([volume.id]);
        let held = async {
            self.hold_writes(&ids).await?;
            if !force && self.beyond(volume, size_bytes, false).await? {
                return Err(holds_data(volume, size_bytes));
            }
            self.commit(&planned.next).await
        };
        let done = held.await;
        self.context.ask_all(|| ShardCall::HoldWrites(ids.clone(), false)).await;
        done?;
        let smaller = self.state.borrow().catalog.volume(volume.id).cloned();
        match smaller {
            // if this fails, it is done before the volume grows, and at the next start
            Some(smaller) => self.trim(&smaller).await.or(Ok(())),
            None => Ok(()),
        }
    }

    /// Frees the blocks of a volume behind its end.
    async fn trim(&self, volume: &Volume) -> Result<(), CommandError> {
        self.beyond(volume, volume.size_bytes, true).await?;
        let planned = self.plan(&Change::Trimmed { volume: volume.id })?;
        self.commit(&planned.next).await
    }

    /// After a start: frees what a crash has left.
    pub(crate) async fn trim_all(&self) {
        let left: Vec<Volume> = {
            let state = self.state.borrow();
            let online = |volume: &&Volume| {
                volume.untrimmed && volume.place().is_some_and(|(pool, _)| state.is_pool_online(pool))
            };
            state.catalog.volumes().iter().filter(online).cloned().collect()
        };
        for volume in left {
            // if this fails, it is done before the volume grows
            let _ = self.trim(&volume).await;
        }
    }

    /// Whether a volume holds data behind this size; `unmap`: it is unmapped.
    pub(crate) async fn beyond(
        &self,
        volume: &Volume,
        size_bytes: u64,
        unmap: bool,
    ) -> Result<bool, CommandError> {
        let Some((pool, layer)) = volume.place() else { return Ok(false) };
        let Some(membership) = self.state.borrow().online_pool(pool) else { return Err(offline()) };
        let dealt_as = pool_layer(volume.dealt_as.unwrap_or(layer));
        let from = PoolVolume::lanes_from(size_bytes / BLOCK_BYTES as u64, dealt_as, membership.lanes);
        let mut mapped = false;
        for (lane, block) in (0..membership.lanes).zip(from) {
            let request = LaneRequest::Beyond { layer: pool_layer(layer), block, unmap };
            let call = Call::Lane(pool, lane, request);
            match self.context.ask(shard::home(lane, self.context.shards), call).await {
                Answer::Lane(Ok(LaneOutput::Beyond(found))) => mapped |= found,
                Answer::Lane(Err(error)) => {
                    let message =
                        format!("what volume {} holds cannot be told: {}", volume.name, lane_failure(error));
                    let hint = "`tangelo status` says what is wrong";
                    return Err(CommandError::new(CommandErrorKind::Unavailable, message, hint));
                }
                other => unreachable!("the answer to a lane's request, not {other:?}"),
            }
        }
        Ok(mapped)
    }
}

fn holds_data(volume: &Volume, size_bytes: u64) -> CommandError {
    let message =
        format!("volume {} holds data behind {}, which would be lost", volume.name, size(size_bytes));
    let hint = "make the file system on it smaller and discard the rest (fstrim) first, or take a snapshot and use --force";
    CommandError::new(CommandErrorKind::InUse, message, hint)
}
