//! Agents that lie, hang, fail or have no status, and Debian's `fence_dummy`.
#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "starts processes, measures time")]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::{Duration, Instant};

use fence::{AgentError, Fencer, Means, Options, Outcome, Power, Trust};

const METADATA: &str = r#"<resource-agent name="x"><parameters>
<parameter name="action" required="1"><content type="string" default="reboot"/></parameter>
<parameter name="plug" required="1"><content type="string"/></parameter>
<parameter name="password" required="0"><content type="string"/></parameter>
</parameters><actions>ACTIONS</actions></resource-agent>"#;

/// An agent whose plug "b" is a file: it is there as long as that is on. `body`: what it does with `$action` and `$plug`.
fn agent(at: &Path, actions: &[&str], body: &str) -> Options {
    let named: String = actions.iter().map(|action| format!("<action name=\"{action}\"/>")).collect();
    let metadata = METADATA.replace("ACTIONS", &named);
    fs::write(at.join("metadata"), metadata).unwrap();
    let directory = at.display();
    let text = format!(
        "#!/bin/sh\nwhile IFS= read -r line; do case $line in action=*) action=${{line#action=}};; plug=*) plug=${{line#plug=}};; esac; done\n\
         echo \"$action\" >>{directory}/log\n[ $action != metadata ] || {{ cat {directory}/metadata; exit 0; }}\npower={directory}/on-$plug\n{body}\n"
    );
    let path = at.join("agent");
    fs::write(&path, text).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    fs::write(at.join("on-b"), "").unwrap();
    Options {
        agent: path.to_str().unwrap().to_owned(),
        parameters: vec![("plug".to_owned(), "b".to_owned()), ("password".to_owned(), "geheim".to_owned())],
        means: Means::Off,
        time: Duration::from_secs(5),
    }
}

const HONEST: &str = "case $action in\n\
    status) [ -e $power ] && exit 0 || exit 2;;\n\
    off) rm -f $power;;\n\
    on) touch $power;;\n\
    esac";
const ALL: [&str; 4] = ["on", "off", "reboot", "status"];

async fn open(options: Options) -> Fencer {
    Fencer::open(options).await.expect("it answers").expect("its parameters fit")
}

/// What it was asked, behind its metadata.
fn asked(at: &Path) -> Vec<String> {
    let log = fs::read_to_string(at.join("log")).unwrap();
    log.lines().filter(|line| *line != "metadata").map(str::to_owned).collect()
}

#[tokio::test]
async fn an_honest_agent_is_trusted_after_it_has_said_on_and_fences() {
    let directory = tempfile::tempdir().unwrap();
    let at = directory.path();
    let mut fencer = open(agent(at, &ALL, HONEST)).await;
    assert_eq!(fencer.trust(), &Trust::NotTried);
    // as long as nobody knows that the head is on, "on" proves nothing
    assert_eq!(fencer.try_out(|| false).await, Power::On);
    assert_eq!(fencer.trust(), &Trust::NotTried);
    assert!(matches!(fencer.fence().await, Outcome::Failed(why) if why.contains("never tried")));
    assert!(at.join("on-b").exists());
    assert_eq!(fencer.try_out(|| true).await, Power::On);
    assert_eq!(fencer.fence().await, Outcome::Fenced);
    assert!(!at.join("on-b").exists());
    assert_eq!(fencer.fence().await, Outcome::WasOff);
    assert_eq!(asked(at)[2..], ["status", "off", "status", "status"]);
}

#[tokio::test]
async fn a_reboot_is_off_and_on_again() {
    let directory = tempfile::tempdir().unwrap();
    let at = directory.path();
    let mut fencer = open(Options { means: Means::Reboot, ..agent(at, &ALL, HONEST) }).await;
    fencer.try_out(|| true).await;
    assert_eq!(fencer.fence().await, Outcome::Fenced);
    assert!(at.join("on-b").exists());
    assert_eq!(asked(at), ["status", "status", "off", "status", "on"]);
}

/// As `fence_dummy` does with a plug that it does not know: "already off", and all is well.
#[tokio::test]
async fn an_agent_that_says_off_of_a_head_that_is_heard_is_not_trusted() {
    let directory = tempfile::tempdir().unwrap();
    let at = directory.path();
    let lies = "case $action in status) exit 2;; off) echo 'Success: Already OFF';; esac";
    let mut fencer = open(agent(at, &ALL, lies)).await;
    assert_eq!(fencer.try_out(|| true).await, Power::Off);
    let Trust::Doubted(why) = fencer.trust().clone() else { panic!("{:?}", fencer.trust()) };
    assert!(why.contains("something else"), "{why}");
    assert_eq!(fencer.fence().await, Outcome::Failed(why));
    assert_eq!(asked(at), ["status"], "it is not asked to fence anything");
}

#[tokio::test]
async fn an_agent_that_only_says_that_it_has_done_it_has_not_fenced() {
    let directory = tempfile::tempdir().unwrap();
    let at = directory.path();
    let mut fencer = open(agent(at, &ALL, "case $action in status) exit 0;; off) echo done;; esac")).await;
    fencer.try_out(|| true).await;
    let Outcome::Failed(why) = fencer.fence().await else { panic!("it is fenced") };
    assert!(why.contains("and then that it is on"), "{why}");
}

