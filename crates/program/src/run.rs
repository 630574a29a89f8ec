//! One run of a program.
//!
//! Its process is reaped only after its output has ended or its group was killed. Until then the id of the group cannot be another's, so
//! the kill hits nobody else.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, Command};
use tokio::runtime::Handle;
use tokio::time::timeout;

use crate::{Ended, Order, RunError};

/// What is thrown away of each stream; a program that prints more is killed, because reading it costs time.
const DISCARDED_BYTES_MAX: u64 = 64 << 20;
/// Where programs are, if this process has no path.
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// Why the output was not read to its end.
enum Stopped {
    Io(io::Error),
    Endless,
}

impl From<io::Error> for Stopped {
    fn from(error: io::Error) -> Stopped {
        Stopped::Io(error)
    }
}

/// Runs a program to its end. `gate` is dropped when the process is really gone, which may be long after the answer, or never. An answer
/// that is not waited for (the future is dropped) kills the program, too.
pub async fn run(order: Order<'_>, gate: impl Send + 'static) -> Result<Ended, RunError> {
    let program = || order.program.to_owned();
    let path = find(order.program).ok_or_else(|| RunError::NotInstalled { program: program() })?;
    let not_run = |error: io::Error| RunError::NotRun { program: program(), why: error.to_string() };
    let child = spawn(&path, &order).map_err(not_run)?;
    let mut running = Running { child: Some(child), gate: Some(gate) };
    let child = running.child.as_mut().expect("it has just begun");
    match timeout(order.time, talk(child, &order)).await {
        Ok(Ok(ended)) => {
            // reaped
            running.child = None;
            Ok(ended)
        }
        Ok(Err(Stopped::Io(error))) => Err(not_run(error)),
        Ok(Err(Stopped::Endless)) => Err(RunError::Endless { program: program() }),
        Err(_) => Err(RunError::TimedOut { program: program(), seconds: seconds(order.time) }),
    }
}

fn seconds(time: Duration) -> u64 {
    time.as_millis().div_ceil(1000) as u64
}

/// A process that has not been reaped.
struct Running<G: Send + 'static> {
    child: Option<Child>,
    gate: Option<G>,
}

impl<G: Send + 'static> Drop for Running<G> {
    fn drop(&mut self) {
        let Some(mut child) = self.child.take() else { return };
        if let Some(group) = child.id().and_then(|id| Pid::from_raw(id.cast_signed())) {
            // a group that has ended is fine
            let _ended = kill_process_group(group, Signal::KILL);
        }
        let gate = self.gate.take();
        // without a runtime, this process ends as well
        let Ok(runtime) = Handle::try_current() else { return };
        runtime.spawn(async move {
            // there is nobody to tell of an error
            let _status = child.wait().await;
            drop(gate);
        });
    }
}

fn find(program: &str) -> Option<PathBuf> {
    if program.contains('/') {
        return Some(PathBuf::from(program)).filter(|path| path.is_file());
    }
    std::env::split_paths(&path_variable()).map(|path| path.join(program)).find(|path| path.is_file())
}

fn path_variable() -> OsString {
    std::env::var_os("PATH").unwrap_or_else(|| PATH.into())
}

fn spawn(path: &Path, order: &Order<'_>) -> io::Result<Child> {
    Command::new(path)
        .args(order.arguments)
        .env_clear()
        .env("PATH", path_variable())
        // the words of a program are not translated
        .env("LC_ALL", "C.UTF-8")
        .envs(order.environment.iter().copied())
        .stdin(if order.input.is_empty() { Stdio::null() } else { Stdio::piped() })
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        .spawn()
}

/// Gives it its input, reads its output to the end, then reaps it.
async fn talk(child: &mut Child, order: &Order<'_>) -> Result<Ended, Stopped> {
    let (mut stdin, out, errors) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let write = async {
        if let Some(mut stdin) = stdin.take() {
            // one that reads nothing has answered already
            let _unread = stdin.write_all(order.input).await;
        }
        Ok(())
    };
    let bytes_max = order.output_bytes_max;
    let ((), out, errors) = tokio::try_join!(write, read(out, bytes_max), read(errors, bytes_max))?;
    let status = child.wait().await?;
    let last_words = last_words(&errors).or_else(|| last_words(&out)).unwrap_or_default();
    Ok(Ended { code: status.code(), out, last_words })
}

async fn read(from: Option<impl AsyncRead + Unpin>, bytes_max: u64) -> Result<Vec<u8>, Stopped> {
    let mut bytes = Vec::new();
    let Some(from) = from else { return Ok(bytes) };
    let mut first = from.take(bytes_max);
    first.read_to_end(&mut bytes).await?;
    let mut rest = first.into_inner().take(DISCARDED_BYTES_MAX);
    // thrown away, so that the program does not wait for a reader
    match tokio::io::copy(&mut rest, &mut tokio::io::sink()).await? {
        DISCARDED_BYTES_MAX => Err(Stopped::Endless),
        _ => Ok(bytes),
    }
}

fn last_words(text: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(text);
    text.lines().map(str::trim).rfind(|line| !line.is_empty()).map(str::to_owned)
}
