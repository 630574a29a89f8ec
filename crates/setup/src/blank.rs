//! Whether a server has an array of its own, which a join would forget.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::error::SetupError;

/// Parts of the catalog that somebody has made, and what they are called.
const PARTS: [(&str, &str); 4] =
    [("pools", "pools"), ("volumes", "volumes"), ("hosts", "hosts"), ("bin", "deleted volumes")];

/// Larger than any catalog (`base::limits`).
const CATALOG_BYTES_MAX: u64 = base::limits::CATALOG_BYTES_MAX as u64;

/// Refuses a state directory whose catalog has something in it, or whose head has made pools.
pub(crate) fn check(state_dir: &Path) -> Result<(), SetupError> {
    let catalog = state_dir.join("catalog.json");
    let drives = state_dir.join("drives");
    if let Some(text) = read(&catalog)? {
        let refuse = |what: String| SetupError::HasArray { path: catalog.clone(), what };
        let value: Value = serde_json::from_str(&text)
            .map_err(|error| refuse(format!("something that is no catalog ({error})")))?;
        for (field, name) in PARTS {
            let count = value.get(field).and_then(Value::as_array).map_or(0, Vec::len);
            if count > 0 {
                return Err(refuse(format!("an array with {name} ({count})")));
            }
        }
    }
    let text = read(&drives)?.unwrap_or_default();
    match text.lines().find(|line| line.starts_with('/')) {
        Some(drive) => {
            Err(SetupError::HasArray { path: drives, what: format!("drives of a pool ({drive})") })
        }
        None => Ok(()),
    }
}

fn read(path: &PathBuf) -> Result<Option<String>, SetupError> {
    let failed = |error| SetupError::File { path: path.clone(), error };
    match std::fs::metadata(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(failed(error)),
        Ok(found) if found.len() > CATALOG_BYTES_MAX => {
            return Err(SetupError::HasArray { path: path.clone(), what: "more than a catalog".to_owned() });
        }
        Ok(_) => {}
    }
    let bytes = std::fs::read(path).map_err(failed)?;
    Ok(Some(String::from_utf8_lossy(&bytes).into_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_with_an_array_is_not_made_a_partner() {
        let directory = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| std::fs::write(directory.path().join(name), text).unwrap();
        let verdict = || check(directory.path()).map_err(|error| error.to_string());
        assert_eq!(verdict(), Ok(()));
        write("catalog.json", r#"{"schema":12,"pools":[],"volumes":[],"hosts":[],"mappings":[]}"#);
        write("drives", "\n");
        assert_eq!(verdict(), Ok(()), "a daemon that was started once leaves this");
        for (catalog, says) in [
            (r#"{"pools":[{"id":"1"}]}"#, "pools (1)"),
            (r#"{"pools":[],"hosts":[1,2]}"#, "hosts (2)"),
            ("{", "no catalog"),
        ] {
            write("catalog.json", catalog);
            let why = verdict().unwrap_err();
            assert!(why.contains(says) && why.contains("catalog.json") && why.contains("move"), "{why}");
        }
        write("catalog.json", "{}");
        write("drives", "/dev/vdb\n");
        assert!(verdict().unwrap_err().contains("/dev/vdb"));
    }
}
