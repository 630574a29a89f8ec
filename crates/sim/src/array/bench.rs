//! The whole array under test: the engine's shards on one machine, hosts with iSCSI sessions on another.
//!
//! In the first round, the administrator creates a pool, volumes, hosts and mappings. In every later round, all of
//! them must exist again, restored from the drives alone.

use std::cell::{Cell, RefCell};
use std::net::SocketAddr;
use std::rc::Rc;

use api::Command;
use base::Nanos;
use engine::Memory;
use iscsi::initiator::InitiatorParams;
use task::Io;

use super::copies::{Administrator as Copier, Records};
use super::engine_shard::{EngineShard, command};
use super::extended_copy::{Copies, Seen};
use super::full_bin;
use super::growth::grow;
use super::heads::TwoHeads;
use super::listener::{Known, Listener};
use super::lun::Rough;
use super::mover::{self, Mover};
use super::onlooker::Onlooker;
use super::orders::Orders;
use super::reserve::Holders;
use super::set_up::{Administrator, Made, POOL, Started, ToArray};
use super::start::Running;
use super::tally::{Tally, compare};
use super::visit::{Ready, Visit, open_session, set_up};
use crate::drive::{DriveNumber, DriveOptions};
use crate::prng::Prng;
use crate::process::Simulation;
use crate::seed::{Plan, Trouble, Troubles};
use crate::workload::{Bench, LaneSlot, Opening, Session, Shared, VolumePlan, spawn_flagged};
use crate::world::{ProcessId, World};

/// The hosts' machine.
const HOSTS: u16 = 1;
/// One administrator does not give more at once.
const ORDERS_AT_ONCE: u32 = 4;
pub const PORTAL: &str = "10.0.0.1:3260";
/// Who makes copies and reads them.
pub const COPIER: &str = "iqn.2026-11.test.sim:copier";

/// Who uses the array.
pub struct Who {
    pub hosts: u16,
    /// How often hosts copy ranges.
    pub ranges: Option<Copies>,
    /// What is known of copies of volumes, where an administrator makes any.
    pub copies: Option<Rc<Records>>,
    /// What is known of the bin, where somebody keeps the pool nearly full.
    pub filler: Option<Rc<full_bin::Records>>,
    pub rough: Rough,
    /// Drives of a second pool, if there is one; nothing happens to them but that their machine's power goes.
    pub second: Vec<DriveOptions>,
    /// The figures for monitoring are compared with what hosts do.
    pub tallies: bool,
    /// What events tell is compared with the problems all the time.
    pub compares: bool,
    /// What is known of transfers, where somebody exports and imports volumes.
    pub moves: Option<Rc<mover::Records>>,
    /// There are two heads.
    pub two_heads: bool,
}

/// See the module's words.
pub struct ArrayBench {
    pub(super) plan: Plan,
    pub(super) memory: Memory,
    pub(super) shared: Rc<Shared>,
    pub(super) who: Who,
    volumes: Rc<Vec<VolumePlan>>,
    troubles: Troubles,
    drives: Vec<DriveNumber>,
    made: Made,
    prepared: Rc<Cell<bool>>,
    clients: Vec<ProcessId>,
    array: Option<(ToArray, Io, u16)>,
    pub(super) shards: Vec<Rc<RefCell<EngineShard>>>,
    process: Option<ProcessId>,
    /// Who has reserved what.
    holders: Rc<Holders>,
    logins: Rc<Cell<u64>>,
    pub(super) orders: Orders,
    /// Orders that have not been answered.
    orders_given: Rc<Cell<u32>>,
    /// What the array's events have told.
    pub(super) known: Rc<RefCell<Known>>,
    pub(super) heads: Option<TwoHeads>,
    /// The array of two heads that was started last.
    pub(super) newest: Option<Running>,
    /// Where hosts find the array.
    pub(super) portal: SocketAddr,
    /// A portal of the other head, which forwards.
    pub(super) forwarded: Option<SocketAddr>,
    pub(super) calm: bool,
}

impl ArrayBench {
    pub fn new(
        (plan, memory): (Plan, Memory),
        world: &World,
        shared: &Rc<Shared>,
        mut orders: Orders,
        who: Who,
    ) -> ArrayBench {
        orders.add_spares(&plan, world);
        let add = |options: &DriveOptions| world.add_drive(options.clone());
        let drives: Vec<DriveNumber> = plan.drives.iter().map(add).collect();
        who.second.iter().map(add).for_each(drop);
        let heads = who.two_heads.then(|| TwoHeads::new(world, plan.shards, &plan.drives, &drives));
        for volume in &plan.volumes {
            shared.oracle.borrow_mut().add_volume(volume.volume, volume.write_back);
        }
        ArrayBench {
            memory,
            shared: shared.clone(),
            who,
            volumes: Rc::new(plan.volumes.clone()),
            troubles: Troubles::new(&plan.troubles, &drives, &plan.lossy, plan.rates),
            drives,
            plan,
            made: Made::default(),
            prepared: Rc::default(),
            clients: Vec::new(),
            array: None,
            shards: Vec::new(),
            process: None,
            logins: Rc::default(),
            holders: Rc::default(),
            orders,
            orders_given: Rc::default(),
            known: Rc::default(),
            heads,
            newest: None,
            portal: PORTAL.parse().expect("an address"),
            forwarded: None,
            calm: false,
        }
    }

