//! Data that is damaged beyond repair is reported as lost, as long as it is in use.

use base::Nanos;
use pool::{Patience, Protection};

use super::script::plain_plan;
use super::{Scenario, Script};
use crate::seed::{Order, Plan};
use crate::workload::{Bench, Failure};

const BLOCKS: u64 = 300;

fn redundant(seed: u64) -> Protection {
    Protection::ALL[1 + (seed % 4) as usize]
}

/// Five drives, none of which is ever taken out for its errors.
fn plan(protection: Protection) -> Plan {
    let patience = Patience { checksum_errors: 100_000, read_errors: 100_000, ..Patience::default() };
    Plan { patience, ..plain_plan(protection, 5, BLOCKS) }
}

/// Overwrites two rows of every chunk of a drive, but no header and no page.
fn spoil_rows(script: &Script, index: usize, rows: [u64; 2]) {
    let (world, drive) = (script.world(), script.drive(index));
    for block in (256..(24 << 20) / base::BLOCK_BYTES as u64).filter(|block| rows.contains(&(block % 16))) {
        let content = world.peek(drive, block);
        if !content.starts_with(b"TNG") && content.iter().any(|&byte| byte != 0) {
            world.poke(drive, block, &[0xA5; base::BLOCK_BYTES]);
        }
    }
}

/// How many drives have to be damaged for something to be lost: a mirror's segments stand on a few of them each.
fn too_many(protection: Protection) -> usize {
    match protection {
        Protection::Mirror2 | Protection::Mirror3 => 5,
        _ => usize::from(protection.parity()) + 1,
    }
}

fn lost_blocks(script: &Script) -> u64 {
    script.bench.lanes()[0].stats().lost_blocks
}

pub(super) fn must(holds: bool, what: &str) -> Result<(), Failure> {
    if holds { Ok(()) } else { Err(Failure::Broken(what.to_owned())) }
}

/// Scrubs; whether it finds something that is lost.
fn scrub_finds_loss(script: &mut Script) -> Result<bool, Failure> {
    // what it finds is no failure here
    let _ = script.scrub();
    script.pass(Nanos::from_secs(2))?;
    Ok(script.bench.scrub_found(true).is_some())
}

pub const LOST_DATA_STAYS_REPORTED: Scenario = Scenario {
    name: "lost-data-stays-reported",
    property: "what can neither be read nor rebuilt is called lost, by whomever it was met, through scrubs and restarts, until it \
               is overwritten or unmapped; then nothing is",
    run: |seed, options| {
        let protection = redundant(seed);
        let mut script = Script::new(seed, plan(protection), options);
        script.start()?;
        for block in (0..BLOCKS).step_by(50) {
            script.write(block, 50)?;
        }
        script.close()?;
        script.start()?;
        script.shared.lenient.set(true);
        (0..too_many(protection)).for_each(|index| spoil_rows(&script, index, [5, 11]));
        match (seed + seed / 4) % 3 {
            0 => must(scrub_finds_loss(&mut script)?, "a scrub misses it")?,
            1 => script.verify()?,
            _ => script.order(Order::Drain(4)),
        }
        script.pass(Nanos::from_secs(2))?;
        for round in 0..5 {
            must(lost_blocks(&script) > 0, &format!("in round {round}, nothing is called lost"))?;
            must(script.bench.unsettled().is_none(), "it is called repairable")?;
            match round {
                0 | 2 => must(scrub_finds_loss(&mut script)?, "a later scrub misses it")?,
                1 => {
                    script.crash(seed.is_multiple_of(2));
                    script.start()?;
                    script.pass(Nanos::from_secs(3))?;
                }
                _ => script.pass(Nanos::from_secs(100))?,
            }
        }
        match seed.is_multiple_of(2) {
            true => script.write(0, BLOCKS)?,
            false => script.unmap(0, BLOCKS)?,
        }
        script.pass(Nanos::from_secs(40))?;
        must(lost_blocks(&script) == 0, "what is not in use any more is called lost")?;
        must(!scrub_finds_loss(&mut script)?, "a scrub finds lost what is not in use any more")?;
        script.shared.lenient.set(false);
        script.converge()?;
        script.verify()?;
        script.audit()
    },
};

pub const LOST_DATA_COMES_BACK_WITH_ITS_DRIVE: Scenario = Scenario {
    name: "lost-data-comes-back-with-its-drive",
    property: "what is lost while drives are missing is called so, and is written anew when they are back: then nothing is lost",
    run: |seed, options| {
        let protection = redundant(seed);
        let missing = usize::from(protection.parity());
        let mut script = Script::new(seed, plan(protection), options);
        script.start()?;
        for block in (0..BLOCKS).step_by(30) {
            script.write(block, 30)?;
        }
        script.close()?;
        script.start()?;
        // each in rows of its own: with the others back, nothing lacks more than one column
        (missing..5).for_each(|index| spoil_rows(&script, index, [index as u64 * 3, index as u64 * 3 + 1]));
        for index in 0..missing {
            script.world().vanish(script.drive(index), None, false);
        }
        script.shared.lenient.set(true);
        script.verify()?;
        script.pass(Nanos::from_secs(5))?;
        must(lost_blocks(&script) > 0, "nothing is called lost")?;
        for index in 0..missing {
            script.world().return_drive(script.drive(index));
            script.order(Order::TakeBack(index as u8, format!("/sim/drive{index}")));
            script.pass(Nanos::from_secs(1))?;
        }
        script.converge()?;
        must(lost_blocks(&script) == 0, "something is called lost that is there again")?;
        script.shared.lenient.set(false);
        script.verify()?;
        // what nobody has met yet
        script.scrub()?;
        script.prove_redundancy()
    },
};
