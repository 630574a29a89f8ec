//! Signing in and out by a browser: a form, and a cookie.
//!
//! What always holds: the answer to a wrong name is that to a wrong password; what was typed is shown again only escaped, and the
//! password never.

use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use api::{EventFacts, SignInRefusal, Subject};
use axum::Router;
use axum::extract::{Request, State as Shared};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{Html, IntoResponse, Redirect, Response};
use axum::routing::{get, post};
use serde::Deserialize;
use users::{ABSOLUTE_MAX, PASSWORD_BYTES};

use super::client::{Asking, Client, Connected};
use super::extract::{Refusal, whole_body};
use super::guard::{COOKIE, check_source, form_field, report};
use super::request::State;
use super::who::By;
use crate::access::{Access, SignInError, SignedIn};
use crate::array::Array;
use crate::repeats::Repeats;

/// Bytes of a name that are looked at.
const NAME_BYTES_MAX: usize = 64;

/// What the form shows.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub(super) struct SignInView {
    /// What this head is called.
    pub host_name: String,
    /// The name that was typed.
    pub name: String,
    /// Why it has not worked.
    pub problem: Option<String>,
}

/// What the form sends.
#[derive(Deserialize)]
struct Form {
    name: String,
    password: String,
}

/// Who signs in, and who was not let in.
#[derive(Clone)]
struct Desk {
    access: Arc<Access>,
    array: Arc<dyn Array>,
    host_name: Arc<str>,
    /// Addresses that were refused lately, and users who have signed in.
    refused: Arc<Mutex<Repeats<(IpAddr, SignInRefusal)>>>,
    signed_in: Arc<Mutex<Repeats<(String, IpAddr)>>>,
}

/// What who has not signed in may use.
pub(super) fn open_router(state: &State) -> Router {
    let desk = Desk {
        access: state.access.clone(),
        array: state.array.clone(),
        host_name: state.host_name.clone(),
        refused: Arc::default(),
        signed_in: Arc::default(),
    };
    Router::new().route("/sign-in", get(show).post(sign_in)).with_state(desk)
}

/// What who has signed in may use.
pub(super) fn router() -> Router<State> {
    Router::new().route("/sign-out", post(sign_out))
}

async fn show(Shared(desk): Shared<Desk>) -> Response {
    let view = SignInView { host_name: desk.host_name.to_string(), ..SignInView::default() };
    Html(page(&view)).into_response()
}

async fn sign_in(Shared(desk): Shared<Desk>, request: Request) -> Response {
    let Some(Client::Tcp(from)) = request.extensions().get::<Connected>().map(|of| of.client.clone()) else {
        return StatusCode::BAD_REQUEST.into_response();
    };
    let form = match read(request).await {
        Ok(form) => form,
        Err(refusal) => return refusal.into_response(),
    };
    match desk.try_form(from, &form).await {
        Ok(SignedIn { secret, user }) => {
            desk.report_signed_in(&user, from);
            let cookie = cookie(&secret.text(), ABSOLUTE_MAX);
            ([(header::SET_COOKIE, cookie)], Redirect::to("/")).into_response()
        }
        Err(error) => desk.refuse(from, form.name, error),
    }
}

/// The form that was sent, by a page of this head.
async fn read(request: Request) -> Result<Form, Refusal> {
    check_source(request.headers())?;
    let (_, bytes) = whole_body(request).await?;
    let form = form_field::<Form>(&bytes);
    form.ok_or_else(|| {
        let message = "the form has to have the fields name and password";
        Refusal(api::CommandError::new(api::CommandErrorKind::Invalid, message, "load /sign-in again"))
    })
}

impl Desk {
    async fn try_form(&self, from: SocketAddr, form: &Form) -> Result<SignedIn, SignInError> {
        let name = if form.name.len() <= NAME_BYTES_MAX { form.name.trim() } else { "" };
        // nobody has a longer one
        let password =
            if form.password.len() <= *PASSWORD_BYTES.end() { form.password.clone() } else { String::new() };
        self.access.sign_in(from, name, password).await
    }

    fn report_signed_in(&self, user: &str, from: SocketAddr) {
        let key = (user.to_owned(), from.ip());
        let said = self.signed_in.lock().expect("nobody panics with it").say(key, Instant::now());
        if let Some(more) = said {
            let facts = EventFacts::SignedIn { address: from.to_string() };
            report(&self.array, Subject::User(user.to_owned()), facts, more + 1);
        }
    }

