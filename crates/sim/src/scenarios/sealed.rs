//! Pools whose structures were changed and resealed: every checksum is right, but the contents are wrong.

use std::cell::Cell;
use std::rc::Rc;

use base::{BLOCK_BYTES, LayerId, Nanos};
use block::Payload;
use pool::fuzz::{Dice, Drives, Sealed, change};
use pool::{Lane, LaneRequest, Protection, Reference};
use task::Io;

use super::script::plain_plan;
use super::{Scenario, Script};
use crate::drive::DriveNumber;
use crate::prng::Prng;
use crate::seed::Options;
use crate::workload::{Failure, Stretch};
use crate::world::World;

const BLOCKS: u64 = 300;
/// The first layer that is made beside those of the script; it knows nothing of them.
const MADE: u32 = 1000;
/// What is asked of a pool between two starts.
const REQUESTS: u64 = 120;

/// A pool's drives, while nobody serves it.
struct Unserved(World, Vec<DriveNumber>);

impl Drives for Unserved {
    fn count(&self) -> usize {
        self.1.len()
    }

    fn read(&self, drive: usize, offset_bytes: u64, blocks: usize) -> Vec<u8> {
        let first = offset_bytes / BLOCK_BYTES as u64;
        (first..first + blocks as u64).flat_map(|block| self.0.peek(self.1[drive], block)).collect()
    }

    fn write(&self, drive: usize, offset_bytes: u64, bytes: &[u8]) {
        let first = offset_bytes / BLOCK_BYTES as u64;
        for (block, content) in (first..).zip(bytes.chunks(BLOCK_BYTES)) {
            self.0.poke(self.1[drive], block, content);
        }
    }
}

fn change_some(script: &mut Script, what: Sealed) {
    for _ in 0..1 + script.prng.below(3) {
        let mut prng = script.prng.fork();
        change_one(script, what, &mut |most| if most == 0 { 0 } else { prng.below(most) });
    }
}

fn change_one(script: &Script, what: Sealed, dice: Dice<'_>) {
    let drives = Unserved(script.world(), script.bench.drives().to_vec());
    let said = change(&drives, 0, what, dice);
    script.world().note(|| format!("changed: {said:?}"));
}

/// A pool with something of everything: copies, references, layers that are on their way out.
fn set_up(seed: u64, options: Options) -> Result<Script, Failure> {
    let protection = Protection::ALL[seed as usize / 2 % 5];
    let mut script = Script::new(seed, plain_plan(protection, 5, BLOCKS), options);
    script.start()?;
    for block in (0..BLOCKS).step_by(60) {
        script.write(block, 40)?;
    }
    let first = script.snapshot(1)?;
    script.write(20, 30)?;
    let clone = script.clone_of(first)?;
    script.write_to(clone, 5, 9)?;
    script.copy_range(Stretch { source: 1, destination: clone, from: 0, to: 100, blocks: 20 })?;
    let second = script.snapshot(1)?;
    script.write(25, 30)?;
    script.unmap(100, 12)?;
    if script.prng.below(2) == 0 {
        script.delete(second)?;
    }
    if script.prng.below(2) == 0 {
        script.close()?;
        script.start()?;
    }
    // what stands behind the newest checkpoint
    for _ in 0..script.prng.below(6) {
        let block = script.prng.below(BLOCKS - 8);
        script.write(block, 1 + block % 7)?;
        script.unmap(block / 2, 3)?;
    }
    match script.prng.below(3) {
        0 => script.close()?,
        1 => script.crash(false),
        _ => script.crash(true),
    }
    Ok(script)
}

fn some_request(prng: &mut Prng, layers: &[LayerId], made: &Cell<u32>) -> LaneRequest {
    let newest = layers.iter().max().copied().unwrap_or(LayerId(17));
    let layer = match prng.below(3) {
        0 => newest,
        _ => layers.get(prng.below(layers.len().max(1) as u64) as usize).copied().unwrap_or(newest),
    };
    let is_made = layer.0 > MADE && layer.0 <= made.get();
    let block = prng.below(BLOCKS - 20);
    let blocks = 1 + prng.below(20);
    let data = |blocks: u64, prng: &mut Prng| {
        Payload::from(vec![prng.below(256) as u8; blocks as usize * BLOCK_BYTES])
    };
    let durable = prng.below(2) == 0;
    match prng.below(24) {
        0..6 => LaneRequest::Read { layer, block, blocks },
        6..12 => LaneRequest::Write { layer, block, data: data(blocks, prng), durable },
        12 | 13 => LaneRequest::Unmap { layer, block, blocks, durable },
        14 => LaneRequest::MapStatus { layer, block, blocks },
        15 => {
            made.set(made.get() + 1);
            LaneRequest::CreateLayer { layer: LayerId(made.get()), parent: Some(layer), blocks: BLOCKS }
        }
        16 if is_made => LaneRequest::DropLayer { layer },
        17 => LaneRequest::FreedBy { layer },
        18 => LaneRequest::Beyond { layer, block: BLOCKS / 2, unmap: durable },
        19 => {
            let to = Reference::to(layer, 0, 1, block);
            LaneRequest::Refer { layer: newest, block: BLOCKS - 20, blocks, to }
        }
        20 => LaneRequest::ReadReferred { layer, block, blocks },
        21 => LaneRequest::Owners { layer: newest, below: None, block, blocks },
        22 => LaneRequest::Referred,
        _ => LaneRequest::Flush,
    }
}

