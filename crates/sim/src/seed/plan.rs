//! What one seed decides before anything runs: the pool, its drives, the load and the faults.
//!
//! Faults that lose data or redundancy ("lossy" faults) hit a fixed set of drives for the whole run. The set is no
//! larger than the protection promises, so every acknowledged byte must stay readable, whatever these drives do.

use base::Nanos;
use pool::{Patience, Protection};

use crate::drive::DriveOptions;
use crate::fault::FaultRates;
use crate::prng::Prng;
use crate::workload::{Course, Profile, VolumePlan};

/// Kinds of trouble that a run may draw from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Trouble {
    /// A lossy drive is pulled; it may come back.
    Vanish,
    /// A lossy drive returns errors, loses or misdirects writes, or rots, for a while.
    BadSpell,
    /// Bits of a lossy drive flip.
    Rot,
    /// Places of a lossy drive become unreadable.
    Latent,
    /// Any drive answers nothing for a while.
    Stick,
    /// Any drive is slow for a while.
    Slow,
    /// The file system under a drive is full for a while.
    NoSpace,
    /// A connection breaks.
    Reset,
    /// Garbage is written over a lossy drive from outside, its labels first.
    Overwrite,
    /// A lossy drive is put back to its earlier contents.
    PutBack,
    /// The maps get more memory or less.
    Memory,
}

impl Trouble {
    /// Drawn first. The others are drawn last, so that seeds without them stay the same.
    pub const COMMON: [Trouble; 8] = [
        Trouble::Vanish,
        Trouble::BadSpell,
        Trouble::Rot,
        Trouble::Latent,
        Trouble::Stick,
        Trouble::Slow,
        Trouble::NoSpace,
        Trouble::Reset,
    ];

    /// Every kind.
    pub const ALL: [Trouble; 11] = [
        Trouble::Vanish,
        Trouble::BadSpell,
        Trouble::Rot,
        Trouble::Latent,
        Trouble::Stick,
        Trouble::Slow,
        Trouble::NoSpace,
        Trouble::Reset,
        Trouble::Overwrite,
        Trouble::PutBack,
        Trouble::Memory,
    ];

    /// As the command line calls it.
    pub fn name(self) -> String {
        format!("{self:?}").to_lowercase()
    }
}

/// One run, decided.
#[derive(Clone, Debug)]
pub struct Plan {
    pub protection: Protection,
    pub width: Option<u8>,
    pub drives: Vec<DriveOptions>,
    /// Indices of the drives that lossy faults may hit.
    pub lossy: Vec<usize>,
    pub lanes: u16,
    pub shards: u16,
    pub chunk_bytes: u64,
    pub map_budget_bytes: usize,
    pub checkpoint_interval: Nanos,
    pub patience: Patience,
    /// The same volumes in every lane, each lane with data of its own.
    pub volumes: Vec<VolumePlan>,
    pub troubles: Vec<Trouble>,
    pub rates: FaultRates,
    pub course: Course,
    pub profile: Profile,
    /// Snapshots are taken, clones made, and both deleted, while the clients go on.
    pub administrator: bool,
}

/// Parts that are left out of a run, to find those that a failure needs.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Trim {
    pub without: Vec<Trouble>,
    pub rounds: Option<u32>,
    pub requests: Option<u64>,
    pub depth: Option<u32>,
    pub volumes: Option<usize>,
    pub one_lane: bool,
}

const MIB: u64 = 1 << 20;
/// For the map of a lane, in bytes.
pub(super) const MAP_BUDGETS: [usize; 3] = [64 << 10, 256 << 10, 16 << 20];

impl Plan {
    /// Draws a plan; `only` overrides the protection that the seed would have.
    pub fn draw(prng: &mut Prng, only: Option<Protection>) -> Plan {
        let drawn = *prng.pick(&Protection::ALL);
        let protection = only.unwrap_or(drawn);
        let min = u64::from(protection.width_min());
        let count = prng.skewed(min, min + 4) as usize;
        let width = draw_width(protection, count, prng);
        let lanes = prng.skewed(1, 3) as u16;
        let size = *prng.pick(&[24, 40, 64, 160]) * u64::from(lanes) * MIB;
        let mixed = prng.chance(300);
        let (volatile_cache, litter, tearing) = (prng.chance(700), prng.chance(400), prng.chance(800));
        let drives: Vec<DriveOptions> = (0..count)
            .map(|index| {
                let size_bytes = if mixed { size + prng.below(size / MIB) * MIB } else { size };
                let options = DriveOptions::new(&format!("/sim/drive{index}"), size_bytes);
                DriveOptions { volatile_cache, litter, tearing, ..options }
            })
            .collect();
        let mut troubles: Vec<Trouble> = Trouble::COMMON.into_iter().filter(|_| prng.chance(450)).collect();
        let mut course = Course::draw(prng);
        if prng.chance(750) && !troubles.is_empty() {
            course.fault_interval = Some(Nanos(*prng.pick(&[500_000, 5_000_000, 100_000_000])));
        }
        let plan = Plan {
            protection,
            width,
            lossy: draw_lossy(protection, count, prng),
            lanes,
            shards: prng.between(1, u64::from(lanes)) as u16,
            chunk_bytes: *prng.pick(&[64 << 10, 64 << 10, 256 << 10]),
            map_budget_bytes: *prng.pick(&MAP_BUDGETS),
            checkpoint_interval: Nanos(*prng.pick(&[2_000_000, 50_000_000, 30_000_000_000])),
            patience: Patience::default(),
            volumes: draw_volumes(&drives, lanes, prng),
            drives,
            troubles: Vec::new(),
            rates: draw_rates(prng),
            course,
            profile: Profile::draw(prng),
            administrator: false,
        };
        troubles.extend(prng.chance(200).then_some(Trouble::Overwrite));
        troubles.extend(prng.chance(200).then_some(Trouble::PutBack));
        let lying_flush = if prng.chance(300) { *prng.pick(&[50, 500, 1000]) } else { 0 };
        let patience = draw_patience(prng);
        let administrator = prng.chance(600);
        troubles.extend(prng.chance(200).then_some(Trouble::Memory));
        Plan { troubles, rates: FaultRates { lying_flush, ..plan.rates }, patience, administrator, ..plan }
    }

