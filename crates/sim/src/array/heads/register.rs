//! The register of a simulated pair: it answers late, or not at all where a head cannot reach it.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;

use base::Nanos;
use pair::{Question, Register};
use task::Io;

use crate::world::World;

/// See the header of this file.
pub struct SimRegister {
    world: World,
    content: RefCell<Register>,
    /// By the time at which they arrive: who asks what.
    on_their_way: RefCell<BTreeMap<(Nanos, u64), (usize, Question)>>,
    /// For those who still wait.
    answers: RefCell<BTreeMap<u64, Register>>,
    serial: Cell<u64>,
    /// Until when each head cannot reach it.
    away_until: [Cell<Nanos>; 2],
}

impl SimRegister {
    pub fn new(world: &World, first: Register) -> SimRegister {
        SimRegister {
            world: world.clone(),
            content: RefCell::new(first),
            on_their_way: RefCell::default(),
            answers: RefCell::default(),
            serial: Cell::default(),
            away_until: Default::default(),
        }
    }

    pub fn content(&self) -> Register {
        *self.content.borrow()
    }

    pub fn cut_off(&self, head: usize, time: Nanos) {
        self.away_until[head].set(self.world.now() + time);
    }

    pub fn heal(&self) {
        self.away_until.iter().for_each(|until| until.set(Nanos::default()));
    }

    /// Answers a head's question, unless the question or the answer is lost. A question that has been sent arrives, also if the head has
    /// ended meanwhile.
    pub async fn answer(&self, head: usize, io: &Io, question: Question) -> Option<Register> {
        let way = latency(io);
        self.serial.set(self.serial.get() + 1);
        let serial = self.serial.get();
        let at = self.world.now() + way;
        self.on_their_way.borrow_mut().insert((at, serial), (head, question));
        io.sleep(way).await;
        self.arrive();
        let answer = self.answers.borrow_mut().remove(&serial)?;
        io.sleep(latency(io)).await;
        (!self.is_away(head)).then_some(answer)
    }

    fn is_away(&self, head: usize) -> bool {
        self.world.now() < self.away_until[head].get()
    }

    /// To be called between any two events: what has been sent arrives.
    pub fn arrive(&self) {
        loop {
            let first = self.on_their_way.borrow().first_key_value().map(|(&key, &what)| (key, what));
            let Some(((at, serial), (head, question))) = first.filter(|&((at, _), _)| at <= self.world.now())
            else {
                return;
            };
            self.on_their_way.borrow_mut().remove(&(at, serial));
            if self.is_away(head) {
                continue;
            }
            let mut content = self.content.borrow_mut();
            if let Question::CompareAndSet { expected, new } = question
                && content.revision == expected
            {
                self.world.note(|| format!("register: {new:?}"));
                *content = new;
            }
            self.answers.borrow_mut().insert(serial, *content);
        }
    }
}

/// Mostly short, seldom longer than a head waits, or than its process takes to start again.
fn latency(io: &Io) -> Nanos {
    match io.random_u64() % 40 {
        0 => Nanos(io.random_u64() % 300_000_000),
        1 => Nanos(io.random_u64() % 1_000_000_000),
        _ => Nanos(100_000 + io.random_u64() % 3_000_000),
    }
}
