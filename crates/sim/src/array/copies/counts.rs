//! Counts of administrators' commands in the whole array, and of commands that were cut off, over all runs of a
//! process.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::counts::counted;

macro_rules! kinds {
    ($($name:ident = $text:literal,)*) => {
        /// What an administrator does with copies.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub enum Kind { $($name,)* }

        impl Kind {
            pub const ALL: &'static [Kind] = &[$(Kind::$name,)*];
        }

        const DONE: &[&str] = &[$(concat!("administrator: ", $text),)*];
        const CUT: &[&str] = &[$(concat!("administrator: cut off: ", $text),)*];
    };
}

kinds! {
    Create = "volume created",
    Map = "volume mapped",
    Unmap = "volume unmapped",
    Snapshot = "snapshot",
    Group = "snapshots of a group",
    Schedule = "schedule created",
    Scheduled = "snapshots by a schedule",
    View = "clone that is read only",
    DeleteSnapshot = "snapshot deleted",
    Clone = "clone",
    RollBack = "rollback",
    Refresh = "clones refreshed",
    Promote = "promotion",
    Grow = "volume grown",
    Shrink = "volume made smaller",
    ForcedShrink = "volume made smaller by force",
    Bin = "volume put into the bin",
    Undelete = "volume brought back",
    Eradicate = "eradicated from the bin",
    Delete = "volume deleted for good",
    Copy = "volume copied",
}

counted! {
    /// What was seen of it.
    Sight: "administrator: " {
        FoundDone = "what was cut off is found done",
        FoundUndone = "what was cut off is found not done",
        ToldByContent = "a rollback or refresh is told by its content alone",
        RefreshedSeveral = "several clones refreshed at once",
        RefusedToRefresh = "clones that are mapped are not refreshed",
        Viewed = "snapshot read",
        RefusedToShrink = "a volume that holds data is not made smaller",
        GrownBack = "a volume that got smaller grows again, and is read behind its end",
        Expired = "a schedule's snapshot is kept no longer",
        BinEmptied = "the bin empties itself",
        SpaceIsBack = "all space is back",
    }
}

static DONE_COUNTS: [AtomicU64; DONE.len()] = [const { AtomicU64::new(0) }; DONE.len()];
static CUT_COUNTS: [AtomicU64; CUT.len()] = [const { AtomicU64::new(0) }; CUT.len()];

impl Kind {
    pub fn done(self) {
        DONE_COUNTS[self as usize].fetch_add(1, Ordering::Relaxed);
    }

    pub fn cut(self) {
        CUT_COUNTS[self as usize].fetch_add(1, Ordering::Relaxed);
    }

    pub fn times_cut(self) -> u64 {
        CUT_COUNTS[self as usize].load(Ordering::Relaxed)
    }
}

/// How often this process has done, cut off and seen each, by name.
pub fn administration() -> impl Iterator<Item = (&'static str, u64)> {
    let done = DONE.iter().zip(&DONE_COUNTS);
    let counts = done.chain(CUT.iter().zip(&CUT_COUNTS));
    counts.map(|(&name, count)| (name, count.load(Ordering::Relaxed))).chain(Sight::counts())
}
