//! The definition of a load: pattern, sizes, depths, and end. Pure values; the same job runs against any target.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Largest block of a request, in bytes.
pub const BLOCK_BYTES_MAX: u32 = 4 << 20;
/// Requests outstanding on one channel.
pub const QUEUE_DEPTH_MAX: u32 = 1024;
/// Channels (connections) of one thread.
pub const CHANNELS_MAX: u32 = 512;

/// In which order places are visited.
#[derive(Serialize, Deserialize, Clone, Copy, PartialEq, Eq, Debug)]
#[serde(rename_all = "lowercase")]
pub enum Pattern {
    Random,
    Sequential,
}

/// Of 100 random requests, `requests` go to the first `places` hundredths of the target, and the rest to the rest of it; evenly
/// within each.
#[derive(Serialize, Deserialize, Clone, Copy, PartialEq, Eq, Debug)]
pub struct Skew {
    pub requests_percent: u8,
    pub places_percent: u8,
}

impl FromStr for Skew {
    type Err = String;

    /// `90/10`.
    fn from_str(text: &str) -> Result<Skew, String> {
        let numbers = text.split_once('/').and_then(|(requests, places)| {
            Some(Skew { requests_percent: requests.parse().ok()?, places_percent: places.parse().ok()? })
        });
        let share = 1..=99;
        let known = numbers
            .filter(|skew| share.contains(&skew.requests_percent) && share.contains(&skew.places_percent));
        known.ok_or_else(|| {
            format!("\"{text}\" is no skew: use 90/10 for 90 % of the requests in 10 % of the target")
        })
    }
}

impl fmt::Display for Skew {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.requests_percent, self.places_percent)
    }
}

/// When a run ends.
#[derive(Serialize, Deserialize, Clone, Copy, PartialEq, Debug)]
#[serde(rename_all = "snake_case")]
pub enum Limit {
    Seconds(f64),
    /// Over all threads.
    Bytes(u64),
}

/// One load.
#[derive(Serialize, Deserialize, Clone, PartialEq, Debug)]
pub struct Job {
    pub pattern: Pattern,
    /// Random requests go everywhere alike where there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skew: Option<Skew>,
    /// Of 100 requests, so many read; the rest write.
    pub read_percent: u8,
    pub block_bytes: u32,
    /// Writes are on stable storage before they count: FUA, or a synchronous write of a drive.
    #[serde(default)]
    pub durable: bool,
    /// Requests outstanding on each channel.
    pub queue_depth: u32,
    /// Connections of each thread; for drives, places that sequential requests go on from.
    pub channels: u32,
    /// Each on a core of its own where there are as many.
    pub threads: u16,
    /// Only the first so many bytes of the target are used; all where none is said.
    pub span_bytes: Option<u64>,
    pub limit: Limit,
    /// Seconds before measuring begins.
    pub warm_up_seconds: f64,
    /// Length of an interval of the time line.
    pub interval_ms: u32,
    /// The same seed visits the same places.
    pub seed: u64,
}

impl Default for Job {
    fn default() -> Job {
        Job {
            pattern: Pattern::Random,
            skew: None,
            read_percent: 100,
            block_bytes: 4096,
            durable: false,
            queue_depth: 64,
            channels: 1,
            threads: 1,
            span_bytes: None,
            limit: Limit::Seconds(5.0),
            warm_up_seconds: 0.5,
            interval_ms: 100,
            seed: 1,
        }
    }
}

impl Job {
    /// How long it runs before measuring begins.
    pub fn unmeasured(&self) -> Duration {
        match self.limit {
            Limit::Seconds(_) => Duration::from_secs_f64(self.warm_up_seconds),
            Limit::Bytes(_) => Duration::ZERO,
        }
    }

    /// What is wrong with it, and what would be right.
    pub fn check(&self) -> Result<(), String> {
        let block = self.block_bytes;
        if block == 0 || block > BLOCK_BYTES_MAX || !block.is_multiple_of(512) {
            return Err(format!("blocks of {block} bytes: use a multiple of 512, 4 MiB at most"));
        }
        if self.queue_depth == 0 || self.queue_depth > QUEUE_DEPTH_MAX {
            return Err(format!("a queue depth of {}: use 1 to {QUEUE_DEPTH_MAX}", self.queue_depth));
        }
        if self.channels == 0 || self.channels > CHANNELS_MAX {
            return Err(format!("{} connections a thread: use 1 to {CHANNELS_MAX}", self.channels));
        }
        if self.threads == 0 || usize::from(self.threads) > base::limits::SHARDS_MAX {
            return Err(format!("{} threads: use 1 to {}", self.threads, base::limits::SHARDS_MAX));
        }
        if let (Some(skew), Pattern::Sequential) = (self.skew, self.pattern) {
            return Err(format!("a skew of {skew} in order: use a random workload"));
        }
        if self.read_percent > 100 {
            return Err(format!("{} % reads: use 0 to 100", self.read_percent));
        }
        if !(10..=60_000).contains(&self.interval_ms) {
            return Err(format!("intervals of {} ms: use 10 to 60000", self.interval_ms));
        }
        match self.limit {
            Limit::Seconds(seconds) if seconds > 0.0 && seconds <= 1e6 => Ok(()),
            Limit::Bytes(bytes) if bytes >= u64::from(block) => Ok(()),
            Limit::Seconds(seconds) => Err(format!("{seconds} seconds: use more than 0")),
            Limit::Bytes(bytes) => Err(format!("{bytes} bytes: use at least one block")),
        }
    }

