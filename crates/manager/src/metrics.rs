//! Figures for monitoring: lighter than the status. Nothing is walked whose size depends on what volumes hold; what
//! shards answer is added up in bounded turns.

use base::{BLOCK_BYTES, PoolId, VolumeId};
use catalog::VolumeKind;
use pool::LaneStats;
use shard::{Answer, FrontCall, FrontFigures};

use crate::manager::Manager;
use api::{
    DriveOperations, LaneMetrics, Load, Metrics, PoolDriveMetrics, Problem, ShardMetrics, VolumeMetrics,
};

/// Sums that are merged in one turn.
const AT_ONCE: usize = 256;

impl Manager {
    pub(crate) async fn metrics(&self) -> Metrics {
        let lanes = self.lane_stats().await;
        let (metrics, drives) = (self.lane_metrics(&lanes), self.pool_drive_metrics(&lanes));
        let (pools, of_pools): (Vec<_>, Vec<_>) = self.describe_pools(lanes).await.into_iter().unzip();
        let problems = self.sorted_problems(of_pools.into_iter().flatten()).await;
        // last: nothing may change between these and what the catalog is asked for below
        let (figures, shards) = self.front_figures().await;
        let FrontFigures { mut volumes, mut hosts, mut portals, .. } = figures;
        let volumes = self.volume_metrics(|volume| volumes.remove(&volume).unwrap_or_default());
        let portals = self.portal_statuses().into_iter().map(|status| {
            let load = status.address.parse().ok().and_then(|address| portals.remove(&address));
            (status, load.unwrap_or_default())
        });
        let portals = portals.collect();
        let state = self.state.borrow();
        let hosts = state.catalog.hosts().iter().map(|host| host.name.to_string()).map(|host| {
            let load = hosts.remove(&host).unwrap_or_default();
            (host, load)
        });
        Metrics {
            array_id: state.catalog.array().to_string(),
            target_name: state.catalog.target().to_owned(),
            health: Problem::health_of(&problems),
            problems,
            uptime_ms: self.uptime_ms(),
            pools,
            drives: self.known_drives(),
            lanes: metrics,
            pool_drives: drives,
            volumes,
            other_volumes: figures.other_volumes,
            hosts: hosts.collect(),
            other_hosts: figures.other_hosts,
            portals,
            other_portals: figures.other_portals,
            shards,
        }
    }

    /// The figures of all shards together, and those of each.
    async fn front_figures(&self) -> (FrontFigures, Vec<ShardMetrics>) {
        let answers = self.context.ask_all(|| FrontCall::Figures).await;
        let (mut all, mut shards) = (FrontFigures::default(), Vec::new());
        let mut steps = 0;
        for answer in answers {
            let Answer::Figures(figures) = answer else {
                unreachable!("the answer to a question for figures")
            };
            for (volume, load) in figures.volumes {
                all.volumes.entry(volume).or_default().merge(&load);
                self.rest(&mut steps).await;
            }
            for (host, load) in figures.hosts {
                all.hosts.entry(host).or_default().merge(&load);
                self.rest(&mut steps).await;
            }
            for (portal, load) in figures.portals {
                all.portals.entry(portal).or_default().merge(&load);
            }
            all.other_volumes.merge(&figures.other_volumes);
            all.other_hosts.merge(&figures.other_hosts);
            all.other_portals.merge(&figures.other_portals);
            shards.push(figures.shard);
        }
        self.move_unknown(&mut all);
        (all, shards)
    }

    /// Ends the turn after every few steps.
    async fn rest(&self, steps: &mut usize) {
        *steps += 1;
        if steps.is_multiple_of(AT_ONCE) {
            self.context.io.next_turn().await;
        }
    }

    /// The catalog may have changed since a shard answered: what it does not have any more goes to the sums of what is gone.
    fn move_unknown(&self, all: &mut FrontFigures) {
        let state = self.state.borrow();
        let FrontFigures { volumes, other_volumes, hosts, other_hosts, portals, other_portals, .. } = all;
        volumes.retain(|volume, load| {
            keeps(state.catalog.volume(*volume).is_some(), || other_volumes.merge(load))
        });
        hosts.retain(|host, load| keeps(state.catalog.find_host(host).is_some(), || other_hosts.merge(load)));
        let known = |address: &std::net::SocketAddr| {
            state.portals.iter().any(|portal| portal.result.as_ref().is_ok_and(|bound| bound == address))
        };
        portals.retain(|portal, load| keeps(known(portal), || other_portals.merge(load)));
    }

