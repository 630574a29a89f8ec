//! The array as a head of a pair reaches it: through its own shards while it owns the array; otherwise commands are refused.

use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use api::{
    Bulk, BulkError, ChangeStep, Command, CommandError, CommandErrorKind, FenceTest, NewBacking, Origin,
    PairForgetting, PairOrder, PairStatus, PairStep, Reply, Upkeep,
};
use control::array::{Answer, Array, BulkAnswer, PairAnswer};
use env::IoError;
use heads::{HeadMail, HeadView, Mail, SharedWish, TwinsError, TwinsWish};
use pair::{HandoverRefusal, Maintenance, RoleName};
use tokio::sync::watch;

use super::super::mailbox::EngineArray;
use super::Ending;
use super::company::Company;
use super::fencing::Fencing;
use super::threads::HeadMailbox;
use super::{forget, twins, view};

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
    fencing: Fencing,
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
        fencing: Fencing,
    ) -> PairArray {
        let (view, engine, waiting) = (Mutex::default(), Mutex::default(), Mutex::default());
        PairArray(Arc::new(Shared {
            company,
            head,
            ending,
            register_trouble,
            fencing,
            view,
            engine,
            waiting,
        }))
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

    pub fn status(&self) -> PairStatus {
        self.0.status()
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
            self.fencing.status(),
        )
    }

    fn waits_for_maintenance(&self) -> bool {
        let status = self.status();
        status.maintenance_since_ms.is_some() && !status.hears_the_other
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
            Some(RoleName::Partner) if self.waits_for_maintenance() => (
                "this head is the partner; the owner is not heard, and there is maintenance, so this head does not take over"
                    .to_owned(),
                "`tangelo pair maintenance off`, also on this head, has it take over if it holds everything",
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

    /// Tells the register, and waits until this head has heard of it.
    async fn set_maintenance(&self, on: bool) -> Result<(), CommandError> {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).map_or(1, |since| since.as_millis() as u64);
        let maintenance = on.then_some(Maintenance { since_ms: since.max(1) });
        let register = setup::set_maintenance(&self.company.file(), maintenance).await.map_err(|error| {
            let hint =
                "`tangelo pair status` names the members of etcd; without two of them nobody takes over";
            CommandError::new(CommandErrorKind::Unavailable, error.to_string(), hint)
        })?;
        self.head.send(Mail::Head(HeadMail::Register(register))).await;
        let until = tokio::time::Instant::now() + SURE_TIME;
        while self.status().maintenance_since_ms.is_some() != on && tokio::time::Instant::now() < until {
            tokio::time::sleep(LOOK).await;
        }
        Ok(())
    }

    async fn hand_over(&self) -> Result<(), HandoverRefusal> {
        let handed = self.head.ask(|head| std::future::ready(head.hand_over())).await;
        handed.unwrap_or(Err(HandoverRefusal::NotServing))
    }

    /// The drives that a command makes use of become what the pool's drives are. Returns what they have become.
    async fn prepare_drives(
        &self,
        wanted: Wanted,
        engine: &EngineArray,
    ) -> Result<Vec<PairStep>, CommandError> {
        let Wanted { drives, force, dry_run, .. } = wanted;
        let is_shared = match &wanted.pool {
            Some(pool) => twins::is_shared(engine, pool).await?,
            None => wanted.shared,
        };
        let steps = match is_shared {
            true => {
                let wish = SharedWish { drives, force, dry_run };
                let made = twins::share(&self.head, wish).await.map_err(|error| refused(&error))?;
                twins::share_steps(made)
            }
            false => {
                let wish = TwinsWish { drives, force, keep: false, dry_run };
                let made = twins::make(&self.head, wish).await.map_err(|error| refused(&error))?;
                twins::twin_steps(made)
            }
        };
        Ok(steps)
    }
}

/// Drives of this head that a command makes use of.
struct Wanted {
    drives: Vec<String>,
    /// Those of them whose content may be lost.
    force: Vec<String>,
    dry_run: bool,
    /// The pool that gets them, if there is one already.
    pool: Option<String>,
    /// Both heads are to see them, if there is none.
    shared: bool,
}

