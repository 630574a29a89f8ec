//! Positions that a volume keeps of blocks in frozen layers. They are good until the blocks have moved.

use base::Nanos;
use pool::Protection;

use super::loss::must;
use super::script::plain_plan;
use super::{Scenario, Script, counted};
use crate::drive::DriveNumber;
use crate::oracle::SECTORS_PER_BLOCK;
use crate::workload::{Answer, Failure, Request};

const VOLUME: u32 = 1;

pub const KEPT_PLACE_IS_GIVEN_UP: Scenario = Scenario {
    name: "kept-place-is-given-up",
    property: "a block that was healed is found by those, too, who have kept its old place, when that cannot be read any more",
    run: |seed, options| {
        let mut script = Script::new(seed, plain_plan(Protection::Parity1, 5, 600), options);
        script.start()?;
        script.write(0, 120)?;
        let first = script.snapshot(VOLUME)?;
        let clone = script.clone_of(first)?;
        script.snapshot(VOLUME)?;
        // each keeps the places for itself: they stand on different layers
        script.read_from(VOLUME, 0, 120)?;
        script.read_from(clone, 0, 120)?;
        let world = script.world();
        for block in 256..(24 << 20) / base::BLOCK_BYTES as u64 {
            world.rot(script.drive(0), block, block as usize * 977 % 32_768);
        }
        script.read_from(clone, 0, 120)?;
        script.pass(Nanos::from_millis(100))?;
        let lost = script.drive(1);
        world.vanish(lost, None, false);
        // what has not been healed and stood beside the rotten drive is gone; whatever is there, all can read
        for block in 0..120 {
            let sectors = block * SECTORS_PER_BLOCK..(block + 1) * SECTORS_PER_BLOCK;
            let read = |volume| Request::Read { volume, sectors: sectors.clone() };
            let healed = script.request(read(clone))?;
            if matches!(healed, Answer::Data(_)) && script.request(read(VOLUME))? != healed {
                return Err(Failure::Broken(format!("block {block} cannot be read by the volume")));
            }
        }
        Ok(())
    },
};

/// The block that moves while its position is looked up.
const MOVING: u64 = 10;
/// How long a map page of the layer below takes to arrive.
const SLOW: Nanos = Nanos::from_secs(6);

/// How long operations take that begin from now on.
fn set_latency(script: &Script, least: Nanos, most: Nanos) {
    script.bench.drives().iter().for_each(|&drive| script.world().set_latency(drive, least, most));
}

/// Everywhere that a block with this content is stored, as data or as parity.
fn places(script: &Script, content: &[u8]) -> Vec<(DriveNumber, u64)> {
    let world = script.world();
    let blocks = 256..(24 << 20) / base::BLOCK_BYTES as u64;
    let drives = script.bench.drives().iter();
    drives
        .flat_map(|&drive| blocks.clone().map(move |block| (drive, block)))
        .filter(|&(drive, block)| world.peek(drive, block) == content)
        .collect()
}

/// Has a block read where it is damaged, so that it is written anew somewhere else.
fn move_by_healing(script: &mut Script, copy: u32, content: &[u8]) -> Result<(), Failure> {
    let healed = |script: &Script| script.bench.lanes()[0].stats().counters.blocks_healed;
    let before = healed(script);
    for (drive, block) in places(script, content) {
        // one place at a time: a small batch's parity may be a copy of the block
        script.world().rot(drive, block, 977);
        script.read_from(copy, MOVING, 1)?;
        script.world().poke(drive, block, content);
    }
    script.pass(Nanos::from_secs(2))?;
    must(healed(script) > before, "the damaged block was not written anew")
}

pub const MOVED_WHILE_LOOKED_UP_IS_NOT_LOST: Scenario = Scenario {
    name: "moved-while-looked-up-is-not-lost",
    property: "a block that moves, and whose old segment is freed, while its position is looked up layer by layer, is found where \
               it stands now and not called lost",
    run: |seed, options| {
        let protection = [Protection::Parity1, Protection::Parity2][(seed % 2) as usize];
        let mut plan = plain_plan(protection, 6, 600);
        plan.checkpoint_interval = Nanos::from_millis(20);
        let mut script = Script::new(seed, plan, options);
        script.start()?;
        script.write(0, 40)?;
        script.snapshot(VOLUME)?;
        // the upper layer's block is in a segment of its own
        script.close()?;
        script.start()?;
        script.write(MOVING, 1)?;
        let upper = script.snapshot(VOLUME)?;
        // no page of the map is in memory, but for the one that this read needs
        script.close()?;
        script.start()?;
        let sectors = MOVING * SECTORS_PER_BLOCK..(MOVING + 1) * SECTORS_PER_BLOCK;
        let Answer::Data(content) = script.request(Request::Read { volume: upper, sectors })? else {
            return Err(Failure::Broken("the snapshot cannot be read".to_owned()));
        };
        // the lookup knows the block's position, and waits for a page of the layer below
        set_latency(&script, SLOW, SLOW);
        let read = script.begin_read_from(VOLUME, MOVING, 1);
        script.pass(Nanos::from_millis(1))?;
        set_latency(&script, Nanos::from_micros(20), Nanos::from_micros(200));
        let overtaken = || counted("layers: a working-out is overtaken by a merge");
        let before = overtaken();
        move_by_healing(&mut script, upper, &content)?;
        must(!read.get(), "the lookup was over before the block had moved")?;
        script.until("a read", || read.get())?;
        must(overtaken() > before, "the block's old segment was there all the time")?;
        script.verify()?;
        must(script.bench.lanes()[0].stats().lost_blocks == 0, "something is called lost")?;
        script.converge()?;
        script.audit()
    },
};
