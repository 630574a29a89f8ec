//! One lane as a subject of the workload: its volumes are block targets over this lane alone.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;

use base::{LayerId, Lba, Nanos};
use block::{BlockError, BlockOutput, BlockRequest, BlockTarget, Geometry, Payload};
use pool::{CATALOG_LAYER, Lane, LaneError, LaneRef, LaneRequest, PoolVolume};
use task::Io;

use super::layers::{LaneLayers, Records};
use crate::oracle::{SECTOR_BYTES, SECTORS_PER_BLOCK};
use crate::workload::{Answer, Layered, Request, Subject, VolumeGate, VolumePlan};
use crate::world::World;

/// Pause before a request is tried again that found no space.
const AGAIN: Nanos = Nanos::from_millis(10);
/// How often it is looked whether requests have ended.
const LOOK_AGAIN: Nanos = Nanos::from_millis(1);

/// See the module's words.
pub struct LaneSubject {
    pub(super) io: Io,
    pub(super) lane: Rc<Lane>,
    pub(super) records: Rc<Records>,
    /// The volumes that were there from the beginning.
    pub(super) plans: Vec<VolumePlan>,
    gates: RefCell<BTreeMap<u32, Rc<VolumeGate>>>,
    /// Requests under way in each layer.
    in_use: RefCell<BTreeMap<LayerId, usize>>,
}

/// A request that is under way in a layer.
struct InUse(Rc<LaneSubject>, LayerId);

impl InUse {
    fn new(subject: &Rc<LaneSubject>, layer: LayerId) -> InUse {
        *subject.in_use.borrow_mut().entry(layer).or_default() += 1;
        InUse(subject.clone(), layer)
    }
}

impl Drop for InUse {
    fn drop(&mut self) {
        *self.0.in_use.borrow_mut().get_mut(&self.1).expect("it was counted") -= 1;
    }
}

/// A [`LaneSubject`] as clients use it.
pub struct SharedSubject {
    pub subject: Rc<LaneSubject>,
    pub world: World,
}

impl LaneSubject {
    pub fn new(io: &Io, lane: Rc<Lane>, records: Rc<Records>, plans: Vec<VolumePlan>) -> LaneSubject {
        let (gates, in_use) = (RefCell::default(), RefCell::default());
        LaneSubject { io: io.clone(), lane, records, plans, gates, in_use }
    }

    pub fn gate(&self, volume: u32) -> Rc<VolumeGate> {
        self.gates.borrow_mut().entry(volume).or_insert_with(|| VolumeGate::new(&self.io)).clone()
    }

    pub(super) fn target(&self, number: u32) -> Option<PoolVolume> {
        let layer = self.records.layer(number)?;
        let copy = self.records.copies.borrow().get(&number).map(|copy| copy.plan);
        let plan = copy.or_else(|| self.plans.iter().find(|plan| plan.volume == number).copied())?;
        let geometry = Geometry {
            block_bytes: SECTOR_BYTES as u32,
            blocks: plan.blocks * SECTORS_PER_BLOCK,
            thin: true,
            write_back: plan.write_back,
        };
        Some(PoolVolume::new(vec![LaneRef::Local(self.lane.clone())], layer, geometry))
    }

    /// Waits until nothing is under way in a layer to which nothing new goes.
    pub async fn leave_layer(&self, layer: LayerId) {
        while self.in_use.borrow().get(&layer).is_some_and(|&requests| requests > 0) {
            self.io.sleep(LOOK_AGAIN).await;
        }
        self.in_use.borrow_mut().remove(&layer);
    }

    /// Creates the layers that are not there yet, and drops those that no record speaks of.
    pub async fn ensure_layers(&self) -> Result<(), String> {
        for plan in &self.plans {
            let layer = self.records.layer(plan.volume).expect("volumes are recorded");
            let create = LaneRequest::CreateLayer { layer, parent: None, blocks: plan.blocks };
            self.persist(create).await?;
        }
        let mut kept: Vec<LayerId> = self.records.layers.borrow().values().copied().collect();
        kept.extend(self.records.kept.borrow().iter());
        for layer in self.lane.layers() {
            if layer != CATALOG_LAYER && !kept.contains(&layer) {
                self.persist(LaneRequest::DropLayer { layer }).await?;
            }
        }
        match kept.into_iter().find(|layer| !self.lane.layers().contains(layer)) {
            Some(lost) => Err(format!("{lost:?} is lost")),
            None => Ok(()),
        }
    }

