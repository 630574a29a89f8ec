//! Continues a command after a block request, with the result of that request.

use base::Lba;
use block::{BlockError, BlockOutput, BlockRequest, BlockResult, Payload};

use crate::commands::{copy, lba_status, or_write, unmap, verify, write_same};
use crate::fault::{Fault, block_error};
use crate::nexus::Nexus;
use crate::response::{Continuation, Pending, Response, Step};
use crate::unit::LogicalUnit;

pub(crate) fn finish(
    unit: &LogicalUnit,
    nexus: &mut Nexus,
    continuation: Continuation,
    result: BlockResult,
) -> Step {
    let Continuation { data_out_bytes, pending } = continuation;
    let pending = match pending {
        Pending::Copy(job) => return copy::on_piece(nexus, job, data_out_bytes, result),
        Pending::OrWrite(job) => return or_write::on_piece(unit, nexus, job, data_out_bytes, result),
        pending => pending,
    };
    let output = match result {
        Ok(output) => output,
        // whatever is wrong with that one block, the unit is there
        Err(BlockError::Medium { .. } | BlockError::Unsupported) if matches!(pending, Pending::Ready) => {
            return Step::Done(Response::good(data_out_bytes));
        }
        Err(error) => {
            let (status, sense) = block_error(error, is_writing(&pending));
            let sense = sense.map(|sense| sense.emit(nexus.sense_format()));
            return Step::Done(Response { status, sense, data_in: Payload::new(), data_out_bytes });
        }
    };
    let next = match pending {
        Pending::Read { bytes } => return Step::Done(Response::with_data(read_data(output, bytes))),
        Pending::Last { .. } | Pending::Ready => Ok(None),
        Pending::Reserve | Pending::Copy(_) | Pending::OrWrite(_) => unreachable!("continued elsewhere"),
        Pending::Verify(expected) => verify::compare(read_pieces(output).pieces(), &expected).map(|()| None),
        Pending::ReadBack { lba, blocks, expected } => {
            Ok(Some((BlockRequest::Read { lba: Lba(lba), blocks }, Pending::Verify(expected))))
        }
        Pending::Unmap { rest } => Ok(unmap::next(rest)),
        Pending::WriteSame(rest) => Ok(write_same::next(unit, rest)),
        Pending::LbaStatus(rest) => {
            let BlockOutput::MapStatus { mapped, blocks } = output else {
                unreachable!("MapStatus is answered with a map status")
            };
            match lba_status::on_status(rest, mapped, blocks) {
                lba_status::Progress::More(request, pending) => Ok(Some((request, pending))),
                lba_status::Progress::Done(response) => return Step::Done(response),
            }
        }
    };
    match next {
        Ok(Some((request, pending))) => Step::Block(request, Continuation { data_out_bytes, pending }),
        Ok(None) => Step::Done(Response::good(data_out_bytes)),
        Err(fault) => done_with(fault, nexus, data_out_bytes),
    }
}

fn done_with(fault: Fault, nexus: &Nexus, data_out_bytes: usize) -> Step {
    Step::Done(Response::check(fault.sense(), nexus.sense_format(), data_out_bytes))
}

fn is_writing(pending: &Pending) -> bool {
    match pending {
        Pending::Ready
        | Pending::Reserve
        | Pending::Read { .. }
        | Pending::Verify(_)
        | Pending::LbaStatus(_) => false,
        Pending::Last { writing } => *writing,
        Pending::ReadBack { .. } | Pending::Unmap { .. } | Pending::WriteSame(_) => true,
        Pending::Copy(_) | Pending::OrWrite(_) => true,
    }
}

fn read_pieces(output: BlockOutput) -> Payload {
    match output {
        BlockOutput::Data(pieces) => pieces,
        output => unreachable!("a read is answered with data, not {output:?}"),
    }
}

fn read_data(output: BlockOutput, bytes: usize) -> Payload {
    let pieces = read_pieces(output);
    assert_eq!(pieces.len(), bytes, "a target reads what it was asked for");
    pieces
}
