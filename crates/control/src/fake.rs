//! A fake array for tests of the control plane and the command line: it answers from a status that it holds, and
//! remembers the commands that it got.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use api::*;
use base::BLOCK_BYTES;
use bytes::Bytes;

use crate::array::{Answer, Array, BulkAnswer};
pub use crate::fake_alerts::FakeAlerts;
use crate::fake_metrics::metrics;

/// See the module's page.
pub struct FakeArray {
    pub status: Mutex<ArrayStatus>,
    /// Every command that came, oldest first.
    pub asked: Mutex<Vec<Command>>,
    /// No command is answered any more.
    pub silent: AtomicBool,
    /// What imports have written, by its offset.
    pub written: Mutex<BTreeMap<u64, Bytes>>,
    /// From this byte on, nothing can be read.
    pub unreadable_from: Mutex<u64>,
}

/// The size of what is exported, and where it holds data.
pub const IMAGE_BYTES: u64 = 8 << 20;
pub const IMAGE_EXTENTS: [std::ops::Range<u64>; 2] = [0..3 << 19, 5 << 20..(5 << 20) + 8192];

/// The whole image that is exported.
pub fn image() -> Vec<u8> {
    let holds = |block: u64| IMAGE_EXTENTS.iter().any(|range| range.contains(&(block * BLOCK_BYTES as u64)));
    let byte = |block: u64| if holds(block) { 1 + (block % 251) as u8 } else { 0 };
    (0..IMAGE_BYTES / BLOCK_BYTES as u64).flat_map(|block| [byte(block); BLOCK_BYTES]).collect()
}

impl FakeArray {
    pub fn new(status: ArrayStatus) -> FakeArray {
        FakeArray {
            status: Mutex::new(status),
            asked: Mutex::new(Vec::new()),
            silent: AtomicBool::new(false),
            written: Mutex::default(),
            unreadable_from: Mutex::new(u64::MAX),
        }
    }

    fn answer(&self, command: Command) -> Result<Reply, CommandError> {
        let status = self.status.lock().expect("no test panics with it").clone();
        match command {
            Command::DriveList => Ok(Reply::Drives(status.every_drive())),
            Command::Problems => Ok(Reply::Problems(status.problems)),
            Command::Metrics => Ok(Reply::Metrics(Box::new(metrics(&status)))),
            Command::Status => Ok(Reply::Status(Box::new(status))),
            Command::PoolCreate { pool, dry_run } => {
                let NewPool { name: pool, protection, drives, .. } = pool;
                let drives = drives.len() as u64;
                changed(dry_run, PoolStep::CreatePool { pool, protection, drives }, vec![])
            }
            Command::Upkeep { upkeep, dry_run } => changed(dry_run, told(upkeep), vec![]),
            Command::DriveLocate { path: drive, seconds } => {
                changed(false, DriveStep::BlinkDrive { drive, seconds }, vec![])
            }
            Command::PoolDelete { dry_run, .. } => changed(dry_run, told(command), vec![]),
            Command::DriveWipe { path: drive, dry_run } => {
                let erase = DriveStep::EraseDrive { drive, size_bytes: 1 << 40, holds: None };
                changed(dry_run, erase, vec![])
            }
            Command::DriveClear { drive, dry_run } => changed(dry_run, told(drive), vec![]),
            Command::HostUpdate { name, update, dry_run } => changed(dry_run, told(update), vec![name]),
            Command::Rename { of, name, dry_run } => {
                changed(dry_run, ArrayStep::Rename { what: of.subject(), name }, vec![])
            }
            Command::DrivesFound(paths) => changed(false, told(paths.len()), vec![]),
            Command::VolumeCreate { volume, .. } if status.volumes.iter().any(|v| v.name == volume.name) => {
                let message = format!("there is a volume called \"{}\" already", volume.name);
                Err(CommandError::new(CommandErrorKind::AlreadyExists, message, "choose another name"))
            }
            Command::VolumeCreate { volume, dry_run } => changed(dry_run, created(volume), vec![]),
            Command::VolumeResize { name, size_bytes, dry_run, .. } => {
                resized(&status, name, size_bytes, dry_run)
            }
            Command::VolumeAccess { name: volume, access: GroupAccess { group, state: after }, dry_run } => {
                let before = AccessState::ActiveOptimized;
                changed(dry_run, ArrayStep::SetAccess { volume, group, before, after }, vec![])
            }
            Command::VolumeDelete { name, unmap, dry_run, .. } => deleted(&status, &name, unmap, dry_run),
            Command::TransferBegin { .. } | Command::TransferComplete { .. } => transfer(&status, command),
            Command::Copy { order, dry_run } => changed(dry_run, told(order), vec![]),
            Command::Schedule { order, dry_run } => changed(dry_run, told(order), vec![]),
            Command::SnapshotList { volume } => listed(&status, volume),
            Command::HostCreate { host, dry_run } => {
                let (host, initiators) = (host.name, host.initiators);
                changed(dry_run, HostStep::CreateHost { host, initiators }, vec![])
            }
            Command::HostDelete { name, dry_run, .. } => {
                changed(dry_run, HostStep::DeleteHost { host: name.clone() }, vec![name])
            }
            Command::Map { volume, host, lun, read_only, dry_run } => {
                let (lun, hosts) = (lun.unwrap_or(0), vec![host.clone()]);
                let libiscsi_lun = lun;
                let map = HostStep::MapVolume { volume, host, lun, libiscsi_lun, read_only };
                changed(dry_run, map, hosts)
            }
            Command::Unmap { volume, host, dry_run } => {
                let hosts = vec![host.clone()];
                changed(dry_run, HostStep::UnmapVolume { volume, host }, hosts)
            }
            Command::Events { .. } => Ok(Reply::Events(EventPage::default())),
            Command::Reload { .. } | Command::Report { .. } | Command::EventsKept(_) | Command::Head(_) => {
                Ok(Reply::Changed(unchanged()))
            }
            Command::Shutdown => Ok(Reply::Stopped),
        }
    }
}

