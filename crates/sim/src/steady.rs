//! A pool that is nearly full and written at random for a long time: its final rate, its longest write, and its write
//! amplification compared with the theory.

use std::cell::{Cell, RefCell};
use std::fmt;
use std::rc::Rc;

use base::{AlignedBuffer, LayerId, Nanos};
use block::Payload;
use pool::{Lane, LaneRequest, Protection};
use task::Io;

use crate::drive::DriveOptions;
use crate::prng::Prng;
use crate::scenarios::{Script, plain_plan};
use crate::seed::{Options, Plan};
use crate::workload::{Failure, VolumePlan};

/// Requests in flight.
const DEPTH: u64 = 16;
const LAYER: LayerId = LayerId(99);

/// What is measured.
#[derive(Clone, Debug)]
pub struct Steady {
    pub protection: Protection,
    /// Blocks in use, of those that the pool can hold.
    pub full_percent: u64,
    /// Of a hundred writes, so many go to a tenth of the blocks; 10 is uniform.
    pub hot_percent: u64,
    /// Simulated time of random overwrites.
    pub time: Nanos,
    /// Writes at most in each millisecond of it.
    pub writes_per_ms: u64,
}

/// What was measured. Blocks are of 4 KiB.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    pub live_blocks: u64,
    pub segments: usize,
    pub writes: u64,
    /// Writes in the first and the last tenth of the time.
    pub first_tenth: u64,
    pub last_tenth: u64,
    pub worst: Nanos,
    /// Writes that took longer than 100 ms.
    pub stalls: u64,
    /// Blocks moved by cleaning, and map pages and tables written, for each block of the hosts.
    pub moved_per_write: f64,
    pub pages_per_write: f64,
    /// Blocks moved for each written, were the choice of victims greedy, writes uniform and the map free: with all of the log
    /// there for garbage, and less what is kept free.
    pub moved_naively: f64,
    pub moved_in_theory: f64,
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{} blocks live in {} segments, {} overwrites",
            self.live_blocks, self.segments, self.writes
        )?;
        writeln!(f, "first tenth {}, last tenth {} writes", self.first_tenth, self.last_tenth)?;
        writeln!(f, "worst write {:.1} ms, {} over 100 ms", self.worst.0 as f64 / 1e6, self.stalls)?;
        write!(
            f,
            "for each block written: {:.2} moved (theory of uniform writes {:.2}, {:.2} without a reserve), {:.2} of map and tables",
            self.moved_per_write, self.moved_in_theory, self.moved_naively, self.pages_per_write
        )
    }
}

/// Six drives, segments of a quarter MiB per drive.
fn plan(steady: &Steady) -> Plan {
    let mut plan = plain_plan(steady.protection, 6, 1);
    plan.drives = (0..6).map(|index| DriveOptions::new(&format!("/sim/drive{index}"), 129 << 20)).collect();
    plan.chunk_bytes = 256 << 10;
    plan.map_budget_bytes = 16 << 20;
    plan.volumes = vec![VolumePlan { volume: 1, blocks: 1, write_back: false }];
    plan
}

/// What the writers share.
struct Progress {
    steady: Steady,
    lane: Rc<Lane>,
    io: Io,
    blocks: u64,
    end: Cell<Nanos>,
    began: Cell<Nanos>,
    outcome: RefCell<Outcome>,
    prng: RefCell<Prng>,
    failure: RefCell<Option<String>>,
}

impl Progress {
    fn next_block(&self) -> u64 {
        let mut prng = self.prng.borrow_mut();
        let tenth = (self.blocks / 10).max(1);
        if prng.chance(self.steady.hot_percent as u32 * 10) {
            prng.below(tenth)
        } else {
            tenth + prng.below((self.blocks - tenth).max(1))
        }
    }

    async fn write(&self, block: u64, blocks: u64) {
        let data = Payload::from(AlignedBuffer::zeroed(blocks as usize).into_bytes());
        let request = LaneRequest::Write { layer: LAYER, block, data, durable: true };
        if let Err(error) = self.lane.execute(request).await {
            self.failure.borrow_mut().get_or_insert(format!("writing block {block}: {error:?}"));
        }
    }

    /// One of the writers: paced, so that a stall is not hidden by writing less.
    async fn overwrite(self: Rc<Self>) {
        let pause = Nanos(1_000_000 * DEPTH / self.steady.writes_per_ms.max(1));
        while self.io.now() < self.end.get() && self.failure.borrow().is_none() {
            let began = self.io.now();
            self.write(self.next_block(), 1).await;
            let took = Nanos(self.io.now().0 - began.0);
            self.account(took);
            if took < pause {
                self.io.sleep(Nanos(pause.0 - took.0)).await;
            }
        }
    }

