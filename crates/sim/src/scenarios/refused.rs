//! No space below drives: refused writes never take effect, and acknowledged writes stay.

use base::Nanos;
use pool::Protection;

use super::script::plain_plan;
use super::{Scenario, Script, counted};
use crate::drive::DriveNumber;
use crate::workload::{Failure, Stretch};

const VOLUME: u32 = 1;
/// Longer than any write may wait to be told that there is no space.
const ANSWER_WITHIN: Nanos = Nanos::from_secs(5);

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

pub const REFUSED_WRITES_DO_NOT_LAND_LATER: Scenario = Scenario {
    name: "refused-writes-do-not-land-later",
    property: "what was refused for want of space below one drive or all of them is there or not from then on, also when there is \
               space again, and after a restart with drives of an older state",
    run: |seed, options| {
        let protection = Protection::ALL[(seed % 5) as usize];
        let drives = usize::from(protection.width_min()).max(3) + (seed / 5 % 2) as usize;
        let mut plan = plain_plan(protection, drives, 4000);
        plan.volumes[0].write_back = seed % 3 == 0;
        let mut script = Script::new(seed, plan, options);
        script.start()?;
        let taken_out = || counted("write: what was refused taken out of its batch");
        let before = taken_out();
        for round in 0..6 {
            script.write(0, 200)?;
            let short = if round % 2 == 0 { drives } else { 1 + (seed as usize + round) % drives };
            let full: Vec<DriveNumber> = (0..short).map(|index| script.drive(index)).collect();
            // some are on their way when the space ends
            let mut writes: Vec<_> = (0..12u64).map(|n| script.begin_write(n * 40, 60)).collect();
            script.steps((seed * 17 + round as u64 * 7) % 60);
            fill(&script, &full, true);
            writes.extend((0..6u64).map(|n| script.begin_write(n * 30 + round as u64 * 300, 200)));
            // what this one was given stays as it is
            let away = script.drive((seed as usize + round) % drives);
            let goes = protection.parity() > 0 && round % 3 != 2;
            if goes {
                script.steps((seed * 5 + round as u64 * 11) % 40);
                script.world().vanish(away, None, false);
            }
            let (world, deadline) = (script.world(), script.world().now() + ANSWER_WITHIN);
            let answered = || writes.iter().all(|done| done.get());
            script.until("writes are answered", || answered() || world.now() > deadline)?;
            // with a drive away it may have to wait for space to be told
            if !answered() && !goes {
                return Err(Failure::Broken("a write is neither done nor refused".to_owned()));
            }
            script.verify()?;
            let refused = script.shared.out_of_space.get();
            let crashes = goes || !(seed + round as u64).is_multiple_of(3);
            if crashes {
                script.crash(round % 2 == 0);
            }
            fill(&script, &full, false);
            if goes {
                script.world().return_drive(away);
            }
            if crashes {
                script.start()?;
            }
            script.pass(Nanos::from_secs(5))?;
            script.verify()?;
            if refused == 0 {
                return Err(Failure::Broken("no write was refused".to_owned()));
            }
        }
        match taken_out() > before {
            true => script.audit(),
            false => Err(Failure::Broken("nothing was taken out of a batch".to_owned())),
        }
    },
};

pub const REFUSED_COPY_DOES_NOT_COME_TO_BE: Scenario = Scenario {
    name: "refused-copy-does-not-come-to-be",
    property: "a copy that was refused because there is no space below the drives is not carried out later, when what it was to \
               refer to is gone",
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