fn changed(
    dry_run: bool,
    step: impl Into<ChangeStep>,
    hosts_affected: Vec<String>,
) -> Result<Reply, CommandError> {
    Ok(Reply::Changed(Change { dry_run, steps: vec![step.into()], hosts_affected, made: None }))
}

fn unchanged() -> Change {
    Change { dry_run: false, steps: Vec::new(), hosts_affected: Vec::new(), made: None }
}

fn resized(
    status: &ArrayStatus,
    volume: String,
    after_bytes: u64,
    dry_run: bool,
) -> Result<Reply, CommandError> {
    let Some(known) = status.volumes.iter().find(|known| known.name == volume) else {
        return Err(missing("volume", &volume));
    };
    let before_bytes = known.size_bytes;
    changed(dry_run, VolumeStep::ResizeVolume { volume, before_bytes, after_bytes }, vec![])
}

/// What was asked for, so that a test sees it in the answer.
fn told(asked: impl std::fmt::Debug) -> ArrayStep {
    ArrayStep::Recorded { words: format!("{asked:?}") }
}

fn created(new: NewVolume) -> VolumeStep {
    let backing = match new.backing {
        NewBacking::Pool(pool) => VolumeBacking::Pool(pool),
        NewBacking::Raw(path) => VolumeBacking::Raw(path),
        NewBacking::Memory => VolumeBacking::Memory,
        NewBacking::Null => VolumeBacking::Null,
    };
    VolumeStep::CreateVolume { volume: new.name, size_bytes: new.size_bytes.unwrap_or(1 << 40), backing }
}

fn transfer(status: &ArrayStatus, command: Command) -> Result<Reply, CommandError> {
    let (order, dry_run) = match command {
        Command::TransferBegin { order, dry_run, .. } => (order, dry_run),
        Command::TransferComplete { volume, .. } => {
            return changed(false, VolumeStep::ImportVolume { volume }, vec![]);
        }
        other => unreachable!("{other:?} is not about transfers"),
    };
    let (TransferOrder::Export { volume, .. } | TransferOrder::Import { volume, .. }) = &order;
    if !status.volumes.iter().any(|known| known.name == *volume) {
        return Err(missing("volume", volume));
    }
    if dry_run {
        let fill = VolumeStep::FillVolume { volume: volume.clone(), replaces: false };
        return changed(true, fill, vec![]);
    }
    Ok(Reply::TransferBegan(TransferGrant {
        transfer: TransferId(1),
        shard: 0,
        size_bytes: IMAGE_BYTES,
        content: "5eed-7".to_owned(),
        can_resume: matches!(order, TransferOrder::Export { snapshot: Some(_), .. }),
    }))
}

