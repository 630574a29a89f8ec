//! One initiator's connection, which is its session: the protocol's state, its LUNs, its running commands.
//!
//! What always holds: a command is in `commands` as long as it may touch a volume; an aborted command is never
//! answered; once `ended` is set, no command begins.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::rc::Rc;

use base::limits::{READ_BYTES_PER_SESSION_MAX, TRANSFER_BYTES_MAX};
use base::{HashMap, Nanos, PoolId, ShardId, VolumeId};
use block::{Budget, Held};
use env::ConnectionHandle;
use iscsi::{CloseReason, Connection, SessionIdentity, SessionKind, TaskAttribute, TaskTag};
use reservation::{NexusName, Registrant};
use scsi::{Naa, Nexus, UnitAttention};
use shard::{Context, Replica, SessionKey, SessionPlace};
use task::{Gate, Io, Notify, Semaphore, SemaphorePermit, race};
use wire::scsi::reservation::initiator_port_name;

use crate::events::Refusal;
use crate::figures::{Arrival, Figures, Sums};
pub(crate) use crate::running::{Abort, RunningCommand};
use crate::task_set::{Place, TaskSet};
use crate::units::{HostUnit, HostUnits};
use api::{PortalOptions, SessionEnd, SessionStatus};

/// The unit in which room for reads is counted.
const ROOM_BYTES: usize = 4096;

/// Room for the data of a read, taken from the session and from the shard.
pub(crate) struct ReadMemory {
    permit: SemaphorePermit,
    held: Held,
}

/// The shard has no room: the command is refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct NoMemory;

/// A LUN of a session: an I_T_L nexus.
pub(crate) struct LunNexus {
    pub(crate) volume: VolumeId,
    pub(crate) read_only: bool,
    pub(crate) unit: RefCell<Rc<HostUnit>>,
    pub(crate) nexus: RefCell<Nexus>,
    pub(crate) tasks: TaskSet,
}

/// The initiator that has logged in.
pub(crate) struct Login {
    pub(crate) identity: SessionIdentity,
    /// Name of the host that the initiator belongs to.
    pub(crate) host: String,
}

impl Login {
    /// Whether this is no discovery session.
    pub(crate) fn is_normal(&self) -> bool {
        self.identity.kind == SessionKind::Normal
    }

    fn nexus_name(&self) -> NexusName {
        let name = initiator_port_name(&self.identity.initiator_name, self.identity.isid);
        NexusName { initiator: name.into(), port: self.identity.portal_group_tag }
    }
}

/// A connection and all that belongs to it.
pub(crate) struct Session {
    io: Io,
    pub(crate) place: SessionPlace,
    pub(crate) handle: ConnectionHandle,
    peer: SocketAddr,
    local: SocketAddr,
    /// The portal of the session, with its current options.
    pub(crate) portal: RefCell<PortalOptions>,
    pub(crate) protocol: RefCell<Connection>,
    pub(crate) login: RefCell<Option<Login>>,
    luns: RefCell<BTreeMap<u16, Rc<LunNexus>>>,
    /// The last volume of each LUN, also of LUNs that the session no longer has.
    known: RefCell<BTreeMap<u16, VolumeId>>,
    commands: RefCell<HashMap<TaskTag, Rc<RunningCommand>>>,
    /// Memory of ended commands, reused for new ones: at most as many as ever ran at once.
    spare: RefCell<Vec<Rc<RunningCommand>>>,
    /// A command has ended.
    command_ended: Notify,
    /// A command has been aborted.
    pub(crate) aborting: Notify,
    /// Room for the data of reads, in units of [`ROOM_BYTES`].
    room: Semaphore,
    /// What all sessions of the shard share.
    budget: Rc<Budget>,
    /// Room held by data that waits to be sent.
    unsent: RefCell<Option<ReadMemory>>,
    /// Output may be ready, or the session has ended.
    pub(crate) output: Notify,
    /// The protocol may take input again, or the session has ended.
    pub(crate) input: Notify,
    pub(crate) ended: Cell<bool>,
    /// Open when the session has ended.
    pub(crate) ending: Gate,
    /// A login waits for shard 0.
    pub(crate) login_pending: Cell<bool>,
    /// The name that shard 0 keeps for this session.
    pub(crate) registered: RefCell<Option<SessionKey>>,
    /// The session ends without waiting until the peer has received the remaining data.
    pub(crate) hasty: Cell<bool>,
    /// Open when the session is gone: no command is running, and its name is released.
    pub(crate) gone: Gate,
    /// What its commands have done.
    pub(crate) figures: Figures,
    /// Why the session ends, or why it could not log in; reported at its end.
    pub(crate) end_noted: Cell<Option<SessionEnd>>,
    pub(crate) refusal_noted: Cell<Option<Refusal>>,
}