    fn volume_metrics(&self, mut load: impl FnMut(VolumeId) -> Load) -> Vec<VolumeMetrics> {
        let state = self.state.borrow();
        let volumes = state.catalog.volumes().iter().map(|volume| VolumeMetrics {
            name: volume.name.to_string(),
            pool: match &volume.backing {
                VolumeKind::Pool { pool, .. } => self.pool_name(*pool),
                _ => String::new(),
            },
            size_bytes: volume.size_bytes,
            load: load(volume.id),
        });
        volumes.collect()
    }

    fn pool_name(&self, pool: PoolId) -> String {
        let state = self.state.borrow();
        state.catalog.pool(pool).map_or_else(|| pool.to_string(), |pool| pool.name.to_string())
    }

    fn lane_metrics(&self, lanes: &[(PoolId, LaneStats)]) -> Vec<LaneMetrics> {
        let mut lanes: Vec<LaneMetrics> =
            lanes.iter().map(|(pool, stats)| lane_metrics(self.pool_name(*pool), stats)).collect();
        lanes.sort_by(|one, other| (&one.pool, one.lane).cmp(&(&other.pool, other.lane)));
        lanes
    }

    fn pool_drive_metrics(&self, lanes: &[(PoolId, LaneStats)]) -> Vec<PoolDriveMetrics> {
        let state = self.state.borrow();
        let of_pool = |pool: &crate::state::Pool| {
            let members = pool.membership.iter().flat_map(|membership| &membership.members);
            let lanes = || lanes.iter().filter(|(of, _)| *of == pool.id).map(|(_, stats)| stats);
            let drive = |(index, member): (usize, &pool::Member)| {
                let mut drive = PoolDriveMetrics { id: member.id.to_string(), ..Default::default() };
                lanes().for_each(|lane| add_lane(&mut drive, lane, index));
                drive
            };
            members.enumerate().map(drive).collect::<Vec<_>>()
        };
        state.pools.iter().flat_map(of_pool).collect()
    }
}

fn keeps(is_known: bool, move_it: impl FnOnce()) -> bool {
    if !is_known {
        move_it();
    }
    is_known
}

fn lane_metrics(pool: String, stats: &LaneStats) -> LaneMetrics {
    let bytes = |blocks: u64| blocks * BLOCK_BYTES as u64;
    let counters = &stats.counters;
    LaneMetrics {
        pool,
        lane: stats.lane,
        host_written_bytes: bytes(counters.blocks_written),
        moved_bytes: bytes(counters.blocks_cleaned),
        restored_bytes: bytes(counters.blocks_restored),
        map_written_bytes: bytes(counters.map_blocks_written),
        read_bytes: bytes(counters.blocks_read),
        rebuilt_bytes: bytes(counters.blocks_rebuilt),
        healed_bytes: bytes(counters.blocks_healed),
        batches: counters.batches,
        checkpoints: counters.checkpoints,
        cleaned_segments: counters.segments_cleaned,
        segments: stats.segments_total as u64,
        free_segments: stats.segments_free as u64,
        degraded_segments: stats.segments_degraded as u64,
        waiting_entries: stats.waiting_entries as u64,
        batches_in_flight: stats.batches_in_flight as u64,
        map_memory_bytes: stats.map_budget_bytes as u64,
        map_cached_bytes: bytes(stats.map_pages_cached as u64),
        map_dirty_bytes: bytes(stats.map_pages_dirty as u64),
        map_lookups: stats.map_lookups,
        map_misses: stats.map_misses,
    }
}

/// Adds what a lane did with the drive of this index.
fn add_lane(drive: &mut PoolDriveMetrics, lane: &LaneStats, index: usize) {
    drive.in_flight += lane.drives_in_flight.get(index).map_or(0, |&count| count as u64);
    let Some(totals) = lane.drive_totals.get(index) else { return };
    let add = |operations: &mut DriveOperations, bytes: u64, latency| {
        operations.bytes += bytes;
        operations.latency.merge(latency);
    };
    add(&mut drive.reads, totals.read_bytes, &totals.reads);
    add(&mut drive.writes, totals.written_bytes, &totals.writes);
}