fn deleted(status: &ArrayStatus, name: &str, unmap: bool, dry_run: bool) -> Result<Reply, CommandError> {
    let Some(volume) = status.volumes.iter().find(|volume| volume.name == name) else {
        return Err(missing("volume", name));
    };
    let mapped = status.mappings.iter().filter(|mapping| mapping.volume == volume.name);
    let hosts: Vec<String> = mapped.map(|mapping| mapping.host.clone()).collect();
    if !hosts.is_empty() && !unmap {
        let message = format!("volume \"{name}\" is mapped to {}", hosts.join(", "));
        let hint = "unmap it first, or delete it with --unmap";
        return Err(CommandError::new(CommandErrorKind::InUse, message, hint));
    }
    let delete =
        VolumeStep::DeleteVolume { volume: name.to_owned(), size_bytes: volume.size_bytes, device: None };
    changed(dry_run, delete, hosts)
}

/// The first volume has snapshots, others have none.
fn listed(status: &ArrayStatus, volume: Option<String>) -> Result<Reply, CommandError> {
    let first = status.volumes.first().map(|first| first.name.clone());
    match (first, volume) {
        (None, Some(wanted)) => Err(missing("volume", &wanted)),
        (Some(first), wanted) if wanted.as_ref().is_none_or(|wanted| *wanted == first) => {
            Ok(Reply::Snapshots(snapshots(&first)))
        }
        _ => Ok(Reply::Snapshots(Vec::new())),
    }
}

fn missing(kind: &str, name: &str) -> CommandError {
    let message = format!("there is no {kind} called \"{name}\"");
    CommandError::new(
        CommandErrorKind::NotFound,
        message,
        format!("`tangelo {kind} list` shows what there is"),
    )
}

impl Array for FakeArray {
    fn call_for(&self, command: Command, _: Origin) -> Answer {
        self.asked.lock().expect("no test panics with it").push(command.clone());
        if self.silent.load(Ordering::Relaxed) {
            return Box::pin(std::future::pending());
        }
        let answer = self.answer(command);
        Box::pin(async { answer })
    }

    fn bulk(&self, _: u16, bulk: Bulk) -> BulkAnswer {
        let answer = match bulk.request {
            BulkRequest::Extents { from_bytes } => {
                let ranges = IMAGE_EXTENTS.into_iter().filter(|range| range.end > from_bytes);
                let ranges = ranges.map(|range| range.start.max(from_bytes)..range.end).collect();
                Ok(BulkOutput::Extents(Extents { ranges, until_bytes: IMAGE_BYTES }))
            }
            BulkRequest::Read { offset_bytes, .. }
                if offset_bytes >= *self.unreadable_from.lock().expect("no test panics with it") =>
            {
                Err(BulkError::Medium { offset_bytes })
            }
            BulkRequest::Read { offset_bytes, length_bytes } => {
                let data =
                    Bytes::from(image()).slice(offset_bytes as usize..offset_bytes as usize + length_bytes);
                Ok(BulkOutput::Data(vec![data.slice(..4096), data.slice(4096..)]))
            }
            BulkRequest::Credit { .. } => Ok(BulkOutput::Credit(Credit::new().0)),
            BulkRequest::Write { offset_bytes, data, .. } => {
                self.written
                    .lock()
                    .expect("no test panics with it")
                    .insert(offset_bytes, data.concat().into());
                Ok(BulkOutput::Written)
            }
        };
        Box::pin(async { answer })
    }
}

fn drive(index: usize) -> DriveStatus {
    DriveStatus {
        path: format!("/dev/nvme{index}n1"),
        size_bytes: 1_920_383_410_176,
        model: "SAMPLE 1.92TB".to_owned(),
        serial: format!("S{index:03}"),
        bay: index.to_string(),
        state: DriveState::Online,
        content: DriveContent::Member,
        detail: "pool fast".to_owned(),
        pool: Some("fast".to_owned()),
        errors: DriveErrors::default(),
        read_latency_us: Some(90),
        write_latency_us: None,
        id: format!("{index:032x}"),
        note: None,
        health: None,
    }
}

