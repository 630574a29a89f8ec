//! Events of the program itself: in the journal, in the log, followed by `tangelo events`. Loopback only.
#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "a test is at the edge to the world")]

mod common;

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::Value;

use common::{Head, PATIENCE, PROGRAM, drives};

/// The codes of all events, which have no gap but for the numbers that a start skips if the journal did not end in order.
fn codes(head: &Head) -> Vec<String> {
    let answer = head.done("events --since 1970-01-01");
    assert_eq!(answer["dropped"], 0);
    let events = answer["events"].as_array().unwrap();
    for (index, event) in events.iter().enumerate() {
        let number = event["sequence"].as_u64().unwrap() % base::limits::EVENT_NUMBERS_SKIPPED;
        assert_eq!(number, index as u64 + 1, "{event}");
    }
    events.iter().map(|event| event["code"].as_str().unwrap().to_owned()).collect()
}

fn count(codes: &[String], wanted: &str) -> usize {
    codes.iter().filter(|code| *code == wanted).count()
}

fn wait_until(what: &str, mut done: impl FnMut() -> bool) {
    let began = Instant::now();
    while !done() {
        assert!(began.elapsed() < PATIENCE, "{what} takes too long");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn events_are_kept_over_stops_and_kills() {
    let head = Head::new("");
    let paths = drives(&head, &["a", "b", "c"]);
    let daemon = head.start();
    head.done(&format!("pool create fast --protection mirror-2 {paths}"));
    head.refused("volume delete nothing");
    wait_until("the refusal", || codes(&head).contains(&"change-refused".to_owned()));
    let first = codes(&head);
    assert_eq!((count(&first, "daemon-started"), count(&first, "pool-opened")), (1, 1), "{first:?}");
    let log = daemon.stop();
    let line = log.lines().find(|line| line.contains("create pool fast"));
    assert!(line.is_some_and(|line| line.contains(" (process ") && line.contains("change-made")), "{log}");
    assert!(log.contains("has stopped in order"), "{log}");

    let daemon = head.start();
    let second = codes(&head);
    assert_eq!(second[..first.len()], first);
    assert_eq!(count(&second, "daemon-stopped"), 1, "{second:?}");
    head.done("volume create v --pool fast --size 64MiB");
    wait_until("the change", || count(&codes(&head), "change-made") == 2);
    let told = codes(&head);
    daemon.signal(Signal::KILL);
    daemon.end();

    let daemon = head.start();
    let third = codes(&head);
    assert_eq!(third[..told.len()], told, "what was told is kept");
    assert_eq!((count(&third, "daemon-started"), count(&third, "daemon-stopped")), (3, 1), "{third:?}");
    let newest = head.done("events --since 1970-01-01")["newest"].as_u64().unwrap();
    assert!(
        newest > base::limits::EVENT_NUMBERS_SKIPPED,
        "a kill may have used numbers that nobody knows: {newest}"
    );
    daemon.stop();
}

#[test]
fn followers_get_events_as_they_happen() {
    let head = Head::new("");
    let daemon = head.start();
    let mut follower = Command::new(PROGRAM)
        .arg("--socket")
        .arg(head.path("t.sock"))
        .args(["events", "--follow", "-o", "json"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(follower.stdout.take().unwrap()).lines();
    let mut next = move || -> Value { serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap() };
    assert_eq!(next()["code"], "daemon-started");
    let began = Instant::now();
    head.done("volume create v --null --size 1GiB");
    let made = next();
    assert_eq!((&made["code"], &made["about"]["name"]), (&"change-made".into(), &"v".into()));
    assert_eq!(made["facts"]["origin"]["kind"], "local");
    assert!(began.elapsed() < Duration::from_secs(20));
    // over a restart, without a gap
    daemon.stop();
    let daemon = head.start();
    assert_eq!(next()["code"], "daemon-stopped");
    let started = next();
    assert_eq!(started["code"], "daemon-started");
    assert_eq!(started["sequence"], made["sequence"].as_u64().unwrap() + 2);
    follower.kill().unwrap();
    follower.wait().unwrap();
    daemon.stop();
}

/// A directory is where the journal should be: everything else goes on.
#[test]
fn a_journal_that_cannot_be_written_is_a_problem_and_no_more() {
    let head = Head::new("");
    let in_the_way = head.path("state/events.jsonl");
    std::fs::create_dir_all(&in_the_way).unwrap();
    let daemon = head.start();
    let problems = || {
        let status: Value = serde_json::from_slice(&head.ask("status -o json").stdout).unwrap();
        let problems = status["array"]["problems"].as_array().unwrap().clone();
        problems.iter().map(|problem| problem["code"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    wait_until("the problem", || problems() == ["events-not-kept"]);
    wait_until("its event", || codes(&head).contains(&"problem-began".to_owned()));
    std::fs::remove_dir(&in_the_way).unwrap();
    head.done("volume create v --null --size 1GiB");
    wait_until("its end", || problems().is_empty());
    wait_until("its event", || codes(&head).contains(&"problem-ended".to_owned()));
    let told = codes(&head);
    let log = daemon.stop();
    assert!(log.contains("events cannot be kept"), "{log}");
    let daemon = head.start();
    assert_eq!(codes(&head)[..told.len()], told, "what waited was written");
    daemon.stop();
}
