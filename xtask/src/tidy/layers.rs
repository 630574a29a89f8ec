//! Which room may depend on which: down the layers only, and nobody but the simulator and the program joins an
//! environment to the engine.

use std::path::PathBuf;

use super::Complaint;
use crate::shell::{self, Result};

/// Every room and the rooms it may build on. Tests (dev-dependencies) may use more.
const ROOMS: [(&str, &[&str]); 37] = [
    ("base", &[]),
    ("env", &["base"]),
    ("wire", &["base"]),
    ("parity", &["base"]),
    ("task", &["base", "env"]),
    ("catalog", &["base"]),
    ("block", &["base", "env", "parity", "task"]),
    ("pool", &["base", "block", "env", "parity", "task"]),
    ("reservation", &["base", "wire"]),
    ("api", &["base", "catalog", "env", "reservation"]),
    ("scsi", &["base", "block", "reservation", "wire"]),
    ("iscsi", &["base", "block", "wire"]),
    ("shard", &["api", "base", "block", "catalog", "env", "pool", "reservation", "task", "wire"]),
    (
        "front",
        &[
            "api",
            "base",
            "block",
            "catalog",
            "env",
            "iscsi",
            "pool",
            "reservation",
            "scsi",
            "shard",
            "task",
            "wire",
        ],
    ),
    ("manager", &["api", "base", "catalog", "env", "pool", "reservation", "shard", "task", "wire"]),
    ("engine", &["api", "base", "env", "front", "manager", "shard", "task"]),
    ("pair", &["base"]),
    ("mirror", &["base", "env", "pair"]),
    ("heads", &["base", "env", "mirror", "pair", "task"]),
    ("uring", &["base", "env"]),
    ("durable", &[]),
    ("users", &["api", "base", "durable"]),
    ("tls", &[]),
    ("control", &["api", "base", "durable", "tls", "users"]),
    (
        "sim",
        &[
            "api",
            "base",
            "block",
            "catalog",
            "engine",
            "env",
            "heads",
            "iscsi",
            "mirror",
            "pair",
            "parity",
            "pool",
            "reservation",
            "scsi",
            "task",
            "wire",
        ],
    ),
    ("register", &["pair", "tls"]),
    ("setup", &["base", "durable", "pair", "register", "tls"]),
    ("program", &[]),
    ("fence", &["program"]),
    ("floating", &[]),
    ("health", &["api", "base", "durable", "program"]),
    ("alert", &["api", "base", "durable", "program", "tls"]),
    ("pairsim", &["base", "pair"]),
    ("lab", &["base", "env", "iscsi", "parity", "uring", "wire"]),
    (
        "tangelo",
        &[
            "alert", "api", "base", "catalog", "control", "engine", "env", "fence", "floating", "heads",
            "health", "lab", "pair", "register", "setup", "task", "uring",
        ],
    ),
    (
        "fuzz",
        &[
            "api", "base", "block", "catalog", "control", "health", "iscsi", "mirror", "pair", "pool",
            "scsi", "sim", "wire",
        ],
    ),
    ("xtask", &["base", "iscsi", "wire"]),
];

/// Rooms that are no part of the product: the table of ARCHITECTURE.md leaves them out.
const TOOLS: [&str; 2] = ["fuzz", "xtask"];

pub fn check(files: &[PathBuf]) -> Result<Vec<Complaint>> {
    let mut complaints = Vec::new();
    let page = "ARCHITECTURE.md";
    let text = std::fs::read_to_string(shell::tree().join(page)).map_err(|error| error.to_string())?;
    let complaint = |what| Complaint { file: page.to_owned(), line: 0, what };
    complaints.extend(check_page(&text).into_iter().map(complaint));
    for file in files.iter().filter(|file| file.ends_with("Cargo.toml")) {
        let text = std::fs::read_to_string(shell::tree().join(file)).map_err(|error| error.to_string())?;
        let manifest: toml::Table = text.parse().map_err(|error| format!("{}: {error}", file.display()))?;
        for what in check_manifest(&manifest) {
            complaints.push(Complaint { file: file.to_string_lossy().into_owned(), line: 0, what });
        }
    }
    Ok(complaints)
}

