//! Drives that hang: they return neither an answer nor an error.

use base::Nanos;
use pool::Protection;

use super::script::plain_plan;
use super::{Scenario, Script, counted};
use crate::workload::Failure;

pub const HUNG_DRIVE_IS_GIVEN_UP: Scenario = Scenario {
    name: "hung-drive-is-given-up",
    property: "drives that do not answer any more, as many as promised, keep nobody waiting for long; they are back when they answer",
    run: |seed, options| {
        let protection = Protection::ALL[1 + (seed % 4) as usize];
        let mut script = Script::new(seed, plain_plan(protection, 5, 400), options);
        script.start()?;
        script.write(0, 300)?;
        let hung = usize::from(protection.parity());
        for drive in 0..hung {
            script.world().stick(script.drive(drive), Nanos::from_secs(300));
        }
        let written = script.begin_write(100, 200);
        script.pass(Nanos::from_secs(20 * hung as u64))?;
        if !written.get() {
            return Err(Failure::Broken("a write waits for a drive that does not answer".to_owned()));
        }
        script.verify()?;
        script.write(50, 100)?;
        script.pass(Nanos::from_secs(400))?;
        script.verify()?;
        script.converge()?;
        script.prove_redundancy()
    },
};

pub const PULLED_DRIVE_ANSWERS_WITH_ERRORS_FIRST: Scenario = Scenario {
    name: "pulled-drive-answers-with-errors-first",
    property: "a pulled drive that answers with I/O errors before it is gone is missing, not failed: it is back when it returns",
    run: |seed, options| {
        let protection = Protection::ALL[1 + (seed % 4) as usize];
        let mut script = Script::new(seed, plain_plan(protection, 5, 400), options);
        script.start()?;
        script.write(0, 300)?;
        let before = counted("drive: gone, after errors");
        let pulled = script.drive((seed % 5) as usize);
        script.world().pull(pulled, Nanos::from_millis(100 + seed * 37 % 600), None, false);
        for block in 0..20 {
            script.write(block * 10, 10)?;
        }
        script.pass(Nanos::from_secs(5))?;
        if counted("drive: gone, after errors") == before {
            return Err(Failure::Broken("the drive is not known to have been pulled".to_owned()));
        }
        script.verify()?;
        script.world().return_drive(pulled);
        script.crash(false);
        script.start()?;
        script.verify()?;
        script.converge()?;
        script.prove_redundancy()
    },
};

pub const PULLED_FROM_AN_IDLE_POOL: Scenario = Scenario {
    name: "pulled-from-an-idle-pool",
    property: "drives that are pulled, made smaller, or hang while nothing is asked of them are noticed within ten seconds (30 where they hang), and what stood on them is rebuilt",
    run: |seed, options| {
        let protection = Protection::ALL[1 + (seed % 4) as usize];
        let mut script = Script::new(seed, plain_plan(protection, 6, 400), options);
        script.start()?;
        script.write(0, 300)?;
        script.pass(Nanos::from_secs(120))?;
        let before = counted("drive: gone, found by looking");
        for drive in 0..usize::from(protection.parity()) {
            let (world, drive) = (script.world(), script.drive(drive));
            match seed % 3 {
                0 => world.halve(drive),
                1 => world.stick(drive, Nanos::from_secs(600)),
                _ => world.vanish(drive, None, false),
            }
        }
        script.pass(Nanos::from_secs(if seed % 3 == 1 { 30 } else { 10 }))?;
        if counted("drive: gone, found by looking") == before {
            return Err(Failure::Broken("nobody has noticed that drives are gone".to_owned()));
        }
        script.verify()
    },
};

pub const WHAT_HANGS_TOGETHER_IS_WAITED_FOR: Scenario = Scenario {
    name: "what-hangs-together-is-waited-for",
    property: "where more drives hang than could be spared it is not the drives: none is given up, and service goes on with them",
    run: |seed, options| {
        let protection = Protection::ALL[1 + (seed % 4) as usize];
        let mut script = Script::new(seed, plain_plan(protection, 5, 400), options);
        script.start()?;
        script.write(0, 300)?;
        for drive in 0..5 {
            script.world().stick(script.drive(drive), Nanos::from_secs(60));
        }
        let written = script.begin_write(100, 200);
        script.pass(Nanos::from_secs(90))?;
        if !written.get() {
            return Err(Failure::Broken("a write did not end when the drives answered again".to_owned()));
        }
        script.verify()?;
        script.prove_redundancy()
    },
};