/// The drives of this head that a command makes use of; none for most. Refused: what would be on one head alone.
fn wanted(command: &Command) -> Result<Option<Wanted>, CommandError> {
    let wanted = |pool: &str, drives: &[String], force: &[String], dry_run: &bool| {
        let (drives, force, dry_run) = (drives.to_vec(), force.to_vec(), *dry_run);
        Ok(Some(Wanted { drives, force, dry_run, pool: Some(pool.to_owned()), shared: false }))
    };
    match command {
        Command::PoolCreate { pool, .. } if !pool.across_heads && !pool.shared => Err(CommandError::new(
            CommandErrorKind::Invalid,
            "this array has two heads: a pool on the drives of one of them would be gone with it",
            "add --across-heads: each drive then has a twin on the other head; or --shared, if both heads see the drives",
        )),
        Command::PoolCreate { pool, dry_run } => {
            let (drives, force, dry_run) = (pool.drives.clone(), pool.force.clone(), *dry_run);
            Ok(Some(Wanted { drives, force, dry_run, pool: None, shared: pool.shared }))
        }
        Command::Upkeep { upkeep, dry_run } => match upkeep {
            Upkeep::DriveAdd { pool, drives, force } => wanted(pool, drives, force, dry_run),
            Upkeep::Spare { pool, drives, release: false } => wanted(pool, drives, &[], dry_run),
            Upkeep::DriveReplace { pool, new, force, .. } => {
                let new = std::slice::from_ref(new);
                wanted(pool, new, if *force { new } else { &[] }, dry_run)
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
        TwinsError::NoReservations { .. } => (
            CommandErrorKind::Invalid,
            "use drives that have them (SAS, or NVMe with reservations), or --across-heads".to_owned(),
        ),
        TwinsError::Reserved { path, .. } => (
            CommandErrorKind::InUse,
            format!(
                "if nobody uses it, release it: `sg_persist --out --clear {path}`, with the key of its registrant"
            ),
        ),
        TwinsError::NotSeen { .. } => (
            CommandErrorKind::NotFound,
            "name the same drives in the other head's [drives] paths, and look at its cables".to_owned(),
        ),
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
            let steps = match wanted(&command)? {
                Some(wanted) => shared.prepare_drives(wanted, &engine).await?,
                None => Vec::new(),
            };
            let reply = engine.call_for(command, origin).await?;
            Ok(with_steps(reply, steps))
        })
    }

    fn bulk(&self, shard: u16, bulk: Bulk) -> BulkAnswer {
        let shared = self.0.clone();
        Box::pin(async move {
            let engine = shared.owned().await.ok_or(BulkError::Unavailable)?;
            engine.bulk(shard, bulk).await
        })
    }

    fn convert(&self, pool: String, both_see: bool, dry_run: bool) -> Answer {
        let shared = self.0.clone();
        Box::pin(async move {
            let engine = shared.owned().await.ok_or_else(|| shared.not_the_owner())?;
            let (change, drives) = match both_see {
                true => twins::convert_shared(&engine, &pool, dry_run).await?,
                false => twins::convert(&shared.head, &engine, &pool, dry_run).await?,
            };
            if !dry_run {
                twins::remember(&shared.company.state_dir(), &drives, both_see)?;
                shared.ending.start_again_after(engine);
            }
            Ok(Reply::Changed(change))
        })
    }

    fn test_fence(&self, how: FenceTest, dry_run: bool) -> Answer {
        let shared = self.0.clone();
        Box::pin(async move {
            let look = shared.clone();
            let change = shared.fencing.test(how, dry_run, move || look.status()).await?;
            Ok(Reply::Changed(change))
        })
    }

    fn forget(&self, how: PairForgetting, dry_run: bool) -> Answer {
        let shared = self.0.clone();
        Box::pin(async move {
            let engine = shared.owned().await.ok_or_else(|| shared.not_the_owner())?;
            let change = forget::forget(&shared.company, &engine, &shared.status(), how, dry_run).await?;
            if !dry_run {
                shared.ending.start_again_after(engine);
            }
            Ok(Reply::Changed(change))
        })
    }

    fn pair(&self, order: PairOrder) -> PairAnswer {
        let shared = self.0.clone();
        Box::pin(async move {
            match order {
                PairOrder::Status => {}
                PairOrder::HandOver => {
                    shared.hand_over().await.map_err(|why| not_handed_over(why, &shared))?;
                }
                PairOrder::Maintenance(on) => shared.set_maintenance(on).await?,
            }
            Ok(shared.status())
        })
    }
}

/// The answer also says what the drives have become.
fn with_steps(reply: Reply, steps: Vec<PairStep>) -> Reply {
    match reply {
        Reply::Changed(mut change) => {
            change.steps.extend(steps.into_iter().map(ChangeStep::from));
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
