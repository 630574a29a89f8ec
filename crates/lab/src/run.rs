//! One run: threads that connect, start together, and are added up; the settings in force; the bottleneck.

use std::io;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use base::Nanos;
use env::Env;
use uring::{Options, spawn_shards};

use crate::bottleneck::{self, Evidence};
use crate::cpu::{self, Sample};
use crate::measure::{Tally, freezes};
use crate::plan::Plan;
use crate::progress::Progress;
use crate::result::Run;
use crate::settings;
use crate::target::Target;
use crate::watch::{self, Pause, Watch};
use crate::worker::{Finished, Retried, Shared, Worker, World, retry};

/// How long a thread looks for answers before it sleeps, at most: whoever is asleep costs the one who wakes it, which on one
/// machine is the target.
const SPIN_MAX: Nanos = Nanos::from_micros(200);
/// How long all threads may take to connect.
const CONNECT_MAX: Duration = Duration::from_secs(120);
/// From "all are ready" to the start: enough for every thread to be at the line.
const RUN_UP: Duration = Duration::from_millis(5);

/// A run whose threads are connected and wait for the start.
pub struct Prepared {
    plan: Plan,
    shared: Arc<Shared>,
    finished: Receiver<Result<Finished, String>>,
    threads: Vec<std::thread::JoinHandle<()>>,
}

/// What the threads of one host have seen together.
pub struct Sum {
    pub tally: Tally,
    pub seconds: f64,
    /// All that ended, those before measuring began among them.
    pub operations: u64,
    pub facts: Vec<(String, String)>,
    pub retried: Retried,
    pub evidence: Evidence,
    pub client: cpu::CpuUse,
    pub served: Option<cpu::CpuUse>,
    pub pauses: Vec<Pause>,
}

/// Connects all threads of a plan.
pub fn prepare(plan: &Plan) -> Result<Prepared, String> {
    plan.job.check()?;
    let shared = Arc::new(Shared {
        target: plan.target.clone(),
        job: plan.job.clone(),
        start: OnceLock::new(),
        operations: AtomicU64::new(0),
        bytes: AtomicU64::new(0),
        stop: AtomicBool::new(false),
        drives: Default::default(),
    });
    let (is_ready, ready) = channel();
    let (finish, finished) = channel();
    let mut options = Options { cores: plan.cores.clone(), ..Options::new(plan.job.threads) };
    options.spin_max = match plan.target {
        // waking up is a part of what a drive takes, as fio counts it
        Target::Drives(_) => Nanos(0),
        _ if options.spin_max > Nanos(0) => SPIN_MAX,
        _ => Nanos(0),
    };
    let for_threads = shared.clone();
    let shards = spawn_shards(&options, move |env: World| {
        let index = env.shard().0;
        match Worker::new(env, index, for_threads) {
            Ok(worker) => {
                // whoever waits has gone only where another thread has failed
                let _ = is_ready.send(Ok(()));
                let _ = finish.send(worker.run());
            }
            Err(why) => drop(is_ready.send(Err(why))),
        }
    });
    let threads = shards.map_err(|error: io::Error| format!("io_uring: {error}"))?.threads;
    for _ in 0..plan.job.threads {
        let answer = ready.recv_timeout(CONNECT_MAX).map_err(|_| "connecting takes too long".to_owned());
        if let Err(why) = answer.and_then(|answer| answer) {
            shared.stop.store(true, Relaxed);
            return Err(why);
        }
    }
    Ok(Prepared { plan: plan.clone(), shared, finished, threads })
}

