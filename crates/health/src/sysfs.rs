//! What the system says of a disk: its temperature (hwmon of NVMe, and `drivetemp` of SATA), and its PCIe link.
//!
//! Reading these files can send a command to the drive, and block as long as that hangs.

use std::fs;
use std::path::{Path, PathBuf};

use api::DriveLink;

/// A temperature, and the thresholds that the drive gives to the kernel.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Heat {
    pub celsius: i16,
    pub celsius_warning: Option<i16>,
    pub celsius_critical: Option<i16>,
}

/// Entries of a directory that are looked at.
const ENTRIES_MAX: usize = 64;

/// `disk`: the directory of a whole disk in sysfs.
pub fn heat(disk: &Path) -> Option<Heat> {
    let device = disk.join("device");
    // beside a controller's attributes, or in a directory of their own; with multipath, below the subsystem's controllers
    let places = [device.join("hwmon"), device.clone()].into_iter().chain(entries(&device, "nvme"));
    let sensor =
        places.flat_map(|place| entries(&place, "hwmon")).find(|place| place.join("temp1_input").exists())?;
    let degrees = |name: &str| {
        let thousandths: i64 = text(&sensor.join(name))?.parse().ok()?;
        i16::try_from(thousandths / 1000).ok()
    };
    let threshold = |name| degrees(name).filter(|celsius| (40..=130).contains(celsius));
    let celsius = degrees("temp1_input").filter(|celsius| (-60..=200).contains(celsius))?;
    Some(Heat { celsius, celsius_warning: threshold("temp1_max"), celsius_critical: threshold("temp1_crit") })
}

/// The link of a disk that is a PCI function of its own.
pub fn link(disk: &Path) -> Option<DriveLink> {
    let function = fs::canonicalize(disk.join("device/device")).ok()?;
    let (width, megatransfers) = state(&function, "current")?;
    let own = state(&function, "max")?;
    // what the slot cannot do is no fault of the link
    let slot = function.parent().and_then(|port| state(port, "max")).unwrap_or(own);
    Some(DriveLink {
        width,
        width_max: own.0.min(slot.0),
        megatransfers,
        megatransfers_max: own.1.min(slot.1),
    })
}

fn state(function: &Path, which: &str) -> Option<(u8, u32)> {
    let width: u8 = text(&function.join(format!("{which}_link_width")))?.parse().ok()?;
    // as `16.0 GT/s PCIe`; a link that is down is `Unknown`
    let speed = text(&function.join(format!("{which}_link_speed")))?;
    let speed: f64 = speed.split_once(" GT/s")?.0.parse().ok()?;
    let is_link = (1..=32).contains(&width) && (1.0..1000.0).contains(&speed);
    is_link.then(|| (width, (speed * 1000.0).round() as u32))
}

fn entries(directory: &Path, prefix: &str) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(directory) else { return Vec::new() };
    let of =
        entries.flatten().filter(|entry| entry.file_name().as_encoded_bytes().starts_with(prefix.as_bytes()));
    let mut paths: Vec<PathBuf> = of.take(ENTRIES_MAX).map(|entry| entry.path()).collect();
    paths.sort();
    paths
}

fn text(path: &Path) -> Option<String> {
    base::text::printable(&fs::read(path).ok()?, 64)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn write(root: &Path, files: &[(&str, &str)]) {
        for (name, content) in files {
            let path = root.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content).unwrap();
        }
    }

    #[test]
    fn heat_is_where_kernels_put_it() {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path();
        let files = [
            ("nvme0n1/device/hwmon3/temp1_input", "41850\n"),
            ("nvme0n1/device/hwmon3/temp1_max", "69850\n"),
            ("nvme0n1/device/hwmon3/temp1_crit", "79850\n"),
            ("sda/device/hwmon/hwmon1/temp1_input", "33000\n"),
            ("sda/device/hwmon/hwmon1/temp1_max", "0\n"),
            ("nvme1n1/device/nvme1/hwmon4/temp1_input", "50000\n"),
            ("sdb/device/hwmon/hwmon2/temp1_input", "rubbish\n"),
        ];
        write(root, &files);
        let of = |name: &str| heat(&root.join(name));
        let known = |celsius, celsius_warning, celsius_critical| {
            Some(Heat { celsius, celsius_warning, celsius_critical })
        };
        assert_eq!(of("nvme0n1"), known(41, Some(69), Some(79)));
        assert_eq!(of("sda"), known(33, None, None));
        assert_eq!(of("nvme1n1"), known(50, None, None));
        assert_eq!((of("sdb"), of("sdc")), (None, None));
    }

    #[test]
    fn a_link_is_compared_with_what_drive_and_slot_can() {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path();
        let files = [
            ("port/max_link_width", "4\n"),
            ("port/max_link_speed", "16.0 GT/s PCIe\n"),
            ("port/drive/current_link_width", "2\n"),
            ("port/drive/current_link_speed", "8.0 GT/s PCIe\n"),
            ("port/drive/max_link_width", "4\n"),
            ("port/drive/max_link_speed", "32.0 GT/s PCIe\n"),
            ("nvme0n1/device/name", ""),
        ];
        write(root, &files);
        let disk = root.join("nvme0n1");
        symlink(root.join("port/drive"), disk.join("device/device")).unwrap();
        let slow = link(&disk).unwrap();
        assert_eq!(
            slow,
            DriveLink { width: 2, width_max: 4, megatransfers: 8_000, megatransfers_max: 16_000 }
        );
        assert_eq!(
            (slow.to_string().as_str(), slow.is_slow()),
            ("x2 8.0 GT/s; drive and slot can x4 16.0 GT/s", true)
        );
        write(
            root,
            &[("port/drive/current_link_width", "4"), ("port/drive/current_link_speed", "16.0 GT/s PCIe")],
        );
        assert!(!link(&disk).unwrap().is_slow(), "the slot can no more");
        write(root, &[("port/drive/current_link_speed", "Unknown\n")]);
        assert_eq!(link(&disk), None);
    }
}
