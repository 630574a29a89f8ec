//! What a command counts as in statistics, and how much data it moved.

use wire::scsi::{Sense, SenseCode, SenseKey, Status};

use crate::response::Response;

/// The kind of a command.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Traffic {
    /// Returns blocks to the initiator: the READ commands.
    Read,
    /// Stores blocks that the initiator sends: WRITE, WRITE AND VERIFY, ORWRITE.
    Write,
    /// Sends each block twice: first what is compared, then what is stored.
    CompareAndWrite,
    /// Everything else, such as UNMAP, WRITE SAME, SYNCHRONIZE CACHE, copies, and inquiries.
    Other,
}

impl Traffic {
    pub fn of(cdb: &[u8]) -> Traffic {
        match cdb.first() {
            Some(0x08 | 0x28 | 0x88 | 0xA8) => Traffic::Read,
            Some(0x0A | 0x2A | 0x2E | 0x8A | 0x8B | 0x8E | 0xAA | 0xAE) => Traffic::Write,
            Some(0x89) => Traffic::CompareAndWrite,
            _ => Traffic::Other,
        }
    }

    /// Bytes of blocks that the command read or stored; none if it did not succeed.
    pub fn bytes(self, response: &Response) -> usize {
        match self {
            _ if response.status != Status::Good => 0,
            Traffic::Read => response.data_in_bytes(),
            Traffic::Write => response.data_out_bytes,
            Traffic::CompareAndWrite => response.data_out_bytes / 2,
            Traffic::Other => 0,
        }
    }
}

impl Response {
    /// Whether the array could not do what the command asked for. A command that must not be carried out is no failure: a
    /// wrong field, a reservation, a miscompare, a write to what is read-only. Neither is a unit attention.
    pub fn is_failure(&self) -> bool {
        let Some((sense, _)) = self.sense.as_ref().and_then(|sense| Sense::parse(sense)) else {
            return false;
        };
        match sense.key {
            SenseKey::NotReady
            | SenseKey::MediumError
            | SenseKey::HardwareError
            | SenseKey::CopyAborted
            | SenseKey::AbortedCommand => true,
            SenseKey::DataProtect => {
                !matches!(sense.code, SenseCode::WriteProtected | SenseCode::SoftwareWriteProtected)
            }
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use block::Payload;
    use wire::scsi::SenseFormat;

    use super::*;
    use crate::table::{Medium, ReservationClass};

    #[test]
    fn every_command_that_reads_or_stores_blocks_counts_as_one() {
        for row in crate::rows::ROWS {
            let expected = match row.name.split(" (").next().unwrap() {
                "READ" => Traffic::Read,
                "WRITE" | "WRITE AND VERIFY" | "ORWRITE" => Traffic::Write,
                "COMPARE AND WRITE" => Traffic::CompareAndWrite,
                _ => Traffic::Other,
            };
            assert_eq!(Traffic::of(&[row.opcode]), expected, "{}", row.name);
            match expected {
                Traffic::Read => assert_eq!(row.reservation, ReservationClass::Read, "{}", row.name),
                Traffic::Other => {}
                _ => assert_eq!(row.medium, Medium::Written, "{}", row.name),
            }
        }
        assert_eq!(Traffic::of(&[]), Traffic::Other);
    }

    #[test]
    fn bytes_are_those_of_blocks_that_were_read_or_stored() {
        let read = Response::with_data(Payload::from(vec![0; 512]));
        assert_eq!([Traffic::Read, Traffic::Other].map(|kind| kind.bytes(&read)), [512, 0]);
        let written = Response::good(1024);
        let kinds = [Traffic::Write, Traffic::CompareAndWrite, Traffic::Other];
        assert_eq!(kinds.map(|kind| kind.bytes(&written)), [1024, 512, 0]);
        let sense = Sense::new(SenseKey::MediumError, SenseCode::UnrecoveredReadError);
        let failed = Response::check(sense, SenseFormat::Fixed, 1024);
        assert_eq!(kinds.map(|kind| kind.bytes(&failed)), [0; 3]);
    }

    #[test]
    fn a_failure_is_what_the_array_could_not_do() {
        let is_failure = |key, code| {
            [SenseFormat::Fixed, SenseFormat::Descriptor]
                .map(|format| Response::check(Sense::new(key, code), format, 0).is_failure())
        };
        assert_eq!(is_failure(SenseKey::MediumError, SenseCode::UnrecoveredReadError), [true; 2]);
        assert_eq!(
            is_failure(SenseKey::DataProtect, SenseCode::SpaceAllocationFailedWriteProtect),
            [true; 2]
        );
        assert_eq!(is_failure(SenseKey::DataProtect, SenseCode::WriteProtected), [false; 2]);
        assert_eq!(is_failure(SenseKey::IllegalRequest, SenseCode::InvalidFieldInCdb), [false; 2]);
        assert!(!Response::good(0).is_failure());
    }
}
