//! EXTENDED COPY (LID1) and RECEIVE COPY RESULTS (SPC-4 §6.3, §6.4, §6.18), and the VPD page that describes
//! them: third-party copy (SPC-4 §7.8.17).
//!
//! ```text
//!   0 list identifier │ 1 STR, list ID usage │ 2 target list length 2 │ 8 segment list length 4 │ 12 inline length 4
//!   16 target descriptors, 32 bytes each │ segment descriptors, 28 bytes each
//! ```

pub const COPY_HEADER_BYTES: usize = 16;
pub const TARGET_DESCRIPTOR_BYTES: usize = 32;
pub const SEGMENT_DESCRIPTOR_BYTES: usize = 28;
/// Identification descriptor target.
pub const TARGET_IDENTIFICATION: u8 = 0xE4;
/// Block to block.
pub const SEGMENT_BLOCK_TO_BLOCK: u8 = 0x02;

/// The header of EXTENDED COPY's parameter list.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CopyHeader {
    pub list_id: u8,
    /// 0: results are held; 2: they are not; 3: there is no list identifier.
    pub list_id_usage: u8,
    pub targets_bytes: usize,
    pub segments_bytes: usize,
    pub inline_bytes: usize,
}

impl CopyHeader {
    /// `None` where it is cut short.
    pub fn parse(bytes: &[u8]) -> Option<CopyHeader> {
        let header = bytes.first_chunk::<COPY_HEADER_BYTES>()?;
        let long =
            |at: usize| u32::from_be_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]]);
        Some(CopyHeader {
            list_id: header[0],
            list_id_usage: header[1] >> 3 & 3,
            targets_bytes: usize::from(u16::from_be_bytes([header[2], header[3]])),
            segments_bytes: long(8) as usize,
            inline_bytes: long(12) as usize,
        })
    }

    pub fn emit(&self) -> Vec<u8> {
        let mut out = vec![self.list_id, self.list_id_usage << 3];
        out.extend_from_slice(&(self.targets_bytes as u16).to_be_bytes());
        out.extend_from_slice(&[0; 4]);
        out.extend_from_slice(&(self.segments_bytes as u32).to_be_bytes());
        out.extend_from_slice(&(self.inline_bytes as u32).to_be_bytes());
        out
    }
}

/// An identification descriptor target (type E4h) of a disk.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CopyTarget {
    /// LU ID TYPE: 0 is a logical unit number, all else is not for this type.
    pub unit_id_type: u8,
    /// NUL: no device at all.
    pub null: bool,
    /// Binary NAA designator of 16 bytes, of a logical unit; `None` where it is any other.
    pub naa: Option<[u8; 16]>,
}

impl CopyTarget {
    pub fn parse(bytes: &[u8; TARGET_DESCRIPTOR_BYTES]) -> CopyTarget {
        let is_naa = bytes[4] & 0x0F == 1 && bytes[5] & 0x3F == 3 && bytes[7] == 16;
        CopyTarget {
            unit_id_type: bytes[1] >> 6,
            null: bytes[1] & 0x20 != 0,
            naa: bytes[8..24].try_into().ok().filter(|_| is_naa),
        }
    }

    pub fn emit(&self, block_bytes: u32) -> [u8; TARGET_DESCRIPTOR_BYTES] {
        let mut out = [0; TARGET_DESCRIPTOR_BYTES];
        (out[0], out[1]) = (TARGET_IDENTIFICATION, self.unit_id_type << 6 | u8::from(self.null) << 5);
        if let Some(naa) = self.naa {
            (out[4], out[5], out[7]) = (1, 3, 16);
            out[8..24].copy_from_slice(&naa);
        }
        out[28..].copy_from_slice(&block_bytes.to_be_bytes());
        out
    }
}

/// A block-to-block segment descriptor (type 02h).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CopySegment {
    /// DC: the number of blocks counts the destination's.
    pub counts_destination: bool,
    /// Indexes of target descriptors.
    pub source: u16,
    pub destination: u16,
    pub blocks: u16,
    pub source_lba: u64,
    pub destination_lba: u64,
}

impl CopySegment {
    pub fn parse(bytes: &[u8; SEGMENT_DESCRIPTOR_BYTES]) -> CopySegment {
        let short = |at: usize| u16::from_be_bytes([bytes[at], bytes[at + 1]]);
        let long = |at: usize| u64::from_be_bytes(bytes[at..at + 8].try_into().expect("eight bytes"));
        CopySegment {
            counts_destination: bytes[1] & 0x02 != 0,
            source: short(4),
            destination: short(6),
            blocks: short(10),
            source_lba: long(12),
            destination_lba: long(20),
        }
    }

