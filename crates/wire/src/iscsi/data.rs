//! SCSI Data-Out, Data-In and Ready To Transfer (RFC 7143 §11.7, §11.8), and residual counts.

use zerocopy::big_endian::{U32, U64};

use super::header::{FINAL, NumbersLayout, flag, layout};
use super::{Header, Lengths, Numbers, Opcode, RESERVED_TAG, RejectReason};

const OVERFLOW: u8 = 0x04;
const UNDERFLOW: u8 = 0x02;

/// By how much a transfer differed from what the initiator expected (RFC 7143 §11.4.5).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Residual {
    #[default]
    None,
    /// Bytes the device would have transferred beyond the expected length.
    Overflow(u32),
    /// Bytes of the expected length that were not transferred.
    Underflow(u32),
}

impl Residual {
    /// Of a device that presents `presented` bytes where `expected` were announced. Saturates.
    pub fn new(expected: u64, presented: u64) -> Residual {
        let count = u32::try_from(expected.abs_diff(presented)).unwrap_or(u32::MAX);
        match presented.cmp(&expected) {
            std::cmp::Ordering::Equal => Residual::None,
            std::cmp::Ordering::Greater => Residual::Overflow(count),
            std::cmp::Ordering::Less => Residual::Underflow(count),
        }
    }

    pub(super) fn parse(flags: u8, count: u32) -> Result<Residual, RejectReason> {
        match (flags & OVERFLOW != 0, flags & UNDERFLOW != 0) {
            (false, false) => Ok(Residual::None),
            (true, false) => Ok(Residual::Overflow(count)),
            (false, true) => Ok(Residual::Underflow(count)),
            (true, true) => Err(RejectReason::InvalidPduField),
        }
    }

    pub(super) fn emit(self) -> (u8, u32) {
        match self {
            Residual::None => (0, 0),
            Residual::Overflow(count) => (OVERFLOW, count),
            Residual::Underflow(count) => (UNDERFLOW, count),
        }
    }
}

