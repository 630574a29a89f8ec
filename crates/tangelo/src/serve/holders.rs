//! Reports at a start which other process has locked a drive. The pool itself notices only later, and not which process.
//!
//! Every daemon locks its drives (flock), and the kernel lists all locks with their processes (proc(5), `/proc/locks`).

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use control::config::NamedDrive;
use rustix::fs::{major, minor};

/// Warns of each process that has some of these drives.
pub fn report(drives: &[NamedDrive]) {
    let locks = fs::read_to_string("/proc/locks").unwrap_or_default();
    let mut held: Vec<(u32, Vec<&str>)> = Vec::new();
    for drive in drives {
        let Some(process) = holder(&locks, Path::new(&drive.path)) else { continue };
        match held.iter_mut().find(|(other, _)| *other == process) {
            Some((_, paths)) => paths.push(&drive.path),
            None => held.push((process, vec![&drive.path])),
        }
    }
    for (process, paths) in held {
        tracing::warn!(
            "process {process} ({}) has {}: pools on them wait until it lets go of them; stop it, or stop this one",
            command_of(process),
            paths.join(", ")
        );
    }
}

/// The process that has locked what is at this path.
fn holder(locks: &str, path: &Path) -> Option<u32> {
    let found = fs::metadata(path).ok()?;
    let place = format!("{:02x}:{:02x}:{}", major(found.dev()), minor(found.dev()), found.ino());
    locks.lines().find_map(|line| {
        // 1: FLOCK  ADVISORY  WRITE 1234 00:05:678 0 EOF
        let fields: Vec<&str> = line.split_whitespace().collect();
        let (&process, &locked) = (fields.get(4)?, fields.get(5)?);
        (fields.get(1) == Some(&"FLOCK") && locked == place).then(|| process.parse().ok())?
    })
}

fn command_of(process: u32) -> String {
    let line = fs::read(format!("/proc/{process}/cmdline")).unwrap_or_default();
    let words = line.split(|&byte| byte == 0).map(String::from_utf8_lossy);
    let words: Vec<String> =
        words.filter(|word| !word.is_empty()).map(|word| word.escape_debug().to_string()).collect();
    if words.is_empty() { "which has just ended".to_owned() } else { words.join(" ") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::{FlockOperation, flock};

    #[test]
    fn who_has_a_drive_is_found_by_its_lock() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("drive.img");
        let file = fs::File::create(&path).unwrap();
        let holder = || holder(&fs::read_to_string("/proc/locks").unwrap(), &path);
        assert_eq!(holder(), None);
        flock(&file, FlockOperation::NonBlockingLockExclusive).unwrap();
        assert_eq!(holder(), Some(std::process::id()));
        assert!(command_of(std::process::id()).contains("tangelo"), "{}", command_of(std::process::id()));
        drop(file);
        assert_eq!(holder(), None);
    }
}
