//! The threads of a head: its own, and those of the shards, which wait until the array is started.

use std::rc::Rc;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use base::Nanos;
use engine::{Shard, ShardMessage, StartParameters};
use env::Env;
use heads::{
    HeadOptions, HeadShard, Identity, Mail, MirrorEnv, MirrorOptions, Mirrored, PartnerAddress, Permit,
    RunningHead,
};
use pair::{Question, Reads, Start, Timing};
use setup::PairFile;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::sync::oneshot;
use uring::{Mailbox, UringEnv};

use super::super::{Failure, Prepared, cannot_start, cores, memory, paths_of};
use super::Ending;
use super::seat::{Seat, Wish};

/// For stopping the array in order before a handover: checkpoints of all pools. Hosts wait meanwhile.
const HANDOVER_TIME: Nanos = Nanos::from_secs(3);
/// After a mailbox was full.
const AGAIN_AFTER: Duration = Duration::from_millis(2);

/// The array is to be started: what each shard needs, and what shard 0 needs beside that.
struct ArrayStart {
    mirrored: Mirrored,
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
    pub identity: Identity,
    pub partner: PartnerAddress,
    starts: Vec<Sender<ArrayStart>>,
}

impl Threads {
    /// Starts the array on the shards' threads; at most once.
    pub fn start_array(&mut self, options: MirrorOptions, parameters: StartParameters) {
        let (mirrored, mut first) = (Mirrored::default(), Some((options, parameters)));
        for start in self.starts.drain(..) {
            let start_shard = ArrayStart { mirrored: mirrored.clone(), first: first.take() };
            start.send(start_shard).expect("its thread waits for this");
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

/// Starts them all.
pub fn start(prepared: &Prepared<'_>, file: &PairFile, ending: &Ending) -> Result<Threads, Failure> {
    let config = &prepared.head.config;
    let (count, cores) = cores::of_shards(config)?;
    let memory = memory::of_each_shard(config, count)?;
    let identity = identity(file);
    let partner = PartnerAddress::new(file.partner_listen.clone());
    let options = HeadOptions {
        identity: identity.clone(),
        addresses: file.listen.clone(),
        partner: partner.clone(),
        timing: Timing { handover: HANDOVER_TIME, ..Timing::default() },
        reads: Reads::Leased,
        drives: paths_of(&prepared.drives),
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
        if let Ok(start) = order.recv() {
            run_shard(env, start, permit, memory);
        }
    };
    // its own thread is the last one, and runs wherever there is room
    let options = uring::Options { cores, ..uring::Options::new(count + 1) };
    let shards = uring::spawn_shards(&options, run).map_err(|error| cannot_start(&error))?;
    let mut mailboxes = shards.mailboxes;
    let head = HeadMailbox(mailboxes.pop().expect("the head's is the last"));
    Ok(Threads { head, shards: mailboxes, questions, wishes, identity, partner, starts })
}

/// Until the process ends.
fn run_head(mut env: UringEnv<Mail<ShardMessage>>, options: HeadOptions, permit: Permit, seat: Seat) -> ! {
    let mut head = HeadShard::start(&mut env, options, permit, |_| Box::new(seat));
    loop {
        head.turn(&mut env, true);
    }
}

/// Until the array has stopped.
fn run_shard(env: UringEnv<Mail<ShardMessage>>, start: ArrayStart, permit: Permit, memory: engine::Memory) {
    let (options, parameters) = start.first.unzip();
    let mut env = MirrorEnv::new(env, start.mirrored, permit, options);
    let mut shard = Shard::new(env.shard(), env.shards(), parameters, memory);
    while !shard.is_stopped() {
        shard.turn(&mut env, true);
    }
}
