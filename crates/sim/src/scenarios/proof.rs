//! Redundancy that must exist before it is needed, and losses that must be noticed.

use base::Nanos;
use pool::Protection;

use super::loss::must;
use super::script::plain_plan;
use super::{Scenario, Script};
use crate::drive::{DriveNumber, DriveOptions};
use crate::seed::Order;
use crate::workload::Failure;

fn promised(protection: Protection) -> usize {
    usize::from(protection.parity())
}

pub(super) fn redundant(seed: u64) -> Protection {
    Protection::ALL[1 + (seed % 4) as usize]
}

pub const IDLE_POOL_IS_REBUILT: Scenario = Scenario {
    name: "idle-pool-is-rebuilt",
    property: "a drive that is lost, or is to go, is not needed any more before long, though no host does anything",
    run: |seed, options| {
        let mut script = Script::new(seed, plain_plan(redundant(seed), 6, 300), options);
        script.start()?;
        script.write(0, 250)?;
        let lost = script.drive(0);
        script.world().vanish(lost, None, false);
        // somebody has to notice
        script.verify()?;
        script.converge()?;
        script.retire()?;
        script.prove_redundancy()
    },
};

pub const DRAINED_DRIVE_IS_NOT_NEEDED: Scenario = Scenario {
    name: "drained-drive-is-not-needed",
    property: "a drive that was emptied is not needed: as many others as promised may go",
    run: |seed, options| {
        let (protection, drained) = (redundant(seed), (seed % 6) as usize);
        let mut script = Script::new(seed, plain_plan(protection, 6, 300), options);
        script.start()?;
        script.write(0, 250)?;
        script.order(Order::Drain(drained as u8));
        if seed % 2 == 0 {
            script.write(100, 40)?;
        }
        script.await_drain(drained)?;
        script.retire_within(Nanos::from_micros(500))?;
        // at once, before anything could be written anew
        script.crash(true);
        for other in 0..=promised(protection) {
            script.world().vanish(script.drive((drained + other) % 6), None, false);
        }
        script.start()?;
        script.verify()
    },
};

pub const ADDED_DRIVE_IS_USED: Scenario = Scenario {
    name: "added-drive-is-used",
    property: "a drive that joins takes what a lost one held; then as many as promised may go",
    run: |seed, options| {
        let protection = redundant(seed);
        let drives = usize::from(protection.width_min()) + 1;
        let mut script = Script::new(seed, plain_plan(protection, drives, 300), options);
        script.start()?;
        script.write(0, 200)?;
        let lost = script.drive(0);
        script.world().vanish(lost, None, false);
        script.write(50, 30)?;
        let world = script.world();
        script.bench.plug_in(&world, DriveOptions::new("/sim/added", 24 << 20));
        script.order(Order::Add("/sim/added".to_owned()));
        script.write(100, 100)?;
        script.retire()?;
        if script.bench.lanes()[0].segments_on_drive(drives as u8) == 0 {
            return Err(Failure::Broken("nothing stands on the drive that was added".to_owned()));
        }
        script.crash(true);
        script.start()?;
        script.verify()?;
        script.prove_redundancy()
    },
};

pub const HALF_ADDED_DRIVE_IS_NOT_MISSED: Scenario = Scenario {
    name: "half-added-drive-is-not-missed",
    property: "wherever the power goes while a drive joins, the pool does without as many of its others as promised",
    run: |seed, options| {
        let protection = redundant(seed);
        let drives = usize::from(protection.width_min()) + 1;
        // the first is the one that can be traced
        let mut options = Some(options);
        for cut in 0..40 {
            let plan = plain_plan(protection, drives, 100);
            let mut script = Script::new(seed * 100 + cut, plan, options.take().unwrap_or_default());
            script.start()?;
            script.write(0, 50)?;
            let world = script.world();
            script.bench.plug_in(&world, DriveOptions::new("/sim/added", 24 << 20));
            script.cut_after(Some(cut));
            script.order(Order::Add("/sim/added".to_owned()));
            // to the cut, or to the end of it
            let _ = script.pass(Nanos::from_millis(200));
            script.cut_after(None);
            script.crash(true);
            for lost in 0..promised(protection) {
                script.world().vanish(script.drive(lost), None, false);
            }
            script.start()?;
            script.verify()?;
        }
        Ok(())
    },
};

