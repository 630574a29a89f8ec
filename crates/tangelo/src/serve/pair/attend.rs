//! Attends to a head of a pair: starts and stops the array as the head wishes, serves the API, follows signals.

use std::sync::Arc;
use std::time::Duration;

use ::floating::{Floating, Stage};
use api::{Command, Health, PortalOptions, Reply, VolumeBacking};
use control::array::Array;
use control::config::{Config, NamedDrive};
use control::events::EventLog;
use control::server::Doors;
use engine::{PairedArray, PoolsAbsent, ShardMessage};
use heads::{HeadMail, Mail, MirrorOptions};
use pair::{CommitRule, Decision, Term};
use setup::PairFile;
use tokio::sync::mpsc::UnboundedSender;
use tokio::sync::watch;
use uring::Mailbox;

use super::super::alerts::HeadAlerts;
use super::super::drive_health::HealthWatch;
use super::super::finder::find_drives;
use super::super::follower::Follower;
use super::super::keeper::Keeper;
use super::super::mailbox::EngineArray;
use super::super::own_files::OwnFiles;
use super::super::own_problems::OwnProblems;
use super::super::{
    Failure, Kept, Prepared, announce, fence_agent, floating as addresses, notify, paths_of, reload_file,
    report_start, start_parameters,
};
use super::array::PairArray;
use super::company::Company;
use super::fencing::Fencing;
use super::seat::Wish;
use super::threads::{HeadMailbox, Threads};
use super::{Ending, asking, portals, problems, twins};

/// How long a handover may take when this process is to stop.
const HANDOVER_TIME_MAX: Duration = Duration::from_secs(20);

/// How often the array is asked to listen at the partner's portals.
const LISTEN_TRIES: u32 = 120;

/// How often it is looked whether all pools are there.
const WHOLE_LOOK: Duration = Duration::from_millis(500);

/// Until this process is to end.
pub async fn run(
    prepared: Prepared<'_>,
    file: PairFile,
    mut threads: Threads,
    ending: &Ending,
) -> Result<(), Failure> {
    let Prepared { mut head, state, saved, mut drives, journal, earlier, listeners, mut signals } = prepared;
    let newest_event = earlier.newest;
    let log = Arc::new(EventLog::new(earlier));
    let office = Office::open(&head, file, &mut threads, (ending, &log));
    let Office { company, array, floating, alerts, .. } = &office;
    let (_stop, stopped) = watch::channel(false);
    announce(&head.config, &listeners);
    let api = control::server::serve(listeners, array.clone(), log.clone(), alerts.clone(), stopped.clone());
    tokio::spawn(api);
    let mut finder = tokio::spawn(find_drives(head.config.clone(), drives.clone(), array.clone()));
    let keeper = Keeper::start(state, saved.as_deref())?;
    let mut start = Some((saved, journal, newest_event, log, stopped));
    let (checked, mut checks) = tokio::sync::mpsc::unbounded_channel();
    notify::notify("READY=1");
    loop {
        tokio::select! {
            wish = threads.wishes.recv() => match wish {
                Some(Wish::Start(term, rule)) => {
                    let Some((saved, journal, newest_event, log, stopped)) = start.take() else { continue };
                    twins::make_remembered(&head.config.state_dir, &threads.head).await;
                    // the array is to listen on them
                    floating.set_stage(Stage::Held).await;
                    let own = Own { head: &head, file: company.file(), array, floating };
                    let follower = Follower { array: array.clone(), journal, log, stop: stopped };
                    let kept = Kept { keeper: &keeper, saved, newest_event };
                    own.start_array(&mut threads, term, rule, kept, follower)?;
                }
                Some(Wish::Stop) => {
                    tokio::spawn(stop_for_head(array.clone(), threads.head.clone(), floating.clone()));
                }
                Some(Wish::ForgetCatalog) => {
                    keeper.forget();
                    start.iter_mut().for_each(|(saved, ..)| *saved = None);
                }
                Some(Wish::Note(decision)) => office.note(decision),
                Some(Wish::Show(view)) => array.set_view(view),
                Some(Wish::Portals(portals)) => {
                    if company.learn_portals(&portals) {
                        let all = portals::of_array(&head.config, &company.file());
                        tokio::spawn(listen_there(array.clone(), all, paths_of(&drives)));
                    }
                }
                None => return Err(Failure("the head's thread has ended".to_owned())),
            },
            reload = signals.next_or_reload() => {
                if !reload {
                    break;
                }
                office.check_file(&head, checked.clone());
            }
            Some(is_fit) = checks.recv() => {
                if is_fit && let Some((config, found)) = read_file_again(&head, company, array, &threads).await {
                    finder.abort();
                    finder = tokio::spawn(find_drives(config.clone(), found.clone(), array.clone()));
                    office.reload(&config, &head.doors);
                    (head.config, drives) = (config, found);
                }
            }
        }
    }
    notify::notify("STOPPING=1");
    ending.for_good();
    stop(&office, &mut threads, &mut signals).await
}

