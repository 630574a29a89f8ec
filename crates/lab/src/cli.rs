//! The command line of the lab, defined once: this is `tangelo bench`.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, Subcommand};

use crate::grid::Grid;
use crate::job::{Job, Limit, Pattern, Skew};
use crate::suite::Named;
use crate::sweep::Vary;
use crate::target::Target;
use crate::units::parse_bytes;

#[derive(Subcommand, Debug)]
pub enum Bench {
    /// One load on one target
    Run(RunArgs),
    /// A grid of loads, as the classic tools print it
    Grid(GridArgs),
    /// One parameter at a time, everything else as it was
    Sweep(SweepArgs),
    /// The same load again and again until its rate is steady; the target is written over twice before, if asked
    Steady(SteadyArgs),
    /// Copy one file or drive onto another
    Copy {
        from: String,
        /// It must be there, and as large; what it holds is lost
        to: String,
        #[arg(long, default_value = "1M", value_parser = parse_bytes)]
        block: u64,
        /// Pieces on their way at once
        #[arg(long, default_value = "8")]
        depth: usize,
    },
    /// Have an array copy from one LUN to another (EXTENDED COPY), aligned to its blocks and not: what the second one
    /// holds is lost
    Offload {
        /// iscsi://HOST[:PORT]/TARGET/LUN
        from: Target,
        /// Another LUN of the same target
        to: Target,
        /// At most what the smaller one holds
        #[arg(long, default_value = "1G", value_parser = parse_bytes)]
        bytes: u64,
        /// Bytes of each command
        #[arg(long, default_value = "4M", value_parser = parse_bytes)]
        block: u64,
    },
    /// The same load by our generator and by fio, in turn: do they agree?
    Fio(FioArgs),
    /// Parity and checksums against what memory allows
    Kernels,
    /// Write a whole target once, in order, so that reads find something
    Fill(Fill),
    /// Load on behalf of a leader elsewhere (`run --agent`); does what anybody says who can connect
    Agent {
        /// Address and port; port 0 takes a free one, which is printed
        #[arg(long)]
        listen: SocketAddr,
        /// Cores of the generator
        #[arg(long, value_delimiter = ',')]
        cores: Vec<usize>,
    },
    /// Serve the echo floor: the same bytes over TCP with no protocol
    Floor(FloorArgs),
    /// The same loads on several targets side by side, in rounds, with ratios
    Suite(SuiteArgs),
    /// Two files of results beside each other
    Compare { before: PathBuf, after: PathBuf },
    /// Results as one page with charts, which fetches nothing
    Report {
        results: PathBuf,
        /// The page to write
        page: PathBuf,
        /// Compare with the target of this name
        #[arg(long, value_name = "NAME")]
        base: Option<String>,
    },
    /// Results beside published figures of known systems
    Against { results: PathBuf },
    /// Keep the ratios of a suite in a file of history, or show it
    History {
        /// One line of JSON for each suite
        history: PathBuf,
        /// The results of a suite to add
        #[arg(long, value_name = "FILE", requires = "base")]
        add: Option<PathBuf>,
        #[arg(long, value_name = "NAME")]
        base: Option<String>,
    },
    /// Read a whole logical unit and compare it with a file; what is behind the file's end must be zeros
    Verify {
        /// iscsi://HOST[:PORT]/TARGET/LUN
        target: Target,
        file: PathBuf,
        /// Keep what was read
        #[arg(long, value_name = "FILE")]
        copy: Option<PathBuf>,
    },
    /// Write blocks that describe themselves and read them back all the time, through whatever happens to the array; the
    /// logical unit must be new, and what it holds is lost
    Torture {
        /// iscsi://HOST[:PORT]/TARGET/LUN
        target: Target,
        /// Another portal by which the same unit is reached; may be given for several. A path that fails is left for the next one
        #[arg(long = "path", value_name = "HOST:PORT")]
        paths: Vec<SocketAddr>,
        #[arg(long, default_value = "60")]
        seconds: u64,
        /// End early when this file exists
        #[arg(long, value_name = "FILE")]
        until: Option<PathBuf>,
        /// At most so many requests a second
        #[arg(long)]
        rate: Option<u64>,
    },
}

