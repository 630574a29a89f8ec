//! Drives that vanish, rot, come back with older contents, or become full.

use base::Nanos;
use pool::{Patience, Protection};

use super::script::plain_plan;
use super::{Scenario, Script};
use crate::drive::DriveOptions;
use crate::fault::{FaultKind, FaultRates};
use crate::oracle::SECTORS_PER_BLOCK;
use crate::seed::Plan;
use crate::workload::{Answer, Bench, Failure, Request};

fn promised(protection: Protection) -> usize {
    usize::from(protection.parity())
}

pub const AS_MANY_DRIVES_AS_PROMISED_VANISH: Scenario = Scenario {
    name: "as-many-drives-as-promised-vanish",
    property: "reads and writes go on, through restarts too, when all promised drives are gone for good",
    run: |seed, options| {
        let protection = Protection::ALL[1 + (seed % 4) as usize];
        let mut script = Script::new(seed, plain_plan(protection, 5, 500), options);
        script.start()?;
        script.write(0, 300)?;
        for drive in 0..promised(protection) {
            script.world().vanish(script.drive(drive), None, false);
            script.verify()?;
            script.write(drive as u64 * 100, 64)?;
        }
        script.verify()?;
        script.crash(true);
        script.start()?;
        script.verify()?;
        script.write(250, 100)?;
        script.verify()
    },
};

pub const ROT_ON_EVERY_BLOCK_OF_PROMISED_DRIVES: Scenario = Scenario {
    name: "rot-on-every-block-of-promised-drives",
    property: "whatever the promised drives return, the data is rebuilt from the others and healed",
    run: |seed, options| {
        let protection = Protection::ALL[1 + (seed % 4) as usize];
        let mut script = Script::new(seed, plain_plan(protection, 5, 300), options);
        script.start()?;
        script.write(0, 300)?;
        let blocks = (24 << 20) / base::BLOCK_BYTES as u64;
        for drive in 0..promised(protection) {
            for block in 0..blocks {
                script.world().rot(script.drive(drive), block, (block as usize * 977) % 32_768);
            }
        }
        script.verify()?;
        let healed: u64 = script.bench.lanes().iter().map(|lane| lane.stats().counters.blocks_rebuilt).sum();
        if healed == 0 {
            return Err(Failure::Broken("every block of a drive was rotten and none was rebuilt".to_owned()));
        }
        script.crash(true);
        script.start()?;
        script.verify()
    },
};

pub const STALE_DRIVE_RETURNS: Scenario = Scenario {
    name: "stale-drive-returns",
    property: "a drive that missed writes and comes back serves none of its old data",
    run: |seed, options| {
        let protection = Protection::ALL[1 + (seed % 4) as usize];
        let mut script = Script::new(seed, plain_plan(protection, 5, 400), options);
        script.start()?;
        for round in 0..6 {
            script.write(0, 200)?;
            let drive = script.drive((round % promised(protection) as u64) as usize);
            script.world().vanish(drive, None, false);
            script.write(50, 150)?;
            script.write(200, 100)?;
            script.crash(round % 2 == 0);
            if round % 3 == 0 {
                script.start()?;
                script.write(10, 50)?;
                script.crash(true);
            }
            script.world().return_drive(drive);
            script.start()?;
            script.verify()?;
        }
        Ok(())
    },
};

pub const ONE_DRIVE_TOO_MANY_IS_REFUSED: Scenario = Scenario {
    name: "one-drive-too-many-is-refused",
    property: "with more drives missing than promised the pool does not open; with them back it does, unharmed",
    run: |seed, options| {
        let protection = Protection::ALL[1 + (seed % 4) as usize];
        let mut script = Script::new(seed, plain_plan(protection, 5, 200), options);
        script.start()?;
        script.write(0, 200)?;
        script.crash(false);
        for drive in 0..=promised(protection) {
            script.world().vanish(script.drive(drive), None, true);
        }
        match script.start() {
            Err(Failure::NotOpened(_)) => {}
            Ok(()) => return Err(Failure::Broken("it opened with too many drives missing".to_owned())),
            Err(other) => return Err(other),
        }
        script.crash(false);
        for drive in 0..=promised(protection) {
            script.world().return_drive(script.drive(drive));
        }
        script.start()?;
        script.verify()
    },
};

