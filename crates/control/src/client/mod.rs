//! The API's client: one request on one connection, over the Unix socket, TCP or TLS.

mod stream;
mod tls;
mod transfer;

use std::path::{Path, PathBuf};
use std::time::Duration;

use api::{CommandError, CommandErrorKind};
use bytes::Bytes;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HOST, HeaderName};
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use serde::Serialize;
use serde::de::DeserializeOwned;
use thiserror::Error;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream};
use tokio::task::JoinHandle;

use crate::secret_file::{self, SecretFileError};

pub use self::stream::{Message, Stream};
pub use self::tls::{Fingerprint, Trust};
pub use self::transfer::{Download, Outgoing, Upload};

/// How long an answer may take; longer than the server gives itself.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(150);
/// Bytes that an answer may have: the status of the largest array is a few megabytes.
const ANSWER_BYTES_MAX: usize = 64 << 20;

/// The body of a request.
type Sent = UnsyncBoxBody<Bytes, std::io::Error>;

/// Where the array's API is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Server {
    Socket(PathBuf),
    /// Host and port.
    Tcp {
        authority: String,
        token_file: PathBuf,
    },
    /// Host and port, over TLS.
    Tls {
        authority: String,
        token_file: PathBuf,
        trust: Trust,
    },
}

/// Why there is no answer, or why it is a refusal.
#[derive(Debug, Error)]
pub enum ClientError {
    /// The array understood and refused.
    #[error("{}", .0.message)]
    Refused(CommandError),
    #[error("nobody answers at {place}: {error}")]
    Unreachable { place: String, error: std::io::Error },
    #[error("{place} is not taken for the head: {reason}")]
    NotTrusted { place: String, reason: String },
    #[error("{path}: the token: {error}")]
    Token { path: PathBuf, error: SecretFileError },
    #[error("{path}: the token has characters that cannot be sent")]
    TokenCharacters { path: PathBuf },
    #[error("the connection to {place} broke off: {reason}")]
    Broken { place: String, reason: String },
    #[error("{place} answered with something that is not Tangelo's: {reason}")]
    NotTangelo { place: String, reason: String },
}

impl ClientError {
    /// What to do about it; may be empty.
    pub fn hint(&self) -> &str {
        match self {
            ClientError::Refused(error) => &error.hint,
            ClientError::Unreachable { error, .. }
                if error.kind() == std::io::ErrorKind::PermissionDenied =>
            {
                "run it as root, or as a member of the socket's group"
            }
            ClientError::Unreachable { .. } => {
                "is the daemon running (`tangelo serve`, `systemctl status tangelo`), and is --socket the one it serves?"
            }
            ClientError::NotTrusted { .. } => {
                "give the certificate's SHA-256 with --fingerprint, as `tangelo web show` on the head tells it, or --ca FILE"
            }
            ClientError::Token { .. } | ClientError::TokenCharacters { .. } => {
                "name the server's token with --token-file"
            }
            ClientError::Broken { .. } => "what was asked may have been carried out: `tangelo status` tells",
            ClientError::NotTangelo { .. } => {
                "is --server the right address, and its Tangelo as new as this one?"
            }
        }
    }
}

impl Server {
    /// Asks for a resource.
    pub async fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, ClientError> {
        self.call(Method::GET, path, Bytes::new()).await
    }

    /// Makes something.
    pub async fn post<B: Serialize, T: DeserializeOwned>(
        &self,
        path: &str,
        body: &B,
    ) -> Result<T, ClientError> {
        let body = serde_json::to_vec(body).expect("requests can be said in JSON");
        self.call(Method::POST, path, body.into()).await
    }

    /// Changes something.
    pub async fn patch<B: Serialize, T: DeserializeOwned>(
        &self,
        path: &str,
        body: &B,
    ) -> Result<T, ClientError> {
        let body = serde_json::to_vec(body).expect("requests can be said in JSON");
        self.call(Method::PATCH, path, body.into()).await
    }

    /// Opens a stream of server-sent events.
    pub async fn stream(&self, path: &str) -> Result<Stream, ClientError> {
        let (response, connection) =
            self.exchange(Method::GET, path, whole_body(Bytes::new()), &[JSON]).await?;
        if response.status().is_success() {
            return Ok(Stream::new(response.into_body(), connection));
        }
        Err(self.refusal(response, connection).await)
    }

    /// What the array says in an answer that is none.
    async fn refusal(&self, response: Response<Incoming>, connection: JoinHandle<()>) -> ClientError {
        let bytes = match self.whole(response, connection).await {
            Ok((_, bytes)) => bytes,
            Err(error) => return error,
        };
        match serde_json::from_slice(&bytes) {
            Ok(refusal) => ClientError::Refused(refusal),
            Err(error) => ClientError::NotTangelo { place: self.place(), reason: error.to_string() },
        }
    }

    /// Removes something.
    pub async fn delete<T: DeserializeOwned>(&self, path: &str) -> Result<T, ClientError> {
        self.call(Method::DELETE, path, Bytes::new()).await
    }

