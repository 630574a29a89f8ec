//! A connection between two heads: bytes of `pair::link` in both directions, until either end closes it.
//!
//! What always holds: what was handed over for sending is sent in that order; after [`Wire::close`] nothing that arrives is given out.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;

use base::{ArrayId, HeadId, Nanos};
use bytes::{Bytes, BytesMut};
use env::ConnectionHandle;
use mirror::Ask;
use pair::{Link, LinkError, LinkEvent, LinkKey, LinkOptions, Message, Purpose, Start, VERSIONS};
use task::{Gate, Io, Notify};

const RECEIVE_BYTES: usize = 256 << 10;
/// By then the other end has shown that it is the other head.
const UP_TIME: Nanos = Nanos::from_secs(1);

/// Who this head is, and who its partner is.
#[derive(Clone, Debug)]
pub struct Identity {
    pub array: ArrayId,
    pub me: HeadId,
    pub other: HeadId,
    pub key: LinkKey,
    /// Of this start of the head.
    pub start: Start,
}

impl Identity {
    /// For a new connection: `purpose` if this end opens it.
    pub(crate) fn link(&self, io: &Io, purpose: Option<Purpose>) -> LinkOptions {
        let mut nonce = [0; 32];
        for half in nonce.chunks_mut(16) {
            half.copy_from_slice(&io.random_u128().to_le_bytes());
        }
        let (array, me, other, key) = (self.array, self.me, self.other, self.key.clone());
        LinkOptions { array, me, start: self.start, other, key, versions: VERSIONS, nonce, purpose }
    }
}

/// Why a connection has ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WireEnd {
    /// The other end closed it, or the network did, or this end.
    Closed,
    Link(LinkError),
}

/// See the header of this file.
pub(crate) struct Wire {
    io: Io,
    connection: ConnectionHandle,
    link: RefCell<Link>,
    out: RefCell<VecDeque<Bytes>>,
    more: Notify,
    /// What was taken from `out` is being sent; and a notification when it has been.
    is_sending: Cell<bool>,
    sent: Notify,
    /// Closed while nothing is to be received.
    inlet: Gate,
    is_closed: Cell<bool>,
}

impl Wire {
    pub fn new(io: &Io, connection: ConnectionHandle, options: LinkOptions) -> Rc<Wire> {
        let mut first = Vec::new();
        let link = RefCell::new(Link::new(options, &mut first));
        let out = RefCell::new(VecDeque::from([Bytes::from(first)]));
        let (more, is_sending, sent) = (Notify::new(io), Cell::default(), Notify::new(io));
        let (inlet, is_closed) = (Gate::new(io, true), Cell::new(false));
        Rc::new(Wire { io: io.clone(), connection, link, out, more, is_sending, sent, inlet, is_closed })
    }

    /// Moves bytes until the connection ends. `on_event` gets what arrives.
    pub async fn run(self: &Rc<Wire>, mut on_event: impl FnMut(LinkEvent)) -> WireEnd {
        self.io.spawn(self.clone().send_all());
        let mut buffer = BytesMut::new();
        let end = loop {
            self.inlet.pass().await;
            buffer.clear();
            buffer.reserve(RECEIVE_BYTES);
            let (received, result) = self.io.receive(self.connection, buffer).await;
            buffer = received;
            if result.is_err() || buffer.is_empty() || self.is_closed.get() {
                break WireEnd::Closed;
            }
            let mut answer = Vec::new();
            let events = self.link.borrow_mut().receive(&buffer, &mut answer);
            self.push([Bytes::from(answer)]);
            match events {
                Ok(events) => events.into_iter().filter(|_| !self.is_closed.get()).for_each(&mut on_event),
                Err(why) => break WireEnd::Link(why),
            }
        };
        self.close();
        end
    }

    /// Sends a frame, of which the content is in these parts.
    pub fn send_frame(&self, kind: u16, parts: Vec<Bytes>) {
        if self.is_closed.get() || !self.link.borrow().is_up() {
            return;
        }
        let slices: Vec<&[u8]> = parts.iter().map(AsRef::as_ref).collect();
        let header = self.link.borrow().frame_header(kind, &slices);
        self.push(std::iter::once(Bytes::copy_from_slice(&header)).chain(parts));
    }

    /// Waits until everything that was handed over has been handed to the network. `false`: the connection has ended before.
    pub async fn flushed(&self) -> bool {
        while !self.is_closed.get() && (self.is_sending.get() || !self.out.borrow().is_empty()) {
            self.sent.wait().await;
        }
        !self.is_closed.get()
    }

    /// Strangers, and what a vanished head has left, keep no connection.
    pub async fn end_if_not_up(self: Rc<Self>) {
        self.io.sleep(UP_TIME).await;
        if !self.is_up() {
            self.close();
        }
    }

    pub fn is_closed(&self) -> bool {
        self.is_closed.get()
    }

    pub fn is_up(&self) -> bool {
        self.link.borrow().is_up()
    }

    /// Sends a message, if the connection is up; it is for control.
    pub fn send_message(&self, message: &Message) {
        if !self.is_closed.get() && self.link.borrow().is_up() {
            let mut bytes = Vec::new();
            self.link.borrow().send(message, &mut bytes);
            self.push([Bytes::from(bytes)]);
        }
    }

    /// Whether anything is received: what is not waits with the other end.
    pub fn receives(&self, receives: bool) {
        if receives || self.is_closed.get() { self.inlet.open() } else { self.inlet.close() }
    }

    pub fn send_ask(&self, ask: &Ask) {
        let (kind, content, data) = ask.encode();
        assert!(data.is_empty(), "data is sent without being copied, with `send_frame`");
        self.send_frame(kind, vec![Bytes::from(content)]);
    }

    /// Nothing more is sent or given out.
    pub fn close(&self) {
        if !self.is_closed.replace(true) {
            self.inlet.open();
            self.out.borrow_mut().clear();
            self.more.notify();
            self.sent.notify();
            let (io, connection) = (self.io.clone(), self.connection);
            self.io.spawn(async move {
                let _closed_already = io.close_connection(connection).await;
            });
        }
    }

    fn push(&self, pieces: impl IntoIterator<Item = Bytes>) {
        if !self.is_closed.get() {
            self.out.borrow_mut().extend(pieces.into_iter().filter(|piece| !piece.is_empty()));
            self.more.notify();
        }
    }

    async fn send_all(self: Rc<Wire>) {
        while !self.is_closed.get() {
            let pieces: Vec<Bytes> = self.out.borrow_mut().drain(..).collect();
            if pieces.is_empty() {
                self.more.wait().await;
                continue;
            }
            self.is_sending.set(true);
            if self.io.send(self.connection, pieces).await.is_err() {
                self.close();
            }
            self.is_sending.set(false);
            self.sent.notify();
        }
    }
}
