//! Lists: one line for each drive, pool, volume, host, mapping.

use api::*;
use base::units::Size;
use control::rest::*;

use super::{Show, health_word};
use base::table::Table;

impl Show for DriveList {
    fn text(&self) -> String {
        if self.drives.is_empty() {
            return "No drive was found: name them in [drives] paths, or to `tangelo pool create`.\n"
                .to_owned();
        }
        let mut out = String::new();
        drive_table(&self.drives, "", &mut out);
        out
    }
}

/// Drives with their errors and what they hold.
pub(super) fn drive_table(drives: &[DriveStatus], indent: &str, out: &mut String) {
    let knows_health = drives.iter().any(|drive| {
        drive.health.as_ref().is_some_and(|health| health.celsius.is_some() || health.used_percent.is_some())
    });
    let heat_and_wear: &[&str] = if knows_health { &["TEMP", "WEAR"] } else { &[] };
    let heading = [
        &["DRIVE", "STATE", "SIZE", "READ", "WRITE", "CKSUM"],
        heat_and_wear,
        &["HOLDS", "BAY", "MODEL", "SERIAL"],
    ];
    let mut table = Table::new(&heading.concat());
    for drive in drives {
        let mut row = vec![
            if drive.path.is_empty() { format!("(id {})", id(drive)) } else { drive.path.clone() },
            drive_state(drive.state).to_owned(),
            Size(drive.size_bytes).to_string(),
            drive.errors.read.to_string(),
            drive.errors.write.to_string(),
            drive.errors.checksum.to_string(),
        ];
        if knows_health {
            let health = drive.health.as_ref();
            let celsius = health.and_then(|health| health.celsius).map(|celsius| format!("{celsius} °C"));
            let used = health.and_then(|health| health.used_percent).map(|used| format!("{used} %"));
            row.extend([celsius, used].map(|value| value.unwrap_or_else(|| "-".to_owned())));
        }
        row.extend([holds(drive), or_dash(&drive.bay), or_dash(&drive.model), or_dash(&drive.serial)]);
        table.row(row);
    }
    table.render(indent, out);
    for (drive, note) in drives.iter().filter_map(|drive| Some((drive, drive.note.as_ref()?))) {
        let name = if drive.path.is_empty() { format!("(id {})", id(drive)) } else { drive.path.clone() };
        out.push_str(&format!("{indent}{name}: {}\n", note.text()));
    }
}

/// As much of the id as names it among a pool's drives.
fn id(drive: &DriveStatus) -> &str {
    drive.id.get(..8).unwrap_or(&drive.id)
}

fn drive_state(state: DriveState) -> &'static str {
    match state {
        DriveState::Unused => "unused",
        DriveState::Spare => "spare",
        DriveState::Exported => "exported",
        DriveState::Online => "online",
        DriveState::Missing => "MISSING",
        DriveState::Failed => "FAILED",
        DriveState::Draining => "draining",
    }
}

fn holds(drive: &DriveStatus) -> String {
    let what = match drive.content {
        DriveContent::Blank => "nothing",
        DriveContent::Foreign => "foreign",
        DriveContent::Member => {
            return drive.pool.as_ref().map_or(drive.detail.clone(), |pool| format!("pool {pool}"));
        }
        DriveContent::FutureVersion => "label of another version of Tangelo",
        DriveContent::Damaged => "damaged label",
        DriveContent::Unreadable => "unreadable",
    };
    if drive.detail.is_empty() { what.to_owned() } else { format!("{what}: {}", drive.detail) }
}

fn or_dash(text: &str) -> String {
    if text.is_empty() { "-".to_owned() } else { text.to_owned() }
}

impl Show for PoolList {
    fn text(&self) -> String {
        if self.pools.is_empty() {
            return "There is no pool: `tangelo pool create NAME --protection parity-1 DRIVES...` makes one.\n".to_owned();
        }
        let mut out = String::new();
        pool_table(&self.pools, "", &mut out);
        if has_written(&self.pools) {
            out.push('\n');
            written_table(&self.pools, "", &mut out);
        }
        if self.pools.iter().any(|pool| pool.map.lookups > 0) {
            out.push('\n');
            map_table(&self.pools, "", &mut out);
        }
        if has_references(&self.pools) {
            out.push('\n');
            references_table(&self.pools, "", &mut out);
        }
        out
    }

