//! Every command's output, kept as snapshots. The server is real, the array behind it a fake.
//!
//! `INSTA_UPDATE=always cargo test -p tangelo` writes them anew; look at the difference before committing.

use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;

use clap::Parser;
use control::config::Config;
use control::events::{EventLog, KeptEvents};
use control::fake::{FakeAlerts, FakeArray, degraded, healthy};
use control::server::{Listeners, serve};
use insta::assert_snapshot;
use tokio::sync::watch;

use crate::cli::Cli;

/// A server for one test, stopped when it is dropped.
pub(super) struct Fixture {
    pub(super) directory: tempfile::TempDir,
    pub(super) array: Arc<FakeArray>,
    events: Arc<EventLog>,
    _stop: watch::Sender<bool>,
    _runtime: tokio::runtime::Runtime,
}

pub(super) fn start(status: api::ArrayStatus) -> Fixture {
    let directory = tempfile::tempdir().unwrap();
    let (socket, state_dir) = (directory.path().join("t.sock"), directory.path().to_owned());
    let config = Config { socket, state_dir, ..Config::default() };
    let array = Arc::new(FakeArray::new(status));
    let (stop, stopped) = watch::channel(false);
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let listeners = runtime.block_on(Listeners::open(&config)).unwrap();
    let events = Arc::new(EventLog::new(KeptEvents::default()));
    runtime.spawn(serve(listeners, array.clone(), events.clone(), Arc::new(FakeAlerts), stopped));
    Fixture { directory, array, events, _stop: stop, _runtime: runtime }
}

impl Fixture {
    /// The command's exit code and everything it printed.
    pub(super) fn run(&self, line: &str) -> String {
        let socket = self.directory.path().join("t.sock");
        let mut words = vec!["tangelo", "--socket", socket.to_str().unwrap()];
        words.extend(line.split_whitespace());
        self.run_words(&words)
    }

    fn run_words(&self, words: &[&str]) -> String {
        let directory = self.directory.path().to_str().unwrap();
        let printed = match Cli::try_parse_from(words) {
            Ok(cli) => {
                let (mut out, mut errors) = (Vec::new(), Vec::new());
                let code = super::run(&cli, &mut out, &mut errors).unwrap();
                let text = |bytes| String::from_utf8(bytes).unwrap();
                format!("exit code {code}\n{}{}", text(out), text(errors))
            }
            Err(error) => format!("exit code {}\n{error}", error.exit_code()),
        };
        printed.replace(directory, "DIRECTORY").replace(env!("CARGO_PKG_VERSION"), "VERSION")
    }

    fn asked(&self) -> String {
        let commands = std::mem::take(&mut *self.array.asked.lock().unwrap());
        commands.iter().map(|command| format!("asked: {command:?}\n")).collect()
    }

    fn run_and_asked(&self, line: &str) -> String {
        let printed = self.run(line);
        printed + &self.asked()
    }
}

/// Status with a portal on one address, so that it does not name the machine it is run on.
#[test]
fn status_healthy() {
    assert_snapshot!(start(healthy()).run("status"));
}

#[test]
fn status_degraded() {
    assert_snapshot!(start(degraded()).run("status"));
}

#[test]
fn status_of_an_empty_array_with_problems() {
    let mut status = healthy();
    let problem = |address: &str| {
        let facts = api::ProblemFacts::PortalNotListening { error: env::IoError::AddressInUse };
        api::Problem::new(api::Subject::Portal(address.to_owned()), facts)
    };
    status.health = api::Health::Degraded;
    status.problems = vec![problem("10.0.0.1:3260"), problem("10.0.0.2:3260")];
    status.portals[0].error = Some(env::IoError::AddressInUse);
    status.shards = 1;
    (status.drives, status.pools, status.volumes) = (vec![], vec![], vec![]);
    (status.hosts, status.mappings, status.sessions) = (vec![], vec![], vec![]);
    (status.bin, status.schedules) = (vec![], vec![]);
    assert_snapshot!(start(status).run("status"));
}

#[test]
fn status_json() {
    assert_snapshot!(start(degraded()).run("status -o json"));
}

