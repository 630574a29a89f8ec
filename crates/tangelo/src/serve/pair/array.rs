//! The array as a head of a pair reaches it: through its own shards while it owns the array; otherwise commands are refused.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use api::{
    Bulk, BulkError, Command, CommandError, CommandErrorKind, NewBacking, Origin, PairOrder, PairStatus,
    Reply, Upkeep,
};
use control::array::{Answer, Array, BulkAnswer, PairAnswer};
use env::IoError;
use heads::{HeadView, Pairing, TwinsError, TwinsWish};
use pair::{HandoverRefusal, RoleName};
use tokio::sync::watch;

use super::super::mailbox::EngineArray;
use super::Ending;
use super::company::Company;
use super::threads::HeadMailbox;
use super::{twins, view};

/// How long a command waits for this head to be sure that it owns the array, and how often it looks.
const SURE_TIME: Duration = Duration::from_secs(2);
const LOOK: Duration = Duration::from_millis(10);

/// See the header of this file.
pub struct PairArray(Arc<Shared>);

struct Shared {
    company: Company,
    head: HeadMailbox,
    ending: Ending,
    register_trouble: watch::Receiver<String>,
    view: Mutex<Option<HeadView>>,
    engine: Mutex<Option<Arc<EngineArray>>>,
    /// Why the array is not started yet; empty if it need not wait.
    waiting: Mutex<String>,
}

impl PairArray {
    pub fn new(
        company: Company,
        head: HeadMailbox,
        ending: Ending,
        register_trouble: watch::Receiver<String>,
    ) -> PairArray {
        let (view, engine, waiting) = (Mutex::default(), Mutex::default(), Mutex::default());
        PairArray(Arc::new(Shared { company, head, ending, register_trouble, view, engine, waiting }))
    }

    /// The head shows how it is.
    pub fn set_view(&self, new: HeadView) {
        *self.0.view.lock().expect("nobody panics with it") = Some(new);
    }

    /// The array has been started on this head.
    pub fn set_engine(&self, engine: Arc<EngineArray>) {
        *self.0.engine.lock().expect("nobody panics with it") = Some(engine);
    }

    /// The array is not started yet, for this reason. Whether that is another one than before.
    pub fn set_waiting(&self, why: String) -> bool {
        let mut waiting = self.0.waiting.lock().expect("nobody panics with it");
        std::mem::replace(&mut *waiting, why) != *waiting
    }

    pub fn engine(&self) -> Option<Arc<EngineArray>> {
        self.0.engine()
    }

    /// Begins to hand the array over. `Ok`: the process ends when that is done, or given up.
    pub async fn hand_over(&self) -> Result<(), HandoverRefusal> {
        self.0.hand_over().await
    }
}

impl Shared {
    fn engine(&self) -> Option<Arc<EngineArray>> {
        self.engine.lock().expect("nobody panics with it").clone()
    }

    /// The array, if what it says is true: no other head can own it now. An owner whose partner has just died is not sure for a moment.
    async fn owned(&self) -> Option<Arc<EngineArray>> {
        let until = tokio::time::Instant::now() + SURE_TIME;
        while let Some(engine) = self.engine() {
            let view = self.view.lock().expect("nobody panics with it").clone();
            if view.is_some_and(|view| view.answers) {
                return Some(engine);
            }
            if tokio::time::Instant::now() > until {
                return None;
            }
            tokio::time::sleep(LOOK).await;
        }
        None
    }

    fn role(&self) -> Option<RoleName> {
        self.view.lock().expect("nobody panics with it").as_ref().map(|view| view.role)
    }

    fn status(&self) -> PairStatus {
        let view = self.view.lock().expect("nobody panics with it").clone();
        view::status(
            &self.company.file(),
            &self.company.votes(),
            view.as_ref(),
            &self.register_trouble.borrow(),
        )
    }

    fn not_the_owner(&self) -> CommandError {
        let addresses: Vec<String> =
            self.company.file().partner_listen.iter().map(ToString::to_string).collect();
        let waiting = self.waiting.lock().expect("nobody panics with it").clone();
        let (message, hint) = match self.role() {
            Some(RoleName::Owner) if !waiting.is_empty() => (
                format!("this head owns the array, and cannot start it: {waiting}"),
                "bring the drives of the array back; the array then starts by itself",
            ),
            Some(RoleName::Partner) => (
                format!("this head is the partner: the head at {} owns the array", addresses.join(", ")),
                "give the command there; `tangelo pair status` answers here, too",
            ),
            Some(RoleName::Owner) => (
                "this head owns the array, and starts it, or has lost touch with the others".to_owned(),
                "try again in a moment",
            ),
            Some(RoleName::Outside) => (
                "this head is not of the pair any more: the register names two others".to_owned(),
                "use one of those heads",
            ),
            Some(RoleName::Booting) | None => (
                "this head does not know yet whether it owns the array: the register has not answered"
                    .to_owned(),
                "`tangelo pair status` tells more",
            ),
        };
        CommandError::new(CommandErrorKind::Unavailable, message, hint)
    }

    async fn hand_over(&self) -> Result<(), HandoverRefusal> {
        let handed = self.head.ask(|head| std::future::ready(head.hand_over())).await;
        handed.unwrap_or(Err(HandoverRefusal::NotServing))
    }

    async fn make_twins(&self, wish: TwinsWish) -> Result<Vec<Pairing>, CommandError> {
        twins::make(&self.head, wish).await.map_err(|error| refused(&error))
    }
}

