//! The licences of everything that is built in, and what must not be: from `cargo metadata`, by the lists in
//! `deny.toml`. Always runs; cargo-deny is asked as well where it is installed.

use serde_json::Value;

use crate::shell::{self, Result, cargo, output_of, run};

struct Lists {
    allowed: Vec<String>,
    banned: Vec<String>,
}

pub fn check_all() -> Result {
    let count = check()?;
    println!("licences: {count} packages are allowed by deny.toml");
    if shell::is_installed("cargo-deny") {
        return crate::shell::run(cargo().args(["deny", "check", "licenses", "bans", "sources"]));
    }
    println!(
        "licences: cargo-deny is not installed; the check above is the project's own, advisories are not looked at"
    );
    Ok(())
}

/// How many packages were looked at, or all that is wrong with them.
fn check() -> Result<usize> {
    let lists = read_lists()?;
    run(cargo().args(["fetch", "--quiet", "--locked"]))?;
    let mut metadata = cargo();
    metadata.args(["metadata", "--format-version", "1", "--locked", "--offline"]);
    let metadata: Value =
        serde_json::from_str(&output_of(&mut metadata)?).map_err(|error| error.to_string())?;
    let packages = metadata["packages"].as_array().ok_or("cargo metadata lists no packages")?;
    let mut wrong = Vec::new();
    for package in packages {
        let name = package["name"].as_str().unwrap_or_default();
        if let Err(why) = check_package(package, name, &lists) {
            wrong.push(format!("{name} {}: {why}", package["version"].as_str().unwrap_or_default()));
        }
    }
    if wrong.is_empty() { Ok(packages.len()) } else { Err(wrong.join("\n")) }
}

fn check_package(package: &Value, name: &str, lists: &Lists) -> Result {
    if lists.banned.iter().any(|banned| banned == name) {
        return Err("deny.toml bans it".to_owned());
    }
    if let Some(source) = package["source"].as_str()
        && !source.starts_with("registry+")
    {
        return Err(format!("it comes from {source}, not from the registry"));
    }
    let expression = package["license"].as_str().ok_or("it does not say its licence")?;
    match is_allowed(expression, &lists.allowed) {
        Some(true) => Ok(()),
        Some(false) => Err(format!("its licence is {expression}, which deny.toml does not allow")),
        None => Err(format!("its licence {expression} is no SPDX expression")),
    }
}

fn read_lists() -> Result<Lists> {
    let path = shell::tree().join("deny.toml");
    let text = std::fs::read_to_string(path).map_err(|error| format!("deny.toml: {error}"))?;
    let value: toml::Table = text.parse().map_err(|error| format!("deny.toml: {error}"))?;
    let texts = |items: Option<&toml::Value>, key: Option<&str>| -> Vec<String> {
        let items = items.and_then(toml::Value::as_array).cloned().unwrap_or_default();
        let text = |item: &toml::Value| match key {
            Some(key) => item.get(key)?.as_str().map(str::to_owned),
            None => item.as_str().map(str::to_owned),
        };
        items.iter().filter_map(text).collect()
    };
    let allowed = texts(value.get("licenses").and_then(|section| section.get("allow")), None);
    let banned = texts(value.get("bans").and_then(|section| section.get("deny")), Some("crate"));
    if allowed.is_empty() || banned.is_empty() {
        return Err("deny.toml: [licenses] allow or [bans] deny is missing".to_owned());
    }
    Ok(Lists { allowed, banned })
}

/// Whether an SPDX expression can be satisfied with allowed licences alone; none where it is malformed.
/// `/` is an old way to write OR.
fn is_allowed(expression: &str, allowed: &[String]) -> Option<bool> {
    let spaced = expression.replace('(', " ( ").replace(')', " ) ").replace('/', " OR ");
    let words: Vec<&str> = spaced.split_whitespace().collect();
    let mut at = 0;
    let value = any_of(&words, &mut at, allowed)?;
    (at == words.len()).then_some(value)
}

fn any_of(words: &[&str], at: &mut usize, allowed: &[String]) -> Option<bool> {
    let mut value = all_of(words, at, allowed)?;
    while words.get(*at) == Some(&"OR") {
        *at += 1;
        value |= all_of(words, at, allowed)?;
    }
    Some(value)
}

fn all_of(words: &[&str], at: &mut usize, allowed: &[String]) -> Option<bool> {
    let mut value = one_of(words, at, allowed)?;
    while words.get(*at) == Some(&"AND") {
        *at += 1;
        value &= one_of(words, at, allowed)?;
    }
    Some(value)
}

fn one_of(words: &[&str], at: &mut usize, allowed: &[String]) -> Option<bool> {
    let word = *words.get(*at)?;
    *at += 1;
    if word == "(" {
        let value = any_of(words, at, allowed)?;
        *at += 1;
        return (words.get(*at - 1) == Some(&")")).then_some(value);
    }
    if matches!(word, ")" | "AND" | "OR" | "WITH") {
        return None;
    }
    let mut name = word.to_owned();
    if words.get(*at) == Some(&"WITH") {
        name = format!("{word} WITH {}", words.get(*at + 1)?);
        *at += 2;
    }
    Some(allowed.contains(&name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions_are_weighed_as_spdx_says() {
        let allowed: Vec<String> =
            ["MIT", "Apache-2.0", "Apache-2.0 WITH LLVM-exception"].map(str::to_owned).to_vec();
        for (expression, expected) in [
            ("MIT", Some(true)),
            ("GPL-3.0", Some(false)),
            ("MIT/GPL-3.0", Some(true)),
            ("MIT AND GPL-3.0", Some(false)),
            ("GPL-3.0 OR MIT AND Apache-2.0", Some(true)),
            ("(GPL-3.0 OR MIT) AND GPL-2.0", Some(false)),
            ("(GPL-3.0 OR MIT) AND Apache-2.0", Some(true)),
            ("Apache-2.0 WITH LLVM-exception", Some(true)),
            ("MIT WITH LLVM-exception", Some(false)),
            ("", None),
            ("(MIT", None),
            ("MIT Apache-2.0", None),
            ("AND MIT", None),
        ] {
            assert_eq!(is_allowed(expression, &allowed), expected, "{expression}");
        }
    }
}
