//! Errors of a command, and errors of the target. This is the only place that translates either
//! into status and sense data.

use block::BlockError;
use reservation::Refusal;
use wire::scsi::{FieldPointer, Sense, SenseCode, SenseKey, Status};

use crate::nexus::UnitAttention;

/// Why a command is not carried out: the initiator's fault, or a state that it has to be told of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Fault {
    /// No such operation code or service action here.
    UnknownCommand,
    FieldInCdb {
        byte: u16,
        bit: Option<u8>,
    },
    FieldInParameters {
        byte: u16,
        bit: Option<u8>,
    },
    /// The parameter list ends in the middle of a field that is needed.
    ParameterListLength,
    LbaOutOfRange,
    /// The transport delivered another amount of data than the CDB calls for, or a CDB that is too short.
    DataOutLength,
    WriteProtected,
    /// Write-protected by the initiator itself (SWP).
    SoftwareWriteProtected,
    SavingNotSupported,
    NoSuchUnit,
    AluaTransition,
    AluaStandby,
    AluaUnavailable,
    /// No port group would be active any more.
    AccessWouldEnd,
    /// The data differs from what the command brought, first at this byte.
    Miscompare {
        offset_bytes: u64,
    },
    Attention(UnitAttention),
    /// RELEASE of another type than the reservation's.
    InvalidRelease,
    /// A reservation that is to survive a restart could not be stored.
    NotKept,
    NoRoomForRegistrations,
    /// EXTENDED COPY: what it names cannot be, or cannot be reached, or failed.
    InlineData,
    TooManyCopyTargets,
    TooManyCopySegments,
    UnsupportedCopyTarget,
    UnsupportedCopySegment,
    CopyUnreachable,
    CopyRange,
    CopyFailed,
    /// A copy with this list identifier is at work.
    CopyInProgress,
    NoRoomForCopy,
    /// The ACA task attribute without that condition.
    NoAca,
}

/// Why a command is not carried out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Denial {
    /// RESERVATION CONFLICT.
    Conflict,
    Fault(Fault),
}

impl From<Fault> for Denial {
    fn from(fault: Fault) -> Denial {
        Denial::Fault(fault)
    }
}

/// What SPC-4 §5.13 and §5.16 have for each of these.
impl From<Refusal> for Denial {
    fn from(refusal: Refusal) -> Denial {
        let fault = match refusal {
            Refusal::Conflict => return Denial::Conflict,
            Refusal::NoSuchUnit => Fault::NoSuchUnit,
            Refusal::NotKept => Fault::NotKept,
            Refusal::InTransition => Fault::AluaTransition,
            Refusal::NoRoom => Fault::NoRoomForRegistrations,
            Refusal::AccessWouldEnd => Fault::AccessWouldEnd,
            Refusal::OtherType => Fault::InvalidRelease,
            Refusal::NotForOthers => Fault::cdb_bit(1, 4),
            Refusal::NoVictim => Fault::FieldInParameters { byte: 8, bit: None },
        };
        Denial::Fault(fault)
    }
}

impl Fault {
    /// A whole field of the CDB, or its bits from `bit` down.
    pub(crate) fn cdb(byte: u16) -> Fault {
        Fault::FieldInCdb { byte, bit: None }
    }

    pub(crate) fn cdb_bit(byte: u16, bit: u8) -> Fault {
        Fault::FieldInCdb { byte, bit: Some(bit) }
    }

