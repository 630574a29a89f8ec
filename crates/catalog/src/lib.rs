//! The configuration of the array: volumes, hosts, mappings, pools and their identities.
//!
//! Pure values. A [`Catalog`] changes only by [`Catalog::apply`], which returns either the next catalog or the
//! reason for a refusal; the old one is unchanged. It is stored as JSON bytes ([`Catalog::encode`],
//! [`Catalog::decode`]) in every pool's log and, while there is no pool, in the head's state directory.
//!
//! What always holds, also for a decoded catalog: names are valid, and unique for each kind; an initiator belongs to
//! one host; each snapshot has a layer of its own; a LUN of a host is one volume, and a volume has one LUN and one
//! namespace for each host; identities (NAA, serial number) are unique; counters are above every id that was assigned. A CHAP secret must
//! not appear in a log, an error or `Debug` output.

mod access;
mod bin;
mod change;
mod copy_sources;
mod drive;
mod encode;
mod error;
mod fields;
mod freed;
mod head;
mod identity;
mod initiator;
mod mapping;
mod model;
mod name;
mod number;
mod refresh;
mod rename;
mod reservation;
mod schedule;
mod secret;
mod settings;
mod snapshot;
mod spare;
mod update;
mod volume;

pub use access::{KeptAccess, KeptAccesses};
pub use bin::Binned;
pub use change::{Change, NewVolume};
pub use copy_sources::CopiedFrom;
pub use drive::{DriveChange, DriveName, FailedDrive, KnownDrive, Trouble};
pub use error::CatalogError;
pub use head::{Head, HeadPortal};
pub use identity::{Naa, target_name};
pub use initiator::{Initiator, IscsiName, NvmeName, Wwpn};
pub use mapping::{Mapping, WantedNumber};
pub use model::{Catalog, DeletedPool, Host, PoolEntry, SCHEMA_VERSION, Volume, VolumeKind};
pub use name::{Name, NameError};
pub use number::UnitNumber;
pub use reservation::{KeptHold, KeptRegistrant, KeptRegistration, KeptReservations};
pub use schedule::{Retention, Schedule};
pub use secret::{Chap, Secret};
pub use settings::{POOL_SETTING_NAMES, POOL_SETTINGS, PoolSetting, PoolSettings, ScrubRecord, Unit, period};
pub use snapshot::Snapshot;
pub use spare::{Joined, Spares};
pub use update::{HostUpdate, Setting};
