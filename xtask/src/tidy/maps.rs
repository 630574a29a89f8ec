//! A crate whose `lib.rs` has a table of its files names each of them in it, once. The row of a folder names each file of
//! the folder. A table names nothing that is not there.

use std::path::{Path, PathBuf};

/// A row of the table: where it stands, the modules of its first column, and what the rest names.
struct Row<'a> {
    line: usize,
    modules: Vec<&'a str>,
    named: Vec<&'a str>,
}

/// Complaints about the table of a `lib.rs`, where it has one; `files` are all files of the tree.
pub fn check(path: &Path, text: &str, files: &[PathBuf]) -> Vec<(usize, String)> {
    let has_table = text.lines().any(|line| line.starts_with("//! | file"));
    let Some(folder) = path.parent().filter(|_| has_table && path.ends_with("lib.rs")) else {
        return Vec::new();
    };
    let rows: Vec<Row> = text.lines().enumerate().filter_map(|(index, line)| row(index + 1, line)).collect();
    let modules: Vec<(usize, &str)> =
        text.lines().enumerate().filter_map(|(index, line)| Some((index + 1, module(line)?))).collect();
    let mut found = Vec::new();
    for &(line, module) in &modules {
        let in_rows = rows.iter().flat_map(|row| &row.modules).filter(|named| **named == module);
        match in_rows.count() {
            1 => {}
            0 => found.push((line, format!("`{module}` is not in the table of files above"))),
            _ => found.push((line, format!("`{module}` is in the table of files more than once"))),
        }
    }
    for row in &rows {
        for name in row.modules.iter().filter(|name| modules.iter().all(|(_, module)| module != *name)) {
            found.push((row.line, format!("`{name}` is in the table of files, and there is no such module")));
        }
        found.extend(check_folders(row, folder, files).into_iter().map(|what| (row.line, what)));
    }
    found
}

/// The row names each file of its folders once, and no other.
fn check_folders(row: &Row, folder: &Path, files: &[PathBuf]) -> Vec<String> {
    let inside = |module: &&str| files_of(&folder.join(module), files);
    let there: Vec<String> = row.modules.iter().flat_map(inside).collect();
    if there.is_empty() {
        return Vec::new();
    }
    let named = |file: &String| row.named.iter().filter(|named| *named == file).count();
    let missing = there.iter().filter(|file| named(file) != 1);
    let missing = missing.map(|file| format!("the row of its folder must name `{file}` once"));
    let unknown = row.named.iter().filter(|name| there.iter().all(|file| file != *name));
    let unknown = unknown.map(|name| format!("the row names `{name}`, which is not in its folder"));
    missing.chain(unknown).collect()
}

/// The modules that are files or folders of a folder, without its `mod.rs` and its tests.
fn files_of(folder: &Path, files: &[PathBuf]) -> Vec<String> {
    let below = files.iter().filter_map(|file| file.strip_prefix(folder).ok());
    let mut names: Vec<String> = below
        .filter(|file| file.extension().is_some_and(|extension| extension == "rs"))
        .filter_map(|file| Some(file.components().next()?.as_os_str().to_string_lossy().into_owned()))
        .map(|name| name.strip_suffix(".rs").unwrap_or(&name).to_owned())
        .filter(|name| !["mod", "tests"].contains(&name.as_str()) && !name.ends_with("_tests"))
        .collect();
    names.sort();
    names.dedup();
    names
}

fn row(line: usize, text: &str) -> Option<Row<'_>> {
    let (first, rest) = text.strip_prefix("//! | ")?.split_once('|')?;
    Some(Row { line, modules: quoted(first), named: quoted(rest) })
}

/// What stands in back quotes.
fn quoted(text: &str) -> Vec<&str> {
    text.split('`').skip(1).step_by(2).collect()
}

/// The module that a line declares in a file of its own.
fn module(line: &str) -> Option<&str> {
    let line = line.strip_prefix("pub ").unwrap_or(line);
    line.strip_prefix("mod ").and_then(|rest| rest.strip_suffix(';'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(path: &str, text: &str, files: &[&str]) -> Vec<usize> {
        let files: Vec<PathBuf> = files.iter().map(PathBuf::from).collect();
        check(Path::new(path), text, &files).iter().map(|(line, _)| *line).collect()
    }

    #[test]
    fn a_table_names_each_file_once() {
        let table = "//! | file | what |\n//! | `one`, `two` | |\n//! | `two`, `four` | |\n\nmod one;\npub mod two;\nmod three;\n";
        assert_eq!(lines("src/lib.rs", table, &[]), [6, 7, 3]);
        assert!(lines("src/lib.rs", "mod three;\n", &[]).is_empty(), "no table");
        assert!(lines("src/other.rs", table, &[]).is_empty());
    }

    #[test]
    fn the_row_of_a_folder_names_its_files() {
        let table = "//! | file | what |\n//! | `one` | reads (`read`), writes (`write`) |\n\nmod one;\n";
        let files = ["src/one/mod.rs", "src/one/read.rs", "src/one/write/mod.rs", "src/one/write/deep.rs"];
        assert!(lines("src/lib.rs", table, &files).is_empty());
        assert_eq!(lines("src/lib.rs", table, &["src/one/read.rs"]), [2], "`write` is not there");
        let more = ["src/one/read.rs", "src/one/write.rs", "src/one/erase.rs", "src/one/tests.rs"];
        assert_eq!(lines("src/lib.rs", table, &more), [2], "`erase` is not named");
        assert!(lines("src/lib.rs", table, &["src/other.rs"]).is_empty(), "no folder");
    }
}
