//! The bin: it keeps deleted volumes for a while, and gives them up before their pool becomes full.
//!
//! The layers of volumes in the bin are unchanged. They are dropped after the catalog has forgotten the volume.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use base::{BLOCK_BYTES, LayerId, PoolId};
use catalog::{Binned, Catalog, Change, Mapping, Name};
use pool::LaneStats;

use shard::pool_layer;

use crate::manager::Manager;
use api::{
    BinnedStatus, CommandError, EventFacts, Expiry, HostStep, NotMapped, PoolActivity, PoolStep, Problem,
    ProblemFacts, Reply, Subject, VolumeStep,
};

/// When a pool is this full, volumes in its bin are deleted, the oldest first; a warning begins at the lower figure.
const GIVES_WAY_PERCENT: u64 = 92;
const WARNS_PERCENT: u64 = 88;

/// How many of the deleted volumes are reported, the last ones.
const GONE_TOLD_MAX: usize = 8;

impl Manager {
    pub(crate) async fn undelete(&self, name: &str, dry_run: bool) -> Result<Reply, CommandError> {
        let planned = self.plan(&Change::UndeleteVolume { volume: name.to_owned() })?;
        let binned = self.state.borrow().catalog.find_binned(name).expect("the plan found it").clone();
        let steps = mapping_steps(name, &binned, &planned.next);
        let snapshots = binned.snapshots.len() as u64;
        let planned =
            planned.step(VolumeStep::UndeleteVolume { volume: name.to_owned(), snapshots }).steps(steps);
        if dry_run {
            return Ok(planned.reply(true, None));
        }
        self.commit(&planned.next).await?;
        let made = self.made_volume(binned.volume.id).await;
        Ok(planned.reply(false, made))
    }

    /// If the volume's pool is offline, the next start frees its space.
    pub(crate) async fn eradicate(&self, name: &str, dry_run: bool) -> Result<Reply, CommandError> {
        let planned = self.plan(&Change::EradicateVolume { volume: name.to_owned() })?;
        let binned = self.state.borrow().catalog.find_binned(name).expect("the plan found it").clone();
        let (pool, top) = place(&binned);
        let layers: Vec<LayerId> =
            [top].into_iter().chain(binned.snapshots.iter().map(|snapshot| snapshot.layer)).collect();
        let snapshots = binned.snapshots.len() as u64;
        let planned = planned
            .step(VolumeStep::EradicateVolume { volume: name.to_owned(), snapshots })
            .steps(self.gives_back_step(pool, &layers).await);
        if dry_run {
            return Ok(planned.reply(true, None));
        }
        self.commit(&planned.next).await?;
        for layer in layers {
            self.drop_layer(pool, layer).await;
        }
        Ok(planned.reply(false, None))
    }

    /// The space that deleting these layers together would free. None if it is unknown.
    pub(crate) async fn gives_back_step(&self, pool: PoolId, layers: &[LayerId]) -> Option<PoolStep> {
        self.state.borrow().online_pool(pool)?;
        let goes = |layer: &LayerId| !self.state.borrow().catalog.is_copied_from(pool, *layer);
        let layers = layers.iter().copied().filter(goes).map(pool_layer).collect();
        let blocks = self.kept_by(pool, layers).await;
        Some(given_back(blocks, self.has_copies(pool)))
    }

    /// How long deleted volumes of a pool stay in the bin; 0: they are not kept.
    pub(crate) fn bin_seconds(&self, pool: PoolId) -> u32 {
        bin_seconds(&self.state.borrow().catalog, pool)
    }

    /// Puts a volume of a pool into the bin. Its layers stay.
    pub(crate) async fn delete_into_bin(
        &self,
        name: &str,
        unmap: bool,
        dry_run: bool,
    ) -> Result<Reply, CommandError> {
        let deleted_ms = self.context.io.wall_clock_ms();
        let planned = self.plan(&Change::BinVolume { volume: name.to_owned(), unmap, deleted_ms })?;
        let binned = planned.next.find_binned(name).expect("just put there");
        let id = binned.volume.id;
        let step = VolumeStep::BinVolume {
            volume: name.to_owned(),
            size_bytes: binned.volume.size_bytes,
            seconds: self.bin_seconds(place(binned).0),
            snapshots: binned.snapshots.len() as u64,
        };
        let planned = planned.step(step);
        if !dry_run {
            self.commit(&planned.next).await?;
            self.note_binned(id);
        }
        Ok(planned.reply(dry_run, None))
    }

