//! The array's management, on shard 0: what there is, how it starts, how it changes, how it stops.
//!
//! Changes take turns. Each is checked against the catalog, made durable, told to every shard, and answered
//! when every shard has taken it over. What is not durable is not told; what was told is durable.

mod absent;
mod access;
mod at_stake;
mod bin;
mod care;
mod change;
mod clock;
mod copy_sources;
mod drive_commands;
mod drives;
mod error;
mod fullness;
mod hosts;
mod identity;
mod judge;
mod keeper;
mod layers;
mod locate;
mod login_problems;
mod loss;
mod members;
mod opening;
mod order;
mod outlook;
mod pool_create;
mod pool_delete;
mod pool_settings;
mod pool_status;
mod pools;
mod portals;
mod raw;
mod refresh;
mod reload;
mod remembered;
mod rename;
mod resize;
mod schedules;
mod scrub;
mod slow;
mod snapshots;
pub(crate) mod space;
mod spares;
mod start;
mod status;
mod volumes;
mod wipe;

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;

use base::limits::CONTROL_QUEUE_MAX;
use base::{ArrayId, LayerId, Nanos, PoolId, VolumeId};
use bytes::Bytes;
use catalog::Catalog;
use env::{DriveHandle, DriveInfo, IoError};
use task::{Gate, Notify, Semaphore};

pub(crate) use self::copy_sources::{CopyAsk, CopyGrant};
use self::drives::Drive;
use self::pools::Pool;
use crate::context::Context;
use crate::message::Call;
use crate::replica::Replica;
use crate::{Saving, StartParameters, StartedHook};
use api::{Caller, Command, CommandError, CommandErrorKind, PortalOptions, Reply, ReplyChannel, Upkeep};

/// The array, as shard 0 manages it.
pub(crate) struct Array {
    context: Rc<Context>,
    parameters: Parameters,
    started: RefCell<Option<StartedHook>>,
    /// Open when the start has ended, well or not.
    ready: Gate,
    /// Why the array cannot be managed.
    failure: RefCell<Option<CommandError>>,
    /// Schedules that could not do what they should.
    late: RefCell<Vec<schedules::Late>>,
    clock: clock::Clock,
    /// What the start could not write, and went on without.
    unsettled: RefCell<Vec<CommandError>>,
    /// What was found of pools when they were last tried.
    tried: RefCell<BTreeMap<PoolId, absent::Tried>>,
    raw_looks: raw::Looks,
    /// Files of drives that are not where they were, by path.
    removed_files: RefCell<BTreeSet<String>>,
    /// Layers of plans that could not be made durable.
    leftover: RefCell<Vec<(PoolId, LayerId)>>,
    /// Changes take turns.
    changes: Semaphore,
    /// The command whose turn it is.
    order: RefCell<Option<Rc<order::Order>>>,
    /// The catalog is stored by one at a time; nobody waits for a command meanwhile.
    storing: Semaphore,
    commands_waiting: Cell<usize>,
    /// When spares were last looked at.
    spares_seen: Cell<Option<Nanos>>,
    /// Held by the keeper for the length of a round.
    keeping: Semaphore,
    /// Something for the keeper to look at.
    wake_keeper: Notify,
    /// The end has begun.
    stopping: Cell<bool>,
    copying: RefCell<copy_sources::Copying>,
    /// Drives that are made to blink.
    locating: Cell<usize>,
    began: Cell<Nanos>,
    unanswered: opening::Unanswered,
    state: RefCell<State>,
}

/// What the head was started with.
struct Parameters {
    portals: Vec<PortalOptions>,
    drives: RefCell<Vec<String>>,
    array_name: String,
    save_state: Box<dyn Fn(Bytes) -> Saving + Send>,
    state: RefCell<Option<Bytes>>,
}

/// What changes.
struct State {
    catalog: Catalog,
    portals: Vec<Portal>,
    raw: Vec<RawDevice>,
    /// Volumes that hosts must not see now, although they are mapped.
    hidden: BTreeSet<VolumeId>,
    drives: Vec<Drive>,
    pools: Vec<Pool>,
}

/// An address that was to be listened on.
struct Portal {
    options: PortalOptions,
    result: Result<SocketAddr, IoError>,
}

/// The device of a raw volume.
struct RawDevice {
    volume: VolumeId,
    drive: Result<(DriveHandle, DriveInfo), raw::NoDevice>,
    /// What was known of it when it was last opened.
    last: Option<DriveInfo>,
}

