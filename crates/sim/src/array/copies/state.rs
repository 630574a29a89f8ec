//! The effect of the administrator's commands: a small model made from the manual, independent of the
//! catalog's code. Its volumes and snapshots have the numbers by which the oracle knows their contents.

use std::collections::{BTreeMap, BTreeSet};

use api::Command;
use api::{CopyOrder, Keep, NewBacking, NewVolume, ScheduleOrder};
use base::BLOCK_BYTES;

use super::counts::Kind;
use crate::workload::VolumePlan;

/// The administrator's own host.
pub const HOST: &str = "administrator";
/// The schedule, of which so many snapshots are kept.
pub const SCHEDULE: &str = "hourly";
pub const KEPT: u32 = 2;
/// How long what is deleted stays.
pub const BIN_MS: u64 = 24 * 3_600_000;

/// A volume, in the bin or out of it.
#[derive(Clone, PartialEq, Default, Debug)]
pub struct Volume {
    /// Its own for ever.
    pub id: u32,
    pub number: u32,
    /// None: it is the hosts', and grows beside; or a copy of such a one, of which the array has not told yet.
    pub blocks: Option<u64>,
    pub lun: Option<u16>,
    /// The snapshot that it stands on.
    below: Option<u32>,
    /// It may be another, of the same content.
    unsure: bool,
    pub clone_of: Option<String>,
    /// When it was put into the bin, by the clock on the wall.
    pub binned_ms: Option<u64>,
    /// A clone that is never written: what its snapshot is.
    pub is_view: bool,
    pub write_back: bool,
    /// The volume, by its id, that it descends from in the end.
    root: u32,
}

/// A snapshot, by its number for ever.
#[derive(Clone, PartialEq, Debug)]
pub struct Snapshot {
    pub number: u32,
    /// A volume's id.
    pub owner: u32,
    pub name: String,
    below: Option<u32>,
    unsure: bool,
    pub blocks: Option<u64>,
}

/// All that there is.
#[derive(Clone, PartialEq, Default, Debug)]
pub struct State {
    pub volumes: BTreeMap<String, Volume>,
    pub snapshots: Vec<Snapshot>,
    pub schedule: bool,
}

/// An order. Volumes go by their names, snapshots by their numbers; `number` is a new one.
#[derive(Clone, PartialEq, Debug)]
pub enum Order {
    Create {
        name: String,
        blocks: u64,
        number: u32,
    },
    Map {
        volume: String,
        lun: u16,
    },
    Unmap {
        volume: String,
    },
    /// Volumes, and the numbers of their snapshots.
    Snapshot {
        of: Vec<(String, u32)>,
        name: String,
    },
    DeleteSnapshot {
        snapshot: u32,
    },
    Clone {
        snapshot: u32,
        name: String,
        number: u32,
    },
    /// A volume that is what another is now.
    Copy {
        volume: String,
        name: String,
        number: u32,
    },
    /// A clone that is never written, of a snapshot by its names; `content` is the snapshot's number.
    View {
        volume: String,
        snapshot: String,
        name: String,
        id: u32,
        content: u32,
        blocks: u64,
    },
    CreateSchedule {
        volumes: Vec<String>,
    },
    RollBack {
        volume: String,
        snapshot: u32,
        number: u32,
    },
    /// The clones of a snapshot or a volume, as they were called, become clones of this one: which, and their new numbers.
    Refresh {
        snapshot: u32,
        clones_of: String,
        clones: BTreeMap<String, u32>,
        remap: bool,
    },
    Promote {
        volume: String,
    },
    Resize {
        volume: String,
        blocks: u64,
        number: u32,
        force: bool,
        grows: bool,
    },
    Bin {
        volume: String,
        now_ms: u64,
    },
    Undelete {
        volume: String,
    },
    Eradicate {
        volume: String,
    },
    Delete {
        volume: String,
    },
}

