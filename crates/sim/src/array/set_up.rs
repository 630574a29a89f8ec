//! Sets the array up, and checks in later rounds that everything still exists.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::rc::Rc;
use std::sync::{Arc, Mutex};

use api::{Command, CommandError, Reply};
use api::{CommandErrorKind, NewBacking, NewHost, NewPool, NewVolume};
use base::{BLOCK_BYTES, Nanos};
use engine::ShardMessage;
use task::Io;

use super::bench::COPIER;
use super::copies::HOST;
use super::engine_shard::command;
use super::onlooker;
use crate::drive::DriveOptions;
use crate::environment::Outside;
use crate::seed::Plan;
use crate::workload::{Shared, VolumePlan};

pub const POOL: &str = "pool";
const SECOND_POOL: &str = "second";

pub type Started = Arc<Mutex<Option<Result<(), CommandError>>>>;
pub type ToArray = Rc<Outside<ShardMessage>>;

/// What has been acknowledged to the administrator, by name: it must be there for ever.
pub type Made = Rc<RefCell<BTreeSet<String>>>;

pub fn initiator_name(host: u16) -> String {
    format!("iqn.2026-11.test.sim:host{host}")
}

/// See the module's words.
pub struct Administrator {
    pub io: Io,
    pub outside: ToArray,
    pub started: Started,
    pub plan: Plan,
    pub hosts: u16,
    pub made: Made,
    pub prepared: Rc<Cell<bool>>,
    pub shared: Rc<Shared>,
    /// Whether somebody makes copies.
    pub copies: bool,
    /// Whether somebody looks on.
    pub onlooker: bool,
    /// Drives of a second pool, if there is one.
    pub second: Vec<DriveOptions>,
}

impl Administrator {
    /// The target's name, when hosts can log in.
    pub async fn prepare(&self) -> Result<String, String> {
        loop {
            if let Some(started) = self.started.lock().expect("one thread").take() {
                started.map_err(|error| format!("the array does not start: {error}"))?;
                break;
            }
            self.io.sleep(Nanos::from_micros(100)).await;
        }
        for (name, command) in self.commands() {
            self.make(&name, command).await?;
        }
        self.prepared.set(true);
        match command(&self.io, &self.outside, Command::Status).await {
            Ok(Reply::Status(status)) => {
                self.shared.growth.borrow().check(&self.plan.volumes, &status)?;
                Ok(status.target_name)
            }
            other => Err(format!("status: {other:?}")),
        }
    }

    /// Makes a thing, unless it is there. What was acknowledged once must be there.
    async fn make(&self, name: &str, wanted: Command) -> Result<(), String> {
        let answer = command(&self.io, &self.outside, wanted).await;
        let known = self.made.borrow().contains(name);
        self.shared.world.note(|| format!("{name}: {answer:?}"));
        match answer {
            Ok(_) if known => Err(format!("{name} was acknowledged, and is lost")),
            Ok(_) => {
                self.made.borrow_mut().insert(name.to_owned());
                Ok(())
            }
            Err(error) if error.kind == CommandErrorKind::AlreadyExists => {
                self.made.borrow_mut().insert(name.to_owned());
                Ok(())
            }
            Err(error) => Err(format!("{name}: {error}")),
        }
    }

    fn create_pool(&self, name: &str, drives: &[DriveOptions], width: Option<u8>) -> (String, Command) {
        let paths: Vec<String> = drives.iter().map(|options| options.path.clone()).collect();
        let pool = NewPool {
            width,
            // a pool that was being made when the power went may have left labels behind
            force: paths.clone(),
            ..NewPool::new(name, self.plan.protection.to_string(), paths)
        };
        (format!("pool {name}"), Command::PoolCreate { pool, dry_run: false })
    }

    /// Every other volume is in the second pool, where there is one.
    fn pool_of(&self, volume: &VolumePlan) -> &'static str {
        if self.second.is_empty() || volume.volume % 2 == 1 { POOL } else { SECOND_POOL }
    }

    fn commands(&self) -> Vec<(String, Command)> {
        let mut all = vec![self.create_pool(POOL, &self.plan.drives, self.plan.width)];
        if !self.second.is_empty() {
            all.push(self.create_pool(SECOND_POOL, &self.second, None));
        }
        for volume in &self.plan.volumes {
            let name = format!("volume{}", volume.volume);
            let volume = NewVolume {
                name: name.clone(),
                backing: NewBacking::Pool(self.pool_of(volume).to_owned()),
                size_bytes: Some(volume.blocks * BLOCK_BYTES as u64),
                block_bytes: 512,
                write_back: volume.write_back,
            };
            all.push((name, Command::VolumeCreate { volume, dry_run: false }));
        }
        if self.copies {
            all.push((HOST.to_owned(), create_host(HOST, COPIER)));
        }
        let hosts = (0..self.hosts).map(|host| (format!("host{host}"), initiator_name(host), false));
        let onlooker = (onlooker::HOST.to_owned(), onlooker::INITIATOR.to_owned(), true);
        for (name, initiator, read_only) in hosts.chain(self.onlooker.then_some(onlooker)) {
            all.push((name.clone(), create_host(&name, &initiator)));
            for volume in &self.plan.volumes {
                let (volume, lun) = (format!("volume{}", volume.volume), Some(volume.volume as u16));
                let (map, host) = (volume.clone(), name.clone());
                let map = Command::Map { volume: map, host, lun, read_only, dry_run: false };
                all.push((format!("{volume} to {name}"), map));
            }
        }
        all
    }
}

fn create_host(name: &str, initiator: &str) -> Command {
    let (name, initiators) = (name.to_owned(), vec![initiator.to_owned()]);
    let host = NewHost { name, initiators, chap: None, mutual_chap: None };
    Command::HostCreate { host, dry_run: false }
}
