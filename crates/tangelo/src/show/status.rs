//! The status screen: state, reason, action, in that order; whether the data is safe; then everything there is.

use api::{ArrayStatus, Health, InWords, PoolStatus, SessionStatus};
use base::units::Size;
use control::rest::Status;

use super::lists::{
    bin_table, drive_table, exit_code, has_references, has_written, host_table, mapping_table, pool_table,
    references_table, schedule_table, snapshot_table, volume_table, written_table,
};
use super::{Show, health_word};
use base::table::Table;

impl Show for Status {
    fn text(&self) -> String {
        let mut out = String::new();
        let summary = &self.summary;
        let mut line = |label: &str, text: &str| {
            if !text.is_empty() {
                out.push_str(&format!("{label:>7}: {text}\n"));
            }
        };
        line("state", health_word(summary.health));
        line("reason", &summary.reason);
        line("action", &summary.action);
        line("data", &summary.data);
        if let Some(pair) = &self.pair {
            line("heads", &format!("two; if this one were lost: {}", pair.loss_of_the_owner.text()));
        }
        line("array", &format!("{} (target {})", self.array.array_id, self.array.target_name));
        let shards = if self.array.shards == 1 { "shard" } else { "shards" };
        let (up, count) = (duration(self.array.uptime_ms), self.array.shards);
        line("up", &format!("{up}, {count} {shards}, tangelo {}", self.version));
        sections(self, &mut out);
        if !self.connect.is_empty() {
            heading("connect a Linux host", &mut out);
            self.connect.iter().for_each(|line| out.push_str(&format!("  {line}\n")));
        }
        out
    }

    fn exit_code(&self) -> u8 {
        exit_code(self.summary.health)
    }
}

pub(super) fn heading(text: &str, out: &mut String) {
    out.push_str(&format!("\n{text}:\n"));
}

fn sections(status: &Status, out: &mut String) {
    const INDENT: &str = "  ";
    let array = &status.array;
    if array.problems.len() > 1 {
        heading("problems", out);
        for problem in &array.problems {
            let (health, subject) = (health_word(problem.health()), &problem.subject);
            match problem.health() {
                Health::Healthy => out.push_str(&format!("  {subject}: {}\n", problem.reason())),
                _ => out.push_str(&format!("  {subject} is {health}: {}\n", problem.reason())),
            }
            let action = problem.action();
            if !action.is_empty() {
                out.push_str(&format!("    {action}\n"));
            }
        }
    }
    if array.pools.iter().any(|pool| !pool.activity.is_empty()) {
        heading("activity", out);
        for pool in &array.pools {
            for activity in &pool.activity {
                out.push_str(&format!("  pool {}: {}\n", pool.name, activity.text()));
            }
        }
    }
    pool_sections(&array.pools, INDENT, out);
    let drives = array.every_drive();
    if !drives.is_empty() {
        heading("drives", out);
        drive_table(&drives, INDENT, out);
    }
    if !array.volumes.is_empty() {
        heading("volumes", out);
        volume_table(&array.volumes, INDENT, out);
    }
    snapshot_section(status, INDENT, out);
    if !array.schedules.is_empty() {
        heading("schedules", out);
        schedule_table(&array.schedules, INDENT, out);
    }
    if !array.bin.is_empty() {
        heading("bin", out);
        bin_table(&array.bin, INDENT, out);
    }
    if !array.hosts.is_empty() {
        heading("hosts", out);
        host_table(&array.hosts, INDENT, out);
    }
    if !array.mappings.is_empty() {
        heading("mappings", out);
        mapping_table(&array.mappings, INDENT, out);
    }
    session_section(array, INDENT, out);
    heading("portals", out);
    if array.portals.is_empty() {
        out.push_str("  none: no host can connect\n");
    }
    for portal in &array.portals {
        let state = portal.error.map_or("listening".to_owned(), |error| error.to_string());
        let group = if portal.group == 1 { String::new() } else { format!(", group {}", portal.group) };
        let hosts = if portal.hosts.is_empty() {
            String::new()
        } else {
            format!(", for {}", portal.hosts.join(", "))
        };
        out.push_str(&format!("  iscsi {}  {state}{group}{hosts}\n", portal.address));
    }
}

/// Each with what it takes, where there are not too many.
fn snapshot_section(status: &Status, indent: &str, out: &mut String) {
    let count: u64 = status.array.volumes.iter().map(|volume| volume.snapshots).sum();
    if count > 0 {
        heading("snapshots", out);
        match &status.snapshots {
            Some(snapshots) => snapshot_table(snapshots, indent, out),
            None => {
                out.push_str(&format!("{indent}{count}: `tangelo snapshot list` shows what each takes\n"))
            }
        }
    }
}

fn pool_sections(pools: &[PoolStatus], indent: &str, out: &mut String) {
    if !pools.is_empty() {
        heading("pools", out);
        pool_table(pools, indent, out);
    }
    if has_written(pools) {
        heading("written since the start", out);
        written_table(pools, indent, out);
    }
    if has_references(pools) {
        heading("copied by reference", out);
        references_table(pools, indent, out);
    }
}

fn session_section(array: &ArrayStatus, indent: &str, out: &mut String) {
    if array.sessions.is_empty() {
        return;
    }
    heading("sessions", out);
    session_table(&array.sessions, indent, out);
}

pub(super) fn session_table(sessions: &[SessionStatus], indent: &str, out: &mut String) {
    let mut table =
        Table::new(&["HOST", "INITIATOR", "FROM", "PORTAL", "SHARD", "COMMANDS", "READ", "WRITTEN"]);
    for session in sessions {
        table.row(vec![
            if session.discovery { "(discovery)".to_owned() } else { session.host.clone() },
            session.initiator.clone(),
            session.peer.clone(),
            session.portal.clone(),
            session.shard.to_string(),
            session.commands.to_string(),
            Size(session.read_bytes).to_string(),
            Size(session.written_bytes).to_string(),
        ]);
    }
    table.render(indent, out);
}

/// A length of time in its two largest units.
fn duration(ms: u64) -> String {
    let seconds = ms / 1000;
    let units = [(86_400, "d"), (3_600, "h"), (60, "min"), (1, "s")];
    let first = units.iter().position(|(length, _)| seconds >= *length).unwrap_or(units.len() - 1);
    let mut rest = seconds;
    let mut parts = Vec::new();
    for (length, unit) in units.iter().skip(first).take(2) {
        if rest / length > 0 || parts.is_empty() {
            parts.push(format!("{} {unit}", rest / length));
        }
        rest %= length;
    }
    parts.join(" ")
}

#[cfg(test)]
mod tests {
    use super::duration;

    #[test]
    fn times_read_well() {
        let table =
            [(0, "0 s"), (59_999, "59 s"), (60_000, "1 min"), (93_784_000, "1 d 2 h"), (86_400_000, "1 d")];
        for (ms, text) in table {
            assert_eq!(duration(ms), text);
        }
    }
}
