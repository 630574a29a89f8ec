//! Figures for Prometheus (text exposition format 0.0.4).

use std::fmt::Write;

use api::{ArrayStatus, DriveState, DriveStatus, Health, PoolStatus, SessionStatus};

/// Every figure of the array's status that is worth a graph or an alarm.
pub(super) fn render(array: &ArrayStatus) -> String {
    let mut page = Page(String::new());
    page.family("tangelo_health", "gauge", "0 healthy, 1 degraded, 2 offline");
    page.sample("tangelo_health", &[], level(array.health));
    page.family("tangelo_uptime_seconds", "gauge", "Since the shards started");
    page.sample("tangelo_uptime_seconds", &[], array.uptime_ms / 1000);
    page.family("tangelo_sessions", "gauge", "Sessions of hosts, discovery left out");
    page.sample(
        "tangelo_sessions",
        &[],
        array.sessions.iter().filter(|session| !session.discovery).count() as u64,
    );
    render_pools(array, &mut page);
    render_drives(array, &mut page);
    page.family("tangelo_volume_size_bytes", "gauge", "Size that hosts see");
    for volume in &array.volumes {
        page.sample("tangelo_volume_size_bytes", &[("volume", &volume.name)], volume.size_bytes);
    }
    render_sessions(array, &mut page);
    page.0
}

fn level(health: Health) -> u64 {
    match health {
        Health::Healthy => 0,
        Health::Degraded => 1,
        Health::Offline => 2,
    }
}

/// A figure of each thing of a kind: its family's name, what it means, and how to read it.
type Figure<T> = (&'static str, &'static str, fn(&T) -> u64);

/// What was written to a pool, and how its map was asked.
const WRITTEN: [Figure<PoolStatus>; 6] = [
    ("tangelo_pool_host_written_bytes_total", "Bytes that hosts wrote, since the start", |pool| {
        pool.written.host_bytes
    }),
    ("tangelo_pool_moved_bytes_total", "Live bytes that cleaning or repair wrote anew", |pool| {
        pool.written.moved_bytes
    }),
    ("tangelo_pool_restored_bytes_total", "Of the moved bytes, those that repair wrote anew", |pool| {
        pool.written.restored_bytes
    }),
    ("tangelo_pool_map_written_bytes_total", "Bytes of the map that were written", |pool| {
        pool.written.map_bytes
    }),
    ("tangelo_pool_map_lookups_total", "Pages of the map that were looked for in memory", |pool| {
        pool.map.lookups
    }),
    ("tangelo_pool_map_misses_total", "Of those, the ones that had to be read from drives", |pool| {
        pool.map.misses
    }),
];

fn render_pools(array: &ArrayStatus, page: &mut Page) {
    let figures: [Figure<PoolStatus>; 15] = [
        ("tangelo_pool_health", "0 healthy, 1 degraded, 2 offline", |pool| level(pool.health)),
        ("tangelo_pool_provisioned_bytes", "Bytes that the pool's volumes say they have", |pool| {
            pool.provisioned_bytes
        }),
        ("tangelo_pool_capacity_bytes", "Bytes that volumes can hold", |pool| pool.capacity_bytes),
        ("tangelo_pool_used_bytes", "Bytes that volumes hold", |pool| pool.used_bytes),
        ("tangelo_pool_lost_bytes", "Of the used bytes, those that are damaged beyond repair", |pool| {
            pool.lost_bytes
        }),
        (
            "tangelo_pool_copied_by_reference_bytes",
            "Bytes that copies by reference would take as data",
            |pool| pool.references.copied_bytes,
        ),
        (
            "tangelo_pool_kept_for_references_bytes",
            "Of the used bytes, those that only references keep",
            |pool| pool.references.kept_bytes,
        ),
        ("tangelo_pool_failures_survivable", "Drives that may still fail without loss of data", |pool| {
            u64::from(pool.failures_survivable)
        }),
        ("tangelo_pool_drives_out_of_service", "Drives of the pool that are missing or failed", |pool| {
            let out = |drive: &&DriveStatus| matches!(drive.state, DriveState::Missing | DriveState::Failed);
            pool.drives.iter().filter(out).count() as u64
        }),
        ("tangelo_pool_repair_remaining_bytes", "Bytes that are still to be written anew", |pool| {
            pool.repair.as_ref().map_or(0, |repair| repair.total_bytes.saturating_sub(repair.done_bytes))
        }),
        ("tangelo_pool_repair_short_bytes", "Space that is missing to write them anew", |pool| {
            pool.repair.as_ref().map_or(0, |repair| repair.short_bytes)
        }),
        (
            "tangelo_pool_next_failure_short_bytes",
            "Space that would be missing to rebuild after the next failure",
            |pool| pool.next_failure.map_or(0, |next| next.short_bytes),
        ),
        ("tangelo_pool_scrub_running", "1 while the pool is being scrubbed", |pool| {
            u64::from(pool.scrub.running)
        }),
        ("tangelo_pool_scrub_last_end_seconds", "When the last scrub ended, since 1970; 0: never", |pool| {
            pool.scrub.last.map_or(0, |last| last.ended_ms / 1000)
        }),
        (
            "tangelo_pool_scrub_last_unreadable",
            "Batches that the last scrub could not read or rebuild",
            |pool| pool.scrub.last.map_or(0, |last| last.unreadable),
        ),
    ];
    for (kind, figures) in [("gauge", &figures[..]), ("counter", &WRITTEN[..])] {
        for (family, help, figure) in figures {
            page.family(family, kind, help);
            array.pools.iter().for_each(|pool| page.sample(family, &[("pool", &pool.name)], figure(pool)));
        }
    }
}

