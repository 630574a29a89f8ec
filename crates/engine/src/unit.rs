//! The volumes of this shard, as logical units: what they look like and where their blocks live.
//!
//! A volume that lives in memory or on a raw device has one home shard, which orders its requests; the other
//! shards call there. A target is kept as long as nothing about it changes, so that a change of one volume
//! never disturbs another.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::{Rc, Weak};
use std::sync::Arc;

use base::{Epoch, LayerId, Nanos, PoolId, ShardId, VolumeId};
use block::{BlockError, BlockRequest, BlockResult, BlockTarget, Geometry, Memory, Null, Raw};
use catalog::VolumeKind;
use env::DriveHandle;
use pool::PoolVolume;
use reservation::{AccessStates, Reservations};
use scsi::{Identity, LogicalUnit, Space};
use task::{Io, join_all};

use crate::access;
use crate::lanes::{Lanes, pool_layer};
use crate::mail::Mail;
use crate::message::{Answer, Call};
use crate::pool_target::PoolTarget;
use crate::replica::Replica;
use crate::reservations;

/// Product revision level that hosts see.
const REVISION: [u8; 4] = *b"0001";

/// A volume as this shard serves it.
pub(crate) struct Unit {
    pub(crate) volume: VolumeId,
    pub(crate) logical: LogicalUnit,
    pub(crate) target: Rc<Target>,
    /// As shard 0 has last announced them.
    pub(crate) reservations: RefCell<Arc<Reservations>>,
    pub(crate) access: RefCell<Arc<AccessStates>>,
    recipe: Recipe,
}

impl Unit {
    /// The open pool that it is in.
    pub(crate) fn pool(&self) -> Option<PoolId> {
        match self.recipe.source {
            Source::Pool { pool, .. } => Some(pool),
            _ => None,
        }
    }
}

impl Unit {
    /// Its device may be closed when the change that takes it away is answered.
    fn retire(&self) {
        if let Target::Raw(raw) = &*self.target {
            raw.retire();
        }
    }
}

/// Where a volume's blocks live, seen from this shard.
pub(crate) enum Target {
    Null(Null),
    Memory(Memory),
    Raw(Raw),
    /// On its home shard.
    Remote(RemoteTarget),
    Pool(PoolTarget),
    /// Known, and not to be had: its pool is not open, or its device is missing.
    Offline(Geometry),
}

/// All that a target depends on: as long as it is equal, the target stays.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Recipe {
    geometry: Geometry,
    source: Source,
}

#[derive(Clone, PartialEq, Eq, Debug)]
enum Source {
    Null,
    Memory,
    /// With where the device ends.
    Raw {
        drive: DriveHandle,
        end_bytes: u64,
    },
    Remote(ShardId),
    Pool {
        pool: PoolId,
        lanes: u16,
        epoch: Epoch,
        layer: LayerId,
        dealt_as: LayerId,
    },
    Offline,
}

impl Source {
    fn is_same_drive(&self, other: &Source) -> bool {
        let drive = |source: &Source| match source {
            Source::Raw { drive, .. } => Some(*drive),
            _ => None,
        };
        drive(self) == drive(other)
    }

    /// Whether both are the same lanes of the same life of a pool.
    fn is_where(&self, other: &Source) -> bool {
        let place = |source: &Source| match source {
            Source::Pool { pool, lanes, epoch, .. } => Some((*pool, *lanes, *epoch)),
            _ => None,
        };
        place(self).is_some() && place(self) == place(other)
    }
}

impl BlockTarget for Target {
    fn geometry(&self) -> Geometry {
        match self {
            Target::Null(target) => target.geometry(),
            Target::Memory(target) => target.geometry(),
            Target::Raw(target) => target.geometry(),
            Target::Remote(target) => target.geometry,
            Target::Pool(target) => target.geometry(),
            Target::Offline(geometry) => *geometry,
        }
    }

