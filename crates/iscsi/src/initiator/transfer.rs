//! Commands of an initiator and their data: immediate, unsolicited and solicited Data-Out; Data-In; task management.

use block::Payload;
use bytes::Bytes;
use wire::iscsi::{
    AdditionalHeaders, DataIn, DataOut, Header, Lengths, Numbers, R2t, RESERVED_TAG, Residual, ScsiCommand,
    ScsiResponse, ServiceResponse, TaskManagementFunction, TaskManagementRequest, TaskManagementResponse,
    TaskManagementResult, additional_headers_bytes,
};

use super::task::{Ends, Kind, Transfer};
use super::{Completion, Event, Fault, Initiator, Request, Tag, WindowFull, meaning};
use crate::api::TaskAttribute;
use crate::frame::Pdu;

impl Initiator {
    /// Sends a command, with as much of its data as may go unasked.
    pub fn command(&mut self, request: Request) -> Result<Tag, WindowFull> {
        if !self.can_send() {
            return Err(WindowFull);
        }
        let Request { lun, cdb, cdb_extra, attribute, data_out, expected_in, immediate } = request;
        let length = data_out.len();
        let parameters = self.parameters;
        let unasked = length.min(parameters.first_burst_bytes as usize);
        let with_command = match parameters.immediate_data {
            true => unasked.min(parameters.send_segment_bytes as usize),
            false => 0,
        };
        let unsolicited_end = if parameters.initial_r2t { with_command } else { unasked };
        let (read, write) = (expected_in > 0, length > 0);
        let additional = AdditionalHeaders {
            extended_cdb: &cdb_extra,
            bidirectional_read_bytes: (read && write).then_some(expected_in),
        };
        let lengths =
            Lengths { additional_headers: additional_headers_bytes(&additional), data: with_command };
        let first = data_out.slice(0..with_command);
        let transfer = Transfer {
            data_out: data_out.clone(),
            data_in: Payload::new(),
            expected_in,
            data_sn: 0,
            burst_bytes: 0,
        };
        let tag = self.tasks.insert(Kind::Command(transfer), lun);
        let command = ScsiCommand {
            immediate,
            is_final: unsolicited_end == with_command,
            read,
            write,
            attribute: wire_attribute(attribute),
            lun,
            task_tag: tag.0,
            expected_bytes: if write { length as u32 } else { expected_in },
            cmd_sn: self.number(immediate),
            exp_stat_sn: self.exp_stat_sn,
            cdb,
        };
        if lengths.additional_headers == 0 {
            self.output.push(&command.emit(lengths), first.pieces().iter().cloned());
        } else {
            let mut bytes = Vec::with_capacity(lengths.additional_headers);
            additional.emit(&mut bytes);
            self.output.push_with_additional(&command.emit(lengths), &bytes, first.pieces().iter().cloned());
        }
        self.send_data(tag, lun, RESERVED_TAG, &data_out, with_command, unsolicited_end);
        Ok(tag)
    }

    /// One sequence of Data-Out PDUs.
    fn send_data(&mut self, tag: Tag, lun: u64, target_tag: u32, data: &Payload, start: usize, end: usize) {
        let segment = self.parameters.send_segment_bytes as usize;
        let (mut offset, mut data_sn) = (start, 0);
        while offset < end {
            let length = segment.min(end - offset);
            let header = DataOut {
                is_final: offset + length == end,
                lun: if target_tag == RESERVED_TAG { 0 } else { lun },
                task_tag: tag.0,
                target_tag,
                exp_stat_sn: self.exp_stat_sn,
                data_sn,
                offset_bytes: offset as u32,
            };
            let piece = data.slice(offset..offset + length);
            self.output.push(&header.emit(Lengths::data(length)), piece.pieces().iter().cloned());
            offset += length;
            data_sn += 1;
        }
    }

    pub(super) fn on_r2t(&mut self, header: &Header) -> Result<(), Fault> {
        let r2t = meaning(R2t::parse(header))?;
        if r2t.numbers.stat_sn != self.exp_stat_sn {
            return Err(Fault::StatusNumber);
        }
        self.on_window(r2t.numbers.exp_cmd_sn, r2t.numbers.max_cmd_sn);
        let tag = Tag(r2t.task_tag);
        let (start, length) = (r2t.offset_bytes as usize, r2t.desired_bytes as usize);
        let burst = self.parameters.max_burst_bytes as usize;
        let transfer = self.tasks.command(tag).ok_or(Fault::UnexpectedPdu)?;
        if r2t.r2t_sn != transfer.data_sn || length > burst || start + length > transfer.data_out.len() {
            return Err(Fault::DataSequence);
        }
        transfer.data_sn += 1;
        let data = transfer.data_out.clone();
        let lun = self.tasks.lun(tag);
        self.send_data(tag, lun, r2t.target_tag, &data, start, start + length);
        Ok(())
    }

