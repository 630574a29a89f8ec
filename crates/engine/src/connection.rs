//! One connection from accept to end: bytes in, effects carried out, bytes out.
//!
//! Three tasks serve it. The receiver feeds the protocol and carries out its effects; the sender sends all
//! that is ready with one send, again and again, and closes the socket; the ticker tells the protocol the
//! time. What the protocol will not take stays in the receive buffer and in the socket: a slow peer or a
//! slow volume pushes back.

use std::cell::Cell;
use std::net::SocketAddr;
use std::rc::Rc;

use base::Nanos;
use base::limits::RECEIVE_SEGMENT_BYTES_MAX;
use bytes::BytesMut;
use env::ConnectionHandle;
use iscsi::{CloseReason, Connection, ConnectionParams, Effect, SessionIdentity, SessionKind};
use task::race;
use wire::iscsi::LoginStatus;

use crate::admission::Turn;
use crate::context::{Context, MANAGER};
use crate::events::{LoginRefusal, SessionEnd};
use crate::guests::Source;
use crate::message::{Answer, Call};
use crate::reinstatement::{Claim, SessionKey, SessionPlace};
use crate::session::{Login, Session};
use crate::{reservations, scsi_command, task_management};
use api::PortalOptions;

/// Room made for receiving, where no large PDU is expected.
const RECEIVE_BYTES: usize = 64 << 10;
/// Room made for receiving, at most: two of the largest PDUs.
const RECEIVE_BYTES_MAX: usize = 2 * RECEIVE_SEGMENT_BYTES_MAX;
/// A receive buffer with less room than this is replaced.
const RECEIVE_BYTES_MIN: usize = 16 << 10;

const _: () = assert!(RECEIVE_BYTES_MIN < RECEIVE_BYTES && RECEIVE_BYTES <= RECEIVE_BYTES_MAX);
/// So much of a PDU that has begun is moved to the start of the buffer.
const REWOUND_BYTES_MAX: usize = 4 << 10;
/// How long an ending connection may take to send what is left.
const LINGER: Nanos = Nanos::from_secs(2);

/// The shortest time between two ticks.
const TICK_MIN: Nanos = Nanos::from_millis(1);

/// Serves a connection until it is gone.
pub(crate) async fn serve(
    context: Rc<Context>,
    handle: ConnectionHandle,
    addresses: (SocketAddr, SocketAddr),
    portal: PortalOptions,
    place: SessionPlace,
) {
    let io = context.io.clone();
    let params = ConnectionParams {
        local_address: addresses.1,
        portal_group_tag: portal.group,
        budget: context.budget.clone(),
    };
    let protocol = Connection::new(params, io.now());
    let session = Rc::new(Session::new(&context, place, handle, addresses, portal, protocol));
    context.sessions.insert(&session);
    let sender = io.spawn_join(send(context.clone(), session.clone()));
    let ticker = io.spawn_join(tick(context.clone(), session.clone()));
    wait_for_turn(&context, &session).await;
    receive(&context, &session).await;
    session.end();
    session.wait_for_all().await;
    while session.login_pending.get() {
        session.input.wait().await;
    }
    reservations::nexus_lost(&context, &session).await;
    let registered = session.registered.borrow_mut().take();
    if let Some(key) = registered {
        context.ask(MANAGER, Call::Unregister(key, place)).await;
    }
    context.sessions.remove(place);
    session.tell_end();
    session.gone.open();
    sender.await;
    ticker.await;
}

/// Whoever comes from where secrets were wrong waits before it is heard.
async fn wait_for_turn(context: &Context, session: &Session) {
    match context.guesses.turn(Source::of(session.peer().ip()), context.io.now()) {
        Turn::Now => {}
        Turn::At(turn) => drop(race(context.io.sleep_until(turn), session.ending.pass()).await),
        Turn::Never => {
            session.note_refusal(LoginRefusal::Guesses);
            session.drop_now(SessionEnd::GaveWay);
        }
    }
}