pub const RETURNED_DRIVE_CATCHES_UP: Scenario = Scenario {
    name: "returned-drive-catches-up",
    property: "what a drive missed while it was away is written anew: then as many others as promised may go",
    run: |seed, options| {
        let protection = redundant(seed);
        let mut script = Script::new(seed, plain_plan(protection, 5, 300), options);
        script.start()?;
        script.write(0, 200)?;
        let away = script.drive(1);
        for round in 0..4 {
            // it goes in the middle of writes, and some of them find it gone
            for block in 0..6 {
                script.begin_write(round * 40 + block * 9, 7);
            }
            script.steps(seed % 7 + round * 5);
            script.world().vanish(away, None, false);
            script.write(round * 30, 60)?;
            if round % 2 == 0 {
                script.crash(round == 0);
                script.world().return_drive(away);
                script.start()?;
            } else {
                script.world().return_drive(away);
                script.order(Order::TakeBack(1, "/sim/drive1".to_owned()));
                script.pass(Nanos::from_millis(50))?;
            }
            script.verify()?;
        }
        script.prove_redundancy()
    },
};

pub const REFUSED_COLUMN_IS_MADE_UP_FOR: Scenario = Scenario {
    name: "refused-column-is-made-up-for",
    property: "what a drive refused to take, and was borne with for, is written anew: then as many others as promised may go",
    run: |seed, options| {
        let protection = redundant(seed);
        let mut script = Script::new(seed, plain_plan(protection, 5, 300), options);
        script.start()?;
        script.write(0, 200)?;
        script.write_refused_by(script.drive(0), 20, 7 + seed % 20)?;
        script.converge()?;
        for other in 1..=promised(protection) {
            script.world().vanish(script.drive(other), None, false);
        }
        script.verify()
    },
};

pub const SCRUB_FINDS_ROTTEN_PARITY: Scenario = Scenario {
    name: "scrub-finds-rotten-parity",
    property: "what no host reads is read by a scrub: parity and header copies that rot are written anew",
    run: |seed, options| {
        let mut script = Script::new(seed, plain_plan(redundant(seed), 5, 300), options);
        script.start()?;
        script.write(0, 300)?;
        script.crash(false);
        let rotten = script.drive((seed % 5) as usize);
        for block in 256..(24 << 20) / base::BLOCK_BYTES as u64 {
            script.world().rot(rotten, block, (block as usize * 977) % 32_768);
        }
        script.start()?;
        script.scrub()?;
        script.converge()?;
        if script.scrub()? {
            return Err(Failure::Broken(
                "a second scrub finds what the first should have repaired".to_owned(),
            ));
        }
        script.prove_redundancy()
    },
};

/// A drive's labels, and its roots (`docs/format.md`).
const LABEL_BLOCKS: [u64; 2] = [4, 8];
const ROOT_BLOCKS: std::ops::Range<u64> = 32..256;

pub const SCRUB_READS_ROOTS_AND_LABELS: Scenario = Scenario {
    name: "scrub-reads-roots-and-labels",
    property: "a drive's root and label that rot while nobody reads them are written anew by a scrub, and then are good enough \
               to start from when other drives have lost theirs",
    run: |seed, options| {
        let protection = redundant(seed);
        let mut script = Script::new(seed, plain_plan(protection, 5, 300), options);
        script.start()?;
        script.write(0, 300)?;
        script.close()?;
        script.start()?;
        let kept = (seed % 5) as usize;
        for block in LABEL_BLOCKS.into_iter().chain(ROOT_BLOCKS) {
            // near the block's begin: most of it is padding
            script.world().rot(script.drive(kept), block, (block as usize * 977) % 500);
        }
        // the rest of both of the first lane's slots: nothing stands there, and it is read
        [1, 5]
            .into_iter()
            .for_each(|block| script.world().spoil(script.drive(kept), ROOT_BLOCKS.start + block));
        script.order(Order::CheckLabels);
        must(script.scrub()?, "a scrub does not see that roots have rotten")?;
        script.converge()?;
        must(!script.scrub()?, "a second scrub finds what the first should have repaired")?;
        script.crash(seed % 2 == 0);
        for (index, drive) in
            (0..5).map(|index| (index, script.drive(index))).filter(|(index, _)| *index != kept)
        {
            ROOT_BLOCKS.for_each(|block| script.world().spoil(drive, block));
            if (index + 5 - kept) % 5 <= promised(protection) {
                LABEL_BLOCKS.into_iter().for_each(|block| script.world().spoil(drive, block));
            }
        }
        script.start()?;
        script.verify()
    },
};

