//! Sense keys and additional sense codes (SPC-4 §4.5.6, annex F): a closed list, each with its name.

/// The class of an error (SPC-4 table 47).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum SenseKey {
    NoSense = 0x0,
    RecoveredError = 0x1,
    NotReady = 0x2,
    MediumError = 0x3,
    HardwareError = 0x4,
    IllegalRequest = 0x5,
    UnitAttention = 0x6,
    DataProtect = 0x7,
    BlankCheck = 0x8,
    VendorSpecific = 0x9,
    CopyAborted = 0xA,
    AbortedCommand = 0xB,
    VolumeOverflow = 0xD,
    Miscompare = 0xE,
    Completed = 0xF,
}

impl SenseKey {
    pub const ALL: [SenseKey; 15] = [
        SenseKey::NoSense,
        SenseKey::RecoveredError,
        SenseKey::NotReady,
        SenseKey::MediumError,
        SenseKey::HardwareError,
        SenseKey::IllegalRequest,
        SenseKey::UnitAttention,
        SenseKey::DataProtect,
        SenseKey::BlankCheck,
        SenseKey::VendorSpecific,
        SenseKey::CopyAborted,
        SenseKey::AbortedCommand,
        SenseKey::VolumeOverflow,
        SenseKey::Miscompare,
        SenseKey::Completed,
    ];

    pub const fn code(self) -> u8 {
        self as u8
    }

    /// `None` for the one reserved value, Ch, and above Fh.
    pub fn from_code(code: u8) -> Option<SenseKey> {
        SenseKey::ALL.into_iter().find(|key| key.code() == code)
    }
}

macro_rules! sense_codes {
    ($($variant:ident = $asc:literal / $ascq:literal, $text:literal;)*) => {
        /// An additional sense code with its qualifier.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        #[repr(u16)]
        pub enum SenseCode {
            $(#[doc = $text] $variant = ($asc << 8) | $ascq,)*
        }

        impl SenseCode {
            pub const ALL: &[SenseCode] = &[$(SenseCode::$variant),*];

            /// The standard's name for it.
            pub const fn name(self) -> &'static str {
                match self {
                    $(SenseCode::$variant => $text,)*
                }
            }
        }
    };
}

