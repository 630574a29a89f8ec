//! Runs `perf`, which samples a process. `perf record -e cpu-clock` needs no hardware counters, so it works in virtual
//! machines, too. The result is the leaf of each sample: the function that was running.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use super::class::Class;
use super::data::Symbol;

/// Samples a second: far from any round number, so that nothing that happens every ms is met always or never.
const FREQUENCY: &str = "4987";
/// How long perf may take to be ready.
const READY_MAX: Duration = Duration::from_secs(10);
/// From its file's first byte to the first sample.
const RUN_UP: Duration = Duration::from_millis(100);

/// The function that a sample met.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Leaf {
    pub name: String,
    /// The last part of the path of the file that it is in.
    pub file: String,
    pub is_kernel: bool,
}

impl Leaf {
    pub fn symbol(&self, samples: u64) -> Symbol {
        let class = Class::of(&self.name, self.is_kernel);
        Symbol { name: self.name.clone(), file: self.file.clone(), class, samples }
    }
}

/// `perf record` at work.
pub struct Sampler {
    child: Child,
    file: PathBuf,
}

impl Sampler {
    /// Begins to sample all threads of a process. An error is one line for people.
    pub fn begin(process: u32) -> Result<Sampler, String> {
        let file = std::env::temp_dir().join(format!("tangelo-perf-{}-{process}", std::process::id()));
        drop_file(&file);
        let child = Command::new("perf")
            .args(["record", "-q", "-e", "cpu-clock", "-F", FREQUENCY, "-p", &process.to_string(), "-o"])
            .arg(&file)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|error| format!("perf cannot be started: {error}; install linux-perf"))?;
        let mut sampler = Sampler { child, file };
        let deadline = Instant::now() + READY_MAX;
        while std::fs::metadata(&sampler.file).map_or(0, |file| file.len()) == 0 {
            if sampler.child.try_wait().is_ok_and(|status| status.is_some()) || Instant::now() > deadline {
                return Err(sampler.refusal());
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        std::thread::sleep(RUN_UP);
        Ok(sampler)
    }

    /// Ends sampling. How often each function was met.
    pub fn end(mut self) -> Result<Vec<(Leaf, u64)>, String> {
        if self.child.try_wait().is_ok_and(|status| status.is_some()) {
            return Err(self.refusal());
        }
        kill_process(Pid::from_child(&self.child), Signal::INT).map_err(|error| format!("perf: {error}"))?;
        self.child.wait().map_err(|error| format!("perf: {error}"))?;
        let output = Command::new("perf")
            .args(["script", "-F", "ip,sym,dso", "-i"])
            .arg(&self.file)
            .stdin(Stdio::null())
            .output()
            .map_err(|error| format!("perf: {error}"))?;
        if !output.status.success() {
            return Err(format!("perf script failed: {}", last_line(&output.stderr)));
        }
        checked(count(&String::from_utf8_lossy(&output.stdout)))
    }

    /// Why it does not run; it is ended if it does.
    fn refusal(&mut self) -> String {
        let _ = self.child.kill();
        let mut said = Vec::new();
        if let Some(stderr) = &mut self.child.stderr {
            let _ = std::io::Read::read_to_end(stderr, &mut said);
        }
        format!("perf refuses: {}; run as root, or lower kernel.perf_event_paranoid", first_line(&said))
    }
}

impl Drop for Sampler {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        drop_file(&self.file);
    }
}

/// What is not there need not go.
fn drop_file(file: &Path) {
    let _ = std::fs::remove_file(file);
}

fn first_line(text: &[u8]) -> String {
    let text = String::from_utf8_lossy(text);
    let said = text.lines().map(str::trim).find(|line| !line.is_empty() && *line != "Error:");
    said.unwrap_or("it says nothing").trim_end_matches('.').to_owned()
}

fn last_line(text: &[u8]) -> String {
    let text = String::from_utf8_lossy(text);
    text.lines().rfind(|line| !line.trim().is_empty()).unwrap_or("it says nothing").trim().to_owned()
}

