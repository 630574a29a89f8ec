//! The administrator: takes snapshots, makes clones, rolls back and deletes, while the clients continue.
//!
//! A snapshot is taken between two writes: its *gate* holds back new writes until those in flight have ended. From
//! then on, the oracle treats the copy as a volume of its own that nobody writes to.

use std::cell::Cell;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;

use base::Nanos;
use task::{Io, Notify};

use super::client::Client;
use super::{Answer, Failure, Profile, Shared, Subject, VolumePlan};
use crate::oracle::SECTORS_PER_BLOCK;
use crate::prng::Prng;

/// Copies of each kind that one lane has at most.
const COPIES_MAX: usize = 7;

/// Blocks that are copied at once.
const COPIED_BLOCKS_MAX: u64 = 600;
/// Copies that are deleted, and counted, at the end of a run.
const COPIES_COUNTED: usize = 4;
/// Within this time nothing is left of what was deleted.
const SETTLED_WITHIN: Nanos = Nanos::from_secs(600);

/// What the administrator asks for. Volumes, snapshots and clones are named by the oracle's numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Order {
    /// `copy` is what `volume` is now.
    Snapshot {
        volume: u32,
        copy: u32,
    },
    /// `copy` begins as what `snapshot` is, and can be written.
    Clone {
        snapshot: u32,
        copy: u32,
    },
    /// `volume` is again what `snapshot` is.
    Rollback {
        volume: u32,
        snapshot: u32,
    },
    Delete {
        copy: u32,
    },
    /// Blocks of `destination` are what as many of `source` are.
    Copy {
        range: Stretch,
    },
    /// Layers that only references kept go, where nothing refers to them any more.
    Forget,
}

/// Blocks that are copied from one volume to another, or within one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Stretch {
    pub source: u32,
    pub destination: u32,
    pub from: u64,
    pub to: u64,
    pub blocks: u64,
}

impl Stretch {
    /// Whether it reads what it writes.
    pub fn overlaps(&self) -> bool {
        self.source == self.destination
            && self.from < self.to + self.blocks
            && self.to < self.from + self.blocks
    }
}

/// A snapshot or a clone.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Copied {
    pub plan: VolumePlan,
    /// The volume that it is a copy of, maybe of a copy.
    pub origin: u32,
    pub writable: bool,
}

/// A subject whose volumes can be frozen and copied.
pub trait Layered {
    fn copies(&self) -> Vec<Copied>;
    /// Numbers for a new copy.
    fn new_number(&self) -> u32;
    fn gate(&self, volume: u32) -> Rc<VolumeGate>;
    /// What is given back when a copy is deleted, in blocks.
    fn freed_by(&self, copy: u32) -> Pin<Box<dyn Future<Output = Result<u64, String>>>>;
    /// Blocks that are stored, of all volumes and copies.
    fn stored_blocks(&self) -> u64;
    /// Whether nothing is left to be done of what was deleted.
    fn is_settled(&self) -> bool;
    /// What is wrong with what is said to be kept, and for whom, where nothing is left to be done.
    fn check_kept(&self) -> Result<(), String>;
    /// Carries out an order. Of what it gives [`Answer::Lost`], nothing has happened, or the way broke.
    fn order(&self, order: Order) -> Pin<Box<dyn Future<Output = Answer>>>;
}

/// Lets requests to one volume through, or holds them back.
pub struct VolumeGate {
    held_writes: Cell<bool>,
    held_reads: Cell<bool>,
    writes: Cell<usize>,
    reads: Cell<usize>,
    changed: Notify,
}

/// A request on its way.
pub struct Pass(Rc<VolumeGate>, bool);

/// Requests are held back until this is dropped.
pub struct Held(Rc<VolumeGate>);

impl VolumeGate {
    pub fn new(io: &Io) -> Rc<VolumeGate> {
        Rc::new(VolumeGate {
            held_writes: Cell::new(false),
            held_reads: Cell::new(false),
            writes: Cell::new(0),
            reads: Cell::new(0),
            changed: Notify::new(io),
        })
    }

    fn count(&self, write: bool) -> &Cell<usize> {
        if write { &self.writes } else { &self.reads }
    }

    pub async fn enter(self: Rc<Self>, write: bool) -> Pass {
        while if write { self.held_writes.get() } else { self.held_reads.get() } {
            self.changed.wait().await;
        }
        self.count(write).set(self.count(write).get() + 1);
        Pass(self, write)
    }

    /// Waits until no write is under way, and with `reads`, no read either.
    async fn hold(self: Rc<Self>, reads: bool) -> Held {
        self.held_writes.set(true);
        self.held_reads.set(reads);
        while self.writes.get() > 0 || reads && self.reads.get() > 0 {
            self.changed.wait().await;
        }
        Held(self)
    }
}

