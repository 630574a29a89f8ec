//! What there is to know of a drive beside its state: values, and the words for them.

use base::units::size;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{DriveGivenUp, InWords};

/// A note about a drive. Its `code` tells the kind; `pool` is the name of a pool, `drive` the path of the drive.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(tag = "code", rename_all = "kebab-case")]
pub enum DriveNote {
    /// It is served to hosts as this raw volume.
    Exported {
        volume: String,
    },
    Spare {
        pool: String,
    },
    /// A pool has gone on without it, and nobody may use it without force.
    NotTrusted {
        did: DriveGivenUp,
    },
    /// It has the label of a pool that was deleted.
    PoolDeleted {
        pool: String,
        drive: String,
    },
    /// Its pool takes it back in a moment.
    Returning {
        pool: String,
    },
    /// Its pool has taken it out for its errors, and does not take it back.
    TakenOut {
        pool: String,
        drive: String,
    },
    /// Its pool goes on without it, and does not take it back.
    OutOfDate {
        pool: String,
        drive: String,
    },
    /// Another drive with the same label serves the pool.
    LabelTwice {
        pool: String,
    },
    /// It is free: a pool has emptied it, because it was slow.
    Emptied {
        pool: String,
    },
    Failed {},
    Missing {},
    Emptying {
        /// Because it is much slower than its siblings.
        slow: bool,
    },
    /// It has become larger since it joined its pool.
    Larger {
        pool: String,
        drive: String,
        unused_bytes: u64,
    },
}

impl InWords for DriveNote {
    fn text(&self) -> String {
        use DriveNote::*;
        let again =
            |pool, drive| format!("`tangelo drive add {pool} {drive} --force {drive}` takes it as a new one");
        match self {
            Exported { volume } => format!("exported as volume {volume}, as it is"),
            Spare { pool } => format!("spare of pool {pool}"),
            NotTrusted { did } => format!("refused without --force: {did}"),
            PoolDeleted { pool, drive } => {
                format!("pool {pool} has been deleted: `tangelo drive wipe {drive}` erases its label")
            }
            Returning { pool } => format!("pool {pool} takes it back in a moment"),
            TakenOut { pool, drive } => {
                format!("refused: pool {pool} has taken it out for its errors; {}", again(pool, drive))
            }
            OutOfDate { pool, drive } => format!(
                "refused: pool {pool} goes on without it, what is on it is out of date; {}",
                again(pool, drive)
            ),
            LabelTwice { pool } => format!("refused: another drive with its label serves pool {pool}"),
            Emptied { pool } => {
                format!("pool {pool} has emptied it because it was much slower than its siblings")
            }
            Failed {} => "taken out for its errors: replace it".to_owned(),
            Missing {} => "comes back by itself when it is found again".to_owned(),
            Emptying { slow: true } => "is being emptied: much slower than its siblings".to_owned(),
            Emptying { slow: false } => "is being emptied".to_owned(),
            Larger { pool, drive, unused_bytes } => format!(
                "has become larger, and {} of it are not used: `tangelo drive remove {pool} {drive}` empties it, \
                 then `tangelo drive add {pool} {drive}` takes all of it",
                size(*unused_bytes)
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::DriveTrouble;

    fn examples() -> Vec<(DriveNote, &'static str)> {
        use DriveNote::*;
        let (pool, drive) = (|| "fast".to_owned(), || "/dev/sdb".to_owned());
        let did = DriveGivenUp {
            pool: pool(),
            trouble: DriveTrouble::Failed,
            model: String::new(),
            serial: String::new(),
            bay: "3".to_owned(),
            given_up_ms: 1_795_694_400_000,
            spare: None,
        };
        vec![
            (Exported { volume: "lun".to_owned() }, "exported as volume lun, as it is"),
            (Spare { pool: pool() }, "spare of pool fast"),
            (
                NotTrusted { did },
                "refused without --force: it (bay 3) was taken out for its errors, 2026-11-26 12:00Z: pool fast goes on without it",
            ),
            (
                PoolDeleted { pool: pool(), drive: drive() },
                "pool fast has been deleted: `tangelo drive wipe /dev/sdb` erases its label",
            ),
            (Returning { pool: pool() }, "pool fast takes it back in a moment"),
            (
                TakenOut { pool: pool(), drive: drive() },
                "refused: pool fast has taken it out for its errors; `tangelo drive add fast /dev/sdb --force /dev/sdb` takes it as a new one",
            ),
            (
                OutOfDate { pool: pool(), drive: drive() },
                "refused: pool fast goes on without it, what is on it is out of date; `tangelo drive add fast /dev/sdb --force /dev/sdb` takes it as a new one",
            ),
            (LabelTwice { pool: pool() }, "refused: another drive with its label serves pool fast"),
            (
                Emptied { pool: pool() },
                "pool fast has emptied it because it was much slower than its siblings",
            ),
            (Failed {}, "taken out for its errors: replace it"),
            (Missing {}, "comes back by itself when it is found again"),
            (Emptying { slow: true }, "is being emptied: much slower than its siblings"),
            (Emptying { slow: false }, "is being emptied"),
            (
                Larger { pool: pool(), drive: drive(), unused_bytes: 1 << 30 },
                "has become larger, and 1 GiB of it are not used: `tangelo drive remove fast /dev/sdb` empties it, then `tangelo drive add fast /dev/sdb` takes all of it",
            ),
        ]
    }

    #[test]
    fn a_note_reads_well_and_is_read_back() {
        for (note, words) in examples() {
            assert_eq!(note.text(), words);
            crate::worded::check(note);
        }
    }
}