/// What works for this head beside its thread and its shards.
struct Office {
    company: Company,
    array: Arc<PairArray>,
    fencing: Fencing,
    /// Addresses that are with the owner.
    floating: Arc<Floating>,
    health: HealthWatch,
    alerts: Arc<HeadAlerts>,
}

impl Office {
    fn open(
        this: &super::super::Head<'_>,
        file: PairFile,
        threads: &mut Threads,
        (ending, log): (&Ending, &EventLog),
    ) -> Office {
        let (trouble, register_trouble) = watch::channel(String::new());
        let (_, none) = tokio::sync::mpsc::unbounded_channel();
        let questions = std::mem::replace(&mut threads.questions, none);
        let company = Company::new(this.config.state_dir.clone(), file, threads.partner.clone());
        tokio::spawn(asking::keep_asking(company.clone(), questions, threads.head.clone(), trouble));
        let (fencing, head) = (Fencing::new(&this.config), threads.head.clone());
        let array = PairArray::new(company.clone(), head, ending.clone(), register_trouble, fencing.clone());
        let array = Arc::new(array);
        company.keep(&array);
        let own = OwnProblems::new();
        tokio::spawn(problems::keep_looking(array.clone(), own.clone()));
        let health = HealthWatch::start(&this.config, array.clone(), own.clone());
        let alerts = HeadAlerts::start(&this.config, array.clone(), own.clone(), log);
        tokio::spawn(own.keep_telling(array.clone()));
        let look = array.clone();
        tokio::spawn(fencing.clone().keep(move || look.status()));
        Office { company, array, fencing, floating: this.floating.clone(), health, alerts }
    }

    /// What the file says now takes effect.
    fn reload(&self, config: &Config, doors: &Doors) {
        tokio::spawn(self.fencing.clone().set_config(config.clone()));
        addresses::set(&self.floating, config);
        self.health.reload(config);
        self.alerts.reload(config);
        doors.reload(config);
    }

    fn note(&self, decision: Decision) {
        tell(decision);
        if decision == Decision::TookOver {
            let array = self.array.clone();
            tokio::spawn(self.fencing.clone().after_takeover(move || array.status()));
        }
    }

    /// Before the file is read again, its fence agent is asked, which may take long. Nobody waits for that.
    fn check_file(&self, head: &super::super::Head<'_>, checked: UnboundedSender<bool>) {
        let (path, before) = (head.serve.config.clone(), head.config.fence.clone());
        tokio::spawn(async move {
            // whoever is told ends with the process
            let _ended = checked.send(fence_agent::fits(path.as_deref(), before.as_ref()).await);
        });
    }
}

/// The configuration file is read again, whichever head owns the array. `None`: it stays as it was.
async fn read_file_again(
    head: &super::super::Head<'_>,
    company: &Company,
    array: &PairArray,
    threads: &Threads,
) -> Option<(Config, Vec<NamedDrive>)> {
    let file = company.file();
    let all = |config: &Config| portals::of_array(config, &file);
    match reload_file(head, array.engine().as_deref(), all).await {
        Ok((config, found)) => {
            threads.portals.set(portals::of_this_head(&config, &file));
            let paths = paths_of(&found);
            threads.head.run(move |head| head.set_drives(paths)).await;
            Some((config, found))
        }
        Err(Failure(reason)) => {
            tracing::error!("the configuration stays as it was: {reason}");
            None
        }
    }
}

