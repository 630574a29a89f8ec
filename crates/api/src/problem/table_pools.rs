//! The table's rows about pools. See `table.rs`.

use super::ProblemCode;
use super::row::{DataSafety, Harm, ProblemRow};
use crate::Health;

const DRIVES: (&str, &str) = (
    "drives",
    "the drives that the pool cannot use: `drive` (path), `bay`, and `how` (`missing`, `failed`, or `unusable` with its error)",
);
const FULL: (&str, &str) = ("full_percent", "share of the pool's capacity that is in use, in percent");
const ROOM: (&str, &str) = (
    "room",
    "what could give space back: number of `snapshots`, number of `binned_volumes`, and `bin_bytes` that only the bin keeps (bytes)",
);

const MAKE_ROOM: &str = "add a drive, delete volumes, or discard what hosts do not need (fstrim)";

pub(super) const POOLS: &[ProblemRow] = &[
    ProblemRow {
        code: ProblemCode::PoolOffline,
        title: "A pool is not served",
        health: Health::Offline,
        harm: Harm::Offline,
        data: DataSafety::Unreachable,
        meaning: "The pool is being opened, cannot be opened, or has lost more drives than its protection covers. Hosts cannot use its volumes.",
        action: "bring its missing drives back: it is opened by itself when enough of them are there",
        facts: &[
            (
                "why",
                "`opening`, `waits-for-drive` with its `path`, `stopping`, `deleting`, `not-found`, `no-usable-drive`, `too-many-failed`, `catalog-unreadable` or `cannot-open`, both with the `cause`: a word such as `too-many-missing`, with its numbers and names",
            ),
            DRIVES,
            ("needs_reload", "whether the pool was served before: then it is opened only by a reload"),
        ],
    },
    ProblemRow {
        code: ProblemCode::NoSpaceBelow,
        title: "There is no space below a pool's drives",
        health: Health::Degraded,
        harm: Harm::Space,
        data: DataSafety::Safe,
        meaning: "The file system below a file drive, or the storage below a thin device, is full. Writes are refused.",
        action: "make room there, in the file system or thin pool; writes go on by themselves",
        facts: &[("paths", "the paths of the drives below which there is no space")],
    },
    ProblemRow {
        code: ProblemCode::PoolDegraded,
        title: "A pool has less redundancy than promised",
        health: Health::Degraded,
        harm: Harm::Exposed,
        data: DataSafety::Exposed,
        meaning: "Drives are missing or have failed, or blocks lack redundancy for another reason. What lacks redundancy is being written anew.",
        action: "nothing: it is rebuilt on the other drives; replace the drive when you can",
        facts: &[
            DRIVES,
            (
                "repair",
                "the rebuild, as in the pool's status, with `done_bytes`, `total_bytes`, `short_bytes` (bytes), `bytes_per_second` and `seconds_left`; null when nothing remains to be rebuilt",
            ),
            ("lost_bytes", "data that is damaged beyond repair, in bytes"),
        ],
    },
    ProblemRow {
        code: ProblemCode::RebuildLacksDrives,
        title: "A pool has too few drives to rebuild",
        health: Health::Degraded,
        harm: Harm::Exposed,
        data: DataSafety::Exposed,
        meaning: "Fewer drives are left than a segment has columns. The pool stays without full redundancy until it has another drive.",
        action: "bring the drive back, or add one (`tangelo drive add`); keep a backup at hand",
        facts: &[DRIVES],
    },
    ProblemRow {
        code: ProblemCode::RebuildLacksSpace,
        title: "A pool has too little free space to rebuild",
        health: Health::Degraded,
        harm: Harm::Exposed,
        data: DataSafety::Exposed,
        meaning: "The drives that are left cannot hold all data with full redundancy.",
        action: "add a drive (`tangelo drive add`), delete volumes, or discard what hosts do not need",
        facts: &[DRIVES, ("short_bytes", "space that is missing, in bytes")],
    },
    ProblemRow {
        code: ProblemCode::SegmentsIncomplete,
        title: "Segments lack a part",
        health: Health::Degraded,
        harm: Harm::Exposed,
        data: DataSafety::Exposed,
        meaning: "All drives are there, but some have missed or lost a part of these segments.",
        action: "nothing: they are being written anew",
        facts: &[("segments", "number of segments that lack a part")],
    },
    ProblemRow {
        code: ProblemCode::DataLost,
        title: "Data is damaged beyond repair",
        health: Health::Degraded,
        harm: Harm::Lost,
        data: DataSafety::Lost,
        meaning: "Some blocks can neither be read nor rebuilt. It is reported as long as they are in use.",
        action: "restore what hosts cannot read from a backup, or delete it; then scrub",
        facts: &[
            ("lost_bytes", "the damaged data, as far as is known, in bytes"),
            ("drives_missing", "whether drives of the pool are missing: with them the data may be readable"),
        ],
    },
    ProblemRow {
        code: ProblemCode::DataDoubted,
        title: "The last scrub found unreadable data",
        health: Health::Degraded,
        harm: Harm::Lost,
        data: DataSafety::Lost,
        meaning: "The last scrub found data that could neither be read nor rebuilt, but no block in use is known to be damaged now.",
        action: "scrub again",
        facts: &[("unreadable_batches", "number of batches that the last scrub could not read in full")],
    },
    ProblemRow {
        code: ProblemCode::WritesRefused,
        title: "Writes are refused for want of space",
        health: Health::Degraded,
        harm: Harm::Space,
        data: DataSafety::Safe,
        meaning: "The pool is full. Writes that need space are refused; reads and writes to blocks in use may still work.",
        action: MAKE_ROOM,
        facts: &[FULL, ("writers", "whose writes are refused: `host` and `volume`"), ROOM],
    },
    ProblemRow {
        code: ProblemCode::PoolNearlyFull,
        title: "A pool is nearly full",
        health: Health::Degraded,
        harm: Harm::Space,
        data: DataSafety::Safe,
        meaning: "The pool has reached the threshold at which hosts are warned (38h/07h).",
        action: MAKE_ROOM,
        facts: &[FULL, ROOM],
    },
    ProblemRow {
        code: ProblemCode::PoolFilling,
        title: "A pool is filling",
        health: Health::Healthy,
        harm: Harm::Space,
        data: DataSafety::Safe,
        meaning: "An early notice. The pool is healthy, but it is time to plan for more space.",
        action: MAKE_ROOM,
        facts: &[FULL, ROOM],
    },
    ProblemRow {
        code: ProblemCode::RebuildWouldLackSpace,
        title: "A pool could not be rebuilt after the next failure",
        health: Health::Degraded,
        harm: Harm::Space,
        data: DataSafety::Safe,
        meaning: "After the failure of one more drive, the other drives could not hold all data with full redundancy.",
        action: MAKE_ROOM,
        facts: &[("short_bytes", "space that would be missing, in bytes"), ROOM],
    },
    ProblemRow {
        code: ProblemCode::BinGivesWay,
        title: "Deleted volumes will leave the bin early",
        health: Health::Degraded,
        harm: Harm::Space,
        data: DataSafety::Safe,
        meaning: "The pool is nearly so full that it takes back the space of deleted volumes, the oldest first. They cannot be brought back then.",
        action: "bring back what is needed (`tangelo volume bin`, `tangelo volume undelete`), add a drive, or discard what hosts do not need (fstrim)",
        facts: &[
            FULL,
            ("gives_way_percent", "from this share on, volumes leave the bin early, in percent"),
            ("volumes", "number of volumes in the bin"),
        ],
    },
    ProblemRow {
        code: ProblemCode::NoSpareLeft,
        title: "No spare is left",
        health: Health::Degraded,
        harm: Harm::Spare,
        data: DataSafety::Safe,
        meaning: "A hot spare has joined the pool in the place of a lost drive, and there is no other.",
        action: "name another (`tangelo drive spare POOL DRIVE`), or take note that there is none (`tangelo drive clear DRIVE`)",
        facts: &[("drive", "the path of the drive that the spare stands in for")],
    },
];
