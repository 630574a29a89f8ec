//! Says in the log who logs in, who is refused and why, and whose session ends and why.
//!
//! Who is refused tries again at once, so the same refusal is said once a minute. Discovery that goes well is not said: some
//! hosts look for targets every few seconds.

use std::net::IpAddr;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use control::repeats::Repeats;
use engine::{
    LoginFault, LoginRefusal, SessionChange, SessionEnd, SessionEvent, SessionLimit, SessionListener,
};

/// For the shards.
pub fn listener() -> SessionListener {
    let said = Mutex::new(Repeats::default());
    Arc::new(move |event| log(&event, &mut said.lock().expect("nobody panics with it"), Instant::now()))
}

/// Things that are not said again and again: of an initiator at an address.
type Key = (IpAddr, Option<String>, String);

fn log(event: &SessionEvent, said: &mut Repeats<Key>, now: Instant) {
    let Some(line) = line(event) else { return };
    let (warning, text) = line;
    let key = (event.peer.ip(), event.initiator.clone(), text.clone());
    let again = match said.say(key, now) {
        None => return,
        Some(0) => String::new(),
        Some(count) => format!(" ({count} times more since this was last said)"),
    };
    let who = who(event);
    if warning { tracing::warn!("{who}: {text}{again}") } else { tracing::info!("{who}: {text}{again}") }
}

/// `pve1 (iqn.1993-08.org.debian:01:abc, 10.0.0.7:40112)`.
fn who(event: &SessionEvent) -> String {
    let peer = event.peer;
    let initiator = event.initiator.as_deref().map(visible);
    match (&event.host, initiator) {
        (Some(host), Some(initiator)) => format!("{host} ({initiator}, {peer})"),
        (None, Some(initiator)) => format!("{initiator} ({peer})"),
        (_, None) => peer.to_string(),
    }
}

/// A peer may call itself anything.
fn visible(name: &str) -> String {
    name.chars().map(|c| if c.is_control() { '?' } else { c }).collect()
}

/// What to say, and whether it is a warning.
fn line(event: &SessionEvent) -> Option<(bool, String)> {
    match event.change {
        SessionChange::LoggedIn | SessionChange::Ended(_) if event.discovery => None,
        SessionChange::LoggedIn => Some((false, format!("logged in at {}", event.local))),
        SessionChange::Refused(refusal) => Some((true, format!("login refused: {}", why_refused(refusal)))),
        SessionChange::Ended(end) => {
            let (warning, why) = why_ended(end);
            Some((warning, format!("session ended: {why}")))
        }
    }
}

fn why_refused(refusal: LoginRefusal) -> String {
    let why = match refusal {
        LoginRefusal::Fault(LoginFault::UnknownInitiator) => {
            "no host has this initiator (`tangelo host create`, `tangelo host set --add-iqn`)"
        }
        LoginRefusal::Fault(LoginFault::UnknownTarget) => {
            "it asked for a target that is not this array's (`tangelo status` names ours)"
        }
        LoginRefusal::Fault(LoginFault::ChapNotOffered) => {
            "it must prove itself by CHAP, and does not offer to"
        }
        LoginRefusal::Fault(LoginFault::WrongSecret) => "wrong CHAP user or secret",
        LoginRefusal::Fault(LoginFault::NoMutualSecret) => {
            "it wants the array to prove itself, and this host has no mutual CHAP secret (`tangelo host set --mutual-chap-user`)"
        }
        LoginRefusal::Fault(LoginFault::Other { class, detail }) => {
            return format!("its login was not valid (iSCSI status {class:02x}/{detail:02x})");
        }
        LoginRefusal::OtherPortal => "this portal is not for this host ([listen] iscsi)",
        LoginRefusal::HostRemoved => "its host was removed meanwhile",
        LoginRefusal::TimedOut => "it took too long",
        LoginRefusal::ProtocolError => "it broke the protocol",
        LoginRefusal::TooManySessions(SessionLimit::Host) => "its host has as many sessions as one may have",
        LoginRefusal::TooManySessions(SessionLimit::Address) => {
            "there are as many sessions from its address as there may be"
        }
        LoginRefusal::TooManySessions(SessionLimit::Shard) => {
            "what is left of the array's sessions is kept for hosts that have none"
        }
        LoginRefusal::Guesses => "too many secrets were wrong from there",
        LoginRefusal::GaveWay => {
            "it had not finished while too many others wanted to log in, most of them from there"
        }
    };
    why.to_owned()
}

fn why_ended(end: SessionEnd) -> (bool, &'static str) {
    match end {
        SessionEnd::LoggedOut => (false, "it logged out"),
        SessionEnd::Reinstated => (true, "the same initiator has logged in anew"),
        SessionEnd::Unresponsive => (true, "it did not answer (NOP-In)"),
        SessionEnd::ConnectionLost => (true, "the connection was lost"),
        SessionEnd::ProtocolError => (true, "it broke the protocol"),
        SessionEnd::DigestError => (true, "a digest was wrong: the network changes data"),
        SessionEnd::AccessTakenAway => (false, "its access was taken away"),
        SessionEnd::TargetReset => (false, "it asked for a cold reset"),
        SessionEnd::GaveWay => (false, "it made room for others"),
        SessionEnd::Stopping => (false, "the array stops"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(change: SessionChange) -> SessionEvent {
        SessionEvent {
            peer: "10.0.0.7:40112".parse().unwrap(),
            local: "10.0.0.1:3260".parse().unwrap(),
            initiator: Some("iqn.1993-08.org.debian:01:abc".to_owned()),
            host: None,
            discovery: false,
            change,
        }
    }

    #[test]
    fn who_and_what() {
        let login = SessionEvent { host: Some("pve1".to_owned()), ..event(SessionChange::LoggedIn) };
        assert_eq!(who(&login), "pve1 (iqn.1993-08.org.debian:01:abc, 10.0.0.7:40112)");
        assert_eq!(line(&login), Some((false, "logged in at 10.0.0.1:3260".to_owned())));
        assert_eq!(line(&SessionEvent { discovery: true, ..login }), None);
        let refusal = LoginRefusal::Fault(LoginFault::WrongSecret);
        let refused = SessionEvent { discovery: true, ..event(SessionChange::Refused(refusal)) };
        assert_eq!(line(&refused), Some((true, "login refused: wrong CHAP user or secret".to_owned())));
        let sly = SessionEvent { initiator: Some("iqn.x\u{9b}2J\n".to_owned()), ..refused };
        assert_eq!(who(&sly), "iqn.x?2J? (10.0.0.7:40112)");
    }
}
