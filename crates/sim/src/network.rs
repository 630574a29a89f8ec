//! The simulated network: ordered bytes between two ends, in pieces of any size, at any speed.
//!
//! ```text
//!   send ─► outgoing of this end ──transfer events──► inbound of the other end (bounded) ─► receive
//! ```
//!
//! What always holds: bytes of one direction arrive in order, once, unchanged, until the connection ends; a
//! send completes when its last byte has left; a full receiver applies back-pressure to the sender.

use std::collections::VecDeque;
use std::net::{Ipv4Addr, SocketAddr};

use base::Nanos;
use bytes::{Buf, BufMut, BytesMut};
use env::{ConnectionHandle, IoError, ListenerHandle, Operation, Outcome};

use crate::fault::FaultKind;
use crate::prng::Prng;
use crate::world::{EventKind, InFlight, Inner, ProcessId, World};

struct Listener {
    address: SocketAddr,
    owner: (ProcessId, u16),
    open: bool,
    /// Ends that wait to be accepted.
    backlog: VecDeque<u32>,
    /// Accepts that wait for a connection.
    accepts: VecDeque<u64>,
}

struct End {
    owner: Option<(ProcessId, u16)>,
    peer: u32,
    local: SocketAddr,
    outgoing: BytesMut,
    inbound: BytesMut,
    inbound_max: usize,
    /// No more will come from the other end.
    finished: bool,
    /// The connection is broken: everything fails.
    reset: bool,
    /// Closed by its owner.
    closed: bool,
    /// The other end is closed: what is sent goes nowhere.
    deaf_peer: bool,
    sending: Option<u64>,
    receiving: Option<u64>,
    transfer_scheduled: bool,
    /// Largest piece that travels at once.
    piece_max: u64,
    /// Bytes that have left so far.
    sent: u64,
}

/// After this number of bytes, a connection that began with tiny pieces continues with larger ones.
const TINY_PIECES_BYTES: u64 = 20_000;
const PIECE_BYTES: u64 = 9_000;
/// Above those that listeners are given by name.
const PORTS_FROM: u16 = 40_000;

pub(crate) struct Network {
    prng: Prng,
    listeners: Vec<Listener>,
    ends: Vec<End>,
    next_port: u16,
    /// Ports have been given a second time.
    goes_round: bool,
    /// Machines between which nothing moves, and until when.
    cuts: Vec<(u16, u16, Nanos)>,
}

impl Network {
    pub(crate) fn new(prng: Prng) -> Network {
        let (listeners, ends) = (Vec::new(), Vec::new());
        Network { prng, listeners, ends, next_port: PORTS_FROM, goes_round: false, cuts: Vec::new() }
    }

    /// The next port of a machine that nobody has: round and round, as kernels give them. Each machine has an address of
    /// its own.
    fn free_address(&mut self, machine: u16) -> SocketAddr {
        loop {
            let port = self.next_port.checked_add(1);
            self.goes_round |= port.is_none();
            self.next_port = port.unwrap_or(PORTS_FROM);
            let [high, low] = machine.to_be_bytes();
            let address = SocketAddr::from((Ipv4Addr::new(10, 1, high, low), self.next_port));
            if !self.goes_round || !self.has(address) {
                return address;
            }
        }
    }

    fn has(&self, address: SocketAddr) -> bool {
        let listens = |listener: &Listener| listener.open && listener.address.port() == address.port();
        self.listeners.iter().any(listens) || self.ends.iter().any(|end| !end.closed && end.local == address)
    }

    /// One of the listeners at an address: the shards of a process may share it.
    fn listener_at(&mut self, address: SocketAddr) -> Option<usize> {
        let fits = |listener: &Listener| {
            let any = listener.address.ip().is_unspecified() && listener.address.port() == address.port();
            listener.open && (listener.address == address || any)
        };
        let all: Vec<usize> =
            (0..self.listeners.len()).filter(|&index| fits(&self.listeners[index])).collect();
        (!all.is_empty()).then(|| *self.prng.pick(&all))
    }

