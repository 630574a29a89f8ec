//! The partner of the world: its drives, the connection to it, and what goes wrong there.

use std::collections::BTreeMap;

use pair::Term;

use super::{BLOCK_BYTES, BLOCKS, DRIVES, Far, Phase, Request, World, apply, geometry, id};
use crate::message::TwinNews;
use crate::record::Record;
use crate::tests::drives::Drive;
use crate::twin::TwinState;

impl World {
    pub(super) fn deliver(&mut self) {
        let Some(far) = self.wire.pop_front() else { return };
        self.side.begin(Term(self.starts + 1)).expect("the term of this connection");
        self.far_work.push((far, true));
    }

    pub(super) fn end_far_work(&mut self) {
        if self.far_work.is_empty() {
            return;
        }
        let index = self.prng.index(self.far_work.len());
        let (far, counts) = self.far_work.swap_remove(index);
        let is_done = self.apply_far(&far);
        self.side.ended();
        if counts {
            self.answers.push((far, is_done));
        }
    }

    /// Whether the drive took it.
    pub(super) fn apply_far(&mut self, far: &Far) -> bool {
        let partner = self.partner();
        match far {
            Far::Request(_, Request { drive, .. }) | Far::Copy { drive, .. } if self.failed[*drive] => {
                return false;
            }
            Far::Request(_, request) => apply(&mut self.sides[partner], request),
            Far::Copy { drive, first, values, .. } => {
                for (index, &value) in values.iter().enumerate() {
                    self.sides[partner][*drive].write(first + index, value, true);
                }
            }
            Far::Joined { synchrony, drives } => {
                for &index in drives.iter().filter(|&&drive| !self.failed[drive]) {
                    let drive = &mut self.sides[partner][index];
                    let generation = drive.record().map_or(0, |record| record.generation) + 1;
                    let marked = crate::Bits::empty(geometry().regions());
                    let region_bytes = geometry().region_bytes();
                    let synchrony = *synchrony;
                    drive.write_record(Record {
                        twin: id(index),
                        generation,
                        synchrony,
                        region_bytes,
                        mirrored_bytes: geometry().drive_bytes(),
                        marked,
                    });
                }
            }
        }
        true
    }

    pub(super) fn fail_drive(&mut self) {
        self.met.failed_drives += 1;
        let drive = self.prng.index(DRIVES);
        self.failed[drive] = true;
    }

    /// Failed drives are there again, as they were but for their caches. The partner opens them anew, and ends the connection.
    pub(super) fn return_drives(&mut self) {
        let partner = self.partner();
        for drive in (0..DRIVES).filter(|&drive| self.failed[drive]).collect::<Vec<_>>() {
            self.met.returned_drives += 1;
            self.sides[partner][drive].lose_power(&mut self.prng);
            self.open_again(drive);
        }
    }

    /// Failed drives are replaced by blank ones, likewise.
    pub(super) fn replace_drives(&mut self) {
        let partner = self.partner();
        for drive in 0..DRIVES {
            if self.mirror.twin_state(drive) == TwinState::Out {
                self.sides[partner][drive] = Drive::new(BLOCKS);
                self.open_again(drive);
            }
        }
    }

    fn open_again(&mut self, drive: usize) {
        (self.failed[drive], self.openings[drive]) = (false, self.openings[drive] + 1);
        self.forget_requests_to(drive);
        self.disconnect();
    }

    /// Requests name the drive that they are for: those to the one before do not reach the new one.
    pub(super) fn forget_requests_to(&mut self, failed: usize) {
        let is_other = |far: &Far| match far {
            Far::Request(_, Request { drive, .. }) | Far::Copy { drive, .. } => *drive != failed,
            Far::Joined { .. } => true,
        };
        for far in self.wire.iter_mut().chain(self.far_work.iter_mut().map(|(far, _)| far)) {
            if let Far::Joined { drives, .. } = far {
                drives.retain(|&drive| drive != failed);
            }
        }
        self.wire.retain(is_other);
        let before = self.far_work.len();
        self.far_work.retain(|(far, _)| is_other(far));
        (self.far_work.len()..before).for_each(|_| self.side.ended());
    }

