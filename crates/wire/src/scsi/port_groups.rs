//! Target port groups: data of REPORT TARGET PORT GROUPS (SPC-4 §6.37) and the list of SET TARGET PORT GROUPS (§6.45).

use zerocopy::big_endian::U16;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct GroupLayout {
    /// Bit 7: PREF, bits 3-0: the state.
    state: u8,
    /// Which states can be.
    supported: u8,
    group: U16,
    reserved: u8,
    status: u8,
    vendor_specific: u8,
    ports: u8,
}

#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct SetLayout {
    /// Bits 3-0: the state.
    state: u8,
    reserved: u8,
    group: U16,
}

const _: () = assert!(size_of::<GroupLayout>() == 8 && size_of::<SetLayout>() == 4);

/// Bytes before the descriptors of a SET TARGET PORT GROUPS list.
pub const SET_HEADER_BYTES: usize = 4;
pub const SET_DESCRIPTOR_BYTES: usize = size_of::<SetLayout>();

/// The states of a target port group (SPC-4 table 307).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum PortGroupState {
    ActiveOptimized = 0x0,
    ActiveNonOptimized = 0x1,
    Standby = 0x2,
    Unavailable = 0x3,
    Transitioning = 0xF,
}

impl PortGroupState {
    /// From bits 3-0; `None` for states that are not known here.
    pub fn from_code(code: u8) -> Option<PortGroupState> {
        match code & 0x0F {
            0x0 => Some(PortGroupState::ActiveOptimized),
            0x1 => Some(PortGroupState::ActiveNonOptimized),
            0x2 => Some(PortGroupState::Standby),
            0x3 => Some(PortGroupState::Unavailable),
            0xF => Some(PortGroupState::Transitioning),
            _ => None,
        }
    }
}

/// What changed a group's state last (SPC-4 table 309).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum PortGroupStatus {
    None = 0x0,
    /// SET TARGET PORT GROUPS.
    Explicit = 0x1,
    /// The target by itself.
    Implicit = 0x2,
}

/// One target port group descriptor.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PortGroupRow {
    pub group: u16,
    pub state: PortGroupState,
    pub preferred: bool,
    pub status: PortGroupStatus,
    /// Relative target port identifiers; at most 255.
    pub ports: Vec<u16>,
}

/// T_SUP, U_SUP, S_SUP, AN_SUP and AO_SUP.
const STATES_SUPPORTED: u8 = 0b1000_1111;

/// REPORT TARGET PORT GROUPS data: with the extended header where asked for.
pub fn emit_port_groups(rows: &[PortGroupRow], extended: bool) -> Vec<u8> {
    let mut out = vec![0; 4];
    if extended {
        out.extend_from_slice(&[0x10, 0, 0, 0]);
    }
    for row in rows {
        let ports = &row.ports[..row.ports.len().min(255)];
        let layout = GroupLayout {
            state: u8::from(row.preferred) << 7 | row.state as u8,
            supported: STATES_SUPPORTED,
            group: U16::new(row.group),
            reserved: 0,
            status: row.status as u8,
            vendor_specific: 0,
            ports: ports.len() as u8,
        };
        out.extend_from_slice(layout.as_bytes());
        ports.iter().for_each(|port| out.extend_from_slice(&u32::from(*port).to_be_bytes()));
    }
    let length = u32::try_from(out.len() - 4).expect("port groups are few");
    out[..4].copy_from_slice(&length.to_be_bytes());
    out
}

/// The inverse for data without the extended header.
pub fn parse_port_groups(bytes: &[u8]) -> Option<Vec<PortGroupRow>> {
    let (length, rest) = bytes.split_first_chunk::<4>()?;
    let mut rest = rest.get(..u32::from_be_bytes(*length) as usize)?;
    let mut rows = Vec::new();
    while !rest.is_empty() {
        let (view, next) = GroupLayout::ref_from_prefix(rest).ok()?;
        let state = PortGroupState::from_code(view.state)?;
        let status = match view.status {
            0 => PortGroupStatus::None,
            1 => PortGroupStatus::Explicit,
            2 => PortGroupStatus::Implicit,
            _ => return None,
        };
        let (ports, next) = next.split_at_checked(4 * usize::from(view.ports))?;
        let ports = ports.chunks_exact(4).map(|port| u16::from_be_bytes([port[2], port[3]])).collect();
        let preferred = view.state & 0x80 != 0;
        rows.push(PortGroupRow { group: view.group.get(), state, preferred, status, ports });
        rest = next;
    }
    Some(rows)
}

/// A SET TARGET PORT GROUPS parameter list: groups, and the states they are to have.
pub fn emit_set_port_groups(changes: &[(u16, PortGroupState)]) -> Vec<u8> {
    let mut out = vec![0; SET_HEADER_BYTES];
    for &(group, state) in changes {
        let layout = SetLayout { state: state as u8, reserved: 0, group: U16::new(group) };
        out.extend_from_slice(layout.as_bytes());
    }
    out
}

/// The inverse: for each descriptor the group, and the state's code, known or not. `None` where one is cut short.
pub fn parse_set_port_groups(bytes: &[u8]) -> Option<Vec<(u16, u8)>> {
    if bytes.is_empty() {
        return Some(Vec::new());
    }
    let descriptors = bytes.get(SET_HEADER_BYTES..)?.chunks(SET_DESCRIPTOR_BYTES);
    let one = |bytes| {
        let view = SetLayout::ref_from_bytes(bytes).ok()?;
        Some((view.group.get(), view.state & 0x0F))
    };
    descriptors.map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn golden_bytes() {
        let group = PortGroupRow {
            group: 1,
            state: PortGroupState::ActiveOptimized,
            preferred: true,
            status: PortGroupStatus::Explicit,
            ports: vec![1, 2],
        };
        let bytes = emit_port_groups(std::slice::from_ref(&group), false);
        assert_eq!(bytes, [0, 0, 0, 16, 0x80, 0x8F, 0, 1, 0, 1, 0, 2, 0, 0, 0, 1, 0, 0, 0, 2]);
        assert_eq!(emit_port_groups(&[group], true)[..8], [0, 0, 0, 20, 0x10, 0, 0, 0]);
        let changes = [(2, PortGroupState::Standby), (0x102, PortGroupState::ActiveOptimized)];
        let bytes = emit_set_port_groups(&changes);
        assert_eq!(bytes, [0, 0, 0, 0, 2, 0, 0, 2, 0, 0, 1, 2]);
        assert_eq!(parse_set_port_groups(&bytes), Some(vec![(2, 2), (0x102, 0)]));
        assert_eq!(parse_set_port_groups(&bytes[..11]), None);
        assert_eq!(parse_set_port_groups(&bytes[..3]), None);
        assert_eq!(parse_set_port_groups(&[]), Some(Vec::new()));
    }

    proptest! {
        #[test]
        fn port_groups_come_back(rows in proptest::collection::vec((any::<u16>(), any::<bool>(), proptest::collection::vec(any::<u16>(), 0..5)), 0..5)) {
            let (state, status) = (PortGroupState::Standby, PortGroupStatus::Implicit);
            let rows: Vec<_> = rows.into_iter()
                .map(|(group, preferred, ports)| PortGroupRow { group, state, preferred, status, ports }).collect();
            prop_assert_eq!(parse_port_groups(&emit_port_groups(&rows, false)), Some(rows));
        }

        #[test]
        fn any_bytes_are_read_without_panic(bytes in proptest::collection::vec(any::<u8>(), 0..80)) {
            let _ = (parse_port_groups(&bytes), parse_set_port_groups(&bytes));
        }
    }
}
