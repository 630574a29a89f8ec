//! Scripted runs: what random runs meet too seldom. Each is run with many seeds, which choose delays and what hosts do.

use base::Nanos;

use crate::network::REGISTER;
use crate::world::{AtHead, Event, World};

/// A step of a script: when, and what.
type Step = (u64, fn(&mut World));

/// Name, what happens, and the steps, in milliseconds of the run. Head 0 is the owner and in sync from the first second on.
pub const SCENARIOS: [(&str, &[Step]); 2] = [
    ("handover-to-a-head-that-crashes", &HANDOVER_TO_A_HEAD_THAT_CRASHES),
    ("handover-that-wins-late", &HANDOVER_THAT_WINS_LATE),
];

/// The new owner crashes as soon as the register names it, and is back within the lease that it has given. The earlier owner
/// hears of nothing.
const HANDOVER_TO_A_HEAD_THAT_CRASHES: [Step; 4] = [
    (1500, |world| {
        world.hand_over_from(0);
        world.network.cut_one_way(REGISTER, 0, Nanos::from_millis(2500));
    }),
    (1560, |world| {
        world.network.cut_one_way(1, 0, Nanos::from_millis(2500));
        world.kill(1);
    }),
    (1570, |world| world.boot(1)),
    (4000, |_| {}),
];

/// A handover is given up while the register stalls. Then the owner's drives stall, so that its partner has more than itself.
/// The handover wins, and both heads crash one after the other.
const HANDOVER_THAT_WINS_LATE: [Step; 6] = [
    (1490, |world| world.network.stall_register(Nanos::from_millis(2300))),
    (1500, |world| world.hand_over_from(0)),
    (2050, |world| world.nodes[0].drives_stall_until = Nanos::from_millis(4000)),
    (2360, |world| world.kill(0)),
    (2400, |world| {
        world.kill(1);
        world.boot(0);
    }),
    (5000, |world| world.boot(1)),
];

impl World {
    fn hand_over_from(&mut self, at: usize) {
        self.at(Nanos(0), Event::Head { at, start: None, what: AtHead::HandOver });
    }
}
