//! The words of each event. One match over all facts, without a wildcard.

use base::units::size;

use super::parts::{Expiry, SignInRefusal};
use super::{EventCode, EventFacts};
use crate::{ChangeStep, DriveTrouble, InWords, Problem, Subject};

impl EventFacts {
    /// The event in one line, where it is about `subject`.
    pub fn text(&self, subject: &Subject) -> String {
        use EventFacts::*;
        match self {
            ProblemBegan { problem } => problem_text(problem, ""),
            ProblemChanged { before, problem } => problem_text(problem, &was(before)),
            ProblemEnded { problem } => format!("{subject}: no longer: {}", problem.reason()),
            ChangeMade { origin, steps, hosts_affected, .. } => {
                format!("{origin}: {}", changed(steps, hosts_affected))
            }
            ChangeRefused { origin, cause, .. } => format!("{origin}: refused: {subject}: {}", cause.detail),
            ApiRefused {} => format!("{subject}: the API refused it: no token, or a wrong one"),
            SignedIn { address } => format!("{subject}: signed in from {address}"),
            SignInRefused { user, why } => sign_in_refused(subject, user.as_deref(), *why),
            SignedOut { address } => format!("{subject}: signed out at {address}"),
            SessionBegan { initiator, peer, portal } => {
                format!("{}: logged in at {portal}", who(subject, Some(initiator), peer))
            }
            SessionEnded { initiator, peer, end, .. } => {
                format!("{}: session ended: {end}", who(subject, Some(initiator), peer))
            }
            LoginRefused { initiator, peer, refusal, .. } => {
                format!("{}: login refused: {refusal}", who(subject, initiator.as_ref(), peer))
            }
            AddressBlocked { portal } => {
                format!("{subject}: not heard at {portal}: too many secrets were wrong from there")
            }
            EventsHeldBack { of } => held_back(*of),
            DaemonStarted { version } => format!("tangelo {version} has started"),
            DaemonStopped { version } => format!("tangelo {version} has stopped in order"),
            PoolOpened { drives, lost_drives: 0 } => format!("{subject}: opened with {drives} drives"),
            PoolOpened { drives, lost_drives } => {
                format!("{subject}: opened with {drives} drives, without {lost_drives}")
            }
            PoolClosed { why } => format!("{subject}: closed: {why}"),
            PoolFailed { why } => format!("{subject}: failed: {why}"),
            DriveGivenUp { pool, trouble } => {
                format!("{subject}: {}: pool {pool} goes on without it", lost(*trouble))
            }
            DriveReturned { pool } => format!("{subject}: is back in pool {pool}"),
            DriveJoined { pool } => format!("{subject}: has joined pool {pool}"),
            DriveEmptying { pool, slow: true } => {
                format!("{subject}: much slower than its siblings: pool {pool} empties it")
            }
            DriveEmptying { pool, slow: false } => format!("{subject}: pool {pool} empties it"),
            DriveKept { pool } => format!("{subject}: stays in pool {pool}, and is not emptied any more"),
            DriveLeft { pool } => format!("{subject}: has left pool {pool}"),
            RepairBegan { what, bytes } => {
                format!("{subject}: {} has begun: {} to write anew", what.word(), size(*bytes))
            }
            RepairEnded { what, written_bytes } => {
                format!("{subject}: {} has ended: {} written anew", what.word(), size(*written_bytes))
            }
            ScrubBegan {} => format!("{subject}: a scrub has begun"),
            ScrubEnded { complete, repaired, unreadable } => {
                let how = if *complete { "" } else { " before it was complete" };
                format!("{subject}: the scrub has ended{how}: {}", scrubbed(*repaired, *unreadable))
            }
            SnapshotsTaken { volumes, expired } => {
                let expired = match expired {
                    0 => String::new(),
                    count => format!("; {count} older ones have expired"),
                };
                format!("{subject}: snapshots of {} taken{expired}", volumes.join(", "))
            }
            VolumeExpired { pool, why } => {
                format!("{subject}: deleted for good from the bin of pool {pool}: {}", expired(*why))
            }
        }
    }
}

fn was(before: &Problem) -> String {
    format!(" (before: {})", before.reason())
}

fn sign_in_refused(subject: &Subject, user: Option<&str>, why: SignInRefusal) -> String {
    let tried = user.map_or(String::new(), |user| format!(" as {user}"));
    format!("{subject}: sign-in{tried} refused: {}", why.words())
}

fn changed(steps: &[ChangeStep], hosts_affected: &[String]) -> String {
    let words: Vec<String> = steps.iter().map(ChangeStep::text).collect();
    let words = if words.is_empty() { "nothing was to change".to_owned() } else { words.join("; ") };
    match hosts_affected {
        [] => words,
        hosts => format!("{words} (hosts affected: {})", hosts.join(", ")),
    }
}

fn scrubbed(repaired: u64, unreadable: u64) -> String {
    match (repaired, unreadable) {
        (0, 0) => "nothing wrong".to_owned(),
        (repaired, 0) => format!("{repaired} batches repaired"),
        (repaired, unreadable) => format!("{repaired} batches repaired, {unreadable} unreadable"),
    }
}

fn expired(why: Expiry) -> &'static str {
    match why {
        Expiry::Overdue => "its time in the bin was over",
        Expiry::PoolFull => "the pool was nearly full",
    }
}

fn problem_text(problem: &Problem, before: &str) -> String {
    let action = match problem.action() {
        action if action.is_empty() => action,
        action => format!("; {action}"),
    };
    format!("{}: {}{before}{action}", problem.subject, problem.reason())
}

/// `pve1 (iqn.1993-08.org.debian:01:abc, 10.0.0.7:40112)`.
fn who(subject: &Subject, initiator: Option<&String>, peer: &str) -> String {
    match (subject, initiator) {
        (Subject::Host(host), Some(initiator)) => format!("{host} ({}, {peer})", visible(initiator)),
        (_, Some(initiator)) => format!("{} ({peer})", visible(initiator)),
        (_, None) => peer.to_owned(),
    }
}

/// A peer may call itself anything.
fn visible(name: &str) -> String {
    name.chars().map(|c| if c.is_control() { '?' } else { c }).collect()
}

fn held_back(code: EventCode) -> String {
    format!("events of the code {code} were counted and not recorded one by one: too many at once")
}

fn lost(trouble: DriveTrouble) -> &'static str {
    match trouble {
        DriveTrouble::Failed => "was taken out for its errors",
        DriveTrouble::Missing => "is missing",
        DriveTrouble::Slow => "was much slower than its siblings",
    }
}
