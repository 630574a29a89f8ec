//! Pools that become full, and maps that do not fit into memory.

use std::cell::Cell;
use std::rc::Rc;

use base::Nanos;
use pool::Protection;

use super::script::plain_plan;
use super::{Scenario, Script, counted};
use crate::drive::DriveOptions;
use crate::oracle::SECTORS_PER_BLOCK;
use crate::workload::{Answer, Checked, Failure, Request};

/// Blocks of one leaf page of the map.
const PAGE_BLOCKS: u64 = 256;

fn broken(what: String) -> Failure {
    Failure::Broken(what)
}

/// Five drives, a volume that is larger than they are.
fn thin(protection: Protection) -> crate::seed::Plan {
    let mut plan = plain_plan(protection, 5, 20_000);
    let drive = |index| DriveOptions::new(&format!("/sim/drive{index}"), 9 << 20);
    plan.drives = (0..5).map(drive).collect();
    plan
}

/// Writes from `block` on until the pool is full; the first block that did not fit.
fn fill(script: &mut Script, mut block: u64) -> Result<u64, Failure> {
    let refused = script.shared.out_of_space.get();
    while script.shared.out_of_space.get() == refused {
        if block + 16 > 20_000 {
            return Err(broken("a volume larger than the pool could be written whole".to_owned()));
        }
        script.write(block, 16)?;
        block += 16;
    }
    Ok(block - 16)
}

/// What has been refused for want of space must not have become more.
fn expect_space(script: &Script, before: u64, what: &str) -> Result<(), Failure> {
    match script.shared.out_of_space.get() == before {
        true => Ok(()),
        false => Err(broken(format!("{what} was refused for want of space"))),
    }
}

pub const REFUSED_WRITE_HAS_ENDED: Scenario = Scenario {
    name: "refused-write-has-ended",
    property: "of a write over several pages of the map, one of which finds no space, nothing lands after the refusal",
    run: |seed, options| {
        let mut plan = thin(Protection::ALL[(seed % 5) as usize]);
        plan.volumes[0].write_back = seed % 2 == 0;
        let mut script = Script::new(seed, plan, options);
        script.start()?;
        let in_part = || counted("write: a request is refused while part of it is on its way");
        let before = in_part();
        let end = fill(&mut script, 0)?;
        for round in 0..8 {
            // what is written already needs no more space, and what follows it does
            let first = end / PAGE_BLOCKS * PAGE_BLOCKS;
            script.unmap(round * 16, 8)?;
            let refused = script.shared.out_of_space.get();
            script.write(first - 1 - (seed + round) % 30, 8 * PAGE_BLOCKS)?;
            if script.shared.out_of_space.get() == refused {
                return Err(broken("there was space for eight pages".to_owned()));
            }
            script.read_from(1, first - 40, 40)?;
            script.pass(Nanos::from_millis(20))?;
            script.read_from(1, first - 40, 40)?;
        }
        if in_part() == before {
            return Err(broken("no write was refused while part of it was on its way".to_owned()));
        }
        script.crash(seed % 3 == 0);
        script.start()?;
        script.verify()?;
        script.audit()
    },
};

pub const THIN_POOL_RUNS_FULL: Scenario = Scenario {
    name: "thin-pool-runs-full",
    property: "in a full pool writes that need space fail, reads, overwrites and UNMAP go on, and freeing space resumes \
               service by itself; the reserve is not eaten",
    run: |seed, options| {
        let protection = Protection::ALL[(seed % 5) as usize];
        let mut script = Script::new(seed, thin(protection), options);
        script.start()?;
        let mut first_fill = None;
        for round in 0..3 {
            let end = fill(&mut script, 0)?;
            // a pool that was full and was emptied takes as much as before
            let most = *first_fill.get_or_insert(end);
            if end + most / 20 + 32 < most {
                return Err(broken(format!("round {round}: full at block {end}, at {most} before")));
            }
            script.verify()?;
            let refused = script.shared.out_of_space.get();
            for block in 0..100 {
                script.write(block * 7 % (end - 8), 4)?;
            }
            expect_space(&script, refused, "an overwrite")?;
            script.unmap(end / 4, 400)?;
            expect_space(&script, refused, "an UNMAP")?;
            script.pass(Nanos::from_secs(5))?;
            script.write(end / 4, 200)?;
            expect_space(&script, refused, "a write into what was freed")?;
            script.crash(round % 2 == 0);
            script.start()?;
            script.verify()?;
            script.unmap(0, end + 16)?;
            script.pass(Nanos::from_secs(5))?;
            script.audit()?;
        }
        Ok(())
    },
};

