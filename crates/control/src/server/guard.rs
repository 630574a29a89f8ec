//! Who is let in over the network: who presents the token of the head's file, a token, or the cookie of a session.
//!
//! What always holds: a request that reaches a resource has a `Who`; a change by a browser has come from a page of this head. A refusal does
//! not tell whether what was presented has ever been good.

use std::net::IpAddr;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use api::*;
use axum::extract::{Request, State as Shared};
use axum::http::{HeaderMap, HeaderValue, Method, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Redirect, Response};
use base::secret::is_same;
use serde::Deserialize;
use users::{Secret, SecretHash};

use super::Token;
use super::client::{Client, Connected};
use super::extract::{Refusal, whole_body};
use super::who::{By, Who};
use crate::access::Access;
use crate::array::Array;
use crate::repeats::Repeats;

/// The cookie of a session. The browser takes it over TLS alone, from this host alone, for all of it.
pub(super) const COOKIE: &str = "__Host-tangelo";
/// What a change by a browser has, if it is no form.
const CSRF_HEADER: &str = "X-CSRF-Token";
const FORM: &[u8] = b"application/x-www-form-urlencoded";

/// Who is let in, and who was not.
#[derive(Clone)]
pub(super) struct Guard {
    pub(super) access: Arc<Access>,
    token_file: Option<Token>,
    /// Browsers may sign in: over TLS.
    has_page: bool,
    array: Arc<dyn Array>,
    strangers: Arc<Mutex<Repeats<IpAddr>>>,
}

impl Guard {
    /// Of plain TCP, for programs.
    pub(super) fn of_tcp(access: Arc<Access>, token_file: Token, array: Arc<dyn Array>) -> Guard {
        Guard { access, token_file: Some(token_file), has_page: false, array, strangers: Arc::default() }
    }

    /// Of TLS, for programs and browsers.
    pub(super) fn of_web(access: Arc<Access>, token_file: Option<Token>, array: Arc<dyn Array>) -> Guard {
        Guard { access, token_file, has_page: true, array, strangers: Arc::default() }
    }

    /// Who presents something that is good.
    fn let_in(&self, headers: &HeaderMap) -> Option<(Who, By)> {
        if let Some(presented) = headers.get(header::AUTHORIZATION) {
            return self.by_token(presented.as_bytes());
        }
        let secret = session_of(headers).filter(|_| self.has_page)?;
        let user = self.access.session(&secret)?;
        Some((Who { name: user.name, role: user.role, csrf: user.csrf }, By::Session(secret)))
    }

    fn by_token(&self, header: &[u8]) -> Option<(Who, By)> {
        let (scheme, presented) = header.split_at_checked("Bearer ".len())?;
        if !scheme.eq_ignore_ascii_case(b"Bearer ") {
            return None;
        }
        if self.token_file.as_ref().is_some_and(|token| token.matches(presented)) {
            let who = Who { name: "token-file".to_owned(), role: Role::Administer, csrf: None };
            return Some((who, By::TokenFile));
        }
        let secret = Secret::parse(std::str::from_utf8(presented).ok()?)?.hash();
        let token = self.access.token(&secret)?;
        Some((Who { name: token.name, role: token.role, csrf: None }, By::Token(secret)))
    }

    /// Records something about an address, at most once a minute. Nobody waits for it.
    fn report_stranger(&self, request: &Request) {
        let connected = request.extensions().get::<Connected>();
        let Some(Connected { client: Client::Tcp(address), .. }) = connected else { return };
        let address = address.ip();
        let said = self.strangers.lock().expect("nobody panics with it").say(address, Instant::now());
        let Some(more) = said else { return };
        report(&self.array, Subject::Address(address.to_string()), EventFacts::ApiRefused {}, more + 1);
    }
}

/// Records an event, and says it in the log if the array cannot take it now. Nobody waits.
pub(super) fn report(array: &Arc<dyn Array>, subject: Subject, facts: EventFacts, count: u64) {
    let text = facts.text(&subject);
    let recorded = array.call(Command::Report { subject, facts, count });
    tokio::spawn(async move {
        if recorded.await.is_err() {
            tracing::info!("{text}");
        }
    });
}

/// The session that a request names, if it is one.
pub(super) fn session_of(headers: &HeaderMap) -> Option<SecretHash> {
    let cookies = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
    let value = cookies.flat_map(|cookies| cookies.split(';')).find_map(|cookie| {
        let (name, value) = cookie.trim().split_once('=')?;
        (name == COOKIE).then_some(value)
    })?;
    Secret::parse(value).map(|secret| secret.hash())
}

