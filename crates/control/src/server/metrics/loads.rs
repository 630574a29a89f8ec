//! Families about what hosts do: by volume, host, portal and shard.

use api::{Load, Metrics, Operations, PortalStatus, SessionsLoad, VolumeMetrics};

use super::family::{Family, Kind, Samples, Sink, Unit};

/// The label of what is gone. No name of a volume or host is like it.
pub(super) const OTHER: &str = "(other)";

fn each_volume(metrics: &Metrics, put: &mut dyn FnMut(&str, &Load)) {
    metrics.volumes.iter().for_each(|volume| put(&volume.name, &volume.load));
    put(OTHER, &metrics.other_volumes);
}

fn each_host(metrics: &Metrics, put: &mut dyn FnMut(&str, &SessionsLoad)) {
    metrics.hosts.iter().for_each(|(host, load)| put(host, load));
    put(OTHER, &metrics.other_hosts);
}

fn each_portal(metrics: &Metrics, put: &mut dyn FnMut(&str, &SessionsLoad)) {
    metrics.portals.iter().for_each(|(portal, load)| put(&portal.address, load));
    put(OTHER, &metrics.other_portals);
}

fn each_shard(metrics: &Metrics, put: &mut dyn FnMut(&str, &SessionsLoad)) {
    metrics.shards.iter().for_each(|shard| put(&shard.shard.to_string(), &shard.sessions));
}

