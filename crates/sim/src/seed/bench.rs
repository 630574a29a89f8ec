//! A pool under test: lanes on the shards of one simulated process, opened again in every round.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use base::{ArrayId, LayerId};
use env::{DriveHandle, DriveInfo, IoError};
use pool::{CreateOptions, DriveState, Lane, LaneOptions, Membership, PoolError};
use task::Io;

use super::host::{Host, Order, PoolMessage, ShardState};
use super::layers::Records;
use super::plan::{MAP_BUDGETS, Plan, Trouble};
use super::report::PoolTotals;
use super::subject::{LaneSubject, SharedSubject};
use super::troubles::Troubles;
use crate::counts::counted;
use crate::drive::{DriveNumber, DriveOptions};
use crate::fault::FaultKind;
use crate::prng::Prng;
use crate::process::{Outbox, Simulation};
use crate::workload::{Bench, LaneSlot, Opening, Session, Shared, Subject, VolumePlan, spawn_flagged};
use crate::world::World;

/// Volumes of one lane are numbered from this times the lane's number.
const VOLUMES_PER_LANE: u32 = 100;
/// The first layer that volumes use.
const LAYER_BASE: u32 = 16;

counted! {
    /// What pools said of themselves.
    Claim: "pool: " {
        Examined = "what it says that it survives is put to the test",
        Lowered = "it says that it survives less than its drives would let it",
    }
}

/// What opening needs to know; shared by the shards of a process.
struct Opener {
    plan: Plan,
    /// The pool has been made: from now on it is claimed, never made again.
    created: Rc<RefCell<bool>>,
    openings: Vec<Opening>,
    volumes: Vec<Rc<Vec<VolumePlan>>>,
    records: Vec<Rc<Records>>,
    world: World,
}

/// See the module's words.
pub struct PoolBench {
    plan: Plan,
    shared: Rc<Shared>,
    drives: Vec<DriveNumber>,
    created: Rc<RefCell<bool>>,
    volumes: Vec<Rc<Vec<VolumePlan>>>,
    records: Vec<Rc<Records>>,
    states: Vec<Rc<ShardState>>,
    totals: PoolTotals,
    troubles: Troubles,
    prng: Prng,
    closed_badly: Rc<Cell<bool>>,
}

impl PoolBench {
    pub fn new(plan: Plan, world: &World, shared: &Rc<Shared>, prng: Prng) -> PoolBench {
        let drives: Vec<DriveNumber> =
            plan.drives.iter().map(|options| world.add_drive(options.clone())).collect();
        let troubles = Troubles::new(&plan.troubles, &drives, &plan.lossy, plan.rates);
        let (mut volumes, mut records) = (Vec::new(), Vec::new());
        for lane in 0..u32::from(plan.lanes) {
            let numbered = |volume: &VolumePlan| VolumePlan {
                volume: lane * VOLUMES_PER_LANE + volume.volume,
                ..*volume
            };
            let own: Vec<VolumePlan> = plan.volumes.iter().map(numbered).collect();
            own.iter().for_each(|plan| shared.oracle.borrow_mut().add_volume(plan.volume, plan.write_back));
            let layer = |volume: &VolumePlan| LayerId(LAYER_BASE + volume.volume % VOLUMES_PER_LANE);
            let recorded: Vec<_> = own.iter().map(|volume| (*volume, layer(volume))).collect();
            records.push(Records::new(lane as u16, &recorded));
            volumes.push(Rc::new(own));
        }
        PoolBench {
            plan,
            shared: shared.clone(),
            drives,
            created: Rc::default(),
            volumes,
            records,
            states: Vec::new(),
            totals: PoolTotals::default(),
            troubles,
            prng,
            closed_badly: Rc::default(),
        }
    }

    pub fn totals(&self) -> PoolTotals {
        self.totals
    }

    pub fn drives(&self) -> &[DriveNumber] {
        &self.drives
    }

    /// Has the coordinator change who belongs to the pool.
    pub fn order(&self, world: &World, session: &Session, order: Order) {
        self.states[0].post(0, PoolMessage::Order(order));
        world.nudge(session.process, 0);
    }

    /// A drive that holds nothing is there from now on.
    pub fn plug_in(&mut self, world: &World, options: DriveOptions) -> DriveNumber {
        let drive = world.add_drive(options.clone());
        self.drives.push(drive);
        self.plan.drives.push(options);
        drive
    }

    /// What the pool knows of its drives.
    pub fn membership(&self) -> Option<Membership> {
        self.states.first()?.membership.borrow().clone()
    }

