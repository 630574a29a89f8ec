//! Two heads under the array: each has drives of its own, and the owner's are mirrored to the partner's.
//!
//! Who owns is decided here by one value that is always known, in place of `pair` and its register: what this checks is that both
//! heads hold what the array has acknowledged. When the owner has ended while the partner was in sync, the array mostly starts on
//! the partner's drives; else on its own again.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use base::{ArrayId, BLOCK_BYTES, HeadId, Nanos, ShardId};
use engine::ShardMessage;
use heads::{Identity, Mail, MirrorEnv, MirrorOptions, Mirrored, Partner, PartnerAddress, Report, make_twin};
use mirror::{RECORD_BYTES, Synchrony, TwinId};
use pair::{CommitRule, LinkKey, Start, StoreEvent, StoreOrder, Term};
use task::Io;

use super::engine_shard::ArrayEnv;
use crate::counts::counted;
use crate::drive::{DriveNumber, DriveOptions};
use crate::environment::Outside;
use crate::prng::Prng;
use crate::process::{SharedTaskShard, Simulation};
use crate::world::{ProcessId, World};

/// The machines of the two heads.
const MACHINES: [u16; 2] = [0, 2];
const HEADS: [HeadId; 2] = [HeadId(1), HeadId(2)];
const PARTNER: &str = "10.0.0.2:3261";
/// Lives that a partner has between two starts of the owner: when it is killed, the next one follows.
const LIVES: usize = 4;
/// How often somebody looks whether there is something to do.
const LOOK: Nanos = Nanos::from_micros(200);

/// How the owner stands to its partner.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Phase {
    Alone,
    Joining,
    InSync,
}

counted! {
    /// What runs of two heads have met.
    Seen: "two heads: " {
        InSync = "in sync",
        TookOver = "a takeover",
        StartedAgain = "the owner started again, alone",
        Left = "the partner left",
        Returned = "the partner returned",
        BriefCut = "a cut that was so short that the partner stayed",
        PartnerKilled = "the partner killed",
        PartnerLostPower = "the partner without power",
        Unfit = "a partner that could not stay",
    }
}

/// Process, worlds of its shards, way in for commands, way in for decisions.
type Owner = (ProcessId, Vec<ArrayEnv>, Outside<ShardMessage>, Outside<Mail<ShardMessage>>);

struct Life {
    process: ProcessId,
    shard: SharedTaskShard<()>,
    partner: Rc<Partner>,
}

/// What the partner's lives and the one who decides share.
struct Common {
    phase: Cell<Phase>,
    reports: RefCell<VecDeque<Report>>,
    /// The life of the partner that serves.
    life: Cell<usize>,
    /// The owner has opened its pools, so it uses all the drives that it has.
    recovered: RefCell<Arc<AtomicBool>>,
}

/// See the header of this file.
pub struct TwoHeads {
    world: World,
    /// Paths of each side's drives.
    sides: [Vec<String>; 2],
    numbers: [Vec<DriveNumber>; 2],
    owner: usize,
    term: u64,
    common: Rc<Common>,
    lives: Vec<Life>,
    starts: u128,
    made: bool,
    /// The partner may have lost what its drives had not flushed.
    lost_power: bool,
}

impl TwoHeads {
    /// The second head gets drives like those of the first one.
    pub fn new(world: &World, drives: &[DriveOptions], own_numbers: &[DriveNumber]) -> TwoHeads {
        let own = drives.iter().map(|options| options.path.clone()).collect();
        let twin = |options: &DriveOptions| {
            let path = format!("{}-twin", options.path);
            let options = DriveOptions { path: path.clone(), machine: MACHINES[1], ..options.clone() };
            (path, world.add_drive(options))
        };
        let (twins, numbers) = drives.iter().map(twin).unzip();
        let (phase, life) = (Cell::new(Phase::Alone), Cell::new(0));
        TwoHeads {
            world: world.clone(),
            sides: [own, twins],
            numbers: [own_numbers.to_vec(), numbers],
            owner: 0,
            term: 0,
            common: Rc::new(Common {
                phase,
                reports: RefCell::default(),
                life,
                recovered: RefCell::default(),
            }),
            lives: Vec::new(),
            starts: 0,
            made: false,
            lost_power: false,
        }
    }

    /// The machine of the owner.
    pub fn machine(&self) -> u16 {
        MACHINES[self.owner]
    }

    /// Whether what drives had not flushed may be gone although the owner's power was not.
    pub fn may_have_lost_caches(&self) -> bool {
        self.lost_power
    }

    /// To be set when the owner's array has started.
    pub fn recovered(&self) -> Arc<AtomicBool> {
        self.common.recovered.borrow().clone()
    }