    /// Leaves out the parts that the person who debugs a failure has named.
    pub fn trim(&mut self, trim: &Trim) {
        self.troubles.retain(|trouble| !trim.without.contains(trouble));
        if self.troubles.is_empty() {
            self.course.fault_interval = None;
        }
        self.course.rounds = self.course.rounds.min(trim.rounds.unwrap_or(u32::MAX));
        self.course.requests = self.course.requests.min(trim.requests.unwrap_or(u64::MAX));
        self.course.depth = self.course.depth.min(trim.depth.unwrap_or(u32::MAX));
        self.volumes.truncate(trim.volumes.unwrap_or(usize::MAX).max(1));
        if trim.one_lane {
            (self.lanes, self.shards) = (1, 1);
        }
    }

    pub fn has(&self, trouble: Trouble) -> bool {
        self.troubles.contains(&trouble)
    }
}

fn draw_width(protection: Protection, drives: usize, prng: &mut Prng) -> Option<u8> {
    if prng.chance(500) {
        return None;
    }
    let min = protection.width_min();
    let max = protection.width(drives, None).map_or(min, |width| width.max(min));
    Some(prng.between(u64::from(min), u64::from(max)) as u8)
}

fn draw_lossy(protection: Protection, drives: usize, prng: &mut Prng) -> Vec<usize> {
    let mut order: Vec<usize> = (0..drives).collect();
    prng.shuffle(&mut order);
    let promised = usize::from(protection.parity());
    order.truncate(if prng.chance(700) { promised } else { prng.index(promised + 1) });
    order.sort_unstable();
    order
}

fn draw_rates(prng: &mut Prng) -> FaultRates {
    let mut some = |rates: &[u32]| if prng.chance(400) { *prng.pick(rates) } else { 0 };
    FaultRates {
        read_error: some(&[5, 50, 300]),
        write_error: some(&[5, 50, 500]),
        lost_write: some(&[5, 50, 500]),
        misdirected_write: some(&[5, 50]),
        bit_rot: some(&[5, 100, 500]),
        lying_flush: 0,
        slow: some(&[5, 50]),
    }
}

fn draw_patience(prng: &mut Prng) -> Patience {
    let usual = Patience::default();
    if prng.chance(700) {
        return usual;
    }
    let (write_errors, read_errors, checksum_errors) =
        (*prng.pick(&[1, 2]), *prng.pick(&[1, 3, 10]), *prng.pick(&[1, 3, 10]));
    Patience { write_errors, read_errors, checksum_errors, ..usual }
}

fn draw_volumes(drives: &[DriveOptions], lanes: u16, prng: &mut Prng) -> Vec<VolumePlan> {
    // from far too small for cleaning to matter up to more than fits
    let bytes: u64 = drives.iter().map(|drive| drive.size_bytes).sum::<u64>() / u64::from(lanes);
    let most = bytes / base::BLOCK_BYTES as u64 / drives.len() as u64;
    let count = prng.skewed(1, 3);
    let volume = |index: u64| VolumePlan {
        volume: index as u32,
        blocks: *prng.pick(&[20, 300, 2_000, most / 2, most * 2]),
        write_back: prng.chance(300),
    };
    (1..=count).map(volume).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_plan_keeps_lossy_faults_within_the_promise() {
        let mut seen = std::collections::BTreeSet::new();
        for seed in 0..500 {
            let plan = Plan::draw(&mut Prng::new(seed), None);
            assert!(plan.lossy.len() <= usize::from(plan.protection.parity()));
            assert!(plan.lossy.iter().all(|&index| index < plan.drives.len()));
            assert!(plan.protection.width(plan.drives.len(), plan.width).is_ok(), "seed {seed}: {plan:?}");
            assert!(plan.shards <= plan.lanes && plan.shards > 0);
            seen.insert((plan.protection.to_string(), plan.lossy.len()));
        }
        assert_eq!(seen.len(), 1 + 2 + 3 + 2 + 3, "{seen:?}");
    }
}
