//! A host's iSCSI session in the simulated world: logs in, sends commands, and logs in again when the
//! connection breaks.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::rc::Rc;

use base::Nanos;
use bytes::BytesMut;
use env::ConnectionHandle;
use iscsi::initiator::{Completion, Event, Initiator, InitiatorParams, Request, Tag};
use task::{Io, Notify, race};
use wire::iscsi::{TaskManagementFunction, TaskManagementResult};

use super::lun::sense;
use super::notices::Code;

/// Pause before another attempt to log in.
const RECONNECT: Nanos = Nanos::from_millis(5);
/// After this time without an answer, a new command shows whether the others were aborted.
const SILENCE: Nanos = Nanos::from_millis(50);
/// What tells a host that wants no TASK ABORTED: a reset, and what else has ended commands of its.
const ENDED_SILENTLY: [Code; 2] = [(0x29, 0x03), (0x2F, 0x00)];
/// The code of unit attentions of resets.
const RESET_CODE: u8 = 0x29;
/// Commands after which a CmdSN is 0 again that is to be so soon.
const SOON: u32 = 64;
/// Room for one receive.
const RECEIVE_BYTES: usize = 1 << 16;

/// How a command ended.
pub enum Ended {
    Completed(Completion),
    /// It was aborted, and is over.
    Aborted,
    /// The connection broke.
    Lost,
}

/// See the module's words.
pub struct HostSession {
    io: Io,
    address: SocketAddr,
    params: InitiatorParams,
    initiator: RefCell<Initiator>,
    completions: RefCell<BTreeMap<Tag, Completion>>,
    /// Commands under way, in the order in which they were sent, with their LUNs.
    under_way: RefCell<Vec<(Tag, u64)>>,
    /// Commands that were ended and not answered.
    aborted: RefCell<BTreeSet<Tag>>,
    /// Commands of our own, for which nobody waits.
    probes: RefCell<BTreeSet<Tag>>,
    /// Others' resets may end commands without a word: this host wants no TASK ABORTED (TAS 0).
    pub is_not_told: Cell<bool>,
    /// Functions that ask what became of a command.
    asked: RefCell<BTreeMap<Tag, Tag>>,
    /// Resets of this host's, behind which no command has begun yet: the LUN, and what was under way there.
    resets: RefCell<Vec<(u64, Vec<Tag>)>>,
    /// Unit attentions, by LUN, code and qualifier: when the last came.
    told: RefCell<BTreeMap<(u64, Code), Nanos>>,
    pub logged_in_at: Cell<Nanos>,
    /// Counts connections: a command that was sent on an older one is lost.
    connection: Cell<u64>,
    logged_in: Cell<bool>,
    /// Logins so far, and why the last one ended.
    pub logins: Cell<u64>,
    pub trouble: RefCell<String>,
    output: Notify,
    changed: Notify,
}

impl HostSession {
    pub fn new(io: &Io, address: SocketAddr, params: InitiatorParams) -> Rc<HostSession> {
        Rc::new(HostSession {
            io: io.clone(),
            address,
            initiator: RefCell::new(Initiator::new(params.clone())),
            params,
            completions: RefCell::default(),
            under_way: RefCell::default(),
            aborted: RefCell::default(),
            probes: RefCell::default(),
            is_not_told: Cell::new(false),
            asked: RefCell::default(),
            resets: RefCell::default(),
            told: RefCell::default(),
            logged_in_at: Cell::new(Nanos(0)),
            connection: Cell::new(0),
            logged_in: Cell::new(false),
            logins: Cell::new(0),
            trouble: RefCell::default(),
            output: Notify::new(io),
            changed: Notify::new(io),
        })
    }

    /// Keeps the session up as long as its process lives.
    pub async fn run(self: Rc<Self>) {
        loop {
            if let Ok((connection, _)) = self.io.connect(self.address).await {
                let params = InitiatorParams { cmd_sn: self.first_number(), ..self.params.clone() };
                *self.initiator.borrow_mut() = Initiator::new(params);
                self.io.spawn(self.clone().send_output(connection, self.connection.get()));
                self.receive(connection).await;
                self.end_connection();
                // it may be closed at the other end already
                self.io.close_connection(connection).await.ok();
            }
            self.io.sleep(RECONNECT).await;
        }
    }

