//! What goes wrong, at random: cuts, pauses, crashes, a register that is away, drives that stall, handovers at the wrong moment.
//! Each run has its own choice of these and its own pace, so that rare things meet.

use base::Nanos;
use base::prng::Prng;
use pair::{Maintenance, RoleName};

use crate::network::REGISTER;
use crate::node::Node;
use crate::world::{AtHead, Event, World};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    CutOneWay,
    Cut,
    /// A head hears neither the other one nor the register.
    CutOff,
    RegisterStalls,
    RegisterAway,
    StandStill,
    DrivesStall,
    /// A head that becomes the owner finds its drives only later.
    DrivesComeLate,
    Crash,
    HandOver,
    /// An administrator begins maintenance, or ends it.
    Maintenance,
}

const KINDS: [Kind; 11] = [
    Kind::CutOneWay,
    Kind::Cut,
    Kind::CutOff,
    Kind::RegisterStalls,
    Kind::RegisterAway,
    Kind::StandStill,
    Kind::DrivesStall,
    Kind::DrivesComeLate,
    Kind::Crash,
    Kind::HandOver,
    Kind::Maintenance,
];

/// What a run meets.
#[derive(Debug)]
pub struct Troubles {
    kinds: Vec<Kind>,
    /// Longest time between two of them.
    pause: Nanos,
}

impl Troubles {
    pub fn choose(prng: &mut Prng) -> Troubles {
        let mut kinds: Vec<Kind> = KINDS.into_iter().filter(|_| prng.chance(600)).collect();
        kinds.push(*prng.pick(&KINDS));
        Troubles { kinds, pause: Nanos::from_millis(*prng.pick(&[300, 700, 1200])) }
    }
}

impl World {
    pub fn trouble(&mut self) {
        if self.network.is_calm {
            return;
        }
        let next = Nanos(self.prng.between(50_000_000, self.troubles.pause.0));
        self.at(next, Event::Trouble);
        let longest = *self.prng.pick(&[300, 1000, 2500]);
        let until = self.now + Nanos::from_millis(self.prng.between(50, longest));
        let at = self.prng.index(2);
        let kind = *self.prng.pick(&self.troubles.kinds);
        self.note(|| format!("trouble: {kind:?} until {until:?}"));
        match kind {
            Kind::CutOneWay => {
                let (from, to) = self.two_ends();
                self.note(|| format!("nothing gets from {from} to {to}"));
                self.network.cut_one_way(from, to, until);
            }
            Kind::Cut => {
                let (first, second) = self.two_ends();
                self.note(|| format!("cut between {first} and {second}"));
                self.network.cut(first, second, until);
            }
            Kind::CutOff => {
                self.note(|| format!("head {at} is cut off"));
                self.network.cut(at, 1 - at, until);
                self.network.cut(at, REGISTER, until);
            }
            Kind::RegisterStalls => self.network.stall_register(until),
            Kind::RegisterAway => self.network.send_register_away(until),
            Kind::StandStill => self.stand_still(at, until),
            Kind::DrivesStall => {
                self.note(|| format!("drives of head {at} stall"));
                self.nodes[at].drives_stall_until = until;
            }
            Kind::DrivesComeLate => {
                self.note(|| format!("drives of head {at} come late"));
                self.nodes[at].drives_come_at = until;
            }
            Kind::Crash => self.crash(at),
            Kind::HandOver => self.hand_over(at),
            // the command fails
            Kind::Maintenance if self.network.register_wait(self.now) > Nanos(0) => {}
            Kind::Maintenance => {
                let begins = self.register.maintenance.is_none();
                self.set_maintenance(at, begins);
            }
        }
    }

    fn two_ends(&mut self) -> (usize, usize) {
        let first = self.prng.index(3);
        (first, (first + 1 + self.prng.index(2)) % 3)
    }

    fn stand_still(&mut self, at: usize, until: Nanos) {
        let now = self.now;
        let node = &mut self.nodes[at];
        if node.is_up && node.paused_until <= now {
            node.paused_until = until;
            if node.clock.stops {
                node.clock.stopped = node.clock.stopped + (until - now);
            }
            self.note(|| format!("head {at} stands still"));
        }
    }

