//! The journal of events in the head's state directory: a line of JSON for each event, in two files of a limited size.
//!
//! ```text
//!   append ─► events.jsonl ── full ─► events.old.jsonl ── the next time ─► gone
//! ```
//!
//! An event is durable when `append` has returned without an error. A crash can leave half a line at the end; it is cut
//! off at the next start. A journal that cannot be written stops nothing: what it could not take is kept for the next
//! attempt, up to a limit.
//!
//! What always holds: no number is given to two events. A run that did not end with `daemon-stopped` in the journal may
//! have used numbers that the journal does not have. The next start skips as many as such a run can have used.

use std::collections::VecDeque;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use api::{Event, EventCode, IoError, JournalTrouble};
use base::limits::{EVENT_NUMBERS_SKIPPED, EVENTS_HELD_MAX, JOURNAL_FILE_BYTES_MAX};
use serde::Deserialize;

/// What earlier runs have left.
#[derive(Default, Debug)]
pub struct KeptEvents {
    pub events: Vec<Event>,
    /// No event of an earlier run has a higher number; 0 if there was none.
    pub newest: u64,
}

/// See the module's words.
#[derive(Debug)]
pub struct Journal {
    path: PathBuf,
    old: PathBuf,
    directory: PathBuf,
    /// Open for writing, unless something went wrong.
    file: Option<File>,
    /// Length of the file's whole lines.
    bytes: u64,
    /// Lines that could not be written yet.
    unwritten: VecDeque<String>,
}

/// What every line has, whatever version of the program wrote it.
#[derive(Deserialize)]
struct Numbered {
    sequence: u64,
    code: String,
}

impl Journal {
    /// Reads what earlier runs have left. What cannot be read is left out; what cannot be written is reported by the
    /// first attempt.
    pub fn open(directory: &Path) -> (Journal, KeptEvents) {
        let (path, old) = (directory.join("events.jsonl"), directory.join("events.old.jsonl"));
        let mut earlier = KeptEvents::default();
        let (_, old_is_complete) = read_lines(&old, &mut earlier);
        let (bytes, is_complete) = read_lines(&path, &mut earlier);
        // a file that was just begun follows one that a running daemon has filled
        if !is_complete || bytes == 0 && !old_is_complete {
            earlier.newest += EVENT_NUMBERS_SKIPPED;
        }
        let directory = directory.to_owned();
        (Journal { path, old, directory, file: None, bytes, unwritten: VecDeque::new() }, earlier)
    }

    /// Writes these events, and those that could not be written before, and makes them durable.
    pub fn append(&mut self, events: &[Event]) -> Result<(), JournalTrouble> {
        let line = |event| serde_json::to_string(event).expect("events can be said in JSON") + "\n";
        self.unwritten.extend(events.iter().map(line));
        let excess = self.unwritten.len().saturating_sub(EVENTS_HELD_MAX);
        self.unwritten.drain(..excess);
        if self.unwritten.is_empty() {
            return Ok(());
        }
        self.write().map_err(|error| {
            self.file = None;
            JournalTrouble { path: self.path.display().to_string(), error: io_error(&error) }
        })
    }

    fn write(&mut self) -> io::Result<()> {
        if self.bytes >= JOURNAL_FILE_BYTES_MAX {
            self.file = None;
            fs::rename(&self.path, &self.old)?;
            self.bytes = 0;
        }
        let mut file = match self.file.take() {
            Some(file) => file,
            None => self.open_for_writing()?,
        };
        let text: String = self.unwritten.iter().map(String::as_str).collect();
        file.write_all(text.as_bytes())?;
        file.sync_data()?;
        self.file = Some(file);
        self.bytes += text.len() as u64;
        self.unwritten.clear();
        Ok(())
    }

    /// Behind the last whole line.
    fn open_for_writing(&self) -> io::Result<File> {
        let mut options = OpenOptions::new();
        let mut file = options.write(true).create(true).truncate(false).mode(0o600).open(&self.path)?;
        file.set_len(self.bytes)?;
        file.seek(SeekFrom::Start(self.bytes))?;
        File::open(&self.directory)?.sync_all()?;
        Ok(file)
    }
}

