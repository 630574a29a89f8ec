//! Links between the two heads and the register: each may be cut for a while, lose and delay. Messages overtake each other.

use base::Nanos;
use base::prng::Prng;

/// The two heads and the register, as ends of links.
pub const REGISTER: usize = 2;

/// No message takes longer.
pub const LONGEST_DELAY: Nanos = Nanos::from_millis(800);

#[derive(Debug, Default)]
pub struct Network {
    /// Until when nothing gets from one end to another.
    cut: [[Nanos; 3]; 3],
    /// Until when the register answers nobody.
    register_away: Nanos,
    register_stalls: Nanos,
    /// Nothing goes wrong any more.
    pub is_calm: bool,
    is_healed: bool,
}

impl Network {
    pub fn cut(&mut self, a: usize, b: usize, until: Nanos) {
        self.cut_one_way(a, b, until);
        self.cut_one_way(b, a, until);
    }

    pub fn cut_one_way(&mut self, from: usize, to: usize, until: Nanos) {
        self.cut[from][to] = self.cut[from][to].max(until);
    }

    /// Questions wait until then, and are carried out after all.
    pub fn stall_register(&mut self, until: Nanos) {
        self.register_stalls = self.register_stalls.max(until);
    }

    /// How long a question that has arrived waits.
    pub fn register_wait(&self, now: Nanos) -> Nanos {
        self.register_stalls.saturating_sub(now)
    }

    pub fn send_register_away(&mut self, until: Nanos) {
        self.register_away = self.register_away.max(until);
    }

    /// What is broken stays so; nothing new breaks.
    pub fn stop_trouble(&mut self) {
        self.is_calm = true;
    }

    pub fn heal(&mut self) {
        *self = Network { is_calm: true, is_healed: true, ..Network::default() };
    }

    pub fn is_cut(&self, now: Nanos, from: usize, to: usize) -> bool {
        self.cut[from][to] > now || ((from == REGISTER || to == REGISTER) && self.register_away > now)
    }

    /// How long a message takes; `None` if it is lost.
    pub fn delay(&self, now: Nanos, from: usize, to: usize, prng: &mut Prng) -> Option<Nanos> {
        if self.is_healed {
            return (!self.is_cut(now, from, to)).then(|| Nanos::from_millis(1));
        }
        if self.is_cut(now, from, to) || prng.chance(10) {
            return None;
        }
        Some(match prng.below(12) {
            0..6 => Nanos::from_micros(prng.between(200, 1500)),
            6..8 => Nanos::from_millis(2),
            8..10 => Nanos::from_millis(20),
            10 => Nanos::from_millis(200),
            _ => LONGEST_DELAY,
        })
    }
}