/// Where copies of batch headers stand, and the batch's sequence (`docs/format.md`).
pub(super) fn headers(script: &Script, drive: DriveNumber) -> Vec<(u64, u64)> {
    let mut found = Vec::new();
    for block in 256..(24 << 20) / base::BLOCK_BYTES as u64 {
        let content = script.world().peek(drive, block);
        if content.starts_with(b"TNGBATCH") {
            let sequence = content[40..48].try_into().expect("eight bytes");
            found.push((u64::from_le_bytes(sequence), block));
        }
    }
    found
}

pub const ACKNOWLEDGED_BATCHES_ARE_MISSED: Scenario = Scenario {
    name: "acknowledged-batches-are-missed",
    property: "where every copy of a batch's header is gone and a later batch knew it to be durable, the pool does not open",
    run: |seed, options| {
        let protection = redundant(seed);
        let mut script = Script::new(seed, plain_plan(protection, 5, 300), options);
        script.start()?;
        for block in 0..12 {
            script.write(block * 3, 2)?;
        }
        script.crash(seed % 2 == 0);
        let copies: Vec<Vec<(u64, u64)>> =
            (0..5).map(|index| headers(&script, script.drive(index))).collect();
        let newest = copies.iter().flatten().map(|&(sequence, _)| sequence).max().expect("there are batches");
        for (index, copies) in copies.iter().enumerate() {
            for &(_, block) in copies.iter().filter(|&&(sequence, _)| sequence == newest - 1 - seed % 3) {
                script.world().spoil(script.drive(index), block);
            }
        }
        match script.start() {
            Err(Failure::NotOpened(_)) => Ok(()),
            Err(other) => Err(other),
            Ok(()) => Err(Failure::Broken("it opens without batches that were acknowledged".to_owned())),
        }
    },
};

pub const OLDER_LIFE_IS_REFUSED: Scenario = Scenario {
    name: "older-life-is-refused",
    property: "drives put back to what they held before the last start are noticed: as many as promised are made good, \
               more are refused",
    run: |seed, options| {
        let protection = redundant(seed);
        let mut script = Script::new(seed, plain_plan(protection, 6, 300), options);
        script.start()?;
        script.write(0, 200)?;
        script.crash(false);
        let older = |script: &Script, index| script.world().snapshot(script.drive(index));
        let old: Vec<_> = (0..=promised(protection)).map(|index| older(&script, index)).collect();
        script.start()?;
        script.write(50, 200)?;
        script.crash(true);
        let new: Vec<_> = (0..=promised(protection)).map(|index| older(&script, index)).collect();
        for (index, snapshot) in old.into_iter().enumerate() {
            script.world().put_back(script.drive(index), snapshot);
        }
        match script.start() {
            Err(Failure::NotOpened(_)) => {}
            Err(other) => return Err(other),
            Ok(()) => {
                return Err(Failure::Broken("it opens with too many drives of an older life".to_owned()));
            }
        }
        script.crash(false);
        // the first one holds what it should: no more than promised do not
        for (index, snapshot) in new.into_iter().enumerate().take(1) {
            script.world().put_back(script.drive(index), snapshot);
        }
        script.start()?;
        script.verify()?;
        script.scrub()?;
        script.prove_redundancy()
    },
};

pub const SCRUB_OF_A_DEGRADED_POOL: Scenario = Scenario {
    name: "scrub-of-a-degraded-pool",
    property: "columns that are known to be lost are no damage: a scrub finds none where there is none, whatever is live",
    run: |seed, options| {
        let protection = redundant(seed);
        let drives = usize::from(protection.width_min());
        let mut script = Script::new(seed, plain_plan(protection, drives, 300), options);
        script.start()?;
        script.write(0, 100)?;
        let lost = script.drive((seed % drives as u64) as usize);
        script.world().vanish(lost, None, false);
        script.write(50, 100)?;
        for round in 0..3 {
            if round == 1 {
                script.unmap(0, 300)?;
            }
            script.converge()?;
            if script.scrub()? {
                return Err(Failure::Broken(format!("scrub {round} repairs what is not damaged")));
            }
            script.write(200, 20 + round * 5)?;
            script.crash(round == 1);
            script.start()?;
        }
        script.verify()
    },
};
