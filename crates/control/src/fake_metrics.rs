//! The metrics of the fake array.

use api::*;
use base::{LatencyHistogram, Nanos};

/// So many commands that took this time each.
fn latency(count: u64, time: Nanos) -> LatencyHistogram {
    let mut histogram = LatencyHistogram::default();
    (0..count).for_each(|_| histogram.add(time));
    histogram
}

fn operations(count: u64, time: Nanos, bytes: u64, failures: u64) -> Operations {
    Operations { bytes, failures, latency: latency(count, time) }
}

fn load() -> Load {
    let traffic = Traffic {
        reads: operations(3, Nanos::from_micros(20), 3 * 4096, 0),
        writes: operations(2, Nanos::from_micros(300), 8192, 1),
        others: operations(1, Nanos(0), 0, 0),
    };
    Load { traffic, in_flight: 4 }
}

fn sessions(sessions: u64) -> SessionsLoad {
    SessionsLoad { load: load(), sessions, logins: 7, refused_logins: 2 }
}

fn lanes(pool: &PoolStatus) -> impl Iterator<Item = LaneMetrics> {
    (0..pool.lanes).map(|lane| LaneMetrics {
        pool: pool.name.clone(),
        lane,
        host_written_bytes: 1 << 40,
        moved_bytes: 1 << 39,
        segments: 1000,
        free_segments: 900,
        map_lookups: 500_000,
        map_misses: 12_500,
        ..LaneMetrics::default()
    })
}

/// What an array of this status could tell: the first host uses the first volume by the first portal.
pub fn metrics(status: &ArrayStatus) -> Metrics {
    let volumes = status.volumes.iter().enumerate().map(|(index, volume)| VolumeMetrics {
        name: volume.name.clone(),
        pool: match &volume.backing {
            VolumeBacking::Pool(pool) => pool.clone(),
            _ => String::new(),
        },
        size_bytes: volume.size_bytes,
        load: if index == 0 { load() } else { Load::default() },
    });
    let first = |index: usize| if index == 0 { sessions(1) } else { SessionsLoad::default() };
    let hosts = status.hosts.iter().enumerate().map(|(index, host)| (host.name.clone(), first(index)));
    let portals = status.portals.iter().enumerate().map(|(index, portal)| (portal.clone(), first(index)));
    let drives = status.pools.iter().flat_map(|pool| &pool.drives).map(|drive| PoolDriveMetrics {
        id: drive.id.clone(),
        reads: DriveOperations { bytes: 40_960, latency: latency(10, Nanos::from_micros(90)) },
        writes: DriveOperations { bytes: 1 << 20, latency: latency(4, Nanos::from_micros(40)) },
        in_flight: 1,
    });
    let shards = (0..status.shards).map(|shard| ShardMetrics {
        shard,
        sessions: if shard == 1 { sessions(1) } else { SessionsLoad::default() },
        data_bytes: 65_536,
        data_bytes_max: 512 << 20,
    });
    Metrics {
        array_id: status.array_id.clone(),
        target_name: status.target_name.clone(),
        health: status.health,
        problems: status.problems.clone(),
        uptime_ms: status.uptime_ms,
        pools: status.pools.clone(),
        drives: status.drives.clone(),
        lanes: status.pools.iter().flat_map(lanes).collect(),
        pool_drives: drives.collect(),
        volumes: volumes.collect(),
        other_volumes: Load::default(),
        hosts: hosts.collect(),
        other_hosts: SessionsLoad::default(),
        portals: portals.collect(),
        other_portals: SessionsLoad::default(),
        shards: shards.collect(),
    }
}
