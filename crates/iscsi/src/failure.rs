//! How commands fail by conditions of iSCSI itself.

/// Conditions of iSCSI's own (RFC 7143 §11.4.7.2), all with sense key ABORTED COMMAND.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Failure {
    UnexpectedUnsolicitedData,
    IncorrectAmountOfData,
    ServiceCrc,
}

impl Failure {
    /// Sense length and fixed-format sense data.
    pub fn sense(self) -> [u8; 20] {
        let (asc, ascq) = match self {
            Failure::UnexpectedUnsolicitedData => (0x0c, 0x0c),
            Failure::IncorrectAmountOfData => (0x0c, 0x0d),
            Failure::ServiceCrc => (0x47, 0x05),
        };
        let mut sense = [0; 20];
        sense[1] = 18;
        sense[2] = 0x70;
        sense[4] = 0x0b;
        sense[9] = 10;
        (sense[14], sense[15]) = (asc, ascq);
        sense
    }
}