impl Portal {
    /// As it is listened on.
    fn bound(&self) -> Option<PortalOptions> {
        let address = self.result.ok()?;
        Some(PortalOptions { address, ..self.options.clone() })
    }
}

impl State {
    /// Portal groups, whether or not their addresses could be had: a target port comes and goes with the head's file.
    fn groups(&self) -> BTreeSet<u16> {
        self.portals.iter().map(|portal| portal.options.group).collect()
    }
}

impl Array {
    pub(crate) fn new(context: &Rc<Context>, parameters: StartParameters) -> Array {
        let name = "starting".parse().expect("a valid name");
        let io = &context.io;
        Array {
            context: context.clone(),
            started: RefCell::new(Some(parameters.started)),
            ready: Gate::new(io, false),
            failure: RefCell::new(None),
            late: RefCell::new(Vec::new()),
            clock: clock::Clock::default(),
            unsettled: RefCell::new(Vec::new()),
            tried: RefCell::default(),
            raw_looks: raw::Looks::default(),
            removed_files: RefCell::default(),
            leftover: RefCell::new(Vec::new()),
            changes: Semaphore::new(io, 1),
            order: RefCell::new(None),
            storing: Semaphore::new(io, 1),
            commands_waiting: Cell::new(0),
            spares_seen: Cell::new(None),
            keeping: Semaphore::new(io, 1),
            wake_keeper: Notify::new(io),
            stopping: Cell::new(false),
            copying: RefCell::default(),
            locating: Cell::new(0),
            began: Cell::new(Nanos::default()),
            unanswered: opening::Unanswered::default(),
            state: RefCell::new(State {
                catalog: Catalog::new(ArrayId(0), name),
                portals: Vec::new(),
                raw: Vec::new(),
                hidden: BTreeSet::new(),
                drives: Vec::new(),
                pools: Vec::new(),
            }),
            parameters: Parameters {
                portals: parameters.portals,
                drives: RefCell::new(parameters.drives),
                array_name: parameters.array_name,
                save_state: parameters.save_state,
                state: RefCell::new(parameters.state),
            },
        }
    }

    /// Begins a command; the reply follows when it is done. The queue of commands is bounded.
    pub(crate) fn on_command(self: Rc<Self>, command: Command, reply: ReplyChannel, caller: Caller) {
        if self.commands_waiting.get() >= CONTROL_QUEUE_MAX {
            let message = format!("{CONTROL_QUEUE_MAX} commands are waiting already");
            return reply(Err(CommandError::new(CommandErrorKind::Unavailable, message, "try again later")));
        }
        self.commands_waiting.set(self.commands_waiting.get() + 1);
        self.context.io.clone().spawn(async move {
            self.clone().answer(command, reply, caller).await;
            self.commands_waiting.set(self.commands_waiting.get() - 1);
        });
    }

