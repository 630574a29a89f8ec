//! Runs the channels that the head's file names: starts, changes, lists and tries them.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use api::{AlertChannel, AlertTestResult, ProblemFacts, Subject};
use tokio::sync::{Notify, Semaphore, watch};
use tokio::task::{AbortHandle, JoinSet};

use crate::channel::Channel;
use crate::deliver::{Delivered, Means, ReadSecret};
use crate::heartbeat::Heartbeat;
use crate::letter::Letter;
use crate::rules::{Clock, Rules, View};
use crate::store::{self, AllKept, Kept};
use crate::teller::Teller;

/// How often it is looked what is wrong, if nothing says that it has changed.
const LOOK_EVERY: Duration = Duration::from_secs(20);
/// The shortest time between two looks, however much happens.
const LOOK_PAUSE: Duration = Duration::from_millis(500);

/// Who knows what is wrong.
pub trait Source: Send + Sync {
    /// Answers within about ten seconds, whatever the array does.
    fn view(&self) -> Pin<Box<dyn Future<Output = View> + Send + '_>>;
}

/// What the head's file says.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Settings {
    pub rules: Rules,
    /// At most one of each kind.
    pub means: Vec<Means>,
    pub heartbeat: Option<Heartbeat>,
}

/// One that runs.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Line {
    Channel(Means),
    Heartbeat(Heartbeat),
}

impl Line {
    fn name(&self) -> &'static str {
        match self {
            Line::Channel(means) => means.name(),
            Line::Heartbeat(_) => "heartbeat",
        }
    }

    fn target(&self) -> String {
        match self {
            Line::Channel(means) => means.target(),
            Line::Heartbeat(heartbeat) => heartbeat.url.target(),
        }
    }

    async fn test(&self, shared: &Shared) -> Delivered {
        match self {
            Line::Channel(means) => {
                let letter = Letter::test(&shared.head, wall_ms());
                means.deliver(&letter, &shared.head, shared.read).await
            }
            Line::Heartbeat(heartbeat) => heartbeat.beat().await.map(|()| String::new()),
        }
    }
}

struct Running {
    line: Line,
    /// Has it try at once.
    retry: Arc<Notify>,
    task: AbortHandle,
}

type Report = Box<dyn Fn(Vec<(Subject, ProblemFacts)>) + Send + Sync>;

/// What all channels share.
pub(crate) struct Shared {
    pub head: String,
    pub read: ReadSecret,
    state_dir: PathBuf,
    began: Instant,
    list: Mutex<BTreeMap<&'static str, AlertChannel>>,
    problems: Mutex<BTreeMap<&'static str, ProblemFacts>>,
    report: Report,
    kept: Arc<tokio::sync::Mutex<AllKept>>,
}

impl Shared {
    pub(crate) fn clock(&self) -> Clock {
        Clock { wall_ms: wall_ms(), steady_ms: self.began.elapsed().as_millis() as u64 }
    }

    /// Changes what the list says of a channel.
    pub(crate) fn note(&self, name: &str, change: impl FnOnce(&mut AlertChannel)) {
        if let Some(channel) = lock(&self.list).get_mut(name) {
            change(channel);
        }
    }

    /// Whether nothing gets through a channel.
    pub(crate) fn set_problem(&self, name: &'static str, problem: Option<ProblemFacts>) {
        // a channel that is gone may still be at its last turn
        let problem = problem.filter(|_| lock(&self.list).contains_key(name));
        let mut problems = lock(&self.problems);
        let before = problems.clone();
        match problem {
            Some(facts) => _ = problems.insert(name, facts),
            None => _ = problems.remove(name),
        }
        if *problems != before {
            let all =
                problems.iter().map(|(name, facts)| (Subject::Channel((*name).to_owned()), facts.clone()));
            (self.report)(all.collect());
        }
    }

    /// Stores what a channel was told; `None`: it is gone. Durable when this returns, unless the log says why not.
    pub(crate) async fn keep(&self, name: &str, kept: Option<Kept>) {
        // one at a time, in order, also if nobody waits for it any more
        let mut all = self.kept.clone().lock_owned().await;
        match kept {
            Some(kept) => _ = all.insert(name.to_owned(), kept),
            None => _ = all.remove(name),
        }
        let state_dir = self.state_dir.clone();
        let saved = tokio::task::spawn_blocking(move || store::save(&state_dir, &all)).await;
        if let Ok(Err(error)) = saved {
            tracing::warn!(
                "what alerts have told cannot be stored, and is told again after a restart: {error}"
            );
        }
    }
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().expect("nobody panics with it")
}

pub(crate) fn wall_ms() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as u64)
}

/// See the header of this file.
pub struct Office {
    shared: Arc<Shared>,
    source: Arc<dyn Source>,
    views: watch::Receiver<Option<Arc<View>>>,
    look: Arc<Notify>,
    rules: watch::Sender<Rules>,
    running: Mutex<BTreeMap<&'static str, Running>>,
    tests: Semaphore,
}

/// What an office begins with.
pub struct Start {
    /// What messages call this head.
    pub head: String,
    pub state_dir: PathBuf,
    pub read_secret: ReadSecret,
    /// Gets all problems of channels, after each change.
    pub report: Report,
}

