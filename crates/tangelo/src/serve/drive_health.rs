//! The health of this head's drives: what `[health]` says is watched, and the array is told.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use api::{Command, DriveHealth, HeadCall, HeadSource, KnownDrive, Reply};
use control::array::Array;
use control::config::Config;
use health::{DriveList, Options, Report, Roots};
use tokio::sync::watch;

use super::own_problems::OwnProblems;

/// How long it waits if the array does not take what it is told.
const PAUSE: Duration = Duration::from_secs(2);

/// See the header of this file. It ends with the process.
pub struct HealthWatch(watch::Sender<Options>);

impl HealthWatch {
    pub fn start(config: &Config, array: Arc<dyn Array>, own: OwnProblems) -> HealthWatch {
        let (options, receiver) = watch::channel(options(config, &config.state_dir));
        let (health, told) = watch::channel(BTreeMap::new());
        let report = move |report: Report| {
            own.set(HeadSource::Drives, report.problems);
            health.send_replace(report.health);
        };
        tokio::spawn(health::keep(receiver, Drives(array.clone()), Roots::default(), report));
        tokio::spawn(keep_telling(told, array));
        HealthWatch(options)
    }

    /// The head's file was read again.
    pub fn reload(&self, config: &Config) {
        let now = options(config, &self.0.borrow().state_dir);
        self.0.send_if_modified(|options| std::mem::replace(options, now.clone()) != now);
    }
}

/// The state directory changes only with the next start.
fn options(config: &Config, state_dir: &Path) -> Options {
    Options {
        smartctl: config.health.smartctl.clone(),
        every: config.health.every,
        time: config.health.timeout,
        devices: config.health.devices.clone(),
        state_dir: state_dir.to_owned(),
    }
}

/// The drives that the array knows.
struct Drives(Arc<dyn Array>);

impl DriveList for Drives {
    async fn list(&self) -> Option<Vec<KnownDrive>> {
        match self.0.call(Command::Head(HeadCall::DrivePaths)).await {
            Ok(Reply::DrivePaths(drives)) => Some(drives),
            // it starts, stops, or runs on the other head
            _ => None,
        }
    }
}

/// For as long as the drives are watched. An array that refuses is told again.
async fn keep_telling(mut told: watch::Receiver<BTreeMap<String, DriveHealth>>, array: Arc<dyn Array>) {
    while told.changed().await.is_ok() {
        loop {
            let health = told.borrow_and_update().clone();
            if array.call(Command::Head(HeadCall::DriveHealth(health))).await.is_ok() {
                break;
            }
            tokio::time::sleep(PAUSE).await;
        }
    }
}