pub const WHAT_WENT_WITH_A_DRIVE_IS_NOT_FLUSHED: Scenario = Scenario {
    name: "what-went-with-a-drive-is-not-flushed",
    property: "a flush fails where write-back data went with a drive that was one too many, back or not",
    run: |seed, options| {
        let mut plan = plain_plan(Protection::Stripe, 2, 400);
        plan.volumes[0].write_back = true;
        let mut script = Script::new(seed, plan, options);
        script.start()?;
        script.shared.lenient.set(true);
        script.write(0, 200)?;
        let lost = script.drive((seed % 2) as usize);
        script.world().vanish(lost, None, true);
        for back in [false, true] {
            if back {
                script.world().return_drive(lost);
            }
            match script.request(Request::Flush { volume: 1 })? {
                Answer::Failed(_) => {}
                other => {
                    return Err(Failure::Broken(format!("drive back: {back}, the flush says {other:?}")));
                }
            }
        }
        Ok(())
    },
};

pub const LOCKED_DRIVE_IS_NOT_MISSING: Scenario = Scenario {
    name: "locked-drive-is-not-missing",
    property: "a drive that still works for a process that was killed is waited for, not taken for missing",
    run: |seed, options| {
        let protection = Protection::ALL[1 + (seed % 4) as usize];
        let mut script = Script::new(seed, plain_plan(protection, 5, 300), options);
        script.start()?;
        script.write(0, 300)?;
        script.crash(false);
        for drive in 0..promised(protection) {
            script.world().vanish(script.drive(drive), None, false);
        }
        script.start()?;
        let mut outlived = 0;
        for round in 0..12 {
            // every drive has writes in flight, which it does not end soon
            script.simulation.run_for(Nanos::from_secs(2));
            script.begin_write(round * 20, 60);
            let present: Vec<_> = (promised(protection)..5).map(|index| script.drive(index)).collect();
            while !present.iter().any(|&drive| script.world().is_written_to(drive)) {
                script.steps(1);
            }
            for drive in present {
                script.world().stick(drive, Nanos::from_millis(300));
            }
            script.crash(false);
            outlived = script.world().fault_counts().get(FaultKind::OperationOutlives);
            script.start()?;
            script.verify()?;
        }
        match outlived {
            0 => Err(Failure::Broken("no write outlived its process".to_owned())),
            _ => Ok(()),
        }
    },
};

pub const DESTROYED_WITH_ITS_LABEL: Scenario = Scenario {
    name: "destroyed-with-its-label",
    property: "a drive full of garbage and one that was removed are gone; the rest is served, through kills too",
    run: |seed, options| {
        let mut script = Script::new(seed, plain_plan(Protection::Parity2, 6, 400), options);
        script.start()?;
        script.write(0, 200)?;
        script.world().vanish(script.drive(1), None, true);
        script.begin_write(150, 100);
        script.steps(seed * 7 % 40);
        script.crash(false);
        script.start()?;
        script.begin_write(250, 100);
        script.steps(seed * 11 % 60);
        script.world().overwrite(script.drive(4), 1000);
        script.write(300, 50)?;
        for round in 0..6 {
            script.begin_write(round * 50, 80);
            script.steps(round * 13 + seed % 5);
            script.crash(round % 3 == 2);
            script.start()?;
            script.verify()?;
        }
        Ok(())
    },
};

