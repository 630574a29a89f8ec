//! Alerts of this head: what `[alerts]` says is carried out by the room `alert`.
//!
//! Each head of a pair tells what is wrong with itself. What is wrong with the array, the one tells that owns it.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use alert::{
    Command as Program, Heartbeat, Mail, MailTls, Means, Office, Quiet, Rules, Scope, Settings, Source,
    Start, Url, View, Webhook,
};
use api::{
    AlertChannel, AlertTestResult, Command, CommandError, CommandErrorKind, HeadRole, HeadSource, PairOrder,
    Problem, Reply,
};
use control::alerts::{Alerts, TestAnswer, no_channel};
use control::array::Array;
use control::config::{AlertMail, AlertTls, Config};
use control::events::EventLog;
use control::secret_file;

use super::own_problems::OwnProblems;

/// An array that does not answer within this time may be stuck.
const ANSWER_TIME: Duration = Duration::from_secs(10);

/// See the header of this file.
pub struct HeadAlerts(Office);

impl HeadAlerts {
    pub fn start(
        config: &Config,
        array: Arc<dyn Array>,
        own: OwnProblems,
        events: &EventLog,
    ) -> Arc<HeadAlerts> {
        let told = own.clone();
        let start = Start {
            head: rustix::system::uname().nodename().to_string_lossy().into_owned(),
            state_dir: config.state_dir.clone(),
            read_secret,
            report: Box::new(move |problems| told.set(HeadSource::Alerts, problems)),
        };
        let source = Arc::new(OfHead { array, own });
        let alerts = Arc::new(HeadAlerts(Office::start(start, source, settings(config))));
        let (looker, mut progress) = (Arc::downgrade(&alerts), events.progress());
        tokio::spawn(async move {
            while progress.changed().await.is_ok()
                && let Some(alerts) = looker.upgrade()
            {
                alerts.0.look_now();
            }
        });
        alerts
    }

    /// The head's file was read again.
    pub fn reload(&self, config: &Config) {
        self.0.set(settings(config));
    }
}

impl Alerts for HeadAlerts {
    fn list(&self) -> Vec<AlertChannel> {
        self.0.list()
    }

    fn test(&self, channel: Option<String>) -> TestAnswer<'_> {
        Box::pin(async move {
            let busy = || {
                let message = "another test of alerts is under way";
                CommandError::new(
                    CommandErrorKind::InUse,
                    message,
                    "wait for its end, at most a minute and a half",
                )
            };
            let results: Vec<AlertTestResult> = self.0.test(channel.as_deref()).await.ok_or_else(busy)?;
            match results.is_empty() {
                true => Err(no_channel(channel.as_deref())),
                false => Ok(results),
            }
        })
    }
}

fn read_secret(path: &Path) -> Result<String, String> {
    secret_file::read(path).map_err(|error| error.to_string())
}

/// What this head knows.
struct OfHead {
    array: Arc<dyn Array>,
    own: OwnProblems,
}

impl OfHead {
    async fn look(&self) -> View {
        let asked = tokio::time::timeout(ANSWER_TIME, self.array.call(Command::Problems)).await;
        match asked {
            Ok(Ok(Reply::Problems(problems))) => return View { scope: Scope::Whole, problems },
            Ok(Ok(other)) => unreachable!("the array answered a request for problems with {other:?}"),
            Ok(Err(_)) | Err(_) => {}
        }
        let problems = self.own.all().into_iter().map(|(subject, facts)| Problem::new(subject, facts));
        View { scope: self.scope().await, problems: problems.collect() }
    }

    /// Where the array has not answered.
    async fn scope(&self) -> Scope {
        match tokio::time::timeout(ANSWER_TIME, self.array.pair(PairOrder::Status)).await {
            Ok(Ok(pair)) if matches!(pair.role, HeadRole::Partner | HeadRole::Outside) => Scope::Head,
            // a head that is alone, or one that should have answered
            _ => Scope::Unanswered,
        }
    }
}

impl Source for OfHead {
    fn view(&self) -> std::pin::Pin<Box<dyn Future<Output = View> + Send + '_>> {
        Box::pin(self.look())
    }
}

fn settings(config: &Config) -> Settings {
    let alerts = &config.alerts;
    let url = |text: &str| Url::parse(text);
    let mail = alerts.mail.as_ref().map(|mail| Means::Mail(mail_of(mail)));
    let webhook = alerts.webhook.as_ref().and_then(|webhook| {
        let (token_file, ca_file) = (webhook.token_file.clone(), webhook.ca_file.clone());
        Some(Means::Webhook(Webhook { url: url(&webhook.url)?, token_file, ca_file }))
    });
    let command = alerts.command.as_ref().map(|program| Means::Command(Program::new(program.clone())));
    let heartbeat = alerts.heartbeat.as_ref().and_then(|(heartbeat, every)| {
        Some(Heartbeat { url: url(&heartbeat.url)?, every: *every, ca_file: heartbeat.ca_file.clone() })
    });
    let quiet = alerts.quiet.map(|quiet| Quiet {
        from: quiet.from,
        to: quiet.to,
        offset_minutes: quiet.offset_minutes,
    });
    let rules = Rules {
        repeat: alerts.repeat,
        quiet,
        with_notices: alerts.with_notices,
        health_every: config.health.every,
    };
    Settings { rules, means: mail.into_iter().chain(webhook).chain(command).collect(), heartbeat }
}

fn mail_of(mail: &AlertMail) -> Mail {
    let tls = match mail.tls {
        AlertTls::StartTls => MailTls::StartTls,
        AlertTls::Tls => MailTls::Tls,
        AlertTls::None => MailTls::None,
    };
    let (user, password_file) = mail.user.clone().unzip();
    Mail {
        server: mail.server.clone(),
        port: mail.port,
        tls,
        user,
        password_file,
        from: mail.from.clone(),
        to: mail.to.clone(),
        ca_file: mail.ca_file.clone(),
    }
}
