//! Snapshots and clones of one lane's volumes: the records that an array's catalog would have, and changes of them.
//!
//! The records survive every crash, like a catalog whose changes are atomic and durable. A layer is created before
//! it is recorded, and dropped after its record is removed. Layers that a crash leaves without a record are dropped at
//! the next start.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;

use base::{BLOCK_BYTES, LayerId, Lba};
use block::{BlockError, BlockOutput, BlockRequest, BlockTarget};
use pool::{CopyRange, LaneError, LaneOutput, LaneRequest, PoolVolume};

use super::subject::LaneSubject;
use crate::oracle::SECTOR_BYTES;
use crate::workload::{Answer, Copied, Layered, Order, Stretch, VolumeGate, VolumePlan};

/// Numbers of copies, and their layers, begin here.
const FIRST_COPY: u32 = 10_000;
/// Numbers of one lane's copies are this far from the next lane's.
const COPIES_PER_LANE: u32 = 1_000_000;

/// What is recorded of one lane.
pub struct Records {
    /// The layer in which each volume, snapshot or clone is.
    pub layers: RefCell<BTreeMap<u32, LayerId>>,
    pub copies: RefCell<BTreeMap<u32, Copied>>,
    /// Layers that stay because something may refer to them.
    pub kept: RefCell<BTreeSet<LayerId>>,
    next: Cell<u32>,
    base: u32,
}

impl Records {
    pub fn new(lane: u16, volumes: &[(VolumePlan, LayerId)]) -> Rc<Records> {
        Rc::new(Records {
            layers: RefCell::new(volumes.iter().map(|(plan, layer)| (plan.volume, *layer)).collect()),
            copies: RefCell::default(),
            kept: RefCell::default(),
            next: Cell::new(FIRST_COPY),
            base: u32::from(lane) * COPIES_PER_LANE,
        })
    }

    fn new_layer(&self) -> LayerId {
        self.next.set(self.next.get() + 1);
        LayerId(self.next.get())
    }

    pub fn layer(&self, number: u32) -> Option<LayerId> {
        self.layers.borrow().get(&number).copied()
    }
}

/// The layers of a [`LaneSubject`].
pub struct LaneLayers {
    subject: Rc<LaneSubject>,
}

impl LaneLayers {
    pub fn new(subject: Rc<LaneSubject>) -> LaneLayers {
        LaneLayers { subject }
    }
}

impl LaneSubject {
    /// A new layer over another: what is in the other stays as it is from then on.
    async fn grow(&self, parent: LayerId, blocks: u64) -> Result<LayerId, Answer> {
        let layer = self.records.new_layer();
        let request = LaneRequest::CreateLayer { layer, parent: Some(parent), blocks };
        match self.lane.execute(request).await {
            Ok(_) => Ok(layer),
            Err(LaneError::OutOfSpace) => Err(Answer::OutOfSpace),
            Err(LaneError::Unavailable) => Err(Answer::Lost),
            Err(error) => Err(Answer::Failed(format!("{error:?}"))),
        }
    }

    async fn drop_layer(&self, layer: LayerId) -> Answer {
        self.leave_layer(layer).await;
        match self.lane.execute(LaneRequest::DropLayer { layer }).await {
            Ok(_) | Err(LaneError::OutOfSpace | LaneError::Unavailable) => Answer::Done,
            Err(error) => Answer::Failed(format!("{error:?}")),
        }
    }

    /// Of a volume, a snapshot or a clone.
    fn plan(&self, number: u32) -> Option<VolumePlan> {
        let copy = self.records.copies.borrow().get(&number).map(|copy| copy.plan);
        copy.or_else(|| self.plans.iter().find(|plan| plan.volume == number).copied())
    }

    async fn carry_out(self: &Rc<Self>, order: Order) -> Answer {
        let result = match order {
            Order::Snapshot { volume, copy } => self.snapshot(volume, copy).await,
            Order::Clone { snapshot, copy } => self.clone_of(snapshot, copy).await,
            Order::Rollback { volume, snapshot } => return self.roll_back(volume, snapshot).await,
            Order::Delete { copy } => {
                let layer = self.records.layers.borrow_mut().remove(&copy).expect("it is recorded");
                self.records.copies.borrow_mut().remove(&copy);
                if self.records.kept.borrow().contains(&layer) {
                    return Answer::Done;
                }
                return self.drop_layer(layer).await;
            }
            Order::Copy { range } => self.copy(range).await,
            Order::Forget => return self.forget().await,
        };
        result.map_or_else(|answer| answer, |()| Answer::Done)
    }

