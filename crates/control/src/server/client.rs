//! The client of a request: its user or address, for the events about changes.

use std::net::SocketAddr;

use api::Origin;
use axum::extract::Request;

use super::who::{By, Who};
use super::work::Work;

tokio::task_local! {
    static ASKING: Asking;
}

/// A client of the API.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Client {
    /// On this machine, by its user.
    Local {
        user: u32,
        process: Option<i32>,
    },
    Tcp(SocketAddr),
}

impl Client {
    /// As events name it.
    fn origin(&self) -> Origin {
        match self {
            Client::Tcp(address) => Origin::Remote { address: address.to_string() },
            Client::Local { user, process } => {
                Origin::Local { user: *user, name: user_name(*user), process: *process }
            }
        }
    }

    /// What this machine calls its user; the address of one elsewhere.
    pub(super) fn user(&self) -> String {
        match self {
            Client::Tcp(address) => address.to_string(),
            Client::Local { user, .. } => user_name(*user).unwrap_or_else(|| format!("user {user}")),
        }
    }
}

/// By the machine's own list of users.
fn user_name(user: u32) -> Option<String> {
    let users = std::fs::read_to_string("/etc/passwd").ok()?;
    users.lines().find_map(|line| {
        let mut fields = line.split(':');
        let (name, _, id) = (fields.next()?, fields.next()?, fields.next()?);
        (id.parse() == Ok(user)).then(|| name.to_owned())
    })
}

/// What a connection knows of the requests that come over it.
#[derive(Clone)]
pub(super) struct Connected {
    pub(super) client: Client,
    pub(super) work: Work,
}

/// A request at work.
#[derive(Clone, Default)]
pub(super) struct Asking {
    /// Nobody in tests that have no connection.
    client: Option<Client>,
    who: Option<Who>,
    by: Option<By>,
}

impl Asking {
    pub(super) fn new(request: &Request) -> Asking {
        let of = request.extensions();
        let client = of.get::<Connected>().map(|connected| connected.client.clone());
        Asking { client, who: of.get().cloned(), by: of.get().cloned() }
    }

    /// Serves the request.
    pub(super) async fn while_serving<T>(self, work: impl Future<Output = T>) -> T {
        ASKING.scope(self, work).await
    }

    /// The one that is being served.
    pub(super) fn current() -> Asking {
        ASKING.try_with(Clone::clone).unwrap_or_default()
    }

    pub(super) fn who(&self) -> Option<&Who> {
        self.who.as_ref()
    }

    /// How who asks was known.
    pub(super) fn by(&self) -> Option<&By> {
        self.by.as_ref()
    }

    /// The address of a client elsewhere.
    pub(super) fn address(&self) -> Option<SocketAddr> {
        match self.client {
            Some(Client::Tcp(address)) => Some(address),
            _ => None,
        }
    }

    /// Who asks, and from where.
    pub(super) fn origin(&self) -> Origin {
        let Some(client) = &self.client else { return Origin::Daemon };
        match (client, &self.by, &self.who) {
            (Client::Tcp(address), Some(By::Session(_)), Some(who)) => {
                Origin::User { user: who.name.clone(), address: address.to_string() }
            }
            (Client::Tcp(address), Some(By::Token(_)), Some(who)) => {
                Origin::Token { token: who.name.clone(), address: address.to_string() }
            }
            _ => client.origin(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_in_words() {
        let local = |user, process| Client::Local { user, process }.origin().to_string();
        assert_eq!(local(0, Some(12)), "root (process 12)");
        assert_eq!(local(4_000_000_000, None), "user 4000000000");
        assert_eq!(Client::Tcp("[::1]:80".parse().unwrap()).origin().to_string(), "[::1]:80");
    }
}