    /// Tries until it is done: a file system that is full will not stay so.
    async fn persist(&self, request: LaneRequest) -> Result<(), String> {
        while let Err(error) = self.lane.execute(request.clone()).await {
            if error != LaneError::OutOfSpace {
                return Err(format!("{request:?}: {error:?}"));
            }
            self.io.sleep(AGAIN).await;
        }
        Ok(())
    }
}

/// What room a lane had when a request began.
struct Room {
    at: Nanos,
    was_short: bool,
}

impl Room {
    fn of(lane: &Lane, at: Nanos) -> Room {
        Room { at, was_short: Room::is_short(lane) }
    }

    /// Half full is far from full, whatever else is under way, and however little cleaning gains.
    fn is_short(lane: &Lane) -> bool {
        let stats = lane.stats();
        stats.stalled || stats.live_blocks * 2 >= stats.capacity_blocks
    }

    /// The answer to a request that was refused for want of space: it must have been short meanwhile.
    fn refusal(&self, lane: &Lane, world: &World) -> Answer {
        if self.was_short || Room::is_short(lane) || world.was_full_since(self.at) {
            return Answer::OutOfSpace;
        }
        let stats = lane.stats();
        let (live, capacity) = (stats.live_blocks, stats.capacity_blocks);
        Answer::Failed(format!("no space, with {live} of {capacity} blocks in use and no file system full"))
    }
}

fn block_request(request: Request) -> (u32, BlockRequest) {
    let lba = Lba;
    match request {
        Request::Read { volume, sectors } => {
            let blocks = (sectors.end - sectors.start) as u32;
            (volume, BlockRequest::Read { lba: lba(sectors.start), blocks })
        }
        Request::Write { volume, first, data, durable } => {
            (volume, BlockRequest::Write { lba: lba(first), data: Payload::from(data), durable })
        }
        Request::Zero { volume, sectors } => (
            volume,
            BlockRequest::WriteZeroes { lba: lba(sectors.start), blocks: sectors.end - sectors.start },
        ),
        Request::CompareAndWrite { volume, first, expected, data, durable } => {
            let (expected, data) = (Payload::from(expected), Payload::from(data));
            let expected = Box::new(expected);
            (volume, BlockRequest::CompareAndWrite { lba: lba(first), expected, data, durable })
        }
        Request::Flush { volume } => (volume, BlockRequest::Flush),
    }
}

impl Subject for SharedSubject {
    fn execute(&self, request: Request) -> Pin<Box<dyn Future<Output = Answer>>> {
        let (volume, request) = block_request(request);
        let (subject, world) = (self.subject.clone(), self.world.clone());
        let target = subject.target(volume);
        let in_use = subject.records.layer(volume).map(|layer| InUse::new(&subject, layer));
        Box::pin(async move {
            let before = Room::of(&subject.lane, world.now());
            let _in_use = in_use;
            // a copy that has been deleted
            let Some(target) = target else { return Answer::Lost };
            match target.execute(request).await {
                Ok(BlockOutput::Data(data)) => Answer::Data(data.to_vec()),
                Ok(BlockOutput::None | BlockOutput::MapStatus { .. }) => Answer::Done,
                Err(BlockError::Miscompare { .. }) => Answer::Miscompare,
                Err(BlockError::OutOfSpace) => before.refusal(&subject.lane, &world),
                Err(error) => Answer::Failed(error.to_string()),
            }
        })
    }

    fn layers(&self) -> Option<Rc<dyn Layered>> {
        Some(Rc::new(LaneLayers::new(self.subject.clone())))
    }
}
