//! A connection to a server elsewhere, with TLS or without.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use rustls::RootCertStore;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use crate::deliver::{Undelivered, authorities};

/// One address that does not answer leaves time for the others.
const ADDRESS_TIME: Duration = Duration::from_secs(3);
/// What a server may say to a mail.
const SAID_BYTES_MAX: usize = 1 << 20;

/// Tries each address of a name.
pub(crate) async fn connect(host: &str, port: u16) -> Result<TcpStream, Undelivered> {
    let unreachable = |why: String| Undelivered::surely(format!("{host}:{port} cannot be reached: {why}"));
    let addresses = tokio::net::lookup_host((host, port)).await;
    let mut last = "its name has no address".to_owned();
    for address in addresses.map_err(|error| unreachable(error.to_string()))? {
        match timeout(ADDRESS_TIME, TcpStream::connect(address)).await {
            Ok(Ok(stream)) => return Ok(stream),
            Ok(Err(error)) => last = error.to_string(),
            Err(_) => last = format!("{address} does not answer"),
        }
    }
    Err(unreachable(last))
}

/// TLS with a server whose certificate is for this name, and signed by an authority of the file, or of this machine.
pub(crate) async fn secured(
    host: &str,
    stream: TcpStream,
    ca_file: Option<PathBuf>,
) -> Result<TlsStream<TcpStream>, Undelivered> {
    let refuse = |why: String| Undelivered::surely(format!("{host}: {why}"));
    let roots = roots(ca_file).await?;
    let config = tls::client().with_root_certificates(roots).with_no_client_auth();
    let name = ServerName::try_from(host.to_owned()).map_err(|error| refuse(error.to_string()))?;
    let connector = TlsConnector::from(Arc::new(config));
    connector.connect(name, stream).await.map_err(|error| refuse(format!("TLS: {error}")))
}

async fn roots(ca_file: Option<PathBuf>) -> Result<RootCertStore, Undelivered> {
    if let Some(file) = ca_file {
        let (name, pem) = (file.display().to_string(), authorities(file).await?);
        let roots = tls::authorities(&pem).map_err(|why| Undelivered::surely(format!("{name}: {why}")))?;
        return match roots.is_empty() {
            true => Err(Undelivered::surely(format!("{name} has no certificate"))),
            false => Ok(roots),
        };
    }
    let roots = tls::authorities_of_this_machine().await;
    match roots.is_empty() {
        true => Err(Undelivered::surely(
            "this machine has no certificates of authorities: install Debian's package ca-certificates, or name a ca_file",
        )),
        false => Ok(roots),
    }
}

/// A connection on which a server can say only so much.
#[derive(Debug)]
pub(crate) struct Bounded<S> {
    stream: S,
    peer: SocketAddr,
    left_bytes: usize,
}

impl<S> Bounded<S> {
    pub(crate) fn new(stream: S, peer: SocketAddr) -> Bounded<S> {
        Bounded { stream, peer, left_bytes: SAID_BYTES_MAX }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Bounded<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(context, buffer))?;
        let read = buffer.filled().len() - before;
        match self.left_bytes.checked_sub(read) {
            Some(left_bytes) => self.left_bytes = left_bytes,
            None => return Poll::Ready(Err(io::Error::other("it talks without end"))),
        }
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Bounded<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

impl<S: AsyncRead + AsyncWrite + Send + Sync + Unpin + std::fmt::Debug>
    lettre::transport::smtp::client::AsyncTokioStream for Bounded<S>
{
    fn peer_addr(&self) -> io::Result<SocketAddr> {
        Ok(self.peer)
    }
}
