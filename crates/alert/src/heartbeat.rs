//! A request to a URL, again and again, as long as the array answers: somebody else notices when it stops.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use hyper::Method;

use crate::deliver::Undelivered;
use crate::http::{self, Ask, Url};
use crate::office::{Shared, Source, wall_ms};
use crate::rules::Scope;
use crate::teller::Failing;

/// See the header of this file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Heartbeat {
    pub url: Url,
    pub every: Duration,
    pub ca_file: Option<PathBuf>,
}

/// After a failure it is not waited longer than this.
const AGAIN_AFTER: Duration = Duration::from_secs(60);

impl Heartbeat {
    pub(crate) async fn beat(&self) -> Result<(), Undelivered> {
        let ask =
            Ask { method: Method::GET, headers: Vec::new(), body: Vec::new(), ca_file: self.ca_file.clone() };
        http::send(&self.url, ask).await
    }
}

/// For ever.
pub(crate) async fn keep_beating(heartbeat: Heartbeat, source: Arc<dyn Source>, shared: Arc<Shared>) {
    const NAME: &str = "heartbeat";
    let mut failing: Option<Failing> = None;
    loop {
        let mut pause = heartbeat.every;
        // one that cannot say what is wrong may be stuck: that it falls silent is what this is for
        if source.view().await.scope != Scope::Unanswered {
            match heartbeat.beat().await {
                Ok(()) => {
                    failing = None;
                    shared.note(NAME, |listed| {
                        listed.deliveries += 1;
                        (listed.delivered_ms, listed.failing_since_ms) = (Some(wall_ms()), None);
                        listed.error.clear();
                    });
                }
                Err(Undelivered { why, .. }) => {
                    if failing.is_none() {
                        tracing::warn!("the heartbeat does not arrive: {why}");
                    }
                    let now = Failing::again(failing.take(), why.clone());
                    shared.note(NAME, |listed| {
                        listed.failures += 1;
                        (listed.failing_since_ms, listed.error) = (Some(now.since_ms()), why);
                    });
                    failing = Some(now);
                    pause = pause.min(AGAIN_AFTER);
                }
            }
        }
        shared.set_problem(NAME, failing.as_ref().and_then(|failing| failing.problem(0)));
        tokio::time::sleep(pause).await;
    }
}