    async fn execute(&self, request: BlockRequest) -> BlockResult {
        match self {
            Target::Null(target) => target.execute(request).await,
            Target::Memory(target) => target.execute(request).await,
            Target::Raw(target) => target.execute(request).await,
            Target::Remote(target) => target.execute(request).await,
            Target::Pool(target) => target.execute(request).await,
            Target::Offline(_) => Err(BlockError::NotReady),
        }
    }
}

impl Target {
    /// The result of a request that needs no waiting.
    pub(crate) fn answer_at_once(&self, request: &BlockRequest) -> Option<BlockResult> {
        match self {
            Target::Null(target) => Some(target.answer(request)),
            Target::Memory(target) => Some(target.answer(request)),
            Target::Offline(_) => Some(Err(BlockError::NotReady)),
            Target::Raw(_) | Target::Remote(_) | Target::Pool(_) => None,
        }
    }
}

/// A volume whose home is another shard.
pub(crate) struct RemoteTarget {
    mail: Rc<Mail>,
    home: ShardId,
    volume: VolumeId,
    geometry: Geometry,
}

impl RemoteTarget {
    async fn execute(&self, request: BlockRequest) -> BlockResult {
        match self.mail.call(self.home, Call::Block(self.volume, request)).await {
            Some(Answer::Block(result, _)) => result,
            other => unreachable!("the answer to a block request, not {other:?}"),
        }
    }
}

/// The volumes of one shard.
pub(crate) struct Units {
    io: Io,
    mail: Rc<Mail>,
    lanes: Rc<Lanes>,
    shard: ShardId,
    shards: u16,
    by_id: RefCell<BTreeMap<VolumeId, Rc<Unit>>>,
    spaces: RefCell<BTreeMap<PoolId, Space>>,
    /// Every way into a layer that a volume or a command has here.
    ways: RefCell<Vec<(PoolId, LayerId, Weak<PoolVolume>)>>,
}

/// How often it is looked whether commands have left a layer.
const LOOK_AGAIN: Nanos = Nanos::from_millis(2);

impl Units {
    pub(crate) fn new(io: &Io, mail: &Rc<Mail>, lanes: &Rc<Lanes>, shard: ShardId, shards: u16) -> Units {
        let (by_id, spaces, ways) = (RefCell::default(), RefCell::default(), RefCell::default());
        Units { io: io.clone(), mail: mail.clone(), lanes: lanes.clone(), shard, shards, by_id, spaces, ways }
    }

    pub(crate) fn get(&self, volume: VolumeId) -> Option<Rc<Unit>> {
        self.by_id.borrow().get(&volume).cloned()
    }

    pub(crate) fn set_spaces(&self, pools: &[(PoolId, Space)]) {
        *self.spaces.borrow_mut() = pools.iter().copied().collect();
    }

    /// How full the pool of a unit is, as shard 0 has last told.
    pub(crate) fn space(&self, unit: &Unit) -> Option<Space> {
        self.spaces.borrow().get(&unit.pool()?).copied()
    }

    /// The volume's reservations, where it is known.
    pub(crate) fn reservations(&self, volume: VolumeId) -> Option<Arc<Reservations>> {
        self.by_id.borrow().get(&volume).map(|unit| unit.reservations.borrow().clone())
    }

    pub(crate) fn set_reservations(&self, volume: VolumeId, reservations: &Arc<Reservations>) {
        if let Some(unit) = self.by_id.borrow().get(&volume) {
            *unit.reservations.borrow_mut() = reservations.clone();
        }
    }

