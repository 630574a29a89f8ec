//! One example of each problem, in the order of the codes: for the document and the tests.

use env::IoError;

use super::*;
use crate::{DriveFault, DriveLink, HealthUnread, RepairStatus};

const NOVEMBER_MS: u64 = 1_795_694_400_000;

pub(super) fn examples() -> Vec<Problem> {
    of_the_array().into_iter().chain(of_pools()).chain(of_drives()).chain(of_health()).collect()
}

fn mail_fails() -> ProblemFacts {
    ProblemFacts::AlertsNotDelivered {
        error: "mail.example.com:587 cannot be reached: Connection refused".to_owned(),
        failing_since_ms: NOVEMBER_MS,
        untold: 2,
    }
}

fn of_the_array() -> Vec<Problem> {
    use ProblemFacts::*;
    let volume = || Subject::volume("old-lun");
    let schedule = || Subject::Schedule("nightly".to_owned());
    let offline =
        StartFailure::CatalogOffline { pool: "fast".to_owned(), why: super::PoolOffline::NoUsableDrive };
    let not_stored =
        StoreFailure { pool: "fast".to_owned(), what: NotStored::Catalog, error: LaneFailure::OutOfSpace };
    let path = "/var/lib/tangelo/events.jsonl".to_owned();
    let journal = JournalTrouble { path, error: IoError::NoSpace };
    let all = [
        (Subject::Array, ArrayFailed { cause: offline }),
        (Subject::Array, ArrayStarting {}),
        (Subject::Array, ArrayStopping {}),
        (Subject::Array, StartIncomplete { cause: not_stored }),
        (Subject::Array, EventsNotKept(journal)),
        (Subject::Channel("mail".to_owned()), mail_fails()),
        (Subject::Array, ProblemsLeftOut { left_out: 88 }),
        (Subject::Array, PairMaintenance { since_ms: NOVEMBER_MS }),
        (
            Subject::Array,
            FenceUnusable {
                agent: "fence_ipmilan".to_owned(),
                detail: "fence_ipmilan has not answered \"status\" within 60 s".to_owned(),
            },
        ),
        (
            Subject::Array,
            HeadNotFenced {
                agent: "fence_ipmilan".to_owned(),
                detail: "fence_ipmilan could not carry out \"off\": no route to host".to_owned(),
            },
        ),
        (
            Subject::Portal("10.0.0.1:3260".to_owned()),
            PortalNotListening { error: IoError::AddressNotAvailable },
        ),
        (
            Subject::Host("alpha".to_owned()),
            LoginsRefused {
                initiator: "iqn.2026-01.com.example:alpha".to_owned(),
                logins: 2,
                limit: LoginLimit::Host,
                sessions_max: 64,
            },
        ),
        (
            Subject::Clock,
            ClockDoubted {
                says_ms: NOVEMBER_MS + 86_400_000 * 30,
                expected_ms: NOVEMBER_MS,
                at_start: false,
            },
        ),
        (
            Subject::Clock,
            SnapshotsFromFuture {
                snapshots: 3,
                latest: "disk@nightly-3".to_owned(),
                latest_ms: NOVEMBER_MS + 86_400_000 * 30,
            },
        ),
        (schedule(), ScheduleFailed { cause: ScheduleFailure::PoolOffline { volume: "disk".to_owned() } }),
        (schedule(), ScheduleIncomplete { volume: "disk".to_owned() }),
        (volume(), VolumeDeviceUnusable { trouble: DeviceTrouble::Error { error: IoError::Gone } }),
        (volume(), VolumeDeviceSmaller { left_bytes: 4 << 20, volume_bytes: 8 << 20 }),
    ];
    all.into_iter().map(|(subject, facts)| Problem::new(subject, facts)).collect()
}

