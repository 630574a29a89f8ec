//! Text Request and Text Response (RFC 7143 §11.10, §11.11).

use zerocopy::big_endian::{U32, U64};

use super::header::{FINAL, NumbersLayout, flag, layout, opcode_byte};
use super::{Header, Lengths, Numbers, Opcode, RejectReason, is_immediate};

const CONTINUE: u8 = 0x40;

fn parse_flags(flags: u8) -> Result<(bool, bool), RejectReason> {
    match (flags & FINAL != 0, flags & CONTINUE != 0) {
        (true, true) => Err(RejectReason::InvalidPduField),
        other => Ok(other),
    }
}

layout! {
    struct RequestLayout {
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
pub struct TextRequest {
    pub immediate: bool,
    /// F: the initiator has nothing more to say; never together with `proceed`.
    pub is_final: bool,
    /// C: the text goes on in the next request.
    pub proceed: bool,
    pub lun: u64,
    pub task_tag: u32,
    /// [`super::RESERVED_TAG`]: a new exchange, otherwise the tag of the response before.
    pub target_tag: u32,
    pub cmd_sn: u32,
    pub exp_stat_sn: u32,
}

impl TextRequest {
    pub fn parse(header: &Header) -> Result<TextRequest, RejectReason> {
        let layout = RequestLayout::of(header);
        let (is_final, proceed) = parse_flags(layout.flags)?;
        Ok(TextRequest {
            immediate: is_immediate(header),
            is_final,
            proceed,
            lun: layout.lun.get(),
            task_tag: layout.task_tag.get(),
            target_tag: layout.target_tag.get(),
            cmd_sn: layout.cmd_sn.get(),
            exp_stat_sn: layout.exp_stat_sn.get(),
        })
    }

    pub fn emit(&self, lengths: Lengths) -> Header {
        RequestLayout {
            opcode: opcode_byte(Opcode::TextRequest, self.immediate),
            flags: flag(self.is_final, FINAL) | flag(self.proceed, CONTINUE),
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
    struct ResponseLayout {
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
pub struct TextResponse {
    pub is_final: bool,
    pub proceed: bool,
    pub lun: u64,
    pub task_tag: u32,
    /// [`super::RESERVED_TAG`] in the final response, a tag to go on with otherwise.
    pub target_tag: u32,
    pub numbers: Numbers,
}

impl TextResponse {
    pub fn parse(header: &Header) -> Result<TextResponse, RejectReason> {
        let layout = ResponseLayout::of(header);
        let (is_final, proceed) = parse_flags(layout.flags)?;
        Ok(TextResponse {
            is_final,
            proceed,
            lun: layout.lun.get(),
            task_tag: layout.task_tag.get(),
            target_tag: layout.target_tag.get(),
            numbers: layout.numbers.into(),
        })
    }

    pub fn emit(&self, lengths: Lengths) -> Header {
        ResponseLayout {
            opcode: Opcode::TextResponse as u8,
            flags: flag(self.is_final, FINAL) | flag(self.proceed, CONTINUE),
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::iscsi::data::tests::any_numbers;
    use proptest::prelude::*;

    #[test]
    fn golden() {
        let request = TextRequest {
            immediate: false,
            is_final: true,
            proceed: false,
            lun: 0,
            task_tag: 1,
            target_tag: 0xFFFF_FFFF,
            cmd_sn: 2,
            exp_stat_sn: 3,
        };
        let mut expected: Header = [0; 48];
        expected[..8].copy_from_slice(&[4, 0x80, 0, 0, 0, 0, 0, 16]);
        expected[19..32].copy_from_slice(&[1, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 2, 0, 0, 0, 3]);
        assert_eq!(request.emit(Lengths::data(16)), expected);
        assert_eq!(TextRequest::parse(&expected), Ok(request));
        expected[1] = 0xc0;
        assert_eq!(TextRequest::parse(&expected), Err(RejectReason::InvalidPduField));

        let response = TextResponse {
            is_final: false,
            proceed: true,
            lun: 0,
            task_tag: 1,
            target_tag: 9,
            numbers: Numbers { stat_sn: 2, exp_cmd_sn: 3, max_cmd_sn: 4 },
        };
        let mut expected: Header = [0; 48];
        expected[..2].copy_from_slice(&[0x24, 0x40]);
        expected[19..36].copy_from_slice(&[1, 0, 0, 0, 9, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0, 4]);
        assert_eq!(response.emit(Lengths::default()), expected);
        assert_eq!(TextResponse::parse(&expected), Ok(response));
    }

    proptest! {
        #[test]
        fn both_come_back(immediate: bool, flags in 0u8..3, lun: u64, n in any::<[u32; 4]>(), numbers in any_numbers()) {
            let (is_final, proceed) = (flags == 1, flags == 2);
            let request = TextRequest { immediate, is_final, proceed, lun, task_tag: n[0], target_tag: n[1],
                cmd_sn: n[2], exp_stat_sn: n[3] };
            prop_assert_eq!(TextRequest::parse(&request.emit(Lengths::data(1))), Ok(request));
            let response = TextResponse { is_final, proceed, lun, task_tag: n[0], target_tag: n[1], numbers };
            prop_assert_eq!(TextResponse::parse(&response.emit(Lengths::data(1))), Ok(response));
        }
    }
}
