//! The workload: random requests against any block storage; the oracle checks every answer.
//!
//! A [`Subject`] is the storage under test: a lane of a pool, or the stand-ins of this crate's own tests. Each client
//! keeps one request in flight; a run has as many clients as its queue depth.

mod administrator;
mod bench;
mod checked;
mod client;
mod profile;
mod run;

use std::cell::{Cell, RefCell};
use std::fmt;
use std::future::Future;
use std::ops::Range;
use std::pin::Pin;
use std::rc::Rc;

use crate::array::Growth;
use crate::oracle::{Oracle, Violation};
use crate::world::World;

pub use administrator::{
    Administrator, Copied, Layered, Order, Stretch, VolumeGate, check_freed, run_administrator,
};
pub use bench::{Bench, LaneSlot, Opening, Session};
pub use checked::{Checked, ask_checked};
pub use client::{read_checked, run_client, verify, write_checked, zero_checked};
pub use profile::{Profile, VolumePlan};
pub use run::{Course, Runner, spawn_flagged};

/// What a client asks for. Ranges are in 512-byte sectors of the volume.
#[derive(Clone, Debug)]
pub enum Request {
    Read {
        volume: u32,
        sectors: Range<u64>,
    },
    Write {
        volume: u32,
        first: u64,
        data: Vec<u8>,
        durable: bool,
    },
    /// The range reads as zeros afterwards.
    Zero {
        volume: u32,
        sectors: Range<u64>,
    },
    CompareAndWrite {
        volume: u32,
        first: u64,
        expected: Vec<u8>,
        data: Vec<u8>,
        durable: bool,
    },
    Flush {
        volume: u32,
    },
}

impl fmt::Display for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sectors = |data: &[u8]| data.len() / crate::oracle::SECTOR_BYTES;
        match self {
            Request::Read { volume, sectors } => write!(f, "read volume {volume} sectors {sectors:?}"),
            Request::Write { volume, first, data, durable } => {
                write!(f, "write volume {volume} sectors {first} +{} durable {durable}", sectors(data))
            }
            Request::Zero { volume, sectors } => write!(f, "zero volume {volume} sectors {sectors:?}"),
            Request::CompareAndWrite { volume, first, data, .. } => {
                write!(f, "compare and write volume {volume} sectors {first} +{}", sectors(data))
            }
            Request::Flush { volume } => write!(f, "flush volume {volume}"),
        }
    }
}

/// How a request ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Answer {
    Done,
    Data(Vec<u8>),
    /// The compare failed; nothing was written.
    Miscompare,
    /// No space; the write may have been carried out in part.
    OutOfSpace,
    /// The way to the subject broke: whether the request was carried out is not known.
    Lost,
    /// Aborted, and over: it was carried out or never will be.
    Aborted,
    /// Anything else, in the subject's words.
    Failed(String),
}

/// Something that stores blocks.
pub trait Subject {
    /// Carries out one request; requests run side by side.
    fn execute(&self, request: Request) -> Pin<Box<dyn Future<Output = Answer>>>;

    /// Whether a write that was aborted is sent again. It may have been carried out: it is another write.
    fn sends_again(&self) -> bool {
        false
    }

    /// What can be frozen and copied, if anything.
    fn layers(&self) -> Option<Rc<dyn Layered>> {
        None
    }
}

/// Why a run failed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Failure {
    /// The oracle does not permit what was read.
    Violation(Violation),
    /// A request failed that must not.
    Refused { request: String, answer: String },
    /// Something was never done.
    Stuck { what: String, why: crate::process::Stuck },
    /// The pool could not be created or opened.
    NotOpened(String),
    /// A promise of the subject's own, in words.
    Broken(String),
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Violation(violation) => write!(f, "{violation}"),
            Failure::Refused { request, answer } => write!(f, "{request}: {answer}"),
            Failure::Stuck { what, why } => write!(f, "{what}: {why}"),
            Failure::NotOpened(why) => write!(f, "the pool does not open: {why}"),
            Failure::Broken(what) => f.write_str(what),
        }
    }
}

/// What the clients of a run share.
pub struct Shared {
    pub world: World,
    pub oracle: RefCell<Oracle>,
    /// The first failure; everybody stops at it.
    pub failure: RefCell<Option<Failure>>,
    pub stop: Cell<bool>,
    /// Requests that were answered.
    pub answered: Cell<u64>,
    /// Writes answered with "no space".
    pub out_of_space: Cell<u64>,
    /// Volumes that were made larger.
    pub growth: RefCell<Growth>,
    /// More has gone wrong than the subject promises to survive: it may answer with errors, never with wrong data.
    pub lenient: Cell<bool>,
    /// Errors that were answered meanwhile.
    pub refused: Cell<u64>,
}

impl Shared {
    pub fn new(world: World) -> Rc<Shared> {
        Rc::new(Shared {
            world,
            oracle: RefCell::default(),
            failure: RefCell::default(),
            stop: Cell::new(false),
            answered: Cell::new(0),
            out_of_space: Cell::new(0),
            growth: RefCell::default(),
            lenient: Cell::new(false),
            refused: Cell::new(0),
        })
    }

    pub fn fail(&self, failure: Failure) {
        self.world.note(|| format!("FAILURE: {failure}"));
        self.failure.borrow_mut().get_or_insert(failure);
        self.stop.set(true);
    }

    pub fn has_failed(&self) -> bool {
        self.failure.borrow().is_some()
    }
}