/// What a single load is made of.
#[derive(Args, Debug, Clone)]
pub struct JobArgs {
    /// read, write, randread, randwrite, or rwN and randrwN with N percent of reads
    #[arg(long, default_value = "randread", value_parser = parse_workload)]
    pub workload: (Pattern, u8),
    /// Send most of a random workload to a part of the target: 90/10 for 90 % of the requests to the first 10 % of it, 80/20
    #[arg(long, value_name = "REQUESTS/PLACES")]
    pub skew: Option<Skew>,
    /// Bytes of one request: a multiple of 512, 4 MiB at most
    #[arg(long, default_value = "4k", value_parser = parse_bytes)]
    pub block: u64,
    /// Writes are on stable storage before they count: FUA, or synchronous writes of a drive; what a pool does anyway
    #[arg(long)]
    pub durable: bool,
    /// Requests outstanding on each connection
    #[arg(long, default_value = "64")]
    pub depth: u32,
    /// Connections of each thread
    #[arg(long, default_value = "1")]
    pub connections: u32,
    /// Threads, each on a core of its own
    #[arg(long, default_value = "1")]
    pub threads: u16,
    /// Seconds to measure
    #[arg(long, default_value = "5")]
    pub seconds: f64,
    /// End after so many bytes instead
    #[arg(long, value_name = "SIZE", value_parser = parse_bytes, conflicts_with_all = ["seconds", "warm_up"])]
    pub bytes: Option<u64>,
    /// Seconds before measuring begins
    #[arg(long, default_value = "0.5")]
    pub warm_up: f64,
    /// Only the first so many bytes of the target
    #[arg(long, value_name = "SIZE", value_parser = parse_bytes)]
    pub span: Option<u64>,
    /// Milliseconds of an interval of the time line
    #[arg(long, default_value = "100")]
    pub interval: u32,
    #[arg(long, default_value = "1")]
    pub seed: u64,
}

impl JobArgs {
    pub fn job(&self) -> Job {
        Job {
            pattern: self.workload.0,
            skew: self.skew,
            read_percent: self.workload.1,
            block_bytes: u32::try_from(self.block).unwrap_or(u32::MAX),
            durable: self.durable,
            queue_depth: self.depth,
            channels: self.connections,
            threads: self.threads,
            span_bytes: self.span,
            limit: self.bytes.map_or(Limit::Seconds(self.seconds), Limit::Bytes),
            warm_up_seconds: self.warm_up,
            interval_ms: self.interval,
            seed: self.seed,
        }
    }
}

/// Where the generator runs and what becomes of the results.
#[derive(Args, Debug, Clone)]
pub struct Common {
    /// Cores of the generator, such as 1 or 2,3 [default: wherever the system likes]
    #[arg(long, value_delimiter = ',')]
    pub cores: Vec<usize>,
    /// Process id of the target, where it runs here and cannot be found by its port
    #[arg(long, value_name = "PID")]
    pub target_process: Option<u32>,
    /// A setting that only you know, such as strip=64KiB; may be given several times
    #[arg(long, value_name = "NAME=VALUE", value_parser = parse_note)]
    pub note: Vec<(String, String)>,
    /// Keep the results in this file, as JSON
    #[arg(long, value_name = "FILE")]
    pub save: Option<PathBuf>,
    /// Write them as a page with charts, which fetches nothing
    #[arg(long, value_name = "FILE")]
    pub report: Option<PathBuf>,
    /// Show published figures of the same requests beside them
    #[arg(long)]
    pub against: bool,
}

#[derive(Args, Debug)]
pub struct RunArgs {
    /// /dev/sdb[,/dev/sdc...], a file, iscsi://HOST[:PORT]/TARGET/LUN or echo://HOST:PORT
    pub target: Target,
    #[command(flatten)]
    pub job: JobArgs,
    /// Load from this agent too, started at the same moment and summed; may be given several times
    #[arg(long, value_name = "HOST:PORT")]
    pub agent: Vec<SocketAddr>,
    /// Load from the agents only
    #[arg(long, requires = "agent")]
    pub not_here: bool,
    /// Run it once more while `perf` samples the target's server, where that runs on this machine: what its CPU goes into
    #[arg(long, conflicts_with = "agent")]
    pub profile: bool,
    #[command(flatten)]
    pub common: Common,
}

#[derive(Args, Debug)]
pub struct Fill {
    /// As for `run`; what it holds is lost
    pub target: Target,
    #[command(flatten)]
    pub common: Common,
}

