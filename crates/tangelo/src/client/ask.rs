//! Changes that cannot be undone: a dry run first, then a question, then the change.

use std::io::{BufRead, IsTerminal, Write};

use api::InWords;
use control::client::{ClientError, Server};
use control::rest::Changed;
use serde_json::Value;

use super::{Failure, Shown, show};
use crate::cli;

/// A request that changes something.
pub(super) enum Ask {
    Post(String, Value),
    Patch(String, Value),
    Delete(String),
}

impl Ask {
    pub(super) fn post<T: serde::Serialize>(path: impl Into<String>, body: &T) -> Ask {
        Ask::Post(path.into(), serde_json::to_value(body).expect("requests can be said in JSON"))
    }

    pub(super) fn patch<T: serde::Serialize>(path: impl Into<String>, body: &T) -> Ask {
        Ask::Patch(path.into(), serde_json::to_value(body).expect("requests can be said in JSON"))
    }

    async fn send(&self, dry_run: bool, server: &Server) -> Result<Changed, ClientError> {
        let with = |path: &String| {
            let sign = if path.contains('?') { '&' } else { '?' };
            if dry_run { format!("{path}{sign}dry_run=true") } else { path.clone() }
        };
        match self {
            Ask::Post(path, body) => server.post(&with(path), body).await,
            Ask::Patch(path, body) => server.patch(&with(path), body).await,
            Ask::Delete(path) => server.delete(&with(path)).await,
        }
    }

    /// Sends what can be undone.
    pub(super) async fn change(&self, change: &cli::Change, server: &Server) -> Result<Shown, Failure> {
        Ok(show(self.send(change.dry_run, server).await?))
    }

    /// Sends what cannot be undone, when whoever asks for it has said that it is meant.
    pub(super) async fn destroy(&self, how: &cli::Destruction, server: &Server) -> Result<Shown, Failure> {
        if !how.dry_run && !how.yes {
            if !std::io::stdin().is_terminal() {
                return Err(Failure::Usage(NOBODY_TO_ASK.to_owned()));
            }
            must_confirm(&self.send(true, server).await?)?;
        }
        Ok(show(self.send(how.dry_run, server).await?))
    }
}

/// What is said where a change cannot be undone, and there is no terminal.
pub(super) const NOBODY_TO_ASK: &str =
    "there is no undo for this: add --yes to do it, or --dry-run to see what it would do";

/// Asks at the terminal, where there is one.
pub(super) fn must_confirm(preview: &Changed) -> Result<(), Failure> {
    if !std::io::stdin().is_terminal() {
        return Err(Failure::Usage(NOBODY_TO_ASK.to_owned()));
    }
    match confirmed(preview) {
        true => Ok(()),
        false => Err(Failure::Usage("nothing was changed".to_owned())),
    }
}

/// Asks at the terminal.
fn confirmed(preview: &Changed) -> bool {
    let mut terminal = std::io::stderr();
    let hosts = match preview.hosts_affected.as_slice() {
        [] => String::new(),
        hosts => format!("Hosts affected: {}\n", hosts.join(", ")),
    };
    let lines: String = preview.steps.iter().map(|step| format!("  {}\n", step.text())).collect();
    let asked = write!(terminal, "{lines}{hosts}There is no undo. Type \"yes\" to go on: ");
    let mut answer = String::new();
    asked.and_then(|()| terminal.flush()).is_ok()
        && std::io::stdin().lock().read_line(&mut answer).is_ok()
        && answer.trim() == "yes"
}
