//! The register of a simulated pair: it answers late, or not at all where a head cannot reach it.

use std::cell::{Cell, RefCell};

use base::Nanos;
use pair::{Question, Register};
use task::Io;

use crate::world::World;

/// See the header of this file.
pub struct SimRegister {
    world: World,
    content: RefCell<Register>,
    /// Until when each head cannot reach it.
    away_until: [Cell<Nanos>; 2],
}

impl SimRegister {
    pub fn new(world: &World, first: Register) -> SimRegister {
        SimRegister { world: world.clone(), content: RefCell::new(first), away_until: Default::default() }
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

    /// Answers a head's question, unless the question or the answer is lost.
    pub async fn answer(&self, head: usize, io: &Io, question: Question) -> Option<Register> {
        let is_away = || self.world.now() < self.away_until[head].get();
        io.sleep(latency(io)).await;
        if is_away() {
            return None;
        }
        let answer = {
            let mut content = self.content.borrow_mut();
            if let Question::CompareAndSet { expected, new } = question
                && content.revision == expected
            {
                self.world.note(|| format!("register: {new:?}"));
                *content = new;
            }
            *content
        };
        io.sleep(latency(io)).await;
        (!is_away()).then_some(answer)
    }
}

/// Mostly short, seldom longer than a head waits.
fn latency(io: &Io) -> Nanos {
    match io.random_u64() % 40 {
        0 => Nanos(io.random_u64() % 300_000_000),
        _ => Nanos(100_000 + io.random_u64() % 3_000_000),
    }
}