pub const FULL_POOL_LOSES_A_DRIVE: Scenario = Scenario {
    name: "full-pool-loses-a-drive",
    property: "a full pool that has lost a drive serves what it has; when there is room again it becomes redundant",
    run: |seed, options| {
        let protection = Protection::ALL[1 + (seed % 4) as usize];
        let mut script = Script::new(seed, thin(protection), options);
        script.start()?;
        let end = fill(&mut script, 0)?;
        let foretold = script.bench.lanes()[0].stats().capacity_without[2];
        let lost = script.drive(2);
        script.world().vanish(lost, None, false);
        for block in 0..40 {
            // whether there is space for this is not promised; that nothing breaks is
            script.write(block * 11 % (end - 8), 3)?;
        }
        let capacity = script.bench.lanes()[0].stats().capacity_blocks;
        // pages that are to be written weigh on it, too
        if foretold.abs_diff(capacity) > capacity / 16 {
            return Err(broken(format!("there is room for {capacity} blocks, and {foretold} were foretold")));
        }
        script.verify()?;
        script.crash(true);
        script.start()?;
        script.verify()?;
        script.unmap(end / 3, end - end / 3)?;
        script.pass(Nanos::from_secs(30))?;
        script.write(end / 3, 50)?;
        script.verify()?;
        script.retire()?;
        script.audit()?;
        script.prove_redundancy()
    },
};

/// Eleven times the pages that there is memory for.
const MAP_BLOCKS: u64 = 11 * 256 * 256;

pub const MAP_TEN_TIMES_ITS_MEMORY: Scenario = Scenario {
    name: "map-ten-times-its-memory",
    property: "a pool whose map is ten times the memory for it works within that memory, and counts the misses",
    run: |seed, options| {
        let mut plan = plain_plan(Protection::Parity1, 4, MAP_BLOCKS);
        let drive = |index| DriveOptions::new(&format!("/sim/drive{index}"), 160 << 20);
        plan.drives = (0..4).map(drive).collect();
        plan.chunk_bytes = 256 << 10;
        plan.map_budget_bytes = 1 << 20;
        let budget_pages = plan.map_budget_bytes / base::BLOCK_BYTES;
        let mut script = Script::new(seed, plan, options);
        script.start()?;
        for round in 0..4_000 {
            script.write(round * 79_193 % (MAP_BLOCKS - 4), 1 + round % 4)?;
            let stats = script.bench.lanes()[0].stats();
            if stats.map_pages_cached > budget_pages + 8 {
                return Err(broken(format!("{} pages in memory for {budget_pages}", stats.map_pages_cached)));
            }
        }
        script.verify()?;
        let stats = script.bench.lanes()[0].stats();
        if stats.map_misses < 3_000 {
            return Err(broken(format!("only {} misses were counted", stats.map_misses)));
        }
        script.crash(true);
        script.start()?;
        script.verify()?;
        script.audit()
    },
};

/// Longer than any write may wait on drives that answer within a millisecond.
const ANSWER_WITHIN: Nanos = Nanos::from_secs(20);

fn expect_answers(script: &mut Script, writes: &[Rc<Cell<bool>>]) -> Result<(), Failure> {
    let world = script.world();
    let deadline = world.now() + ANSWER_WITHIN;
    let answered = || writes.iter().all(|done| done.get());
    script.until("writes", || answered() || world.now() > deadline)?;
    match answered() && world.now() <= deadline {
        true => Ok(()),
        false => Err(broken(format!("writes are not answered within {ANSWER_WITHIN:?}"))),
    }
}

pub const FULL_POOL_ANSWERS: Scenario = Scenario {
    name: "full-pool-answers",
    property: "whoever writes to a pool that is full in scattered pieces is answered: cleaning that gains nothing gives up",
    run: |seed, options| {
        let mut plan = thin(Protection::Parity1);
        plan.drives.truncate(3);
        let mut script = Script::new(seed, plan, options);
        script.start()?;
        let end = fill(&mut script, 0)?;
        let away = script.drive(1);
        for round in 0..6 {
            script.world().vanish(away, None, false);
            let writes: Vec<_> = (0..16u64)
                .map(|client| {
                    script
                        .begin_write((seed * 131 + round * 977 + client * 389) % (end + 600), 1 + client * 3)
                })
                .collect();
            expect_answers(&mut script, &writes)?;
            script.unmap((round * 501) % end, 5 + seed % 7)?;
            script.world().return_drive(away);
            script.order(crate::seed::Order::TakeBack(1, "/sim/drive1".to_owned()));
            script.pass(Nanos::from_millis(300))?;
        }
        script.verify()
    },
};

