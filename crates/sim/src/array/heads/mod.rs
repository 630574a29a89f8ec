//! Two heads under the array: each has drives of its own, and the owner's are mirrored to the partner's. Both run `heads::RunningHead`
//! over a register that answers late; the array is started on the head that becomes the owner, while the earlier owner may still be
//! there.
//!
//! What is checked beside what hosts see: never may two heads answer hosts at the same moment, nor one of an earlier term after one of
//! a later term. At the end both are in sync and equal, block by block.

mod forwarding;
mod register;
mod seat;
mod seen;
mod server;
mod trouble;

use std::cell::{Cell, RefCell};
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use api::PortalOptions;
use base::{BLOCK_BYTES, HeadId, Nanos, ShardId};
use engine::ShardMessage;
use env::{Env, Operation};
use heads::{
    HeadOptions, HeadShard, Heard, Identity, Mail, MirrorEnv, MirrorOptions, Mirrored, OwnerOptions,
    PartnerAddress, Patience, Permit, Portals, RunningHead, SharedRecord, Surroundings, is_of_engine,
    make_shared, make_twin,
};
use mirror::{RECORD_BYTES, Synchrony, TwinId};
use pair::{LinkKey, Portal, Reads, Register, Relation, RoleName, Start, Term, Timing};
use task::Io;

use super::engine_shard::ArrayEnv;
use crate::drive::{DriveNumber, DriveOptions, Failing};
use crate::environment::{Outside, SimEnv};
use crate::prng::Prng;
use crate::process::{Simulation, Turn};
use crate::world::{ProcessId, World};

use forwarding::ForwardTurns;
use register::SimRegister;
use seat::{Outgoing, Seat, Wishes};
pub use seen::Seen;
pub use server::ARRAY;
use server::{Kept, Servers};

/// The machines of the two heads.
const MACHINES: [u16; 2] = [0, 2];
const HEADS: [HeadId; 2] = [HeadId(1), HeadId(2)];
/// Where heads listen for each other, and for hosts.
const ADDRESSES: [&str; 2] = ["10.0.0.1:3261", "10.0.0.2:3261"];
const PORTALS: [&str; 2] = [super::bench::PORTAL, "10.0.0.2:3260"];
/// Small, so that hosts have to wait for more.
const WINDOW_BYTES: usize = 16 << 10;
/// The portal groups of the heads.
const GROUPS: [u16; 2] = [1, 2];
/// The longest that a head, a connection or the way to the register is away: twice as long as a partner waits.
const TROUBLE_NS_MAX: u64 = 1_000_000_000;
/// How long the heads wait for what hangs.
const PATIENCE: Patience =
    Patience { hand_back: Nanos::from_millis(1_500), shard: Nanos::from_millis(1_500) };

/// A head, from its start to its end.
struct Life {
    process: ProcessId,
    outside: Outside<Mail<ShardMessage>>,
    /// For the array, if this head becomes the owner: these forward until then.
    forwards: Vec<Rc<RefCell<ForwardTurns>>>,
    running: Rc<RunningHead>,
    permit: Permit,
    wishes: Rc<Wishes>,
    identity: Identity,
    /// The term of its array.
    term: Option<Term>,
    /// Since when it owns an array that was not started.
    owns_since: Option<Nanos>,
    /// It has the wrong key until somebody sees that, and starts it with the right one.
    has_wrong_key: bool,
    /// When its array is told that all its pools are there.
    whole_at: Option<Nanos>,
    is_whole: bool,
}

/// A head's own shard, as it takes its turns in the simulated world.
struct HeadTurns {
    environment: SimEnv<Mail<ShardMessage>>,
    shard: HeadShard,
    /// When it has asked to be woken.
    armed: Option<Nanos>,
}

impl Turn for HeadTurns {
    fn turn(&mut self) {
        self.shard.turn(&mut self.environment, false);
        let now = self.environment.now();
        if let Some(deadline) = self.shard.next_deadline(now) {
            let deadline = deadline.max(now + Nanos::from_micros(1));
            if self.armed.is_none_or(|armed| armed <= now || armed > deadline) {
                self.armed = Some(deadline);
                self.environment.wake_at(deadline);
            }
        }
    }
}

/// An array that is to be started now.
pub struct NewOwner {
    pub process: ProcessId,
    pub environments: Vec<ArrayEnv>,
    /// The way in for commands.
    pub commands: Outside<ShardMessage>,
    /// The portal of this head, and then that of the other one.
    pub portals: Vec<PortalOptions>,
    pub paths: Vec<String>,
    /// The head's own copy of the catalog; none for a head that is alone.
    pub kept: Option<Kept>,
    /// To be set when its pools are not there.
    pub waits: Arc<AtomicBool>,
    /// To be set when it has started.
    pub is_started: Arc<AtomicBool>,
    /// 0: the array has one head.
    pub term: u64,
}