    /// Paths that the owner is to use.
    pub fn paths(&self) -> Vec<String> {
        self.sides[self.owner].clone()
    }

    fn identity(&mut self, head: usize) -> Identity {
        self.starts += 1;
        let (me, other) = (HEADS[head], HEADS[1 - head]);
        Identity { array: ArrayId(7), me, other, key: LinkKey([3; 32]), start: Start(self.starts) }
    }

    /// Drives that hold nothing yet become twins.
    fn make_twins(&mut self, simulation: &mut Simulation) {
        for (machine, paths) in MACHINES.into_iter().zip(self.sides.clone()) {
            let (process, shards, _) =
                simulation.start_task_process::<()>(machine, 1, |_, _| Box::new(|_, ()| {}));
            let io = shards[0].borrow().io().clone();
            let making = async move {
                for (index, path) in paths.iter().enumerate() {
                    let (handle, info) = io.drive_open(path, true).await.expect("it is there");
                    let twin = TwinId(index as u128 + 1);
                    make_twin(&io, handle, &info, twin, Some(Synchrony(1))).await.expect("it is well");
                    io.drive_close(handle).await.expect("it is open");
                }
            };
            simulation.block_on(&shards[0], making).expect("nothing holds it up");
            self.world.end_quietly(process);
        }
        self.made = true;
    }

    /// The owner's process: its shards' worlds, and the ways in for commands and for what the head decides.
    pub fn start(&mut self, simulation: &mut Simulation, shards: u16, prng: &mut Prng) -> Owner {
        let mut options = Some(self.begin(simulation, prng));
        let (process, environments, outside) = simulation.world.start_process(self.machine(), shards);
        let mirrored = Mirrored::default();
        let environment = |below| {
            let environment = MirrorEnv::new(below, mirrored.clone(), options.take());
            ArrayEnv::Mirrored(Box::new(environment))
        };
        let environments = environments.into_iter().map(environment).collect();
        let commands = outside.wrapped(Mail::Engine, |mail| match mail {
            Mail::Engine(message) => message,
            _ => unreachable!("a command comes back as it was sent"),
        });
        (process, environments, commands, outside)
    }

    /// Before the array starts: who owns it, and in which term.
    fn begin(&mut self, simulation: &mut Simulation, prng: &mut Prng) -> MirrorOptions {
        if !self.made {
            self.make_twins(simulation);
        } else if self.common.phase.get() == Phase::InSync && prng.chance(700) {
            self.take_over(simulation);
        } else {
            Seen::StartedAgain.seen();
        }
        self.lives.drain(..).for_each(|life| self.world.end_quietly(life.process));
        self.lost_power = false;
        self.term += 1;
        self.common.phase.set(Phase::Alone);
        self.common.reports.borrow_mut().clear();
        self.common.life.set(0);
        *self.common.recovered.borrow_mut() = Arc::default();
        (0..LIVES).for_each(|life| self.start_partner(simulation, life));
        let common = self.common.clone();
        MirrorOptions {
            identity: self.identity(self.owner),
            partner: PartnerAddress(vec![address()]),
            term: Term(self.term),
            rule: CommitRule::Own,
            tolerated: 0,
            report: Box::new(move |report| common.reports.borrow_mut().push_back(report)),
        }
    }

    fn take_over(&mut self, simulation: &mut Simulation) {
        let life = &self.lives[self.common.life.get()];
        let partner = life.partner.clone();
        if self.world.is_alive(life.process) {
            simulation.block_on(&life.shard, async move { partner.hand_back().await }).expect("writes end");
        }
        self.owner = 1 - self.owner;
        Seen::TookOver.seen();
    }

    fn start_partner(&mut self, simulation: &mut Simulation, life: usize) {
        let side = 1 - self.owner;
        let (process, shards, _) =
            simulation.start_task_process::<()>(MACHINES[side], 1, |_, _| Box::new(|_, ()| {}));
        let io = shards[0].borrow().io().clone();
        let partner = Partner::new(&io, self.identity(side), self.sides[side].clone());
        partner.accept(Some(Term(self.term)));
        let (common, serving, tasks) = (self.common.clone(), partner.clone(), io.clone());
        tasks.spawn(async move {
            while common.life.get() != life {
                io.sleep(Nanos(LOOK.0 * 10)).await;
            }
            serve(io, serving).await;
        });
        self.world.nudge(process, 0);
        self.lives.push(Life { process, shard: shards[0].clone(), partner });
    }

