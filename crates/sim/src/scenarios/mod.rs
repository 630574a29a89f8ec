//! Named scenarios: scripted worlds, each for one property or one bug that was found.
//!
//! A scenario runs with several seeds, because the script leaves the order and timing of events to the seed.

mod claims;
mod contended;
mod copies;
mod crashes;
mod drives;
mod figures;
mod heads;
mod hung;
mod kept;
mod layers;
mod loss;
mod problems;
mod proof;
mod raw;
mod refused;
mod script;
mod sealed;
mod slots;
mod space;
mod transfers;

use crate::seed::Options;
use crate::workload::Failure;

pub use script::{Script, plain_plan};
pub use sealed::bear_change;

/// One scenario.
pub struct Scenario {
    pub name: &'static str,
    /// What must hold.
    pub property: &'static str,
    pub run: fn(u64, Options) -> Result<(), Failure>,
}

/// How often this process has taken a decision, or seen what copies bring about, by its name.
fn counted(name: &str) -> u64 {
    crate::counts().find(|(other, _)| *other == name).expect("the name of a count").1
}

/// Runs at least `least` times, and until each of these counts has grown; at most `most` times.
fn until_met<T, const N: usize>(
    names: [&str; N],
    least: u64,
    most: u64,
    mut run: impl FnMut(u64) -> Result<T, Failure>,
) -> Result<(), Failure> {
    let met = || names.map(counted);
    let before = met();
    for n in 0..most {
        if n >= least && met().iter().zip(before).all(|(now, before)| *now > before) {
            return Ok(());
        }
        run(n)?;
    }
    Err(Failure::Broken(format!("in {most} runs, not all of {names:?} were met: {:?}", met())))
}