/// See the header of this file.
pub struct TwoHeads {
    world: World,
    /// Both heads see the same drives.
    is_shared: bool,
    /// Paths of each side's drives.
    sides: [Vec<String>; 2],
    numbers: [Vec<DriveNumber>; 2],
    mirrored_bytes: Vec<u64>,
    servers: Servers,
    shards: u16,
    register: Rc<SimRegister>,
    lives: [Option<Life>; 2],
    /// When a head that has ended is started again.
    back_at: [Nanos; 2],
    /// The head whose array was started last.
    owner: usize,
    /// The newest term in which answers were permitted.
    permitted: Term,
    starts: u128,
    made: bool,
    /// The partner may have lost what its drives had not flushed.
    lost_power: bool,
    /// Something was sent to hosts without a permit.
    unpermitted: Rc<Cell<bool>>,
    /// Something happens to the partner's drives, and shards hang: in every other run.
    twins_fail: bool,
    /// A process that must have ended by then.
    must_end: Option<(ProcessId, Nanos)>,
    /// What the register held last.
    known: Register,
    /// The owner dies when this drive is written to, until then.
    doomed: Option<(DriveNumber, Nanos)>,
    /// Writes that shared drives had refused, because another head has them.
    refused: u64,
    /// Nothing more happens that could make another head the owner.
    calm: bool,
    prng: Prng,
}

