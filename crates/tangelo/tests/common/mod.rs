//! A head in a directory of its own, and the daemon that serves it.
#![allow(dead_code, reason = "each test program uses a part of it")]
#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "a test is at the edge to the world")]

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

pub const PROGRAM: &str = env!("CARGO_BIN_EXE_tangelo");
/// Longer than anything here takes on a busy machine.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// A head's directory: its file, its state, its socket.
pub struct Head {
    pub directory: tempfile::TempDir,
}

pub struct Daemon {
    pub child: Child,
    pub log: Option<std::thread::JoinHandle<String>>,
}

impl Head {
    pub fn new(extra: &str) -> Head {
        let directory = tempfile::tempdir().unwrap();
        let text = format!(
            "state_dir = \"state\"\n[listen]\niscsi = [\"127.0.0.1:0\"]\n[api]\nsocket = \"t.sock\"\n[cores]\ncount = 2\n{extra}"
        );
        std::fs::write(directory.path().join("tangelo.toml"), text).unwrap();
        Head { directory }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    pub fn serve(&self) -> Command {
        let mut command = Command::new(PROGRAM);
        command.arg("serve").arg("--config").arg(self.path("tangelo.toml"));
        command.env_remove("NOTIFY_SOCKET").stderr(Stdio::piped()).stdin(Stdio::null());
        command
    }

    /// Starts the daemon and waits until hosts are served.
    pub fn start(&self) -> Daemon {
        let mut child = self.serve().spawn().unwrap();
        let lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let (serving, is_serving) = channel();
        let log = std::thread::spawn(move || {
            lines.map_while(Result::ok).fold(String::new(), |log, line| {
                if line.contains("serving iSCSI on") {
                    let _ = serving.send(());
                }
                log + &line + "\n"
            })
        });
        let daemon = Daemon { child, log: Some(log) };
        match is_serving.recv_timeout(PATIENCE) {
            Ok(()) => daemon,
            Err(RecvTimeoutError::Timeout) => panic!("the daemon does not get to serving"),
            Err(RecvTimeoutError::Disconnected) => panic!("the daemon ended:\n{}", daemon.end().1),
        }
    }

    pub fn ask(&self, line: &str) -> Output {
        let socket = self.path("t.sock");
        Command::new(PROGRAM).arg("--socket").arg(socket).args(line.split_whitespace()).output().unwrap()
    }

    /// The JSON answer to a command that must be carried out.
    pub fn done(&self, line: &str) -> Value {
        let output = self.ask(&format!("{line} -o json"));
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(output.status.success(), "tangelo {line}: {text}");
        let value: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(value["schema"], 2);
        value
    }

    /// Exit code and error code of a command that must be refused.
    pub fn refused(&self, line: &str) -> (i32, String) {
        let output = self.ask(&format!("{line} -o json"));
        let value: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
        let code =
            value["error"]["code"].as_str().unwrap_or_else(|| panic!("tangelo {line}: {value}")).to_owned();
        (output.status.code().unwrap(), code)
    }
}

impl Daemon {
    pub fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// Waits for its end; its exit code (none where a signal ended it) and everything it said.
    pub fn end(mut self) -> (Option<i32>, String) {
        let began = Instant::now();
        let status = loop {
            match self.child.try_wait().unwrap() {
                Some(status) => break status,
                None if began.elapsed() > PATIENCE => panic!("the daemon does not end"),
                None => std::thread::sleep(Duration::from_millis(10)),
            }
        };
        (status.code(), self.log.take().unwrap().join().unwrap())
    }

    pub fn stop(self) -> String {
        self.signal(Signal::TERM);
        let (code, log) = self.end();
        assert_eq!(code, Some(0), "an orderly stop:\n{log}");
        log
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Sparse files of 1 GiB in a head's directory, with their paths in one line.
pub fn drives(head: &Head, names: &[&str]) -> String {
    for name in names {
        std::fs::File::create_new(head.path(name)).unwrap().set_len(1 << 30).unwrap();
    }
    names.iter().map(|name| head.path(name).to_str().unwrap().to_owned()).collect::<Vec<_>>().join(" ")
}