    pub fn emit(&self) -> [u8; SEGMENT_DESCRIPTOR_BYTES] {
        let mut out = [0; SEGMENT_DESCRIPTOR_BYTES];
        (out[0], out[1]) = (SEGMENT_BLOCK_TO_BLOCK, u8::from(self.counts_destination) << 1);
        out[2..4].copy_from_slice(&(SEGMENT_DESCRIPTOR_BYTES as u16 - 4).to_be_bytes());
        out[4..6].copy_from_slice(&self.source.to_be_bytes());
        out[6..8].copy_from_slice(&self.destination.to_be_bytes());
        out[10..12].copy_from_slice(&self.blocks.to_be_bytes());
        out[12..20].copy_from_slice(&self.source_lba.to_be_bytes());
        out[20..28].copy_from_slice(&self.destination_lba.to_be_bytes());
        out
    }
}

/// The whole parameter list.
pub fn emit_copy(list_id: u8, list_id_usage: u8, targets: &[[u8; 32]], segments: &[CopySegment]) -> Vec<u8> {
    let header = CopyHeader {
        list_id,
        list_id_usage,
        targets_bytes: targets.len() * TARGET_DESCRIPTOR_BYTES,
        segments_bytes: segments.len() * SEGMENT_DESCRIPTOR_BYTES,
        inline_bytes: 0,
    };
    let segments: Vec<u8> = segments.iter().flat_map(CopySegment::emit).collect();
    [header.emit(), targets.concat(), segments].concat()
}

/// What a copy manager can do. No inline, held or stream data; segments as long as blocks go.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CopyLimits {
    pub targets_max: u16,
    pub segments_max: u16,
    pub descriptors_bytes_max: u32,
    pub segment_bytes_max: u32,
    pub concurrent_max: u8,
    /// Log2 of the smallest piece of a segment.
    pub granularity: u8,
}

impl CopyLimits {
    /// OPERATING PARAMETERS data (SPC-4 §6.18.4): copies without list identifiers are possible (SNLID).
    pub fn emit_operating_parameters(&self) -> Vec<u8> {
        let mut out = vec![0; 44];
        out[4] = 0x01;
        out[8..10].copy_from_slice(&self.targets_max.to_be_bytes());
        out[10..12].copy_from_slice(&self.segments_max.to_be_bytes());
        out[12..16].copy_from_slice(&self.descriptors_bytes_max.to_be_bytes());
        out[16..20].copy_from_slice(&self.segment_bytes_max.to_be_bytes());
        out[34..36].copy_from_slice(&u16::from(self.concurrent_max).to_be_bytes());
        (out[36], out[37]) = (self.concurrent_max, self.granularity);
        out[43] = 2;
        out.extend_from_slice(&[SEGMENT_BLOCK_TO_BLOCK, TARGET_IDENTIFICATION]);
        let length = out.len() as u32 - 4;
        out[..4].copy_from_slice(&length.to_be_bytes());
        out
    }

    /// The body of the third-party copy page: commands, parameter data, descriptors, general copy operations.
    pub fn emit_page(&self, commands: &[(u8, &[u8])]) -> Vec<u8> {
        let mut supported = vec![0];
        for (opcode, actions) in commands {
            supported.extend_from_slice(&[*opcode, actions.len() as u8]);
            supported.extend_from_slice(actions);
        }
        supported[0] = supported.len() as u8 - 1;
        let mut parameters = vec![0; 4];
        parameters.extend_from_slice(&self.targets_max.to_be_bytes());
        parameters.extend_from_slice(&self.segments_max.to_be_bytes());
        parameters.extend_from_slice(&self.descriptors_bytes_max.to_be_bytes());
        parameters.resize(0x1C, 0);
        let descriptors = vec![2, SEGMENT_BLOCK_TO_BLOCK, TARGET_IDENTIFICATION];
        let mut general = u32::from(self.concurrent_max).to_be_bytes().repeat(2);
        general.extend_from_slice(&self.segment_bytes_max.to_be_bytes());
        general.push(self.granularity);
        general.resize(0x20, 0);
        let mut out = Vec::new();
        for (code, mut body) in
            [(0x0001u16, supported), (0x0004, parameters), (0x0008, descriptors), (0x8001, general)]
        {
            body.resize(body.len().next_multiple_of(4), 0);
            out.extend_from_slice(&code.to_be_bytes());
            out.extend_from_slice(&(body.len() as u16).to_be_bytes());
            out.extend_from_slice(&body);
        }
        out
    }
}

