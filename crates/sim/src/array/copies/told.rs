//! Compares what the array reports about the administrator's copies with the model; and sizes that only the array can
//! report.

use std::collections::{BTreeMap, BTreeSet};

use api::{ArrayStatus, SnapshotStatus, VolumeStatus};
use base::BLOCK_BYTES;

use super::state::{HOST, State};

/// Size, LUN, origin.
type ToldVolume = (Option<u64>, Option<u16>, Option<String>);

/// What the array tells of all this.
#[derive(Clone, PartialEq, Default, Debug)]
pub struct Told {
    volumes: BTreeMap<String, ToldVolume>,
    /// How many snapshots are there with it.
    bin: BTreeMap<String, usize>,
    /// Of which volume, and their names.
    snapshots: BTreeSet<(String, String)>,
    schedule: bool,
}

impl State {
    /// What the array has to tell, `fading` left out.
    pub fn told(&self, fading: &BTreeSet<String>) -> Told {
        let mut told = Told { schedule: self.schedule, ..Told::default() };
        for (name, volume) in self.volumes.iter().filter(|(name, _)| !fading.contains(*name)) {
            let own = self.snapshots.iter().filter(|one| one.owner == volume.id);
            if volume.binned_ms.is_some() {
                told.bin.insert(name.clone(), own.count());
                continue;
            }
            told.volumes.insert(name.clone(), (volume.blocks, volume.lun, volume.clone_of.clone()));
            told.snapshots.extend(own.map(|one| (name.clone(), one.name.clone())));
        }
        told
    }

    /// Volumes that are not the hosts', and as large as one of those was at some time.
    pub fn unmeasured(&self) -> BTreeSet<String> {
        let unknown =
            self.volumes.iter().filter(|(name, volume)| volume.blocks.is_none() && !are_hosts(name));
        unknown.map(|(name, _)| name.clone()).collect()
    }

    /// Takes over how large those are; by number, and their sizes in blocks.
    pub fn measure(&mut self, told: &[VolumeStatus]) -> Vec<(u32, u64)> {
        let mut learned = Vec::new();
        for name in self.unmeasured() {
            let volume = self.volume(&name);
            if let Some(told) = told.iter().find(|told| told.name == name) {
                let blocks = told.size_bytes / BLOCK_BYTES as u64;
                volume.blocks = Some(blocks);
                learned.push((volume.number, blocks));
            }
        }
        learned
    }

    /// Takes over how large snapshots of the hosts' volumes are; what was known must be so.
    /// Those that were not known, by number, and their sizes in blocks.
    pub fn learn_sizes(&mut self, told: &[SnapshotStatus]) -> Result<Vec<(u32, u64)>, String> {
        let mut learned = Vec::new();
        for told in told.iter().filter(|told| told.schedule.is_none()) {
            let Some(owner) = self.volumes.get(&told.volume).map(|volume| volume.id) else { continue };
            let own = self.snapshots.iter_mut().find(|one| one.owner == owner && one.name == told.name);
            let blocks = told.size_bytes / BLOCK_BYTES as u64;
            let Some(own) = own else { continue };
            match own.blocks.replace(blocks) {
                Some(known) if known != blocks => {
                    return Err(format!("{}@{} has {blocks} blocks, not {known}", told.volume, told.name));
                }
                Some(_) => {}
                None => learned.push((own.number, blocks)),
            }
        }
        Ok(learned)
    }
}

impl Told {
    /// What the array tells where this is the case, snapshots that schedules have taken and `fading` left out.
    pub fn by(
        status: &ArrayStatus,
        snapshots: &[SnapshotStatus],
        state: &State,
        fading: &BTreeSet<String>,
    ) -> Told {
        let unmeasured = state.unmeasured();
        let unknown = |name: &str| are_hosts(name) || unmeasured.contains(name);
        let blocks = |name: &str, bytes: u64| (!unknown(name)).then_some(bytes / BLOCK_BYTES as u64);
        let lun = |name: &str| {
            let mapping = status.mappings.iter().find(|one| one.host == HOST && one.volume == name);
            mapping.map(|one| one.lun)
        };
        let volumes = status.volumes.iter().map(|volume| {
            let size = blocks(&volume.name, volume.size_bytes);
            (volume.name.clone(), (size, lun(&volume.name), volume.clone_of.clone()))
        });
        let bin = status.bin.iter().filter(|binned| !fading.contains(&binned.name));
        let own = snapshots.iter().filter(|one| one.schedule.is_none());
        Told {
            volumes: volumes.collect(),
            bin: bin.map(|binned| (binned.name.clone(), binned.snapshots as usize)).collect(),
            snapshots: own.map(|one| (one.volume.clone(), one.name.clone())).collect(),
            schedule: !status.schedules.is_empty(),
        }
    }
}

fn are_hosts(name: &str) -> bool {
    name.starts_with("volume")
}
