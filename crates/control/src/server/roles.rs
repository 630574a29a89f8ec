//! What each role may do: one table of all resources, and what in a command asks for more.
//!
//! What always holds: a resource without a row is for those who administer alone; a request whose user is not known is refused.

use api::{Command, CommandError, CommandErrorKind, NewBacking, Role, TransferOrder, Upkeep};
use axum::extract::{MatchedPath, Request};
use axum::http::Method;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use super::extract::Refusal;
use super::who::Who;
use Role::{Administer, Look, Operate};

/// The least role for each resource. What destroys data, or changes who gets in, is for those who administer; so is the pair.
#[rustfmt::skip]
const TABLE: &[(&str, &str, Role)] = &[
    ("GET", "/metrics", Look),
    ("GET", "/v1/alerts", Look),
    ("POST", "/v1/alerts/test", Operate),
    ("GET", "/v1/bin", Look),
    ("DELETE", "/v1/bin/{name}", Administer),
    ("POST", "/v1/bin/{name}/undelete", Operate),
    ("GET", "/v1/drives", Look),
    ("POST", "/v1/drives/clear", Operate),
    ("POST", "/v1/drives/locate", Operate),
    ("POST", "/v1/drives/wipe", Administer),
    ("GET", "/v1/drives/{drive}", Look),
    ("GET", "/v1/events", Look),
    ("GET", "/v1/events/stream", Look),
    ("GET", "/v1/hosts", Look),
    // a host is who gets at data
    ("POST", "/v1/hosts", Administer),
    ("DELETE", "/v1/hosts/{name}", Administer),
    ("GET", "/v1/hosts/{name}", Look),
    ("PATCH", "/v1/hosts/{name}", Administer),
    ("POST", "/v1/hosts/{name}/rename", Operate),
    ("GET", "/v1/mappings", Look),
    ("POST", "/v1/mappings", Operate),
    ("DELETE", "/v1/mappings/{host}/{volume}", Operate),
    ("GET", "/v1/mappings/{host}/{volume}", Look),
    ("GET", "/v1/me", Look),
    ("POST", "/v1/me/password", Look),
    ("GET", "/v1/openapi.json", Look),
    ("GET", "/v1/pair", Look),
    ("POST", "/v1/pair/fence", Administer),
    ("POST", "/v1/pair/forget", Administer),
    ("POST", "/v1/pair/handover", Administer),
    ("POST", "/v1/pair/maintenance", Administer),
    ("GET", "/v1/pools", Look),
    ("POST", "/v1/pools", Administer),
    ("DELETE", "/v1/pools/{name}", Administer),
    ("GET", "/v1/pools/{name}", Look),
    ("POST", "/v1/pools/{name}/convert", Administer),
    ("POST", "/v1/pools/{name}/drives", Operate),
    ("POST", "/v1/pools/{name}/drives/remove", Operate),
    ("POST", "/v1/pools/{name}/drives/replace", Operate),
    ("POST", "/v1/pools/{name}/rename", Operate),
    ("POST", "/v1/pools/{name}/scrub", Operate),
    ("POST", "/v1/pools/{name}/settings", Operate),
    ("POST", "/v1/pools/{name}/spares", Operate),
    // there is no way back
    ("POST", "/v1/pools/{name}/upgrade", Administer),
    ("GET", "/v1/schedules", Look),
    ("POST", "/v1/schedules", Operate),
    ("DELETE", "/v1/schedules/{name}", Administer),
    ("GET", "/v1/schedules/{name}", Look),
    ("POST", "/v1/schedules/{name}/rename", Operate),
    ("GET", "/v1/sessions", Administer),
    ("DELETE", "/v1/sessions/{number}", Administer),
    ("GET", "/v1/snapshots", Look),
    ("POST", "/v1/snapshots", Operate),
    ("DELETE", "/v1/snapshots/{volume}/{name}", Administer),
    ("GET", "/v1/snapshots/{volume}/{name}", Look),
    ("POST", "/v1/snapshots/{volume}/{name}/clone", Operate),
    // who sees how the array is need not see what hosts have written
    ("GET", "/v1/snapshots/{volume}/{name}/data", Operate),
    ("POST", "/v1/snapshots/{volume}/{name}/refresh", Administer),
    ("POST", "/v1/snapshots/{volume}/{name}/rename", Operate),
    ("POST", "/v1/snapshots/{volume}/{name}/rollback", Administer),
    ("GET", "/v1/status", Look),
    ("GET", "/v1/tokens", Administer),
    ("POST", "/v1/tokens", Administer),
    ("DELETE", "/v1/tokens/{name}", Administer),
    ("GET", "/v1/users", Administer),
    ("POST", "/v1/users", Administer),
    ("DELETE", "/v1/users/{name}", Administer),
    ("PATCH", "/v1/users/{name}", Administer),
    ("DELETE", "/v1/users/{name}/sessions", Administer),
    ("GET", "/v1/volumes", Look),
    ("POST", "/v1/volumes", Operate),
    ("DELETE", "/v1/volumes/{name}", Administer),
    ("GET", "/v1/volumes/{name}", Look),
    ("PATCH", "/v1/volumes/{name}", Operate),
    ("POST", "/v1/volumes/{name}/access", Operate),
    ("POST", "/v1/volumes/{name}/copy", Operate),
    ("GET", "/v1/volumes/{name}/data", Operate),
    ("PUT", "/v1/volumes/{name}/data", Operate),
    ("POST", "/v1/volumes/{name}/promote", Operate),
    ("POST", "/v1/volumes/{name}/rename", Operate),
    ("GET", "/v1/web", Look),
];

