//! A volume in a pool, seen from one shard. Its layer changes when a snapshot is taken, and writes wait meanwhile.
//!
//! What always holds: while writes are held, none is in flight and none begins; a write that waited goes to the layer
//! that the volume has when the write continues. A command keeps the target with which it began, so all targets of a
//! volume share one state.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use base::LayerId;
use block::{BlockError, BlockRequest, BlockResult, BlockTarget, Geometry};
use pool::{CopyRange, PoolVolume, Survey};
use task::{Io, Notify};

/// A volume in a pool; see the header of this file.
pub struct PoolTarget {
    geometry: Geometry,
    state: Rc<State>,
}

struct State {
    volume: RefCell<Rc<PoolVolume>>,
    held: Cell<bool>,
    writes: Cell<usize>,
    changed: Notify,
}

/// A write in flight.
struct Writing<'a>(&'a State);

impl Drop for Writing<'_> {
    fn drop(&mut self) {
        self.0.writes.set(self.0.writes.get() - 1);
        if self.0.held.get() {
            self.0.changed.notify();
        }
    }
}

impl PoolTarget {
    pub fn new(io: &Io, volume: Rc<PoolVolume>) -> PoolTarget {
        let geometry = volume.geometry();
        let volume = RefCell::new(volume);
        let (held, writes) = (Cell::new(false), Cell::new(0));
        PoolTarget { geometry, state: Rc::new(State { volume, held, writes, changed: Notify::new(io) }) }
    }

    /// The same volume, in another layer or of another size.
    pub fn moved(&self, volume: Rc<PoolVolume>) -> PoolTarget {
        let geometry = volume.geometry();
        *self.state.volume.borrow_mut() = volume;
        PoolTarget { geometry, state: self.state.clone() }
    }

    pub fn geometry(&self) -> Geometry {
        self.geometry
    }

    pub async fn execute(&self, request: BlockRequest) -> BlockResult {
        let _writing = if changes_something(&request) { Some(self.begin_write().await) } else { None };
        let volume = self.state.volume.borrow().clone();
        // the volume may have become smaller since the command was checked
        if !volume.geometry().holds(&request) {
            return Err(BlockError::NotReady);
        }
        volume.execute(request).await
    }

    /// Makes a range refer to blocks of another volume of the pool, as far as possible; returns the rest.
    pub async fn copy_from(
        &self,
        source: &PoolTarget,
        range: CopyRange,
        below: Option<LayerId>,
    ) -> Result<Vec<CopyRange>, BlockError> {
        let _writing = self.begin_write().await;
        let volume = self.state.volume.borrow().clone();
        let from = source.state.volume.borrow().clone();
        // either volume may have become smaller since the command was checked
        let holds = |volume: &PoolVolume, start: u64| {
            let geometry = volume.geometry();
            start + range.length_bytes <= geometry.blocks * u64::from(geometry.block_bytes)
        };
        if !holds(&volume, range.destination_bytes) || !holds(&from, range.source_bytes) {
            return Err(BlockError::NotReady);
        }
        volume.copy_from(&from, range, below).await
    }

    /// Which layers decide the content of a range.
    pub async fn survey(&self, start_bytes: u64, length_bytes: u64) -> Result<Survey, BlockError> {
        let volume = self.state.volume.borrow().clone();
        volume.survey(start_bytes, length_bytes).await
    }

    async fn begin_write(&self) -> Writing<'_> {
        while self.state.held.get() {
            self.state.changed.wait().await;
        }
        self.state.writes.set(self.state.writes.get() + 1);
        Writing(&self.state)
    }

    /// Holds back writes, and waits until none is in flight, or until writes are released again.
    pub async fn hold_writes(&self) {
        self.state.held.set(true);
        while self.state.held.get() && self.state.writes.get() > 0 {
            self.state.changed.wait().await;
        }
    }

    pub fn let_writes(&self) {
        self.state.held.set(false);
        self.state.changed.notify();
    }
}

fn changes_something(request: &BlockRequest) -> bool {
    match request {
        BlockRequest::Write { .. }
        | BlockRequest::WriteZeroes { .. }
        | BlockRequest::Unmap { .. }
        | BlockRequest::CompareAndWrite { .. } => true,
        BlockRequest::Read { .. } | BlockRequest::Flush | BlockRequest::MapStatus { .. } => false,
    }
}