sense_codes! {
    NoAdditionalSense = 0x00 / 0x00, "NO ADDITIONAL SENSE INFORMATION";
    OperationInProgress = 0x00 / 0x16, "OPERATION IN PROGRESS";
    NotReadyCauseNotReportable = 0x04 / 0x00, "LOGICAL UNIT NOT READY, CAUSE NOT REPORTABLE";
    BecomingReady = 0x04 / 0x01, "LOGICAL UNIT IS IN PROCESS OF BECOMING READY";
    InitializingCommandRequired = 0x04 / 0x02, "LOGICAL UNIT NOT READY, INITIALIZING COMMAND REQUIRED";
    ManualInterventionRequired = 0x04 / 0x03, "LOGICAL UNIT NOT READY, MANUAL INTERVENTION REQUIRED";
    AluaTransition = 0x04 / 0x0A, "LOGICAL UNIT NOT ACCESSIBLE, ASYMMETRIC ACCESS STATE TRANSITION";
    AluaStandby = 0x04 / 0x0B, "LOGICAL UNIT NOT ACCESSIBLE, TARGET PORT IN STANDBY STATE";
    AluaUnavailable = 0x04 / 0x0C, "LOGICAL UNIT NOT ACCESSIBLE, TARGET PORT IN UNAVAILABLE STATE";
    SpaceAllocationInProgress = 0x04 / 0x14, "LOGICAL UNIT NOT READY, SPACE ALLOCATION IN PROGRESS";
    CommunicationFailure = 0x08 / 0x00, "LOGICAL UNIT COMMUNICATION FAILURE";
    WriteError = 0x0C / 0x00, "WRITE ERROR";
    UnexpectedUnsolicitedData = 0x0C / 0x0C, "WRITE ERROR - UNEXPECTED UNSOLICITED DATA";
    NotEnoughUnsolicitedData = 0x0C / 0x0D, "WRITE ERROR - NOT ENOUGH UNSOLICITED DATA";
    ThirdPartyDeviceFailure = 0x0D / 0x01, "THIRD PARTY DEVICE FAILURE";
    CopyTargetNotReachable = 0x0D / 0x02, "COPY TARGET DEVICE NOT REACHABLE";
    InvalidFieldInCommandInformationUnit = 0x0E / 0x03, "INVALID FIELD IN COMMAND INFORMATION UNIT";
    UnrecoveredReadError = 0x11 / 0x00, "UNRECOVERED READ ERROR";
    ParameterListLengthError = 0x1A / 0x00, "PARAMETER LIST LENGTH ERROR";
    MiscompareDuringVerify = 0x1D / 0x00, "MISCOMPARE DURING VERIFY OPERATION";
    InvalidCommandOperationCode = 0x20 / 0x00, "INVALID COMMAND OPERATION CODE";
    AccessDeniedNoAccessRights = 0x20 / 0x02, "ACCESS DENIED - NO ACCESS RIGHTS";
    LbaOutOfRange = 0x21 / 0x00, "LOGICAL BLOCK ADDRESS OUT OF RANGE";
    InvalidFieldInCdb = 0x24 / 0x00, "INVALID FIELD IN CDB";
    LogicalUnitNotSupported = 0x25 / 0x00, "LOGICAL UNIT NOT SUPPORTED";
    InvalidFieldInParameterList = 0x26 / 0x00, "INVALID FIELD IN PARAMETER LIST";
    ParameterNotSupported = 0x26 / 0x01, "PARAMETER NOT SUPPORTED";
    ParameterValueInvalid = 0x26 / 0x02, "PARAMETER VALUE INVALID";
    InvalidReleaseOfPersistentReservation = 0x26 / 0x04, "INVALID RELEASE OF PERSISTENT RESERVATION";
    TooManyTargetDescriptors = 0x26 / 0x06, "TOO MANY TARGET DESCRIPTORS";
    UnsupportedTargetDescriptor = 0x26 / 0x07, "UNSUPPORTED TARGET DESCRIPTOR TYPE CODE";
    TooManySegmentDescriptors = 0x26 / 0x08, "TOO MANY SEGMENT DESCRIPTORS";
    UnsupportedSegmentDescriptor = 0x26 / 0x09, "UNSUPPORTED SEGMENT DESCRIPTOR TYPE CODE";
    InlineDataLengthExceeded = 0x26 / 0x0B, "INLINE DATA LENGTH EXCEEDED";
    WriteProtected = 0x27 / 0x00, "WRITE PROTECTED";
    SoftwareWriteProtected = 0x27 / 0x02, "LOGICAL UNIT SOFTWARE WRITE PROTECTED";
    SpaceAllocationFailedWriteProtect = 0x27 / 0x07, "SPACE ALLOCATION FAILED WRITE PROTECT";
    PowerOnOrReset = 0x29 / 0x00, "POWER ON, RESET, OR BUS DEVICE RESET OCCURRED";
    BusDeviceReset = 0x29 / 0x03, "BUS DEVICE RESET FUNCTION OCCURRED";
    NexusLoss = 0x29 / 0x07, "I_T NEXUS LOSS OCCURRED";
    ModeParametersChanged = 0x2A / 0x01, "MODE PARAMETERS CHANGED";
    ReservationsPreempted = 0x2A / 0x03, "RESERVATIONS PREEMPTED";
    ReservationsReleased = 0x2A / 0x04, "RESERVATIONS RELEASED";
    RegistrationsPreempted = 0x2A / 0x05, "REGISTRATIONS PREEMPTED";
    AluaStateChanged = 0x2A / 0x06, "ASYMMETRIC ACCESS STATE CHANGED";
    CapacityChanged = 0x2A / 0x09, "CAPACITY DATA HAS CHANGED";
    CommandSequenceError = 0x2C / 0x00, "COMMAND SEQUENCE ERROR";
    CommandsCleared = 0x2F / 0x00, "COMMANDS CLEARED BY ANOTHER INITIATOR";
    ThinProvisioningThreshold = 0x38 / 0x07, "THIN PROVISIONING SOFT THRESHOLD REACHED";
    SavingParametersNotSupported = 0x39 / 0x00, "SAVING PARAMETERS NOT SUPPORTED";
    MediumNotPresent = 0x3A / 0x00, "MEDIUM NOT PRESENT";
    InquiryDataChanged = 0x3F / 0x03, "INQUIRY DATA HAS CHANGED";
    ReportedLunsChanged = 0x3F / 0x0E, "REPORTED LUNS DATA HAS CHANGED";
    InternalTargetFailure = 0x44 / 0x00, "INTERNAL TARGET FAILURE";
    ProtocolServiceCrcError = 0x47 / 0x05, "PROTOCOL SERVICE CRC ERROR";
    InvalidMessage = 0x49 / 0x00, "INVALID MESSAGE ERROR";
    OverlappedCommands = 0x4E / 0x00, "OVERLAPPED COMMANDS ATTEMPTED";
    MediumRemovalPrevented = 0x53 / 0x02, "MEDIUM REMOVAL PREVENTED";
    InsufficientResources = 0x55 / 0x03, "INSUFFICIENT RESOURCES";
    InsufficientRegistrationResources = 0x55 / 0x04, "INSUFFICIENT REGISTRATION RESOURCES";
    SetTargetPortGroupsFailed = 0x67 / 0x0A, "SET TARGET PORT GROUPS COMMAND FAILED";
}

impl SenseCode {
    pub const fn additional_sense_code(self) -> u8 {
        (self as u16 >> 8) as u8
    }

    pub const fn qualifier(self) -> u8 {
        self as u16 as u8
    }

    /// `None` for a pair that is not in the list.
    pub fn from_codes(asc: u8, ascq: u8) -> Option<SenseCode> {
        let wanted = u16::from(asc) << 8 | u16::from(ascq);
        SenseCode::ALL.iter().copied().find(|&code| code as u16 == wanted)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_their_own_inverse_and_ascend() {
        for &code in SenseCode::ALL {
            assert_eq!(SenseCode::from_codes(code.additional_sense_code(), code.qualifier()), Some(code));
        }
        assert!(SenseCode::ALL.windows(2).all(|pair| (pair[0] as u16) < pair[1] as u16));
        assert_eq!(SenseCode::from_codes(0x21, 0).unwrap().name(), "LOGICAL BLOCK ADDRESS OUT OF RANGE");
        assert_eq!(SenseCode::from_codes(0x21, 0x99), None);
    }

    #[test]
    fn all_sense_keys_but_the_reserved_one() {
        let unknown: Vec<u8> = (0..=16).filter(|&code| SenseKey::from_code(code).is_none()).collect();
        assert_eq!(unknown, [0x0C, 16]);
    }
}
