//! The owner's connection for drives: made, opened for a term, and made again when it has ended.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::{Arc, RwLock};

use base::Nanos;
use env::ConnectionHandle;
use mirror::{Answer, Ask, TwinId, TwinNews};
use pair::{LinkEvent, Purpose, Start, Term};
use task::{Io, race};

use crate::center::Center;
use crate::wire::{Identity, Wire};

/// Before a connection that has ended is made again: a short cut shall not make the partner leave.
const CUT_PAUSE: Nanos = Nanos::from_millis(2);
/// Between two attempts to reach a partner that does not answer.
const PAUSE: Nanos = Nanos::from_millis(50);
/// A partner that is busy with what came over an earlier connection is asked again after this.
const BUSY_PAUSE: Nanos = Nanos::from_millis(10);
/// A connection that is not made by then is given up, and the next address is tried.
const CONNECT_TIME: Nanos = Nanos::from_millis(500);

/// Where the partner listens: the same head by several networks, of which one that works is used. It may change: a head that is
/// alone learns it when the other one joins.
#[derive(Clone, Debug, Default)]
pub struct PartnerAddress(Arc<RwLock<Vec<SocketAddr>>>);

impl PartnerAddress {
    pub fn new(addresses: Vec<SocketAddr>) -> PartnerAddress {
        PartnerAddress(Arc::new(RwLock::new(addresses)))
    }

    pub fn set(&self, addresses: Vec<SocketAddr>) {
        *self.0.write().expect("no one panics while holding it") = addresses;
    }

    /// One after the other, for ever; `None` for none.
    pub(crate) fn nth(&self, index: usize) -> Option<SocketAddr> {
        let addresses = self.0.read().expect("no one panics while holding it");
        (!addresses.is_empty()).then(|| addresses[index % addresses.len()])
    }

    pub(crate) fn count(&self) -> usize {
        self.0.read().expect("no one panics while holding it").len()
    }
}

/// For ever: connects, opens the term, and serves the connection.
pub(crate) async fn keep_open(center: Rc<Center>, identity: Identity, partner: PartnerAddress, term: Term) {
    let io = center.io().clone();
    for attempt in 0.. {
        let mut pause = PAUSE;
        if let Some(address) = partner.nth(attempt)
            && let Some(connection) = connect(&io, address).await
        {
            let wire = Wire::new(&io, connection, identity.link(&io, Some(Purpose::Drives)));
            let opening = Rc::new(Opening {
                center: center.clone(),
                wire: wire.clone(),
                term,
                said: RefCell::default(),
                is_opened: Cell::default(),
            });
            center.begin_connection(&wire);
            let end = wire.run(|event| opening.clone().on_event(event)).await;
            center.end_connection(end);
            if opening.is_opened.get() {
                pause = CUT_PAUSE;
            }
        }
        io.sleep(pause).await;
    }
}

/// `None`: it was refused, or took too long.
pub(crate) async fn connect(io: &Io, address: SocketAddr) -> Option<ConnectionHandle> {
    let own = io.clone();
    let mut connecting = io.spawn_join(async move { own.connect(address).await });
    match race(&mut connecting, io.sleep(CONNECT_TIME)).await {
        Ok(connected) => Some(connected?.ok()?.0),
        Err(()) => {
            let own = io.clone();
            io.spawn(async move {
                if let Some(Ok((connection, _))) = connecting.await {
                    let _closed_already = own.close_connection(connection).await;
                }
            });
            None
        }
    }
}

/// A connection, from its beginning to its end.
struct Opening {
    center: Rc<Center>,
    wire: Rc<Wire>,
    term: Term,
    said: RefCell<Said>,
    is_opened: Cell<bool>,
}

/// What the partner has said so far.
#[derive(Default)]
struct Said {
    start: Option<Start>,
    twins: BTreeMap<TwinId, TwinNews>,
}

impl Opening {
    fn on_event(self: Rc<Self>, event: LinkEvent) {
        match event {
            LinkEvent::Up { start, .. } => {
                self.said.borrow_mut().start = Some(start);
                self.ask();
            }
            LinkEvent::Frame { kind, content } => match Answer::decode(kind, &content) {
                Ok(answer) => self.on_answer(answer),
                Err(_) => self.wire.close(),
            },
            LinkEvent::Message(_) => self.wire.close(),
        }
    }

    fn ask(&self) {
        self.said.borrow_mut().twins.clear();
        self.wire.send_ask(&Ask::Open { term: self.term, drives: self.center.wanted() });
    }

    fn on_answer(self: Rc<Self>, answer: Answer) {
        match answer {
            Answer::Twin { twin, state } => {
                self.said.borrow_mut().twins.insert(twin, state);
            }
            Answer::Opened => {
                let Said { start, twins } = std::mem::take(&mut *self.said.borrow_mut());
                match start {
                    Some(start) => {
                        self.is_opened.set(true);
                        self.center.on_opened(start, &twins);
                    }
                    // it is opened once
                    None => self.wire.close(),
                }
            }
            Answer::Busy => {
                let io = self.center.io().clone();
                io.clone().spawn(async move {
                    io.sleep(BUSY_PAUSE).await;
                    self.ask();
                });
            }
            Answer::Refused { accepts } => {
                self.center.on_refused(accepts);
                self.wire.close();
            }
            Answer::Ended { request, result } => self.center.on_far(request.0, result),
        }
    }
}
