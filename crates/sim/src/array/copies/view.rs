//! Reads the contents of volumes and snapshots.

use std::rc::Rc;

use base::Nanos;

use super::administrator::{Administrator, Outcome};
use super::counts::Sight;
use super::state::{Order, State, Volume};
use crate::oracle::SECTORS_PER_BLOCK;
use crate::workload::{Answer, Request, VolumePlan, run_client, verify};

const AGAIN: Nanos = Nanos::from_millis(2);
/// Blocks of one read.
const READ_BLOCKS: u64 = 64;

/// A snapshot that can be read: of which volume, its name, its number, its size.
pub struct Readable(pub String, pub String, pub u32, pub u64);

impl Administrator {
    /// Everything that can be read now.
    pub fn readable(&self) -> Vec<Readable> {
        let state = self.records.state();
        let own = state.live_snapshots().into_iter().filter_map(|number| {
            let one = state.snapshot(number);
            Some(Readable(state.name_of(one.owner), one.name.clone(), number, one.blocks?))
        });
        let scheduled = self.records.scheduled.borrow();
        let by_schedule = scheduled.taken.iter().flat_map(|taken| {
            let of = |&(volume, number, blocks): &(u32, u32, u64)| {
                Readable(format!("volume{volume}"), taken.name.clone(), number, blocks)
            };
            taken.copies.iter().map(of)
        });
        own.chain(by_schedule).collect()
    }

    /// Makes a clone of a snapshot, reads it, and deletes it.
    pub async fn view(&self, of: &Readable) {
        let id = self.records.new_number();
        let (volume, snapshot, content, blocks) = (of.0.clone(), of.1.clone(), of.2, of.3);
        let name = format!("view{id}");
        let made = Order::View { volume, snapshot, name: name.clone(), id, content, blocks };
        if self.execute(made).await != Outcome::Done {
            return;
        }
        let lun = lun(id);
        if self.execute(Order::Map { volume: name.clone(), lun }).await == Outcome::Done {
            self.read(content, lun, blocks).await;
            Sight::Viewed.seen();
        }
        self.execute(Order::Delete { volume: name }).await;
    }

    /// Reads a volume, or what is its own.
    async fn read(&self, number: u32, lun: u16, blocks: u64) {
        let subject = self.subject(number, lun);
        let plan = VolumePlan { volume: number, blocks, write_back: false };
        let prng = self.prng.borrow_mut().fork();
        verify(self.records.shared.clone(), subject, Rc::new(vec![plan]), prng).await;
    }

    pub async fn read_volume(&self, volume: &Volume) {
        if let (Some(lun), Some(blocks), None) = (volume.lun, volume.blocks, volume.binned_ms) {
            self.read(volume.number, lun, blocks).await;
        }
    }

    pub async fn read_everything(&self) {
        for volume in self.records.state().volumes.into_values() {
            self.read_volume(&volume).await;
        }
        for one in self.readable() {
            if !self.records.shared.has_failed() {
                self.view(&one).await;
            }
        }
    }

    /// The administrator's host reads and writes.
    pub async fn work(&self, volume: &Volume, requests: u64) {
        let (Some(lun), Some(blocks)) = (volume.lun, volume.blocks) else { return };
        let plan = VolumePlan { volume: volume.number, blocks, write_back: false };
        let (subject, prng) = (self.subject(volume.number, lun), self.prng.borrow_mut().fork());
        let (shared, profile) = (self.records.shared.clone(), self.profile.clone());
        run_client(self.io.clone(), shared, subject, profile, Rc::new(vec![plan]), prng, requests).await;
    }

    /// A rollback or refresh that was cut off may show in what volumes hold, and in nothing else.
    pub async fn read_what_is_in_doubt(&self) {
        let is_in_doubt = || self.records.worlds.borrow().len() > 1 && !self.records.shared.has_failed();
        while is_in_doubt() {
            // what the array tells comes first, when it can tell
            if self.check().await && is_in_doubt() {
                self.tell_by_content().await;
            }
            self.io.sleep(AGAIN).await;
        }
    }

    async fn tell_by_content(&self) {
        let records = &self.records;
        let differing: Vec<String> = {
            let worlds = records.worlds.borrow();
            let differs = |name: &&String| {
                let first = &worlds[0].volumes[*name];
                worlds.iter().any(|state| state.volumes[*name].number != first.number)
            };
            worlds[0].volumes.keys().filter(differs).cloned().collect()
        };
        if differing.is_empty() {
            let worlds = records.worlds.borrow();
            return self.fail(format!("what is the case cannot be told: {worlds:#?}"));
        }
        for name in &differing {
            match self.numbers_held(name).await {
                None => return,
                Some(right) if right.is_empty() => {
                    return self.fail(format!("{name} is neither what it was nor what it was to become"));
                }
                Some(right) => {
                    let fits = |state: &State| right.contains(&state.volumes[name].number);
                    if !records.worlds.borrow().iter().any(fits) {
                        return self
                            .fail(format!("of {differing:?} some are what they were, and some are not"));
                    }
                    records.worlds.borrow_mut().retain(fits);
                }
            }
        }
        // where both are the same, either will do, but for what stands on what
        records.keep_first_world();
    }

    /// Of the numbers that a volume may have, those of which it holds what they hold. `None`: it cannot be read now.
    async fn numbers_held(&self, name: &str) -> Option<Vec<u32>> {
        let numbers: Vec<u32> =
            self.records.worlds.borrow().iter().map(|state| state.volumes[name].number).collect();
        let volume = self.records.state().volumes[name].clone();
        let lun = volume.lun.unwrap_or(lun(volume.id));
        let map = Order::Map { volume: name.to_owned(), lun };
        if volume.lun.is_none() && self.execute(map).await != Outcome::Done {
            return None;
        }
        let mut right = Vec::new();
        for &number in &numbers {
            if self.holds(&volume, lun, &numbers, number).await {
                right.push(number);
            }
        }
        Some(right)
    }

    /// Whether the oracle permits what the volume holds, taken as this number.
    async fn holds(&self, volume: &Volume, lun: u16, numbers: &[u32], number: u32) -> bool {
        let shared = &self.records.shared;
        let touched = |&number: &u32| shared.oracle.borrow().touched_blocks(number).unwrap_or_default();
        let last = numbers.iter().flat_map(touched).max().map_or(0, |block| block + 1);
        let last = last.min(volume.blocks.unwrap_or(last));
        let subject = self.subject(number, lun);
        for first in (0..last).step_by(READ_BLOCKS as usize) {
            let sectors = first * SECTORS_PER_BLOCK..(first + READ_BLOCKS).min(last) * SECTORS_PER_BLOCK;
            loop {
                let ticket = shared.oracle.borrow_mut().begin_read(number, sectors.clone());
                let request = Request::Read { volume: number, sectors: sectors.clone() };
                match subject.execute(request).await {
                    Answer::Data(data) => {
                        if shared.oracle.borrow_mut().end_read(&ticket, &data).is_err() {
                            return false;
                        }
                        break;
                    }
                    _ => shared.oracle.borrow_mut().fail_read(&ticket),
                }
                self.io.sleep(AGAIN).await;
            }
        }
        true
    }
}

/// A volume's number at the administrator's host, which no other ever has.
pub fn lun(id: u32) -> u16 {
    (id % 16_000) as u16
}
