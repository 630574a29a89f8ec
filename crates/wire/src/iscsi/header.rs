//! The parts that all PDUs share (RFC 7143 §11.2): opcode, lengths, tags, padding, reject reasons.

use zerocopy::big_endian::U32;

/// The basic header segment (BHS).
pub const HEADER_BYTES: usize = 48;
pub type Header = [u8; HEADER_BYTES];

/// A task tag that names nothing (RFC 7143 §11.2.1.8).
pub const RESERVED_TAG: u32 = 0xFFFF_FFFF;

/// RFC 7143 §11.2.1.2.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Opcode {
    NopOut = 0x00,
    ScsiCommand = 0x01,
    TaskManagementRequest = 0x02,
    LoginRequest = 0x03,
    TextRequest = 0x04,
    DataOut = 0x05,
    LogoutRequest = 0x06,
    Snack = 0x10,
    NopIn = 0x20,
    ScsiResponse = 0x21,
    TaskManagementResponse = 0x22,
    LoginResponse = 0x23,
    TextResponse = 0x24,
    DataIn = 0x25,
    LogoutResponse = 0x26,
    R2t = 0x31,
    AsyncMessage = 0x32,
    Reject = 0x3f,
}

impl Opcode {
    pub const ALL: [Opcode; 18] = [
        Opcode::NopOut,
        Opcode::ScsiCommand,
        Opcode::TaskManagementRequest,
        Opcode::LoginRequest,
        Opcode::TextRequest,
        Opcode::DataOut,
        Opcode::LogoutRequest,
        Opcode::Snack,
        Opcode::NopIn,
        Opcode::ScsiResponse,
        Opcode::TaskManagementResponse,
        Opcode::LoginResponse,
        Opcode::TextResponse,
        Opcode::DataIn,
        Opcode::LogoutResponse,
        Opcode::R2t,
        Opcode::AsyncMessage,
        Opcode::Reject,
    ];

    /// The opcode of a header; None: reserved or vendor-specific.
    pub fn of(header: &Header) -> Option<Opcode> {
        Some(match header[0] & 0x3f {
            0x00 => Opcode::NopOut,
            0x01 => Opcode::ScsiCommand,
            0x02 => Opcode::TaskManagementRequest,
            0x03 => Opcode::LoginRequest,
            0x04 => Opcode::TextRequest,
            0x05 => Opcode::DataOut,
            0x06 => Opcode::LogoutRequest,
            0x10 => Opcode::Snack,
            0x20 => Opcode::NopIn,
            0x21 => Opcode::ScsiResponse,
            0x22 => Opcode::TaskManagementResponse,
            0x23 => Opcode::LoginResponse,
            0x24 => Opcode::TextResponse,
            0x25 => Opcode::DataIn,
            0x26 => Opcode::LogoutResponse,
            0x31 => Opcode::R2t,
            0x32 => Opcode::AsyncMessage,
            0x3f => Opcode::Reject,
            _ => return None,
        })
    }
}

/// The I bit: the request bypasses command ordering (RFC 7143 §11.2.1.1).
pub fn is_immediate(header: &Header) -> bool {
    header[0] & IMMEDIATE != 0
}

/// The initiator task tag, at the same place in every PDU that has one.
pub fn task_tag(header: &Header) -> u32 {
    u32::from_be_bytes([header[16], header[17], header[18], header[19]])
}

/// Bytes that fill `length` up to a multiple of four (RFC 7143 §11.1).
pub fn padding(length: usize) -> usize {
    length.wrapping_neg() & 3
}

/// How long the rest of a PDU is (RFC 7143 §11.2.1.5, §11.2.1.6).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Lengths {
    /// All additional header segments, at most 1020 bytes.
    pub additional_headers: usize,
    /// The data segment without padding, at most 2^24 - 1 bytes.
    pub data: usize,
}

impl Lengths {
    pub fn of(header: &Header) -> Lengths {
        Lengths {
            additional_headers: usize::from(header[4]) * 4,
            data: usize::from(header[5]) << 16 | usize::from(header[6]) << 8 | usize::from(header[7]),
        }
    }

    /// A PDU with data only. Panics where the data cannot be named in 24 bits.
    pub fn data(data: usize) -> Lengths {
        assert!(data < 1 << 24, "a data segment longer than its length field");
        Lengths { additional_headers: 0, data }
    }

    pub(super) fn emit(self) -> [u8; 4] {
        assert!(self.data < 1 << 24 && self.additional_headers <= 1020 && self.additional_headers & 3 == 0);
        let data = (self.data as u32).to_be_bytes();
        [(self.additional_headers / 4) as u8, data[1], data[2], data[3]]
    }
}

/// The three numbers in every PDU from a target (RFC 7143 §4.2.2).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Numbers {
    pub stat_sn: u32,
    pub exp_cmd_sn: u32,
    pub max_cmd_sn: u32,
}

