//! iSCSI in full feature phase, reduced to what a load generator needs: READ (16) and WRITE (16).
//!
//! `iscsi::initiator` does the login and everything else that is rare. This file takes over its numbers and costs as
//! little as possible. It checks enough to detect a wrong answer: status, numbers, lengths.

use bytes::Bytes;
use wire::iscsi::{
    DataIn, DataOut, Header, Lengths, NopIn, NopOut, Opcode, R2t, RESERVED_TAG, ScsiCommand, ScsiResponse,
    ServiceResponse, TaskAttribute, padding,
};
use wire::scsi::cdb::FUA;

use super::cdb::cdb_16;
use super::login::Session;
use super::retry::{Met, failure};
use super::stream::{Codec, Ends, Outgoing, Seen};
use crate::place::{Noise, Request};

/// Of a write: what it sends; of a read: how much has come.
#[derive(Clone, Default)]
struct Task {
    data_out: Bytes,
    data_in_bytes: usize,
    expected_bytes: usize,
}

pub struct IscsiCodec {
    lun: u64,
    block_bytes: u32,
    durable: bool,
    cmd_sn: u32,
    max_cmd_sn: u32,
    exp_stat_sn: u32,
    parameters: ::iscsi::Parameters,
    tasks: Vec<Task>,
}

impl IscsiCodec {
    pub fn new(session: Session, depth: u32, durable: bool) -> IscsiCodec {
        let numbers = session.initiator.numbers();
        IscsiCodec {
            lun: session.lun,
            block_bytes: session.block_bytes,
            durable,
            cmd_sn: numbers.cmd_sn,
            max_cmd_sn: numbers.max_cmd_sn,
            exp_stat_sn: numbers.exp_stat_sn,
            parameters: session.parameters,
            tasks: vec![Task::default(); depth as usize],
        }
    }

    /// Whether the target lets one more command in (RFC 7143 §4.2.2.1).
    pub fn window_is_open(&self) -> bool {
        self.max_cmd_sn.wrapping_sub(self.cmd_sn) < 1 << 31
    }

    fn on_status(&mut self, stat_sn: u32) -> Result<(), String> {
        if stat_sn != self.exp_stat_sn {
            return Err(format!("StatSN {stat_sn} came where {} was due", self.exp_stat_sn));
        }
        self.exp_stat_sn = self.exp_stat_sn.wrapping_add(1);
        Ok(())
    }

    fn on_window(&mut self, max_cmd_sn: u32) {
        if max_cmd_sn.wrapping_sub(self.max_cmd_sn) < 1 << 31 {
            self.max_cmd_sn = max_cmd_sn;
        }
    }

    fn task(&mut self, tag: u32) -> Result<&mut Task, String> {
        self.tasks.get_mut(tag as usize).ok_or_else(|| format!("an answer to task {tag:#x}, which is none"))
    }

    /// One sequence of Data-Out PDUs, RFC 7143 §11.7.
    fn send(&mut self, tag: u32, target_tag: u32, start: usize, end: usize, out: &mut Outgoing) {
        let segment = self.parameters.send_segment_bytes as usize;
        let data = self.tasks[tag as usize].data_out.clone();
        let (mut offset, mut data_sn) = (start, 0);
        while offset < end {
            let length = segment.min(end - offset);
            let header = DataOut {
                is_final: offset + length == end,
                lun: if target_tag == RESERVED_TAG { 0 } else { self.lun },
                task_tag: tag,
                target_tag,
                exp_stat_sn: self.exp_stat_sn,
                data_sn,
                offset_bytes: offset as u32,
            };
            out.header(&header.emit(Lengths::data(length)));
            out.data(data.slice(offset..offset + length));
            offset += length;
            data_sn += 1;
        }
    }

    fn on_data_in(&mut self, header: &Header, data_bytes: usize) -> Result<Ends, String> {
        let pdu = DataIn::parse(header).map_err(|_| "a Data-In that makes no sense")?;
        self.on_window(pdu.max_cmd_sn);
        let task = self.task(pdu.task_tag)?;
        if pdu.offset_bytes as usize != task.data_in_bytes {
            return Err("data of a read came out of order".to_owned());
        }
        task.data_in_bytes += data_bytes;
        let complete = task.data_in_bytes == task.expected_bytes;
        let Some(status) = pdu.status else { return Ok(Ends::Nothing) };
        self.on_status(status.stat_sn)?;
        if status.status != 0 || !complete {
            return Err(format!("a read ended with status {:#04x} and not all of its data", status.status));
        }
        Ok(Ends::Done { slot: pdu.task_tag })
    }

