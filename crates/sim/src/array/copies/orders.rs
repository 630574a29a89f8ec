//! Selects the next command.

use std::cell::Cell;
use std::rc::Rc;

use super::administrator::{Administrator, Outcome};
use super::counts::{Kind, Sight};
use super::state::{Order, State, Volume};
use super::view::lun;
use crate::array::extended_copy::CopyHost;
use crate::oracle::SECTORS_PER_BLOCK;
use crate::workload::{VolumePlan, read_checked};

/// Own volumes at the same time, those in the bin with them; snapshots of each kind.
const VOLUMES_MAX: usize = 6;
const SNAPSHOTS_MAX: usize = 10;
/// Sizes of own volumes: less than a page of the map, and several of them.
const BLOCKS: [u64; 3] = [64, 300, 1500];
/// Blocks that a volume grows again when it has got smaller.
const GROWN_BACK_MAX: u64 = 300;
/// What is wanted is so much likelier.
const WANTED: u64 = 20;
/// Requests of the own host between orders.
const REQUESTS: u64 = 6;

impl Administrator {
    fn new_name(&self, what: &str) -> (String, u32) {
        let number = self.records.new_number();
        (format!("{what}{number}"), number)
    }

    /// Does something.
    pub async fn act(&self) {
        // where it is to be cut off in that, then only
        let may = self.records.wanted != Some(Kind::Schedule) || self.records.awaited.get();
        if may && !self.records.state().schedule && self.records.scheduled.borrow().any {
            return self.make_schedule().await;
        }
        let what = self.prng.borrow_mut().below(100);
        match what {
            0..8 => drop(self.check().await),
            8..20 => self.view_some().await,
            20..22 if self.records.wanted.is_none_or(|wanted| wanted == Kind::Scheduled) => self.hour().await,
            22..30 if self.records.wanted == Some(Kind::Scheduled) => self.hour().await,
            22..45 => self.work_some().await,
            _ => self.order_some().await,
        }
    }

    async fn hour(&self) {
        if self.records.scheduled.borrow().any {
            self.let_an_hour_pass().await;
        }
    }

    async fn view_some(&self) {
        let readable = self.readable();
        if !readable.is_empty() {
            let at = self.prng.borrow_mut().index(readable.len());
            self.view(&readable[at]).await;
        }
    }

    async fn work_some(&self) {
        let state = self.records.state();
        let mapped = |one: &&Volume| one.lun.is_some() && one.binned_ms.is_none();
        let own: Vec<&Volume> = own(&state).map(|(_, volume)| volume).filter(mapped).collect();
        if !own.is_empty() && self.prng.borrow_mut().chance(200) {
            return self.copy_ranges(&own).await;
        }
        if !own.is_empty() {
            let at = self.prng.borrow_mut().index(own.len());
            let reads = self.prng.borrow_mut().chance(200);
            match reads {
                true => self.read_volume(own[at]).await,
                false => self.work(own[at], REQUESTS).await,
            }
        }
    }

    /// The administrator's host copies between its volumes, clones among them.
    async fn copy_ranges(&self, own: &[&Volume]) {
        let plan = |volume: &&Volume| {
            let (blocks, write_back) = (volume.blocks?, volume.write_back);
            Some(VolumePlan { volume: volume.number, blocks, write_back })
        };
        let luns = own.iter().filter_map(|volume| Some((volume.number, volume.lun?))).collect();
        let (shared, way) = (self.records.shared.clone(), self.way());
        let volumes = Rc::new(own.iter().filter_map(plan).collect());
        let (may_be_refused, refused) = (self.runs_full, Cell::new(0));
        let host = CopyHost { shared, way, luns, volumes, may_be_refused, refused };
        let mut prng = self.prng.borrow_mut().fork();
        if let Some(names) = host.names().await {
            host.copy_something(&names, &mut prng).await;
        }
    }

