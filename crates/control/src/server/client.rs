//! Who asks: each request carries it, for the log.

use std::fmt;
use std::net::SocketAddr;

use api::{CommandError, Reply};
use axum::extract::Request;

use super::connection::Work;

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

impl fmt::Display for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Client::Tcp(address) => write!(f, "{address}"),
            Client::Local { user, process } => {
                match user_name(*user) {
                    Some(name) => write!(f, "{name}")?,
                    None => write!(f, "user {user}")?,
                }
                process.map_or(Ok(()), |process| write!(f, " (process {process})"))
            }
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

/// A request at work, for the log.
#[derive(Clone)]
pub(super) struct Asking {
    /// Nobody in tests that have no connection.
    client: Option<Client>,
    /// Method and path.
    request: String,
    dry_run: bool,
}

impl Asking {
    pub(super) fn new(request: &Request) -> Asking {
        let client = request.extensions().get::<Connected>().map(|connected| connected.client.clone());
        let options = request.uri().query().unwrap_or_default();
        let request = format!("{} {}", request.method(), request.uri().path());
        Asking { client, request, dry_run: options.split('&').any(|option| option == "dry_run=true") }
    }

    /// Serves the request.
    pub(super) async fn while_serving<T>(self, work: impl Future<Output = T>) -> T {
        ASKING.scope(self, work).await
    }

    /// The one that is being served.
    pub(super) fn current() -> Asking {
        ASKING.try_with(Clone::clone).unwrap_or(Asking {
            client: None,
            request: String::new(),
            dry_run: false,
        })
    }

    /// A line for what was asked to be changed.
    pub(super) fn log(&self, answer: &Result<Reply, CommandError>) {
        let (Some(client), request) = (&self.client, &self.request) else { return };
        match answer {
            Ok(Reply::Changed(changed)) if !changed.dry_run => {
                let hosts = match changed.hosts_affected.as_slice() {
                    [] => String::new(),
                    hosts => format!(" (hosts affected: {})", hosts.join(", ")),
                };
                tracing::info!("{client}, {request}: {}{hosts}", changed.lines.join("; "));
            }
            Err(error) if !self.dry_run => tracing::info!("{client}, {request}: refused: {}", error.message),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_in_words() {
        let local = |user, process| Client::Local { user, process }.to_string();
        assert_eq!(local(0, Some(12)), "root (process 12)");
        assert_eq!(local(4_000_000_000, None), "user 4000000000");
        assert_eq!(Client::Tcp("[::1]:80".parse().unwrap()).to_string(), "[::1]:80");
    }
}
