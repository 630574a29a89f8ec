//! What the pool reports about itself must be true.

use std::ops::Range;

use base::Nanos;

use super::crashes::ROOT_BLOCKS;
use super::proof::redundant;
use super::script::plain_plan;
use super::{Scenario, Script, counted, until_met};
use crate::seed::Order;
use crate::workload::Failure;

pub const CLAIMS_NO_MORE_THAN_IT_SURVIVES: Scenario = Scenario {
    name: "claims-no-more-than-it-survives",
    property: "while a block lacks what a drive refused to take, as many drives as are said to be survived may go, and no more are said",
    run: |seed, options| {
        let mut script = Script::new(seed, plain_plan(redundant(seed), 6, 300), options);
        script.start()?;
        script.write(0, 200)?;
        let refusing = script.drive(0);
        script.write_refused_by(refusing, 20, 7 + seed % 20)?;
        // nothing has been repaired yet; the drive that refused is the last to be pulled
        script.pull_claimed(refusing);
        script.verify()
    },
};

pub const LACKING_IS_KNOWN_AFTER_A_RESTART: Scenario = Scenario {
    name: "lacking-is-known-after-a-restart",
    property: "what a drive refused to take is known to be lacking after a restart, too, wherever that comes: before a checkpoint \
               could say so, after a later batch knew it to be durable",
    run: |seed, options| {
        let mut options = Some(options);
        for later in 0..4 {
            let plan = plain_plan(redundant(seed), 6, 300);
            let mut script = Script::new(seed * 10 + later, plan, options.take().unwrap_or_default());
            script.start()?;
            script.write(0, 200)?;
            let refusing = script.drive(0);
            script.write_refused_by(refusing, 20, 7 + seed % 20)?;
            for batch in 0..later {
                script.write(100 + batch * 10, 1 + seed % 5)?;
            }
            script.crash(seed % 2 == 0);
            script.start()?;
            script.pull_claimed(refusing);
            script.verify()?;
        }
        Ok(())
    },
};

pub const LACKING_IS_KNOWN_AFTER_A_START_THAT_WAS_CUT_OFF: Scenario = Scenario {
    name: "lacking-is-known-after-a-start-that-was-cut-off",
    property: "what a drive missed while it was away is known to be lacking, wherever a start that found it again is cut off",
    run: |seed, options| {
        let mut options = Some(options);
        for cut in 0..24 {
            let plan = plain_plan(redundant(seed), 6, 300);
            let mut script = Script::new(seed * 100 + cut, plan, options.take().unwrap_or_default());
            script.start()?;
            script.write(0, 200)?;
            let away = script.drive(0);
            let writes: Vec<_> = (0..6).map(|block| script.begin_write(block * 9, 7)).collect();
            script.steps(seed % 11);
            script.world().vanish(away, None, false);
            script.until("writes", || writes.iter().all(|written| written.get()))?;
            script.write(100, 1 + seed % 5)?;
            script.crash(true);
            script.world().return_drive(away);
            script.cut_after(Some(cut * 3));
            script.begin_start();
            let opened = script.finish_start();
            script.cut_after(None);
            if !script.was_cut() {
                opened?;
            }
            script.crash(true);
            script.start()?;
            script.pull_claimed(away);
            script.verify()?;
        }
        Ok(())
    },
};

pub const LACKING_IS_KNOWN_OF_WHAT_HAD_NOT_BEEN_FLUSHED: Scenario = Scenario {
    name: "lacking-is-known-of-what-had-not-been-flushed",
    property: "a drive that goes while a checkpoint is written, with what it had not flushed, and is back after a restart, is known to \
               lack it",
    run: |seed, options| {
        let mut options = Some(options);
        for gone in 0..40 {
            let mut plan = plain_plan(redundant(seed), 6, 300);
            plan.volumes[0].write_back = true;
            plan.checkpoint_interval = Nanos::from_millis(5);
            let mut script = Script::new(seed * 100 + gone, plan, options.take().unwrap_or_default());
            script.start()?;
            script.write(0, 200)?;
            let away = script.drive(0);
            let checkpoints = |script: &Script| script.bench.lanes()[0].stats().counters.map_blocks_written;
            let before = checkpoints(&script);
            while checkpoints(&script) == before {
                script.steps(1);
            }
            script.steps(gone * 2);
            script.world().vanish(away, None, false);
            script.write(100, 1 + seed % 5)?;
            script.pass(Nanos::from_millis(1))?;
            script.crash(false);
            script.world().return_drive(away);
            script.start()?;
            script.pull_claimed(away);
            script.verify()?;
        }
        Ok(())
    },
};

