//! Snapshots and clones, and their layers.

use base::{LayerId, Nanos};
use pool::{LaneRequest, Protection};

use super::proof::headers;
use super::script::plain_plan;
use super::{Scenario, Script, counted};
use crate::drive::DriveOptions;
use crate::oracle::SECTORS_PER_BLOCK;
use crate::seed::Plan;
use crate::workload::{Answer, Failure, Request, Stretch};

const VOLUME: u32 = 1;

fn any(seed: u64) -> Protection {
    Protection::ALL[(seed % 5) as usize]
}

pub const COPIES_STAY_WHAT_THEY_WERE: Scenario = Scenario {
    name: "copies-stay-what-they-were",
    property: "snapshots and clones hold what was there when they were made, whatever is written, rolled back, deleted or cut off",
    run: |seed, options| {
        let mut script = Script::new(seed, plain_plan(any(seed), 6, 2000), options);
        script.start()?;
        script.write(0, 200)?;
        let mut kept = Vec::new();
        for round in 0..4 {
            let snapshot = script.snapshot(VOLUME)?;
            script.write(round * 40, 60)?;
            script.unmap(round * 50, 10)?;
            let clone = script.clone_of(snapshot)?;
            script.write_to(clone, 30 * round + 500, 20)?;
            script.write_to(clone, 10, 5)?;
            kept.extend([snapshot, clone]);
        }
        script.verify()?;
        script.roll_back(kept[2])?;
        script.write(5, 10)?;
        while !kept.is_empty() {
            let copy = kept.swap_remove(script.prng.index(kept.len()));
            script.delete(copy)?;
            if script.prng.chance(500) {
                script.crash(true);
                script.start()?;
            }
            script.verify()?;
        }
        script.converge()?;
        script.audit()?;
        script.verify()
    },
};

pub const DELETING_GIVES_BACK_WHAT_WAS_SAID: Scenario = Scenario {
    name: "deleting-gives-back-what-was-said",
    property: "what a copy is said to hold alone is what its deletion gives back, to the block",
    run: |seed, options| {
        let mut script = Script::new(seed, plain_plan(any(seed), 6, 600), options);
        script.start()?;
        script.write(0, 100)?;
        let first = script.snapshot(VOLUME)?;
        let clone = script.clone_of(first)?;
        // hidden from the volume, and the clone's alone when the snapshot has gone
        script.write(0, 40)?;
        script.write_to(clone, 90, 20)?;
        let second = script.snapshot(VOLUME)?;
        script.unmap(20, 50)?;
        let third = script.snapshot(clone)?;
        script.write_to(clone, 80, 15)?;
        let mut copies = vec![second, third, clone];
        script.prng.shuffle(&mut copies);
        script.delete_counted(first)?;
        for copy in copies {
            script.delete_counted(copy)?;
            script.verify()?;
        }
        script.audit()
    },
};

/// Takes no notice of what came of it.
fn ask(script: &mut Script, request: LaneRequest) -> Result<(), Failure> {
    let lane = script.bench.lanes()[0].clone();
    script.run("a request to the lane", async move { drop(lane.execute(request).await) })
}

/// Waits for nothing.
fn begin(script: &mut Script, request: LaneRequest) {
    let lane = script.bench.lanes()[0].clone();
    script.spawn(async move { drop(lane.execute(request).await) });
}

pub const REFERENCES_OUTLIVE_WHAT_THEY_WERE_MADE_OF: Scenario = Scenario {
    name: "references-outlive-what-they-were-made-of",
    property: "a copied range stays what it was, whatever becomes of both sides, and what only it held is given back in the end",
    run: |seed, options| {
        let mut script = Script::new(seed, plain_plan(any(seed), 6, 2000), options);
        script.start()?;
        script.write(0, 200)?;
        let stored = |script: &Script| script.bench.lanes()[0].stats().mapped_blocks;
        let before = stored(&script);
        let range = |source, from, destination, to, blocks| Stretch { source, destination, from, to, blocks };
        script.copy_range(range(VOLUME, 0, VOLUME, 701, 150))?;
        let snapshot = script.snapshot(VOLUME)?;
        let clone = script.clone_of(snapshot)?;
        script.copy_range(range(VOLUME, 650, clone, 20, 300))?;
        script.copy_range(range(snapshot, 0, clone, 1000, 100))?;
        if stored(&script) > before {
            return Err(Failure::Broken(format!(
                "{} blocks, {before} before they were copied",
                stored(&script)
            )));
        }
        script.verify()?;
        script.write(0, 200)?;
        script.write(750, 20)?;
        script.delete(snapshot)?;
        for round in 0..3 {
            script.crash(round % 2 == 0);
            script.start()?;
            script.forget()?;
            script.converge()?;
            script.verify()?;
            script.write_to(clone, 30 + round * 10, 5)?;
        }
        script.audit()?;
        script.delete(clone)?;
        script.unmap(600, 400)?;
        // its own references go with it
        script.converge()?;
        script.forget()?;
        script.converge()?;
        script.audit()?;
        script.verify()?;
        let layers = script.bench.lanes()[0].layers();
        if stored(&script) != 200 || layers.len() != 1 {
            let left = stored(&script);
            return Err(Failure::Broken(format!("{left} blocks are left, in layers {layers:?}")));
        }
        Ok(())
    },
};

