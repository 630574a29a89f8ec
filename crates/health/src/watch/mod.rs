//! Which drive is asked when, and what is told of all of them.
//!
//! Drives are asked one after the other, spread over the interval. The list of drives is asked for anew every few seconds, so a drive
//! that joins a pool is watched soon. Between the rounds, the temperature alone is read where the system knows it.

mod drive;

use std::collections::BTreeMap;
use std::future::Future;
use std::path::PathBuf;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use api::{DriveHealth, HealthUnread, KnownDrive, ProblemFacts, Subject};
use base::crc32c;
use base::limits::CONFIGURED_DRIVES_MAX;
use tokio::sync::watch;
use tokio::time::Instant;

use self::drive::Drive;
use crate::ask;
use crate::device::{Roots, Target};
use crate::history::History;

/// How often it is looked whether something is due, and the list of drives is asked for.
const LOOK: Duration = Duration::from_millis(500);
/// Drives that are asked, one after the other, until there is a report.
const AT_ONCE: usize = 8;
const LIST_EVERY: Duration = Duration::from_secs(5);
/// How often the temperature alone is read.
const HEAT_EVERY: Duration = Duration::from_secs(60);
/// The first round of a drive is within this time.
const FIRST_WITHIN: Duration = Duration::from_secs(60);
/// How often the history is stored, if it has changed.
const SAVE_EVERY: Duration = Duration::from_secs(3600);

/// What the head's file says of it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Options {
    /// The program; `None`: it is not used.
    pub smartctl: Option<String>,
    pub every: Duration,
    pub time: Duration,
    /// The device of a drive where it is another one than its path: a node, or `TYPE NODE`.
    pub devices: BTreeMap<String, String>,
    /// Where the history is kept.
    pub state_dir: PathBuf,
}

/// Who knows the drives.
pub trait DriveList: Send {
    /// `None`: there is no array here now.
    fn list(&self) -> impl Future<Output = Option<Vec<KnownDrive>>> + Send;
}

/// All that is known.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Report {
    /// Of drives that the array uses.
    pub problems: Vec<(Subject, ProblemFacts)>,
    /// By path.
    pub health: BTreeMap<String, DriveHealth>,
}

/// For ever. `report` gets everything anew after each change.
pub async fn keep(
    mut options: watch::Receiver<Options>,
    list: impl DriveList,
    roots: Roots,
    report: impl Fn(Report) + Send,
) {
    let first = options.borrow_and_update().clone();
    let mut watch = Watch::load(first, roots).await;
    let mut listed: Option<Instant> = None;
    let mut told = None;
    loop {
        if options.has_changed().unwrap_or(false) {
            watch.set_options(options.borrow_and_update().clone());
        }
        if listed.is_none_or(|listed| listed.elapsed() >= LIST_EVERY) {
            listed = Some(Instant::now());
            if let Some(drives) = list.list().await {
                watch.set_drives(drives);
            }
        }
        watch.look().await;
        let now = watch.report();
        if told.as_ref() != Some(&now) {
            report(now.clone());
            told = Some(now);
        }
        tokio::time::sleep(LOOK).await;
    }
}

struct Watch {
    options: Options,
    roots: Roots,
    drives: BTreeMap<String, Drive>,
    history: History,
    is_history_new: bool,
    saved: Instant,
    /// smartctl was not there when it was last called.
    lacks_smartctl: bool,
}

fn clock_ms() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as u64)
}

/// Spreads drives over a time, in an order that has nothing to do with that of their bays.
fn offset(path: &str, within: Duration) -> Duration {
    within.mul_f64(f64::from(crc32c(path.as_bytes())) / f64::from(u32::MAX))
}

impl Watch {
    async fn load(options: Options, roots: Roots) -> Watch {
        let state_dir = options.state_dir.clone();
        let loaded = tokio::task::spawn_blocking(move || History::load(&state_dir)).await;
        let (history, why) = loaded.unwrap_or_default();
        if let Some(why) = why {
            tracing::warn!("{why}");
        }
        Watch {
            options,
            roots,
            drives: BTreeMap::new(),
            history,
            is_history_new: false,
            saved: Instant::now(),
            lacks_smartctl: false,
        }
    }