/// How a pool is looked after where nothing was set.
pub fn settings() -> PoolSettings {
    PoolSettings { scrub_every_seconds: None, ..PoolSettings::default() }
}

/// No scrub, now or ever.
pub fn no_scrub() -> ScrubStatus {
    ScrubStatus {
        running: false,
        segments_done: 0,
        segments_total: 0,
        batches_repaired: 0,
        batches_unreadable: 0,
        last: None,
    }
}

fn space(written_bytes: u64, used_bytes: u64, unique_bytes: u64) -> CopySpace {
    CopySpace::new(written_bytes, used_bytes, unique_bytes)
}

/// A volume's, of which one is in a pool that is offline.
fn snapshots(volume: &str) -> Vec<SnapshotStatus> {
    let snapshot = |name: &str, space| SnapshotStatus {
        volume: volume.to_owned(),
        name: name.to_owned(),
        size_bytes: 100 << 30,
        created_ms: 1_700_000_000_000,
        schedule: None,
        space,
    };
    vec![snapshot("monday", Some(space(5 << 30, 7 << 30, 1 << 30))), snapshot("tuesday", None)]
}

fn volume(id: u32, name: &str, backing: VolumeBacking, size_bytes: u64) -> VolumeStatus {
    VolumeStatus {
        id,
        name: name.to_owned(),
        backing,
        size_bytes,
        block_bytes: 512,
        write_back: id == 2,
        naa: format!("602544700000000000000000000000{id:02}"),
        serial: format!("0000000000000000{id:04}"),
        health: Health::Healthy,
        condition: VolumeCondition::Healthy,
        access: [(1, AccessState::ActiveOptimized), (2, AccessState::Standby)][..(id as usize).min(2)]
            .iter()
            .map(|&(group, state)| GroupAccess { group, state })
            .collect(),
        clone_of: (id == 1).then(|| "golden@v1".to_owned()),
        snapshots: if id == 1 { 2 } else { 0 },
        space: (id == 1).then(|| space(20 << 30, 120 << 30, 20 << 30)),
    }
}

fn host(name: &str, iqn: &str, chap: Option<&str>, sessions: u64) -> HostStatus {
    HostStatus {
        name: name.to_owned(),
        initiators: vec![iqn.to_owned()],
        chap_user: chap.map(str::to_owned),
        mutual_chap_user: None,
        sessions,
    }
}

/// One volume.
fn bin() -> Vec<BinnedStatus> {
    vec![BinnedStatus {
        name: "old-vm".to_owned(),
        pool: "fast".to_owned(),
        size_bytes: 100 << 30,
        deleted_ms: 1_700_000_000_000,
        eradicated_ms: 1_700_086_400_000,
        snapshots: 3,
        space: Some(space(1 << 30, 12 << 30, 1 << 30)),
    }]
}

/// One, of the first volume.
fn schedules() -> Vec<ScheduleStatus> {
    vec![ScheduleStatus {
        name: "nightly".to_owned(),
        volumes: vec!["vm-01".to_owned()],
        keep: Keep { daily: 7, weekly: 4, ..Keep::default() },
        last_ms: Some(1_700_000_000_000),
        next_ms: 1_700_006_400_000,
        snapshots: 5,
    }]
}

/// One.
fn sessions() -> Vec<SessionStatus> {
    vec![SessionStatus {
        initiator: "iqn.1993-08.org.debian:01:abc".to_owned(),
        host: "pve1".to_owned(),
        peer: "10.0.0.21:51122".to_owned(),
        portal: "10.0.0.1:3260".to_owned(),
        shard: 1,
        discovery: false,
        commands: 123_456,
        read_bytes: 4 << 30,
        written_bytes: 3 << 29,
    }]
}

