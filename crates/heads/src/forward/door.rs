//! The owner's end: what the partner forwards comes here, and looks to the engine like a connection of a host to a portal.
//!
//! What always holds: each of the engine's operations ends once; nothing that arrived with an old stamp, or one of another term, is given
//! to the engine.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::rc::Rc;

use bytes::{Buf, Bytes, BytesMut};
use env::{Completion, ConnectionHandle, IoError, ListenerHandle, Operation, Outcome, Token};
use pair::{LinkEvent, Portal, Purpose};
use task::Io;

use super::frame::{self, Begin, ToOwner};
use super::{PIECE_BYTES_MAX, door_of};
use crate::control::keep_listening;
use crate::mirror_env::OwnerOptions;
use crate::parts::in_parts;
use crate::wire::Wire;

/// Handles that are ours have this bit.
const OURS: u32 = 1 << 31;
/// Connections that wait for the engine to accept them, for each portal.
const BACKLOG_MAX: usize = 64;
/// A host may have sent so much more than it has credit for: what the partner receives at a time.
const SURPLUS_BYTES_MAX: usize = PIECE_BYTES_MAX;
/// A portal of the partner, at which the engine listens.
struct OpenPortal {
    address: SocketAddr,
    accepts: VecDeque<Token>,
    arrived: VecDeque<Rc<Visitor>>,
}

/// A connection of a host to a portal of the partner.
struct Visitor {
    handle: ConnectionHandle,
    wire: Rc<Wire>,
    begin: Begin,
    inbox: RefCell<VecDeque<Bytes>>,
    inbox_bytes: Cell<usize>,
    /// Given to the engine, and not yet granted again.
    taken_bytes: Cell<usize>,
    /// A receive of the engine.
    waits: RefCell<Option<(Token, BytesMut)>>,
    is_finished: Cell<bool>,
    is_gone: Cell<bool>,
}

/// See the header of this file.
pub(crate) struct Door {
    io: Io,
    options: OwnerOptions,
    portals: RefCell<BTreeMap<ListenerHandle, OpenPortal>>,
    visitors: RefCell<BTreeMap<ConnectionHandle, Rc<Visitor>>>,
    last: Cell<u32>,
    /// An operation of the engine has ended.
    ended: Box<dyn Fn(Completion)>,
    /// The partner has said which portals it has.
    told: Box<dyn Fn(Vec<Portal>)>,
}

impl Door {
    pub fn open(
        io: &Io,
        options: OwnerOptions,
        ended: Box<dyn Fn(Completion)>,
        told: Box<dyn Fn(Vec<Portal>)>,
    ) -> Rc<Door> {
        let (portals, visitors, last) = (RefCell::default(), RefCell::default(), Cell::default());
        let door = Rc::new(Door { io: io.clone(), options, portals, visitors, last, ended, told });
        for &link in &door.options.addresses {
            let taker = door.clone();
            let take = move |connection| taker.io.spawn(taker.clone().take(connection));
            io.spawn(keep_listening(io.clone(), door_of(link), take));
        }
        door
    }

    /// Whether this operation of the engine is for the door.
    pub fn takes(operation: &Operation) -> bool {
        match operation {
            Operation::ListenForwarded { .. } => true,
            Operation::Accept { listener } | Operation::CloseListener { listener } => listener.0 & OURS != 0,
            Operation::Receive { connection, .. }
            | Operation::Send { connection, .. }
            | Operation::CloseConnection { connection } => connection.0 & OURS != 0,
            _ => false,
        }
    }

    fn end(&self, token: Token, outcome: Outcome) {
        (self.ended)(Completion { token, outcome });
    }

    fn next(&self) -> u32 {
        self.last.set((self.last.get() + 1) & !OURS);
        self.last.get() | OURS
    }

    fn visitor(&self, connection: ConnectionHandle) -> Option<Rc<Visitor>> {
        self.visitors.borrow().get(&connection).cloned()
    }