/// What a head of a pair starts the array with.
struct Own<'a> {
    head: &'a super::super::Head<'a>,
    file: PairFile,
    array: &'a Arc<PairArray>,
    floating: &'a Arc<Floating>,
}

impl Own<'_> {
    fn start_array(
        &self,
        threads: &mut Threads,
        term: Term,
        rule: CommitRule,
        kept: Kept<'_>,
        follower: Follower,
    ) -> Result<(), Failure> {
        tracing::info!("this head owns the array in term {}, and starts it", term.0);
        let (keeper, newest_event) = (kept.keeper, kept.newest_event);
        let config = self.head.config.clone();
        let drives = config.expand_drives(&self.head.remembered)?;
        let portals = portals::of_array(&config, &self.file);
        let (mut parameters, is_started) = start_parameters(portals, &drives, (self.file.head, term.0), kept);
        parameters.pair = Some(self.paired_array(threads, term));
        let options = MirrorOptions {
            partner: threads.partner.clone(),
            rule,
            tolerated: 0,
            // a pool may be absent
            is_whole: false,
        };
        let shards = threads.shards.clone();
        let send = move |shard: usize, message| {
            shards.get(shard).is_some_and(|shard| shard.try_send(Mail::Engine(message)).is_ok())
        };
        let engine = Arc::new(EngineArray::new(send, keeper.clone(), OwnFiles::of(&config)));
        threads.start_array(term, options, parameters);
        self.array.set_engine(engine.clone());
        tokio::spawn(follower.run(newest_event));
        let (head, shard_0) = (threads.head.clone(), threads.shards[0].clone());
        let (array, floating) = (self.array.clone(), self.floating.clone());
        tokio::spawn(async move {
            match is_started.await {
                Ok(Ok(())) => {
                    array.set_waiting(String::new());
                    head.send(Mail::Head(HeadMail::Started(term))).await;
                    floating.set_stage(Stage::Announced).await;
                    report_start(&*engine, &config, &drives).await;
                    tell_when_whole(&engine, &shard_0).await;
                }
                Ok(Err(error)) => {
                    tracing::error!("the array does not start: {error}");
                    head.send(Mail::Head(HeadMail::Failed(term))).await;
                }
                Err(_) => {
                    tracing::error!("the shards ended before they had started");
                    head.send(Mail::Head(HeadMail::Failed(term))).await;
                }
            }
        });
        Ok(())
    }

    /// Which array is started, and what is done as long as its pools are not there: the log says why, once, and the head is told.
    fn paired_array(&self, threads: &Threads, term: Term) -> PairedArray {
        let (head, array, runtime) =
            (threads.head.clone(), self.array.clone(), tokio::runtime::Handle::current());
        let waits = move |absent: PoolsAbsent| {
            if array.set_waiting(absent.to_string()) {
                tracing::error!("the array is not started: {absent}");
            }
            let head = head.clone();
            runtime.spawn(async move { head.send(Mail::Head(HeadMail::Waits(term))).await });
        };
        PairedArray { array: self.file.array, waits: Box::new(waits) }
    }
}

/// As long as a pool of the catalog is not there, or a volume is raw, the partner could not serve everything: it must not join.
async fn tell_when_whole(engine: &EngineArray, shard_0: &Mailbox<Mail<ShardMessage>>) {
    loop {
        if let Ok(Reply::Status(status)) = engine.call(Command::Status).await
            && status.pools.iter().all(|pool| pool.health != Health::Offline)
            && !status.volumes.iter().any(|volume| matches!(volume.backing, VolumeBacking::Raw(_)))
            && shard_0.try_send(Mail::Whole).is_ok()
        {
            return;
        }
        tokio::time::sleep(WHOLE_LOOK).await;
    }
}

/// The array listens at the partner's portals, too. One that starts or stops is asked again.
async fn listen_there(array: Arc<PairArray>, portals: Vec<PortalOptions>, drives: Vec<String>) {
    let Some(engine) = array.engine() else { return };
    for _ in 0..LISTEN_TRIES {
        match engine.reload(portals.clone(), drives.clone()).await {
            Ok(()) => return tracing::info!("the other head's portals are known, and it forwards"),
            Err(_) => tokio::time::sleep(WHOLE_LOOK).await,
        }
    }
    tracing::warn!("the other head's portals could not be taken over: hosts do not see them");
}

