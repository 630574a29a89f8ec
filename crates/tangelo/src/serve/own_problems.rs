//! What this head knows to be wrong beside what the array sees itself: several sources, one way to the array.
//!
//! ```text
//!   pair/problems ─┐
//!   drive_health ──┤
//!   alerts ────────┴─► OwnProblems (all problems of each source) ─► keep_telling ─► Command::Head
//! ```

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use api::{Command, HeadCall, HeadSource, ProblemFacts, Subject};
use control::array::Array;
use tokio::sync::watch;

/// How long it waits if the array takes nothing: it runs on the other head, or not yet.
const PAUSE: Duration = Duration::from_secs(1);

type Problems = Vec<(Subject, ProblemFacts)>;

/// See the header of this file.
#[derive(Clone)]
pub struct OwnProblems(watch::Sender<BTreeMap<HeadSource, Problems>>);

impl OwnProblems {
    pub fn new() -> OwnProblems {
        OwnProblems(watch::Sender::new(BTreeMap::new()))
    }

    /// All problems of a source, from now on.
    pub fn set(&self, source: HeadSource, problems: Problems) {
        self.0.send_if_modified(|own| own.insert(source, problems.clone()) != Some(problems));
    }

    /// Those of all sources.
    pub fn all(&self) -> Problems {
        self.0.borrow().values().flatten().cloned().collect()
    }

    /// Tells the array what has changed, and all of it to one that has just started here. For ever.
    pub async fn keep_telling(self, array: Arc<dyn Array>) {
        let mut own = self.0.subscribe();
        let mut told: BTreeMap<HeadSource, Problems> = BTreeMap::new();
        loop {
            let now = own.borrow_and_update().clone();
            for (source, problems) in now {
                if told.get(&source) == Some(&problems) {
                    continue;
                }
                let command = Command::Head(HeadCall::Problems { source, problems: problems.clone() });
                match array.call(command).await {
                    Ok(_) => _ = told.insert(source, problems),
                    // one that refuses knows nothing
                    Err(_) => told.clear(),
                }
            }
            let is_told = own.borrow().keys().all(|source| told.contains_key(source));
            match is_told {
                true => _ = own.changed().await,
                false => tokio::time::sleep(PAUSE).await,
            }
        }
    }
}
