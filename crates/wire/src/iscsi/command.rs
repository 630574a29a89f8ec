//! SCSI Command and SCSI Response (RFC 7143 §11.3, §11.4).

use zerocopy::big_endian::{U32, U64};

use super::data::Residual;
use super::header::{FINAL, NumbersLayout, flag, layout, opcode_byte};
use super::{Header, Lengths, Numbers, Opcode, RejectReason, is_immediate};

layout! {
    struct CommandLayout {
        opcode: u8,
        flags: u8,
        reserved: [u8; 2],
        lengths: [u8; 4],
        lun: U64,
        task_tag: U32,
        expected_bytes: U32,
        cmd_sn: U32,
        exp_stat_sn: U32,
        cdb: [u8; 16],
    }
}

const READ: u8 = 0x40;
const WRITE: u8 = 0x20;
const ATTRIBUTE: u8 = 0x07;

/// RFC 7143 §11.3.1.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[repr(u8)]
pub enum TaskAttribute {
    #[default]
    Untagged = 0,
    Simple = 1,
    Ordered = 2,
    HeadOfQueue = 3,
    Aca = 4,
}

impl TaskAttribute {
    pub const ALL: [TaskAttribute; 5] = [
        TaskAttribute::Untagged,
        TaskAttribute::Simple,
        TaskAttribute::Ordered,
        TaskAttribute::HeadOfQueue,
        TaskAttribute::Aca,
    ];
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ScsiCommand {
    pub immediate: bool,
    /// No unsolicited Data-Out follows.
    pub is_final: bool,
    pub read: bool,
    pub write: bool,
    pub attribute: TaskAttribute,
    pub lun: u64,
    pub task_tag: u32,
    /// Of the write where the command is bidirectional.
    pub expected_bytes: u32,
    pub cmd_sn: u32,
    pub exp_stat_sn: u32,
    pub cdb: [u8; 16],
}

impl ScsiCommand {
    pub fn parse(header: &Header) -> Result<ScsiCommand, RejectReason> {
        let layout = CommandLayout::of(header);
        let attribute = *TaskAttribute::ALL
            .get(usize::from(layout.flags & ATTRIBUTE))
            .ok_or(RejectReason::InvalidPduField)?;
        let (is_final, write) = (layout.flags & FINAL != 0, layout.flags & WRITE != 0);
        if !is_final && !write {
            return Err(RejectReason::InvalidPduField); // §11.3.1: setting both to 0 is an error
        }
        Ok(ScsiCommand {
            immediate: is_immediate(header),
            is_final,
            read: layout.flags & READ != 0,
            write,
            attribute,
            lun: layout.lun.get(),
            task_tag: layout.task_tag.get(),
            expected_bytes: layout.expected_bytes.get(),
            cmd_sn: layout.cmd_sn.get(),
            exp_stat_sn: layout.exp_stat_sn.get(),
            cdb: layout.cdb,
        })
    }

    pub fn emit(&self, lengths: Lengths) -> Header {
        CommandLayout {
            opcode: opcode_byte(Opcode::ScsiCommand, self.immediate),
            flags: flag(self.is_final, FINAL)
                | flag(self.read, READ)
                | flag(self.write, WRITE)
                | self.attribute as u8,
            reserved: [0; 2],
            lengths: lengths.emit(),
            lun: self.lun.into(),
            task_tag: self.task_tag.into(),
            expected_bytes: self.expected_bytes.into(),
            cmd_sn: self.cmd_sn.into(),
            exp_stat_sn: self.exp_stat_sn.into(),
            cdb: self.cdb,
        }
        .header()
    }
}

layout! {
    struct ResponseLayout {
        opcode: u8,
        flags: u8,
        response: u8,
        status: u8,
        lengths: [u8; 4],
        reserved: [u8; 8],
        task_tag: U32,
        snack_tag: U32,
        numbers: NumbersLayout,
        exp_data_sn: U32,
        read_residual: U32,
        residual: U32,
    }
}

const READ_OVERFLOW: u8 = 0x10;
const READ_UNDERFLOW: u8 = 0x08;

/// RFC 7143 §11.4.3.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ServiceResponse {
    Completed,
    TargetFailure,
    /// 0x80-0xff.
    Vendor(u8),
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ScsiResponse {
    pub response: ServiceResponse,
    /// SCSI status; counts only with [`ServiceResponse::Completed`].
    pub status: u8,
    pub task_tag: u32,
    pub numbers: Numbers,
    /// How many Data-In and R2T PDUs the command had.
    pub exp_data_sn: u32,
    /// Of the only direction, or of the write of a bidirectional command.
    pub residual: Residual,
    /// Of the read of a bidirectional command.
    pub read_residual: Residual,
}

impl ScsiResponse {
    pub fn parse(header: &Header) -> Result<ScsiResponse, RejectReason> {
        let layout = ResponseLayout::of(header);
        let response = match layout.response {
            0 => ServiceResponse::Completed,
            1 => ServiceResponse::TargetFailure,
            code @ 0x80.. => ServiceResponse::Vendor(code),
            _ => return Err(RejectReason::InvalidPduField),
        };
        let read_flags = (layout.flags & (READ_OVERFLOW | READ_UNDERFLOW)) >> 2;
        Ok(ScsiResponse {
            response,
            status: layout.status,
            task_tag: layout.task_tag.get(),
            numbers: layout.numbers.into(),
            exp_data_sn: layout.exp_data_sn.get(),
            residual: Residual::parse(layout.flags, layout.residual.get())?,
            read_residual: Residual::parse(read_flags, layout.read_residual.get())?,
        })
    }

