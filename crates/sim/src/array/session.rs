//! A host's iSCSI session in the simulated world: logs in, sends commands, and logs in again when the
//! connection breaks.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::rc::Rc;

use base::Nanos;
use bytes::BytesMut;
use env::ConnectionHandle;
use iscsi::initiator::{Completion, Event, Initiator, InitiatorParams, Request, Tag};
use task::{Io, Notify};

/// Pause before another attempt to log in.
const RECONNECT: Nanos = Nanos::from_millis(5);
/// Room for one receive.
const RECEIVE_BYTES: usize = 1 << 16;

/// See the module's words.
pub struct HostSession {
    io: Io,
    address: SocketAddr,
    params: InitiatorParams,
    initiator: RefCell<Initiator>,
    completions: RefCell<BTreeMap<Tag, Completion>>,
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
                Event::Completed(tag, completion) => {
                    drop(self.completions.borrow_mut().insert(tag, completion))
                }
                Event::LoggedIn { .. } => {
                    self.logged_in.set(true);
                    self.logins.set(self.logins.get() + 1);
                }
                Event::Async(_) | Event::Pong(..) | Event::Targets(_) | Event::TaskManagement { .. } => {}
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

    /// Carries out a command; `None` where the connection broke before it was answered. Then the session has
    /// been reinstated when this ends, and with that the command is over at the target too (RFC 7143 §6.3.5).
    pub async fn command(&self, request: Request) -> Option<Completion> {
        let completion = self.try_command(request).await;
        while completion.is_none() && !self.logged_in.get() {
            self.changed.wait().await;
        }
        completion
    }

    async fn try_command(&self, request: Request) -> Option<Completion> {
        while !self.logged_in.get() || !self.initiator.borrow().can_send() {
            self.changed.wait().await;
        }
        let number = self.connection.get();
        let tag = self.initiator.borrow_mut().command(request).ok()?;
        self.output.notify();
        loop {
            if self.connection.get() != number {
                return None;
            }
            if let Some(completion) = { self.completions.borrow_mut().remove(&tag) } {
                return Some(completion);
            }
            self.changed.wait().await;
        }
    }
}
