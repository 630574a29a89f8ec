//! Runs an agent for one action.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use thiserror::Error;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, Command};
use tokio::time::timeout;

use crate::Options;

/// What an agent may print; more is not read.
const OUTPUT_BYTES_MAX: u64 = 1 << 20;
/// What a message has of an agent's words.
const WORDS_BYTES_MAX: usize = 200;
/// Where agents are, if this process has no path.
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// Why an agent has given no answer.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum AgentError {
    #[error("{agent} is not installed; install Debian's package fence-agents, or correct the name")]
    NotInstalled { agent: String },
    #[error("{agent} cannot be run: {why}")]
    NotRun { agent: String, why: String },
    #[error("{agent} has not answered \"{action}\" within {seconds} s")]
    TimedOut { agent: String, action: &'static str, seconds: u64 },
    #[error("{agent}: {why}")]
    NotUnderstood { agent: String, why: String },
}

/// How an agent has ended.
pub(crate) struct Ended {
    /// `None`: by a signal.
    pub code: Option<i32>,
    /// The standard output.
    pub out: String,
    /// The last line that it has said, without the values of parameters.
    pub words: String,
}

fn find(agent: &str) -> Option<PathBuf> {
    if agent.contains('/') {
        return Some(PathBuf::from(agent)).filter(|path| path.is_file());
    }
    let paths = std::env::var_os("PATH").unwrap_or_else(|| PATH.into());
    std::env::split_paths(&paths).map(|path| path.join(agent)).find(|path| path.is_file())
}

/// Ends the agent with all processes that it has started.
struct Group(Option<Pid>);

impl Drop for Group {
    fn drop(&mut self) {
        if let Some(group) = self.0 {
            // a group that has ended is fine
            let _ended = kill_process_group(group, Signal::KILL);
        }
    }
}

/// Has the agent do this. A time-out is an error, and so is an agent that cannot be started.
pub(crate) async fn run(options: &Options, action: &'static str) -> Result<Ended, AgentError> {
    let agent = || options.agent.clone();
    let path = find(&options.agent).ok_or_else(|| AgentError::NotInstalled { agent: agent() })?;
    let not_run = |error: std::io::Error| AgentError::NotRun { agent: agent(), why: error.to_string() };
    let mut child = spawn(&path).map_err(not_run)?;
    let mut group = Group(child.id().and_then(|id| Pid::from_raw(id.cast_signed())));
    let ended = timeout(options.time, talk(&mut child, input(options, action))).await;
    match ended {
        Ok(Ok((code, out, errors))) => {
            // it has ended, and nobody else has its pipes: its id may be another's by now
            group.0 = None;
            let words = last_words(&errors).or_else(|| last_words(&out)).unwrap_or_default();
            let words = without_values(options, words);
            Ok(Ended { code, out, words })
        }
        Ok(Err(error)) => Err(not_run(error)),
        Err(_) => Err(AgentError::TimedOut { agent: agent(), action, seconds: seconds(options.time) }),
    }
}

fn seconds(time: Duration) -> u64 {
    time.as_millis().div_ceil(1000) as u64
}

fn spawn(path: &Path) -> std::io::Result<Child> {
    let path_variable = std::env::var_os("PATH").unwrap_or_else(|| PATH.into());
    Command::new(path)
        .env_clear()
        .env("PATH", path_variable)
        // the words of an agent are not translated
        .env("LC_ALL", "C.UTF-8")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        .kill_on_drop(true)
        .spawn()
}

/// One parameter a line.
fn input(options: &Options, action: &str) -> String {
    let parameters = match action {
        // it asks nobody, so it needs nothing
        "metadata" => [].iter(),
        _ => options.parameters.iter(),
    };
    let lines: String = parameters.map(|(name, value)| format!("{name}={value}\n")).collect();
    format!("action={action}\n{lines}")
}

async fn talk(child: &mut Child, input: String) -> std::io::Result<(Option<i32>, String, String)> {
    let (mut stdin, out, errors) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let write = async {
        if let Some(mut stdin) = stdin.take() {
            // one that reads nothing has answered already
            let _unread = stdin.write_all(input.as_bytes()).await;
        }
    };
    let ((), out, errors, status) = tokio::join!(write, read(out), read(errors), child.wait());
    Ok((status?.code(), out, errors))
}

async fn read(from: Option<impl AsyncRead + Unpin>) -> String {
    let mut bytes = Vec::new();
    if let Some(from) = from {
        let mut first = from.take(OUTPUT_BYTES_MAX);
        // what was read before an error counts
        let _broken = first.read_to_end(&mut bytes).await;
        // what is too much is thrown away, so that the agent does not wait for a reader
        let mut rest = first.into_inner();
        let _broken = tokio::io::copy(&mut rest, &mut tokio::io::sink()).await;
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

fn last_words(text: &str) -> Option<&str> {
    text.lines().map(str::trim).rfind(|line| !line.is_empty())
}

/// Agents repeat what they were given, and some of it is secret.
fn without_values(options: &Options, words: &str) -> String {
    let mut words = words.to_owned();
    let mut values: Vec<&String> = options.parameters.iter().map(|(_, value)| value).collect();
    // a value may hold another one
    values.sort_by_key(|value| std::cmp::Reverse(value.len()));
    for value in values.into_iter().filter(|value| !value.is_empty()) {
        words = words.replace(value.as_str(), "***");
    }
    let end = words.char_indices().map(|(at, _)| at).take_while(|at| *at <= WORDS_BYTES_MAX).last();
    words.truncate(if words.len() > WORDS_BYTES_MAX { end.unwrap_or(0) } else { words.len() });
    words.chars().map(|character| if character.is_control() { ' ' } else { character }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Means;

    #[test]
    fn values_of_parameters_are_in_no_message() {
        let parameters = [("password", "geheim"), ("ip", "10.0.0.9"), ("empty", "")];
        let options = Options {
            agent: "fence_x".to_owned(),
            parameters: parameters.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec(),
            means: Means::Off,
            time: Duration::from_secs(1),
        };
        assert_eq!(without_values(&options, "login geheim@10.0.0.9 failed\u{7}"), "login ***@*** failed ");
        assert!(!format!("{options:?}").contains("geheim"));
        let long = format!("{}geheim", "ä".repeat(300));
        assert!(without_values(&options, &long).len() <= WORDS_BYTES_MAX);
        assert_eq!(input(&options, "off"), "action=off\npassword=geheim\nip=10.0.0.9\nempty=\n");
        assert_eq!(input(&options, "metadata"), "action=metadata\n");
    }
}