fn render_drives(array: &ArrayStatus, page: &mut Page) {
    // One that is missing has no path, and so no name here; its pool counts it.
    let drives: Vec<DriveStatus> =
        array.every_drive().into_iter().filter(|drive| !drive.path.is_empty()).collect();
    page.family(
        "tangelo_drive_in_service",
        "gauge",
        "1 where it serves its pool, 0 where it is missing or failed",
    );
    let of_pool = |drive: &&DriveStatus| {
        !matches!(drive.state, DriveState::Unused | DriveState::Spare | DriveState::Exported)
    };
    for drive in drives.iter().filter(of_pool) {
        let serves = u64::from(drive.state == DriveState::Online);
        page.sample("tangelo_drive_in_service", &labels_of(drive), serves);
    }
    page.family("tangelo_drive_errors_total", "counter", "Errors of a drive since it joined its pool");
    for drive in &drives {
        let errors = drive.errors;
        for (kind, count) in [("read", errors.read), ("write", errors.write), ("checksum", errors.checksum)] {
            let labels = [&labels_of(drive)[..], &[("kind", kind)]].concat();
            page.sample("tangelo_drive_errors_total", &labels, count);
        }
    }
    render_latencies(&drives, page);
}

fn render_latencies(drives: &[DriveStatus], page: &mut Page) {
    page.family("tangelo_drive_latency_microseconds", "gauge", "Median latency of a drive lately");
    for drive in drives {
        let accesses = [("read", drive.read_latency_us), ("write", drive.write_latency_us)];
        for (access, latency) in accesses {
            let labels = [&labels_of(drive)[..], &[("access", access)]].concat();
            latency
                .into_iter()
                .for_each(|latency| page.sample("tangelo_drive_latency_microseconds", &labels, latency));
        }
    }
}

fn labels_of(drive: &DriveStatus) -> [(&str, &str); 2] {
    [("drive", &drive.path), ("pool", drive.pool.as_deref().unwrap_or_default())]
}

fn render_sessions(array: &ArrayStatus, page: &mut Page) {
    let figures: [Figure<SessionStatus>; 3] = [
        ("tangelo_session_commands_total", "Commands of a session", |session| session.commands),
        ("tangelo_session_read_bytes_total", "Bytes read in a session", |session| session.read_bytes),
        ("tangelo_session_written_bytes_total", "Bytes written in a session", |session| {
            session.written_bytes
        }),
    ];
    for (family, help, figure) in figures {
        page.family(family, "counter", help);
        for session in array.sessions.iter().filter(|session| !session.discovery) {
            let labels =
                [("host", &*session.host), ("initiator", &session.initiator), ("peer", &session.peer)];
            page.sample(family, &labels, figure(session));
        }
    }
}

struct Page(String);

impl Page {
    fn family(&mut self, name: &str, kind: &str, help: &str) {
        let _ = writeln!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}");
    }

    fn sample(&mut self, name: &str, labels: &[(&str, &str)], value: u64) {
        self.0.push_str(name);
        for (index, (label, text)) in labels.iter().enumerate() {
            let escaped = text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
            let before = if index == 0 { '{' } else { ',' };
            let _ = write!(self.0, "{before}{label}=\"{escaped}\"");
        }
        let after = if labels.is_empty() { "" } else { "}" };
        let _ = writeln!(self.0, "{after} {value}");
    }
}