/// Asks for this and that, whatever comes of it.
async fn use_lane(io: Io, lane: Rc<Lane>, mut prng: Prng, made: Rc<Cell<u32>>) {
    for round in 0..REQUESTS {
        let layers = lane.layers();
        let request = some_request(&mut prng, &layers, &made);
        let _ = lane.execute(request).await;
        let (_, _) = (lane.stats(), lane.layer_spaces());
        let _ = lane.blocks_kept_by(&layers);
        match round {
            10 | 80 => lane.start_scrub(),
            40 => drop(lane.audit().await),
            30 | 70 => io.sleep(Nanos::from_secs(31)).await,
            _ => {}
        }
    }
    for layer in lane.layers() {
        for block in (0..BLOCKS).step_by(20) {
            let _ = lane.execute(LaneRequest::Read { layer, block, blocks: 20 }).await;
        }
    }
    io.sleep(Nanos::from_secs(40)).await;
}

fn exercise(script: &mut Script, made: &Rc<Cell<u32>>) -> Result<(), Failure> {
    let Some(lane) = script.bench.lanes().first().cloned() else { return Ok(()) };
    let task = use_lane(script.io(), lane, script.prng.fork(), made.clone());
    script.run("what is asked of a pool that was changed", task)
}

/// Opens a pool that was changed; `false` where it refuses.
fn opens(script: &mut Script) -> Result<bool, Failure> {
    match script.start() {
        Ok(()) => Ok(true),
        Err(Failure::NotOpened(why)) => {
            script.world().note(|| format!("not opened: {why}"));
            script.crash(false);
            Ok(false)
        }
        Err(other) => Err(other),
    }
}

/// Something of each structure is changed, and the pool opened and used twice.
fn change_and_use(seed: u64, options: Options) -> Result<(), Failure> {
    let mut script = set_up(seed, options)?;
    change_some(&mut script, Sealed::ALL[(seed % 6) as usize]);
    use_twice(&mut script)
}

/// For fuzzing: the first byte says which pool, and what of it is changed; the others how.
pub fn bear_change(bytes: &[u8]) {
    let Some((&seed, mut left)) = bytes.split_first() else { return };
    let mut dice = |most: u64| {
        let taken = left.len().min(if most > 256 { 8 } else { 1 });
        let (value, rest) = left.split_at(taken);
        left = rest;
        value.iter().fold(0, |number, &byte| number << 8 | u64::from(byte)).checked_rem(most).unwrap_or(0)
    };
    let mut script = set_up(seed.into(), Options::default()).expect("nothing is wrong yet");
    change_one(&script, Sealed::ALL[usize::from(seed) % 6], &mut dice);
    use_twice(&mut script).expect("whatever is changed is borne");
}

fn use_twice(script: &mut Script) -> Result<(), Failure> {
    script.shared.lenient.set(true);
    let made = Rc::new(Cell::new(MADE));
    for _ in 0..2 {
        if !opens(script)? {
            return Ok(());
        }
        exercise(script, &made)?;
        match script.prng.below(2) {
            0 => script.crash(false),
            _ => script.close()?,
        }
    }
    Ok(())
}

/// One is soon done: so many others belong to each seed. A trace is that of the one that fails.
fn several(
    seed: u64,
    options: Options,
    count: u64,
    run: fn(u64, Options) -> Result<(), Failure>,
) -> Result<(), Failure> {
    for seed in seed * count..(seed + 1) * count {
        let Err(failure) = run(seed, Options::default()) else { continue };
        if options.trace.is_some() {
            let _ = run(seed, options);
        }
        return Err(Failure::Broken(format!("the one of number {seed}: {failure}")));
    }
    Ok(())
}

pub const CHANGED_STRUCTURES_DO_NO_HARM: Scenario = Scenario {
    name: "changed-structures-do-no-harm",
    property: "whatever a sealed structure says, the pool is refused, gives errors, or serves what is said; it goes on, in bounded \
               memory, and can be started again",
    run: |seed, options| several(seed, options, 12, change_and_use),
};

/// What is stored and answered is what it should be, but for blocks that went with a segment whose count was too low.
fn miscount(seed: u64, options: Options) -> Result<(), Failure> {
    let mut script = set_up(seed, options)?;
    script.shared.lenient.set(true);
    change_some(&mut script, Sealed::Counts);
    if !opens(&mut script)? {
        return Ok(());
    }
    for round in 0..12 {
        let block = script.prng.below(BLOCKS - 8);
        script.write(block, 1 + block % 7)?;
        script.unmap(block / 2, 3)?;
        if round % 4 == 0 {
            script.pass(Nanos::from_secs(31))?;
        }
    }
    script.verify()?;
    // what a scrub calls lost is no failure here
    let _ = script.scrub();
    script.pass(Nanos::from_secs(70))?;
    let stats = script.bench.lanes()[0].stats();
    script
        .world()
        .note(|| format!("corrected: {}, lost: {}", stats.counters.counts_corrected, stats.lost_blocks));
    match stats.lost_blocks {
        0 => script.audit(),
        _ => Ok(()),
    }
}

pub const WRONG_COUNTS_ARE_MENDED: Scenario = Scenario {
    name: "wrong-counts-are-mended",
    property: "counts of live blocks, mapped blocks and references that are too low or too high end nobody; what is stored is read, \
               and after a scrub the counts are those of the map, or the pool says that something is lost",
    run: |seed, options| several(seed, options, 4, miscount),
};