pub const LACKING_IS_KNOWN_OF_WHAT_A_SCRUB_FOUND: Scenario = Scenario {
    name: "lacking-is-known-of-what-a-scrub-found",
    property: "what a scrub finds rotten while a checkpoint's table is on its way is known to be lacking after a restart: the root that \
               follows names no table that calls it complete",
    run: |seed, options| {
        let mut options = Some(options);
        until_met(["checkpoint: something has come to lack data, the table is made anew"], 4, 8, |run| {
            let mut plan = plain_plan(redundant(seed), 6, 300);
            plan.checkpoint_interval = Nanos::from_millis(5);
            let mut script = Script::new(seed * 10 + run, plan, options.take().unwrap_or_default());
            script.start()?;
            script.write(0, 200)?;
            script.pass(Nanos::from_millis(20))?;
            // all of one chunk, in a segment that is full
            let rotten = script.drive(0);
            for block in 256..272 {
                script.world().rot(rotten, block, block as usize * 977 % 32_768);
            }
            let counters = |script: &Script| script.bench.lanes()[0].stats().counters;
            let before = counters(&script);
            script.write(200, 1)?;
            // the map has a page of each of its three levels on its way; the table is next
            while counters(&script).map_blocks_written < before.map_blocks_written + 3 {
                script.steps(1);
            }
            let delay_writes = |script: &Script, drives: Range<usize>, time| {
                drives.for_each(|index| script.world().delay_writes(script.drive(index), time));
            };
            let table_takes = Nanos::from_millis(100);
            let table_ends = script.world().now() + table_takes;
            delay_writes(&script, 0..6, table_takes);
            let found = || counted("scrub: damage is repaired");
            let earlier = found();
            script.begin_scrub();
            script.until("what is rotten to be found", || found() > earlier)?;
            // from now on one drive alone is fast: it gets the root, and repairs are on the others too late
            delay_writes(&script, 0..5, Nanos::from_secs(1));
            script.pass(table_ends.saturating_sub(script.world().now()))?;
            delay_writes(&script, 5..6, Nanos(0));
            let roots =
                |script: &Script| ROOT_BLOCKS.map(|block| script.world().peek(script.drive(5), block));
            let before = roots(&script);
            while roots(&script) == before {
                script.steps(1);
            }
            delay_writes(&script, 0..5, Nanos(0));
            script.crash(true);
            script.start()?;
            script.pull_claimed(rotten);
            script.verify()
        })
    },
};

pub const LACKING_IS_KNOWN_OF_AN_OLDER_STATE: Scenario = Scenario {
    name: "lacking-is-known-of-an-older-state",
    property: "a drive that is put back to what it held before lacks what was written since, and is known to, also by a start after one \
               that was cut off",
    run: |seed, options| {
        let mut options = Some(options);
        for cut in 0..16 {
            let plan = plain_plan(redundant(seed), 6, 300);
            let mut script = Script::new(seed * 100 + cut, plan, options.take().unwrap_or_default());
            script.start()?;
            script.write(0, 100)?;
            script.close()?;
            let old = script.drive(0);
            let snapshot = script.world().snapshot(old);
            script.start()?;
            script.write(50, 200)?;
            script.close()?;
            script.world().put_back(old, snapshot);
            // the first eight go as far as they may
            script.cut_after((cut >= 8).then(|| (cut - 8) * 6));
            script.begin_start();
            let opened = script.finish_start();
            script.cut_after(None);
            if script.was_cut() {
                script.crash(true);
                script.start()?;
            } else {
                opened?;
            }
            script.pull_claimed(old);
            script.verify()?;
        }
        Ok(())
    },
};

pub const CONDEMNED_DRIVE_STAYS_WHERE_OTHERS_GO: Scenario = Scenario {
    name: "condemned-drive-stays-where-others-go",
    property: "a drive with too many errors that is about to be taken out is kept if other drives go first; and what the pool says that \
               it would survive does not count on it",
    run: |seed, options| {
        let mut options = Some(options);
        let kept = || counted("evidence: a drive is kept, others went while it was taken out");
        let before = kept();
        // the drive is measured for most of a second before it is taken out; only what is said counts after that
        for (after_us, as_said) in [
            (100_000, false),
            (799_000, false),
            (600_000, true),
            (800_200, true),
            (801_000, true),
            (802_000, true),
        ] {
            let mut plan = plain_plan(redundant(seed), 5, 300);
            plan.patience.checksum_errors = 3;
            let mut script =
                Script::new(seed * 1_000 + after_us / 1_000, plan, options.take().unwrap_or_default());
            script.start()?;
            script.write(0, 200)?;
            let (world, rotten) = (script.world(), script.drive(0));
            for block in 256..(24 << 20) / base::BLOCK_BYTES as u64 {
                world.rot(rotten, block, block as usize * 977 % 32_768);
            }
            let began = world.now();
            script.read_from(1, 0, 200)?;
            // everything that is rotten is found and written anew
            script.scrub()?;
            let passed = world.now().saturating_sub(began);
            script.pass(Nanos::from_micros(after_us).saturating_sub(passed))?;
            if as_said {
                script.pull_claimed(rotten);
            } else {
                (1..=usize::from(redundant(seed).parity()))
                    .for_each(|other| world.vanish(script.drive(other), None, false));
            }
            script.verify()?;
            script.pass(Nanos::from_secs(1))?;
            script.write(0, 20)?;
            script.verify()?;
        }
        if kept() == before {
            return Err(Failure::Broken("no drive was taken out when others went".to_owned()));
        }
        Ok(())
    },
};

pub const UPGRADED_WITHOUT_A_DRIVE: Scenario = Scenario {
    name: "upgraded-without-a-drive",
    property: "a pool is moved to the newest format while a drive of it is away, through a power cut at any moment; the drive comes back \
               with labels of the old format, and catches up",
    run: |seed, options| {
        let mut options = Some(options);
        for cut in 0..12 {
            let plan = plain_plan(redundant(seed), 5, 300);
            let mut script = Script::new(seed * 100 + cut, plan, options.take().unwrap_or_default());
            script.start()?;
            script.write(0, 100)?;
            script.close()?;
            let away = script.drive(0);
            script.world().vanish(away, None, false);
            script.start()?;
            script.write(20, 100)?;
            script.order(Order::Upgrade);
            // the last four go to the end
            script.operations(if cut < 8 { cut } else { 1_000 });
            script.crash(true);
            script.world().return_drive(away);
            script.start()?;
            script.verify()?;
            let version = script.bench.membership().map(|membership| membership.version);
            if cut >= 8 && version != Some(pool::FORMAT_VERSION) {
                return Err(Failure::Broken(format!(
                    "the start after the upgrade has found format {version:?}"
                )));
            }
            script.order(Order::Upgrade);
            script.write(60, 20)?;
            script.converge()?;
            script.prove_redundancy()?;
        }
        Ok(())
    },
};
