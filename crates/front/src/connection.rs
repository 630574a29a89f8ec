//! One connection from accept to end: bytes in, effects carried out, bytes out.
//!
//! Three tasks serve it. The receiver feeds the protocol and carries out its effects. The sender sends everything that
//! is ready with one send, repeatedly, and closes the socket. The ticker tells the protocol the time. Bytes that the
//! protocol does not accept yet stay in the receive buffer and in the socket: so a slow peer or a slow volume applies
//! back-pressure.

use std::net::SocketAddr;
use std::rc::Rc;

use api::{LoginRefusal, PortalOptions, SessionEnd};
use base::Nanos;
use base::limits::RECEIVE_SEGMENT_BYTES_MAX;
use bytes::BytesMut;
use env::ConnectionHandle;
use iscsi::{CloseReason, Connection, ConnectionParams, Effect, SessionIdentity, SessionKind};
use shard::{AddressSource, Answer, FrontCall, MANAGER, SessionPlace, SessionRequest};
use task::race;
use wire::iscsi::LoginStatus;

use crate::admission::Turn;
use crate::directory::HostDirectory;
use crate::events::Refusal;
use crate::front::Front;
use crate::register::key_of;
use crate::session::{Login, Session};
use crate::{reservations, scsi_command, task_management};

/// Size of a receive buffer, unless a large PDU is expected.
const RECEIVE_BYTES: usize = 64 << 10;
/// Maximum size of a receive buffer: two of the largest PDUs.
const RECEIVE_BYTES_MAX: usize = 2 * RECEIVE_SEGMENT_BYTES_MAX;
/// A receive buffer with less room than this is replaced.
const RECEIVE_BYTES_MIN: usize = 16 << 10;

const _: () = assert!(RECEIVE_BYTES_MIN < RECEIVE_BYTES && RECEIVE_BYTES <= RECEIVE_BYTES_MAX);
/// An incomplete PDU of up to this size is moved to the start of the buffer.
const REWOUND_BYTES_MAX: usize = 4 << 10;
/// How long a connection that ends may take to send its remaining data.
const LINGER: Nanos = Nanos::from_secs(2);

/// The shortest time between two ticks.
const TICK_MIN: Nanos = Nanos::from_millis(1);

/// Serves a connection until it is gone.
pub(crate) async fn serve(
    front: Rc<Front>,
    handle: ConnectionHandle,
    addresses: (SocketAddr, SocketAddr),
    portal: PortalOptions,
    place: SessionPlace,
) {
    let io = front.context.io.clone();
    let params = ConnectionParams {
        local_address: addresses.1,
        portal_group_tag: portal.group,
        budget: front.context.budget.clone(),
    };
    let protocol = Connection::new(params, io.now());
    let session = Rc::new(Session::new(&front.context, place, handle, addresses, portal, protocol));
    front.sessions.insert(&session);
    let sender = io.spawn_join(send(front.clone(), session.clone()));
    let ticker = io.spawn_join(tick(front.clone(), session.clone()));
    wait_for_turn(&front, &session).await;
    receive(&front, &session).await;
    session.end();
    session.wait_for_all().await;
    while session.login_pending.get() {
        session.input.wait().await;
    }
    reservations::nexus_lost(&front, &session).await;
    let registered = session.registered.borrow_mut().take();
    if let Some(key) = registered {
        front.context.ask(MANAGER, FrontCall::Unregister(key, place)).await;
    }
    front.sessions.remove(place);
    session.add_to(&front.sums, &front.context.replica.borrow());
    session.report_end(&front.context);
    session.gone.open();
    sender.await;
    ticker.await;
}

/// Delays a connection from an address that has sent wrong secrets.
async fn wait_for_turn(front: &Front, session: &Session) {
    match front.backoff.turn(AddressSource::of(session.peer().ip()), front.context.io.now()) {
        Turn::Now => {}
        Turn::At(turn) => drop(race(front.context.io.sleep_until(turn), session.ending.pass()).await),
        Turn::Never => {
            session.note_refusal(Refusal::TooManyFailures);
            session.drop_now(SessionEnd::GaveWay);
        }
    }
}

/// Feeds the protocol until the session has ended.
async fn receive(front: &Rc<Front>, session: &Rc<Session>) {
    let mut input = BytesMut::with_capacity(RECEIVE_BYTES);
    // grows with the PDUs that this initiator sends: the start of a large one is moved with each new buffer
    let mut room = RECEIVE_BYTES;
    loop {
        feed(front, session, &mut input);
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
        // the same memory from its start, if nobody uses any of it: it is in the processor's cache
        let _rewound = input.len() < REWOUND_BYTES_MAX && input.try_reclaim(room);
        if input.capacity() - input.len() < wanted.max(RECEIVE_BYTES_MIN) {
            input.reserve(wanted.max(room));
        }
        let before = input.len();
        let (buffer, result) = front.context.io.receive(session.handle, input).await;
        input = buffer;
        // there was more data than room: small PDUs in a row fill as much as large ones
        if input.len() == input.capacity() {
            room = (2 * room).min(RECEIVE_BYTES_MAX);
        }
        if result.is_err() || input.len() == before {
            return;
        }
    }
}

