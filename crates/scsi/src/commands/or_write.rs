//! ORWRITE (16) (SBC-3 §5.7): sets bits.
//!
//! Each piece is read, and written back with the bits set by a compare-and-write. If another command has changed
//! the piece meanwhile, it is read again. No set bit is lost, in whatever order commands run.

use base::Lba;
use base::limits::COMPARE_AND_WRITE_BYTES_MAX;
use block::{BlockError, BlockOutput, BlockRequest, BlockResult, Payload};
use bytes::Bytes;
use wire::scsi::Status;
use wire::scsi::cdb::FUA;

use crate::call::Call;
use crate::fault::{Fault, block_error};
use crate::nexus::Nexus;
use crate::response::{Continuation, Pending, Response, Step};
use crate::unit::LogicalUnit;

/// How often a piece is read again before the initiator is asked to come back.
const ATTEMPTS_MAX: u8 = 64;

/// What is still to be set, from `lba` on.
#[derive(Debug)]
pub(crate) struct Job {
    lba: u64,
    data: Payload,
    durable: bool,
    attempts: u8,
}

pub(crate) fn or_write(call: &mut Call<'_>) -> Result<Step, Fault> {
    let extent = call.extent()?;
    let data = call.take_data_out(extent.blocks as usize * call.block_bytes())?;
    if extent.blocks == 0 {
        return call.good();
    }
    let durable = call.cdb[1] & FUA != 0;
    let job = Job { lba: extent.lba, data, durable, attempts: 0 };
    Ok(read(call.unit, Box::new(job), call.data_out_bytes.unwrap_or(0)))
}

/// Bytes of the next piece: it does not cross a multiple of its largest size.
fn piece_bytes(unit: &LogicalUnit, job: &Job) -> usize {
    let offset = job.lba.wrapping_mul(u64::from(unit.geometry.block_bytes)) as usize;
    let room = COMPARE_AND_WRITE_BYTES_MAX - offset % COMPARE_AND_WRITE_BYTES_MAX;
    job.data.len().min(room)
}

fn read(unit: &LogicalUnit, job: Box<Job>, data_out_bytes: usize) -> Step {
    let blocks = (piece_bytes(unit, &job) / unit.geometry.block_bytes as usize) as u32;
    let request = BlockRequest::Read { lba: Lba(job.lba), blocks };
    Step::Block(request, Continuation { data_out_bytes, pending: Pending::OrWrite(job) })
}

/// A piece has been read, or exchanged, or somebody else was faster.
pub(crate) fn on_piece(
    unit: &LogicalUnit,
    nexus: &Nexus,
    mut job: Box<Job>,
    data_out_bytes: usize,
    result: BlockResult,
) -> Step {
    match result {
        Ok(BlockOutput::Data(before)) => {
            let before = before.to_vec();
            let set: Vec<u8> =
                before.iter().zip(job.data.slice(0..before.len()).to_vec()).map(|(a, b)| a | b).collect();
            let request = BlockRequest::CompareAndWrite {
                lba: Lba(job.lba),
                expected: Box::new(Payload::from(before)),
                data: Payload::from(Bytes::from(set)),
                durable: job.durable,
            };
            Step::Block(request, Continuation { data_out_bytes, pending: Pending::OrWrite(job) })
        }
        Ok(_) => {
            let bytes = piece_bytes(unit, &job);
            if bytes == job.data.len() {
                return Step::Done(Response::good(data_out_bytes));
            }
            job.data = job.data.slice(bytes..job.data.len());
            job.lba += bytes as u64 / u64::from(unit.geometry.block_bytes);
            job.attempts = 0;
            read(unit, job, data_out_bytes)
        }
        Err(BlockError::Miscompare { .. }) if job.attempts < ATTEMPTS_MAX => {
            job.attempts += 1;
            read(unit, job, data_out_bytes)
        }
        Err(error) => {
            let (status, sense) = match error {
                BlockError::Miscompare { .. } => (Status::Busy, None),
                error => block_error(error, true),
            };
            let sense = sense.map(|sense| sense.emit(nexus.sense_format()));
            Step::Done(Response { status, sense, data_in: Payload::new(), data_out_bytes })
        }
    }
}