pub const SET_ASIDE_WENT_WITH_DRIVES: Scenario = Scenario {
    name: "set-aside-went-with-drives",
    property: "in a full pool all that was set aside for the log goes with a drive, again and again: what frees space is answered",
    run: |seed, options| {
        let protection = if seed % 2 == 0 { Protection::Parity2 } else { Protection::Mirror3 };
        let mut plan = thin(protection);
        plan.drives.truncate(4);
        plan.width = Some(4).filter(|_| protection == Protection::Parity2);
        let mut script = Script::new(seed, plan, options);
        script.start()?;
        let end = fill(&mut script, 0)?;
        let away = [seed as usize % 4, (seed as usize + 2) % 4];
        for round in 0..12u64 {
            for (n, &index) in away.iter().enumerate() {
                let drive = script.drive(index);
                script.world().vanish(drive, None, false);
                let writes: Vec<_> = (0..8u64)
                    .map(|client| {
                        script.begin_write((seed * 131 + round * 977 + client * 389) % end, 1 + client)
                    })
                    .collect();
                let unmap = script.begin_unmap((round * 501 + n as u64 * 90) % end, 5 + seed % 7);
                expect_answers(&mut script, &writes)?;
                expect_answers(&mut script, &[unmap])?;
            }
            for index in away {
                let drive = script.drive(index);
                script.world().return_drive(drive);
                script.order(crate::seed::Order::TakeBack(index as u8, format!("/sim/drive{index}")));
                script.pass(Nanos::from_millis(50))?;
            }
        }
        script.verify()
    },
};

pub const REDUNDANCY_COMES_BACK_WHERE_ROOM_IS_SHORT: Scenario = Scenario {
    name: "redundancy-comes-back-where-room-is-short",
    property: "a drive goes during a start of a pool that is a third full, the rest garbage, and comes back: no host is refused for \
               want of space, and room is made for what lacks redundancy, although nobody writes",
    run: |seed, options| {
        let mut plan = thin(Protection::Parity1);
        plan.drives.truncate(3);
        let mut script = Script::new(seed, plan, options);
        script.start()?;
        let end = fill(&mut script, 0)?;
        let used = end / 3;
        script.unmap(used, end + 16 - used)?;
        for round in 0..20u64 {
            // until cleaning has to keep up
            for write in 0..300 {
                script.write((seed * 131 + round * 977 + write * 389) % (used - 16), 1 + write % 16)?;
            }
            let index = (seed + round) as usize % 3;
            let drive = script.drive(index);
            script.crash(round % 2 == 0);
            script.begin_start();
            script.steps(100 + (seed * 53 + round * 29) % 400);
            script.world().vanish(drive, None, false);
            script.finish_start()?;
            let writes: Vec<_> = (0..8)
                .map(|client| script.begin_write((round * 977 + client * 389) % used, 1 + client))
                .collect();
            expect_answers(&mut script, &writes)?;
            script.world().return_drive(drive);
            script.order(crate::seed::Order::TakeBack(index as u8, format!("/sim/drive{index}")));
            // another one goes in the next round
            let deadline = script.world().now() + Nanos::from_secs(60);
            script.pass(Nanos::from_millis(50))?;
            while script.bench.lanes().iter().any(|lane| lane.stats().exposed_blocks != [0; 3]) {
                script.pass(Nanos::from_millis(50))?;
                if script.world().now() > deadline {
                    return Err(broken(format!("round {round}: redundancy is not restored")));
                }
            }
        }
        script.verify()
    },
};

