//! Reasons for which a change is refused, or stored bytes are not a catalog: a closed list, each with advice.

use base::limits::{
    CHAP_SECRET_BYTES_MAX, CHAP_SECRET_BYTES_MIN, CHAP_USER_BYTES_MAX, HOSTS_MAX, INITIATORS_PER_HOST_MAX,
    LUN_MAX, MAPPINGS_MAX, NAMESPACE_MAX, POOLS_MAX, SNAPSHOTS_AT_ONCE_MAX, VOLUME_BYTES_MAX,
    VOLUME_GROWTH_MAX, VOLUMES_MAX,
};
use thiserror::Error;

use crate::name::{Name, NameError};
use crate::number::UnitNumber;

#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum CatalogError {
    #[error(transparent)]
    Name(#[from] NameError),
    #[error("there is a {kind} called \"{name}\" already")]
    Exists { kind: &'static str, name: Name },
    #[error("the array has handed out every {kind} id there is")]
    IdsExhausted { kind: &'static str },
    #[error("there is no {kind} called \"{name}\"")]
    NotFound { kind: &'static str, name: String },
    #[error("the array has {max} {kind}s already, which is the most it can have")]
    TooMany { kind: &'static str, max: usize },
    #[error(
        "a size of {size_bytes} bytes is not possible: it must be a multiple of 4096 bytes, at least 4096 and at most 1 PiB"
    )]
    Size { size_bytes: u64 },
    #[error(
        "volume \"{volume}\" has {size_bytes} bytes: what is not in a pool can be made larger, not smaller"
    )]
    NotLarger { volume: Name, size_bytes: u64 },
    #[error("volume \"{volume}\" has {size_bytes} bytes already")]
    SameSize { volume: Name, size_bytes: u64 },
    #[error("volume \"{volume}\" was made smaller, and what it held is still being given back")]
    Untrimmed { volume: Name },
    #[error(
        "volume \"{volume}\" can have {max_bytes} bytes at most, {VOLUME_GROWTH_MAX} times the size it was made with"
    )]
    NoRoomToGrow { volume: Name, max_bytes: u64 },
    #[error("volume \"{volume}\" is a raw volume, which is as large as its device")]
    RawResize { volume: Name },
    #[error("a block size of {block_bytes} bytes is not possible")]
    BlockSize { block_bytes: u32 },
    #[error("\"{path}\" is not the absolute path of a device or file")]
    RawPath { path: String },
    #[error("{path} is named twice")]
    SpareTwice { path: String },
    #[error("{path} is exported as volume \"{volume}\" already")]
    RawInUse { path: String, volume: Name },
    #[error("volume \"{volume}\" is mapped to {}", named_hosts(.hosts))]
    VolumeMapped { volume: Name, hosts: Vec<Name> },
    #[error("1 to {SNAPSHOTS_AT_ONCE_MAX} snapshots can be taken at once, not {count}")]
    SnapshotCount { count: usize },
    #[error("volume \"{volume}\" is named twice: at one moment it has one snapshot")]
    SnapshotTwice { volume: String },
    #[error("volume \"{volume}\" has {}", count(*.snapshots, "snapshot"))]
    VolumeHasSnapshots { volume: Name, snapshots: usize },
    #[error("volume \"{volume}\" is mapped to {}, which would not know what has happened to its data", named_hosts(.hosts))]
    RollbackMapped { volume: Name, hosts: Vec<Name> },
    #[error("volume \"{volume}\" is mapped to {}, which would not know what has happened to its data", named_hosts(.hosts))]
    ReplaceMapped { volume: Name, hosts: Vec<Name> },
    #[error("volume \"{volume}\" was resized since its import began")]
    ReplaceResized { volume: Name },
    #[error("a schedule that keeps no snapshot takes none")]
    KeepsNothing,
    #[error("there is a volume called \"{volume}\" in the bin")]
    InBin { volume: Name },
    #[error("there is no volume called \"{name}\" in the bin")]
    NotInBin { name: String },
    #[error("volume \"{volume}\" stands on no other volume's snapshot: nothing of it depends on another")]
    NotAClone { volume: Name },
    #[error("it was cloned from volume \"{origin}\", which is in the bin")]
    OriginInBin { origin: Name },
    #[error("volume \"{volume}\" has a snapshot called \"{snapshot}\", and so has what it would take over")]
    PromoteTwice { volume: Name, snapshot: Name },
    #[error("volume \"{volume}\" is not in a pool: only what is in one can be frozen and copied")]
    NotInPool { volume: Name },
    #[error("host \"{host}\" has {} mapped to it: {}", count(.volumes.len(), "volume"), list(.volumes))]
    HostMapped { host: Name, volumes: Vec<Name> },
    #[error("pool \"{pool}\" holds {}: {}", count(.volumes.len(), "volume"), list(.volumes))]
    PoolInUse { pool: Name, volumes: Vec<Name> },
    #[error("the bin of pool \"{pool}\" holds {}: {}", count(.volumes.len(), "volume"), list(.volumes))]
    PoolBinInUse { pool: Name, volumes: Vec<Name> },
    #[error("a host needs at least one initiator")]
    NoInitiator,
    #[error("a host may have {max} initiators, not {count}")]
    TooManyInitiators { count: usize, max: usize },
    #[error("initiator {initiator} belongs to host \"{host}\" already")]
    InitiatorInUse { initiator: String, host: Name },
    #[error("host \"{host}\" has no initiator {initiator}")]
    NoSuchInitiator { host: Name, initiator: String },
    #[error("initiator {initiator} is named twice")]
    InitiatorTwice { initiator: String },
    #[error(
        "a CHAP secret has {CHAP_SECRET_BYTES_MIN} to {CHAP_SECRET_BYTES_MAX} bytes, this one has {length_bytes}"
    )]
    SecretLength { length_bytes: usize },
    #[error("a CHAP secret may not contain control characters")]
    SecretCharacters,
    #[error("a CHAP user name has 1 to {CHAP_USER_BYTES_MAX} bytes and no control characters")]
    ChapUser,
    #[error("mutual CHAP needs one-way CHAP beside it")]
    MutualAlone,
    #[error("the two directions of CHAP must have different secrets")]
    MutualSameSecret,
    #[error("{number} of host \"{host}\" is volume \"{volume}\" already")]
    LunInUse { host: Name, number: UnitNumber, volume: Name },
    #[error("volume \"{volume}\" is {number} of host \"{host}\" already")]
    AlreadyMapped { volume: Name, host: Name, number: UnitNumber },
    #[error("there are no clones of {of}")]
    NoClones { of: String },
    #[error(
        "clone \"{volume}\" is mapped to {}, which would not know what has happened to its data",
        named_hosts(hosts)
    )]
    RefreshMapped { volume: Name, hosts: Vec<Name> },
    #[error("clone \"{volume}\" cannot become the snapshot: {what}")]
    CannotRefresh { volume: Name, what: &'static str },
    #[error("LUN {lun} is not possible: LUNs go from 0 to {LUN_MAX}")]
    LunRange { lun: u32 },
    #[error("namespace {namespace} is not possible: namespace identifiers go from 1 to {NAMESPACE_MAX}")]
    NamespaceRange { namespace: u32 },
    #[error("term {term} does not follow term {now}")]
    OldTerm { term: u64, now: u64 },
    #[error("volume \"{volume}\" is not mapped to host \"{host}\"")]
    NotMapped { volume: Name, host: Name },
    #[error("{what}, cannot be {value}: it goes from {min} to {max}")]
    Setting { what: &'static str, value: u32, min: u32, max: u32 },
    #[error("the stored catalog has schema {found}; this program knows up to {known}")]
    FutureSchema { found: u64, known: u32 },
    #[error("the stored catalog is damaged: {what}")]
    Damaged { what: String },
}

impl CatalogError {
    /// A short, stable word for programs.
    pub fn code(&self) -> &'static str {
        use CatalogError::*;
        match self {
            Name(_) => "bad_name",
            Exists { .. } | InBin { .. } => "exists",
            NotFound { .. } | NotInBin { .. } | NoClones { .. } | NoSuchInitiator { .. } => "not_found",
            TooMany { .. } | TooManyInitiators { .. } | IdsExhausted { .. } => "limit",
            Size { .. }
            | NotLarger { .. }
            | SameSize { .. }
            | Untrimmed { .. }
            | NoRoomToGrow { .. }
            | RawResize { .. } => "bad_size",
            BlockSize { .. } => "bad_block_size",
            RawPath { .. } | SpareTwice { .. } => "bad_path",
            RawInUse { .. }
            | VolumeMapped { .. }
            | HostMapped { .. }
            | PoolInUse { .. }
            | PoolBinInUse { .. } => "in_use",
            NoInitiator | InitiatorTwice { .. } => "bad_initiator",
            InitiatorInUse { .. } => "initiator_in_use",
            SecretLength { .. } | SecretCharacters | ChapUser | MutualAlone | MutualSameSecret => "bad_chap",
            LunInUse { .. } => "lun_in_use",
            AlreadyMapped { .. } => "already_mapped",
            SnapshotCount { .. } | SnapshotTwice { .. } => "bad_snapshot",
            VolumeHasSnapshots { .. } => "volume_has_snapshots",
            RollbackMapped { .. } => "rollback_mapped",
            ReplaceMapped { .. } => "replace_mapped",
            ReplaceResized { .. } => "replace_resized",
            RefreshMapped { .. } => "refresh_mapped",
            CannotRefresh { .. } => "cannot_refresh",
            NotInPool { .. } => "not_in_pool",
            NotAClone { .. } | OriginInBin { .. } | PromoteTwice { .. } => "cannot_promote",
            LunRange { .. } | NamespaceRange { .. } => "bad_lun",
            OldTerm { .. } => "old_term",
            Setting { .. } | KeepsNothing => "bad_setting",
            NotMapped { .. } => "not_mapped",
            FutureSchema { .. } => "future_schema",
            Damaged { .. } => "damaged",
        }
    }

    /// What to do about it, where the message alone does not say.
    pub fn hint(&self) -> Option<String> {
        use CatalogError::*;
        let hint = match self {
            Exists { .. } => "choose another name".to_owned(),
            NotFound { kind: "mapping", .. } => "`tangelo mapping list` shows what is mapped".to_owned(),
            NotFound { kind: "snapshot", .. } => {
                "`tangelo snapshot list VOLUME` shows what there is".to_owned()
            }
            NotFound { kind, .. } => format!("`tangelo {kind} list` shows what there is"),
            TooMany { kind, .. } => format!("delete a {kind} that is not needed any more"),
            KeepsNothing => "say how many are kept: --hourly, --daily, --weekly, --monthly".to_owned(),
            InBin { volume } => format!(
                "choose another name, bring that one back (`tangelo volume undelete {volume}`), or delete it for good (`tangelo volume eradicate {volume}`)"
            ),
            NotInBin { .. } => "`tangelo volume bin` shows what there is".to_owned(),
            NoSuchInitiator { .. } => "`tangelo host list` shows which it has".to_owned(),
            NoClones { .. } => "`tangelo volume list` shows whose clones there are".to_owned(),
            RefreshMapped { .. } => "shut down what uses the clones, then use --remap: their hosts lose them and get them again with the new content".to_owned(),
            OriginInBin { origin } => {
                format!("bring that back first: `tangelo volume undelete {origin}`")
            }
            PromoteTwice { snapshot, volume } => {
                format!("delete one of the two first, such as {volume}@{snapshot}")
            }
            NotLarger { .. } => "give a larger size".to_owned(),
            SameSize { .. } => "give another size".to_owned(),
            Untrimmed { .. } => "try again in a moment; `tangelo status` says what is wrong".to_owned(),
            NoRoomToGrow { .. } => "make another volume and copy to it".to_owned(),
            BlockSize { .. } => "use 512 or 4096".to_owned(),
            VolumeMapped { volume, .. } => {
                format!("unmap it first (`tangelo unmap {volume} HOST`), or delete it with --unmap")
            }
            VolumeHasSnapshots { volume, .. } => {
                format!("delete them first: `tangelo snapshot list {volume}` shows them")
            }
            RollbackMapped { volume, .. } | ReplaceMapped { volume, .. } => format!("unmap it first: `tangelo unmap {volume} HOST`"),
            HostMapped { host, .. } => {
                format!("unmap them first (`tangelo unmap VOLUME {host}`), or use --unmap")
            }
            PoolInUse { .. } => "delete these volumes first: `tangelo volume delete VOLUME`".to_owned(),
            PoolBinInUse { pool, .. } => format!(
                "bring back what is needed (`tangelo volume undelete VOLUME`), or give all of it up: `tangelo pool delete {pool} --eradicate`"
            ),
            InitiatorInUse { .. } => "an initiator can be in one host only; remove it there first".to_owned(),
            MutualAlone => "give --chap-user and --chap-secret-file too".to_owned(),
            LunInUse { .. } => "choose another --lun, or leave it out to get one that is free".to_owned(),
            AlreadyMapped { volume, host, .. } => {
                format!("`tangelo unmap {volume} {host}` first to change it")
            }
            FutureSchema { .. } => {
                "it was written by a newer Tangelo: install that version; nothing was changed".to_owned()
            }
            _ => return None,
        };
        Some(hint)
    }
}

fn list(names: &[Name]) -> String {
    names.iter().map(Name::as_str).collect::<Vec<_>>().join(", ")
}

fn count(number: usize, what: &str) -> String {
    if number == 1 { format!("1 {what}") } else { format!("{number} {what}s") }
}

fn named_hosts(names: &[Name]) -> String {
    format!("{} {}", if names.len() == 1 { "host" } else { "hosts" }, list(names))
}

// The messages above name these bounds; limits.rs has them.
const _: () = assert!(VOLUME_BYTES_MAX == 1 << 50);
const _: () = assert!(
    HOSTS_MAX > 0 && MAPPINGS_MAX > 0 && POOLS_MAX > 0 && VOLUMES_MAX > 0 && INITIATORS_PER_HOST_MAX > 0
);

pub(crate) fn check_room(kind: &'static str, count: usize, max: usize) -> Result<(), CatalogError> {
    if count < max { Ok(()) } else { Err(CatalogError::TooMany { kind, max }) }
}
