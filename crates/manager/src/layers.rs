//! Layers: the catalog's view of pool volumes, carried out in every lane.
//!
//! A layer is made before the catalog names it, and dropped after the catalog has forgotten it. So a volume in the
//! catalog always has its layer. What a crash leaves over is cleaned up at the next start.

use std::collections::{BTreeMap, BTreeSet};

use base::{LayerId, Nanos, PoolId, VolumeId};
use catalog::{Volume, VolumeKind};
use pool::{CATALOG_LAYER, LaneError, LaneOutput, LaneRequest, LayerSpace, Membership, PoolVolume};
use task::{join_all, race};

use shard::{Answer, Call, ShardCall, pool_layer};

use crate::failure::lane_failure;
use crate::manager::Manager;
use api::{CommandError, CommandErrorKind, NotStored, PoolFailure, StoreFailure};

/// How long to wait for commands that began in a layer that is to be dropped.
const LEAVE_TIME_MAX: Nanos = Nanos::from_secs(60);
/// How long a lane may take to answer that it waits for space.
const SAY_TIME_MAX: Nanos = Nanos::from_secs(1);

impl Manager {
    /// Sends a request to every lane of a pool.
    async fn ask_lanes(&self, membership: &Membership, request: LaneRequest) -> Result<(), LaneError> {
        let ask = |lane| {
            let call = Call::Lane(membership.pool, lane, request.clone());
            self.context.ask(shard::home(lane, self.context.shards), call)
        };
        let answers = join_all((0..membership.lanes).map(ask).collect::<Vec<_>>()).await;
        answers.into_iter().try_for_each(|answer| match answer {
            Answer::Lane(result) => result.map(drop),
            other => unreachable!("the answer to a lane's request, not {other:?}"),
        })
    }

    /// Makes the layer of a new volume, above `parent` if there is one; an existing layer is not changed.
    pub(crate) async fn create_layer(
        &self,
        id: PoolId,
        layer: LayerId,
        size_bytes: u64,
        parent: Option<LayerId>,
    ) -> Result<(), CommandError> {
        let Some(membership) = self.state.borrow().online_pool(id) else { return Err(offline()) };
        let request = create(layer, parent, size_bytes, membership.lanes);
        self.ask_lanes(&membership, request).await.map_err(|error| not_taken(&membership, error).into())
    }

    /// Refuses if a lane waits for space on its drives: the layers made in the other lanes would have to be dropped
    /// again, and until then nobody could write to the layers below them.
    pub(crate) async fn check_takes_writes(&self, id: PoolId) -> Result<(), CommandError> {
        let Some(membership) = self.state.borrow().online_pool(id) else { return Err(offline()) };
        let answer = self.ask_lanes(&membership, LaneRequest::Flush).await;
        answer.map_err(|error| not_taken(&membership, error).into())
    }

    /// Whether a lane of one of these pools waits for space on its drives. A lane that does not answer soon waits for
    /// something else.
    pub(crate) async fn waits_for_space(&self, pools: &BTreeSet<PoolId>) -> bool {
        for &id in pools {
            let Some(membership) = self.state.borrow().online_pool(id) else { continue };
            let asked = self.ask_lanes(&membership, LaneRequest::Flush);
            let answer = race(asked, self.context.io.sleep(SAY_TIME_MAX)).await;
            if answer == Ok(Err(LaneError::OutOfSpace)) {
                return true;
            }
        }
        false
    }

    /// What each layer holds, by the pool's id, and in how many lanes it exists.
    pub(crate) async fn layer_spaces(&self, id: PoolId) -> BTreeMap<LayerId, (u16, LayerSpace)> {
        let mut present: BTreeMap<LayerId, (u16, LayerSpace)> = BTreeMap::new();
        for answer in self.context.ask_all(|| ShardCall::Layers(id)).await {
            let Answer::Layers(layers) = answer else { unreachable!("the answer to a question for layers") };
            for (layer, space) in layers {
                let entry = present.entry(layer).or_default();
                *entry = (entry.0 + 1, entry.1.plus(space));
            }
        }
        present
    }

    /// Blocks that dropping a layer would free, in all lanes. `None` if this is unknown.
    pub(crate) async fn freed_by(&self, id: PoolId, layer: LayerId) -> Option<u64> {
        let membership = self.state.borrow().online_pool(id)?;
        if self.state.borrow().catalog.is_copied_from(id, layer) {
            return Some(0);
        }
        let request = LaneRequest::FreedBy { layer: pool_layer(layer) };
        let mut sum = 0;
        for lane in 0..membership.lanes {
            let call = Call::Lane(membership.pool, lane, request.clone());
            match self.context.ask(shard::home(lane, self.context.shards), call).await {
                Answer::Lane(Ok(LaneOutput::Freed { blocks })) => sum += blocks,
                _ => return None,
            }
        }
        Some(sum)
    }

