//! From a byte stream to PDUs, for both ends: headers, digests, padding.
//!
//! Payload is never copied: it is split off the receive buffer. What always holds: at most one PDU is
//! in progress; its data is no longer than the receiver declared; the data is kept in pieces of at least
//! [`PIECE_BYTES_MIN`] each, except the last. So a peer that sends single bytes costs no more memory than others.

use base::Crc32c;
use block::Payload;
use bytes::{Buf, Bytes, BytesMut};
use wire::iscsi::{HEADER_BYTES, Header, Lengths, Opcode, padding};

/// Data of an incomplete PDU is taken out of the receive buffer once this much of it is there.
const PIECE_BYTES_MIN: usize = 16 << 10;
const DIGEST_BYTES: usize = 4;

/// A whole PDU.
#[derive(Debug)]
pub(crate) struct Pdu {
    pub header: Header,
    pub additional: Bytes,
    pub data: Payload,
    /// False: the data digest does not match the data.
    pub data_intact: bool,
}

/// Why the stream cannot be followed any further.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum FrameError {
    HeaderDigest,
    /// The data segment is longer than was declared, or additional headers stand where none may.
    Length {
        header: Header,
    },
}

const _: () = assert!(size_of::<Option<Partial>>() <= 128 && size_of::<Pdu>() <= 128);

/// Cuts a byte stream into PDUs.
pub(crate) struct Assembler {
    pub header_digest: bool,
    pub data_digest: bool,
    /// MaxRecvDataSegmentLength of this end.
    pub data_bytes_max: usize,
    partial: Option<Partial>,
    bytes_wanted: usize,
}

/// A PDU whose headers are there and whose data is not, or not all. Small: every PDU is one for a moment.
struct Partial {
    header: Header,
    additional: Bytes,
    data: Payload,
    data_missing: u32,
    /// Padding and digest.
    trailer: u32,
    digest: Crc32c,
}

impl Assembler {
    pub fn new(data_bytes_max: usize) -> Assembler {
        Assembler {
            header_digest: false,
            data_digest: false,
            data_bytes_max,
            partial: None,
            bytes_wanted: HEADER_BYTES,
        }
    }

    /// How many bytes of the PDU in progress are still to come.
    pub fn bytes_wanted(&self) -> usize {
        self.bytes_wanted
    }

    /// The next PDU, if `input` holds the rest of it.
    pub fn next(&mut self, input: &mut BytesMut) -> Result<Option<Pdu>, FrameError> {
        if let Some(pdu) = self.take_whole(input) {
            self.bytes_wanted = HEADER_BYTES;
            return Ok(Some(pdu));
        }
        let begun = match self.partial.take() {
            Some(partial) => Some(partial),
            None => self.take_headers(input)?,
        };
        let Some(mut partial) = begun else { return Ok(None) };
        let whole = (partial.data_missing + partial.trailer) as usize;
        if input.len() >= whole {
            self.bytes_wanted = HEADER_BYTES;
            return Ok(Some(self.finish(partial, input)));
        }
        if partial.data_missing > 0 && input.len() >= PIECE_BYTES_MIN {
            let length = input.len().min(partial.data_missing as usize);
            self.take_data(&mut partial, input, length);
        }
        self.bytes_wanted = (partial.data_missing + partial.trailer) as usize - input.len();
        self.partial = Some(partial);
        Ok(None)
    }

    /// The next PDU where all of it is there and it is as plain as most are: no digests, no additional headers.
    fn take_whole(&self, input: &mut BytesMut) -> Option<Pdu> {
        let header = *input.first_chunk::<HEADER_BYTES>()?;
        let lengths = Lengths::of(&header);
        let trailer = padding(lengths.data);
        let is_plain = !self.header_digest && !self.data_digest && lengths.additional_headers == 0;
        let is_whole = input.len() >= HEADER_BYTES + lengths.data + trailer;
        if self.partial.is_some() || !is_plain || !is_whole || lengths.data > self.data_bytes_max {
            return None;
        }
        input.advance(HEADER_BYTES);
        let mut data = Payload::new();
        if lengths.data > 0 {
            data = Payload::from(input.split_to(lengths.data).freeze());
            input.advance(trailer);
        }
        Some(Pdu { header, additional: Bytes::new(), data, data_intact: true })
    }

    fn take_headers(&mut self, input: &mut BytesMut) -> Result<Option<Partial>, FrameError> {
        let Some(header) = input.first_chunk::<HEADER_BYTES>() else {
            self.bytes_wanted = HEADER_BYTES - input.len();
            return Ok(None);
        };
        let header = *header;
        let lengths = Lengths::of(&header);
        let headers = HEADER_BYTES + lengths.additional_headers;
        let digest = if self.header_digest { DIGEST_BYTES } else { 0 };
        if input.len() < headers + digest {
            self.bytes_wanted = headers + digest - input.len();
            return Ok(None);
        }
        if self.header_digest && base::crc32c(&input[..headers]).to_le_bytes() != input[headers..headers + 4]
        {
            return Err(FrameError::HeaderDigest);
        }
        let misplaced = lengths.additional_headers > 0 && Opcode::of(&header) != Some(Opcode::ScsiCommand);
        if lengths.data > self.data_bytes_max || misplaced {
            return Err(FrameError::Length { header });
        }
        let additional = if lengths.additional_headers == 0 {
            Bytes::new()
        } else {
            Bytes::copy_from_slice(&input[HEADER_BYTES..headers])
        };
        input.advance(headers + digest);
        let has_digest = self.data_digest && lengths.data > 0;
        Ok(Some(Partial {
            header,
            additional,
            data: Payload::new(),
            data_missing: lengths.data as u32,
            trailer: (padding(lengths.data) + if has_digest { DIGEST_BYTES } else { 0 }) as u32,
            digest: Crc32c::new(),
        }))
    }