/// Every scenario.
pub const ALL: &[Scenario] = &[
    crashes::POWER_CUT_AFTER_EVERY_WRITE,
    crashes::KILL_DURING_RECOVERY,
    claims::UPGRADED_WITHOUT_A_DRIVE,
    slots::NEWEST_IS_NOT_OVERWRITTEN,
    crashes::CHECKPOINT_CUT_OFF,
    crashes::TORN_BATCH_STAYS_DROPPED,
    crashes::STALE_EPOCH_IS_NOT_REPLAYED,
    crashes::HEADERS_OF_ANOTHER_LIFE,
    hung::HUNG_DRIVE_IS_GIVEN_UP,
    hung::PULLED_DRIVE_ANSWERS_WITH_ERRORS_FIRST,
    hung::PULLED_FROM_AN_IDLE_POOL,
    hung::WHAT_HANGS_TOGETHER_IS_WAITED_FOR,
    drives::AS_MANY_DRIVES_AS_PROMISED_VANISH,
    drives::ROT_ON_EVERY_BLOCK_OF_PROMISED_DRIVES,
    drives::STALE_DRIVE_RETURNS,
    drives::ONE_DRIVE_TOO_MANY_IS_REFUSED,
    drives::WHAT_WENT_WITH_A_DRIVE_IS_NOT_FLUSHED,
    drives::LOCKED_DRIVE_IS_NOT_MISSING,
    drives::DESTROYED_WITH_ITS_LABEL,
    drives::FULL_FILE_SYSTEM_RESUMES,
    drives::FULL_FILE_SYSTEM_USES_NOTHING_UP,
    drives::BLOCK_OF_ANOTHER_PLACE_IS_NOTICED,
    drives::KEPT_WHERE_ANOTHER_LACKS_SOMETHING,
    drives::SLOW_AMONG_ITS_SIBLINGS,
    refused::ACKNOWLEDGED_THOUGH_IT_CANNOT_BE_COMPLETED,
    refused::REFUSED_WRITES_DO_NOT_LAND_LATER,
    refused::REFUSED_COPY_DOES_NOT_COME_TO_BE,
    space::THIN_POOL_RUNS_FULL,
    space::REFUSED_WRITE_HAS_ENDED,
    space::FULL_POOL_LOSES_A_DRIVE,
    space::FULL_POOL_ANSWERS,
    space::SET_ASIDE_WENT_WITH_DRIVES,
    space::REDUNDANCY_COMES_BACK_WHERE_ROOM_IS_SHORT,
    space::LOST_MAP_PAGES_STAY,
    space::CHECKPOINTS_READ_NOTHING,
    space::MAP_TEN_TIMES_ITS_MEMORY,
    space::PROMISED_SPACE_IS_USED_OR_GIVEN_BACK,
    proof::IDLE_POOL_IS_REBUILT,
    proof::DRAINED_DRIVE_IS_NOT_NEEDED,
    proof::ADDED_DRIVE_IS_USED,
    proof::HALF_ADDED_DRIVE_IS_NOT_MISSED,
    proof::RETURNED_DRIVE_CATCHES_UP,
    proof::REFUSED_COLUMN_IS_MADE_UP_FOR,
    proof::SCRUB_FINDS_ROTTEN_PARITY,
    proof::SCRUB_READS_ROOTS_AND_LABELS,
    proof::ACKNOWLEDGED_BATCHES_ARE_MISSED,
    proof::OLDER_LIFE_IS_REFUSED,
    proof::SCRUB_OF_A_DEGRADED_POOL,
    loss::LOST_DATA_STAYS_REPORTED,
    loss::LOST_DATA_COMES_BACK_WITH_ITS_DRIVE,
    layers::COPIES_STAY_WHAT_THEY_WERE,
    layers::DELETING_GIVES_BACK_WHAT_WAS_SAID,
    layers::RENAMED_LAYER_IS_NOT_MADE_AGAIN,
    layers::EMPTY_LAYER_IS_MADE_AGAIN,
    layers::LAYER_WRITTEN_AGAIN_IS_MERGED_WHOLE,
    layers::TARGET_OF_A_MERGE_IS_NOT_FORGOTTEN,
    layers::REFERENCES_OUTLIVE_WHAT_THEY_WERE_MADE_OF,
    layers::REFERENCE_TO_NOTHING_IS_AN_ERROR,
    kept::KEPT_PLACE_IS_GIVEN_UP,
    kept::MOVED_WHILE_LOOKED_UP_IS_NOT_LOST,
    layers::BLOCKS_OF_MERGED_LAYERS_ARE_CLEANED,
    layers::LOST_PAGE_STOPS_NOBODY,
    layers::DELETION_IS_NOT_OVERHEARD,
    sealed::CHANGED_STRUCTURES_DO_NO_HARM,
    sealed::WRONG_COUNTS_ARE_MENDED,
    claims::CLAIMS_NO_MORE_THAN_IT_SURVIVES,
    claims::LACKING_IS_KNOWN_AFTER_A_RESTART,
    claims::LACKING_IS_KNOWN_AFTER_A_START_THAT_WAS_CUT_OFF,
    claims::LACKING_IS_KNOWN_OF_WHAT_HAD_NOT_BEEN_FLUSHED,
    claims::LACKING_IS_KNOWN_OF_WHAT_A_SCRUB_FOUND,
    claims::LACKING_IS_KNOWN_OF_AN_OLDER_STATE,
    claims::CONDEMNED_DRIVE_STAYS_WHERE_OTHERS_GO,
    contended::COMPARES_ARE_ONE_STEP,
    contended::DURABLE_COMPARES_SURVIVE,
    contended::FLUSHES_REACH_EVERY_LANE,
    contended::RESERVATIONS_HOLD_EVERYWHERE,
    contended::RESETS_ARE_A_FENCE,
    copies::ORDERS_ARE_CUT_OFF,
    copies::GROUPS_ARE_OF_ONE_MOMENT,
    copies::PLANS_CANNOT_BE_STORED,
    copies::SCHEDULES_KEEP_NO_MORE,
    copies::EXTENDED_COPIES_ARE_CUT_OFF,
    copies::INTERRUPTED_COPIES_ARE_ANSWERED,
    copies::BIN_GIVES_WAY,
    raw::RAW_VOLUMES_FOLLOW_THEIR_DEVICES,
    problems::PROBLEMS_ARE_TOLD_BY_THEMSELVES,
    figures::FIGURES_ARE_WHAT_HOSTS_DID,
    heads::EITHER_HEAD_HOLDS_ALL,
    heads::EITHER_HEAD_HOLDS_THE_DRIVES,
    transfers::TRANSFERS_ARE_WHOLE_AND_BOUNDED,
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique() {
        let mut names: Vec<&str> = ALL.iter().map(|scenario| scenario.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), ALL.len());
    }
}
