//! The partner's end: it listens at its portals, and has a connection to the owner for each of a host's.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::rc::{Rc, Weak};

use base::Nanos;
use bytes::{Bytes, BytesMut};
use env::{ConnectionHandle, ListenerHandle};
use pair::{LinkEvent, Portal, Purpose};
use task::{Io, Notify};

use super::frame::{self, Begin, ToPartner};
use super::{Heard, Portals, door_of};
use crate::dial::{PartnerAddress, connect};
use crate::wire::{Identity, Wire};

/// Received from a host at a time.
const RECEIVE_BYTES: usize = 64 << 10;
/// For a host that takes its answers slowly, so much waits here. Then the owner waits.
const TO_HOST_BYTES_MAX: usize = 1 << 20;
/// How often the configured portals are compared with those that are open.
const LOOK: Nanos = Nanos::from_millis(100);
/// How long a host waits for a connection to the owner before its own is closed.
const OWNER_TIME: Nanos = Nanos::from_millis(1_500);
/// Between two attempts to reach the owner.
const PAUSE: Nanos = Nanos::from_millis(50);

/// Who forwards, and whither.
#[derive(Clone)]
pub struct ForwardOptions {
    pub identity: Identity,
    /// Where the owner listens for this head; its door is beside that.
    pub owner: PartnerAddress,
    pub heard: Heard,
    pub portals: Portals,
    /// This shard tells the owner which portals this head has: one does.
    pub tells_portals: bool,
}

/// See the header of this file.
pub(super) struct Forwarder {
    io: Io,
    options: ForwardOptions,
    hosts: RefCell<Vec<Weak<Host>>>,
}

/// A connection of a host, from its beginning to its end.
struct Host {
    io: Io,
    connection: ConnectionHandle,
    wire: Rc<Wire>,
    credit: Cell<usize>,
    to_host: RefCell<VecDeque<Bytes>>,
    to_host_bytes: Cell<usize>,
    /// There is credit, or something for the host, or it is over.
    changed: Notify,
    is_over: Cell<bool>,
}

impl Forwarder {
    pub fn start(io: &Io, options: ForwardOptions) -> Rc<Forwarder> {
        let forwarder = Rc::new(Forwarder { io: io.clone(), options, hosts: RefCell::default() });
        io.spawn(forwarder.clone().keep_portals());
        if forwarder.options.tells_portals {
            io.spawn(forwarder.clone().keep_telling());
        }
        forwarder
    }

    /// This head stood still: what its hosts have sent may be old, and nobody can tell.
    pub fn drop_hosts(&self) {
        let hosts = std::mem::take(&mut *self.hosts.borrow_mut());
        hosts.iter().filter_map(Weak::upgrade).for_each(|host| host.wire.close());
    }

    /// For ever: listens at the portals that are configured.
    async fn keep_portals(self: Rc<Self>) {
        let mut open: BTreeMap<SocketAddr, ListenerHandle> = BTreeMap::new();
        loop {
            let wanted: Vec<SocketAddr> = self.options.portals.get().iter().map(|p| p.address).collect();
            let gone: Vec<SocketAddr> =
                open.keys().filter(|address| !wanted.contains(address)).copied().collect();
            for address in gone {
                let listener = open.remove(&address).expect("it is open");
                let _closed_already = self.io.close_listener(listener).await;
            }
            for address in wanted {
                // one that cannot be had is tried again
                if !open.contains_key(&address)
                    && let Ok((listener, _)) = self.io.listen(address).await
                {
                    open.insert(address, listener);
                    self.io.spawn(self.clone().accept(address, listener));
                }
            }
            self.io.sleep(LOOK).await;
        }
    }

    async fn accept(self: Rc<Self>, portal: SocketAddr, listener: ListenerHandle) {
        while let Ok((connection, host, local)) = self.io.accept(listener).await {
            self.io.spawn(self.clone().serve(connection, Begin { portal, host, local }));
        }
    }

    /// A connection to the owner's door, if one can be had in time.
    async fn reach_owner(&self) -> Option<ConnectionHandle> {
        let until = self.io.now() + OWNER_TIME;
        for attempt in 0.. {
            // a head that hears no owner is none's partner
            if self.options.heard.get().is_some()
                && let Some(link) = self.options.owner.nth(attempt)
                && let Some(connection) = connect(&self.io, door_of(link)).await
            {
                return Some(connection);
            }
            if self.io.now() >= until {
                break;
            }
            self.io.sleep(PAUSE).await;
        }
        None
    }

    fn wire(&self, connection: ConnectionHandle) -> Rc<Wire> {
        let wire =
            Wire::new(&self.io, connection, self.options.identity.link(&self.io, Some(Purpose::Hosts)));
        self.io.spawn(wire.clone().end_if_not_up());
        wire
    }

