//! The resources of who gets in: users, their sessions, tokens; and of who asks. Each head has its own.

use ::users::{PasswordHash, Secret, Token, User, UserChange, check_password};
use api::*;
use axum::Router;
use axum::extract::State as Shared;
use axum::routing::{delete, get, patch, post};

use super::client::Asking;
use super::extract::{Body, Options, Pieces, json_response};
use super::guard::report;
use super::request::{Answer, ChangeOptions, State};
use super::who::By;
use crate::access::{SignInError, now_ms};
use crate::rest::*;

pub(super) fn router() -> Router<State> {
    Router::new()
        .route("/v1/users", get(list_users).post(add_user))
        .route("/v1/users/{name}", patch(update_user).delete(delete_user))
        .route("/v1/users/{name}/sessions", delete(end_sessions_of_user))
        .route("/v1/sessions", get(list_sessions))
        .route("/v1/sessions/{number}", delete(end_session))
        .route("/v1/tokens", get(list_tokens).post(add_token))
        .route("/v1/tokens/{name}", delete(revoke_token))
        .route("/v1/me", get(me))
        .route("/v1/me/password", post(set_own_password))
        .route("/v1/web", get(web))
}

type Steps = Result<Vec<AccessStep>, CommandError>;

/// Records what has become of a change.
fn changed(
    state: &State,
    (kind, subject): (CommandKind, Subject),
    dry_run: bool,
    steps: Steps,
) -> Result<Change, CommandError> {
    let change = steps.map(|steps| {
        let steps = steps.into_iter().map(ChangeStep::from).collect();
        Change { dry_run, steps, hosts_affected: Vec::new(), made: None }
    });
    let is_nothing = change.as_ref().is_ok_and(|change| change.steps.is_empty());
    if !dry_run && !is_nothing {
        let asked = AskedChange { kind, subject };
        let event = asked.event(&Asking::current().origin(), &change.clone().map(Reply::Changed));
        event.into_iter().for_each(|(subject, facts)| report(&state.array, subject, facts, 1));
    }
    change
}

/// The same, and answers.
fn answered(state: &State, asked: (CommandKind, Subject), dry_run: bool, steps: Steps) -> Answer {
    Ok(json_response(&Changed::from(changed(state, asked, dry_run, steps)?)))
}

/// Lists the users of this head.
#[utoipa::path(get, path = "/v1/users", tag = "users", responses((status = 200, body = UserList), (status = "default", body = CommandError)))]
pub(super) async fn list_users(Shared(state): Shared<State>) -> Answer {
    let now_ms = now_ms();
    let users = state.access.look(|users, sessions, _| {
        let status = |(name, user): (&String, &User)| UserStatus {
            name: name.clone(),
            role: user.role,
            disabled: user.disabled,
            created_ms: user.created_ms,
            expires_ms: user.expires_ms,
            expired: user.is_expired(now_ms),
            sessions: sessions.iter().filter(|session| session.user == *name).count() as u64,
        };
        users.users().map(status).collect()
    })?;
    Ok(json_response(&UserList { schema: SCHEMA, users }))
}

/// Adds a user, who signs in with a password.
#[utoipa::path(post, path = "/v1/users", tag = "users", params(ChangeOptions), request_body = NewUser, responses((status = 200, body = Changed), (status = "default", body = CommandError)))]
pub(super) async fn add_user(
    Shared(state): Shared<State>,
    Options(options): Options<ChangeOptions>,
    Body(NewUser { name, role, password, expires_ms }): Body<NewUser>,
) -> Answer {
    ::users::check_name("user", &name)?;
    check_password(&password, &name)?;
    let user =
        User { role, password: PasswordHash::of_nobody(), expires_ms, disabled: false, created_ms: now_ms() };
    // what is refused in any case is refused before a hash is worked out
    let tried = user.clone();
    let planned = state.access.change(true, |users| users.add_user(&name, tried), None).await?;
    if options.dry_run {
        return answered(&state, (CommandKind::UserAdd, Subject::User(name)), true, Ok(planned));
    }
    let user = User { password: state.access.hash(password).await, ..user };
    let steps = state.access.change(false, |users| users.add_user(&name, user), None).await;
    answered(&state, (CommandKind::UserAdd, Subject::User(name)), false, steps)
}