pub const FULL_FILE_SYSTEM_RESUMES: Scenario = Scenario {
    name: "full-file-system-resumes",
    property: "a full file system under a drive refuses writes, loses nothing, and service resumes when there is room",
    run: |seed, options| {
        let mut script = Script::new(seed, plain_plan(Protection::Parity1, 4, 2_000), options);
        script.start()?;
        script.write(0, 100)?;
        script.world().set_no_space(script.drive(1), true);
        let mut refused = false;
        for block in (100..2_000).step_by(20) {
            let data = vec![0; 20 * base::BLOCK_BYTES];
            let first = block * SECTORS_PER_BLOCK;
            // outside of the oracle: zeros over what was never written
            let answer = script.request(Request::Write { volume: 1, first, data, durable: false })?;
            refused |= answer == Answer::OutOfSpace;
            if refused {
                break;
            }
        }
        if !refused {
            return Err(Failure::Broken("no write was refused on a full file system".to_owned()));
        }
        // it is tried again and again meanwhile
        script.pass(Nanos::from_secs(30))?;
        let lanes = script.bench.lanes();
        if lanes.iter().any(|lane| lane.stats().counters.drive_errors.iter().any(|errors| errors.write > 0)) {
            return Err(Failure::Broken(
                "that there is no space is counted as an error of the drive".to_owned(),
            ));
        }
        script.verify()?;
        script.world().set_no_space(script.drive(1), false);
        script.simulation.run_for(Nanos::from_secs(5));
        script.write(0, 200)?;
        script.crash(true);
        script.start()?;
        script.verify()?;
        script.bench.heal(&script.simulation.world);
        Ok(())
    },
};

pub const FULL_FILE_SYSTEM_USES_NOTHING_UP: Scenario = Scenario {
    name: "full-file-system-uses-nothing-up",
    property: "however long a file system under a drive is full, the pool is none the fuller for it, and can be closed meanwhile",
    run: |seed, options| {
        let drives = (0..4).map(|index| DriveOptions::new(&format!("/sim/drive{index}"), 8 << 20)).collect();
        let plan = Plan { drives, ..plain_plan(Protection::Mirror3, 4, 300) };
        let mut script = Script::new(seed, plan, options);
        script.start()?;
        script.write(0, 200)?;
        let fill = |script: &mut Script, full| {
            script.world().set_no_space(script.drive(1), full);
            script.world().set_no_space(script.drive(2), full);
        };
        for _ in 0..4 {
            script.write(100, 20)?;
            // a checkpoint is due while nothing can be written
            fill(&mut script, true);
            script.pass(Nanos::from_secs(1000))?;
            fill(&mut script, false);
            script.pass(Nanos::from_secs(2))?;
        }
        let refused = script.shared.out_of_space.get();
        script.write(0, 200)?;
        if script.shared.out_of_space.get() > refused {
            return Err(Failure::Broken("there is space, and a write is refused".to_owned()));
        }
        script.audit()?;
        fill(&mut script, true);
        script.write(10, 10)?;
        script.close()?;
        fill(&mut script, false);
        script.start()?;
        script.verify()
    },
};

/// A block that ends in the CRC-32C of what stands before.
fn ending_in_its_checksum(seed: u64, number: u64) -> Vec<u8> {
    let mut block = vec![number as u8; base::BLOCK_BYTES];
    block[..8].copy_from_slice(&seed.to_le_bytes());
    block[8..16].copy_from_slice(&number.to_le_bytes());
    let (content, checksum) = block.split_at_mut(base::BLOCK_BYTES - 4);
    checksum.copy_from_slice(&base::crc32c(content).to_le_bytes());
    block
}

fn ends_in_its_checksum(block: &[u8]) -> bool {
    let (content, checksum) = block.split_at(base::BLOCK_BYTES - 4);
    checksum == base::crc32c(content).to_le_bytes()
}

pub const BLOCK_OF_ANOTHER_PLACE_IS_NOTICED: Scenario = Scenario {
    name: "block-of-another-place-is-noticed",
    property: "where a drive has other blocks than were written, all of which end in their own CRC-32C, the right ones are read",
    run: |seed, options| {
        let protection = Protection::ALL[1 + (seed % 4) as usize];
        let mut script = Script::new(seed, plain_plan(protection, 5, 400), options);
        script.start()?;
        let blocks: Vec<Vec<u8>> = (0..200).map(|number| ending_in_its_checksum(seed, number)).collect();
        // outside of the oracle, whose blocks are not like that
        let data = blocks.concat();
        match script.request(Request::Write { volume: 1, first: 0, data, durable: true })? {
            Answer::Done => {}
            other => return Err(Failure::Broken(format!("the write says {other:?}"))),
        }
        let (world, drive) = (script.world(), script.drive((seed % 5) as usize));
        let alike: Vec<(u64, Vec<u8>)> = (256..(24 << 20) / base::BLOCK_BYTES as u64)
            .map(|block| (block, world.peek(drive, block)))
            .filter(|(_, content)| ends_in_its_checksum(content))
            .collect();
        if alike.len() < 2 {
            return Err(Failure::Broken("the drive has no such blocks".to_owned()));
        }
        // each goes where another was
        for (index, (block, _)) in alike.iter().enumerate() {
            world.poke(drive, *block, &alike[(index + 1) % alike.len()].1);
        }
        for (number, block) in (0u64..).zip(&blocks) {
            let sectors = number * SECTORS_PER_BLOCK..(number + 1) * SECTORS_PER_BLOCK;
            match script.request(Request::Read { volume: 1, sectors })? {
                Answer::Data(data) if data == *block => {}
                Answer::Data(_) => return Err(Failure::Broken(format!("block {number} is another"))),
                other => return Err(Failure::Broken(format!("block {number}: {other:?}"))),
            }
        }
        Ok(())
    },
};

