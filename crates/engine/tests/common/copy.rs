//! EXTENDED COPY, as hosts send it.

use block::Payload;
use bytes::Bytes;
use iscsi::initiator::Request;
use wire::scsi::Lun;
use wire::scsi::copy::{CopySegment, CopyTarget, emit_copy};

use super::Lab;
use super::host::{Host, cdb};

/// A LUN, as a list of copies names it.
pub fn copy_target(lab: &mut Lab, host: &Host, lun: u16) -> [u8; 32] {
    let mut request = Request::new(Lun::new(lun).unwrap().emit(), cdb(&[0x12, 1, 0x83, 0, 255, 0]));
    request.expected_in = 255;
    let completion = host.run(lab, request);
    let data = completion.data_in.to_vec();
    let mut rest = &data[4..];
    while rest[1] & 0xF != 3 || rest[3] != 16 {
        rest = &rest[4 + usize::from(rest[3])..];
    }
    CopyTarget { unit_id_type: 0, null: false, naa: Some(rest[4..20].try_into().unwrap()) }.emit(512)
}

/// Copies sectors between two of the targets, or within one; sent to this LUN.
pub fn extended_copy(
    lun: u16,
    targets: &[[u8; 32]],
    from: (u16, u64),
    to: (u16, u64),
    sectors: u64,
) -> Request {
    let segment = CopySegment {
        counts_destination: true,
        source: from.0,
        destination: to.0,
        blocks: u16::try_from(sectors).expect("one segment"),
        source_lba: from.1,
        destination_lba: to.1,
    };
    let list = emit_copy(0, 3, targets, &[segment]);
    let l = (list.len() as u32).to_be_bytes();
    let copy = [0x83, 0, 0, 0, 0, 0, 0, 0, 0, 0, l[0], l[1], l[2], l[3], 0, 0];
    let mut request = Request::new(Lun::new(lun).unwrap().emit(), cdb(&copy));
    request.data_out = Payload::from(Bytes::from(list));
    request
}
