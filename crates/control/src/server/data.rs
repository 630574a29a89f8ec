//! The content of volumes and snapshots, as streams. There is no limit for the time that one takes. A
//! client may be slow, but is given up when nothing moves for long.

use std::convert::Infallible;
use std::ops::Range;
use std::time::Duration;

use api::*;
use axum::Router;
use axum::body::Body;
use axum::extract::{FromRequestParts, Request, State as Shared};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use base::BLOCK_BYTES;
use http_body_util::BodyExt;
use serde::Deserialize;
use tokio::sync::mpsc;

use super::client::{Asking, Connected};
use super::extract::{Options, Pieces, Refusal};
use super::request::{Answer, State, change};
use super::roles;
use super::work::UnderWay;
use crate::channel_body::ChannelBody;
use crate::rest::*;
use crate::transfer::export::Export;
use crate::transfer::import::Import;
use crate::transfer::records::{Parser, Piece};
use crate::transfer::{
    EXTENTS_TYPE, IMAGE_TYPE, RunningTransfer, SIZE_HEADER, STALL_TIME_MAX, command_error,
};

/// How long a client that was refused may go on sending.
const DRAIN_TIME_MAX: Duration = Duration::from_secs(10);

pub(super) fn router() -> Router<State> {
    Router::new()
        .route("/v1/volumes/{name}/data", get(export_volume).put(import_volume))
        .route("/v1/snapshots/{volume}/{name}/data", get(export_snapshot))
        .method_not_allowed_fallback(super::request::no_such_method)
        .layer(middleware::from_fn(asking))
}

async fn asking(request: Request, next: Next) -> Response {
    Asking::new(&request).while_serving(next.run(request)).await
}

/// Keeps the client's connection from giving way to others.
pub(super) struct Work(Option<UnderWay>);

impl<S: Send + Sync> FromRequestParts<S> for Work {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Work, Infallible> {
        Ok(Work(parts.extensions.get::<Connected>().map(|connected| connected.work.clone().begin())))
    }
}

#[derive(Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct ExportOptions {
    /// Begin at this byte, a multiple of 4096. With `Range`, only one of both.
    #[serde(default)]
    from_bytes: u64,
}

/// The content of a snapshot. As `application/octet-stream` it is the raw image; `Range` resumes it, and `ETag` is equal
/// for equal content. As `application/vnd.tangelo.extents`, if that is accepted, it has no holes: records of offset and
/// length (64 bits each, big-endian) and data, in order, and at the end the size with length 0.
#[utoipa::path(get, path = "/v1/snapshots/{volume}/{name}/data", tag = "snapshots", params(("volume" = String, Path), ("name" = String, Path), ("Range" = Option<String>, Header, description = "A range of bytes of the raw image"), ExportOptions), responses((status = 200, content_type = "application/octet-stream"), (status = 206, content_type = "application/octet-stream"), (status = "default", body = CommandError)))]
pub(super) async fn export_snapshot(
    Shared(state): Shared<State>,
    Pieces((volume, name)): Pieces<(String, String)>,
    Options(options): Options<ExportOptions>,
    work: Work,
    headers: HeaderMap,
) -> Answer {
    let order = TransferOrder::Export { volume, snapshot: Some(name) };
    export(&state, order, (&options, &headers), work).await
}

/// The content of a volume as it is now, with all that was acknowledged, while hosts use it. The formats are those of a
/// snapshot's content. It cannot be resumed: what is asked for later is of another moment.
#[utoipa::path(get, path = "/v1/volumes/{name}/data", tag = "volumes", params(("name" = String, Path)), responses((status = 200, content_type = "application/octet-stream"), (status = "default", body = CommandError)))]
pub(super) async fn export_volume(
    Shared(state): Shared<State>,
    Pieces(volume): Pieces<String>,
    Options(ChangeNothing {}): Options<ChangeNothing>,
    work: Work,
    headers: HeaderMap,
) -> Answer {
    let order = TransferOrder::Export { volume, snapshot: None };
    export(&state, order, (&ExportOptions { from_bytes: 0 }, &headers), work).await
}

/// No options.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ChangeNothing {}

/// Begins a transfer, which ends with what is returned. `Err`: also of a dry run, which begins nothing.
async fn begin(state: &State, order: TransferOrder) -> Result<RunningTransfer, CommandError> {
    let holder = LeaseHolder::new();
    let command = Command::TransferBegin { order, lease: holder.lease(), dry_run: false };
    let asking = Asking::current();
    roles::check_command(asking.who(), &command)?;
    match state.array.call_for(command, asking.origin()).await? {
        Reply::TransferBegan(grant) => Ok(RunningTransfer { grant, holder }),
        other => unreachable!("the array answered the beginning of a transfer with {other:?}"),
    }
}