    async fn order_some(&self) {
        let state = self.records.state();
        let mut orders = self.possible(&state);
        let wanted = self.records.wanted;
        orders
            .iter_mut()
            .filter(|(_, order)| Some(order.kind()) == wanted)
            .for_each(|(weight, _)| *weight *= WANTED);
        let sum: u64 = orders.iter().map(|(weight, _)| weight).sum();
        let mut at = self.prng.borrow_mut().below(sum.max(1));
        for (weight, order) in orders {
            if at < weight {
                self.give(&state, order).await;
                break;
            }
            at -= weight;
        }
        // what was thought of and not asked for
        self.records.forget_numbers();
    }

    async fn give(&self, state: &State, order: Order) {
        let held = self.held_behind(state, &order);
        let outcome = self.execute(order.clone()).await;
        match &order {
            Order::Create { name, number, .. }
            | Order::Clone { name, number, .. }
            | Order::Copy { name, number, .. }
                if outcome == Outcome::Done =>
            {
                self.execute(Order::Map { volume: name.clone(), lun: lun(*number) }).await;
            }
            Order::Resize { volume, blocks, number, grows: false, .. } if outcome == Outcome::Done => {
                self.grow_back(volume, *number, *blocks).await;
            }
            _ => {}
        }
        // nothing is lost without being asked for, and what holds nothing gets smaller
        let what = match (held, outcome) {
            (Some((true, _)), Outcome::Done) => "it lost data unasked",
            (Some((_, false)), Outcome::Refused) => "it was said to hold data",
            _ => return,
        };
        self.fail(format!("{order:?}: {what}"));
    }

    /// A volume that has got smaller grows at once, now and then: there are zeros behind its end.
    async fn grow_back(&self, volume: &str, number: u32, blocks: u64) {
        if self.prng.borrow_mut().chance(500) {
            return;
        }
        let larger = blocks + 1 + self.prng.borrow_mut().below(GROWN_BACK_MAX);
        let grow =
            Order::Resize { volume: volume.to_owned(), blocks: larger, number, force: false, grows: true };
        if self.execute(grow).await != Outcome::Done {
            return;
        }
        let Some(lun) = self.records.state().volumes[volume].lun else { return };
        let behind = blocks * SECTORS_PER_BLOCK..larger * SECTORS_PER_BLOCK;
        read_checked(self.records.shared.clone(), self.subject(number, lun), number, behind).await;
        Sight::GrownBack.seen();
    }

    /// Of an order to make a volume smaller that is not forced: whether it is certain to hold data behind its new end, and
    /// whether it may.
    fn held_behind(&self, state: &State, order: &Order) -> Option<(bool, bool)> {
        let Order::Resize { volume, blocks, grows: false, force: false, .. } = order else { return None };
        let number = state.volumes[volume].number;
        let oracle = self.records.shared.oracle.borrow();
        let touched = oracle.touched_blocks(number).unwrap_or_default();
        Some((oracle.holds_behind(number, *blocks), touched.iter().any(|block| block >= blocks)))
    }

    /// What can be asked for, each with its weight.
    fn possible(&self, state: &State) -> Vec<(u64, Order)> {
        let mut orders = self.possible_snapshots(state);
        let now_ms = self.records.shared.world.wall_clock_ms();
        let fading = state.fading(now_ms);
        let mut prng = self.prng.borrow_mut();
        if own(state).count() < VOLUMES_MAX {
            let (name, number) = self.new_name("own");
            orders.push((8, Order::Create { name, blocks: *prng.pick(&BLOCKS), number }));
        }
        for (name, volume) in own(state) {
            let volume_name = || name.clone();
            if volume.binned_ms.is_some() {
                if !fading.contains(name) {
                    orders.push((6, Order::Undelete { volume: volume_name() }));
                    orders.push((3, Order::Eradicate { volume: volume_name() }));
                }
                continue;
            }
            match volume.lun {
                Some(_) => orders.push((2, Order::Unmap { volume: volume_name() })),
                None => orders.push((10, Order::Map { volume: volume_name(), lun: lun(volume.id) })),
            }
            orders.push((2, Order::Bin { volume: volume_name(), now_ms }));
            if !state.has_snapshots(name) {
                orders.push((1, Order::Delete { volume: volume_name() }));
            }
            if state.may_promote(name) {
                orders.push((6, Order::Promote { volume: volume_name() }));
            }
            let blocks = volume.blocks.unwrap_or(1);
            let larger = blocks + 1 + prng.below(700);
            let grow = (volume.number, true, larger);
            let smaller = (self.records.new_number(), false, 1 + prng.below(blocks));
            for (number, grows, blocks) in [grow, smaller].into_iter().filter(|(.., size)| *size != blocks) {
                let force = !grows && prng.chance(400);
                let volume = volume_name();
                orders.push((2, Order::Resize { volume, blocks, number, force, grows }));
            }
        }
        orders
    }

