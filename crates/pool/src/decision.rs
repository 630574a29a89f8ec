//! Counts decisions that are rarely taken. A batch of simulated runs must have taken each of them at least once.
//!
//! None of these decisions is on the path of healthy reads and writes. The counts belong to the process. Nothing in the
//! pool reads them.

use std::sync::atomic::{AtomicU64, Ordering};

macro_rules! decisions {
    ($($name:ident = $text:literal,)*) => {
        /// A rarely taken decision.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub(crate) enum Decision { $($name,)* }

        const NAMES: &[&str] = &[$($text,)*];
    };
}

decisions! {
    ClaimMissing = "claim: a drive is missing",
    ClaimReturned = "claim: a drive that was missing is back",
    ClaimOutdated = "claim: a drive holds an older state than the others say",
    ClaimRefusedMissing = "claim: refused, too many drives are missing",
    ClaimRefusedOutdated = "claim: refused, too many drives are missing or hold an older state",
    ClaimUnfinished = "claim: refused, the pool was never finished",
    ClaimLabelsDiffer = "claim: labels of more than one generation",
    FormatUpgraded = "label: the pool is moved to the newest format",
    LabelRefused = "label: a drive refuses it and is out",
    LabelsRewritten = "label: one is not what was written, all are written anew",
    DriveOutdated = "recovery: a drive holds an older state, what came later may lack it",
    RootsDiffer = "recovery: drives hold different newest roots",
    TailEnds = "recovery: no header, the segment ends",
    HeaderForeign = "read: a header of another life, passed over",
    TailReplayed = "recovery: a batch before the cut, passed over",
    TailGap = "recovery: a batch after a gap, the segment ends",
    TailEndNamed = "recovery: a batch that an earlier recovery dropped",
    TailOwn = "recovery: a batch of the table outside of the tail",
    BatchDurable = "recovery: a batch known to be durable",
    BatchDurableLacks = "recovery: a batch known to be durable lacks something",
    BatchWhole = "recovery: a batch found whole",
    BatchCompleted = "recovery: a batch completed in place",
    BatchIncomplete = "recovery: a batch that lacks a column for now",
    BatchTorn = "recovery: a torn batch dropped",
    LogCutShort = "recovery: refused, acknowledged batches are gone",
    OpenedFull = "recovery: reads are served while the file system is full",
    HeaderOtherCopy = "read: a header from another copy",
    ReadSplit = "read: a run failed, a block of it did not",
    RebuiltByBoth = "rebuild: by P and Q",
    RebuiltByP = "rebuild: by P, or a copy",
    RebuiltByQ = "rebuild: by Q alone",
    RebuildFailed = "rebuild: not possible",
    LossMet = "loss: something live can neither be read nor rebuilt",
    RootRotten = "scrub: a root is not what was written",
    HealLeft = "heal: left to cleaning",
    ColumnRetried = "write: a column tried again",
    ColumnBorne = "write: a column lost, its drive borne with",
    ColumnDriveOut = "write: a drive is reported",
    StalledFull = "write: no space below a drive",
    RefusedTakenOut = "write: what was refused taken out of its batch",
    RefusedInPart = "write: a request is refused while part of it is on its way",
    FlushFailed = "flush: a drive fails",
    CondemnedWrites = "evidence: a drive is out for failed writes",
    CondemnedReads = "evidence: a drive is out for failed reads",
    CondemnedChecksums = "evidence: a drive is out for wrong checksums",
    LastDriveKept = "evidence: a drive with errors is kept, none can be spared",
    CondemnedKept = "evidence: a drive is kept, others went before it was taken out",
    CondemnedTakenBack = "evidence: a drive is kept, others went while it was taken out",
    HungGivenUp = "drive: hangs, and is given up",
    GoneAfterErrors = "drive: gone, after errors",
    PulledWhileIdle = "drive: gone, found by looking",
    HungTogether = "drive: hangs, as others do, and is waited for",
    CheckpointGivenUp = "log: a checkpoint's entries given up",
    MovesGivenUp = "log: cleaning's entries given up",
    TableOutdated = "checkpoint: something has come to lack data, the table is made anew",
    CheckpointFailed = "checkpoint: failed, tried again",
    MoveStale = "cleaning: a block was overwritten while it was moved",
    RoundForRedundancy = "cleaning: a round for redundancy",
    RoundForRoom = "cleaning: a round for room",
    RoundForAnyRoom = "cleaning: a round while hosts wait",
    Starved = "cleaning: nothing to gain, hosts are refused",
    LostPagePassed = "cleaning: a lost page of the map is passed over",
    LayerLeftAlone = "layers: a page of the map is lost, they stay as they are",
    MergedUp = "layers: merged into the one above",
    MergedDown = "layers: merged into the one below",
    MergeResumed = "layers: a merge goes on after a start",
    MergeOvertaken = "layers: one that was to be merged was written again first",
    ForwardFollowed = "layers: a block of a layer that is gone is found where that went",
    BaseOutdated = "layers: a kept place is gone",
    BaseOvertaken = "layers: a working-out is overtaken by a merge",
    BaseUnreadable = "layers: a kept place cannot be read, and the block is elsewhere",
    Referred = "references: made",
    ReferenceRead = "references: a block is read through one",
    ReferenceTold = "references: part of a block is changed that is elsewhere",
    ReferenceOutdated = "references: what one refers to is gone, looked again",
    ScrubRepaired = "scrub: damage is repaired",
    DrainBegun = "drive: is being emptied",
    DriveRetired = "drive: removed, nothing stands on it",
    DriveAdded = "drive: added",
    DriveTakenBack = "drive: taken back while the pool is open",
    LaneFailed = "lane: has failed, too many drives have",
}

static COUNTS: [AtomicU64; NAMES.len()] = [const { AtomicU64::new(0) }; NAMES.len()];

impl Decision {
    /// Counts one occurrence.
    pub fn taken(self) {
        COUNTS[self as usize].fetch_add(1, Ordering::Relaxed);
    }
}

/// How often this process has taken each decision, by name.
pub fn decisions() -> impl Iterator<Item = (&'static str, u64)> {
    NAMES.iter().zip(&COUNTS).map(|(&name, count)| (name, count.load(Ordering::Relaxed)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_counts_rise() {
        let mut names: Vec<&str> = decisions().map(|(name, _)| name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), NAMES.len());
        let count =
            || decisions().find(|(name, _)| *name == "claim: a drive is missing").map(|(_, count)| count);
        let before = count();
        Decision::ClaimMissing.taken();
        assert!(count() > before);
    }
}
