//! Completion of names: the pools, volumes, hosts and others that fit at the cursor. Completion scripts call this.

use clap::{Arg, ArgAction, Command as Clap, CommandFactory};
use control::client::{ClientError, Server, Trust};
use control::config::DEFAULT_SOCKET;
use control::rest::*;
use serde::de::DeserializeOwned;
use std::time::Duration;

use crate::cli::{Cli, server_at};

/// Whoever presses the tabulator does not wait for longer.
const PATIENCE: Duration = Duration::from_secs(2);

/// What a word can name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    Pool,
    Volume,
    Binned,
    Snapshot,
    Schedule,
    Host,
    Drive,
}

/// The names that can follow these words, one a line; none if the array does not answer at once.
pub fn names(words: &[String]) -> String {
    let Some(kind) = kind_after(words) else { return String::new() };
    let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_all().build() else {
        return String::new();
    };
    let asked = async { tokio::time::timeout(PATIENCE, ask(kind, &server(words))).await };
    let names = runtime.block_on(asked).ok().and_then(Result::ok).unwrap_or_default();
    names.into_iter().map(|name| name + "\n").collect()
}

/// The array that is meant: what was typed may name another one.
fn server(words: &[String]) -> Server {
    let value = |option: &str| words.windows(2).find(|pair| pair[0] == option).map(|pair| pair[1].clone());
    let trust = match (value("--fingerprint").and_then(|text| text.parse().ok()), value("--ca")) {
        (Some(fingerprint), _) => Trust::Fingerprint(fingerprint),
        (None, Some(file)) => Trust::Authorities(file.into()),
        (None, None) => Trust::System,
    };
    match (value("--server"), value("--token-file")) {
        (Some(at), Some(token_file)) => server_at(&at, token_file.into(), trust),
        _ => Server::Socket(value("--socket").map_or(DEFAULT_SOCKET.into(), Into::into)),
    }
}

async fn ask(kind: Kind, server: &Server) -> Result<Vec<String>, ClientError> {
    async fn list<T: DeserializeOwned>(server: &Server, kind: &str) -> Result<T, ClientError> {
        server.get(&format!("/v1/{kind}")).await
    }
    Ok(match kind {
        Kind::Pool => list::<PoolList>(server, "pools").await?.pools.into_iter().map(|it| it.name).collect(),
        Kind::Volume => {
            list::<VolumeList>(server, "volumes").await?.volumes.into_iter().map(|it| it.name).collect()
        }
        Kind::Binned => list::<Bin>(server, "bin").await?.bin.into_iter().map(|it| it.name).collect(),
        Kind::Snapshot => {
            let snapshots = list::<SnapshotList>(server, "snapshots").await?.snapshots;
            snapshots.into_iter().map(|it| format!("{}@{}", it.volume, it.name)).collect()
        }
        Kind::Schedule => {
            list::<ScheduleList>(server, "schedules").await?.schedules.into_iter().map(|it| it.name).collect()
        }
        Kind::Host => list::<HostList>(server, "hosts").await?.hosts.into_iter().map(|it| it.name).collect(),
        Kind::Drive => {
            let drives = list::<DriveList>(server, "drives").await?.drives.into_iter();
            drives.map(|it| it.path).filter(|path| !path.is_empty()).collect()
        }
    })
}

/// What the word after these names, by the command line's definition.
fn kind_after(words: &[String]) -> Option<Kind> {
    let mut whole = Cli::command();
    whole.build();
    let mut command = &whole;
    let (mut path, mut positional) = (Vec::new(), 0);
    let mut option: Option<&Arg> = None;
    for word in words {
        if option.take().is_some() {
            continue;
        }
        if word.starts_with('-') {
            option = option_that_waits(command, word);
        } else if let Some(inner) = command.find_subcommand(word) {
            command = inner;
            path.push(inner.get_name());
            positional = 0;
        } else {
            positional += 1;
        }
    }
    let last =
        || command.get_positionals().last().filter(|last| matches!(last.get_action(), ArgAction::Append));
    let argument = option.or_else(|| command.get_positionals().nth(positional)).or_else(last)?;
    kind_of(path.first()?, path.get(1).copied().unwrap_or_default(), argument.get_id().as_str())
}

/// The option that takes the next word.
fn option_that_waits<'a>(command: &'a Clap, word: &str) -> Option<&'a Arg> {
    let named = |arg: &&Arg| match word.strip_prefix("--") {
        Some(long) => arg.get_long() == Some(long),
        None => arg.get_short().is_some_and(|short| word.strip_prefix('-') == Some(&short.to_string())),
    };
    command.get_arguments().find(named).filter(|arg| arg.get_action().takes_values())
}

/// By noun, verb, and what the definition calls the argument.
fn kind_of(noun: &str, verb: &str, argument: &str) -> Option<Kind> {
    Some(match (noun, verb, argument) {
        (_, "create", "name") | (_, _, "new_name") | ("volume", "clone" | "copy", "name") => return None,
        ("volume", "undelete" | "eradicate", "name") => Kind::Binned,
        ("volume", "clone" | "export", "from") | ("volume", "refresh", "to" | "clones_of") => Kind::Snapshot,
        ("snapshot", "show" | "rename" | "delete" | "rollback", "snapshot") => Kind::Snapshot,
        ("pool", _, "name") | (_, _, "pool") => Kind::Pool,
        ("volume", _, "name") | ("volume", "copy", "from") | (_, _, "volume" | "volumes") => Kind::Volume,
        ("schedule", _, "name") => Kind::Schedule,
        ("host", _, "name") | (_, _, "host") => Kind::Host,
        (_, _, "drive" | "drives" | "old" | "new" | "force") if ["drive", "pool"].contains(&noun) => {
            Kind::Drive
        }
        ("drive", "locate", "path") => Kind::Drive,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_word_names_follows_from_the_definition() {
        let kind = |line: &str| {
            let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
            kind_after(&words)
        };
        for (line, expected) in [
            ("pool show", Some(Kind::Pool)),
            ("pool create", None),
            ("pool create fast --protection parity-1", Some(Kind::Drive)),
            ("pool create fast --protection parity-1 /dev/a /dev/b", Some(Kind::Drive)),
            ("pool rename fast", None),
            ("--socket /x -o json pool scrub", Some(Kind::Pool)),
            ("drive add", Some(Kind::Pool)),
            ("drive replace fast", Some(Kind::Drive)),
            ("drive replace fast /dev/a", Some(Kind::Drive)),
            ("volume create x --pool", Some(Kind::Pool)),
            ("volume create x --size", None),
            ("volume delete", Some(Kind::Volume)),
            ("volume undelete", Some(Kind::Binned)),
            ("volume clone", Some(Kind::Snapshot)),
            ("volume clone a@b", None),
            ("volume export", Some(Kind::Snapshot)),
            ("volume import /x", Some(Kind::Volume)),
            ("volume refresh a@b --clones-of", Some(Kind::Snapshot)),
            ("snapshot rollback", Some(Kind::Snapshot)),
            ("schedule create nightly --daily 7", Some(Kind::Volume)),
            ("map", Some(Kind::Volume)),
            ("map vm-01", Some(Kind::Host)),
            ("map vm-01 pve1 --lun", None),
            ("unmap vm-01", Some(Kind::Host)),
            ("host set", Some(Kind::Host)),
            ("", None),
        ] {
            assert_eq!(kind(line), expected, "{line}");
        }
    }
}
