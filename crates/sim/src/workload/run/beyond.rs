//! Runs beyond the promise: more drives are lost, damaged or put back to an older state than the protection allows.
//! Then the pool must notice it, must report it, and must return nothing wrong.
//!
//! - *Absent*: drives disappear while hosts work, and come back. If too many are missing, or have contents from before
//!   the last start, the pool must not open. With the last contents of all drives it must open, and everything
//!   acknowledged is there.
//! - *Damaged*: blocks of any drives rot, below the pool. A read must return an error or the right data. So must every
//!   later start, or the pool must refuse to open. If reads return errors, the pool must report lost data. Labels and
//!   roots are not damaged, and the pool is stopped in an orderly way: if every copy of the newest header is destroyed,
//!   nothing can prove that it existed.

use super::{Runner, Session};
use crate::drive::DriveNumber;
use crate::drive_faults::Snapshot;
use crate::workload::Failure;

use base::Nanos;

/// The first block behind labels and roots.
const FIRST_CHUNK: u64 = (1 << 20) / base::BLOCK_BYTES as u64;

impl Runner<'_> {
    /// The whole run; the pool stands on `drives`, of which it can do without `promised`.
    pub fn run_beyond(&mut self, drives: &[DriveNumber], promised: usize) -> Result<(), Failure> {
        if self.prng.chance(500) {
            for round in 0..=self.course.rounds {
                self.absent_round(round, drives, promised)?;
            }
            let session = self.open(self.course.rounds + 1, false)?.expect("it is not cut off");
            return self.read_all(&session);
        }
        for round in 0..=self.course.rounds {
            if !self.damaged_round(round, drives, promised)? {
                break;
            }
        }
        Ok(())
    }

    fn read_all(&mut self, session: &Session) -> Result<(), Failure> {
        let verified = self.start_verification(session);
        self.finish("verification", || verified.iter().all(|done| done.get()))
    }

    /// More than promised.
    fn too_many(&mut self, drives: &[DriveNumber], promised: usize) -> Vec<DriveNumber> {
        let mut order = drives.to_vec();
        self.prng.shuffle(&mut order);
        order.truncate(self.prng.between(promised as u64 + 1, drives.len() as u64) as usize);
        order
    }

    fn absent_round(&mut self, round: u32, drives: &[DriveNumber], promised: usize) -> Result<(), Failure> {
        let world = self.simulation.world.clone();
        let older: Vec<Snapshot> = drives.iter().map(|&drive| world.snapshot(drive)).collect();
        self.shared.lenient.set(false);
        let session = self.open(round, false)?.expect("it is not cut off");
        self.read_all(&session)?;
        let clients = self.start_clients(&session);
        let target =
            self.shared.answered.get() + self.prng.below(self.course.requests * clients.len() as u64);
        let shared = self.shared.clone();
        let enough = || shared.answered.get() >= target || clients.iter().all(|done| done.get());
        self.finish("clients", enough)?;
        self.shared.lenient.set(true);
        for drive in self.too_many(drives, promised) {
            let back_after = self.prng.chance(300).then(|| Nanos(self.prng.skewed(1_000, 2_000_000_000)));
            // one that is back at once under the same name, without its cache, is one that lies: not meant here
            let handles_survive = back_after.is_none() && self.prng.chance(500);
            world.vanish(drive, back_after, handles_survive);
            let time = Nanos(self.prng.skewed(0, 20_000_000));
            self.pass(time)?;
        }
        if self.prng.chance(500) {
            self.read_all(&session)?;
        }
        let time = Nanos(self.prng.skewed(0, 1_000_000_000));
        self.pass(time)?;
        let witnesses = self.bench.in_service();
        self.end(&session);
        // what the kernel still has in hand of a killed process ends
        self.simulation.run_for(Nanos::from_secs(5));
        drives.iter().for_each(|&drive| world.return_drive(drive));
        let absent = self.too_many(drives, promised);
        absent.iter().for_each(|&drive| world.vanish(drive, None, true));
        self.must_be_refused("with too many drives missing")?;
        absent.iter().for_each(|&drive| world.return_drive(drive));
        if drives.len() > promised + 1 && !witnesses.is_empty() {
            let witness = *self.prng.pick(&witnesses);
            self.put_back_too_many(drives, witness, older, promised)?;
        }
        Ok(())
    }

    /// Drives hold again what they held before this round: the others, this one among them, know better.
    fn put_back_too_many(
        &mut self,
        drives: &[DriveNumber],
        witness: DriveNumber,
        older: Vec<Snapshot>,
        promised: usize,
    ) -> Result<(), Failure> {
        let world = self.simulation.world.clone();
        let others: Vec<DriveNumber> = drives.iter().copied().filter(|&drive| drive != witness).collect();
        let chosen = self.too_many(&others, promised);
        let mut newest = Vec::new();
        for (&drive, snapshot) in drives.iter().zip(older).filter(|(drive, _)| chosen.contains(drive)) {
            newest.push((drive, world.snapshot(drive)));
            world.put_back(drive, snapshot);
        }
        self.must_be_refused("with too many drives of an older life")?;
        newest.into_iter().for_each(|(drive, snapshot)| world.put_back(drive, snapshot));
        Ok(())
    }

    fn must_be_refused(&mut self, how: &str) -> Result<(), Failure> {
        let session = self.bench.start(&mut self.simulation, 0);
        let places: Vec<_> = session.lanes.iter().map(|lane| lane.opening.clone()).collect();
        self.finish("opening", || places.iter().all(|place| place.borrow().is_some()))?;
        let opened = session.lanes.iter().any(|lane| matches!(&*lane.opening.borrow(), Some(Ok(_))));
        self.end(&session);
        self.simulation.run_for(Nanos::from_secs(5));
        if opened { Err(Failure::Broken(format!("the pool opens {how}"))) } else { Ok(()) }
    }

    /// `false`: it cannot be opened, or stopped, any more, and has said so.
    fn damaged_round(
        &mut self,
        round: u32,
        drives: &[DriveNumber],
        promised: usize,
    ) -> Result<bool, Failure> {
        let session = match self.open(round, false) {
            Ok(session) => session.expect("it is not cut off"),
            Err(Failure::NotOpened(_)) if self.shared.lenient.get() => return Ok(false),
            Err(failure) => return Err(failure),
        };
        let clients = self.start_clients(&session);
        let time = Nanos(self.prng.skewed(0, 50_000_000));
        self.pass(time)?;
        self.shared.lenient.set(true);
        let world = self.simulation.world.clone();
        for drive in self.too_many(drives, promised) {
            for _ in 0..self.prng.skewed(1, 200) {
                world.damage_beyond(drive, FIRST_CHUNK);
            }
        }
        if self.prng.chance(300) {
            self.bench.begin_scrub(&world, &session);
        }
        self.finish("clients", || clients.iter().all(|done| done.get()))?;
        self.read_all(&session)?;
        self.loss_must_be_admitted(&session)?;
        let closed = self.bench.close(&world, &session);
        self.finish("closing", || closed.iter().all(|done| done.get()))?;
        let closed_badly = self.bench.closed_badly();
        self.bench.collect(&session);
        world.kill(session.process);
        self.shared.oracle.borrow_mut().crash(false);
        self.simulation.bury();
        Ok(!closed_badly)
    }

    /// What is still an error when nothing happens any more is lost, and must be called so: at once, and a while later.
    fn loss_must_be_admitted(&mut self, session: &Session) -> Result<(), Failure> {
        let refused = self.shared.refused.get();
        self.read_all(session)?;
        if self.shared.refused.get() == refused {
            return Ok(());
        }
        for _ in 0..2 {
            if !self.bench.admits_loss() {
                return Err(Failure::Broken("reads give errors, and the pool calls nothing lost".to_owned()));
            }
            self.pass(Nanos::from_secs(5))?;
        }
        Ok(())
    }

    /// Lets time pass.
    fn pass(&mut self, time: Nanos) -> Result<(), Failure> {
        // nothing is left to happen where every client is done
        let _ = self.step_until(time, || false);
        self.check()
    }
}