    fn refuse(&self, from: SocketAddr, name: String, error: SignInError) -> Response {
        let (status, problem, retry) = match error {
            SignInError::Unavailable(_) => {
                let problem = "Nobody can sign in at the moment. The log of this head says why.";
                (StatusCode::SERVICE_UNAVAILABLE, problem.to_owned(), None)
            }
            SignInError::Refused { user, why, retry } => {
                self.report_refused(from.ip(), user, why);
                let (status, problem) = problem(why, retry);
                (status, problem, retry)
            }
        };
        let name = name.chars().take(NAME_BYTES_MAX).collect();
        let view = SignInView { host_name: self.host_name.to_string(), name, problem: Some(problem) };
        let mut response = (status, Html(page(&view))).into_response();
        if let Some(retry) = retry {
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(whole_seconds(retry)));
        }
        response
    }

    fn report_refused(&self, from: IpAddr, user: Option<String>, why: SignInRefusal) {
        let said = self.refused.lock().expect("nobody panics with it").say((from, why), Instant::now());
        if let Some(more) = said {
            let facts = EventFacts::SignInRefused { user, why };
            report(&self.array, Subject::Address(from.to_string()), facts, more + 1);
        }
    }
}

fn whole_seconds(time: Duration) -> u64 {
    time.as_millis().div_ceil(1000) as u64
}

fn problem(why: SignInRefusal, retry: Option<Duration>) -> (StatusCode, String) {
    match why {
        SignInRefusal::TooMany => {
            let seconds = whole_seconds(retry.unwrap_or_default());
            let problem = format!("Too many attempts have come from your address. Try again in {seconds} s.");
            (StatusCode::TOO_MANY_REQUESTS, problem)
        }
        SignInRefusal::NameOrPassword => {
            (StatusCode::FORBIDDEN, "There is no such user, or the password is wrong.".to_owned())
        }
        // only who knows the password learns these
        SignInRefusal::Disabled => {
            (StatusCode::FORBIDDEN, "This user is disabled. An administrator can enable it.".to_owned())
        }
        SignInRefusal::Expired => (
            StatusCode::FORBIDDEN,
            "This user's end date is over. An administrator can give another.".to_owned(),
        ),
    }
}

async fn sign_out(Shared(state): Shared<State>) -> Response {
    let asking = Asking::current();
    if let (Some(By::Session(secret)), Some(address)) = (asking.by(), asking.address())
        && let Some(session) = state.access.sign_out(secret)
    {
        let facts = EventFacts::SignedOut { address: address.to_string() };
        report(&state.array, Subject::User(session.user), facts, 1);
    }
    ([(header::SET_COOKIE, cookie("", Duration::ZERO))], Redirect::to("/sign-in")).into_response()
}

/// A cookie that scripts do not see, and that is sent over TLS to this host alone, and by its own pages alone.
fn cookie(secret: &str, life: Duration) -> HeaderValue {
    let seconds = life.as_secs();
    let text = format!("{COOKIE}={secret}; Path=/; Secure; HttpOnly; SameSite=Strict; Max-Age={seconds}");
    HeaderValue::try_from(text).expect("digits can be sent")
}

/// The form.
pub(super) fn page(view: &SignInView) -> String {
    let problem = view
        .problem
        .as_ref()
        .map_or(String::new(), |problem| format!("<p role=\"alert\">{}</p>\n", escaped(problem)));
    format!(
        r#"<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>Sign in to {host}</title>
</head>
<body>
<h1>{host}</h1>
{problem}<form method="post" action="/sign-in">
<p><label>Name <input name="name" autocomplete="username" required value="{name}"></label></p>
<p><label>Password <input name="password" type="password" autocomplete="current-password" required></label></p>
<p><button>Sign in</button></p>
</form>
</body>
</html>
"#,
        host = escaped(&view.host_name),
        name = escaped(&view.name),
    )
}

/// Text as HTML, also within quotes.
pub(super) fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for char in text.chars() {
        match char {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            char => out.push(char),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_typed_cannot_become_part_of_the_page() {
        let view = SignInView {
            host_name: "head & <b>".to_owned(),
            name: "\"><script>alert('x')</script>".to_owned(),
            problem: Some("<i>".to_owned()),
        };
        let page = page(&view);
        assert!(!page.contains("<script>") && !page.contains("<b>") && !page.contains("<i>"), "{page}");
        assert!(page.contains("value=\"&quot;&gt;&lt;script&gt;alert(&#39;x&#39;)"), "{page}");
    }

    #[test]
    fn the_cookie_is_for_this_host_and_no_script() {
        let cookie = cookie("secret", ABSOLUTE_MAX);
        let expected = "__Host-tangelo=secret; Path=/; Secure; HttpOnly; SameSite=Strict; Max-Age=43200";
        assert_eq!(cookie.to_str().unwrap(), expected);
    }

    #[test]
    fn a_wrong_name_is_answered_as_a_wrong_password() {
        let (status, text) = problem(SignInRefusal::NameOrPassword, None);
        assert_eq!((status, text.contains("no such user, or")), (StatusCode::FORBIDDEN, true));
        let (status, text) = problem(SignInRefusal::TooMany, Some(Duration::from_millis(1_200)));
        assert!(status == StatusCode::TOO_MANY_REQUESTS && text.ends_with("in 2 s."), "{text}");
    }
}
