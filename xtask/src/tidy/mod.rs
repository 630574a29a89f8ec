//! The style that no lint knows: sizes of files and functions, their openings, where `unsafe` may stand, words that
//! do not belong into a tree, tables of files, which room may depend on which, and deliberate breaks that nobody would miss.

mod layers;
mod maps;
mod mask;
mod mutations;
mod rust;
mod words;

use std::path::{Path, PathBuf};

use crate::shell::{self, Result};

/// Longest Rust file and function, in lines.
const FILE_LINES_MAX: usize = 500;
const FUNCTION_LINES_MAX: usize = 70;

/// Something that is not tidy.
#[derive(PartialEq, Eq, Debug)]
struct Complaint {
    file: String,
    /// From 1; 0 where it is about the whole file.
    line: usize,
    what: String,
}

pub fn run() -> Result {
    let mut complaints = Vec::new();
    let files = shell::files()?;
    for file in &files {
        let Ok(text) = std::fs::read_to_string(shell::tree().join(file)) else { continue };
        complaints.extend(check_file(file, &text, &files));
    }
    complaints.extend(check_changelog());
    complaints.extend(layers::check(&files)?);
    complaints.extend(mutations::check(&files));
    for complaint in &complaints {
        println!("{}:{}: {}", complaint.file, complaint.line, complaint.what);
    }
    match complaints.len() {
        0 => {
            println!("tidy: {} files", files.len());
            Ok(())
        }
        count => Err(format!("{count} things are not tidy")),
    }
}

fn check_file(path: &Path, text: &str, files: &[PathBuf]) -> Vec<Complaint> {
    let name = path.to_string_lossy().into_owned();
    let mut found: Vec<(usize, String)> = Vec::new();
    if path.extension().is_some_and(|extension| extension == "rs") {
        let unsafe_room = ["crates/parity/", "crates/uring/"].iter().any(|room| name.starts_with(room));
        found.extend(rust::check(text, unsafe_room));
        found.extend(maps::check(path, text, files));
    }
    found.extend(words::check(path, text));
    found.into_iter().map(|(line, what)| Complaint { file: name.clone(), line, what }).collect()
}

fn check_changelog() -> Option<Complaint> {
    let text = std::fs::read_to_string(shell::tree().join("CHANGELOG.md")).unwrap_or_default();
    let has_lines = text.lines().any(|line| line.starts_with("- "));
    let what = "it must have a line for each change that a user can see".to_owned();
    (!has_lines).then(|| Complaint { file: "CHANGELOG.md".to_owned(), line: 0, what })
}
