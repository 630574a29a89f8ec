//! The steps of a scenario: start, write, read, crash, one after the other.

use std::cell::Cell;
use std::future::Future;
use std::ops::Range;
use std::rc::Rc;

use base::Nanos;
use pool::{DriveState, Protection};
use task::Io;

use super::counted;
use crate::drive::{DriveNumber, DriveOptions};
use crate::fault::FaultRates;
use crate::oracle::SECTORS_PER_BLOCK;
use crate::prng::Prng;
use crate::process::{Patience, Simulation};
use crate::seed::{Options, Order, Plan, PoolBench};
use crate::workload::{
    Administrator, Answer, Bench, Checked, Course, Failure, Profile, Request, Session, Shared, Stretch,
    Subject, VolumePlan, ask_checked, read_checked, spawn_flagged, verify, write_checked, zero_checked,
};
use crate::world::World;

/// A pool in a world, driven step by step. One lane, one volume, write-through.
pub struct Script {
    pub simulation: Simulation,
    pub shared: Rc<Shared>,
    pub bench: PoolBench,
    pub prng: Prng,
    session: Option<Session>,
    rounds: u32,
    /// Drive operations after which the power goes.
    cut_after: Option<u64>,
    was_cut: bool,
}

/// A plan with nothing random in it: `drives` healthy drives, one volume of `blocks` blocks.
pub fn plain_plan(protection: Protection, drives: usize, blocks: u64) -> Plan {
    let mut prng = Prng::new(1);
    let volume = VolumePlan { volume: 1, blocks, write_back: false };
    Plan {
        protection,
        width: None,
        drives: (0..drives).map(|index| DriveOptions::new(&format!("/sim/drive{index}"), 24 << 20)).collect(),
        lossy: Vec::new(),
        lanes: 1,
        shards: 1,
        chunk_bytes: 64 << 10,
        map_budget_bytes: 256 << 10,
        checkpoint_interval: Nanos::from_secs(30),
        patience: pool::Patience::default(),
        volumes: vec![volume],
        troubles: Vec::new(),
        rates: FaultRates::NONE,
        course: Course::draw(&mut prng),
        profile: Profile::draw(&mut prng),
        administrator: false,
    }
}

impl Script {
    pub fn new(seed: u64, plan: Plan, options: Options) -> Script {
        let world = World::new(seed, options.trace);
        let shared = Shared::new(world.clone());
        let mut prng = Prng::new(seed);
        let bench = PoolBench::new(plan, &world, &shared, prng.fork());
        let simulation = Simulation::new(world);
        let (session, rounds, cut_after, was_cut) = (None, 0, None, false);
        Script { simulation, shared, bench, prng, session, rounds, cut_after, was_cut }
    }

    /// From now on the script stops when drives have ended so many more operations; `None`: it does not.
    pub fn cut_after(&mut self, operations: Option<u64>) {
        self.cut_after = operations.map(|more| self.simulation.world.drive_operations() + more);
    }

    /// Whether it has stopped so.
    pub fn was_cut(&self) -> bool {
        self.was_cut
    }

    /// Lets events happen until something is done. Every wait of a script is this one.
    fn wait(&mut self, what: &str, patience: Patience, done: impl Fn() -> bool) -> Result<(), Failure> {
        let (world, shared, cut) = (self.world(), self.shared.clone(), self.cut_after);
        let is_cut = || cut.is_some_and(|cut| world.drive_operations() >= cut);
        self.simulation
            .step_until(patience, || done() || shared.has_failed() || is_cut())
            .map_err(|why| Failure::Stuck { what: what.to_owned(), why })?;
        if is_cut() {
            self.was_cut = true;
            return Err(Failure::Broken("the power goes here".to_owned()));
        }
        self.shared.failure.borrow().clone().map_or(Ok(()), Err)
    }

    pub fn world(&self) -> World {
        self.simulation.world.clone()
    }