    fn account(&self, took: Nanos) {
        let mut outcome = self.outcome.borrow_mut();
        outcome.writes += 1;
        outcome.worst = outcome.worst.max(took);
        outcome.stalls += u64::from(took > Nanos::from_millis(100));
        let (at, all) = (self.io.now().0 - self.began.get().0, self.end.get().0 - self.began.get().0);
        outcome.first_tenth += u64::from(at < all / 10);
        outcome.last_tenth += u64::from(at >= all - all / 10);
    }
}

/// Fills a pool and overwrites it at random.
pub fn measure(steady: &Steady, seed: u64, options: Options) -> Result<Outcome, Failure> {
    let mut script = Script::new(seed, plan(steady), options);
    script.start()?;
    let lane = script.bench.lanes()[0].clone();
    let io = script.io();
    let blocks = lane.stats().capacity_blocks * steady.full_percent / 100;
    let progress = Rc::new(Progress {
        steady: steady.clone(),
        lane: lane.clone(),
        io: io.clone(),
        blocks,
        end: Cell::new(Nanos(0)),
        began: Cell::new(Nanos(0)),
        outcome: RefCell::default(),
        prng: RefCell::new(Prng::new(seed)),
        failure: RefCell::default(),
    });
    let filling = progress.clone();
    script.run_long("filling", async move {
        let create = LaneRequest::CreateLayer { layer: LAYER, parent: None, blocks: filling.blocks };
        if let Err(error) = filling.lane.execute(create).await {
            filling.failure.borrow_mut().get_or_insert(format!("{error:?}"));
        }
        for block in (0..filling.blocks).step_by(64) {
            filling.write(block, 64.min(filling.blocks - block)).await;
        }
    })?;
    let before = lane.stats();
    progress.began.set(io.now());
    progress.end.set(io.now() + steady.time);
    let writers: Vec<_> = (0..DEPTH).map(|_| script.spawn(progress.clone().overwrite())).collect();
    script.until("overwriting", || writers.iter().all(|done| done.get()))?;
    if let Some(why) = progress.failure.borrow().clone() {
        return Err(Failure::Broken(why));
    }
    let after = lane.stats();
    let mut outcome = progress.outcome.borrow().clone();
    let per_write = |count: u64| count as f64 / outcome.writes.max(1) as f64;
    let (moved, pages) = (
        per_write(after.counters.blocks_cleaned - before.counters.blocks_cleaned),
        per_write(after.counters.map_blocks_written - before.counters.map_blocks_written),
    );
    (outcome.moved_per_write, outcome.pages_per_write) = (moved, pages);
    outcome.live_blocks = after.live_blocks;
    outcome.segments = after.segments_total;
    let all = after.segments_total as f64 * after.segment_blocks as f64;
    outcome.moved_naively = moved_in_theory(after.live_blocks as f64 / all);
    outcome.moved_in_theory = moved_in_theory(after.live_blocks as f64 / (all - after.reserve_blocks as f64));
    Ok(outcome)
}

/// Uniform random writes on a log, or on what is not kept free of it, whose share `used` is live: the live share f of what is cleaned solves
/// used = (f − 1) / ln f, and f / (1 − f) blocks are moved for each that is written.
fn moved_in_theory(used: f64) -> f64 {
    let (mut low, mut high) = (1e-6f64, 1.0 - 1e-9);
    for _ in 0..100 {
        let middle = (low + high) / 2.0;
        if (middle - 1.0) / middle.ln() < used { low = middle } else { high = middle }
    }
    low / (1.0 - low)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn theory() {
        assert!((moved_in_theory(0.5) - 0.255).abs() < 0.01, "{}", moved_in_theory(0.5));
        assert!((moved_in_theory(0.8) - 1.69).abs() < 0.05, "{}", moved_in_theory(0.8));
    }

    #[test]
    fn a_nearly_full_pool_goes_on_without_stalls() {
        for (full_percent, hot_percent, writes_per_ms, seconds, worst_ms) in
            [(80, 10, 4, 20, 8), (90, 90, 4, 20, 8), (90, 10, 50, 4, 20), (95, 10, 4, 20, 50)]
        {
            let steady = Steady {
                protection: Protection::Parity1,
                full_percent,
                hot_percent,
                time: Nanos::from_secs(seconds),
                writes_per_ms,
            };
            let outcome = measure(&steady, 1, Options::default()).expect("it goes on");
            assert_eq!(outcome.stalls, 0, "{steady:?}: {outcome}");
            // hosts are slowed, and never wait for a whole round of cleaning
            assert!(outcome.worst < Nanos::from_millis(worst_ms), "{steady:?}: {outcome}");
            // at full speed the room of the beginning is soon used up
            let settled = if writes_per_ms > 4 { 6 } else { 9 };
            assert!(outcome.last_tenth * 10 > outcome.first_tenth * settled, "{steady:?}: {outcome}");
        }
    }
}
