//! `tangelo serve`: the shards on their cores, the control plane beside them, and an orderly end.
//!
//! ```text
//!   configuration, state directory (locked), API socket (locked)
//!   shards ── ShardMessage::Control ◄── mailbox ◄── API server
//!      ├─ catalog, answers ─► keeper ─► state directory, then the API
//!      └─ events ─► follower ─► journal in the state directory, then the log and the API
//! ```
//!
//! Starting fails with one line that says what is wrong and what to do; once hosts are served, only a signal or
//! a bug ends it. If it is killed at any moment, nothing that was acknowledged is lost.

mod alerts;
mod check;
mod cores;
mod drive_health;
mod fence_agent;
mod finder;
mod floating;
mod follower;
mod holders;
mod keeper;
mod locate;
mod log;
mod mailbox;
mod memory;
mod notify;
mod own_files;
mod own_problems;
mod pair;

use std::fmt;
use std::path::Path;
use std::process::ExitCode;
use std::sync::{Arc, Mutex};

use ::floating::{Floating, Stage};
use api::{ArrayStatus, Command, CommandError, DriveContent, PortalOptions, Reply};
use base::HeadId;
use control::array::Array;
use control::config::{Config, NamedDrive};
use control::events::{EventLog, Journal, KeptEvents};
use control::server::{Doors, Listeners};
use control::state::StateDirectory;
use engine::{Shard, ShardMessage, StartParameters};
use setup::{AloneAfterPair, PairFile};
use tokio::runtime::Runtime;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::{oneshot, watch};
use uring::Shards;

use self::alerts::HeadAlerts;
use self::drive_health::HealthWatch;
use self::finder::find_drives;
use self::follower::Follower;
use self::keeper::Keeper;
use self::mailbox::EngineArray;
use self::own_files::OwnFiles;
use self::own_problems::OwnProblems;
use crate::cli;

/// Why the daemon does not run, in a line or two for people.
#[derive(Debug)]
struct Failure(String);

impl<E: fmt::Display> From<E> for Failure {
    fn from(error: E) -> Failure {
        Failure(error.to_string())
    }
}

/// Runs the array until a signal ends it. Exit code 0 after an orderly stop, 2 where it could not start.
pub fn run(serve: &cli::Serve) -> ExitCode {
    if serve.check {
        return check::run(serve);
    }
    log::start();
    end_with_any_part();
    match serve_array(serve) {
        Ok(()) => ExitCode::SUCCESS,
        Err(Failure(reason)) => {
            tracing::error!("{reason}");
            ExitCode::from(2)
        }
    }
}

/// A panic ends the whole program in every profile, as it does in a release: a head that lacks a shard serves nobody well.
fn end_with_any_part() {
    let report = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        report(panic);
        std::process::abort();
    }));
}

fn serve_array(serve: &cli::Serve) -> Result<(), Failure> {
    let config = Config::load(serve.config.as_deref())?;
    let state = StateDirectory::open(&config.state_dir)?;
    let saved = state.load_catalog()?;
    let remembered = state.load_drives()?;
    let drives = config.expand_drives(&remembered)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    let listeners = runtime.block_on(Listeners::open(&config))?;
    let signals = runtime.block_on(async { Signals::new() })?;

    holders::report(&drives);
    let (journal, earlier) = Journal::open(&config.state_dir);
    let (pair, alone) = pair_of(&config.state_dir)?;
    let floating = runtime.block_on(async { Arc::new(floating::start(&config)) });
    let head = Head { config, remembered, serve, alone, floating, doors: listeners.doors() };
    let prepared = Prepared { head, state, saved, drives, journal, earlier, listeners, signals };
    match pair {
        Some(pair) => pair::serve(prepared, pair, &runtime)?,
        None => serve_alone(prepared, &runtime)?,
    }
    stop_runtime(runtime);
    tracing::info!("stopped");
    Ok(())
}

/// What this head knows of its pair, or of the one that it was of before it was alone.
fn pair_of(state_dir: &Path) -> Result<(Option<PairFile>, Option<AloneAfterPair>), Failure> {
    match PairFile::load(state_dir)? {
        Some(file) if file.is_forgotten => {
            let alone = setup::finish_forgetting(state_dir)?;
            tracing::info!("this head is alone: the pair that it was of is forgotten");
            Ok((None, Some(alone)))
        }
        Some(file) => Ok((Some(file), None)),
        None => Ok((None, AloneAfterPair::load(state_dir)?)),
    }
}