    /// Requests outstanding at once, all threads together.
    pub fn outstanding(&self) -> u64 {
        u64::from(self.queue_depth) * u64::from(self.channels) * u64::from(self.threads)
    }

    /// `randread`, `write`, `randrw90` ..., as fio and the published figures call it; `randwrite 90/10` where it is skewed,
    /// `durable` where writes are.
    pub fn workload(&self) -> String {
        let random = if self.pattern == Pattern::Random { "rand" } else { "" };
        let skew = self.skew.map(|skew| format!(" {skew}")).unwrap_or_default();
        let durable = if self.durable { " durable" } else { "" };
        match self.read_percent {
            100 => format!("{random}read{skew}"),
            0 => format!("{random}write{skew}{durable}"),
            percent => format!("{random}rw{percent}{skew}{durable}"),
        }
    }

    /// A short name for tables.
    pub fn title(&self) -> String {
        let ways = match (self.threads, self.channels) {
            (1, 1) => String::new(),
            (threads, 1) => format!(" x{threads}"),
            (threads, channels) => format!(" x{}", u32::from(threads) * channels),
        };
        format!(
            "{} {} qd{}{ways}",
            base::units::size(self.block_bytes.into()),
            self.workload(),
            self.queue_depth
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nonsense_is_refused_with_what_to_do() {
        let wrong = [
            Job { block_bytes: 100, ..Job::default() },
            Job { block_bytes: 8 << 20, ..Job::default() },
            Job { queue_depth: 0, ..Job::default() },
            Job { channels: 0, ..Job::default() },
            Job { threads: 0, ..Job::default() },
            Job { read_percent: 101, ..Job::default() },
            Job { pattern: Pattern::Sequential, skew: "90/10".parse().ok(), ..Job::default() },
            Job { interval_ms: 1, ..Job::default() },
            Job { limit: Limit::Seconds(0.0), ..Job::default() },
            Job { limit: Limit::Bytes(4095), ..Job::default() },
        ];
        for job in wrong {
            assert!(job.check().expect_err("nonsense").contains(": use "), "{job:?}");
        }
        assert_eq!(Job::default().check(), Ok(()));
    }

    #[test]
    fn names_are_those_of_the_field() {
        let job = Job { read_percent: 90, ..Job::default() };
        assert_eq!(job.workload(), "randrw90");
        let job = Job { pattern: Pattern::Sequential, read_percent: 0, channels: 4, ..Job::default() };
        assert_eq!(job.title(), "4 KiB write qd64 x4");
        let job = Job { read_percent: 0, skew: "80/20".parse().ok(), ..Job::default() };
        assert_eq!(job.title(), "4 KiB randwrite 80/20 qd64");
        let job = Job { durable: true, ..job };
        assert_eq!(job.workload(), "randwrite 80/20 durable");
        assert_eq!(Job { read_percent: 100, ..job }.workload(), "randread 80/20", "nothing of it is written");
    }

    #[test]
    fn a_skew_is_two_shares() {
        let skew: Skew = "90/10".parse().expect("a skew");
        assert_eq!((skew.requests_percent, skew.places_percent), (90, 10));
        for text in ["", "90", "90/", "0/10", "90/100", "90/-1", "x/y"] {
            assert!(text.parse::<Skew>().expect_err(text).contains(": use 90/10"), "{text}");
        }
        let job = Job { skew: Some(skew), ..Job::default() };
        let text = serde_json::to_string(&job).expect("plain values");
        assert_eq!(
            serde_json::from_str::<Job>(&text).expect("what was written"),
            job,
            "among the settings in force"
        );
        let text = serde_json::to_string(&Job::default()).expect("plain values");
        assert!(!text.contains("skew"), "files of before are as they were: {text}");
    }
}
