//! Finds drives that appear under the configuration's patterns while the daemon runs.

use std::sync::Arc;
use std::time::Duration;

use api::Command;
use control::array::Array;
use control::config::{Config, NamedDrive};

/// How often the configuration's patterns are looked up anew.
const DRIVES_INTERVAL: Duration = Duration::from_secs(5);

/// Tells the array of drives that have appeared under the configuration's patterns since it started. What was
/// there once stays on the list: a drive comes back where it was.
pub async fn find_drives(config: Config, mut known: Vec<NamedDrive>, array: Arc<dyn Array>) {
    loop {
        tokio::time::sleep(DRIVES_INTERVAL).await;
        // too many for now: those that were there stay
        let Ok(found) = config.expand_drives(&[]) else { continue };
        let before = known.len();
        for drive in found {
            let room = known.len() < base::limits::CONFIGURED_DRIVES_MAX;
            if room && !known.iter().any(|other| other.path == drive.path) {
                known.push(drive);
            }
        }
        if known.len() > before {
            let paths = known.iter().map(|drive| drive.path.clone()).collect();
            let _ = array.call(Command::DrivesFound(paths)).await;
        }
    }
}