    fn possible_snapshots(&self, state: &State) -> Vec<(u64, Order)> {
        let mut orders = Vec::new();
        let mut prng = self.prng.borrow_mut();
        // what the schedule takes stands in between: when, nobody knows
        let hosts = !self.records.scheduled.borrow().any;
        let live = state.volumes.iter().filter(|(_, volume)| volume.binned_ms.is_none() && !volume.is_view);
        let live: Vec<&String> =
            live.filter(|(_, volume)| hosts || volume.blocks.is_some()).map(|(name, _)| name).collect();
        let numbered = |name: &String| (name.clone(), self.records.new_number());
        if state.snapshots.len() < SNAPSHOTS_MAX && !live.is_empty() {
            let (name, _) = self.new_name("s");
            let any = live[prng.index(live.len())];
            let one = numbered(any);
            orders.push((6, Order::Snapshot { of: vec![one], name: name.clone() }));
            let mut group = live.clone();
            prng.shuffle(&mut group);
            let all = group.iter().filter(|name| prng.chance(700) || state.volumes[**name].blocks.is_none());
            let group: Vec<_> = all.map(|name| numbered(name)).collect();
            if group.len() > 1 {
                orders.push((8, Order::Snapshot { of: group, name }));
            }
        }
        if own(state).count() < VOLUMES_MAX && !live.is_empty() {
            let (name, number) = self.new_name("copy");
            orders.push((3, Order::Copy { volume: live[prng.index(live.len())].clone(), name, number }));
        }
        for snapshot in state.live_snapshots() {
            let one = state.snapshot(snapshot);
            orders.push((2, Order::DeleteSnapshot { snapshot }));
            let owner = state.name_of(one.owner);
            if state.volumes[&owner].lun.is_none() && state.volumes[&owner].blocks.is_some() {
                let number = self.records.new_number();
                orders.push((8, Order::RollBack { volume: owner, snapshot, number }));
            }
            if own(state).count() < VOLUMES_MAX && one.blocks.is_some() {
                let (name, number) = self.new_name("clone");
                orders.push((3, Order::Clone { snapshot, name, number }));
            }
        }
        drop(prng);
        orders.extend(self.possible_refresh(state));
        orders
    }

    /// Clones of one image become clones of another, or what that was.
    fn possible_refresh(&self, state: &State) -> Option<(u64, Order)> {
        let mut prng = self.prng.borrow_mut();
        let labels: Vec<&str> = own(state).filter_map(|(_, clone)| clone.clone_of.as_deref()).collect();
        let images = state.live_snapshots();
        if labels.is_empty() || images.is_empty() {
            return None;
        }
        let (label, snapshot) = (*prng.pick(&labels), *prng.pick(&images));
        let of_volume = label.split_once('@').filter(|_| prng.chance(400)).map(|(volume, _)| volume);
        let clones_of = of_volume.unwrap_or(label).to_owned();
        let names = state.clones_of(&clones_of, &state.name_of(state.snapshot(snapshot).owner));
        if names.is_empty() || names.iter().any(|name| !state.may_refresh(name, snapshot)) {
            return None;
        }
        let numbered = |name: &String| (name.clone(), self.records.new_number());
        let clones = names.into_iter().map(numbered).collect();
        Some((10, Order::Refresh { snapshot, clones_of, clones, remap: prng.chance(800) }))
    }
}

/// Volumes of the administrator's own.
fn own(state: &State) -> impl Iterator<Item = (&String, &Volume)> {
    state.volumes.iter().filter(|(_, volume)| volume.blocks.is_some() && !volume.is_view)
}