/// A line of `perf script -F ip,sym,dso`: `ffffffff82256067 clear_page_erms ([kernel.kallsyms])`.
fn leaf(line: &str) -> Option<Leaf> {
    let (address, rest) = line.trim().split_once(' ')?;
    let address = u64::from_str_radix(address, 16).ok()?;
    // paths may have blanks and parentheses, and so do names
    let rest = rest.strip_suffix(')')?;
    let at = rest.find(" (/").or_else(|| rest.rfind(" ("))?;
    let (name, file) = (&rest[..at], &rest[at + 2..]);
    let file = if file.starts_with('[') { file } else { file.rsplit('/').next().unwrap_or(file) };
    // the upper half of all addresses is the kernel's
    Some(Leaf { name: name.trim().to_owned(), file: file.to_owned(), is_kernel: address >> 63 == 1 })
}

fn count(text: &str) -> Vec<(Leaf, u64)> {
    let mut found: BTreeMap<Leaf, u64> = BTreeMap::new();
    text.lines().filter_map(leaf).for_each(|leaf| *found.entry(leaf).or_default() += 1);
    found.into_iter().collect()
}

/// Refuses what would lead astray: shares of a part of the time.
fn checked(leaves: Vec<(Leaf, u64)>) -> Result<Vec<(Leaf, u64)>, String> {
    let sum = |pick: fn(&Leaf) -> bool| -> u64 {
        leaves.iter().filter(|(leaf, _)| pick(leaf)).map(|(_, samples)| samples).sum()
    };
    let (all, kernel) = (sum(|_| true), sum(|leaf| leaf.is_kernel));
    let nameless = sum(|leaf| leaf.is_kernel && leaf.name == "[unknown]");
    if all == 0 {
        Err("perf took no sample".to_owned())
    } else if kernel == 0 {
        Err("perf may not see the kernel: run as root, or lower kernel.perf_event_paranoid to 1".to_owned())
    } else if nameless * 2 > kernel {
        Err("perf cannot name the kernel's functions: run as root, or set kernel.kptr_restrict to 0"
            .to_owned())
    } else {
        Ok(leaves)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCRIPT: &str = "\
 ffffffff82256067 clear_page_erms ([kernel.kallsyms])
 ffffffff82256067 clear_page_erms ([kernel.kallsyms])
     7f31b6f5ea5d __memmove_avx_unaligned_erms (/usr/lib/x86_64-linux-gnu/libc.so.6)
     55d0f4a1c0de <uring::UringEnv<M> as env::Env>::poll (/a/place (with words)/tangelo)
     7ffd2b9f3a10 __vdso_clock_gettime ([vdso])
 ffffffffc0123456 nf_hook ([nf_tables])
     55d0f4a1c0de [unknown] (/usr/sbin/tgtd)

warning: this is no sample
";

    #[test]
    fn samples_are_read_and_counted() {
        let leaves = count(SCRIPT);
        let told: Vec<_> = leaves
            .iter()
            .map(|(leaf, samples)| (leaf.name.as_str(), leaf.file.as_str(), leaf.is_kernel, *samples))
            .collect();
        assert_eq!(
            told,
            [
                ("<uring::UringEnv<M> as env::Env>::poll", "tangelo", false, 1),
                ("[unknown]", "tgtd", false, 1),
                ("__memmove_avx_unaligned_erms", "libc.so.6", false, 1),
                ("__vdso_clock_gettime", "[vdso]", false, 1),
                ("clear_page_erms", "[kernel.kallsyms]", true, 2),
                ("nf_hook", "[nf_tables]", true, 1),
            ]
        );
        assert!(checked(leaves).is_ok());
    }

    #[test]
    fn a_profile_of_a_part_is_none() {
        let refusal = |text: &str| checked(count(text)).expect_err("a part of the time");
        assert!(refusal("").contains("no sample"));
        assert!(refusal("7f31b6f5ea5d main (/a)").contains("perf_event_paranoid"));
        assert!(refusal("ffffffff82256067 [unknown] ([unknown])").contains("kptr_restrict"));
    }

    #[test]
    fn refusals_are_one_line() {
        let said = b"Error:\nAccess to performance monitoring is limited.\nConsider adjusting it\n";
        assert_eq!(first_line(said), "Access to performance monitoring is limited");
        assert_eq!(first_line(b""), "it says nothing");
    }
}