    /// Orders drives removed that are to go, or are lost, and on which nothing stands any more. How many are left.
    pub fn retire_what_is_empty(&self, world: &World, session: &Session) -> usize {
        let Some(membership) = self.membership() else { return 0 };
        let mut left = 0;
        for (index, member) in membership.members.iter().enumerate() {
            if member.state == DriveState::Draining || member.state.is_lost() {
                left += 1;
                let stands = self.lanes().iter().any(|lane| lane.segments_on_drive(index as u8) > 0);
                if !stands {
                    self.order(world, session, Order::Retire(index as u8));
                }
            }
        }
        left
    }

    /// The lanes that are open now.
    pub fn lanes(&self) -> Vec<Rc<Lane>> {
        self.states.iter().flat_map(|state| state.lanes.borrow().clone()).collect()
    }
}

impl Bench for PoolBench {
    fn start(&mut self, simulation: &mut Simulation, _: u32) -> Session {
        if !*self.created.borrow() {
            // a pool is made of drives that are there and well
            self.troubles.heal(&simulation.world);
        }
        let openings: Vec<Opening> = (0..self.plan.lanes).map(|_| Opening::default()).collect();
        let opener = Rc::new(Opener {
            plan: self.plan.clone(),
            created: self.created.clone(),
            openings: openings.clone(),
            volumes: self.volumes.clone(),
            records: self.records.clone(),
            world: simulation.world.clone(),
        });
        let handlers: Rc<RefCell<Vec<Rc<ShardState>>>> = Rc::default();
        let states = handlers.clone();
        let opening = opener.clone();
        let (process, shards, outboxes) =
            simulation.start_task_process(self.plan.drives[0].machine, self.plan.shards, {
                move |shard, _: &Outbox<PoolMessage>| {
                    let (states, opener) = (states.clone(), opening.clone());
                    Box::new(move |_: &Io, message| {
                        let state = states.borrow()[usize::from(shard)].clone();
                        match message {
                            PoolMessage::Open { membership } => opener.clone().open_lanes(&state, membership),
                            message => state.on_message(message),
                        }
                    })
                }
            });
        for (index, (shard, outbox)) in shards.iter().zip(&outboxes).enumerate() {
            let io = shard.borrow().io().clone();
            handlers.borrow_mut().push(ShardState::new(index as u16, &io, outbox));
        }
        self.states = handlers.borrow().clone();
        let (first, shard_count) = (self.states[0].clone(), self.plan.shards);
        first.know(&self.states);
        let task = opener.open_pool(first.clone(), shard_count);
        first.io.spawn(task);
        simulation.world.nudge(process, 0);
        let lanes = openings
            .into_iter()
            .enumerate()
            .map(|(lane, opening)| {
                let shard = lane as u16 % self.plan.shards;
                let io = self.states[usize::from(shard)].io.clone();
                LaneSlot { process, shard, io, opening, volumes: self.volumes[lane].clone() }
            })
            .collect();
        Session { process, lanes }
    }

    fn close(&mut self, world: &World, session: &Session) -> Vec<Rc<Cell<bool>>> {
        let mut closed = Vec::new();
        for state in &self.states {
            for lane in state.lanes.borrow().iter() {
                let (lane, shared) = (lane.clone(), self.shared.clone());
                let badly = self.closed_badly.clone();
                let task = async move {
                    if let Err(error) = lane.close().await {
                        badly.set(true);
                        shared.world.note(|| format!("closing: {error:?}"));
                    }
                };
                closed.push(spawn_flagged(world, session.process, state.shard, &state.io, task));
            }
        }
        closed
    }

    fn unsettled(&self) -> Option<String> {
        if let Some(due) = self.lanes().into_iter().find(|lane| lane.upkeep_is_due()) {
            return Some(format!("lane {} has layers left to drop or merge", due.number()));
        }
        if !self.shared.lenient.get() && self.admits_loss() {
            return Some("something is called lost".to_owned());
        }
        let due = self.lanes().into_iter().find(|lane| lane.repairs_are_due())?;
        Some(format!("lane {} still lacks redundancy: {:?}", due.number(), due.stats().exposed_blocks))
    }

    fn admits_loss(&self) -> bool {
        self.lanes().iter().map(|lane| lane.stats()).any(|stats| stats.failed || stats.lost_blocks > 0)
    }

    fn has_administrator(&self) -> bool {
        self.plan.administrator
    }

    fn audit(&mut self, world: &World, session: &Session) -> Vec<Rc<Cell<bool>>> {
        let mut audited = Vec::new();
        for state in &self.states {
            for lane in state.lanes.borrow().iter() {
                let (lane, shared) = (lane.clone(), self.shared.clone());
                let task = async move {
                    let what = match lane.audit().await {
                        Ok(None) => return,
                        Ok(Some(what)) => what,
                        Err(error) => format!("it cannot be audited: {error:?}"),
                    };
                    let what = format!("lane {}: {what}", lane.number());
                    shared.fail(crate::workload::Failure::Broken(what));
                };
                audited.push(spawn_flagged(world, session.process, state.shard, &state.io, task));
            }
        }
        audited
    }