pub const REFERENCE_TO_NOTHING_IS_AN_ERROR: Scenario = Scenario {
    name: "reference-to-nothing-is-an-error",
    property: "where a layer was dropped that something refers to, its blocks cannot be read: nothing else is taken for them",
    run: |seed, options| {
        let mut script = Script::new(seed, plain_plan(any(seed), 6, 600), options);
        script.start()?;
        script.write(0, 100)?;
        let source = *script.bench.lanes()[0].layers().last().expect("the volume's");
        let (from, to, blocks) = (0, 300, 100);
        script.copy_range(Stretch { source: VOLUME, destination: VOLUME, from, to, blocks })?;
        script.read_from(VOLUME, 300, 100)?;
        script.write(0, 50)?;
        // which nobody is to do
        ask(&mut script, LaneRequest::DropLayer { layer: source })?;
        script.converge()?;
        let sectors = |block: u64| block * SECTORS_PER_BLOCK..(block + 50) * SECTORS_PER_BLOCK;
        for (block, is_there) in [(0, true), (50, true), (300, false), (350, false)] {
            let answer = script.request(Request::Read { volume: VOLUME, sectors: sectors(block) })?;
            if matches!(answer, Answer::Data(_)) != is_there {
                return Err(Failure::Broken(format!("block {block}: {answer:?}")));
            }
        }
        // what is written over it is there
        script.write(300, 100)?;
        script.audit()?;
        script.verify()
    },
};

pub const RENAMED_LAYER_IS_NOT_MADE_AGAIN: Scenario = Scenario {
    name: "renamed-layer-is-not-made-again",
    property: "a volume whose layer went into the one below it is found by its name, and not made a second time at the next start",
    run: |seed, options| {
        let mut script = Script::new(seed, plain_plan(any(seed), 6, 600), options);
        script.start()?;
        script.write(0, 200)?;
        let snapshot = script.snapshot(VOLUME)?;
        script.write(0, 20)?;
        // a snapshot that is cut off: its layer is made, and no record says so
        let top = *script.bench.lanes()[0].layers().last().expect("the volume's");
        let unrecorded = LaneRequest::CreateLayer { layer: LayerId(900_000), parent: Some(top), blocks: 600 };
        ask(&mut script, unrecorded)?;
        script.delete(snapshot)?;
        script.converge()?;
        for _ in 0..2 {
            script.crash(seed % 2 == 0);
            script.start()?;
            script.verify()?;
        }
        let layers = script.bench.lanes()[0].layers();
        if layers.iter().filter(|layer| **layer == top).count() != 1 {
            return Err(Failure::Broken(format!("the lane's layers are {layers:?}")));
        }
        script.write(10, 30)?;
        script.converge()?;
        script.audit()?;
        script.verify()
    },
};

pub const EMPTY_LAYER_IS_MADE_AGAIN: Scenario = Scenario {
    name: "empty-layer-is-made-again",
    property: "a layer that was dropped before anything was written to it is made again without waiting for a checkpoint of its own time",
    run: |seed, options| {
        let mut script = Script::new(seed, plain_plan(any(seed), 6, 600), options);
        script.start()?;
        script.write(0, 20)?;
        let top = *script.bench.lanes()[0].layers().last().expect("the volume's");
        let layer = LayerId(900_000);
        ask(&mut script, LaneRequest::CreateLayer { layer, parent: Some(top), blocks: 600 })?;
        ask(&mut script, LaneRequest::DropLayer { layer })?;
        // upkeep has looked, and has found nothing to do
        script.pass(Nanos::from_millis(100))?;
        let before = script.world().now();
        ask(&mut script, LaneRequest::CreateLayer { layer, parent: Some(top), blocks: 600 })?;
        let took = script.world().now() - before;
        if took > Nanos::from_secs(1) {
            return Err(Failure::Broken(format!("it took {took:?}")));
        }
        ask(&mut script, LaneRequest::DropLayer { layer })?;
        script.converge()?;
        script.audit()
    },
};

/// Rounds of which one is sure to have the layer written at the right moment.
const OVERTAKING_ROUNDS: u64 = 120;

