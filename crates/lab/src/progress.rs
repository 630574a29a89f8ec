//! One line that shows the progress of a run at a terminal; nothing if there is no terminal.

use std::io::{IsTerminal, Write, stderr};
use std::time::Instant;

use crate::job::Limit;
use crate::plan::Plan;
use crate::units;

const BAR: usize = 24;

pub struct Progress {
    /// Runs in all, and the one at work, from 1.
    total: usize,
    current: usize,
    began: Instant,
    enabled: bool,
}

impl Progress {
    pub fn new(total: usize) -> Progress {
        Progress { total, current: 0, began: Instant::now(), enabled: stderr().is_terminal() }
    }

    /// For those who must not write to the terminal.
    pub fn silent() -> Progress {
        Progress { total: 1, current: 0, began: Instant::now(), enabled: false }
    }

    pub fn next(&mut self) {
        self.current += 1;
        self.began = Instant::now();
    }

    pub fn show(&self, plan: &Plan, operations: u64, bytes: u64) {
        if !self.enabled {
            return;
        }
        let seconds = self.began.elapsed().as_secs_f64();
        let part = match plan.job.limit {
            Limit::Seconds(limit) => seconds / (limit + plan.job.warm_up_seconds),
            Limit::Bytes(limit) => bytes as f64 / limit as f64,
        };
        let line =
            line(part, self.current, self.total, &plan.name, &plan.job.title(), operations as f64 / seconds);
        // A terminal that is gone is no reason to stop measuring.
        let _ = write!(stderr(), "\r\x1b[K{line}").and_then(|()| stderr().flush());
    }

    pub fn clear(&self) {
        if self.enabled {
            let _ = write!(stderr(), "\r\x1b[K").and_then(|()| stderr().flush());
        }
    }

    /// A line that stays, for people.
    pub fn note(&self, text: &str) {
        self.clear();
        let _ = writeln!(stderr(), "{text}");
    }
}

fn line(part: f64, current: usize, total: usize, target: &str, job: &str, rate: f64) -> String {
    let filled = ((part.clamp(0.0, 1.0) * BAR as f64) as usize).min(BAR);
    let bar = format!("{}{}", "#".repeat(filled), "-".repeat(BAR - filled));
    format!("[{bar}] {current}/{total} {target}: {job}: {} IOPS", units::count(rate))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bar_stays_within_its_ends() {
        assert!(
            line(-1.0, 1, 2, "a", "b", 0.0).starts_with(&format!("[{}] 1/2 a: b: 0 IOPS", "-".repeat(BAR)))
        );
        assert!(line(0.5, 1, 2, "a", "b", 50_000.0).contains("] 1/2 a: b: 50 k IOPS"));
        assert!(line(9.0, 1, 2, "a", "b", 0.0).starts_with(&format!("[{}]", "#".repeat(BAR))));
    }
}