    /// Takes over the array as it is now. Volumes that are gone stay alive while a command is at work on them.
    pub(crate) fn apply(&self, replica: &Replica) {
        let target_device = Arc::new(replica.target());
        let groups = target_device.groups();
        let keeps_reservations = !replica.pools.is_empty();
        let mut by_id = self.by_id.borrow_mut();
        let mut old = std::mem::take(&mut *by_id);
        for volume in replica.catalog.volumes() {
            let recipe = self.recipe(volume, replica);
            let before = old.remove(&volume.id);
            let unit = match before {
                Some(unit)
                    if unit.recipe == recipe
                        && *unit.logical.target == *target_device
                        && unit.logical.keeps_reservations == keeps_reservations =>
                {
                    unit
                }
                before => {
                    // a restart leaves what the catalog keeps; from then on shard 0 announces
                    let (reservations, access) = match &before {
                        Some(unit) => (
                            unit.reservations.borrow().clone(),
                            Arc::new(unit.access.borrow().among(&groups)),
                        ),
                        None => (
                            Arc::new(reservations::kept(volume.reservations.as_ref())),
                            Arc::new(access::kept(&volume.access, &groups)),
                        ),
                    };
                    let target = match before.as_deref() {
                        Some(unit) if unit.recipe == recipe => unit.target.clone(),
                        before => {
                            let target = Rc::new(self.make(volume.id, &recipe, replica, before));
                            if let Some(unit) =
                                before.filter(|unit| !unit.recipe.source.is_same_drive(&recipe.source))
                            {
                                unit.retire();
                            }
                            target
                        }
                    };
                    let identity = Identity {
                        naa: volume.naa.bytes(),
                        serial: volume.serial.clone(),
                        revision: REVISION,
                    };
                    let logical = LogicalUnit {
                        identity,
                        geometry: recipe.geometry,
                        read_only: false,
                        keeps_reservations,
                        target: target_device.clone(),
                    };
                    Rc::new(Unit {
                        volume: volume.id,
                        logical,
                        target,
                        reservations: RefCell::new(reservations),
                        access: RefCell::new(access),
                        recipe,
                    })
                }
            };
            by_id.insert(volume.id, unit);
        }
        old.values().for_each(|unit| unit.retire());
    }

    fn recipe(&self, volume: &catalog::Volume, replica: &Replica) -> Recipe {
        let geometry = Geometry {
            block_bytes: volume.block_bytes,
            blocks: volume.size_bytes / u64::from(volume.block_bytes),
            thin: matches!(volume.backing, VolumeKind::Pool { .. } | VolumeKind::Memory {}),
            write_back: volume.write_back,
        };
        let home = home(volume.id, self.shards);
        let source = match &volume.backing {
            VolumeKind::Null {} => Source::Null,
            VolumeKind::Memory {} if home == self.shard => Source::Memory,
            VolumeKind::Memory {} => Source::Remote(home),
            VolumeKind::Raw { .. } => match replica.raw_drive(volume.id) {
                Some((drive, info)) if home == self.shard => Source::Raw { drive, end_bytes: info.end_bytes },
                Some(_) => Source::Remote(home),
                None => Source::Offline,
            },
            VolumeKind::Pool { pool, layer } => match replica.pools.iter().find(|(id, ..)| id == pool) {
                Some(&(pool, lanes, epoch)) => {
                    let (layer, dealt_as) =
                        (pool_layer(*layer), pool_layer(volume.dealt_as.unwrap_or(*layer)));
                    Source::Pool { pool, lanes, epoch, layer, dealt_as }
                }
                None => Source::Offline,
            },
        };
        Recipe { geometry, source }
    }