/// A healthy array: one pool of four drives, two volumes, two hosts, one session.
pub fn healthy() -> ArrayStatus {
    let drives: Vec<DriveStatus> = (0..4).map(drive).collect();
    let spare = DriveStatus {
        state: DriveState::Unused,
        content: DriveContent::Foreign,
        detail: "an ext4 file system".to_owned(),
        pool: None,
        ..drive(4)
    };
    ArrayStatus {
        array_id: "0123456789abcdef0123456789abcdef".to_owned(),
        target_name: "iqn.2026-11.io.tangelo:0123456789ab".to_owned(),
        health: Health::Healthy,
        problems: Vec::new(),
        shards: 2,
        uptime_ms: 93_784_000,
        portals: vec![PortalStatus {
            address: "10.0.0.1:3260".to_owned(),
            group: 1,
            hosts: Vec::new(),
            forwarded: false,
            error: None,
        }],
        drives: vec![spare],
        pools: vec![PoolStatus {
            name: "fast".to_owned(),
            id: "fedcba9876543210fedcba9876543210".to_owned(),
            protection: "parity-1".to_owned(),
            format: 6,
            width: 4,
            lanes: 2,
            health: Health::Healthy,
            causes: Vec::new(),
            failures_survivable: 1,
            next_failure: Some(NextFailure { rebuildable: true, short_bytes: 0 }),
            provisioned_bytes: 500 << 30,
            capacity_bytes: 5_500_000_000_000,
            used_bytes: 550_000_000_000,
            lost_bytes: 0,
            log_bytes: 6_000_000_000_000,
            reserve_bytes: 400_000_000_000,
            references: PoolReferences { copied_bytes: 80 << 30, kept_bytes: 20 << 30 },
            written: written(),
            map: map(),
            drives,
            settings: settings(),
            repair: None,
            scrub: no_scrub(),
            activity: Vec::new(),
        }],
        volumes: vec![
            volume(1, "vm-01", VolumeBacking::Pool("fast".to_owned()), 500 << 30),
            volume(2, "old-lun", VolumeBacking::Raw("/dev/sdb".to_owned()), 1 << 40),
        ],
        bin: bin(),
        schedules: schedules(),
        hosts: vec![
            host("pve1", "iqn.1993-08.org.debian:01:abc", Some("pve1"), 1),
            host("pve2", "iqn.1993-08.org.debian:01:def", None, 0),
        ],
        mappings: vec![MappingStatus {
            volume: "vm-01".to_owned(),
            host: "pve1".to_owned(),
            lun: 5,
            read_only: false,
        }],
        sessions: sessions(),
    }
}

/// The same array after a drive has failed.
pub fn degraded() -> ArrayStatus {
    let mut status = healthy();
    status.health = Health::Degraded;
    let pool = &mut status.pools[0];
    (pool.health, pool.failures_survivable) = (Health::Degraded, 0);
    pool.next_failure = None;
    pool.repair = Some(RepairStatus {
        what: "rebuilding".to_owned(),
        done_bytes: 3_435_973_836,
        total_bytes: 44_023_414_784,
        bytes_per_second: 188_743_680,
        seconds_left: Some(216),
        short_bytes: 0,
    });
    pool.activity = pool.repair.iter().cloned().map(PoolActivity::Repair).collect();
    let failed = &mut pool.drives[2];
    failed.note = Some(DriveNote::Failed {});
    (failed.state, failed.errors) = (DriveState::Failed, DriveErrors { read: 3, write: 1, checksum: 12 });
    let lost = LostDrive { drive: failed.path.clone(), bay: failed.bay.clone(), how: DriveLoss::Failed };
    let repair = pool.repair.clone();
    let facts = ProblemFacts::PoolDegraded { drives: vec![lost], repair, lost_bytes: 0 };
    let problem = Problem::new(Subject::pool("fast"), facts);
    pool.causes = vec![problem.facts.clone()];
    status.problems = vec![problem];
    status
}

fn written() -> PoolWrites {
    PoolWrites { host_bytes: 2 << 40, moved_bytes: 1 << 40, restored_bytes: 1 << 30, map_bytes: 256 << 30 }
}

fn map() -> PoolMap {
    PoolMap {
        bytes: 2 << 30,
        memory_bytes: 1 << 30,
        cached_bytes: 800 << 20,
        lookups: 1_000_000,
        misses: 25_000,
    }
}