/// Changes a user's role, password or end date, or disables the user. The user's sessions end with it.
#[utoipa::path(patch, path = "/v1/users/{name}", tag = "users", params(("name" = String, Path), ChangeOptions), request_body = UserUpdate, responses((status = 200, body = Changed), (status = "default", body = CommandError)))]
pub(super) async fn update_user(
    Shared(state): Shared<State>,
    Pieces(name): Pieces<String>,
    Options(options): Options<ChangeOptions>,
    Body(update): Body<UserUpdate>,
) -> Answer {
    if update.never_expires && update.expires_ms.is_some() {
        let message = "\"expires_ms\" and \"never_expires\" cannot be used together";
        return Err(CommandError::new(CommandErrorKind::Invalid, message, "").into());
    }
    let password = match update.password {
        Some(password) => {
            check_password(&password, &name)?;
            state
                .access
                .change(true, |users| users.set_user(&name, UserChange::default(), now_ms()), None)
                .await?;
            Some(state.access.hash(password).await)
        }
        None => None,
    };
    let expires_ms = if update.never_expires { Some(None) } else { update.expires_ms.map(Some) };
    let change = UserChange { role: update.role, password, disabled: update.disabled, expires_ms };
    let ended = Some((name.as_str(), None));
    let steps =
        state.access.change(options.dry_run, |users| users.set_user(&name, change, now_ms()), ended).await;
    let subject = Subject::User(name.clone());
    answered(&state, (CommandKind::UserSet, subject), options.dry_run, steps)
}

/// Deletes a user, whose sessions end at once. The last one who may administer can be deleted, too: the Unix socket is there.
#[utoipa::path(delete, path = "/v1/users/{name}", tag = "users", params(("name" = String, Path), ChangeOptions), responses((status = 200, body = Changed), (status = "default", body = CommandError)))]
pub(super) async fn delete_user(
    Shared(state): Shared<State>,
    Pieces(name): Pieces<String>,
    Options(options): Options<ChangeOptions>,
) -> Answer {
    let ended = Some((name.as_str(), None));
    let steps = state.access.change(options.dry_run, |users| users.delete_user(&name), ended).await;
    let subject = Subject::User(name.clone());
    answered(&state, (CommandKind::UserDelete, subject), options.dry_run, steps)
}

/// Lists the browsers that have signed in at this head.
#[utoipa::path(get, path = "/v1/sessions", tag = "users", responses((status = 200, body = SessionList), (status = "default", body = CommandError)))]
pub(super) async fn list_sessions(Shared(state): Shared<State>) -> Answer {
    let sessions = state.access.look(|_, sessions, now| {
        let session = |session: &::users::Session| SessionOfUser {
            number: session.number,
            user: session.user.clone(),
            address: session.address.clone(),
            began_ms: session.began_ms,
            idle_seconds: now.saturating_sub(session.last_used).as_secs(),
        };
        sessions.into_iter().map(session).collect()
    })?;
    Ok(json_response(&SessionList { schema: SCHEMA, sessions }))
}

/// Ends one session: the browser has to sign in again.
#[utoipa::path(delete, path = "/v1/sessions/{number}", tag = "users", params(("number" = u64, Path), ChangeOptions), responses((status = 200, body = Changed), (status = "default", body = CommandError)))]
pub(super) async fn end_session(
    Shared(state): Shared<State>,
    Pieces(number): Pieces<u64>,
    Options(options): Options<ChangeOptions>,
) -> Answer {
    let steps = state.access.end_sessions(|session| session.number == number, options.dry_run);
    let Some(AccessStep::EndSessions { user, .. }) = steps.first() else {
        let message = format!("there is no session {number}");
        let hint = "`tangelo user sessions` shows what there is";
        return Err(CommandError::new(CommandErrorKind::NotFound, message, hint).into());
    };
    let subject = Subject::User(user.clone());
    answered(&state, (CommandKind::SessionEnd, subject), options.dry_run, Ok(steps))
}

/// Ends all sessions of a user.
#[utoipa::path(delete, path = "/v1/users/{name}/sessions", tag = "users", params(("name" = String, Path), ChangeOptions), responses((status = 200, body = Changed), (status = "default", body = CommandError)))]
pub(super) async fn end_sessions_of_user(
    Shared(state): Shared<State>,
    Pieces(name): Pieces<String>,
    Options(options): Options<ChangeOptions>,
) -> Answer {
    state.access.look(|users, _, _| users.check_user(&name))??;
    let steps = state.access.end_sessions(|session| session.user == name, options.dry_run);
    let subject = Subject::User(name);
    answered(&state, (CommandKind::SessionEnd, subject), options.dry_run, Ok(steps))
}

/// Lists the tokens of this head, without their secrets.
#[utoipa::path(get, path = "/v1/tokens", tag = "users", responses((status = 200, body = TokenList), (status = "default", body = CommandError)))]
pub(super) async fn list_tokens(Shared(state): Shared<State>) -> Answer {
    let now_ms = now_ms();
    let tokens = state.access.look(|users, _, _| {
        let status = |(name, token): (&String, &Token)| TokenStatus {
            name: name.clone(),
            role: token.role,
            created_ms: token.created_ms,
            expires_ms: token.expires_ms,
            expired: !token.is_good(now_ms),
            last_used_ms: token.last_used_ms,
        };
        users.tokens().map(status).collect()
    })?;
    Ok(json_response(&TokenList { schema: SCHEMA, tokens }))
}

