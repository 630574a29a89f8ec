//! Persistent reservations (SPC-4 §6.15, §6.16) and the names of initiator ports in them (SPC-4 §7.6.4.6).
//!
//! ```text
//!   PERSISTENT RESERVE OUT   0 key 8 │ 8 service action key 8 │ 16 4 obsolete │ 20 flags │ 21 3 reserved │ 24 TransportIDs
//!   REGISTER AND MOVE        0 key 8 │ 8 service action key 8 │ 16 reserved │ 17 flags │ 18 port 2 │ 20 length 4 │ 24 TransportID
//! ```

/// PERSISTENT RESERVATION TYPE (SPC-4 table 199). The scope is always the logical unit.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(u8)]
pub enum ReservationType {
    WriteExclusive = 1,
    ExclusiveAccess = 3,
    WriteExclusiveRegistrantsOnly = 5,
    ExclusiveAccessRegistrantsOnly = 6,
    WriteExclusiveAllRegistrants = 7,
    ExclusiveAccessAllRegistrants = 8,
}

impl ReservationType {
    pub const ALL: [ReservationType; 6] = [
        ReservationType::WriteExclusive,
        ReservationType::ExclusiveAccess,
        ReservationType::WriteExclusiveRegistrantsOnly,
        ReservationType::ExclusiveAccessRegistrantsOnly,
        ReservationType::WriteExclusiveAllRegistrants,
        ReservationType::ExclusiveAccessAllRegistrants,
    ];

    pub const fn code(self) -> u8 {
        self as u8
    }

    pub fn from_code(code: u8) -> Option<ReservationType> {
        ReservationType::ALL.into_iter().find(|kind| kind.code() == code)
    }
}

/// An iSCSI TransportID.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum TransportId {
    /// Every port of the initiator of this name (format 00b).
    Device(String),
    /// The initiator port of this name, `<iSCSI name>,i,0x<ISID>` with twelve hexadecimal digits (format 01b).
    Port(String),
}

/// PROTOCOL IDENTIFIER 5h, iSCSI.
const PROTOCOL: u8 = 0x05;
const FORMAT_PORT: u8 = 0x40;
const SEPARATOR: &str = ",i,0x";

/// The name of an iSCSI initiator port (RFC 7143 §4.3).
pub fn initiator_port_name(name: &str, isid: [u8; 6]) -> String {
    format!("{}{SEPARATOR}{}", name.to_ascii_lowercase(), base::hex::of(&isid))
}

impl TransportId {
    pub fn emit(&self) -> Vec<u8> {
        let (format, name) = match self {
            TransportId::Device(name) => (0, name),
            TransportId::Port(name) => (FORMAT_PORT, name),
        };
        // with a terminating zero, a multiple of four, 24 bytes in all at least
        let padded = (name.len() + 1).next_multiple_of(4).max(20);
        let mut out = vec![format | PROTOCOL, 0];
        out.extend_from_slice(&u16::try_from(padded).expect("a name is short").to_be_bytes());
        out.extend_from_slice(name.as_bytes());
        out.resize(4 + padded, 0);
        out
    }

    /// The first TransportID and what follows it; `None` where it is cut short, of another transport, or no
    /// name. Names are given in lower case, the ISID with all its digits.
    pub fn parse(bytes: &[u8]) -> Option<(TransportId, &[u8])> {
        let (head, rest) = bytes.split_first_chunk::<4>()?;
        let length = usize::from(u16::from_be_bytes([head[2], head[3]]));
        let (name, next) = rest.split_at_checked(length)?;
        if !length.is_multiple_of(4) || length < 20 || head[0] & 0x0F != PROTOCOL {
            return None;
        }
        let end = name.iter().position(|&byte| byte == 0)?;
        let name = std::str::from_utf8(&name[..end]).ok().filter(|name| !name.is_empty())?;
        let id = match head[0] & 0xC0 {
            0 if !name.contains(',') => TransportId::Device(name.to_ascii_lowercase()),
            FORMAT_PORT => {
                let (name, isid) = name.split_once(SEPARATOR)?;
                let digits = isid.len() <= 12 && isid.bytes().all(|digit| digit.is_ascii_hexdigit());
                let isid = u64::from_str_radix(isid, 16).ok().filter(|_| digits && !name.is_empty())?;
                let isid = isid.to_be_bytes();
                TransportId::Port(initiator_port_name(name, isid[2..].try_into().ok()?))
            }
            _ => return None,
        };
        Some((id, next))
    }
}