    /// Two ends that know each other; the first is the one that connects.
    fn connect(&mut self, from: SocketAddr, to: SocketAddr, owner: (ProcessId, u16)) -> u32 {
        let first = self.ends.len() as u32;
        for (index, local) in [from, to].into_iter().enumerate() {
            let piece_max = *self.prng.pick(&[7, 1_000, 9_000, 65_536, 1 << 20]);
            self.ends.push(End {
                owner: (index == 0).then_some(owner),
                peer: first + 1 - index as u32,
                local,
                outgoing: BytesMut::new(),
                inbound: BytesMut::new(),
                inbound_max: self.prng.skewed(4_096, 1 << 20) as usize,
                finished: false,
                reset: false,
                closed: false,
                deaf_peer: false,
                sending: None,
                receiving: None,
                transfer_scheduled: false,
                piece_max,
                sent: 0,
            });
        }
        first
    }

    fn cut_until(&self, one: u16, other: u16) -> Option<Nanos> {
        let fits = |&&(a, b, _): &&(u16, u16, Nanos)| (a, b) == (one, other) || (b, a) == (one, other);
        self.cuts.iter().filter(fits).map(|&(_, _, until)| until).max()
    }

    fn end(&mut self, end: u32) -> &mut End {
        &mut self.ends[end as usize]
    }
}

impl Inner {
    pub(crate) fn submit_to_network(&mut self, mut in_flight: InFlight) {
        let owner = (in_flight.process, in_flight.shard);
        let soon = Nanos(self.network.prng.skewed(1_000, 100_000));
        let checked = |network: &Network, end: ConnectionHandle| {
            let found = network.ends.get(end.0 as usize).and_then(|end| end.owner);
            assert_eq!(found, Some(owner), "a connection is used by the shard that made it");
        };
        match &mut in_flight.operation {
            Operation::Receive { connection, buffer } => {
                assert!(buffer.capacity() > buffer.len(), "a receive needs room");
                let end = connection.0;
                checked(&self.network, *connection);
                let id = self.begin(in_flight);
                let at = self.network.end(end);
                assert!(at.receiving.replace(id).is_none(), "one receive at a time");
                self.check_receive(end);
            }
            Operation::Send { connection, data } => {
                let end = connection.0;
                checked(&self.network, *connection);
                let data = std::mem::take(data);
                let id = self.begin(in_flight);
                let at = self.network.end(end);
                assert!(at.sending.replace(id).is_none(), "one send at a time");
                data.iter().for_each(|piece| at.outgoing.put_slice(piece));
                if at.reset || at.closed || at.deaf_peer || at.outgoing.is_empty() {
                    return self.schedule(soon, EventKind::Operation(id));
                }
                self.want_transfer(end);
            }
            Operation::Accept { listener } => {
                let index = listener.0 as usize;
                assert_eq!(self.network.listeners[index].owner, owner, "a listener is used by its own shard");
                let id = self.begin(in_flight);
                self.network.listeners[index].accepts.push_back(id);
                self.match_accepts(index);
            }
            _ => {
                let id = self.begin(in_flight);
                self.schedule(soon, EventKind::Operation(id));
            }
        }
    }

    fn machine_of(&self, owner: (ProcessId, u16)) -> u16 {
        self.processes[owner.0.0 as usize].machine
    }

    /// Until when nothing moves between the two ends of a connection.
    fn cut_between(&self, end: u32) -> Option<Nanos> {
        let here = &self.network.ends[end as usize];
        let there = &self.network.ends[here.peer as usize];
        self.network.cut_until(self.machine_of(here.owner?), self.machine_of(there.owner?))
    }

    fn want_transfer(&mut self, end: u32) {
        if !std::mem::replace(&mut self.network.end(end).transfer_scheduled, true) {
            let delay = Nanos(self.network.prng.skewed(2_000, 200_000));
            self.schedule(delay, EventKind::Transfer(end));
        }
    }

