//! Parses requests and builds answers, so that every error is our JSON and never plain text.

use std::time::Duration;

use api::{CommandError, CommandErrorKind};
use axum::body::Bytes;
use axum::extract::{FromRequest, FromRequestParts, Path, Query, Request};
use axum::http::request::Parts;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use base::limits::API_BODY_BYTES_MAX;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::objects;

/// How long a client may take to send a request's body.
pub(super) const BODY_TIME_MAX: Duration = Duration::from_secs(10);

/// A request that is not carried out, on its way to the client.
pub(super) struct Refusal(pub CommandError);

impl From<CommandError> for Refusal {
    fn from(error: CommandError) -> Refusal {
        Refusal(error)
    }
}

fn invalid(message: impl Into<String>) -> CommandError {
    CommandError::new(CommandErrorKind::Invalid, message, "")
}

/// The HTTP status of each kind of refusal.
pub(super) fn http_status(kind: CommandErrorKind) -> StatusCode {
    use CommandErrorKind::*;
    match kind {
        Invalid => StatusCode::BAD_REQUEST,
        Unauthorized => StatusCode::UNAUTHORIZED,
        Forbidden => StatusCode::FORBIDDEN,
        TooMany => StatusCode::TOO_MANY_REQUESTS,
        NotFound => StatusCode::NOT_FOUND,
        MethodNotAllowed => StatusCode::METHOD_NOT_ALLOWED,
        TooSlow => StatusCode::REQUEST_TIMEOUT,
        AlreadyExists | InUse => StatusCode::CONFLICT,
        TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
        Io => StatusCode::INTERNAL_SERVER_ERROR,
        Unavailable | Stopping => StatusCode::SERVICE_UNAVAILABLE,
        TimedOut | Unfinished => StatusCode::GATEWAY_TIMEOUT,
        Full => StatusCode::INSUFFICIENT_STORAGE,
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let status = http_status(self.0.kind);
        let mut response = json_response(&self.0);
        *response.status_mut() = status;
        if status == StatusCode::UNAUTHORIZED {
            response.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response
    }
}

/// A value as a JSON answer, indented for people with `curl`.
pub(super) fn json_response<T: Serialize>(value: &T) -> Response {
    let mut text = serde_json::to_vec_pretty(value).expect("answers can be said in JSON");
    text.push(b'\n');
    ([(header::CONTENT_TYPE, HeaderValue::from_static("application/json"))], text).into_response()
}

/// The request, when its body is here.
pub(super) async fn with_whole_body(request: Request) -> Result<Request, CommandError> {
    let (head, body) = whole_body(request).await?;
    Ok(Request::from_parts(head, body.into()))
}

/// What comes before the body, and the body, when it is here.
pub(super) async fn whole_body(request: Request) -> Result<(Parts, Bytes), CommandError> {
    let (head, body) = request.into_parts();
    let whole = axum::body::to_bytes(body, API_BODY_BYTES_MAX);
    let Ok(whole) = tokio::time::timeout(BODY_TIME_MAX, whole).await else {
        let message = format!("the request's body was not here within {} seconds", BODY_TIME_MAX.as_secs());
        return Err(CommandError::new(
            CommandErrorKind::TooSlow,
            message,
            "try again where the network is better",
        ));
    };
    let whole = whole.map_err(|error| {
        if error.into_inner().is::<http_body_util::LengthLimitError>() {
            let message = format!("the request's body has more than {API_BODY_BYTES_MAX} bytes");
            CommandError::new(CommandErrorKind::TooLarge, message, "")
        } else {
            invalid("the request's body broke off")
        }
    })?;
    Ok((head, whole))
}

/// A JSON body. Unlike axum's, whatever is wrong with it is a [`Refusal`].
pub(super) struct Body<T>(pub T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequest<S> for Body<T> {
    type Rejection = Refusal;

    async fn from_request(request: Request, state: &S) -> Result<Self, Refusal> {
        let bytes = Bytes::from_request(request, state).await;
        let bytes = bytes.map_err(|rejection| invalid(rejection.body_text()))?;
        let value = objects::from_slice(&bytes).map_err(|error| {
            CommandError::new(
                CommandErrorKind::Invalid,
                format!("the request's body is not what this resource takes: {}", without_values(&error)),
                "/v1/openapi.json describes every resource",
            )
        })?;
        Ok(Body(value))
    }
}

/// What serde says, unless it might quote a value: that could be a secret.
fn without_values(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let quotes_value = text.starts_with("invalid type") || text.starts_with("invalid value");
    if !quotes_value {
        return text;
    }
    let expected = text.find("expected").map_or("", |at| &text[at..]);
    format!("a value of the wrong type, {expected}")
}

/// The request's options after the `?`.
pub(super) struct Options<T>(pub T);

impl<T: DeserializeOwned + Send, S: Send + Sync> FromRequestParts<S> for Options<T> {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Refusal> {
        match Query::<T>::from_request_parts(parts, state).await {
            Ok(Query(options)) => Ok(Options(options)),
            Err(rejection) => {
                Err(Refusal(invalid(format!("the options after \"?\": {}", rejection.body_text()))))
            }
        }
    }
}

/// The variable pieces of the request's path.
pub(super) struct Pieces<T>(pub T);

impl<T: DeserializeOwned + Send, S: Send + Sync> FromRequestParts<S> for Pieces<T> {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Refusal> {
        match Path::<T>::from_request_parts(parts, state).await {
            Ok(Path(pieces)) => Ok(Pieces(pieces)),
            Err(rejection) => Err(Refusal(invalid(format!("the path: {}", rejection.body_text())))),
        }
    }
}
