//! Carries a letter to where a channel leads. What always holds: an attempt ends within its time, whatever the other side does, and takes
//! bounded memory.

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::command::Command;
use crate::letter::Letter;
use crate::mail::Mail;
use crate::webhook::Webhook;

/// Reads a file that nobody else may read. Gives why it is not used otherwise.
pub type ReadSecret = fn(&Path) -> Result<String, String>;

/// Longer than any means takes.
const TIME_MAX: Duration = Duration::from_secs(90);

/// An attempt that has failed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Undelivered {
    /// In words, without secrets.
    pub why: String,
    /// The other side may have it all the same.
    pub may_have_arrived: bool,
}

impl Undelivered {
    /// Nobody got anything.
    pub(crate) fn surely(why: impl Into<String>) -> Undelivered {
        Undelivered { why: why.into(), may_have_arrived: false }
    }

    pub(crate) fn maybe(why: impl Into<String>) -> Undelivered {
        Undelivered { why: why.into(), may_have_arrived: true }
    }
}

/// What was wrong although it was delivered; empty if nothing was.
pub type Delivered = Result<String, Undelivered>;

/// How a channel delivers.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Means {
    Mail(Mail),
    Webhook(Webhook),
    Command(Command),
}

impl Means {
    pub fn name(&self) -> &'static str {
        match self {
            Means::Mail(_) => "mail",
            Means::Webhook(_) => "webhook",
            Means::Command(_) => "command",
        }
    }

    /// Where it leads, for people; no secret. Another one has not been told what this one was.
    pub fn target(&self) -> String {
        match self {
            Means::Mail(mail) => mail.target(),
            Means::Webhook(webhook) => webhook.url.target(),
            Means::Command(command) => command.program.clone(),
        }
    }

    pub(crate) async fn deliver(&self, letter: &Letter, head: &str, read: ReadSecret) -> Delivered {
        let work = async {
            match self {
                Means::Mail(mail) => mail.deliver(letter, head, read).await,
                Means::Webhook(webhook) => webhook.deliver(letter, read).await,
                Means::Command(command) => command.deliver(letter).await,
            }
        };
        let seconds = TIME_MAX.as_secs();
        let late = |_| Err(Undelivered::maybe(format!("it has not ended within {seconds} s")));
        tokio::time::timeout(TIME_MAX, work).await.unwrap_or_else(late)
    }
}

/// The secret of a file, without its line end. Files may hang, so a thread of its own reads it.
pub(crate) async fn secret(file: &Path, read: ReadSecret) -> Result<String, Undelivered> {
    let path = file.to_owned();
    let text = tokio::task::spawn_blocking(move || read(&path)).await.map_err(|error| error.to_string());
    let text = text.and_then(|text| text);
    let text = text.map_err(|why| Undelivered::surely(format!("{}: {why}", file.display())))?;
    let line = text.strip_suffix('\n').unwrap_or(&text);
    Ok(line.strip_suffix('\r').unwrap_or(line).to_owned())
}

/// Certificates of authorities that a file has, in PEM.
pub(crate) async fn authorities(file: PathBuf) -> Result<Vec<u8>, Undelivered> {
    const BYTES_MAX: u64 = 4 << 20;
    let name = file.display().to_string();
    let read = move || {
        use std::io::Read;
        let mut bytes = Vec::new();
        std::fs::File::open(&file)?.take(BYTES_MAX).read_to_end(&mut bytes)?;
        Ok::<Vec<u8>, std::io::Error>(bytes)
    };
    let result = tokio::task::spawn_blocking(read).await.map_err(std::io::Error::other);
    result.and_then(|result| result).map_err(|error| Undelivered::surely(format!("{name}: {error}")))
}