/// The drives of this head that a command makes use of; none for most. Refused: what would be on one head alone.
fn wanted(command: &Command) -> Result<Option<TwinsWish>, CommandError> {
    let wanted = |drives: &[String], force: &[String], dry_run: &bool| {
        let (drives, force, dry_run) = (drives.to_vec(), force.to_vec(), *dry_run);
        Ok(Some(TwinsWish { drives, force, keep: false, dry_run }))
    };
    match command {
        Command::PoolCreate { pool, .. } if !pool.across_heads => Err(CommandError::new(
            CommandErrorKind::Invalid,
            "this array has two heads: a pool on the drives of one of them would be gone with it",
            "add --across-heads: each drive then has a twin on the other head",
        )),
        Command::PoolCreate { pool, dry_run } => wanted(&pool.drives, &pool.force, dry_run),
        Command::Upkeep { upkeep, dry_run } => match upkeep {
            Upkeep::DriveAdd { drives, force, .. } => wanted(drives, force, dry_run),
            Upkeep::Spare { drives, release: false, .. } => wanted(drives, &[], dry_run),
            Upkeep::DriveReplace { new, force, .. } => {
                let new = std::slice::from_ref(new);
                wanted(new, if *force { new } else { &[] }, dry_run)
            }
            _ => Ok(None),
        },
        Command::VolumeCreate { volume, .. } if matches!(volume.backing, NewBacking::Raw(_)) => {
            Err(CommandError::new(
                CommandErrorKind::Invalid,
                "this array has two heads: a raw volume would be gone with one of them",
                "make the volume in a pool",
            ))
        }
        _ => Ok(None),
    }
}

pub(super) fn refused(error: &TwinsError) -> CommandError {
    let (kind, hint) = match error {
        TwinsError::NotOwner | TwinsError::Unreachable => {
            (CommandErrorKind::Unavailable, "`tangelo pair status` tells how the two heads are".to_owned())
        }
        TwinsError::Own { error: IoError::Busy, .. } => {
            (CommandErrorKind::InUse, "`tangelo drive list` shows what uses it".to_owned())
        }
        TwinsError::Own { error: IoError::NotFound, .. } => (CommandErrorKind::NotFound, String::new()),
        TwinsError::Own { .. } => (CommandErrorKind::Io, String::new()),
        TwinsError::Holds { path, .. } => {
            (CommandErrorKind::InUse, format!("if nobody needs what is on it, add --force {path}"))
        }
        TwinsError::NoRoom { .. } => (
            CommandErrorKind::Full,
            "add drives to the other head, and name them in its [drives] paths; they must hold nothing"
                .to_owned(),
        ),
        TwinsError::Partner(_) => (CommandErrorKind::Io, String::new()),
    };
    CommandError::new(kind, error.to_string(), hint)
}

impl Array for PairArray {
    fn call_for(&self, command: Command, origin: Origin) -> Answer {
        let shared = self.0.clone();
        if let Command::DrivesFound(paths) = &command {
            let (head, paths) = (shared.head.clone(), paths.clone());
            tokio::spawn(async move { head.run(move |head| head.set_drives(paths)).await });
        }
        // the daemon itself is answered in any case: it looks whether the array starts, and keeps its events
        if origin == Origin::Daemon
            && let Some(engine) = shared.engine()
        {
            return engine.call_for(command, origin);
        }
        Box::pin(async move {
            let engine = shared.owned().await.ok_or_else(|| shared.not_the_owner())?;
            let pairings = match wanted(&command)? {
                Some(wanted) => shared.make_twins(wanted).await?,
                None => Vec::new(),
            };
            let reply = engine.call_for(command, origin).await?;
            Ok(with_pairings(reply, pairings))
        })
    }

    fn bulk(&self, shard: u16, bulk: Bulk) -> BulkAnswer {
        let shared = self.0.clone();
        Box::pin(async move {
            let engine = shared.owned().await.ok_or(BulkError::Unavailable)?;
            engine.bulk(shard, bulk).await
        })
    }

    fn convert(&self, pool: String, dry_run: bool) -> Answer {
        let shared = self.0.clone();
        Box::pin(async move {
            let engine = shared.owned().await.ok_or_else(|| shared.not_the_owner())?;
            let (change, drives) = twins::convert(&shared.head, &engine, &pool, dry_run).await?;
            if !dry_run {
                twins::remember(&shared.company.state_dir(), &drives)?;
                shared.ending.start_again_after(engine);
            }
            Ok(Reply::Changed(change))
        })
    }

    fn pair(&self, order: PairOrder) -> PairAnswer {
        let shared = self.0.clone();
        Box::pin(async move {
            if order == PairOrder::HandOver {
                shared.hand_over().await.map_err(|why| not_handed_over(why, &shared))?;
            }
            Ok(shared.status())
        })
    }
}

/// The answer also says which drives are twins.
fn with_pairings(reply: Reply, pairings: Vec<Pairing>) -> Reply {
    match reply {
        Reply::Changed(mut change) => {
            let line = |pairing: Pairing| {
                format!("the twin of {} is {} of the other head", pairing.own, pairing.partners)
            };
            change.lines.extend(pairings.into_iter().map(line));
            Reply::Changed(change)
        }
        reply => reply,
    }
}

fn not_handed_over(why: HandoverRefusal, shared: &Shared) -> CommandError {
    let (message, hint) = match why {
        HandoverRefusal::NotOwner => return shared.not_the_owner(),
        HandoverRefusal::NotServing => {
            ("this head does not serve yet, or hands over already", "try again in a moment")
        }
        HandoverRefusal::NotInSync => (
            "the other head does not hold everything yet",
            "wait until `tangelo pair status` says that the partner is in sync",
        ),
        HandoverRefusal::PartnerSilent => {
            ("the other head does not answer", "look at that head, and at the network between them")
        }
        HandoverRefusal::RegisterSilent => {
            ("the register does not answer", "look at the members of etcd: `tangelo pair status` names them")
        }
    };
    CommandError::new(CommandErrorKind::Unavailable, message, hint)
}