impl Session {
    pub(crate) fn new(
        context: &Context,
        place: SessionPlace,
        handle: ConnectionHandle,
        addresses: (SocketAddr, SocketAddr),
        portal: PortalOptions,
        protocol: Connection,
    ) -> Session {
        let io = &context.io;
        Session {
            io: io.clone(),
            place,
            handle,
            peer: addresses.0,
            local: addresses.1,
            portal: RefCell::new(portal),
            protocol: RefCell::new(protocol),
            login: RefCell::new(None),
            luns: RefCell::new(BTreeMap::new()),
            known: RefCell::default(),
            commands: RefCell::default(),
            spare: RefCell::default(),
            command_ended: Notify::new(io),
            aborting: Notify::new(io),
            room: Semaphore::new(io, READ_BYTES_PER_SESSION_MAX / ROOM_BYTES),
            budget: context.budget.clone(),
            unsent: RefCell::default(),
            output: Notify::new(io),
            input: Notify::new(io),
            ended: Cell::new(false),
            ending: Gate::new(io, false),
            login_pending: Cell::new(false),
            registered: RefCell::new(None),
            hasty: Cell::new(false),
            gone: Gate::new(io, false),
            figures: Figures::default(),
            end_noted: Cell::new(None),
            refusal_noted: Cell::new(None),
        }
    }

    pub(crate) fn now(&self) -> Nanos {
        self.io.now()
    }

    pub(crate) fn local(&self) -> SocketAddr {
        self.local
    }

    /// Asks the protocol to end the session. The initiator is told, if possible.
    pub(crate) fn close(&self, why: SessionEnd) {
        if !self.ended.get() {
            self.note_end(why);
            self.protocol.borrow_mut().close(CloseReason::Requested);
        }
        self.end();
    }

    /// Ends the session without waiting for the peer to receive anything.
    pub(crate) fn drop_now(&self, why: SessionEnd) {
        self.hasty.set(true);
        self.close(why);
    }

    /// From now on no command begins, and running commands are not answered.
    pub(crate) fn end(&self) {
        if !self.ended.replace(true) {
            self.commands.borrow().values().for_each(|command| command.abort(Abort::Silent));
            self.aborting.notify();
            self.ending.open();
        }
        self.output.notify();
        self.input.notify();
    }

    /// The address of the peer.
    pub(crate) fn peer(&self) -> SocketAddr {
        self.peer
    }

    /// The LUN, if this session has it.
    pub(crate) fn lun(&self, number: u16) -> Option<Rc<LunNexus>> {
        self.luns.borrow().get(&number).cloned()
    }

    /// The LUN of the volume with this NAA designator, if this session has it.
    pub(crate) fn lun_of(&self, naa: &Naa) -> Option<Rc<LunNexus>> {
        let luns = self.luns.borrow();
        luns.values().find(|lun| lun.unit.borrow().logical.identity.naa == *naa).cloned()
    }

    /// All LUNs of this session, in order.
    pub(crate) fn luns(&self) -> Vec<(u16, Rc<LunNexus>)> {
        self.luns.borrow().iter().map(|(&number, lun)| (number, lun.clone())).collect()
    }