impl TwoHeads {
    /// The second head gets drives like those of the first one, or the same.
    pub fn new(world: &World, shards: u16, drives: &[DriveOptions], own_numbers: &[DriveNumber]) -> TwoHeads {
        let is_shared = drives.iter().all(|options| options.shared);
        let own: Vec<String> = drives.iter().map(|options| options.path.clone()).collect();
        let (mut prng, mut mirrored_bytes) = (world.fork_prng(), Vec::new());
        // one may be longer than the other
        let twin = |options: &DriveOptions| {
            let own_bytes = options.size_bytes;
            let path = format!("{}-twin", options.path);
            let size_bytes = options.size_bytes + prng.below(9) * (1 << 20) - (4 << 20);
            let options =
                DriveOptions { path: path.clone(), machine: MACHINES[1], size_bytes, ..options.clone() };
            mirrored_bytes.push(size_bytes.min(own_bytes) - RECORD_BYTES as u64);
            (path, world.add_drive(options))
        };
        let (twins, numbers) = match is_shared {
            true => (own.clone(), own_numbers.to_vec()),
            false => drives.iter().map(twin).unzip(),
        };
        let first = Register::first(HEADS[0], HEADS[1], Term(0));
        TwoHeads {
            world: world.clone(),
            is_shared,
            sides: [own, twins],
            numbers: [own_numbers.to_vec(), numbers],
            mirrored_bytes,
            servers: Servers::new(world, drives.len(), &mut prng),
            shards,
            register: Rc::new(SimRegister::new(world, first)),
            lives: [None, None],
            back_at: [Nanos::default(); 2],
            owner: 0,
            permitted: Term(0),
            starts: 0,
            made: false,
            lost_power: false,
            unpermitted: Rc::default(),
            must_end: None,
            known: first,
            doomed: None,
            refused: 0,
            calm: false,
            twins_fail: prng.chance(500),
            prng: world.fork_prng(),
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

    /// A round begins; the last one is calm.
    pub fn begin_round(&mut self, simulation: &mut Simulation, calm: bool) {
        if !std::mem::replace(&mut self.made, true) {
            self.mark_drives(simulation);
        }
        (self.lost_power, self.calm) = (false, calm);
        if calm {
            self.register.heal();
            self.world.heal_network();
            let drives = self.numbers.iter().flatten();
            drives.for_each(|&drive| self.world.fail_next(drive, Failing::default()));
            self.world.mend_paths();
            // before this round's array is chosen: it may be the one of a head with the wrong key
            self.correct_keys();
            simulation.run_for(Nanos(2 * TROUBLE_NS_MAX));
        }
    }

    /// Heads that have ended are started now: nothing else happens.
    pub fn wait_no_longer(&mut self) {
        self.back_at = [Nanos::default(); 2];
    }

    /// Drives that hold nothing yet become twins, or shared ones.
    fn mark_drives(&mut self, simulation: &mut Simulation) {
        for (head, paths) in self.sides.clone().into_iter().enumerate() {
            let (process, shards, _) =
                simulation.start_task_process::<()>(MACHINES[head], 1, |_, _| Box::new(|_, ()| {}));
            let io = shards[0].borrow().io().clone();
            let mirrored_bytes = self.mirrored_bytes.clone();
            let (strangers, is_shared) = (self.servers.strangers(head).to_vec(), self.is_shared);
            let making = async move {
                for (index, path) in paths.iter().enumerate() {
                    let (handle, info) = io.drive_open(path, true).await.expect("it is there");
                    let twin = TwinId(index as u128 + 1);
                    let made = match is_shared {
                        true => make_shared(&io, handle, SharedRecord { array: ARRAY, drive: twin }).await,
                        false => {
                            let bytes = mirrored_bytes[index];
                            make_twin(&io, handle, &info, twin, bytes, Some(Synchrony(1))).await
                        }
                    };
                    made.expect("it is well");
                    io.drive_close(handle).await.expect("it is open");
                }
                if !strangers.is_empty() {
                    server::make_other_pool(&io, &strangers).await;
                }
            };
            simulation.block_on(&shards[0], making).expect("nothing holds it up");
            self.world.end_quietly(process);
        }
    }

    /// To be called between any two events: ends and starts heads. What it gives is an array that is to be started.
    pub fn follow(&mut self, simulation: &mut Simulation) -> Result<Option<NewOwner>, String> {
        for head in 0..2 {
            let Some(life) = &self.lives[head] else {
                if self.world.now() >= self.back_at[head] {
                    self.start_head(simulation, head);
                }
                continue;
            };
            if life.wishes.end.get() {
                self.world.end_quietly(life.process);
            }
            if !self.world.is_alive(life.process) {
                self.lives[head] = None;
                self.back_at[head] = self.world.now() + Nanos(self.prng.skewed(100_000, 800_000_000));
                simulation.bury();
            } else if let Some((term, rule)) = life.wishes.array.take() {
                return Ok(Some(self.own(head, term, rule)));
            }
        }
        self.count_refused();
        self.correct_keys();
        self.complete_arrays();
        self.check_joins()?;
        self.follow_hangs()?;
        self.check_permits().map(|()| None)
    }

    fn check_permits(&mut self) -> Result<(), String> {
        if self.unpermitted.get() {
            return Err("hosts are answered without a permit".to_owned());
        }
        let now = self.world.uptime();
        let outlived = |life: &&Life| life.term.is_some() && life.running.role() != RoleName::Owner;
        if let Some(life) = self.lives.iter().flatten().find(outlived) {
            return Err(format!("the array of {:?} runs on a head that does not own it", life.term));
        }
        let permitted = |life: &Option<Life>| life.as_ref().filter(|life| life.permit.allows(now))?.term;
        let terms = [permitted(&self.lives[0]), permitted(&self.lives[1])];
        let owns = |life: &&Life| life.term.is_some() && !life.permit.allows(now);
        self.lives.iter().flatten().filter(owns).for_each(|_| Seen::NotPermitted.seen());
        let [one, other] = terms;
        if let (Some(one), Some(other)) = (one, other) {
            return Err(format!("two heads may answer at once, in {one:?} and {other:?}"));
        }
        if let Some(term) = one.or(other) {
            if term < self.permitted {
                return Err(format!("a head may answer in {term:?} after {:?}", self.permitted));
            }
            self.permitted = term;
        }
        Ok(())
    }

    fn start_head(&mut self, simulation: &mut Simulation, head: usize) {
        self.starts += 1;
        let (me, other) = (HEADS[head], HEADS[1 - head]);
        let has_wrong_key = !self.calm && self.permitted > Term(0) && self.prng.chance(60);
        let key = LinkKey([if has_wrong_key { 4 } else { 3 }; 32]);
        let identity = Identity { array: ARRAY, me, other, key, start: Start(self.starts) };
        let (process, mut environments, outside) =
            self.world.start_process::<Mail<ShardMessage>>(MACHINES[head], self.shards + 1);
        let mut own = environments.pop().expect("the head's is the last");
        let (permit, wishes, heard) = (Permit::default(), Rc::<Wishes>::default(), Heard::default());
        wishes.start_fails.set(!self.calm && self.prng.chance(60));
        let seat = |io: &Io| -> Box<dyn Surroundings> {
            let outgoing = Rc::new(Outgoing::new(outside.clone()));
            io.spawn(outgoing.clone().keep_sending(io.clone()));
            Box::new(Seat {
                world: self.world.clone(),
                io: io.clone(),
                head,
                own: ShardId(self.shards),
                register: self.register.clone(),
                wishes: wishes.clone(),
                kept: self.servers.kept(head),
                outgoing,
            })
        };
        let options = HeadOptions {
            identity: identity.clone(),
            addresses: vec![address(ADDRESSES[head])],
            partner: PartnerAddress::new(vec![address(ADDRESSES[1 - head])]),
            timing: Timing::default(),
            reads: Reads::Leased,
            drives: self.paths(head),
            heard: heard.clone(),
        };
        let shard = HeadShard::start(&mut own, options, permit.clone(), seat);
        let running = shard.running().clone();
        running.set_patience(PATIENCE);
        let turns = HeadTurns { environment: own, shard, armed: None };
        simulation.attach(process, self.shards, Rc::new(RefCell::new(turns)));
        self.world.nudge(process, self.shards);
        let owner = PartnerAddress::new(vec![address(ADDRESSES[1 - head])]);
        let portal = Portal { address: address(PORTALS[head]), group: GROUPS[head], hosts: Vec::new() };
        let forwards = forwarding::start(
            simulation,
            process,
            environments,
            (identity.clone(), owner, heard, Portals::new(vec![portal])),
        );
        let (term, owns_since) = (None, None);
        self.lives[head] = Some(Life {
            process,
            outside,
            forwards,
            running,
            permit,
            wishes,
            identity,
            term,
            owns_since,
            has_wrong_key,
            whole_at: None,
            is_whole: false,
        });
    }

    /// Where a head looks for drives.
    fn paths(&self, head: usize) -> Vec<String> {
        self.sides[head].iter().chain(self.servers.strangers(head)).cloned().collect()
    }

    /// The worlds of the shards of an array that this head has ordered.
    fn own(&mut self, head: usize, term: Term, rule: pair::CommitRule) -> NewOwner {
        self.owner = head;
        self.begin_faults_of_owner(head);
        let paths = self.paths(head);
        let life = self.lives[head].as_mut().expect("it has just ordered this");
        life.term = Some(term);
        let owner = OwnerOptions {
            identity: life.identity.clone(),
            term,
            addresses: vec![address(ADDRESSES[head])],
            timing: Timing::default(),
            window_bytes: WINDOW_BYTES,
        };
        let mut options = Some(MirrorOptions {
            partner: PartnerAddress::new(vec![address(ADDRESSES[1 - head])]),
            rule,
            tolerated: 0,
            is_whole: false,
        });
        let mirrored = Mirrored::default();
        let environment = |(mut below, mail): (SimEnv<_>, Vec<_>)| {
            let (world, permit) = (self.world.clone(), life.permit.clone());
            let unpermitted = self.unpermitted.clone();
            below.watch(move |token, operation| {
                let is_answer = matches!(operation, Operation::Send { .. }) && is_of_engine(token);
                unpermitted.set(unpermitted.get() || is_answer && !permit.allows(world.uptime()));
            });
            let environment =
                MirrorEnv::new((below, mail), mirrored.clone(), life.permit.clone(), &owner, options.take());
            ArrayEnv::Mirrored(Box::new(environment))
        };
        let environments =
            life.forwards.drain(..).map(|forwards| forwards.borrow_mut().stop()).map(environment).collect();
        let commands = life.outside.wrapped(Mail::Engine, |mail| match mail {
            Mail::Engine(message) => message,
            _ => unreachable!("a command comes back as it was sent"),
        });
        NewOwner {
            process: life.process,
            environments,
            commands,
            portals: vec![portal(head, false), portal(1 - head, true)],
            paths,
            kept: Some(self.servers.kept(head)),
            waits: life.wishes.waits.clone(),
            is_started: life.wishes.is_started.clone(),
            term: term.0,
        }
    }

    /// Has the owner hand the array over. `false`: it cannot now.
    pub fn hand_over(&mut self) -> bool {
        let Some(life) = &self.lives[self.owner] else { return false };
        let begun = life.running.hand_over().is_ok();
        self.world.nudge(life.process, self.shards);
        if begun && !self.calm && self.prng.chance(800) {
            // too long: it is given up
            self.register.cut_off(self.owner, Nanos(TROUBLE_NS_MAX));
        }
        begun
    }

    /// What is not as it should be long after the last trouble.
    pub fn unsettled(&self) -> Option<String> {
        let relation = self.lives[self.owner].as_ref().and_then(|life| life.running.relation());
        if relation != Some(Relation::InSync) || !self.register.content().in_sync {
            return Some(format!("the partner is not in sync: {relation:?}"));
        }
        if self.is_shared {
            return None;
        }
        let twins = self.numbers[0].iter().zip(&self.numbers[1]);
        twins.enumerate().find_map(|(index, (&one, &other))| {
            let differing = self.world.differing_blocks(one, other, (RECORD_BYTES / BLOCK_BYTES) as u64);
            (!differing.is_empty()).then(|| format!("drive {index} and its twin differ in {differing:?}"))
        })
    }
}

fn portal(head: usize, forwarded: bool) -> PortalOptions {
    PortalOptions { address: address(PORTALS[head]), group: GROUPS[head], hosts: Vec::new(), forwarded }
}

fn address(text: &str) -> SocketAddr {
    text.parse().expect("an address")
}
