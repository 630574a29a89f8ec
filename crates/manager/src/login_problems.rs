//! Problems of hosts whose logins were refused because they, or other hosts, have too many sessions.

use base::limits::{SESSIONS_PER_ADDRESS_MAX, SESSIONS_PER_HOST_MAX, SESSIONS_PER_SHARD_MAX};

use shard::{Answer, FrontCall, MANAGER, SessionLimit};

use crate::manager::Manager;
use api::{LoginLimit, Problem, ProblemFacts, Subject};

impl Manager {
    /// Problems for some minutes after the last refusal.
    pub(crate) async fn login_problems(&self) -> Vec<Problem> {
        let told = |(limit, initiator, count): (SessionLimit, String, u64)| {
            let state = self.state.borrow();
            let host = state.catalog.host_of_initiator(&initiator).map(|host| host.name.to_string());
            let (limit, sessions_max) = match limit {
                SessionLimit::Host => (LoginLimit::Host, SESSIONS_PER_HOST_MAX),
                SessionLimit::Address => (LoginLimit::Address, SESSIONS_PER_ADDRESS_MAX),
                SessionLimit::Shard => (LoginLimit::Core, SESSIONS_PER_SHARD_MAX),
            };
            let subject = host.map_or(Subject::Initiator(initiator.clone()), Subject::Host);
            let sessions_max = sessions_max as u64;
            Problem::new(
                subject,
                ProblemFacts::LoginsRefused { initiator, logins: count, limit, sessions_max },
            )
        };
        match self.context.ask(MANAGER, FrontCall::RefusedLogins).await {
            Answer::RefusedLogins(refused) => refused.into_iter().map(told).collect(),
            other => unreachable!("the answer to a question for refused logins, not {other:?}"),
        }
    }
}
