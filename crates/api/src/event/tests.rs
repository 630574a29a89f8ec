//! Every code has its words, its example, and a test that raises it.

use std::collections::BTreeSet;

use super::document::document;
use super::examples::examples;
use super::*;
use crate::sources::{check_page, is_named, read_sources};
use crate::{Command, ProblemFacts};

#[test]
fn each_code_has_a_row_and_an_example() {
    for (code, example) in EventCode::ALL.iter().zip(examples()) {
        assert_eq!((code.row().code, example.code()), (*code, *code));
        assert!(code.row().meaning.ends_with('.'), "{code}");
    }
    assert_eq!(EventCode::ALL.len(), examples().len());
}

#[test]
fn each_fact_is_described() {
    for event in examples() {
        let json = serde_json::to_value(&event).unwrap();
        let facts: BTreeSet<&str> =
            json["facts"].as_object().unwrap().keys().map(|name| name.as_str()).collect();
        let described: BTreeSet<&str> = event.code().row().facts.iter().map(|(name, _)| *name).collect();
        assert_eq!(facts, described, "{}", event.code());
    }
}

#[test]
fn what_is_read_is_what_was_written() {
    for event in examples() {
        let line = serde_json::to_string(&event).unwrap();
        assert!(!line.contains('\n'), "an event is one line of the journal");
        let json: serde_json::Value = serde_json::from_str(&line).unwrap();
        assert_eq!(json["code"], event.code().to_string());
        assert_eq!(json["subject"], event.subject.to_string());
        assert_eq!(json["text"], event.text());
        assert_eq!(serde_json::from_str::<Event>(&line).unwrap(), event);
    }
}

/// Earlier versions recorded what was changed in words only.
#[test]
fn a_change_that_was_recorded_in_words_is_read() {
    let made = examples().into_iter().find(|event| event.code() == EventCode::ChangeMade).unwrap();
    let mut json = serde_json::to_value(&made).unwrap();
    let facts = json["facts"].as_object_mut().unwrap();
    facts.remove("steps").unwrap();
    facts.insert("lines".to_owned(), vec!["create volume vm-01", "and more"].into());
    let read: Event = serde_json::from_value(json).unwrap();
    assert_eq!(read.text(), "root (process 812): create volume vm-01; and more");
}

#[test]
fn the_severity_follows_from_the_facts() {
    let severity = |code: EventCode| {
        examples().into_iter().find(|event| event.code() == code).map(|event| event.severity()).unwrap()
    };
    assert_eq!(severity(EventCode::ProblemBegan), EventSeverity::Warning);
    assert_eq!(severity(EventCode::ProblemEnded), EventSeverity::Info);
    assert_eq!(severity(EventCode::SessionEnded), EventSeverity::Warning);
    assert_eq!(severity(EventCode::ScrubEnded), EventSeverity::Warning);
    let logged_out = SessionEnd::LoggedOut.severity();
    assert_eq!(logged_out, EventSeverity::Info);
    let offline = Box::new(crate::Problem::new(Subject::Array, ProblemFacts::ArrayStarting {}));
    assert_eq!(EventFacts::ProblemBegan { problem: offline }.severity(), EventSeverity::Error);
}

#[test]
fn a_peer_cannot_write_lines_of_its_own_into_the_log() {
    let refused = examples().into_iter().find(|event| event.code() == EventCode::LoginRefused).unwrap();
    let EventFacts::LoginRefused { peer, portal, refusal, .. } = refused.facts.clone() else {
        unreachable!()
    };
    let initiator = Some("iqn.x\u{9b}2J\n<0>".to_owned());
    let facts = EventFacts::LoginRefused { initiator, peer, portal, refusal };
    let text = Event { facts, count: 3, ..refused }.text();
    assert!(text.starts_with("iqn.x?2J?<0> (10.0.0.66:40113): login refused: no host"), "{text}");
    assert!(text.ends_with(" (3 times)"), "{text}");
}

#[test]
fn what_only_asks_or_tries_changes_nothing() {
    let delete = |dry_run| Command::PoolDelete { name: "fast".to_owned(), eradicate: false, dry_run };
    let asked = delete(false).asked_change().unwrap();
    assert_eq!((asked.kind, asked.subject), (CommandKind::PoolDelete, Subject::pool("fast")));
    for command in [delete(true), Command::Status, Command::Problems, Command::DriveList] {
        assert_eq!(command.asked_change(), None, "{command:?}");
    }
}

/// Tests that see an event name its code.
#[test]
fn each_code_is_seen_by_a_test() {
    let sources = read_sources(&["crates/engine/tests", "crates/control/src/server", "crates/tangelo/tests"]);
    let seen = |code: &&EventCode| is_named(&sources, &format!("EventCode::{code:?}"));
    let unseen: Vec<&EventCode> = EventCode::ALL.iter().filter(|code| !seen(code)).collect();
    assert_eq!(unseen, [&EventCode::ProblemBegan; 0], "no test sees these");
}

/// `UPDATE_DOCS=1 cargo test -p api --lib` writes the page anew.
#[test]
fn the_page_about_events_is_up_to_date() {
    check_page("docs/events.md", &document());
}