#[test]
fn lists() {
    let fixture = start(degraded());
    let mut all = String::new();
    for noun in ["drive", "pool", "volume", "snapshot", "schedule", "host", "mapping"] {
        all += &format!("$ tangelo {noun} list\n{}\n", fixture.run(&format!("{noun} list")));
    }
    assert_snapshot!(all);
}

#[test]
fn lists_json() {
    let fixture = start(healthy());
    let mut all = String::new();
    for noun in ["drive", "pool", "volume", "snapshot", "schedule", "host", "mapping"] {
        let printed = fixture.run(&format!("{noun} list -o json"));
        let json = printed.strip_prefix("exit code 0\n").unwrap();
        let value: serde_json::Value = serde_json::from_str(json).unwrap();
        assert_eq!(value["schema"], 2, "{noun}");
        all += &format!("$ tangelo {noun} list -o json\n{json}\n");
    }
    assert_snapshot!(all);
}

#[test]
fn empty_lists() {
    let mut status = healthy();
    (status.drives, status.pools, status.volumes) = (vec![], vec![], vec![]);
    (status.hosts, status.mappings, status.sessions) = (vec![], vec![], vec![]);
    (status.bin, status.schedules) = (vec![], vec![]);
    let fixture = start(status);
    let mut all = String::new();
    for noun in ["drive", "pool", "volume", "snapshot", "schedule", "host", "mapping"] {
        all += &format!("$ tangelo {noun} list\n{}\n", fixture.run(&format!("{noun} list")));
    }
    assert_snapshot!(all);
}

fn write_secret(path: &std::path::Path, text: &str, mode: u32) {
    std::fs::write(path, text).unwrap();
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
}

#[test]
fn one_of_each() {
    let fixture = start(degraded());
    let mut all = String::new();
    for line in [
        "pool show fast",
        "volume show vm-01",
        "host show pve1",
        "schedule show nightly",
        "mapping show vm-01 pve1",
        "drive show /dev/nvme0n1",
        "drive show /dev/nvme9n9",
        "pool show nope",
        "host show pve1 -o json",
    ] {
        all += &format!("$ tangelo {line}\n{}\n", fixture.run(line));
    }
    assert_snapshot!(all);
}

#[test]
fn changes() {
    let fixture = start(healthy());
    let secret = fixture.directory.path().join("secret");
    let mutual = fixture.directory.path().join("mutual");
    write_secret(&secret, "open-sesame-1\n", 0o600);
    write_secret(&mutual, "open-sesame-2", 0o640);
    let chap = format!(
        "host create pve3 --iqn iqn.2000-01.io.a iqn.2000-01.io.b --chap-user u --chap-secret-file {} --mutual-chap-user m --mutual-chap-secret-file {}",
        secret.display(),
        mutual.display()
    );
    let lines = [
        "pool create fast2 --protection parity-2 /dev/a /dev/b /dev/c /dev/d --width 4 --force /dev/b",
        "pool create fast2 --protection mirror-2 /dev/a /dev/b --dry-run",
        "drive add fast /dev/e /dev/f --force /dev/f",
        "drive remove fast /dev/nvme1n1 --dry-run",
        "drive remove fast 00000001 --cancel",
        "drive replace fast /dev/nvme2n1 /dev/nvme9n1",
        "drive locate /dev/nvme2n1 --seconds 5",
        "pool scrub fast",
        "pool scrub fast --stop",
        "pool scrub fast --every 7d --dry-run",
        "pool scrub fast --every off",
        "pool set fast",
        "pool set fast --defaults --repair-share 30 --error-window 1h",
        "volume create vm-02 --pool fast --size 1GB --write-back",
        "volume create vm-02 --pool fast --size 500GiB --block-size 4096 --dry-run",
        "volume create old2 --raw /dev/sdc",
        "volume create n --null --size 1TiB -o json",
        "volume create m --memory --size 64MiB",
        "volume resize vm-01 600GB",
        "volume resize vm-01 1TiB --dry-run",
        "volume access vm-01 --group 2 --state standby",
        "volume access vm-01 --group 1 --state active-optimized --dry-run",
        "volume delete old-lun",
        "volume delete vm-01 --unmap --dry-run",
        "volume delete vm-01 --unmap --eradicate",
        "volume bin",
        "volume undelete old-vm",
        "volume eradicate old-vm --dry-run",
        "volume promote vm-01",
        "volume refresh vm-01@tuesday --clones-of vm-01@monday --remap",
        "volume refresh vm-01@tuesday --clones-of vm-01 --dry-run",
        "schedule create nightly vm-01 log --daily 7 --weekly 4",
        "schedule delete nightly --dry-run",
        "pool set fast --bin-time 7d",
        "volume clone vm-01@monday copy",
        "volume clone vm-01@monday copy --dry-run",
        "snapshot create vm-01@monday",
        "snapshot create vm-01@now vm-02@now --dry-run",
        "snapshot list vm-01",
        "snapshot list old-lun",
        "snapshot delete vm-01@monday",
        "snapshot rollback vm-01@monday --dry-run",
        "snapshot rollback vm-01@a/b",
        "host create pve3 --iqn iqn.2000-01.io.a --iqn iqn.2000-01.io.b",
        &chap,
        "host delete pve2",
        "map vm-01 pve2 --lun 5 --read-only",
        "map vm-01 pve2",
        "unmap vm-01 pve1 --dry-run",
    ];
    let run = |line: &&str| {
        let shown = line.replace(fixture.directory.path().to_str().unwrap(), "DIRECTORY");
        format!("$ tangelo {shown}\n{}\n", fixture.run_and_asked(line))
    };
    let all: String = lines.iter().map(run).collect();
    assert!(!all.contains("sesame"), "a secret was printed");
    assert_snapshot!(all);
}

