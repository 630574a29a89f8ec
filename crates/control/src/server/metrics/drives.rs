//! Families about drives: what pools do with them, and their health. What is not known of a drive has no series.

use api::{DriveHealth, DriveState, Metrics, PoolDriveMetrics};

use super::family::Samples::{Any, Health};
use super::family::{Family, Kind, Sink, Unit, Value, drives};

const fn health(
    name: &'static str,
    unit: Unit,
    kind: Kind,
    help: &'static str,
    value: fn(&DriveHealth) -> Option<Value<'static>>,
) -> Family {
    Family { name, unit, kind, help, labels: &["drive", "pool"], samples: Health(value) }
}

fn degrees(celsius: Option<i16>) -> Option<Value<'static>> {
    celsius.map(|celsius| Value::Real(f64::from(celsius)))
}

fn share(percent: Option<u16>) -> Option<Value<'static>> {
    percent.map(|percent| Value::Real(f64::from(percent) / 100.0))
}

fn timestamp(ms: Option<u64>) -> Option<Value<'static>> {
    ms.map(|ms| Value::Real(ms as f64 / 1e3))
}

fn whole(count: Option<u64>) -> Option<Value<'static>> {
    count.map(Value::Whole)
}

/// Of drives whose health is watched.
pub(super) const HEALTH: &[Family] = &[
    health("drive_temperature", Unit::Celsius, Kind::Gauge, "Temperature of a drive", |health| {
        degrees(health.celsius)
    }),
    health(
        "drive_temperature_warning",
        Unit::Celsius,
        Kind::Gauge,
        "Temperature from which on a drive is too hot, as it says",
        |health| degrees(health.celsius_warning),
    ),
    health(
        "drive_temperature_critical",
        Unit::Celsius,
        Kind::Gauge,
        "Temperature from which on a drive may shut itself off, as it says",
        |health| degrees(health.celsius_critical),
    ),
    health(
        "drive_endurance_used",
        Unit::Ratio,
        Kind::Gauge,
        "Part of the rated endurance of a drive that is used; may be more than 1",
        |health| share(health.used_percent),
    ),
    health(
        "drive_endurance_end_timestamp",
        Unit::Seconds,
        Kind::Gauge,
        "When the endurance of a drive is used up at the present rate, in Unix time",
        |health| timestamp(health.runs_out_ms),
    ),
    health(
        "drive_spare",
        Unit::Ratio,
        Kind::Gauge,
        "Part of a drive's spare blocks that is left",
        |health| share(health.spare_percent.map(u16::from)),
    ),
    health(
        "drive_media_errors",
        Unit::None,
        Kind::Counter,
        "Errors of its medium that a drive has counted in its life",
        |health| whole(health.media_errors),
    ),
    health(
        "drive_unsafe_shutdowns",
        Unit::None,
        Kind::Counter,
        "Power cuts without a warning that a drive has counted in its life",
        |health| whole(health.unsafe_shutdowns),
    ),
    health(
        "drive_power_on",
        Unit::Seconds,
        Kind::Counter,
        "Time for which a drive has been switched on",
        |health| whole(health.power_on_hours.map(|hours| hours.saturating_mul(3600))),
    ),
    health(
        "drive_written",
        Unit::Bytes,
        Kind::Counter,
        "Data that was written to a drive in its life",
        |health| whole(health.written_bytes),
    ),
    health(
        "drive_health_read_timestamp",
        Unit::Seconds,
        Kind::Gauge,
        "When the health of a drive was last read, in Unix time",
        |health| timestamp(health.read_ms),
    ),
];

/// Calls `put` with each drive in a pool, its pool, and what the pool's lanes did with it.
fn used_drives(metrics: &Metrics, mut put: impl FnMut(&str, &str, &PoolDriveMetrics)) {
    for (drive, pool) in drives(metrics) {
        if let Some(used) = metrics.pool_drives.iter().find(|used| used.id == drive.id) {
            put(&drive.path, pool, used);
        }
    }
}

fn in_service(metrics: &Metrics, sink: &mut Sink) {
    for (drive, pool) in drives(metrics).into_iter().filter(|(drive, _)| {
        !matches!(drive.state, DriveState::Unused | DriveState::Spare | DriveState::Exported)
    }) {
        sink.put(&[&drive.path, pool], drive.state == DriveState::Online);
    }
}

fn errors(metrics: &Metrics, sink: &mut Sink) {
    for (drive, pool) in drives(metrics) {
        let errors = drive.errors;
        for (kind, count) in [("read", errors.read), ("write", errors.write), ("checksum", errors.checksum)] {
            sink.put(&[&drive.path, pool, kind], count);
        }
    }
}

pub(super) const DRIVES: &[Family] = &[
    Family {
        name: "drive_info",
        unit: Unit::None,
        kind: Kind::Gauge,
        help: "Always 1. What a drive is, and where",
        labels: &["drive", "pool", "id", "model", "serial", "bay", "firmware"],
        samples: Any(|metrics, sink| {
            for (drive, pool) in drives(metrics) {
                let firmware = drive.health.as_ref().map_or("", |health| &health.firmware);
                let what = [&drive.path, pool, &drive.id, &drive.model, &drive.serial, &drive.bay, firmware];
                sink.put(&what, 1u64);
            }
        }),
    },
    Family {
        name: "drive_size",
        unit: Unit::Bytes,
        kind: Kind::Gauge,
        help: "Size of a drive; 0 if it is not there",
        labels: &["drive", "pool"],
        samples: Any(|metrics, sink| {
            let all = drives(metrics).into_iter();
            all.for_each(|(drive, pool)| sink.put(&[&drive.path, pool], drive.size_bytes));
        }),
    },
    Family {
        name: "drive_in_service",
        unit: Unit::None,
        kind: Kind::Gauge,
        help: "1 if the drive serves its pool, 0 if it is missing, failed or being emptied",
        labels: &["drive", "pool"],
        samples: Any(in_service),
    },
    Family {
        name: "drive_errors",
        unit: Unit::None,
        kind: Kind::Counter,
        help: "Errors of a drive since it joined its pool: failed reads and writes, and wrong checksums",
        labels: &["drive", "pool", "kind"],
        samples: Any(errors),
    },
    Family {
        name: "drive_operation_duration",
        unit: Unit::Seconds,
        kind: Kind::Histogram,
        help: "Time that reads and writes of a drive took, failed ones too",
        labels: &["drive", "pool", "operation"],
        samples: Any(|metrics, sink| {
            used_drives(metrics, |drive, pool, used| {
                sink.put(&[drive, pool, "read"], &used.reads.latency);
                sink.put(&[drive, pool, "write"], &used.writes.latency);
            });
        }),
    },
    Family {
        name: "drive_operation",
        unit: Unit::Bytes,
        kind: Kind::Counter,
        help: "Data of reads and writes of a drive, failed ones too",
        labels: &["drive", "pool", "operation"],
        samples: Any(|metrics, sink| {
            used_drives(metrics, |drive, pool, used| {
                sink.put(&[drive, pool, "read"], used.reads.bytes);
                sink.put(&[drive, pool, "write"], used.writes.bytes);
            });
        }),
    },
    Family {
        name: "drive_operations_in_flight",
        unit: Unit::None,
        kind: Kind::Gauge,
        help: "Reads, writes and flushes of a drive that have not ended",
        labels: &["drive", "pool"],
        samples: Any(|metrics, sink| {
            used_drives(metrics, |drive, pool, used| sink.put(&[drive, pool], used.in_flight));
        }),
    },
];
