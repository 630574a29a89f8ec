//! VERIFY and WRITE AND VERIFY (SBC-3 §5.29-§5.31, §5.37-§5.39).
//!
//! VERIFY without comparison reads the blocks. The verification is that of their checksums, or that of the drive.

use base::Lba;
use block::{BlockRequest, Payload};
use bytes::Bytes;

use crate::call::{Call, read_request};
use crate::fault::Fault;
use crate::response::{Expected, Pending, Step};

pub(crate) fn verify(call: &mut Call<'_>) -> Result<Step, Fault> {
    let extent = call.extent()?;
    let bytes = extent.blocks as usize * call.block_bytes();
    let expected = match call.cdb[1] >> 1 & 3 {
        0b00 => {
            call.data_out_bytes = Some(0);
            Expected::Anything
        }
        0b01 => Expected::Data(call.take_data_out(bytes)?),
        0b11 => {
            let block = call.block_bytes().min(bytes);
            Expected::Repeated(call.take_data_out(block)?.to_vec().into())
        }
        _ => return Err(Fault::cdb_bit(1, 2)),
    };
    if extent.blocks == 0 {
        return call.good();
    }
    call.block(read_request(extent), Pending::Verify(Box::new(expected)))
}

pub(crate) fn write_and_verify(call: &mut Call<'_>) -> Result<Step, Fault> {
    const BYTCHK: u8 = 0x02;
    let extent = call.extent()?;
    let data = call.take_data_out(extent.blocks as usize * call.block_bytes())?;
    if extent.blocks == 0 {
        return call.good();
    }
    let expected =
        Box::new(if call.cdb[1] & BYTCHK != 0 { Expected::Data(data.clone()) } else { Expected::Anything });
    let request = BlockRequest::Write { lba: Lba(extent.lba), data, durable: true };
    call.block(request, Pending::ReadBack { lba: extent.lba, blocks: extent.blocks, expected })
}

/// Compares what was read with what it must be.
pub(crate) fn compare(read: &[Bytes], expected: &Expected) -> Result<(), Fault> {
    let difference = match expected {
        Expected::Anything => None,
        Expected::Data(data) => first_difference(read, data),
        Expected::Repeated(block) => {
            let total: usize = read.iter().map(Bytes::len).sum();
            let mut data = Payload::new();
            for _ in 0..total / block.len() {
                data.push(block.clone());
            }
            first_difference(read, &data)
        }
    };
    difference.map_or(Ok(()), |offset| Err(Fault::Miscompare { offset_bytes: offset as u64 }))
}

/// The first byte at which two equally long lists of pieces differ.
fn first_difference(read: &[Bytes], data: &Payload) -> Option<usize> {
    assert_eq!(read.iter().map(Bytes::len).sum::<usize>(), data.len(), "lengths were checked before");
    let mut expected = data.pieces().iter().map(|piece| &piece[..]);
    let mut want: &[u8] = &[];
    let mut offset = 0;
    for piece in read {
        let mut have = &piece[..];
        while !have.is_empty() {
            if want.is_empty() {
                want = expected.next()?;
            }
            let length = have.len().min(want.len());
            if have[..length] != want[..length] {
                let at = have.iter().zip(want).position(|(a, b)| a != b);
                return Some(offset + at.expect("they differ"));
            }
            (have, want) = (&have[length..], &want[length..]);
            offset += length;
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn finds_the_first_difference(bytes in proptest::collection::vec(any::<u8>(), 1..60),
                                      cuts in proptest::collection::vec((0usize..60, any::<bool>()), 0..6),
                                      change in proptest::option::of(0usize..60)) {
            let mut other = bytes.clone();
            let change = change.map(|at| at % bytes.len());
            if let Some(at) = change {
                other[at] ^= 0x40;
            }
            let pieces = |bytes: &[u8], which: bool| {
                let mut cuts: Vec<_> = cuts.iter().filter(|cut| cut.1 == which).map(|cut| cut.0.min(bytes.len())).collect();
                cuts.extend([0, bytes.len()]);
                cuts.sort_unstable();
                cuts.windows(2).map(|pair| Bytes::copy_from_slice(&bytes[pair[0]..pair[1]])).collect::<Vec<_>>()
            };
            let mut data = Payload::new();
            pieces(&other, true).into_iter().for_each(|piece| data.push(piece));
            prop_assert_eq!(first_difference(&pieces(&bytes, false), &data), change);
        }
    }
}
