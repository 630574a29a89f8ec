//! Retries portals that could not be opened, every second as long as the array serves: an old process may still hold
//! the address, or the address may belong to an interface that appears late.

use std::rc::Rc;

use base::Nanos;

use shard::{Answer, FrontCall, Stage};

use crate::manager::Manager;
use crate::state::Portal;
use api::PortalOptions;

const TRY_EVERY: Nanos = Nanos::from_secs(1);

impl Manager {
    /// Runs until the array stops.
    pub(crate) async fn watch_portals(self: Rc<Self>) {
        while self.context.stage.get() == Stage::Serving {
            self.context.io.sleep(TRY_EVERY).await;
            let missing = self.state.borrow().portals.iter().any(|portal| portal.result.is_err());
            if !missing || self.stopping.get() {
                continue;
            }
            // a running change may involve the portals: next second
            let Some(_turn) = self.changes.try_acquire(1) else { continue };
            self.try_portals_again().await;
        }
    }

    async fn try_portals_again(&self) {
        let wanted: Vec<PortalOptions> = {
            let state = self.state.borrow();
            let missing = state.portals.iter().filter(|portal| portal.result.is_err());
            missing.map(|portal| portal.options.clone()).collect()
        };
        let answer = self.context.ask(self.context.shard, FrontCall::Listen(wanted.clone())).await;
        let Answer::Listening(results) = answer else { unreachable!("the answer to listening") };
        let mut bound = Vec::new();
        for (options, result) in wanted.into_iter().zip(results) {
            let mut state = self.state.borrow_mut();
            let portal = state.portals.iter_mut().find(|portal| portal.options == options);
            let portal: &mut Portal = portal.expect("portals change in turns, and this is one");
            portal.result = result;
            bound.extend(portal.bound());
        }
        if !bound.is_empty() {
            let others = self.context.ask_others(|| FrontCall::Listen(bound.clone())).await;
            // if the system lets only one shard have an address, that shard serves it alone
            drop(others);
            self.broadcast().await;
        }
    }
}