/// What a command asks for beyond its resource: force overwrites what somebody may want.
fn of_command(command: &Command) -> Role {
    let forced = match command {
        Command::VolumeResize { force, .. } => *force,
        // any device of the head, with what is on it
        Command::VolumeCreate { volume, .. } => matches!(volume.backing, NewBacking::Raw(_)),
        Command::HostDelete { unmap, .. } => *unmap,
        Command::Upkeep { upkeep: Upkeep::DriveAdd { force, .. }, .. } => !force.is_empty(),
        Command::Upkeep { upkeep: Upkeep::DriveReplace { force, .. }, .. } => *force,
        Command::TransferBegin { order: TransferOrder::Import { overwrite, .. }, .. } => *overwrite,
        _ => false,
    };
    if forced { Administer } else { Look }
}

/// The least role for a resource.
fn of_route(method: &Method, path: &str) -> Role {
    let method = if method == Method::HEAD { "GET" } else { method.as_str() };
    let row = TABLE.iter().find(|(of_method, of_path, _)| *of_method == method && *of_path == path);
    row.map_or(Administer, |(.., role)| *role)
}

fn check(who: Option<&Who>, needed: Role) -> Result<(), CommandError> {
    let Some(who) = who else {
        let message = "it is not known who asks";
        return Err(CommandError::new(CommandErrorKind::Unauthorized, message, "sign in, or send a token"));
    };
    if who.role >= needed {
        return Ok(());
    }
    let message = format!("{} may {}, and this needs the role {needed}", who.name, who.role);
    let hint = "somebody with the role administer can change it: `tangelo user set`, or `tangelo token add`";
    Err(CommandError::new(CommandErrorKind::Forbidden, message, hint))
}

/// Refuses a command that asks for more than its resource.
pub(super) fn check_command(who: Option<&Who>, command: &Command) -> Result<(), CommandError> {
    check(who, of_command(command))
}

/// Lets pass who may use the resource. What is no resource is for its own refusal.
pub(super) async fn check_route(request: Request, next: Next) -> Response {
    if let Some(path) = request.extensions().get::<MatchedPath>() {
        let needed = match path.as_str().starts_with("/v1/") || path.as_str() == "/metrics" {
            true => of_route(request.method(), path.as_str()),
            // the page says what it needs itself
            false => Look,
        };
        if let Err(refused) = check(request.extensions().get::<Who>(), needed) {
            return Refusal(refused).into_response();
        }
    }
    next.run(request).await
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::server::openapi_json;

    /// Each resource of the description has one row, and each row is one of them.
    #[test]
    fn every_resource_has_a_row() {
        let description: serde_json::Value = serde_json::from_str(&openapi_json()).unwrap();
        let mut described = BTreeSet::new();
        for (path, methods) in description["paths"].as_object().unwrap() {
            described.extend(
                methods.as_object().unwrap().keys().map(|method| (method.to_uppercase(), path.clone())),
            );
        }
        let rows: BTreeSet<_> =
            TABLE.iter().map(|(method, path, _)| ((*method).to_owned(), (*path).to_owned())).collect();
        assert_eq!(rows.len(), TABLE.len(), "a row is there twice");
        let lacking: Vec<_> = described.difference(&rows).collect();
        assert!(lacking.is_empty(), "give these a role: {lacking:?}");
        let gone: Vec<_> = rows.difference(&described).collect();
        assert!(gone.is_empty(), "these are no resources: {gone:?}");
    }

    #[test]
    fn what_reads_no_secret_is_for_all_and_what_has_no_row_is_not() {
        assert_eq!(of_route(&Method::GET, "/v1/status"), Look);
        assert_eq!(of_route(&Method::HEAD, "/v1/status"), Look);
        assert_eq!(of_route(&Method::PUT, "/v1/status"), Administer);
        assert_eq!(of_route(&Method::GET, "/v1/forgotten"), Administer);
        let changes = TABLE.iter().filter(|(method, ..)| *method != "GET");
        let for_all: Vec<_> = changes.filter(|(.., role)| *role == Look).map(|(_, path, _)| *path).collect();
        assert_eq!(for_all, ["/v1/me/password"]);
        let mut destroying = TABLE.iter().filter(|(method, path, _)| {
            *method == "DELETE" && !path.starts_with("/v1/mappings")
                || path.contains("/users")
                || path.contains("/tokens")
        });
        assert!(destroying.all(|(.., role)| *role == Administer));
    }

    #[test]
    fn force_is_for_those_who_administer() {
        let resize =
            |force| Command::VolumeResize { name: "v".into(), size_bytes: 4096, force, dry_run: false };
        assert_eq!((of_command(&resize(false)), of_command(&resize(true))), (Look, Administer));
        let who = |role| Who { name: "bob".into(), role, csrf: None };
        assert!(check_command(Some(&who(Operate)), &resize(false)).is_ok());
        let refused = check_command(Some(&who(Operate)), &resize(true)).unwrap_err();
        assert_eq!(refused.message, "bob may operate, and this needs the role administer");
        assert!(check_command(Some(&who(Administer)), &resize(true)).is_ok());
        assert_eq!(check_command(None, &resize(false)).unwrap_err().kind, CommandErrorKind::Unauthorized);
        let add = |force: Vec<String>| Command::Upkeep {
            upkeep: Upkeep::DriveAdd { pool: "p".into(), drives: vec![], force },
            dry_run: true,
        };
        assert_eq!((of_command(&add(vec![])), of_command(&add(vec!["/dev/sdb".into()]))), (Look, Administer));
    }
}
