//! The kinds of faults, their rates, and how often each occurred.
//!
//! The simulator's drives and connections ask here. The report of a run is the table of [`FaultCounts`], so
//! a fault that is never exercised is visible.

use std::fmt;

macro_rules! fault_kinds {
    ($($(#[$doc:meta])* $name:ident = $text:literal,)*) => {
        /// Every way in which the simulated world misbehaves.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
        pub enum FaultKind { $($(#[$doc])* $name,)* }

        impl FaultKind {
            pub const ALL: &'static [FaultKind] = &[$(FaultKind::$name,)*];

            /// As reports call it.
            pub fn name(self) -> &'static str {
                match self { $(FaultKind::$name => $text,)* }
            }
        }
    };
}

fault_kinds! {
    /// All power of a machine went; its processes died and its drives lost what was not durable.
    PowerLoss = "power loss",
    /// A process died by `kill -9`; what the kernel had completed survives.
    Kill = "kill",
    /// An operation that the kernel went on with when its process had been killed; its drive was busy meanwhile.
    OperationOutlives = "operation outlives its process",
    /// A block of an unfinished or unflushed write that power loss let through.
    WriteKept = "unsettled block kept",
    /// A block of an unfinished or unflushed write that power loss dropped.
    WriteDropped = "unsettled block dropped",
    /// A block that power loss left half old, half new, by 512-byte sectors.
    WriteTorn = "block torn",
    /// An unfinished write of which some blocks arrived and some did not.
    WriteSplit = "write split",
    /// Power loss kept a newer unflushed write of a drive and dropped an older one.
    WriteReordered = "unflushed writes reordered",
    /// A drive with a volatile cache said that something was durable which was not.
    FlushLied = "lying flush",
    DriveVanished = "drive vanished",
    /// A drive was pulled, and answers with errors before it vanishes.
    DrivePulled = "drive pulled",
    DriveReturned = "drive returned",
    DriveOverwritten = "drive overwritten with garbage",
    /// A drive that holds again what it held some time ago.
    DrivePutBack = "drive put back to an older state",
    /// A place that became unreadable until it is rewritten.
    ReadError = "latent read error",
    WriteError = "write error",
    /// Acknowledged and never stored.
    LostWrite = "lost write",
    /// Stored at another place of the same drive.
    MisdirectedWrite = "misdirected write",
    BitRot = "bit rot",
    /// An operation that took a hundred times its time.
    SlowOperation = "slow operation",
    /// A drive that became slower for everything.
    SlowDrive = "slow drive",
    /// The maps of all lanes got more memory or less.
    MemoryChanged = "memory for maps changed",
    /// A drive that answered nothing for a while.
    DriveStuck = "drive stuck",
    NoSpace = "no space",
    /// A read that overlapped a write in flight and saw it already.
    ReadOfWriteInFlight = "read of a write in flight",
    ShortReceive = "short receive",
    ConnectionReset = "connection reset",
    /// A shard's queue was full and gave a message back.
    QueueFull = "queue full",
}

/// How often each fault happened.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct FaultCounts {
    counts: [u64; FaultKind::ALL.len()],
}

impl FaultCounts {
    pub fn add(&mut self, kind: FaultKind) {
        self.counts[kind as usize] += 1;
    }

    pub fn get(&self, kind: FaultKind) -> u64 {
        self.counts[kind as usize]
    }

    /// Adds another run's counts.
    pub fn merge(&mut self, other: &FaultCounts) {
        for (sum, count) in self.counts.iter_mut().zip(other.counts) {
            *sum += count;
        }
    }

    pub fn iter(&self) -> impl Iterator<Item = (FaultKind, u64)> + '_ {
        FaultKind::ALL.iter().map(|&kind| (kind, self.get(kind)))
    }
}

impl fmt::Display for FaultCounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (kind, count) in self.iter() {
            writeln!(f, "  {count:>10}  {}", kind.name())?;
        }
        Ok(())
    }
}

/// Per thousand operations of one drive. All zero is a healthy drive.
///
/// All but `slow` lose data or redundancy: the workload gives them to no more drives than the pool's
/// protection promises to survive.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct FaultRates {
    pub read_error: u32,
    pub write_error: u32,
    pub lost_write: u32,
    pub misdirected_write: u32,
    /// Of writes: a bit of a random stored block flips.
    pub bit_rot: u32,
    /// Of flushes and durable writes of a drive with a volatile cache: it answers, and keeps them in its cache.
    pub lying_flush: u32,
    pub slow: u32,
}

impl FaultRates {
    pub const NONE: FaultRates = FaultRates {
        read_error: 0,
        write_error: 0,
        lost_write: 0,
        misdirected_write: 0,
        bit_rot: 0,
        lying_flush: 0,
        slow: 0,
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_add_up_by_kind() {
        let mut one = FaultCounts::default();
        one.add(FaultKind::BitRot);
        let mut sum = one.clone();
        sum.add(FaultKind::Kill);
        sum.merge(&one);
        assert_eq!((sum.get(FaultKind::BitRot), sum.get(FaultKind::Kill)), (2, 1));
        assert_eq!(sum.iter().map(|(_, count)| count).sum::<u64>(), 3);
    }
}
