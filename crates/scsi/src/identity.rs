//! The identity of a logical unit, and the ports through which hosts reach it.
//!
//! The caller computes all of it from ids that are unique by construction and never change.

/// T10 vendor identification of every logical unit.
pub const VENDOR: [u8; 8] = *b"TANGELO ";
/// Product identification: the same on all logical units, or ESXi would not offload copies between them.
pub const PRODUCT: [u8; 16] = *b"VOLUME          ";

/// What identifies a logical unit for ever, on every path.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Identity {
    /// NAA IEEE Registered Extended designator: the first nibble is 6 (SPC-4 §7.8.6.6.5).
    pub naa: [u8; 16],
    /// Unit serial number (VPD page 80h): printable ASCII, at most 64 bytes.
    pub serial: String,
    /// Product revision level, padded with spaces.
    pub revision: [u8; 4],
}

/// A target port: an iSCSI portal group of the target.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TargetPort {
    /// Relative target port identifier, from 1, unique in the target device.
    pub relative_id: u16,
    /// The group it belongs to.
    pub group: u16,
    /// SCSI name string of the port: for iSCSI `<target name>,t,0x<portal group tag>`.
    pub name: String,
}

/// The target device: its name and all its ports.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Target {
    /// SCSI name string of the device: for iSCSI the target name.
    pub name: String,
    pub ports: Vec<TargetPort>,
}

impl Target {
    /// The group of a port; `None` for a port that is not of this target.
    pub fn group_of(&self, relative_id: u16) -> Option<u16> {
        self.ports.iter().find(|port| port.relative_id == relative_id).map(|port| port.group)
    }

    /// All groups, ascending, each once.
    pub fn groups(&self) -> Vec<u16> {
        let mut groups: Vec<u16> = self.ports.iter().map(|port| port.group).collect();
        groups.sort_unstable();
        groups.dedup();
        groups
    }
}
