//! An administrator's commands on a pool while hosts use it: drives are added, emptied and replaced, scrubs run, and
//! spares are named; drives also become slow, and the array empties them automatically.
//!
//! A random source of its own decides, so the rest of an array seed is the same as without commands.

use api::Command;
use api::{NewSettings, Upkeep};

use crate::drive::DriveOptions;
use crate::prng::Prng;
use crate::seed::Plan;
use crate::world::World;

const SPARES: usize = 2;

/// See the module's words.
pub struct Orders {
    prng: Prng,
    /// Of a thousand troubles, so many bring an order along; 0: this seed has none.
    rate: u32,
}

impl Orders {
    pub fn draw(seed: u64) -> Orders {
        let mut prng = Prng::new(seed ^ 0x6F72_6465_7273);
        let rate = *prng.pick(&[0, 100, 300, 1000]);
        Orders { prng, rate }
    }

    /// There are none.
    pub fn none() -> Orders {
        Orders { prng: Prng::new(0), rate: 0 }
    }

    /// Whether this seed has any.
    pub fn any(&self) -> bool {
        self.rate > 0
    }

    /// Puts spare drives into the machine.
    pub fn add_spares(&mut self, plan: &Plan, world: &World) {
        for path in self.spares() {
            let model = &plan.drives[self.prng.index(plan.drives.len())];
            world.add_drive(DriveOptions { path, ..model.clone() });
        }
    }

    fn spares(&self) -> Vec<String> {
        let count = if self.rate > 0 { SPARES } else { 0 };
        (0..count).map(|index| format!("/sim/spare{index}")).collect()
    }

    /// Every drive that the array looks at.
    pub fn paths(&self, plan: &Plan) -> Vec<String> {
        let members = plan.drives.iter().map(|options| options.path.clone());
        members.chain(self.spares()).collect()
    }

    /// A drive that is to be so many times slower from now on, by its number in the plan.
    pub fn draw_slowness(&mut self, plan: &Plan) -> Option<(usize, u64)> {
        let due = self.prng.chance(self.rate / 50);
        due.then(|| (self.prng.index(plan.drives.len()), *self.prng.pick(&[1, 10, 50])))
    }

    /// The next order, if one is due.
    pub fn draw_order(&mut self, plan: &Plan) -> Option<Command> {
        if !self.prng.chance(self.rate) {
            return None;
        }
        let (paths, spares) = (self.paths(plan), self.spares());
        let prng = &mut self.prng;
        let (one, other) = (prng.pick(&paths).clone(), prng.pick(&paths).clone());
        // a drive that may be lost is not made another member: it could be lost twice, which is one loss too many
        let may_be_lost = |path: &String| plan.lossy.iter().any(|&index| plan.drives[index].path == *path);
        let new = |path: &String| if may_be_lost(path) { "/sim/spare0".to_owned() } else { path.clone() };
        let pool = || "pool".to_owned();
        let upkeep = match prng.below(12) {
            0 => {
                // so quickly that it happens within a run
                let settings = NewSettings {
                    slow_factor: Some(4),
                    slow_latency_ms: Some(1),
                    slow_seconds: Some(1),
                    ..NewSettings::default()
                };
                Upkeep::Set { pool: pool(), settings }
            }
            11 => Upkeep::Upgrade { pool: pool() },
            8 | 1 => Upkeep::Scrub { pool: pool(), stop: prng.chance(300) },
            2 | 3 => Upkeep::DriveAdd { pool: pool(), drives: vec![new(&one)], force: vec![new(&one)] },
            4 | 5 => Upkeep::DriveRemove { pool: pool(), drive: one, cancel: prng.chance(200) },
            9 | 10 => {
                let drives = vec![prng.pick(&spares).clone()];
                Upkeep::Spare { pool: pool(), drives, release: prng.chance(200) }
            }
            _ => Upkeep::DriveReplace { pool: pool(), old: one, new: new(&other), force: true },
        };
        Some(Command::Upkeep { upkeep, dry_run: false })
    }
}
