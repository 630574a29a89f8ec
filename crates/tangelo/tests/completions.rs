//! What a person gets who presses the tabulator. `scripts/install-packages shells` installs the shells.
#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "a test is at the edge to the world")]

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};

const PROGRAM: &str = env!("CARGO_BIN_EXE_tangelo");

/// A directory with a `tangelo` in it that knows two pools, and writes down what it was asked.
fn stage() -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    let program = directory.path().join("tangelo");
    let script = "#!/bin/sh\necho \"$@\" >> \"${0%/*}/asked\"\n[ \"$1 $2 $3 $4\" != \"complete -- pool show\" ] || printf 'fast\\nslow\\n'\n";
    std::fs::write(&program, script).unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    directory
}

fn script(shell: &str) -> String {
    let output = Command::new(PROGRAM).args(["completions", shell]).output().unwrap();
    assert!(output.status.success());
    String::from_utf8(output.stdout).unwrap()
}

/// What a shell says to this.
fn run(shell: &str, arguments: &[&str], stage: &Path) -> String {
    let path = format!("{}:{}", stage.display(), std::env::var("PATH").unwrap());
    let mut command = Command::new(shell);
    command.args(arguments).env("PATH", path).env("HOME", stage).current_dir(stage).stdin(Stdio::null());
    let output = command
        .output()
        .unwrap_or_else(|error| panic!("{shell}: {error}; `scripts/install-packages shells` installs it"));
    let said =
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{shell}: {said}");
    said
}

#[test]
fn names_are_completed_by_bash() {
    let stage = stage();
    std::fs::write(stage.path().join("script"), script("bash")).unwrap();
    let ask = "source ./script; COMP_WORDS=(tangelo pool show f); COMP_CWORD=3; _tangelo_names tangelo f show; echo \"${COMPREPLY[@]}\"";
    let said = run("bash", &["--norc", "-c", ask], stage.path());
    assert!(said.trim() == "fast");
}

#[test]
fn names_are_completed_by_fish() {
    let stage = stage();
    std::fs::write(stage.path().join("script"), script("fish")).unwrap();
    let ask = |line: &str| format!("source ./script; complete -C '{line}'");
    let said = run("fish", &["--no-config", "-c", &ask("tangelo pool show f")], stage.path());
    assert!(said.lines().any(|line| line.trim() == "fast"));
    let said = run("fish", &["--no-config", "-c", &ask("tangelo pool sho")], stage.path());
    assert!(said.lines().any(|line| line.starts_with("show")));
}

/// Without a terminal nobody presses a key in zsh: its own functions are put in the place of those that complete.
#[test]
fn names_are_completed_by_zsh() {
    let stage = stage();
    std::fs::write(stage.path().join("script"), script("zsh")).unwrap();
    let ask = |words: &str, current: u32, prefix: &str| {
        format!(
            "compdef() {{ }}; compadd() {{ echo names ${{(P)2}} }}; source ./script; _tangelo_words() {{ echo words }}; words=({words}); CURRENT={current}; PREFIX={prefix}; _tangelo"
        )
    };
    let said = |words, current, prefix| run("zsh", &["-f", "-c", &ask(words, current, prefix)], stage.path());
    assert!(said("tangelo pool show f", 4, "f").trim() == "names fast slow");
    assert!(said("tangelo pool sho", 3, "sho").trim() == "words");
    assert!(said("tangelo pool show --", 4, "--").trim() == "words");
}
