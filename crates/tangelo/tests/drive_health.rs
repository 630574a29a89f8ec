//! The health of drives, from a smartctl that says what the test wants to what `status` says. Loopback only.
#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "a test is at the edge to the world")]

mod common;

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::Value;

use common::{Head, drives};

/// Rounds are 5 s apart, and a problem may need three of them.
const PATIENCE: Duration = Duration::from_secs(120);
const NAMES: [&str; 8] = ["warm", "hot", "wears", "worn", "failing", "media", "tested", "hung"];

/// A head with a drive of each name in a pool, and a smartctl that prints the file `health/NAME`.
fn head() -> (Head, String) {
    let head = Head::new("");
    let paths = drives(&head, &NAMES);
    let at = head.directory.path().display().to_string();
    fs::create_dir(head.path("health")).unwrap();
    let script = format!(
        "#!/bin/sh\nfor node; do :; done\nname=${{node##*/}}\nread -r first <{at}/health/$name || exit 2\n\
         [ \"$first\" != hang ] || sleep 1000\ncat {at}/health/$name\n"
    );
    fs::write(head.path("smartctl"), script).unwrap();
    fs::set_permissions(head.path("smartctl"), fs::Permissions::from_mode(0o755)).unwrap();
    let device = |name: &&str| format!("\"{at}/{name}\" = \"/dev/{name}\"\n");
    let devices: String = NAMES.iter().map(device).collect();
    let text = fs::read_to_string(head.path("tangelo.toml")).unwrap()
        + &format!(
            "[drives]\npaths = []\n[health]\nsmartctl = \"{at}/smartctl\"\nevery_seconds = 5\ntimeout_seconds = 1\n[health.devices]\n{devices}"
        );
    fs::write(head.path("tangelo.toml"), text).unwrap();
    for name in NAMES {
        answer(&head, name, 30, "");
    }
    (head, paths)
}

/// What its smartctl says from now on; replaced at once.
fn answer(head: &Head, name: &str, celsius: i16, more: &str) {
    let text = format!(
        r#"{{"device":{{"protocol":"NVMe"}},"model_name":"M","serial_number":"{name}","firmware_version":"F1",{more}"nvme_composite_temperature_threshold":{{"warning":70,"critical":80}},"temperature":{{"current":{celsius}}}}}"#
    );
    say(head, name, &text);
}

fn log(fields: &str) -> String {
    format!("\"nvme_smart_health_information_log\":{{{fields}}},")
}

fn say(head: &Head, name: &str, text: &str) {
    fs::write(head.path("new"), format!("{text}\n")).unwrap();
    fs::rename(head.path("new"), head.path("health").join(name)).unwrap();
}

/// The present problems: the code, and the drive's name.
fn problems(head: &Head) -> BTreeSet<(String, String)> {
    let output = head.ask("status -o json");
    let status: Value = serde_json::from_slice(&output.stdout).unwrap();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let of = |problem: &Value| {
        let name = text(&problem["about"]["name"]);
        (text(&problem["code"]), name.rsplit('/').next().unwrap_or_default().to_owned())
    };
    status["array"]["problems"].as_array().unwrap().iter().map(of).collect()
}

fn until(head: &Head, expected: &[(&str, &str)]) {
    let expected: BTreeSet<(String, String)> =
        expected.iter().map(|(code, name)| ((*code).to_owned(), (*name).to_owned())).collect();
    let began = Instant::now();
    while problems(head) != expected {
        assert!(began.elapsed() < PATIENCE, "{:?} instead of {expected:?}", problems(head));
        std::thread::sleep(Duration::from_millis(200));
    }
}

#[test]
fn what_drives_say_of_themselves_is_in_the_status_and_ends() {
    let (head, paths) = head();
    let daemon = head.start();
    head.done(&format!("pool create fast --protection parity-2 {paths}"));
    until(&head, &[]);
    let shown =
        || head.done(&format!("drive show {}", head.path("media").display()))["drive"]["health"].clone();
    let began = Instant::now();
    while shown()["read_ms"].is_null() {
        assert!(began.elapsed() < PATIENCE, "{}", shown());
        std::thread::sleep(Duration::from_millis(200));
    }
    answer(&head, "warm", 67, "");
    answer(&head, "hot", 74, "");
    answer(&head, "wears", 30, &log("\"percentage_used\":82"));
    answer(&head, "worn", 30, &log("\"percentage_used\":97"));
    answer(&head, "failing", 30, "\"smart_status\":{\"passed\":false,\"nvme\":{\"value\":8}},");
    answer(&head, "media", 30, &log("\"media_errors\":4"));
    let test =
        "\"nvme_self_test_log\":{\"table\":[{\"self_test_result\":{\"value\":7},\"power_on_hours\":9}]},";
    answer(&head, "tested", 30, &(log("\"percentage_used\":1") + test));
    say(&head, "hung", "hang");
    let mut all = vec![
        ("drive-warm", "warm"),
        ("drive-hot", "hot"),
        ("drive-wears", "wears"),
        ("drive-worn", "worn"),
        ("drive-failing", "failing"),
        ("drive-test-failed", "tested"),
        ("drive-health-unknown", "hung"),
    ];
    until(&head, &all);
    // only what is new is an error of the medium
    answer(&head, "media", 31, &log("\"media_errors\":6"));
    all.push(("drive-media-errors", "media"));
    until(&head, &all);
    let health = shown();
    assert_eq!(
        (&health["celsius"], &health["media_errors"], &health["firmware"]),
        (&31.into(), &6.into(), &"F1".into())
    );
    // what does not last for a day ends
    for name in ["warm", "hot", "wears", "worn", "tested", "hung"] {
        answer(&head, name, 30, &log("\"percentage_used\":1"));
    }
    until(&head, &[("drive-failing", "failing"), ("drive-media-errors", "media")]);
    // a smartctl that is gone is one notice; off is none
    fs::remove_file(head.path("smartctl")).unwrap();
    until(&head, &[("drive-failing", "failing"), ("drive-media-errors", "media"), ("health-unwatched", "")]);
    let text = fs::read_to_string(head.path("tangelo.toml")).unwrap();
    let program = format!("smartctl = \"{}\"", head.path("smartctl").display());
    fs::write(head.path("tangelo.toml"), text.replace(&program, "smartctl = \"off\"")).unwrap();
    daemon.signal(Signal::HUP);
    until(&head, &[]);
    let log = daemon.stop();
    assert!(log.contains("it is 74 °C"), "{log}");
}