    pub fn drive(&self, index: usize) -> DriveNumber {
        self.bench.drives()[index]
    }

    fn session(&self) -> &Session {
        self.session.as_ref().expect("the pool is started")
    }

    fn subject(&self) -> Rc<dyn Subject> {
        let opening = self.session().lanes[0].opening.borrow();
        opening.as_ref().and_then(|opened| opened.as_ref().ok()).expect("the pool is open").clone()
    }

    /// Starts a process and has it open the pool.
    pub fn start(&mut self) -> Result<(), Failure> {
        self.begin_start();
        self.finish_start()
    }

    /// Waits until a process that was started has opened the pool.
    pub fn finish_start(&mut self) -> Result<(), Failure> {
        let openings: Vec<_> = self.session().lanes.iter().map(|lane| lane.opening.clone()).collect();
        let places = openings.clone();
        let open = move || places.iter().all(|opening| opening.borrow().is_some());
        self.wait("opening", Patience::default(), open)?;
        for opening in &openings {
            if let Some(Err(why)) = &*opening.borrow() {
                return Err(Failure::NotOpened(why.clone()));
            }
        }
        Ok(())
    }

    /// Starts a process; opening goes on with every step of the world.
    pub fn begin_start(&mut self) {
        self.session = Some(self.bench.start(&mut self.simulation, self.rounds));
        self.rounds += 1;
    }

    /// Lets events happen.
    pub fn steps(&mut self, count: u64) {
        for _ in 0..count {
            if !self.simulation.step() {
                return;
            }
        }
    }

    /// Lets events happen until drives have ended so many more operations.
    pub fn operations(&mut self, count: u64) {
        let until = self.world().drive_operations() + count;
        while self.world().drive_operations() < until && self.simulation.step() {}
    }

    /// The process ends, by `kill -9` or with its machine's power.
    pub fn crash(&mut self, power: bool) {
        let session = self.session.take().expect("the pool is started");
        if power {
            self.simulation.world.power_loss(0);
        } else {
            self.simulation.world.kill(session.process);
        }
        self.shared.oracle.borrow_mut().crash(power);
        self.simulation.bury();
    }

    /// Has a task run on the pool's shard.
    pub fn spawn(&mut self, task: impl Future<Output = ()> + 'static) -> Rc<Cell<bool>> {
        let lane = &self.session().lanes[0];
        spawn_flagged(&self.simulation.world, self.session().process, lane.shard, &lane.io, task)
    }

    /// Runs a task to its end.
    pub fn run(&mut self, what: &str, task: impl Future<Output = ()> + 'static) -> Result<(), Failure> {
        let done = self.spawn(task);
        self.wait(what, Patience::default(), || done.get())
    }

    /// The way of the pool's shard to its world.
    pub fn io(&self) -> Io {
        self.session().lanes[0].io.clone()
    }

    /// As [`Script::run`], for work of any length.
    pub fn run_long(&mut self, what: &str, task: impl Future<Output = ()> + 'static) -> Result<(), Failure> {
        let done = self.spawn(task);
        self.until(what, || done.get())
    }

    /// Lets events happen, as many as it takes.
    pub fn until(&mut self, what: &str, done: impl Fn() -> bool) -> Result<(), Failure> {
        self.wait(what, Patience { time: Nanos(u64::MAX / 2), events: u64::MAX / 2 }, done)
    }

    /// Lets time pass, with whatever happens in it.
    pub fn pass(&mut self, time: Nanos) -> Result<(), Failure> {
        let io = self.io();
        self.run("time to pass", async move { io.sleep(time).await })
    }

    /// Begins to read everything that is stored and to have it repaired.
    pub fn begin_scrub(&mut self) {
        let world = self.world();
        self.bench.begin_scrub(&world, self.session.as_ref().expect("it is started"));
    }