    fn exit_code(&self) -> u8 {
        self.pools.iter().map(|pool| exit_code(pool.health)).max().unwrap_or(0)
    }
}

/// 0 fine, 1 degraded, 2 critical.
pub(super) fn exit_code(health: Health) -> u8 {
    match health {
        Health::Healthy => 0,
        Health::Degraded => 1,
        Health::Offline => 2,
    }
}

pub(super) fn pool_table(pools: &[PoolStatus], indent: &str, out: &mut String) {
    let heading =
        ["POOL", "STATE", "PROTECTION", "WIDTH", "DRIVES", "CAPACITY", "USED", "PROVISIONED", "SURVIVES"];
    let mut table = Table::new(&heading);
    for pool in pools {
        let percent =
            (u128::from(pool.used_bytes) * 100).checked_div(u128::from(pool.capacity_bytes)).unwrap_or(0);
        let survives = match pool.failures_survivable {
            0 => "NO MORE FAILURES".to_owned(),
            1 => "1 more failure".to_owned(),
            more => format!("{more} more failures"),
        };
        table.row(vec![
            pool.name.clone(),
            health_word(pool.health).to_owned(),
            pool.protection.clone(),
            pool.width.to_string(),
            pool.drives.len().to_string(),
            Size(pool.capacity_bytes).to_string(),
            format!("{} ({percent} %)", Size(pool.used_bytes)),
            Size(pool.provisioned_bytes).to_string(),
            survives,
        ]);
    }
    table.render(indent, out);
}

/// Whether there is anything to tell of what was written.
pub(super) fn has_written(pools: &[PoolStatus]) -> bool {
    pools.iter().any(|pool| pool.written.host_bytes > 0)
}

/// What was written since the start, and how much for each byte of the hosts.
pub(super) fn written_table(pools: &[PoolStatus], indent: &str, out: &mut String) {
    let heading = ["POOL", "WRITTEN BY HOSTS", "MOVED", "OF THAT RESTORED", "MAP", "AMPLIFICATION"];
    let mut table = Table::new(&heading);
    for pool in pools {
        let PoolWrites { host_bytes, moved_bytes, restored_bytes, map_bytes } = pool.written;
        let all = u128::from(host_bytes) + u128::from(moved_bytes) + u128::from(map_bytes);
        let mut row = vec![pool.name.clone()];
        row.extend([host_bytes, moved_bytes, restored_bytes, map_bytes].map(|bytes| Size(bytes).to_string()));
        row.push(match host_bytes {
            0 => "-".to_owned(),
            bytes => format!("{:.2}", all as f64 / bytes as f64),
        });
        table.row(row);
    }
    table.render(indent, out);
}

/// How much of the maps is in memory, and how often that was not enough.
pub(super) fn map_table(pools: &[PoolStatus], indent: &str, out: &mut String) {
    let mut table = Table::new(&["POOL", "MAP", "MEMORY FOR IT", "IN MEMORY", "LOOKED FOR", "MISSED"]);
    for pool in pools {
        let PoolMap { bytes, memory_bytes, cached_bytes, lookups, misses } = pool.map;
        let mut row = vec![pool.name.clone()];
        row.extend([bytes, memory_bytes, cached_bytes].map(|bytes| Size(bytes).to_string()));
        row.push(lookups.to_string());
        row.push(match lookups {
            0 => "-".to_owned(),
            _ => format!("{misses} ({:.2} %)", misses as f64 / lookups as f64 * 100.0),
        });
        table.row(row);
    }
    table.render(indent, out);
}

/// Whether there is anything to tell of copies by reference.
pub(super) fn has_references(pools: &[PoolStatus]) -> bool {
    pools.iter().any(|pool| pool.references != PoolReferences::default())
}