/// The array of a head that is not one of a pair.
fn serve_alone(prepared: Prepared<'_>, runtime: &Runtime) -> Result<(), Failure> {
    let Prepared { head, state, saved, drives, journal, earlier, listeners, signals } = prepared;
    let newest_event = earlier.newest;
    let id = state.head()?;
    let config = &head.config;
    let keeper = Keeper::start(state, saved.as_deref())?;
    let kept = Kept { keeper: &keeper, saved, newest_event };
    let (mut parameters, is_started) = start_parameters(head.portals(config), &drives, (id, 0), kept);
    parameters.was_paired = head.alone.is_some();
    // the array is to listen on them
    runtime.block_on(head.floating.set_stage(Stage::Held));
    let shards = start_shards(config, parameters)?;
    let mailboxes = shards.mailboxes.clone();
    let send = move |shard: usize, message| {
        mailboxes.get(shard).is_some_and(|mailbox| mailbox.try_send(message).is_ok())
    };
    let array = Arc::new(EngineArray::new(send, keeper, OwnFiles::of(config)));
    let events = Events { journal, log: Arc::new(EventLog::new(earlier)), newest: newest_event };
    runtime.block_on(attend(&head, &drives, listeners, array, events, signals, is_started))?;
    for thread in shards.threads {
        thread.join().expect("a shard that panics ends the process");
    }
    Ok(())
}

/// What earlier runs have left to a start.
struct Kept<'a> {
    keeper: &'a Keeper,
    /// The catalog that this head has kept.
    saved: Option<Vec<u8>>,
    newest_event: u64,
}

/// What the array of a head is started with, in a term of ownership. The receiver learns when it has started.
fn start_parameters(
    portals: Vec<PortalOptions>,
    drives: &[NamedDrive],
    (head, term): (HeadId, u64),
    kept: Kept<'_>,
) -> (StartParameters, oneshot::Receiver<Result<(), CommandError>>) {
    let (started, is_started) = oneshot::channel();
    let parameters = StartParameters {
        portals,
        drives: paths_of(drives),
        head,
        term,
        array_name: array_name(),
        pair: None,
        was_paired: false,
        state: kept.saved.map(bytes::Bytes::from),
        save_state: kept.keeper.save_state(),
        newest_event: kept.newest_event,
        started: kept.keeper.after_saving(started),
    };
    (parameters, is_started)
}

fn paths_of(drives: &[NamedDrive]) -> Vec<String> {
    drives.iter().map(|drive| drive.path.clone()).collect()
}

/// What a start begins with: everything that can be refused before an array runs.
struct Prepared<'a> {
    head: Head<'a>,
    state: StateDirectory,
    /// The catalog that this head has kept.
    saved: Option<Vec<u8>>,
    drives: Vec<NamedDrive>,
    journal: Journal,
    /// The events of earlier runs.
    earlier: KeptEvents,
    listeners: Listeners,
    signals: Signals,
}

/// What this head was started with.
struct Head<'a> {
    config: Config,
    /// Drives that pools were made of here.
    remembered: Vec<String>,
    serve: &'a cli::Serve,
    /// It was one of a pair, and is alone.
    alone: Option<AloneAfterPair>,
    /// Addresses that are with the head that owns the array. A head that is alone has all of them.
    floating: Arc<Floating>,
    /// Who gets in, and the certificate.
    doors: Arc<Doors>,
}

impl Head<'_> {
    /// The portals of a head that is alone.
    fn portals(&self, config: &Config) -> Vec<PortalOptions> {
        pair::portals::of_one_head(config, self.alone.map_or(0, |alone| alone.seat))
    }
}

/// The events of earlier runs, and where further ones go.
struct Events {
    journal: Journal,
    log: Arc<EventLog>,
    /// The number of the newest.
    newest: u64,
}

/// Until a signal ends the daemon; one of them asks it to read its file again.
async fn serve_until_stopped(
    head: &Head<'_>,
    drives: &[NamedDrive],
    array: &Arc<EngineArray>,
    signals: &mut Signals,
    (health, alerts): (&HealthWatch, &HeadAlerts),
) {
    let mut finder = tokio::spawn(find_drives(head.config.clone(), drives.to_vec(), array.clone()));
    loop {
        if !signals.next_or_reload().await {
            finder.abort();
            return;
        }
        notify::notify("RELOADING=1");
        if !fence_agent::fits(head.serve.config.as_deref(), head.config.fence.as_ref()).await {
            notify::notify("READY=1");
            continue;
        }
        match reload_file(head, Some(array), |config| head.portals(config)).await {
            Ok((config, drives)) => {
                finder.abort();
                floating::set(&head.floating, &config);
                head.doors.reload(&config);
                health.reload(&config);
                alerts.reload(&config);
                finder = tokio::spawn(find_drives(config, drives, array.clone()));
            }
            Err(Failure(reason)) => tracing::error!("the configuration stays as it was: {reason}"),
        }
        notify::notify("READY=1");
    }
}

