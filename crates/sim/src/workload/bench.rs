//! What is under test, as a run sees it: how it is started, hurt and healed.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use task::Io;

use super::{Subject, VolumePlan};
use crate::drive::DriveNumber;
use crate::prng::Prng;
use crate::process::Simulation;
use crate::world::{ProcessId, World};

/// Where a subject appears when it is open.
pub type Opening = Rc<RefCell<Option<Result<Rc<dyn Subject>, String>>>>;

/// One independent part of what is under test: a lane, on its shard.
pub struct LaneSlot {
    /// Where its clients run; not always the process under test.
    pub process: ProcessId,
    pub shard: u16,
    pub io: Io,
    pub opening: Opening,
    pub volumes: Rc<Vec<VolumePlan>>,
}

/// A process that has been started to serve.
pub struct Session {
    pub process: ProcessId,
    pub lanes: Vec<LaneSlot>,
}

/// How what is under test is started, hurt and healed.
pub trait Bench {
    /// Starts a process that opens the subject. `round` counts from 0; in the first it is also created.
    fn start(&mut self, simulation: &mut Simulation, round: u32) -> Session;

    /// From the next start on nothing happens any more that could end the process under test by itself.
    fn calm_down(&mut self) {}

    /// Begins to stop the subject in an orderly way; when all flags are set, it is safe to end the process.
    fn close(&mut self, world: &World, session: &Session) -> Vec<Rc<Cell<bool>>>;

    /// To be called between any two events while a session is there: what the subject needs done to its processes.
    fn follow(&mut self, _simulation: &mut Simulation) -> Result<(), String> {
        Ok(())
    }

    /// Whether the process under test has ended by itself, if that can be.
    fn is_over(&self) -> Option<Rc<dyn Fn() -> bool>> {
        None
    }

    /// Lets a fault happen, within what the subject promises to survive.
    fn inject(&mut self, world: &World, prng: &mut Prng);

    /// Ends all faults.
    fn heal(&mut self, world: &World);

    /// What the subject counted, before its process ends.
    fn collect(&mut self, session: &Session);

    /// What is not as it should be long after the last fault, if anything.
    fn unsettled(&self) -> Option<String> {
        None
    }

    /// Whether snapshots are taken and clones made while the clients go on.
    fn has_administrator(&self) -> bool {
        false
    }

    /// Begins to audit the subject's books; when all flags are set, it is done, and has failed the run where they
    /// are wrong.
    fn audit(&mut self, _world: &World, _session: &Session) -> Vec<Rc<Cell<bool>>> {
        Vec::new()
    }

    /// Begins to read everything that is stored, all redundancy too, and to repair what is wrong.
    fn begin_scrub(&mut self, _world: &World, _session: &Session) {}

    /// Whether it still reads.
    fn is_scrubbing(&self) -> bool {
        false
    }

    /// What the last scrub found wrong; `only_lost` where what it has repaired is not meant.
    fn scrub_found(&self, _only_lost: bool) -> Option<String> {
        None
    }

    /// Takes away as many drives, none of them bad, as the subject says it can do without. `false`: it does not say
    /// that everything is whole.
    fn pull_spares(&mut self, _world: &World, _prng: &mut Prng) -> bool {
        false
    }

    /// Takes away as many drives as the subject says it would survive now, the soundest first: what the others lack is missed
    /// then; the one that is named comes last. How many those are.
    fn pull_claimed(&mut self, _world: &World, _prng: &mut Prng, _last: Option<DriveNumber>) -> usize {
        0
    }

    /// Drives, by their number, that the subject worked with last: each knows what happened up to then.
    fn in_service(&self) -> Vec<DriveNumber> {
        Vec::new()
    }

    /// What is worth being cut off in the middle of, if anything: whether it is under way.
    fn worth_cutting(&self) -> Option<Rc<dyn Fn() -> bool>> {
        None
    }

    /// Whether the subject says of itself that something which it stored is lost, or that it does not serve any more.
    fn admits_loss(&self) -> bool {
        true
    }

    /// Whether the last orderly stop left something that could not be written down.
    fn closed_badly(&self) -> bool {
        false
    }

    /// The machine whose power goes, if it is not always the same; and whether what drives had not flushed may be gone although that
    /// power was not.
    fn machine(&self) -> Option<(u16, bool)> {
        None
    }

    /// The process under test has ended: end whatever used it.
    fn ended(&mut self, _world: &World) {}
}
