//! Programs that hang, print without end, ignore their pipes or leave processes behind.
#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "starts processes, measures time")]

use std::ffi::OsStr;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use program::{Ended, Order, RunError, run};
use tokio::sync::oneshot;

const PATIENCE: Duration = Duration::from_secs(20);

/// Runs a script, and says besides when the process is gone.
async fn script(text: &str, time: Duration) -> (Result<Ended, RunError>, oneshot::Receiver<()>) {
    let arguments = [OsStr::new("-c"), OsStr::new(text)];
    let (gate, gone) = oneshot::channel::<()>();
    let order = Order {
        program: "sh",
        arguments: &arguments,
        input: b"one\ntwo\n",
        environment: &[("GIVEN", "here")],
        time,
        output_bytes_max: 1000,
    };
    (run(order, gate).await, gone)
}

async fn quick(text: &str) -> Result<Ended, RunError> {
    script(text, PATIENCE).await.0
}

fn runs(process: &str) -> bool {
    let stat = format!("/proc/{}/stat", process.trim());
    // one that is dead and not yet reaped by init does not run
    fs::read_to_string(stat).is_ok_and(|stat| !stat.contains(") Z "))
}

async fn ends(process: &Path) {
    let process = fs::read_to_string(process).expect("it has noted its id");
    let until = Instant::now() + PATIENCE;
    while runs(&process) {
        assert!(Instant::now() < until, "{process} still runs");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn what_it_says_and_how_it_ends_is_the_answer() {
    let ended = quick("read a; read b; echo $b-$GIVEN; echo oh >&2; echo no >&2; exit 3").await.unwrap();
    assert_eq!(ended, Ended { code: Some(3), out: b"two-here\n".to_vec(), last_words: "no".to_owned() });
    let ended = quick("echo said; kill -9 $$").await.unwrap();
    assert_eq!((ended.code, ended.last_words.as_str()), (None, "said"));
}

#[tokio::test]
async fn nothing_is_inherited_but_the_path() {
    let names = String::from_utf8(quick("env").await.unwrap().out).unwrap();
    let names: Vec<&str> = names.lines().filter_map(|line| Some(line.split_once('=')?.0)).collect();
    // the shell's own
    let own = ["PWD", "OLDPWD", "SHLVL", "_"];
    let mut given: Vec<&str> = names.into_iter().filter(|name| !own.contains(name)).collect();
    given.sort_unstable();
    assert_eq!(given, ["GIVEN", "LC_ALL", "PATH"]);
}

#[tokio::test]
async fn what_is_not_there_is_said() {
    for program in ["no-such-program", "/no/such/program", "/"] {
        let order = Order {
            program,
            arguments: &[],
            input: b"",
            environment: &[],
            time: PATIENCE,
            output_bytes_max: 10,
        };
        assert_eq!(run(order, ()).await, Err(RunError::NotInstalled { program: program.to_owned() }));
    }
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("text");
    fs::write(&file, "no program").unwrap();
    let order = Order {
        program: file.to_str().unwrap(),
        arguments: &[],
        input: b"",
        environment: &[],
        time: PATIENCE,
        output_bytes_max: 10,
    };
    assert!(matches!(run(order, ()).await, Err(RunError::NotRun { .. })));
}

#[tokio::test]
async fn one_that_hangs_is_killed_with_all_that_it_has_started() {
    let directory = tempfile::tempdir().unwrap();
    let at = directory.path().display();
    let began = Instant::now();
    let text = format!("sleep 1000 & echo $! >{at}/child; echo $$ >{at}/self; sleep 1000");
    let (result, gone) = script(&text, Duration::from_secs(1)).await;
    assert_eq!(result, Err(RunError::TimedOut { program: "sh".to_owned(), seconds: 1 }));
    assert!(began.elapsed() < PATIENCE);
    // the gate is dropped, and only when the process is gone
    gone.await.expect_err("nothing was sent");
    for name in ["child", "self"] {
        ends(&directory.path().join(name)).await;
    }
}

#[tokio::test]
async fn one_whose_answer_is_not_waited_for_is_killed() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("self");
    let text = format!("echo $$ >{0}.new; mv {0}.new {0}; sleep 1000", file.display());
    let waiting = tokio::spawn(async move { script(&text, PATIENCE).await.0 });
    let until = Instant::now() + PATIENCE;
    while !file.exists() {
        assert!(Instant::now() < until);
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    waiting.abort();
    ends(&file).await;
}

#[tokio::test]
async fn what_is_left_behind_does_not_hold_the_answer_beyond_its_time() {
    let directory = tempfile::tempdir().unwrap();
    let at = directory.path().display();
    // it has left the group, and holds the pipes
    let text = format!("setsid sleep 1000 & echo $! >{at}/child");
    let (result, gone) = script(&text, Duration::from_secs(1)).await;
    assert!(matches!(result, Err(RunError::TimedOut { .. })));
    gone.await.expect_err("nothing was sent");
    let child = fs::read_to_string(directory.path().join("child")).unwrap();
    let child = rustix::process::Pid::from_raw(child.trim().parse().unwrap()).unwrap();
    let _ended = rustix::process::kill_process(child, rustix::process::Signal::KILL);
}

#[tokio::test]
async fn one_that_babbles_costs_no_memory_and_is_stopped() {
    let ended = quick("head -c 5000000 /dev/zero | tr '\\0' x; exit 4").await.unwrap();
    assert_eq!((ended.code, ended.out.len()), (Some(4), 1000));
    let endless = Err(RunError::Endless { program: "sh".to_owned() });
    assert_eq!(quick("head -c 1073741824 /dev/zero").await, endless);
    assert_eq!(quick("yes >&2").await, endless);
}

#[tokio::test]
async fn one_that_closes_its_pipes_and_goes_on_is_waited_for() {
    let (result, gone) = script("exec >&- 2>&- <&-; sleep 1000", Duration::from_secs(1)).await;
    assert!(matches!(result, Err(RunError::TimedOut { .. })));
    gone.await.expect_err("nothing was sent");
}