impl Drop for Pass {
    fn drop(&mut self) {
        let count = self.0.count(self.1);
        count.set(count.get() - 1);
        self.0.changed.notify();
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.0.held_writes.set(false);
        self.0.held_reads.set(false);
        self.0.changed.notify();
    }
}

/// Gives orders until [`Shared::stop`], or until there were `orders`.
pub async fn run_administrator(
    io: Io,
    shared: Rc<Shared>,
    subject: Rc<dyn Subject>,
    profile: Rc<Profile>,
    volumes: Rc<Vec<VolumePlan>>,
    mut prng: Prng,
    orders: u64,
) {
    let Some(mut administrator) = Administrator::new(shared, subject, profile.clone(), volumes) else {
        return;
    };
    for _ in 0..orders {
        if administrator.shared.stop.get() {
            return;
        }
        administrator.act(&mut prng).await;
        io.sleep(Nanos(prng.skewed(0, profile.pause_max.max(1_000_000)))).await;
    }
}

/// Gives orders, and tells the oracle what came of them.
pub struct Administrator {
    shared: Rc<Shared>,
    layers: Rc<dyn Layered>,
    client: Client,
    volumes: Rc<Vec<VolumePlan>>,
}

impl Administrator {
    /// `None`: the subject's volumes cannot be copied.
    pub fn new(
        shared: Rc<Shared>,
        subject: Rc<dyn Subject>,
        profile: Rc<Profile>,
        volumes: Rc<Vec<VolumePlan>>,
    ) -> Option<Administrator> {
        let layers = subject.layers()?;
        let client = Client::new(shared.clone(), subject, profile);
        Some(Administrator { shared, layers, client, volumes })
    }

    async fn act(&mut self, prng: &mut Prng) {
        let copies = self.layers.copies();
        let (clones, snapshots): (Vec<Copied>, Vec<Copied>) =
            copies.iter().copied().partition(|copy| copy.writable);
        match prng.below(100) {
            0..25 if snapshots.len() < COPIES_MAX => {
                let mut of = *prng.pick(&self.volumes);
                if !clones.is_empty() && prng.chance(250) {
                    of = prng.pick(&clones).plan;
                }
                let _ = self.snapshot(of).await;
            }
            25..35 if !snapshots.is_empty() && clones.len() < COPIES_MAX => {
                let _ = self.clone_of(prng.pick(&snapshots)).await;
            }
            35..42 if !snapshots.is_empty() => self.roll_back(prng.pick(&snapshots)).await,
            42..57 if !copies.is_empty() => self.delete(prng.pick(&copies)).await,
            85..95 => self.copy_something(&copies, &clones, prng).await,
            95..98 => drop(self.order(Order::Forget).await),
            57..70 if !clones.is_empty() => {
                let volume = prng.pick(&clones).plan;
                self.client.request(&volume, prng).await;
            }
            _ if !copies.is_empty() => {
                let volume = prng.pick(&copies).plan;
                self.client.read_some(&volume, prng).await;
            }
            _ => {}
        }
    }

    async fn order(&self, order: Order) -> bool {
        self.shared.world.note(|| format!("> {order:?}"));
        let answer = self.layers.order(order).await;
        self.shared.world.note(|| format!("< {order:?} = {answer:?}"));
        match answer {
            Answer::Done => true,
            Answer::OutOfSpace | Answer::Lost => false,
            _ if self.shared.lenient.get() => {
                self.shared.refused.set(self.shared.refused.get() + 1);
                false
            }
            answer => {
                let (request, answer) = (format!("{order:?}"), format!("{answer:?}"));
                self.shared.fail(Failure::Refused { request, answer });
                false
            }
        }
    }

    /// A snapshot of a volume or a clone, by its number. `None`: it was not taken.
    pub async fn snapshot(&self, of: VolumePlan) -> Option<u32> {
        let copy = self.layers.new_number();
        let _held = self.layers.gate(of.volume).hold(false).await;
        let taken = self.order(Order::Snapshot { volume: of.volume, copy }).await;
        taken.then(|| self.shared.oracle.borrow_mut().copy_volume(of.volume, copy)).map(|()| copy)
    }

    /// A clone of a snapshot, by its number.
    pub async fn clone_of(&self, snapshot: &Copied) -> Option<u32> {
        let (copy, snapshot) = (self.layers.new_number(), snapshot.plan.volume);
        let made = self.order(Order::Clone { snapshot, copy }).await;
        made.then(|| self.shared.oracle.borrow_mut().copy_volume(snapshot, copy)).map(|()| copy)
    }