    /// A handover, sometimes with a crash and a deaf head at any moment of it.
    fn hand_over(&mut self, at: usize) {
        self.note(|| format!("head {at} is to hand over"));
        self.at(Nanos(0), Event::Head { at, start: None, what: AtHead::HandOver });
        if self.prng.chance(400) {
            let dies = self.prng.index(2);
            let after = Nanos::from_millis(self.prng.below(300));
            let back = after + Nanos::from_millis(*self.prng.pick(&[20, 50, 300]));
            self.at(after, Event::Kill(dies));
            self.at(back, Event::Boot(dies));
            let deaf = self.prng.index(2);
            let until = self.now + Nanos::from_millis(self.prng.between(1, 800));
            self.note(|| format!("head {deaf} hears nothing of the register until {until:?}"));
            self.network.cut_one_way(REGISTER, deaf, until);
        }
    }

    /// A crash, sometimes of both heads one after the other.
    fn crash(&mut self, at: usize) {
        self.kill(at);
        let back = Nanos::from_millis(*self.prng.pick(&[50, 200, 600, 2000]));
        self.at(back, Event::Boot(at));
        if self.prng.chance(300) {
            let dies = Nanos::from_millis(self.prng.below(500));
            self.at(dies, Event::Kill(1 - at));
            let back = dies + Nanos::from_millis(self.prng.between(100, 2000));
            self.at(back, Event::Boot(1 - at));
        }
    }

    /// At this head, by a command.
    pub fn set_maintenance(&mut self, at: usize, begins: bool) {
        let since = Maintenance { since_ms: self.now.0 / 1_000_000 + 1 };
        let new = self.register.with_maintenance(begins.then_some(since), self.nodes[at].id);
        self.change_register(at, new);
    }

    /// Maintenance that is forgotten does no harm as long as both heads are there.
    pub fn end_maintenance(&mut self, dead: Option<usize>) {
        if self.register.maintenance.is_none() {
            return;
        }
        match dead {
            Some(dead) => self.set_maintenance(1 - dead, false),
            None if self.prng.chance(500) => self.set_maintenance(0, false),
            None => self.count("served during maintenance"),
        }
    }

    /// Everything is well again, but for heads that are down.
    pub fn end_trouble(&mut self) {
        let end = |node: &Node| node.paused_until.max(node.drives_stall_until).max(node.drives_come_at);
        let ends = self.nodes.iter().map(end).max();
        self.network.stop_trouble();
        self.run_until(ends.map_or(self.now, |end| end.max(self.now)));
        self.network.heal();
    }

    /// In some runs one head stays dead: the other must serve, if it is in sync.
    pub fn choose_dead(&mut self) -> Option<usize> {
        if !self.prng.chance(400) {
            return None;
        }
        let may_die = |at: &usize| self.register.is_in_sync(self.nodes[1 - at].id);
        let candidates: Vec<usize> = (0..2).filter(may_die).collect();
        let dead = *self.prng.pick(&candidates);
        self.kill(dead);
        Some(dead)
    }

    /// In some runs the register stays away for a while, where two heads that agree on who owns the array must go on without it.
    pub fn leave_register_away(&mut self, time: Nanos) {
        let agrees = |at: usize| {
            let node = &self.nodes[at];
            // one that waits for the outcome of a swap, such as one that has given back, needs the register
            let knows = node.head.register().is_some_and(|known| known.revision == self.register.revision);
            node.is_up && knows && node.head.role() != RoleName::Booting
        };
        if self.register.in_sync && agrees(0) && agrees(1) && self.prng.chance(500) {
            self.note(|| "the register stays away".to_owned());
            self.counts
                .entry("register away from a pair in sync")
                .and_modify(|count| *count += 1)
                .or_insert(1);
            self.network.send_register_away(self.now + time);
        }
    }

    pub fn boot_all_but(&mut self, dead: Option<usize>) {
        for at in (0..2).filter(|at| Some(*at) != dead) {
            self.boot(at);
        }
    }
}