/// What copies by reference read from elsewhere, and what is there for nothing but them.
pub(super) fn references_table(pools: &[PoolStatus], indent: &str, out: &mut String) {
    let mut table = Table::new(&["POOL", "COPIED BY REFERENCE", "KEPT FOR REFERENCES"]);
    for pool in pools {
        let PoolReferences { copied_bytes, kept_bytes } = pool.references;
        table.row(vec![pool.name.clone(), Size(copied_bytes).to_string(), Size(kept_bytes).to_string()]);
    }
    table.render(indent, out);
}

impl Show for SnapshotList {
    fn text(&self) -> String {
        if self.snapshots.is_empty() {
            return "There is no snapshot: `tangelo snapshot create VOLUME@SNAPSHOT` takes one.\n".to_owned();
        }
        let mut out = String::new();
        snapshot_table(&self.snapshots, "", &mut out);
        out
    }
}

pub(super) fn snapshot_table(snapshots: &[SnapshotStatus], indent: &str, out: &mut String) {
    let mut table = Table::new(&["SNAPSHOT", "TAKEN", "SIZE", "WRITTEN", "USED", "UNIQUE", "SHARED"]);
    for snapshot in snapshots {
        let mut row = vec![
            format!("{}@{}", snapshot.volume, snapshot.name),
            super::moment(snapshot.created_ms),
            Size(snapshot.size_bytes).to_string(),
            snapshot.space.map_or("-".to_owned(), |space| Size(space.written_bytes).to_string()),
        ];
        row.extend(space(snapshot.space));
        table.row(row);
    }
    table.render(indent, out);
}

impl Show for ScheduleList {
    fn text(&self) -> String {
        if self.schedules.is_empty() {
            return "There is no schedule: `tangelo schedule create NAME VOLUMES... --daily 7` makes one.\n"
                .to_owned();
        }
        let mut out = String::new();
        schedule_table(&self.schedules, "", &mut out);
        out
    }
}

pub(super) fn schedule_table(schedules: &[ScheduleStatus], indent: &str, out: &mut String) {
    let mut table = Table::new(&["SCHEDULE", "KEEPS", "SNAPSHOTS", "LAST", "NEXT", "VOLUMES"]);
    for schedule in schedules {
        let Keep { hourly, daily, weekly, monthly } = schedule.keep;
        let kinds = [(hourly, "hourly"), (daily, "daily"), (weekly, "weekly"), (monthly, "monthly")];
        let keeps =
            kinds.iter().filter(|(count, _)| *count > 0).map(|(count, kind)| format!("{count} {kind}"));
        table.row(vec![
            schedule.name.clone(),
            keeps.collect::<Vec<_>>().join(", "),
            schedule.snapshots.to_string(),
            schedule.last_ms.map_or("-".to_owned(), super::moment),
            super::moment(schedule.next_ms),
            or_dash(&schedule.volumes.join(", ")),
        ]);
    }
    table.render(indent, out);
}

impl Show for Bin {
    fn text(&self) -> String {
        if self.bin.is_empty() {
            return "There is nothing in the bin.\n".to_owned();
        }
        let mut out = String::new();
        bin_table(&self.bin, "", &mut out);
        out
    }
}

pub(super) fn bin_table(bin: &[BinnedStatus], indent: &str, out: &mut String) {
    let heading = ["VOLUME", "POOL", "SIZE", "USED", "UNIQUE", "SHARED", "SNAPSHOTS", "DELETED", "GONE"];
    let mut table = Table::new(&heading);
    for binned in bin {
        let [used, unique, shared] = space(binned.space);
        table.row(vec![
            binned.name.clone(),
            binned.pool.clone(),
            Size(binned.size_bytes).to_string(),
            used,
            unique,
            shared,
            binned.snapshots.to_string(),
            super::moment(binned.deleted_ms),
            super::moment(binned.eradicated_ms),
        ]);
    }
    table.render(indent, out);
}

/// Used, unique and shared.
fn space(space: Option<CopySpace>) -> [String; 3] {
    let bytes = |of: fn(&CopySpace) -> u64| {
        space.as_ref().map_or("-".to_owned(), |space| Size(of(space)).to_string())
    };
    [bytes(|space| space.used_bytes), bytes(|space| space.unique_bytes), bytes(|space| space.shared_bytes)]
}

