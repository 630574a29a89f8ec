//! One channel as it runs: it looks at what there is, and has told what it was not told.

use std::sync::Arc;
use std::time::{Duration, Instant};

use api::{ProblemFacts, Subject};
use tokio::sync::{Notify, watch};

use crate::channel::Channel;
use crate::deliver::{Means, Undelivered};
use crate::letter::Letter;
use crate::office::{Shared, wall_ms};
use crate::plan::{Message, plan};
use crate::retry;
use crate::rules::{Clock, Rules, View};
use crate::store::Kept;

/// How often it is looked whether something is due.
const TURN: Duration = Duration::from_millis(500);

/// A channel, or a heartbeat, that fails.
pub(crate) struct Failing {
    since: Instant,
    since_ms: u64,
    why: String,
}

impl Failing {
    /// From then on it is a problem: a server may restart, and may put off mail of who is new to it.
    const PATIENCE: Duration = Duration::from_secs(300);

    /// Another attempt has failed.
    pub(crate) fn again(before: Option<Failing>, why: String) -> Failing {
        let (since, since_ms) =
            before.map_or_else(|| (Instant::now(), wall_ms()), |before| (before.since, before.since_ms));
        Failing { since, since_ms, why }
    }

    pub(crate) fn since_ms(&self) -> u64 {
        self.since_ms
    }

    pub(crate) fn problem(&self, untold: u64) -> Option<ProblemFacts> {
        (self.since.elapsed() >= Failing::PATIENCE).then(|| ProblemFacts::AlertsNotDelivered {
            error: self.why.clone(),
            failing_since_ms: self.since_ms,
            untold,
        })
    }
}

/// See the header of this file.
pub(crate) struct Teller {
    means: Means,
    channel: Channel,
    shared: Arc<Shared>,
    rules: watch::Receiver<Rules>,
    /// In a row.
    failures: u64,
    failing: Option<Failing>,
    next_try: Instant,
}

impl Teller {
    pub(crate) fn new(
        means: Means,
        channel: Channel,
        shared: Arc<Shared>,
        rules: watch::Receiver<Rules>,
    ) -> Teller {
        Teller { means, channel, shared, rules, failures: 0, failing: None, next_try: Instant::now() }
    }

    /// Until nobody looks any more.
    pub(crate) async fn run(mut self, mut views: watch::Receiver<Option<Arc<View>>>, retry: Arc<Notify>) {
        self.show();
        loop {
            tokio::select! {
                changed = views.changed() => if changed.is_err() { return },
                () = retry.notified() => self.next_try = Instant::now(),
                () = tokio::time::sleep(TURN) => {}
            }
            let view = views.borrow_and_update().clone();
            if let Some(view) = view {
                self.turn(&view).await;
            }
        }
    }

    async fn turn(&mut self, view: &View) {
        let (clock, rules) = (self.shared.clock(), self.rules.borrow().clone());
        self.channel.observe(view, clock, &rules);
        let message = plan(&self.channel, view, clock, &rules);
        let untold = message.as_ref().map_or(0, |message| self.untold(message));
        let problem = self.failing.as_ref().and_then(|failing| failing.problem(untold));
        self.shared.set_problem(self.means.name(), problem);
        if let Some(message) = message
            && Instant::now() >= self.next_try
        {
            self.deliver(&message, clock).await;
            self.show();
        }
    }

    /// But for its own problem.
    fn untold(&self, message: &Message) -> u64 {
        let own = Subject::Channel(self.means.name().to_owned());
        let begun = message.begun().filter(|problem| problem.subject != own).count();
        (begun + message.ended.len()) as u64
    }

    async fn deliver(&mut self, message: &Message, clock: Clock) {
        let attempt = self.channel.attempt(message, clock);
        if !attempt.is_empty() {
            self.store().await;
        }
        let letter = Letter::of(message, &self.shared.head);
        let delivered = self.means.deliver(&letter, &self.shared.head, self.shared.read).await;
        let (name, target) = (self.means.name(), self.means.target());
        match delivered {
            Ok(note) => {
                // when it had arrived
                self.channel.delivered(message, self.shared.clock());
                self.store().await;
                if self.failing.take().is_some() {
                    tracing::info!("alerts are delivered again by {name} to {target}");
                }
                if !note.is_empty() {
                    tracing::warn!("alerts by {name}: {note}");
                }
                (self.failures, self.next_try) = (0, Instant::now());
                self.shared.set_problem(name, None);
                self.shared.note(name, |listed| {
                    listed.deliveries += 1;
                    (listed.delivered_ms, listed.error) = (Some(wall_ms()), note);
                });
            }
            Err(Undelivered { why, may_have_arrived }) => {
                if !may_have_arrived && !attempt.is_empty() {
                    self.channel.undo(attempt);
                    self.store().await;
                }
                if self.failing.as_ref().is_none_or(|failing| failing.why != why) {
                    tracing::warn!("an alert was not delivered by {name}, and is tried again: {why}");
                }
                self.failing = Some(Failing::again(self.failing.take(), why.clone()));
                self.failures += 1;
                self.next_try = Instant::now() + retry::pause(self.failures, retry::random());
                self.shared.note(name, |listed| {
                    listed.failures += 1;
                    listed.error = why;
                });
            }
        }
    }

    async fn store(&self) {
        self.shared.keep(self.means.name(), Some(Kept::of(&self.channel, &self.means.target()))).await;
    }

    /// What the list says.
    fn show(&self) {
        let told = self.channel.told().map(|told| told.problem.clone()).collect();
        let failing_since_ms = self.failing.as_ref().map(Failing::since_ms);
        self.shared.note(self.means.name(), |listed| {
            (listed.told, listed.failing_since_ms) = (told, failing_since_ms);
        });
    }
}