    fn begin_scrub(&mut self, world: &World, session: &Session) {
        for state in &self.states {
            for lane in state.lanes.borrow().iter() {
                lane.start_scrub();
            }
            world.nudge(session.process, state.shard);
        }
    }

    fn is_scrubbing(&self) -> bool {
        self.lanes().iter().any(|lane| lane.scrub_stats().running)
    }

    fn scrub_found(&self, only_lost: bool) -> Option<String> {
        for lane in self.lanes() {
            let (stats, number) = (lane.scrub_stats(), lane.number());
            if stats.batches_unreadable > 0 {
                return Some(format!("{} batches of lane {number} unreadable", stats.batches_unreadable));
            }
            if !only_lost && stats.batches_repaired > 0 && is_whole(&lane) {
                return Some(format!("{} batches of lane {number} to repair", stats.batches_repaired));
            }
        }
        None
    }

    fn pull_spares(&mut self, world: &World, prng: &mut Prng) -> bool {
        let Some(membership) = self.membership() else { return false };
        if !self.lanes().iter().all(|lane| is_whole(lane)) {
            return false;
        }
        let mut there: Vec<usize> = membership.members.iter().enumerate().map(|(index, _)| index).collect();
        there.retain(|&index| membership.handle(index as u8).is_some());
        prng.shuffle(&mut there);
        let spare = usize::from(membership.protection.parity()).saturating_sub(membership.lost());
        for &index in there.iter().take(spare) {
            // the pool numbers its drives in the order of the plan
            world.vanish(self.drives[index], None, false);
        }
        self.totals.proved_whole += 1;
        true
    }

    fn pull_claimed(&mut self, world: &World, prng: &mut Prng, last: Option<DriveNumber>) -> usize {
        let Some(membership) = self.membership() else { return 0 };
        let stats: Vec<pool::LaneStats> = self.lanes().iter().map(|lane| lane.stats()).collect();
        let unread = |lane: &pool::LaneStats| lane.scrub.segments_done < lane.scrub.segments_total;
        if stats.iter().any(|lane| lane.failed || lane.stalled || lane.lost_blocks > 0 || unread(lane)) {
            return 0;
        }
        let claimed = pool::failures_survivable(&membership, &stats.iter().collect::<Vec<_>>());
        let mut there: Vec<usize> =
            (0..membership.members.len()).filter(|&index| membership.handle(index as u8).is_some()).collect();
        prng.shuffle(&mut there);
        let errors = |index: &usize| {
            let of =
                |lane: &pool::LaneStats| lane.counters.drive_errors.get(*index).copied().unwrap_or_default();
            stats.iter().map(of).map(|errors| errors.read + errors.write + errors.checksum).sum::<u64>()
        };
        there.sort_by_key(|index| (Some(self.drives[*index]) == last, errors(index)));
        for &index in there.iter().take(usize::from(claimed)) {
            world.vanish(self.drives[index], None, false);
        }
        Claim::Examined.seen();
        let by_drives = usize::from(membership.protection.parity()).saturating_sub(membership.lost());
        if usize::from(claimed) < by_drives {
            Claim::Lowered.seen();
        }
        usize::from(claimed)
    }

    fn in_service(&self) -> Vec<DriveNumber> {
        let Some(membership) = self.membership() else { return Vec::new() };
        let members = membership.members.iter().zip(&self.drives);
        members.filter(|(member, _)| member.state.is_readable()).map(|(_, &drive)| drive).collect()
    }

    fn closed_badly(&self) -> bool {
        self.closed_badly.get()
    }

    fn inject(&mut self, world: &World, prng: &mut Prng) {
        // a pool is made of drives that are there and well
        if *self.created.borrow() && self.troubles.inject(world, prng) == Trouble::Memory {
            let bytes = *prng.pick(&MAP_BUDGETS);
            world.0.borrow_mut().counts.add(FaultKind::MemoryChanged);
            self.lanes().iter().for_each(|lane| lane.set_map_budget(bytes));
        }
    }

    fn heal(&mut self, world: &World) {
        self.troubles.heal(world);
    }

