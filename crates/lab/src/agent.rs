//! Several load hosts at once: an agent runs on each, one leader controls them; they start together and their results
//! are added up.
//!
//! ```text
//!   leader → agent   plan                      one line of JSON each
//!   agent → leader   ready, or why not
//!   leader → agent   go                        when all are ready
//!   agent → leader   tally and observations
//! ```
//! An agent obeys any leader without authentication, so it belongs on a network of its own. It listens only on the
//! given address. Its input is bounded.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Barrier;
use std::time::Duration;

use serde::{Deserialize, Serialize, de::DeserializeOwned};

use crate::bottleneck::Evidence;
use crate::cpu::CpuUse;
use crate::job::Job;
use crate::measure::{Counts, Tally};
use crate::plan::Plan;
use crate::progress::Progress;
use crate::run::{self, Sum};
use crate::target::Target;
use crate::watch::{self, Pause};
use crate::worker::{Retried, retry};

/// Of this conversation; another one is refused.
const PROTOCOL: u32 = 2;
/// One line: a tally with a long time line is a few MiB.
const LINE_BYTES_MAX: u64 = 256 << 20;
/// Silence after which the other end is given up, beyond what the job takes.
const PATIENCE: Duration = Duration::from_secs(150);

#[derive(Serialize, Deserialize)]
struct Order {
    protocol: u32,
    target: Target,
    job: Job,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Answer {
    Ready,
    Failed(String),
    Finished(Box<Report>),
}

#[derive(Serialize, Deserialize)]
struct Report {
    counts: Counts,
    seconds: f64,
    operations: u64,
    facts: Vec<(String, String)>,
    retried: Retried,
    client: CpuUse,
    evidence: Evidence,
    #[serde(default)]
    pauses: Vec<Pause>,
}

struct Line {
    input: BufReader<TcpStream>,
    output: TcpStream,
    peer: String,
}

impl Line {
    fn new(socket: TcpStream) -> Result<Line, String> {
        let peer = socket.peer_addr().map_err(|error| error.to_string())?.to_string();
        let set_up = || {
            socket.set_nodelay(true)?;
            socket.set_read_timeout(Some(PATIENCE))?;
            socket.try_clone()
        };
        let output = set_up().map_err(|error| format!("{peer}: {error}"))?;
        Ok(Line { input: BufReader::new(socket), output, peer })
    }

    fn say(&mut self, value: &impl Serialize) -> Result<(), String> {
        let text = serde_json::to_string(value).expect("plain values") + "\n";
        self.output.write_all(text.as_bytes()).map_err(|error| format!("{}: {error}", self.peer))
    }

