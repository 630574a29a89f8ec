//! Says in the log what is wrong with the array, and when it is over.

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use api::{Command, Problem, ProblemKey, Reply};
use control::array::Array;
use control::config::{Config, NamedDrive};

const INTERVAL: Duration = Duration::from_secs(2);
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

/// The problems that have been named and are not over.
#[derive(Default)]
pub struct Watcher {
    known: BTreeMap<ProblemKey, Problem>,
}

impl Watcher {
    /// Looks at the array again and again until `end`, which it gives.
    pub async fn until<T>(&mut self, array: &dyn Array, end: impl Future<Output = T>) -> T {
        tokio::pin!(end);
        loop {
            let look = async {
                tokio::time::sleep(INTERVAL).await;
                array.call(Command::Problems).await
            };
            tokio::select! {
                value = &mut end => return value,
                reply = look => if let Ok(Reply::Problems(problems)) = reply {
                    self.report(&problems);
                }
            }
        }
    }

    /// Names what is new since the last time, and what is over.
    pub fn report(&mut self, problems: &[Problem]) {
        let now: BTreeMap<ProblemKey, Problem> =
            problems.iter().map(|problem| (problem.key(), problem.clone())).collect();
        for problem in problems.iter().filter(|problem| !self.known.contains_key(&problem.key())) {
            let code = problem.code();
            tracing::warn!(%code, "{}: {}; {}", problem.subject, problem.reason(), problem.action());
        }
        for problem in
            self.known.iter().filter(|(key, _)| !now.contains_key(*key)).map(|(_, problem)| problem)
        {
            let code = problem.code();
            tracing::info!(%code, "{}: no longer: {}", problem.subject, problem.reason());
        }
        self.known = now;
    }
}
