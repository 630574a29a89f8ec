//! The words of each problem: why it is so, and what to do. One match over all facts, without a wildcard.

use base::calendar::moment;
use base::units::size;

use super::cause::OF_TWO_HEADS;
use super::words_health::{self as health, health_facts};
use super::words_pools as pools;
use super::{FileUse, LoginLimit, ProblemFacts, SpareObstacle, Subject};

const DATA_DOUBTED: &str =
    "the last scrub found data that could neither be read nor rebuilt; none is known to be lost now";

fn maintenance(since_ms: u64) -> String {
    let since = moment(since_ms);
    format!("there is maintenance since {since}: if this head were lost, the other one would not take over")
}

fn would_lack(short_bytes: u64) -> String {
    format!("after the failure of one more drive it could not be rebuilt: {} short", size(short_bytes))
}

impl ProblemFacts {
    /// Why it is so.
    pub fn reason(&self) -> String {
        use ProblemFacts::*;
        match self {
            ArrayFailed { cause } => cause.to_string(),
            ArrayStarting {} => "it is starting".to_owned(),
            ArrayStopping {} => "the array is stopping".to_owned(),
            StartIncomplete { cause } => format!("at the start, {cause}"),
            AlertsNotDelivered { error, failing_since_ms, untold } => {
                alerts_not_delivered(error, *failing_since_ms, *untold)
            }
            EventsNotKept(trouble) => format!("events cannot be kept: {}: {}", trouble.path, trouble.error),
            ProblemsLeftOut { left_out } => format!("{left_out} further problems are not told"),
            PairMaintenance { since_ms } => maintenance(*since_ms),
            FenceUnusable { detail, .. } => format!("the other head could not be fenced: {detail}"),
            HeadNotFenced { detail, .. } => format!("the other head is silent, and is not fenced: {detail}"),
            PortalNotListening { error } => error.to_string(),
            LoginsRefused { initiator, logins, limit, sessions_max } => {
                logins_refused(initiator, *logins, *limit, *sessions_max)
            }
            ClockDoubted { says_ms, expected_ms, at_start } => {
                clock_doubted(*says_ms, *expected_ms, *at_start)
            }
            SnapshotsFromFuture { snapshots, latest, latest_ms } => {
                from_future(*snapshots, latest, *latest_ms)
            }
            ScheduleFailed { cause } => format!("it cannot do what it should: {cause}"),
            ScheduleIncomplete { volume } => schedule_incomplete(volume),
            VolumeDeviceUnusable { trouble } => format!("its device cannot be used: {trouble}"),
            VolumeDeviceSmaller { left_bytes, volume_bytes } => pools::smaller(*left_bytes, *volume_bytes),
            PoolOffline { why, drives, .. } => pools::joined(Some(why.to_string()), drives, None),
            NoSpaceBelow { paths } => pools::no_space_below(paths),
            PoolDegraded { drives, repair, .. } => {
                pools::joined(None, drives, repair.as_ref().map(|repair| repair.to_string()))
            }
            RebuildLacksDrives { drives } => {
                pools::joined(None, drives, Some("too few drives are left to rebuild on".to_owned()))
            }
            RebuildLacksSpace { drives, short_bytes } => pools::lacks_space(drives, *short_bytes),
            SegmentsIncomplete { segments } => {
                format!("{segments} segments lack something that a drive has missed or lost")
            }
            DataLost { lost_bytes, .. } => data_lost(*lost_bytes),
            DataDoubted { .. } => DATA_DOUBTED.to_owned(),
            WritesRefused { full_percent, writers, .. } => pools::writes_refused(*full_percent, writers),
            PoolNearlyFull { full_percent, .. } => pools::nearly_full(*full_percent),
            PoolFilling { full_percent, .. } => {
                format!("it is {full_percent} % full; {}", pools::REFUSES_WHEN_FULL)
            }
            RebuildWouldLackSpace { short_bytes, .. } => would_lack(*short_bytes),
            BinGivesWay { full_percent, gives_way_percent, volumes } => {
                pools::bin_gives_way(*full_percent, *gives_way_percent, *volumes)
            }
            NoSpareLeft { .. } => "no spare is left".to_owned(),
            DriveGivenUp(given_up) => given_up.to_string(),
            DriveErrors { read, write, checksum, all_rebuilt, kept } => pools::drive_errors(
                [(*read, "read"), (*write, "write"), (*checksum, "checksum")],
                *all_rebuilt,
                *kept,
            ),
            DriveSlow { factor, emptying } => pools::drive_slow(*factor, *emptying),
            DriveOfAnotherArray { array } => {
                format!("it belongs to a pool of another array ({array}) and is left alone")
            }
            DriveFileRemoved { used_by } => file_removed(used_by),
            SpareUnusable { pool, obstacle } => {
                format!("it is a spare of pool {pool} and could not join it: {obstacle}")
            }
            health_facts!() => health::reason(self),
        }
    }

