//! What status says of hosts whose logins were refused because they, or others, have too many sessions.

use base::limits::{SESSIONS_PER_ADDRESS_MAX, SESSIONS_PER_HOST_MAX, SESSIONS_PER_SHARD_MAX};

use shard::{Answer, FrontCall, MANAGER, SessionLimit};

use crate::manager::Manager;
use api::{Harm, Health, Problem};

impl Manager {
    /// For some minutes after the last refusal.
    pub(crate) async fn login_problems(&self) -> Vec<Problem> {
        let told = |(limit, initiator, count): (SessionLimit, String, u64)| {
            let state = self.state.borrow();
            let host = state.catalog.host_of_initiator(&initiator).map(|host| host.name.to_string());
            let logins = if count == 1 { "1 login".to_owned() } else { format!("{count} logins") };
            let why = match limit {
                SessionLimit::Host => {
                    format!("the host has {SESSIONS_PER_HOST_MAX} sessions, which is the limit")
                }
                SessionLimit::Address => {
                    format!("its address has {SESSIONS_PER_ADDRESS_MAX} sessions, which is the limit")
                }
                SessionLimit::Shard => format!(
                    "a core has {SESSIONS_PER_SHARD_MAX} sessions; the rest is kept for hosts that have none"
                ),
            };
            Problem {
                harm: Harm::Portal,
                health: Health::Degraded,
                subject: host.map_or(format!("initiator {initiator}"), |host| format!("host {host}")),
                reason: format!("{logins} of {initiator} refused: {why}"),
                action: "`tangelo status -o json` lists its sessions; have the host log out of those that it does not need"
                    .to_owned(),
            }
        };
        match self.context.ask(MANAGER, FrontCall::RefusedLogins).await {
            Answer::RefusedLogins(refused) => refused.into_iter().map(told).collect(),
            other => unreachable!("the answer to a question for refused logins, not {other:?}"),
        }
    }
}