    /// A CmdSN to begin with: 1, one that is soon 0 again, or any.
    fn first_number(&self) -> u32 {
        let drawn = self.io.random_u64();
        match drawn % 3 {
            0 => 1,
            1 => u32::MAX - (drawn >> 32) as u32 % SOON,
            _ => (drawn >> 32) as u32,
        }
    }

    fn end_connection(&self) {
        self.logged_in.set(false);
        self.connection.set(self.connection.get() + 1);
        self.completions.borrow_mut().clear();
        self.under_way.borrow_mut().clear();
        self.aborted.borrow_mut().clear();
        self.probes.borrow_mut().clear();
        self.asked.borrow_mut().clear();
        self.resets.borrow_mut().clear();
        self.told.borrow_mut().clear();
        self.output.notify();
        self.changed.notify();
    }

    async fn receive(&self, connection: ConnectionHandle) {
        let mut input = BytesMut::new();
        loop {
            input.reserve(self.initiator.borrow().receive_bytes_wanted().max(RECEIVE_BYTES));
            let before = input.len();
            let (buffer, result) = self.io.receive(connection, input).await;
            input = buffer;
            if result.is_err() || input.len() == before {
                return;
            }
            let io = self.io.clone();
            self.initiator.borrow_mut().on_receive(&mut input, &mut || io.random_u64());
            if !self.take_events() {
                return;
            }
            self.output.notify();
            self.changed.notify();
        }
    }

    /// `false`: the session is over.
    fn take_events(&self) -> bool {
        while let Some(event) = { self.initiator.borrow_mut().next_event() } {
            match event {
                Event::Completed(tag, completion) => self.on_completion(tag, completion),
                Event::TaskManagement { tag, result, ended } => self.on_function(tag, result, ended),
                Event::LoggedIn { .. } => {
                    self.logged_in.set(true);
                    self.logged_in_at.set(self.io.now());
                    self.logins.set(self.logins.get() + 1);
                }
                Event::Async(_) | Event::Pong(..) | Event::Targets(_) => {}
                other => {
                    *self.trouble.borrow_mut() = format!("{other:?}");
                    return false;
                }
            }
        }
        true
    }

    async fn send_output(self: Rc<Self>, connection: ConnectionHandle, number: u64) {
        while self.connection.get() == number {
            let output = self.initiator.borrow_mut().take_output();
            if output.is_empty() {
                self.output.wait().await;
            } else if self.io.send(connection, output).await.is_err() {
                return;
            }
        }
    }

    fn on_completion(&self, tag: Tag, completion: Completion) {
        let mut under_way = self.under_way.borrow_mut();
        let Some(index) = under_way.iter().position(|(other, _)| *other == tag) else { return };
        let (_, lun) = under_way.remove(index);
        let (key, code, qualifier) = sense(&completion);
        let is_attention = completion.status == 0x02 && key == 0x6;
        if is_attention {
            self.told.borrow_mut().insert((lun, (code, qualifier)), self.io.now());
        }
        if self.is_not_told.get() && is_attention && ENDED_SILENTLY.contains(&(code, qualifier)) {
            // somebody's reset or preemption may have ended what is under way; what waited for its data then is told first, and may
            // have been sent before what was ended
            let others = under_way.iter().filter(|(_, other)| *other == lun);
            others.for_each(|(tag, lun)| self.ask_after(*tag, *lun));
        }
        drop(under_way);
        if completion.status == 0 || is_attention {
            self.begun_after_resets(tag, lun);
        }
        if !self.probes.borrow_mut().remove(&tag) {
            self.completions.borrow_mut().insert(tag, completion);
        }
    }

    /// A command has begun: what resets have ended that were sent before it is over.
    fn begun_after_resets(&self, tag: Tag, lun: u64) {
        let is_before = |reset: &(u64, Vec<Tag>)| reset.0 == lun && !reset.1.contains(&tag);
        let (before, others) = self.resets.take().into_iter().partition(is_before);
        self.resets.replace(others);
        let before: Vec<(u64, Vec<Tag>)> = before;
        before.into_iter().flat_map(|(_, ended)| ended).for_each(|tag| self.end(tag));
    }

    /// Whether a unit attention has come since then: this one, or that of a reset, which takes the place of others.
    pub fn was_told(&self, lun: u64, code: Code, since: Nanos) -> bool {
        let told = self.told.borrow();
        told.iter().any(|(&(of, (one, other)), &at)| {
            of == lun && at >= since && ((one, other) == code || one == RESET_CODE)
        })
    }