    fn take_data(&self, partial: &mut Partial, input: &mut BytesMut, length: usize) {
        let piece = input.split_to(length).freeze();
        if self.data_digest {
            partial.digest.update(&piece);
        }
        partial.data_missing -= length as u32;
        partial.data.push(piece);
    }

    fn finish(&self, mut partial: Partial, input: &mut BytesMut) -> Pdu {
        let mut data_intact = true;
        if partial.data_missing > 0 {
            let length = partial.data_missing as usize;
            self.take_data(&mut partial, input, length);
        }
        if self.data_digest && !partial.data.is_empty() {
            let pad = partial.trailer as usize - DIGEST_BYTES;
            partial.digest.update(&input[..pad]);
            data_intact = partial.digest.finish().to_le_bytes() == input[pad..pad + DIGEST_BYTES];
        }
        input.advance(partial.trailer as usize);
        Pdu { header: partial.header, additional: partial.additional, data: partial.data, data_intact }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::Output;
    use proptest::prelude::*;
    use wire::iscsi::{DataOut, RESERVED_TAG};

    fn data_out(length: usize, sn: u32) -> Header {
        DataOut {
            is_final: true,
            lun: 0,
            task_tag: 1,
            target_tag: RESERVED_TAG,
            exp_stat_sn: 0,
            data_sn: sn,
            offset_bytes: 0,
        }
        .emit(Lengths::data(length))
    }

    fn stream(lengths: &[usize], header_digest: bool, data_digest: bool) -> Vec<u8> {
        let mut output = Output::new();
        (output.header_digest, output.data_digest) = (header_digest, data_digest);
        for (sn, &length) in lengths.iter().enumerate() {
            let data: Vec<u8> = (0..length).map(|i| (i * 7 + sn) as u8).collect();
            output.push(&data_out(length, sn as u32), [Bytes::from(data)]);
        }
        output.take().concat()
    }

    #[test]
    fn golden_digests() {
        // RFC 7143 appendix A.4: 32 bytes of zeros have the digest aa 36 91 8a, in this order on the wire.
        let mut output = Output::new();
        output.data_digest = true;
        output.push(&data_out(32, 0), [Bytes::from_static(&[0; 32])]);
        let bytes = output.take().concat();
        assert_eq!(bytes[48 + 32..], [0xaa, 0x36, 0x91, 0x8a]);
    }

    #[test]
    fn corruption_is_seen() {
        let clean = stream(&[5000, 3], true, true);
        for place in (0..clean.len()).step_by(17) {
            let mut bytes = clean.clone();
            bytes[place] ^= 1;
            let mut assembler = Assembler::new(8192);
            (assembler.header_digest, assembler.data_digest) = (true, true);
            let mut input = BytesMut::from(&bytes[..]);
            let mut intact = 0;
            while let Ok(Some(pdu)) = assembler.next(&mut input) {
                intact += u32::from(pdu.data_intact);
            }
            assert!(intact < 2, "a flipped bit at {place} went unnoticed");
        }
    }

    #[test]
    fn lies_about_lengths_end_the_stream() {
        let mut assembler = Assembler::new(8192);
        let header = data_out(8193, 0);
        let result = assembler.next(&mut BytesMut::from(&header[..])).map(|_| ());
        assert_eq!(result, Err(FrameError::Length { header }));
        let mut header = data_out(1, 0);
        header[4] = 255; // additional headers on a Data-Out
        let mut input = BytesMut::from(&header[..]);
        input.resize(48 + 1020, 0);
        assert_eq!(assembler.next(&mut input).map(|_| ()), Err(FrameError::Length { header }));
    }

    proptest! {
        #[test]
        fn any_chunking_gives_the_same_pdus(
            lengths in proptest::collection::vec(prop_oneof![0usize..20, 0usize..60_000], 1..6),
            chunks in proptest::collection::vec(prop_oneof![1usize..60, 1usize..50_000], 1..40),
            header_digest: bool, data_digest: bool,
        ) {
            let bytes = stream(&lengths, header_digest, data_digest);
            let mut assembler = Assembler::new(1 << 20);
            (assembler.header_digest, assembler.data_digest) = (header_digest, data_digest);
            let (mut input, mut at, mut found) = (BytesMut::new(), 0, Vec::new());
            for &chunk in chunks.iter().cycle() {
                let end = bytes.len().min(at + chunk);
                input.extend_from_slice(&bytes[at..end]);
                at = end;
                while let Some(pdu) = assembler.next(&mut input).unwrap() {
                    prop_assert!(pdu.data_intact);
                    let (last, others) = pdu.data.pieces().split_last().map_or((0, &[][..]), |(l, o)| (l.len(), o));
                    prop_assert!(last <= pdu.data.len());
                    prop_assert!(others.iter().all(|piece| piece.len() >= PIECE_BYTES_MIN));
                    found.push(pdu);
                }
                prop_assert!(input.len() < PIECE_BYTES_MIN + HEADER_BYTES);
                if at == bytes.len() { break; }
                prop_assert!(assembler.bytes_wanted() <= bytes.len() - at);
            }
            prop_assert_eq!(found.len(), lengths.len());
            for (sn, (pdu, &length)) in found.iter().zip(&lengths).enumerate() {
                let expected: Vec<u8> = (0..length).map(|i| (i * 7 + sn) as u8).collect();
                prop_assert_eq!(pdu.data.to_vec(), expected);
                prop_assert_eq!(pdu.header, data_out(length, sn as u32));
            }
        }
    }
}