impl Prepared {
    /// Begins after `delay`, and waits for the end. `progress` is told how far it is.
    pub fn run(self, delay: Duration, progress: &mut Progress) -> Result<Sum, String> {
        let plan = &self.plan;
        let served_by = server_of(plan);
        std::thread::sleep(delay);
        let theirs = served_by.map(Sample::take);
        let drives_before = bottleneck::drive_times(&plan.target);
        let start = Instant::now() + RUN_UP;
        let watch = Watch::begin(start + plan.job.unmeasured());
        self.shared.start.set(start).expect("a run starts once");
        let mut sum: Option<(Tally, f64)> = None;
        let (mut facts, mut window_full, mut left) = (Vec::new(), 0, plan.job.threads);
        let mut retried = Retried::new();
        let mut client = cpu::CpuUse::default();
        while left > 0 {
            let finished = match self.finished.recv_timeout(Duration::from_millis(100)) {
                Ok(finished) => finished,
                Err(RecvTimeoutError::Timeout) => {
                    progress.show(
                        plan,
                        self.shared.operations.load(Relaxed),
                        self.shared.bytes.load(Relaxed),
                    );
                    continue;
                }
                Err(RecvTimeoutError::Disconnected) => {
                    return Err("a thread of the generator is gone".to_owned());
                }
            };
            let finished = finished.inspect_err(|_| self.shared.stop.store(true, Relaxed))?;
            left -= 1;
            facts = finished.facts;
            window_full += finished.window_full;
            retry::add(&mut retried, &finished.retried);
            client.add(&finished.cpu);
            match &mut sum {
                None => sum = Some((finished.tally, finished.seconds)),
                Some((tally, seconds)) => {
                    tally.add(&finished.tally);
                    *seconds = seconds.max(finished.seconds);
                }
            }
        }
        let pauses = watch.end();
        let (tally, seconds) = sum.expect("a job has threads");
        let operations = self.shared.operations.load(Relaxed);
        client.share_among(operations);
        let served = theirs.zip(served_by).map(|(before, id)| before.until(&Sample::take(id), operations));
        let evidence = Evidence {
            outstanding: plan.job.outstanding(),
            client_busy: client.busiest_thread,
            target_busy: served.as_ref().map(|served| served.busiest_thread),
            wire: bottleneck::wire_share(
                &plan.target,
                (tally.read_bytes + tally.written_bytes) as f64 / seconds,
            ),
            drive_busy: bottleneck::drives_busy(&drives_before, seconds),
            window_full: window_full > tally.operations() / 20,
            local: matches!(plan.target, Target::Drives(_)),
        };
        self.threads.into_iter().for_each(|thread| drop(thread.join()));
        Ok(Sum { tally, seconds, operations, facts, retried, evidence, client, served, pauses })
    }
}

/// The process that serves a plan's target, where it runs on this machine.
pub fn server_of(plan: &Plan) -> Option<u32> {
    plan.target_process.or_else(|| match &plan.target {
        Target::Iscsi(unit) => cpu::listener(unit.portal),
        Target::Echo(address) => cpu::listener(*address),
        Target::Drives(_) => None,
    })
}

/// Runs a plan on this host alone.
pub fn run(plan: &Plan, progress: &mut Progress) -> Result<Run, String> {
    let sum = prepare(plan)?.run(Duration::ZERO, progress)?;
    progress.clear();
    Ok(to_run(plan, &sum))
}

/// What is kept of a run.
pub fn to_run(plan: &Plan, sum: &Sum) -> Run {
    let (tally, seconds) = (&sum.tally, sum.seconds.max(1e-9));
    let line = tally.line(seconds).to_vec();
    let mut settings = sum.facts.clone();
    settings.extend(settings::of_target(&plan.target));
    settings.push(("generator.cores".to_owned(), format!("{:?}", plan.cores)));
    Run {
        target: plan.name.clone(),
        address: plan.target.to_string(),
        job: plan.job.clone(),
        round: plan.round,
        seconds,
        iops: tally.operations() as f64 / seconds,
        mib_s: (tally.read_bytes + tally.written_bytes) as f64 / seconds / f64::from(1 << 20),
        reads: tally.reads(),
        writes: tally.writes(),
        all: tally.all(),
        interval_seconds: f64::from(plan.job.interval_ms) / 1e3,
        freezes: freezes(&line),
        own_max_ns: watch::longest_between(&line, f64::from(plan.job.interval_ms) / 1e3, &sum.pauses),
        pauses: sum.pauses.clone(),
        line,
        client_cpu: sum.client.clone(),
        target_cpu: sum.served.clone(),
        bottleneck: bottleneck::name(&sum.evidence),
        retried: sum.retried.clone(),
        settings,
    }
}
