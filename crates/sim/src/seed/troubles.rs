//! The troubles of one run: which fault hits which drive, within the promise.

use std::collections::{BTreeMap, BTreeSet};

use base::Nanos;

use super::plan::Trouble;
use crate::drive::DriveNumber;
use crate::drive_faults::Snapshot;
use crate::fault::FaultRates;
use crate::prng::Prng;
use crate::world::World;

/// See the module's words.
pub struct Troubles {
    kinds: Vec<Trouble>,
    drives: Vec<DriveNumber>,
    /// Those that lossy faults may hit.
    lossy: Vec<DriveNumber>,
    rates: FaultRates,
    bad: BTreeSet<DriveNumber>,
    slow: BTreeSet<DriveNumber>,
    full: BTreeSet<DriveNumber>,
    older: BTreeMap<DriveNumber, Snapshot>,
}

fn toggle(set: &mut BTreeSet<DriveNumber>, drive: DriveNumber) {
    if !set.remove(&drive) {
        set.insert(drive);
    }
}

impl Troubles {
    /// `lossy` are indices of `drives`.
    pub fn new(kinds: &[Trouble], drives: &[DriveNumber], lossy: &[usize], rates: FaultRates) -> Troubles {
        Troubles {
            kinds: kinds.to_vec(),
            drives: drives.to_vec(),
            lossy: lossy.iter().map(|&index| drives[index]).collect(),
            rates,
            bad: BTreeSet::new(),
            slow: BTreeSet::new(),
            full: BTreeSet::new(),
            older: BTreeMap::new(),
        }
    }

    fn set_rates(&self, world: &World, drive: DriveNumber) {
        let mut rates = if self.bad.contains(&drive) { self.rates } else { FaultRates::NONE };
        rates.slow = if self.slow.contains(&drive) { self.rates.slow.max(20) } else { 0 };
        world.set_fault_rates(drive, rates);
    }

    /// Causes one trouble and returns it. The caller carries out changes of memory, because it has the lanes.
    pub fn inject(&mut self, world: &World, prng: &mut Prng) -> Trouble {
        let trouble = *prng.pick(&self.kinds);
        let any = *prng.pick(&self.drives);
        let lossy = (!self.lossy.is_empty()).then(|| *prng.pick(&self.lossy));
        world.note(|| format!("trouble: {trouble:?} {any:?} or {lossy:?}"));
        match (trouble, lossy) {
            (Trouble::Stick, lossy) => {
                let time = prng.skewed(100_000, 3_000_000_000);
                match lossy.filter(|_| time.is_multiple_of(10)) {
                    // so long that it is given up; not so long that a killed process's operations outlast the
                    // patience of a start
                    Some(drive) => world.stick(drive, Nanos(16_000_000_000 + 4 * time)),
                    None => world.stick(any, Nanos(time)),
                }
            }
            (Trouble::Slow, _) => {
                toggle(&mut self.slow, any);
                self.set_rates(world, any);
            }
            (Trouble::NoSpace, lossy) => {
                // redundancy that a full file system keeps from being restored counts as lost
                let drive = lossy.unwrap_or(any);
                toggle(&mut self.full, drive);
                world.set_no_space(drive, self.full.contains(&drive));
            }
            (Trouble::Reset, _) => {
                world.reset_some_connection();
            }
            (Trouble::Vanish, Some(drive)) if world.is_present(drive) => {
                let back_after = prng.chance(500).then(|| Nanos(prng.skewed(1_000, 2_000_000_000)));
                let handles_survive = prng.chance(500);
                // by the clock: the seed's other draws stay what they were
                match world.now().0 {
                    now if now.is_multiple_of(4) => {
                        let errors_for = Nanos(now % 1_500_000_000);
                        world.pull(drive, errors_for, back_after, handles_survive);
                    }
                    _ => world.vanish(drive, back_after, handles_survive),
                }
            }
            (Trouble::Vanish, Some(drive)) => world.return_drive(drive),
            (Trouble::BadSpell, Some(drive)) => {
                toggle(&mut self.bad, drive);
                self.set_rates(world, drive);
            }
            (Trouble::Rot, Some(drive)) => (0..prng.skewed(1, 50)).for_each(|_| world.rot_somewhere(drive)),
            (Trouble::Latent, Some(drive)) => {
                (0..prng.skewed(1, 50)).for_each(|_| world.spoil_somewhere(drive))
            }
            (Trouble::Overwrite, Some(drive)) => {
                world.overwrite(drive, *prng.pick(&[1, 10, 500, 1000]));
            }
            (Trouble::PutBack, Some(drive)) => match self.older.remove(&drive) {
                Some(snapshot) => world.put_back(drive, snapshot),
                None => drop(self.older.insert(drive, world.snapshot(drive))),
            },
            (Trouble::Memory, _) | (_, None) => {}
        }
        trouble
    }

    /// Ends everything that lasts; drives that have vanished are there again.
    pub fn heal(&mut self, world: &World) {
        self.bad.clear();
        self.slow.clear();
        self.full.clear();
        for &drive in &self.drives {
            self.set_rates(world, drive);
            world.set_no_space(drive, false);
            world.return_drive(drive);
        }
    }
}
