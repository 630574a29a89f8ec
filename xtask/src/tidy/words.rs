//! Words that do not belong into a tree: work left for later, paths of somebody's machine, hosts of registries.

use std::path::Path;

/// The word and what is wrong with it. In two pieces, so that this file can be checked too.
const DENIED: [(&str, &str); 9] = [
    (concat!("TO", "DO"), "work left for later belongs into an issue"),
    (concat!("FIX", "ME"), "work left for later belongs into an issue"),
    (concat!("XX", "X:"), "work left for later belongs into an issue"),
    (concat!("/ho", "me/"), "a path of somebody's machine"),
    (concat!("/ro", "ot/"), "a path of somebody's machine"),
    (concat!("/wo", "rk/"), "a path of somebody's machine"),
    (concat!("/tmp/", "plan"), "a path of somebody's machine"),
    (concat!("crates", ".io"), "the registry is whatever cargo is told"),
    (concat!("deb.", "debian.org"), "the registry is whatever apt is told"),
];

/// Line and complaint of every such word.
pub fn check(path: &Path, text: &str) -> Vec<(usize, String)> {
    // Written by cargo, which names its registry there.
    if path.file_name().is_some_and(|name| name == "Cargo.lock") {
        return Vec::new();
    }
    let mut found = Vec::new();
    for (number, line) in text.lines().enumerate() {
        for (word, why) in DENIED.iter().filter(|(word, _)| line.contains(word)) {
            found.push((number + 1, format!("{word}: {why}")));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn denied_words_are_found_where_they_stand() {
        let text = concat!("fine\nTO", "DO later, in /ho", "me/me\n");
        assert_eq!(check(Path::new("a.md"), text).iter().map(|(line, _)| *line).collect::<Vec<_>>(), [2, 2]);
        assert!(check(Path::new("fuzz/Cargo.lock"), text).is_empty());
    }
}
