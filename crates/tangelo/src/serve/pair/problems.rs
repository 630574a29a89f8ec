//! What this head knows to be wrong with the pair is told to the array, which has it among its problems.

use std::sync::Arc;
use std::time::Duration;

use api::{Command, FenceOutcome, FenceTrust, PairStatus, ProblemFacts};
use control::array::Array;

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
pub async fn keep_telling(array: Arc<PairArray>) {
    let mut told = Vec::new();
    loop {
        if let Some(engine) = array.engine() {
            let now = problems(&array.status());
            if now != told && engine.call(Command::PairProblems(now.clone())).await.is_ok() {
                told = now;
            }
        }
        tokio::time::sleep(LOOK).await;
    }
}
