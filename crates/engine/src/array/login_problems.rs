//! What status says of hosts whose logins were refused because they, or others, have too many sessions.

use base::limits::{SESSIONS_PER_ADDRESS_MAX, SESSIONS_PER_HOST_MAX, SESSIONS_PER_SHARD_MAX};

use super::Array;
use crate::admission::SessionLimit;
use api::{Harm, Health, Problem};

impl Array {
    /// For some minutes after the last refusal.
    pub(super) fn login_problems(&self) -> Vec<Problem> {
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
        self.context.register.refused().into_iter().map(told).collect()
    }
}
