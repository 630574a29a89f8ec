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

/// Pause before another attempt to log in.
const RECONNECT: Nanos = Nanos::from_millis(5);
/// After so much silence a new command tells what became of the others.
const SILENCE: Nanos = Nanos::from_millis(50);
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
                *self.initiator.borrow_mut() = Initiator::new(self.params.clone());
                self.io.spawn(self.clone().send_output(connection, self.connection.get()));
                self.receive(connection).await;
                self.end_connection();
                // it may be closed at the other end already
                self.io.close_connection(connection).await.ok();
            }
            self.io.sleep(RECONNECT).await;
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
        let sense = |index: usize| completion.sense.get(index).copied().unwrap_or(0);
        if self.is_not_told.get() && (sense(2) & 0xF, sense(12), sense(13)) == (0x6, 0x29, 0x03) {
            // somebody's reset may have ended what is under way; what waited for its data then is told first, and may
            // have been sent before what was ended
            let others = under_way.iter().filter(|(_, other)| *other == lun);
            others.for_each(|(tag, lun)| self.ask_after(*tag, *lun));
        }
        drop(under_way);
        if !self.probes.borrow_mut().remove(&tag) {
            self.completions.borrow_mut().insert(tag, completion);
        }
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
        ended.into_iter().for_each(|tag| self.end(tag));
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
