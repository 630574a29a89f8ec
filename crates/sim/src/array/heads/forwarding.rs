//! The shards of a head that is not the owner: they forward what hosts send to its portal.

use std::cell::RefCell;
use std::rc::Rc;

use base::Nanos;
use engine::ShardMessage;
use env::Env;
use heads::{ForwardOptions, ForwardShard, Heard, Identity, Mail, PartnerAddress, Portals};

use crate::environment::SimEnv;
use crate::process::{Simulation, Turn};
use crate::world::ProcessId;

type HeadEnv = SimEnv<Mail<ShardMessage>>;

/// A shard that forwards, until the array is started on it.
pub struct ForwardTurns {
    running: Option<(HeadEnv, ForwardShard<Mail<ShardMessage>>)>,
    /// When it has asked to be woken.
    armed: Option<Nanos>,
}

impl ForwardTurns {
    /// It forwards no more: its world is for a shard of the array, and the mail that has come.
    pub fn stop(&mut self) -> (HeadEnv, Vec<Mail<ShardMessage>>) {
        let (mut environment, shard) = self.running.take().expect("an array is started once");
        let mail = shard.stop(&mut environment);
        (environment, mail)
    }
}

impl Turn for ForwardTurns {
    fn turn(&mut self) {
        let Some((environment, shard)) = &mut self.running else { return };
        shard.turn(environment, false);
        let now = environment.now();
        let deadline = shard.next_deadline(now).max(now + Nanos::from_micros(1));
        if self.armed.is_none_or(|armed| armed <= now || armed > deadline) {
            self.armed = Some(deadline);
            environment.wake_at(deadline);
        }
    }
}

/// Starts the shards of a head in these worlds.
pub fn start(
    simulation: &mut Simulation,
    process: ProcessId,
    environments: Vec<HeadEnv>,
    (identity, owner, heard, portals): (Identity, PartnerAddress, Heard, Portals),
) -> Vec<Rc<RefCell<ForwardTurns>>> {
    let begin = |(index, mut environment): (usize, HeadEnv)| {
        let options = ForwardOptions {
            identity: identity.clone(),
            owner: owner.clone(),
            heard: heard.clone(),
            portals: portals.clone(),
            tells_portals: index == 0,
        };
        let shard = ForwardShard::start(&mut environment, options);
        let turns = Rc::new(RefCell::new(ForwardTurns { running: Some((environment, shard)), armed: None }));
        simulation.attach(process, index as u16, turns.clone());
        simulation.world.nudge(process, index as u16);
        turns
    };
    environments.into_iter().enumerate().map(begin).collect()
}
