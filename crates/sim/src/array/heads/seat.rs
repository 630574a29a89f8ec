//! What a simulated head acts on: the register, the shards of its process, and the end of that process.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use api::Command;
use base::{Nanos, ShardId};
use engine::ShardMessage;
use heads::{Ending, HeadMail, Mail, Surroundings};
use pair::{CommitRule, Decision, Question, Term};
use task::Io;

use super::Seen;
use super::register::SimRegister;
use super::server::Kept;
use crate::environment::Outside;
use crate::world::World;

/// How often somebody looks whether there is something to do.
const LOOK: Nanos = Nanos::from_micros(200);

/// What the process of a head and the one who runs it share.
#[derive(Default)]
pub struct Wishes {
    /// The array is to be started.
    pub array: Cell<Option<(Term, CommitRule)>>,
    /// Set when it has.
    pub is_started: Arc<AtomicBool>,
    /// Its pools are not there.
    pub waits: Arc<AtomicBool>,
    /// The other head owned it before.
    pub was_others: Cell<bool>,
    /// The array cannot be started.
    pub start_fails: Cell<bool>,
    /// The process is to end.
    pub end: Cell<bool>,
}

/// See the header of this file.
pub struct Seat {
    pub world: World,
    pub io: Io,
    pub head: usize,
    /// The head's own shard, the last one.
    pub own: ShardId,
    pub register: Rc<SimRegister>,
    pub wishes: Rc<Wishes>,
    pub kept: Kept,
    pub outgoing: Rc<Outgoing>,
}

/// What is on its way to shards of the process, in order.
pub struct Outgoing {
    outside: Outside<Mail<ShardMessage>>,
    waiting: RefCell<VecDeque<(ShardId, Mail<ShardMessage>)>>,
}

impl Outgoing {
    pub fn new(outside: Outside<Mail<ShardMessage>>) -> Outgoing {
        Outgoing { outside, waiting: RefCell::default() }
    }

    fn push(&self, to: ShardId, mail: Mail<ShardMessage>) {
        self.waiting.borrow_mut().push_back((to, mail));
        self.send();
    }

    fn send(&self) {
        let mut waiting = self.waiting.borrow_mut();
        while let Some((to, mail)) = waiting.pop_front() {
            if let Err(back) = self.outside.send(to, mail) {
                waiting.push_front((to, back));
                return;
            }
        }
    }

    /// For ever: sends what found a full queue.
    pub async fn keep_sending(self: Rc<Self>, io: Io) {
        loop {
            self.send();
            io.sleep(Nanos(LOOK.0 * 5)).await;
        }
    }
}

impl Surroundings for Seat {
    fn ask(&self, question: Question) {
        let (io, own, head) = (self.io.clone(), self.own, self.head);
        let (register, outgoing) = (self.register.clone(), self.outgoing.clone());
        self.io.spawn(async move {
            if let Some(content) = register.answer(head, &io, question).await {
                outgoing.push(own, Mail::Head(HeadMail::Register(content)));
            }
        });
    }

    fn start_array(&self, term: Term, rule: CommitRule) {
        let (io, own, outgoing) = (self.io.clone(), self.own, self.outgoing.clone());
        if self.wishes.start_fails.get() {
            return outgoing.push(own, Mail::Head(HeadMail::Failed(term)));
        }
        self.wishes.array.set(Some((term, rule)));
        let (is_started, waits) = (self.wishes.is_started.clone(), self.wishes.waits.clone());
        self.io.spawn(async move {
            while !is_started.load(Ordering::Relaxed) {
                if waits.swap(false, Ordering::Relaxed) {
                    outgoing.push(own, Mail::Head(HeadMail::Waits(term)));
                }
                io.sleep(LOOK).await;
            }
            outgoing.push(own, Mail::Head(HeadMail::Started(term)));
        });
    }

    fn stop_array(&self) {
        let is_stopped = Arc::new(AtomicBool::new(false));
        let answered = is_stopped.clone();
        let reply = Box::new(move |_| answered.store(true, Ordering::Relaxed));
        let shutdown = ShardMessage::Control(Command::Shutdown, reply, api::patient_caller());
        self.outgoing.push(ShardId(0), Mail::Engine(shutdown));
        let (io, own, outgoing) = (self.io.clone(), self.own, self.outgoing.clone());
        self.io.spawn(async move {
            while !is_stopped.load(Ordering::Relaxed) {
                io.sleep(LOOK).await;
            }
            outgoing.push(own, Mail::Head(HeadMail::Stopped));
        });
    }

    fn end(&self) {
        self.wishes.end.set(true);
    }

    fn forget_catalog(&self) {
        *self.kept.lock().expect("one thread") = None;
    }

    fn note_ending(&self, why: Ending) {
        self.world.note(|| format!("head {} ends: {why:?}", self.head));
        match why {
            Ending::ArrayDidNotStart => Seen::ArrayDidNotStart.seen(),
            // too seldom to be met by each run of the scenario
            Ending::DrivesNotHandedBack => {}
            Ending::DrivesLost => Seen::DrivesLost.seen(),
            Ending::ShardHangs(_) => Seen::ShardHung.seen(),
        }
    }

    fn note(&self, decision: Decision) {
        self.world.note(|| format!("head {}: {}", self.head, decision.name()));
        let was_others =
            matches!(decision, Decision::TookOver | Decision::ReceivedHandover | Decision::GotBack);
        self.wishes.was_others.set(self.wishes.was_others.get() || was_others);
        match decision {
            Decision::TookOver => Seen::TookOver.seen(),
            Decision::BeganHandover => Seen::BeganHandover.seen(),
            Decision::GaveBack => Seen::GaveBack.seen(),
            Decision::GotBack => Seen::GotBack.seen(),
            Decision::ReceivedHandover => Seen::HandedOver.seen(),
            Decision::GaveUpHandover => Seen::GaveUpHandover.seen(),
            Decision::Restarted => Seen::StartedAgain.seen(),
            Decision::LostOwnership => Seen::Demoted.seen(),
            Decision::WentAlone => Seen::Left.seen(),
            Decision::BeganCopy => Seen::Returned.seen(),
            Decision::Joined => Seen::InSync.seen(),
            _ => {}
        }
    }
}