    async fn carry_out(
        self: Rc<Self>,
        command: Command,
        order: &Rc<order::Order>,
    ) -> Result<Reply, CommandError> {
        if command == Command::Status {
            return Ok(Reply::Status(Box::new(self.status().await)));
        }
        if command == Command::Problems {
            return Ok(Reply::Problems(self.all_problems().await));
        }
        self.ready.pass().await;
        if command == Command::Shutdown {
            return self.shut_down().await;
        }
        if let Some(failure) = &*self.failure.borrow() {
            return Err(failure.clone());
        }
        if let Command::SnapshotList { volume } = command {
            // counting takes as long as there are many; changes need not wait for it
            return self.list_snapshots(volume).await;
        }
        let turn = self.take_turn(order).await?;
        if let Command::DriveLocate { path, seconds } = &command {
            drop(turn);
            return self.clone().locate_drive(path, *seconds).await;
        }
        match command {
            Command::DriveLocate { .. } => unreachable!("answered above"),
            Command::Upkeep { upkeep, dry_run } => self.upkeep(upkeep, dry_run).await,
            Command::DrivesFound(paths) => {
                self.parameters.drives.replace(paths);
                Ok(drive_commands::done(Vec::new(), false, None))
            }
            Command::Status | Command::Problems | Command::Shutdown | Command::SnapshotList { .. } => {
                unreachable!("answered above")
            }
            Command::Reload { portals, drives } => self.reload(portals, drives).await,
            Command::DriveList => Ok(Reply::Drives(self.list_drives().await)),
            Command::PoolCreate { pool, dry_run } => self.create_pool(pool, dry_run).await,
            Command::PoolDelete { name, eradicate, dry_run } => {
                self.delete_pool(&name, eradicate, dry_run).await
            }
            Command::VolumeCreate { volume, dry_run } => self.create_volume(volume, dry_run).await,
            Command::VolumeResize { name, size_bytes, force, dry_run } => {
                self.resize_volume(&name, size_bytes, force, dry_run).await
            }
            Command::VolumeAccess { name, access, dry_run } => self.set_access(&name, access, dry_run).await,
            Command::VolumeDelete { name, unmap, eradicate, dry_run } => {
                self.delete_volume(&name, unmap, eradicate, dry_run).await
            }
            Command::Copy { order, dry_run } => self.copy(order, dry_run).await,
            Command::Schedule { order, dry_run } => self.schedule(order, dry_run).await,
            Command::HostCreate { host, dry_run } => self.create_host(host, dry_run).await,
            Command::HostUpdate { name, update, dry_run } => self.update_host(&name, &update, dry_run).await,
            Command::Rename { of, name, dry_run } => self.rename(&of, &name, dry_run).await,
            Command::DriveWipe { path, dry_run } => self.wipe_drive(&path, dry_run).await,
            Command::DriveClear { drive, dry_run } => self.clear_drives(drive.as_deref(), dry_run).await,
            Command::HostDelete { name, unmap, dry_run } => self.delete_host(&name, unmap, dry_run).await,
            Command::Map { volume, host, lun, read_only, dry_run } => {
                self.map(&volume, &host, lun, read_only, dry_run).await
            }
            Command::Unmap { volume, host, dry_run } => self.unmap(&volume, &host, dry_run).await,
        }
    }

    async fn upkeep(&self, upkeep: Upkeep, dry_run: bool) -> Result<Reply, CommandError> {
        match upkeep {
            Upkeep::DriveAdd { pool, drives, force } => {
                self.add_drives(&pool, &drives, &force, dry_run).await
            }
            Upkeep::DriveRemove { pool, drive, cancel } => {
                self.remove_drive(&pool, &drive, cancel, dry_run).await
            }
            Upkeep::DriveReplace { pool, old, new, force } => {
                self.replace_drive(&pool, &old, &new, force, dry_run).await
            }
            Upkeep::Spare { pool, drives, release } => {
                self.set_spares(&pool, &drives, release, dry_run).await
            }
            Upkeep::Scrub { pool, stop } => self.scrub_pool(&pool, stop, dry_run).await,
            Upkeep::Set { pool, settings } => self.set_pool(&pool, &settings, dry_run).await,
        }
    }

    /// The array as shards are to see it now.
    fn replica(&self) -> Arc<Replica> {
        let state = self.state.borrow();
        let raw = state.raw.iter().filter_map(|raw| {
            let (drive, info) = raw.drive.as_ref().ok()?;
            Some((raw.volume, *drive, info.clone()))
        });
        Arc::new(Replica {
            catalog: state.catalog.without_mappings(&state.hidden),
            portals: state.portals.iter().filter_map(Portal::bound).collect(),
            groups: state.groups(),
            raw: raw.collect(),
            pools: state.online().iter().map(|m| (m.pool, m.lanes, m.epoch)).collect(),
        })
    }

    /// Tells every shard how the array is now, and waits until each has taken it over.
    async fn broadcast(&self) {
        let replica = self.replica();
        self.context.ask_all(|| Call::Replicate(replica.clone())).await;
    }

    /// Stops everything, in order: hosts, then pools, then shards. Shard 0 is last, after its reply.
    async fn shut_down(self: &Rc<Self>) -> Result<Reply, CommandError> {
        let stopping = CommandError::new(CommandErrorKind::Unavailable, "the array is stopping", "");
        let earlier = self.failure.borrow_mut().replace(stopping);
        if earlier.is_some_and(|earlier| earlier.message == "the array is stopping") {
            return Ok(Reply::Stopped);
        }
        self.stopping.set(true);
        drop(self.keeping.acquire(1).await);
        let _turn = self.changes.acquire(1).await;
        self.context.ask_all(|| Call::Quiesce).await;
        self.close_pools().await;
        self.context.ask_others(|| Call::Stop).await;
        let context = self.context.clone();
        // the reply goes out first: it is sent before this task runs
        self.context.io.spawn(async move { drop(context.ask(context.shard, Call::Stop).await) });
        Ok(Reply::Stopped)
    }
}
