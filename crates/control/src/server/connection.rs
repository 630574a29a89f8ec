//! Accepting clients and serving each on a task of its own, within bounds.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use base::limits::API_CONNECTIONS_MAX;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};

use super::{HEADER_TIME_MAX, Listeners, STOP_TIME_MAX, routes};

/// What a turn of the accept loop waits after an error that has to do with this machine (no descriptors left).
const ACCEPT_RETRY: Duration = Duration::from_millis(200);

pub(super) async fn serve_all(listeners: Listeners, router: Router, mut stop: watch::Receiver<bool>) {
    let guarded =
        listeners.tcp.as_ref().map(|(_, token)| routes::behind_token(router.clone(), token.clone()));
    let clients = Arc::new(Semaphore::new(API_CONNECTIONS_MAX));
    loop {
        let permit = clients.clone().acquire_owned().await.expect("the semaphore is never closed");
        let accepted = tokio::select! {
            () = stopped(&mut stop) => break,
            accepted = accept(&listeners) => accepted,
        };
        let (router, stop) = (router.clone(), stop.clone());
        match (accepted, &guarded) {
            (Ok(Client::Unix(stream)), _) => spawn(serve_one(stream, router, stop), permit),
            (Ok(Client::Tcp(stream)), Some(guarded)) => {
                spawn(serve_one(stream, guarded.clone(), stop), permit)
            }
            (Ok(Client::Tcp(_)), None) => unreachable!("TCP is listened on only with a token"),
            (Err(error), _) => {
                tracing::warn!("API: a client could not be accepted: {error}");
                tokio::time::sleep(ACCEPT_RETRY).await;
            }
        }
    }
    drop(listeners);
    // Each client's permit comes back when it is done.
    let all = clients.acquire_many(API_CONNECTIONS_MAX as u32);
    let _ = tokio::time::timeout(STOP_TIME_MAX, all).await;
}

fn spawn(client: impl Future<Output = ()> + Send + 'static, permit: OwnedSemaphorePermit) {
    tokio::spawn(async move {
        client.await;
        drop(permit);
    });
}

enum Client {
    Unix(tokio::net::UnixStream),
    Tcp(tokio::net::TcpStream),
}

async fn accept(listeners: &Listeners) -> std::io::Result<Client> {
    let tcp = async {
        match &listeners.tcp {
            Some((listener, _)) => listener.accept().await.map(|(stream, _)| Client::Tcp(stream)),
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        unix = listeners.unix.accept() => unix.map(|(stream, _)| Client::Unix(stream)),
        tcp = tcp => tcp,
    }
}

async fn serve_one<S>(stream: S, router: Router, mut stop: watch::Receiver<bool>)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let mut builder = http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(HEADER_TIME_MAX).max_buf_size(64 << 10);
    let service = TowerToHyperService::new(router);
    let mut connection = pin!(builder.serve_connection(TokioIo::new(stream), service));
    // A client that breaks off, or is no HTTP client, concerns nobody else: its error is dropped.
    tokio::select! {
        _ = connection.as_mut() => return,
        () = stopped(&mut stop) => connection.as_mut().graceful_shutdown(),
    }
    let _ = connection.await;
}

/// Ready when the daemon stops.
async fn stopped(stop: &mut watch::Receiver<bool>) {
    while !*stop.borrow_and_update() && stop.changed().await.is_ok() {}
}
