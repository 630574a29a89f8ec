//! Keeps the head's copy of the catalog, on a thread of its own so that no shard waits for a disk.
//!
//! Messages of shard 0 arrive in order: a catalog to save, then the answer to the command that changed it. So an answer
//! is sent only when the copy is durable, or it reports that the copy is not.

use std::io;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};

use api::{CommandError, CommandErrorKind, Reply};
use bytes::Bytes;
use control::state::StateDirectory;
use engine::Saving;
use tokio::sync::oneshot;

type Outcome = Result<Reply, CommandError>;

enum Message {
    /// The newest catalog.
    Save,
    /// The catalog that is saved is of an earlier term: it is set aside.
    Forget,
    Remember(Vec<String>),
    Answer(Outcome, oneshot::Sender<Outcome>),
    /// Anything else that has to wait its turn.
    Then(Box<dyn FnOnce() + Send>),
}

/// A catalog that is to be saved, and who waits for that. A newer one takes its place.
#[derive(Default)]
struct Newest(Mutex<Option<(Bytes, Vec<Saving>)>>);

impl Newest {
    /// Whether the keeper is to be told: it does not know of one yet.
    fn put(&self, catalog: Bytes) -> (Saving, bool) {
        let mut newest = self.0.lock().expect("nobody panics with it");
        let saving = Saving::under_way();
        let (_, mut waiting) = newest.take().unwrap_or_default();
        let is_first = waiting.is_empty();
        // those for which nobody waits need not be told; one stays for the catalog itself
        waiting.retain(|saving| !saving.is_forgotten());
        waiting.push(saving.clone());
        *newest = Some((catalog, waiting));
        (saving, is_first)
    }

    fn take(&self) -> Option<(Bytes, Vec<Saving>)> {
        self.0.lock().expect("nobody panics with it").take()
    }
}

/// The way to the keeper's thread, which ends with the last clone of it. What waits there is bounded: one catalog, and the
/// answers to commands at work.
#[derive(Clone)]
pub struct Keeper {
    messages: Sender<Message>,
    newest: Arc<Newest>,
}

impl Keeper {
    /// Starts the thread. `saved` is what the directory holds now.
    pub fn start(directory: StateDirectory, saved: Option<&[u8]>) -> io::Result<Keeper> {
        let (messages, received) = channel();
        let saved = saved.map(Bytes::copy_from_slice);
        let path = directory.catalog_path();
        let newest = Arc::new(Newest::default());
        let work = Work { directory, newest: newest.clone(), saved, path, failed: None };
        std::thread::Builder::new().name("keeper".to_owned()).spawn(move || work.run(&received))?;
        Ok(Keeper { messages, newest })
    }

    /// For shard 0: takes a catalog to save.
    pub fn save_state(&self) -> Box<dyn Fn(Bytes) -> Saving + Send> {
        let keeper = self.clone();
        Box::new(move |catalog| {
            let (saving, is_first) = keeper.newest.put(catalog);
            if is_first {
                keeper.send(Message::Save);
            }
            saving
        })
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

    /// Another head owns the array: what is saved becomes old.
    pub fn forget(&self) {
        self.send(Message::Forget);
    }

    fn send(&self, message: Message) {
        self.messages.send(message).expect("the keeper's thread ends last");
    }
}

struct Work {
    directory: StateDirectory,
    newest: Arc<Newest>,
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
                Message::Save => {
                    if let Some((catalog, waiting)) = self.newest.take() {
                        self.save(catalog);
                        waiting.iter().for_each(|saving| saving.finish(self.failed.is_none()));
                    }
                }
                Message::Forget => self.forget(),
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

    /// Where this fails, the next start may use it: only where no pool is there.
    fn forget(&mut self) {
        self.saved = None;
        if let Err(error) = self.directory.set_catalog_aside() {
            tracing::error!("the catalog of an earlier term could not be set aside: {error}");
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
    use api::Change;

    fn changed(dry_run: bool) -> Outcome {
        Ok(Reply::Changed(Change { dry_run, steps: vec![], hosts_affected: vec![], made: None }))
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
        drop(keeper.save_state()(Bytes::from_static(b"one")));
        assert_eq!(ask(&keeper, changed(false)), changed(false));
        assert_eq!(std::fs::read(directory.path().join("catalog.json")).unwrap(), b"one");
    }

    /// However many changes come while the disk is slow, one catalog waits, and who waits is told of it.
    #[test]
    fn what_waits_is_bounded() {
        let newest = Newest::default();
        let catalog = |number: u32| Bytes::from(number.to_string());
        let (first, tells) = newest.put(catalog(0));
        assert!(tells);
        for number in 1..10_000 {
            assert!(!newest.put(catalog(number)).1, "the keeper knows");
        }
        let (saved, waiting) = newest.take().unwrap();
        assert_eq!(saved, catalog(9_999));
        assert!(waiting.len() <= 3, "{}", waiting.len());
        assert!(!first.is_forgotten(), "whoever waits is told");
        assert!(newest.put(catalog(1)).1, "the next one is told");
    }

    #[test]
    fn a_catalog_of_an_earlier_term_is_set_aside() {
        let directory = tempfile::tempdir().unwrap();
        let keeper = Keeper::start(StateDirectory::open(directory.path()).unwrap(), None).unwrap();
        drop(keeper.save_state()(Bytes::from_static(b"old")));
        keeper.forget();
        assert_eq!(ask(&keeper, changed(false)), changed(false));
        assert!(!directory.path().join("catalog.json").exists());
        assert_eq!(std::fs::read(directory.path().join("catalog.earlier.json")).unwrap(), b"old");
        // the same again is saved again
        drop(keeper.save_state()(Bytes::from_static(b"old")));
        assert_eq!(ask(&keeper, changed(false)), changed(false));
        assert_eq!(std::fs::read(directory.path().join("catalog.json")).unwrap(), b"old");
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
        drop(keeper.save_state()(Bytes::from_static(b"one")));
        let error = ask(&keeper, changed(false)).unwrap_err();
        assert!(error.message.contains("could not be saved"), "{error}");
        assert_eq!(ask(&keeper, changed(true)), changed(true), "a dry run has nothing to save");
        std::fs::create_dir(&path).unwrap();
        drop(keeper.save_state()(Bytes::from_static(b"one")));
        assert_eq!(ask(&keeper, changed(false)), changed(false));
        assert_eq!(std::fs::read(path.join("catalog.json")).unwrap(), b"one");
    }
}
