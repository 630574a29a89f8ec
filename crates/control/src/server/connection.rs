//! Accepting clients of one socket, and serving each on a task of its own, within bounds.
//!
//! Each socket has its own limit of clients. When it is reached, the oldest client without a request at work is
//! disconnected, so idle clients keep nobody out.

use std::future::{pending, ready};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use base::limits::API_CONNECTIONS_MAX;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use tokio::sync::{Notify, watch};
use tokio::task::{AbortHandle, JoinSet};

use super::client::{Client, Connected};
use super::work::Work;

/// How long a client may take to send a request's head.
pub(super) const HEADER_TIME_MAX: Duration = Duration::from_secs(10);
/// What a turn of the accept loop waits after an error that has to do with this machine (no descriptors left).
const ACCEPT_RETRY: Duration = Duration::from_millis(200);

/// A stream that may have to be made ready first, which is up to its own task: a TLS handshake.
pub(super) type Opening<S> = Pin<Box<dyn Future<Output = Option<S>> + Send>>;

/// A listening socket of any kind.
pub(super) trait Listen {
    type Stream: AsyncRead + AsyncWrite + Unpin + Send + 'static;

    fn accept_one(&self) -> impl Future<Output = std::io::Result<(Opening<Self::Stream>, Client)>> + Send;
}

impl Listen for UnixListener {
    type Stream = UnixStream;

    async fn accept_one(&self) -> std::io::Result<(Opening<UnixStream>, Client)> {
        let (stream, _) = self.accept().await?;
        let peer = stream.peer_cred()?;
        let client = Client::Local { user: peer.uid(), process: peer.pid() };
        Ok((Box::pin(ready(Some(stream))), client))
    }
}

impl Listen for TcpListener {
    type Stream = TcpStream;

    async fn accept_one(&self) -> std::io::Result<(Opening<TcpStream>, Client)> {
        let (stream, address) = self.accept().await?;
        Ok((Box::pin(ready(Some(stream))), Client::Tcp(address)))
    }
}

/// Serves a socket's clients until it is time to stop. Gives those that are still there, which stop by themselves.
pub(super) async fn serve_socket(
    listener: &impl Listen,
    router: &Router,
    mut stop: watch::Receiver<bool>,
) -> JoinSet<()> {
    let mut clients = Clients::default();
    loop {
        let accepted = tokio::select! {
            () = stopped(&mut stop) => break,
            () = clients.one_done() => continue,
            accepted = listener.accept_one() => accepted,
        };
        let (stream, client) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                tracing::warn!("API: a client could not be accepted: {error}");
                tokio::time::sleep(ACCEPT_RETRY).await;
                continue;
            }
        };
        tokio::select! {
            () = stopped(&mut stop) => break,
            () = clients.room() => clients.admit((stream, client), router.clone(), stop.clone()),
        }
    }
    clients.tasks
}

/// Those that are connected to one socket.
#[derive(Default)]
struct Clients {
    tasks: JoinSet<()>,
    /// In the order in which they came.
    connected: Vec<Place>,
    /// Told when a request is done.
    request_done: Arc<Notify>,
}

struct Place {
    task: AbortHandle,
    work: Work,
}

impl Clients {
    /// Ready when one more can come; if need be, the oldest of those that have nothing at work has left for it.
    async fn room(&mut self) {
        while self.connected.len() >= API_CONNECTIONS_MAX {
            if let Some(oldest) = self.connected.iter().position(|place| !place.work.is_under_way()) {
                self.connected.remove(oldest).task.abort();
                return;
            }
            let request_done = self.request_done.clone();
            tokio::select! {
                () = self.one_done() => {}
                () = request_done.notified() => {}
            }
        }
    }

    fn admit<S>(
        &mut self,
        (opening, client): (Opening<S>, Client),
        router: Router,
        mut stop: watch::Receiver<bool>,
    ) where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let work = Work::new(&self.request_done);
        let connected = Connected { client, work: work.clone() };
        let task = self.tasks.spawn(async move {
            let opened = tokio::select! {
                () = stopped(&mut stop) => None,
                opened = opening => opened,
            };
            if let Some(stream) = opened {
                serve_one(stream, router, connected, stop).await;
            }
        });
        self.connected.push(Place { task, work });
        assert!(self.connected.len() <= API_CONNECTIONS_MAX, "clients are bounded");
    }

    /// Ready when a client is gone.
    async fn one_done(&mut self) {
        if self.tasks.join_next().await.is_none() {
            pending::<()>().await;
        }
        self.connected.retain(|place| !place.task.is_finished());
    }
}

async fn serve_one<S>(stream: S, router: Router, connected: Connected, mut stop: watch::Receiver<bool>)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let mut builder = http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(HEADER_TIME_MAX).max_buf_size(64 << 10);
    let router = TowerToHyperService::new(router);
    let service = service_fn(move |mut request: hyper::Request<Incoming>| {
        request.extensions_mut().insert(connected.clone());
        router.call(request)
    });
    let mut connection = pin!(builder.serve_connection(TokioIo::new(stream), service));
    // A client that breaks off, or is no HTTP client, concerns nobody else: its error is dropped.
    tokio::select! {
        _ = connection.as_mut() => return,
        () = stopped(&mut stop) => connection.as_mut().graceful_shutdown(),
    }
    let _ = connection.await;
}

/// Ready when the daemon stops.
pub(super) async fn stopped(stop: &mut watch::Receiver<bool>) {
    while !*stop.borrow_and_update() && stop.changed().await.is_ok() {}
}