pub const KEPT_WHERE_ANOTHER_LACKS_SOMETHING: Scenario = Scenario {
    name: "kept-where-another-lacks-something",
    property: "a drive is not taken out for wrong content while blocks that stand on it lack another drive's column",
    run: |seed, options| {
        let mut plan = plain_plan(Protection::Parity1, 4, 600);
        // a root that cannot be written takes a drive out
        plan.checkpoint_interval = Nanos::from_secs(1_000);
        let mut script = Script::new(seed, plan, options);
        script.start()?;
        let patience = Patience { write_errors: 100_000, checksum_errors: 1, ..Patience::default() };
        script.bench.lanes().iter().for_each(|lane| lane.tune(1, patience));
        script.write(0, 200)?;
        let world = script.world();
        let (failing, rotten) = (script.drive(0), script.drive(1));
        for block in 256..(24 << 20) / base::BLOCK_BYTES as u64 {
            world.rot(rotten, block, block as usize * 977 % 32_768);
        }
        world.set_fault_rates(failing, FaultRates { write_error: 1000, ..FaultRates::NONE });
        script.write(200, 24)?;
        world.set_fault_rates(failing, FaultRates::NONE);
        // what is read here tells that the drive is rotten; what was written last needs it
        script.read_from(1, 0, 200)?;
        script.read_from(1, 200, 24)?;
        script.verify()
    },
};

pub const SLOW_AMONG_ITS_SIBLINGS: Scenario = Scenario {
    name: "slow-among-its-siblings",
    property: "a drive much slower than its siblings is found; one with a hiccup is not, nor is any where all are slow",
    run: |seed, options| {
        let mut script = Script::new(seed, plain_plan(Protection::Parity2, 6, 600), options);
        let usual = (Nanos::from_micros(100), Nanos::from_micros(300));
        for index in 0..6 {
            script.world().set_latency(script.drive(index), usual.0, usual.1);
        }
        script.start()?;
        let patience = Patience { slow_time: Nanos::from_secs(3), ..Patience::default() };
        script.bench.lanes().iter().for_each(|lane| lane.tune(50, patience));
        let suspect = seed as usize % 6;
        let all: Vec<usize> = (0..6).collect();
        // who is slow, how many times, for how long; and whether that is enough
        let course: [(&[usize], u64, u64, bool); 5] = [
            (&all, 1, 5, false),
            (&all, 50, 10, false),
            (&[suspect], 50, 2, false),
            (&[suspect], 2, 10, false),
            (&[suspect], 50, 5, true),
        ];
        for (drives, times, seconds, found) in course {
            for &index in &all {
                let times = if drives.contains(&index) { times } else { 1 };
                script.world().slow_down(script.drive(index), times);
            }
            let until = script.world().now() + Nanos::from_secs(seconds);
            while script.world().now() < until {
                script.write(script.world().now().0 % 500, 64)?;
                script.verify()?;
            }
            let latencies = script.bench.lanes()[0].stats().drive_latency;
            let slow: Vec<usize> = (0..6).filter(|&index| latencies[index].slow.is_some()).collect();
            let wanted = if found { vec![suspect] } else { Vec::new() };
            if slow != wanted {
                let what = format!(
                    "{drives:?} {times} times slower for {seconds} s: {slow:?} are slow: {latencies:?}"
                );
                return Err(Failure::Broken(what));
            }
        }
        Ok(())
    },
};
