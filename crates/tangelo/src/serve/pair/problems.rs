//! What this head knows to be wrong with the pair.

use std::sync::Arc;
use std::time::Duration;

use api::{FenceOutcome, FenceTrust, HeadSource, PairStatus, ProblemFacts, Subject};

use super::super::own_problems::OwnProblems;
use super::array::PairArray;

/// How often it is looked whether something has changed.
const LOOK: Duration = Duration::from_millis(500);

fn problems(pair: &PairStatus) -> Vec<ProblemFacts> {
    let maintenance = pair.maintenance_since_ms.map(|since_ms| ProblemFacts::PairMaintenance { since_ms });
    let fence = pair.fence.iter();
    let unusable =
        fence.clone().filter(|fence| matches!(fence.trust, FenceTrust::Doubted | FenceTrust::Unusable));
    let unusable = unusable.map(|fence| ProblemFacts::FenceUnusable {
        agent: fence.agent.clone(),
        detail: fence.detail.clone(),
    });
    let not_fenced = fence.filter(|_| !pair.hears_the_other).filter_map(|fence| {
        let last = fence.last.as_ref().filter(|last| last.outcome == FenceOutcome::Failed)?;
        Some(ProblemFacts::HeadNotFenced { agent: fence.agent.clone(), detail: last.detail.clone() })
    });
    maintenance.into_iter().chain(unusable).chain(not_fenced).collect()
}

/// For ever.
pub async fn keep_looking(array: Arc<PairArray>, own: OwnProblems) {
    loop {
        let now = problems(&array.status());
        own.set(HeadSource::Pair, now.into_iter().map(|facts| (Subject::Array, facts)).collect());
        tokio::time::sleep(LOOK).await;
    }
}
