//! Entry point for fuzzing: any bytes as a request, before an array that refuses everything.
//!
//! HTTP itself is parsed by hyper and not fuzzed here. Everything behind it is: resources, paths, options, bodies,
//! refusals.

use std::cell::Cell;
use std::sync::{Arc, Mutex};

use api::{Bulk, BulkError, Command, CommandError, CommandErrorKind, Origin};
use axum::Router;
use axum::response::Response;
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::service::Service;
use hyper::{Method, Request, StatusCode, Uri};
use hyper_util::service::TowerToHyperService;
use tokio::runtime::{Builder, Runtime};

use super::extract::http_status;
use super::{State, routes};
use crate::access::Access;
use crate::alerts::NoAlerts;
use crate::array::{Answer, Array, BulkAnswer};
use crate::client::path_piece;
use crate::events::{EventLog, KeptEvents};

/// Keeps the command that came last.
#[derive(Default)]
struct Refusing(Mutex<Option<Command>>);

impl Array for Refusing {
    fn call_for(&self, command: Command, _: Origin) -> Answer {
        // an event is no answer to the request
        if !matches!(command, Command::Report { .. }) {
            *self.0.lock().expect("nobody panics with it") = Some(command);
        }
        Box::pin(async { Err(CommandError::new(CommandErrorKind::InUse, "refused", "")) })
    }

    fn bulk(&self, _: u16, _: Bulk) -> BulkAnswer {
        Box::pin(async { Err(BulkError::Ended) })
    }
}

struct Server {
    runtime: Runtime,
    router: Router,
    array: Arc<Refusing>,
}

thread_local! {
    static SERVER: Cell<Option<Server>> = const { Cell::new(None) };
}

/// A log that has ended, so that a stream of it ends, too.
fn no_events() -> Arc<EventLog> {
    let log = EventLog::new(KeptEvents::default());
    log.end();
    Arc::new(log)
}

impl Server {
    fn new() -> Server {
        let array = Arc::new(Refusing::default());
        let access = Access::of_nobody();
        let state = State::new(array.clone(), no_events(), Arc::new(NoAlerts), (access, None), "fuzz".into());
        let router = routes::local(routes::router(state));
        let runtime = Builder::new_current_thread().enable_time().build().expect("it needs no descriptors");
        Server { runtime, router, array }
    }

    /// What reaches the array.
    fn ask(&self, method: &Method, target: &Uri, body: &[u8]) -> Option<Command> {
        let body = Full::new(Bytes::copy_from_slice(body));
        let mut request = Request::new(body);
        (*request.method_mut(), *request.uri_mut()) = (method.clone(), target.clone());
        let response = self.runtime.block_on(async {
            let response = TowerToHyperService::new(self.router.clone()).call(request).await;
            let (head, body) = response.expect("a router always answers").into_parts();
            let body = body.collect().await.expect("answers are whole").to_bytes();
            Response::from_parts(head, body)
        });
        let command = self.array.0.lock().expect("nobody panics with it").take();
        check_answer(method, &response, command.is_some());
        command
    }
}

/// Refusals are ours, and none is the server's fault.
fn check_answer(method: &Method, response: &Response<Bytes>, reached: bool) {
    let status = response.status();
    assert!(!status.is_server_error(), "{status}");
    assert!(!reached || status == StatusCode::CONFLICT, "{status} where the array refuses");
    if !status.is_success() && method != Method::HEAD {
        let refusal: CommandError =
            serde_json::from_slice(response.body()).expect("a refusal is an error of ours");
        assert_eq!(http_status(refusal.kind), status);
    }
}

/// A request: a line with its method and its target (`POST /v1/volumes?dry_run=true`), and then its body. Gives the
/// command that reaches the array, if one does. Names in the path that are said again as our client says them must
/// mean the same.
pub fn request(bytes: &[u8]) -> Option<Command> {
    let end = bytes.iter().position(|&byte| byte == b'\n').unwrap_or(bytes.len());
    let (line, body) = (&bytes[..end], bytes.get(end + 1..).unwrap_or_default());
    let space = line.iter().position(|&byte| byte == b' ')?;
    let method = Method::from_bytes(&line[..space]).ok()?;
    let target = Uri::try_from(&line[space + 1..]).ok()?;
    let server = SERVER.take().unwrap_or_else(Server::new);
    let command = server.ask(&method, &target, body);
    if let Some(command) = &command {
        let again = server.ask(&method, &said_by_client(&target, command), body);
        assert_eq!(again.as_ref(), Some(command), "{target} said again");
    }
    SERVER.set(Some(server));
    command
}

fn said_by_client(target: &Uri, command: &Command) -> Uri {
    let pieces: Vec<String> =
        target.path().split('/').map(|piece| path_piece(&percent_decoded(piece))).collect();
    let options = match command {
        Command::SnapshotList { volume: Some(volume) } => format!("?volume={}", path_piece(volume)),
        _ => target.query().map_or(String::new(), |options| format!("?{options}")),
    };
    Uri::try_from(pieces.join("/") + &options).expect("a client sends nothing that is no URI")
}

/// RFC 3986 §2.1; a `%` that no two digits follow stands for itself.
fn percent_decoded(piece: &str) -> String {
    let bytes = piece.as_bytes();
    let digit = |at: usize| bytes.get(at).and_then(|&byte| char::from(byte).to_digit(16));
    let (mut decoded, mut at) = (Vec::new(), 0);
    while let Some(&byte) = bytes.get(at) {
        let escaped = (byte == b'%').then(|| Some(digit(at + 1)? << 4 | digit(at + 2)?)).flatten();
        decoded.push(escaped.map_or(byte, |value| value as u8));
        at += if escaped.is_some() { 3 } else { 1 };
    }
    String::from_utf8(decoded).expect("a path that reaches the array is text")
}