/// Lets in, or refuses: a browser that wants a page is sent to sign in.
pub(super) async fn check(Shared(guard): Shared<Guard>, mut request: Request, next: Next) -> Response {
    let Some((who, by)) = guard.let_in(request.headers()) else {
        let path = request.uri().path();
        let is_page = !path.starts_with("/v1/") && path != "/metrics";
        if guard.has_page && is_page && matches!(*request.method(), Method::GET | Method::HEAD) {
            return Redirect::to("/sign-in").into_response();
        }
        guard.report_stranger(&request);
        let hint = match guard.has_page {
            true => {
                "send `Authorization: Bearer TOKEN` with a token of `tangelo token add`, or sign in at /sign-in"
            }
            false => {
                "send `Authorization: Bearer TOKEN` with the content of the token_file, or a token of `tangelo token add`"
            }
        };
        let message = "no token, or a wrong one";
        return Refusal(CommandError::new(CommandErrorKind::Unauthorized, message, hint)).into_response();
    };
    if let Some(csrf) = &who.csrf
        && !request.method().is_safe()
    {
        request = match check_browser(csrf, request).await {
            Ok(request) => request,
            Err(refusal) => return Refusal(refusal).into_response(),
        };
    }
    request.extensions_mut().insert(who);
    request.extensions_mut().insert(by);
    next.run(request).await
}

/// A change by a browser has the session's CSRF token, and comes from a page of this head.
async fn check_browser(csrf: &str, request: Request) -> Result<Request, CommandError> {
    check_source(request.headers())?;
    if let Some(presented) = request.headers().get(CSRF_HEADER) {
        return match is_same(presented.as_bytes(), csrf.as_bytes()) {
            true => Ok(request),
            false => Err(not_from_here()),
        };
    }
    let is_form =
        request.headers().get(header::CONTENT_TYPE).is_some_and(|kind| kind.as_bytes().starts_with(FORM));
    if !is_form {
        return Err(not_from_here());
    }
    let (head, bytes) = whole_body(request).await?;
    let presented = form_field::<CsrfField>(&bytes).map(|field| field.csrf).unwrap_or_default();
    match is_same(presented.as_bytes(), csrf.as_bytes()) {
        true => Ok(Request::from_parts(head, bytes.into())),
        false => Err(not_from_here()),
    }
}

#[derive(Deserialize)]
struct CsrfField {
    csrf: String,
}

/// What a form has sent.
pub(super) fn form_field<T: serde::de::DeserializeOwned>(bytes: &[u8]) -> Option<T> {
    serde_urlencoded::from_bytes(bytes).ok()
}

/// Refuses what a page of somebody else has a browser send. Browsers say where a change comes from; who does not is none.
pub(super) fn check_source(headers: &HeaderMap) -> Result<(), CommandError> {
    let text = |name: &str| headers.get(name).map(HeaderValue::as_bytes);
    let host = text("Host").unwrap_or_default();
    let origin =
        text("Origin").map(|origin| !host.is_empty() && origin.strip_prefix(b"https://") == Some(host));
    let site = text("Sec-Fetch-Site").map(|site| site == b"same-origin");
    match (origin, site) {
        (Some(true), None | Some(true)) | (None, Some(true)) => Ok(()),
        _ => Err(not_from_here()),
    }
}

fn not_from_here() -> CommandError {
    let message = "this change did not come from a page of this head";
    let hint = "load the page again; a program sends a token (`tangelo token add`) instead of a cookie";
    CommandError::new(CommandErrorKind::Forbidden, message, hint)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(all: &[(&'static str, &str)]) -> HeaderMap {
        all.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap())).collect::<HeaderMap>()
    }

    #[test]
    fn where_a_change_comes_from() {
        let host = ("host", "head:7443");
        let (good, other) = (("origin", "https://head:7443"), ("origin", "https://evil.example"));
        let site = |site| ("sec-fetch-site", site);
        for (of, passes) in [
            (vec![host, good], true),
            (vec![host, good, site("same-origin")], true),
            (vec![host, site("same-origin")], true),
            (vec![host], false),
            (vec![], false),
            (vec![good], false),
            (vec![host, other], false),
            (vec![host, other, site("same-origin")], false),
            (vec![host, good, site("cross-site")], false),
            (vec![host, good, site("same-site")], false),
            (vec![host, good, site("none")], false),
            (vec![host, site("same-site")], false),
            (vec![host, ("origin", "http://head:7443")], false),
            (vec![host, ("origin", "https://head:7444")], false),
            (vec![host, ("origin", "https://head:7443.evil.example")], false),
            (vec![host, ("origin", "null")], false),
            (vec![host, ("origin", "")], false),
        ] {
            assert_eq!(check_source(&headers(&of)).is_ok(), passes, "{of:?}");
        }
    }

    #[test]
    fn cookies() {
        let secret = Secret::random();
        let text = secret.text();
        let of = |cookie: String| session_of(&headers(&[("cookie", &cookie)]));
        for good in
            [format!("{COOKIE}={text}"), format!("a=b; {COOKIE}={text}; c"), format!(" x=;{COOKIE}={text}")]
        {
            assert_eq!(of(good.clone()), Some(secret.hash()), "{good}");
        }
        for bad in [
            String::new(),
            COOKIE.to_owned(),
            format!("{COOKIE}="),
            format!("{COOKIE}={}", &text[1..]),
            format!("{COOKIE}=\"{text}\""),
            format!("tangelo={text}"),
            format!("x{COOKIE}={text}"),
        ] {
            assert_eq!(of(bad.clone()), None, "{bad}");
        }
        assert_eq!(session_of(&HeaderMap::new()), None);
    }
}