/// Feeds the protocol until the session has ended.
async fn receive(context: &Rc<Context>, session: &Rc<Session>) {
    let mut input = BytesMut::with_capacity(RECEIVE_BYTES);
    // grows with the PDUs that this initiator sends: the start of a large one is moved with each new buffer
    let mut room = RECEIVE_BYTES;
    loop {
        feed(context, session, &mut input);
        if session.ended.get() {
            return;
        }
        let wanted = {
            let protocol = session.protocol.borrow();
            protocol.wants_receive().then(|| protocol.receive_bytes_wanted())
        };
        let Some(wanted) = wanted else {
            session.input.wait().await;
            continue;
        };
        if wanted > room / 2 {
            room = (2 * wanted).min(RECEIVE_BYTES_MAX);
        }
        // the same memory from its start, where nobody uses any of it: that is warm
        let _rewound = input.len() < REWOUND_BYTES_MAX && input.try_reclaim(room);
        if input.capacity() - input.len() < wanted.max(RECEIVE_BYTES_MIN) {
            input.reserve(wanted.max(room));
        }
        let before = input.len();
        let (buffer, result) = context.io.receive(session.handle, input).await;
        input = buffer;
        // more was there than there was room for: small PDUs in a row fill as much as large ones
        if input.len() == input.capacity() {
            room = (2 * room).min(RECEIVE_BYTES_MAX);
        }
        if result.is_err() || input.len() == before {
            return;
        }
    }
}

/// Lets the protocol consume what it can, and carries out what it asks for.
fn feed(context: &Rc<Context>, session: &Rc<Session>, input: &mut BytesMut) {
    let io = &context.io;
    let replica = context.replica.borrow().clone();
    let now = io.now();
    while !session.ended.get() {
        let mut protocol = session.protocol.borrow_mut();
        let effect = protocol.on_receive_some(input, &*replica, now, &mut || io.random_u64());
        drop(protocol);
        let Some(effect) = effect else { break };
        carry_out_one(context, session, effect);
    }
    carry_out(context, session);
}

/// Carries out the protocol's effects, and wakes whoever waits for what they changed.
pub(crate) fn carry_out(context: &Rc<Context>, session: &Rc<Session>) {
    loop {
        let effect = session.protocol.borrow_mut().next_effect();
        match effect {
            None => break,
            Some(_) if session.ended.get() => {}
            Some(effect) => carry_out_one(context, session, effect),
        }
    }
    if session.protocol.borrow().has_output() {
        session.output.notify();
    }
}

fn carry_out_one(context: &Rc<Context>, session: &Rc<Session>, effect: Effect) {
    match effect {
        Effect::Command(command) => scsi_command::begin(context, session, command),
        Effect::TaskManagement(request) => task_management::begin(context, session, request),
        Effect::LoggedIn(identity) => {
            session.login_pending.set(true);
            context.io.spawn(log_in(context.clone(), session.clone(), identity));
        }
        Effect::Close(reason) => {
            session.note_close(reason);
            note_guess(context, session, reason);
            session.end();
        }
    }
}

/// Completes a login that the protocol holds back: the older session of its name ends first.
async fn log_in(context: Rc<Context>, session: Rc<Session>, identity: SessionIdentity) {
    let tsih = match identity.kind {
        SessionKind::Discovery => context.sessions.discovery_tsih(),
        SessionKind::Normal => {
            let key = SessionKey::of(&identity);
            let claim = claim(&context, &session, &identity);
            let answer = context.ask(MANAGER, Call::Register(key.clone(), session.place, claim)).await;
            let Answer::Registered(result) = answer else { unreachable!("the answer to a registration") };
            match result {
                Ok(tsih) => {
                    *session.registered.borrow_mut() = Some(key);
                    tsih
                }
                Err(limit) => {
                    session.note_refusal(LoginRefusal::TooManySessions(limit));
                    session.protocol.borrow_mut().refuse_login(LoginStatus::OutOfResources);
                    carry_out(&context, &session);
                    session.login_pending.set(false);
                    session.input.notify();
                    return;
                }
            }
        }
    };
    if !session.ended.get() {
        let replica = context.replica.borrow().clone();
        let host = replica.catalog.host_of_initiator(&identity.initiator_name);
        let host = host.map(|host| host.name.as_str().to_owned());
        // a stranger may look for targets, and is shown none
        let host = host.or_else(|| (identity.kind == SessionKind::Discovery).then(String::new));
        match host {
            Some(host) if identity.kind == SessionKind::Normal && !session.portal.borrow().admits(&host) => {
                session.note_refusal(LoginRefusal::OtherPortal);
                session.protocol.borrow_mut().refuse_login(LoginStatus::AuthorizationFailed);
                carry_out(&context, &session);
            }
            Some(host) => {
                session.log_in(&replica, &context.units, Login { identity, host });
                session.tell_login();
                session.protocol.borrow_mut().complete_login(tsih);
                carry_out(&context, &session);
            }
            // the host was removed while its initiator logged in
            None => {
                session.note_refusal(LoginRefusal::HostRemoved);
                session.close(SessionEnd::AccessTakenAway);
            }
        }
    }
    session.login_pending.set(false);
    session.input.notify();
}

