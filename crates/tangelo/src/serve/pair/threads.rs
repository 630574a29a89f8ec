//! The threads of a head: its own, and those of the shards, which wait until the array is started.

use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::time::Duration;

use base::Nanos;
use engine::{Shard, ShardMessage, StartParameters};
use env::Env;
use heads::{
    ForwardOptions, ForwardShard, HeadOptions, HeadShard, Heard, Identity, Mail, MirrorEnv, MirrorOptions,
    Mirrored, OwnerOptions, PartnerAddress, Permit, Portals, RunningHead, WINDOW_BYTES,
};
use pair::{Question, Reads, Start, Term, Timing};
use setup::PairFile;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::sync::oneshot;
use uring::{Mailbox, UringEnv};

use super::super::{Failure, Prepared, cannot_start, cores, memory, paths_of};
use super::seat::{Seat, Wish};
use super::{Ending, portals};

/// For stopping the array in order before a handover: checkpoints of all pools. Hosts wait meanwhile.
const HANDOVER_TIME: Nanos = Nanos::from_secs(3);
/// After a mailbox was full.
const AGAIN_AFTER: Duration = Duration::from_millis(2);

/// The array is to be started: what each shard needs, and what shard 0 needs beside that.
struct ArrayStart {
    mirrored: Mirrored,
    owner: OwnerOptions,
    first: Option<(MirrorOptions, StartParameters)>,
}

/// The way to the head's thread.
#[derive(Clone)]
pub struct HeadMailbox(Mailbox<Mail<ShardMessage>>);

impl HeadMailbox {
    /// Waits where too much waits there already.
    pub async fn send(&self, mut mail: Mail<ShardMessage>) {
        while let Err(back) = self.0.try_send(mail) {
            mail = back;
            tokio::time::sleep(AGAIN_AFTER).await;
        }
    }

    /// Has the head do something on its thread.
    pub async fn run(&self, task: impl FnOnce(&Rc<RunningHead>) + Send + 'static) {
        self.send(Mail::Task(Box::new(task))).await;
    }

