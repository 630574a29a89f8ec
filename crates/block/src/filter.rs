//! Filters: each wraps a target and has the same interface. For tests, and for measuring the effect of latency.

use std::cell::{Cell, RefCell};

use base::{Lba, Nanos};
use task::Io;

use crate::extent::RequestKind;
use crate::request::{BlockError, BlockRequest, BlockResult, BlockTarget, Geometry};

/// A fault to be played.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ScriptedFault {
    /// Which requests: of this kind, or all.
    pub kind: Option<RequestKind>,
    /// That touch one of these blocks; a flush touches none and fails with every range.
    pub lba: Lba,
    pub blocks: u64,
    pub error: BlockError,
    /// How often; `None` for ever.
    pub times: Option<u32>,
}

/// Fails requests as scripted; the others pass. A request that fails has not reached the target below.
pub struct Fault<T> {
    below: T,
    script: RefCell<Vec<ScriptedFault>>,
}

impl<T: BlockTarget> Fault<T> {
    pub fn new(below: T) -> Fault<T> {
        Fault { below, script: RefCell::default() }
    }

    /// Adds a fault. Where several match, the one that was added first is played.
    pub fn inject(&self, fault: ScriptedFault) {
        self.script.borrow_mut().push(fault);
    }

    /// Ends all faults.
    pub fn heal(&self) {
        self.script.borrow_mut().clear();
    }

    pub fn below(&self) -> &T {
        &self.below
    }

    fn play(&self, request: &BlockRequest) -> Option<BlockError> {
        let extent = request.extent(self.below.geometry().block_bytes);
        let touches = |fault: &ScriptedFault| {
            extent.is_none_or(|(lba, blocks)| {
                lba.0 < fault.lba.0.saturating_add(fault.blocks) && fault.lba.0 < lba.0.saturating_add(blocks)
            })
        };
        let mut script = self.script.borrow_mut();
        let matches = |fault: &ScriptedFault| {
            fault.kind.is_none_or(|kind| kind == request.kind()) && fault.times != Some(0) && touches(fault)
        };
        let fault = script.iter_mut().find(|fault| matches(fault))?;
        fault.times = fault.times.map(|times| times - 1);
        let error = fault.error;
        script.retain(|fault| fault.times != Some(0));
        Some(error)
    }
}

impl<T: BlockTarget> BlockTarget for Fault<T> {
    fn geometry(&self) -> Geometry {
        self.below.geometry()
    }

    async fn execute(&self, request: BlockRequest) -> BlockResult {
        match self.play(&request) {
            Some(error) => Err(error),
            None => self.below.execute(request).await,
        }
    }
}

/// Makes every request take longer: it waits, then reaches the target below.
pub struct Delay<T> {
    below: T,
    io: Io,
    delay: Cell<Nanos>,
}

impl<T: BlockTarget> Delay<T> {
    pub fn new(io: &Io, below: T, delay: Nanos) -> Delay<T> {
        Delay { below, io: io.clone(), delay: Cell::new(delay) }
    }

    /// For requests from now on; zero passes them straight.
    pub fn set_delay(&self, delay: Nanos) {
        self.delay.set(delay);
    }

    pub fn below(&self) -> &T {
        &self.below
    }
}

impl<T: BlockTarget> BlockTarget for Delay<T> {
    fn geometry(&self) -> Geometry {
        self.below.geometry()
    }

    async fn execute(&self, request: BlockRequest) -> BlockResult {
        let delay = self.delay.get();
        if delay > Nanos(0) {
            self.io.sleep(delay).await;
        }
        self.below.execute(request).await
    }
}
