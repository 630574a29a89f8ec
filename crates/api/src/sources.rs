//! The sources and pages of the workspace, for tests that look for a name in them or compare a page with what it is made of.
#![allow(clippy::disallowed_methods, reason = "a test may read and write files of the repository")]

use std::path::{Path, PathBuf};

fn top() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Every source file in these folders.
pub fn read_sources(folders: &[&str]) -> Vec<String> {
    let mut sources = Vec::new();
    folders.iter().for_each(|folder| read_folder(&top().join(folder), &mut sources));
    sources
}

fn read_folder(folder: &Path, sources: &mut Vec<String>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            read_folder(&path, sources);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            sources.push(std::fs::read_to_string(&path).unwrap());
        }
    }
}

/// Whether a source names exactly this.
pub fn is_named(sources: &[String], name: &str) -> bool {
    let follows = |rest: &str| !rest.starts_with(|next: char| next.is_ascii_alphanumeric());
    sources.iter().any(|source| source.split(name).skip(1).any(follows))
}

/// Demands that a page of the documentation is what is `made` now; writes it anew if `UPDATE_DOCS` is set.
pub fn check_page(page: &str, made: &str) {
    let path = top().join(page);
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&path, made).unwrap();
    }
    let there = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(there == made, "{page} is out of date: UPDATE_DOCS=1 cargo test -p api --lib");
}
