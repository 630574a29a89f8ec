//! Copies by reference inside a pool: which layers are frozen for them, and when these layers are forgotten. The pool's
//! side is in `docs/design/0007-references.md`.
//!
//! ```text
//!   shard of the command            shard 0
//!   begin ────────────────────────► counted; the catalog freezes or keeps a layer, durably
//!   references are written ◄─────── the layer to refer to
//!   end ──────────────────────────► no longer counted
//! ```
//!
//! What always holds: while a copy of a pool is counted, nothing of this pool is forgotten; a layer is forgotten within
//! the change lock, and no copy begins without it. A copy never waits for the lock, because the holder of the
//! lock may be waiting for the command: if the lock is taken, the data is copied instead.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::sync::Arc;

use base::{BLOCK_BYTES, LayerId, Nanos, PoolId};
use catalog::{Change, Volume};
use pool::{CATALOG_LAYER, LaneOutput, LaneRequest, Membership, Survey};
use task::join_all;

use crate::manager::Manager;
use shard::{Answer, Call, CopyAsk, CopyGrant, ShardCall, pool_layer};

/// A volume is frozen again for copies after this time.
const FREEZE_AGAIN: Nanos = Nanos::from_secs(1);
/// Freezing a volume is worth it if at least this much of a range cannot be referred to.
const FREEZE_BYTES: u64 = 1 << 20;
const FREEZE_SHARE: u64 = 8;
/// How often to look for layers that nothing refers to any more.
const LOOK_AGAIN: Nanos = Nanos::from_secs(5);

impl Manager {
    /// Begins a copy by reference. `None`: its data has to be copied.
    pub(crate) async fn begin_copy(&self, ask: CopyAsk) -> Option<CopyGrant> {
        *self.copying.borrow_mut().at_work.entry(ask.pool).or_default() += 1;
        let grant = self.prepare_copy(&ask).await;
        if grant.is_none() {
            self.end_copy(ask.pool);
        }
        grant
    }

    /// A copy that had begun has ended.
    pub(crate) fn end_copy(&self, pool: PoolId) {
        let mut copying = self.copying.borrow_mut();
        let at_work = copying.at_work.get_mut(&pool).expect("it was counted");
        *at_work -= 1;
    }

    fn copies_are_at_work(&self, pool: PoolId) -> bool {
        self.copying.borrow().at_work.get(&pool).is_some_and(|&copies| copies > 0)
    }

    async fn prepare_copy(&self, ask: &CopyAsk) -> Option<CopyGrant> {
        let _lock = self.changes.try_acquire(1)?;
        if self.failure.borrow().is_some() || self.stopping.get() {
            return None;
        }
        let source = self.state.borrow().catalog.volume(ask.source)?.clone();
        let (pool, layer) = source.place().filter(|(pool, _)| *pool == ask.pool)?;
        self.state.borrow().online_pool(pool)?;
        let survey = self.context.units.survey(ask.source, ask.start_bytes, ask.length_bytes).await?;
        let above = survey.above_blocks * BLOCK_BYTES as u64;
        let too_much = above >= FREEZE_BYTES || above * FREEZE_SHARE > ask.length_bytes;
        if too_much && self.may_freeze(&source) && self.freeze(&source).await {
            return Some(CopyGrant { below: Some(pool_layer(layer)) });
        }
        match survey {
            Survey { above_blocks, mapped_blocks, .. }
                if above_blocks > 0 && above_blocks == mapped_blocks =>
            {
                None
            }
            // its mapped blocks refer to other layers, which are kept
            Survey { below: None, .. } => Some(CopyGrant { below: None }),
            Survey { below: Some(below), .. } => {
                let kept = self.keep_layer(&source, catalog_layer(below)?).await;
                kept.then_some(CopyGrant { below: Some(below) })
            }
        }
    }

    fn may_freeze(&self, source: &Volume) -> bool {
        let now = self.context.io.now();
        let copying = self.copying.borrow();
        copying.frozen.get(&source.id).is_none_or(|&then| now.0 >= then.0 + FREEZE_AGAIN.0)
    }

    /// Freezes a volume as for a snapshot, but without a name.
    async fn freeze(&self, source: &Volume) -> bool {
        self.copying.borrow_mut().frozen.insert(source.id, self.context.io.now());
        let since_ms = self.context.io.wall_clock_ms();
        let change = Change::FreezeVolume { volume: source.name.to_string(), since_ms };
        match self.plan(&change) {
            Ok(planned) => self.take_snapshots(std::slice::from_ref(source), &planned).await.is_ok(),
            // the maximum number is reached
            Err(_) => false,
        }
    }

    /// Makes the catalog keep a layer below a volume. This works only for a layer that the catalog knows: any other one
    /// is about to be dropped.
    async fn keep_layer(&self, source: &Volume, layer: LayerId) -> bool {
        let (pool, _) = source.place().expect("in a pool");
        let planned = {
            let state = self.state.borrow();
            if state.catalog.is_copied_from(pool, layer) {
                return true;
            }
            let known = state.catalog.all_snapshots().any(|snapshot| snapshot.layer == layer);
            let (volume, since_ms) = (source.id, self.context.io.wall_clock_ms());
            known.then_some(Change::KeepLayer { pool, layer, volume, since_ms })
        };
        let Some(change) = planned else { return false };
        match self.plan(&change) {
            Ok(planned) => self.commit(&planned.next).await.is_ok(),
            Err(_) => false,
        }
    }