    fn hear<T: DeserializeOwned>(&mut self) -> Result<T, String> {
        let mut text = String::new();
        let read = self.input.by_ref().take(LINE_BYTES_MAX).read_line(&mut text);
        match read {
            Ok(0) => Err(format!("{} has gone", self.peer)),
            Ok(_) => serde_json::from_str(&text).map_err(|error| format!("{}: {error}", self.peer)),
            Err(error) => Err(format!("{}: {error}", self.peer)),
        }
    }
}

/// Serves leaders, one after the other, until the process ends.
pub fn serve(listen: SocketAddr, cores: &[usize], told: impl FnOnce(SocketAddr)) -> Result<(), String> {
    let listener = TcpListener::bind(listen).map_err(|error| format!("{listen}: {error}"))?;
    told(listener.local_addr().map_err(|error| error.to_string())?);
    for socket in listener.incoming() {
        let socket = socket.map_err(|error| error.to_string())?;
        // A leader that breaks off is its own trouble.
        if let Err(why) = Line::new(socket).and_then(|line| attend(line, cores)) {
            eprintln!("agent: {why}");
        }
    }
    Ok(())
}

fn attend(mut line: Line, cores: &[usize]) -> Result<(), String> {
    let order: Order = line.hear()?;
    match work(&mut line, order, cores) {
        Ok(report) => line.say(&Answer::Finished(Box::new(report))),
        Err(why) => line.say(&Answer::Failed(why)),
    }
}

fn work(line: &mut Line, order: Order, cores: &[usize]) -> Result<Report, String> {
    if order.protocol != PROTOCOL {
        return Err(format!("the leader speaks version {}, this agent {PROTOCOL}", order.protocol));
    }
    let plan = Plan {
        name: order.target.to_string(),
        target: order.target,
        job: order.job,
        round: 1,
        cores: cores.to_vec(),
        target_process: None,
    };
    let prepared = run::prepare(&plan)?;
    line.say(&Answer::Ready)?;
    let _go: String = line.hear()?;
    let sum = prepared.run(Duration::ZERO, &mut Progress::silent())?;
    let Sum { tally, seconds, operations, facts, retried, evidence, client, served: _, pauses } = sum;
    Ok(Report { counts: tally.to_counts(), seconds, operations, facts, retried, client, evidence, pauses })
}

/// Runs a plan on this host, unless it is left out, and on all agents, at the same time; the sum.
pub fn lead(plan: &Plan, agents: &[SocketAddr], here: bool, progress: &mut Progress) -> Result<Sum, String> {
    let mut lines = Vec::new();
    for (number, agent) in agents.iter().enumerate() {
        let socket = TcpStream::connect(agent).map_err(|error| format!("agent {agent}: {error}"))?;
        let mut line = Line::new(socket)?;
        // another seed: hosts visit other places
        let seed = plan.job.seed.wrapping_add(1_000 * (number as u64 + 1));
        let job = Job { seed, ..plan.job.clone() };
        line.say(&Order { protocol: PROTOCOL, target: plan.target.clone(), job })?;
        lines.push(line);
    }
    let own = here.then(|| run::prepare(plan)).transpose()?;
    for line in &mut lines {
        match line.hear()? {
            Answer::Ready => {}
            Answer::Failed(why) => return Err(format!("agent {}: {why}", line.peer)),
            Answer::Finished(_) => return Err(format!("agent {} was done before it began", line.peer)),
        }
    }
    let begin = Barrier::new(lines.len() + usize::from(own.is_some()));
    let mut sums = Vec::new();
    std::thread::scope(|scope| {
        let begin = &begin;
        let reports = lines.iter_mut().map(|line| {
            scope.spawn(move || {
                begin.wait();
                line.say(&"go")?;
                match line.hear()? {
                    Answer::Finished(report) => from_report(*report),
                    Answer::Failed(why) => Err(format!("agent {}: {why}", line.peer)),
                    Answer::Ready => Err(format!("agent {} is ready twice", line.peer)),
                }
            })
        });
        let reports: Vec<_> = reports.collect();
        if let Some(own) = own {
            begin.wait();
            sums.push(own.run(Duration::ZERO, progress));
        }
        sums.extend(reports.into_iter().map(|report| report.join().expect("it does not panic")));
    });
    let sums = sums.into_iter().collect::<Result<Vec<Sum>, String>>()?;
    sums.into_iter().reduce(add).ok_or("there is no load host: name an agent, or load from here".to_owned())
}

fn from_report(report: Report) -> Result<Sum, String> {
    let Report { counts, seconds, operations, facts, retried, client, evidence, pauses } = report;
    let tally = Tally::from_counts(&counts)?;
    Ok(Sum { tally, seconds, operations, facts, retried, evidence, client, served: None, pauses })
}

fn add(mut one: Sum, other: Sum) -> Sum {
    one.tally.add(&other.tally);
    one.seconds = one.seconds.max(other.seconds);
    retry::add(&mut one.retried, &other.retried);
    one.operations += other.operations;
    one.client.add(&other.client);
    one.client.share_among(one.operations);
    one.evidence.outstanding += other.evidence.outstanding;
    one.evidence.client_busy = one.evidence.client_busy.max(other.evidence.client_busy);
    one.evidence.window_full |= other.evidence.window_full;
    one.pauses.extend(other.pauses);
    one.pauses = watch::merged(one.pauses);
    one.served = one.served.or(other.served);
    // it has served all of them
    one.served.iter_mut().for_each(|served| served.share_among(one.operations));
    one
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::floor::{self, Floor};
    use crate::job::Limit;
    use std::sync::mpsc::channel;

    /// Two agents and this host load one echo floor; all of it is data-bounded, so the sum is known.
    #[test]
    fn hosts_are_started_together_and_summed() {
        let floor =
            Floor { listen: "127.0.0.1:0".parse().expect("an address"), size_bytes: 1 << 20, cores: vec![] };
        let (send, listening) = channel();
        std::thread::spawn(move || floor::serve(&floor, send));
        let target = Target::Echo(listening.recv().expect("it listens"));
        let agents: Vec<SocketAddr> = (0..2)
            .map(|_| {
                let (send, address) = channel();
                let listen = "127.0.0.1:0".parse().expect("an address");
                std::thread::spawn(move || {
                    serve(listen, &[], |address| send.send(address).expect("we wait"))
                });
                address.recv().expect("it listens")
            })
            .collect();
        let job = Job { limit: Limit::Bytes(100 * 4096), queue_depth: 4, ..Job::default() };
        let plan = Plan { name: "floor".into(), target, job, round: 1, cores: vec![], target_process: None };
        let sum = lead(&plan, &agents, true, &mut Progress::silent()).expect("all of them run");
        assert_eq!((sum.tally.operations(), sum.tally.read_bytes), (300, 300 * 4096));
        assert_eq!((sum.evidence.outstanding, sum.operations), (12, 300));
        let served = sum.served.expect("it runs here");
        for cpu in [&sum.client, &served] {
            assert!(
                (cpu.us_per_io * 300.0 - cpu.seconds * 1e6).abs() < 1.0,
                "of all hosts' requests: {cpu:?}"
            );
        }
        let wrong = Plan { job: Job { threads: 0, ..plan.job.clone() }, ..plan };
        let Err(why) = lead(&wrong, &agents, false, &mut Progress::silent()) else { panic!("no such job") };
        assert!(why.contains("0 threads"), "{why}");
    }
}