/// A login that fails for want of the right secret slows down the next from there.
fn note_guess(context: &Context, session: &Session, reason: CloseReason) {
    let (class, detail) = LoginStatus::AuthenticationFailed.codes();
    if reason == (CloseReason::LoginRefused { class, detail }) {
        context.guesses.note_failure(Source::of(session.peer().ip()), context.io.now());
    }
}

/// By whom and from where a session is asked for.
fn claim(context: &Context, session: &Session, identity: &SessionIdentity) -> Claim {
    let replica = context.replica.borrow();
    let host = replica.catalog.host_of_initiator(&identity.initiator_name);
    let initiators = host.into_iter().flat_map(|host| &host.initiators);
    Claim {
        initiators: initiators.map(|initiator| initiator.as_str().to_ascii_lowercase()).collect(),
        source: Source::of(session.peer().ip()),
        on_shard: context.sessions.normal(),
    }
}

/// Sends whatever is ready, as one send, until the session has ended; then closes the socket.
async fn send(context: Rc<Context>, session: Rc<Session>) {
    let io = &context.io;
    let mut deadline = None;
    loop {
        let output = session.protocol.borrow_mut().take_output();
        if output.is_empty() {
            if session.ended.get() {
                break;
            }
            session.output.wait().await;
            // what becomes ready in the same turn goes with it
            io.yield_now().await;
            continue;
        }
        session.input.notify();
        let room = session.take_unsent();
        let mut sending = std::pin::pin!(io.send(session.handle, output));
        let sent = loop {
            if session.ended.get() {
                let at = *deadline.get_or_insert(io.now() + LINGER);
                let limit = if session.hasty.get() { io.now() } else { at };
                break race(sending.as_mut(), io.sleep_until(limit)).await;
            }
            if let Ok(sent) = race(sending.as_mut(), session.ending.pass()).await {
                break Ok(sent);
            }
        };
        drop(room);
        if !matches!(sent, Ok(Ok(()))) {
            break;
        }
    }
    session.end();
    drop(session.take_unsent());
    // fails only where the environment has given the connection up already
    let _ = io.close_connection(session.handle).await;
}

/// Tells the protocol the time, when it wants to know.
async fn tick(context: Rc<Context>, session: Rc<Session>) {
    let io = &context.io;
    while !session.ended.get() {
        // the protocol moves its deadline as data flows: looked at again when the old one is due
        let deadline = session.protocol.borrow().next_deadline().max(io.now() + TICK_MIN);
        if race(io.sleep_until(deadline), session.gone.pass()).await.is_err() {
            return;
        }
        if session.ended.get() {
            return;
        }
        session.protocol.borrow_mut().on_tick(io.now());
        carry_out(&context, &session);
    }
}

/// The sessions of a shard.
#[derive(Default)]
pub(crate) struct Sessions {
    by_number: std::cell::RefCell<std::collections::BTreeMap<u64, Rc<Session>>>,
    next_number: Cell<u64>,
    next_tsih: Cell<u16>,
}

impl Sessions {
    pub(crate) fn next_number(&self) -> u64 {
        let number = self.next_number.get();
        self.next_number.set(number + 1);
        number
    }

    fn insert(&self, session: &Rc<Session>) {
        let replaced = self.by_number.borrow_mut().insert(session.place.number, session.clone());
        assert!(replaced.is_none(), "session numbers are not reused");
    }

    fn remove(&self, place: SessionPlace) {
        let removed = self.by_number.borrow_mut().remove(&place.number);
        assert!(removed.is_some(), "a session ends once");
    }

    pub(crate) fn get(&self, place: SessionPlace) -> Option<Rc<Session>> {
        self.by_number.borrow().get(&place.number).cloned()
    }

    pub(crate) fn all(&self) -> Vec<Rc<Session>> {
        self.by_number.borrow().values().cloned().collect()
    }

    pub(crate) fn len(&self) -> usize {
        self.by_number.borrow().len()
    }

    /// Discovery sessions may exist side by side: any number but 0 will do.
    fn discovery_tsih(&self) -> u16 {
        let tsih = self.next_tsih.get().checked_add(1).unwrap_or(1);
        self.next_tsih.set(tsih);
        tsih
    }
}