    /// Logins of all hosts so far.
    pub fn logins(&self) -> u64 {
        self.logins.get()
    }

    fn administrator(&self, io: &Io, outside: &ToArray, started: Started) -> Administrator {
        Administrator {
            io: io.clone(),
            outside: outside.clone(),
            started,
            plan: self.plan.clone(),
            hosts: self.who.hosts,
            made: self.made.clone(),
            prepared: self.prepared.clone(),
            shared: self.shared.clone(),
            copies: self.who.copies.is_some() || self.who.filler.is_some(),
            onlooker: self.has_onlooker(),
            second: self.who.second.clone(),
        }
    }

    /// Somebody reads the array's events from its start on.
    fn start_listener(&mut self, simulation: &mut Simulation, outside: &ToArray) {
        let (client, shards, _) = simulation.start_task_process::<()>(HOSTS, 1, |_, _| Box::new(|_, ()| {}));
        let io = shards[0].borrow().io().clone();
        let tasks = io.clone();
        let listener = self.listener(io, outside.clone());
        if self.who.compares {
            tasks.spawn(listener.clone().keep_comparing());
        }
        tasks.spawn(listener.run());
        simulation.world.nudge(client, 0);
        self.clients.push(client);
    }

    fn listener(&self, io: Io, outside: ToArray) -> Listener {
        Listener { io, outside, shared: self.shared.clone(), known: self.known.clone() }
    }

    /// The one who makes copies comes along with the first host.
    fn start_copier(&mut self, simulation: &mut Simulation, outside: &ToArray, ready: &Ready) {
        let Some(records) = self.who.copies.clone() else { return };
        records.begin_span();
        let (client, shards, _) = simulation.start_task_process::<()>(HOSTS, 1, |_, _| Box::new(|_, ()| {}));
        let io = shards[0].borrow().io().clone();
        let (outside, profile, ready) = (outside.clone(), Rc::new(self.plan.profile.clone()), ready.clone());
        let (ranges, runs_full) = (self.who.ranges.is_some(), self.plan.has(Trouble::NoSpace));
        let tasks = io.clone();
        let portal = self.portal;
        tasks.spawn(async move {
            let Ok(target) = set_up(&io, &ready).await else { return };
            let prng = RefCell::new(Prng::new(io.random_u64()));
            let session = RefCell::default();
            let copier = Copier { io, outside, records, profile, prng, session, ranges, runs_full };
            let params = InitiatorParams::new(COPIER, Some(&target));
            copier.run(portal, params).await;
        });
        simulation.world.nudge(client, 0);
        self.clients.push(client);
    }

    /// Whether somebody looks on who may only read: not where the catalog is watched.
    fn has_onlooker(&self) -> bool {
        self.who.copies.is_none() && self.who.filler.is_none()
    }

    fn start_onlooker(&mut self, simulation: &mut Simulation, ready: &Ready) {
        if !self.has_onlooker() {
            return;
        }
        let (client, shards, _) = simulation.start_task_process::<()>(HOSTS, 1, |_, _| Box::new(|_, ()| {}));
        let io = shards[0].borrow().io().clone();
        let luns = self.volumes.iter().map(|volume| volume.volume as u16).collect();
        let (onlooker, ready) =
            (Onlooker { io: io.clone(), shared: self.shared.clone(), luns }, ready.clone());
        let tasks = io.clone();
        let portal = self.portal;
        tasks.spawn(async move {
            let Ok(target) = set_up(&io, &ready).await else { return };
            onlooker.run(portal, target).await;
        });
        simulation.world.nudge(client, 0);
        self.clients.push(client);
    }

    fn start_mover(&mut self, simulation: &mut Simulation, outside: &ToArray, ready: &Ready) {
        let Some(records) = self.who.moves.clone() else { return };
        let (client, shards, _) = simulation.start_task_process::<()>(HOSTS, 1, |_, _| Box::new(|_, ()| {}));
        let io = shards[0].borrow().io().clone();
        let mover = Mover {
            io: io.clone(),
            outside: outside.clone(),
            shared: self.shared.clone(),
            volumes: self.volumes.clone(),
            records,
            shards: self.shards.clone(),
            pool: POOL,
        };
        let (ready, tasks) = (ready.clone(), io.clone());
        tasks.spawn(async move {
            if set_up(&io, &ready).await.is_ok() {
                mover.run().await;
            }
        });
        simulation.world.nudge(client, 0);
        self.clients.push(client);
    }