    /// Permanently deletes volumes that have been in the bin long enough, and the oldest volume of a pool that becomes
    /// full. It deletes one volume in a round, and only if the space of the last one is being freed. Returns whether
    /// more has to be deleted.
    pub(crate) async fn keep_bin(&self, stats: &[(PoolId, LaneStats)]) -> bool {
        let mut gives_way = false;
        for name in self.overdue() {
            self.clear(&name, Expiry::Overdue).await;
        }
        let pools = self.state.borrow().online();
        for membership in pools {
            let id = membership.pool;
            let lanes: Vec<&LaneStats> =
                stats.iter().filter(|(pool, _)| *pool == id).map(|(_, stats)| stats).collect();
            let full = full_percent(&lanes) >= GIVES_WAY_PERCENT;
            let live: u64 = lanes.iter().map(|lane| lane.live_blocks).sum();
            let oldest = {
                let mut state = self.state.borrow_mut();
                let oldest = state.catalog.bin().iter().find(|binned| place(binned).0 == id);
                let oldest = oldest.map(|binned| binned.volume.name.to_string());
                let Some(pool) = state.pool_mut(id) else { continue };
                let before = pool.keeper.live_when_full.take();
                if full {
                    pool.keeper.live_when_full = Some(live);
                }
                oldest.filter(|_| full && before.is_none_or(|before| live >= before))
            };
            gives_way |= full;
            if let Some(name) = oldest {
                self.clear(&name, Expiry::PoolFull).await;
                self.note_gone(id, &name);
            }
        }
        gives_way && !self.state.borrow().catalog.bin().is_empty()
    }

    /// Remembers, until the daemon ends, a volume that was deleted because its pool became full.
    fn note_gone(&self, pool: PoolId, name: &str) {
        let mut state = self.state.borrow_mut();
        if state.catalog.find_binned(name).is_some() {
            return;
        }
        let now = self.context.io.wall_clock_ms();
        let Some(pool) = state.pool_mut(pool) else { return };
        pool.keeper.gave_way.push((name.to_owned(), now));
        let excess = pool.keeper.gave_way.len().saturating_sub(GONE_TOLD_MAX);
        pool.keeper.gave_way.drain(..excess);
    }

    /// How long a volume will stay in the bin, counted while the array runs.
    fn remaining_seconds(&self, catalog: &Catalog, binned: &Binned) -> u64 {
        u64::from(bin_seconds(catalog, place(binned).0)).saturating_sub(self.held_seconds(binned))
    }

    /// Volumes whose time in the bin is over.
    fn overdue(&self) -> Vec<String> {
        let state = self.state.borrow();
        let over = |binned: &&Binned| {
            self.remaining_seconds(&state.catalog, binned) == 0 && state.is_pool_online(place(binned).0)
        };
        state.catalog.bin().iter().filter(over).map(|binned| binned.volume.name.to_string()).collect()
    }

    async fn clear(&self, name: &str, why: Expiry) {
        let _lock = self.changes.acquire(1).await;
        let pool = {
            let state = self.state.borrow();
            let entry =
                state.catalog.find_binned(name).and_then(|binned| state.catalog.pool(place(binned).0));
            entry.map(|entry| entry.name.to_string()).unwrap_or_default()
        };
        // somebody may have restored it meanwhile; what cannot be stored is tried again
        if self.eradicate(name, false).await.is_ok() {
            self.record(Subject::volume(name), EventFacts::VolumeExpired { pool, why });
        }
    }