impl Office {
    /// Runs on the runtime of the caller, and ends with it.
    pub fn start(start: Start, source: Arc<dyn Source>, settings: Settings) -> Office {
        let Start { head, state_dir, read_secret, report } = start;
        let (kept, why) = store::load(&state_dir);
        if let Some(why) = why {
            tracing::warn!("{why}");
        }
        let shared = Arc::new(Shared {
            head,
            read: read_secret,
            state_dir,
            began: Instant::now(),
            list: Mutex::default(),
            problems: Mutex::default(),
            report,
            kept: Arc::new(tokio::sync::Mutex::new(kept)),
        });
        let (tell, views) = watch::channel(None);
        let look = Arc::new(Notify::new());
        tokio::spawn(keep_looking(source.clone(), tell, look.clone()));
        let rules = watch::Sender::new(settings.rules.clone());
        let (running, tests) = (Mutex::default(), Semaphore::new(1));
        let office = Office { shared, source, views, look, rules, running, tests };
        office.set(settings);
        office
    }

    /// Something may be wrong now, or well.
    pub fn look_now(&self) {
        self.look.notify_one();
    }

    /// The head's file was read again. Channels that lead where they led go on.
    pub fn set(&self, settings: Settings) {
        let Settings { rules, means, heartbeat } = settings;
        self.rules.send_replace(rules);
        let lines = means.into_iter().map(Line::Channel).chain(heartbeat.map(Line::Heartbeat));
        let wanted: BTreeMap<&'static str, Line> = lines.map(|line| (line.name(), line)).collect();
        let mut running = lock(&self.running);
        let is_same = |name: &&'static str, running: &Running| wanted.get(name) == Some(&running.line);
        let (stay, go): (BTreeMap<_, _>, BTreeMap<_, _>) =
            std::mem::take(&mut *running).into_iter().partition(|(name, running)| is_same(name, running));
        *running = stay;
        for (name, gone) in go {
            gone.task.abort();
            lock(&self.shared.list).remove(name);
            self.shared.set_problem(name, None);
            if !wanted.contains_key(name) {
                let shared = self.shared.clone();
                tokio::spawn(async move { shared.keep(name, None).await });
            }
        }
        for (name, line) in wanted {
            if !running.contains_key(name) {
                running.insert(name, self.run(line));
            }
        }
    }

    fn run(&self, line: Line) -> Running {
        let (shared, retry, name) = (self.shared.clone(), Arc::new(Notify::new()), line.name());
        lock(&shared.list).insert(name, listed(name, line.target()));
        let task = match line.clone() {
            Line::Heartbeat(heartbeat) => {
                tokio::spawn(crate::heartbeat::keep_beating(heartbeat, self.source.clone(), shared))
            }
            Line::Channel(means) => {
                let (views, rules) = (self.views.clone(), self.rules.subscribe());
                let own_retry = retry.clone();
                tokio::spawn(async move {
                    let channel = restored(&shared, &means).await;
                    Teller::new(means, channel, shared, rules).run(views, own_retry).await;
                })
            }
        };
        Running { line, retry, task: task.abort_handle() }
    }

    pub fn list(&self) -> Vec<AlertChannel> {
        lock(&self.shared.list).values().cloned().collect()
    }

    /// Sends a test message by one channel, or by each. `None`: another test is under way. An unknown channel has no result.
    pub async fn test(&self, channel: Option<&str>) -> Option<Vec<AlertTestResult>> {
        let _one_at_a_time = self.tests.try_acquire().ok()?;
        let lines: Vec<(Line, Arc<Notify>)> = lock(&self.running)
            .values()
            .filter(|running| channel.is_none_or(|name| name == running.line.name()))
            .map(|running| (running.line.clone(), running.retry.clone()))
            .collect();
        let mut tests = JoinSet::new();
        for (line, retry) in lines {
            let shared = self.shared.clone();
            tests.spawn(async move {
                let began = Instant::now();
                let delivered = line.test(&shared).await;
                if delivered.is_ok() {
                    // what it could not tell, it can tell now
                    retry.notify_one();
                }
                AlertTestResult {
                    channel: line.name().to_owned(),
                    target: line.target(),
                    delivered: delivered.is_ok(),
                    error: delivered.unwrap_or_else(|undelivered| undelivered.why),
                    took_ms: began.elapsed().as_millis() as u64,
                }
            });
        }
        let mut results = tests.join_all().await;
        results.sort_by(|one, other| one.channel.cmp(&other.channel));
        Some(results)
    }
}

impl Drop for Office {
    fn drop(&mut self) {
        lock(&self.running).values().for_each(|running| running.task.abort());
    }
}

fn listed(name: &str, target: String) -> AlertChannel {
    AlertChannel {
        name: name.to_owned(),
        target,
        delivered_ms: None,
        failing_since_ms: None,
        error: String::new(),
        deliveries: 0,
        failures: 0,
        told: Vec::new(),
    }
}

/// One that leads elsewhere than it did begins anew.
async fn restored(shared: &Shared, means: &Means) -> Channel {
    let kept = shared.kept.lock().await;
    let kept = kept.get(means.name()).filter(|kept| kept.target == means.target()).cloned();
    kept.map_or_else(Channel::default, |kept| Channel::restored(kept.told, kept.sequence))
}

/// Ends when nobody wants to know.
async fn keep_looking(source: Arc<dyn Source>, tell: watch::Sender<Option<Arc<View>>>, look: Arc<Notify>) {
    while !tell.is_closed() {
        tell.send_replace(Some(Arc::new(source.view().await)));
        tokio::time::sleep(LOOK_PAUSE).await;
        tokio::select! {
            () = look.notified() => {}
            () = tokio::time::sleep(LOOK_EVERY) => {}
        }
    }
}