    pub(super) fn on_data_in(&mut self, pdu: Pdu) -> Result<(), Fault> {
        let data_in = meaning(DataIn::parse(&pdu.header))?;
        self.on_window(data_in.exp_cmd_sn, data_in.max_cmd_sn);
        let burst_max = self.parameters.max_burst_bytes;
        let tag = Tag(data_in.task_tag);
        let transfer = self.tasks.command(tag).ok_or(Fault::UnexpectedPdu)?;
        let received = transfer.data_in.len() + pdu.data.len();
        transfer.burst_bytes += pdu.data.len() as u32;
        let in_order = data_in.data_sn == transfer.data_sn
            && data_in.offset_bytes as usize == transfer.data_in.len()
            && received <= transfer.expected_in as usize
            && transfer.burst_bytes <= burst_max;
        if !in_order {
            return Err(Fault::DataSequence);
        }
        transfer.data_sn += 1;
        if data_in.is_final {
            transfer.burst_bytes = 0;
        }
        for piece in pdu.data.pieces() {
            transfer.data_in.push(piece.clone());
        }
        let Some(status) = data_in.status else { return Ok(()) };
        self.on_status(Numbers {
            stat_sn: status.stat_sn,
            exp_cmd_sn: data_in.exp_cmd_sn,
            max_cmd_sn: data_in.max_cmd_sn,
        })?;
        let transfer = self.tasks.take_command(tag).ok_or(Fault::UnexpectedPdu)?;
        self.complete(tag, transfer, status.status, Bytes::new(), [status.residual, Residual::None])
    }

    pub(super) fn on_scsi_response(&mut self, pdu: &Pdu) -> Result<(), Fault> {
        let response = meaning(ScsiResponse::parse(&pdu.header))?;
        self.on_status(response.numbers)?;
        if response.response != ServiceResponse::Completed {
            return Err(Fault::UnexpectedPdu);
        }
        let tag = Tag(response.task_tag);
        let transfer = self.tasks.take_command(tag).ok_or(Fault::UnexpectedPdu)?;
        let data = pdu.data.to_vec();
        let sense = match data.as_slice() {
            [] => Bytes::new(),
            [high, low, sense @ ..] => {
                let length = usize::from(u16::from_be_bytes([*high, *low]));
                Bytes::copy_from_slice(sense.get(..length).ok_or(Fault::UnexpectedPdu)?)
            }
            [_] => return Err(Fault::UnexpectedPdu),
        };
        let residuals = [response.residual, response.read_residual];
        self.complete(tag, transfer, response.status, sense, residuals)
    }

    fn complete(
        &mut self,
        tag: Tag,
        transfer: Transfer,
        status: u8,
        sense: Bytes,
        [residual, read_residual]: [Residual; 2],
    ) -> Result<(), Fault> {
        if transfer.burst_bytes != 0 {
            return Err(Fault::DataSequence); // a sequence that has not ended
        }
        let data_in = transfer.data_in;
        let completion = Completion { status, sense, data_in, residual, read_residual };
        self.events.push_back(Event::Completed(tag, completion));
        Ok(())
    }

    /// Sends a task management request, outside the window. `referenced`: for
    /// [`TaskManagementFunction::AbortTask`].
    pub fn task_management(
        &mut self,
        function: TaskManagementFunction,
        lun: u64,
        referenced: Option<Tag>,
    ) -> Tag {
        let ends = match function {
            TaskManagementFunction::AbortTask => referenced.map_or(Ends::Nothing, Ends::One),
            TaskManagementFunction::ClearAca | TaskManagementFunction::TaskReassign => Ends::Nothing,
            TaskManagementFunction::AbortTaskSet
            | TaskManagementFunction::ClearTaskSet
            | TaskManagementFunction::LogicalUnitReset => Ends::OfLun(lun),
            TaskManagementFunction::TargetWarmReset | TaskManagementFunction::TargetColdReset => Ends::All,
        };
        let tag = self.tasks.insert(Kind::TaskManagement { ends }, lun);
        let request = TaskManagementRequest {
            immediate: true,
            function: Some(function),
            lun,
            task_tag: tag.0,
            referenced_tag: referenced.map_or(RESERVED_TAG, |tag| tag.0),
            cmd_sn: self.cmd_sn,
            exp_stat_sn: self.exp_stat_sn,
            ref_cmd_sn: 0,
            exp_data_sn: 0,
        };
        self.output.push_small(&request.emit(), &[]);
        tag
    }

    pub(super) fn on_task_management_response(&mut self, header: &Header) -> Result<(), Fault> {
        let response = meaning(TaskManagementResponse::parse(header))?;
        self.on_status(response.numbers)?;
        let tag = Tag(response.task_tag);
        let order = self.tasks.order(tag).ok_or(Fault::UnexpectedPdu)?;
        let is_right = |kind: &Kind| matches!(kind, Kind::TaskManagement { .. });
        let Some(Kind::TaskManagement { ends }) = self.tasks.take(tag, is_right) else {
            return Err(Fault::UnexpectedPdu);
        };
        let ended = match response.result {
            TaskManagementResult::Complete => self.tasks.end(ends, order),
            _ => Vec::new(),
        };
        self.events.push_back(Event::TaskManagement { tag, result: response.result, ended });
        Ok(())
    }
}

fn wire_attribute(attribute: TaskAttribute) -> wire::iscsi::TaskAttribute {
    match attribute {
        TaskAttribute::Untagged => wire::iscsi::TaskAttribute::Untagged,
        TaskAttribute::Simple => wire::iscsi::TaskAttribute::Simple,
        TaskAttribute::Ordered => wire::iscsi::TaskAttribute::Ordered,
        TaskAttribute::HeadOfQueue => wire::iscsi::TaskAttribute::HeadOfQueue,
        TaskAttribute::Aca => wire::iscsi::TaskAttribute::Aca,
    }
}