/// Makes a token for a program. Its secret is in this answer alone.
#[utoipa::path(post, path = "/v1/tokens", tag = "users", params(ChangeOptions), request_body = NewToken, responses((status = 200, body = TokenMade), (status = "default", body = CommandError)))]
pub(super) async fn add_token(
    Shared(state): Shared<State>,
    Options(ChangeOptions { dry_run }): Options<ChangeOptions>,
    Body(NewToken { name, role, expires_ms }): Body<NewToken>,
) -> Answer {
    let secret = Secret::random();
    let token = Token { role, secret: secret.hash(), expires_ms, created_ms: now_ms(), last_used_ms: None };
    let steps = state.access.change(dry_run, |users| users.add_token(&name, token), None).await;
    let Change { steps, .. } =
        changed(&state, (CommandKind::TokenAdd, Subject::Token(name)), dry_run, steps)?;
    let secret = (!dry_run).then(|| secret.text());
    Ok(json_response(&TokenMade { schema: SCHEMA, steps, secret }))
}

/// Revokes a token: it is refused from then on.
#[utoipa::path(delete, path = "/v1/tokens/{name}", tag = "users", params(("name" = String, Path), ChangeOptions), responses((status = 200, body = Changed), (status = "default", body = CommandError)))]
pub(super) async fn revoke_token(
    Shared(state): Shared<State>,
    Pieces(name): Pieces<String>,
    Options(options): Options<ChangeOptions>,
) -> Answer {
    let steps = state.access.change(options.dry_run, |users| users.revoke_token(&name), None).await;
    let subject = Subject::Token(name.clone());
    answered(&state, (CommandKind::TokenRevoke, subject), options.dry_run, steps)
}

/// Who asks, and what that one may do.
#[utoipa::path(get, path = "/v1/me", tag = "users", responses((status = 200, body = Me), (status = "default", body = CommandError)))]
pub(super) async fn me() -> Answer {
    let asking = Asking::current();
    let who = asking.who().ok_or_else(nobody)?;
    let csrf = who.csrf.as_ref().map(|csrf| csrf.to_string());
    Ok(json_response(&Me { schema: SCHEMA, name: who.name.clone(), role: who.role, csrf }))
}

fn nobody() -> CommandError {
    CommandError::new(CommandErrorKind::Unauthorized, "it is not known who asks", "sign in")
}

/// Another password for who asks and has signed in. The user's other sessions end.
#[utoipa::path(post, path = "/v1/me/password", tag = "users", request_body = NewPassword, responses((status = 200, body = Changed), (status = "default", body = CommandError)))]
pub(super) async fn set_own_password(
    Shared(state): Shared<State>,
    Body(NewPassword { current, new }): Body<NewPassword>,
) -> Answer {
    let asking = Asking::current();
    let (Some(By::Session(secret)), Some(who), Some(from)) = (asking.by(), asking.who(), asking.address())
    else {
        let message = "this is for a user who has signed in";
        let hint = "`tangelo user set NAME --password` changes the password of any user";
        return Err(CommandError::new(CommandErrorKind::Invalid, message, hint).into());
    };
    let name = who.name.clone();
    check_password(&new, &name)?;
    match state.access.knows_password(from.ip(), &name, current).await {
        Ok(true) => {}
        Ok(false) => {
            let message = "the current password is wrong";
            return Err(CommandError::new(CommandErrorKind::Forbidden, message, "try again").into());
        }
        Err(SignInError::Unavailable(why)) => {
            return Err(CommandError::new(CommandErrorKind::Unavailable, why, "").into());
        }
        Err(SignInError::Refused { retry, .. }) => {
            let seconds = retry.unwrap_or_default().as_secs() + 1;
            let message = "too many attempts have come from this address";
            let hint = format!("try again in {seconds} s");
            return Err(CommandError::new(CommandErrorKind::TooMany, message, hint).into());
        }
    }
    let password = state.access.hash(new).await;
    let steps = state.access.set_password(&name, password, Some(*secret)).await;
    answered(&state, (CommandKind::UserSet, Subject::User(name)), false, steps)
}

/// Where this head is reached over TLS, and its certificate.
#[utoipa::path(get, path = "/v1/web", tag = "array", responses((status = 200, body = WebStatus), (status = "default", body = CommandError)))]
pub(super) async fn web(Shared(state): Shared<State>) -> Answer {
    let listen = state.shown.iter().flat_map(|shown| shown.listen.iter().map(ToString::to_string)).collect();
    let certificate = state.shown.as_ref().map(|shown| shown.status());
    Ok(json_response(&WebStatus { schema: SCHEMA, listen, certificate }))
}
