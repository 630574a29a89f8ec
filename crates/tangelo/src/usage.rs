//! Parses the command line, and refuses what is wrong, in words for people or in JSON for programs.

use std::ffi::OsString;
use std::io::Write;
use std::process::ExitCode;

use clap::error::{ContextKind, ErrorKind};
use clap::{CommandFactory, Error, Parser};
use control::rest::SCHEMA;
use serde_json::{Value, json};

use crate::cli::Cli;

/// The command that is meant.
pub fn parse(words: impl IntoIterator<Item = OsString>) -> Result<Cli, Error> {
    let cli = Cli::try_parse_from(words)?;
    match cli.global.check(&cli.command) {
        Ok(()) => Ok(cli),
        Err(why) => Err(Cli::command().error(ErrorKind::ArgumentConflict, why)),
    }
}

/// Says what is wrong, as JSON where that was asked for. Help and the version are no errors.
pub fn refuse(error: &Error, words: impl IntoIterator<Item = OsString>) -> ExitCode {
    if error.use_stderr() && wants_json(words) {
        // whoever reads it may have gone
        let _ = writeln!(std::io::stdout(), "{:#}", as_json(error));
    } else {
        let _ = error.print();
    }
    ExitCode::from(error.exit_code() as u8)
}

/// Whether `-o json` is among the words, which need not make sense otherwise.
fn wants_json(words: impl IntoIterator<Item = OsString>) -> bool {
    let words: Vec<OsString> = words.into_iter().collect();
    let after = |word: &OsString| ["-o", "--output"].iter().any(|option| word == option);
    let alone = |word: &OsString| ["-ojson", "-o=json", "--output=json"].iter().any(|option| word == option);
    words.iter().any(alone) || words.windows(2).any(|pair| after(&pair[0]) && pair[1] == "json")
}

fn as_json(error: &Error) -> Value {
    let text = error.to_string();
    // what is wrong; how it is used, and where help is, stand behind it
    let message = text.trim_start_matches("error: ");
    let message = message.split("\n\n").next().unwrap_or(message);
    let message = message.split_whitespace().collect::<Vec<_>>().join(" ");
    let usage = error.get(ContextKind::Usage).map(|usage| usage.to_string()).unwrap_or_default();
    let hint = usage.split_whitespace().collect::<Vec<_>>().join(" ");
    json!({ "schema": SCHEMA, "error": { "code": "usage", "message": message, "hint": hint } })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<OsString> {
        line.split_whitespace().map(OsString::from).collect()
    }

    #[test]
    fn usage_errors_can_be_json() {
        for line in ["t -o json x", "t x --output json", "t -ojson", "t --output=json", "t -o=json"] {
            assert!(wants_json(words(line)), "{line}");
        }
        for line in ["t -o table x", "t json", "t x -o"] {
            assert!(!wants_json(words(line)), "{line}");
        }
        for (line, says) in [
            ("tangelo volume delet x", "unrecognized subcommand 'delet'"),
            (
                "tangelo volume create x --pool p",
                "the following required arguments were not provided: --size <SIZE>",
            ),
            ("tangelo volume create x --pool p --size 100", "\"100\" has no unit: write 100GiB"),
            ("tangelo serve --socket /x", "--socket is for commands that ask a daemon, which serve does not"),
            (
                "tangelo completions bash --server a:1 --token-file t",
                "--server is for commands that ask a daemon",
            ),
        ] {
            let error = as_json(&parse(words(line)).unwrap_err());
            assert_eq!(
                (&error["schema"], &error["error"]["code"]),
                (&SCHEMA.into(), &"usage".into()),
                "{line}"
            );
            let message = error["error"]["message"].as_str().unwrap();
            assert!(message.contains(says) && !message.contains('\n'), "{line}: {error}");
        }
    }
}