fn io_error(error: &io::Error) -> IoError {
    match error.kind() {
        io::ErrorKind::NotFound => IoError::NotFound,
        io::ErrorKind::PermissionDenied => IoError::PermissionDenied,
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge => {
            IoError::NoSpace
        }
        io::ErrorKind::ReadOnlyFilesystem => IoError::ReadOnly,
        _ => error.raw_os_error().map_or(IoError::Media, IoError::Other),
    }
}

/// Adds a file's events. Returns how many bytes its whole lines have, and whether the run that wrote the last one has
/// ended with it; this also holds if there is no such file.
fn read_lines(path: &Path, earlier: &mut KeptEvents) -> (u64, bool) {
    let mut bytes = Vec::new();
    let read =
        File::open(path).and_then(|file| file.take(2 * JOURNAL_FILE_BYTES_MAX).read_to_end(&mut bytes));
    if let Err(error) = read {
        return (0, error.kind() == io::ErrorKind::NotFound);
    }
    let stopped = EventCode::DaemonStopped.to_string();
    let mut is_complete = bytes.is_empty();
    let whole = bytes.iter().rposition(|&byte| byte == b'\n').map_or(0, |last| last + 1);
    for line in bytes[..whole].split(|&byte| byte == b'\n') {
        let Ok(Numbered { sequence, code }) = serde_json::from_slice(line) else { continue };
        if sequence <= earlier.newest {
            continue;
        }
        earlier.newest = sequence;
        is_complete = code == stopped;
        // an event of another version of the program is counted and not shown
        earlier.events.extend(serde_json::from_slice::<Event>(line));
    }
    (whole as u64, is_complete && whole == bytes.len())
}

#[cfg(test)]
mod tests {
    use api::{EventFacts, Subject};

    use super::super::tests::event;
    use super::*;

    fn numbers(directory: &Path) -> (Vec<u64>, u64) {
        let (_, earlier) = Journal::open(directory);
        // these runs end without a word
        (earlier.events.iter().map(|event| event.sequence).collect(), earlier.newest % EVENT_NUMBERS_SKIPPED)
    }

