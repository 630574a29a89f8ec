//! Portals: every shard listens on every portal's address, and serves the connections that it accepts.

use std::net::SocketAddr;
use std::rc::Rc;

use base::Nanos;
use env::{IoError, ListenerHandle};
use shard::{SessionPlace, Stage};

use crate::connection;
use crate::front::Front;
use api::PortalOptions;

/// How long to wait if the system has no room for another connection.
const ACCEPT_RETRY: Nanos = Nanos::from_millis(100);

/// Listens on these addresses. Returns the bound address of each, or the error.
pub(crate) async fn listen(
    front: &Rc<Front>,
    portals: Vec<PortalOptions>,
) -> Vec<Result<SocketAddr, IoError>> {
    let mut bound = Vec::new();
    for portal in portals {
        let io = &front.context.io;
        let result = match portal.forwarded {
            true => io.listen_forwarded(portal.address).await,
            false => io.listen(portal.address).await,
        };
        if let Ok((listener, address)) = result {
            front.listeners.borrow_mut().push((PortalOptions { address, ..portal }, listener));
            front.context.io.spawn(accept(front.clone(), listener));
        }
        bound.push(result.map(|(_, address)| address));
    }
    bound
}

/// Stops listening on those addresses. Existing connections continue.
pub(crate) async fn stop(front: &Front, which: impl Fn(SocketAddr) -> bool) {
    let all = std::mem::take(&mut *front.listeners.borrow_mut());
    let (go, stay): (Vec<_>, Vec<_>) = all.into_iter().partition(|(portal, _)| which(portal.address));
    front.listeners.borrow_mut().extend(stay);
    for (_, listener) in go {
        // an error while closing a listener still closes it
        let _ = front.context.io.close_listener(listener).await;
    }
}

async fn accept(front: Rc<Front>, listener: ListenerHandle) {
    loop {
        match front.context.io.accept(listener).await {
            Ok((handle, peer, local)) => {
                let sessions = &front.sessions;
                let portal = portal_of(&front, listener);
                let portal = portal.filter(|_| front.context.stage.get() == Stage::Serving);
                let portal = portal.filter(|_| sessions.has_room_for(peer.ip()));
                let Some(portal) = portal else {
                    // an error while closing a connection still closes it
                    let _ = front.context.io.close_connection(handle).await;
                    continue;
                };
                let place = SessionPlace { shard: front.context.shard, number: sessions.next_number() };
                front.context.io.spawn(connection::serve(
                    front.clone(),
                    handle,
                    (peer, local),
                    portal,
                    place,
                ));
            }
            Err(IoError::Closed) => return,
            Err(_) => front.context.io.sleep(ACCEPT_RETRY).await,
        }
    }
}

/// `None`: the listener was closed.
fn portal_of(front: &Front, listener: ListenerHandle) -> Option<PortalOptions> {
    let listeners = front.listeners.borrow();
    listeners.iter().find(|(_, handle)| *handle == listener).map(|(portal, _)| portal.clone())
}
