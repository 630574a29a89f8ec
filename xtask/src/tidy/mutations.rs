//! Deliberate breaks: a patch follows the code that it breaks, and one of the pages about them names it.

use std::path::{Path, PathBuf};

use super::Complaint;
use crate::shell;

const PAGES: [&str; 2] = ["docs/design/0002-deliberate-breaks.md", "docs/design/0016-ownership.md"];

pub fn check(files: &[PathBuf]) -> Vec<Complaint> {
    let page: String =
        PAGES.iter().filter_map(|page| std::fs::read_to_string(shell::tree().join(page)).ok()).collect();
    let is_patch = |file: &&PathBuf| file.extension().is_some_and(|extension| extension == "patch");
    files.iter().filter(is_patch).flat_map(|patch| check_patch(patch, &page, applies(patch))).collect()
}

fn applies(patch: &Path) -> bool {
    let mut check = shell::program("git");
    check.args(["apply", "--check", "--whitespace=nowarn"]).arg(patch);
    check.output().is_ok_and(|output| output.status.success())
}

fn check_patch(patch: &Path, page: &str, applies: bool) -> Vec<Complaint> {
    let complaint = |what: String| Complaint { file: patch.to_string_lossy().into_owned(), line: 0, what };
    let mut found = Vec::new();
    if !applies {
        found.push(complaint("does not apply: `git apply --check` says where".to_owned()));
    }
    let name = patch.file_stem().unwrap_or_default().to_string_lossy();
    // As the first cells of the table name them.
    if !page.contains(&format!("`{name}`")) {
        found.push(complaint(format!("{} does not name it", PAGES.join(" or "))));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_patch_applies_and_is_named() {
        let page = "| `skip-a-header`, `skip-a-root` | nothing | it does not |";
        let count = |name: &str, applies| check_patch(Path::new(name), page, applies).len();
        assert_eq!(count("crates/sim/mutations/skip-a-root.patch", true), 0);
        assert_eq!(count("crates/sim/mutations/skip-a-root.patch", false), 1);
        assert_eq!(count("crates/sim/mutations/skip-a.patch", true), 1);
        assert_eq!(count("crates/sim/mutations/skip-a.patch", false), 2);
    }
}
