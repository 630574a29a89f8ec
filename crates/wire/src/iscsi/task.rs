//! Task Management Function Request and Response (RFC 7143 §11.5, §11.6).

use zerocopy::big_endian::{U32, U64};

use super::header::{FINAL, NumbersLayout, layout, opcode_byte};
use super::{Header, Lengths, Numbers, Opcode, RejectReason, is_immediate};

/// RFC 7143 §11.5.1.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum TaskManagementFunction {
    AbortTask = 1,
    AbortTaskSet = 2,
    ClearAca = 3,
    ClearTaskSet = 4,
    LogicalUnitReset = 5,
    TargetWarmReset = 6,
    TargetColdReset = 7,
    TaskReassign = 8,
}

impl TaskManagementFunction {
    pub const ALL: [TaskManagementFunction; 8] = [
        TaskManagementFunction::AbortTask,
        TaskManagementFunction::AbortTaskSet,
        TaskManagementFunction::ClearAca,
        TaskManagementFunction::ClearTaskSet,
        TaskManagementFunction::LogicalUnitReset,
        TaskManagementFunction::TargetWarmReset,
        TaskManagementFunction::TargetColdReset,
        TaskManagementFunction::TaskReassign,
    ];
}

layout! {
    struct RequestLayout {
        opcode: u8,
        function: u8,
        reserved_1: [u8; 2],
        lengths: [u8; 4],
        lun: U64,
        task_tag: U32,
        referenced_tag: U32,
        cmd_sn: U32,
        exp_stat_sn: U32,
        ref_cmd_sn: U32,
        exp_data_sn: U32,
        reserved_2: [u8; 8],
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TaskManagementRequest {
    pub immediate: bool,
    /// None: a function that this version of the standard does not have.
    pub function: Option<TaskManagementFunction>,
    pub lun: u64,
    pub task_tag: u32,
    pub referenced_tag: u32,
    pub cmd_sn: u32,
    pub exp_stat_sn: u32,
    pub ref_cmd_sn: u32,
    pub exp_data_sn: u32,
}

impl TaskManagementRequest {
    pub fn parse(header: &Header) -> Result<TaskManagementRequest, RejectReason> {
        let layout = RequestLayout::of(header);
        let code = layout.function & 0x7f;
        Ok(TaskManagementRequest {
            immediate: is_immediate(header),
            function: TaskManagementFunction::ALL.into_iter().find(|&function| function as u8 == code),
            lun: layout.lun.get(),
            task_tag: layout.task_tag.get(),
            referenced_tag: layout.referenced_tag.get(),
            cmd_sn: layout.cmd_sn.get(),
            exp_stat_sn: layout.exp_stat_sn.get(),
            ref_cmd_sn: layout.ref_cmd_sn.get(),
            exp_data_sn: layout.exp_data_sn.get(),
        })
    }

    pub fn emit(&self) -> Header {
        RequestLayout {
            opcode: opcode_byte(Opcode::TaskManagementRequest, self.immediate),
            function: FINAL | self.function.map_or(0, |function| function as u8),
            reserved_1: [0; 2],
            lengths: Lengths::default().emit(),
            lun: self.lun.into(),
            task_tag: self.task_tag.into(),
            referenced_tag: self.referenced_tag.into(),
            cmd_sn: self.cmd_sn.into(),
            exp_stat_sn: self.exp_stat_sn.into(),
            ref_cmd_sn: self.ref_cmd_sn.into(),
            exp_data_sn: self.exp_data_sn.into(),
            reserved_2: [0; 8],
        }
        .header()
    }
}

/// RFC 7143 §11.6.1.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum TaskManagementResult {
    Complete = 0,
    TaskDoesNotExist = 1,
    LunDoesNotExist = 2,
    TaskStillAllegiant = 3,
    ReassignmentNotSupported = 4,
    NotSupported = 5,
    AuthorizationFailed = 6,
    Rejected = 255,
}

impl TaskManagementResult {
    pub const ALL: [TaskManagementResult; 8] = [
        TaskManagementResult::Complete,
        TaskManagementResult::TaskDoesNotExist,
        TaskManagementResult::LunDoesNotExist,
        TaskManagementResult::TaskStillAllegiant,
        TaskManagementResult::ReassignmentNotSupported,
        TaskManagementResult::NotSupported,
        TaskManagementResult::AuthorizationFailed,
        TaskManagementResult::Rejected,
    ];
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
        reserved_4: [u8; 12],
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TaskManagementResponse {
    pub result: TaskManagementResult,
    pub task_tag: u32,
    pub numbers: Numbers,
}

impl TaskManagementResponse {
    pub fn parse(header: &Header) -> Result<TaskManagementResponse, RejectReason> {
        let layout = ResponseLayout::of(header);
        let result = TaskManagementResult::ALL
            .into_iter()
            .find(|&result| result as u8 == layout.response)
            .ok_or(RejectReason::InvalidPduField)?;
        Ok(TaskManagementResponse { result, task_tag: layout.task_tag.get(), numbers: layout.numbers.into() })
    }

    pub fn emit(&self) -> Header {
        ResponseLayout {
            opcode: Opcode::TaskManagementResponse as u8,
            flags: FINAL,
            response: self.result as u8,
            reserved_1: 0,
            lengths: Lengths::default().emit(),
            reserved_2: [0; 8],
            task_tag: self.task_tag.into(),
            reserved_3: [0; 4],
            numbers: self.numbers.into(),
            reserved_4: [0; 12],
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
        let request = TaskManagementRequest {
            immediate: true,
            function: Some(TaskManagementFunction::AbortTask),
            lun: 3 << 48,
            task_tag: 1,
            referenced_tag: 2,
            cmd_sn: 3,
            exp_stat_sn: 4,
            ref_cmd_sn: 5,
            exp_data_sn: 0,
        };
        let mut expected: Header = [0; 48];
        expected[..2].copy_from_slice(&[0x42, 0x81]);
        expected[9] = 3;
        for (place, value) in [(19, 1), (23, 2), (27, 3), (31, 4), (35, 5)] {
            expected[place] = value;
        }
        assert_eq!(request.emit(), expected);
        assert_eq!(TaskManagementRequest::parse(&expected), Ok(request));

        let response = TaskManagementResponse {
            result: TaskManagementResult::Rejected,
            task_tag: 1,
            numbers: Numbers { stat_sn: 2, exp_cmd_sn: 3, max_cmd_sn: 4 },
        };
        let mut expected: Header = [0; 48];
        expected[..3].copy_from_slice(&[0x22, 0x80, 0xff]);
        for (place, value) in [(19, 1), (27, 2), (31, 3), (35, 4)] {
            expected[place] = value;
        }
        assert_eq!(response.emit(), expected);
        assert_eq!(TaskManagementResponse::parse(&expected), Ok(response));
        expected[2] = 77;
        assert_eq!(TaskManagementResponse::parse(&expected), Err(RejectReason::InvalidPduField));
    }

    proptest! {
        #[test]
        fn both_come_back(immediate: bool, function in 0usize..9, result in 0usize..8, lun: u64, n in any::<[u32; 6]>(),
            numbers in any_numbers())
        {
            let request = TaskManagementRequest { immediate, function: TaskManagementFunction::ALL.get(function).copied(),
                lun, task_tag: n[0], referenced_tag: n[1], cmd_sn: n[2], exp_stat_sn: n[3], ref_cmd_sn: n[4],
                exp_data_sn: n[5] };
            prop_assert_eq!(TaskManagementRequest::parse(&request.emit()), Ok(request));
            let response = TaskManagementResponse { result: TaskManagementResult::ALL[result], task_tag: n[0], numbers };
            prop_assert_eq!(TaskManagementResponse::parse(&response.emit()), Ok(response));
        }
    }
}