    /// Moves some bytes from `end` towards its peer, or tells the peer that there will be no more.
    pub(crate) fn transfer(&mut self, end: u32) {
        if let Some(until) = self.cut_between(end).filter(|&until| until > self.now) {
            // it is repeated after as long as it was away already, and so on
            let away = until - self.now;
            let delay = away + Nanos(self.network.prng.skewed(2_000, 20_000_000.max(4 * away.0)));
            return self.schedule(delay, EventKind::Transfer(end));
        }
        let here = self.network.end(end);
        here.transfer_scheduled = false;
        let (closed, reset, peer) = (here.closed, here.reset, here.peer);
        if closed || reset {
            let there = self.network.end(peer);
            there.finished = true;
            there.reset |= reset;
            if closed {
                self.fail_send(peer);
            }
            return self.check_receive(peer);
        }
        let there = &self.network.ends[peer as usize];
        let room = there.inbound_max.saturating_sub(there.inbound.len());
        let here = &mut self.network.ends[end as usize];
        let most = (here.outgoing.len().min(room) as u64).min(here.piece_max);
        if most == 0 {
            return;
        }
        let length = if self.network.prng.chance(500) { most } else { self.network.prng.between(1, most) };
        let piece = here.outgoing.split_to(length as usize);
        here.sent += length;
        if here.sent > TINY_PIECES_BYTES {
            here.piece_max = here.piece_max.max(PIECE_BYTES);
        }
        let (left, sending) = (here.outgoing.len(), here.sending);
        self.network.end(peer).inbound.put_slice(&piece);
        self.trace.mix(&[self.now.0, 4, u64::from(end), length]);
        match sending {
            Some(id) if left == 0 => self.schedule(Nanos::from_micros(1), EventKind::Operation(id)),
            _ => self.want_transfer(end),
        }
        self.check_receive(peer);
    }

    fn check_receive(&mut self, end: u32) {
        let at = &self.network.ends[end as usize];
        if let Some(id) = at.receiving
            && (!at.inbound.is_empty() || at.finished || at.reset || at.closed)
        {
            let delay = Nanos(self.network.prng.skewed(500, 20_000));
            self.schedule(delay, EventKind::Operation(id));
        }
    }

    fn fail_send(&mut self, end: u32) {
        let at = self.network.end(end);
        at.deaf_peer = true;
        at.outgoing.clear();
        if let Some(id) = at.sending {
            self.schedule(Nanos::from_micros(1), EventKind::Operation(id));
        }
    }

    fn match_accepts(&mut self, index: usize) {
        let listener = &mut self.network.listeners[index];
        let ready =
            if listener.open { listener.backlog.len().min(listener.accepts.len()) } else { usize::MAX };
        let ids: Vec<u64> = listener.accepts.iter().take(ready).copied().collect();
        for id in ids {
            self.schedule(Nanos::from_micros(2), EventKind::Operation(id));
        }
    }

    /// Ends a network operation and gives its outcome.
    pub(crate) fn finish_network(&mut self, id: u64, in_flight: InFlight) -> Outcome {
        let owner = (in_flight.process, in_flight.shard);
        match in_flight.operation {
            Operation::Listen { address } => self.listen(owner, address),
            Operation::ListenForwarded { .. } => Outcome::Failed(IoError::AddressNotAvailable),
            Operation::CloseListener { listener } => {
                self.network.listeners[listener.0 as usize].open = false;
                self.match_accepts(listener.0 as usize);
                Outcome::Done
            }
            Operation::Accept { listener } => self.accept(id, listener, owner),
            Operation::Connect { address } => {
                let Some(index) = self.network.listener_at(address) else {
                    return Outcome::Failed(IoError::Refused);
                };
                let machine = self.machine_of(owner);
                let listens = self.machine_of(self.network.listeners[index].owner);
                if self.network.cut_until(machine, listens).is_some_and(|until| until > self.now) {
                    return Outcome::Failed(IoError::TimedOut);
                }
                let local = self.network.free_address(machine);
                let end = self.network.connect(local, address, owner);
                self.network.listeners[index].backlog.push_back(end + 1);
                self.match_accepts(index);
                Outcome::Connected { connection: ConnectionHandle(end), local }
            }
            Operation::Receive { connection, buffer } => self.receive(connection, buffer),
            Operation::Send { connection, .. } => {
                let at = self.network.end(connection.0);
                at.sending = None;
                let failed = at.reset || at.closed || at.deaf_peer;
                if failed { Outcome::Failed(IoError::Closed) } else { Outcome::Done }
            }
            Operation::CloseConnection { connection } => {
                self.close_end(connection.0, false);
                Outcome::Done
            }
            operation => unreachable!("{operation:?} is not for the network"),
        }
    }

    fn listen(&mut self, owner: (ProcessId, u16), mut address: SocketAddr) -> Outcome {
        if address.port() == 0 {
            let machine = self.processes[owner.0.0 as usize].machine;
            address.set_port(self.network.free_address(machine).port());
        }
        let taken = |other: &Listener| other.open && other.address == address && other.owner.0 != owner.0;
        if self.network.listeners.iter().any(taken) {
            return Outcome::Failed(IoError::AddressInUse);
        }
        let (backlog, accepts) = (VecDeque::new(), VecDeque::new());
        self.network.listeners.push(Listener { address, owner, open: true, backlog, accepts });
        Outcome::Listening(ListenerHandle(self.network.listeners.len() as u32 - 1), address)
    }