#[derive(Args, Debug)]
pub struct FloorArgs {
    /// Address and port; port 0 takes a free one, which is printed
    #[arg(long, default_value = "127.0.0.1:0")]
    pub listen: SocketAddr,
    /// Memory that is read, and as much again on each core that is written
    #[arg(long, default_value = "2GiB", value_parser = parse_bytes)]
    pub size: u64,
    /// One thread on each of these cores
    #[arg(long, value_delimiter = ',')]
    pub cores: Vec<usize>,
}

#[derive(Args, Debug)]
pub struct SuiteArgs {
    /// What is measured, under which name; at least one
    #[arg(required = true, value_name = "NAME=TARGET")]
    pub targets: Vec<Named>,
    /// Compare with the target of this name
    #[arg(long, value_name = "NAME")]
    pub base: Option<String>,
    /// Times that everything is run; medians count
    #[arg(long, default_value = "3")]
    pub rounds: u32,
    /// Seconds of each run
    #[arg(long, default_value = "1.5")]
    pub seconds: f64,
    /// Only jobs with this in their name, such as "4 KiB randread"; may be given several times
    #[arg(long, value_name = "TEXT")]
    pub only: Vec<String>,
    /// As for `run`
    #[arg(long)]
    pub durable: bool,
    /// Run each job once more after the measured rounds while `perf` samples the target's server, where that runs on this
    /// machine: what its CPU goes into, and what a target pays for beside the base
    #[arg(long)]
    pub profile: bool,
    #[command(flatten)]
    pub common: Common,
}

#[derive(Args, Debug)]
pub struct GridArgs {
    #[arg(value_enum)]
    pub grid: Grid,
    /// As for `run`
    pub target: Target,
    /// Seconds of each cell
    #[arg(long, default_value = "1")]
    pub seconds: f64,
    /// Only the first so many bytes of the target
    #[arg(long, value_name = "SIZE", value_parser = parse_bytes)]
    pub span: Option<u64>,
    /// Leave out everything that writes
    #[arg(long)]
    pub read_only: bool,
    #[command(flatten)]
    pub common: Common,
}

#[derive(Args, Debug)]
pub struct SweepArgs {
    /// As for `run`
    pub target: Target,
    /// Such as depth=1,4,16 or block=4k,64k; depth, block, connections, threads, reads, span; may be given several times
    #[arg(long, required = true, value_name = "NAME=VALUE,...")]
    pub vary: Vec<Vary>,
    #[command(flatten)]
    pub job: JobArgs,
    #[command(flatten)]
    pub common: Common,
}

#[derive(Args, Debug)]
pub struct SteadyArgs {
    /// As for `run`
    pub target: Target,
    /// Write the whole target twice before; what it holds is lost
    #[arg(long)]
    pub precondition: bool,
    #[command(flatten)]
    pub job: JobArgs,
    #[command(flatten)]
    pub common: Common,
}

#[derive(Args, Debug)]
pub struct FioArgs {
    /// One drive or file, or a logical unit where fio was built with libiscsi
    pub target: Target,
    /// Times that each is run
    #[arg(long, default_value = "5")]
    pub rounds: u32,
    #[command(flatten)]
    pub job: JobArgs,
    #[command(flatten)]
    pub common: Common,
}

/// `randread`, `write`, `rw70`, `randrw90`.
pub fn parse_workload(text: &str) -> Result<(Pattern, u8), String> {
    let wrong =
        || format!("\"{text}\" is no workload: use read, write, randread, randwrite, rw70, randrw90 ...");
    let (pattern, rest) = match text.strip_prefix("rand") {
        Some(rest) => (Pattern::Random, rest),
        None => (Pattern::Sequential, text),
    };
    match rest {
        "read" => Ok((pattern, 100)),
        "write" => Ok((pattern, 0)),
        rest => {
            let percent = rest.strip_prefix("rw").and_then(|percent| percent.parse().ok());
            percent.filter(|&percent: &u8| percent <= 100).map(|percent| (pattern, percent)).ok_or_else(wrong)
        }
    }
}

fn parse_note(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("use NAME=VALUE")?;
    Ok((name.to_owned(), value.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workloads_are_called_as_fio_calls_them() {
        for (text, expected) in [
            ("read", (Pattern::Sequential, 100)),
            ("randwrite", (Pattern::Random, 0)),
            ("rw70", (Pattern::Sequential, 70)),
            ("randrw90", (Pattern::Random, 90)),
        ] {
            assert_eq!(parse_workload(text), Ok(expected));
        }
        for text in ["", "rand", "rw101", "trim"] {
            assert!(parse_workload(text).is_err(), "{text}");
        }
    }
}
