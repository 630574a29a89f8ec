//! Channels as they run: with real servers and programs, through a restart.

use std::collections::BTreeSet;
use std::path::Path;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use api::{Problem, ProblemFacts, Subject};

use crate::command::Command;
use crate::deliver::Means;
use crate::http::Url;
use crate::office::{Office, Settings, Source, Start};
use crate::rules::{Rules, Scope, View};
use crate::webhook::Webhook;

/// Longer than anything here takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

struct World(Mutex<Vec<Problem>>);

impl Source for World {
    fn view(&self) -> Pin<Box<dyn Future<Output = View> + Send + '_>> {
        let problems = self.0.lock().unwrap().clone();
        Box::pin(std::future::ready(View { scope: Scope::Whole, problems }))
    }
}

fn hot(drive: &str) -> Problem {
    let facts =
        ProblemFacts::DriveHot { celsius: 74, celsius_warning: 70, is_stated: true, celsius_critical: None };
    Problem::new(Subject::drive(drive), facts)
}

/// A program that keeps what it gets in `kept/`, and fails as long as there is a file `fails`.
fn program(directory: &Path) -> Means {
    use std::os::unix::fs::PermissionsExt;
    let (path, at) = (directory.join("program"), directory.display());
    let text = format!(
        "#!/bin/sh\n[ ! -e {at}/fails ] || exit 1\ncat >{at}/kept/new && mv {at}/kept/new {at}/kept/$$\n"
    );
    std::fs::create_dir_all(directory.join("kept")).unwrap();
    std::fs::write(&path, text).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    Means::Command(Command::new(path.to_str().unwrap().to_owned()))
}

/// Everything that it was told: the list, and the drive.
fn told(directory: &Path) -> Vec<(String, String)> {
    let mut all = Vec::new();
    for entry in std::fs::read_dir(directory.join("kept")).unwrap().flatten() {
        let Ok(json) = serde_json::from_slice::<serde_json::Value>(&std::fs::read(entry.path()).unwrap())
        else {
            continue;
        };
        for list in ["began", "ended"] {
            let name = |problem: &serde_json::Value| problem["about"]["name"].as_str().unwrap().to_owned();
            all.extend(json[list].as_array().unwrap().iter().map(|problem| (list.to_owned(), name(problem))));
        }
    }
    all.sort();
    all
}

fn pairs(all: &[(&str, &str)]) -> Vec<(String, String)> {
    all.iter().map(|(list, name)| ((*list).to_owned(), (*name).to_owned())).collect()
}

fn start(directory: &Path, world: &Arc<World>, means: Vec<Means>) -> Office {
    let start = Start {
        head: "box".to_owned(),
        state_dir: directory.to_owned(),
        read_secret: |_| Err("there is none".to_owned()),
        report: Box::new(|_| {}),
    };
    let rules =
        Rules { repeat: None, quiet: None, with_notices: false, health_every: Duration::from_secs(600) };
    Office::start(start, world.clone(), Settings { rules, means, heartbeat: None })
}

async fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < PATIENCE, "{what}");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

#[tokio::test]
async fn beginnings_and_ends_are_told_once_through_a_restart() {
    let directory = tempfile::tempdir().unwrap();
    let at = directory.path();
    let world = Arc::new(World(Mutex::new(vec![hot("a")])));
    let office = start(at, &world, vec![program(at)]);
    until("a begins", || told(at) == pairs(&[("began", "a")])).await;
    until("it is listed", || office.list()[0].told == [hot("a")] && office.list()[0].deliveries == 1).await;
    drop(office);
    world.0.lock().unwrap().push(hot("b"));
    let office = start(at, &world, vec![program(at)]);
    until("b begins", || told(at) == pairs(&[("began", "a"), ("began", "b")])).await;
    world.0.lock().unwrap().remove(0);
    office.look_now();
    until("a ends", || told(at) == pairs(&[("began", "a"), ("began", "b"), ("ended", "a")])).await;
    drop(office);
    // a file that is lost has what lasts told once more
    std::fs::remove_file(at.join("alerts.json")).unwrap();
    let _office = start(at, &world, vec![program(at)]);
    let all = pairs(&[("began", "a"), ("began", "b"), ("began", "b"), ("ended", "a")]);
    until("b is told again", || told(at) == all).await;
}

#[tokio::test]
async fn a_channel_that_fails_holds_up_no_other_and_a_test_has_it_try_again() {
    let directory = tempfile::tempdir().unwrap();
    let at = directory.path();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    // it takes connections, and never answers
    let url = Url::parse(&format!("http://{}/", listener.local_addr().unwrap())).unwrap();
    let silent = Means::Webhook(Webhook { url, token_file: None, ca_file: None });
    std::fs::write(at.join("fails"), "").unwrap();
    let world = Arc::new(World(Mutex::new(vec![hot("a")])));
    let office = start(at, &world, vec![silent, program(at)]);
    until("both fail", || office.list().iter().all(|channel| channel.failures > 0)).await;
    let list = office.list();
    assert!(list.iter().all(|channel| channel.failing_since_ms.is_some() && channel.delivered_ms.is_none()));
    // the program has surely told nobody; of the webhook nobody knows
    let names: Vec<(&str, usize)> =
        list.iter().map(|channel| (channel.name.as_str(), channel.told.len())).collect();
    assert_eq!(names, [("command", 0), ("webhook", 1)]);
    assert_eq!(told(at), []);
    let failed = office.test(Some("command")).await.unwrap();
    assert!(!failed[0].delivered && failed[0].error.contains("code 1"), "{failed:?}");
    std::fs::remove_file(at.join("fails")).unwrap();
    let results = office.test(None).await.unwrap();
    let results: BTreeSet<(&str, bool)> =
        results.iter().map(|result| (result.channel.as_str(), result.delivered)).collect();
    assert_eq!(results, BTreeSet::from([("command", true), ("webhook", false)]));
    until("it is told at once", || told(at) == pairs(&[("began", "a")])).await;
    until("it works again", || office.list()[0].failing_since_ms.is_none()).await;
    assert_eq!(office.test(Some("mail")).await.unwrap(), []);
    // a channel that is named no more is gone
    let rules =
        Rules { repeat: None, quiet: None, with_notices: false, health_every: Duration::from_secs(600) };
    office.set(Settings { rules, means: vec![program(at)], heartbeat: None });
    assert_eq!(office.list().len(), 1);
}
