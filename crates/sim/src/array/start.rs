//! Starts the array: on a single head, or where the heads have decided.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use engine::{PairedArray, Saving, Shard, StartParameters};
use env::Env;

use super::bench::ArrayBench;
use super::engine_shard::{ArrayEnv, EngineShard};
use super::heads::{ARRAY as PAIRED_ARRAY, NewOwner};
use super::set_up::{Started, ToArray};
use crate::process::Simulation;
use crate::workload::{Bench, Failure};
use crate::world::ProcessId;

/// The array's machine, if there is one head.
const ARRAY: u16 = 0;

/// By then some head owns the array: heads are started again within a second, and wait half a second.
const OWNER_TIME: base::Nanos = base::Nanos::from_secs(30);

/// An array that was started: its process, the way in, and what became of its start.
pub type Running = (ProcessId, ToArray, Started);

impl ArrayBench {
    /// The array that hosts are to use: a new one, or the one that the heads have started last.
    pub(super) fn start_array(&mut self, simulation: &mut Simulation) -> Running {
        if self.heads.is_none() {
            let (process, environments, outside) = simulation.world.start_process(ARRAY, self.plan.shards);
            let paths = self.orders.paths(&self.plan).into_iter();
            let second = self.who.second.iter().map(|options| options.path.clone());
            let owner = NewOwner {
                process,
                environments: environments.into_iter().map(ArrayEnv::Alone).collect(),
                commands: outside,
                portals: vec![self.portal.into()],
                paths: paths.chain(second).collect(),
                // another server each time: nothing but the drives comes along
                kept: None,
                waits: Arc::default(),
                is_started: Arc::default(),
                term: 0,
            };
            return self.start_shards(simulation, owner);
        }
        self.heads.as_mut().expect("just seen").begin_round(simulation, self.calm);
        let world = simulation.world.clone();
        let until = world.now() + OWNER_TIME;
        loop {
            assert!(world.now() < until && !self.shared.has_failed(), "no head has become the owner");
            match &self.newest {
                Some(running) if world.is_alive(running.0) => return running.clone(),
                _ => {}
            }
            if let Err(what) = Bench::follow(self, simulation) {
                self.shared.fail(Failure::Broken(what));
            }
            if !simulation.step() {
                self.heads.as_mut().expect("just seen").wait_no_longer();
            }
        }
    }

    pub(super) fn start_shards(&mut self, simulation: &mut Simulation, owner: NewOwner) -> Running {
        let (shards, memory) = (self.plan.shards, self.memory);
        self.shards.clear();
        let NewOwner { process, environments, commands, portals, paths, kept, waits, is_started, term } =
            owner;
        self.portal = portals[0].address;
        self.forwarded = portals.get(1).map(|portal| portal.address);
        let started = Started::default();
        let place = started.clone();
        let mut parameters = Some(StartParameters {
            portals,
            drives: paths,
            head: base::HeadId(1),
            term,
            array_name: "simulated".to_owned(),
            pair: kept.is_some().then(|| PairedArray {
                array: PAIRED_ARRAY,
                waits: Box::new(move |_| waits.store(true, Ordering::Relaxed)),
            }),
            was_paired: false,
            state: kept.as_ref().and_then(|kept| kept.lock().expect("one thread").clone()),
            save_state: Box::new(move |bytes| {
                kept.iter().for_each(|kept| *kept.lock().expect("one thread") = Some(bytes.clone()));
                Saving::kept()
            }),
            newest_event: self.known.borrow().newest,
            started: Box::new(move |result| {
                is_started.store(result.is_ok(), Ordering::Relaxed);
                *place.lock().expect("one thread") = Some(result);
            }),
        });
        for (index, environment) in environments.into_iter().enumerate() {
            let shard = Shard::new(environment.shard(), shards, parameters.take(), memory);
            let shard = Rc::new(RefCell::new(EngineShard { environment, shard, armed: None }));
            self.shards.push(shard.clone());
            simulation.attach(process, index as u16, shard);
            simulation.world.nudge(process, index as u16);
        }
        (process, Rc::new(commands), started)
    }
}