    /// What to do about it, where the problem is `subject`'s.
    pub fn action(&self, subject: &Subject) -> String {
        use ProblemFacts::*;
        let name = subject.name();
        let of_row = || self.code().row().action.to_owned();
        let or_of_row = |action: String| if action.is_empty() { of_row() } else { action };
        match self {
            ArrayFailed { cause } => or_of_row(cause.action()),
            ScheduleFailed { cause } => or_of_row(cause.action().to_owned()),
            PoolOffline { why, .. } if why.is_of_two_heads() => OF_TWO_HEADS.to_owned(),
            PoolOffline { needs_reload: true, .. } => pools::RELOAD.to_owned(),
            PoolDegraded { drives, repair, lost_bytes } => {
                pools::rebuild_action(drives, repair.as_ref(), *lost_bytes).to_owned()
            }
            DataLost { drives_missing: true, .. } => pools::LOST_WITH_DRIVES_MISSING.to_owned(),
            WritesRefused { room, .. }
            | PoolNearlyFull { room, .. }
            | PoolFilling { room, .. }
            | RebuildWouldLackSpace { room, .. } => pools::room(room),
            NoSpareLeft { drive } => format!(
                "name another (`tangelo drive spare {name} DRIVE`), or take note that there is none (`tangelo drive clear {drive}`)"
            ),
            DriveGivenUp(_) => format!(
                "take it out and have it replaced; `tangelo drive clear {name}` when you have taken note"
            ),
            DriveErrors { kept: Some(_), .. } => {
                "replace the drive: `tangelo drive replace`, or add one first".to_owned()
            }
            DriveSlow { emptying: true, .. } => {
                "replace it; `tangelo drive remove --cancel` has it stay".to_owned()
            }
            DriveFileRemoved { used_by: FileUse::Pool(pool) } => {
                format!("replace it before the array stops (`tangelo drive replace {pool} {name} NEW`)")
            }
            SpareUnusable { pool, obstacle } => format!(
                "{}; `tangelo drive spare {pool} {name} --release` has it be no spare",
                spare_action(obstacle, name)
            ),
            // the row says all
            ArrayStarting {}
            | ArrayStopping {}
            | StartIncomplete { .. }
            | EventsNotKept(_)
            | AlertsNotDelivered { .. }
            | ProblemsLeftOut { .. }
            | PairMaintenance { .. }
            | FenceUnusable { .. }
            | HeadNotFenced { .. }
            | PortalNotListening { .. }
            | LoginsRefused { .. }
            | ClockDoubted { .. }
            | SnapshotsFromFuture { .. }
            | ScheduleIncomplete { .. }
            | VolumeDeviceUnusable { .. }
            | VolumeDeviceSmaller { .. }
            | PoolOffline { .. }
            | NoSpaceBelow { .. }
            | RebuildLacksDrives { .. }
            | RebuildLacksSpace { .. }
            | SegmentsIncomplete { .. }
            | DataLost { .. }
            | DataDoubted { .. }
            | BinGivesWay { .. }
            | DriveErrors { .. }
            | DriveSlow { .. }
            | DriveOfAnotherArray { .. }
            | DriveFileRemoved { .. }
            | health_facts!() => of_row(),
        }
    }
}

/// To erase it helps only where something is on it.
fn spare_action(obstacle: &SpareObstacle, name: &str) -> String {
    let erase =
        || format!("erase it (`tangelo drive wipe {name}`) if nobody needs what is on it, or name another");
    match obstacle {
        SpareObstacle::Absent => "put it back, or name another".to_owned(),
        SpareObstacle::GivenUp(_) | SpareObstacle::TooSmall { .. } => "name another".to_owned(),
        SpareObstacle::Damaged | SpareObstacle::Unreadable { .. } => {
            format!("check the drive and its cabling; {}", erase())
        }
        SpareObstacle::Member { .. } | SpareObstacle::Holds { .. } | SpareObstacle::OtherVersion => erase(),
    }
}

fn from_future(snapshots: u64, latest: &str, latest_ms: u64) -> String {
    let moment = moment(latest_ms);
    format!(
        "{snapshots} snapshots say that they were taken in the future, the latest ({latest}) at {moment}: the clock was wrong then, or is now"
    )
}

fn schedule_incomplete(volume: &str) -> String {
    format!(
        "it cannot do what it should: the pool of volume {volume} was offline: it has no snapshot of the last time"
    )
}

fn data_lost(lost_bytes: u64) -> String {
    let lost = size(lost_bytes);
    format!(
        "some of its data is damaged beyond repair ({lost}, as far as is known); hosts get errors where it cannot be read"
    )
}

fn logins_refused(initiator: &str, logins: u64, limit: LoginLimit, sessions_max: u64) -> String {
    let logins = if logins == 1 { "1 login".to_owned() } else { format!("{logins} logins") };
    let why = match limit {
        LoginLimit::Host => format!("the host has {sessions_max} sessions, which is the limit"),
        LoginLimit::Address => format!("its address has {sessions_max} sessions, which is the limit"),
        LoginLimit::Core => {
            format!("a core has {sessions_max} sessions; the rest is kept for hosts that have none")
        }
    };
    format!("{logins} of {initiator} refused: {why}")
}

fn clock_doubted(says_ms: u64, expected_ms: u64, at_start: bool) -> String {
    let (says, expected) = (moment(says_ms), moment(expected_ms));
    let what = match at_start {
        true => format!("at the start it said {says}, and the array last knew it to be {expected}"),
        false => format!("it has jumped from {expected} to {says}"),
    };
    format!("{what}: until it has run steadily for a day, schedules delete no snapshots")
}

fn alerts_not_delivered(error: &str, failing_since_ms: u64, untold: u64) -> String {
    let since = moment(failing_since_ms);
    let untold = match untold {
        0 => String::new(),
        1 => "; 1 problem is untold".to_owned(),
        many => format!("; {many} problems are untold"),
    };
    format!("nothing was delivered since {since}: {error}{untold}")
}

fn file_removed(used_by: &FileUse) -> String {
    let what = match used_by {
        FileUse::Volume(volume) => format!("the file of volume {volume}"),
        FileUse::Pool(pool) => format!("the file of a drive of pool {pool}"),
    };
    format!(
        "{what} was removed or replaced under its hands: it is served for as long as the array runs, and lost then"
    )
}
