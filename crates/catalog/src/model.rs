//! The catalog, its parts, and lookups.

use std::collections::BTreeSet;

use base::{ArrayId, LayerId, PoolId, VolumeId};
use serde::{Deserialize, Serialize};

use crate::access::KeptAccesses;
use crate::bin::Binned;
use crate::copy_sources::CopiedFrom;
use crate::drive::{FailedDrive, KnownDrive};
use crate::head::Head;
use crate::identity::{Naa, target_name};
use crate::initiator::{Initiator, IscsiName};
use crate::mapping::Mapping;
use crate::name::Name;
use crate::reservation::KeptReservations;
use crate::schedule::Schedule;
use crate::secret::Chap;
use crate::settings::{PoolSettings, ScrubRecord};
use crate::snapshot::Snapshot;
use crate::spare::Spares;

/// The schema that this program writes. A higher one is refused, untouched; a lower one is read. 2: volumes keep
/// reservations. 3: pools have settings and the result of their last scrub. 4: volumes keep access states.
/// 5: volumes have snapshots and schedules, and go into a bin. 6: layers stay that copies refer to. 7: pools have hot spares.
/// 8: pools that were deleted are remembered. 9: LUN numbers that were freed are remembered. 10: how long volumes have been in the bin,
/// when the clock was last believed, and what drives are called and did.
/// 11: the bays of drives. 12: initiators, mappings and registrations of NVMe; heads and the term of ownership.
pub const SCHEMA_VERSION: u32 = 12;

/// Where a volume's blocks are.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum VolumeKind {
    /// Thin, in a pool.
    Pool {
        #[serde(with = "crate::fields::hexadecimal")]
        pool: PoolId,
        #[serde(with = "crate::fields::layer")]
        layer: LayerId,
    },
    /// An existing block device or file, exported as it is.
    Raw { path: String },
    /// Accepts and forgets writes, reads zeros: for measuring the front end alone.
    Null {},
    /// In memory, gone when the program ends.
    Memory {},
}

/// A volume: what is mapped to hosts as a LUN.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Volume {
    #[serde(with = "crate::fields::volume")]
    pub id: VolumeId,
    pub name: Name,
    pub backing: VolumeKind,
    /// A multiple of 4096, more than 0, at most [`base::limits::VOLUME_BYTES_MAX`].
    pub size_bytes: u64,
    /// Logical block size that hosts see: 512 or 4096.
    pub block_bytes: u32,
    /// Whether writes are acknowledged before they are durable (SYNCHRONIZE CACHE and FUA are honoured).
    pub write_back: bool,
    pub naa: Naa,
    /// Unit serial number, 1 to 20 letters and digits.
    pub serial: String,
    /// Wall clock at creation, milliseconds since 1970.
    pub created_ms: u64,
    /// Reservations that survive a restart.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reservations: Option<KeptReservations>,
    /// Access states that its target port groups were given.
    #[serde(default, skip_serializing_if = "KeptAccesses::is_empty")]
    pub access: KeptAccesses,
    /// The size it was made with, by which its layer has room; only where it is in a pool and was resized.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_size_bytes: Option<u64>,
    /// It was made smaller, and the blocks behind its new end have not been unmapped yet.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub untrimmed: bool,
    /// The layer by whose id its blocks are dealt to the pool's lanes, where that is not its own: the one that it was
    /// made with, or that of the volume that it is a clone of.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "crate::fields::some_layer")]
    pub dealt_as: Option<LayerId>,
    /// The snapshot that it began as, VOLUME@SNAPSHOT as they were called then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clone_of: Option<String>,
    /// The layer of the nearest snapshot below it, its own or another volume's.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "crate::fields::some_layer")]
    pub stands_on: Option<LayerId>,
}

/// A named set of initiators with their credentials.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Host {
    pub name: Name,
    /// At least one; each belongs to this host alone.
    pub initiators: Vec<Initiator>,
    /// The credentials that the host must prove at login; none: CHAP is not required.
    pub chap: Option<Chap>,
    /// The credentials that the array proves in return (mutual CHAP); only with `chap`, and with another secret.
    pub mutual: Option<Chap>,
}

/// A pool that belongs to the array, whether or not its drives are present.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PoolEntry {
    #[serde(with = "crate::fields::hexadecimal")]
    pub id: PoolId,
    pub name: Name,
    #[serde(default, skip_serializing_if = "PoolSettings::is_default")]
    pub settings: PoolSettings,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_scrub: Option<ScrubRecord>,
    /// Drives that join it by themselves when it has lost one.
    #[serde(default, skip_serializing_if = "Spares::is_empty")]
    pub spares: Spares,
    /// Its drives, as they were last seen.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub members: Vec<KnownDrive>,
}

/// A pool that was deleted. Drives that were away then still have its label: it is not opened again by them.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DeletedPool {
    #[serde(with = "crate::fields::hexadecimal")]
    pub id: PoolId,
    pub name: Name,
}

