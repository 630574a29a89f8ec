//! What the manager knows of the array, as values.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;

use crate::keeper_state::KeeperState;
use api::{DeviceTrouble, DriveContent, LostDrive, PoolOffline, PortalOptions, ScheduleFailure};
use base::{ArrayId, DriveId, LayerId, Nanos, PoolId, VolumeId};
use catalog::Catalog;
use env::{DriveHandle, DriveInfo, IoError};
use pool::Membership;
use shard::Transfer;
use task::{Io, Semaphore};

/// The changing state of the array.
pub(crate) struct State {
    pub(crate) catalog: Catalog,
    pub(crate) portals: Vec<Portal>,
    pub(crate) raw: Vec<RawDevice>,
    /// Mapped volumes that hosts must not see at present.
    pub(crate) hidden: BTreeSet<VolumeId>,
    pub(crate) drives: Vec<Drive>,
    pub(crate) pools: Vec<Pool>,
}

/// A configured address to listen on.
pub(crate) struct Portal {
    pub(crate) options: PortalOptions,
    pub(crate) result: Result<SocketAddr, IoError>,
}

/// The device of a raw volume.
pub(crate) struct RawDevice {
    pub(crate) volume: VolumeId,
    pub(crate) drive: Result<(DriveHandle, DriveInfo), DeviceTrouble>,
    /// What was known of it when it was last opened.
    pub(crate) last: Option<DriveInfo>,
}

impl Portal {
    /// The address that is listened on.
    pub(crate) fn bound(&self) -> Option<PortalOptions> {
        let address = self.result.ok()?;
        Some(PortalOptions { address, ..self.options.clone() })
    }
}

impl State {
    /// Portal groups, whether or not their addresses could be opened: target ports change only with the head's
    /// configuration file.
    pub(crate) fn groups(&self) -> BTreeSet<u16> {
        self.portals.iter().map(|portal| portal.options.group).collect()
    }
}

/// A pool of this array.
pub(crate) struct Pool {
    pub(crate) id: PoolId,
    pub(crate) name: String,
    /// Its membership; `None` if it could not be claimed.
    pub(crate) membership: Option<Membership>,
    /// What is known of the present drives.
    pub(crate) infos: Vec<DriveInfo>,
    /// Why it is not in service; `None` if it is.
    pub(crate) offline: Option<PoolOffline>,
    /// It is not there before it has been opened: nobody is told of it.
    pub(crate) is_being_made: bool,
    /// Drives with its label that could not be used when it was opened.
    pub(crate) unusable: Vec<LostDrive>,
    /// Failed drives are recorded one at a time.
    pub(crate) recording: Semaphore,
    pub(crate) keeper: KeeperState,
}

impl Pool {
    pub(crate) fn offline(io: &Io, id: PoolId, name: &str, why: PoolOffline) -> Pool {
        Pool {
            id,
            name: name.to_owned(),
            membership: None,
            infos: Vec::new(),
            offline: Some(why),
            is_being_made: false,
            unusable: Vec::new(),
            recording: Semaphore::new(io, 1),
            keeper: KeeperState::default(),
        }
    }
}

impl State {
    pub(crate) fn is_pool_online(&self, id: PoolId) -> bool {
        self.pools.iter().any(|pool| pool.id == id && pool.offline.is_none())
    }

    pub(crate) fn online_pool(&self, id: PoolId) -> Option<Membership> {
        let pool = self.pools.iter().find(|pool| pool.id == id && pool.offline.is_none());
        pool.and_then(|pool| pool.membership.clone())
    }

    pub(crate) fn pool_mut(&mut self, id: PoolId) -> Option<&mut Pool> {
        self.pools.iter_mut().find(|pool| pool.id == id)
    }

    pub(crate) fn set_offline(&mut self, id: PoolId, why: PoolOffline) {
        self.pool_mut(id).expect("a pool that is known").offline = Some(why);
    }

    /// Pools in service.
    pub(crate) fn online(&self) -> Vec<Membership> {
        let online = self.pools.iter().filter(|pool| pool.offline.is_none());
        online.filter_map(|pool| pool.membership.clone()).collect()
    }
}

/// A configured drive that belongs to no open pool, as last seen.
pub(crate) struct Drive {
    pub(crate) path: String,
    pub(crate) info: Option<DriveInfo>,
    pub(crate) content: DriveContent,
    /// Why it is unreadable.
    pub(crate) error: Option<IoError>,
    /// Details if its content is foreign, damaged or unreadable.
    pub(crate) detail: String,
    /// The pool that its label names, and that pool's array.
    pub(crate) member_of: Option<(PoolId, ArrayId)>,
    /// That pool's name in the label.
    pub(crate) pool_name: Option<String>,
    /// Its id in that pool.
    pub(crate) id: Option<DriveId>,
}

impl Drive {
    /// 0 if it could not be opened.
    pub(crate) fn size_bytes(&self) -> u64 {
        self.info.as_ref().map_or(0, |info| info.size_bytes)
    }

    /// Whether its label says that it is this drive of this pool.
    pub(crate) fn is(&self, pool: PoolId, drive: DriveId) -> bool {
        self.id == Some(drive) && self.member_of.is_some_and(|(of, _)| of == pool)
    }
}

/// A transfer under way.
pub(crate) struct RunningTransfer {
    pub(crate) transfer: Transfer,
    /// Its layer, by the catalog's ids.
    pub(crate) layer: LayerId,
    pub(crate) kind: TransferKind,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum TransferKind {
    /// Ends when the snapshot is deleted.
    OfSnapshot,
    /// Nothing but this transfer keeps the layer.
    OfVolume,
    Import(VolumeId),
}

/// What was found of a pool when it was last tried to open it.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub(crate) struct OpenAttempt {
    pub(crate) paths: BTreeSet<String>,
    /// Another process used one of its drives, and may close it.
    pub(crate) in_use: bool,
}

/// A schedule that could not do its work.
pub(crate) struct FailedSchedule {
    pub(crate) schedule: String,
    pub(crate) since: Nanos,
    pub(crate) what: MissedWork,
}

pub(crate) enum MissedWork {
    /// It will be tried again.
    Failed(ScheduleFailure),
    /// The pool of this volume was offline; the time for the snapshot has passed.
    Volume(String),
}

/// What is known of running copies.
#[derive(Default)]
pub(crate) struct Copying {
    pub(crate) at_work: BTreeMap<PoolId, usize>,
    pub(crate) frozen: BTreeMap<VolumeId, Nanos>,
    pub(crate) looked: Option<Nanos>,
}