    pub(super) fn connect(&mut self) {
        if self.is_connected || self.side.accept(Term(self.starts + 1)).is_err() {
            return;
        }
        self.is_connected = true;
        let is_same_start = self.seen_start == self.starts;
        if self.phase == Phase::Alone {
            self.phase = Phase::Copying;
            self.mirror.copy();
        } else {
            self.met.brief_cuts += 1;
        }
        let partner = &self.sides[self.partner()];
        let says = |(drive, failed): (&Drive, &bool)| match failed {
            true => TwinNews::Absent,
            false => TwinNews::There { opening: 0, record: drive.record() },
        };
        let mut records: BTreeMap<usize, TwinNews> =
            partner.iter().zip(&self.failed).map(says).enumerate().collect();
        for (index, news) in &mut records {
            if let TwinNews::There { opening, .. } = news {
                *opening = self.openings[*index];
            }
        }
        let is_out = |drive| self.mirror.twin_state(drive) == TwinState::Out;
        let was_out: Vec<usize> = (0..DRIVES).filter(|&drive| is_out(drive)).collect();
        if self.mirror.on_partner(&records, is_same_start) {
            self.seen_start = self.starts;
            self.known_openings = self.openings;
        }
        let is_filled = |&&drive: &&usize| self.mirror.twin_state(drive) == TwinState::Filling;
        self.met.filled_drives += was_out.iter().filter(is_filled).count() as u32;
        let bytes = self.mirror.lacking_bytes();
        self.met.partial_copies += u32::from(bytes > 0 && bytes < BLOCKS as u64 * BLOCK_BYTES);
    }

    pub(super) fn disconnect(&mut self) {
        self.is_connected = false;
        self.wire.clear();
        self.answers.clear();
        self.far_work.iter_mut().for_each(|(_, counts)| *counts = false);
        self.side.refuse();
    }

    /// The work of a machine that loses its power may have been done.
    pub(super) fn lose_far_work(&mut self) {
        for (far, _) in std::mem::take(&mut self.far_work) {
            if self.prng.chance(500) {
                self.apply_far(&far);
            }
            self.side.ended();
        }
    }

    pub(super) fn restart_partner(&mut self) {
        self.met.partner_restarts += 1;
        self.disconnect();
        self.lose_far_work();
        let partner = self.partner();
        self.sides[partner].iter_mut().for_each(|drive| drive.lose_power(&mut self.prng));
        self.starts += 1;
        if self.phase != Phase::InSync || self.prng.chance(500) {
            self.leave();
        } else if self.prng.chance(700) {
            self.lose_owner_before_it_knows();
        }
    }

    /// The owner ends soon after the partner's start; maybe it has asked it for something.
    fn lose_owner_before_it_knows(&mut self) {
        for _ in 0..150 {
            match self.prng.below(7) {
                0 => self.submit_flush(),
                1 => self.connect(),
                2 => self.deliver(),
                3 => self.end_far_work(),
                4 => self.end_own_work(),
                5 => self.submit_write(),
                _ => self.answer(),
            }
            self.follow_orders();
        }
        self.lose_owner();
    }

    /// The partner takes over without the drives that had failed, or were being filled. The pool would rebuild their content.
    pub(super) fn lose_unsound_drives(&mut self) {
        let partner = self.partner();
        for drive in 0..DRIVES {
            if self.failed[drive] || self.mirror.twin_state(drive) != TwinState::Sound {
                self.met.takeovers_without_a_drive += 1;
                self.sides[partner][drive] = Drive::new(BLOCKS);
                self.acknowledged[drive] = vec![0; BLOCKS];
                self.durable[drive] = vec![0; BLOCKS];
            }
        }
        // the drives of the other head are its own
        self.failed = [false; DRIVES];
    }
}