/// Takes over what the head's file says now, as a whole or not at all; a head that has no array does so at the next start of one.
async fn reload_file(
    head: &Head<'_>,
    array: Option<&EngineArray>,
    portals: impl Fn(&Config) -> Vec<PortalOptions>,
) -> Result<(Config, Vec<NamedDrive>), Failure> {
    let config = Config::load(head.serve.config.as_deref())?;
    let before = &head.config;
    let fixed = [
        ("[cores]", config.cores != before.cores),
        ("[api]", config.socket != before.socket || config.tcp != before.tcp),
        ("[web] listen", config.web.listen != before.web.listen),
        ("memory", config.memory_bytes != before.memory_bytes),
        ("state_dir", config.state_dir != before.state_dir),
    ];
    for (key, _) in fixed.iter().filter(|(_, changed)| *changed) {
        tracing::warn!("{key} has changed: that takes effect at the next start");
    }
    let drives = config.expand_drives(&head.remembered)?;
    if let Some(array) = array {
        array.reload(portals(&config), paths_of(&drives)).await.map_err(Failure)?;
    }
    tracing::info!("the configuration has been read again");
    if let Some(array) = array
        && let Ok(Reply::Status(status)) = array.call(Command::Status).await
    {
        report_portal_hosts(&status);
    }
    Ok((config, drives))
}

/// From the start of the shards to their end.
async fn attend(
    head: &Head<'_>,
    drives: &[NamedDrive],
    listeners: Listeners,
    array: Arc<EngineArray>,
    events: Events,
    mut signals: Signals,
    is_started: oneshot::Receiver<Result<(), CommandError>>,
) -> Result<(), Failure> {
    let config = &head.config;
    let (stop, stopped) = watch::channel(false);
    announce(config, &listeners);
    let Events { journal, log, newest } = events;
    let follower = Follower { array: array.clone(), journal, log: log.clone(), stop: stopped.clone() };
    let follower = tokio::spawn(follower.run(newest));
    let own = OwnProblems::new();
    let alerts = HeadAlerts::start(config, array.clone(), own.clone(), &log);
    let api = tokio::spawn(control::server::serve(listeners, array.clone(), log, alerts.clone(), stopped));
    let health = HealthWatch::start(config, array.clone(), own.clone());
    let telling = tokio::spawn(own.keep_telling(array.clone()));
    let started = tokio::select! {
        started = is_started => Some(started),
        () = signals.next() => None,
    };
    let result = match started {
        Some(Ok(Ok(()))) => {
            report_start(&*array, config, drives).await;
            head.floating.set_stage(Stage::Announced).await;
            notify::notify("READY=1");
            let watches = (&health, &*alerts);
            serve_until_stopped(head, drives, &array, &mut signals, watches).await;
            Ok(())
        }
        Some(Ok(Err(error))) => Err(Failure::from(error)),
        Some(Err(_)) => Err(Failure("the shards ended before they had started".to_owned())),
        None => Ok(()),
    };
    notify::notify("STOPPING=1");
    tracing::info!("stopping: sessions are closed and checkpoints written; another signal ends it at once");
    telling.abort();
    let _ = stop.send(true);
    let orderly = async {
        let (shut_down, ..) = tokio::join!(array.shut_down(), api, follower);
        head.floating.set_stage(Stage::Released).await;
        shut_down
    };
    tokio::select! {
        shut_down = orderly => shut_down.and(result.map_err(|failure| failure.0)).map_err(Failure),
        () = signals.next() => {
            tracing::warn!("ended at once; nothing acknowledged is lost");
            std::process::exit(1);
        }
    }
}

/// Says what runs, and how it is reached.
fn announce(config: &Config, listeners: &Listeners) {
    tracing::info!("tangelo {}, API on {}", env!("CARGO_PKG_VERSION"), config.socket.display());
    if let Some(address) = listeners.tcp_address() {
        tracing::info!("API over TCP on {address}, without TLS");
    }
    let fingerprint = listeners.doors().fingerprint().unwrap_or_default();
    for address in listeners.web_addresses() {
        tracing::info!("API over TLS on https://{address}, certificate SHA-256 {fingerprint}");
    }
}