/// The parameter list of every PERSISTENT RESERVE OUT but REGISTER AND MOVE (SPC-4 §6.16.3).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ReserveOutList {
    pub key: u64,
    pub service_action_key: u64,
    /// SPEC_I_PT.
    pub specify_initiator_ports: bool,
    /// ALL_TG_PT.
    pub all_target_ports: bool,
    /// APTPL.
    pub persist: bool,
}

/// Both forms of the parameter list have this much before any TransportID.
pub const RESERVE_OUT_BYTES: usize = 24;

fn word(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_be_bytes(bytes.get(at..at + 8)?.try_into().ok()?))
}

fn half(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_be_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

impl ReserveOutList {
    pub fn emit(&self, transport_ids: &[TransportId]) -> Vec<u8> {
        let mut out = [self.key.to_be_bytes(), self.service_action_key.to_be_bytes()].concat();
        let flags = u8::from(self.specify_initiator_ports) << 3
            | u8::from(self.all_target_ports) << 2
            | u8::from(self.persist);
        out.extend_from_slice(&[0, 0, 0, 0, flags, 0, 0, 0]);
        if self.specify_initiator_ports {
            let ids: Vec<u8> = transport_ids.iter().flat_map(TransportId::emit).collect();
            out.extend_from_slice(&(ids.len() as u32).to_be_bytes());
            out.extend_from_slice(&ids);
        }
        out
    }

    /// `None` where the list is cut short.
    pub fn parse(bytes: &[u8]) -> Option<ReserveOutList> {
        let flags = *bytes.get(20..RESERVE_OUT_BYTES)?.first()?;
        Some(ReserveOutList {
            key: word(bytes, 0)?,
            service_action_key: word(bytes, 8)?,
            specify_initiator_ports: flags & 0x08 != 0,
            all_target_ports: flags & 0x04 != 0,
            persist: flags & 0x01 != 0,
        })
    }

    /// The TransportIDs that follow; `None` where one is no such, or the list is cut short or too long.
    pub fn transport_ids(bytes: &[u8]) -> Option<Vec<TransportId>> {
        let length = half(bytes, RESERVE_OUT_BYTES)? as usize;
        let mut rest = bytes.get(RESERVE_OUT_BYTES + 4..)?;
        if rest.len() != length {
            return None;
        }
        let mut ids = Vec::new();
        while !rest.is_empty() {
            let (id, next) = TransportId::parse(rest)?;
            ids.push(id);
            rest = next;
        }
        Some(ids)
    }
}

/// The parameter list of REGISTER AND MOVE (SPC-4 §6.16.4).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MoveList {
    pub key: u64,
    pub service_action_key: u64,
    pub unregister: bool,
    pub persist: bool,
    pub relative_port: u16,
    /// `None` where it is no TransportID of this transport.
    pub transport_id: Option<TransportId>,
}

impl MoveList {
    pub fn emit(&self) -> Vec<u8> {
        let mut out = [self.key.to_be_bytes(), self.service_action_key.to_be_bytes()].concat();
        out.extend_from_slice(&[0, u8::from(self.unregister) << 1 | u8::from(self.persist)]);
        out.extend_from_slice(&self.relative_port.to_be_bytes());
        let id = self.transport_id.as_ref().map_or(Vec::new(), TransportId::emit);
        out.extend_from_slice(&(id.len() as u32).to_be_bytes());
        out.extend_from_slice(&id);
        out
    }

    /// `None` where the list's length is not what it says.
    pub fn parse(bytes: &[u8]) -> Option<MoveList> {
        let (length, rest) = (half(bytes, 20)? as usize, bytes.get(RESERVE_OUT_BYTES..)?);
        if rest.len() != length {
            return None;
        }
        let transport_id = TransportId::parse(rest).filter(|(_, rest)| rest.is_empty()).map(|(id, _)| id);
        Some(MoveList {
            key: word(bytes, 0)?,
            service_action_key: word(bytes, 8)?,
            unregister: bytes[17] & 0x02 != 0,
            persist: bytes[17] & 0x01 != 0,
            relative_port: u16::from_be_bytes([bytes[18], bytes[19]]),
            transport_id,
        })
    }
}