    async fn call<T: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        body: Bytes,
    ) -> Result<T, ClientError> {
        let place = self.place();
        let exchange = async {
            let (response, connection) = self.exchange(method, path, whole_body(body), &[JSON]).await?;
            self.whole(response, connection).await
        };
        let (status, bytes) = match tokio::time::timeout(ANSWER_TIME_MAX, exchange).await {
            Ok(answer) => answer?,
            Err(_) => return Err(ClientError::Broken { place, reason: "no answer in time".to_owned() }),
        };
        let not_ours =
            |error: serde_json::Error| ClientError::NotTangelo { place, reason: error.to_string() };
        if status.is_success() {
            return serde_json::from_slice(&bytes).map_err(not_ours);
        }
        let refusal: CommandError = serde_json::from_slice(&bytes).map_err(not_ours)?;
        Err(ClientError::Refused(refusal))
    }

    fn place(&self) -> String {
        match self {
            Server::Socket(path) => path.display().to_string(),
            Server::Tcp { authority, .. } | Server::Tls { authority, .. } => authority.clone(),
        }
    }

    async fn exchange(
        &self,
        method: Method,
        path: &str,
        body: Sent,
        headers: &[(HeaderName, &str)],
    ) -> Result<(Response<Incoming>, JoinHandle<()>), ClientError> {
        let mut request = Request::builder().method(method).uri(path);
        for (name, value) in headers {
            request = request.header(name, *value);
        }
        let unreachable = |error| ClientError::Unreachable { place: self.place(), error };
        match self {
            Server::Socket(socket) => {
                let stream = UnixStream::connect(socket).await.map_err(unreachable)?;
                request = request.header(HOST, "tangelo");
                self.send(stream, request, body).await
            }
            Server::Tcp { authority, token_file } => {
                let token = read_token(token_file)?;
                let stream = TcpStream::connect(authority).await.map_err(unreachable)?;
                request = request.header(HOST, authority).header(AUTHORIZATION, format!("Bearer {token}"));
                self.send(stream, request, body).await
            }
            Server::Tls { authority, token_file, trust } => {
                let token = read_token(token_file)?;
                let stream = TcpStream::connect(authority).await.map_err(unreachable)?;
                let not_trusted = |reason| ClientError::NotTrusted { place: self.place(), reason };
                let stream = tls::secured(authority, trust, stream).await.map_err(not_trusted)?;
                request = request.header(HOST, authority).header(AUTHORIZATION, format!("Bearer {token}"));
                self.send(stream, request, body).await
            }
        }
    }

    async fn send<S>(
        &self,
        stream: S,
        request: hyper::http::request::Builder,
        body: Sent,
    ) -> Result<(Response<Incoming>, JoinHandle<()>), ClientError>
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let broken = |error: &dyn std::fmt::Display| self.broken(error);
        let request = request.body(body).map_err(|error| broken(&error))?;
        let handshake = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await;
        let (mut sender, connection) = handshake.map_err(|error| broken(&error))?;
        let driver = tokio::spawn(async move { drop(connection.await) });
        let response = sender.send_request(request).await.map_err(|error| broken(&error))?;
        Ok((response, driver))
    }

    /// The whole answer; the connection is done with.
    async fn whole(
        &self,
        response: Response<Incoming>,
        connection: JoinHandle<()>,
    ) -> Result<(StatusCode, Bytes), ClientError> {
        let status = response.status();
        let body = Limited::new(response.into_body(), ANSWER_BYTES_MAX).collect().await;
        let bytes = body.map_err(|error| self.broken(&error))?.to_bytes();
        connection.abort();
        Ok((status, bytes))
    }

    fn broken(&self, error: &dyn std::fmt::Display) -> ClientError {
        ClientError::Broken { place: self.place(), reason: error.to_string() }
    }
}

const JSON: (HeaderName, &str) = (CONTENT_TYPE, "application/json");

fn whole_body(bytes: Bytes) -> Sent {
    Full::new(bytes).map_err(|never| match never {}).boxed_unsync()
}

fn read_token(path: &Path) -> Result<String, ClientError> {
    let text =
        secret_file::read(path).map_err(|error| ClientError::Token { path: path.to_owned(), error })?;
    let token = text.trim();
    if token.is_empty() || !token.bytes().all(|b| b.is_ascii_graphic()) {
        return Err(ClientError::TokenCharacters { path: path.to_owned() });
    }
    Ok(token.to_owned())
}

/// `text` as one piece of a path (RFC 3986 §2.1).
pub fn path_piece(text: &str) -> String {
    let plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'.' | b'_' | b'~');
    // A piece of dots alone means a directory to some, so it is hidden from them.
    let dots = text.bytes().all(|b| b == b'.');
    text.bytes()
        .map(|b| if plain(b) && !dots { char::from(b).to_string() } else { format!("%{b:02X}") })
        .collect()
}

/// Whether an error is about how the request was made, not about the array's state.
pub fn is_wrong_usage(error: &ClientError) -> bool {
    matches!(error, ClientError::Refused(CommandError { kind: CommandErrorKind::Invalid, .. }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_of_a_path() {
        let table =
            [("vm-01", "vm-01"), ("a/b", "a%2Fb"), ("..", "%2E%2E"), ("ä?", "%C3%A4%3F"), ("a b", "a%20b")];
        for (text, piece) in table {
            assert_eq!(path_piece(text), piece);
        }
    }
}