    /// The number of entries that refer to each layer, in all lanes of a pool, by the pool's ids. `None` if a lane does
    /// not answer.
    pub(crate) async fn referred(&self, membership: &Membership) -> Option<BTreeMap<LayerId, u64>> {
        let ask = |lane| {
            let call = Call::Lane(membership.pool, lane, LaneRequest::Referred);
            self.context.ask(shard::home(lane, self.context.shards), call)
        };
        let mut sums = BTreeMap::new();
        for answer in join_all((0..membership.lanes).map(ask).collect::<Vec<_>>()).await {
            let Answer::Lane(Ok(LaneOutput::Referred(counts))) = answer else { return None };
            for (layer, entries) in counts {
                *sums.entry(layer).or_default() += entries;
            }
        }
        Some(sums)
    }

    /// Blocks of each pool that only copies keep: in layers that belong to no volume or snapshot and are below none.
    pub(crate) async fn kept_for_copies(&self) -> BTreeMap<PoolId, u64> {
        let mut only: BTreeMap<PoolId, Vec<LayerId>> = BTreeMap::new();
        {
            let state = self.state.borrow();
            let named: BTreeSet<LayerId> =
                state.catalog.all_snapshots().map(|snapshot| snapshot.layer).collect();
            for kept in state.catalog.copied_from().iter().filter(|kept| !named.contains(&kept.layer)) {
                only.entry(kept.pool).or_default().push(pool_layer(kept.layer));
            }
        }
        let mut blocks = BTreeMap::new();
        for (pool, layers) in only {
            blocks.insert(pool, self.kept_by(pool, layers.into()).await);
        }
        blocks
    }

    /// Whether something in a pool is kept because copies refer to it.
    pub(crate) fn has_copies(&self, pool: PoolId) -> bool {
        self.state.borrow().catalog.copied_from().iter().any(|kept| kept.pool == pool)
    }

    /// Blocks that only these layers, by the pool's ids, keep.
    pub(crate) async fn kept_by(&self, pool: PoolId, layers: Arc<[LayerId]>) -> u64 {
        let mut blocks = 0;
        for answer in self.context.ask_all(|| ShardCall::KeptBy(pool, layers.clone())).await {
            let Answer::Kept(kept) = answer else { unreachable!("the answer to what is kept") };
            blocks += kept;
        }
        blocks
    }

    /// Forgets layers that only copies kept, and to which nothing refers any more.
    pub(crate) async fn forget_copied(self: &Rc<Self>) {
        let now = self.context.io.now();
        let pools: BTreeSet<PoolId> =
            self.state.borrow().catalog.copied_from().iter().map(|kept| kept.pool).collect();
        let looked = self.copying.borrow().looked;
        if pools.is_empty() || looked.is_some_and(|then| now.0 < then.0 + LOOK_AGAIN.0) {
            return;
        }
        self.copying.borrow_mut().looked = Some(now);
        for pool in pools {
            let Some(membership) = self.state.borrow().online_pool(pool) else { continue };
            // a first check without the lock: mostly there is nothing to do
            if self.copies_are_at_work(pool) || self.unreferred(&membership).await.is_empty() {
                continue;
            }
            let _lock = self.changes.acquire(1).await;
            if !self.copies_are_at_work(pool) {
                self.forget_under_lock(&membership).await;
            }
        }
    }

    /// Layers that the catalog keeps for copies although nothing refers to them.
    async fn unreferred(&self, membership: &Membership) -> Vec<LayerId> {
        let Some(sums) = self.referred(membership).await else { return Vec::new() };
        let state = self.state.borrow();
        let kept = state.catalog.copied_from().iter().filter(|kept| kept.pool == membership.pool);
        let is_free = |layer: &LayerId| {
            !sums.contains_key(&pool_layer(*layer)) && !self.is_exported(membership.pool, *layer)
        };
        kept.map(|kept| kept.layer).filter(is_free).collect()
    }

    async fn forget_under_lock(&self, membership: &Membership) {
        let (pool, layers) = (membership.pool, self.unreferred(membership).await);
        if layers.is_empty() {
            return;
        }
        let Ok(planned) = self.plan(&Change::ForgetLayers { pool, layers: layers.clone() }) else { return };
        if self.commit(&planned.next).await.is_err() {
            return;
        }
        for layer in layers {
            let named = self.state.borrow().catalog.all_snapshots().any(|snapshot| snapshot.layer == layer);
            if !named {
                self.drop_layer(pool, layer).await;
            }
        }
    }
}

/// The catalog's id for a layer of a pool.
fn catalog_layer(layer: LayerId) -> Option<LayerId> {
    layer.0.checked_sub(CATALOG_LAYER.0).map(LayerId)
}