/// Stops the array in order, if it runs here.
async fn stop_array(array: &PairArray) -> bool {
    let Some(engine) = array.engine() else { return true };
    match engine.shut_down().await {
        Ok(()) => true,
        Err(why) => {
            tracing::error!("{why}");
            false
        }
    }
}

/// The head has asked for it, and is told.
async fn stop_for_head(array: Arc<PairArray>, head: HeadMailbox, floating: Arc<Floating>) {
    if stop_array(&array).await {
        floating.set_stage(Stage::Released).await;
        head.send(Mail::Head(HeadMail::Stopped)).await;
    }
}

/// Hands over if that can be done, and stops the array otherwise. Another signal ends it at once.
async fn stop(
    office: &Office,
    threads: &mut Threads,
    signals: &mut super::super::Signals,
) -> Result<(), Failure> {
    let Office { array, floating, .. } = office;
    if array.engine().is_none() {
        return Ok(());
    }
    let orderly = async {
        if array.status().maintenance_since_ms.is_some() {
            tracing::info!(
                "stopping without a handover, because there is maintenance: sessions are closed and checkpoints written"
            );
            stop_array(array).await;
            floating.set_stage(Stage::Released).await;
            return Ok(());
        }
        match array.hand_over().await {
            Ok(()) => {
                tracing::info!("stopping: the array is handed over to the other head");
                let until = tokio::time::Instant::now() + HANDOVER_TIME_MAX;
                while let Ok(Some(wish)) = tokio::time::timeout_at(until, threads.wishes.recv()).await {
                    match wish {
                        Wish::Stop => {
                            stop_for_head(array.clone(), threads.head.clone(), floating.clone()).await;
                        }
                        Wish::Note(decision) => tell(decision),
                        _ => {}
                    }
                }
                // the process ends when the other head has it
                Err(Failure("the handover did not end in time".to_owned()))
            }
            Err(why) => {
                tracing::info!(
                    "stopping without a handover ({why:?}): sessions are closed and checkpoints written"
                );
                stop_array(array).await;
                floating.set_stage(Stage::Released).await;
                Ok(())
            }
        }
    };
    tokio::select! {
        result = orderly => result,
        () = signals.next() => {
            tracing::warn!("ended at once; nothing acknowledged is lost");
            std::process::exit(1);
        }
    }
}

/// A decision of the head, in the daemon's log.
fn tell(decision: Decision) {
    match decision {
        Decision::TookOver => tracing::warn!("the other head is silent: this one takes over"),
        Decision::Restarted => tracing::info!("this head is the owner, after a start"),
        Decision::ReceivedHandover => tracing::info!("the other head has handed the array over"),
        Decision::GotBack => {
            tracing::warn!("the other head cannot serve: this one has the array again")
        }
        Decision::LostOwnership => tracing::warn!("the other head owns the array now"),
        Decision::Forgotten => tracing::error!("the register does not name this head any more"),
        Decision::WentAlone => tracing::warn!("the partner is silent: this head goes on alone"),
        Decision::BeganCopy => tracing::info!("the partner is back, and gets what it lacks"),
        Decision::BeganJoin => tracing::info!("the partner has nearly everything, and joins"),
        Decision::GaveUpJoin => tracing::warn!("the partner did not follow; it gets what it lacks again"),
        Decision::Joined => tracing::info!("the partner is in sync: it can take over"),
        Decision::BeganHandover => tracing::info!("the array is being handed over"),
        Decision::GaveUpHandover => tracing::warn!("the handover was given up"),
        Decision::GaveBack => {
            tracing::warn!("this head cannot serve, and the other one can: it is to have the array again")
        }
        Decision::AskedToTakeOver => {
            tracing::warn!("the owner is silent: the register is asked for the array")
        }
        Decision::WithdrewTakeover => {
            tracing::info!("the register does not answer, and the owner is heard again: no takeover");
        }
        Decision::HeldBack => {
            tracing::warn!(
                "the owner is silent, and this head does not take over: there is maintenance; `tangelo pair maintenance off` ends it"
            );
        }
        Decision::CorrectedOldTerm => tracing::info!("the other head was told of a later term"),
    }
}