#[test]
fn refusals() {
    let fixture = start(healthy());
    let path = |name: &str| fixture.directory.path().join(name);
    write_secret(&path("long"), &"x".repeat(9000), 0o600);
    write_secret(&path("open"), "open-sesame-1\n", 0o644);
    let host = |secret: &str| {
        let file = path(secret);
        format!("host create h --iqn iqn.2000-01.io.a --chap-user u --chap-secret-file {}", file.display())
    };
    let (long, open) = (host("long"), host("open"));
    let lines = [
        "volume create vm-01 --pool fast --size 1GiB",
        "volume delete vm-01",
        "volume delete vm-01 -o json",
        "volume delete nope",
        "volume delete a/b",
        "volume create x --pool fast",
        "volume create x --pool fast --size 10XB",
        "volume create x --pool fast --raw /dev/a --size 1G",
        "volume create x --size 1G",
        "volume create x --raw /dev/a --size 1G",
        "volume create x --pool fast --size 1G --block-size 1024",
        "snapshot create",
        "snapshot create vm-01",
        "snapshot create vm-01@",
        "snapshot delete @monday",
        "schedule create nightly --daily 7",
        "volume clone vm-01 copy",
        "pool create p --protection raid-5 /dev/a",
        "pool create p --protection stripe",
        "pool create p --protection stripe /dev/a --force /dev/b",
        "host create h",
        "host create h --iqn iqn.2000-01.io.a --chap-user u",
        "host create h --iqn iqn.2000-01.io.a --chap-user u --chap-secret-file /nonexistent/secret",
        &long,
        &open,
        "map vm-01 pve1 --lun 16384",
    ];
    let all: String = lines
        .iter()
        .map(|line| {
            let shown = line.replace(fixture.directory.path().to_str().unwrap(), "DIRECTORY");
            format!("$ tangelo {shown}\n{}\n", fixture.run(line))
        })
        .collect();
    assert_snapshot!(all);
}

#[test]
fn alerts() {
    let fixture = start(healthy());
    let mut all = String::new();
    for line in ["alert list", "alert test", "alert test --channel webhook", "alert test --channel pager"] {
        all += &format!("$ tangelo {line}\n{}\n", fixture.run(line));
    }
    assert_snapshot!(all);
}

#[test]
fn events() {
    let fixture = start(healthy());
    let none = fixture.run("events");
    let event = |sequence: u64, subject, facts| api::Event {
        sequence,
        time_ms: 1_700_000_000_000 + sequence * 1_000,
        count: sequence % 3 + 1,
        subject,
        facts,
    };
    let facts = api::EventFacts::PoolFailed { why: api::PoolOffline::TooManyFailed };
    let failed = event(7, api::Subject::pool("fast"), facts);
    let joined = api::EventFacts::DriveJoined { pool: "fast".to_owned() };
    let joined = event(10, api::Subject::drive("/dev/nvme4n1\u{1b}[2J"), joined);
    fixture.events.publish(vec![failed, joined]);
    let lines = [
        "events",
        "events -n 1",
        "events --since 2023-11-14",
        "events -n 1 -o json",
        "events --since yesterday",
    ];
    let all: String = lines.iter().map(|line| format!("$ tangelo {line}\n{}\n", fixture.run(line))).collect();
    assert_snapshot!(format!("$ tangelo events\n{none}\n{all}"));
}

