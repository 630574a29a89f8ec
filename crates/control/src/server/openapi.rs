//! The OpenAPI description, generated from the handlers; docs/openapi.json is a copy, kept by a test.

use api::CommandError;
use axum::Router;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use utoipa::OpenApi;
use utoipa::openapi::path::Operation;
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityRequirement, SecurityScheme};
use utoipa::openapi::server::{ServerBuilder, ServerVariableBuilder};
use utoipa::openapi::tag::TagBuilder;

use super::request::State;
use super::{alerts, copies, data, events, names, one, pair, resources, upkeep, users};

pub(super) fn router() -> Router<State> {
    Router::new().route("/v1/openapi.json", get(openapi))
}

/// This description.
#[utoipa::path(get, path = "/v1/openapi.json", tag = "array", responses((status = 200, content_type = "application/json"), (status = "default", body = CommandError)))]
async fn openapi() -> Response {
    ([(header::CONTENT_TYPE, "application/json")], openapi_json()).into_response()
}

/// The description of all resources.
#[derive(utoipa::OpenApi)]
#[openapi(
    info(
        title = "Tangelo",
        description = "The API of a Tangelo array. It is served over a Unix socket, and over TLS or TCP with a bearer token.",
        license(name = "Apache-2.0 OR MIT", identifier = "Apache-2.0 OR MIT")
    ),
    paths(
        resources::status,
        resources::list_drives,
        resources::list_pools,
        resources::create_pool,
        one::get_drive,
        one::get_pool,
        one::get_volume,
        one::get_snapshot,
        one::get_schedule,
        one::get_host,
        one::get_mapping,
        names::delete_pool,
        names::rename_pool,
        names::rename_volume,
        names::update_host,
        names::rename_host,
        names::rename_schedule,
        names::rename_snapshot,
        names::wipe_drive,
        names::clear_drives,
        upkeep::add_drives,
        upkeep::remove_drive,
        upkeep::replace_drive,
        upkeep::set_spares,
        upkeep::locate_drive,
        upkeep::scrub,
        upkeep::upgrade,
        upkeep::set,
        resources::list_volumes,
        resources::create_volume,
        resources::update_volume,
        resources::set_access,
        resources::delete_volume,
        data::export_volume,
        data::import_volume,
        data::export_snapshot,
        copies::list_snapshots,
        copies::create_snapshots,
        copies::delete_snapshot,
        copies::roll_back,
        copies::clone_volume,
        copies::refresh_clones,
        copies::copy_volume,
        copies::promote_volume,
        copies::list_schedules,
        copies::create_schedule,
        copies::delete_schedule,
        copies::list_bin,
        copies::undelete_volume,
        copies::eradicate_volume,
        events::list_events,
        events::stream_events,
        resources::list_hosts,
        resources::create_host,
        resources::delete_host,
        alerts::list_alerts,
        alerts::test_alerts,
        users::list_users,
        users::add_user,
        users::update_user,
        users::delete_user,
        users::end_sessions_of_user,
        users::list_sessions,
        users::end_session,
        users::list_tokens,
        users::add_token,
        users::revoke_token,
        users::me,
        users::set_own_password,
        users::web,
        pair::pair,
        pair::hand_over,
        pair::maintain,
        pair::test_fence,
        pair::forget,
        pair::convert_pool,
        resources::list_mappings,
        resources::create_mapping,
        resources::delete_mapping,
        openapi,
        resources::prometheus
    )
)]
struct Description;

/// The description as indented JSON with a line end.
pub fn openapi_json() -> String {
    let mut text = description().to_pretty_json().expect("the description can be said in JSON");
    text.push('\n');
    text
}

