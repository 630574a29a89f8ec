//! What sysfs reports about a block device: write cache, model, serial number, bay.

use std::path::{Path, PathBuf};

use base::text::printable;

/// Longest model or serial number we take.
const TEXT_BYTES_MAX: usize = 64;

#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Description {
    pub volatile_cache: bool,
    pub model: String,
    pub serial: String,
    /// What the enclosure calls the slot that it is in, or the PCI slot's name.
    pub bay: String,
}

/// Describes the block device with this device number. What cannot be found out is empty, and a cache of which
/// nothing is known is taken to be volatile.
pub fn describe(device: u64) -> Description {
    let (major, minor) = (libc::major(device), libc::minor(device));
    let directory = PathBuf::from(format!("/sys/dev/block/{major}:{minor}"));
    // resolved, because a partition's parent is the directory above the real one
    let directory = std::fs::canonicalize(&directory).unwrap_or(directory);
    describe_directory(&directory, Path::new("/sys/bus/pci/slots"))
}

/// Whether the block device with this device number refuses to be opened for writing.
pub fn is_write_protected(device: u64) -> bool {
    let (major, minor) = (libc::major(device), libc::minor(device));
    let path = format!("/sys/dev/block/{major}:{minor}/ro");
    read_text(Path::new(&path)).as_deref() == Some("1")
}

fn describe_directory(directory: &Path, pci_slots: &Path) -> Description {
    let disk =
        if directory.join("partition").exists() { directory.join("..") } else { directory.to_path_buf() };
    let text = |names: &[&str]| names.iter().find_map(|name| read_text(&disk.join(name))).unwrap_or_default();
    let mut serial = text(&["serial", "device/serial"]);
    if serial.is_empty() {
        serial = std::fs::read(disk.join("device/vpd_pg80"))
            .ok()
            .and_then(|page| serial_of(&page))
            .unwrap_or_default();
    }
    Description {
        volatile_cache: read_text(&disk.join("queue/write_cache")).as_deref() != Some("write through"),
        model: text(&["device/model"]),
        serial,
        bay: enclosure_slot(&disk).or_else(|| pci_slot(&disk, pci_slots)).unwrap_or_default(),
    }
}

/// SES enclosures link a disk to its slot: a number if the enclosure counts them, else the element's name.
fn enclosure_slot(disk: &Path) -> Option<String> {
    let entries = std::fs::read_dir(disk.join("device")).ok()?.flatten();
    let link = entries.map(|entry| entry.path()).find(|path| {
        path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"enclosure_device:"))
    })?;
    let name = || clean(link.file_name()?.as_encoded_bytes().splitn(2, |&byte| byte == b':').nth(1)?);
    read_text(&link.join("slot")).or_else(name)
}

/// An NVMe drive is a PCI function of its own: of the slot with its address.
fn pci_slot(disk: &Path, slots: &Path) -> Option<String> {
    let address = read_text(&disk.join("device/address"))?;
    let (device, _function) = address.rsplit_once('.')?;
    let mut entries = std::fs::read_dir(slots).ok()?.flatten();
    let slot = entries.find(|slot| read_text(&slot.path().join("address")).as_deref() == Some(device))?;
    clean(slot.file_name().as_encoded_bytes())
}

/// The unit serial number VPD page, SPC-4 §7.8.18: four bytes, the last two the length, then the number.
fn serial_of(page: &[u8]) -> Option<String> {
    let length = usize::from(u16::from_be_bytes([*page.get(2)?, *page.get(3)?]));
    clean(page.get(4..4 + length)?)
}

fn read_text(path: &Path) -> Option<String> {
    clean(&std::fs::read(path).ok()?)
}

fn clean(bytes: &[u8]) -> Option<String> {
    printable(bytes, TEXT_BYTES_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::TempDirectory;

    #[test]
    fn a_disk_and_its_partition_are_described_alike() {
        let directory = TempDirectory::new("sysfs");
        let disk = directory.path().join("sda");
        for (name, content) in [
            ("queue/write_cache", &b"write through\n"[..]),
            ("device/model", b"Fast SSD      \n"),
            ("device/vpd_pg80", b"\x00\x80\x00\x06 S-123"),
            ("sda1/partition", b"1\n"),
        ] {
            let path = disk.join(name);
            std::fs::create_dir_all(path.parent().expect("a file is in a directory")).expect("made");
            std::fs::write(path, content).expect("written");
        }
        let expected =
            Description { model: "Fast SSD".to_owned(), serial: "S-123".to_owned(), ..Default::default() };
        assert_eq!(describe_directory(&disk, directory.path()), expected);
        assert_eq!(describe_directory(&disk.join("sda1"), directory.path()), expected);
        std::fs::write(disk.join("serial"), "first choice").expect("written");
        std::fs::write(disk.join("queue/write_cache"), "write back\n").expect("written");
        let described = describe_directory(&disk, directory.path());
        assert_eq!((described.volatile_cache, described.serial.as_str()), (true, "first choice"));
    }

    #[test]
    fn a_bay_is_what_the_enclosure_or_the_pci_slot_calls_it() {
        let directory = TempDirectory::new("bays");
        let write = |name: &str, content: &str| {
            let path = directory.path().join(name);
            std::fs::create_dir_all(path.parent().expect("a file is in a directory")).expect("made");
            std::fs::write(path, content).expect("written");
        };
        write("sda/device/enclosure_device:Slot 07/slot", "7\n");
        write("sdb/device/enclosure_device:ArrayDevice0A/active", "1\n");
        write("nvme0n1/device/address", "0000:03:00.0\n");
        write("nvme1n1/device/address", "0000:05:00.0\n");
        write("slots/12/address", "0000:03:00\n");
        let slots = directory.path().join("slots");
        let bay = |disk: &str| describe_directory(&directory.path().join(disk), &slots).bay;
        let bays = ["sda", "sdb", "nvme0n1", "nvme1n1", "sdz"].map(bay);
        assert_eq!(bays, ["7", "ArrayDevice0A", "12", "", ""]);
    }

    #[test]
    fn an_unknown_device_has_a_volatile_cache() {
        let expected = Description { volatile_cache: true, ..Default::default() };
        assert_eq!(describe_directory(Path::new("/nonexistent"), Path::new("/nonexistent")), expected);
    }

    #[test]
    fn serial_pages_that_lie_are_ignored() {
        assert_eq!(serial_of(b"\x00\x80\x00\x20short"), None);
        assert_eq!(serial_of(b"\x00\x80"), None);
        assert_eq!(serial_of(b"\x00\x80\x00\x00"), None);
    }
}