async fn export(
    state: &State,
    order: TransferOrder,
    (options, headers): (&ExportOptions, &HeaderMap),
    work: Work,
) -> Answer {
    let records = accepts(headers, EXTENTS_TYPE);
    let name = format!("{order:?}");
    let moving = begin(state, order).await?;
    let size_bytes = moving.grant.size_bytes;
    let tag = format!("\"{}\"", moving.grant.content);
    let (range, is_part) = match wanted(options, headers, &moving.grant, records)? {
        Some(range) if range.is_empty() => return Ok(not_satisfiable(size_bytes)),
        Some(range) => (range, true),
        None => (options.from_bytes..size_bytes, false),
    };
    let (pieces, body) = mpsc::channel(1);
    let export = Export { array: state.array.clone(), moving, range: range.clone(), records, pieces };
    let can_resume = export.moving.grant.can_resume;
    tokio::spawn(async move {
        let _work = work;
        if let Err(error) = export.run().await {
            tracing::warn!("{name} broke off: {error}");
        }
    });
    let mut response = Response::new(Body::new(ChannelBody(body)));
    if is_part {
        *response.status_mut() = StatusCode::PARTIAL_CONTENT;
    }
    let set = response.headers_mut();
    let value = |text: String| HeaderValue::try_from(text).expect("digits and letters");
    set.insert(
        header::CONTENT_TYPE,
        HeaderValue::from_static(if records { EXTENTS_TYPE } else { IMAGE_TYPE }),
    );
    set.insert(header::ETAG, value(tag));
    set.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    set.insert(SIZE_HEADER, value(size_bytes.to_string()));
    if !records {
        set.insert(header::CONTENT_LENGTH, value((range.end - range.start).to_string()));
    }
    if can_resume && !records {
        set.insert(header::ACCEPT_RANGES, HeaderValue::from_static("bytes"));
    }
    if is_part {
        let text = format!("bytes {}-{}/{size_bytes}", range.start, range.end - 1);
        set.insert(header::CONTENT_RANGE, value(text));
    }
    Ok(response)
}

fn accepts(headers: &HeaderMap, what: &str) -> bool {
    let accept = headers.get(header::ACCEPT).and_then(|accept| accept.to_str().ok()).unwrap_or_default();
    accept.split(',').any(|kind| kind.split(';').next().is_some_and(|kind| kind.trim() == what))
}

/// The range that is asked for, empty if there is nothing in it (RFC 9110 §14); `None` for all from the option on.
fn wanted(
    options: &ExportOptions,
    headers: &HeaderMap,
    grant: &TransferGrant,
    records: bool,
) -> Result<Option<Range<u64>>, CommandError> {
    let invalid = |message: &str| Err(CommandError::new(CommandErrorKind::Invalid, message, ""));
    if !options.from_bytes.is_multiple_of(BLOCK_BYTES as u64) || options.from_bytes > grant.size_bytes {
        return invalid("\"from_bytes\" is not a multiple of 4096, or beyond the end");
    }
    let text = |name| headers.get(name).and_then(|value: &HeaderValue| value.to_str().ok());
    let Some(range) = text(header::RANGE).filter(|_| grant.can_resume && !records) else { return Ok(None) };
    if options.from_bytes > 0 {
        return invalid("\"from_bytes\" and Range cannot be used together");
    }
    let is_same = text(header::IF_RANGE).is_none_or(|tag| tag.trim_matches('"') == grant.content);
    Ok(range_of(range, grant.size_bytes).filter(|_| is_same))
}

/// One range of bytes. Anything else is ignored, as a server may.
fn range_of(text: &str, size_bytes: u64) -> Option<Range<u64>> {
    let (first, last) = text.strip_prefix("bytes=")?.split_once('-')?;
    let number = |text: &str| text.trim().parse::<u64>().ok();
    let range = match (first.trim(), last.trim()) {
        ("", last) => size_bytes.saturating_sub(number(last)?)..size_bytes,
        (first, "") => number(first)?..size_bytes,
        (first, last) => number(first)?..number(last)?.checked_add(1)?.min(size_bytes),
    };
    Some(if range.is_empty() { 0..0 } else { range })
}

fn not_satisfiable(size_bytes: u64) -> Response {
    let message = format!("the range is beyond the end: there are {size_bytes} bytes");
    let mut response = Refusal(CommandError::new(CommandErrorKind::Invalid, message, "")).into_response();
    *response.status_mut() = StatusCode::RANGE_NOT_SATISFIABLE;
    let all = HeaderValue::try_from(format!("bytes */{size_bytes}")).expect("digits");
    response.headers_mut().insert(header::CONTENT_RANGE, all);
    response
}

#[derive(Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct ImportOptions {
    /// Check everything and tell what would change, but change nothing. The body is not read.
    #[serde(default)]
    dry_run: bool,
    /// Also if the volume holds data, which is replaced.
    #[serde(default)]
    overwrite: bool,
    /// How many bytes of a volume there are to come, if `Content-Length` does not say it.
    #[serde(default)]
    size_bytes: Option<u64>,
}

