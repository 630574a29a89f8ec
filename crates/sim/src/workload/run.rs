//! One run: start, work, crash, start again; at the end everything must be there.
//!
//! ```text
//!   start ─► opened ─► clients, verification, faults ─► power loss | kill -9 | orderly stop ─┐
//!     ▲  └─ sometimes cut off before it is open                                              │
//!     └──────────────────────────────────────────────────────────────────────────────────────┘
//!   last round: faults healed, all clients to their end, verified, stopped, started, verified
//! ```

mod beyond;
mod exam;

use std::cell::Cell;
use std::future::Future;
use std::rc::Rc;

use base::Nanos;
use task::Io;

use super::bench::{Bench, Opening, Session};
use super::{Failure, Profile, Shared, Subject, check_freed, run_administrator, run_client, verify};
use crate::prng::Prng;
use crate::process::{Patience, Simulation, Stuck};
use crate::world::{ProcessId, World};

/// Starts a task on a shard from outside; the flag is set when it has ended.
pub fn spawn_flagged(
    world: &World,
    process: ProcessId,
    shard: u16,
    io: &Io,
    task: impl Future<Output = ()> + 'static,
) -> Rc<Cell<bool>> {
    let done = Rc::new(Cell::new(false));
    let mark = done.clone();
    io.spawn(async move {
        task.await;
        mark.set(true);
    });
    world.nudge(process, shard);
    done
}

/// Within this time without faults, everything is as redundant as it can be.
const CONVERGENCE: Nanos = Nanos::from_secs(600);

/// How long a crash waits for what is to be cut off.
const WORTH_WAITING: Nanos = Nanos::from_secs(2);

/// How long and how rough a run is.
#[derive(Clone, Debug)]
pub struct Course {
    /// Starts before the last one.
    pub rounds: u32,
    /// Clients of each lane.
    pub depth: u32,
    /// Requests of each client in a round.
    pub requests: u64,
    /// Per thousand rounds that are cut off while the subject is still opening.
    pub cut_opening_permille: u32,
    /// Per thousand crashes that are power losses; the rest are kills and orderly stops.
    pub power_permille: u32,
    pub orderly_permille: u32,
    /// Mean simulated time between two faults; `None`: no faults.
    pub fault_interval: Option<Nanos>,
    /// The machine whose power goes.
    pub machine: u16,
}

impl Course {
    pub fn draw(prng: &mut Prng) -> Course {
        Course {
            rounds: prng.skewed(1, 6) as u32,
            depth: *prng.pick(&[1, 2, 4, 8, 16]),
            requests: prng.between(20, 120),
            cut_opening_permille: *prng.pick(&[0, 200, 600]),
            power_permille: *prng.pick(&[0, 500, 1000]),
            orderly_permille: *prng.pick(&[0, 0, 200]),
            fault_interval: None,
            machine: 0,
        }
    }
}

/// Everything one run needs while it runs.
pub struct Runner<'a> {
    pub simulation: Simulation,
    pub shared: Rc<Shared>,
    pub bench: &'a mut dyn Bench,
    pub course: Course,
    pub profile: Rc<Profile>,
    pub prng: Prng,
    /// At the end, what the subject says that it would survive is put to the test, in the midst of its repairs.
    pub exam: bool,
    next_fault: Nanos,
    rounds_begun: u32,
}

impl<'a> Runner<'a> {
    /// How often the subject was started.
    pub fn rounds_begun(&self) -> u32 {
        self.rounds_begun
    }

