//! The life of drives, scrubbing and pools' settings: what may be asked, and what is told of it.

/// A change of a pool's drives, or of how it is looked after. Drives of a pool are named by path, or by the
/// beginning of their id.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Upkeep {
    /// The pool grows. `force` names those of `drives` whose present content may be destroyed.
    DriveAdd {
        pool: String,
        drives: Vec<String>,
        force: Vec<String>,
    },
    /// Empties a drive, so that it can be taken away; `cancel` has it stay.
    DriveRemove {
        pool: String,
        drive: String,
        cancel: bool,
    },
    /// Adds `new` and empties `old`; where `old` cannot be read, what stood on it is rebuilt.
    DriveReplace {
        pool: String,
        old: String,
        new: String,
        force: bool,
    },
    /// Has drives join by themselves when the pool has lost one; `release` ends that.
    Spare {
        pool: String,
        drives: Vec<String>,
        release: bool,
    },
    /// Begins to read everything and to repair what is wrong, or stops that.
    Scrub {
        pool: String,
        stop: bool,
    },
    Set {
        pool: String,
        settings: NewSettings,
    },
}

/// Settings to change; what is `None` stays as it is.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct NewSettings {
    /// Everything else goes back to the program's choice first.
    pub defaults: bool,
    pub repair_share_percent: Option<u8>,
    pub write_errors: Option<u32>,
    pub read_errors: Option<u32>,
    pub checksum_errors: Option<u32>,
    pub error_window_seconds: Option<u32>,
    /// 0: no drive is emptied for being slow.
    pub slow_factor: Option<u32>,
    pub slow_latency_ms: Option<u32>,
    pub slow_seconds: Option<u32>,
    /// 0: a drive that does not answer is waited for.
    pub hung_seconds: Option<u32>,
    /// 0: no scrub by itself.
    pub scrub_every_seconds: Option<u32>,
    /// 0: what is deleted goes at once.
    pub bin_seconds: Option<u32>,
}

/// What holds for a pool now, set or not.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PoolSettings {
    pub repair_share_percent: u8,
    pub write_errors: u32,
    pub read_errors: u32,
    pub checksum_errors: u32,
    pub error_window_seconds: u32,
    pub slow_factor: u32,
    pub slow_latency_ms: u32,
    pub slow_seconds: u32,
    /// A drive that does not answer for so long is given up; 0: never.
    pub hung_seconds: u32,
    /// `None`: no scrub by itself.
    pub scrub_every_seconds: Option<u32>,
    /// How long a deleted volume stays in the bin; 0: not at all.
    pub bin_seconds: u32,
}

/// Blocks that are being written anew.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RepairStatus {
    /// `rebuilding`, `repairing` or `emptying`.
    pub what: &'static str,
    pub done_bytes: u64,
    /// Those done, and those still to do.
    pub total_bytes: u64,
    pub bytes_per_second: u64,
    /// `None` where nothing got done lately.
    pub seconds_left: Option<u64>,
    /// Space that is missing for it.
    pub short_bytes: u64,
}

/// A pool's scrub: one that runs, and the last one.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct ScrubStatus {
    pub running: bool,
    /// Of the one that runs.
    pub segments_done: u64,
    pub segments_total: u64,
    pub batches_repaired: u64,
    pub batches_unreadable: u64,
    pub last: Option<LastScrub>,
}

/// How the last scrub ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LastScrub {
    /// Wall clock, milliseconds since 1970.
    pub ended_ms: u64,
    /// `false` where it was stopped before the end.
    pub complete: bool,
    pub repaired: u64,
    pub unreadable: u64,
}
