//! One request over HTTP/1.1, with TLS or without. A connection is used once.
//!
//! What always holds: names, certificates and redirects are checked or refused; an answer takes at most 64 KiB of memory; resolving,
//! connecting, sending and waiting for the answer have one time limit.

use std::path::PathBuf;
use std::time::Duration;

use base::text::printable;
use http_body_util::{BodyExt, Full};
use hyper::body::{Body, Bytes};
use hyper::client::conn::http1;
use hyper::{Method, Request, Response, Uri, header};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout, timeout_at};

use crate::deliver::Undelivered;
use crate::net;

/// Of all of it.
const TIME: Duration = Duration::from_secs(10);
const ANSWER_BYTES_MAX: usize = 64 << 10;
/// What of a refusal is shown.
const WORDS_BYTES_MAX: usize = 120;

/// Where a request goes. Without a secret: what is shown of it is the host only, because paths often are secrets.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Url {
    pub is_https: bool,
    /// Without the brackets of IPv6.
    pub host: String,
    pub port: u16,
    /// With the query.
    pub path: String,
}

impl Url {
    /// Reads `http://` and `https://` with a host and maybe a port, without a user.
    pub fn parse(text: &str) -> Option<Url> {
        let uri: Uri = text.parse().ok()?;
        let is_https = match uri.scheme_str()? {
            "https" => true,
            "http" => false,
            _ => return None,
        };
        let authority = uri.authority()?;
        // no user, and no port that is none
        let has_port = authority.port_u16().is_some_and(|port| port > 0);
        if authority.as_str().contains('@') || authority.as_str() != authority.host() && !has_port {
            return None;
        }
        let host = authority.host().trim_start_matches('[').trim_end_matches(']').to_owned();
        let port = authority.port_u16().unwrap_or(if is_https { 443 } else { 80 });
        let path = uri.path_and_query().map_or("/", |path| path.as_str()).to_owned();
        // a fragment stays with the client
        (!host.is_empty()).then_some(Url { is_https, host, port, path })
    }

    pub(crate) fn target(&self) -> String {
        let scheme = if self.is_https { "https" } else { "http" };
        format!("{scheme}://{}", self.authority())
    }

    fn authority(&self) -> String {
        let host = if self.host.contains(':') { format!("[{}]", self.host) } else { self.host.clone() };
        match (self.is_https, self.port) {
            (true, 443) | (false, 80) => host,
            (_, port) => format!("{host}:{port}"),
        }
    }
}

/// A request without its address.
pub(crate) struct Ask {
    pub method: Method,
    pub headers: Vec<(&'static str, String)>,
    pub body: Vec<u8>,
    /// The authorities that may have signed the server's certificate; those of the system if there is none.
    pub ca_file: Option<PathBuf>,
}

/// Sends it, and takes a status of 2xx for success.
pub(crate) async fn send(url: &Url, ask: Ask) -> Result<(), Undelivered> {
    let end = Instant::now() + TIME;
    let late = || format!("{} has not answered within {} s", url.target(), TIME.as_secs());
    let request = request(url, &ask)?;
    let connected = async {
        let stream = net::connect(&url.host, url.port).await?;
        let stream: Box<dyn Stream> = match url.is_https {
            true => Box::new(net::secured(&url.host, stream, ask.ca_file.clone()).await?),
            false => Box::new(stream),
        };
        Ok(stream)
    };
    let stream = timeout_at(end, connected)
        .await
        .map_err(|_| Undelivered::surely(late()))
        .and_then(|stream| stream)?;
    timeout_at(end, exchange(url, stream, request)).await.unwrap_or_else(|_| Err(Undelivered::maybe(late())))
}

trait Stream: AsyncRead + AsyncWrite + Unpin + Send {}

impl<T: AsyncRead + AsyncWrite + Unpin + Send> Stream for T {}

fn request(url: &Url, ask: &Ask) -> Result<Request<Full<Bytes>>, Undelivered> {
    let mut builder = Request::builder()
        .method(ask.method.clone())
        .uri(&url.path)
        .header(header::HOST, url.authority())
        .header(header::USER_AGENT, concat!("tangelo/", env!("CARGO_PKG_VERSION")))
        .header(header::CONNECTION, "close");
    for (name, value) in &ask.headers {
        builder = builder.header(*name, value);
    }
    let body = Full::new(Bytes::copy_from_slice(&ask.body));
    // the value of a header is not shown: it may be a token
    builder.body(body).map_err(|_| Undelivered::surely("a header has characters that it cannot have"))
}

async fn exchange(
    url: &Url,
    stream: Box<dyn Stream>,
    request: Request<Full<Bytes>>,
) -> Result<(), Undelivered> {
    let broken =
        |error: hyper::Error| Undelivered::maybe(format!("{} has broken off: {error}", url.target()));
    let handshake = http1::Builder::new().max_buf_size(ANSWER_BYTES_MAX).handshake(TokioIo::new(stream));
    let (mut sender, connection) = handshake.await.map_err(broken)?;
    // ends with this function
    let mut tasks = JoinSet::new();
    tasks.spawn(connection);
    let answer = sender.send_request(request).await.map_err(broken)?;
    let status = answer.status();
    if status.is_success() {
        return Ok(());
    }
    let words = beginning(answer).await.map(|words| format!(": {words}")).unwrap_or_default();
    let target = url.target();
    Err(match status.as_u16() {
        300..400 => {
            Undelivered::surely(format!("{target} redirects ({status}); name the URL that it leads to"))
        }
        // one that fails may have done some of it
        500.. => Undelivered::maybe(format!("{target} has answered {status}{words}")),
        _ => Undelivered::surely(format!("{target} has answered {status}{words}")),
    })
}

/// The first words of a refusal, if they come soon.
async fn beginning(answer: Response<impl Body<Data = Bytes> + Unpin>) -> Option<String> {
    let mut body = answer.into_body();
    let frame = timeout(Duration::from_secs(1), body.frame()).await.ok()??.ok()?;
    printable(frame.data_ref()?.get(..frame.data_ref()?.len().min(4096))?, WORDS_BYTES_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_read_and_shown_without_their_path() {
        let url = Url::parse("https://hooks.example.com/services/T0/SECRET?x=1").unwrap();
        assert_eq!((url.port, url.path.as_str(), url.is_https), (443, "/services/T0/SECRET?x=1", true));
        assert_eq!(url.target(), "https://hooks.example.com");
        let url = Url::parse("http://[::1]:8080").unwrap();
        assert_eq!((url.host.as_str(), url.port, url.path.as_str()), ("::1", 8080, "/"));
        assert_eq!(url.target(), "http://[::1]:8080");
        for text in [
            "",
            "x",
            "/x",
            "ftp://a/",
            "https://",
            "https://user:word@a/",
            "http://a:0/",
            "http://a:99999/",
            "http:///x",
            "http://a b/",
        ] {
            assert_eq!(Url::parse(text), None, "{text}");
        }
    }
}