    /// The command is over, without an answer.
    fn end(&self, tag: Tag) {
        let mut under_way = self.under_way.borrow_mut();
        let Some(index) = under_way.iter().position(|(other, _)| *other == tag) else { return };
        under_way.remove(index);
        if !self.probes.borrow_mut().remove(&tag) {
            self.aborted.borrow_mut().insert(tag);
        }
    }

    /// Aborts a command that may have ended: then either the target does not know it, or it ends now.
    fn ask_after(&self, command: Tag, lun: u64) {
        let function = TaskManagementFunction::AbortTask;
        let tag = self.initiator.borrow_mut().task_management(function, lun, Some(command));
        self.asked.borrow_mut().insert(tag, command);
    }

    fn on_function(&self, tag: Tag, result: TaskManagementResult, ended: Vec<Tag>) {
        ended.iter().for_each(|&tag| self.end(tag));
        let Some(command) = self.asked.borrow_mut().remove(&tag) else { return };
        // an answer would have come before
        if result == TaskManagementResult::TaskDoesNotExist && self.initiator.borrow_mut().forget(command) {
            self.end(command);
        }
    }

    /// Asks for a task management function for a LUN; what it has ended is told when it is done.
    pub fn manage(&self, function: TaskManagementFunction, lun: u64) {
        if self.logged_in.get() {
            self.initiator.borrow_mut().task_management(function, lun, None);
            if function == TaskManagementFunction::LogicalUnitReset {
                let under_way = self.under_way.borrow();
                let there = under_way.iter().filter(|(_, of)| *of == lun).map(|(tag, _)| *tag).collect();
                self.resets.borrow_mut().push((lun, there));
            }
            self.output.notify();
        }
    }

    /// Carries out a command, or aborts it after a while. Where the connection broke before it was answered, the
    /// session has been reinstated when this ends, and with that the command is over at the target too (RFC 7143
    /// §6.3.5).
    pub async fn command(self: &Rc<Self>, request: Request, abort_after: Option<Nanos>) -> Ended {
        let ended = self.try_command(request, abort_after).await;
        while matches!(ended, Ended::Lost) && !self.logged_in.get() {
            self.changed.wait().await;
        }
        ended
    }

    async fn try_command(self: &Rc<Self>, request: Request, abort_after: Option<Nanos>) -> Ended {
        while !self.logged_in.get() || !self.initiator.borrow().can_send() {
            self.changed.wait().await;
        }
        let (number, lun) = (self.connection.get(), request.lun);
        let Ok(tag) = self.initiator.borrow_mut().command(request) else { return Ended::Lost };
        self.under_way.borrow_mut().push((tag, lun));
        self.output.notify();
        if let Some(time) = abort_after {
            self.io.spawn(self.clone().abort(tag, lun, time, number));
        }
        loop {
            if self.connection.get() != number {
                return Ended::Lost;
            }
            if let Some(completion) = { self.completions.borrow_mut().remove(&tag) } {
                return Ended::Completed(completion);
            }
            if self.aborted.borrow_mut().remove(&tag) {
                return Ended::Aborted;
            }
            if !self.is_not_told.get() {
                self.changed.wait().await;
            } else if race(self.changed.wait(), self.io.sleep(SILENCE)).await.is_err() {
                self.probe(lun, number);
            }
        }
    }

    /// A command that tells whether somebody has ended the others.
    fn probe(&self, lun: u64, number: u64) {
        if self.connection.get() == number && self.initiator.borrow().can_send() {
            // TEST UNIT READY; nobody waits for it
            if let Ok(tag) = self.initiator.borrow_mut().command(Request::new(lun, [0; 16])) {
                self.under_way.borrow_mut().push((tag, lun));
                self.probes.borrow_mut().insert(tag);
            }
            self.output.notify();
        }
    }

    async fn abort(self: Rc<Self>, tag: Tag, lun: u64, time: Nanos, number: u64) {
        self.io.sleep(time).await;
        let under_way = self.under_way.borrow().iter().any(|(other, _)| *other == tag);
        if self.connection.get() == number && under_way {
            self.initiator.borrow_mut().task_management(TaskManagementFunction::AbortTask, lun, Some(tag));
            self.output.notify();
        }
    }
}
