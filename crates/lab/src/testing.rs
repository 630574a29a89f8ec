//! Made-up results for tests.

use crate::cpu::CpuUse;
use crate::job::Job;
use crate::measure::{Interval, Latency};
use crate::profile::{Class, Profile, Symbol};
use crate::result::{Bottleneck, Limit, Results, Run, SCHEMA};

pub fn run(target: &str, round: u32, iops: f64) -> Run {
    let latency =
        Latency { operations: 1000, p50_ns: 50_000, p99_ns: 99_000, max_ns: 120_000, ..Latency::default() };
    Run {
        target: target.to_owned(),
        address: format!("/dev/{target}"),
        job: Job::default(),
        round,
        seconds: 1.0,
        iops,
        mib_s: iops / 256.0,
        reads: latency.clone(),
        writes: Latency::default(),
        all: latency,
        interval_seconds: 0.1,
        line: (0..10).map(|n| Interval { operations: 100 + n, latency_ns_max: 100_000 + n }).collect(),
        freezes: Vec::new(),
        pauses: Vec::new(),
        own_max_ns: 120_000,
        client_cpu: CpuUse { seconds: 0.5, busiest_thread: 0.5, us_per_io: 1.0 },
        target_cpu: Some(CpuUse { seconds: 0.9, busiest_thread: 0.9, us_per_io: 2.0 }),
        bottleneck: Bottleneck { name: Limit::TargetCpu, why: "it is <full>".to_owned() },
        retried: Default::default(),
        settings: vec![("size_bytes".to_owned(), "1".to_owned())],
    }
}

pub fn results(runs: Vec<Run>) -> Results {
    Results {
        schema: SCHEMA,
        title: "test".to_owned(),
        time: 1_700_000_000,
        version: "0".to_owned(),
        commit: Some("abc".to_owned()),
        settings: vec![("machine.cpu".to_owned(), "an <abacus>".to_owned())],
        runs,
        profiles: Vec::new(),
        not_profiled: Vec::new(),
    }
}

/// A profile of a hundred samples.
pub fn profile(target: &str) -> Profile {
    let name = "<iscsi::Link>".to_owned();
    let symbol = Symbol { name, file: "tangelo".to_owned(), class: Class::UserRest, samples: 10 };
    Profile {
        target: target.to_owned(),
        job: Job::default(),
        samples: 100,
        classes: Class::ALL.into_iter().zip([60, 0, 10, 20, 0, 0, 10]).collect(),
        symbols: vec![symbol],
        us_per_io: 9.0,
    }
}
