//! The locate light of a drive's bay, if the enclosure reports one to the kernel (SES-3; `locate` in
//! Documentation/ABI/testing/sysfs-class-enclosure). For other drives, reads make the activity light blink.

use std::path::{Path, PathBuf};
use std::time::Duration;

use api::{Change, CommandError, CommandErrorKind, DriveStep};

const SYSTEM: &str = "/sys/class/block";
const SECONDS_MAX: u32 = 3600;

/// Lights the bay's light for a while; `None` where there is none.
pub fn light(path: &str, seconds: u32) -> Option<Result<Change, CommandError>> {
    let switch = switch_of(Path::new(SYSTEM), Path::new(path))?;
    if !(1..=SECONDS_MAX).contains(&seconds) {
        let message = format!("{seconds} seconds are not possible");
        return Some(Err(CommandError::new(CommandErrorKind::Invalid, message, "give 1 to 3600")));
    }
    // an enclosure that refuses has no light for this bay
    std::fs::write(&switch, "1").ok()?;
    let path = path.to_owned();
    let step = DriveStep::LightBay { drive: path.clone(), seconds, switch: switch.display().to_string() };
    tokio::spawn(async move {
        tokio::time::sleep(Duration::from_secs(seconds.into())).await;
        if let Err(error) = std::fs::write(&switch, "0") {
            tracing::warn!("the light of {path}'s bay cannot be put out: {error}");
        }
    });
    let steps = vec![step.into()];
    Some(Ok(Change { dry_run: false, steps, hosts_affected: Vec::new(), made: None }))
}

/// The file that switches the light of a block device's bay.
fn switch_of(system: &Path, drive: &Path) -> Option<PathBuf> {
    let drive = drive.canonicalize().ok()?;
    let device = system.join(drive.file_name()?).join("device");
    let links = std::fs::read_dir(device).ok()?.filter_map(Result::ok);
    let bay = |name: &str| name.starts_with("enclosure_device:");
    let bays = links.filter(|entry| entry.file_name().to_str().is_some_and(bay));
    bays.map(|entry| entry.path().join("locate")).find(|switch| switch.exists())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_switch_is_found_where_the_enclosure_links_it() {
        let root = tempfile::tempdir().unwrap();
        let drive = root.path().join("sdx");
        std::fs::write(&drive, "").unwrap();
        let system = root.path().join("block");
        assert_eq!(switch_of(&system, &drive), None);
        let bay = system.join("sdx/device/enclosure_device:Slot 07");
        std::fs::create_dir_all(&bay).unwrap();
        assert_eq!(switch_of(&system, &drive), None, "a bay without a light");
        std::fs::write(bay.join("locate"), "0").unwrap();
        assert_eq!(switch_of(&system, &drive), Some(bay.join("locate")));
    }
}