    /// Stops the pool in an orderly way.
    pub fn close(&mut self) -> Result<(), Failure> {
        let closed = self.bench.close(&self.simulation.world, self.session.as_ref().expect("it is started"));
        self.wait("closing", Patience::default(), || closed.iter().all(|done| done.get()))?;
        self.crash(false);
        Ok(())
    }

    /// Waits until everything that is stored is as redundant as it can be.
    pub fn converge(&mut self) -> Result<(), Failure> {
        for _ in 0..6_000 {
            if self.bench.unsettled().is_none() {
                return Ok(());
            }
            self.pass(Nanos::from_millis(100))?;
        }
        Err(Failure::Broken(format!("after ten minutes, {:?}", self.bench.unsettled())))
    }

    /// Reads everything that is stored and has it repaired; `true` where there was something to repair.
    pub fn scrub(&mut self) -> Result<bool, Failure> {
        self.begin_scrub();
        while self.bench.is_scrubbing() {
            self.pass(Nanos::from_millis(10))?;
        }
        if let Some(what) = self.bench.scrub_found(true) {
            return Err(Failure::Broken(format!("a scrub finds {what}")));
        }
        Ok(self.bench.lanes().iter().any(|lane| lane.scrub_stats().batches_repaired > 0))
    }

    /// Compares the pool's books with what is there.
    pub fn audit(&mut self) -> Result<(), Failure> {
        let world = self.world();
        let audited = self.bench.audit(&world, self.session.as_ref().expect("it is started"));
        self.wait("an audit", Patience::default(), || audited.iter().all(|done| done.get()))
    }

    /// Has the membership changed.
    pub fn order(&mut self, order: Order) {
        let world = self.world();
        self.bench.order(&world, self.session.as_ref().expect("it is started"), order);
    }

    /// Waits until the pool knows that a drive is to go.
    pub fn await_drain(&mut self, index: usize) -> Result<(), Failure> {
        let known = |bench: &PoolBench| {
            let membership = bench.membership();
            membership.is_some_and(|membership| membership.members[index].state == DriveState::Draining)
        };
        while !known(&self.bench) {
            self.pass(Nanos::from_micros(100))?;
        }
        Ok(())
    }

    /// Waits until drives that are to go, or are lost, are not needed any more, and has them removed.
    pub fn retire(&mut self) -> Result<(), Failure> {
        self.retire_within(Nanos::from_millis(100))
    }

    /// The same, and goes on within this time.
    pub fn retire_within(&mut self, time: Nanos) -> Result<(), Failure> {
        let deadline = self.world().now() + Nanos::from_secs(600);
        while self.world().now() < deadline {
            let world = self.world();
            let session = self.session.as_ref().expect("it is started");
            if self.bench.retire_what_is_empty(&world, session) == 0 {
                return Ok(());
            }
            self.pass(time)?;
        }
        Err(Failure::Broken("after ten minutes, a drive that is to go is still needed".to_owned()))
    }

    /// Everything is as redundant as promised: it is all there without any drives, as many as that.
    pub fn prove_redundancy(&mut self) -> Result<(), Failure> {
        self.converge()?;
        let world = self.world();
        if !self.bench.pull_spares(&world, &mut self.prng) {
            return Err(Failure::Broken("something lacks redundancy, and cannot get it".to_owned()));
        }
        self.verify()
    }

    /// As many drives go as the pool says that it would survive, this one of them last.
    pub fn pull_claimed(&mut self, last: DriveNumber) {
        let world = self.world();
        self.bench.pull_claimed(&world, &mut self.prng, Some(last));
    }

    /// Writes blocks, and one drive refuses its columns of them; it is borne with, and takes what comes later.
    pub fn write_refused_by(&mut self, drive: DriveNumber, block: u64, blocks: u64) -> Result<(), Failure> {
        let refused = || counted("write: a column lost, its drive borne with");
        let before = refused();
        self.world().set_fault_rates(drive, FaultRates { write_error: 1000, ..FaultRates::NONE });
        let written = self.begin_write(block, blocks);
        self.until("a column to be refused", || refused() > before)?;
        self.world().set_fault_rates(drive, FaultRates::NONE);
        self.until("a write", || written.get())
    }

