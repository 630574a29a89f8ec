//! One HTTP connection with TLS to a member of etcd. A request that fails ends the connection.

use std::sync::Arc;

use bytes::Bytes;
use http_body_util::{BodyExt, Full, Limited};
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper::header::{CONTENT_TYPE, HOST};
use hyper::{Method, Request};
use hyper_util::rt::TokioIo;
use rustls::pki_types::ServerName;
use tokio::net::TcpStream;
use tokio::task::JoinHandle;
use tokio_rustls::TlsConnector;

use crate::gateway;

/// An answer about one key is small; what is larger is not etcd's.
const ANSWER_BYTES_MAX: usize = 64 << 10;

/// Why a member has not answered.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Broken {
    /// Nobody listens there, or the connection broke off.
    Connection(String),
    /// The certificates do not fit.
    Tls(String),
    /// etcd has refused, for example because it has no leader.
    Refused(String),
    NotEtcd(String),
}

pub struct Connection {
    sender: SendRequest<Full<Bytes>>,
    driver: JoinHandle<()>,
    authority: String,
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.driver.abort();
    }
}

impl Connection {
    /// `address` is `host:port`; the certificate must be for the host.
    pub async fn open(address: &str, tls: Arc<rustls::ClientConfig>) -> Result<Connection, Broken> {
        let lost = |error: std::io::Error| Broken::Connection(error.to_string());
        let host = address.rsplit_once(':').map_or(address, |(host, _)| host).trim_matches(['[', ']']);
        let name = ServerName::try_from(host.to_owned())
            .map_err(|_| Broken::Tls(format!("{host} is no name or address")))?;
        let socket = TcpStream::connect(address).await.map_err(lost)?;
        socket.set_nodelay(true).map_err(lost)?;
        let stream = TlsConnector::from(tls).connect(name, socket).await.map_err(|error| {
            // an error of TLS stands inside that of the stream
            match error.get_ref().is_some_and(|inner| inner.is::<rustls::Error>()) {
                true => Broken::Tls(error.to_string()),
                false => lost(error),
            }
        })?;
        let (sender, connection) = handshake(TokioIo::new(stream)).await.map_err(|error| http(&error))?;
        let driver = tokio::spawn(async move {
            // its end is seen by whoever sends
            let _ended = connection.await;
        });
        Ok(Connection { sender, driver, authority: address.to_owned() })
    }

    pub async fn post(&mut self, path: &str, body: Vec<u8>) -> Result<Bytes, Broken> {
        let request = Request::builder()
            .method(Method::POST)
            .uri(path)
            .header(HOST, &self.authority)
            .header(CONTENT_TYPE, "application/json")
            .body(Full::new(Bytes::from(body)))
            .map_err(|error| Broken::NotEtcd(error.to_string()))?;
        self.sender.ready().await.map_err(|error| http(&error))?;
        let response = self.sender.send_request(request).await.map_err(|error| http(&error))?;
        let status = response.status();
        let body = Limited::new(response.into_body(), ANSWER_BYTES_MAX);
        let bytes = body.collect().await.map_err(|error| Broken::NotEtcd(error.to_string()))?.to_bytes();
        if status.is_success() { Ok(bytes) } else { Err(Broken::Refused(gateway::parse_failure(&bytes))) }
    }
}

/// A member that wants another certificate says so after the handshake (TLS 1.3), so it shows as an error of HTTP.
fn http(error: &hyper::Error) -> Broken {
    let mut source = std::error::Error::source(error);
    while let Some(inner) = source {
        let io = inner.downcast_ref::<std::io::Error>().and_then(std::io::Error::get_ref);
        if io.is_some_and(|inner| inner.is::<rustls::Error>()) {
            return Broken::Tls(inner.to_string());
        }
        source = inner.source();
    }
    Broken::Connection(error.to_string())
}
