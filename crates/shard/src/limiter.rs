//! Holds back events that happen again and again: the first ones are reported at once, repetitions are counted.
//!
//! A value without a clock. What it remembers is bounded: what does not fit is counted by code. Nothing is lost without
//! being counted.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::net::SocketAddr;

use api::{EventCode, EventFacts, LoginRefusal, Origin, SessionEnd, Subject};
use base::Nanos;
use base::limits::EVENTS_LIMITED_MAX;

use crate::news::Report;

/// How long repetitions are counted before they are reported as one event.
pub(crate) const WINDOW: Nanos = Nanos::from_secs(60);
/// Sessions that begin and end are reported one by one up to so often in this time: people look for each.
const SESSIONS_TOLD: u64 = 4;

/// What a shard has reported lately.
#[derive(Default)]
pub struct Reports {
    pub(crate) limiter: RefCell<Limiter>,
    /// A task waits to report what was held back.
    pub(crate) waits: Cell<bool>,
}

/// What repetitions have in common. Ports differ with each connection.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Sameness {
    code: EventCode,
    subject: Subject,
    /// Who causes it, and where.
    from: String,
    at: String,
    refusal: Option<LoginRefusal>,
    end: Option<SessionEnd>,
}

impl Sameness {
    fn of(subject: &Subject, facts: &EventFacts) -> Sameness {
        let (mut from, mut at) = (String::new(), String::new());
        let (mut refusal, mut end) = (None, None);
        match facts {
            EventFacts::SessionBegan { peer, portal, .. } => (from, at) = (machine(peer), portal.clone()),
            EventFacts::SessionEnded { peer, portal, end: why, .. } => {
                (from, at, end) = (machine(peer), portal.clone(), Some(*why));
            }
            EventFacts::LoginRefused { peer, refusal: why, .. } => {
                (from, refusal) = (machine(peer), Some(*why))
            }
            EventFacts::ChangeRefused { origin, command, .. } => {
                (from, at) = (asker(origin), format!("{command:?}"));
            }
            _ => {}
        }
        Sameness { code: facts.code(), subject: subject.clone(), from, at, refusal, end }
    }

    fn told_at_once(&self) -> u64 {
        match self.code {
            EventCode::SessionBegan | EventCode::SessionEnded => SESSIONS_TOLD,
            _ => 1,
        }
    }
}

/// An address without its port.
fn machine(peer: &str) -> String {
    peer.parse().map_or_else(|_| peer.to_owned(), |peer: SocketAddr| peer.ip().to_string())
}

/// Whoever asks, without the process or the port.
fn asker(origin: &Origin) -> String {
    match origin {
        Origin::Local { user, .. } => user.to_string(),
        Origin::Remote { address } => machine(address),
        Origin::User { user, address } => format!("{user} {}", machine(address)),
        Origin::Token { token, address } => format!("{token} {}", machine(address)),
        Origin::Daemon => String::new(),
    }
}

struct Seen {
    /// When its window began.
    since: Nanos,
    told: u64,
    held_back: u64,
    last: EventFacts,
}

/// See the module's words.
#[derive(Default)]
pub(crate) struct Limiter {
    seen: BTreeMap<Sameness, Seen>,
    /// What did not fit, by its code; and when the first of it came.
    others: BTreeMap<EventCode, u64>,
    others_since: Nanos,
}

impl Limiter {
    /// The report to make now, if any.
    pub(crate) fn see(&mut self, subject: Subject, facts: EventFacts, now: Nanos) -> Option<Report> {
        let key = Sameness::of(&subject, &facts);
        if let Some(seen) = self.seen.get_mut(&key) {
            if now.saturating_sub(seen.since) >= WINDOW && seen.held_back == 0 {
                (seen.since, seen.told) = (now, 0);
            }
            if seen.told >= key.told_at_once() {
                (seen.held_back, seen.last) = (seen.held_back + 1, facts);
                return None;
            }
            seen.told += 1;
            return Some(Report { subject, facts, count: 1 });
        }
        if self.seen.len() >= EVENTS_LIMITED_MAX {
            self.seen.retain(|_, seen| seen.held_back > 0 || now.saturating_sub(seen.since) < WINDOW);
        }
        if self.seen.len() >= EVENTS_LIMITED_MAX {
            if self.others.is_empty() {
                self.others_since = now;
            }
            *self.others.entry(key.code).or_default() += 1;
            return None;
        }
        self.seen.insert(key, Seen { since: now, told: 1, held_back: 0, last: facts.clone() });
        Some(Report { subject, facts, count: 1 })
    }

