//! Every setting in force that this machine can report, so that a figure can still be understood a year later.

use std::fs;
use std::process::Command;

use crate::target::Target;

const HUGE_PAGES: &str = "/sys/kernel/mm/transparent_hugepage/enabled";

/// Of the machine that the generator runs on.
pub fn of_machine() -> Vec<(String, String)> {
    let read = |path: &str| fs::read_to_string(path).map(|text| text.trim().to_owned()).unwrap_or_default();
    let field = |text: &str, name: &str| {
        let line = text.lines().find(|line| line.starts_with(name));
        line.and_then(|line| line.split_once(':'))
            .map(|(_, value)| value.trim().to_owned())
            .unwrap_or_default()
    };
    let cpu = read("/proc/cpuinfo");
    let cores = std::thread::available_parallelism().map_or(0, |cores| cores.get());
    let settings = [
        ("machine.cpu", field(&cpu, "model name")),
        ("machine.cores", cores.to_string()),
        ("machine.memory", field(&read("/proc/meminfo"), "MemTotal")),
        ("machine.hypervisor", read("/sys/hypervisor/type")),
        ("kernel.version", read("/proc/sys/kernel/osrelease")),
        ("kernel.mitigations", read("/sys/devices/system/cpu/vulnerabilities/spectre_v2")),
        ("kernel.transparent_hugepage", chosen(&read(HUGE_PAGES)).to_owned()),
        ("generator.pages", pages().to_owned()),
        ("kernel.governor", read("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")),
        ("net.congestion_control", read("/proc/sys/net/ipv4/tcp_congestion_control")),
        ("net.tcp_rmem", read("/proc/sys/net/ipv4/tcp_rmem")),
        ("net.tcp_wmem", read("/proc/sys/net/ipv4/tcp_wmem")),
        ("net.busy_poll", read("/proc/sys/net/core/busy_poll")),
    ];
    named(settings.into_iter().map(|(name, value)| (name.to_owned(), value)))
}

/// Which pages the generator's buffers lie in: `plain`, or `huge` ones where the kernel has some for who asks.
pub fn pages() -> &'static str {
    let refused = rustix::thread::transparent_huge_pages_are_disabled().unwrap_or(false);
    let text = fs::read_to_string(HUGE_PAGES).unwrap_or_default();
    if refused || matches!(chosen(&text), "" | "never") { "plain" } else { "huge" }
}

/// From now on this process gets plain pages only, and so do those that it starts.
pub fn refuse_huge_pages() -> Result<(), String> {
    let refused = rustix::thread::disable_transparent_huge_pages(true);
    refused.map_err(|error| format!("this kernel always gives huge pages: {error}"))
}

/// The word in brackets: `always [madvise] never`.
fn chosen(text: &str) -> &str {
    text.split_once('[').and_then(|(_, rest)| rest.split_once(']')).map_or("", |(word, _)| word)
}

/// Of drives: how the kernel queues their requests.
pub fn of_target(target: &Target) -> Vec<(String, String)> {
    let Target::Drives(paths) = target else { return Vec::new() };
    let mut settings = Vec::new();
    for path in paths {
        let Some(name) =
            fs::canonicalize(path).ok().and_then(|path| Some(path.file_name()?.to_str()?.to_owned()))
        else {
            continue;
        };
        for key in ["scheduler", "nr_requests", "write_cache", "rotational", "max_sectors_kb"] {
            if let Ok(value) = fs::read_to_string(format!("/sys/class/block/{name}/queue/{key}")) {
                settings.push((format!("drive.{path}.{key}"), value.trim().to_owned()));
            }
        }
    }
    named(settings.into_iter())
}

/// The commit of the tree in the working directory, where there is one.
pub fn commit() -> Option<String> {
    let output = Command::new("git").args(["rev-parse", "--short=12", "HEAD"]).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?.trim().to_owned();
    (output.status.success() && !text.is_empty()).then_some(text)
}

/// Those that are known.
fn named(settings: impl Iterator<Item = (String, String)>) -> Vec<(String, String)> {
    settings.filter(|(_, value)| !value.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_choice_is_the_word_in_brackets() {
        for (text, word) in [("always [madvise] never\n", "madvise"), ("[never]", "never"), ("", "")] {
            assert_eq!(chosen(text), word);
        }
    }
}