/// What belongs together, in the order in which it is shown.
const TAGS: [(&str, &str); 12] = [
    ("array", "The array as a whole"),
    ("drives", "Block devices and files that pools are made of"),
    ("pools", "Sets of drives with one protection"),
    ("volumes", "What hosts see as disks"),
    ("snapshots", "What volumes were at one moment, clones of it, and schedules that take them"),
    ("bin", "Volumes that were deleted and can be brought back"),
    ("hosts", "Machines that use volumes"),
    ("mappings", "Which host sees which volume"),
    ("events", "What has happened"),
    ("alerts", "Who is told when something is wrong"),
    ("users", "Who gets in: users, their sessions, tokens"),
    ("pair", "The two heads of an array"),
];

/// The name of the way in which clients over TCP say who they are.
const TOKEN: &str = "token";

/// What the handlers say, and what holds for all of them.
fn description() -> utoipa::openapi::OpenApi {
    let mut api = Description::openapi();
    let tag = |(name, text): (&str, &str)| TagBuilder::new().name(name).description(Some(text)).build();
    api.tags = Some(TAGS.map(tag).into());
    let variable = |value: &str| ServerVariableBuilder::new().default_value(value);
    let tcp = ServerBuilder::new()
        .url("http://{head}:{port}")
        .description(Some("The API over TCP, where the head's file has [api] tcp"))
        .parameter("head", variable("tangelo"))
        .parameter("port", variable("7780"));
    let local = ServerBuilder::new()
        .url("http://tangelo")
        .description(Some("The Unix socket on the head, whatever the name: curl --unix-socket PATH"));
    let tls = ServerBuilder::new()
        .url("https://{head}:{port}")
        .description(Some("The API over TLS, where the head's file has [web] listen"))
        .parameter("head", variable("tangelo"))
        .parameter("port", variable("7443"));
    api.servers = Some(vec![tls.build(), tcp.build(), local.build()]);
    let scheme = HttpBuilder::new().scheme(HttpAuthScheme::Bearer);
    let scheme =
        scheme.description(Some("A token of `tangelo token add`, or the content of the head's token_file. The Unix socket needs none."));
    let components = api.components.get_or_insert_default();
    components.add_security_scheme(TOKEN, SecurityScheme::Http(scheme.build()));
    api.security =
        Some(vec![SecurityRequirement::new(TOKEN, Vec::<String>::new()), SecurityRequirement::default()]);
    for path in api.paths.paths.values_mut() {
        let operations = [&mut path.get, &mut path.put, &mut path.post, &mut path.patch, &mut path.delete];
        operations.into_iter().flatten().for_each(finish);
    }
    api
}

/// The first sentence is the summary; refusals have a status of 400 and more.
fn finish(operation: &mut Operation) {
    let one_line = |text: Option<String>| text.unwrap_or_default().replace('\n', " ");
    let text = format!("{} {}", one_line(operation.summary.take()), one_line(operation.description.take()));
    let (first, rest) = text.trim().split_once(". ").unwrap_or((text.trim(), ""));
    assert!(!first.is_empty(), "{:?} has no summary", operation.operation_id);
    operation.summary = Some(first.trim_end_matches('.').to_owned());
    operation.description = (!rest.is_empty()).then(|| rest.to_owned());
    let responses = &mut operation.responses.responses;
    if let Some(refusal) = responses.remove("default") {
        for codes in ["4XX", "5XX"] {
            responses.insert(codes.to_owned(), refusal.clone());
        }
    }
    for (code, response) in responses {
        if let utoipa::openapi::RefOr::T(response) = response {
            let words = if code.starts_with('2') {
                "It is so"
            } else {
                "It was refused; nothing was changed, except as the code says"
            };
            response.description = words.to_owned();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `UPDATE_DOCS=1 cargo test -p control` writes the copy anew.
    #[test]
    fn the_checked_in_description_is_the_generated_one() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/openapi.json");
        let generated = openapi_json();
        if std::env::var_os("UPDATE_DOCS").is_some() {
            std::fs::write(path, &generated).unwrap();
        }
        let kept = std::fs::read_to_string(path).unwrap_or_default();
        assert!(
            kept == generated,
            "docs/openapi.json is not up to date: UPDATE_DOCS=1 cargo test -p control"
        );
    }
}