    pub fn new(
        simulation: Simulation,
        shared: Rc<Shared>,
        bench: &'a mut dyn Bench,
        course: Course,
        profile: Profile,
        prng: Prng,
    ) -> Runner<'a> {
        Runner {
            simulation,
            shared,
            bench,
            course,
            profile: Rc::new(profile),
            prng,
            exam: false,
            next_fault: Nanos::MAX,
            rounds_begun: 0,
        }
    }

    /// The whole run.
    pub fn run(&mut self) -> Result<(), Failure> {
        self.draw_next_fault();
        for round in 0..self.course.rounds {
            self.round(round)?;
        }
        self.last_round()
    }

    fn draw_next_fault(&mut self) {
        self.next_fault = match self.course.fault_interval {
            Some(mean) => self.simulation.world.now() + Nanos(self.prng.below(2 * mean.0)),
            None => Nanos::MAX,
        };
    }

    /// Steps until `done`, injecting faults when their time has come. `Ok(false)`: the time ran out first.
    fn step_until(&mut self, time: Nanos, mut done: impl FnMut() -> bool) -> Result<bool, Stuck> {
        let deadline = self.simulation.world.now() + time;
        let events = self.simulation.world.events() + Patience::default().events;
        while !done() && !self.shared.has_failed() {
            if self.simulation.world.now() >= deadline {
                return Ok(false);
            }
            if self.simulation.world.events() > events {
                return Err(Stuck::TooManyEvents);
            }
            if let Err(what) = self.bench.follow(&mut self.simulation) {
                self.shared.fail(Failure::Broken(what));
            }
            if self.simulation.world.now() >= self.next_fault {
                self.bench.inject(&self.simulation.world, &mut self.prng);
                self.draw_next_fault();
            }
            if !self.simulation.step() {
                return Err(Stuck::Deadlock);
            }
        }
        Ok(true)
    }

    /// As [`Runner::step_until`], but it has to be done in any reasonable time.
    /// Or the process under test has ended by itself.
    fn finish(&mut self, what: &str, mut done: impl FnMut() -> bool) -> Result<(), Failure> {
        let stuck = |why| Err(Failure::Stuck { what: what.to_owned(), why });
        let is_over = self.bench.is_over();
        let done = || done() || is_over.as_ref().is_some_and(|is_over| is_over());
        match self.step_until(Patience::default().time, done) {
            Ok(true) => self.check(),
            Ok(false) => stuck(Stuck::OutOfTime),
            Err(why) => stuck(why),
        }
    }

    fn check(&self) -> Result<(), Failure> {
        self.shared.failure.borrow().clone().map_or(Ok(()), Err)
    }

    /// Starts and opens. `None`: it was cut off before it was open.
    fn open(&mut self, round: u32, may_cut: bool) -> Result<Option<Session>, Failure> {
        self.rounds_begun += 1;
        self.shared.world.note(|| format!("---- round {round}"));
        let session = self.bench.start(&mut self.simulation, round);
        let places: Vec<Opening> = session.lanes.iter().map(|lane| lane.opening.clone()).collect();
        let all_open = move || places.iter().all(|place| place.borrow().is_some());
        if may_cut && self.prng.chance(self.course.cut_opening_permille) {
            let time = Nanos(self.prng.skewed(1_000, 20_000_000));
            let opened = self.step_until(time, &all_open);
            let opened = opened.map_err(|why| Failure::Stuck { what: "opening".to_owned(), why })?;
            if !opened {
                self.end(&session);
                return Ok(None);
            }
        }
        self.finish("opening", &all_open)?;
        if self.is_over() {
            self.end(&session);
            return Ok(None);
        }
        for lane in &session.lanes {
            if let Some(Err(why)) = &*lane.opening.borrow() {
                return Err(Failure::NotOpened(why.clone()));
            }
        }
        Ok(Some(session))
    }

    fn is_over(&self) -> bool {
        self.bench.is_over().is_some_and(|is_over| is_over())
    }

    /// Ends the session's process the hard way.
    fn end(&mut self, session: &Session) {
        self.bench.collect(session);
        let power = self.prng.chance(self.course.power_permille);
        let (machine, has_lost_caches) = self.bench.machine().unzip();
        if power {
            self.simulation.world.power_loss(machine.unwrap_or(self.course.machine));
        } else {
            self.simulation.world.kill(session.process);
        }
        let lenient = self.shared.lenient.get() || has_lost_caches == Some(true);
        self.bench.ended(&self.simulation.world);
        // a drive that goes takes along what it had not flushed, as all do when the power goes
        self.shared.oracle.borrow_mut().crash(power || lenient);
        self.simulation.bury();
    }

    fn spawn(
        &mut self,
        session: &Session,
        lane: usize,
        task: impl Future<Output = ()> + 'static,
    ) -> Rc<Cell<bool>> {
        let lane = &session.lanes[lane];
        spawn_flagged(&self.simulation.world, lane.process, lane.shard, &lane.io, task)
    }

    fn subject(session: &Session, lane: usize) -> Rc<dyn Subject> {
        let opening = session.lanes[lane].opening.borrow();
        opening.as_ref().and_then(|opened| opened.as_ref().ok()).expect("it is open").clone()
    }

    fn start_clients(&mut self, session: &Session) -> Vec<Rc<Cell<bool>>> {
        let mut done = Vec::new();
        for lane in 0..session.lanes.len() {
            for _ in 0..self.course.depth {
                let slot = &session.lanes[lane];
                let (io, volumes) = (slot.io.clone(), slot.volumes.clone());
                let (subject, prng) = (Runner::subject(session, lane), self.prng.fork());
                let (shared, profile) = (self.shared.clone(), self.profile.clone());
                let client = run_client(io, shared, subject, profile, volumes, prng, self.course.requests);
                done.push(self.spawn(session, lane, client));
            }
            if self.bench.has_administrator() {
                let slot = &session.lanes[lane];
                let (io, volumes) = (slot.io.clone(), slot.volumes.clone());
                let (subject, prng) = (Runner::subject(session, lane), self.prng.fork());
                let (shared, profile) = (self.shared.clone(), self.profile.clone());
                let orders = self.course.requests;
                let task = run_administrator(io, shared, subject, profile, volumes, prng, orders);
                done.push(self.spawn(session, lane, task));
            }
        }
        done
    }

    fn start_verification(&mut self, session: &Session) -> Vec<Rc<Cell<bool>>> {
        let mut done = Vec::new();
        for lane in 0..session.lanes.len() {
            let (subject, prng) = (Runner::subject(session, lane), self.prng.fork());
            let reading = verify(self.shared.clone(), subject, session.lanes[lane].volumes.clone(), prng);
            done.push(self.spawn(session, lane, reading));
        }
        done
    }

    fn round(&mut self, round: u32) -> Result<(), Failure> {
        let Some(session) = self.open(round, true)? else { return Ok(()) };
        let mut verified = Vec::new();
        if self.prng.chance(400) {
            verified = self.start_verification(&session);
            if self.prng.chance(500) {
                self.finish("verification", || verified.iter().all(|done| done.get()))?;
            }
        }
        if self.prng.chance(150) {
            self.bench.begin_scrub(&self.simulation.world, &session);
        }
        let clients = self.start_clients(&session);
        let total = self.course.requests * u64::from(self.course.depth) * session.lanes.len() as u64;
        let target = self.shared.answered.get() + self.prng.below(total + total / 4 + 1);
        let shared = self.shared.clone();
        let enough = || shared.answered.get() >= target || clients.iter().all(|done| done.get());
        self.finish("clients", enough)?;
        if self.prng.chance(self.course.orderly_permille) {
            return self.stop(&session, &[clients, verified].concat());
        }
        // the crash comes at any moment, not only when a request has just been answered
        let mut time = Nanos(self.prng.skewed(0, 3_000_000));
        if let Some(is_under_way) = self.bench.worth_cutting() {
            // where it does not come, what is under way then is cut off
            self.step_until(WORTH_WAITING, || is_under_way())
                .map_err(|why| Failure::Stuck { what: "waiting for an order".to_owned(), why })?;
            time = Nanos(self.prng.below(1_200_000));
        }
        let cut = self.step_until(time, || false);
        debug_assert!(cut.is_ok() || self.shared.has_failed() || cut == Err(Stuck::Deadlock));
        self.check()?;
        self.end(&session);
        Ok(())
    }

    fn stop(&mut self, session: &Session, clients: &[Rc<Cell<bool>>]) -> Result<(), Failure> {
        self.shared.stop.set(true);
        self.finish("the last requests", || clients.iter().all(|done| done.get()))?;
        self.shared.stop.set(false);
        let closed = self.bench.close(&self.simulation.world, session);
        self.finish("closing", || closed.iter().all(|done| done.get()))?;
        self.end(session);
        Ok(())
    }

    fn last_round(&mut self) -> Result<(), Failure> {
        self.bench.calm_down();
        let session = self.open(self.course.rounds, false)?.expect("it is not cut off");
        let clients = self.start_clients(&session);
        self.finish("clients", || clients.iter().all(|done| done.get()))?;
        if self.is_over() {
            return Err(Failure::Broken("the process has ended by itself, with nothing wrong".to_owned()));
        }
        self.next_fault = Nanos::MAX;
        self.course.fault_interval = None;
        self.bench.heal(&self.simulation.world);
        if self.exam {
            return self.examine_claim(&session);
        }
        let verified = self.start_verification(&session);
        self.finish("verification", || verified.iter().all(|done| done.get()))?;
        self.stop(&session, &clients)?;
        let session = self.open(self.course.rounds + 1, false)?.expect("it is not cut off");
        let verified = self.start_verification(&session);
        self.finish("verification", || verified.iter().all(|done| done.get()))?;
        self.converge()?;
        let audited = self.bench.audit(&self.simulation.world, &session);
        self.finish("the audit", || audited.iter().all(|done| done.get()))?;
        self.check_freed(&session)?;
        self.prove_redundancy(&session)?;
        self.bench.collect(&session);
        Ok(())
    }

    /// What copies are said to give back when they are deleted is what they do give back.
    fn check_freed(&mut self, session: &Session) -> Result<(), Failure> {
        if !self.bench.has_administrator() {
            return Ok(());
        }
        let mut checked = Vec::new();
        for lane in 0..session.lanes.len() {
            let (io, subject) = (session.lanes[lane].io.clone(), Runner::subject(session, lane));
            let task = check_freed(io, self.shared.clone(), subject, self.prng.fork());
            checked.push(self.spawn(session, lane, task));
        }
        self.finish("counting what is freed", || checked.iter().all(|done| done.get()))?;
        let audited = self.bench.audit(&self.simulation.world, session);
        self.finish("the audit after it", || audited.iter().all(|done| done.get()))
    }

    /// Reads everything and has it repaired; then there is nothing left to repair, and any drives may go, as many as
    /// were promised: the subject's own word is not enough.
    fn prove_redundancy(&mut self, session: &Session) -> Result<(), Failure> {
        self.scrub(session, true)?;
        self.converge()?;
        self.scrub(session, false)?;
        if self.bench.pull_spares(&self.simulation.world, &mut self.prng) {
            let verified = self.start_verification(session);
            self.finish("verification without the spare drives", || verified.iter().all(|done| done.get()))?;
        }
        Ok(())
    }

    fn scrub(&mut self, session: &Session, may_repair: bool) -> Result<(), Failure> {
        self.bench.begin_scrub(&self.simulation.world, session);
        let deadline = self.simulation.world.now() + CONVERGENCE;
        while self.bench.is_scrubbing() {
            self.step_until(Nanos::from_millis(100), || false)
                .map_err(|why| Failure::Stuck { what: "scrubbing".to_owned(), why })?;
            self.check()?;
            if self.simulation.world.now() >= deadline {
                return Err(Failure::Broken(format!("a scrub takes longer than {CONVERGENCE:?}")));
            }
        }
        match self.bench.scrub_found(may_repair) {
            Some(what) => Err(Failure::Broken(format!("a scrub finds {what}"))),
            None => Ok(()),
        }
    }

    /// Nothing goes wrong any more: what can be repaired is, before long.
    fn converge(&mut self) -> Result<(), Failure> {
        let deadline = self.simulation.world.now() + CONVERGENCE;
        while let Some(what) = self.bench.unsettled() {
            if self.simulation.world.now() >= deadline {
                return Err(Failure::Broken(format!("after {CONVERGENCE:?} without faults, {what}")));
            }
            self.step_until(Nanos::from_secs(1), || false)
                .map_err(|why| Failure::Stuck { what: "convergence".to_owned(), why })?;
            self.check()?;
        }
        Ok(())
    }
}
