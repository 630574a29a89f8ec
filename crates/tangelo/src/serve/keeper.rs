//! Keeps the head's copy of the catalog, on a thread of its own so that no shard waits for a disk.
//!
//! What shard 0 says arrives in order: a catalog to save, then the answer to the command that changed it. So an
//! answer goes out only when the copy is safe, or says that it is not.

use std::io;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, Sender, channel};

use bytes::Bytes;
use control::state::StateDirectory;
use engine::{CommandError, CommandErrorKind, Reply};
use tokio::sync::oneshot;

type Outcome = Result<Reply, CommandError>;

enum Message {
    Save(Bytes),
    Remember(Vec<String>),
    Answer(Outcome, oneshot::Sender<Outcome>),
    /// Anything else that has to wait its turn.
    Then(Box<dyn FnOnce() + Send>),
}

/// The way to the keeper's thread, which ends with the last clone of it. What waits there is bounded by the
/// commands at work.
#[derive(Clone)]
pub struct Keeper {
    messages: Sender<Message>,
}

impl Keeper {
    /// Starts the thread. `saved` is what the directory holds now.
    pub fn start(directory: StateDirectory, saved: Option<&[u8]>) -> io::Result<Keeper> {
        let (messages, received) = channel();
        let saved = saved.map(Bytes::copy_from_slice);
        let path = directory.catalog_path();
        let work = Work { directory, saved, path, failed: None };
        std::thread::Builder::new().name("keeper".to_owned()).spawn(move || work.run(&received))?;
        Ok(Keeper { messages })
    }

    /// For shard 0: takes a catalog to save.
    pub fn save_state(&self) -> Box<dyn Fn(Bytes) + Send> {
        let keeper = self.clone();
        Box::new(move |catalog| keeper.send(Message::Save(catalog)))
    }

    /// For shard 0: takes the answer to one command, which makes use of these drives.
    pub fn answer(
        &self,
        to: oneshot::Sender<Outcome>,
        drives: Vec<String>,
    ) -> Box<dyn FnOnce(Outcome) + Send> {
        let keeper = self.clone();
        Box::new(move |outcome| {
            if outcome.is_ok() && !drives.is_empty() {
                keeper.send(Message::Remember(drives));
            }
            keeper.send(Message::Answer(outcome, to));
        })
    }

    /// For shard 0: takes something to be told when everything before it is saved.
    pub fn after_saving<T: Send + 'static>(&self, to: oneshot::Sender<T>) -> Box<dyn FnOnce(T) + Send> {
        let keeper = self.clone();
        Box::new(move |value| {
            // Nobody may be waiting any more; then nobody needs to be told.
            keeper.send(Message::Then(Box::new(move || drop(to.send(value)))));
        })
    }

    fn send(&self, message: Message) {
        self.messages.send(message).expect("the keeper's thread ends last");
    }
}

struct Work {
    directory: StateDirectory,
    /// What the directory holds.
    saved: Option<Bytes>,
    path: PathBuf,
    /// Why the newest catalog is not saved.
    failed: Option<String>,
}

impl Work {
    fn run(mut self, messages: &Receiver<Message>) {
        for message in messages {
            match message {
                Message::Save(catalog) => self.save(catalog),
                Message::Remember(drives) => self.remember(&drives),
                // Nobody may be waiting any more: a client that has left.
                Message::Answer(outcome, to) => drop(to.send(self.qualify(outcome))),
                Message::Then(then) => then(),
            }
        }
    }

    fn save(&mut self, catalog: Bytes) {
        if self.saved.as_ref() == Some(&catalog) {
            return;
        }
        match self.directory.save_catalog(&catalog) {
            Ok(()) => {
                self.saved = Some(catalog);
                self.failed = None;
            }
            Err(error) => {
                tracing::error!("the head's copy of the catalog could not be saved: {error}");
                self.saved = None;
                self.failed = Some(error.to_string());
            }
        }
    }

    /// Where this fails, the pool is made all the same; it is found again where the configuration names its drives.
    fn remember(&self, drives: &[String]) {
        if let Err(error) = self.directory.remember_drives(drives) {
            tracing::error!(
                "the pool's drives could not be remembered, name them in [drives] paths: {error}"
            );
        }
    }

    /// A change whose copy is not safe is no plain success.
    fn qualify(&self, outcome: Outcome) -> Outcome {
        match (&outcome, &self.failed) {
            (Ok(Reply::Changed(change)), Some(reason)) if !change.dry_run => Err(CommandError::new(
                CommandErrorKind::Io,
                format!("the change is in effect, but the head's copy of it could not be saved: {reason}"),
                format!(
                    "make room for {}; without a pool, changes since are lost at the next start",
                    self.path.display()
                ),
            )),
            _ => outcome,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use engine::command::Change;

    fn changed(dry_run: bool) -> Outcome {
        Ok(Reply::Changed(Change { dry_run, lines: vec![], hosts_affected: vec![], made: None }))
    }

    fn ask(keeper: &Keeper, outcome: Outcome) -> Outcome {
        let (to, from) = oneshot::channel();
        keeper.answer(to, vec![])(outcome);
        from.blocking_recv().unwrap()
    }

    #[test]
    fn an_answer_comes_when_the_copy_is_safe() {
        let directory = tempfile::tempdir().unwrap();
        let keeper = Keeper::start(StateDirectory::open(directory.path()).unwrap(), None).unwrap();
        keeper.save_state()(Bytes::from_static(b"one"));
        assert_eq!(ask(&keeper, changed(false)), changed(false));
        assert_eq!(std::fs::read(directory.path().join("catalog.json")).unwrap(), b"one");
    }

    #[test]
    fn drives_of_a_command_that_was_carried_out_are_remembered() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("state");
        let keeper = Keeper::start(StateDirectory::open(&path).unwrap(), None).unwrap();
        let refused = Err(CommandError::new(CommandErrorKind::Invalid, "no", ""));
        for (outcome, drive, expected) in [(refused, "/a", ""), (changed(false), "/b", "/b\n")] {
            let (to, from) = oneshot::channel();
            keeper.answer(to, vec![drive.to_owned()])(outcome.clone());
            assert_eq!(from.blocking_recv().unwrap(), outcome);
            assert_eq!(std::fs::read_to_string(path.join("drives")).unwrap_or_default(), expected);
        }
    }

    #[test]
    fn a_copy_that_cannot_be_saved_is_said() {
        let parent = tempfile::tempdir().unwrap();
        let path = parent.path().join("state");
        let keeper = Keeper::start(StateDirectory::open(&path).unwrap(), None).unwrap();
        std::fs::remove_dir_all(&path).unwrap();
        keeper.save_state()(Bytes::from_static(b"one"));
        let error = ask(&keeper, changed(false)).unwrap_err();
        assert!(error.message.contains("could not be saved"), "{error}");
        assert_eq!(ask(&keeper, changed(true)), changed(true), "a dry run has nothing to save");
        std::fs::create_dir(&path).unwrap();
        keeper.save_state()(Bytes::from_static(b"one"));
        assert_eq!(ask(&keeper, changed(false)), changed(false));
        assert_eq!(std::fs::read(path.join("catalog.json")).unwrap(), b"one");
    }
}
