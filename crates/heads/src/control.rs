//! The connection for control, and the way in for all kinds: one listener. The head with the lower id makes the connection for control,
//! the owner makes those for drives and for twins.

use std::cell::{Cell, RefCell};
use std::net::SocketAddr;
use std::rc::Rc;

use base::Nanos;
use env::ConnectionHandle;
use pair::{LinkEvent, Purpose};
use task::Io;

use crate::dial::connect;
use crate::head::RunningHead;
use crate::partner::Served;
use crate::wire::Wire;

/// Between two attempts to reach the other head.
const PAUSE: Nanos = Nanos::from_millis(20);
/// Between two attempts to listen: an address may come later, or be another program's for a while.
const LISTEN_PAUSE: Nanos = Nanos::from_millis(100);

/// For ever: makes the connection for control, and makes it again.
pub(crate) async fn keep_dialing(head: Rc<RunningHead>) {
    for attempt in 0.. {
        if let Some(address) = head.partner_address().nth(attempt)
            && let Some(connection) = connect(head.io(), address).await
        {
            let wire =
                Wire::new(head.io(), connection, head.identity().link(head.io(), Some(Purpose::Control)));
            serve(head.clone(), wire).await;
        }
        head.io().sleep(PAUSE).await;
    }
}

/// For ever: listens there, and gives out the connections of the other head.
pub(crate) async fn keep_listening(io: Io, address: SocketAddr, take: impl Fn(ConnectionHandle)) {
    loop {
        if let Ok((listener, _)) = io.listen(address).await {
            while let Ok((connection, _, _)) = io.accept(listener).await {
                take(connection);
            }
            let _closed_already = io.close_listener(listener).await;
        }
        io.sleep(LISTEN_PAUSE).await;
    }
}

pub(crate) async fn take(head: Rc<RunningHead>, connection: ConnectionHandle) {
    let wire = Wire::new(head.io(), connection, head.identity().link(head.io(), None));
    serve(head, wire).await;
}

/// Serves a connection until it ends, whichever kind it is.
async fn serve(head: Rc<RunningHead>, wire: Rc<Wire>) {
    head.io().spawn(wire.clone().end_if_not_up());
    let served: RefCell<Option<Rc<Served>>> = RefCell::default();
    let was_up = Cell::new(false);
    let end = wire
        .run(|event| match event {
            LinkEvent::Up { purpose: Purpose::Control, .. } => {
                was_up.set(true);
                head.begin_control(&wire);
            }
            LinkEvent::Up { purpose: Purpose::Drives, .. } => {
                was_up.set(true);
                *served.borrow_mut() = Some(head.partner().serve(&wire));
            }
            LinkEvent::Message(message) => head.on_message(&wire, message),
            LinkEvent::Up { purpose: Purpose::Twins, .. } => {}
            // those are for the doors of an owner's shards
            LinkEvent::Up { purpose: Purpose::Hosts, .. } => wire.close(),
            LinkEvent::Frame { kind, content } => {
                let served = served.borrow().clone();
                match served {
                    Some(served) => served.on_frame(kind, &content),
                    None => {
                        head.io().spawn(head.clone().answer_about_twins(wire.clone(), kind, content));
                    }
                }
            }
        })
        .await;
    head.end_connection(&wire, end, was_up.get());
}