    /// Drops a layer that no volume uses any more, after the commands that began in it have ended: they see the data
    /// with which they began. If this takes too long or fails, the next start does it.
    pub(crate) async fn drop_layer(&self, id: PoolId, layer: LayerId) {
        // copies refer to it: the keeper drops it later
        if self.state.borrow().catalog.is_copied_from(id, layer) {
            return;
        }
        let left = self.context.ask_all(|| ShardCall::LeaveLayer(id, pool_layer(layer)));
        if race(left, self.context.io.sleep(LEAVE_TIME_MAX)).await.is_err() {
            return;
        }
        let membership = self.state.borrow().online_pool(id);
        if let Some(membership) = membership {
            let _ = self.ask_lanes(&membership, LaneRequest::DropLayer { layer: pool_layer(layer) }).await;
        }
    }

    /// Gives every volume of the pool its layer, and drops layers that no volume has. If a layer with data is newer
    /// than the catalog, it belongs to a volume that this catalog is too old to know: then this is refused.
    pub(crate) async fn settle_layers(&self, membership: &Membership) -> Result<(), PoolFailure> {
        let (wanted, next) = self.layers_wanted(membership.pool);
        let present = self.layer_spaces(membership.pool).await;
        self.check_referred(membership).await?;
        for (&layer, &(_, space)) in &present {
            if layer == CATALOG_LAYER || wanted.contains_key(&layer) {
                continue;
            }
            if layer >= next && space.own_blocks > 0 {
                return Err(PoolFailure::VolumesNewerThanCatalog);
            }
            // if this fails, the next start does it
            let _ = self.ask_lanes(membership, LaneRequest::DropLayer { layer }).await;
        }
        for (layer, request) in wanted {
            if present.get(&layer).is_none_or(|(lanes, _)| *lanes < membership.lanes) {
                let Some(request) = request else { return Err(PoolFailure::LayerMissing) };
                // a pool that accepts no writes now still serves its data
                if let Err(error) = self.ask_lanes(membership, request).await {
                    self.unsettled.borrow_mut().push(not_taken(membership, error));
                }
            }
        }
        Ok(())
    }

    /// The catalog names a layer before the first reference to it is made. So a referred layer that the catalog does
    /// not know is newer than the catalog, and using this catalog for the pool could be wrong.
    async fn check_referred(&self, membership: &Membership) -> Result<(), PoolFailure> {
        let id = membership.pool;
        let referred = self.referred(membership).await.ok_or(PoolFailure::ReferencesUnknown)?;
        let state = self.state.borrow();
        let kept = state.catalog.copied_from().iter().filter(|kept| kept.pool == id);
        let kept: BTreeSet<LayerId> = kept.map(|kept| pool_layer(kept.layer)).collect();
        if referred.keys().all(|layer| kept.contains(layer)) {
            return Ok(());
        }
        Err(PoolFailure::CopiesNewerThanCatalog)
    }

    /// The layers that the catalog requires in a pool, with the requests that create those that may be created anew,
    /// and the first layer id that the catalog does not know yet.
    fn layers_wanted(&self, id: PoolId) -> (BTreeMap<LayerId, Option<LaneRequest>>, LayerId) {
        let state = self.state.borrow();
        let lanes = state.online_pool(id).map_or(1, |membership| membership.lanes);
        let inside = state.catalog.all_volumes().filter_map(|volume| match volume.backing {
            VolumeKind::Pool { pool, layer } if pool == id => {
                // a layer above others, now or earlier, is more than what was written in it
                let request =
                    volume.dealt_as.is_none().then(|| create(layer, None, volume.size_bytes, lanes));
                Some((pool_layer(layer), request))
            }
            _ => None,
        });
        let in_pool = |of: &Volume| of.place().is_some_and(|(pool, _)| pool == id);
        let here: BTreeSet<VolumeId> =
            state.catalog.all_volumes().filter(|of| in_pool(of)).map(|of| of.id).collect();
        let frozen = state.catalog.all_snapshots().filter(|snapshot| here.contains(&snapshot.volume));
        let frozen = frozen.map(|snapshot| (pool_layer(snapshot.layer), None));
        let kept = state.catalog.copied_from().iter().filter(|kept| kept.pool == id);
        let kept = kept.map(|kept| (pool_layer(kept.layer), None));
        (inside.chain(frozen).chain(kept).collect(), pool_layer(state.catalog.next_layer()))
    }
}

fn create(layer: LayerId, parent: Option<LayerId>, size_bytes: u64, lanes: u16) -> LaneRequest {
    let blocks = PoolVolume::lane_blocks(size_bytes, lanes);
    LaneRequest::CreateLayer { layer: pool_layer(layer), parent: parent.map(pool_layer), blocks }
}

pub(crate) fn offline() -> CommandError {
    CommandError::new(CommandErrorKind::Unavailable, "the pool is offline", "`tangelo status` says why")
}

fn not_taken(membership: &Membership, error: LaneError) -> StoreFailure {
    let (pool, error) = (membership.name.clone(), lane_failure(error));
    StoreFailure { pool, what: NotStored::Layer, error }
}