impl Order {
    pub fn kind(&self) -> Kind {
        match self {
            Order::Create { .. } => Kind::Create,
            Order::Map { .. } => Kind::Map,
            Order::Unmap { .. } => Kind::Unmap,
            Order::Snapshot { of, .. } if of.len() > 1 => Kind::Group,
            Order::Snapshot { .. } => Kind::Snapshot,
            Order::DeleteSnapshot { .. } => Kind::DeleteSnapshot,
            Order::Clone { .. } => Kind::Clone,
            Order::Copy { .. } => Kind::Copy,
            Order::View { .. } => Kind::View,
            Order::CreateSchedule { .. } => Kind::Schedule,
            Order::RollBack { .. } => Kind::RollBack,
            Order::Refresh { .. } => Kind::Refresh,
            Order::Promote { .. } => Kind::Promote,
            Order::Resize { grows: true, .. } => Kind::Grow,
            Order::Resize { force: true, .. } => Kind::ForcedShrink,
            Order::Resize { .. } => Kind::Shrink,
            Order::Bin { .. } => Kind::Bin,
            Order::Undelete { .. } => Kind::Undelete,
            Order::Eradicate { .. } => Kind::Eradicate,
            Order::Delete { .. } => Kind::Delete,
        }
    }

    /// Whether it is to change what hosts have before their eyes without a word.
    pub fn must_be_refused(&self, state: &State) -> bool {
        let mapped = |name: &String| state.volumes[name].lun.is_some();
        matches!(self, Order::Refresh { clones, remap: false, .. } if clones.keys().any(mapped))
    }

    /// As the array is told.
    pub fn command(&self, state: &State) -> Command {
        let copy = |order| Command::Copy { order, dry_run: false };
        let named = |snapshot: u32| {
            let found = state.snapshot(snapshot);
            (state.name_of(found.owner), found.name.clone())
        };
        let bytes = |blocks: u64| blocks * BLOCK_BYTES as u64;
        match self.clone() {
            Order::Create { name, blocks, .. } => {
                let backing = NewBacking::Pool("pool".to_owned());
                let (size_bytes, block_bytes, write_back) = (Some(bytes(blocks)), 512, false);
                let volume = NewVolume { name, backing, size_bytes, block_bytes, write_back };
                Command::VolumeCreate { volume, dry_run: false }
            }
            Order::Map { volume, lun } => {
                let (host, lun) = (HOST.to_owned(), Some(lun));
                Command::Map { volume, host, lun, read_only: false, dry_run: false }
            }
            Order::Unmap { volume } => Command::Unmap { volume, host: HOST.to_owned(), dry_run: false },
            Order::Snapshot { of, name } => {
                let snapshots = of.into_iter().map(|(volume, _)| (volume, name.clone())).collect();
                copy(CopyOrder::Snapshot { snapshots })
            }
            Order::DeleteSnapshot { snapshot } => {
                let (volume, snapshot) = named(snapshot);
                copy(CopyOrder::DeleteSnapshot { volume, snapshot })
            }
            Order::Clone { snapshot, name, .. } => {
                let (volume, snapshot) = named(snapshot);
                copy(CopyOrder::Clone { volume, snapshot, name })
            }
            Order::Copy { volume, name, .. } => copy(CopyOrder::CopyVolume { volume, name }),
            Order::View { volume, snapshot, name, .. } => copy(CopyOrder::Clone { volume, snapshot, name }),
            Order::CreateSchedule { volumes } => {
                let keep = Keep { hourly: KEPT, ..Keep::default() };
                let order = ScheduleOrder::Create { name: SCHEDULE.to_owned(), volumes, keep };
                Command::Schedule { order, dry_run: false }
            }
            Order::RollBack { volume, snapshot, .. } => {
                copy(CopyOrder::RollBack { volume, snapshot: named(snapshot).1 })
            }
            Order::Refresh { snapshot, clones_of, remap, .. } => {
                let (volume, snapshot) = named(snapshot);
                copy(CopyOrder::Refresh { volume, snapshot, clones_of, remap })
            }
            Order::Promote { volume } => copy(CopyOrder::Promote { volume }),
            Order::Resize { volume: name, blocks, force, .. } => {
                Command::VolumeResize { name, size_bytes: bytes(blocks), force, dry_run: false }
            }
            Order::Bin { volume: name, .. } => {
                Command::VolumeDelete { name, unmap: true, eradicate: false, dry_run: false }
            }
            Order::Undelete { volume } => copy(CopyOrder::Undelete { volume }),
            Order::Eradicate { volume } => copy(CopyOrder::Eradicate { volume }),
            Order::Delete { volume: name } => {
                Command::VolumeDelete { name, unmap: true, eradicate: true, dry_run: false }
            }
        }
    }
}

