//! Which device is to be asked for a drive of the array.
//!
//! ```text
//!   path ─► [health.devices] names one ─► that
//!        └► its block device ─► the whole disk ─► dm of one disk: that disk ─► /dev/sda, /dev/nvme0n1
//!                                             └► anything else: virtual, nobody is asked
//! ```

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

/// Disks behind disks that are looked through.
const DEPTH_MAX: usize = 3;
/// Names of devices that have no health of their own.
const VIRTUAL: [&str; 8] = ["dm-", "md", "loop", "vd", "zram", "nbd", "ublkb", "ram"];

/// Where the system shows its devices. Tests have directories of their own.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Roots {
    pub sys: PathBuf,
    pub dev: PathBuf,
}

impl Default for Roots {
    fn default() -> Roots {
        Roots { sys: "/sys".into(), dev: "/dev".into() }
    }
}

/// What is asked for a drive.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Target {
    Device {
        /// As smartctl names it.
        node: String,
        /// smartctl's `--device`; it finds out by itself where there is none.
        kind: Option<String>,
        /// The directory of the disk in sysfs.
        disk: Option<PathBuf>,
    },
    /// It has no health of its own.
    Virtual,
}

/// `devices`: what the head's file names for a path, a node or `TYPE NODE`.
pub fn target(path: &str, devices: &BTreeMap<String, String>, roots: &Roots) -> Target {
    if let Some(named) = devices.get(path) {
        let (kind, node) = match named.split_once(char::is_whitespace) {
            Some((kind, node)) => (Some(kind.to_owned()), node.trim()),
            None => (None, named.as_str()),
        };
        let disk = device_number(Path::new(node)).and_then(|number| disk_of(&number, roots));
        return Target::Device { node: node.to_owned(), kind, disk };
    }
    match device_number(Path::new(path)).and_then(|number| disk_of(&number, roots)) {
        Some(disk) => of_disk(disk, roots),
        None => Target::Virtual,
    }
}

fn of_disk(disk: PathBuf, roots: &Roots) -> Target {
    let name = name_of(&disk);
    if VIRTUAL.iter().any(|prefix| name.starts_with(prefix)) {
        return Target::Virtual;
    }
    Target::Device {
        node: roots.dev.join(&name).to_string_lossy().into_owned(),
        kind: None,
        disk: Some(disk),
    }
}

fn name_of(disk: &Path) -> String {
    disk.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

/// As `8:16`; none if it is no block device.
fn device_number(path: &Path) -> Option<String> {
    let metadata = fs::metadata(path).ok()?;
    let device = metadata.rdev();
    let (major, minor) = (rustix::fs::major(device), rustix::fs::minor(device));
    metadata.file_type().is_block_device().then(|| format!("{major}:{minor}"))
}

/// The whole disk in sysfs, also if the number is of a partition, or of a mapping of one disk.
fn disk_of(number: &str, roots: &Roots) -> Option<PathBuf> {
    let mut disk = fs::canonicalize(roots.sys.join("dev/block").join(number)).ok()?;
    for _ in 0..DEPTH_MAX {
        if disk.join("partition").exists() {
            disk = disk.parent()?.to_owned();
        }
        if !name_of(&disk).starts_with("dm-") {
            break;
        }
        let mut below = fs::read_dir(disk.join("slaves")).ok()?.flatten();
        let (Some(one), None) = (below.next(), below.next()) else { break };
        disk = fs::canonicalize(one.path()).ok()?;
    }
    if disk.join("partition").exists() {
        disk = disk.parent()?.to_owned();
    }
    Some(disk)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn system() -> (tempfile::TempDir, Roots) {
        let directory = tempfile::tempdir().unwrap();
        let sys = directory.path().join("sys");
        fs::create_dir_all(sys.join("dev/block")).unwrap();
        let roots = Roots { sys, dev: "/dev".into() };
        (directory, roots)
    }

    fn add(roots: &Roots, number: &str, place: &str) -> PathBuf {
        let disk = roots.sys.join("devices").join(place);
        fs::create_dir_all(&disk).unwrap();
        symlink(&disk, roots.sys.join("dev/block").join(number)).unwrap();
        disk
    }

    fn node(number: &str, roots: &Roots) -> Option<String> {
        match of_disk(disk_of(number, roots)?, roots) {
            Target::Device { node, .. } => Some(node),
            Target::Virtual => None,
        }
    }

    #[test]
    fn the_whole_disk_is_asked() {
        let (_directory, roots) = system();
        add(&roots, "8:0", "sda");
        let partition = add(&roots, "8:1", "sda/sda1");
        fs::write(partition.join("partition"), "1").unwrap();
        add(&roots, "259:1", "nvme0/nvme0n1");
        for (number, expected) in [("8:0", "/dev/sda"), ("8:1", "/dev/sda"), ("259:1", "/dev/nvme0n1")] {
            assert_eq!(node(number, &roots).as_deref(), Some(expected));
        }
        assert_eq!(node("8:99", &roots), None);
    }

    #[test]
    fn a_mapping_of_one_disk_is_that_disk() {
        let (_directory, roots) = system();
        let sda = add(&roots, "8:0", "sda");
        let part = add(&roots, "8:1", "sda/sda1");
        fs::write(part.join("partition"), "1").unwrap();
        for (number, name, below) in
            [("253:0", "dm-0", vec![&part]), ("253:1", "dm-1", vec![&part, &sda]), ("253:2", "dm-2", vec![])]
        {
            let disk = add(&roots, number, name);
            fs::create_dir_all(disk.join("slaves")).unwrap();
            for (index, slave) in below.iter().enumerate() {
                symlink(slave, disk.join("slaves").join(index.to_string())).unwrap();
            }
        }
        assert_eq!(node("253:0", &roots).as_deref(), Some("/dev/sda"));
        assert_eq!(node("253:1", &roots), None, "nobody knows which of two");
        assert_eq!(node("253:2", &roots), None);
        // one that is mapped onto itself ends the search
        let round = add(&roots, "253:3", "dm-3");
        fs::create_dir_all(round.join("slaves")).unwrap();
        symlink(&round, round.join("slaves/0")).unwrap();
        assert_eq!(node("253:3", &roots), None);
    }

    #[test]
    fn virtual_disks_and_files_are_not_asked() {
        let (directory, roots) = system();
        for (index, name) in ["vda", "md0", "loop3", "nbd1", "zram0"].iter().enumerate() {
            let number = format!("7:{index}");
            add(&roots, &number, name);
            assert_eq!(node(&number, &roots), None, "{name}");
        }
        let file = directory.path().join("drive.img");
        fs::write(&file, "").unwrap();
        let file = file.to_str().unwrap();
        let none = BTreeMap::new();
        assert_eq!(target(file, &none, &roots), Target::Virtual);
        assert_eq!(target("/no/such/file", &none, &roots), Target::Virtual);
        let named =
            |value: &str| target(file, &BTreeMap::from([(file.to_owned(), value.to_owned())]), &roots);
        let device = |kind: Option<&str>, node: &str| Target::Device {
            node: node.to_owned(),
            kind: kind.map(str::to_owned),
            disk: None,
        };
        assert_eq!(named("/dev/no-such-device"), device(None, "/dev/no-such-device"));
        assert_eq!(named("megaraid,0  /dev/bus/0"), device(Some("megaraid,0"), "/dev/bus/0"));
    }
}
