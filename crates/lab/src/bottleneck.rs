//! The bottleneck of a run: a decision from observations, the strongest evidence first.

use std::fs;
use std::net::IpAddr;
use std::process::Command;

use serde::{Deserialize, Serialize};

use crate::result::{Bottleneck, Limit};
use crate::target::Target;

/// Share of a core above which a thread is taken to be the limit.
const CORE_FULL: f64 = 0.95;
const DRIVE_FULL: f64 = 0.95;
const WIRE_FULL: f64 = 0.85;

/// What was seen during a run. Shares are 0 to 1; None: not known.
#[derive(Serialize, Deserialize, Clone, PartialEq, Debug, Default)]
pub struct Evidence {
    /// Requests outstanding at once.
    pub outstanding: u64,
    pub client_busy: f64,
    pub target_busy: Option<f64>,
    pub wire: Option<f64>,
    pub drive_busy: Option<f64>,
    /// The command window held requests back more than now and then.
    pub window_full: bool,
    /// Drives of this machine: there is no target process.
    pub local: bool,
}

/// The first row that holds decides.
pub fn name(evidence: &Evidence) -> Bottleneck {
    let percent = |share: f64| format!("{:.0} %", share * 100.0);
    let (name, why) = match evidence {
        e if e.outstanding == 1 => {
            (Limit::QueueDepth, "one request at a time: each waits for the one before".to_owned())
        }
        Evidence { wire: Some(share), .. } if *share >= WIRE_FULL => {
            (Limit::Wire, format!("{} of the wire's speed is used", percent(*share)))
        }
        Evidence { target_busy: Some(busy), client_busy, .. }
            if *busy >= CORE_FULL && *busy >= *client_busy =>
        {
            (Limit::TargetCpu, format!("the target's busiest thread uses {} of its core", percent(*busy)))
        }
        e if e.client_busy >= CORE_FULL => {
            let why = format!("the generator's busiest thread uses {} of its core", percent(e.client_busy));
            (Limit::ClientCpu, format!("{why}; more threads or hosts would load the target further"))
        }
        Evidence { drive_busy: Some(busy), .. } if *busy >= DRIVE_FULL => {
            (Limit::Drive, format!("the busiest drive was at work {} of the time", percent(*busy)))
        }
        e if e.window_full => {
            (Limit::CommandWindow, "the target's command window was full, often".to_owned())
        }
        e if e.local => {
            (Limit::Drive, "no core is full: the drives answer no faster at this queue depth".to_owned())
        }
        Evidence { target_busy: Some(_), .. } => {
            (Limit::QueueDepth, "no core is full: more requests at once would bring more".to_owned())
        }
        _ => (
            Limit::Unknown,
            "the target is not on this machine: look at its cores and drives there".to_owned(),
        ),
    };
    Bottleneck { name, why }
}

/// Milliseconds that each block device among the drives has been at work.
pub fn drive_times(target: &Target) -> Vec<(String, u64)> {
    let Target::Drives(paths) = target else { return Vec::new() };
    let name = |path: &String| Some(fs::canonicalize(path).ok()?.file_name()?.to_str()?.to_owned());
    let names = paths.iter().filter_map(name);
    names.filter_map(|name| io_ticks_ms(&name).map(|ticks| (name, ticks))).collect()
}

/// The tenth field of the kernel's block layer statistics.
fn io_ticks_ms(name: &str) -> Option<u64> {
    let text = fs::read_to_string(format!("/sys/class/block/{name}/stat")).ok()?;
    text.split_whitespace().nth(9)?.parse().ok()
}

/// Of the busiest drive.
pub fn drives_busy(before: &[(String, u64)], seconds: f64) -> Option<f64> {
    let share = |(name, ticks): &(String, u64)| {
        Some(io_ticks_ms(name)?.saturating_sub(*ticks) as f64 / 1e3 / seconds)
    };
    before.iter().filter_map(share).reduce(f64::max).map(|share| share.min(1.0))
}

/// What part of the speed of the interface towards a target is used. None where there is no wire, or where its speed
/// is not known.
pub fn wire_share(target: &Target, bytes_s: f64) -> Option<f64> {
    let address = match target {
        Target::Iscsi(unit) => unit.portal.ip(),
        Target::Echo(address) => address.ip(),
        Target::Drives(_) => return None,
    };
    if address.is_loopback() {
        return None;
    }
    let interface = interface_towards(address)?;
    let mbit: f64 =
        fs::read_to_string(format!("/sys/class/net/{interface}/speed")).ok()?.trim().parse().ok()?;
    (mbit > 0.0).then(|| bytes_s * 8.0 / (mbit * 1e6))
}

fn interface_towards(address: IpAddr) -> Option<String> {
    let output = Command::new("ip").args(["route", "get", &address.to_string()]).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    let mut words = text.split_whitespace().skip_while(|word| *word != "dev");
    words.nth(1).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_strongest_evidence_decides() {
        let base =
            Evidence { outstanding: 64, client_busy: 0.5, target_busy: Some(0.5), ..Evidence::default() };
        let table = [
            (Evidence { outstanding: 1, client_busy: 1.0, ..base.clone() }, Limit::QueueDepth),
            (Evidence { target_busy: Some(0.99), ..base.clone() }, Limit::TargetCpu),
            (Evidence { target_busy: Some(0.96), client_busy: 1.0, ..base.clone() }, Limit::ClientCpu),
            (Evidence { client_busy: 0.97, ..base.clone() }, Limit::ClientCpu),
            (Evidence { wire: Some(0.9), target_busy: Some(1.0), ..base.clone() }, Limit::Wire),
            (Evidence { drive_busy: Some(1.0), ..base.clone() }, Limit::Drive),
            (Evidence { window_full: true, ..base.clone() }, Limit::CommandWindow),
            (Evidence { local: true, target_busy: None, ..base.clone() }, Limit::Drive),
            (Evidence { target_busy: None, ..base.clone() }, Limit::Unknown),
            (base, Limit::QueueDepth),
        ];
        for (evidence, limit) in table {
            assert_eq!(name(&evidence).name, limit, "{evidence:?}");
        }
    }
}