/// The table of rooms on the page has every room of the product, and each below the rooms that it may use.
fn check_page(text: &str) -> Vec<String> {
    let section = text.split_once("## Rooms\n").map_or("", |(_, rest)| rest);
    let section = section.split("\n## ").next().unwrap_or_default();
    let row = |line: &'_ str| Some(line.strip_prefix("| `")?.split_once('`')?.0.to_owned());
    let table: Vec<String> = section.lines().filter_map(row).collect();
    let place = |room: &str| table.iter().position(|row| row == room);
    let mut found = Vec::new();
    for (room, allowed) in ROOMS.iter().filter(|(room, _)| !TOOLS.contains(room)) {
        match place(room) {
            None => found.push(format!("the table of rooms lacks {room}")),
            Some(own) => {
                let below = allowed.iter().filter(|used| place(used).is_none_or(|other| other > own));
                found.extend(below.map(|used| format!("{room} may use {used}, which is not above it")));
            }
        }
    }
    let unknown = table.iter().filter(|row| !ROOMS.iter().any(|(room, _)| room == row));
    found.extend(unknown.map(|row| format!("the table of rooms has {row}, which is no room")));
    found
}

fn check_manifest(manifest: &toml::Table) -> Vec<String> {
    let Some(name) = manifest.get("package").and_then(|package| package.get("name")?.as_str()) else {
        return Vec::new();
    };
    // A workspace of its own, such as the driver of the fuzzer: none of the product's rooms.
    if manifest.contains_key("workspace") {
        return Vec::new();
    }
    let Some((_, allowed)) = ROOMS.iter().find(|(room, _)| *room == name) else {
        return vec![format!(
            "the room {name} has no place in the layers; give it one in xtask/src/tidy/layers.rs"
        )];
    };
    let mut found = Vec::new();
    if !manifest.contains_key("lints") {
        found.push("it takes no lints from the workspace".to_owned());
    }
    let dependencies = manifest.get("dependencies").and_then(toml::Value::as_table);
    for dependency in dependencies.into_iter().flat_map(toml::Table::keys) {
        let is_room = ROOMS.iter().any(|(room, _)| room == dependency);
        if is_room && !allowed.contains(&dependency.as_str()) {
            found.push(format!("{name} must not depend on {dependency}: dependencies point down the layers"));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn complaints(text: &str) -> usize {
        check_manifest(&text.parse().unwrap()).len()
    }

    #[test]
    fn dependencies_point_down() {
        let fine = "[package]\nname = 'engine'\n[dependencies]\nbase.workspace = true\nserde = '1'\n[lints]\nworkspace = true";
        assert_eq!(complaints(fine), 0);
        assert_eq!(complaints(&fine.replace("base", "uring")), 1);
        assert_eq!(complaints(&fine.replace("engine", "unknown")), 1);
        assert_eq!(complaints("[package]\nname = 'base'"), 1);
    }

    #[test]
    fn the_page_has_every_room_below_those_that_it_uses() {
        let product = || ROOMS.iter().map(|(room, _)| *room).filter(|room| !TOOLS.contains(room));
        let page = |rooms: Vec<&str>| {
            let rows: String = rooms.iter().map(|room| format!("| `{room}` | | |\n")).collect();
            check_page(&format!("## Rooms\n\n{rows}\n## More\n| `no` |\n"))
        };
        assert_eq!(page(product().collect()), [""; 0]);
        assert_eq!(page(product().skip(1).collect())[0], "the table of rooms lacks base");
        assert!(
            page(product().rev().collect()).contains(&"env may use base, which is not above it".to_owned())
        );
        assert_eq!(
            page(product().chain(["attic"]).collect()),
            ["the table of rooms has attic, which is no room"]
        );
    }

    #[test]
    fn the_table_itself_points_down() {
        for (position, (room, allowed)) in ROOMS.iter().enumerate() {
            for dependency in *allowed {
                let below = ROOMS[..position].iter().any(|(name, _)| name == dependency);
                assert!(below, "{room} depends on {dependency}, which does not stand above it in the table");
            }
        }
    }
}
