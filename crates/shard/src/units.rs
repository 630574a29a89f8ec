//! The volumes of this shard: where their blocks live, and which initiators may access them.
//!
//! A volume in memory or on a raw device has one home shard, which orders its requests; the other shards call there. A
//! target is kept as long as nothing about it changes, so a change of one volume never disturbs another.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::{Rc, Weak};
use std::sync::Arc;

use api::TransferId;
use base::{LayerId, Nanos, PoolId, ShardId, VolumeId};
use block::{BlockError, BlockRequest, BlockResult, BlockTarget, Geometry, Memory, Null, Raw};
use pool::PoolVolume;
use reservation::{AccessStates, Reservations};
use task::{Io, join_all};

use crate::kept;
use crate::lanes::Lanes;
use crate::mail::Mail;
use crate::message::{Answer, Call};
use crate::news::Space;
use crate::pool_target::PoolTarget;
use crate::replica::{Replica, Transfer};
use crate::target_plan::{Backing, TargetPlan};
use crate::transfers::Transfers;

/// A volume as this shard serves it.
pub struct Unit {
    pub volume: VolumeId,
    pub target: Rc<Target>,
    /// The reservations that shard 0 last announced.
    pub reservations: RefCell<Arc<Reservations>>,
    pub access: RefCell<Arc<AccessStates>>,
    target_plan: TargetPlan,
}

impl Unit {
    /// The open pool of the volume.
    pub fn pool(&self) -> Option<PoolId> {
        match self.target_plan.backing {
            Backing::Pool { pool, .. } => Some(pool),
            _ => None,
        }
    }

    pub fn geometry(&self) -> Geometry {
        self.target_plan.geometry
    }

    /// Ensures that the device may be closed when the change that removes it is answered.
    fn retire(&self) {
        if let Target::Raw(raw) = &*self.target {
            raw.retire();
        }
    }
}

/// Where a volume's blocks live, seen from this shard.
pub enum Target {
    Null(Null),
    Memory(Memory),
    Raw(Raw),
    /// Called on its home shard.
    Remote(RemoteTarget),
    Pool(PoolTarget),
    /// Known, but not available: its pool is not open, or its device is missing.
    Offline(Geometry),
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
    pub fn answer_at_once(&self, request: &BlockRequest) -> Option<BlockResult> {
        match self {
            Target::Null(target) => Some(target.answer(request)),
            Target::Memory(target) => Some(target.answer(request)),
            Target::Offline(_) => Some(Err(BlockError::NotReady)),
            Target::Raw(_) | Target::Remote(_) | Target::Pool(_) => None,
        }
    }
}

/// A volume whose home is another shard.
pub struct RemoteTarget {
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
pub struct Units {
    io: Io,
    mail: Rc<Mail>,
    lanes: Rc<Lanes>,
    shard: ShardId,
    shards: u16,
    by_id: RefCell<BTreeMap<VolumeId, Rc<Unit>>>,
    spaces: RefCell<BTreeMap<PoolId, Space>>,
    /// All targets of each layer that a volume or a command has here.
    ways: RefCell<Vec<(PoolId, LayerId, Weak<PoolVolume>)>>,
    transfers: Transfers,
}

/// How often to check whether commands have left a layer.
const LOOK_AGAIN: Nanos = Nanos::from_millis(2);

impl Units {
    pub fn new(io: &Io, mail: &Rc<Mail>, lanes: &Rc<Lanes>, shard: ShardId, shards: u16) -> Units {
        let (by_id, spaces, ways) = (RefCell::default(), RefCell::default(), RefCell::default());
        let transfers = Transfers::default();
        let (io, mail, lanes) = (io.clone(), mail.clone(), lanes.clone());
        Units { io, mail, lanes, shard, shards, by_id, spaces, ways, transfers }
    }

    pub fn get(&self, volume: VolumeId) -> Option<Rc<Unit>> {
        self.by_id.borrow().get(&volume).cloned()
    }

    pub fn set_spaces(&self, pools: &[(PoolId, Space)]) {
        *self.spaces.borrow_mut() = pools.iter().copied().collect();
    }

    /// How full the pool of a unit is, as last announced by shard 0.
    pub fn space(&self, unit: &Unit) -> Option<Space> {
        self.spaces.borrow().get(&unit.pool()?).copied()
    }

    /// The volume's reservations, if the volume is known.
    pub fn reservations(&self, volume: VolumeId) -> Option<Arc<Reservations>> {
        self.by_id.borrow().get(&volume).map(|unit| unit.reservations.borrow().clone())
    }

    pub fn set_reservations(&self, volume: VolumeId, reservations: &Arc<Reservations>) {
        if let Some(unit) = self.by_id.borrow().get(&volume) {
            *unit.reservations.borrow_mut() = reservations.clone();
        }
    }

