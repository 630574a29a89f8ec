//! Families about pools and their lanes.

use api::{DriveState, DriveStatus, PoolStatus};

use super::family::Samples::{Any, Lanes, Pools, SomePools};
use super::family::{Family, Kind, Samples, Unit, level};

const fn pool(name: &'static str, unit: Unit, help: &'static str, samples: Samples) -> Family {
    Family { name, unit, kind: Kind::Gauge, help, labels: &["pool"], samples }
}

const fn lane(
    name: &'static str,
    unit: Unit,
    kind: Kind,
    help: &'static str,
    value: fn(&api::LaneMetrics) -> u64,
) -> Family {
    Family { name, unit, kind, help, labels: &["pool", "lane"], samples: Lanes(value) }
}

fn out_of_service(pool: &PoolStatus) -> u64 {
    let out = |drive: &&DriveStatus| matches!(drive.state, DriveState::Missing | DriveState::Failed);
    pool.drives.iter().filter(out).count() as u64
}

fn scrub_progress(pool: &PoolStatus) -> Option<f64> {
    let scrub = &pool.scrub;
    scrub.running.then(|| scrub.segments_done as f64 / scrub.segments_total.max(1) as f64)
}

pub(super) const POOLS: &[Family] = &[
    Family {
        name: "pool_info",
        unit: Unit::None,
        kind: Kind::Gauge,
        help: "Always 1. The id and the protection of a pool",
        labels: &["pool", "id", "protection"],
        samples: Any(|metrics, sink| {
            let put = |pool: &PoolStatus| sink.put(&[&pool.name, &pool.id, &pool.protection], 1u64);
            metrics.pools.iter().for_each(put);
        }),
    },
    pool(
        "pool_health",
        Unit::None,
        "Health of a pool: 0 healthy, 1 degraded, 2 offline",
        Pools(|pool| level(pool.health)),
    ),
    pool("pool_capacity", Unit::Bytes, "Space for volumes", Pools(|pool| pool.capacity_bytes)),
    pool("pool_used", Unit::Bytes, "Space that volumes and snapshots use", Pools(|pool| pool.used_bytes)),
    pool(
        "pool_provisioned",
        Unit::Bytes,
        "Sum of the sizes of the pool's volumes",
        Pools(|pool| pool.provisioned_bytes),
    ),
    pool(
        "pool_lost",
        Unit::Bytes,
        "Part of the used space that can neither be read nor rebuilt",
        Pools(|pool| pool.lost_bytes),
    ),
    pool(
        "pool_log",
        Unit::Bytes,
        "Space of the log without parity: the capacity and the reserve",
        Pools(|pool| pool.log_bytes),
    ),
    pool(
        "pool_reserve",
        Unit::Bytes,
        "Part of the log that is kept free for cleaning and checkpoints",
        Pools(|pool| pool.reserve_bytes),
    ),
    pool("pool_map", Unit::Bytes, "Space that the pool's map uses in the log", Pools(|pool| pool.map.bytes)),
    pool(
        "pool_copied_by_reference",
        Unit::Bytes,
        "Space that copies by reference would use as data",
        Pools(|pool| pool.references.copied_bytes),
    ),
    pool(
        "pool_kept_for_references",
        Unit::Bytes,
        "Part of the used space that only references keep",
        Pools(|pool| pool.references.kept_bytes),
    ),
    pool(
        "pool_failures_survivable",
        Unit::None,
        "Number of further drives that may fail without loss of data",
        Pools(|pool| u64::from(pool.failures_survivable)),
    ),
    pool(
        "pool_drives_out_of_service",
        Unit::None,
        "Number of drives of the pool that are missing or failed",
        Pools(out_of_service),
    ),
    pool(
        "pool_repair_done",
        Unit::Bytes,
        "Part of the present repair that is done; 0 if there is no repair",
        Pools(|pool| pool.repair.as_ref().map_or(0, |repair| repair.done_bytes)),
    ),
    pool(
        "pool_repair_remaining",
        Unit::Bytes,
        "Part of the present repair that is not done; 0 if there is no repair",
        Pools(|pool| {
            pool.repair.as_ref().map_or(0, |repair| repair.total_bytes.saturating_sub(repair.done_bytes))
        }),
    ),
    pool(
        "pool_repair_short",
        Unit::Bytes,
        "Space that the present repair lacks",
        Pools(|pool| pool.repair.as_ref().map_or(0, |repair| repair.short_bytes)),
    ),
    pool(
        "pool_next_failure_short",
        Unit::Bytes,
        "Space that a repair would lack after one more drive fails",
        Pools(|pool| pool.next_failure.map_or(0, |next| next.short_bytes)),
    ),
    pool(
        "pool_scrub_running",
        Unit::None,
        "1 while the pool is scrubbed, 0 otherwise",
        Pools(|pool| u64::from(pool.scrub.running)),
    ),
    pool(
        "pool_scrub_progress",
        Unit::Ratio,
        "Part of the segments that the present scrub has read; none if there is no scrub",
        SomePools(scrub_progress),
    ),
    pool(
        "pool_scrub_last_end_timestamp",
        Unit::Seconds,
        "End of the last scrub, in Unix time; none if there was no scrub",
        SomePools(|pool| pool.scrub.last.map(|last| last.ended_ms as f64 / 1e3)),
    ),
    pool(
        "pool_scrub_last_unreadable_batches",
        Unit::None,
        "Number of batches that the last scrub could neither read nor rebuild",
        SomePools(|pool| pool.scrub.last.map(|last| last.unreadable as f64)),
    ),
];