    /// A command is about to touch its volume.
    pub(crate) fn begin(&self, task: TaskTag, volume: VolumeId, arrival: Arrival) -> Rc<RunningCommand> {
        assert!(!self.ended.get(), "no command begins in a session that has ended");
        let new = RunningCommand::new(task, volume, arrival);
        let command = match self.spare.borrow_mut().pop() {
            Some(mut spare) => {
                *Rc::get_mut(&mut spare).expect("nobody else has it") = new;
                spare
            }
            None => Rc::new(new),
        };
        let replaced = self.commands.borrow_mut().insert(task, command.clone());
        assert!(replaced.is_none(), "task tags are not reused while their command is at work");
        command
    }

    /// A command cannot touch its volume any more.
    pub(crate) fn finish(&self, command: Rc<RunningCommand>) {
        let removed = self.commands.borrow_mut().remove(&command.task);
        drop(removed.expect("a command ends once"));
        self.command_ended.notify();
        if Rc::strong_count(&command) == 1 {
            self.spare.borrow_mut().push(command);
        }
    }

    /// The commands that `choose` picks.
    pub(crate) fn at_work(&self, choose: impl Fn(&RunningCommand) -> bool) -> Vec<Rc<RunningCommand>> {
        self.commands.borrow().values().filter(|command| choose(command)).cloned().collect()
    }

    /// Whether no other command of this session is running on its volume.
    pub(crate) fn is_alone(&self, command: &RunningCommand) -> bool {
        let others = |other: &RunningCommand| other.task != command.task && other.touches(command.volume);
        self.at_work(others).is_empty()
    }

    /// Waits until none of these commands can touch its volume any more.
    pub(crate) async fn wait_for(&self, commands: &[Rc<RunningCommand>]) {
        let at_work = |command: &Rc<RunningCommand>| {
            self.commands.borrow().get(&command.task).is_some_and(|other| Rc::ptr_eq(other, command))
        };
        while commands.iter().any(at_work) {
            self.command_ended.wait().await;
        }
    }

    /// Waits until no command is running.
    pub(crate) async fn wait_for_all(&self) {
        while !self.commands.borrow().is_empty() {
            self.command_ended.wait().await;
        }
    }

    /// Adds what it has done to the sums of its host, its portal and the shard, at its end.
    pub(crate) fn add_to(&self, sums: &Sums, replica: &Replica) {
        let (login, portal) = (self.login.borrow(), self.portal.borrow().address);
        sums.ended(replica, login.as_ref().map(|login| login.host.as_str()), portal, self.figures.get());
    }

    /// Room for the data of a read, if it is available without waiting.
    pub(crate) fn room_now(&self, bytes: usize) -> Option<ReadMemory> {
        let held = self.budget.try_hold(bytes)?;
        let permit = self.room.try_acquire(bytes.div_ceil(ROOM_BYTES))?;
        Some(ReadMemory { permit, held })
    }

    /// Waits for room for the data of a read. Reads get room in order, so that a large one gets its turn. A command
    /// that has `begun` is no longer refused. `None`: the command was stopped while it waited.
    pub(crate) async fn room_for(
        &self,
        command: &RunningCommand,
        bytes: usize,
        begun: bool,
    ) -> Option<Result<ReadMemory, NoMemory>> {
        assert!(bytes <= TRANSFER_BYTES_MAX, "a read of {bytes} bytes");
        let units = bytes.div_ceil(ROOM_BYTES);
        let with = |permit| match self.budget.try_hold(bytes) {
            Some(held) => Ok(ReadMemory { permit, held }),
            None if begun => Ok(ReadMemory { permit, held: self.budget.hold(bytes) }),
            None => Err(NoMemory),
        };
        if let Some(permit) = self.room.try_acquire(units) {
            return Some(with(permit));
        }
        let mut room = std::pin::pin!(self.room.acquire(units));
        while !command.stopped.get() {
            if let Ok(permit) = race(room.as_mut(), self.aborting.wait()).await {
                return Some(with(permit));
            }
        }
        None
    }