    #[test]
    fn what_was_appended_is_there_at_the_next_start() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path();
        assert_eq!(numbers(path), (vec![], 0));
        let (mut journal, _) = Journal::open(path);
        journal.append(&[event(1), event(2)]).unwrap();
        journal.append(&[event(3)]).unwrap();
        assert_eq!(numbers(path), (vec![1, 2, 3], 3));
        let (mut journal, earlier) = Journal::open(path);
        assert_eq!(earlier.events[1], event(2));
        journal.append(&[event(4)]).unwrap();
        assert_eq!(numbers(path), (vec![1, 2, 3, 4], 4));
    }

    /// A crash at any byte of a write.
    #[test]
    fn half_a_line_is_cut_off() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path();
        let file = path.join("events.jsonl");
        Journal::open(path).0.append(&[event(1)]).unwrap();
        let first = fs::read(&file).unwrap();
        Journal::open(path).0.append(&[event(2)]).unwrap();
        let both = fs::read(&file).unwrap();
        for length in first.len()..both.len() {
            fs::write(&file, &both[..length]).unwrap();
            assert_eq!(numbers(path), (vec![1], 1), "{length}");
            Journal::open(path).0.append(&[event(2), event(3)]).unwrap();
            assert_eq!(numbers(path), (vec![1, 2, 3], 3), "{length}");
        }
    }

    #[test]
    fn rubbish_and_events_of_other_versions_are_passed_over() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path();
        Journal::open(path).0.append(&[event(1)]).unwrap();
        let mut bytes = fs::read(path.join("events.jsonl")).unwrap();
        bytes.extend([0; 50]);
        bytes.extend(b"\n{\"sequence\": 2, \"code\": \"of-tomorrow\"}\n\n[]\n");
        fs::write(path.join("events.jsonl"), bytes).unwrap();
        assert_eq!(numbers(path), (vec![1], 2));
        Journal::open(path).0.append(&[event(3)]).unwrap();
        assert_eq!(numbers(path), (vec![1, 3], 3));
    }

    #[test]
    fn the_size_is_bounded() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path();
        let (mut journal, _) = Journal::open(path);
        let length = |name: &str| fs::metadata(path.join(name)).map_or(0, |file| file.len());
        let mut sequence = 0;
        while length("events.old.jsonl") == 0 || length("events.jsonl") < 1 << 20 {
            let events: Vec<Event> = (1..=1_000).map(|number| event(sequence + number)).collect();
            sequence += 1_000;
            journal.append(&events).unwrap();
        }
        let (events, newest) = numbers(path);
        assert_eq!((newest, *events.last().unwrap()), (sequence, sequence));
        assert!(events.windows(2).all(|pair| pair[1] == pair[0] + 1), "no gap between the files");
        assert!(length("events.old.jsonl") < JOURNAL_FILE_BYTES_MAX + (1 << 20));
        for _ in 0..40 {
            let events: Vec<Event> = (1..=1_000).map(|number| event(sequence + number)).collect();
            sequence += 1_000;
            journal.append(&events).unwrap();
        }
        let total = length("events.jsonl") + length("events.old.jsonl");
        assert!(total < 2 * JOURNAL_FILE_BYTES_MAX + (2 << 20), "{total}");
    }

    #[test]
    fn what_could_not_be_written_is_written_later() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path();
        let in_the_way = path.join("events.jsonl");
        fs::create_dir(&in_the_way).unwrap();
        let (mut journal, _) = Journal::open(path);
        let trouble = journal.append(&[event(1)]).unwrap_err();
        assert_eq!(trouble.path, in_the_way.display().to_string());
        assert!(journal.append(&[]).is_err(), "it is tried again");
        fs::remove_dir(&in_the_way).unwrap();
        journal.append(&[event(2)]).unwrap();
        assert_eq!(numbers(path), (vec![1, 2], 2));
        assert_eq!(journal.append(&[]), Ok(()));
    }

    #[test]
    fn numbers_that_the_journal_does_not_have_are_not_used_again() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path();
        let newest = || Journal::open(path).1.newest;
        let stopped = |sequence| Event {
            facts: EventFacts::DaemonStopped { version: "1".to_owned() },
            subject: Subject::Array,
            ..event(sequence)
        };
        assert_eq!(newest(), 0);
        Journal::open(path).0.append(&[event(1), stopped(2)]).unwrap();
        assert_eq!(newest(), 2, "it has all numbers");
        // the journal fails: readers see 4 and 5, then the daemon is killed
        let (mut journal, _) = Journal::open(path);
        journal.append(&[event(3)]).unwrap();
        journal.file = Some(OpenOptions::new().write(true).open("/dev/full").unwrap());
        journal.append(&[event(4), event(5)]).unwrap_err();
        drop(journal);
        let first = 3 + EVENT_NUMBERS_SKIPPED + 1;
        assert_eq!(newest() + 1, first);
        Journal::open(path).0.append(&[event(first), stopped(first + 1)]).unwrap();
        assert_eq!(newest(), first + 1);
        // the first file is full, and the daemon is killed while it begins the second
        fs::rename(path.join("events.jsonl"), path.join("events.old.jsonl")).unwrap();
        assert_eq!(newest(), first + 1);
        let mut file = OpenOptions::new().append(true).open(path.join("events.old.jsonl")).unwrap();
        file.write_all((serde_json::to_string(&event(first + 2)).unwrap() + "\n").as_bytes()).unwrap();
        assert_eq!(newest(), first + 2 + EVENT_NUMBERS_SKIPPED);
        // a file that cannot be read
        fs::create_dir(path.join("events.jsonl")).unwrap();
        assert_eq!(newest(), first + 2 + EVENT_NUMBERS_SKIPPED);
    }

    /// A full disk takes part of a line: what was written of it is overwritten.
    #[test]
    fn a_full_disk_is_survived() {
        let directory = tempfile::tempdir().unwrap();
        let (mut journal, _) = Journal::open(directory.path());
        journal.append(&[event(1)]).unwrap();
        journal.file = Some(OpenOptions::new().write(true).open("/dev/full").unwrap());
        let trouble = journal.append(&[event(2)]).unwrap_err();
        assert_eq!(trouble.error, IoError::NoSpace, "{trouble:?}");
        let mut file = OpenOptions::new().append(true).open(directory.path().join("events.jsonl")).unwrap();
        file.write_all(b"{\"sequ").unwrap();
        journal.append(&[]).unwrap();
        assert_eq!(numbers(directory.path()), (vec![1, 2], 2));
    }
}
