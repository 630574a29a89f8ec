//! The table's rows about drives. See `table.rs`.

use super::ProblemCode;
use super::row::{DataSafety, Harm, ProblemRow};
use crate::Health;

pub(super) const DRIVES: &[ProblemRow] = &[
    ProblemRow {
        code: ProblemCode::DriveGivenUp,
        title: "A pool went on without a drive",
        health: Health::Degraded,
        harm: Harm::Drive,
        data: DataSafety::Safe,
        meaning: "The drive failed, was missing or was too slow, and has left its pool. It is reported until somebody has taken note.",
        action: "take it out and have it replaced; `tangelo drive clear DRIVE` when you have taken note",
        facts: &[
            ("pool", "the pool that goes on without it"),
            ("trouble", "`failed`, `missing` or `slow`"),
            ("model", "its model; empty where it is not known"),
            ("serial", "its serial number; empty where it is not known"),
            ("bay", "its bay; empty where it is not known"),
            ("given_up_ms", "when the pool went on without it, in milliseconds since 1970"),
            ("spare", "the path of the hot spare that joined in its place, or null"),
        ],
    },
    ProblemRow {
        code: ProblemCode::DriveErrors,
        title: "A drive makes errors",
        health: Health::Degraded,
        harm: Harm::Drive,
        data: DataSafety::Safe,
        meaning: "The drive has made errors within the last hour, and is still in service.",
        action: "check the drive and its cabling; replace it if they go on",
        facts: &[
            ("read", "number of read errors since the start"),
            ("write", "number of write errors since the start"),
            ("checksum", "number of blocks with a wrong checksum since the start"),
            ("all_rebuilt", "whether everything that the pool's drives got wrong was rebuilt"),
            (
                "kept",
                "why it stays in service although it has made more errors than the pool's settings allow: `none-to-spare` or `needed`; null otherwise",
            ),
        ],
    },
    ProblemRow {
        code: ProblemCode::DriveSlow,
        title: "A drive is slow",
        health: Health::Degraded,
        harm: Harm::Drive,
        data: DataSafety::Safe,
        meaning: "The drive is much slower than its siblings. It is emptied, if the pool can do without it.",
        action: "replace it, or add a drive: then it is emptied by itself",
        facts: &[
            ("factor", "how many times slower than its siblings it is; null where it is not measured now"),
            ("emptying", "whether it is being emptied"),
        ],
    },
    ProblemRow {
        code: ProblemCode::DriveOfAnotherArray,
        title: "A drive belongs to another array",
        health: Health::Degraded,
        harm: Harm::Drive,
        data: DataSafety::Safe,
        meaning: "The drive has the label of a pool of another array. It is left alone.",
        action: "to serve that array, start with an empty state directory; else take the drive out",
        facts: &[("array", "the id of that array, 32 hexadecimal digits")],
    },
    ProblemRow {
        code: ProblemCode::DriveFileRemoved,
        title: "The file of a drive was removed",
        health: Health::Degraded,
        harm: Harm::Exposed,
        data: DataSafety::Exposed,
        meaning: "A file that is in use has no name any more. Its contents are lost when the array stops.",
        action: "have its hosts copy what is on it elsewhere before the array stops",
        facts: &[("used_by", "the `pool` or the raw `volume` that uses it, with its name")],
    },
    ProblemRow {
        code: ProblemCode::SpareUnusable,
        title: "A hot spare cannot join",
        health: Health::Degraded,
        harm: Harm::Spare,
        data: DataSafety::Safe,
        meaning: "The drive is a spare of a pool, but it could not join if it were needed.",
        action: "put it back if it is not there; erase it (`tangelo drive wipe DRIVE`) if nobody needs what is on it; or name another drive as a spare",
        facts: &[
            ("pool", "the pool whose spare it is"),
            (
                "obstacle",
                "`absent`, `given-up` with the facts of `drive-given-up`, `too-small` with `has_bytes` (bytes), `holds` with `what` was found, `member` with its `pool`, `other-version`, `damaged` or `unreadable` with the `error`",
            ),
        ],
    },
];