    /// Waits until the task set lets the command begin. `false`: it was aborted while it waited.
    pub(crate) async fn wait_for_turn(
        &self,
        lun: &LunNexus,
        (attribute, place): (TaskAttribute, Place),
        command: &RunningCommand,
    ) -> bool {
        while !command.stopped.get() {
            if lun.tasks.may_begin(attribute, place) {
                return true;
            }
            let _ = race(lun.tasks.ended.wait(), self.aborting.wait()).await;
        }
        false
    }

    /// Keeps the room of data that waits to be sent, until it has been sent.
    pub(crate) fn keep_until_sent(&self, room: ReadMemory) {
        match &mut *self.unsent.borrow_mut() {
            Some(unsent) => {
                unsent.permit.absorb(room.permit);
                unsent.held.absorb(room.held);
            }
            none => *none = Some(room),
        }
    }

    /// Takes the room of all data that waits to be sent. The caller drops it when the data has been sent.
    pub(crate) fn take_unsent(&self) -> Option<ReadMemory> {
        self.unsent.borrow_mut().take()
    }

    /// Updates the session to the new state of the array. The returned commands have lost their LUN while they were
    /// running: the caller must wait for them before it reports the loss as done.
    pub(crate) fn refresh(&self, replica: &Replica, units: &HostUnits) -> Vec<Rc<RunningCommand>> {
        let address = self.portal.borrow().address;
        if let Some(portal) = replica.portal(address) {
            self.portal.replace(portal.clone());
        }
        self.follow_renamed_host(replica);
        let login = self.login.borrow();
        let Some(login) = login.as_ref().filter(|_| !self.ended.get()) else { return Vec::new() };
        let host = replica.catalog.host_of_initiator(&login.identity.initiator_name);
        if host.is_none() && login.host.is_empty() {
            return Vec::new(); // a stranger's discovery
        }
        let Some(host) = host.filter(|host| host.name.as_str() == login.host) else {
            self.close(SessionEnd::AccessTakenAway);
            return self.abort(|_| true);
        };
        if login.identity.kind == SessionKind::Discovery {
            return Vec::new();
        }
        let group = login.identity.portal_group_tag;
        if !self.portal.borrow().admits(&login.host) || !replica.groups.contains(&group) {
            self.close(SessionEnd::AccessTakenAway);
            return self.abort(|_| true);
        }
        let mut old = std::mem::take(&mut *self.luns.borrow_mut());
        let mut new = BTreeMap::new();
        let mut changed = false;
        let name = login.nexus_name();
        for (number, mapping) in replica.catalog.luns_of(host.name.as_str()) {
            let Some(unit) = units.get(mapping.volume) else { continue };
            let same =
                |lun: &Rc<LunNexus>| lun.volume == mapping.volume && lun.read_only == mapping.read_only;
            let lun = match old.remove(&number) {
                Some(lun) if same(&lun) => lun,
                lost => {
                    changed = true;
                    lost.into_iter().for_each(|lost| drop(old.insert(number, lost)));
                    Rc::new(LunNexus::new(&self.io, unit.clone(), mapping.read_only, name.clone()))
                }
            };
            lun.adopt(unit);
            // an initiator that knows another volume by this number must look again before it continues
            let before = self.known.borrow_mut().insert(number, mapping.volume);
            if before.is_some_and(|before| before != mapping.volume) {
                lun.nexus.borrow_mut().raise(UnitAttention::InquiryDataChanged);
            }
            new.insert(number, lun);
        }
        changed |= !old.is_empty();
        if changed {
            new.values().for_each(|lun: &Rc<LunNexus>| {
                lun.nexus.borrow_mut().raise(UnitAttention::ReportedLunsChanged);
            });
        }
        *self.luns.borrow_mut() = new;
        let lost: Vec<VolumeId> = old.values().map(|lun| lun.volume).collect();
        let commands = self.commands.borrow();
        let touches_lost = |command: &&Rc<RunningCommand>| lost.iter().any(|&volume| command.touches(volume));
        commands.values().filter(touches_lost).cloned().collect()
    }