    fn make(&self, volume: VolumeId, recipe: &Recipe, replica: &Replica, before: Option<&Unit>) -> Target {
        let geometry = recipe.geometry;
        match recipe.source {
            Source::Null => Target::Null(Null::new(geometry)),
            Source::Memory => Target::Memory(match before.map(|unit| &*unit.target) {
                Some(Target::Memory(memory)) => memory.grown(geometry),
                _ => Memory::new(geometry),
            }),
            Source::Raw { drive, .. } => {
                let (_, info) = replica.raw_drive(volume).expect("the recipe was made of it");
                // commands that are at work on the same device take turns with those that come
                Target::Raw(match before.map(|unit| (&*unit.target, &unit.recipe.source)) {
                    Some((Target::Raw(raw), Source::Raw { drive: same, .. })) if *same == drive => {
                        raw.resized(info, geometry)
                    }
                    _ => Raw::new(&self.io, drive, info, geometry),
                })
            }
            Source::Remote(home) => {
                Target::Remote(RemoteTarget { mail: self.mail.clone(), home, volume, geometry })
            }
            Source::Pool { pool, lanes, layer, dealt_as, .. } => {
                let place = (self.shard, self.shards);
                match self.lanes.references(&self.mail, place, pool, lanes) {
                    Some(lanes) => {
                        let pool_volume = Rc::new(PoolVolume::new(lanes, layer, geometry).dealt_as(dealt_as));
                        self.ways.borrow_mut().push((pool, layer, Rc::downgrade(&pool_volume)));
                        // commands that are at work stay with the volume, whatever layer it goes on in
                        Target::Pool(match before.map(|unit| (&*unit.target, &unit.recipe.source)) {
                            Some((Target::Pool(target), source)) if source.is_where(&recipe.source) => {
                                target.moved(pool_volume)
                            }
                            _ => PoolTarget::new(&self.io, pool_volume),
                        })
                    }
                    None => Target::Offline(geometry),
                }
            }
            Source::Offline => Target::Offline(geometry),
        }
    }

    /// Holds back writes to volumes in pools, until none is under way here, or lets them go on.
    pub(crate) async fn hold_writes(&self, volumes: &[VolumeId], hold: bool) {
        let units: Vec<_> = volumes.iter().filter_map(|&volume| self.get(volume)).collect();
        let targets = units.iter().filter_map(|unit| match &*unit.target {
            Target::Pool(target) => Some(target),
            _ => None,
        });
        match hold {
            true => drop(join_all(targets.map(|target| target.hold_writes()).collect::<Vec<_>>()).await),
            false => targets.for_each(|target| target.let_writes()),
        }
    }

    /// Who speaks of a range of a volume in an open pool.
    pub(crate) async fn survey(
        &self,
        volume: VolumeId,
        start_bytes: u64,
        length_bytes: u64,
    ) -> Option<pool::Survey> {
        let unit = self.get(volume)?;
        match &*unit.target {
            Target::Pool(target) => target.survey(start_bytes, length_bytes).await.ok(),
            _ => None,
        }
    }

    /// Comes back when no command is at work that began in a layer. No volume is in it any more.
    pub(crate) async fn leave_layer(&self, pool: PoolId, layer: LayerId) {
        loop {
            {
                let mut ways = self.ways.borrow_mut();
                ways.retain(|(.., way)| way.strong_count() > 0);
                if !ways.iter().any(|(of, into, _)| (*of, *into) == (pool, layer)) {
                    return;
                }
            }
            self.io.sleep(LOOK_AGAIN).await;
        }
    }

    /// The result of another shard's request that needs no waiting.
    pub(crate) fn answer_at_once(&self, volume: VolumeId, request: &BlockRequest) -> Option<BlockResult> {
        let by_id = self.by_id.borrow();
        let target = &by_id.get(&volume)?.target;
        target.geometry().holds(request).then(|| target.answer_at_once(request)).flatten()
    }

    /// Carries out a request of another shard.
    pub(crate) async fn execute(&self, volume: VolumeId, request: BlockRequest) -> BlockResult {
        let Some(unit) = self.get(volume) else { return Err(BlockError::NotReady) };
        match &*unit.target {
            // the caller's view and ours differ while a change is on its way
            Target::Remote(_) => Err(BlockError::NotReady),
            target if !target.geometry().holds(&request) => Err(BlockError::NotReady),
            target => target.execute(request).await,
        }
    }
}

/// The shard on which a memory or raw volume lives.
fn home(volume: VolumeId, shards: u16) -> ShardId {
    ShardId((volume.0 % u32::from(shards)) as u16)
}
