//! Starting other programs from the root of the tree, and reading what they say.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

pub type Result<T = ()> = std::result::Result<T, String>;

/// The root of the tree.
pub fn tree() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().expect("xtask is a directory of the tree").to_owned()
}

/// Where cargo builds.
pub fn target() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| tree().join("target"), PathBuf::from)
}

/// The cargo that runs this.
pub fn cargo() -> Command {
    let mut command = program(std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned()));
    // Set by `cargo run`, and would make every inner build differ from the outer ones.
    for name in ["CARGO_MANIFEST_DIR", "CARGO_PKG_NAME", "CARGO_PKG_VERSION", "RUST_RECURSION_COUNT"] {
        command.env_remove(name);
    }
    command
}

/// A program, started at the root of the tree, with no input.
pub fn program(name: impl AsRef<std::ffi::OsStr>) -> Command {
    let mut command = Command::new(name);
    command.current_dir(tree()).stdin(Stdio::null());
    command
}

/// How the programs of this tree are built.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Profile {
    /// With assertions, and sharing everything with `cargo test`: what the test command runs.
    Development,
    /// Optimised across crates, which takes minutes: what runs for long.
    Release,
}

/// Builds a program of a package of the same name, and gives its place.
pub fn build(profile: Profile, package: &str) -> Result<PathBuf> {
    let mut command = cargo();
    command.args(["build", "--quiet"]);
    match profile {
        // all at once and with the tests: otherwise the dependencies have other features and are built again
        Profile::Development => command.args(["--workspace", "--bins", "--tests"]),
        Profile::Release => command.args(["--release", "--package", package, "--bin", package]),
    };
    run(&mut command)?;
    let folder = match profile {
        Profile::Development => "debug",
        Profile::Release => "release",
    };
    Ok(target().join(folder).join(package))
}

/// Runs it to its end; an error unless it succeeds.
pub fn run(command: &mut Command) -> Result {
    let status = command.status().map_err(|error| cannot_start(command, &error))?;
    if status.success() { Ok(()) } else { Err(format!("{} failed: {status}", words(command))) }
}

/// Runs it to its end and hands every line of its output on as it comes; tells whether it succeeded.
pub fn run_with_lines(command: &mut Command, mut on_line: impl FnMut(&str)) -> Result<bool> {
    let mut child = command.stdout(Stdio::piped()).spawn().map_err(|error| cannot_start(command, &error))?;
    let output = child.stdout.take().expect("it is piped");
    for line in BufReader::new(output).split(b'\n').map_while(std::result::Result::ok) {
        on_line(&String::from_utf8_lossy(&line));
    }
    let status = child.wait().map_err(|error| error.to_string())?;
    Ok(status.success())
}

/// What it prints; an error unless it succeeds.
pub fn output_of(command: &mut Command) -> Result<String> {
    let output = command.stderr(Stdio::inherit()).output().map_err(|error| cannot_start(command, &error))?;
    if !output.status.success() {
        return Err(format!("{} failed: {}", words(command), output.status));
    }
    String::from_utf8(output.stdout).map_err(|_| format!("{} does not print text", words(command)))
}

/// Whether a program of this name is in PATH.
pub fn is_installed(name: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|directory| directory.join(name).is_file())
}

/// The files that belong to the tree, as paths from its root. Those of git, and new ones that it would take.
pub fn files() -> Result<Vec<PathBuf>> {
    let mut git = program("git");
    git.args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"]);
    let names = output_of(&mut git)?;
    let mut files: Vec<PathBuf> =
        names.split('\0').filter(|name| !name.is_empty()).map(PathBuf::from).collect();
    files.retain(|file| tree().join(file).is_file());
    files.sort();
    files.dedup();
    Ok(files)
}

pub fn words(command: &Command) -> String {
    let mut words = vec![command.get_program().to_string_lossy().into_owned()];
    words.extend(command.get_args().map(|word| word.to_string_lossy().into_owned()));
    words.join(" ")
}

fn cannot_start(command: &Command, error: &std::io::Error) -> String {
    format!("{} cannot be started: {error}", command.get_program().to_string_lossy())
}
