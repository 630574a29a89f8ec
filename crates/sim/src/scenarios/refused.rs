//! File systems under drives that are full: what was refused may yet come to be, and what was acknowledged is.

use base::Nanos;
use pool::Protection;

use super::script::plain_plan;
use super::{Scenario, Script, counted};
use crate::drive::DriveNumber;
use crate::workload::{Failure, Stretch};

const VOLUME: u32 = 1;

fn fill(script: &Script, drives: &[DriveNumber], full: bool) {
    drives.iter().for_each(|&drive| script.world().set_no_space(drive, full));
}

pub const ACKNOWLEDGED_THOUGH_IT_CANNOT_BE_COMPLETED: Scenario = Scenario {
    name: "acknowledged-though-it-cannot-be-completed",
    property: "a batch of which a drive has lost its column, and which cannot be completed because the file system under it is \
               full, counts all the same",
    run: |seed, options| {
        let protection = Protection::ALL[1 + (seed % 4) as usize];
        let drives = usize::from(protection.width_min()) + (seed / 4 % 2) as usize;
        let mut script = Script::new(seed, plain_plan(protection, drives, 400), options);
        let incomplete = || counted("recovery: a batch that lacks a column for now");
        let before = incomplete();
        // both slots of labels and roots have their place from then on
        for _ in 0..4 {
            script.start()?;
            script.write(0, 30)?;
            script.crash(false);
        }
        for round in 0..6 {
            script.start()?;
            script.write(round * 10, 40)?;
            let lossy = script.drive((seed + round) as usize % drives);
            let content = script.world().snapshot(lossy);
            script.write(200 + round * 20, 20)?;
            script.crash(false);
            script.world().put_back(lossy, content);
            fill(&script, &[lossy], true);
            script.begin_start();
            script.simulation.run_for(Nanos::from_secs(2));
            fill(&script, &[lossy], false);
            script.finish_start()?;
            script.verify()?;
            script.converge()?;
            script.crash(true);
        }
        match incomplete() > before {
            true => Ok(()),
            false => Err(Failure::Broken("every batch was whole, or could be completed".to_owned())),
        }
    },
};

pub const REFUSED_COPY_MAY_YET_COME_TO_BE: Scenario = Scenario {
    name: "refused-copy-may-yet-come-to-be",
    property: "what a copy was to refer to stays while the copy, refused because the file system under a drive is full, may \
               still be carried out",
    run: |seed, options| {
        let protection = Protection::ALL[(seed % 5) as usize];
        let mut script = Script::new(seed, plain_plan(protection, 5, 2000), options);
        script.start()?;
        for round in 0..4 {
            script.write(0, 100)?;
            let source = script.snapshot(VOLUME)?;
            script.write(0, 100)?;
            let drives: Vec<DriveNumber> = (0..5).map(|index| script.drive(index)).collect();
            fill(&script, &drives, true);
            let (from, to, blocks) = (0, 300 + round * 200, 100);
            script.copy_range(Stretch { source, destination: VOLUME, from, to, blocks })?;
            script.delete(source)?;
            // what is asked for now waits for room, too
            let (io, world) = (script.io(), script.world());
            script.spawn(async move {
                io.sleep(Nanos::from_secs(1)).await;
                drives.iter().for_each(|&drive| world.set_no_space(drive, false));
            });
            script.forget()?;
            script.pass(Nanos::from_secs(2))?;
            script.converge()?;
            script.verify()?;
            script.crash(round % 2 == 0);
            script.start()?;
            script.verify()?;
        }
        script.audit()
    },
};