/// COPY STATUS data (SPC-4 §6.18.2): in progress where `error` is not known yet.
pub fn emit_copy_status(error: Option<bool>, segments: u16, bytes: u64) -> Vec<u8> {
    let status = match error {
        None => 0,
        Some(false) => 1,
        Some(true) => 2,
    };
    // in bytes while that fits, then in KiB
    let (units, count) = u32::try_from(bytes).map_or((1, (bytes >> 10) as u32), |bytes| (0, bytes));
    let mut out = vec![0, 0, 0, 8, status];
    out.extend_from_slice(&segments.to_be_bytes());
    out.push(units);
    out.extend_from_slice(&count.to_be_bytes());
    out
}

/// FAILED SEGMENT DETAILS data (SPC-4 §6.18.5).
pub fn emit_failed_segment(status: u8, sense: &[u8]) -> Vec<u8> {
    let mut out = vec![0; 56];
    out.extend_from_slice(&[status, 0]);
    out.extend_from_slice(&(sense.len() as u16).to_be_bytes());
    out.extend_from_slice(sense);
    let length = out.len() as u32 - 4;
    out[..4].copy_from_slice(&length.to_be_bytes());
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn golden_bytes() {
        let target = CopyTarget { unit_id_type: 0, null: false, naa: Some([0x66; 16]) };
        let bytes = target.emit(512);
        assert_eq!(bytes[..9], [0xE4, 0, 0, 0, 1, 3, 0, 16, 0x66]);
        assert_eq!(bytes[24..], [0, 0, 0, 0, 0, 0, 2, 0]);
        let segment = CopySegment {
            counts_destination: true,
            source: 0,
            destination: 1,
            blocks: 0x800,
            source_lba: 5,
            destination_lba: 6,
        };
        assert_eq!(segment.emit()[..12], [2, 2, 0, 24, 0, 0, 0, 1, 0, 0, 8, 0]);
        let list = emit_copy(7, 3, &[bytes], &[segment]);
        assert_eq!(list[..16], [7, 0x18, 0, 32, 0, 0, 0, 0, 0, 0, 0, 28, 0, 0, 0, 0]);
        let limits = CopyLimits {
            targets_max: 2,
            segments_max: 3,
            descriptors_bytes_max: 4,
            segment_bytes_max: 5,
            concurrent_max: 6,
            granularity: 9,
        };
        let parameters = limits.emit_operating_parameters();
        assert_eq!(parameters[..12], [0, 0, 0, 42, 1, 0, 0, 0, 0, 2, 0, 3]);
        assert_eq!(parameters[34..], [0, 6, 6, 9, 0, 0, 0, 0, 0, 2, 0x02, 0xE4]);
        let page = limits.emit_page(&[(0x83, &[0]), (0x84, &[0, 3])]);
        assert_eq!(page[..12], [0, 1, 0, 8, 7, 0x83, 1, 0, 0x84, 2, 0, 3]);
        assert_eq!(page[12..16], [0, 4, 0, 0x1C]);
        assert!(page.len().is_multiple_of(4));
        assert_eq!(emit_copy_status(Some(false), 1, 512), [0, 0, 0, 8, 1, 0, 1, 0, 0, 0, 2, 0]);
        assert_eq!(emit_copy_status(Some(true), 1, 1 << 33)[7..], [1, 0, 0x80, 0, 0]);
        assert_eq!(emit_failed_segment(2, &[0x70]).len(), 61);
    }

    proptest! {
        #[test]
        fn parse_inverts_emit(naa: [u8; 16], null: bool, counts_destination: bool, numbers: [u16; 3], lbas: [u64; 2], list_id: u8, usage in 0u8..4) {
            let target = CopyTarget { unit_id_type: 0, null, naa: Some(naa) };
            prop_assert_eq!(CopyTarget::parse(&target.emit(512)), target);
            let segment = CopySegment {
                counts_destination, source: numbers[0], destination: numbers[1], blocks: numbers[2],
                source_lba: lbas[0], destination_lba: lbas[1],
            };
            prop_assert_eq!(CopySegment::parse(&segment.emit()), segment);
            let header = CopyHeader { list_id, list_id_usage: usage, targets_bytes: 64, segments_bytes: 28, inline_bytes: 0 };
            prop_assert_eq!(CopyHeader::parse(&header.emit()), Some(header));
        }
    }
}
