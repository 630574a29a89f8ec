//! Tests that the command line knows every command that a hint, a message or a page names.

use std::fs;
use std::path::{Path, PathBuf};

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{CommandFactory, Parser};

use crate::cli::Cli;

/// Files whose text people read: the sources' messages, the pages, the package.
fn files() -> Vec<PathBuf> {
    let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
    let mut found = vec![root.join("README.md"), root.join("CHANGELOG.md")];
    let mut directories = vec![root.join("crates"), root.join("docs"), root.join("packaging")];
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            let kind = path.extension().and_then(|kind| kind.to_str()).unwrap_or_default().to_owned();
            if path.is_dir() {
                directories.push(path);
            } else if ["rs", "md", "toml", "service"].contains(&kind.as_str()) && !path.ends_with(file!()) {
                found.push(path);
            }
        }
    }
    found
}

/// What stands in backquotes and begins with the program's name; lines that go on are one.
fn commands_in(text: &str) -> Vec<String> {
    let mut joined = String::new();
    for line in text.lines() {
        let line = line.trim_start().trim_start_matches("///").trim_start_matches("//!").trim();
        let (line, space) = line.strip_suffix('\\').map_or((line, " "), |line| (line, ""));
        joined += line;
        joined += space;
    }
    let mut commands = Vec::new();
    for (at, _) in joined.match_indices("`tangelo ") {
        let rest = &joined[at + 1..];
        commands.extend(rest.find('`').map(|end| rest[..end].to_owned()));
    }
    commands
}

/// `pool create|delete` is two commands.
fn alternatives(command: &str) -> Vec<String> {
    let Some(word) = command.split_whitespace().find(|word| word.contains('|')) else {
        return vec![command.to_owned()];
    };
    word.split('|').map(|one| command.replace(word, one)).collect()
}

/// The words of a command, with something in the place of what a reader is to fill in.
fn words(command: &str, kind: &str) -> Vec<String> {
    let filled = command.replace("{kind}", kind);
    let word = |word: &str| match word {
        "SIZE" => "1GiB".to_owned(),
        "PERCENT" | "N" => "10".to_owned(),
        "TIME" => "1d".to_owned(),
        "HOST:PORT" => "127.0.0.1:1".to_owned(),
        "{purpose}" => "head".to_owned(),
        _ if word.starts_with('{') => "x".to_owned(),
        _ => word.trim_end_matches("...").to_owned(),
    };
    filled.split_whitespace().map(word).filter(|word| !word.is_empty()).collect()
}

/// The first words of a command are enough: what it needs besides may be left to the reader.
fn is_known(words: &[String]) -> Result<(), String> {
    let Err(error) = Cli::try_parse_from(words) else { return Ok(()) };
    let value_is_left_out = || matches!(error.get(ContextKind::InvalidValue), Some(ContextValue::String(value)) if value.is_empty());
    match error.kind() {
        ErrorKind::MissingRequiredArgument
        | ErrorKind::MissingSubcommand
        | ErrorKind::DisplayHelp
        | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand
        | ErrorKind::DisplayVersion => Ok(()),
        ErrorKind::InvalidValue if value_is_left_out() => Ok(()),
        _ => Err(error.to_string()),
    }
}

#[test]
fn every_command_that_is_named_is_known() {
    Cli::command().debug_assert();
    let (mut count, mut unknown) = (0, Vec::new());
    for file in files() {
        for command in commands_in(&fs::read_to_string(&file).unwrap()).iter().flat_map(|c| alternatives(c)) {
            for kind in ["pool", "volume", "host", "schedule", "snapshot", "mapping"] {
                if let Err(why) = is_known(&words(&command, kind)) {
                    unknown.push(format!(
                        "{}: `{command}`: {}",
                        file.display(),
                        why.lines().next().unwrap_or("")
                    ));
                    break;
                }
            }
            count += 1;
        }
    }
    assert!(unknown.is_empty(), "these are no commands:\n{}", unknown.join("\n"));
    assert!(count > 100, "only {count} commands were found");
}

#[test]
fn what_is_no_command_is_noticed() {
    let known = |command: &str| is_known(&words(command, "pool")).is_ok();
    for command in
        ["tangelo drive remove --cancel", "tangelo host set --add-iqn", "tangelo {kind} list", "tangelo pool"]
    {
        assert!(known(command), "{command}");
    }
    for command in [
        "tangelo drive clean",
        "tangelo wipefs {path}",
        "tangelo pool list --all",
        "tangelo volume create x --size 8",
    ] {
        assert!(!known(command), "{command}");
    }
    let text = "a(\"first `tangelo drive \\\n        wipe {path}` it\")\n/// or `tangelo\n/// status`";
    assert_eq!(commands_in(text), ["tangelo drive wipe {path}", "tangelo status"]);
}