    pub(crate) fn sense(self) -> Sense {
        let illegal = |code| Sense::new(SenseKey::IllegalRequest, code);
        let not_ready = |code| Sense::new(SenseKey::NotReady, code);
        let protected = |code| Sense::new(SenseKey::DataProtect, code);
        match self {
            Fault::UnknownCommand => illegal(SenseCode::InvalidCommandOperationCode),
            Fault::FieldInCdb { byte, bit } => {
                let field = Some(FieldPointer { in_cdb: true, byte, bit });
                Sense { field, ..illegal(SenseCode::InvalidFieldInCdb) }
            }
            Fault::FieldInParameters { byte, bit } => {
                let field = Some(FieldPointer { in_cdb: false, byte, bit });
                Sense { field, ..illegal(SenseCode::InvalidFieldInParameterList) }
            }
            Fault::ParameterListLength => illegal(SenseCode::ParameterListLengthError),
            Fault::LbaOutOfRange => illegal(SenseCode::LbaOutOfRange),
            Fault::DataOutLength => illegal(SenseCode::InvalidFieldInCommandInformationUnit),
            Fault::WriteProtected => protected(SenseCode::WriteProtected),
            Fault::SoftwareWriteProtected => protected(SenseCode::SoftwareWriteProtected),
            Fault::SavingNotSupported => illegal(SenseCode::SavingParametersNotSupported),
            Fault::NoSuchUnit => illegal(SenseCode::LogicalUnitNotSupported),
            Fault::AluaTransition => not_ready(SenseCode::AluaTransition),
            Fault::AluaStandby => not_ready(SenseCode::AluaStandby),
            Fault::AluaUnavailable => not_ready(SenseCode::AluaUnavailable),
            Fault::AccessWouldEnd => {
                Sense::new(SenseKey::HardwareError, SenseCode::SetTargetPortGroupsFailed)
            }
            Fault::Miscompare { offset_bytes } => miscompare(offset_bytes),
            Fault::InvalidRelease => illegal(SenseCode::InvalidReleaseOfPersistentReservation),
            Fault::NotKept => Sense::new(SenseKey::HardwareError, SenseCode::InternalTargetFailure),
            Fault::NoRoomForRegistrations => illegal(SenseCode::InsufficientRegistrationResources),
            Fault::InlineData => illegal(SenseCode::InlineDataLengthExceeded),
            Fault::TooManyCopyTargets => illegal(SenseCode::TooManyTargetDescriptors),
            Fault::TooManyCopySegments => illegal(SenseCode::TooManySegmentDescriptors),
            Fault::UnsupportedCopyTarget => illegal(SenseCode::UnsupportedTargetDescriptor),
            Fault::UnsupportedCopySegment => illegal(SenseCode::UnsupportedSegmentDescriptor),
            Fault::CopyUnreachable => Sense::new(SenseKey::CopyAborted, SenseCode::CopyTargetNotReachable),
            Fault::CopyRange => Sense::new(SenseKey::CopyAborted, SenseCode::NoAdditionalSense),
            Fault::CopyFailed => Sense::new(SenseKey::CopyAborted, SenseCode::ThirdPartyDeviceFailure),
            Fault::CopyInProgress => illegal(SenseCode::OperationInProgress),
            Fault::NoAca => Sense::new(SenseKey::IllegalRequest, SenseCode::InvalidMessage),
            Fault::NoRoomForCopy => illegal(SenseCode::InsufficientResources),
            Fault::Attention(attention) => Sense::new(SenseKey::UnitAttention, attention.code()),
        }
    }
}

fn miscompare(offset_bytes: u64) -> Sense {
    let information = Some(offset_bytes);
    Sense { information, ..Sense::new(SenseKey::Miscompare, SenseCode::MiscompareDuringVerify) }
}

/// How the failure of a block request is told; `writing` where it was to change data.
pub(crate) fn block_error(error: BlockError, writing: bool) -> (Status, Option<Sense>) {
    let sense = match error {
        BlockError::Medium { lba } => {
            let code = if writing { SenseCode::WriteError } else { SenseCode::UnrecoveredReadError };
            Sense { information: Some(lba.0), ..Sense::new(SenseKey::MediumError, code) }
        }
        BlockError::Miscompare { offset_bytes } => miscompare(u64::from(offset_bytes)),
        BlockError::OutOfSpace => {
            Sense::new(SenseKey::DataProtect, SenseCode::SpaceAllocationFailedWriteProtect)
        }
        BlockError::NotReady => Sense::new(SenseKey::NotReady, SenseCode::NotReadyCauseNotReportable),
        BlockError::WriteProtected => Fault::WriteProtected.sense(),
        BlockError::Unsupported => Fault::UnknownCommand.sense(),
        BlockError::Aborted => return (Status::TaskAborted, None),
    };
    (Status::CheckCondition, Some(sense))
}

#[cfg(test)]
mod tests {
    use base::Lba;
    use block::BlockError as E;

    use super::*;

    #[test]
    fn every_block_error_has_its_sense() {
        let told = |error, writing| {
            let (status, sense) = block_error(error, writing);
            let sense = sense
                .map(|s| (s.key.code(), s.code.additional_sense_code(), s.code.qualifier(), s.information));
            (status, sense)
        };
        let check = Status::CheckCondition;
        let table = [
            (E::Medium { lba: Lba(77) }, false, check, Some((3, 0x11, 0, Some(77)))),
            (E::Medium { lba: Lba(77) }, true, check, Some((3, 0x0C, 0, Some(77)))),
            (E::Miscompare { offset_bytes: 9 }, true, check, Some((0xE, 0x1D, 0, Some(9)))),
            (E::OutOfSpace, true, check, Some((7, 0x27, 7, None))),
            (E::NotReady, false, check, Some((2, 4, 0, None))),
            (E::WriteProtected, true, check, Some((7, 0x27, 0, None))),
            (E::Unsupported, true, check, Some((5, 0x20, 0, None))),
            (E::Aborted, true, Status::TaskAborted, None),
        ];
        for (error, writing, status, sense) in table {
            assert_eq!(told(error, writing), (status, sense), "{error:?}");
        }
    }
}