/// Lets the protocol consume what it can, and carries out what it asks for.
fn feed(front: &Rc<Front>, session: &Rc<Session>, input: &mut BytesMut) {
    let io = &front.context.io;
    let replica = front.context.replica.borrow().clone();
    let now = io.now();
    while !session.ended.get() {
        let mut protocol = session.protocol.borrow_mut();
        let effect = protocol.on_receive_some(input, &HostDirectory(&replica), now, &mut || io.random_u64());
        drop(protocol);
        let Some(effect) = effect else { break };
        carry_out_one(front, session, effect);
    }
    carry_out(front, session);
}

/// Carries out the protocol's effects, and wakes the tasks that wait for them.
pub(crate) fn carry_out(front: &Rc<Front>, session: &Rc<Session>) {
    loop {
        let effect = session.protocol.borrow_mut().next_effect();
        match effect {
            None => break,
            Some(_) if session.ended.get() => {}
            Some(effect) => carry_out_one(front, session, effect),
        }
    }
    if session.protocol.borrow().has_output() {
        session.output.notify();
    }
}

fn carry_out_one(front: &Rc<Front>, session: &Rc<Session>, effect: Effect) {
    match effect {
        Effect::Command(command) => scsi_command::begin(front, session, command),
        Effect::TaskManagement(request) => task_management::begin(front, session, request),
        Effect::LoggedIn(identity) => {
            session.login_pending.set(true);
            front.context.io.spawn(log_in(front.clone(), session.clone(), identity));
        }
        Effect::Close(reason) => {
            session.note_close(reason);
            note_failed_login(front, session, reason);
            session.end();
        }
    }
}

/// Completes a login that the protocol holds back: the older session of its name ends first.
async fn log_in(front: Rc<Front>, session: Rc<Session>, identity: SessionIdentity) {
    let tsih = match identity.kind {
        SessionKind::Discovery => front.sessions.discovery_tsih(),
        SessionKind::Normal => {
            let key = key_of(&identity);
            let request = session_request(&front, &session, &identity);
            let answer =
                front.context.ask(MANAGER, FrontCall::Register(key.clone(), session.place, request)).await;
            let Answer::Registered(result) = answer else { unreachable!("the answer to a registration") };
            match result {
                Ok(tsih) => {
                    *session.registered.borrow_mut() = Some(key);
                    tsih
                }
                Err(limit) => {
                    session.note_refusal(limit);
                    session.protocol.borrow_mut().refuse_login(LoginStatus::OutOfResources);
                    carry_out(&front, &session);
                    session.login_pending.set(false);
                    session.input.notify();
                    return;
                }
            }
        }
    };
    if !session.ended.get() {
        let replica = front.context.replica.borrow().clone();
        let host = replica.catalog.host_of_initiator(&identity.initiator_name);
        let host = host.map(|host| host.name.as_str().to_owned());
        // an unknown initiator may discover targets, but is shown none
        let host = host.or_else(|| (identity.kind == SessionKind::Discovery).then(String::new));
        match host {
            Some(host) if identity.kind == SessionKind::Normal && !session.portal.borrow().admits(&host) => {
                session.note_refusal(LoginRefusal::OtherPortal);
                session.protocol.borrow_mut().refuse_login(LoginStatus::AuthorizationFailed);
                carry_out(&front, &session);
            }
            Some(host) => {
                if identity.kind == SessionKind::Normal {
                    front.sums.logged_in(&replica, &host, session.portal.borrow().address);
                }
                session.log_in(&replica, &front.units, Login { identity, host });
                session.report_login(&front.context);
                session.protocol.borrow_mut().complete_login(tsih);
                carry_out(&front, &session);
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

/// Records a login that failed because of a wrong secret: it delays the next login from that address.
fn note_failed_login(front: &Front, session: &Session, reason: CloseReason) {
    let (class, detail) = LoginStatus::AuthenticationFailed.codes();
    if reason == (CloseReason::LoginRefused { class, detail }) {
        front.backoff.note_failure(AddressSource::of(session.peer().ip()), front.context.io.now());
    }
}

/// The host and the address that request a session.
fn session_request(front: &Front, session: &Session, identity: &SessionIdentity) -> SessionRequest {
    let replica = front.context.replica.borrow();
    let host = replica.catalog.host_of_initiator(&identity.initiator_name);
    let initiators = host.into_iter().flat_map(|host| &host.initiators);
    SessionRequest {
        initiators: initiators.map(|initiator| initiator.as_str().to_ascii_lowercase()).collect(),
        source: AddressSource::of(session.peer().ip()),
        on_shard: front.sessions.normal(),
    }
}

/// Sends everything that is ready, as one send, until the session has ended; then closes the socket.
async fn send(front: Rc<Front>, session: Rc<Session>) {
    let io = &front.context.io;
    let mut deadline = None;
    loop {
        let output = session.protocol.borrow_mut().take_output();
        if output.is_empty() {
            if session.ended.get() {
                break;
            }
            session.output.wait().await;
            // output that becomes ready in the same turn is sent together
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
    // fails only if the environment has already closed the connection
    let _ = io.close_connection(session.handle).await;
}

/// Tells the protocol the time when a deadline is due.
async fn tick(front: Rc<Front>, session: Rc<Session>) {
    let io = &front.context.io;
    while !session.ended.get() {
        // the protocol moves its deadline as data flows: the new one is read when the old one is due
        let deadline = session.protocol.borrow().next_deadline().max(io.now() + TICK_MIN);
        if race(io.sleep_until(deadline), session.gone.pass()).await.is_err() {
            return;
        }
        if session.ended.get() {
            return;
        }
        session.protocol.borrow_mut().on_tick(io.now());
        carry_out(&front, &session);
    }
}