    pub fn begin(self: &Rc<Self>, token: Token, operation: Operation) {
        match operation {
            Operation::ListenForwarded { address } => {
                let listener = ListenerHandle(self.next());
                let (accepts, arrived) = (VecDeque::new(), VecDeque::new());
                self.portals.borrow_mut().insert(listener, OpenPortal { address, accepts, arrived });
                self.end(token, Outcome::Listening(listener, address));
            }
            Operation::CloseListener { listener } => {
                if let Some(portal) = self.portals.borrow_mut().remove(&listener) {
                    portal
                        .accepts
                        .iter()
                        .for_each(|&token| self.end(token, Outcome::Failed(IoError::Closed)));
                    portal.arrived.iter().for_each(|visitor| visitor.wire.close());
                }
                self.end(token, Outcome::Done);
            }
            Operation::Accept { listener } => {
                match self.portals.borrow_mut().get_mut(&listener) {
                    Some(portal) => portal.accepts.push_back(token),
                    None => self.end(token, Outcome::Failed(IoError::Closed)),
                }
                self.introduce(listener);
            }
            Operation::Receive { connection, buffer } => match self.visitor(connection) {
                Some(visitor) => {
                    *visitor.waits.borrow_mut() = Some((token, buffer));
                    self.hand_over(&visitor);
                }
                None => self.end(token, Outcome::Received(buffer, Err(IoError::Closed))),
            },
            Operation::Send { connection, data } => self.send(token, connection, data),
            Operation::CloseConnection { connection } => {
                if let Some(visitor) = self.visitors.borrow_mut().remove(&connection) {
                    visitor.wire.close();
                    visitor.is_gone.set(true);
                    self.hand_over(&visitor);
                }
                self.end(token, Outcome::Done);
            }
            operation => unreachable!("{operation:?} is not for the door"),
        }
    }

    /// Ends when all of it has been handed to the network.
    fn send(self: &Rc<Self>, token: Token, connection: ConnectionHandle, data: Vec<Bytes>) {
        let Some(visitor) = self.visitor(connection) else {
            return self.end(token, Outcome::Failed(IoError::Closed));
        };
        for part in in_parts(&data, PIECE_BYTES_MAX) {
            visitor.wire.send_frame(frame::DATA, part);
        }
        let door = self.clone();
        self.io.spawn(async move {
            let outcome = match visitor.wire.flushed().await {
                true => Outcome::Done,
                false => Outcome::Failed(IoError::Closed),
            };
            door.end(token, outcome);
        });
    }

    /// Gives connections that have arrived to the engine's accepts.
    fn introduce(&self, listener: ListenerHandle) {
        let mut portals = self.portals.borrow_mut();
        let Some(portal) = portals.get_mut(&listener) else { return };
        portal.arrived.retain(|visitor| !visitor.is_gone.get());
        while !portal.accepts.is_empty()
            && let Some(visitor) = portal.arrived.pop_front()
        {
            let token = portal.accepts.pop_front().expect("just seen");
            let (peer, local) = (visitor.begin.host, visitor.begin.local);
            let connection = visitor.handle;
            self.visitors.borrow_mut().insert(connection, visitor);
            self.end(token, Outcome::Accepted { connection, peer, local });
        }
    }

    /// Ends the engine's receive, if there is something to say; grants what was taken.
    fn hand_over(&self, visitor: &Visitor) {
        let Some((token, mut buffer)) = visitor.waits.borrow_mut().take() else { return };
        let mut inbox = visitor.inbox.borrow_mut();
        if inbox.is_empty() && !visitor.is_finished.get() && !visitor.is_gone.get() {
            *visitor.waits.borrow_mut() = Some((token, buffer));
            return;
        }
        let result = match inbox.is_empty() && visitor.is_gone.get() && !visitor.is_finished.get() {
            true => Err(IoError::Closed),
            false => Ok(()),
        };
        let mut taken = 0;
        while let Some(piece) = inbox.front_mut() {
            let room = buffer.capacity() - buffer.len();
            let part = room.min(piece.len());
            buffer.extend_from_slice(&piece[..part]);
            piece.advance(part);
            taken += part;
            if !piece.is_empty() {
                break;
            }
            inbox.pop_front();
        }
        visitor.inbox_bytes.set(visitor.inbox_bytes.get() - taken);
        visitor.taken_bytes.set(visitor.taken_bytes.get() + taken);
        if visitor.taken_bytes.get() >= self.options.window_bytes / 2 {
            grant(&visitor.wire, visitor.taken_bytes.take());
        }
        self.end(token, Outcome::Received(buffer, result));
    }