    /// Follows a renamed host: if the host's name is gone and its initiator belongs to another host, this is the same
    /// host under its new name. Each change of the array is seen here separately, and no single change does more.
    fn follow_renamed_host(&self, replica: &Replica) {
        let mut login = self.login.borrow_mut();
        let Some(login) = login.as_mut().filter(|login| !login.host.is_empty()) else { return };
        if replica.catalog.find_host(&login.host).is_none()
            && let Some(host) = replica.catalog.host_of_initiator(&login.identity.initiator_name)
        {
            login.host = host.name.to_string();
        }
    }

    /// The session has just logged in, and gets its LUNs.
    pub(crate) fn log_in(&self, replica: &Replica, units: &HostUnits, login: Login) {
        let (name, mut luns) = (login.nexus_name(), self.luns.borrow_mut());
        let mappings = replica.catalog.luns_of(&login.host);
        for (number, mapping) in mappings.filter(|_| login.identity.kind == SessionKind::Normal) {
            if let Some(unit) = units.get(mapping.volume) {
                let lun = LunNexus::new(&self.io, unit, mapping.read_only, name.clone());
                luns.insert(number, Rc::new(lun));
                self.known.borrow_mut().insert(number, mapping.volume);
            }
        }
        drop(luns);
        *self.login.borrow_mut() = Some(login);
    }

    /// Notifies the session that these pools have crossed the threshold of their space.
    pub(crate) fn tell_threshold(&self, pools: &[PoolId]) {
        for (_, lun) in self.luns().into_iter().filter(|_| !pools.is_empty()) {
            let crossed = lun.unit.borrow().unit.pool().is_some_and(|pool| pools.contains(&pool));
            if crossed {
                lun.nexus.borrow_mut().raise(UnitAttention::ThinProvisioningThreshold);
            }
        }
    }

    /// Who this session is to reservations.
    pub(crate) fn registrant(&self) -> Option<Registrant> {
        self.login.borrow().as_ref().map(|login| Registrant::Nexus(login.nexus_name()))
    }

    pub(crate) fn status(&self, shard: ShardId) -> Option<SessionStatus> {
        let login = self.login.borrow();
        let login = login.as_ref()?;
        let traffic = self.figures.get().unwrap_or_default();
        Some(SessionStatus {
            initiator: login.identity.initiator_name.clone(),
            host: login.host.clone(),
            peer: self.peer.to_string(),
            portal: self.local.to_string(),
            shard: shard.0,
            discovery: login.identity.kind == SessionKind::Discovery,
            commands: traffic.commands(),
            read_bytes: traffic.reads.bytes,
            written_bytes: traffic.writes.bytes,
        })
    }
}

impl LunNexus {
    fn new(io: &Io, unit: Rc<HostUnit>, read_only: bool, name: NexusName) -> LunNexus {
        let mut nexus = Nexus::new(name, read_only);
        nexus.adopt(unit.unit.reservations.borrow().clone());
        nexus.adopt_access(unit.unit.access.borrow().clone());
        LunNexus {
            volume: unit.unit.volume,
            read_only,
            unit: RefCell::new(unit),
            nexus: RefCell::new(nexus),
            tasks: TaskSet::new(io),
        }
    }

    /// Adopts a unit, because the geometry of the volume may have changed.
    fn adopt(&self, unit: Rc<HostUnit>) {
        let before = self.unit.replace(unit.clone());
        if before.logical.geometry.size_bytes() != unit.logical.geometry.size_bytes() {
            self.nexus.borrow_mut().raise(UnitAttention::CapacityChanged);
        }
        let (mut nexus, states) = (self.nexus.borrow_mut(), unit.unit.access.borrow().clone());
        if *nexus.access() != *states {
            nexus.raise(UnitAttention::AluaStateChanged);
        }
        nexus.adopt_access(states);
    }
}
