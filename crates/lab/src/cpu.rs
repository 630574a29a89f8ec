//! CPU time of processes and threads, from /proc, in nanoseconds.

use std::collections::BTreeMap;
use std::fs;
use std::net::SocketAddr;
use std::time::Instant;

use serde::{Deserialize, Serialize};

/// CPU time of a process over a run.
#[derive(Serialize, Deserialize, Clone, PartialEq, Debug, Default)]
pub struct CpuUse {
    /// All threads together, user and system.
    pub seconds: f64,
    /// Share of one core that the busiest thread used, 0 to 1.
    pub busiest_thread: f64,
    /// Per request.
    pub us_per_io: f64,
}

impl CpuUse {
    /// Adds another thread's.
    pub fn add(&mut self, other: &CpuUse) {
        self.seconds += other.seconds;
        self.busiest_thread = self.busiest_thread.max(other.busiest_thread);
    }

    /// What it comes to for each of so many requests.
    pub fn share_among(&mut self, operations: u64) {
        self.us_per_io = self.seconds * 1e6 / operations.max(1) as f64;
    }
}

/// Run time of every thread of a process so far.
#[derive(Clone, Debug, Default)]
pub struct Sample {
    threads: BTreeMap<u32, u64>,
    at: Option<Instant>,
}

impl Sample {
    /// Threads that cannot be read count as none.
    pub fn take(process: u32) -> Sample {
        let directory = format!("/proc/{process}/task");
        let entries = fs::read_dir(&directory).into_iter().flatten().flatten();
        let threads = entries.filter_map(|entry| {
            let thread: u32 = entry.file_name().to_str()?.parse().ok()?;
            Some((thread, run_time_ns(&format!("{directory}/{thread}"))?))
        });
        Sample { threads: threads.collect(), at: Some(Instant::now()) }
    }

    /// The calling thread alone.
    pub fn of_thread() -> Sample {
        let own = run_time_ns("/proc/thread-self").map(|ns| (0, ns));
        Sample { threads: own.into_iter().collect(), at: Some(Instant::now()) }
    }

    /// From this sample to a later one of the same process.
    pub fn until(&self, later: &Sample, operations: u64) -> CpuUse {
        let before = |thread: &u32| self.threads.get(thread).copied().unwrap_or(0);
        let used = later.threads.iter().map(|(thread, ns)| ns.saturating_sub(before(thread)));
        let (total, busiest) = used.fold((0, 0), |(total, most): (u64, u64), ns| (total + ns, most.max(ns)));
        let wall = match (self.at, later.at) {
            (Some(from), Some(to)) => (to - from).as_secs_f64(),
            _ => 0.0,
        };
        CpuUse {
            seconds: total as f64 / 1e9,
            busiest_thread: if wall > 0.0 { busiest as f64 / 1e9 / wall } else { 0.0 },
            us_per_io: if operations > 0 { total as f64 / 1e3 / operations as f64 } else { 0.0 },
        }
    }
}

/// `schedstat` counts nanoseconds; where the kernel has none, `stat` counts hundredths of seconds.
fn run_time_ns(directory: &str) -> Option<u64> {
    if let Ok(text) = fs::read_to_string(format!("{directory}/schedstat"))
        && let Some(ns) = text.split_whitespace().next().and_then(|word| word.parse::<u64>().ok())
        && ns > 0
    {
        return Some(ns);
    }
    let text = fs::read_to_string(format!("{directory}/stat")).ok()?;
    ticks_of(&text).map(|ticks| ticks * 10_000_000)
}

/// User and system time of a line of `/proc/PID/stat`; the name, in parentheses, may hold anything.
fn ticks_of(stat: &str) -> Option<u64> {
    let fields: Vec<&str> = stat[stat.rfind(')')? + 1..].split_whitespace().collect();
    Some(fields.get(11)?.parse::<u64>().ok()? + fields.get(12)?.parse::<u64>().ok()?)
}

/// The process of this machine that listens at an address, where it may be seen.
pub fn listener(address: SocketAddr) -> Option<u32> {
    let sockets: Vec<String> = ["/proc/net/tcp", "/proc/net/tcp6"]
        .iter()
        .filter_map(|file| fs::read_to_string(file).ok())
        .flat_map(|text| {
            text.lines().filter_map(|line| listening_inode(line, address.port())).collect::<Vec<_>>()
        })
        .map(|inode| format!("socket:[{inode}]"))
        .collect();
    if !address.ip().is_loopback() || sockets.is_empty() {
        return None;
    }
    let processes = fs::read_dir("/proc").ok()?.flatten();
    processes.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok()).find(|process| {
        let links = fs::read_dir(format!("/proc/{process}/fd")).into_iter().flatten().flatten();
        let mut links = links.filter_map(|entry| fs::read_link(entry.path()).ok());
        links.any(|link| sockets.iter().any(|socket| link.as_os_str() == socket.as_str()))
    })
}

/// The inode of a listening socket (state 0A) at this port.
fn listening_inode(line: &str, port: u16) -> Option<String> {
    let fields: Vec<&str> = line.split_whitespace().collect();
    let (_, found) = fields.get(1)?.rsplit_once(':')?;
    let is_it = *fields.get(3)? == "0A" && u16::from_str_radix(found, 16).ok()? == port;
    is_it.then(|| fields.get(9).map(|inode| (*inode).to_owned()))?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_processes_may_hold_anything() {
        let stat = "12 (a) b) c) S 1 2 3 4 5 6 7 8 9 10 70 30 0 0 20 0 1 0";
        assert_eq!(ticks_of(stat), Some(100));
        assert_eq!(ticks_of("nonsense"), None);
    }

    #[test]
    fn this_process_uses_time_and_is_found_by_its_port() {
        let before = Sample::take(std::process::id());
        let mut sum = 0u64;
        while Sample::take(std::process::id()).until(&before, 0).seconds == 0.0 && sum < 400_000_000 {
            sum += (0..1_000_000u64).map(std::hint::black_box).count() as u64;
            let used = before.until(&Sample::take(std::process::id()), 1);
            if used.seconds > 0.0 {
                assert!(used.us_per_io > 0.0);
                break;
            }
        }
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        assert_eq!(super::listener(address), Some(std::process::id()));
    }
}