/// READ KEYS data (SPC-4 §6.15.2).
pub fn emit_keys(generation: u32, keys: &[u64]) -> Vec<u8> {
    let mut out = generation.to_be_bytes().to_vec();
    out.extend_from_slice(&(8 * keys.len() as u32).to_be_bytes());
    keys.iter().for_each(|key| out.extend_from_slice(&key.to_be_bytes()));
    out
}

/// The generation and the keys; `None` where the data is cut short.
pub fn parse_keys(bytes: &[u8]) -> Option<(u32, Vec<u64>)> {
    let keys = bytes.get(8..)?.get(..half(bytes, 4)? as usize)?;
    let key = |bytes: &[u8]| Some(u64::from_be_bytes(bytes.try_into().ok()?));
    Some((half(bytes, 0)?, keys.chunks_exact(8).map(key).collect::<Option<_>>()?))
}

/// READ RESERVATION data (SPC-4 §6.15.3); the key is zero for all-registrants types.
pub fn emit_reservation(generation: u32, held: Option<(u64, ReservationType)>) -> Vec<u8> {
    let mut out = generation.to_be_bytes().to_vec();
    let Some((key, kind)) = held else {
        out.extend_from_slice(&[0; 4]);
        return out;
    };
    out.extend_from_slice(&16u32.to_be_bytes());
    out.extend_from_slice(&key.to_be_bytes());
    out.extend_from_slice(&[0, 0, 0, 0, 0, kind.code(), 0, 0]);
    out
}

/// The generation, and key and type where one is held; `None` where the data is cut short.
pub fn parse_reservation(bytes: &[u8]) -> Option<(u32, Option<(u64, ReservationType)>)> {
    let generation = half(bytes, 0)?;
    if half(bytes, 4)? == 0 {
        return Some((generation, None));
    }
    let kind = ReservationType::from_code(bytes.get(21)? & 0x0F)?;
    Some((generation, Some((word(bytes, 8)?, kind))))
}

/// REPORT CAPABILITIES data (SPC-4 §6.15.4): all types, CRH, SIP_C, ATP_C, and PTPL_C where `can_persist`; TEST
/// UNIT READY passes every reservation.
pub fn emit_capabilities(can_persist: bool, persists: bool) -> [u8; 8] {
    const CRH: u8 = 0x10;
    const SIP_C: u8 = 0x08;
    const ATP_C: u8 = 0x04;
    const TMV: u8 = 0x80;
    const ALLOW_COMMANDS: u8 = 0b010 << 4;
    let capable = CRH | SIP_C | ATP_C | u8::from(can_persist);
    [0, 8, capable, TMV | ALLOW_COMMANDS | u8::from(persists), 0xEA, 0x01, 0, 0]
}

/// One registration in READ FULL STATUS data.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FullStatus {
    pub key: u64,
    /// The type, where this registration holds the reservation.
    pub holds: Option<ReservationType>,
    pub relative_port: u16,
    pub transport_id: TransportId,
}

/// READ FULL STATUS data (SPC-4 §6.15.5).
pub fn emit_full_status(generation: u32, rows: &[FullStatus]) -> Vec<u8> {
    let mut body = Vec::new();
    for row in rows {
        body.extend_from_slice(&row.key.to_be_bytes());
        let kind = row.holds.map_or(0, ReservationType::code);
        body.extend_from_slice(&[0, 0, 0, 0, u8::from(row.holds.is_some()), kind, 0, 0, 0, 0]);
        body.extend_from_slice(&row.relative_port.to_be_bytes());
        let id = row.transport_id.emit();
        body.extend_from_slice(&(id.len() as u32).to_be_bytes());
        body.extend_from_slice(&id);
    }
    [&generation.to_be_bytes(), &(body.len() as u32).to_be_bytes(), &body[..]].concat()
}