    fn on_response(&mut self, header: &Header) -> Result<Ends, String> {
        let pdu = ScsiResponse::parse(header).map_err(|_| "a response that makes no sense")?;
        self.on_status(pdu.numbers.stat_sn)?;
        self.on_window(pdu.numbers.max_cmd_sn);
        let task = self.task(pdu.task_tag)?;
        let complete = task.data_in_bytes == task.expected_bytes;
        match (pdu.response, pdu.status) {
            (ServiceResponse::Completed, 0) if complete => Ok(Ends::Done { slot: pdu.task_tag }),
            (ServiceResponse::Completed, 0) => {
                Err("a read ended well and not all of its data came".to_owned())
            }
            (ServiceResponse::Completed, status) => Ok(Ends::Failed { slot: pdu.task_tag, status }),
            (response, _) => Err(format!("the target could not carry a command out: {response:?}")),
        }
    }

    fn on_r2t(&mut self, header: &Header, out: &mut Outgoing) -> Result<(), String> {
        let pdu = R2t::parse(header).map_err(|_| "an R2T that makes no sense")?;
        self.on_window(pdu.numbers.max_cmd_sn);
        let (start, length) = (pdu.offset_bytes as usize, pdu.desired_bytes as usize);
        if start + length > self.task(pdu.task_tag)?.data_out.len() {
            return Err("an R2T asks for more than there is".to_owned());
        }
        self.send(pdu.task_tag, pdu.target_tag, start, start + length, out);
        Ok(())
    }

    fn on_nop_in(&mut self, header: &Header, out: &mut Outgoing) -> Result<(), String> {
        let pdu = NopIn::parse(header).map_err(|_| "a NOP-In that makes no sense")?;
        self.on_window(pdu.numbers.max_cmd_sn);
        if pdu.target_tag != RESERVED_TAG {
            let answer = NopOut {
                immediate: true,
                lun: pdu.lun,
                task_tag: RESERVED_TAG,
                target_tag: pdu.target_tag,
                cmd_sn: self.cmd_sn,
                exp_stat_sn: self.exp_stat_sn,
            };
            out.header(&answer.emit(Lengths::default()));
        }
        Ok(())
    }
}

impl Codec for IscsiCodec {
    fn begin(&mut self, slot: u32, request: Request, noise: &mut Noise, out: &mut Outgoing) {
        let Request { write, offset_bytes, length_bytes } = request;
        let length = length_bytes as usize;
        let block = u64::from(self.block_bytes);
        let opcode = if write { 0x8a } else { 0x88 };
        let mut cdb = cdb_16(opcode, offset_bytes / block, length_bytes / self.block_bytes);
        if write && self.durable {
            cdb[1] = FUA;
        }
        let parameters = &self.parameters;
        let unasked = if write { length.min(parameters.first_burst_bytes as usize) } else { 0 };
        let immediate = match parameters.immediate_data {
            true => unasked.min(parameters.send_segment_bytes as usize),
            false => 0,
        };
        let unsolicited_end = if parameters.initial_r2t { immediate } else { unasked };
        let command = ScsiCommand {
            immediate: false,
            is_final: unsolicited_end == immediate,
            read: !write,
            write,
            attribute: TaskAttribute::Simple,
            lun: self.lun,
            task_tag: slot,
            expected_bytes: length_bytes,
            cmd_sn: self.cmd_sn,
            exp_stat_sn: self.exp_stat_sn,
            cdb,
        };
        self.cmd_sn = self.cmd_sn.wrapping_add(1);
        out.header(&command.emit(Lengths::data(immediate)));
        let task = &mut self.tasks[slot as usize];
        (task.data_in_bytes, task.expected_bytes) = (0, if write { 0 } else { length });
        if write {
            let data = noise.next(length_bytes);
            if immediate > 0 {
                out.data(data.slice(..immediate));
            }
            task.data_out = data;
            self.send(slot, RESERVED_TAG, immediate, unsolicited_end, out);
        }
    }

    fn on_header(&mut self, header: &Header, out: &mut Outgoing) -> Result<Seen, String> {
        let lengths = Lengths::of(header);
        let mut ends = Ends::Nothing;
        match Opcode::of(header) {
            Some(Opcode::DataIn) => ends = self.on_data_in(header, lengths.data)?,
            Some(Opcode::ScsiResponse) => ends = self.on_response(header)?,
            Some(Opcode::R2t) => self.on_r2t(header, out)?,
            Some(Opcode::NopIn) => self.on_nop_in(header, out)?,
            Some(Opcode::AsyncMessage) => {
                return Err("the target announced that it ends the session".to_owned());
            }
            opcode => return Err(format!("a PDU that makes no sense here: {opcode:?}")),
        }
        Ok(Seen { data_bytes: lengths.additional_headers + lengths.data + padding(lengths.data), ends })
    }

    fn on_failure(&mut self, status: u8, data: &[u8]) -> Result<Met, String> {
        // the length of the sense data stands before it (RFC 7143 §11.4.7)
        let sense = data
            .split_first_chunk()
            .map_or(&[][..], |(length, rest)| &rest[..rest.len().min(u16::from_be_bytes(*length).into())]);
        Met::of(status, sense).ok_or_else(|| failure(status, sense))
    }
}
