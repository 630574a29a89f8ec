//! The program itself, as a user runs it: a daemon on io_uring and commands that ask it. Loopback only.
#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "a test is at the edge to the world")]

mod common;

use std::io::{BufRead, BufReader, Read};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::Value;

use common::{Daemon, Head, PATIENCE, PROGRAM, drives};

/// Everything about the array that must not change by itself.
fn identity(status: &Value) -> [Value; 6] {
    let array = &status["array"];
    let mut hosts = array["hosts"].clone();
    for host in hosts.as_array_mut().unwrap() {
        host["sessions"] = Value::Null;
    }
    ["array_id", "target_name", "volumes", "mappings", "portals"]
        .map(|key| if key == "portals" { Value::Null } else { array[key].clone() })
        .into_iter()
        .chain([hosts])
        .collect::<Vec<_>>()
        .try_into()
        .unwrap()
}

#[test]
fn an_array_without_a_pool_lives_through_stops_and_kills() {
    let head = Head::new("");
    std::fs::File::create(head.path("old.img")).unwrap().set_len(64 << 20).unwrap();
    std::fs::write(head.path("secret"), "a-secret-of-1\n").unwrap();
    std::fs::set_permissions(head.path("secret"), std::fs::Permissions::from_mode(0o600)).unwrap();
    let daemon = head.start();
    head.done("volume create scratch --memory --size 64MiB");
    head.done("volume create nothing --null --size 1TiB --block-size 4096");
    head.done(&format!("volume create old --raw {}", head.path("old.img").display()));
    let secret = head.path("secret");
    head.done(&format!(
        "host create pve1 --iqn iqn.1993-08.org.debian:01:abc --chap-user u --chap-secret-file {}",
        secret.display()
    ));
    let mapped = head.done("map scratch pve1 --lun 5");
    assert_eq!(mapped["hosts_affected"][0], "pve1");
    head.done("map old pve1 --read-only");
    let dry = head.done("volume create planned --null --size 1GiB --dry-run");
    assert_eq!((&dry["dry_run"], &dry["made"]), (&true.into(), &Value::Null));
    let before = head.done("status");
    assert_eq!(before["array"]["volumes"].as_array().unwrap().len(), 3);
    assert_eq!(before["array"]["volumes"][2]["size_bytes"], 64 << 20);
    assert!(!before.to_string().contains("a-secret"), "a secret was told");
    let log = daemon.stop();
    assert!(!log.contains("a-secret"), "a secret was logged");
    for what in [
        "create volume scratch, 64 MiB",
        "create host pve1 with iqn.1993-08.org.debian:01:abc",
        "map volume scratch to host pve1 as LUN 5 (hosts affected: pve1)",
    ] {
        let line = log.lines().find(|line| line.contains(what));
        assert!(
            line.is_some_and(|line| line.contains(" (process ") && line.contains("INFO")),
            "{what}:\n{log}"
        );
    }
    assert!(!log.contains("planned"), "a dry run was logged");

    let daemon = head.start();
    assert_eq!(identity(&head.done("status")), identity(&before));
    head.done("volume create late --null --size 1GiB");
    let late = head.done("status");
    daemon.signal(Signal::KILL);
    assert_eq!(daemon.end().0, None);

    let daemon = head.start();
    assert_eq!(identity(&head.done("status")), identity(&late), "what was acknowledged before kill -9");
    daemon.stop();
}

