//! Supervises this server's member of etcd: starts it, starts it again when it ends, ends it when it is told to.
//!
//! What always holds: one supervisor runs in a state directory; etcd does not outlive it, not even if it is killed (the kernel kills
//! etcd then, as `setpriv --pdeathsig` orders). The thread that starts etcd stays until etcd has ended, because the kernel looks
//! at that thread. Nothing of this process's environment reaches etcd.

use std::collections::VecDeque;
use std::fmt;
use std::future::Future;
use std::io::{self, Read};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use tokio::sync::oneshot;

use crate::error::SetupError;
use crate::files::{self, Lock};
use crate::member_file::{self, MemberFile};

/// Pauses before etcd is started again: they grow from the first to the last.
const PAUSE_MIN: Duration = Duration::from_millis(100);
const PAUSE_MAX: Duration = Duration::from_secs(5);
/// One that ran for so long has the shortest pause again.
const RAN_WELL: Duration = Duration::from_secs(60);
/// How often the supervisor looks whether etcd has ended.
const LOOK: Duration = Duration::from_millis(100);
/// How long etcd may take to end in order.
const END_TIME_MAX: Duration = Duration::from_secs(5);

/// Lines of etcd's that are kept for the message, and how long they are.
const LINES_MAX: usize = 20;
const LINE_BYTES_MAX: usize = 500;

const ETCD: &str = "etcd";
const SETPRIV: &str = "setpriv";
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// What has happened to etcd.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum MemberEvent {
    Started {
        process: u32,
    },
    /// It has ended, or could not be started, and is started again after a pause.
    Ended {
        how: String,
        /// The newest messages of etcd, oldest first.
        last_lines: Vec<String>,
        again_in: Duration,
    },
}

impl fmt::Display for MemberEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MemberEvent::Started { process } => write!(f, "etcd runs as process {process}"),
            MemberEvent::Ended { how, last_lines, again_in } => {
                write!(f, "etcd has ended ({how}); it is started again in {again_in:?}")?;
                last_lines.last().map_or(Ok(()), |line| write!(f, ". Its last message: {line}"))
            }
        }
    }
}

/// Why a member does not run any more.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MemberEnd {
    Stopped,
    /// This server is part of no pair any more; etcd's data and keys are removed.
    Retired,
}

/// This server's member of etcd, which does not run yet.
pub struct Member {
    state_dir: PathBuf,
    file: MemberFile,
    /// With their paths.
    etcd: PathBuf,
    setpriv: PathBuf,
    _lock: Lock,
}

/// Where the programs are, or which package has them.
pub(crate) fn find_programs() -> Result<(PathBuf, PathBuf), SetupError> {
    let find = |name: &'static str, package| {
        let paths = std::env::var_os("PATH").unwrap_or_else(|| PATH.into());
        let found = std::env::split_paths(&paths).map(|path| path.join(name)).find(|path| path.is_file());
        found.ok_or(SetupError::NotInstalled { program: name, package })
    };
    Ok((find(ETCD, "etcd-server")?, find(SETPRIV, "util-linux")?))
}

/// Takes the lock that a supervisor has, for as long as the member's files are made.
pub(crate) fn lock(state_dir: &Path) -> Result<Lock, SetupError> {
    let directory = member_file::directory(state_dir);
    files::make_directory(&directory)?;
    files::try_lock(&directory.join("lock"))?.ok_or(SetupError::MemberRuns { path: directory })
}

impl Member {
    /// Reads the member's files and keeps other supervisors out.
    pub fn open(state_dir: &Path) -> Result<Member, SetupError> {
        let (etcd, setpriv) = find_programs()?;
        let file = MemberFile::load(state_dir);
        if matches!(file, Err(SetupError::NoMember { .. })) && member_file::directory(state_dir).exists() {
            // a supervisor may have been killed before it had removed the rest
            let _lock = lock(state_dir)?;
            member_file::remove_rest(state_dir)?;
        }
        let (file, lock) = (file?, lock(state_dir)?);
        Ok(Member { state_dir: state_dir.to_owned(), file, etcd, setpriv, _lock: lock })
    }

    /// The name of the member: `head-ID` or `witness`.
    pub fn name(&self) -> &str {
        &self.file.name
    }

    /// Runs etcd until `stop` completes, or the member is retired; etcd has ended when this returns. If this future is dropped, etcd ends,
    /// too. `on_event` is called on a thread of the supervisor.
    pub async fn run(
        self,
        stop: impl Future<Output = ()>,
        on_event: impl Fn(MemberEvent) + Send + 'static,
    ) -> Result<MemberEnd, SetupError> {
        // the thread stops when the sender is dropped
        let (running, stopped) = channel::<()>();
        let (ended, mut end) = oneshot::channel();
        let thread = std::thread::Builder::new().name("etcd".to_owned()).spawn(move || {
            supervise(&self, &stopped, &on_event);
            let end = match self.is_retired() {
                true => member_file::remove_rest(&self.state_dir).map(|()| MemberEnd::Retired),
                false => Ok(MemberEnd::Stopped),
            };
            drop(self);
            // nobody waits if the future was dropped
            let _waiting = ended.send(end);
        });
        thread.map_err(|error| SetupError::File { path: ETCD.into(), error })?;
        tokio::select! {
            end = &mut end => return end.unwrap_or(Ok(MemberEnd::Stopped)),
            () = stop => {}
        }
        drop::<Sender<()>>(running);
        // an error says that the thread has ended, too
        end.await.unwrap_or(Ok(MemberEnd::Stopped))
    }

    /// Its file is gone: this server is part of no pair any more.
    fn is_retired(&self) -> bool {
        matches!(member_file::path(&self.state_dir).try_exists(), Ok(false))
    }

