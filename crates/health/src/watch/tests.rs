//! The watch with a fake smartctl: drives that answer, hang, babble, and a program that is missing.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::{Arc, Mutex};

use api::ProblemCode;

use super::*;

const PATIENCE: Duration = Duration::from_secs(60);

struct Drives(Vec<KnownDrive>);

impl DriveList for Drives {
    async fn list(&self) -> Option<Vec<KnownDrive>> {
        Some(self.0.clone())
    }
}

/// A smartctl that prints the file of the node's name, or hangs if that says so; each call is noted.
fn fake(at: &Path) -> String {
    let text = format!(
        "#!/bin/sh\nfor node; do :; done\nname=${{node##*/}}\necho $name >>{0}/calls\nread -r first <{0}/$name || exit 2\n\
         case $first in hang) echo $$ >>{0}/hung; sleep 1000;; babble) yes;; esac\ncat {0}/$name\n",
        at.display()
    );
    let path = at.join("smartctl");
    fs::write(&path, text).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    path.to_str().unwrap().to_owned()
}

fn answer(at: &Path, name: &str, celsius: i16) {
    let text = format!(
        r#"{{"device":{{"protocol":"NVMe"}},"model_name":"M","serial_number":"{name}","temperature":{{"current":{celsius}}},"smart_status":{{"passed":true}}}}"#
    );
    fs::write(at.join(name), text + "\n").unwrap();
}

struct Bench {
    directory: tempfile::TempDir,
    options: watch::Sender<Options>,
    reports: Arc<Mutex<Report>>,
}

impl Bench {
    fn new(names: &[&str]) -> Bench {
        let directory = tempfile::tempdir().unwrap();
        let at = directory.path();
        let device = |name: &&str| (format!("/drives/{name}"), format!("/dev/{name}"));
        let options = Options {
            smartctl: Some(fake(at)),
            every: Duration::from_millis(1500),
            time: Duration::from_secs(1),
            devices: names.iter().map(device).collect(),
            state_dir: at.to_owned(),
        };
        let known = |name: &&str| KnownDrive { path: format!("/drives/{name}"), is_used: true };
        let list = Drives(names.iter().map(known).collect());
        let (options, receiver) = watch::channel(options);
        let reports = Arc::new(Mutex::new(Report::default()));
        let kept = reports.clone();
        tokio::spawn(keep(receiver, list, Roots::default(), move |report| *kept.lock().unwrap() = report));
        Bench { directory, options, reports }
    }

    fn at(&self) -> &Path {
        self.directory.path()
    }

    fn calls(&self, name: &str) -> usize {
        let calls = fs::read_to_string(self.at().join("calls")).unwrap_or_default();
        calls.lines().filter(|line| *line == name).count()
    }

    async fn until(&self, what: &str, holds: impl Fn(&Report) -> bool) -> Report {
        let until = Instant::now() + PATIENCE;
        loop {
            let report = self.reports.lock().unwrap().clone();
            if holds(&report) {
                return report;
            }
            assert!(Instant::now() < until, "{what}: {report:?}");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
}

fn codes(report: &Report, name: &str) -> Vec<ProblemCode> {
    let subject = Subject::drive(format!("/drives/{name}"));
    report.problems.iter().filter(|(of, _)| *of == subject).map(|(_, facts)| facts.code()).collect()
}

#[tokio::test]
async fn a_drive_that_hangs_is_not_asked_twice_and_keeps_nobody_waiting() {
    let bench = Bench::new(&["good", "bad", "rubbish", "loud"]);
    answer(bench.at(), "good", 75);
    fs::write(bench.at().join("bad"), "hang\n").unwrap();
    fs::write(bench.at().join("rubbish"), "no JSON at all\n").unwrap();
    fs::write(bench.at().join("loud"), "babble\n").unwrap();
    let report = bench
        .until("all are judged", |report| {
            codes(report, "good") == [ProblemCode::DriveHot]
                && ["bad", "rubbish", "loud"]
                    .iter()
                    .all(|name| codes(report, name) == [ProblemCode::DriveHealthUnknown])
        })
        .await;
    assert_eq!(report.health["/drives/good"].celsius, Some(75));
    assert!(matches!(report.health["/drives/bad"].unread, Some(HealthUnread::TimedOut { seconds: 1 })));
    assert!(matches!(report.health["/drives/rubbish"].unread, Some(HealthUnread::NotUnderstood { .. })));
    // what hung was killed
    let hung = fs::read_to_string(bench.at().join("hung")).unwrap();
    let stat = format!("/proc/{}/stat", hung.lines().next().unwrap());
    let until = Instant::now() + PATIENCE;
    while fs::read_to_string(&stat).is_ok_and(|stat| !stat.contains(") Z ")) {
        assert!(Instant::now() < until, "it still runs");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    // it comes back, and that ends the problem
    answer(bench.at(), "bad", 30);
    bench.until("it answers again", |report| codes(report, "bad").is_empty()).await;
}

#[tokio::test]
async fn a_missing_smartctl_is_one_notice_and_is_found_when_it_comes() {
    let bench = Bench::new(&["one", "two"]);
    answer(bench.at(), "one", 30);
    answer(bench.at(), "two", 30);
    let program = bench.at().join("smartctl");
    fs::rename(&program, bench.at().join("hidden")).unwrap();
    let report = bench.until("it is missed", |report| !report.problems.is_empty()).await;
    let codes: Vec<ProblemCode> = report.problems.iter().map(|(_, facts)| facts.code()).collect();
    assert_eq!(codes, [ProblemCode::HealthUnwatched]);
    fs::rename(bench.at().join("hidden"), &program).unwrap();
    bench.until("it is there", |report| report.problems.is_empty() && report.health.len() == 2).await;
    // off is no problem, and nothing is known of them then
    bench.options.send_modify(|options| options.smartctl = None);
    let before = bench.calls("one");
    tokio::time::sleep(Duration::from_secs(4)).await;
    assert!(bench.calls("one") <= before + 1, "it is asked no more");
    assert_eq!(bench.reports.lock().unwrap().problems, []);
}

#[test]
fn drives_are_spread_over_the_time() {
    let within = Duration::from_secs(60);
    let offsets: Vec<Duration> = (0..24).map(|n| offset(&format!("/dev/nvme{n}n1"), within)).collect();
    assert!(offsets.iter().all(|offset| *offset <= within));
    let early = offsets.iter().filter(|offset| **offset < within / 2).count();
    assert!((6..=18).contains(&early), "{early} of 24");
}