/// Layout of [`Numbers`].
#[derive(
    Clone,
    Copy,
    zerocopy::FromBytes,
    zerocopy::IntoBytes,
    zerocopy::KnownLayout,
    zerocopy::Immutable,
    zerocopy::Unaligned,
)]
#[repr(C)]
pub(super) struct NumbersLayout {
    stat_sn: U32,
    exp_cmd_sn: U32,
    max_cmd_sn: U32,
}

impl From<Numbers> for NumbersLayout {
    fn from(n: Numbers) -> NumbersLayout {
        NumbersLayout {
            stat_sn: n.stat_sn.into(),
            exp_cmd_sn: n.exp_cmd_sn.into(),
            max_cmd_sn: n.max_cmd_sn.into(),
        }
    }
}

impl From<NumbersLayout> for Numbers {
    fn from(n: NumbersLayout) -> Numbers {
        Numbers { stat_sn: n.stat_sn.get(), exp_cmd_sn: n.exp_cmd_sn.get(), max_cmd_sn: n.max_cmd_sn.get() }
    }
}

/// Why a PDU is refused (RFC 7143 §11.17.1).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum RejectReason {
    DataDigestError = 0x02,
    SnackReject = 0x03,
    ProtocolError = 0x04,
    CommandNotSupported = 0x05,
    TooManyImmediateCommands = 0x06,
    TaskInProgress = 0x07,
    InvalidDataAck = 0x08,
    InvalidPduField = 0x09,
    OutOfResources = 0x0a,
    WaitingForLogout = 0x0c,
}

impl RejectReason {
    pub const ALL: [RejectReason; 10] = [
        RejectReason::DataDigestError,
        RejectReason::SnackReject,
        RejectReason::ProtocolError,
        RejectReason::CommandNotSupported,
        RejectReason::TooManyImmediateCommands,
        RejectReason::TaskInProgress,
        RejectReason::InvalidDataAck,
        RejectReason::InvalidPduField,
        RejectReason::OutOfResources,
        RejectReason::WaitingForLogout,
    ];

    pub fn from_code(code: u8) -> Option<RejectReason> {
        RejectReason::ALL.into_iter().find(|&reason| reason as u8 == code)
    }
}

pub(super) const IMMEDIATE: u8 = 0x40;
pub(super) const FINAL: u8 = 0x80;

/// Byte 0 of a request.
pub(super) fn opcode_byte(opcode: Opcode, immediate: bool) -> u8 {
    opcode as u8 | if immediate { IMMEDIATE } else { 0 }
}

pub(super) fn flag(set: bool, bit: u8) -> u8 {
    if set { bit } else { 0 }
}

/// Declares a header layout: 48 bytes, no alignment, viewed in place.
macro_rules! layout {
    ($(#[$doc:meta])* struct $name:ident { $($field:ident: $type:ty),* $(,)? }) => {
        $(#[$doc])*
        #[derive(
            Clone, Copy,
            zerocopy::FromBytes, zerocopy::IntoBytes, zerocopy::KnownLayout, zerocopy::Immutable, zerocopy::Unaligned,
        )]
        #[repr(C)]
        struct $name { $($field: $type),* }

        const _: () = assert!(size_of::<$name>() == $crate::iscsi::HEADER_BYTES);

        impl $name {
            fn of(header: &$crate::iscsi::Header) -> &$name {
                zerocopy::transmute_ref!(header)
            }

            fn header(self) -> $crate::iscsi::Header {
                zerocopy::transmute!(self)
            }
        }
    };
}
pub(super) use layout;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn opcodes_are_found_by_their_value() {
        for opcode in Opcode::ALL {
            let mut header = [0; HEADER_BYTES];
            header[0] = opcode as u8 | IMMEDIATE;
            assert_eq!(Opcode::of(&header), Some(opcode));
            assert!(is_immediate(&header));
        }
        let known = (0..=0x3f).filter(|&b| {
            let mut header = [0; HEADER_BYTES];
            header[0] = b;
            Opcode::of(&header).is_some()
        });
        assert_eq!(known.count(), Opcode::ALL.len());
    }

    #[test]
    fn lengths_are_read_back() {
        let lengths = Lengths { additional_headers: 1020, data: 0xFF_FEFD };
        let mut header = [0; HEADER_BYTES];
        header[4..8].copy_from_slice(&lengths.emit());
        assert_eq!(&header[4..8], &[255, 0xFF, 0xFE, 0xFD]);
        assert_eq!(Lengths::of(&header), lengths);
    }

    #[test]
    fn padding_reaches_the_next_multiple_of_four() {
        assert_eq!([0, 1, 2, 3, 4, 5].map(padding), [0, 3, 2, 1, 0, 3]);
    }
}
