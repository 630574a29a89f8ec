//! What the handlers of all resources share: what a request is served from, the command that it becomes, and its answer.

use std::sync::Arc;

use api::{ArrayStatus, Command, CommandError, CommandErrorKind, Reply};
use axum::extract::Request;
use axum::response::Response;
use serde::Deserialize;
use tokio::sync::Semaphore;

use super::certificate::Shown;
use super::client::Asking;
use super::extract::{Refusal, json_response};
use super::roles;
use crate::access::Access;
use crate::alerts::Alerts;
use crate::array::Array;
use crate::events::EventLog;
use crate::rest::Changed;

/// What every request is served from.
#[derive(Clone)]
pub(super) struct State {
    pub(super) array: Arc<dyn Array>,
    pub(super) events: Arc<EventLog>,
    pub(super) alerts: Arc<dyn Alerts>,
    /// Permits for requests at work.
    pub(super) requests: Arc<Semaphore>,
    pub(super) access: Arc<Access>,
    /// What is shown over TLS, where that is served.
    pub(super) shown: Option<Arc<Shown>>,
    /// What `uname` calls this machine.
    pub(super) host_name: Arc<str>,
}

impl State {
    /// Of one socket.
    pub(super) fn new(
        array: Arc<dyn Array>,
        events: Arc<EventLog>,
        alerts: Arc<dyn Alerts>,
        (access, shown): (Arc<Access>, Option<Arc<Shown>>),
        host_name: Arc<str>,
    ) -> State {
        let requests = Arc::new(Semaphore::new(base::limits::API_REQUESTS_MAX));
        State { array, events, alerts, requests, access, shown, host_name }
    }
}

#[derive(Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct ChangeOptions {
    /// Check everything and tell what would change, but change nothing.
    #[serde(default)]
    pub(super) dry_run: bool,
}

pub(super) type Answer = Result<Response, Refusal>;

pub(super) async fn array_status(state: &State) -> Result<ArrayStatus, CommandError> {
    match state.array.call(Command::Status).await? {
        Reply::Status(status) => Ok(*status),
        other => unreachable!("the array answered a status command with {other:?}"),
    }
}

pub(super) async fn change(state: &State, command: Command) -> Answer {
    roles::check_command(Asking::current().who(), &command)?;
    // It is carried out also where the client has gone meanwhile.
    let carried_out = tokio::spawn(state.array.call_for(command, Asking::current().origin()));
    match carried_out.await.expect("no request is given up by the server")? {
        Reply::Changed(change) => Ok(json_response(&Changed::from(change))),
        other => unreachable!("the array answered a change with {other:?}"),
    }
}

pub(super) async fn no_such_method(request: Request) -> Refusal {
    let message = format!("{} cannot be used on {}", request.method(), request.uri().path());
    let hint = "/v1/openapi.json describes every resource";
    Refusal(CommandError::new(CommandErrorKind::MethodNotAllowed, message, hint))
}
