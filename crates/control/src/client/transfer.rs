//! The content of volumes, to and from the API.

use std::io;

use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::Method;
use hyper::body::Incoming;
use hyper::header::{ACCEPT, CONTENT_TYPE, ETAG};
use serde::de::DeserializeOwned;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use super::{ClientError, Server};
use crate::channel_body::ChannelBody;
use crate::transfer::records::{Parser, Piece};
use crate::transfer::{EXTENTS_TYPE, SIZE_HEADER};

/// Pieces of a request's body that wait for the server.
const PIECES_WAITING: usize = 4;

/// The content of a volume or snapshot, without its holes.
pub struct Download {
    /// Of the whole volume, in bytes.
    pub size_bytes: u64,
    /// Equal for equal content.
    pub content: String,
    place: String,
    body: Incoming,
    connection: JoinHandle<()>,
    parser: Parser,
    bytes: Bytes,
}

impl Download {
    /// The next piece; `None` after the end. A stream that broke off is an error.
    pub async fn next(&mut self) -> Result<Option<Piece>, ClientError> {
        loop {
            let found = self.parser.next(&mut self.bytes);
            if let Some(piece) = found.map_err(|error| self.broken(&format!("{error:?}")))? {
                return Ok(Some(piece));
            }
            let Some(frame) = self.body.frame().await else { break };
            let frame = frame.map_err(|error| self.broken(&error.to_string()))?;
            self.bytes = frame.into_data().unwrap_or_default();
        }
        match self.parser.has_ended() {
            true => Ok(None),
            false => Err(self.broken("it has no end")),
        }
    }

    fn broken(&self, reason: &str) -> ClientError {
        ClientError::Broken { place: self.place.clone(), reason: reason.to_owned() }
    }
}

impl Drop for Download {
    fn drop(&mut self) {
        self.connection.abort();
    }
}

/// Where a request's body is put in, piece by piece; dropped at its end.
pub struct Outgoing(mpsc::Sender<io::Result<Bytes>>);

impl Outgoing {
    /// `false`: the server takes no more.
    pub async fn send(&self, piece: Bytes) -> bool {
        self.0.send(Ok(piece)).await.is_ok()
    }

    /// The same on a thread that may block.
    pub fn send_blocking(&self, piece: Bytes) -> bool {
        self.0.blocking_send(Ok(piece)).is_ok()
    }
}

/// The other end of an [`Outgoing`].
pub struct Upload(ChannelBody<io::Error>);

impl Upload {
    pub fn new() -> (Outgoing, Upload) {
        let (to, from) = mpsc::channel(PIECES_WAITING);
        (Outgoing(to), Upload(ChannelBody(from)))
    }
}

impl Server {
    /// Asks for the content of a volume or snapshot.
    pub async fn download(&self, path: &str) -> Result<Download, ClientError> {
        let body = super::whole_body(Bytes::new());
        let (response, connection) =
            self.exchange(Method::GET, path, body, &[(ACCEPT, EXTENTS_TYPE)]).await?;
        if !response.status().is_success() {
            return Err(self.refusal(response, connection).await);
        }
        let header = |name| response.headers().get(name).and_then(|value| value.to_str().ok());
        let size = header(SIZE_HEADER.parse().expect("a name")).and_then(|text| text.parse().ok());
        let content = header(ETAG).map(|tag| tag.trim_matches('"').to_owned());
        let (Some(size_bytes), Some(content)) = (size, content) else {
            let reason = "the answer has no size".to_owned();
            return Err(ClientError::NotTangelo { place: self.place(), reason });
        };
        let (place, parser, bytes) = (self.place(), Parser::default(), Bytes::new());
        Ok(Download { size_bytes, content, place, body: response.into_body(), connection, parser, bytes })
    }

    /// Sends a volume's content. The answer comes when all of it is there.
    pub async fn upload<T: DeserializeOwned>(&self, path: &str, body: Upload) -> Result<T, ClientError> {
        let body = body.0.boxed_unsync();
        let (response, connection) =
            self.exchange(Method::PUT, path, body, &[(CONTENT_TYPE, EXTENTS_TYPE)]).await?;
        if !response.status().is_success() {
            return Err(self.refusal(response, connection).await);
        }
        let (_, bytes) = self.whole(response, connection).await?;
        serde_json::from_slice(&bytes)
            .map_err(|error| ClientError::NotTangelo { place: self.place(), reason: error.to_string() })
    }
}
