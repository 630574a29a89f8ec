//! Formats a single object: its line of the list, then what belongs to it.

use api::*;
use base::units::Size;
use catalog::{POOL_SETTINGS, period};
use control::rest::*;

use super::lists::{
    bin_table, drive_table, exit_code, has_references, has_written, host_table, map_table, mapping_table,
    pool_table, references_table, schedule_table, snapshot_table, volume_table, written_table,
};
use super::status::{heading, session_table};
use super::{Show, health, moment};

const INDENT: &str = "  ";

fn problems(problems: &[Problem], out: &mut String) {
    for problem in problems {
        out.push_str(&format!("\n{}\n", problem.reason()));
        let action = problem.action();
        if !action.is_empty() {
            out.push_str(&format!("{INDENT}{action}\n"));
        }
    }
}

/// A section, unless there is nothing in it.
fn section<T>(title: &str, items: &[T], table: impl Fn(&[T], &str, &mut String), out: &mut String) {
    if !items.is_empty() {
        heading(title, out);
        table(items, INDENT, out);
    }
}

impl Show for OneDrive {
    fn text(&self) -> String {
        let mut out = String::new();
        let drive = &self.drive;
        drive_table(std::slice::from_ref(drive), "", &mut out);
        let latency = |us: Option<u64>| us.map_or("not known".to_owned(), |us| format!("{us} us"));
        if drive.pool.is_some() {
            out.push_str(&format!("\nid: {}\n", drive.id));
            let (read, write) = (latency(drive.read_latency_us), latency(drive.write_latency_us));
            out.push_str(&format!("median latency lately: reads {read}, writes {write}\n"));
        }
        if let Some(known) = &drive.health {
            health::section(known, &mut out);
        }
        problems(&self.problems, &mut out);
        out
    }
}

impl Show for OnePool {
    fn text(&self) -> String {
        let (mut out, pool) = (String::new(), std::slice::from_ref(&self.pool));
        pool_table(pool, "", &mut out);
        problems(&self.problems, &mut out);
        self.pool.activity.iter().for_each(|activity| out.push_str(&format!("\n{}\n", activity.text())));
        out.push_str(&format!("\n{}\n", scrubbed(&self.pool.scrub, &self.pool.settings)));
        if self.pool.format > 0 {
            out.push_str(&format!("disk format {}\n", self.pool.format));
        }
        section("drives", &self.pool.drives, drive_table, &mut out);
        section("volumes", &self.volumes, volume_table, &mut out);
        section("bin", &self.bin, bin_table, &mut out);
        if has_written(pool) {
            section("written since the start", pool, written_table, &mut out);
        }
        if self.pool.map.lookups > 0 {
            section("map", pool, map_table, &mut out);
        }
        if has_references(pool) {
            section("copied by reference", pool, references_table, &mut out);
        }
        heading("settings (`tangelo pool set` changes them)", &mut out);
        settings(&self.pool.settings, &mut out);
        out
    }

    fn exit_code(&self) -> u8 {
        exit_code(self.pool.health)
    }
}

/// When a pool was scrubbed, and when it is next.
fn scrubbed(scrub: &ScrubStatus, settings: &PoolSettings) -> String {
    let every = match settings.scrub_every_seconds {
        Some(seconds) => format!("every {}", period(seconds)),
        None => "only when it is asked for (`tangelo pool scrub`)".to_owned(),
    };
    let last = match (&scrub.last, scrub.running) {
        (_, true) => {
            format!("is being scrubbed: {} of {} segments", scrub.segments_done, scrub.segments_total)
        }
        (None, false) => "never scrubbed".to_owned(),
        (Some(last), false) => {
            let whole = if last.complete { "scrubbed" } else { "scrub stopped" };
            format!(
                "{whole} {}, {} repaired, {} beyond repair",
                moment(last.ended_ms),
                last.repaired,
                last.unreadable
            )
        }
    };
    format!("{last}; {every}")
}

fn settings(settings: &PoolSettings, out: &mut String) {
    for (setting, value) in POOL_SETTINGS.iter().zip(settings.values()) {
        let shown =
            if setting.may_be_off && value == 0 { "off".to_owned() } else { setting.unit.show(value) };
        let (name, value) = match setting.option {
            "error-window" => ("errors borne", errors_borne(settings)),
            "slow-factor" => ("slow drive", slow_drive(settings)),
            _ => (setting.label, shown),
        };
        if !name.is_empty() {
            out.push_str(&format!("{INDENT}{name}: {value}\n"));
        }
    }
}

fn errors_borne(settings: &PoolSettings) -> String {
    let PoolSettings { write_errors, read_errors, checksum_errors, error_window_seconds, .. } = settings;
    let window = period(*error_window_seconds);
    format!("{write_errors} writes, {read_errors} reads, {checksum_errors} checksums within {window}")
}

fn slow_drive(settings: &PoolSettings) -> String {
    let PoolSettings { slow_factor, slow_latency_ms, slow_seconds, .. } = *settings;
    match slow_factor {
        0 => "off".to_owned(),
        factor => {
            format!(
                "{factor} times its siblings, and over {slow_latency_ms} ms, for {}",
                period(slow_seconds)
            )
        }
    }
}

impl Show for OneVolume {
    fn text(&self) -> String {
        let mut out = String::new();
        volume_table(std::slice::from_ref(&self.volume), "", &mut out);
        out.push_str(&format!("\nserial: {}\n", self.volume.serial));
        if let Some(space) = &self.volume.space {
            out.push_str(&format!("written since the last snapshot: {}\n", Size(space.written_bytes)));
        }
        problems(&self.problems, &mut out);
        section("mappings", &self.mappings, mapping_table, &mut out);
        section("snapshots", &self.snapshots, snapshot_table, &mut out);
        section("schedules", &self.schedules, schedule_table, &mut out);
        out
    }

    fn exit_code(&self) -> u8 {
        exit_code(self.volume.health)
    }
}

impl Show for OneSnapshot {
    fn text(&self) -> String {
        let mut out = String::new();
        snapshot_table(std::slice::from_ref(&self.snapshot), "", &mut out);
        if let Some(schedule) = &self.snapshot.schedule {
            out.push_str(&format!("\ntaken by schedule {schedule}\n"));
        }
        if !self.clones.is_empty() {
            out.push_str(&format!("\nclones: {}\n", self.clones.join(", ")));
        }
        out
    }
}

impl Show for OneSchedule {
    fn text(&self) -> String {
        let mut out = String::new();
        schedule_table(std::slice::from_ref(&self.schedule), "", &mut out);
        out
    }
}

impl Show for OneHost {
    fn text(&self) -> String {
        let mut out = String::new();
        host_table(std::slice::from_ref(&self.host), "", &mut out);
        section("mappings", &self.mappings, mapping_table, &mut out);
        section("sessions", &self.sessions, session_table, &mut out);
        out
    }
}

impl Show for OneMapping {
    fn text(&self) -> String {
        let mut out = String::new();
        mapping_table(std::slice::from_ref(&self.mapping), "", &mut out);
        out
    }
}