    fn spawn(&self) -> io::Result<Child> {
        let mut command = Command::new(&self.setpriv);
        command
            .args(["--pdeathsig", "KILL", "--"])
            .arg(&self.etcd)
            .args(self.file.arguments(&self.state_dir));
        // etcd takes flags from its environment, too
        command.env_clear().env("PATH", PATH);
        if std::env::consts::ARCH == "aarch64" {
            command.env("ETCD_UNSUPPORTED_ARCH", "arm64");
        }
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn()
    }
}

/// Waits for the order to stop; says whether it has come.
fn stops_within(stopped: &Receiver<()>, time: Duration) -> bool {
    stopped.recv_timeout(time) == Err(RecvTimeoutError::Disconnected)
}

fn supervise(member: &Member, stopped: &Receiver<()>, on_event: &impl Fn(MemberEvent)) {
    let mut pause = PAUSE_MIN;
    loop {
        let began = Instant::now();
        let (how, last_lines) = match member.spawn() {
            Err(error) => (format!("it could not be started: {error}"), Vec::new()),
            Ok(mut child) => {
                let lines = child.stderr.take().map(read_lines);
                on_event(MemberEvent::Started { process: child.id() });
                let status = watch(member, &mut child, stopped);
                let lines = lines.and_then(|reader| reader.join().ok()).unwrap_or_default();
                match status {
                    Some(status) => (describe(status), lines),
                    None => return,
                }
            }
        };
        if began.elapsed() >= RAN_WELL {
            pause = PAUSE_MIN;
        }
        on_event(MemberEvent::Ended { how, last_lines, again_in: pause });
        if member.is_retired() || stops_within(stopped, pause) {
            return;
        }
        pause = (pause * 2).min(PAUSE_MAX);
    }
}

/// Waits until etcd ends by itself, or ends it: then there is no status.
fn watch(member: &Member, child: &mut Child, stopped: &Receiver<()>) -> Option<ExitStatus> {
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return Some(status),
            Ok(None) if !member.is_retired() && !stops_within(stopped, LOOK) => {}
            _ => {
                end(child);
                return None;
            }
        }
    }
}

fn end(child: &mut Child) {
    let until = Instant::now() + END_TIME_MAX;
    if let Ok(pid) = i32::try_from(child.id()) {
        // it was not waited for, so the id is still its own; one that has ended is fine
        let _ended = Pid::from_raw(pid).map(|pid| kill_process(pid, Signal::TERM));
    }
    while Instant::now() < until {
        if matches!(child.try_wait(), Ok(Some(_)) | Err(_)) {
            return;
        }
        std::thread::sleep(LOOK / 4);
    }
    let _ended = child.kill().and_then(|()| child.wait());
}

fn describe(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("exit code {code}"),
        (None, Some(signal)) => format!("signal {signal}"),
        (None, None) => "without a status".to_owned(),
    }
}

/// Reads what etcd writes, so that it never waits for a reader. Gives the newest lines when etcd has ended.
fn read_lines(mut from: ChildStderr) -> JoinHandle<Vec<String>> {
    std::thread::spawn(move || {
        let mut lines = Lines::default();
        let mut buffer = [0; 4096];
        while let Ok(count @ 1..) = from.read(&mut buffer) {
            lines.take(&buffer[..count]);
        }
        lines.finish()
    })
}

/// The newest lines, each cut at its longest.
#[derive(Default)]
struct Lines {
    whole: VecDeque<String>,
    open: Vec<u8>,
}

impl Lines {
    fn take(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            if byte == b'\n' {
                self.close();
            } else if self.open.len() < LINE_BYTES_MAX {
                self.open.push(byte);
            }
        }
    }

    fn close(&mut self) {
        if self.whole.len() == LINES_MAX {
            self.whole.pop_front();
        }
        self.whole.push_back(words(&String::from_utf8_lossy(&self.open)));
        self.open.clear();
    }

    fn finish(mut self) -> Vec<String> {
        if !self.open.is_empty() {
            self.close();
        }
        self.whole.into()
    }
}

/// The message of a line of etcd's log, which is JSON; the line itself if it is something else.
fn words(line: &str) -> String {
    let value: Option<serde_json::Value> = serde_json::from_str(line).ok();
    let field = |name| Some(value.as_ref()?.get(name)?.as_str()?.to_owned());
    match (field("msg"), field("error")) {
        (Some(message), Some(error)) => format!("{message}: {error}"),
        (Some(message), None) => message,
        _ => line.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_lines_are_kept_and_are_bounded() {
        let mut lines = Lines::default();
        for number in 0..100 {
            lines.take(format!("line {number}\n").as_bytes());
        }
        lines.take(&[b'x'; 10_000]);
        let lines = lines.finish();
        assert_eq!((lines.len(), lines[0].as_str()), (LINES_MAX, "line 81"));
        assert_eq!(lines[LINES_MAX - 1].len(), LINE_BYTES_MAX);
    }

    #[test]
    fn a_message_of_etcd_is_shown_without_its_json() {
        let line =
            r#"{"level":"fatal","ts":"2026","msg":"discovery failed","error":"member count is unequal"}"#;
        assert_eq!(words(line), "discovery failed: member count is unequal");
        assert_eq!(words(r#"{"msg":"rejected connection"}"#), "rejected connection");
        assert_eq!(words("setpriv: failed to execute etcd"), "setpriv: failed to execute etcd");
    }

    #[test]
    fn a_second_supervisor_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let first = lock(directory.path()).unwrap();
        assert!(matches!(lock(directory.path()), Err(SetupError::MemberRuns { .. })));
        drop(first);
        lock(directory.path()).unwrap();
    }
}