pub const LAYER_WRITTEN_AGAIN_IS_MERGED_WHOLE: Scenario = Scenario {
    name: "layer-written-again-is-merged-whole",
    property: "what was written to a layer between the checkpoint that was to come before its merge and the merge's first page is there afterwards",
    run: |seed, options| {
        let mut script = Script::new(seed, plain_plan(any(seed), 6, 2000), options);
        script.start()?;
        // whether the merge is overtaken depends on moments that nobody sees
        let overtaken = || counted("layers: one that was to be merged was written again first");
        let before = overtaken();
        for round in 0..OVERTAKING_ROUNDS {
            if overtaken() > before {
                break;
            }
            // pages that make the checkpoint long
            (0..round % 6).try_for_each(|page| script.write(600 + page * 256 + round % 100, 1))?;
            script.write(0, 300)?;
            let snapshot = script.snapshot(VOLUME)?;
            script.write(round % 18 * 16, 3)?;
            let top = *script.bench.lanes()[0].layers().last().expect("the volume's");
            let stands_on_it = |layer| LaneRequest::CreateLayer { layer, parent: Some(top), blocks: 2000 };
            let (one, other) = (LayerId(900_000 + 2 * round as u32), LayerId(900_001 + 2 * round as u32));
            ask(&mut script, stands_on_it(one))?;
            // from now on the volume's layer, which has less, is to go into the one below
            script.delete(snapshot)?;
            let steps = script.prng.below(12);
            script.steps(steps);
            ask(&mut script, LaneRequest::DropLayer { layer: one })?;
            script.write(290 + round % 100, 2)?;
            ask(&mut script, stands_on_it(other))?;
            script.converge()?;
            script.verify()?;
            ask(&mut script, LaneRequest::DropLayer { layer: other })?;
        }
        if overtaken() == before {
            return Err(Failure::Broken(format!("no merge was overtaken in {OVERTAKING_ROUNDS} rounds")));
        }
        script.crash(true);
        script.start()?;
        script.converge()?;
        script.audit()?;
        script.verify()
    },
};

/// Rounds of which some have a checkpoint at the right moment.
const FORGETTING_ROUNDS: u64 = 120;

pub const TARGET_OF_A_MERGE_IS_NOT_FORGOTTEN: Scenario = Scenario {
    name: "target-of-a-merge-is-not-forgotten",
    property: "a layer that nobody asks for any more, and that holds nothing, is there as long as another is being merged into it",
    run: |seed, options| {
        let mut plan = plain_plan(any(seed), 5, 600);
        plan.checkpoint_interval = Nanos::from_micros(500);
        let mut script = Script::new(seed, plan, options);
        script.start()?;
        for round in 0..FORGETTING_ROUNDS {
            script.begin_write(round % 500, 3);
            let (below, above) = (LayerId(900_000 + 2 * round as u32), LayerId(900_001 + 2 * round as u32));
            ask(&mut script, LaneRequest::CreateLayer { layer: below, parent: None, blocks: 600 })?;
            ask(&mut script, LaneRequest::CreateLayer { layer: above, parent: Some(below), blocks: 600 })?;
            // it holds nothing and goes into the one above it, which goes, too
            ask(&mut script, LaneRequest::DropLayer { layer: below })?;
            let steps = script.prng.below(100);
            script.steps(steps);
            begin(&mut script, LaneRequest::DropLayer { layer: above });
            let steps = script.prng.below(100);
            script.steps(steps);
            script.crash(round % 2 == 0);
            script.start()?;
            script.verify()?;
        }
        script.converge()?;
        script.audit()
    },
};

/// So little room that overwriting soon needs cleaning.
fn tiny(protection: Protection, drive_mib: u64) -> Plan {
    let drive = |index| DriveOptions::new(&format!("/sim/drive{index}"), drive_mib << 20);
    let drives = (0..6).map(drive);
    Plan { drives: drives.collect(), ..plain_plan(protection, 6, 600) }
}

pub const BLOCKS_OF_MERGED_LAYERS_ARE_CLEANED: Scenario = Scenario {
    name: "blocks-of-merged-layers-are-cleaned",
    property: "blocks that were written for layers that are no more are found, moved and given back",
    run: |seed, options| {
        let mut script = Script::new(seed, tiny(any(seed), 5), options);
        script.start()?;
        let mut snapshots = Vec::new();
        for round in 0..400 {
            script.write(round % 300, 1)?;
            script.write(300 + round * 17 % 250, 12)?;
            if round % 25 == 10 {
                snapshots.push(script.snapshot(VOLUME)?);
            }
            if snapshots.len() > 2 {
                let oldest = snapshots.remove(0);
                script.delete(oldest)?;
            }
        }
        for snapshot in snapshots {
            script.delete(snapshot)?;
        }
        script.converge()?;
        script.audit()?;
        script.crash(true);
        script.start()?;
        script.converge()?;
        script.audit()?;
        script.verify()
    },
};