    pub(crate) async fn bin_statuses(&self) -> Vec<BinnedStatus> {
        let catalog = self.state.borrow().catalog.clone();
        let mut spaces = BTreeMap::new();
        for binned in catalog.bin() {
            if let Entry::Vacant(entry) = spaces.entry(place(binned).0) {
                let space = self.copy_spaces(*entry.key()).await;
                entry.insert(space);
            }
        }
        let now_ms = self.context.io.wall_clock_ms();
        let status = |binned: &Binned| {
            let (pool, layer) = place(binned);
            BinnedStatus {
                name: binned.volume.name.to_string(),
                pool: catalog.pool(pool).map_or_else(|| pool.to_string(), |entry| entry.name.to_string()),
                size_bytes: binned.volume.size_bytes,
                deleted_ms: binned.deleted_ms,
                eradicated_ms: now_ms.saturating_add(self.remaining_seconds(&catalog, binned) * 1000),
                snapshots: binned.snapshots.len() as u64,
                space: spaces[&pool].get(&pool_layer(layer)).copied(),
            }
        };
        catalog.bin().iter().map(status).collect()
    }
}

/// The step about the space that a deletion frees; `referred`: copies by reference keep something in its pool.
pub(crate) fn given_back(blocks: u64, referred: bool) -> PoolStep {
    PoolStep::FreeSpace { bytes: blocks * BLOCK_BYTES as u64, at_least: referred }
}

/// Which volumes were deleted, and when.
pub(crate) fn activity(gave_way: &[(String, u64)]) -> impl Iterator<Item = PoolActivity> + '_ {
    let activity =
        |(name, ms): &(String, u64)| PoolActivity::VolumeGaveWay { volume: name.clone(), deleted_ms: *ms };
    gave_way.iter().map(activity)
}

/// Which mappings of a volume in the bin come back with it.
fn mapping_steps(name: &str, binned: &Binned, next: &Catalog) -> Vec<HostStep> {
    let drop =
        |host: &Name, why| HostStep::DropMapping { volume: name.to_owned(), host: host.to_string(), why };
    let again = |mapping: &Mapping| {
        let number = mapping.number;
        let now = next.mapping_at(mapping.host.as_str(), number);
        match now.is_some_and(|now| now.volume == mapping.volume) {
            true => HostStep::RestoreMapping {
                volume: name.to_owned(),
                host: mapping.host.to_string(),
                number: number.into(),
            },
            false => drop(&mapping.host, NotMapped::Taken(number.into())),
        }
    };
    let gone = binned.hosts_gone.iter().map(|host| drop(host, NotMapped::HostDeleted));
    binned.mappings.iter().map(again).chain(gone).collect()
}

/// The problem that volumes will leave the bin soon, if the pool is nearly that full.
pub(crate) fn problem(catalog: &Catalog, id: PoolId, name: &str, lanes: &[&LaneStats]) -> Option<Problem> {
    let held = catalog.bin().iter().filter(|binned| place(binned).0 == id).count();
    let full = full_percent(lanes);
    if held == 0 || full < WARNS_PERCENT {
        return None;
    }
    let facts = ProblemFacts::BinGivesWay {
        full_percent: full,
        gives_way_percent: GIVES_WAY_PERCENT,
        volumes: held as u64,
    };
    Some(Problem::new(Subject::pool(name), facts))
}

pub(crate) fn full_percent(lanes: &[&LaneStats]) -> u64 {
    let sum = |count: fn(&LaneStats) -> u64| lanes.iter().map(|lane| u128::from(count(lane))).sum::<u128>();
    let percent = sum(|lane| lane.live_blocks) * 100 / sum(|lane| lane.capacity_blocks).max(1);
    u64::try_from(percent).unwrap_or(u64::MAX)
}

pub(crate) fn bin_seconds(catalog: &Catalog, pool: PoolId) -> u32 {
    catalog.pool(pool).map(|entry| entry.settings).unwrap_or_default().bin_seconds()
}

fn place(binned: &Binned) -> (PoolId, LayerId) {
    binned.volume.place().expect("only volumes of pools are in the bin")
}
