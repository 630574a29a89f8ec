//! Who asks: every request of the API and of the page has one, as an extension.

use std::sync::Arc;

use api::Role;
use axum::extract::Request;
use axum::middleware::Next;
use axum::response::Response;
use users::SecretHash;

use super::client::{Client, Connected};
use crate::access::Access;

/// Who asks, and what that one may do.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Who {
    /// Of a user, a token, or a user of this machine.
    pub name: String,
    pub role: Role,
    /// What a browser must send back with each change (`X-CSRF-Token`, or the field `csrf` of a form). `None`: it is no browser that has signed in,
    /// and needs none.
    pub csrf: Option<Arc<str>>,
}

impl Who {
    /// A client of the Unix socket: who may open it may do everything.
    pub(super) fn local(client: Option<&Client>) -> Who {
        let name = match client {
            Some(client @ Client::Local { .. }) => client.user(),
            _ => "nobody".to_owned(),
        };
        Who { name, role: Role::Administer, csrf: None }
    }
}

/// How who asks was known, beside [`Who`]. Nothing: by the Unix socket.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum By {
    /// By the token of the head's file.
    TokenFile,
    Token(SecretHash),
    Session(SecretHash),
}

impl By {
    /// Whether who was let in by it still would be.
    pub(super) fn is_still_good(&self, access: &Access) -> bool {
        match self {
            By::TokenFile => true,
            By::Token(secret) | By::Session(secret) => access.is_still_good(secret),
        }
    }
}

/// Every request over the Unix socket is one of this machine's users.
pub(super) async fn of_this_machine(mut request: Request, next: Next) -> Response {
    let who = Who::local(request.extensions().get::<Connected>().map(|connected| &connected.client));
    request.extensions_mut().insert(who);
    next.run(request).await
}