impl Show for VolumeList {
    fn text(&self) -> String {
        if self.volumes.is_empty() {
            return "There is no volume: `tangelo volume create NAME --pool POOL --size SIZE` makes one.\n"
                .to_owned();
        }
        let mut out = String::new();
        volume_table(&self.volumes, "", &mut out);
        out
    }

    fn exit_code(&self) -> u8 {
        self.volumes.iter().map(|volume| exit_code(volume.health)).max().unwrap_or(0)
    }
}

pub(super) fn volume_table(volumes: &[VolumeStatus], indent: &str, out: &mut String) {
    let heading = [
        "VOLUME",
        "STATE",
        "SIZE",
        "USED",
        "UNIQUE",
        "SHARED",
        "SNAPSHOTS",
        "BLOCKS",
        "WHERE",
        "CACHE",
        "NAA",
    ];
    let mut table = Table::new(&heading);
    for volume in volumes {
        let place = match &volume.backing {
            VolumeBacking::Pool(pool) => match &volume.clone_of {
                Some(snapshot) if snapshot.contains('@') => format!("pool {pool}, clone of {snapshot}"),
                Some(volume) => format!("pool {pool}, copy of {volume}"),
                None => format!("pool {pool}"),
            },
            VolumeBacking::Raw(path) => format!("raw {path}"),
            VolumeBacking::Memory => "memory".to_owned(),
            VolumeBacking::Null => "null".to_owned(),
        };
        let [used, unique, shared] = space(volume.space);
        table.row(vec![
            volume.name.clone(),
            health_word(volume.health).to_owned(),
            Size(volume.size_bytes).to_string(),
            used,
            unique,
            shared,
            volume.snapshots.to_string(),
            volume.block_bytes.to_string(),
            place,
            if volume.write_back { "write-back" } else { "durable" }.to_owned(),
            volume.naa.clone(),
        ]);
    }
    table.render(indent, out);
    for volume in volumes {
        let other = volume.access.iter().filter(|access| access.state != AccessState::ActiveOptimized);
        for GroupAccess { group, state } in other {
            let state = state.words();
            out.push_str(&format!("{indent}{}: {state} by portal group {group}\n", volume.name));
        }
    }
}

impl Show for HostList {
    fn text(&self) -> String {
        if self.hosts.is_empty() {
            return "There is no host: `tangelo host create NAME --iqn IQN` makes one.\n".to_owned();
        }
        let mut out = String::new();
        host_table(&self.hosts, "", &mut out);
        out
    }
}

pub(super) fn host_table(hosts: &[HostStatus], indent: &str, out: &mut String) {
    let mut table = Table::new(&["HOST", "SESSIONS", "CHAP", "INITIATORS"]);
    for host in hosts {
        let chap = match (&host.chap_user, &host.mutual_chap_user) {
            (None, _) => "none",
            (Some(_), None) => "one-way",
            (Some(_), Some(_)) => "mutual",
        };
        let (sessions, initiators) = (host.sessions.to_string(), host.initiators.join(", "));
        table.row(vec![host.name.clone(), sessions, chap.to_owned(), initiators]);
    }
    table.render(indent, out);
}

impl Show for MappingList {
    fn text(&self) -> String {
        if self.mappings.is_empty() {
            return "Nothing is mapped: `tangelo map VOLUME HOST` gives a volume to a host.\n".to_owned();
        }
        let mut out = String::new();
        mapping_table(&self.mappings, "", &mut out);
        out
    }
}

pub(super) fn mapping_table(mappings: &[MappingStatus], indent: &str, out: &mut String) {
    let mut table = Table::new(&["HOST", "LUN", "VOLUME", "ACCESS"]);
    for mapping in mappings {
        let access = if mapping.read_only { "read-only" } else { "read-write" };
        let lun = mapping.lun.to_string();
        table.row(vec![mapping.host.clone(), lun, mapping.volume.clone(), access.to_owned()]);
    }
    table.render(indent, out);
}
