//! Figures for Prometheus (text exposition format 0.0.4).

use std::fmt::Write;

use crate::api::{ArrayStatus, DriveState, Health};

/// Every figure of the array's status that is worth a graph or an alarm.
pub(super) fn render(array: &ArrayStatus) -> String {
    let mut page = Page(String::new());
    let drives = array.every_drive();
    let level = |health: Health| match health {
        Health::Healthy => 0,
        Health::Degraded => 1,
        Health::Offline => 2,
    };
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

    page.family("tangelo_pool_health", "gauge", "0 healthy, 1 degraded, 2 offline");
    array
        .pools
        .iter()
        .for_each(|pool| page.sample("tangelo_pool_health", &[("pool", &pool.name)], level(pool.health)));
    page.family("tangelo_pool_capacity_bytes", "gauge", "Bytes that volumes can hold");
    for pool in &array.pools {
        page.sample("tangelo_pool_capacity_bytes", &[("pool", &pool.name)], pool.capacity_bytes);
    }
    page.family("tangelo_pool_used_bytes", "gauge", "Bytes that volumes hold");
    array
        .pools
        .iter()
        .for_each(|pool| page.sample("tangelo_pool_used_bytes", &[("pool", &pool.name)], pool.used_bytes));
    page.family(
        "tangelo_pool_failures_survivable",
        "gauge",
        "Drives that may still fail without loss of data",
    );
    for pool in &array.pools {
        let survivable = u64::from(pool.failures_survivable);
        page.sample("tangelo_pool_failures_survivable", &[("pool", &pool.name)], survivable);
    }

    page.family(
        "tangelo_drive_in_service",
        "gauge",
        "1 where the drive serves its pool, 0 where it is missing or failed",
    );
    for drive in drives.iter().filter(|drive| drive.state != DriveState::Unused) {
        let serves = u64::from(drive.state == DriveState::Online);
        page.sample("tangelo_drive_in_service", &[("drive", &drive.path)], serves);
    }
    page.family("tangelo_drive_errors_total", "counter", "Errors of a drive since the start");
    for drive in &drives {
        let errors = drive.errors;
        for (kind, count) in [("read", errors.read), ("write", errors.write), ("checksum", errors.checksum)] {
            page.sample("tangelo_drive_errors_total", &[("drive", &drive.path), ("kind", kind)], count);
        }
    }

    page.family("tangelo_volume_size_bytes", "gauge", "Size that hosts see");
    for volume in &array.volumes {
        page.sample("tangelo_volume_size_bytes", &[("volume", &volume.name)], volume.size_bytes);
    }
    let families = [
        ("tangelo_session_commands_total", "Commands of a session"),
        ("tangelo_session_read_bytes_total", "Bytes read in a session"),
        ("tangelo_session_written_bytes_total", "Bytes written in a session"),
    ];
    for (index, (family, help)) in families.into_iter().enumerate() {
        page.family(family, "counter", help);
        for session in array.sessions.iter().filter(|session| !session.discovery) {
            let labels =
                [("host", &*session.host), ("initiator", &session.initiator), ("peer", &session.peer)];
            page.sample(
                family,
                &labels,
                [session.commands, session.read_bytes, session.written_bytes][index],
            );
        }
    }
    page.0
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