impl State {
    /// A volume that hosts use.
    pub fn add_hosts_volume(&mut self, plan: &VolumePlan) {
        let volume = Volume { write_back: plan.write_back, ..new_volume(plan.volume, plan.volume, None) };
        self.volumes.insert(format!("volume{}", plan.volume), volume);
    }

    pub fn snapshot(&self, number: u32) -> &Snapshot {
        self.snapshots.iter().find(|one| one.number == number).expect("a snapshot that there is")
    }

    pub fn name_of(&self, id: u32) -> String {
        self.volumes.iter().find(|(_, volume)| volume.id == id).expect("an owner").0.clone()
    }

    pub fn has_snapshots(&self, name: &str) -> bool {
        let id = self.volumes[name].id;
        self.snapshots.iter().any(|one| one.owner == id)
    }

    /// Snapshots of volumes that are not in the bin.
    pub fn live_snapshots(&self) -> Vec<u32> {
        let live = |one: &&Snapshot| self.volumes[&self.name_of(one.owner)].binned_ms.is_none();
        self.snapshots.iter().filter(live).map(|one| one.number).collect()
    }

    /// The snapshots that a promotion would give to a volume, nearest first; none where that cannot be told.
    pub fn promotes(&self, name: &str) -> Vec<u32> {
        let id = self.volumes[name].id;
        let known = |number: Option<u32>| self.snapshots.iter().find(|one| Some(one.number) == number);
        let (mut below, mut unsure) = (self.volumes[name].below, self.volumes[name].unsure);
        while let Some(own) = known(below).filter(|one| one.owner == id) {
            (below, unsure) = (own.below, unsure || own.unsure);
        }
        let Some(origin) = known(below).map(|first| first.owner) else { return Vec::new() };
        if self.volumes[&self.name_of(origin)].binned_ms.is_some() {
            return Vec::new();
        }
        let mut taken = Vec::new();
        while let Some(next) = known(below).filter(|one| one.owner == origin) {
            taken.push(next.number);
            (below, unsure) = (next.below, unsure || next.unsure);
        }
        if unsure { Vec::new() } else { taken }
    }

    /// Whether nothing can tell the two apart: when a volume went into the bin, to the moment, the array does not say, and
    /// an order that is given again after an error leaves open which of the two it was.
    pub fn is_like(&self, other: &State) -> bool {
        let mut like = other.clone();
        for (name, volume) in &mut like.volumes {
            let here = self.volumes.get(name).and_then(|one| one.binned_ms);
            volume.binned_ms = volume.binned_ms.and(here.or(volume.binned_ms));
        }
        *self == like
    }

    /// Contents fit this and the others: what stands on what may be as in any of them.
    pub fn doubt_what_differs_in(&mut self, others: &[State]) {
        for (name, volume) in &mut self.volumes {
            let mut others = others.iter().filter_map(|other| other.volumes.get(name));
            volume.unsure |= others.any(|other| other.below != volume.below);
        }
    }

    pub(super) fn volume(&mut self, name: &str) -> &mut Volume {
        self.volumes.get_mut(name).expect("a volume that there is")
    }