    fn collect(&mut self, _: &Session) {
        for lane in self.lanes() {
            let stats = lane.stats();
            self.totals.add(&stats);
            if stats.counters.counts_corrected > 0 && !self.shared.lenient.get() {
                let what = format!("lane {}: counts were wrong, and have been corrected", lane.number());
                self.shared.fail(crate::workload::Failure::Broken(what));
            }
            if stats.failed && !self.shared.lenient.get() {
                let what =
                    format!("lane {} has failed although no more drives did than promised", lane.number());
                self.shared.fail(crate::workload::Failure::Broken(what));
            }
        }
        self.totals.created += u64::from(*self.created.borrow() && self.totals.created == 0);
        let membership = self.states[0].membership.borrow();
        self.totals.drives_lost += membership.as_ref().map_or(0, |membership| membership.lost() as u64);
        // what the next round faces is drawn here, so that it does not depend on how this one ended
        let _spread = self.prng.next_u64();
    }
}

/// Whether a lane says that nothing it stores lacks anything.
fn is_whole(lane: &Lane) -> bool {
    let stats = lane.stats();
    !stats.failed && !stats.stalled && stats.exposed_blocks == [0; 3] && stats.lost_blocks == 0
}

impl Opener {
    /// Opens every drive that is there, makes or claims the pool, and has the lanes opened.
    async fn open_pool(self: Rc<Self>, state: Rc<ShardState>, shards: u16) {
        let mut drives = Vec::new();
        let mut held = 0;
        let until = state.io.now() + pool::BUSY_PATIENCE;
        for options in &self.plan.drives {
            match pool::open_when_free(&state.io, &options.path, until).await {
                Ok(drive) => drives.push(drive),
                Err(error) => held += usize::from(error == IoError::Busy),
            }
        }
        let created = *self.created.borrow();
        let made = match created {
            true => pool::claim(&state.io, drives, held, pool::Heads::One).await,
            false => self.find_or_create(&state.io, drives).await,
        };
        let membership = match made {
            Ok(membership) => membership,
            Err(error) => {
                return self
                    .openings
                    .iter()
                    .for_each(|place| *place.borrow_mut() = Some(Err(format!("{error:?}"))));
            }
        };
        for shard in 0..shards {
            state.post(shard, PoolMessage::Open { membership: membership.clone() });
        }
        state.coordinate(membership, shards).await;
    }

    /// A start that was cut off may have made the pool, or nothing that counts: never anything between.
    async fn find_or_create(
        &self,
        io: &Io,
        drives: Vec<(DriveHandle, DriveInfo)>,
    ) -> Result<Membership, PoolError> {
        let found = pool::claim(io, drives.clone(), 0, pool::Heads::One).await;
        let made = match found {
            Err(PoolError::NoLabel | PoolError::Unfinished) => {
                pool::create(io, drives, self.create_options()).await
            }
            found => found,
        };
        *self.created.borrow_mut() = made.is_ok();
        made
    }

    fn create_options(&self) -> CreateOptions {
        CreateOptions {
            array: ArrayId(1),
            name: "pool".to_owned(),
            protection: self.plan.protection,
            width: self.plan.width,
            lanes: self.plan.lanes,
            heads: pool::Heads::One,
            chunk_bytes: Some(self.plan.chunk_bytes),
            drive_bytes_min: 1 << 20,
        }
    }

    /// Opens the lanes of one shard, side by side.
    fn open_lanes(self: Rc<Self>, state: &Rc<ShardState>, membership: Membership) {
        state.membership.borrow_mut().get_or_insert(membership.clone());
        for lane in (0..self.plan.lanes).filter(|lane| lane % self.plan.shards == state.shard) {
            let (opener, state, membership) = (self.clone(), state.clone(), membership.clone());
            let io = state.io.clone();
            io.spawn(async move {
                let opened = opener.open_lane(&state, membership, lane).await;
                *opener.openings[usize::from(lane)].borrow_mut() = Some(opened);
            });
        }
    }

    async fn open_lane(
        &self,
        state: &Rc<ShardState>,
        membership: Membership,
        number: u16,
    ) -> Result<Rc<dyn Subject>, String> {
        let options = LaneOptions {
            map_budget_bytes: self.plan.map_budget_bytes,
            checkpoint_interval: self.plan.checkpoint_interval,
            patience: self.plan.patience,
            ..LaneOptions::default()
        };
        let host = Rc::new(Host(state.clone()));
        let lane = Lane::open(&state.io, membership, number, host, options)
            .await
            .map_err(|error| format!("{error:?}"))?;
        state.add_lane(lane.clone());
        let plans = self.volumes[usize::from(number)].to_vec();
        let records = self.records[usize::from(number)].clone();
        let subject = Rc::new(LaneSubject::new(&state.io, lane, records, plans));
        subject.ensure_layers().await?;
        Ok(Rc::new(SharedSubject { subject, world: self.world.clone() }))
    }
}