    /// Unmaps blocks and waits for the answer.
    pub fn unmap(&mut self, block: u64, blocks: u64) -> Result<(), Failure> {
        let sectors = block * SECTORS_PER_BLOCK..(block + blocks) * SECTORS_PER_BLOCK;
        let unmap = zero_checked(self.shared.clone(), self.subject(), 1, sectors);
        self.run("an unmap", unmap)
    }

    /// Begins to unmap blocks; the oracle is told when it is answered.
    pub fn begin_unmap(&mut self, block: u64, blocks: u64) -> Rc<Cell<bool>> {
        let sectors = block * SECTORS_PER_BLOCK..(block + blocks) * SECTORS_PER_BLOCK;
        let unmap = zero_checked(self.shared.clone(), self.subject(), 1, sectors);
        self.spawn(unmap)
    }

    /// Begins to write blocks; the oracle is told when it is answered.
    pub fn begin_write(&mut self, block: u64, blocks: u64) -> Rc<Cell<bool>> {
        let sectors = block * SECTORS_PER_BLOCK..(block + blocks) * SECTORS_PER_BLOCK;
        let write = write_checked(self.shared.clone(), self.subject(), 1, sectors);
        self.spawn(write)
    }

    /// Writes blocks and waits for the answer.
    pub fn write(&mut self, block: u64, blocks: u64) -> Result<(), Failure> {
        let sectors = block * SECTORS_PER_BLOCK..(block + blocks) * SECTORS_PER_BLOCK;
        let write = write_checked(self.shared.clone(), self.subject(), 1, sectors);
        self.run("a write", write)
    }

    /// Begins to ask for something; the oracle is told when it is answered.
    pub fn begin(&mut self, what: Checked, block: u64, blocks: u64) -> Rc<Cell<bool>> {
        self.begin_part(what, block * SECTORS_PER_BLOCK..(block + blocks) * SECTORS_PER_BLOCK)
    }

    /// The same, for sectors.
    pub fn begin_part(&mut self, what: Checked, sectors: Range<u64>) -> Rc<Cell<bool>> {
        let volume = self.session().lanes[0].volumes[0];
        let asked = ask_checked(self.shared.clone(), self.subject(), volume, sectors, what);
        self.spawn(asked)
    }

    /// Asks for something and waits for the answer.
    pub fn ask(&mut self, what: Checked, block: u64, blocks: u64) -> Result<(), Failure> {
        let done = self.begin(what, block, blocks);
        self.wait("what was asked for", Patience::default(), || done.get())
    }

    /// As [`Script::write`], to a volume or a clone of this number.
    pub fn write_to(&mut self, volume: u32, block: u64, blocks: u64) -> Result<(), Failure> {
        let sectors = block * SECTORS_PER_BLOCK..(block + blocks) * SECTORS_PER_BLOCK;
        let write = write_checked(self.shared.clone(), self.subject(), volume, sectors);
        self.run("a write", write)
    }

    /// Reads and checks blocks of a volume or a copy.
    pub fn read_from(&mut self, volume: u32, block: u64, blocks: u64) -> Result<(), Failure> {
        let sectors = block * SECTORS_PER_BLOCK..(block + blocks) * SECTORS_PER_BLOCK;
        let read = read_checked(self.shared.clone(), self.subject(), volume, sectors);
        self.run("a read", read)
    }

    /// Begins to read blocks of a volume or a copy; they are checked when they have been read.
    pub fn begin_read_from(&mut self, volume: u32, block: u64, blocks: u64) -> Rc<Cell<bool>> {
        let sectors = block * SECTORS_PER_BLOCK..(block + blocks) * SECTORS_PER_BLOCK;
        let read = read_checked(self.shared.clone(), self.subject(), volume, sectors);
        self.spawn(read)
    }

