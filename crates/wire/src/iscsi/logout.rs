//! Logout Request and Logout Response (RFC 7143 §11.14, §11.15).

use zerocopy::big_endian::{U16, U32};

use super::header::{FINAL, NumbersLayout, layout, opcode_byte};
use super::{Header, Lengths, Numbers, Opcode, RejectReason, is_immediate};

/// RFC 7143 §11.14.1.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum LogoutReason {
    CloseSession = 0,
    CloseConnection = 1,
    RemoveForRecovery = 2,
}

layout! {
    struct RequestLayout {
        opcode: u8,
        reason: u8,
        reserved_1: [u8; 2],
        lengths: [u8; 4],
        reserved_2: [u8; 8],
        task_tag: U32,
        connection_id: U16,
        reserved_3: [u8; 2],
        cmd_sn: U32,
        exp_stat_sn: U32,
        reserved_4: [u8; 16],
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LogoutRequest {
    pub immediate: bool,
    pub reason: LogoutReason,
    pub task_tag: u32,
    /// Which connection; without meaning when the session is closed.
    pub connection_id: u16,
    pub cmd_sn: u32,
    pub exp_stat_sn: u32,
}

impl LogoutRequest {
    pub fn parse(header: &Header) -> Result<LogoutRequest, RejectReason> {
        let layout = RequestLayout::of(header);
        let reason = match layout.reason & 0x7f {
            0 => LogoutReason::CloseSession,
            1 => LogoutReason::CloseConnection,
            2 => LogoutReason::RemoveForRecovery,
            _ => return Err(RejectReason::InvalidPduField),
        };
        Ok(LogoutRequest {
            immediate: is_immediate(header),
            reason,
            task_tag: layout.task_tag.get(),
            connection_id: layout.connection_id.get(),
            cmd_sn: layout.cmd_sn.get(),
            exp_stat_sn: layout.exp_stat_sn.get(),
        })
    }

    pub fn emit(&self) -> Header {
        RequestLayout {
            opcode: opcode_byte(Opcode::LogoutRequest, self.immediate),
            reason: FINAL | self.reason as u8,
            reserved_1: [0; 2],
            lengths: Lengths::default().emit(),
            reserved_2: [0; 8],
            task_tag: self.task_tag.into(),
            connection_id: self.connection_id.into(),
            reserved_3: [0; 2],
            cmd_sn: self.cmd_sn.into(),
            exp_stat_sn: self.exp_stat_sn.into(),
            reserved_4: [0; 16],
        }
        .header()
    }
}

/// RFC 7143 §11.15.1.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum LogoutResult {
    Closed = 0,
    ConnectionNotFound = 1,
    RecoveryNotSupported = 2,
    CleanupFailed = 3,
}

layout! {
    struct ResponseLayout {
        opcode: u8,
        flags: u8,
        response: u8,
        reserved_1: u8,
        lengths: [u8; 4],
        reserved_2: [u8; 8],
        task_tag: U32,
        reserved_3: [u8; 4],
        numbers: NumbersLayout,
        reserved_4: [u8; 4],
        time_to_wait: U16,
        time_to_retain: U16,
        reserved_5: [u8; 4],
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LogoutResponse {
    pub result: LogoutResult,
    pub task_tag: u32,
    pub numbers: Numbers,
    pub time_to_wait_seconds: u16,
    pub time_to_retain_seconds: u16,
}

impl LogoutResponse {
    pub fn parse(header: &Header) -> Result<LogoutResponse, RejectReason> {
        let layout = ResponseLayout::of(header);
        let result = match layout.response {
            0 => LogoutResult::Closed,
            1 => LogoutResult::ConnectionNotFound,
            2 => LogoutResult::RecoveryNotSupported,
            3 => LogoutResult::CleanupFailed,
            _ => return Err(RejectReason::InvalidPduField),
        };
        Ok(LogoutResponse {
            result,
            task_tag: layout.task_tag.get(),
            numbers: layout.numbers.into(),
            time_to_wait_seconds: layout.time_to_wait.get(),
            time_to_retain_seconds: layout.time_to_retain.get(),
        })
    }

    pub fn emit(&self) -> Header {
        ResponseLayout {
            opcode: Opcode::LogoutResponse as u8,
            flags: FINAL,
            response: self.result as u8,
            reserved_1: 0,
            lengths: Lengths::default().emit(),
            reserved_2: [0; 8],
            task_tag: self.task_tag.into(),
            reserved_3: [0; 4],
            numbers: self.numbers.into(),
            reserved_4: [0; 4],
            time_to_wait: self.time_to_wait_seconds.into(),
            time_to_retain: self.time_to_retain_seconds.into(),
            reserved_5: [0; 4],
        }
        .header()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::iscsi::data::tests::any_numbers;
    use proptest::prelude::*;

    #[test]
    fn golden() {
        let request = LogoutRequest {
            immediate: true,
            reason: LogoutReason::CloseConnection,
            task_tag: 1,
            connection_id: 2,
            cmd_sn: 3,
            exp_stat_sn: 4,
        };
        let mut expected: Header = [0; 48];
        expected[..2].copy_from_slice(&[0x46, 0x81]);
        for (place, value) in [(19, 1), (21, 2), (27, 3), (31, 4)] {
            expected[place] = value;
        }
        assert_eq!(request.emit(), expected);
        assert_eq!(LogoutRequest::parse(&expected), Ok(request));
        expected[1] = 0x83;
        assert_eq!(LogoutRequest::parse(&expected), Err(RejectReason::InvalidPduField));

        let response = LogoutResponse {
            result: LogoutResult::ConnectionNotFound,
            task_tag: 1,
            numbers: Numbers { stat_sn: 2, exp_cmd_sn: 3, max_cmd_sn: 4 },
            time_to_wait_seconds: 5,
            time_to_retain_seconds: 6,
        };
        let mut expected: Header = [0; 48];
        expected[..3].copy_from_slice(&[0x26, 0x80, 1]);
        for (place, value) in [(19, 1), (27, 2), (31, 3), (35, 4), (41, 5), (43, 6)] {
            expected[place] = value;
        }
        assert_eq!(response.emit(), expected);
        assert_eq!(LogoutResponse::parse(&expected), Ok(response));
        expected[2] = 4;
        assert_eq!(LogoutResponse::parse(&expected), Err(RejectReason::InvalidPduField));
    }

    proptest! {
        #[test]
        fn both_come_back(immediate: bool, kind in 0usize..3, n in any::<[u32; 3]>(), s in any::<[u16; 3]>(),
            numbers in any_numbers())
        {
            let reason = [LogoutReason::CloseSession, LogoutReason::CloseConnection, LogoutReason::RemoveForRecovery][kind];
            let request = LogoutRequest { immediate, reason, task_tag: n[0], connection_id: s[0], cmd_sn: n[1],
                exp_stat_sn: n[2] };
            prop_assert_eq!(LogoutRequest::parse(&request.emit()), Ok(request));
            let result = [LogoutResult::Closed, LogoutResult::RecoveryNotSupported, LogoutResult::CleanupFailed][kind];
            let response = LogoutResponse { result, task_tag: n[0], numbers, time_to_wait_seconds: s[1],
                time_to_retain_seconds: s[2] };
            prop_assert_eq!(LogoutResponse::parse(&response.emit()), Ok(response));
        }
    }
}