/// The drives are nowhere in the configuration: the head remembers them. Then another head, which knows nothing,
/// is given them, one short.
#[test]
fn a_pool_comes_back_here_and_in_another_head_with_the_same_identities() {
    let head = Head::new("[drives]\npaths = []\n");
    let paths = drives(&head, &["d0", "d1", "d2", "d3"]);
    let daemon = head.start();
    let dry = head.done(&format!("pool create fast --protection parity-1 {paths} --dry-run"));
    assert_eq!(dry["made"], Value::Null);
    assert!(head.done("pool list")["pools"].as_array().unwrap().is_empty());
    head.done(&format!("pool create fast --protection parity-1 {paths}"));
    head.done("volume create vm-01 --pool fast --size 500GiB --block-size 4096 --write-back");
    head.done("host create pve1 --iqn iqn.1993-08.org.debian:01:abc");
    head.done("map vm-01 pve1 --lun 5");
    let before = head.done("status");
    assert_eq!(before["summary"]["survives_next_failure"], true);
    daemon.stop();

    let daemon = head.start();
    assert_eq!(identity(&head.done("status")), identity(&before));
    daemon.signal(Signal::KILL);
    assert_eq!(daemon.end().0, None);

    let other = Head::new("[drives]\npaths = [\"d*\"]\n");
    for name in ["d0", "d1", "d3"] {
        std::fs::rename(head.path(name), other.path(name)).unwrap();
    }
    let daemon = other.start();
    let output = other.ask("status -o json");
    assert_eq!(output.status.code(), Some(1), "degraded");
    let after: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(identity(&after), identity(&before));
    assert_eq!(
        (&after["summary"]["data_safe"], &after["summary"]["survives_next_failure"]),
        (&true.into(), &false.into())
    );
    daemon.stop();
}

#[test]
fn a_drive_that_holds_something_is_overwritten_only_when_it_is_named() {
    let head = Head::new("[drives]\npaths = [\n\"d*\"]\n");
    let paths = drives(&head, &["d0", "d1", "d2"]);
    let ext4 = std::fs::OpenOptions::new().write(true).open(head.path("d1")).unwrap();
    // The magic number of an ext2, ext3 or ext4 superblock.
    std::os::unix::fs::FileExt::write_all_at(&ext4, &[0x53, 0xEF], 1024 + 0x38).unwrap();
    let daemon = head.start();
    let create = format!("pool create fast --protection parity-1 {paths}");
    assert_eq!(head.refused(&create), (1, "in_use".to_owned()));
    let other = format!("{create} --force {}", head.path("d0").display());
    assert_eq!(
        head.refused(&other),
        (1, "in_use".to_owned()),
        "forced another drive than the one that holds something"
    );
    let written = std::os::unix::fs::MetadataExt::blocks(&std::fs::metadata(head.path("d0")).unwrap());
    assert_eq!(written, 0, "a refused command wrote to a drive");
    head.done(&format!("{create} --force {}", head.path("d1").display()));
    let again = format!("pool create more --protection mirror-2 {paths}");
    assert_eq!(head.refused(&again), (1, "in_use".to_owned()), "drives of another pool");
    let log = daemon.stop();
    let expected = format!("tangelo.toml:10: {} holds ", head.path("d1").display());
    assert!(log.contains(&expected) && log.contains("it is left alone"), "{log}");
}

#[test]
fn snapshots_and_clones_live_through_stops() {
    let head = Head::new("[drives]\npaths = [\n\"d*\"]\n");
    let paths = drives(&head, &["d0", "d1", "d2"]);
    let daemon = head.start();
    head.done(&format!("pool create fast --protection parity-1 {paths}"));
    head.done("volume create data --pool fast --size 1GiB");
    head.done("volume create log --pool fast --size 64MiB");
    head.done("volume create scratch --memory --size 64MiB");
    head.done("host create h --iqn iqn.1993-08.org.debian:01:abc");
    head.done("map data h");
    let planned = head.done("snapshot create data@monday log@monday --dry-run");
    assert_eq!((&planned["dry_run"], &planned["made"]), (&true.into(), &Value::Null));
    assert_eq!(head.done("snapshot list")["snapshots"], serde_json::json!([]));
    let taken = head.done("snapshot create data@monday log@monday");
    assert_eq!(taken["made"]["snapshots"][1]["volume"], "log");
    assert_eq!(taken["made"]["snapshots"][0]["space"]["used_bytes"], 0);
    let clone = head.done("volume clone data@monday copy");
    let clone = &clone["made"]["volume"];
    assert_eq!((&clone["clone_of"], &clone["size_bytes"]), (&"data@monday".into(), &(1u64 << 30).into()));
    for (line, exit_code, code) in [
        ("snapshot create data@monday", 1, "already_exists"),
        ("snapshot create log@tuesday data@monday", 1, "already_exists"),
        ("snapshot create data@a data@b", 2, "invalid"),
        ("snapshot create scratch@monday", 2, "invalid"),
        ("snapshot create nothing@monday", 1, "not_found"),
        ("snapshot list nothing", 1, "not_found"),
        ("snapshot delete data@tuesday --yes", 1, "not_found"),
        ("snapshot rollback data@monday --yes", 1, "in_use"),
        ("volume clone data@monday log", 1, "already_exists"),
        ("volume delete log --eradicate --yes", 1, "in_use"),
        ("volume delete data", 1, "in_use"),
        ("volume undelete data", 1, "not_found"),
        ("volume promote data", 2, "invalid"),
        ("schedule create often scratch --daily 7", 2, "invalid"),
        ("schedule create often data", 2, "invalid"),
    ] {
        assert_eq!(head.refused(line), (exit_code, code.to_owned()), "tangelo {line}");
    }
    let (before, listed) = (head.done("status"), head.done("snapshot list"));
    assert_eq!(listed["snapshots"].as_array().unwrap().len(), 2);
    daemon.stop();
    let daemon = head.start();
    assert_eq!(identity(&head.done("status")), identity(&before));
    assert_eq!(head.done("snapshot list"), listed);
    head.done("unmap data h");
    head.done("snapshot rollback data@monday --yes");
    head.done("snapshot delete data@monday --yes");
    head.done("snapshot delete log@monday --yes");
    head.done("volume delete data");
    assert_eq!(head.done("volume bin")["bin"][0]["name"], "data");
    head.done("volume undelete data");
    head.done("volume delete data");
    head.done("volume eradicate data --yes");
    head.done("schedule create often log copy --hourly 3");
    assert_eq!(head.done("schedule list")["schedules"][0]["volumes"], serde_json::json!(["log", "copy"]));
    head.done("schedule delete often");
    let left = head.done("volume list");
    let names: Vec<_> = left["volumes"].as_array().unwrap().iter().map(|volume| &volume["name"]).collect();
    assert_eq!(names, ["log", "scratch", "copy"]);
    daemon.stop();
}

