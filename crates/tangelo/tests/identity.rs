//! Drives are known by what they are: a device or a file that has several paths is one, and a path may come to lead elsewhere.
#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "a test is at the edge to the world")]

mod common;

use std::os::unix::fs::symlink;
use std::time::Instant;

use common::{Head, PATIENCE, drives};
use serde_json::Value;

fn said(head: &Head, line: &str) -> String {
    let output = head.ask(line);
    assert!(!output.status.success(), "tangelo {line} was carried out");
    String::from_utf8(output.stderr).unwrap()
}

fn status(head: &Head) -> Value {
    serde_json::from_slice(&head.ask("status -o json").stdout).unwrap()
}

#[test]
fn a_drive_with_two_paths_is_one() {
    let head = Head::new("[drives]\npaths = [\"d*\"]\n");
    let paths = drives(&head, &["d0", "d1", "d2"]);
    for name in ["d0", "d2"] {
        symlink(head.path(name), head.path(&format!("{name}-again"))).unwrap();
    }
    std::fs::hard_link(head.path("d1"), head.path("d1-again")).unwrap();
    let daemon = head.start();
    let listed = || {
        let list = head.done("drive list");
        let named = |drive: &Value| {
            format!("{} {}", drive["path"].as_str().unwrap(), drive["state"].as_str().unwrap())
        };
        let mut drives: Vec<String> = list["drives"].as_array().unwrap().iter().map(named).collect();
        drives.sort();
        drives.join(", ").replace(&format!("{}/", head.directory.path().display()), "")
    };
    assert_eq!(listed(), "d0 unused, d1 unused, d2 unused");
    let (d0, again) = (head.path("d0"), head.path("d0-again"));
    let twice = format!("pool create fast --protection mirror-2 {} {}", d0.display(), again.display());
    assert!(said(&head, &twice).contains("are the same drive"));
    head.done(&format!("pool create fast --protection mirror-2 {}", paths.rsplit_once(' ').unwrap().0));
    head.done(&format!("volume create old --raw {}", head.path("d2").display()));
    assert_eq!(listed(), "d0 online, d1 online, d2 exported");
    let raw = |name: &str| format!("volume create again --raw {}", head.path(name).display());
    let of_pool = said(&head, &raw("d1-again"));
    assert!(of_pool.contains("d1, which is a drive of pool fast"), "{of_pool}");
    let of_volume = said(&head, &raw("d2-again"));
    assert!(of_volume.contains("d2, which is exported as volume old"), "{of_volume}");
    daemon.stop();
    // by either path it is found again, and once
    let daemon = head.start();
    assert_eq!(listed(), "d0 online, d1 online, d2 exported");
    assert_eq!(status(&head)["array"]["problems"], Value::Array(Vec::new()));
    daemon.stop();
}

#[test]
fn the_heads_own_files_are_no_drives() {
    let head = Head::new("[drives]\npaths = []\n");
    let daemon = head.start();
    head.done("volume create scratch --memory --size 1MiB");
    std::fs::write(head.path("state/filler"), [0; 8192]).unwrap();
    symlink(head.path("state/filler"), head.path("link")).unwrap();
    for name in ["state/catalog.json", "state/filler", "link", "tangelo.toml"] {
        let refusal = said(&head, &format!("volume create stolen --raw {}", head.path(name).display()));
        assert!(refusal.contains("of Tangelo's own"), "{name}: {refusal}");
    }
    let is_refusal = |event: &&Value| event["code"] == "change-refused";
    let refusals = || {
        let answer = head.done("events --since 1970-01-01");
        let refusals = answer["events"].as_array().unwrap().iter().filter(is_refusal).cloned();
        refusals.collect::<Vec<Value>>()
    };
    let began = Instant::now();
    while refusals().is_empty() {
        assert!(began.elapsed() < PATIENCE, "a refusal leaves an event");
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    assert_eq!(refusals()[0]["facts"]["command"], "volume-create");
    daemon.stop();
}

#[test]
fn a_file_that_is_removed_under_its_drive_is_said() {
    let head = Head::new("[drives]\npaths = []\n");
    let paths = drives(&head, &["d0", "d1"]);
    let daemon = head.start();
    head.done(&format!("pool create fast --protection mirror-2 {paths}"));
    let problem = || {
        let problems = status(&head)["array"]["problems"].clone();
        let subject = format!("drive {}", head.path("d1").display());
        problems.as_array().unwrap().iter().find(|problem| problem["subject"] == subject.as_str()).cloned()
    };
    assert_eq!(problem(), None);
    std::fs::rename(head.path("d1"), head.path("elsewhere")).unwrap();
    let wait = |there: bool| {
        let began = Instant::now();
        while problem().is_some() != there {
            assert!(began.elapsed() < PATIENCE, "{:?}", status(&head)["array"]["problems"]);
            std::thread::sleep(std::time::Duration::from_millis(100));
        }
    };
    wait(true);
    assert_eq!(problem().unwrap()["code"], "drive-file-removed");
    std::fs::rename(head.path("elsewhere"), head.path("d1")).unwrap();
    wait(false);
    daemon.stop();
}