    /// What is asked otherwise now is asked soon.
    fn set_options(&mut self, options: Options) {
        let now = Instant::now();
        for (path, drive) in &mut self.drives {
            drive.due = now + offset(path, options.every.min(FIRST_WITHIN));
        }
        self.lacks_smartctl &= options.smartctl.is_some();
        self.options = options;
    }

    fn set_drives(&mut self, known: Vec<KnownDrive>) {
        let within = self.options.every.min(FIRST_WITHIN);
        self.drives.retain(|path, _| known.iter().any(|known| known.path == *path));
        for KnownDrive { path, is_used } in known.into_iter().take(CONFIGURED_DRIVES_MAX) {
            let due = Instant::now() + offset(&path, within);
            self.drives.entry(path).or_insert_with(|| Drive::new(due)).is_used = is_used;
        }
    }

    /// Asks the drives that have been due for longest, a few of them, and stores the history now and then.
    async fn look(&mut self) {
        for _ in 0..AT_ONCE {
            self.ask_next().await;
        }
        if self.is_history_new && self.saved.elapsed() >= SAVE_EVERY {
            self.save().await;
        }
    }

    async fn ask_next(&mut self) {
        let now = Instant::now();
        let due = self.drives.iter().filter(|(_, drive)| drive.next(HEAT_EVERY) <= now);
        let path = due.min_by_key(|(_, drive)| drive.next(HEAT_EVERY)).map(|(path, _)| path.clone());
        if let Some(path) = path {
            let mut drive = self.drives.remove(&path).expect("it is one of them");
            self.ask(&path, &mut drive).await;
            self.drives.insert(path, drive);
        }
    }

    async fn save(&mut self) {
        (self.is_history_new, self.saved) = (false, Instant::now());
        let (history, state_dir) = (self.history.clone(), self.options.state_dir.clone());
        let saved = tokio::task::spawn_blocking(move || history.save(&state_dir)).await;
        if let Ok(Err(error)) = saved {
            tracing::warn!("the history of drives' wear cannot be stored: {error}");
        }
    }

    async fn ask(&mut self, path: &str, drive: &mut Drive) {
        let is_round = drive.due <= Instant::now();
        drive.heat_read = Instant::now();
        if is_round {
            drive.due = Instant::now() + self.options.every;
        }
        if drive.gate.is_closed() {
            if is_round {
                drive.on_unread(HealthUnread::StillRunning);
            }
            return;
        }
        let Some(system) = ask::system(path, &self.options.devices, &self.roots, &drive.gate).await else {
            return drive.on_unread(HealthUnread::TimedOut { seconds: 5 });
        };
        let reading = match (&system.target, &self.options.smartctl) {
            (Target::Device { node, kind, .. }, Some(program)) if is_round => {
                let with_logs = drive.wants_logs();
                let how = ask::Smartctl { program, time: self.options.time, with_logs };
                let answer = ask::smartctl(how, node, kind.as_deref(), &drive.gate).await;
                self.lacks_smartctl = answer == Err(HealthUnread::NotInstalled);
                Some(answer)
            }
            _ => None,
        };
        drive.is_virtual = system.target == Target::Virtual;
        if is_round && reading.is_none() {
            drive.on_not_asked();
        }
        if let Some(Ok(reading)) = &reading {
            drive.earlier_media_errors =
                self.history.points(reading).last().and_then(|point| point.media_errors);
            drive.runs_out = crate::wear::runs_out(self.history.points(reading), reading, clock_ms());
        }
        drive.on_answer(reading, system.heat, system.link, clock_ms());
        if is_round && let Some(reading) = drive.last_reading() {
            self.is_history_new |= self.history.note(reading, clock_ms());
        }
    }

    fn report(&self) -> Report {
        let mut report = Report::default();
        let (mut asks, used) = (false, self.drives.iter().filter(|(_, drive)| drive.is_used));
        for (path, drive) in used {
            asks |= !drive.is_virtual;
            let problems = drive.problems().into_iter().map(|facts| (Subject::drive(path), facts));
            report.problems.extend(problems);
        }
        if let Some(program) = self.options.smartctl.clone()
            && self.lacks_smartctl
            && asks
        {
            report.problems.push((Subject::Array, ProblemFacts::HealthUnwatched { program }));
        }
        let known = self.drives.iter().filter_map(|(path, drive)| Some((path.clone(), drive.health()?)));
        report.health = known.collect();
        report
    }
}

#[cfg(test)]
mod tests;