/// The inverse; `None` where it is cut short or not ours.
pub fn parse_full_status(bytes: &[u8]) -> Option<(u32, Vec<FullStatus>)> {
    let generation = half(bytes, 0)?;
    let mut rest = bytes.get(8..)?.get(..half(bytes, 4)? as usize)?;
    let mut rows = Vec::new();
    while !rest.is_empty() {
        let (head, next) = rest.split_at_checked(24)?;
        let (id, next) = next.split_at_checked(half(head, 20)? as usize)?;
        let holds = if head[12] & 1 != 0 { Some(ReservationType::from_code(head[13] & 0x0F)?) } else { None };
        let relative_port = u16::from_be_bytes([head[18], head[19]]);
        rows.push(FullStatus {
            key: word(head, 0)?,
            holds,
            relative_port,
            transport_id: TransportId::parse(id)?.0,
        });
        rest = next;
    }
    Some((generation, rows))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn port() -> TransportId {
        TransportId::Port(initiator_port_name("IQN.2026-01.a:b", [0, 2, 0x3D, 0, 0, 1]))
    }

    #[test]
    fn golden_bytes() {
        let id = port().emit();
        assert_eq!(id[..4], [0x45, 0, 0, 36]);
        assert_eq!(id[4..], *b"iqn.2026-01.a:b,i,0x00023d000001\0\0\0\0");
        assert_eq!(TransportId::Device("a".into()).emit().len(), 24);
        let short = [&[0x45, 0, 0, 20][..], b"iqn.A,i,0x1\0\0\0\0\0\0\0\0\0"].concat();
        let parsed = TransportId::parse(&short).unwrap().0;
        assert_eq!(parsed, TransportId::Port("iqn.a,i,0x000000000001".into()));
        assert_eq!(emit_keys(2, &[0xAB]), [0, 0, 0, 2, 0, 0, 0, 8, 0, 0, 0, 0, 0, 0, 0, 0xAB]);
        let held = emit_reservation(1, Some((7, ReservationType::ExclusiveAccess)));
        assert_eq!(held[4..], [0, 0, 0, 16, 0, 0, 0, 0, 0, 0, 0, 7, 0, 0, 0, 0, 0, 3, 0, 0]);
        assert_eq!(emit_reservation(1, None), [0, 0, 0, 1, 0, 0, 0, 0]);
        assert_eq!(emit_capabilities(true, false), [0, 8, 0x1D, 0xA0, 0xEA, 0x01, 0, 0]);
        let list = ReserveOutList {
            key: 1,
            service_action_key: 2,
            specify_initiator_ports: false,
            all_target_ports: true,
            persist: true,
        };
        assert_eq!(list.emit(&[])[16..], [0, 0, 0, 0, 5, 0, 0, 0]);
    }

    proptest! {
        #[test]
        fn parse_inverts_emit(key: u64, action: u64, flags: [bool; 3], names in proptest::collection::vec(("[a-z0-9.:-]{1,100}", any::<[u8; 6]>(), any::<bool>()), 0..5)) {
            let ids: Vec<TransportId> = names.iter().map(|(name, isid, device)| {
                if *device { TransportId::Device(name.clone()) } else { TransportId::Port(initiator_port_name(name, *isid)) }
            }).collect();
            let list = ReserveOutList { key, service_action_key: action, specify_initiator_ports: flags[0], all_target_ports: flags[1], persist: flags[2] };
            let bytes = list.emit(&ids);
            prop_assert_eq!(ReserveOutList::parse(&bytes), Some(list));
            if flags[0] {
                prop_assert_eq!(ReserveOutList::transport_ids(&bytes), Some(ids.clone()));
            }
            for id in ids {
                let list = MoveList { key, service_action_key: action, unregister: flags[0], persist: flags[1], relative_port: 7, transport_id: Some(id.clone()) };
                prop_assert_eq!(MoveList::parse(&list.emit()), Some(list));
                let row = FullStatus { key, holds: flags[2].then_some(ReservationType::WriteExclusive), relative_port: 2, transport_id: id };
                prop_assert_eq!(parse_full_status(&emit_full_status(3, std::slice::from_ref(&row))), Some((3, vec![row])));
            }
            prop_assert_eq!(parse_keys(&emit_keys(9, &[key, action])), Some((9, vec![key, action])));
        }

        #[test]
        fn any_bytes_are_read_without_panic(bytes in proptest::collection::vec(any::<u8>(), 0..120)) {
            let _ = (ReserveOutList::parse(&bytes), ReserveOutList::transport_ids(&bytes), MoveList::parse(&bytes));
            let _ = (TransportId::parse(&bytes), parse_keys(&bytes), parse_reservation(&bytes), parse_full_status(&bytes));
        }
    }
}