    fn forget_snapshot(&mut self, number: u32) {
        let gone = self.snapshot(number).clone();
        self.snapshots.retain(|one| one.number != number);
        let volumes = self.volumes.values_mut().map(|volume| (&mut volume.below, &mut volume.unsure));
        let snapshots = self.snapshots.iter_mut().map(|one| (&mut one.below, &mut one.unsure));
        for (below, unsure) in volumes.chain(snapshots).filter(|(below, _)| **below == Some(number)) {
            *below = gone.below;
            *unsure |= gone.unsure;
        }
    }

    /// The volume goes for good, with its snapshots.
    pub fn forget_volume(&mut self, name: &str) {
        let id = self.volume(name).id;
        let own = self.snapshots.iter().filter(|one| one.owner == id).map(|one| one.number);
        own.collect::<Vec<_>>().into_iter().for_each(|own| self.forget_snapshot(own));
        self.volumes.remove(name);
    }

    /// What is when the order has been carried out.
    pub fn after(&self, order: &Order) -> State {
        let mut next = self.clone();
        match order {
            Order::Create { name, blocks, number } => {
                next.volumes.insert(name.clone(), new_volume(*number, *number, Some(*blocks)));
            }
            Order::Map { volume, lun } => next.volume(volume).lun = Some(*lun),
            Order::Unmap { volume } => next.volume(volume).lun = None,
            Order::Snapshot { of, name } => {
                of.iter().for_each(|(volume, number)| next.take_snapshot(volume, name, *number));
            }
            Order::DeleteSnapshot { snapshot } => next.forget_snapshot(*snapshot),
            Order::Clone { snapshot, name, number } => {
                let of = self.snapshot(*snapshot);
                let clone_of = Some(format!("{}@{}", self.name_of(of.owner), of.name));
                let volume = new_volume(*number, *number, of.blocks);
                let owner = &self.volumes[&self.name_of(of.owner)];
                let (below, write_back, root) = (Some(*snapshot), owner.write_back, owner.root);
                next.volumes.insert(name.clone(), Volume { below, clone_of, write_back, root, ..volume });
            }
            Order::Copy { volume, name, number } => {
                let of = &self.volumes[volume];
                let clone_of = Some(volume.clone());
                let (below, unsure, write_back, root) = (of.below, of.unsure, of.write_back, of.root);
                let volume = new_volume(*number, *number, of.blocks);
                let copy = Volume { below, unsure, clone_of, write_back, root, ..volume };
                next.volumes.insert(name.clone(), copy);
            }
            Order::View { volume, snapshot, name, id, content, blocks } => {
                let clone_of = Some(format!("{volume}@{snapshot}"));
                let view = new_volume(*id, *content, Some(*blocks));
                next.volumes.insert(name.clone(), Volume { clone_of, is_view: true, ..view });
            }
            Order::CreateSchedule { .. } => next.schedule = true,
            Order::RollBack { volume, snapshot, number } => {
                let volume = next.volume(volume);
                (volume.number, volume.below, volume.unsure) = (*number, Some(*snapshot), false);
                volume.blocks = self.snapshot(*snapshot).blocks;
            }
            Order::Refresh { snapshot, clones, .. } => next.refresh(*snapshot, clones),
            Order::Promote { volume } => next.promote(volume),
            Order::Resize { volume, blocks, number, .. } => {
                let volume = next.volume(volume);
                (volume.blocks, volume.number) = (Some(*blocks), *number);
            }
            Order::Bin { volume, now_ms } => next.volume(volume).binned_ms = Some(*now_ms),
            Order::Undelete { volume } => next.volume(volume).binned_ms = None,
            Order::Eradicate { volume } | Order::Delete { volume } => next.forget_volume(volume),
        }
        next
    }

    fn take_snapshot(&mut self, volume: &str, name: &str, number: u32) {
        let of = self.volume(volume);
        let (owner, blocks) = (of.id, of.blocks);
        let (below, unsure) = (of.below.replace(number), std::mem::take(&mut of.unsure));
        self.snapshots.push(Snapshot { number, owner, name: name.to_owned(), below, unsure, blocks });
    }