/// Makes the leaf pages of the oldest layer's map unreadable, wherever they stand. How many there are.
fn lose_pages_of_the_oldest_layer(script: &Script) -> usize {
    let world = script.world();
    let is_leaf = |content: &[u8]| content.starts_with(b"TNGP") && content[6] == 1;
    let layer = |content: &[u8]| u32::from_le_bytes(content[8..12].try_into().expect("four bytes"));
    let mut leaves = Vec::new();
    for &drive in script.bench.drives() {
        for block in 256..(8 << 20) / base::BLOCK_BYTES as u64 {
            let content = world.peek(drive, block);
            if is_leaf(&content) && layer(&content) > pool::CATALOG_LAYER.0 {
                leaves.push((layer(&content), drive, block));
            }
        }
    }
    let oldest = leaves.iter().map(|(layer, ..)| *layer).min();
    leaves.retain(|(layer, ..)| Some(*layer) == oldest);
    leaves.iter().for_each(|&(_, drive, block)| world.spoil(drive, block));
    leaves.len()
}

pub const LOST_PAGE_STOPS_NOBODY: Scenario = Scenario {
    name: "lost-page-stops-nobody",
    property: "where pages of a layer's map are lost, that layer is neither merged nor cleaned, and everything else goes on: \
               writes are answered, other layers go, and nothing is tried again and again",
    run: |seed, options| {
        let mut script = Script::new(seed, tiny(any(seed), 8), options);
        script.start()?;
        let mut copies = Vec::new();
        // little is live in the oldest layer's segments: they are what cleaning takes first
        for block in 0..60 {
            script.write(block, 1)?;
            script.write(300 + block * 17 % 250, 12)?;
        }
        for round in 0..4 {
            copies.push(script.snapshot(VOLUME)?);
            script.write(round * 40, 50)?;
        }
        script.close()?;
        script.start()?;
        script.shared.lenient.set(true);
        if lose_pages_of_the_oldest_layer(&script) == 0 {
            return Err(Failure::Broken("no page of the map was found".to_owned()));
        }
        // the first cannot be merged with the second; the third can with the fourth
        for index in [0, 2] {
            script.delete(copies[index])?;
        }
        let refused = script.shared.out_of_space.get();
        for round in 0..1500 {
            script.write(round % 290, 1)?;
            script.write(300 + round * 17 % 250, 12)?;
        }
        if script.shared.out_of_space.get() > refused {
            return Err(Failure::Broken("overwriting was refused for want of space".to_owned()));
        }
        script.converge()?;
        let checkpoints = |script: &Script| script.bench.lanes()[0].stats().counters.checkpoints;
        let before = checkpoints(&script);
        script.pass(Nanos::from_secs(600))?;
        match checkpoints(&script) - before {
            // one each time that it is due
            0..=30 => Ok(()),
            more => Err(Failure::Broken(format!("an idle pool wrote {more} checkpoints"))),
        }
    },
};

/// Makes every batch's header unreadable, wherever a copy of it stands. How many there are.
fn lose_headers(script: &Script) -> usize {
    let mut lost = 0;
    for &drive in script.bench.drives() {
        for (_, block) in headers(script, drive) {
            script.world().spoil(drive, block);
            lost += 1;
        }
    }
    lost
}

pub const DELETION_IS_NOT_OVERHEARD: Scenario = Scenario {
    name: "deletion-is-not-overheard",
    property: "what is deleted while cleaning looks around in vain goes, too, though nothing else happens any more",
    run: |seed, options| {
        let mut script = Script::new(seed, tiny(Protection::Parity1, 8), options);
        script.start()?;
        for round in 0..40 {
            script.write(round * 13, 13)?;
        }
        let snapshot = script.snapshot(VOLUME)?;
        script.write(0, 50)?;
        script.close()?;
        script.start()?;
        script.shared.lenient.set(true);
        if lose_headers(&script) == 0 {
            return Err(Failure::Broken("no header was found".to_owned()));
        }
        for index in 0..6 {
            script.world().set_latency(script.drive(index), Nanos::from_millis(2), Nanos::from_millis(3));
        }
        // everything is to be written anew now, and nothing of it can be
        let lost = script.drive(5);
        script.world().vanish(lost, None, false);
        script.write(0, 1)?;
        script.delete(snapshot)?;
        script.pass(Nanos::from_secs(20))?;
        match script.bench.lanes()[0].upkeep_is_due() {
            false => Ok(()),
            true => Err(Failure::Broken("what was deleted is still there".to_owned())),
        }
    },
};
