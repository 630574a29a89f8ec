//! How far a scrub has got.

/// A scrub: one that runs, or the last one.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ScrubStats {
    pub running: bool,
    pub segments_done: usize,
    pub segments_total: usize,
    /// Batches in which something was wrong, and copies of the root; all of their data is there, and is being written anew.
    pub batches_repaired: u64,
    /// Batches of which some data can neither be read nor rebuilt.
    pub batches_unreadable: u64,
}

#[derive(Default)]
pub(crate) struct Scrub {
    pub stats: ScrubStats,
    pub stop: bool,
}
