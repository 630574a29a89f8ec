//! The TLS listener: the API for programs, and the page for browsers.
//!
//! What always holds: a handshake is bounded in time, and up to its client's own task; every answer tells browsers to come back over TLS, to
//! show it in no frame, and to guess no types.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::extract::Request;
use axum::http::{HeaderName, HeaderValue, header};
use axum::middleware::{self, Next};
use axum::response::Response;
use rustls::ServerConfig;
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use super::client::Client;
use super::connection::{HEADER_TIME_MAX, Listen, Opening};
use super::guard::{self, Guard};
use super::request::State;
use super::{page, routes, sign_in};

/// A socket on which clients speak TLS.
pub(super) struct WebListener {
    pub(super) tcp: TcpListener,
    pub(super) tls: Arc<ServerConfig>,
}

impl Listen for WebListener {
    type Stream = TlsStream<TcpStream>;

    async fn accept_one(&self) -> std::io::Result<(Opening<Self::Stream>, Client)> {
        let (stream, address) = self.tcp.accept().await?;
        let acceptor = TlsAcceptor::from(self.tls.clone());
        let opening = async move {
            let handshake = tokio::time::timeout(HEADER_TIME_MAX, acceptor.accept(stream));
            // who breaks off, or does not trust the certificate, concerns nobody else
            handshake.await.ok()?.ok()
        };
        Ok((Box::pin(opening), Client::Tcp(address)))
    }
}

impl WebListener {
    pub(super) fn address(&self) -> Option<SocketAddr> {
        self.tcp.local_addr().ok()
    }
}

/// The resources and the page for who is let in, and what there is for who is not.
pub(super) fn router(state: State, guard: Guard) -> Router {
    let page = page::page_router().merge(sign_in::router());
    let inside = routes::with_page(state.clone(), page);
    let inside = inside.layer(middleware::from_fn_with_state(guard, guard::check));
    let open = sign_in::open_router(&state).merge(page::open_router());
    inside.merge(open).layer(middleware::from_fn(for_browsers))
}

async fn for_browsers(request: Request, next: Next) -> Response {
    let mut response = next.run(request).await;
    let headers = response.headers_mut();
    let mut unless_there = |name: HeaderName, value| {
        headers.entry(name).or_insert(HeaderValue::from_static(value));
    };
    unless_there(header::STRICT_TRANSPORT_SECURITY, "max-age=31536000");
    unless_there(header::X_CONTENT_TYPE_OPTIONS, "nosniff");
    unless_there(header::X_FRAME_OPTIONS, "DENY");
    // not no-referrer: with that, browsers hide where a form comes from
    unless_there(header::REFERRER_POLICY, "same-origin");
    unless_there(
        header::CONTENT_SECURITY_POLICY,
        "default-src 'none'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    );
    // what is for who has signed in is in no cache
    unless_there(header::CACHE_CONTROL, "no-store");
    response
}