pub const LOST_MAP_PAGES_STAY: Scenario = Scenario {
    name: "lost-map-pages-stay",
    property: "where map pages are lost beyond the promise, cleaning works around them: writes elsewhere go on",
    run: |seed, options| {
        let mut plan = thin(Protection::Stripe);
        plan.drives.truncate(1);
        plan.drives[0].size_bytes = 48 << 20;
        plan.map_budget_bytes = 64 << 10;
        let mut script = Script::new(seed, plan, options);
        script.start()?;
        let full = fill(&mut script, 0)?;
        let end = full * 2 / 3;
        script.unmap(end, full + 16 - end)?;
        script.close()?;
        script.start()?;
        script.shared.lenient.set(true);
        let (world, drive) = (script.world(), script.drive(0));
        for _ in 0..100 {
            world.damage_beyond(drive, (1 << 20) / base::BLOCK_BYTES as u64);
        }
        for round in 0..1_000u64 {
            let block = |client: u64| (seed * 131 + round * 977 + client * 389) % (end - 8);
            let writes: Vec<_> =
                (0..8).map(|client| script.begin_write(block(client), 1 + client % 4)).collect();
            expect_answers(&mut script, &writes)?;
        }
        script.verify()
    },
};

pub const CHECKPOINTS_READ_NOTHING: Scenario = Scenario {
    name: "checkpoints-read-nothing",
    property: "a page of the map is changed only with those above it in memory: the checkpoint that writes it needs no drive",
    run: |seed, options| {
        let mut plan = plain_plan(Protection::Stripe, 1, MAP_BLOCKS);
        plan.drives[0].size_bytes = 160 << 20;
        plan.map_budget_bytes = 64 << 10;
        plan.checkpoint_interval = Nanos::from_millis(50);
        let mut script = Script::new(seed, plan, options);
        script.start()?;
        let others = |index: u64| 256 * 256 + (index * 5_003 + seed) % (MAP_BLOCKS - 256 * 256 - 1);
        script.write(0, 1)?;
        for index in 0..120 {
            script.write(others(index), 1)?;
        }
        script.close()?;
        script.start()?;
        // the first leaf page stays in memory, the one above it does not
        for index in 0..120 {
            script.request(read_block(0))?;
            script.request(read_block(others(index)))?;
        }
        script.shared.lenient.set(true);
        let (world, drive) = (script.world(), script.drive(0));
        for block in (1 << 20) / base::BLOCK_BYTES as u64..(160 << 20) / base::BLOCK_BYTES as u64 {
            world.rot(drive, block, 77);
        }
        let before = script.bench.lanes()[0].stats().counters.checkpoints;
        let data = vec![1; base::BLOCK_BYTES];
        let answer = script.request(Request::Write { volume: 1, first: 0, data, durable: true })?;
        script.pass(Nanos::from_secs(1))?;
        let checkpoints = script.bench.lanes()[0].stats().counters.checkpoints - before;
        match (answer, checkpoints) {
            (Answer::Done, 0) => {
                Err(broken("a write is acknowledged that no checkpoint can take in".to_owned()))
            }
            (Answer::Done | Answer::Failed(_), _) => Ok(()),
            (other, _) => Err(broken(format!("{other:?}"))),
        }
    },
};

fn read_block(block: u64) -> Request {
    Request::Read { volume: 1, sectors: block * SECTORS_PER_BLOCK..(block + 1) * SECTORS_PER_BLOCK }
}

pub const PROMISED_SPACE_IS_USED_OR_GIVEN_BACK: Scenario = Scenario {
    name: "promised-space-is-used-or-given-back",
    property: "what is set aside for a write is used by it, or given back where it begins anew",
    run: |seed, options| {
        // hardly a page of the map stays in memory
        let mut plan = plain_plan(Protection::ALL[(seed % 5) as usize], 5, PAGES * PAGE);
        plan.map_budget_bytes = 64 << 10;
        let mut script = Script::new(seed, plan, options);
        script.start()?;
        for page in 0..PAGES {
            script.write(page * PAGE, 2)?;
        }
        script.snapshot(1)?;
        // parts of blocks that the volume has from the snapshot, and whose pages have to be read
        let write = Checked::Write { durable: false };
        for page in 0..PAGES {
            let sector = page * PAGE * SECTORS_PER_BLOCK + page % SECTORS_PER_BLOCK;
            let written = [0, 1, SECTORS_PER_BLOCK]
                .map(|more| script.begin_part(write, sector + more..sector + more + 1));
            script.until("parts of blocks", || written.iter().all(|one| one.get()))?;
        }
        script.audit()
    },
};

const PAGES: u64 = 40;
const PAGE: u64 = 256;