layout! {
    struct DataOutLayout {
        opcode: u8,
        flags: u8,
        reserved_1: [u8; 2],
        lengths: [u8; 4],
        lun: U64,
        task_tag: U32,
        target_tag: U32,
        reserved_2: [u8; 4],
        exp_stat_sn: U32,
        reserved_3: [u8; 4],
        data_sn: U32,
        offset: U32,
        reserved_4: [u8; 4],
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DataOut {
    /// The last PDU of this sequence.
    pub is_final: bool,
    pub lun: u64,
    pub task_tag: u32,
    /// Of the R2T that this answers; [`RESERVED_TAG`]: unsolicited.
    pub target_tag: u32,
    pub exp_stat_sn: u32,
    pub data_sn: u32,
    pub offset_bytes: u32,
}

impl DataOut {
    pub fn parse(header: &Header) -> Result<DataOut, RejectReason> {
        let layout = DataOutLayout::of(header);
        Ok(DataOut {
            is_final: layout.flags & FINAL != 0,
            lun: layout.lun.get(),
            task_tag: layout.task_tag.get(),
            target_tag: layout.target_tag.get(),
            exp_stat_sn: layout.exp_stat_sn.get(),
            data_sn: layout.data_sn.get(),
            offset_bytes: layout.offset.get(),
        })
    }

    pub fn emit(&self, lengths: Lengths) -> Header {
        DataOutLayout {
            opcode: Opcode::DataOut as u8,
            flags: flag(self.is_final, FINAL),
            reserved_1: [0; 2],
            lengths: lengths.emit(),
            lun: self.lun.into(),
            task_tag: self.task_tag.into(),
            target_tag: self.target_tag.into(),
            reserved_2: [0; 4],
            exp_stat_sn: self.exp_stat_sn.into(),
            reserved_3: [0; 4],
            data_sn: self.data_sn.into(),
            offset: self.offset_bytes.into(),
            reserved_4: [0; 4],
        }
        .header()
    }
}

layout! {
    struct DataInLayout {
        opcode: u8,
        flags: u8,
        reserved: u8,
        status: u8,
        lengths: [u8; 4],
        lun: U64,
        task_tag: U32,
        target_tag: U32,
        numbers: NumbersLayout,
        data_sn: U32,
        offset: U32,
        residual: U32,
    }
}

const ACKNOWLEDGE: u8 = 0x40;
const STATUS: u8 = 0x01;

/// The status of a command, carried by its last Data-In (phase collapse).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DataInStatus {
    pub status: u8,
    pub stat_sn: u32,
    pub residual: Residual,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DataIn {
    /// The last PDU of this sequence.
    pub is_final: bool,
    /// An acknowledgement is asked for (not at ErrorRecoveryLevel 0).
    pub acknowledge: bool,
    pub task_tag: u32,
    pub target_tag: u32,
    pub lun: u64,
    pub exp_cmd_sn: u32,
    pub max_cmd_sn: u32,
    pub data_sn: u32,
    pub offset_bytes: u32,
    pub status: Option<DataInStatus>,
}

impl DataIn {
    pub fn parse(header: &Header) -> Result<DataIn, RejectReason> {
        let layout = DataInLayout::of(header);
        let numbers = Numbers::from(layout.numbers);
        let is_final = layout.flags & FINAL != 0;
        let status = if layout.flags & STATUS == 0 {
            None
        } else if is_final {
            let residual = Residual::parse(layout.flags, layout.residual.get())?;
            Some(DataInStatus { status: layout.status, stat_sn: numbers.stat_sn, residual })
        } else {
            return Err(RejectReason::InvalidPduField); // §11.7.3: S implies F
        };
        Ok(DataIn {
            is_final,
            acknowledge: layout.flags & ACKNOWLEDGE != 0,
            task_tag: layout.task_tag.get(),
            target_tag: layout.target_tag.get(),
            lun: layout.lun.get(),
            exp_cmd_sn: numbers.exp_cmd_sn,
            max_cmd_sn: numbers.max_cmd_sn,
            data_sn: layout.data_sn.get(),
            offset_bytes: layout.offset.get(),
            status,
        })
    }

    pub fn emit(&self, lengths: Lengths) -> Header {
        let (flags, residual) = self.status.map_or((0, 0), |status| status.residual.emit());
        DataInLayout {
            opcode: Opcode::DataIn as u8,
            flags: flag(self.is_final, FINAL)
                | flag(self.acknowledge, ACKNOWLEDGE)
                | flag(self.status.is_some(), STATUS)
                | flags,
            reserved: 0,
            status: self.status.map_or(0, |status| status.status),
            lengths: lengths.emit(),
            lun: self.lun.into(),
            task_tag: self.task_tag.into(),
            target_tag: self.target_tag.into(),
            numbers: Numbers {
                stat_sn: self.status.map_or(0, |status| status.stat_sn),
                exp_cmd_sn: self.exp_cmd_sn,
                max_cmd_sn: self.max_cmd_sn,
            }
            .into(),
            data_sn: self.data_sn.into(),
            offset: self.offset_bytes.into(),
            residual: residual.into(),
        }
        .header()
    }
}

layout! {
    struct R2tLayout {
        opcode: u8,
        flags: u8,
        reserved: [u8; 2],
        lengths: [u8; 4],
        lun: U64,
        task_tag: U32,
        target_tag: U32,
        numbers: NumbersLayout,
        r2t_sn: U32,
        offset: U32,
        desired: U32,
    }
}

/// "Send me this part of the data."
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct R2t {
    pub lun: u64,
    pub task_tag: u32,
    pub target_tag: u32,
    /// `stat_sn` is the next one, not used up.
    pub numbers: Numbers,
    pub r2t_sn: u32,
    pub offset_bytes: u32,
    /// At least 1.
    pub desired_bytes: u32,
}

impl R2t {
    pub fn parse(header: &Header) -> Result<R2t, RejectReason> {
        let layout = R2tLayout::of(header);
        if layout.desired.get() == 0 || layout.target_tag.get() == RESERVED_TAG {
            return Err(RejectReason::InvalidPduField);
        }
        Ok(R2t {
            lun: layout.lun.get(),
            task_tag: layout.task_tag.get(),
            target_tag: layout.target_tag.get(),
            numbers: layout.numbers.into(),
            r2t_sn: layout.r2t_sn.get(),
            offset_bytes: layout.offset.get(),
            desired_bytes: layout.desired.get(),
        })
    }

    pub fn emit(&self) -> Header {
        R2tLayout {
            opcode: Opcode::R2t as u8,
            flags: FINAL,
            reserved: [0; 2],
            lengths: [0; 4],
            lun: self.lun.into(),
            task_tag: self.task_tag.into(),
            target_tag: self.target_tag.into(),
            numbers: self.numbers.into(),
            r2t_sn: self.r2t_sn.into(),
            offset: self.offset_bytes.into(),
            desired: self.desired_bytes.into(),
        }
        .header()
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use proptest::prelude::*;

    pub fn any_residual() -> impl Strategy<Value = Residual> {
        prop_oneof![
            Just(Residual::None),
            any::<u32>().prop_map(Residual::Overflow),
            any::<u32>().prop_map(Residual::Underflow)
        ]
    }

    pub fn any_numbers() -> impl Strategy<Value = Numbers> {
        any::<(u32, u32, u32)>().prop_map(|(stat_sn, exp_cmd_sn, max_cmd_sn)| Numbers {
            stat_sn,
            exp_cmd_sn,
            max_cmd_sn,
        })
    }

    #[test]
    fn golden_data_in() {
        let data = DataIn {
            is_final: true,
            acknowledge: false,
            task_tag: 0x11,
            target_tag: RESERVED_TAG,
            lun: 0,
            exp_cmd_sn: 3,
            max_cmd_sn: 4,
            data_sn: 1,
            offset_bytes: 0x2000,
            status: Some(DataInStatus { status: 0, stat_sn: 2, residual: Residual::Underflow(8) }),
        };
        let expected: Header = [
            0x25, 0x83, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x11, 0xff, 0xff, 0xff, 0xff, 0,
            0, 0, 2, 0, 0, 0, 3, 0, 0, 0, 4, 0, 0, 0, 1, 0, 0, 0x20, 0, 0, 0, 0, 8,
        ];
        assert_eq!(data.emit(Lengths::data(512)), expected);
        assert_eq!(DataIn::parse(&expected), Ok(data));
        let mut without_final = expected;
        without_final[1] = STATUS;
        assert_eq!(DataIn::parse(&without_final), Err(RejectReason::InvalidPduField));
    }

    #[test]
    fn golden_data_out_and_r2t() {
        let out = DataOut {
            is_final: true,
            lun: 1 << 48,
            task_tag: 2,
            target_tag: 3,
            exp_stat_sn: 4,
            data_sn: 5,
            offset_bytes: 6,
        };
        let expected: Header = [
            5, 0x80, 0, 0, 0, 0, 0, 7, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0,
            4, 0, 0, 0, 0, 0, 0, 0, 5, 0, 0, 0, 6, 0, 0, 0, 0,
        ];
        assert_eq!(out.emit(Lengths::data(7)), expected);
        assert_eq!(DataOut::parse(&expected), Ok(out));
        let r2t = R2t {
            lun: 1 << 48,
            task_tag: 2,
            target_tag: 3,
            numbers: Numbers { stat_sn: 4, exp_cmd_sn: 5, max_cmd_sn: 6 },
            r2t_sn: 7,
            offset_bytes: 8,
            desired_bytes: 9,
        };
        let expected: Header = [
            0x31, 0x80, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0, 4, 0, 0,
            0, 5, 0, 0, 0, 6, 0, 0, 0, 7, 0, 0, 0, 8, 0, 0, 0, 9,
        ];
        assert_eq!(r2t.emit(), expected);
        assert_eq!(R2t::parse(&expected), Ok(r2t));
    }

    #[test]
    fn residuals_compare_what_was_expected_and_presented() {
        assert_eq!(Residual::new(512, 512), Residual::None);
        assert_eq!(Residual::new(512, 36), Residual::Underflow(476));
        assert_eq!(Residual::new(0, 512), Residual::Overflow(512));
        assert_eq!(Residual::new(0, u64::MAX), Residual::Overflow(u32::MAX));
    }

    proptest! {
        #[test]
        fn data_out_comes_back(is_final: bool, lun: u64, n in any::<[u32; 5]>(), data in 0usize..1 << 24) {
            let [task_tag, target_tag, exp_stat_sn, data_sn, offset_bytes] = n;
            let out = DataOut { is_final, lun, task_tag, target_tag, exp_stat_sn, data_sn, offset_bytes };
            prop_assert_eq!(DataOut::parse(&out.emit(Lengths::data(data))), Ok(out));
        }

        #[test]
        fn data_in_comes_back(
            last: bool, acknowledge: bool, lun: u64, n in any::<[u32; 6]>(), residual in any_residual(),
            status in any::<Option<(u8, u32)>>(),
        ) {
            let [task_tag, target_tag, exp_cmd_sn, max_cmd_sn, data_sn, offset_bytes] = n;
            let status = status.map(|(status, stat_sn)| DataInStatus { status, stat_sn, residual });
            let data = DataIn { is_final: last || status.is_some(), acknowledge, task_tag, target_tag, lun,
                exp_cmd_sn, max_cmd_sn, data_sn, offset_bytes, status };
            prop_assert_eq!(DataIn::parse(&data.emit(Lengths::data(3))), Ok(data));
        }

        #[test]
        fn r2t_comes_back(lun: u64, n in any::<[u32; 4]>(), desired in 1u32.., numbers in any_numbers()) {
            let r2t = R2t { lun, task_tag: n[0], target_tag: n[1] & 0x7fff_ffff, numbers, r2t_sn: n[2],
                offset_bytes: n[3], desired_bytes: desired };
            prop_assert_eq!(R2t::parse(&r2t.emit()), Ok(r2t));
        }
    }
}
