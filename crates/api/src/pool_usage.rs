//! Figures of a pool, as the administrator is told them.

/// A pool's map, and the memory for it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PoolMap {
    /// What it takes in the log.
    pub bytes: u64,
    /// Memory that it may use, and what is in it.
    pub memory_bytes: u64,
    pub cached_bytes: u64,
    /// Pages that were looked for in memory since the lanes were opened, and those that had to be read.
    pub lookups: u64,
    pub misses: u64,
}

/// Copies by reference.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PoolReferences {
    /// Blocks of volumes and snapshots that are references: what the copies would take as data.
    pub copied_bytes: u64,
    /// Used for nothing but references: given back when the last of them goes.
    pub kept_bytes: u64,
}

/// What was written to a pool since its lanes were opened, without headers and parity.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PoolWrites {
    /// The array's own records among them.
    pub host_bytes: u64,
    /// Live data that cleaning or repair wrote anew.
    pub moved_bytes: u64,
    /// Of those, what lacked redundancy, was damaged, or stood on a drive that is to go.
    pub restored_bytes: u64,
    /// Of the map: its pages and tables.
    pub map_bytes: u64,
}