pub(super) const LANES: &[Family] = &[
    lane("lane_host_written", Unit::Bytes, Kind::Counter, "Data that hosts wrote", |lane| {
        lane.host_written_bytes
    }),
    lane("lane_moved", Unit::Bytes, Kind::Counter, "Live data that cleaning or repair wrote anew", |lane| {
        lane.moved_bytes
    }),
    lane(
        "lane_restored",
        Unit::Bytes,
        Kind::Counter,
        "Part of the moved data that repair wrote anew",
        |lane| lane.restored_bytes,
    ),
    lane("lane_map_written", Unit::Bytes, Kind::Counter, "Map pages and tables that were written", |lane| {
        lane.map_written_bytes
    }),
    lane("lane_read", Unit::Bytes, Kind::Counter, "Data that was read for hosts and for cleaning", |lane| {
        lane.read_bytes
    }),
    lane("lane_rebuilt", Unit::Bytes, Kind::Counter, "Data that reads rebuilt from parity", |lane| {
        lane.rebuilt_bytes
    }),
    lane(
        "lane_healed",
        Unit::Bytes,
        Kind::Counter,
        "Rebuilt data that was written anew because its drive had it wrong",
        |lane| lane.healed_bytes,
    ),
    lane("lane_batches", Unit::None, Kind::Counter, "Batches that were written", |lane| lane.batches),
    lane("lane_checkpoints", Unit::None, Kind::Counter, "Checkpoints that were written", |lane| {
        lane.checkpoints
    }),
    lane(
        "lane_cleaned_segments",
        Unit::None,
        Kind::Counter,
        "Segments that cleaning or repair emptied",
        |lane| lane.cleaned_segments,
    ),
    lane("lane_segments", Unit::None, Kind::Gauge, "Number of segments", |lane| lane.segments),
    lane("lane_free_segments", Unit::None, Kind::Gauge, "Number of free segments", |lane| lane.free_segments),
    lane(
        "lane_degraded_segments",
        Unit::None,
        Kind::Gauge,
        "Number of segments that lack part of their redundancy",
        |lane| lane.degraded_segments,
    ),
    lane("lane_waiting_entries", Unit::None, Kind::Gauge, "Log entries that wait for a batch", |lane| {
        lane.waiting_entries
    }),
    lane("lane_batches_in_flight", Unit::None, Kind::Gauge, "Batches that are being written", |lane| {
        lane.batches_in_flight
    }),
    lane("lane_map_memory", Unit::Bytes, Kind::Gauge, "Memory for map pages", |lane| lane.map_memory_bytes),
    lane("lane_map_cached", Unit::Bytes, Kind::Gauge, "Map pages in memory", |lane| lane.map_cached_bytes),
    lane(
        "lane_map_dirty",
        Unit::Bytes,
        Kind::Gauge,
        "Map pages in memory that the next checkpoint writes",
        |lane| lane.map_dirty_bytes,
    ),
    lane("lane_map_lookups", Unit::None, Kind::Counter, "Map pages that were looked up in memory", |lane| {
        lane.map_lookups
    }),
    lane(
        "lane_map_misses",
        Unit::None,
        Kind::Counter,
        "Looked-up map pages that had to be read from drives",
        |lane| lane.map_misses,
    ),
];