    /// Serves a connection of the partner until it ends.
    async fn take(self: Rc<Self>, connection: ConnectionHandle) {
        let wire = Wire::new(&self.io, connection, self.options.identity.link(&self.io, None));
        self.io.spawn(wire.clone().end_if_not_up());
        let taken: RefCell<Option<Rc<Visitor>>> = RefCell::default();
        let _end = wire
            .run(|event| {
                let understood = match event {
                    LinkEvent::Up { purpose, .. } => purpose == Purpose::Hosts,
                    LinkEvent::Frame { kind, content } => match ToOwner::decode(kind, content) {
                        Some(said) => self.on_said(&wire, &taken, said),
                        None => false,
                    },
                    LinkEvent::Message(_) => false,
                };
                if !understood {
                    wire.close();
                }
            })
            .await;
        if let Some(visitor) = taken.take() {
            visitor.is_gone.set(true);
            self.hand_over(&visitor);
        }
    }

    /// `false`: the connection is to end.
    fn on_said(&self, wire: &Rc<Wire>, taken: &RefCell<Option<Rc<Visitor>>>, said: ToOwner) -> bool {
        let visitor = taken.borrow().clone();
        match (said, visitor) {
            (ToOwner::Portals(portals), None) => {
                (self.told)(portals);
                true
            }
            (ToOwner::Begin(begin), None) => {
                let visitor = self.arrive(wire, begin);
                *taken.borrow_mut() = visitor.clone();
                visitor.is_some()
            }
            (ToOwner::Data(stamp, data), Some(visitor)) => {
                let OwnerOptions { term, timing, window_bytes, .. } = self.options;
                let bytes = visitor.inbox_bytes.get() + data.len();
                if !stamp.is_fresh(term, self.io.uptime(), timing.forward)
                    || bytes > window_bytes + SURPLUS_BYTES_MAX
                {
                    return false;
                }
                visitor.inbox_bytes.set(bytes);
                visitor.inbox.borrow_mut().push_back(data);
                self.hand_over(&visitor);
                true
            }
            (ToOwner::Finished, Some(visitor)) => {
                visitor.is_finished.set(true);
                self.hand_over(&visitor);
                true
            }
            _ => false,
        }
    }

    /// A connection of a host has begun; `None`: the engine does not listen at this portal, or too many wait there.
    fn arrive(&self, wire: &Rc<Wire>, begin: Begin) -> Option<Rc<Visitor>> {
        let handle = ConnectionHandle(self.next());
        let mut portals = self.portals.borrow_mut();
        let (&listener, portal) = portals.iter_mut().find(|(_, portal)| portal.address == begin.portal)?;
        if portal.arrived.len() >= BACKLOG_MAX {
            return None;
        }
        let visitor = Rc::new(Visitor {
            handle,
            wire: wire.clone(),
            begin,
            inbox: RefCell::default(),
            inbox_bytes: Cell::default(),
            taken_bytes: Cell::default(),
            waits: RefCell::default(),
            is_finished: Cell::default(),
            is_gone: Cell::default(),
        });
        grant(wire, self.options.window_bytes);
        portal.arrived.push_back(visitor.clone());
        drop(portals);
        self.introduce(listener);
        Some(visitor)
    }
}

/// The host may send so much more.
fn grant(wire: &Wire, bytes: usize) {
    let credit = Bytes::copy_from_slice(&(bytes as u32).to_le_bytes());
    wire.send_frame(frame::CREDIT, vec![credit]);
}
