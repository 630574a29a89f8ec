//! The commands about who gets in over the network.

use control::client::{Server, path_piece};
use control::rest::*;

use super::ask::Ask;
use super::{Failure, Shown, change_path, password, show};
use crate::cli;
use crate::show::Pem;

pub(super) async fn user(user: &cli::User, server: &Server) -> Result<Shown, Failure> {
    match user {
        cli::User::List => Ok(show(server.get::<UserList>("/v1/users").await?)),
        cli::User::Add { name, role, password_file, expires, change } => {
            let password = password::read(name, password_file.as_deref())?;
            let new = NewUser { name: name.clone(), role: (*role).into(), password, expires_ms: *expires };
            Ask::post("/v1/users", &new).change(change, server).await
        }
        cli::User::Set(set) => {
            let asks = set.password || set.password_file.is_some();
            let password =
                asks.then(|| password::read(&set.name, set.password_file.as_deref())).transpose()?;
            let expires_ms = match set.expires {
                Some(cli::End::At(ms)) => Some(ms),
                Some(cli::End::Never) | None => None,
            };
            let update = UserUpdate {
                role: set.role.map(Into::into),
                password,
                disabled: (set.disable || set.enable).then_some(set.disable),
                expires_ms,
                never_expires: set.expires == Some(cli::End::Never),
            };
            Ask::patch(format!("/v1/users/{}", path_piece(&set.name)), &update)
                .change(&set.change, server)
                .await
        }
        cli::User::Delete { name, change } => {
            Ask::Delete(format!("/v1/users/{}", path_piece(name))).change(change, server).await
        }
        cli::User::Sessions { end: Some(number), change, .. } => {
            Ask::Delete(format!("/v1/sessions/{number}")).change(change, server).await
        }
        cli::User::Sessions { end_all: Some(user), change, .. } => {
            Ask::Delete(format!("/v1/users/{}/sessions", path_piece(user))).change(change, server).await
        }
        cli::User::Sessions { .. } => Ok(show(server.get::<SessionList>("/v1/sessions").await?)),
    }
}

pub(super) async fn token(token: &cli::Token, server: &Server) -> Result<Shown, Failure> {
    match token {
        cli::Token::List => Ok(show(server.get::<TokenList>("/v1/tokens").await?)),
        cli::Token::Add { name, role, expires, change } => {
            let new = NewToken { name: name.clone(), role: (*role).into(), expires_ms: *expires };
            Ok(show(server.post::<_, TokenMade>(&change_path("/v1/tokens", change), &new).await?))
        }
        cli::Token::Revoke { name, change } => {
            Ask::Delete(format!("/v1/tokens/{}", path_piece(name))).change(change, server).await
        }
    }
}

pub(super) async fn web(web: &cli::Web, server: &Server) -> Result<Shown, Failure> {
    let status: WebStatus = server.get("/v1/web").await?;
    match web {
        cli::Web::Show => Ok(show(status)),
        cli::Web::Certificate => Ok(show(Pem(status))),
    }
}