/// Gives a volume the content of the body, a raw image or the format without holes that `GET` answers with. The volume must not be
/// mapped. It is what it was until the whole body is there and durable, and then what the body was; behind the body it is zeros.
#[utoipa::path(put, path = "/v1/volumes/{name}/data", tag = "volumes", params(("name" = String, Path), ImportOptions), request_body(content = String, content_type = "application/octet-stream"), responses((status = 200, body = Changed), (status = "default", body = CommandError)))]
pub(super) async fn import_volume(
    Shared(state): Shared<State>,
    Pieces(volume): Pieces<String>,
    Options(options): Options<ImportOptions>,
    work: Work,
    request: Request,
) -> Answer {
    let Work(_under_way) = work;
    let records = body_is_records(request.headers())?;
    let length =
        request.headers().get(header::CONTENT_LENGTH).and_then(|text| text.to_str().ok()?.parse().ok());
    let length_bytes = options.size_bytes.or(length.filter(|_| !records));
    let (name, overwrite) = (volume.clone(), options.overwrite);
    let order = TransferOrder::Import { volume, length_bytes, overwrite };
    if options.dry_run {
        let lease = LeaseHolder::new().lease();
        return change(&state, Command::TransferBegin { order, lease, dry_run: true }).await;
    }
    let mut body = request.into_body();
    let written = async {
        let mut import = Import::new(state.array.clone(), begin(&state, order).await?);
        receive(&mut import, &mut body, records).await?;
        import.finish().await.map_err(command_error)?;
        Ok::<Import, CommandError>(import)
    };
    match written.await {
        Ok(import) => {
            let transfer = import.moving().grant.transfer;
            change(&state, Command::TransferComplete { transfer, volume: name }).await
        }
        Err(error) => {
            tokio::spawn(drain(body));
            Err(error.into())
        }
    }
}

/// Takes what a refused client still sends, so that it comes to read why.
async fn drain(mut body: Body) {
    let rest = async { while let Some(Ok(_)) = body.frame().await {} };
    let _ = tokio::time::timeout(DRAIN_TIME_MAX, rest).await;
}

/// Records without holes, otherwise the raw image.
fn body_is_records(headers: &HeaderMap) -> Result<bool, CommandError> {
    match headers.get(header::CONTENT_TYPE).map(HeaderValue::as_bytes) {
        None => Ok(false),
        Some(kind) if kind == IMAGE_TYPE.as_bytes() => Ok(false),
        Some(kind) if kind == EXTENTS_TYPE.as_bytes() => Ok(true),
        Some(_) => {
            let message = format!("the body is to be {IMAGE_TYPE} or {EXTENTS_TYPE}");
            let hint = "`curl -T FILE` sends it so";
            Err(CommandError::new(CommandErrorKind::Invalid, message, hint))
        }
    }
}

async fn receive(import: &mut Import, body: &mut Body, records: bool) -> Result<(), CommandError> {
    let broken = |message: &str| {
        let hint = "the volume is what it was; import again";
        CommandError::new(CommandErrorKind::Invalid, message, hint)
    };
    let (mut parser, mut at) = (Parser::default(), 0);
    loop {
        let Ok(frame) = tokio::time::timeout(STALL_TIME_MAX, body.frame()).await else {
            let message = format!("nothing has come for {} seconds", STALL_TIME_MAX.as_secs());
            return Err(CommandError::new(CommandErrorKind::TooSlow, message, "import again"));
        };
        let Some(frame) = frame else { break };
        let frame = frame.map_err(|_| broken("the request's body broke off"))?;
        let Ok(mut bytes) = frame.into_data() else { continue };
        if !records {
            put(import, at, &bytes).await?;
            at += bytes.len() as u64;
            continue;
        }
        while let Some(piece) = parser.next(&mut bytes).map_err(|_| broken("its records are not in order"))? {
            if let Piece::Data { offset_bytes, data } = piece {
                put(import, offset_bytes, &data).await?;
            }
        }
    }
    match records && !parser.has_ended() {
        true => Err(broken("the records of the body have no end: it broke off")),
        false => Ok(()),
    }
}

async fn put(import: &mut Import, offset_bytes: u64, data: &[u8]) -> Result<(), CommandError> {
    match import.put(offset_bytes, data).await {
        Err(BulkError::OutOfRange) => {
            let size_bytes = import.moving().grant.size_bytes;
            let message = format!("there is more to import than the volume's {size_bytes} bytes");
            let hint = "the volume is what it was; `tangelo volume resize` makes it larger";
            Err(CommandError::new(CommandErrorKind::Invalid, message, hint))
        }
        result => result.map_err(command_error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_of_bytes() {
        let table = [
            ("bytes=0-", Some(0..100)),
            ("bytes=40-", Some(40..100)),
            ("bytes=40-49", Some(40..50)),
            ("bytes=40-400", Some(40..100)),
            ("bytes=-10", Some(90..100)),
            ("bytes=-400", Some(0..100)),
            ("bytes=100-", Some(0..0)),
            ("bytes=50-40", Some(0..0)),
            ("bytes=-0", Some(0..0)),
            ("bytes=1-2,5-6", None),
            ("blocks=1-2", None),
            ("bytes=x-", None),
        ];
        for (text, range) in table {
            assert_eq!(range_of(text, 100), range, "{text}");
        }
    }
}
