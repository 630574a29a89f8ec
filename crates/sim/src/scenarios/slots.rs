//! Labels and roots have two slots on each drive, so that a write that is cut off leaves the previous version intact.

use pool::Protection;

use super::script::plain_plan;
use super::{Scenario, Script};
use crate::drive::{DriveNumber, DriveOptions};
use crate::seed::Order;
use crate::workload::Failure;

/// Two slots of something that is on every drive of the pool.
struct Slots {
    what: &'static str,
    blocks: [u64; 2],
    /// Where in the block its epoch and its generation stand (`docs/format.md`).
    epoch_at: usize,
    generation_at: usize,
}

const LABELS: Slots = Slots { what: "label", blocks: [4, 8], epoch_at: 72, generation_at: 64 };
const ROOTS: Slots = Slots { what: "root", blocks: [32, 36], epoch_at: 36, generation_at: 44 };
/// Events until a pool of a few drives has opened, and more.
const EVENTS_OF_A_START: u64 = 700;

impl Slots {
    /// The ranks of what is in the two slots of a drive. Nothing ranks lowest.
    fn ranks(&self, script: &Script, drive: DriveNumber) -> [(u64, u64); 2] {
        self.blocks.map(|block| {
            let content = script.world().peek(drive, block);
            let number = |at: usize| u64::from_le_bytes(content[at..at + 8].try_into().expect("8 bytes"));
            (number(self.epoch_at), number(self.generation_at))
        })
    }
}

/// Lets events happen, none of which may change the newer one of two slots. A kill leaves a write whole or undone, so
/// that what is in a slot can be told.
fn steps_watched(script: &mut Script, drives: usize, count: u64) -> Result<(), Failure> {
    let ranks = |script: &Script| -> Vec<[(u64, u64); 2]> {
        let all = (0..drives).map(|drive| script.drive(drive));
        all.flat_map(|drive| [LABELS.ranks(script, drive), ROOTS.ranks(script, drive)]).collect()
    };
    let mut before = ranks(script);
    for _ in 0..count {
        script.steps(1);
        let after = ranks(script);
        for (index, (before, after)) in before.iter().zip(&after).enumerate() {
            let newest = usize::from(before[1] > before[0]);
            if before[newest] != (0, 0) && after[newest] != before[newest] {
                let what = [LABELS.what, ROOTS.what][index % 2];
                return Err(Failure::Broken(format!(
                    "the newest {what} of drive {} is overwritten: {before:?} becomes {after:?}",
                    index / 2
                )));
            }
        }
        before = after;
    }
    Ok(())
}

pub const NEWEST_IS_NOT_OVERWRITTEN: Scenario = Scenario {
    name: "newest-is-not-overwritten",
    property: "whatever was cut off before, no label and no root is written over the newest that its drive has",
    run: |seed, options| {
        let protection = Protection::ALL[(seed % 5) as usize];
        let drives = usize::from(protection.width_min()).max(2) + (seed / 5 % 3) as usize;
        let mut script = Script::new(seed, plain_plan(protection, drives, 64), options);
        script.start()?;
        script.write(0, 30)?;
        for cut in 0..EVENTS_OF_A_START {
            // a start that some drives have heard of and others have not; the next one meets that
            script.crash(false);
            script.begin_start();
            steps_watched(&mut script, drives, cut)?;
            script.crash(false);
            script.begin_start();
            steps_watched(&mut script, drives, EVENTS_OF_A_START)?;
        }
        // each drive that joins has had its first label before the others hear of it
        for joining in 0..5 {
            script.crash(false);
            script.start()?;
            let (world, path) = (script.world(), format!("/sim/added{joining}"));
            script.bench.plug_in(&world, DriveOptions::new(&path, 24 << 20));
            script.order(Order::Add(path));
            steps_watched(&mut script, drives, 20 + seed % 50)?;
        }
        script.crash(true);
        script.start()?;
        script.verify()
    },
};