    /// The one who keeps the pool nearly full, likewise.
    fn start_filler(&mut self, simulation: &mut Simulation, outside: &ToArray, ready: &Ready) {
        let Some(records) = self.who.filler.clone() else { return };
        let (client, shards, _) = simulation.start_task_process::<()>(HOSTS, 1, |_, _| Box::new(|_, ()| {}));
        let io = shards[0].borrow().io().clone();
        let (filler, ready) = (full_bin::Filler::new(&io, outside, &records), ready.clone());
        let tasks = io.clone();
        let portal = self.portal;
        tasks.spawn(async move {
            let Ok(target) = set_up(&io, &ready).await else { return };
            let params = InitiatorParams::new(COPIER, Some(&target));
            filler.run(portal, params).await;
        });
        simulation.world.nudge(client, 0);
        self.clients.push(client);
    }
}

impl ArrayBench {
    fn visit(&self, host: u16, tally: &Option<Rc<Tally>>) -> Visit {
        Visit {
            portal: self.portal,
            forwarded: self.forwarded,
            host,
            volumes: self.volumes.clone(),
            logins: self.logins.clone(),
            shared: self.shared.clone(),
            holders: self.holders.clone(),
            // what administrators do to drives has seeds of its own
            // a batch that the full file system has kept back is written when there is room, aborted or not
            // what was aborted may count or not
            interferes: (!self.orders.any() && !self.plan.has(Trouble::NoSpace) && tally.is_none())
                .then_some(self.who.rough),
            ranges: self.who.ranges,
            runs_full: self.plan.has(Trouble::NoSpace),
            tally: tally.clone(),
        }
    }
}

impl Bench for ArrayBench {
    fn start(&mut self, simulation: &mut Simulation, _: u32) -> Session {
        if !self.prepared.get() {
            // an array is set up on drives that are there and well
            self.troubles.heal(&simulation.world);
        }
        let (process, outside, started) = self.start_array(simulation);
        self.process = Some(process);
        let mut lanes = Vec::new();
        let ready = Ready::default();
        // what the last program counted went with it
        let tally = self.who.tallies.then(Rc::<Tally>::default);
        for host in 0..self.who.hosts {
            let (client, shards, _) =
                simulation.start_task_process::<()>(HOSTS, 1, |_, _| Box::new(|_, ()| {}));
            self.clients.push(client);
            let io = shards[0].borrow().io().clone();
            if host == 0 {
                let administrator = self.administrator(&io, &outside, started.clone());
                let (ready, tasks) = (ready.clone(), io.clone());
                let growing = grow(
                    io.clone(),
                    outside.clone(),
                    self.shared.clone(),
                    self.volumes.clone(),
                    self.holders.clone(),
                );
                let filler =
                    self.who.filler.as_ref().map(|records| full_bin::Filler::new(&io, &outside, records));
                let comparing = tally
                    .clone()
                    .map(|tally| compare(io.clone(), outside.clone(), self.shared.clone(), tally));
                let portal = self.portal;
                io.spawn(async move {
                    let prepared = administrator.prepare().await;
                    if let (Some(filler), Ok(target)) = (filler, &prepared) {
                        let params = InitiatorParams::new(COPIER, Some(target));
                        filler.fill_first(portal, params).await;
                    }
                    if prepared.is_ok() {
                        tasks.spawn(growing);
                        comparing.into_iter().for_each(|comparing| tasks.spawn(comparing));
                    }
                    *ready.borrow_mut() = Some(prepared);
                });
                self.array = Some((outside.clone(), io.clone(), 0));
            }
            let opening = Opening::default();
            let (place, ready, tasks) = (opening.clone(), ready.clone(), io.clone());
            let visit = self.visit(host, &tally);
            io.spawn(async move { open_session(tasks, visit, ready, place).await });
            simulation.world.nudge(client, 0);
            lanes.push(LaneSlot { process: client, shard: 0, io, opening, volumes: self.volumes.clone() });
        }
        self.start_listener(simulation, &outside);
        self.start_copier(simulation, &outside, &ready);
        self.start_filler(simulation, &outside, &ready);
        self.start_onlooker(simulation, &ready);
        self.start_mover(simulation, &outside, &ready);
        Session { process, lanes }
    }