    async fn snapshot(&self, volume: u32, copy: u32) -> Result<(), Answer> {
        let plan = self.plan(volume).ok_or(Answer::Lost)?;
        let frozen = self.records.layer(volume).ok_or(Answer::Lost)?;
        let top = self.grow(frozen, plan.blocks).await?;
        let mut layers = self.records.layers.borrow_mut();
        layers.insert(volume, top);
        layers.insert(copy, frozen);
        let plan = VolumePlan { volume: copy, blocks: plan.blocks, write_back: false };
        self.records.copies.borrow_mut().insert(copy, Copied { plan, origin: volume, writable: false });
        Ok(())
    }

    /// Has the destination refer to what is below the source's layer, which is frozen where that holds too little.
    async fn copy(&self, range: Stretch) -> Result<(), Answer> {
        let bytes = |blocks: u64| blocks * BLOCK_BYTES as u64;
        let (from, length) = (bytes(range.from), bytes(range.blocks));
        let source = self.target(range.source).ok_or(Answer::Lost)?;
        let survey = source.survey(from, length).await.map_err(answer)?;
        let own = self.records.layer(range.source).ok_or(Answer::Lost)?;
        // any other is on its way out
        let known = |below: &LayerId| {
            let records = &self.records;
            records.kept.borrow().contains(below)
                || records.layers.borrow().values().any(|layer| layer == below)
        };
        let enough = survey.above_blocks * 8 <= range.blocks;
        let below = match survey.below.filter(|below| enough && known(below)) {
            Some(below) => below,
            None if !self.is_written(range.source) => own,
            None => {
                let plan = self.plan(range.source).ok_or(Answer::Lost)?;
                let top = self.grow(own, plan.blocks).await?;
                self.records.layers.borrow_mut().insert(range.source, top);
                own
            }
        };
        self.records.kept.borrow_mut().insert(below);
        let source = self.target(range.source).ok_or(Answer::Lost)?;
        let destination = self.target(range.destination).ok_or(Answer::Lost)?;
        let copy = CopyRange { source_bytes: from, destination_bytes: bytes(range.to), length_bytes: length };
        for left in destination.copy_from(&source, copy, Some(below)).await.map_err(answer)? {
            self.copy_data(&source, &destination, left).await.map_err(answer)?;
        }
        Ok(())
    }

    async fn copy_data(
        &self,
        source: &PoolVolume,
        destination: &PoolVolume,
        range: CopyRange,
    ) -> Result<(), BlockError> {
        let lba = |bytes: u64| Lba(bytes / SECTOR_BYTES as u64);
        let blocks = (range.length_bytes / SECTOR_BYTES as u64) as u32;
        let read = source.execute(BlockRequest::Read { lba: lba(range.source_bytes), blocks }).await?;
        let BlockOutput::Data(data) = read else { unreachable!("a read gives data") };
        let write = BlockRequest::Write { lba: lba(range.destination_bytes), data, durable: false };
        destination.execute(write).await.map(drop)
    }

    fn is_written(&self, number: u32) -> bool {
        self.records.copies.borrow().get(&number).is_none_or(|copy| copy.writable)
    }

    /// Drops layers to which nothing refers. No copy is under way.
    async fn forget(&self) -> Answer {
        let counts = match self.lane.execute(LaneRequest::Referred).await {
            Ok(LaneOutput::Referred(counts)) => counts,
            Ok(other) => return Answer::Failed(format!("{other:?}")),
            Err(LaneError::OutOfSpace | LaneError::Unavailable) => return Answer::Lost,
            Err(error) => return Answer::Failed(format!("{error:?}")),
        };
        let kept: Vec<LayerId> = self.records.kept.borrow().iter().copied().collect();
        for layer in kept.into_iter().filter(|layer| counts.iter().all(|(counted, _)| counted != layer)) {
            self.records.kept.borrow_mut().remove(&layer);
            if !self.records.layers.borrow().values().any(|used| *used == layer) {
                self.drop_layer(layer).await;
            }
        }
        Answer::Done
    }