fn kinds(load: &Load) -> [(&'static str, &Operations); 3] {
    let traffic = &load.traffic;
    [("read", &traffic.reads), ("write", &traffic.writes), ("other", &traffic.others)]
}

/// The four families of commands: of what, its label, and a function that gives each with its load.
macro_rules! commands {
    ($what:literal, $each:expr, $load:expr) => {
        [
            Family {
                name: concat!($what, "_command_duration"),
                unit: Unit::Seconds,
                kind: Kind::Histogram,
                help: concat!(
                    "Time from the arrival of a command with its data until its answer, by ",
                    $what,
                    "; the count is the number of commands"
                ),
                labels: &[$what, "operation"],
                samples: Samples::Any(|metrics, sink| {
                    $each(metrics, &mut |name, load| {
                        kinds($load(load))
                            .iter()
                            .for_each(|(kind, done)| sink.put(&[name, kind], &done.latency));
                    });
                }),
            },
            Family {
                name: concat!($what, "_command"),
                unit: Unit::Bytes,
                kind: Kind::Counter,
                help: concat!("Data of blocks that commands read or stored, by ", $what),
                labels: &[$what, "operation"],
                samples: Samples::Any(|metrics, sink| {
                    $each(metrics, &mut |name, load| {
                        let [reads, writes, _] = kinds($load(load));
                        [reads, writes].iter().for_each(|(kind, done)| sink.put(&[name, kind], done.bytes));
                    });
                }),
            },
            Family {
                name: concat!($what, "_command_failures"),
                unit: Unit::None,
                kind: Kind::Counter,
                help: concat!("Commands that the array could not carry out, by ", $what),
                labels: &[$what, "operation"],
                samples: Samples::Any(|metrics, sink| {
                    $each(metrics, &mut |name, load| {
                        kinds($load(load))
                            .iter()
                            .for_each(|(kind, done)| sink.put(&[name, kind], done.failures));
                    });
                }),
            },
            Family {
                name: concat!($what, "_commands_in_flight"),
                unit: Unit::None,
                kind: Kind::Gauge,
                help: concat!("Commands that are running or waiting, by ", $what),
                labels: &[$what],
                samples: Samples::Any(|metrics, sink| {
                    $each(metrics, &mut |name, load| sink.put(&[name], $load(load).in_flight));
                }),
            },
        ]
    };
}

/// The two families of sessions.
macro_rules! sessions {
    ($what:literal, $each:expr) => {
        [
            Family {
                name: concat!($what, "_sessions"),
                unit: Unit::None,
                kind: Kind::Gauge,
                help: concat!("Sessions, without discovery, by ", $what),
                labels: &[$what],
                samples: Samples::Any(|metrics, sink| {
                    $each(metrics, &mut |name, load| sink.put(&[name], load.sessions));
                }),
            },
            Family {
                name: concat!($what, "_logins"),
                unit: Unit::None,
                kind: Kind::Counter,
                help: concat!("Sessions that have begun, without discovery, by ", $what),
                labels: &[$what],
                samples: Samples::Any(|metrics, sink| {
                    $each(metrics, &mut |name, load| sink.put(&[name], load.logins));
                }),
            },
        ]
    };
}

fn of_sessions(load: &SessionsLoad) -> &Load {
    &load.load
}

fn itself(load: &Load) -> &Load {
    load
}

static VOLUME_INFO: [Family; 2] = [
    Family {
        name: "volume_info",
        unit: Unit::None,
        kind: Kind::Gauge,
        help: "Always 1. The pool of a volume; empty if it is in no pool",
        labels: &["volume", "pool"],
        samples: Samples::Any(|metrics, sink| {
            let put = |volume: &VolumeMetrics| sink.put(&[&volume.name, &volume.pool], 1u64);
            metrics.volumes.iter().for_each(put);
        }),
    },
    Family {
        name: "volume_size",
        unit: Unit::Bytes,
        kind: Kind::Gauge,
        help: "Size of a volume as hosts see it",
        labels: &["volume"],
        samples: Samples::Any(|metrics, sink| {
            metrics.volumes.iter().for_each(|volume| sink.put(&[&volume.name], volume.size_bytes));
        }),
    },
];

static VOLUMES: [Family; 4] = commands!("volume", each_volume, itself);
static HOSTS: [Family; 4] = commands!("host", each_host, of_sessions);
static HOST_SESSIONS: [Family; 2] = sessions!("host", each_host);
static PORTALS: [Family; 4] = commands!("portal", each_portal, of_sessions);
static PORTAL_SESSIONS: [Family; 2] = sessions!("portal", each_portal);

static PORTAL_STATE: [Family; 2] = [
    Family {
        name: "portal_listening",
        unit: Unit::None,
        kind: Kind::Gauge,
        help: "1 if the portal accepts connections, 0 otherwise",
        labels: &["portal"],
        samples: Samples::Any(|metrics, sink| {
            let mut put = |portal: &PortalStatus| sink.put(&[&portal.address], portal.error.is_none());
            metrics.portals.iter().for_each(|(portal, _)| put(portal));
        }),
    },
    Family {
        name: "portal_refused_logins",
        unit: Unit::None,
        kind: Kind::Counter,
        help: "Connections that ended without a login: refused, or not finished",
        labels: &["portal"],
        samples: Samples::Any(|metrics, sink| {
            each_portal(metrics, &mut |name, load| sink.put(&[name], load.refused_logins));
        }),
    },
];

static SHARDS: [Family; 4] = commands!("shard", each_shard, of_sessions);
static SHARD_SESSIONS: [Family; 2] = sessions!("shard", each_shard);

fn data_memory(metrics: &Metrics, sink: &mut Sink, value: fn(&api::ShardMetrics) -> u64) {
    metrics.shards.iter().for_each(|shard| sink.put(&[&shard.shard.to_string()], value(shard)));
}

static SHARD_MEMORY: [Family; 2] = [
    Family {
        name: "shard_data_memory_used",
        unit: Unit::Bytes,
        kind: Kind::Gauge,
        help: "Memory that the data of commands uses",
        labels: &["shard"],
        samples: Samples::Any(|metrics, sink| data_memory(metrics, sink, |shard| shard.data_bytes)),
    },
    Family {
        name: "shard_data_memory_limit",
        unit: Unit::Bytes,
        kind: Kind::Gauge,
        help: "Memory that the data of commands may use; more commands are refused as busy",
        labels: &["shard"],
        samples: Samples::Any(|metrics, sink| data_memory(metrics, sink, |shard| shard.data_bytes_max)),
    },
];

/// All tables, with their titles.
pub(super) static TABLES: [(&str, &[&[Family]]); 4] = [
    ("Volumes", &[&VOLUME_INFO, &VOLUMES]),
    ("Hosts", &[&HOST_SESSIONS, &HOSTS]),
    ("Portals", &[&PORTAL_STATE, &PORTAL_SESSIONS, &PORTALS]),
    ("Shards", &[&SHARD_SESSIONS, &SHARDS, &SHARD_MEMORY]),
];

pub(super) fn families() -> impl Iterator<Item = &'static Family> {
    TABLES.iter().flat_map(|(_, tables)| *tables).copied().flatten()
}
