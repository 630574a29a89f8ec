//! Power cuts and kills at chosen moments.

use pool::Protection;

use super::script::plain_plan;
use super::{Scenario, Script};
use crate::seed::Options;
use crate::workload::Failure;

/// Where the two root slots of the first lane begin.
pub(super) const ROOT_BLOCKS: [u64; 2] = [32, 36];
/// Events that a small write takes, roughly; a cut is tried after each of as many.
const EVENTS_OF_A_WRITE: u64 = 40;

pub const POWER_CUT_AFTER_EVERY_WRITE: Scenario = Scenario {
    name: "power-cut-after-every-write",
    property: "wherever in a write the power goes, what was acknowledged is there and the rest is whole or absent",
    run: |seed, options| {
        let protection = Protection::ALL[(seed % 5) as usize];
        let mut script = Script::new(seed, plain_plan(protection, 5, 64), options);
        script.start()?;
        script.write(0, 32)?;
        for cut in 0..EVENTS_OF_A_WRITE {
            let block = cut % 30;
            script.begin_write(block, 3);
            script.begin_write(block + 1, 1);
            script.steps(cut);
            script.crash(true);
            script.start()?;
            script.verify()?;
        }
        Ok(())
    },
};

pub const KILL_DURING_RECOVERY: Scenario = Scenario {
    name: "kill-during-recovery",
    property: "a start that is cut off at any point leaves a pool that the next start opens, with everything in it",
    run: |seed, options| {
        let protection = Protection::ALL[(seed % 5) as usize];
        let mut script = Script::new(seed, plain_plan(protection, 5, 300), options);
        script.start()?;
        script.write(0, 200)?;
        for cut in 0..60 {
            script.crash(cut % 2 == 0);
            script.begin_start();
            script.steps(cut * 3);
        }
        script.crash(true);
        script.start()?;
        script.verify()
    },
};

pub const CHECKPOINT_CUT_OFF: Scenario = Scenario {
    name: "checkpoint-cut-off",
    property: "a checkpoint that does not finish changes nothing",
    run: |seed, options: Options| {
        let mut plan = plain_plan(Protection::Parity1, 4, 2_000);
        plan.checkpoint_interval = base::Nanos::from_millis(1);
        let mut script = Script::new(seed, plan, options);
        script.start()?;
        for round in 0..25 {
            script.write(round * 64 % 1_900, 64)?;
            script.begin_write(round * 7, 5);
            script.steps(round * 9);
            script.crash(round % 3 > 0);
            script.start()?;
        }
        script.verify()
    },
};

pub const TORN_BATCH_STAYS_DROPPED: Scenario = Scenario {
    name: "torn-batch-stays-dropped",
    property: "what one recovery did not find, no later one does; what it found, every later one does",
    run: |seed, options| {
        let mut script = Script::new(seed, plain_plan(Protection::Parity2, 5, 64), options);
        script.start()?;
        script.write(0, 16)?;
        for round in 0..20 {
            for block in 0..6 {
                script.begin_write(block * 2, 2);
            }
            script.steps(30 + round);
            script.crash(true);
            // reading fixes what is there; the crashes in between must not change it
            for _ in 0..3 {
                script.start()?;
                script.verify()?;
                script.crash(round % 2 == 0);
            }
            script.start()?;
        }
        script.verify()
    },
};

pub const STALE_EPOCH_IS_NOT_REPLAYED: Scenario = Scenario {
    name: "stale-epoch-is-not-replayed",
    property: "a checkpoint that only an absent drive has is not taken for the newest when that drive comes back",
    run: |seed, options| {
        let mut plan = plain_plan(Protection::Parity1, 4, 64);
        plan.checkpoint_interval = base::Nanos::from_millis(1);
        let mut script = Script::new(seed, plan, options);
        script.start()?;
        for round in 0..80 {
            // the owner dies when the first drive has the root of a checkpoint; the others may get it or not
            script.write(round % 30, 2)?;
            let roots = |script: &Script, drive| ROOT_BLOCKS.map(|block| script.world().peek(drive, block));
            let drives: Vec<_> = (0..4).map(|index| script.drive(index)).collect();
            let before: Vec<_> = drives.iter().map(|&drive| roots(&script, drive)).collect();
            let first = loop {
                let changed = |&index: &usize| roots(&script, drives[index]) != before[index];
                match (0..4).find(changed) {
                    Some(index) => break index,
                    None => script.steps(1),
                }
            };
            script.crash(false);
            // the next owner goes on without one drive, the one after it with all
            let absent = script.drive(first);
            script.world().vanish(absent, None, true);
            script.start()?;
            script.write(round % 20, 3)?;
            script.crash(round % 2 == 0);
            script.world().return_drive(absent);
            script.start()?;
            script.verify()?;
        }
        Ok(())
    },
};

pub const HEADERS_OF_ANOTHER_LIFE: Scenario = Scenario {
    name: "headers-of-another-life",
    property: "a start that is cut off leaves batches in segments that the next start uses under the same ids: drives which \
               lost what was written there since do not end the log",
    run: |seed, options| {
        let protection = Protection::ALL[1 + (seed % 4) as usize];
        let drives = usize::from(protection.width_min()) + (seed / 4 % 2) as usize;
        let mut script = Script::new(seed, plain_plan(protection, drives, 2_000), options);
        script.start()?;
        for round in 0..30 {
            write_everywhere(&mut script, round)?;
            script.crash(false);
            // without one drive, batches are narrower, and have more rows than those of the next start
            let away = (round as usize + 1) % drives;
            let narrow = round % 2 == 1;
            if narrow {
                script.world().vanish(script.drive(away), None, false);
            }
            let there = script.drive((away + 1) % drives);
            let roots = |script: &Script| ROOT_BLOCKS.map(|block| script.world().peek(there, block));
            let before = roots(&script);
            script.begin_start();
            // the verdict is written, and something of the checkpoint behind it
            while roots(&script) == before {
                script.steps(1);
            }
            script.operations((seed + round * 7) % (4 * drives as u64));
            script.crash(false);
            script.world().return_drive(script.drive(away));
            let stale: Vec<_> = (1..=usize::from(protection.parity()))
                .map(|spare| script.drive((away + spare) % drives))
                .map(|drive| (drive, script.world().snapshot(drive)))
                .collect();
            script.start()?;
            write_everywhere(&mut script, round + 5)?;
            script.crash(false);
            for (drive, content) in stale {
                script.world().put_back(drive, content);
            }
            script.start()?;
            script.verify()?;
            script.converge()?;
            script.scrub()?;
            script.converge()?;
        }
        Ok(())
    },
};

/// Writes some blocks under each page of the map.
fn write_everywhere(script: &mut Script, block: u64) -> Result<(), Failure> {
    (0..7).try_for_each(|page| script.write(page * 256 + block, 4))
}
