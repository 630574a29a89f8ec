//! A crate whose `lib.rs` has a table of its files names each of them in it, once.

use std::path::Path;

/// Complaints about the table of a `lib.rs`, where it has one.
pub fn check(path: &Path, text: &str) -> Vec<(usize, String)> {
    let has_table = text.lines().any(|line| line.starts_with("//! | file"));
    if !has_table || path.file_name().is_none_or(|name| name != "lib.rs") {
        return Vec::new();
    }
    let first_column = |line: &str| line.strip_prefix("//! | ")?.split('|').next().map(str::to_owned);
    let rows: Vec<String> = text.lines().filter_map(first_column).collect();
    let named =
        |module: &str| rows.iter().map(|row| row.matches(&format!("`{module}`")).count()).sum::<usize>();
    let mut found = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let line = line.strip_prefix("pub ").unwrap_or(line);
        let Some(module) = line.strip_prefix("mod ").and_then(|rest| rest.strip_suffix(';')) else {
            continue;
        };
        match named(module) {
            1 => {}
            0 => found.push((number + 1, format!("`{module}` is not in the table of files above"))),
            _ => found.push((number + 1, format!("`{module}` is in the table of files more than once"))),
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_names_each_file_once() {
        let table = "//! | file | what |\n//! | `one`, `two` | |\n//! | `two` | |\n\nmod one;\npub mod two;\nmod three;\n";
        let lines: Vec<usize> = check(Path::new("lib.rs"), table).iter().map(|(line, _)| *line).collect();
        assert_eq!(lines, [6, 7]);
        assert!(check(Path::new("lib.rs"), "mod three;\n").is_empty(), "no table");
        assert!(check(Path::new("other.rs"), table).is_empty());
    }
}