#[tokio::test]
async fn an_agent_that_fails_says_why_without_secrets() {
    let directory = tempfile::tempdir().unwrap();
    let at = directory.path();
    let fails = "case $action in status) exit 0;; off) echo 'login geheim refused' >&2; exit 1;; esac";
    let mut fencer = open(agent(at, &ALL, fails)).await;
    fencer.try_out(|| true).await;
    let Outcome::Failed(why) = fencer.fence().await else { panic!("it is fenced") };
    assert!(why.ends_with("could not carry out \"off\": login *** refused"), "{why}");
    // one whose status fails is not accepted
    let mut fencer = open(agent(at, &ALL, "echo broken; exit 1")).await;
    assert!(matches!(fencer.try_out(|| true).await, Power::Unknown(_)));
    assert!(matches!(fencer.trust(), Trust::Doubted(why) if why.contains("cannot tell")));
}

#[tokio::test]
async fn an_agent_that_hangs_is_ended_with_all_that_it_has_started() {
    let directory = tempfile::tempdir().unwrap();
    let at = directory.path();
    let hangs = format!(
        "case $action in status) exit 0;; off) sleep 1000 & echo $! >{0}/child; echo $$ >{0}/self; sleep 1000;; esac",
        at.display()
    );
    let options = Options { time: Duration::from_secs(2), ..agent(at, &ALL, &hangs) };
    let mut fencer = open(options).await;
    fencer.try_out(|| true).await;
    let began = Instant::now();
    let Outcome::Failed(why) = fencer.fence().await else { panic!("it is fenced") };
    assert!(why.contains("has not answered \"off\" within 2 s"), "{why}");
    assert!(began.elapsed() < Duration::from_secs(6));
    for name in ["child", "self"] {
        let process = fs::read_to_string(at.join(name)).unwrap();
        let stat = format!("/proc/{}/stat", process.trim());
        let until = Instant::now() + Duration::from_secs(5);
        // the first is reaped by init
        let runs = || fs::read_to_string(&stat).is_ok_and(|stat| !stat.contains(") Z "));
        while runs() {
            assert!(Instant::now() < until, "{name} still runs");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

#[tokio::test]
async fn an_agent_without_a_status_is_asked_and_no_more() {
    let directory = tempfile::tempdir().unwrap();
    let at = directory.path();
    let mut fencer = open(agent(at, &["reboot", "monitor"], "")).await;
    assert_eq!(fencer.trust(), &Trust::AsksOnly);
    assert!(matches!(fencer.try_out(|| true).await, Power::Unknown(_)));
    assert_eq!(fencer.fence().await, Outcome::Asked);
    assert_eq!(asked(at), ["reboot"]);
}

#[tokio::test]
async fn what_cannot_work_is_refused_beforehand() {
    let directory = tempfile::tempdir().unwrap();
    let good = agent(directory.path(), &ALL, HONEST);
    let fault = async |parameters: &[(&str, &str)]| {
        let parameters =
            parameters.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        Fencer::open(Options { parameters, ..good.clone() })
            .await
            .expect("it answers")
            .err()
            .map(|fault| fault.name)
    };
    assert_eq!(fault(&[("plug", "b")]).await, None);
    assert_eq!(fault(&[("plg", "b")]).await.as_deref(), Some("plg"));
    assert_eq!(fault(&[]).await.as_deref(), Some("plug"));
    let error = async |options: Options| Fencer::open(options).await.err().expect("it does not work");
    let absent = Options { agent: "fence_nothing".to_owned(), ..good.clone() };
    assert!(matches!(error(absent).await, AgentError::NotInstalled { .. }));
    let useless = agent(directory.path(), &["status"], HONEST);
    assert!(error(useless).await.to_string().contains("neither switch off nor reboot"));
    fs::write(directory.path().join("metadata"), "usage: agent").unwrap();
    assert!(matches!(error(good.clone()).await, AgentError::NotUnderstood { .. }));
}

fn dummy(file: &Path) -> Options {
    Options {
        agent: "fence_dummy".to_owned(),
        parameters: vec![("status_file".to_owned(), file.to_str().unwrap().to_owned())],
        means: Means::Reboot,
        time: Duration::from_secs(30),
    }
}

#[tokio::test]
#[ignore = "needs fence-agents: conformance/pair-administration"]
async fn the_dummy_agent_of_debian_fences_what_is_on() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("status");
    fs::write(&file, "on").unwrap();
    let mut fencer = open(dummy(&file)).await;
    assert_eq!(fencer.try_out(|| true).await, Power::On);
    assert_eq!(fencer.fence().await, Outcome::Fenced);
    assert_eq!(fs::read_to_string(&file).unwrap().trim(), "on", "it was switched on again");
    // a plug is unknown to it, and without our look it would say "already off"
    let mut wrong = dummy(&directory.path().join("another"));
    let mut doubted = open(wrong.clone()).await;
    assert_eq!(doubted.try_out(|| true).await, Power::Off);
    assert!(matches!(doubted.trust(), Trust::Doubted(_)));
    wrong.parameters.push(("plug".to_owned(), "b".to_owned()));
    let fault = Fencer::open(wrong).await.expect("it answers").err().expect("it has no such parameter");
    assert_eq!(fault.name, "plug");
}

#[tokio::test]
#[ignore = "needs fence-agents: conformance/pair-administration"]
async fn agents_of_debian_are_understood() {
    let give = |agent: &str, parameters: &[(&str, &str)]| Options {
        agent: agent.to_owned(),
        parameters: parameters
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect(),
        means: Means::Reboot,
        time: Duration::from_secs(30),
    };
    let ipmi =
        give("fence_ipmilan", &[("ip", "192.0.2.1"), ("username", "u"), ("password", "p"), ("lanplus", "1")]);
    assert_eq!(open(ipmi).await.trust(), &Trust::NotTried);
    let serial = give("fence_rcd_serial", &[("serial_port", "/dev/ttyS9")]);
    assert_eq!(open(serial).await.trust(), &Trust::AsksOnly);
}
