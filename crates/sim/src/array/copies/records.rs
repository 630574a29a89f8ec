//! What is known about the array's copies, over all starts.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use api::{ArrayStatus, SnapshotStatus};

use super::counts::{Kind, Sight};
use super::schedule::Scheduled;
use super::state::State;
use super::told::Told;
use crate::workload::{Shared, VolumePlan};

/// Numbers of copies begin here.
const FIRST_COPY: u32 = 10_000;

/// See the module's words.
pub struct Records {
    pub shared: Rc<Shared>,
    pub hosts: Vec<VolumePlan>,
    /// What can be the case. More than one only where contents are still to tell.
    pub worlds: RefCell<Vec<State>>,
    /// What else can be the case after a start: an order was answered with an error.
    doubt: RefCell<Vec<State>>,
    /// What is being done, and what is the case when it is done.
    pending: RefCell<Option<(Kind, Vec<State>)>>,
    /// The oracle's numbers that were handed out.
    numbers: RefCell<BTreeSet<u32>>,
    next: Cell<u32>,
    /// NAA and serial number, by the name of the volume.
    identities: RefCell<BTreeMap<String, (String, String)>>,
    pub scheduled: RefCell<Scheduled>,
    /// What this run is to be cut off in, if in anything in particular.
    pub wanted: Option<Kind>,
    /// It is about to be.
    pub awaited: Cell<bool>,
    /// It is to end.
    pub winding_up: Cell<bool>,
    pub wound_up: Rc<Cell<bool>>,
}

impl Records {
    pub fn new(
        shared: &Rc<Shared>,
        hosts: &[VolumePlan],
        schedules: bool,
        wanted: Option<Kind>,
    ) -> Rc<Records> {
        let mut state = State::default();
        hosts.iter().for_each(|volume| state.add_hosts_volume(volume));
        Rc::new(Records {
            shared: shared.clone(),
            hosts: hosts.to_vec(),
            worlds: RefCell::new(vec![state]),
            doubt: RefCell::default(),
            pending: RefCell::default(),
            numbers: RefCell::default(),
            next: Cell::new(FIRST_COPY),
            identities: RefCell::default(),
            scheduled: RefCell::new(Scheduled::new(schedules)),
            wanted,
            awaited: Cell::new(false),
            winding_up: Cell::new(false),
            wound_up: Rc::default(),
        })
    }

    pub fn new_number(&self) -> u32 {
        self.next.set(self.next.get() + 1);
        self.numbers.borrow_mut().insert(self.next.get());
        self.next.get()
    }

    /// What is the case, where that is known.
    pub fn state(&self) -> State {
        self.worlds.borrow()[0].clone()
    }

    /// Something begins that ends in one of these.
    pub fn begin(&self, kind: Kind, after: Vec<State>) {
        *self.pending.borrow_mut() = Some((kind, after));
    }

    /// It was answered: it is done, or what is the case shows at the next start only.
    pub fn end(&self, done: bool) {
        let Some((kind, after)) = self.pending.borrow_mut().take() else { return };
        if done {
            kind.done();
            *self.worlds.borrow_mut() = after;
            self.doubt.borrow_mut().clear();
        } else {
            self.doubt.borrow_mut().extend(after);
        }
        self.forget_numbers();
    }

    /// It was refused, which changes nothing.
    pub fn refused(&self) {
        self.pending.borrow_mut().take();
        self.forget_numbers();
    }

    /// Whether something of a kind, or of any, is under way.
    pub fn is_at(&self, wanted: Option<Kind>) -> bool {
        let pending = self.pending.borrow();
        pending.as_ref().is_some_and(|(kind, _)| wanted.is_none_or(|wanted| wanted == *kind))
    }

    /// The array has ended.
    pub fn cut_off(&self) {
        self.awaited.set(false);
        let mut worlds = self.worlds.borrow_mut();
        worlds.append(&mut self.doubt.borrow_mut());
        if let Some((kind, after)) = self.pending.borrow_mut().take() {
            kind.cut();
            worlds.extend(after);
        }
        self.cut_off_spans();
    }

    /// Compares what the array tells with what can be the case, and keeps what is.
    pub fn check(&self, status: &ArrayStatus, snapshots: &[SnapshotStatus]) -> Result<(), String> {
        let now_ms = self.shared.world.wall_clock_ms();
        let mut worlds = self.worlds.borrow_mut();
        let told_by = |state: &State| {
            let fading = state.fading(now_ms);
            (state.told(&fading), Told::by(status, snapshots, state, &fading))
        };
        let is_so = |state: &State| {
            let (expected, told) = told_by(state);
            expected == told
        };
        let mut kept: Vec<State> = Vec::new();
        for state in worlds.iter().filter(|state| is_so(state)) {
            if !kept.iter().any(|one| one.is_like(state)) {
                kept.push(state.clone());
            }
        }
        if kept.is_empty() {
            let all: Vec<_> = worlds.iter().map(told_by).collect();
            return Err(format!("what the array tells is none of what can be: {all:#?}"));
        }
        if worlds.len() > 1 {
            let first_is = kept[0].is_like(&worlds[0]);
            if first_is { Sight::FoundUndone.seen() } else { Sight::FoundDone.seen() }
        }
        *worlds = kept;
        for state in worlds.iter_mut() {
            self.cut_copies(state.learn_sizes(snapshots)?);
            self.cut_copies(state.measure(&status.volumes));
            for name in state.fading(now_ms) {
                if status.bin.iter().all(|binned| binned.name != name) {
                    Sight::BinEmptied.seen();
                    state.forget_volume(&name);
                }
            }
        }
        self.check_identities(status)?;
        drop(worlds);
        self.forget_numbers();
        Ok(())
    }

    /// Snapshots end where their volume did.
    pub fn cut_copies(&self, sizes: Vec<(u32, u64)>) {
        let mut oracle = self.shared.oracle.borrow_mut();
        sizes.into_iter().for_each(|(number, blocks)| oracle.cut_volume(number, blocks));
    }

    /// A volume is the same to hosts for ever, and no two are.
    fn check_identities(&self, status: &ArrayStatus) -> Result<(), String> {
        let mut identities = self.identities.borrow_mut();
        let mut seen = BTreeSet::new();
        for volume in &status.volumes {
            let now = (volume.naa.clone(), volume.serial.clone());
            let before = identities.entry(volume.name.clone()).or_insert_with(|| now.clone());
            if *before != now || !seen.insert(now.clone()) {
                return Err(format!("{} is {now:?} to hosts, and was {before:?}", volume.name));
            }
        }
        Ok(())
    }

    /// Contents have shown all that they can.
    pub fn keep_first_world(&self) {
        Sight::ToldByContent.seen();
        let mut worlds = self.worlds.borrow_mut();
        let others = worlds.split_off(1);
        worlds[0].doubt_what_differs_in(&others);
        drop(worlds);
        self.forget_numbers();
    }

    /// The oracle forgets what cannot be any more.
    pub fn forget_numbers(&self) {
        let mut used: BTreeSet<u32> = self.scheduled.borrow().numbers().collect();
        let pending = self.pending.borrow();
        let after = pending.iter().flat_map(|(_, after)| after);
        let (worlds, doubt) = (self.worlds.borrow(), self.doubt.borrow());
        worlds.iter().chain(doubt.iter()).chain(after).for_each(|state| used.extend(state.numbers()));
        let mut oracle = self.shared.oracle.borrow_mut();
        self.numbers.borrow_mut().retain(|number| {
            let stays = used.contains(number);
            if !stays && oracle.touched_blocks(*number).is_some() {
                oracle.remove_volume(*number);
            }
            stays
        });
    }
}
