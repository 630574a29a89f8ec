//! A command at its start: what a handler may read, and the checks that handlers share.

use base::Lba;
use base::limits::TRANSFER_BYTES_MAX;
use block::{BlockRequest, Payload};
use wire::scsi::Lun;
use wire::scsi::cdb::{BlockFields, length_byte};

use crate::commands::copy::{Naa, Peer};
use crate::fault::Fault;
use crate::nexus::Nexus;
use crate::response::{Continuation, Pending, Response, Step};
use crate::table::Row;
use crate::unit::{LogicalUnit, Space};

pub(crate) struct Call<'a> {
    pub(crate) unit: &'a LogicalUnit,
    pub(crate) nexus: &'a mut Nexus,
    pub(crate) row: &'static Row,
    /// Exactly the opcode's CDB length.
    pub(crate) cdb: &'a [u8],
    pub(crate) data_out: Payload,
    pub(crate) luns: &'a dyn Fn() -> Vec<Lun>,
    pub(crate) peers: &'a dyn Fn(&Naa) -> Option<Peer>,
    pub(crate) space: &'a dyn Fn() -> Option<Space>,
    pub(crate) clock: &'a dyn Fn() -> u64,
    /// What the CDB calls for, as soon as the handler knows.
    pub(crate) data_out_bytes: Option<usize>,
}

/// A range that lies within the logical unit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Extent {
    pub(crate) lba: u64,
    pub(crate) blocks: u32,
}

impl<'a> Call<'a> {
    pub(crate) fn block_bytes(&self) -> usize {
        self.unit.geometry.block_bytes as usize
    }

    /// The fields that block commands share.
    pub(crate) fn fields(&self) -> BlockFields {
        BlockFields::parse(self.cdb).expect("the table knows CDBs of 6, 10, 12 and 16 bytes only")
    }

    /// The range of a READ, WRITE or VERIFY, checked against the volume and the transfer limit.
    pub(crate) fn extent(&self) -> Result<Extent, Fault> {
        let fields = self.fields();
        let six = self.cdb.len() == 6;
        let blocks = if six && fields.length == 0 { 256 } else { fields.length };
        let extent = self.unit.check_range(fields.lba, u64::from(blocks));
        extent?;
        if blocks as usize > TRANSFER_BYTES_MAX / self.block_bytes() {
            return Err(Fault::cdb(length_byte(self.cdb.len())));
        }
        Ok(Extent { lba: fields.lba, blocks })
    }

    /// The first `bytes` of the data-out. What the transport delivered beyond them is ignored (the residual
    /// tells); less than them is refused before anything is written.
    pub(crate) fn take_data_out(&mut self, bytes: usize) -> Result<Payload, Fault> {
        self.data_out_bytes = Some(bytes);
        let data = std::mem::take(&mut self.data_out);
        if data.len() < bytes {
            return Err(Fault::DataOutLength);
        }
        Ok(if data.len() == bytes { data } else { data.slice(0..bytes) })
    }

    /// All of the data-out, which must be exactly `bytes` long.
    pub(crate) fn take_exact_data_out(&mut self, bytes: usize) -> Result<Payload, Fault> {
        if self.data_out.len() > bytes {
            self.data_out_bytes = Some(bytes);
            return Err(Fault::DataOutLength);
        }
        self.take_data_out(bytes)
    }

    pub(crate) fn good(&self) -> Result<Step, Fault> {
        let expected =
            self.data_out_bytes.unwrap_or(if self.wants_data_out() { self.data_out.len() } else { 0 });
        Ok(Step::Done(Response::good(expected)))
    }

    fn wants_data_out(&self) -> bool {
        self.row.direction == crate::table::Direction::Out
    }

    /// Parameter data, cut to the allocation length (SPC-4 §4.2.5.6).
    pub(crate) fn parameters(&self, mut data: Vec<u8>, allocation_bytes: usize) -> Result<Step, Fault> {
        data.truncate(allocation_bytes);
        Ok(Step::Done(Response::with_data(data.into())))
    }

    pub(crate) fn block(&self, request: BlockRequest, pending: Pending) -> Result<Step, Fault> {
        let data_out_bytes = self.data_out_bytes.unwrap_or(0);
        Ok(Step::Block(request, Continuation { data_out_bytes, pending }))
    }

    /// A flush, and then the end of the command.
    pub(crate) fn flush(&self) -> Result<Step, Fault> {
        self.block(BlockRequest::Flush, Pending::Last { writing: true })
    }
}

pub(crate) fn read_request(extent: Extent) -> BlockRequest {
    BlockRequest::Read { lba: Lba(extent.lba), blocks: extent.blocks }
}
