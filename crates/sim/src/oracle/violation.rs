//! Violations that the oracle has found in a run, as text.

use std::fmt;

/// A promise that was broken.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Violation {
    pub volume: u32,
    pub block: u64,
    /// Sector of the volume.
    pub sector: u64,
    pub kind: ViolationKind,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ViolationKind {
    /// A version that may not be there (any more, or again); those that may.
    NotPermitted {
        seen: u64,
        permitted: Vec<u64>,
    },
    /// Half of one write and half of another in one block.
    Torn {
        seen: Vec<Option<u64>>,
    },
    /// The data of another place.
    Misplaced {
        volume: u32,
        sector: u64,
        version: u64,
    },
    Garbage,
    /// A read gave another number of bytes than it was asked for.
    WrongLength {
        expected: usize,
        seen: usize,
    },
    /// A compare failed though nothing but what it expected can have been there.
    FalseMiscompare,
    /// A compare succeeded though what it expected cannot have been there.
    FalseMatch {
        expected: u64,
    },
    /// Two compares matched the same version of a sector, which the first of them has replaced.
    MatchedTwice {
        version: u64,
    },
    /// A write that was refused had been seen by a read.
    RefusedButSeen {
        version: u64,
    },
    /// Snapshots of one group hold what was never there at one moment.
    NotOneMoment,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "volume {} block {} sector {}: ", self.volume, self.block, self.sector)?;
        match &self.kind {
            ViolationKind::NotPermitted { seen, permitted } => {
                write!(f, "holds version {seen}, permitted are {permitted:?}")
            }
            ViolationKind::Torn { seen } => write!(f, "torn: its sectors hold versions {seen:?}"),
            ViolationKind::Misplaced { volume, sector, version } => {
                write!(f, "holds version {version} of volume {volume} sector {sector}")
            }
            ViolationKind::Garbage => f.write_str("holds what was never written"),
            ViolationKind::WrongLength { expected, seen } => write!(f, "{seen} bytes came, not {expected}"),
            ViolationKind::FalseMiscompare => f.write_str("a compare failed that must succeed"),
            ViolationKind::FalseMatch { expected } => {
                write!(f, "a compare matched version {expected}, which is not there")
            }
            ViolationKind::MatchedTwice { version } => {
                write!(f, "two compares matched version {version}, of which one has replaced it")
            }
            ViolationKind::RefusedButSeen { version } => {
                write!(f, "version {version} was refused, but had been read")
            }
            ViolationKind::NotOneMoment => {
                f.write_str("the snapshots of its group hold a write without one that was acknowledged before it was sent")
            }
        }
    }
}