    fn close(&mut self, world: &World, session: &Session) -> Vec<Rc<Cell<bool>>> {
        let Some((outside, io, shard)) = self.array.clone() else { return Vec::new() };
        if self.heads.as_mut().is_some_and(TwoHeads::hand_over) {
            // the process ends by itself, whatever comes of it
            return vec![Rc::default()];
        }
        let tasks = io.clone();
        let stopping = async move {
            // refused where the array is not up: then there is nothing to stop
            let _answer = command(&tasks, &outside, Command::Shutdown).await;
        };
        vec![spawn_flagged(world, session.lanes[0].process, shard, &io, stopping)]
    }

    fn inject(&mut self, world: &World, prng: &mut Prng) {
        if !self.prepared.get() {
            return;
        }
        if let Some(heads) = &mut self.heads {
            return heads.inject(prng);
        }
        if let (Some(process), most) = (self.process, self.who.rough.held_up_ns_max)
            && most > 0
        {
            let shard = prng.index(usize::from(self.plan.shards)) as u16;
            return world.hold_up(process, shard, Nanos(prng.below(most)));
        }
        self.troubles.inject(world, prng);
        if let Some((index, times)) = self.orders.draw_slowness(&self.plan) {
            world.slow_down(self.drives[index], times);
        }
        if let Some((outside, io, shard)) = self.array.clone()
            && self.orders_given.get() < ORDERS_AT_ONCE
            && let Some(order) = self.orders.draw_order(&self.plan)
        {
            let (shared, tasks) = (self.shared.clone(), io.clone());
            let client = self.clients[0];
            let given = self.orders_given.clone();
            given.set(given.get() + 1);
            let giving = async move {
                // whether it is carried out or refused is the array's to know; the data is what is checked
                let answer = command(&tasks, &outside, order.clone()).await;
                given.set(given.get() - 1);
                shared.world.note(|| format!("order: {order:?}: {answer:?}"));
            };
            drop(spawn_flagged(world, client, shard, &io, giving));
        }
    }

    fn heal(&mut self, world: &World) {
        self.drives.iter().for_each(|&drive| world.slow_down(drive, 1));
        self.troubles.heal(world);
    }

    fn collect(&mut self, _: &Session) {}

    fn audit(&mut self, world: &World, session: &Session) -> Vec<Rc<Cell<bool>>> {
        let mut audited = Vec::new();
        if let Some((outside, io, shard)) = self.array.clone() {
            let comparing = self.listener(io.clone(), outside).compare();
            audited.push(spawn_flagged(world, session.lanes[0].process, shard, &io, comparing));
        }
        if let Some(records) = &self.who.copies {
            records.winding_up.set(true);
            audited.push(records.wound_up.clone());
        }
        audited
    }

    fn worth_cutting(&self) -> Option<Rc<dyn Fn() -> bool>> {
        if let Some(records) = self.who.filler.clone() {
            return Some(Rc::new(move || records.is_full.get()));
        }
        if let Some(records) = self.who.moves.clone() {
            return Some(Rc::new(move || records.is_completing()));
        }
        let Some(records) = self.who.copies.clone() else {
            let shared = self.shared.clone();
            return self.who.ranges.map(|_| -> Rc<dyn Fn() -> bool> {
                Rc::new(move || shared.oracle.borrow().copies_under_way() > 0)
            });
        };
        records.awaited.set(true);
        Some(Rc::new(move || records.is_at(records.wanted)))
    }

    fn unsettled(&self) -> Option<String> {
        self.heads.as_ref().and_then(TwoHeads::unsettled)
    }

    fn follow(&mut self, simulation: &mut Simulation) -> Result<(), String> {
        let Some(heads) = &mut self.heads else { return Ok(()) };
        if let Some(owner) = heads.follow(simulation)? {
            let running = self.start_shards(simulation, owner);
            self.newest = Some(running);
        }
        Ok(())
    }

    fn is_over(&self) -> Option<Rc<dyn Fn() -> bool>> {
        let (process, world) = (self.process.filter(|_| self.heads.is_some())?, self.shared.world.clone());
        Some(Rc::new(move || !world.is_alive(process)))
    }

    fn calm_down(&mut self) {
        self.calm = true;
    }

    fn machine(&self) -> Option<(u16, bool)> {
        self.heads.as_ref().map(|heads| (heads.machine(), heads.may_have_lost_caches()))
    }

    fn ended(&mut self, world: &World) {
        (0..self.shared.oracle.borrow().copies_under_way()).for_each(|_| Seen::CutOff.seen());
        self.who.copies.iter().for_each(|records| records.cut_off());
        self.who.filler.iter().for_each(|records| records.cut_off());
        for client in self.clients.drain(..) {
            world.end_quietly(client);
        }
        self.holders.clear();
        // nobody answers them any more
        self.orders_given = Rc::default();
        (self.array, self.process) = (None, None);
    }
}