    /// Whether a promotion would give a volume anything, and nothing that is called as one of its own snapshots is: those of
    /// a group, where the clone has become what its origin was then.
    pub fn may_promote(&self, name: &str) -> bool {
        let id = self.volumes[name].id;
        let own: BTreeSet<&str> =
            self.snapshots.iter().filter(|one| one.owner == id).map(|one| one.name.as_str()).collect();
        let taken = self.promotes(name);
        !taken.is_empty() && taken.iter().all(|&number| !own.contains(self.snapshot(number).name.as_str()))
    }

    /// The clones that were made of a snapshot, VOLUME@SNAPSHOT, or of any of a volume's, but not the volume that `image` is of.
    pub fn clones_of(&self, label: &str, image: &str) -> Vec<&String> {
        let is_of = |of: &str| of.split_once('@').is_some_and(|(volume, _)| of == label || volume == label);
        let chosen = |(name, volume): &(&String, &Volume)| {
            volume.binned_ms.is_none() && volume.clone_of.as_deref().is_some_and(is_of) && *name != image
        };
        self.volumes.iter().filter(chosen).map(|(name, _)| name).collect()
    }

    /// Whether a clone may become one of this snapshot, and hosts' workloads do not use it.
    pub fn may_refresh(&self, name: &str, snapshot: u32) -> bool {
        let (clone, image) = (&self.volumes[name], self.snapshot(snapshot));
        let same_root = clone.root == self.volumes[&self.name_of(image.owner)].root;
        let own = clone.blocks.is_some() && !clone.is_view;
        own && image.blocks.is_some() && (same_root || !self.has_snapshots(name))
    }

    fn refresh(&mut self, snapshot: u32, clones: &BTreeMap<String, u32>) {
        let image = self.snapshot(snapshot).clone();
        let owner = self.name_of(image.owner);
        let (label, root) = (format!("{owner}@{}", image.name), self.volumes[&owner].root);
        for (name, number) in clones {
            let clone = self.volume(name);
            (clone.number, clone.below, clone.blocks) = (*number, Some(snapshot), image.blocks);
            clone.unsure = false;
            (clone.clone_of, clone.root) = (Some(label.clone()), root);
        }
    }

    fn promote(&mut self, name: &str) {
        let taken = self.promotes(name);
        let first = self.snapshot(taken[0]).clone();
        let origin = self.name_of(first.owner);
        let id = self.volume(name).id;
        let taken_over = self.snapshots.iter_mut().filter(|one| taken.contains(&one.number));
        taken_over.for_each(|one| one.owner = id);
        self.volume(name).clone_of = self.volume(&origin).clone_of.replace(format!("{name}@{}", first.name));
    }

    /// Volumes in the bin that may have gone by themselves.
    pub fn fading(&self, now_ms: u64) -> BTreeSet<String> {
        let over = |volume: &Volume| volume.binned_ms.is_some_and(|binned| now_ms + 1000 >= binned + BIN_MS);
        self.volumes.iter().filter(|(_, volume)| over(volume)).map(|(name, _)| name.clone()).collect()
    }

    /// The oracle's numbers that are in use.
    pub fn numbers(&self) -> impl Iterator<Item = u32> + '_ {
        let volumes = self.volumes.values().map(|volume| volume.number);
        volumes.chain(self.snapshots.iter().map(|one| one.number))
    }
}

fn new_volume(id: u32, number: u32, blocks: Option<u64>) -> Volume {
    Volume { id, number, blocks, root: id, ..Volume::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deletion_ordered_twice_leaves_one_state() {
        let created = State::default().after(&Order::Create { name: "own".to_owned(), blocks: 8, number: 7 });
        let binned = |now_ms| created.after(&Order::Bin { volume: "own".to_owned(), now_ms });
        assert!(binned(207).is_like(&binned(209)));
        assert!(!binned(207).is_like(&created) && !created.is_like(&binned(207)));
    }
}