    /// Something happens to the partner, or to a connection.
    pub fn inject(&mut self, prng: &mut Prng) {
        let life = self.common.life.get();
        if life + 1 == LIVES || prng.chance(700) {
            self.world.reset_some_connection();
            return;
        }
        if prng.chance(500) {
            Seen::PartnerKilled.seen();
            self.world.kill(self.lives[life].process);
        } else {
            Seen::PartnerLostPower.seen();
            // the lives that follow begin after it
            self.world.kill(self.lives[life].process);
            self.world.lose_caches(MACHINES[1 - self.owner]);
            self.lost_power = true;
        }
        self.common.life.set(life + 1);
    }

    /// What is not as it should be long after the last trouble.
    pub fn unsettled(&self) -> Option<String> {
        if self.common.phase.get() != Phase::InSync {
            return Some("the partner is not in sync".to_owned());
        }
        let twins = self.numbers[0].iter().zip(&self.numbers[1]);
        twins.enumerate().find_map(|(index, (&one, &other))| {
            let differing = self.world.differing_blocks(one, other, (RECORD_BYTES / BLOCK_BYTES) as u64);
            (!differing.is_empty()).then(|| format!("drive {index} and its twin differ in {differing:?}"))
        })
    }

    /// Decides for the owner, until it ends.
    pub fn decide(&self, io: &Io, outside: Outside<Mail<ShardMessage>>) {
        let decision = Decision {
            world: self.world.clone(),
            io: io.clone(),
            outside,
            common: self.common.clone(),
            cut_at: Cell::default(),
        };
        io.spawn(decision.run());
    }
}

fn address() -> SocketAddr {
    PARTNER.parse().expect("an address")
}

/// The partner listens, as soon as nobody else does.
async fn serve(io: Io, partner: Rc<Partner>) {
    let listener = loop {
        match io.listen(address()).await {
            Ok((listener, _)) => break listener,
            Err(_) => io.sleep(LOOK).await,
        }
    };
    while let Ok((connection, _, _)) = io.accept(listener).await {
        let partner = partner.clone();
        io.spawn(async move {
            let _whatever = partner.serve(connection).await;
        });
    }
}

/// Decides as a head would whose register always answers at once.
struct Decision {
    world: World,
    io: Io,
    outside: Outside<Mail<ShardMessage>>,
    common: Rc<Common>,
    /// Since when the connection of a partner in sync is cut.
    cut_at: Cell<Option<Nanos>>,
}

impl Decision {
    async fn run(self) {
        let recovered = self.common.recovered.borrow().clone();
        while !recovered.load(Ordering::Relaxed) {
            self.io.sleep(LOOK).await;
        }
        self.order(StoreOrder::Copy).await;
        let patience = Nanos(self.io.random_u64() % 40_000_000);
        loop {
            self.io.sleep(LOOK).await;
            loop {
                let report = self.common.reports.borrow_mut().pop_front();
                let Some(report) = report else { break };
                self.on_report(report).await;
            }
            if self.cut_at.get().is_some_and(|at| self.io.now() - at > patience) {
                self.leave().await;
            }
        }
    }

    async fn order(&self, order: StoreOrder) {
        let mut mail = Mail::Order(order);
        while let Err(back) = self.outside.send(ShardId(0), mail) {
            mail = back;
            self.io.sleep(LOOK).await;
        }
    }

    async fn on_report(&self, report: Report) {
        let phase = &self.common.phase;
        self.world.note(|| format!("owner, {:?}: {report:?}", phase.get()));
        match (report, phase.get()) {
            (Report::Store(StoreEvent::NearlyCopied), Phase::Alone) => {
                phase.set(Phase::Joining);
                self.order(StoreOrder::Commit(CommitRule::Both)).await;
            }
            (Report::Store(StoreEvent::Covered), Phase::Joining) => {
                Seen::InSync.seen();
                phase.set(Phase::InSync);
                self.order(StoreOrder::Joined).await;
            }
            (Report::PartnerIsUnfit, Phase::Joining | Phase::InSync) => {
                Seen::Unfit.seen();
                self.leave().await;
            }
            (Report::ConnectionEnded(_), Phase::Joining) => self.leave().await,
            (Report::ConnectionEnded(_), Phase::InSync) if self.cut_at.get().is_none() => {
                self.cut_at.set(Some(self.io.now()));
            }
            (Report::Opened, Phase::InSync) if self.cut_at.take().is_some() => Seen::BriefCut.seen(),
            (Report::Opened, Phase::Alone) => Seen::Returned.seen(),
            _ => {}
        }
    }

    /// The partner is declared out of sync; only then is anything acknowledged without it.
    async fn leave(&self) {
        Seen::Left.seen();
        self.world.note(|| "the partner leaves".to_owned());
        self.cut_at.set(None);
        self.common.phase.set(Phase::Alone);
        self.order(StoreOrder::Commit(CommitRule::Own)).await;
        self.order(StoreOrder::Copy).await;
    }
}