/// All that describes the array. See the crate's page for what always holds.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Catalog {
    pub(crate) schema: u32,
    #[serde(with = "crate::fields::hexadecimal")]
    pub(crate) array: ArrayId,
    pub(crate) name: Name,
    pub(crate) target: IscsiName,
    /// The term of ownership in which it was changed last; 0 as long as the array has had one head only.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub(crate) term: u64,
    pub(crate) version: u64,
    /// The heads that serve the array, in order of their ids.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) heads: Vec<Head>,
    pub(crate) next_volume_id: u32,
    pub(crate) next_layer_id: u32,
    /// In order of their ids.
    pub(crate) pools: Vec<PoolEntry>,
    /// The last ones, oldest first, at most [`base::limits::DELETED_POOLS_MAX`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) deleted_pools: Vec<DeletedPool>,
    /// Drives that pools have had to do without, the oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) failed_drives: Vec<FailedDrive>,
    /// In order of their ids.
    pub(crate) volumes: Vec<Volume>,
    /// In the order in which they were taken.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) snapshots: Vec<Snapshot>,
    /// In the order in which they were deleted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) bin: Vec<Binned>,
    /// Layers to which copies may refer.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) copied_from: Vec<CopiedFrom>,
    /// In order of their names.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) schedules: Vec<Schedule>,
    /// The wall clock when it was last trusted: milliseconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) clock_ms: Option<u64>,
    /// In order of their names.
    pub(crate) hosts: Vec<Host>,
    /// In order of host and number.
    pub(crate) mappings: Vec<Mapping>,
    /// Mappings that are no more, whose numbers no other volume was given since. Oldest first, the last
    /// [`base::limits::FREED_LUNS_MAX`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) freed_luns: Vec<Mapping>,
}

fn is_zero(term: &u64) -> bool {
    *term == 0
}

impl Catalog {
    /// An array with nothing in it, at version 1. `array` is random.
    pub fn new(array: ArrayId, name: Name) -> Catalog {
        Catalog {
            schema: SCHEMA_VERSION,
            array,
            name,
            target: target_name(array).parse().expect("our own target name is an iSCSI name"),
            term: 0,
            version: 1,
            heads: Vec::new(),
            next_volume_id: 1,
            next_layer_id: 1,
            pools: Vec::new(),
            deleted_pools: Vec::new(),
            failed_drives: Vec::new(),
            volumes: Vec::new(),
            snapshots: Vec::new(),
            bin: Vec::new(),
            copied_from: Vec::new(),
            schedules: Vec::new(),
            clock_ms: None,
            hosts: Vec::new(),
            mappings: Vec::new(),
            freed_luns: Vec::new(),
        }
    }

    pub fn array(&self) -> ArrayId {
        self.array
    }

    pub fn name(&self) -> &Name {
        &self.name
    }

    /// The iSCSI name of the array's target.
    pub fn target(&self) -> &str {
        self.target.as_str()
    }

    /// Counts changes.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// Of two catalogs of one array, the one of the later term is newer; of one term, the one with the higher version.
    pub fn is_newer_than(&self, other: &Catalog) -> bool {
        (self.term, self.version) > (other.term, other.version)
    }

    /// Whether nothing was ever put into it, so that another array's catalog may take its place.
    pub fn is_pristine(&self) -> bool {
        self.version == 1
    }

    /// The layer that the next volume of a pool gets.
    pub fn next_layer(&self) -> LayerId {
        LayerId(self.next_layer_id)
    }

    /// Layers before this one are not handed out any more: a plan that failed may have made them.
    pub fn pass_over_layers(&mut self, next: LayerId) {
        self.next_layer_id = self.next_layer_id.max(next.0);
    }

    pub fn pools(&self) -> &[PoolEntry] {
        &self.pools
    }

    pub fn volumes(&self) -> &[Volume] {
        &self.volumes
    }

    pub fn hosts(&self) -> &[Host] {
        &self.hosts
    }

    pub fn mappings(&self) -> &[Mapping] {
        &self.mappings
    }

    pub fn pool(&self, id: PoolId) -> Option<&PoolEntry> {
        self.pools.iter().find(|pool| pool.id == id)
    }

    /// A pool that was deleted, and is not to be opened again.
    pub fn deleted_pool(&self, id: PoolId) -> Option<&DeletedPool> {
        self.deleted_pools.iter().find(|pool| pool.id == id)
    }

    pub fn find_pool(&self, name: &str) -> Option<&PoolEntry> {
        self.pools.iter().find(|pool| pool.name.as_str() == name)
    }

    pub fn volume(&self, id: VolumeId) -> Option<&Volume> {
        self.volumes.binary_search_by_key(&id, |volume| volume.id).ok().map(|index| &self.volumes[index])
    }

    pub fn find_volume(&self, name: &str) -> Option<&Volume> {
        self.volumes.iter().find(|volume| volume.name.as_str() == name)
    }

    pub fn find_host(&self, name: &str) -> Option<&Host> {
        self.hosts.binary_search_by_key(&name, |host| host.name.as_str()).ok().map(|index| &self.hosts[index])
    }

    /// The host that an iSCSI initiator logs in as; names are compared without regard to case.
    pub fn host_of_initiator(&self, name: &str) -> Option<&Host> {
        let has = |initiator: &Initiator| match initiator {
            Initiator::Iscsi(known) => known.as_str().eq_ignore_ascii_case(name),
            Initiator::Nvme(_) | Initiator::FibreChannel(_) => false,
        };
        self.hosts.iter().find(|host| host.initiators.iter().any(has))
    }

    /// As it would be if these volumes were not mapped.
    pub fn without_mappings(&self, of: &BTreeSet<VolumeId>) -> Catalog {
        let mut seen = self.clone();
        seen.mappings.retain(|mapping| !of.contains(&mapping.volume));
        seen
    }
}