#[test]
fn refusals_have_codes_and_change_nothing() {
    let head = Head::new("");
    let daemon = head.start();
    head.done("volume create v --null --size 1GiB");
    head.done("host create h --iqn iqn.1993-08.org.debian:01:abc");
    head.done("map v h");
    let before = head.done("status");
    let table = [
        ("volume create v --null --size 1GiB", 1, "already_exists"),
        ("volume create w --pool fast --size 1GiB", 1, "not_found"),
        ("volume create w --raw /nonexistent/device", 1, "not_found"),
        ("volume create a/b --null --size 1GiB", 2, "invalid"),
        ("volume create w --null --size 2PiB", 2, "invalid"),
        ("volume delete v", 1, "in_use"),
        ("volume delete w", 1, "not_found"),
        ("host create g --iqn iqn.1993-08.org.debian:01:abc", 1, "already_exists"),
        ("host create g --iqn nonsense", 2, "invalid"),
        ("host delete h", 1, "in_use"),
        ("map v h --lun 3", 1, "already_exists"),
        ("unmap v g", 1, "not_found"),
    ];
    for (line, exit_code, code) in table {
        assert_eq!(head.refused(line), (exit_code, code.to_owned()), "tangelo {line}");
    }
    assert_eq!(identity(&head.done("status")), identity(&before));
    head.done("volume delete v --unmap");
    head.done("host delete h");
    daemon.stop();
}

#[test]
fn a_second_daemon_is_refused_and_the_first_goes_on() {
    let head = Head::new("");
    let daemon = head.start();
    let second = head.serve().output().unwrap();
    assert_eq!(second.status.code(), Some(2));
    let said = String::from_utf8(second.stderr).unwrap();
    assert!(said.contains("in use by another tangelo"), "{said}");
    // A head of its own, but the same socket.
    let other = Head::new("");
    let config = std::fs::read_to_string(other.path("tangelo.toml")).unwrap();
    let socket = head.path("t.sock");
    std::fs::write(other.path("tangelo.toml"), config.replace("t.sock", socket.to_str().unwrap())).unwrap();
    let third = other.serve().output().unwrap();
    let said = String::from_utf8(third.stderr).unwrap();
    assert!(third.status.code() == Some(2) && said.contains("another tangelo serves this socket"), "{said}");
    head.done("status");
    daemon.stop();
}