    /// Has the administrator do something, and gives what came of it.
    pub fn administer<T: 'static, F: Future<Output = T>>(
        &mut self,
        what: &str,
        act: impl FnOnce(Administrator) -> F + 'static,
    ) -> Result<T, Failure> {
        let (shared, subject) = (self.shared.clone(), self.subject());
        let volumes = self.session().lanes[0].volumes.clone();
        let profile = Rc::new(Profile::draw(&mut Prng::new(0)));
        let administrator = Administrator::new(shared, subject, profile, volumes).expect("layers");
        let place = Rc::new(std::cell::RefCell::new(None));
        let result = place.clone();
        self.run(what, async move {
            let outcome = act(administrator).await;
            *place.borrow_mut() = Some(outcome);
        })?;
        Ok(result.borrow_mut().take().expect("it ran to its end"))
    }

    /// Takes a snapshot of volume 1, or of a clone.
    pub fn snapshot(&mut self, of: u32) -> Result<u32, Failure> {
        let plan = VolumePlan { volume: of, ..self.session().lanes[0].volumes[0] };
        let taken = self.administer("a snapshot", move |admin| async move { admin.snapshot(plan).await })?;
        taken.ok_or_else(|| Failure::Broken("no snapshot was taken".to_owned()))
    }

    pub fn clone_of(&mut self, snapshot: u32) -> Result<u32, Failure> {
        let made = self.administer("a clone", move |admin| async move {
            let snapshot = admin.copy(snapshot)?;
            admin.clone_of(&snapshot).await
        })?;
        made.ok_or_else(|| Failure::Broken("no clone was made".to_owned()))
    }

    pub fn roll_back(&mut self, snapshot: u32) -> Result<(), Failure> {
        self.administer("a rollback", move |admin| async move {
            let snapshot = admin.copy(snapshot).expect("a snapshot that exists");
            admin.roll_back(&snapshot).await;
        })
    }

    /// Copies blocks of one volume, or copy, to another.
    pub fn copy_range(&mut self, range: Stretch) -> Result<(), Failure> {
        self.administer("a copy", move |admin| async move { admin.copy_range(range).await })
    }

    pub fn forget(&mut self) -> Result<(), Failure> {
        self.administer("a look at references", |admin| async move { admin.forget().await })
    }

    pub fn delete(&mut self, copy: u32) -> Result<(), Failure> {
        self.administer("a deletion", move |admin| async move {
            let copy = admin.copy(copy).expect("a copy that exists");
            admin.delete(&copy).await;
        })
    }

    /// Deletes a copy and waits until all that it alone held is given back, which must be what was said before.
    pub fn delete_counted(&mut self, copy: u32) -> Result<(), Failure> {
        let io = self.io();
        let counted = self.administer("a deletion", move |admin| async move {
            let copy = admin.copy(copy).expect("a copy that exists");
            admin.delete_counted(&io, &copy).await
        })?;
        counted.map_err(Failure::Broken)
    }

    /// Sends a request that the oracle is not told of, and gives the answer.
    pub fn request(&mut self, request: Request) -> Result<Answer, Failure> {
        let answer = Rc::new(std::cell::RefCell::new(None));
        let (place, subject) = (answer.clone(), self.subject());
        self.run("a request", async move {
            let answered = subject.execute(request).await;
            *place.borrow_mut() = Some(answered);
        })?;
        Ok(answer.borrow_mut().take().expect("it ran to its end"))
    }

    /// Reads and checks everything that was ever written.
    pub fn verify(&mut self) -> Result<(), Failure> {
        let volumes = self.session().lanes[0].volumes.clone();
        let task = verify(self.shared.clone(), self.subject(), volumes, self.prng.fork());
        self.run("verification", task)
    }
}