    /// What comes of work on the head's thread; `None`: the head ends before it is done.
    pub async fn ask<T, F>(&self, work: impl FnOnce(Rc<RunningHead>) -> F + Send + 'static) -> Option<T>
    where
        T: Send + 'static,
        F: Future<Output = T> + 'static,
    {
        let (to, from) = oneshot::channel();
        self.run(move |head| {
            let working = work(head.clone());
            head.spawn(async move {
                // nobody may be waiting any more
                let _answer = to.send(working.await);
            });
        })
        .await;
        from.await.ok()
    }
}

/// Running threads, and the ways to and from them.
pub struct Threads {
    pub head: HeadMailbox,
    pub shards: Vec<Mailbox<Mail<ShardMessage>>>,
    pub questions: UnboundedReceiver<Question>,
    pub wishes: UnboundedReceiver<Wish>,
    pub partner: PartnerAddress,
    /// Those of this head, which forwards what comes there while it is the partner.
    pub portals: Portals,
    identity: Identity,
    addresses: Vec<SocketAddr>,
    timing: Timing,
    starts: Vec<Sender<ArrayStart>>,
}

impl Threads {
    /// Starts the array of this term on the shards' threads; at most once.
    pub fn start_array(&mut self, term: Term, options: MirrorOptions, parameters: StartParameters) {
        let (mirrored, mut first) = (Mirrored::default(), Some((options, parameters)));
        let (identity, addresses) = (self.identity.clone(), self.addresses.clone());
        let owner =
            OwnerOptions { identity, term, addresses, timing: self.timing, window_bytes: WINDOW_BYTES };
        for (start, shard) in self.starts.drain(..).zip(&self.shards) {
            let (mirrored, owner) = (mirrored.clone(), owner.clone());
            let start_shard = ArrayStart { mirrored, owner, first: first.take() };
            start.send(start_shard).expect("its thread waits for this");
            // one with a full mailbox has something to wake it
            let _full = shard.try_send(Mail::Wake);
        }
    }
}

/// Who this start of the head is.
fn identity(file: &PairFile) -> Identity {
    let mut start = [0; 16];
    getrandom::fill(&mut start).expect("the system gives random bytes");
    Identity {
        array: file.array,
        me: file.head,
        other: file.partner,
        key: file.link_key.clone(),
        start: Start(u128::from_le_bytes(start)),
    }
}

fn timing(file: &PairFile) -> Timing {
    let timing = file.timing();
    Timing { handover: HANDOVER_TIME.max(timing.handover), ..timing }
}

/// Starts them all.
pub fn start(prepared: &Prepared<'_>, file: &PairFile, ending: &Ending) -> Result<Threads, Failure> {
    let config = &prepared.head.config;
    let (count, cores) = cores::of_shards(config)?;
    let memory = memory::of_each_shard(config, count)?;
    let identity = identity(file);
    let partner = PartnerAddress::new(file.partner_listen.clone());
    let (heard, addresses) = (Heard::default(), file.listen.clone());
    let portals = Portals::new(portals::of_this_head(config, file));
    let forwarding = ForwardOptions {
        identity: identity.clone(),
        owner: partner.clone(),
        heard: heard.clone(),
        portals: portals.clone(),
        tells_portals: false,
    };
    let options = HeadOptions {
        identity: identity.clone(),
        addresses: addresses.clone(),
        partner: partner.clone(),
        timing: timing(file),
        reads: Reads::Leased,
        drives: paths_of(&prepared.drives),
        heard,
    };
    let (to_register, questions) = unbounded_channel();
    let (to_process, wishes) = unbounded_channel();
    let seat = Seat { questions: to_register, wishes: to_process, ending: ending.clone() };
    let permit = Permit::default();
    let own = Arc::new(Mutex::new(Some((options, seat))));
    let (starts, orders): (Vec<Sender<ArrayStart>>, Vec<Receiver<ArrayStart>>) =
        (0..count).map(|_| channel()).unzip();
    let orders = Arc::new(Mutex::new(orders.into_iter().map(Some).collect::<Vec<_>>()));
    let run = move |env: UringEnv<Mail<ShardMessage>>| {
        let shard = usize::from(env.shard().0);
        if shard == usize::from(count) {
            let (options, seat) = own.lock().expect("nobody panics with it").take().expect("one head");
            run_head(env, options, permit, seat);
        }
        let order = orders.lock().expect("nobody panics with it")[shard].take().expect("one shard");
        let forwarding = ForwardOptions { tells_portals: shard == 0, ..forwarding.clone() };
        if let Some((world, start)) = forward(env, forwarding, &order) {
            run_shard(world, start, permit, memory);
        }
    };
    // its own thread is the last one, and runs wherever there is room
    let options = uring::Options { cores, ..uring::Options::new(count + 1) };
    let shards = uring::spawn_shards(&options, run).map_err(|error| cannot_start(&error))?;
    let mut mailboxes = shards.mailboxes;
    let head = HeadMailbox(mailboxes.pop().expect("the head's is the last"));
    let shards = mailboxes;
    let timing = timing(file);
    Ok(Threads { head, shards, questions, wishes, partner, portals, identity, addresses, timing, starts })
}

/// Until the process ends.
fn run_head(mut env: UringEnv<Mail<ShardMessage>>, options: HeadOptions, permit: Permit, seat: Seat) -> ! {
    let mut head = HeadShard::start(&mut env, options, permit, |_| Box::new(seat));
    loop {
        head.turn(&mut env, true);
    }
}

/// What a thread takes part in the world by, and mail that has come.
type World = (UringEnv<Mail<ShardMessage>>, Vec<Mail<ShardMessage>>);

/// Until the array is started here: hosts that come to this head's portals are served by the other head.
fn forward(
    mut env: UringEnv<Mail<ShardMessage>>,
    options: ForwardOptions,
    order: &Receiver<ArrayStart>,
) -> Option<(World, ArrayStart)> {
    let mut forwarder = ForwardShard::start(&mut env, options);
    loop {
        match order.try_recv() {
            Ok(start) => {
                let mail = forwarder.stop(&mut env);
                return Some(((env, mail), start));
            }
            Err(TryRecvError::Empty) => forwarder.turn(&mut env, true),
            Err(TryRecvError::Disconnected) => return None,
        }
    }
}

/// Until the array has stopped.
fn run_shard(world: World, start: ArrayStart, permit: Permit, memory: engine::Memory) {
    let (options, parameters) = start.first.unzip();
    let mut env = MirrorEnv::new(world, start.mirrored, permit, &start.owner, options);
    let mut shard = Shard::new(env.shard(), env.shards(), parameters, memory);
    while !shard.is_stopped() {
        shard.turn(&mut env, true);
    }
}