/// Says what the array came up with, and what about the configured drives deserves a look.
async fn report_start(array: &dyn Array, config: &Config, drives: &[NamedDrive]) {
    let Ok(Reply::Status(status)) = array.call(Command::Status).await else { return };
    for portal in &status.portals {
        match portal.error {
            None => tracing::info!("serving iSCSI on {} as {}", portal.address, status.target_name),
            Some(error) => tracing::error!("{} cannot be listened on: {error}", portal.address),
        }
    }
    report_portal_hosts(&status);
    let file = config.file.as_deref().map(|path| path.display().to_string()).unwrap_or_default();
    for drive in &status.drives {
        let named = drives.iter().find(|named| named.path == drive.path);
        let Some(line) = named.and_then(|named| named.line) else { continue };
        let (path, detail) = (&drive.path, &drive.detail);
        match drive.content {
            DriveContent::Blank | DriveContent::Member => {}
            DriveContent::Foreign => tracing::warn!("{file}:{line}: {path} holds {detail}; it is left alone"),
            DriveContent::FutureVersion => {
                tracing::warn!(
                    "{file}:{line}: {path} has a label of a newer Tangelo, or of one from before the first release; it is left alone, install that version"
                );
            }
            DriveContent::Damaged => {
                tracing::warn!("{file}:{line}: {path} has a damaged label: {detail}; it is left alone")
            }
            DriveContent::Unreadable => tracing::warn!("{file}:{line}: {path} cannot be used: {detail}"),
        }
    }
}

/// A portal that is for a host that is not there lets nobody in by that name: a slip of the pen, or a host that comes later.
fn report_portal_hosts(status: &ArrayStatus) {
    for portal in &status.portals {
        let known = |name: &String| status.hosts.iter().any(|host| host.name == *name);
        for name in portal.hosts.iter().filter(|name| !known(name)) {
            tracing::warn!(
                "{} is for host {name}, which is not known: `tangelo host create` makes it known, or correct [listen] iscsi",
                portal.address
            );
        }
    }
}

fn start_shards(config: &Config, parameters: StartParameters) -> Result<Shards<ShardMessage>, Failure> {
    let (count, cores) = cores::of_shards(config)?;
    let memory = memory::of_each_shard(config, count)?;
    let options = uring::Options { cores, ..uring::Options::new(count) };
    // Whichever thread turns out to be shard 0 takes them.
    let parameters = Arc::new(Mutex::new(Some(parameters)));
    let shards = uring::spawn_shards(&options, move |mut env: uring::UringEnv<ShardMessage>| {
        use env::Env;
        let parameters = match env.shard().0 {
            0 => parameters.lock().expect("only shard 0 takes it").take(),
            _ => None,
        };
        let mut shard = Shard::new(env.shard(), env.shards(), parameters, memory);
        while !shard.is_stopped() {
            shard.turn(&mut env, true);
        }
    });
    shards.map_err(|error| cannot_start(&error))
}

fn cannot_start(error: &std::io::Error) -> Failure {
    Failure(format!(
        "the shards cannot start: {error}; io_uring of Linux 5.19 or newer is needed, and must be allowed"
    ))
}

/// A new array is called like the machine it was made on.
pub fn array_name() -> String {
    let system = rustix::system::uname();
    let name = system.nodename().to_string_lossy();
    let short = name.split('.').next().unwrap_or_default();
    match short.parse::<catalog::Name>() {
        Ok(name) => name.to_string(),
        Err(_) => "tangelo".to_owned(),
    }
}

/// Both ways of asking for an orderly stop, and the one of having the head's file read again.
struct Signals {
    terminate: Signal,
    interrupt: Signal,
    hangup: Signal,
}

impl Signals {
    fn new() -> std::io::Result<Signals> {
        let terminate = signal(SignalKind::terminate())?;
        let (interrupt, hangup) = (signal(SignalKind::interrupt())?, signal(SignalKind::hangup())?);
        Ok(Signals { terminate, interrupt, hangup })
    }

    /// `true` where the file is to be read again, `false` where it is time to stop.
    async fn next_or_reload(&mut self) -> bool {
        tokio::select! {
            _ = self.terminate.recv() => false,
            _ = self.interrupt.recv() => false,
            _ = self.hangup.recv() => true,
        }
    }

    async fn next(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}

fn stop_runtime(runtime: Runtime) {
    // Nothing is left on it but clients that do not finish.
    runtime.shutdown_background();
}