    /// Serves a host until its connection or the one to the owner ends.
    async fn serve(self: Rc<Self>, connection: ConnectionHandle, begin: Begin) {
        let Some(to_owner) = self.reach_owner().await else {
            let _closed_already = self.io.close_connection(connection).await;
            return;
        };
        let host = Rc::new(Host {
            io: self.io.clone(),
            connection,
            wire: self.wire(to_owner),
            credit: Cell::default(),
            to_host: RefCell::default(),
            to_host_bytes: Cell::default(),
            changed: Notify::new(&self.io),
            is_over: Cell::default(),
        });
        self.note(&host);
        let answering = self.io.spawn_join(host.clone().answer());
        let heard = self.options.heard.clone();
        let _end = host
            .wire
            .run(|event| {
                let understood = match event {
                    LinkEvent::Up { .. } => {
                        host.wire.send_frame(frame::BEGIN, vec![frame::json(&begin)]);
                        self.io.spawn(host.clone().forward(heard.clone()));
                        true
                    }
                    LinkEvent::Frame { kind, content } => {
                        ToPartner::decode(kind, content).is_some_and(|said| host.on_said(said))
                    }
                    LinkEvent::Message(_) => false,
                };
                if !understood {
                    host.wire.close();
                }
            })
            .await;
        host.is_over.set(true);
        host.changed.notify();
        // what the owner has answered still goes to the host
        answering.await;
        let _closed_already = self.io.close_connection(connection).await;
    }

    fn note(&self, host: &Rc<Host>) {
        let mut hosts = self.hosts.borrow_mut();
        hosts.retain(|host| host.strong_count() > 0);
        hosts.push(Rc::downgrade(host));
    }

    /// For ever: the owner knows the portals of this head.
    async fn keep_telling(self: Rc<Self>) {
        loop {
            if let Some(connection) = self.reach_owner().await {
                let wire = self.wire(connection);
                self.io.spawn(tell_changes(self.io.clone(), wire.clone(), self.options.portals.clone()));
                let _end = wire.run(|_| ()).await;
            }
            self.io.sleep(LOOK).await;
        }
    }
}

/// Says which portals there are, and again when they have changed, until the connection has ended.
async fn tell_changes(io: Io, wire: Rc<Wire>, portals: Portals) {
    let mut said: Option<Vec<Portal>> = None;
    while !wire.is_closed() {
        let now = portals.get();
        if wire.is_up() && said.as_ref() != Some(&now) {
            wire.send_frame(frame::PORTALS, vec![frame::json(&now)]);
            said = Some(now);
        }
        io.sleep(LOOK).await;
    }
}

impl Host {
    fn on_said(&self, said: ToPartner) -> bool {
        match said {
            ToPartner::Credit(bytes) => self.credit.set(self.credit.get().saturating_add(bytes as usize)),
            ToPartner::Data(data) => {
                self.to_host_bytes.set(self.to_host_bytes.get() + data.len());
                self.to_host.borrow_mut().push_back(data);
                self.wire.receives(self.to_host_bytes.get() < TO_HOST_BYTES_MAX);
            }
        }
        self.changed.notify();
        true
    }

    /// What the host sends goes to the owner, as far as there is credit.
    async fn forward(self: Rc<Self>, heard: Heard) {
        let mut buffer = BytesMut::new();
        loop {
            while self.credit.get() == 0 && !self.is_over.get() {
                self.changed.wait().await;
            }
            if self.is_over.get() {
                return;
            }
            buffer.reserve(RECEIVE_BYTES);
            let (received, result) = self.io.receive(self.connection, buffer).await;
            buffer = received;
            let data = buffer.split().freeze();
            match heard.get() {
                _ if result.is_err() => return self.wire.close(),
                _ if data.is_empty() => return self.wire.send_frame(frame::FINISHED, Vec::new()),
                None => return self.wire.close(),
                Some(stamp) => {
                    self.credit.set(self.credit.get().saturating_sub(data.len()));
                    self.wire.send_frame(frame::DATA, vec![frame::stamp_bytes(stamp), data]);
                }
            }
        }
    }

    /// What the owner answers goes to the host, until it is over and all was sent.
    async fn answer(self: Rc<Self>) {
        loop {
            let data: Vec<Bytes> = self.to_host.borrow_mut().drain(..).collect();
            if data.is_empty() {
                if self.is_over.get() {
                    return;
                }
                self.changed.wait().await;
                continue;
            }
            let bytes: usize = data.iter().map(Bytes::len).sum();
            if self.io.send(self.connection, data).await.is_err() {
                return self.wire.close();
            }
            self.to_host_bytes.set(self.to_host_bytes.get() - bytes);
            self.wire.receives(self.to_host_bytes.get() < TO_HOST_BYTES_MAX);
        }
    }
}