    /// Applies the new state of the array. A removed volume lives as long as a command is running on it.
    pub(crate) fn apply(&self, replica: &Replica) {
        let groups: Vec<u16> = replica.groups.iter().copied().collect();
        let forwarded = replica.forwarded_groups();
        let mut by_id = self.by_id.borrow_mut();
        let mut old = std::mem::take(&mut *by_id);
        for volume in replica.catalog.volumes() {
            let target_plan = TargetPlan::of(volume, replica, self.shard, self.shards);
            let unit = match old.remove(&volume.id) {
                Some(unit) => self.follow(unit, target_plan, replica, (&groups, &forwarded)),
                None => {
                    // a restart keeps what the catalog has; from then on shard 0 announces
                    let reservations = Arc::new(kept::reservations(volume.reservations.as_ref()));
                    let access = Arc::new(kept::access(&volume.access, &groups).forwarded_by(&forwarded));
                    let target = Rc::new(self.make(volume.id, &target_plan, replica, None));
                    let (reservations, access) = (RefCell::new(reservations), RefCell::new(access));
                    Rc::new(Unit { volume: volume.id, target, reservations, access, target_plan })
                }
            };
            by_id.insert(volume.id, unit);
        }
        old.values().for_each(|unit| unit.retire());
        self.transfers.follow(replica, |transfer, lanes| {
            let lanes = self.lanes.references(&self.mail, (self.shard, self.shards), transfer.pool, lanes)?;
            let volume = PoolVolume::new(lanes, transfer.layer, transfer.geometry());
            let volume = Rc::new(volume.dealt_as(transfer.dealt_as));
            self.note_way(transfer.pool, transfer.layer, &volume);
            Some(volume)
        });
    }

    /// A transfer that goes on, and the way to its layer; no way if its pool is not open.
    pub(crate) fn transfer(&self, id: TransferId) -> Option<(Transfer, Option<Rc<PoolVolume>>)> {
        self.transfers.get(id)
    }

    fn note_way(&self, pool: PoolId, layer: LayerId, way: &Rc<PoolVolume>) {
        let mut ways = self.ways.borrow_mut();
        ways.retain(|(.., way)| way.strong_count() > 0);
        ways.push((pool, layer, Rc::downgrade(way)));
    }

    /// A volume that existed before. It keeps its target if its blocks are in the same place.
    fn follow(
        &self,
        unit: Rc<Unit>,
        target_plan: TargetPlan,
        replica: &Replica,
        (groups, forwarded): (&[u16], &BTreeSet<u16>),
    ) -> Rc<Unit> {
        let access = unit.access.borrow().among(groups).forwarded_by(forwarded);
        if access != **unit.access.borrow() {
            *unit.access.borrow_mut() = Arc::new(access);
        }
        if unit.target_plan == target_plan {
            return unit;
        }
        let target = Rc::new(self.make(unit.volume, &target_plan, replica, Some(&unit)));
        if !unit.target_plan.backing.is_same_drive(&target_plan.backing) {
            unit.retire();
        }
        let (reservations, access) = (unit.reservations.clone(), unit.access.clone());
        Rc::new(Unit { volume: unit.volume, target, reservations, access, target_plan })
    }

    fn make(
        &self,
        volume: VolumeId,
        target_plan: &TargetPlan,
        replica: &Replica,
        before: Option<&Unit>,
    ) -> Target {
        let geometry = target_plan.geometry;
        match target_plan.backing {
            Backing::Null => Target::Null(Null::new(geometry)),
            Backing::Memory => Target::Memory(match before.map(|unit| &*unit.target) {
                Some(Target::Memory(memory)) => memory.grown(geometry),
                _ => Memory::new(geometry),
            }),
            Backing::Raw { drive, .. } => {
                let (_, info) = replica.raw_drive(volume).expect("the target_plan was made of it");
                // running commands on the same device take turns with new ones
                Target::Raw(match before.map(|unit| (&*unit.target, &unit.target_plan.backing)) {
                    Some((Target::Raw(raw), Backing::Raw { drive: same, .. })) if *same == drive => {
                        raw.resized(info, geometry)
                    }
                    _ => Raw::new(&self.io, drive, info, geometry),
                })
            }
            Backing::Remote(home) => {
                Target::Remote(RemoteTarget { mail: self.mail.clone(), home, volume, geometry })
            }
            Backing::Pool { pool, lanes, layer, dealt_as, .. } => {
                let place = (self.shard, self.shards);
                match self.lanes.references(&self.mail, place, pool, lanes) {
                    Some(lanes) => {
                        let pool_volume = Rc::new(PoolVolume::new(lanes, layer, geometry).dealt_as(dealt_as));
                        self.note_way(pool, layer, &pool_volume);
                        // running commands stay with the volume, whatever its next layer is
                        Target::Pool(match before.map(|unit| (&*unit.target, &unit.target_plan.backing)) {
                            Some((Target::Pool(target), backing))
                                if backing.is_where(&target_plan.backing) =>
                            {
                                target.moved(pool_volume)
                            }
                            _ => PoolTarget::new(&self.io, pool_volume),
                        })
                    }
                    None => Target::Offline(geometry),
                }
            }
            Backing::Offline => Target::Offline(geometry),
        }
    }

    /// Holds back writes to volumes in pools until none is in flight here, or lets them continue.
    pub async fn hold_writes(&self, volumes: &[VolumeId], hold: bool) {
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

    /// Which layers decide the content of a range of a volume in an open pool.
    pub async fn survey(
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

    /// Ends when no command that began in a layer is running. No volume uses the layer any more.
    pub async fn leave_layer(&self, pool: PoolId, layer: LayerId) {
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
    pub fn answer_at_once(&self, volume: VolumeId, request: &BlockRequest) -> Option<BlockResult> {
        let by_id = self.by_id.borrow();
        let target = &by_id.get(&volume)?.target;
        target.geometry().holds(request).then(|| target.answer_at_once(request)).flatten()
    }

    /// Carries out a request of another shard.
    pub async fn execute(&self, volume: VolumeId, request: BlockRequest) -> BlockResult {
        let Some(unit) = self.get(volume) else { return Err(BlockError::NotReady) };
        match &*unit.target {
            // the caller's state and ours differ while a change is being announced
            Target::Remote(_) => Err(BlockError::NotReady),
            target if !target.geometry().holds(&request) => Err(BlockError::NotReady),
            target => target.execute(request).await,
        }
    }
}