    /// The volume of which the snapshot is one is again what it was.
    pub async fn roll_back(&self, snapshot: &Copied) {
        let volume = snapshot.origin;
        let _held = self.layers.gate(volume).hold(true).await;
        if self.order(Order::Rollback { volume, snapshot: snapshot.plan.volume }).await {
            self.shared.oracle.borrow_mut().roll_back(volume, snapshot.plan.volume);
        }
    }

    pub async fn delete(&self, copy: &Copied) {
        let _held = self.layers.gate(copy.plan.volume).hold(true).await;
        if self.order(Order::Delete { copy: copy.plan.volume }).await {
            self.shared.oracle.borrow_mut().remove_volume(copy.plan.volume);
        }
    }

    async fn copy_something(&self, copies: &[Copied], clones: &[Copied], prng: &mut Prng) {
        let plans = |copies: &[Copied]| copies.iter().map(|copy| copy.plan).collect::<Vec<_>>();
        let source = *prng.pick(&[plans(copies), self.volumes.to_vec()].concat());
        let destination = *prng.pick(&[plans(clones), self.volumes.to_vec()].concat());
        let blocks = prng.skewed(1, source.blocks.min(destination.blocks).min(COPIED_BLOCKS_MAX));
        let (from, to) =
            (prng.below(source.blocks - blocks + 1), prng.below(destination.blocks - blocks + 1));
        let (source, destination) = (source.volume, destination.volume);
        let range = Stretch { source, destination, from, to, blocks };
        if !range.overlaps() {
            self.copy_range(range).await;
        }
    }

    /// Copies blocks. Nothing is written to either volume meanwhile.
    pub async fn copy_range(&self, range: Stretch) {
        let _source = match range.source == range.destination {
            true => None,
            false => Some(self.layers.gate(range.source).hold(false).await),
        };
        let _destination = self.layers.gate(range.destination).hold(false).await;
        let sectors = range.from * SECTORS_PER_BLOCK..(range.from + range.blocks) * SECTORS_PER_BLOCK;
        let source =
            VolumePlan { volume: range.source, blocks: range.from + range.blocks, write_back: false };
        // then it is known what is brought
        if self.client.read(&source, sectors.clone()).await.is_none() {
            return;
        }
        let (from, to) = ((range.source, sectors.start), (range.destination, range.to * SECTORS_PER_BLOCK));
        let count = sectors.end - sectors.start;
        let ticket = self.shared.oracle.borrow_mut().begin_copy(from, to, count);
        let copied = self.order(Order::Copy { range }).await;
        let mut oracle = self.shared.oracle.borrow_mut();
        match copied {
            true => drop(oracle.end_copy(ticket)),
            false => oracle.fail_copy(&ticket),
        }
    }

    /// Layers that only references kept go, where nothing refers to them any more.
    pub async fn forget(&self) {
        self.order(Order::Forget).await;
    }

    pub fn copies(&self) -> Vec<Copied> {
        self.layers.copies()
    }

    /// The copy of this number.
    pub fn copy(&self, number: u32) -> Option<Copied> {
        self.layers.copies().into_iter().find(|copy| copy.plan.volume == number)
    }

    /// Deletes a copy, and sees whether it gives back what was said before. Nothing else may be written meanwhile.
    pub async fn delete_counted(&self, io: &Io, copy: &Copied) -> Result<(), String> {
        let said = self.layers.freed_by(copy.plan.volume).await?;
        let before = self.layers.stored_blocks();
        self.delete(copy).await;
        let deadline = io.now() + SETTLED_WITHIN;
        while !self.layers.is_settled() {
            if io.now() >= deadline {
                return Err(format!("what was deleted is still there after {SETTLED_WITHIN:?}"));
            }
            io.sleep(Nanos::from_millis(10)).await;
        }
        self.layers.check_kept()?;
        let freed = before.saturating_sub(self.layers.stored_blocks());
        if freed != said {
            let number = copy.plan.volume;
            return Err(format!("copy {number} gives back {freed} blocks, {said} were said to be its own"));
        }
        Ok(())
    }
}

/// Deletes some copies, in any order, and sees whether each gives back what was said before.
pub async fn check_freed(io: Io, shared: Rc<Shared>, subject: Rc<dyn Subject>, mut prng: Prng) {
    let profile = Rc::new(Profile::draw(&mut prng));
    let Some(administrator) = Administrator::new(shared.clone(), subject, profile, Rc::default()) else {
        return;
    };
    for _ in 0..COPIES_COUNTED {
        let copies = administrator.layers.copies();
        if copies.is_empty() || shared.has_failed() {
            return;
        }
        if let Err(what) = administrator.delete_counted(&io, prng.pick(&copies)).await {
            shared.fail(Failure::Broken(what));
        }
    }
}
