//! Status codes (SAM-5 §5.3).

/// How a command ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Status {
    Good = 0x00,
    CheckCondition = 0x02,
    ConditionMet = 0x04,
    Busy = 0x08,
    ReservationConflict = 0x18,
    TaskSetFull = 0x28,
    AcaActive = 0x30,
    TaskAborted = 0x40,
}

impl Status {
    pub const ALL: [Status; 8] = [
        Status::Good,
        Status::CheckCondition,
        Status::ConditionMet,
        Status::Busy,
        Status::ReservationConflict,
        Status::TaskSetFull,
        Status::AcaActive,
        Status::TaskAborted,
    ];

    /// The byte on the wire.
    pub const fn code(self) -> u8 {
        self as u8
    }

    /// `None` where SAM-5 knows no such status.
    pub fn from_code(code: u8) -> Option<Status> {
        Status::ALL.into_iter().find(|status| status.code() == code)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_is_its_own_inverse() {
        let known: Vec<u8> = (0..=255).filter(|&code| Status::from_code(code).is_some()).collect();
        assert_eq!(known, [0x00, 0x02, 0x04, 0x08, 0x18, 0x28, 0x30, 0x40]);
        assert!(Status::ALL.into_iter().all(|status| Status::from_code(status.code()) == Some(status)));
    }
}