    fn accept(&mut self, id: u64, listener: ListenerHandle, owner: (ProcessId, u16)) -> Outcome {
        let at = &mut self.network.listeners[listener.0 as usize];
        at.accepts.retain(|&waiting| waiting != id);
        let Some(end) = at.backlog.pop_front().filter(|_| at.open) else {
            assert!(!at.open, "an accept ends when there is a connection");
            return Outcome::Failed(IoError::Closed);
        };
        let peer = self.network.ends[end as usize].peer;
        let peer = self.network.ends[peer as usize].local;
        let at = self.network.end(end);
        at.owner = Some(owner);
        Outcome::Accepted { connection: ConnectionHandle(end), peer, local: at.local }
    }

    fn receive(&mut self, connection: ConnectionHandle, mut buffer: BytesMut) -> Outcome {
        let network = &mut self.network;
        let at = &mut network.ends[connection.0 as usize];
        at.receiving = None;
        if at.reset || at.closed {
            return Outcome::Received(buffer, Err(IoError::Closed));
        }
        let most = at.inbound.len().min(buffer.capacity() - buffer.len());
        if most > 0 {
            let length =
                if network.prng.chance(700) { most } else { network.prng.between(1, most as u64) as usize };
            if length < most {
                self.counts.add(FaultKind::ShortReceive);
            }
            buffer.put_slice(&at.inbound[..length]);
            at.inbound.advance(length);
            let peer = at.peer;
            self.want_transfer(peer);
        }
        Outcome::Received(buffer, Ok(()))
    }

    fn close_end(&mut self, end: u32, reset: bool) {
        let at = self.network.end(end);
        if at.closed {
            return;
        }
        at.closed = true;
        at.reset |= reset;
        at.outgoing.clear();
        let ids = [at.receiving, at.sending];
        for id in ids.into_iter().flatten() {
            self.schedule(Nanos(0), EventKind::Operation(id));
        }
        self.want_transfer(end);
    }

    /// Everything that a dead process had open ends.
    pub(crate) fn reset_connections_of(&mut self, process: ProcessId) {
        for listener in self.network.listeners.iter_mut().filter(|listener| listener.owner.0 == process) {
            listener.open = false;
            listener.accepts.clear();
            let waiting = std::mem::take(&mut listener.backlog);
            for end in waiting {
                self.network.ends[end as usize].reset = true;
                self.network.ends[end as usize].owner = Some((process, 0));
            }
        }
        for end in 0..self.network.ends.len() as u32 {
            let at = self.network.end(end);
            if at.owner.is_some_and(|owner| owner.0 == process) && !at.closed {
                (at.receiving, at.sending) = (None, None);
                self.close_end(end, true);
            }
        }
    }
}

impl World {
    /// For this time nothing moves between two machines. Nobody is told: it arrives later.
    pub fn cut_network(&self, one: u16, other: u16, time: Nanos) {
        let mut inner = self.0.borrow_mut();
        let now = inner.now;
        inner.network.cuts.retain(|&(_, _, until)| until > now);
        inner.network.cuts.push((one, other, now + time));
        inner
            .trace
            .line(now, || format!("machines {one} and {other} are cut off from each other for {time:?}"));
    }

    /// From now on everything moves; what was held up comes when it would have come.
    pub fn heal_network(&self) {
        self.0.borrow_mut().network.cuts.clear();
    }

    /// Breaks a random established connection, as a network does. `false`: there is none.
    pub fn reset_some_connection(&self) -> bool {
        let mut inner = self.0.borrow_mut();
        let alive = |end: &End| !end.closed && !end.reset && end.owner.is_some();
        let candidates: Vec<u32> = (0..inner.network.ends.len() as u32)
            .filter(|&end| alive(&inner.network.ends[end as usize]))
            .collect();
        if candidates.is_empty() {
            return false;
        }
        let end = *inner.prng.pick(&candidates);
        let peer = inner.network.ends[end as usize].peer;
        inner.counts.add(FaultKind::ConnectionReset);
        for end in [end, peer] {
            inner.network.end(end).reset = true;
            inner.fail_send(end);
            inner.check_receive(end);
        }
        true
    }
}