    async fn clone_of(&self, snapshot: u32, copy: u32) -> Result<(), Answer> {
        let plan = self.plan(snapshot).ok_or(Answer::Lost)?;
        let frozen = self.records.layer(snapshot).ok_or(Answer::Lost)?;
        let top = self.grow(frozen, plan.blocks).await?;
        self.records.layers.borrow_mut().insert(copy, top);
        let plan = VolumePlan { volume: copy, blocks: plan.blocks, write_back: false };
        self.records.copies.borrow_mut().insert(copy, Copied { plan, origin: snapshot, writable: true });
        Ok(())
    }

    async fn roll_back(self: &Rc<Self>, volume: u32, snapshot: u32) -> Answer {
        let (Some(plan), Some(frozen)) = (self.plan(volume), self.records.layer(snapshot)) else {
            return Answer::Lost;
        };
        let top = match self.grow(frozen, plan.blocks).await {
            Ok(top) => top,
            Err(answer) => return answer,
        };
        let old = self.records.layers.borrow_mut().insert(volume, top).expect("it is recorded");
        // from here on the volume is the snapshot's copy, whatever becomes of what it was
        let subject = self.clone();
        self.io.spawn(async move { drop(subject.drop_layer(old).await) });
        Answer::Done
    }
}

fn answer(error: BlockError) -> Answer {
    match error {
        BlockError::OutOfSpace => Answer::OutOfSpace,
        error => Answer::Failed(error.to_string()),
    }
}

impl Layered for LaneLayers {
    fn copies(&self) -> Vec<Copied> {
        self.subject.records.copies.borrow().values().copied().collect()
    }

    fn new_number(&self) -> u32 {
        self.subject.records.base + self.subject.records.new_layer().0
    }

    fn gate(&self, volume: u32) -> Rc<VolumeGate> {
        self.subject.gate(volume)
    }

    fn freed_by(&self, copy: u32) -> Pin<Box<dyn Future<Output = Result<u64, String>>>> {
        let (subject, layer) = (self.subject.clone(), self.subject.records.layer(copy));
        Box::pin(async move {
            let layer = layer.ok_or("there is no such copy")?;
            if subject.records.kept.borrow().contains(&layer) {
                return Ok(0);
            }
            match subject.lane.execute(LaneRequest::FreedBy { layer }).await {
                Ok(LaneOutput::Freed { blocks }) => Ok(blocks),
                Ok(other) => Err(format!("{other:?}")),
                Err(error) => Err(format!("its blocks cannot be counted: {error:?}")),
            }
        })
    }

    fn stored_blocks(&self) -> u64 {
        self.subject.lane.stats().mapped_blocks
    }

    fn is_settled(&self) -> bool {
        !self.subject.lane.upkeep_is_due()
    }

    fn check_kept(&self) -> Result<(), String> {
        let (lane, records) = (&self.subject.lane, &self.subject.records);
        let stored = self.stored_blocks();
        // whoever asks for layers keeps, all together, whatever is stored
        let by_all = lane.blocks_kept_by(&lane.layers());
        if by_all != stored {
            return Err(format!("{by_all} blocks are kept by somebody, {stored} are stored"));
        }
        let used: Vec<LayerId> = records.layers.borrow().values().copied().collect();
        let only_kept: Vec<LayerId> =
            records.kept.borrow().iter().copied().filter(|layer| !used.contains(layer)).collect();
        let kept = lane.blocks_kept_by(&only_kept);
        for (layer, space) in lane.layer_spaces().into_iter().filter(|(layer, _)| !only_kept.contains(layer))
        {
            let of_layer = space.own_blocks + space.below_blocks;
            if kept + of_layer > stored {
                return Err(format!(
                    "only references keep {kept} blocks, {layer:?} has {of_layer} of its own: {stored} are stored"
                ));
            }
        }
        Ok(())
    }

    fn order(&self, order: Order) -> Pin<Box<dyn Future<Output = Answer>>> {
        let subject = self.subject.clone();
        Box::pin(async move { subject.carry_out(order).await })
    }
}
