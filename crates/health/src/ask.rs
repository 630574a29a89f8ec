//! Asks one drive: sysfs and smartctl, each within a time limit.
//!
//! ```text
//!   gate ─┬─► blocking thread: sysfs ──┐  each holds the gate until it has really ended, which for a drive
//!         └─► process: smartctl ───────┴─ that hangs may be long after the answer "timed out"
//! ```

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::sync::Arc;
use std::time::Duration;

use api::{DriveLink, HealthUnread};
use program::{Order, RunError};
use tokio::time::timeout;

use crate::device::{Roots, Target, target};
use crate::sysfs::{self, Heat};
use crate::{Reading, smartctl};

/// What smartctl may print; more is thrown away.
const OUTPUT_BYTES_MAX: u64 = 1 << 20;
/// How long the system may take to say what it knows.
const SYSTEM_TIME: Duration = Duration::from_secs(5);

/// Held by what asks the drive.
#[derive(Clone, Debug, Default)]
pub struct Gate(Arc<()>);

impl Gate {
    /// Something asks the drive, and has not ended.
    pub fn is_closed(&self) -> bool {
        Arc::strong_count(&self.0) > 1
    }
}

/// What the system knows of a drive.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FromSystem {
    pub target: Target,
    pub heat: Option<Heat>,
    pub link: Option<DriveLink>,
}

/// `None`: it has not answered in time.
pub async fn system(
    path: &str,
    devices: &BTreeMap<String, String>,
    roots: &Roots,
    gate: &Gate,
) -> Option<FromSystem> {
    let (path, devices, roots, gate) = (path.to_owned(), devices.clone(), roots.clone(), gate.clone());
    let look = tokio::task::spawn_blocking(move || {
        let target = target(&path, &devices, &roots);
        let disk = match &target {
            Target::Device { disk: Some(disk), .. } => Some(disk),
            _ => None,
        };
        let (heat, link) = (disk.and_then(|disk| sysfs::heat(disk)), disk.and_then(|disk| sysfs::link(disk)));
        drop(gate);
        FromSystem { target, heat, link }
    });
    timeout(SYSTEM_TIME, look).await.ok()?.ok()
}

/// What smartctl is asked for. Logs of a SATA drive are left out most of the time: to read them stalls the drive for some milliseconds.
fn arguments<'a>(node: &'a str, kind: Option<&'a str>, with_logs: bool) -> Vec<&'a OsStr> {
    let mut arguments =
        vec!["--json=c", "--info", "--health", "--attributes", "--capabilities", "--nocheck=standby"];
    if with_logs {
        arguments.extend(["--log=ssd", "--log=selftest", "--log=scttempsts"]);
    }
    if let Some(kind) = kind {
        arguments.extend(["--device", kind]);
    }
    arguments.push(node);
    arguments.into_iter().map(OsStr::new).collect()
}

/// How smartctl is called.
#[derive(Clone, Copy, Debug)]
pub struct Smartctl<'a> {
    pub program: &'a str,
    pub time: Duration,
    pub with_logs: bool,
}

pub async fn smartctl(
    how: Smartctl<'_>,
    node: &str,
    kind: Option<&str>,
    gate: &Gate,
) -> Result<Reading, HealthUnread> {
    let arguments = arguments(node, kind, how.with_logs);
    let order = Order {
        program: how.program,
        arguments: &arguments,
        input: &[],
        environment: &[],
        time: how.time,
        output_bytes_max: OUTPUT_BYTES_MAX,
    };
    let ended = program::run(order, gate.clone()).await.map_err(unread)?;
    // up to a megabyte: not on the thread of the control plane
    let parsed = tokio::task::spawn_blocking(move || smartctl::parse(&ended.out, ended.code)).await;
    parsed.unwrap_or_else(|_| Err(HealthUnread::NotUnderstood { why: "the daemon stops".to_owned() }))
}

fn unread(error: RunError) -> HealthUnread {
    match error {
        RunError::NotInstalled { .. } => HealthUnread::NotInstalled,
        RunError::TimedOut { seconds, .. } => HealthUnread::TimedOut { seconds },
        RunError::NotRun { why, .. } => {
            HealthUnread::NotUnderstood { why: format!("it cannot be run: {why}") }
        }
        RunError::Endless { .. } => HealthUnread::NotUnderstood { why: "it prints without end".to_owned() },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_node_comes_last_and_logs_are_left_out_if_they_are_not_wanted() {
        let words = |with_logs, kind| -> Vec<String> {
            arguments("/dev/sda", kind, with_logs)
                .iter()
                .map(|word| word.to_string_lossy().into_owned())
                .collect()
        };
        let few = words(false, None);
        assert_eq!((few.first().unwrap().as_str(), few.last().unwrap().as_str()), ("--json=c", "/dev/sda"));
        assert!(!few.iter().any(|word| word.starts_with("--log")));
        let all = words(true, Some("megaraid,0"));
        assert!(all.contains(&"--log=selftest".to_owned()));
        assert_eq!(all[all.len() - 3..], ["--device", "megaraid,0", "/dev/sda"]);
    }
}
