//! The table of events: rows about the daemon, pools, drives, snapshots and the bin.

use super::row::EventRow;
use super::{EventCode, EventSeverity};

const VERSION: (&str, &str) = ("version", "the version of the program");
const POOL: (&str, &str) = ("pool", "the name of the pool");
const WHY: (&str, &str) = ("why", "why it is not served, as the facts of the problem `pool-offline`");
const WHAT: (&str, &str) = (
    "what",
    "`rebuilding` (data lacks redundancy), `emptying` (a drive is to leave) or `repairing` (something is damaged)",
);

pub(super) const ARRAY: &[EventRow] = &[
    EventRow {
        code: EventCode::DaemonStarted,
        severity: Some(EventSeverity::Info),
        meaning: "The daemon has started; hosts are not served yet. Problems that last are told anew after it, so a reader forgets at this event what it knew of them.",
        facts: &[VERSION],
    },
    EventRow {
        code: EventCode::DaemonStopped,
        severity: Some(EventSeverity::Info),
        meaning: "The daemon has stopped in order: sessions are closed and checkpoints are written. It lacks where the daemon was killed or the power went.",
        facts: &[VERSION],
    },
    EventRow {
        code: EventCode::PoolOpened,
        severity: Some(EventSeverity::Info),
        meaning: "A pool is in service.",
        facts: &[
            ("drives", "number of drives that it works with"),
            ("lost_drives", "number of drives that it has lost"),
        ],
    },
    EventRow {
        code: EventCode::PoolClosed,
        severity: Some(EventSeverity::Info),
        meaning: "A pool that was in service was closed.",
        facts: &[WHY],
    },
    EventRow {
        code: EventCode::PoolFailed,
        severity: Some(EventSeverity::Error),
        meaning: "A pool could not be opened, or failed while it served hosts.",
        facts: &[WHY],
    },
    EventRow {
        code: EventCode::DriveGivenUp,
        severity: Some(EventSeverity::Warning),
        meaning: "A pool goes on without one of its drives.",
        facts: &[POOL, ("trouble", "`failed` (it made too many errors), `missing` or `slow`")],
    },
    EventRow {
        code: EventCode::DriveReturned,
        severity: Some(EventSeverity::Info),
        meaning: "A drive that was missing is a member of its pool again.",
        facts: &[POOL],
    },
    EventRow {
        code: EventCode::DriveJoined,
        severity: Some(EventSeverity::Info),
        meaning: "A drive has joined a pool: it was added, it replaces another one, or it was a spare.",
        facts: &[POOL],
    },
    EventRow {
        code: EventCode::DriveEmptying,
        severity: Some(EventSeverity::Info),
        meaning: "What a drive holds is being moved to other drives, so that it can leave the pool.",
        facts: &[POOL, ("slow", "whether the array empties it because it is slow")],
    },
    EventRow {
        code: EventCode::DriveKept,
        severity: Some(EventSeverity::Info),
        meaning: "A drive that was being emptied stays in the pool: somebody cancelled it, or the drive is needed.",
        facts: &[POOL],
    },
    EventRow {
        code: EventCode::DriveLeft,
        severity: Some(EventSeverity::Info),
        meaning: "Nothing is needed of a drive any more, and it is not a member of the pool any more.",
        facts: &[POOL],
    },
    EventRow {
        code: EventCode::RepairBegan,
        severity: Some(EventSeverity::Info),
        meaning: "The array has begun to write data of a pool anew.",
        facts: &[WHAT, ("bytes", "how much there is to write at its beginning, in bytes")],
    },
    EventRow {
        code: EventCode::RepairEnded,
        severity: Some(EventSeverity::Info),
        meaning: "Nothing is left to write anew.",
        facts: &[WHAT, ("written_bytes", "how much was written anew, in bytes")],
    },
    EventRow {
        code: EventCode::ScrubBegan,
        severity: Some(EventSeverity::Info),
        meaning: "A scrub of a pool has begun.",
        facts: &[],
    },
    EventRow {
        code: EventCode::ScrubEnded,
        severity: None,
        meaning: "A scrub of a pool has ended. The severity is `error` if something is unreadable, `warning` if something was repaired, else `info`.",
        facts: &[
            ("complete", "whether it has read everything"),
            ("repaired", "number of batches and labels that it repaired"),
            ("unreadable", "number of batches that can neither be read nor rebuilt"),
        ],
    },
    EventRow {
        code: EventCode::SnapshotsTaken,
        severity: Some(EventSeverity::Info),
        meaning: "A schedule has taken snapshots, and has deleted those whose time was over.",
        facts: &[
            ("volumes", "names of the volumes"),
            ("expired", "number of older snapshots that it deleted"),
        ],
    },
    EventRow {
        code: EventCode::VolumeExpired,
        severity: Some(EventSeverity::Info),
        meaning: "A volume in the bin was deleted for good by the array.",
        facts: &[POOL, ("why", "`overdue` (its time was over) or `pool-full`")],
    },
];
