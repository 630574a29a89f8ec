//! Keeps the head's own files from being used as drives: an export would give away secrets, a write would destroy the
//! configuration or the state.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use api::{Command, CommandError, CommandErrorKind, NewBacking, Upkeep};
use control::config::Config;

/// The state directory with all that is in it, the configuration, and the token.
pub struct OwnFiles {
    state_dir: PathBuf,
    others: Vec<PathBuf>,
}

impl OwnFiles {
    pub fn of(config: &Config) -> OwnFiles {
        let token = config.tcp.iter().map(|tcp| tcp.token_file.clone());
        OwnFiles {
            state_dir: config.state_dir.clone(),
            others: config.file.iter().cloned().chain(token).collect(),
        }
    }

    /// Refuses a command that names one of them as a drive, by whatever path.
    pub fn check(&self, command: &Command) -> Result<(), CommandError> {
        let named: &[String] = match command {
            Command::PoolCreate { pool, .. } => &pool.drives,
            Command::VolumeCreate { volume, .. } => match &volume.backing {
                NewBacking::Raw(path) => std::slice::from_ref(path),
                _ => &[],
            },
            Command::DriveWipe { path, .. } => std::slice::from_ref(path),
            Command::Upkeep { upkeep, .. } => match upkeep {
                Upkeep::DriveAdd { drives, .. } | Upkeep::Spare { drives, .. } => drives,
                Upkeep::DriveReplace { new, .. } => std::slice::from_ref(new),
                _ => &[],
            },
            _ => &[],
        };
        match named.iter().find(|path| self.owns(Path::new(path.as_str()))) {
            None => Ok(()),
            Some(path) => Err(CommandError::new(
                CommandErrorKind::InUse,
                format!("{path} is a file of Tangelo's own, and holds secrets or what the array is"),
                "name another drive",
            )),
        }
    }

    fn owns(&self, path: &Path) -> bool {
        let Ok(found) = std::fs::metadata(path) else { return false };
        let same = |own: &Path| std::fs::metadata(own).is_ok_and(|own| is_same(&own, &found));
        let inside = || {
            let (path, state_dir) = (path.canonicalize(), self.state_dir.canonicalize());
            matches!((path, state_dir), (Ok(path), Ok(state_dir)) if path.starts_with(&state_dir))
        };
        let in_state_dir = || {
            let files = std::fs::read_dir(&self.state_dir).into_iter().flatten().flatten();
            files.map(|file| file.path()).any(|file| same(&file))
        };
        self.others.iter().any(|own| same(own)) || inside() || in_state_dir()
    }
}

fn is_same(one: &Metadata, other: &Metadata) -> bool {
    (one.dev(), one.ino()) == (other.dev(), other.ino())
}

#[cfg(test)]
mod tests {
    use super::*;
    use api::NewVolume;

    #[test]
    fn own_files_are_known_by_every_path() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        std::fs::create_dir(at("state")).unwrap();
        for name in ["state/catalog.json", "token", "drive"] {
            std::fs::write(at(name), "x").unwrap();
        }
        std::os::unix::fs::symlink(at("state"), at("elsewhere")).unwrap();
        std::os::unix::fs::symlink(at("token"), at("link")).unwrap();
        std::fs::hard_link(at("state/catalog.json"), at("hard")).unwrap();
        let own = OwnFiles { state_dir: at("elsewhere"), others: vec![at("token")] };
        let raw = |name: &str| {
            let volume = NewVolume {
                name: "v".to_owned(),
                backing: NewBacking::Raw(at(name).display().to_string()),
                size_bytes: None,
                block_bytes: 512,
                write_back: false,
            };
            own.check(&Command::VolumeCreate { volume, dry_run: true }).map_err(|error| error.kind)
        };
        for name in
            ["state/catalog.json", "elsewhere/catalog.json", "hard", "token", "link", "state/../token"]
        {
            assert_eq!(raw(name), Err(CommandErrorKind::InUse), "{name}");
        }
        assert_eq!((raw("drive"), raw("none")), (Ok(()), Ok(())));
    }
}
