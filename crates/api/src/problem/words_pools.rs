//! Words about pools, their space and their drives.

use base::units::size;

use super::{KeptInService, LostDrive, PoolRoom, RefusedWrites};
use crate::RepairStatus;

/// Hosts and volumes that are named.
const NAMED_MAX: usize = 4;

pub(super) const REFUSES_WHEN_FULL: &str = "when it is full, writes that need space are refused";

/// For a pool that was served: hosts may have been told of errors, so it comes back only on command.
pub(super) const RELOAD: &str =
    "bring its missing drives back, then reload (`systemctl reload tangelo`): it is opened anew";

pub(super) const LOST_WITH_DRIVES_MISSING: &str = "bring its missing drives back: with them it may be readable; else restore what hosts cannot read from a backup";

pub(super) fn nearly_full(full_percent: u64) -> String {
    format!("it is {full_percent} % full, and hosts are warned of it (38h/07h); {REFUSES_WHEN_FULL}")
}

pub(super) fn lacks_space(drives: &[LostDrive], short_bytes: u64) -> String {
    let short = format!("not enough free space to rebuild: {} short", size(short_bytes));
    joined(None, drives, Some(short))
}

/// What is said first, the lost drives, and what is said last.
pub(super) fn joined(first: Option<String>, drives: &[LostDrive], last: Option<String>) -> String {
    let drives = drives.iter().map(|drive| drive.to_string());
    first.into_iter().chain(drives).chain(last).collect::<Vec<_>>().join("; ")
}

pub(super) fn rebuild_action(
    drives: &[LostDrive],
    repair: Option<&RepairStatus>,
    lost_bytes: u64,
) -> &'static str {
    match (drives, repair) {
        ([], _) => "nothing: what lacks a column is being written anew",
        (_, None) if lost_bytes > 0 => {
            "bring the drive back; else replace it, and it leaves when nothing damaged stands on it any more"
        }
        _ => "nothing: it is rebuilt on the other drives; replace the drive when you can",
    }
}

pub(super) fn no_space_below(paths: &[String]) -> String {
    match paths {
        [] => "there is no space below its drives: writes are refused".to_owned(),
        _ => format!("there is no space below {}: writes are refused", paths.join(", ")),
    }
}

/// How to come by space.
pub(super) fn room(room: &PoolRoom) -> String {
    let mut ways = "add a drive, delete volumes, or discard what hosts do not need (fstrim)".to_owned();
    if room.binned_volumes > 0 {
        let volumes = counted(room.binned_volumes, "volume");
        let holds = match room.bin_bytes {
            0 => String::new(),
            bytes => format!(" holds {}", size(bytes)),
        };
        ways.push_str(&format!("; the bin ({volumes}){holds}: `tangelo volume eradicate`"));
    }
    if room.snapshots > 0 {
        let count = counted(room.snapshots, "snapshot");
        ways.push_str(&format!(
            "; there are {count}: `tangelo snapshot list` shows what each would give back"
        ));
    }
    ways
}

pub(super) fn writes_refused(full_percent: u64, writers: &[RefusedWrites]) -> String {
    let named = |one: &RefusedWrites| format!("host {} to volume {}", one.host, one.volume);
    let first = writers.iter().take(NAMED_MAX).map(named).collect::<Vec<_>>().join(", ");
    let of = match writers.len().saturating_sub(NAMED_MAX) {
        0 => first,
        more => format!("{first}, and {more} more"),
    };
    format!("it is {full_percent} % full, and writes are refused for want of space: of {of}")
}

pub(super) fn bin_gives_way(full_percent: u64, gives_way_percent: u64, volumes: u64) -> String {
    let volumes = counted(volumes, "volume");
    format!(
        "it is {full_percent} % full: from {gives_way_percent} % on, what is in the bin ({volumes}) goes for good, the oldest first"
    )
}

pub(super) fn drive_errors(
    counts: [(u64, &str); 3],
    all_rebuilt: bool,
    kept: Option<KeptInService>,
) -> String {
    let errors = counts.iter().filter(|(count, _)| *count > 0).map(|(count, kind)| format!("{count} {kind}"));
    let errors = errors.collect::<Vec<_>>().join(", ");
    let rebuilt = match all_rebuilt {
        true => "what it got wrong was rebuilt from the others",
        false => "not all of what drives got wrong could be rebuilt",
    };
    let stays = match kept {
        Some(why) => {
            format!("; they are more than `tangelo pool set` allows, and it stays only because {why}")
        }
        None => String::new(),
    };
    format!("it has made errors ({errors}); {rebuilt}{stays}")
}

pub(super) fn drive_slow(factor: Option<u32>, emptying: bool) -> String {
    let how = factor.map_or("much".to_owned(), |factor| format!("{factor} times"));
    let what = match emptying {
        true => "it is being emptied, and is read only where it must be",
        false => "the pool cannot do without it now",
    };
    format!("it is {how} slower than its siblings; {what}")
}

pub(super) fn smaller(left_bytes: u64, volume_bytes: u64) -> String {
    format!("its device became smaller: {} of {} are left", size(left_bytes), size(volume_bytes))
}

fn counted(count: u64, of: &str) -> String {
    if count == 1 { format!("1 {of}") } else { format!("{count} {of}s") }
}
