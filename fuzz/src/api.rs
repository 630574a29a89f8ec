//! What comes in over HTTP: bodies by themselves, and whole requests.

use std::fmt::Debug;

use ::api as vocabulary;
use control::rest;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// What the body of some request can be.
struct Kind {
    /// As the API's description calls it.
    name: &'static str,
    /// Whether a body is one; it is given its name, too.
    read: fn(&str, &[u8]) -> bool,
}

macro_rules! kinds {
    ($($from:ident::$name:ident),* $(,)?) => {
        &[$(Kind { name: stringify!($name), read: read::<$from::$name> }),*]
    };
}

/// All of them. An input's first byte is the place of its kind in here, so new ones go to the end.
const KINDS: &[Kind] = kinds![
    vocabulary::NewPool,
    vocabulary::NewVolume,
    vocabulary::NewHost,
    rest::NewMapping,
    rest::NewDrives,
    rest::DriveRemoval,
    rest::DriveReplacement,
    rest::Locating,
    rest::Scrubbing,
    vocabulary::NewSettings,
    rest::VolumeUpdate,
    vocabulary::GroupAccess,
    rest::NewSnapshots,
    rest::NewClone,
    rest::Refresh,
    rest::NewSchedule,
    rest::Spares,
    rest::NewName,
    vocabulary::HostUpdate,
    rest::DriveWipe,
    rest::DriveClear,
    rest::Converting,
    vocabulary::FenceTest,
    vocabulary::PairForgetting,
    vocabulary::PairMaintenance,
    vocabulary::AlertTest,
    rest::NewUser,
    rest::UserUpdate,
    rest::NewPassword,
    rest::NewToken,
];

/// What a body says can be said again, to the same effect.
fn read<T: DeserializeOwned + Serialize + PartialEq + Debug>(name: &str, body: &[u8]) -> bool {
    let value = serde_json::from_slice::<T>(body).ok();
    if let Some(value) = &value {
        let again = serde_json::to_vec(value).expect("requests can be said in JSON");
        assert_eq!(serde_json::from_slice::<T>(&again).ok().as_ref(), Some(value), "{name}");
    }
    value.is_some()
}

pub(crate) fn body(bytes: &[u8]) {
    if let Some((&kind, body)) = bytes.split_first() {
        let kind = &KINDS[usize::from(kind) % KINDS.len()];
        (kind.read)(kind.name, body);
    }
}

pub(crate) fn request(bytes: &[u8]) {
    // What reaches the array is of interest to the tests below.
    let _command = control::server::fuzz::request(bytes);
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde_json::Value;

    use super::*;
    use crate::tests::corpus;

    /// Method, path and operation of every resource.
    fn described() -> Vec<(String, String, Value)> {
        let description: Value = serde_json::from_str(&control::server::openapi_json()).expect("it is JSON");
        let paths = description["paths"].as_object().expect("it has paths");
        let operations = |(path, methods): (&String, &Value)| -> Vec<(String, String, Value)> {
            let methods = methods.as_object().expect("a path has methods");
            methods.iter().map(|(m, operation)| (m.to_uppercase(), path.clone(), operation.clone())).collect()
        };
        paths.iter().flat_map(operations).collect()
    }

    #[test]
    fn kinds_are_those_of_the_description() {
        let body = |(_, _, operation): (_, _, Value)| {
            let schema =
                operation["requestBody"]["content"]["application/json"]["schema"]["$ref"].as_str()?;
            schema.rsplit('/').next().map(str::to_owned)
        };
        let described: BTreeSet<String> = described().into_iter().filter_map(body).collect();
        let known: BTreeSet<String> = KINDS.iter().map(|kind| kind.name.to_owned()).collect();
        assert_eq!(known, described);
    }

    #[test]
    fn each_kind_has_good_bodies_in_the_corpus() {
        let corpus = corpus("api-body");
        for (place, Kind { name, read }) in KINDS.iter().enumerate() {
            let of_kind = corpus.iter().filter(|input| input.first().map(|&kind| kind.into()) == Some(place));
            assert!(of_kind.filter(|input| read(name, &input[1..])).count() >= 3, "{name} has less than 3");
        }
    }

    #[test]
    fn the_corpus_asks_for_every_resource() {
        let reaching =
            corpus("api-request").into_iter().filter(|input| control::server::fuzz::request(input).is_some());
        let asked: Vec<(String, String)> = reaching
            .map(|input| {
                let line = String::from_utf8_lossy(input.split(|&byte| byte == b'\n').next().expect("one"))
                    .into_owned();
                let (method, target) = line.split_once(' ').expect("a request has a target");
                (method.to_owned(), target.split('?').next().expect("one").to_owned())
            })
            .collect();
        for (method, path, _) in described() {
            // these ask nothing of the array: the control plane has the answers
            let here = ["/v1/openapi.json", "/v1/events", "/v1/events/stream"];
            // nor do these: a head of a pair has the answers
            let of_heads = [
                "/v1/pair",
                "/v1/pair/handover",
                "/v1/pair/maintenance",
                "/v1/pair/forget",
                "/v1/pair/fence",
                "/v1/pools/{name}/convert",
            ];
            // nor these: a head has channels, and not the array
            let of_alerts = ["/v1/alerts", "/v1/alerts/test"];
            // nor these: a head has users
            let of_users = ["/v1/users", "/v1/sessions", "/v1/tokens", "/v1/me", "/v1/web"];
            if of_users.iter().any(|beginning| path.starts_with(beginning)) {
                continue;
            }
            if [&here[..], &of_heads, &of_alerts].concat().contains(&path.as_str()) {
                continue;
            }
            let is_it = |piece: &str, other: &str| piece == other || piece.starts_with('{');
            let names = |target: &str| {
                path.split('/').count() == target.split('/').count()
                    && path.split('/').zip(target.split('/')).all(|(piece, other)| is_it(piece, other))
            };
            assert!(
                asked.iter().any(|(other, target)| *other == method && names(target)),
                "nothing in the corpus of api-request reaches {method} {path}"
            );
        }
    }
}
