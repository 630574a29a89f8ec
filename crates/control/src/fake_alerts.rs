//! Fake alerts, for the tests that have a fake array.

use api::{AlertChannel, AlertTestResult, Problem, ProblemFacts, Subject};

use crate::alerts::{Alerts, TestAnswer, no_channel};

/// A head whose only channel, mail, fails.
pub struct FakeAlerts;

impl Alerts for FakeAlerts {
    fn list(&self) -> Vec<AlertChannel> {
        let facts = ProblemFacts::HealthUnwatched { program: "smartctl".to_owned() };
        let channel = AlertChannel {
            name: "mail".to_owned(),
            target: "admin@example.com by mail.example.com:587".to_owned(),
            delivered_ms: Some(1_795_694_400_000),
            failing_since_ms: Some(1_795_698_000_000),
            error: "mail.example.com:587 cannot be reached: Connection refused".to_owned(),
            deliveries: 3,
            failures: 2,
            told: vec![Problem::new(Subject::Array, facts)],
        };
        vec![channel]
    }

    fn test(&self, channel: Option<String>) -> TestAnswer<'_> {
        let results = || {
            let listed = self.list().remove(0);
            let AlertChannel { name: channel, target, error, .. } = listed;
            vec![AlertTestResult { channel, target, delivered: false, error, took_ms: 12 }]
        };
        let answer = match channel.as_deref() {
            None | Some("mail") => Ok(results()),
            other => Err(no_channel(other)),
        };
        Box::pin(std::future::ready(answer))
    }
}