    /// Reports of what was counted in windows that are over by now.
    pub(crate) fn due(&mut self, now: Nanos) -> Vec<Report> {
        let mut reports = Vec::new();
        self.seen.retain(|key, seen| {
            let over = now.saturating_sub(seen.since) >= WINDOW;
            if over && seen.held_back > 0 {
                let (subject, facts) = (key.subject.clone(), seen.last.clone());
                reports.push(Report { subject, facts, count: seen.held_back });
                // the next window: whatever goes on is reported once in each
                (seen.since, seen.told, seen.held_back) = (now, key.told_at_once(), 0);
                return true;
            }
            !over
        });
        if now.saturating_sub(self.others_since) >= WINDOW {
            let others = std::mem::take(&mut self.others);
            reports.extend(others.into_iter().map(|(of, count)| Report {
                subject: Subject::Array,
                facts: EventFacts::EventsHeldBack { of },
                count,
            }));
        }
        reports
    }

    /// When something is due, at the earliest.
    pub(crate) fn next_due(&self) -> Option<Nanos> {
        let held_back = self.seen.values().filter(|seen| seen.held_back > 0).map(|seen| seen.since);
        let others = (!self.others.is_empty()).then_some(self.others_since);
        held_back.chain(others).min().map(|since| since + WINDOW)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(initiator: &str, port: u16) -> (Subject, EventFacts) {
        let facts = EventFacts::LoginRefused {
            initiator: Some(initiator.to_owned()),
            peer: format!("10.0.0.7:{port}"),
            portal: "10.0.0.1:3260".to_owned(),
            refusal: LoginRefusal::WrongSecret,
        };
        (Subject::Initiator(initiator.to_owned()), facts)
    }

    fn at(ms: u64) -> Nanos {
        Nanos::from_millis(ms)
    }

    #[test]
    fn repetitions_are_counted_and_reported_once_a_minute() {
        let mut limiter = Limiter::default();
        let see = |limiter: &mut Limiter, ms: u64| {
            let (subject, facts) = refused("iqn.a", ms as u16);
            limiter.see(subject, facts, at(ms)).map(|report| report.count)
        };
        assert_eq!(see(&mut limiter, 0), Some(1));
        assert_eq!(limiter.next_due(), None, "nothing is held back");
        for ms in 1..10_000 {
            assert_eq!(see(&mut limiter, ms), None);
        }
        assert_eq!(limiter.next_due(), Some(WINDOW));
        assert_eq!(limiter.due(at(59_999)), []);
        let told = limiter.due(at(60_000));
        assert_eq!(told.iter().map(|report| report.count).collect::<Vec<_>>(), [9_999]);
        // it goes on: once in each window
        assert_eq!(see(&mut limiter, 60_001), None);
        assert_eq!(limiter.due(at(119_999)), []);
        assert_eq!(limiter.due(at(120_000))[0].count, 1);
        assert_eq!(limiter.due(at(180_000)), []);
        assert_eq!(see(&mut limiter, 180_001), Some(1), "it is news again");
        assert_eq!(see(&mut limiter, 240_001), Some(1), "and again");
    }

    /// 10,000 events a second, each of another subject.
    #[test]
    fn what_is_remembered_is_bounded_and_nothing_is_lost_uncounted() {
        let mut limiter = Limiter::default();
        let (mut told, mut counted) = (0, 0);
        for second in 0..120 {
            for number in 0..10_000 {
                let (subject, facts) = refused(&format!("iqn.{second}.{number}"), 1);
                told +=
                    limiter.see(subject, facts, Nanos::from_secs(second)).map_or(0, |report| report.count);
            }
            assert!(limiter.seen.len() <= EVENTS_LIMITED_MAX && limiter.others.len() <= 1);
            counted += limiter.due(Nanos::from_secs(second)).iter().map(|report| report.count).sum::<u64>();
        }
        assert!(told <= 3 * EVENTS_LIMITED_MAX as u64, "{told}");
        counted += limiter.due(Nanos::from_secs(300)).iter().map(|report| report.count).sum::<u64>();
        assert_eq!(told + counted, 1_200_000);
    }

    #[test]
    fn sessions_of_a_host_by_two_paths_are_told_one_by_one() {
        let mut limiter = Limiter::default();
        let began = |portal: &str| EventFacts::SessionBegan {
            initiator: "iqn.a".to_owned(),
            peer: "10.0.0.7:40000".to_owned(),
            portal: portal.to_owned(),
        };
        let mut told = |portal: &str| {
            let host = Subject::Host("alpha".to_owned());
            limiter.see(host, began(portal), at(0)).is_some()
        };
        let first: Vec<bool> = (0..6).map(|_| told("10.0.0.1:3260")).collect();
        assert_eq!(first, [true, true, true, true, false, false]);
        assert!(told("10.0.1.1:3260"));
    }
}