    pub fn emit(&self, lengths: Lengths) -> Header {
        let (flags, residual) = self.residual.emit();
        let (read_flags, read_residual) = self.read_residual.emit();
        ResponseLayout {
            opcode: Opcode::ScsiResponse as u8,
            flags: FINAL | flags | read_flags << 2,
            response: match self.response {
                ServiceResponse::Completed => 0,
                ServiceResponse::TargetFailure => 1,
                ServiceResponse::Vendor(code) => code,
            },
            status: self.status,
            lengths: lengths.emit(),
            reserved: [0; 8],
            task_tag: self.task_tag.into(),
            snack_tag: 0.into(),
            numbers: self.numbers.into(),
            exp_data_sn: self.exp_data_sn.into(),
            read_residual: read_residual.into(),
            residual: residual.into(),
        }
        .header()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::iscsi::data::tests::{any_numbers, any_residual};
    use proptest::prelude::*;

    #[test]
    fn golden_command() {
        let command = ScsiCommand {
            immediate: true,
            is_final: true,
            read: false,
            write: true,
            attribute: TaskAttribute::Simple,
            lun: 0x0005_0000_0000_0000,
            task_tag: 0x0102_0304,
            expected_bytes: 4096,
            cmd_sn: 7,
            exp_stat_sn: 9,
            cdb: [0x2a, 0, 0, 0, 0, 8, 0, 0, 8, 0, 0, 0, 0, 0, 0, 0],
        };
        let bytes = command.emit(Lengths::data(4096));
        let expected: Header = [
            0x41, 0xa1, 0, 0, 0, 0, 0x10, 0, 0, 5, 0, 0, 0, 0, 0, 0, 1, 2, 3, 4, 0, 0, 0x10, 0, 0, 0, 0, 7,
            0, 0, 0, 9, 0x2a, 0, 0, 0, 0, 8, 0, 0, 8, 0, 0, 0, 0, 0, 0, 0,
        ];
        assert_eq!(bytes, expected);
        assert_eq!(ScsiCommand::parse(&expected), Ok(command));
    }

    #[test]
    fn golden_response() {
        let response = ScsiResponse {
            response: ServiceResponse::Completed,
            status: 2,
            task_tag: 5,
            numbers: Numbers { stat_sn: 1, exp_cmd_sn: 2, max_cmd_sn: 3 },
            exp_data_sn: 4,
            residual: Residual::Underflow(512),
            read_residual: Residual::Overflow(6),
        };
        let expected: Header = [
            0x21, 0x92, 0, 2, 0, 0, 0, 20, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 5, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0,
            0, 2, 0, 0, 0, 3, 0, 0, 0, 4, 0, 0, 0, 6, 0, 0, 2, 0,
        ];
        assert_eq!(response.emit(Lengths::data(20)), expected);
        assert_eq!(ScsiResponse::parse(&expected), Ok(response));
    }

    #[test]
    fn nonsense_is_refused() {
        let mut header = [0; 48];
        header[0] = 1;
        header[1] = 0x80 | 5; // reserved attribute
        assert_eq!(ScsiCommand::parse(&header), Err(RejectReason::InvalidPduField));
        header[1] = READ; // more data to come, but no write
        assert_eq!(ScsiCommand::parse(&header), Err(RejectReason::InvalidPduField));
        header[1] = 0x86; // over- and underflow
        assert_eq!(ScsiResponse::parse(&header), Err(RejectReason::InvalidPduField));
    }

    fn any_command() -> impl Strategy<Value = ScsiCommand> {
        let flags = (any::<bool>(), any::<bool>(), any::<bool>(), any::<bool>(), 0usize..5);
        (flags, any::<(u64, u32, u32, u32, u32)>(), any::<[u8; 16]>()).prop_map(|(flags, n, cdb)| {
            ScsiCommand {
                immediate: flags.0,
                is_final: flags.1 || !flags.3,
                read: flags.2,
                write: flags.3,
                attribute: TaskAttribute::ALL[flags.4],
                lun: n.0,
                task_tag: n.1,
                expected_bytes: n.2,
                cmd_sn: n.3,
                exp_stat_sn: n.4,
                cdb,
            }
        })
    }

    proptest! {
        #[test]
        fn commands_come_back(command in any_command(), data in 0usize..1 << 24) {
            let header = command.emit(Lengths::data(data));
            prop_assert_eq!(ScsiCommand::parse(&header), Ok(command));
            prop_assert_eq!(Lengths::of(&header).data, data);
        }

        #[test]
        fn responses_come_back(
            code in prop_oneof![Just(0u8), Just(1), 0x80u8..], fields in any::<(u8, u32, u32)>(),
            numbers in any_numbers(), residual in any_residual(), read_residual in any_residual(),
        ) {
            let response = ScsiResponse {
                response: match code { 0 => ServiceResponse::Completed, 1 => ServiceResponse::TargetFailure,
                    code => ServiceResponse::Vendor(code) },
                status: fields.0, task_tag: fields.1, numbers, exp_data_sn: fields.2, residual, read_residual,
            };
            prop_assert_eq!(ScsiResponse::parse(&response.emit(Lengths::data(0))), Ok(response));
        }
    }
}