fn of_pools() -> Vec<Problem> {
    use ProblemFacts::*;
    let room = PoolRoom { snapshots: 12, binned_volumes: 1, bin_bytes: 40 << 30 };
    let lost = |how| LostDrive { drive: "/dev/nvme2n1".to_owned(), bay: "3".to_owned(), how };
    let repair = RepairStatus {
        what: "rebuilding".to_owned(),
        done_bytes: 3 << 30,
        total_bytes: 41 << 30,
        bytes_per_second: 180 << 20,
        seconds_left: Some(216),
        short_bytes: 0,
    };
    let writer = RefusedWrites { host: "alpha".to_owned(), volume: "disk".to_owned() };
    let all = [
        PoolOffline {
            why: super::PoolOffline::TooManyFailed,
            drives: vec![lost(DriveLoss::Missing)],
            needs_reload: true,
        },
        NoSpaceBelow { paths: vec!["/srv/tangelo/drive-1".to_owned()] },
        PoolDegraded { drives: vec![lost(DriveLoss::Failed)], repair: Some(repair), lost_bytes: 0 },
        RebuildLacksDrives { drives: vec![lost(DriveLoss::Missing)] },
        RebuildLacksSpace { drives: vec![lost(DriveLoss::Failed)], short_bytes: 200 << 30 },
        SegmentsIncomplete { segments: 7 },
        DataLost { lost_bytes: 8 << 10, drives_missing: false },
        DataDoubted { unreadable_batches: 1 },
        WritesRefused { full_percent: 97, writers: vec![writer], room },
        PoolNearlyFull { full_percent: 91, room },
        PoolFilling { full_percent: 82, room },
        RebuildWouldLackSpace { short_bytes: 3 << 30, room },
        BinGivesWay { full_percent: 89, gives_way_percent: 92, volumes: 2 },
        NoSpareLeft { drive: "/dev/nvme2n1".to_owned() },
    ];
    all.into_iter().map(|facts| Problem::new(Subject::pool("fast"), facts)).collect()
}

fn of_drives() -> Vec<Problem> {
    use ProblemFacts::*;
    let given_up = super::DriveGivenUp {
        pool: "fast".to_owned(),
        trouble: DriveTrouble::Failed,
        model: "MZ-1T9".to_owned(),
        serial: "S4YP01".to_owned(),
        bay: "3".to_owned(),
        given_up_ms: NOVEMBER_MS,
        spare: Some("/dev/nvme7n1".to_owned()),
    };
    let kept = Some(KeptInService::NoneToSpare);
    let obstacle = SpareObstacle::Holds { what: "an ext4 file system".to_owned() };
    let all = [
        DriveGivenUp(given_up),
        DriveErrors { read: 3, write: 1, checksum: 12, all_rebuilt: true, kept },
        DriveSlow { factor: Some(9), emptying: false },
        DriveOfAnotherArray { array: "0123456789abcdef0123456789abcdef".to_owned() },
        DriveFileRemoved { used_by: FileUse::Pool("fast".to_owned()) },
        SpareUnusable { pool: "fast".to_owned(), obstacle },
    ];
    all.into_iter().map(|facts| Problem::new(Subject::drive("/dev/nvme2n1"), facts)).collect()
}

fn of_health() -> Vec<Problem> {
    use ProblemFacts::*;
    let drive = || Subject::drive("/dev/nvme2n1");
    let runs_out_ms = Some(NOVEMBER_MS + 86_400_000 * 480);
    let link = DriveLink { width: 2, width_max: 4, megatransfers: 8_000, megatransfers_max: 16_000 };
    let all = [
        (Subject::Array, HealthUnwatched { program: "smartctl".to_owned() }),
        (drive(), DriveHealthUnknown { why: HealthUnread::TimedOut { seconds: 20 } }),
        (drive(), DriveWarm { celsius: 67, celsius_warning: 70, is_stated: true }),
        (drive(), DriveHot { celsius: 74, celsius_warning: 70, is_stated: true, celsius_critical: Some(80) }),
        (Subject::pool("fast"), PoolOverheats { drives: 4, survivable: 1 }),
        (drive(), DriveWears { used_percent: 82, runs_out_ms }),
        (drive(), DriveWorn { used_percent: 97, runs_out_ms }),
        (drive(), DriveFailing { faults: vec![DriveFault::Spare] }),
        (drive(), DriveMediaErrors { new: 3, all: 17 }),
        (drive(), DriveTestFailed { at_hours: Some(13_113) }),
        (drive(), DriveLinkSlow(link)),
    ];
    all.into_iter().map(|(subject, facts)| Problem::new(subject, facts)).collect()
}
