//! Additional header segments (RFC 7143 §11.2.2): long CDBs and the read length of bidirectional commands.
//!
//! ```text
//!   | AHSLength 2 | AHSType 1 | specific 1 | ... | pad to 4 |     AHSLength counts from "specific" on
//! ```

use crate::iscsi::{RejectReason, padding};

const TYPE_EXTENDED_CDB: u8 = 1;
const TYPE_BIDIRECTIONAL_READ: u8 = 2;
/// SPC-4 §4.2.3: variable-length CDBs have at most 260 bytes.
const EXTENDED_CDB_BYTES_MAX: usize = 260 - 16;

/// What may follow the header of a SCSI command.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct AdditionalHeaders<'a> {
    /// The CDB from its 17th byte on; empty where it has no more than 16 bytes.
    pub extended_cdb: &'a [u8],
    pub bidirectional_read_bytes: Option<u32>,
}

impl<'a> AdditionalHeaders<'a> {
    /// `bytes`: all additional headers of the PDU. Types we do not know, repeated ones and lengths that do
    /// not fit are [`RejectReason::InvalidPduField`].
    pub fn parse(mut bytes: &'a [u8]) -> Result<AdditionalHeaders<'a>, RejectReason> {
        let mut found = AdditionalHeaders::default();
        while !bytes.is_empty() {
            let [high, low, kind, rest @ ..] = bytes else {
                return Err(RejectReason::InvalidPduField);
            };
            let length = usize::from(u16::from_be_bytes([*high, *low]));
            let body = rest.get(..length).ok_or(RejectReason::InvalidPduField)?;
            match (*kind, body) {
                (TYPE_EXTENDED_CDB, [_, cdb @ ..])
                    if found.extended_cdb.is_empty() && (1..=EXTENDED_CDB_BYTES_MAX).contains(&cdb.len()) =>
                {
                    found.extended_cdb = cdb;
                }
                (TYPE_BIDIRECTIONAL_READ, [_, a, b, c, d]) if found.bidirectional_read_bytes.is_none() => {
                    found.bidirectional_read_bytes = Some(u32::from_be_bytes([*a, *b, *c, *d]));
                }
                _ => return Err(RejectReason::InvalidPduField),
            }
            let whole = 3 + length;
            bytes = bytes.get(whole + padding(whole)..).ok_or(RejectReason::InvalidPduField)?;
        }
        Ok(found)
    }

    /// Appends all segments, padded. Panics where the CDB is longer than SCSI allows.
    pub fn emit(&self, out: &mut Vec<u8>) {
        assert!(self.extended_cdb.len() <= EXTENDED_CDB_BYTES_MAX);
        if !self.extended_cdb.is_empty() {
            emit_segment(out, TYPE_EXTENDED_CDB, self.extended_cdb);
        }
        if let Some(bytes) = self.bidirectional_read_bytes {
            emit_segment(out, TYPE_BIDIRECTIONAL_READ, &bytes.to_be_bytes());
        }
    }
}

/// How many bytes [`AdditionalHeaders::emit`] appends.
pub fn additional_headers_bytes(headers: &AdditionalHeaders<'_>) -> usize {
    let cdb = headers.extended_cdb.len();
    let cdb = if cdb == 0 { 0 } else { 4 + cdb + padding(cdb) };
    cdb + if headers.bidirectional_read_bytes.is_some() { 8 } else { 0 }
}

fn emit_segment(out: &mut Vec<u8>, kind: u8, body: &[u8]) {
    out.extend_from_slice(&(body.len() as u16 + 1).to_be_bytes());
    out.extend_from_slice(&[kind, 0]);
    out.extend_from_slice(body);
    out.extend_from_slice(&[0; 3][..padding(body.len())]);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn golden() {
        let headers = AdditionalHeaders { extended_cdb: &[9; 16], bidirectional_read_bytes: Some(512) };
        let mut out = Vec::new();
        headers.emit(&mut out);
        let mut expected = vec![0, 17, 1, 0];
        expected.extend([9; 16]);
        expected.extend([0, 5, 2, 0, 0, 0, 2, 0]);
        assert_eq!(out, expected);
    }

    #[test]
    fn nonsense_is_refused() {
        let table: &[&[u8]] = &[
            &[0],
            &[0, 1, 1],
            &[0, 1, 1, 0],                                     // an extended CDB without bytes
            &[0, 0, 2, 0],                                     // no body
            &[0, 4, 2, 0, 0, 0, 0, 0],                         // bidirectional length of the wrong size
            &[0, 5, 3, 0, 0, 0, 0, 0],                         // unknown type
            &[0xff, 0xff, 1, 0, 0, 0, 0, 0],                   // longer than the PDU
            &[0, 5, 2, 0, 0, 0, 2, 0, 0, 5, 2, 0, 0, 0, 2, 0], // twice
        ];
        for bytes in table {
            assert_eq!(AdditionalHeaders::parse(bytes), Err(RejectReason::InvalidPduField), "{bytes:?}");
        }
    }

    proptest! {
        #[test]
        fn parse_is_the_inverse_of_emit(
            cdb in proptest::collection::vec(any::<u8>(), 0..=EXTENDED_CDB_BYTES_MAX),
            read in any::<Option<u32>>(),
        ) {
            let headers = AdditionalHeaders { extended_cdb: &cdb, bidirectional_read_bytes: read };
            let mut out = Vec::new();
            headers.emit(&mut out);
            prop_assert_eq!(out.len(), additional_headers_bytes(&headers));
            prop_assert_eq!(out.len() % 4, 0);
            prop_assert_eq!(AdditionalHeaders::parse(&out), Ok(headers));
        }

        #[test]
        fn any_bytes_are_parsed_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..64)) {
            let _ = AdditionalHeaders::parse(&bytes);
        }
    }
}
