//! The sources of the workspace, for tests that look for a name in them.
#![allow(clippy::disallowed_methods, reason = "a test may read files of the repository")]

use std::path::{Path, PathBuf};

pub fn top() -> PathBuf {
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