#[test]
fn configuration_that_is_refused_starts_nothing() {
    let head = Head::new("[lissten]\n");
    let output = head.serve().output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("tangelo.toml:8: unknown key \"lissten\"; did you mean \"listen\"?"), "{said}");
    assert!(!head.path("state").exists() && !head.path("t.sock").exists());
    let mut missing = Command::new(PROGRAM);
    let output = missing.args(["serve", "--config", "/nonexistent/tangelo.toml"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn a_catalog_from_the_future_or_damaged_is_refused_and_left_alone() {
    for (content, words) in [("{\"schema\":999}", "schema 999"), ("{", "damaged")] {
        let head = Head::new("");
        std::fs::create_dir(head.path("state")).unwrap();
        std::fs::write(head.path("state/catalog.json"), content).unwrap();
        let output = head.serve().output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains(words), "{said}");
        assert_eq!(std::fs::read_to_string(head.path("state/catalog.json")).unwrap(), content);
    }
}

#[test]
fn a_portal_that_is_taken_is_said_and_the_rest_served() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap();
    let head = Head::new("");
    let config = std::fs::read_to_string(head.path("tangelo.toml")).unwrap();
    let both = format!("\"{address}\", \"127.0.0.1:0\"");
    std::fs::write(head.path("tangelo.toml"), config.replace("\"127.0.0.1:0\"", &both)).unwrap();
    let daemon = head.start();
    let output = head.ask("status");
    let said = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(1), "degraded:\n{said}");
    assert!(said.contains("address already in use"), "{said}");
    let log = daemon.stop();
    assert!(log.contains(&format!("{address} cannot be listened on")), "{log}");
}

/// The portal answers as an iSCSI target does: garbage ends the connection and disturbs nobody.
#[test]
fn garbage_on_a_portal_disturbs_nobody() {
    let head = Head::new("");
    let daemon = head.start();
    let status = head.done("status");
    let address = status["array"]["portals"][0]["address"].as_str().unwrap().to_owned();
    let mut stream = TcpStream::connect(&address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    std::io::Write::write_all(&mut stream, &[0xFF; 4096]).unwrap();
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    assert_eq!(head.done("status")["summary"]["health"], "healthy");
    daemon.stop();
}

#[test]
fn systemd_is_told_when_hosts_are_served() {
    let head = Head::new("");
    let path = head.path("notify");
    let receiver = std::os::unix::net::UnixDatagram::bind(&path).unwrap();
    receiver.set_read_timeout(Some(PATIENCE)).unwrap();
    let child = head.serve().env("NOTIFY_SOCKET", Path::new(&path)).stderr(Stdio::null()).spawn().unwrap();
    let daemon = Daemon { child, log: Some(std::thread::spawn(String::new)) };
    let mut buffer = [0; 64];
    let length = receiver.recv(&mut buffer).unwrap();
    assert_eq!(&buffer[..length], b"READY=1");
    assert_eq!(head.done("status")["summary"]["health"], "healthy");
    daemon.signal(Signal::INT);
    let length = receiver.recv(&mut buffer).unwrap();
    assert_eq!(&buffer[..length], b"STOPPING=1");
    assert_eq!(daemon.end().0, Some(0));
}

/// Another program has the port when the daemon starts, and lets it go a while later.
#[test]
fn a_port_that_is_taken_at_the_start_is_served_when_it_is_free() {
    let holder = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = holder.local_addr().unwrap();
    let head = Head::new("");
    let file = head.path("tangelo.toml");
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, text.replace("127.0.0.1:0", &address.to_string())).unwrap();
    let mut child = head.serve().spawn().unwrap();
    let log = child.stderr.take().unwrap();
    let log =
        std::thread::spawn(move || BufReader::new(log).lines().map_while(Result::ok).collect::<Vec<_>>());
    let daemon = Daemon { child, log: Some(std::thread::spawn(move || log.join().unwrap().join("\n"))) };
    let wait = |error: bool| {
        let began = Instant::now();
        loop {
            let output = head.ask("status -o json");
            let status: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
            let portal = &status["array"]["portals"][0];
            if portal.is_object() && portal["error"].is_object() == error {
                return;
            }
            assert!(began.elapsed() < PATIENCE, "{status:#}");
            std::thread::sleep(Duration::from_millis(50));
        }
    };
    wait(true);
    drop(holder);
    wait(false);
    TcpStream::connect(address).expect("it is served now");
    daemon.stop();
}
