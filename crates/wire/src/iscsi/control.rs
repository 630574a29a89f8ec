//! NOP-Out, NOP-In, Reject, Asynchronous Message and SNACK (RFC 7143 §11.9, §11.16 to §11.19).

use zerocopy::big_endian::{U16, U32, U64};

use super::header::{FINAL, NumbersLayout, layout, opcode_byte};
use super::{Header, Lengths, Numbers, Opcode, RESERVED_TAG, RejectReason, is_immediate};

layout! {
    struct NopOutLayout {
        opcode: u8,
        flags: u8,
        reserved_1: [u8; 2],
        lengths: [u8; 4],
        lun: U64,
        task_tag: U32,
        target_tag: U32,
        cmd_sn: U32,
        exp_stat_sn: U32,
        reserved_2: [u8; 16],
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NopOut {
    pub immediate: bool,
    pub lun: u64,
    /// [`RESERVED_TAG`]: no answer is wanted.
    pub task_tag: u32,
    /// Of the NOP-In that this answers; [`RESERVED_TAG`]: none.
    pub target_tag: u32,
    pub cmd_sn: u32,
    pub exp_stat_sn: u32,
}

impl NopOut {
    pub fn parse(header: &Header) -> Result<NopOut, RejectReason> {
        let layout = NopOutLayout::of(header);
        let immediate = is_immediate(header);
        if layout.task_tag.get() == RESERVED_TAG && !immediate {
            return Err(RejectReason::InvalidPduField); // §11.18.1: then the I bit MUST be set
        }
        Ok(NopOut {
            immediate,
            lun: layout.lun.get(),
            task_tag: layout.task_tag.get(),
            target_tag: layout.target_tag.get(),
            cmd_sn: layout.cmd_sn.get(),
            exp_stat_sn: layout.exp_stat_sn.get(),
        })
    }

    pub fn emit(&self, lengths: Lengths) -> Header {
        NopOutLayout {
            opcode: opcode_byte(Opcode::NopOut, self.immediate),
            flags: FINAL,
            reserved_1: [0; 2],
            lengths: lengths.emit(),
            lun: self.lun.into(),
            task_tag: self.task_tag.into(),
            target_tag: self.target_tag.into(),
            cmd_sn: self.cmd_sn.into(),
            exp_stat_sn: self.exp_stat_sn.into(),
            reserved_2: [0; 16],
        }
        .header()
    }
}

layout! {
    struct NopInLayout {
        opcode: u8,
        flags: u8,
        reserved_1: [u8; 2],
        lengths: [u8; 4],
        lun: U64,
        task_tag: U32,
        target_tag: U32,
        numbers: NumbersLayout,
        reserved_2: [u8; 12],
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NopIn {
    pub lun: u64,
    /// Of the NOP-Out that this answers; [`RESERVED_TAG`]: none.
    pub task_tag: u32,
    /// [`RESERVED_TAG`]: no answer is wanted.
    pub target_tag: u32,
    pub numbers: Numbers,
}

impl NopIn {
    pub fn parse(header: &Header) -> Result<NopIn, RejectReason> {
        let layout = NopInLayout::of(header);
        Ok(NopIn {
            lun: layout.lun.get(),
            task_tag: layout.task_tag.get(),
            target_tag: layout.target_tag.get(),
            numbers: layout.numbers.into(),
        })
    }

    pub fn emit(&self, lengths: Lengths) -> Header {
        NopInLayout {
            opcode: Opcode::NopIn as u8,
            flags: FINAL,
            reserved_1: [0; 2],
            lengths: lengths.emit(),
            lun: self.lun.into(),
            task_tag: self.task_tag.into(),
            target_tag: self.target_tag.into(),
            numbers: self.numbers.into(),
            reserved_2: [0; 12],
        }
        .header()
    }
}

layout! {
    struct RejectLayout {
        opcode: u8,
        flags: u8,
        reason: u8,
        reserved_1: u8,
        lengths: [u8; 4],
        reserved_2: [u8; 8],
        task_tag: U32,
        reserved_3: [u8; 4],
        numbers: NumbersLayout,
        data_sn: U32,
        reserved_4: [u8; 8],
    }
}

/// A PDU was refused; its header is in the data segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Reject {
    pub reason: RejectReason,
    pub numbers: Numbers,
}

impl Reject {
    pub fn parse(header: &Header) -> Result<Reject, RejectReason> {
        let layout = RejectLayout::of(header);
        let reason = RejectReason::from_code(layout.reason).ok_or(RejectReason::InvalidPduField)?;
        Ok(Reject { reason, numbers: layout.numbers.into() })
    }

    pub fn emit(&self, lengths: Lengths) -> Header {
        RejectLayout {
            opcode: Opcode::Reject as u8,
            flags: FINAL,
            reason: self.reason as u8,
            reserved_1: 0,
            lengths: lengths.emit(),
            reserved_2: [0; 8],
            task_tag: RESERVED_TAG.into(),
            reserved_3: [0; 4],
            numbers: self.numbers.into(),
            data_sn: 0.into(),
            reserved_4: [0; 8],
        }
        .header()
    }
}

layout! {
    struct AsyncLayout {
        opcode: u8,
        flags: u8,
        reserved_1: [u8; 2],
        lengths: [u8; 4],
        lun: U64,
        task_tag: U32,
        reserved_2: [u8; 4],
        numbers: NumbersLayout,
        event: u8,
        vendor_code: u8,
        parameters: [U16; 3],
        reserved_3: [u8; 4],
    }
}

/// RFC 7143 §11.9.1.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AsyncEvent {
    /// Sense data in the data segment.
    Scsi,
    /// The initiator is to log out within this time.
    LogoutRequested { within_seconds: u16 },
    /// This connection will be dropped by the target.
    ConnectionDropped { connection_id: u16, time_to_wait_seconds: u16, time_to_retain_seconds: u16 },
    /// All connections of the session will be dropped.
    SessionDropped { time_to_wait_seconds: u16, time_to_retain_seconds: u16 },
    /// The target wants to negotiate parameters.
    NegotiationRequested { within_seconds: u16 },
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AsyncMessage {
    pub lun: u64,
    pub numbers: Numbers,
    pub event: AsyncEvent,
}

impl AsyncMessage {
    pub fn parse(header: &Header) -> Result<AsyncMessage, RejectReason> {
        let layout = AsyncLayout::of(header);
        let [p1, p2, p3] = layout.parameters.map(U16::get);
        let event = match layout.event {
            0 => AsyncEvent::Scsi,
            1 => AsyncEvent::LogoutRequested { within_seconds: p3 },
            2 => AsyncEvent::ConnectionDropped {
                connection_id: p1,
                time_to_wait_seconds: p2,
                time_to_retain_seconds: p3,
            },
            3 => AsyncEvent::SessionDropped { time_to_wait_seconds: p2, time_to_retain_seconds: p3 },
            4 => AsyncEvent::NegotiationRequested { within_seconds: p3 },
            _ => return Err(RejectReason::InvalidPduField),
        };
        Ok(AsyncMessage { lun: layout.lun.get(), numbers: layout.numbers.into(), event })
    }

    pub fn emit(&self, lengths: Lengths) -> Header {
        let (event, parameters) = match self.event {
            AsyncEvent::Scsi => (0, [0, 0, 0]),
            AsyncEvent::LogoutRequested { within_seconds } => (1, [0, 0, within_seconds]),
            AsyncEvent::ConnectionDropped { connection_id, time_to_wait_seconds, time_to_retain_seconds } => {
                (2, [connection_id, time_to_wait_seconds, time_to_retain_seconds])
            }
            AsyncEvent::SessionDropped { time_to_wait_seconds, time_to_retain_seconds } => {
                (3, [0, time_to_wait_seconds, time_to_retain_seconds])
            }
            AsyncEvent::NegotiationRequested { within_seconds } => (4, [0, 0, within_seconds]),
        };
        AsyncLayout {
            opcode: Opcode::AsyncMessage as u8,
            flags: FINAL,
            reserved_1: [0; 2],
            lengths: lengths.emit(),
            lun: self.lun.into(),
            task_tag: RESERVED_TAG.into(),
            reserved_2: [0; 4],
            numbers: self.numbers.into(),
            event,
            vendor_code: 0,
            parameters: parameters.map(U16::new),
            reserved_3: [0; 4],
        }
        .header()
    }
}

layout! {
    struct SnackLayout {
        opcode: u8,
        kind: u8,
        reserved_1: [u8; 2],
        lengths: [u8; 4],
        lun: U64,
        task_tag: U32,
        target_tag: U32,
        reserved_2: [u8; 4],
        exp_stat_sn: U32,
        reserved_3: [u8; 8],
        begin: U32,
        run: U32,
    }
}

/// A request to send PDUs again. At ErrorRecoveryLevel 0 it is only recognised, to be rejected.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Snack {
    /// 0: data or R2T, 1: status, 2: data acknowledgement, 3: R-data.
    pub kind: u8,
    pub lun: u64,
    pub task_tag: u32,
    pub target_tag: u32,
    pub exp_stat_sn: u32,
    pub begin: u32,
    pub run: u32,
}

impl Snack {
    pub fn parse(header: &Header) -> Result<Snack, RejectReason> {
        let layout = SnackLayout::of(header);
        let kind = layout.kind & 0x0f;
        if kind > 3 {
            return Err(RejectReason::InvalidPduField);
        }
        Ok(Snack {
            kind,
            lun: layout.lun.get(),
            task_tag: layout.task_tag.get(),
            target_tag: layout.target_tag.get(),
            exp_stat_sn: layout.exp_stat_sn.get(),
            begin: layout.begin.get(),
            run: layout.run.get(),
        })
    }

    /// Panics where the kind is not one of the four.
    pub fn emit(&self) -> Header {
        assert!(self.kind <= 3);
        SnackLayout {
            opcode: Opcode::Snack as u8,
            kind: FINAL | self.kind,
            reserved_1: [0; 2],
            lengths: Lengths::default().emit(),
            lun: self.lun.into(),
            task_tag: self.task_tag.into(),
            target_tag: self.target_tag.into(),
            reserved_2: [0; 4],
            exp_stat_sn: self.exp_stat_sn.into(),
            reserved_3: [0; 8],
            begin: self.begin.into(),
            run: self.run.into(),
        }
        .header()
    }
}

#[cfg(test)]
#[path = "control_tests.rs"]
mod tests;