#[test]
fn nobody_answers() {
    let fixture = start(healthy());
    let nobody = |words: &[&str]| fixture.run_words(&[&["tangelo", "status"], words].concat());
    let missing = fixture.directory.path().join("missing.sock");
    let missing = missing.to_str().unwrap();
    let token = fixture.directory.path().join("token");
    write_secret(&token, "0123456789abcdef", 0o600);
    let all = [
        nobody(&["--socket", missing]),
        nobody(&["--socket", missing, "-o", "json"]),
        nobody(&["--server", "127.0.0.1:1", "--token-file", token.to_str().unwrap()]),
        nobody(&["--server", "127.0.0.1:1", "--token-file", "/nonexistent/token"]),
        nobody(&["--server", "127.0.0.1:1"]),
    ];
    assert_snapshot!(all.join("\n"));
}

#[test]
fn completions_and_man_pages_come_from_the_same_definition() {
    Cli::try_parse_from(["tangelo", "completions", "bash"]).unwrap();
    let mut script = Vec::new();
    crate::generate::completions(clap_complete::Shell::Bash, &mut script).unwrap();
    assert!(String::from_utf8(script).unwrap().contains("--protection"));
    let directory = tempfile::tempdir().unwrap();
    crate::generate::man_pages(directory.path()).unwrap();
    let page = std::fs::read_to_string(directory.path().join("tangelo-pool-create.1")).unwrap();
    assert!(page.contains("parity\\-1") && page.contains("\\-\\-dry\\-run"), "{page}");
}

/// Moments and secrets differ at each run.
#[test]
fn users_and_tokens() {
    let fixture = start(healthy());
    let file = fixture.directory.path().join("password");
    std::fs::write(&file, "correct horse battery\n").unwrap();
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
    let file = file.to_str().unwrap();
    let run = |line: &str| fixture.run(&line.replace("FILE", file));
    let says = |line: &str, expected: &str| {
        let printed = run(line);
        assert!(printed.contains(expected), "{line}: {printed}");
    };
    says("user list", "exit code 0\nThere are no users");
    says("user add alice --role operate", "exit code 2\nerror: there is no terminal to ask for the password");
    says("user add alice --role operate --password-file FILE --dry-run", "Nothing was changed.");
    says(
        "user add alice --role operate --password-file FILE --expires 90d",
        "exit code 0\nadd user alice, who may operate, until ",
    );
    says("user add alice --role look --password-file FILE", "exit code 1\nerror: there is a user called");
    says("user list", "\nalice  operate  enabled  0         20");
    says("user set alice", "exit code 2\nerror: the following required arguments were not provided");
    says(
        "user set alice --role look --disable --expires never",
        "disable user alice\nuser alice has no end date\n",
    );
    says("user list", "\nalice  look  disabled  0         never");
    says(
        "user set alice --enable --password-file FILE",
        "another password for user alice\nenable user alice\n",
    );
    says("user sessions", "Nobody has signed in.");
    says("user sessions --end 7", "exit code 1\nerror: there is no session 7");
    says("user sessions --end-all bob", "exit code 1\nerror: there is no user called \"bob\"");
    says("user delete alice", "exit code 0\ndelete user alice\n");
    says("token list", "There are no tokens");
    let made = run("token add backup --role look");
    assert!(made.starts_with("exit code 0\nadd token backup, which may look\nIts secret"), "{made}");
    let secret = made.trim_end().lines().last().unwrap();
    assert_eq!(secret.len(), 64);
    assert!(!run("token list").contains(secret));
    says("token list", "\nbackup  look  good   -          never");
    says("token revoke backup", "exit code 0\nrevoke token backup\n");
    says("web show", "exit code 0\nThis head is not reached over TLS");
    says("web certificate", "exit code 1\n");
}
