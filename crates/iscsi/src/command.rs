//! SCSI Command PDUs: their fields are checked, then the commands run or wait for their data.

use base::limits;
use block::Payload;
use bytes::Bytes;
use wire::iscsi::{AdditionalHeaders, RESERVED_TAG, RejectReason, ScsiCommand};

use crate::api::{Command, Effect, TaskAttribute, TaskTag};
use crate::failure::Failure;
use crate::frame::Pdu;
use crate::keys::Parameters;
use crate::link::Link;
use crate::session::Session;
use crate::tasks::Work;
use crate::transfer::{Collecting, Transfer};
use block::Held;

/// Sizes that a command announces. Bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Expected {
    data_in: u32,
    data_out: u32,
}

fn expected(command: &ScsiCommand, additional: &AdditionalHeaders<'_>) -> Result<Expected, RejectReason> {
    Ok(match (command.read, command.write, additional.bidirectional_read_bytes) {
        (true, true, Some(data_in)) => Expected { data_in, data_out: command.expected_bytes },
        (true, true, None) => return Err(RejectReason::InvalidPduField),
        (true, false, _) => Expected { data_in: command.expected_bytes, data_out: 0 },
        (false, true, _) => Expected { data_in: 0, data_out: command.expected_bytes },
        (false, false, _) => Expected { data_in: 0, data_out: 0 },
    })
}

/// Does the unsolicited data conform to the negotiated parameters?
fn check_unsolicited(
    command: &ScsiCommand,
    immediate_bytes: usize,
    parameters: &Parameters,
) -> Result<(), Failure> {
    let most = parameters.first_burst_bytes.min(command.expected_bytes) as usize;
    let forbidden = immediate_bytes > 0 && !parameters.immediate_data;
    let more_forbidden = !command.is_final && parameters.initial_r2t;
    if forbidden || more_forbidden || immediate_bytes > most {
        return Err(Failure::UnexpectedUnsolicitedData);
    }
    Ok(())
}

impl Session {
    pub fn on_scsi_command(&mut self, link: &mut Link, pdu: Pdu) {
        let parsed = ScsiCommand::parse(&pdu.header).and_then(|command| {
            let additional = AdditionalHeaders::parse(&pdu.additional)?;
            let extra = pdu.additional.slice_ref(additional.extended_cdb);
            Ok((command, expected(&command, &additional)?, extra))
        });
        let (command, expected, cdb_extra) = match parsed {
            Ok(parsed) => parsed,
            Err(reason) => return self.reject_numbered(link, &pdu.header, reason),
        };
        let refusal = if command.task_tag == RESERVED_TAG || (!pdu.data.is_empty() && !command.write) {
            Some(RejectReason::InvalidPduField)
        } else if self.tasks.find(command.task_tag).is_some() {
            Some(RejectReason::TaskInProgress)
        } else if command.immediate && self.tasks.immediate() >= limits::IMMEDIATE_COMMANDS_MAX {
            Some(RejectReason::TooManyImmediateCommands)
        } else {
            None
        };
        if let Some(reason) = refusal {
            return self.reject_numbered(link, &pdu.header, reason);
        }
        if !self.is_admitted(link, &pdu.header) {
            return;
        }
        if command.write
            && let Err(failure) = check_unsolicited(&command, pdu.data.len(), &self.parameters)
        {
            return self.fail(link, command.task_tag, command.expected_bytes, failure);
        }
        let wanted = (expected.data_out as usize).min(limits::TRANSFER_BYTES_MAX);
        match self.budget.try_hold(limits::COMMAND_BYTES + wanted) {
            Some(held) => self.accept(link, &command, expected, cdb_extra, (pdu.data, held)),
            None => self.refuse_for_room(link, command.task_tag, command.lun, command.expected_bytes),
        }
    }

    fn accept(
        &mut self,
        link: &mut Link,
        command: &ScsiCommand,
        expected: Expected,
        cdb_extra: Bytes,
        (data, held): (Payload, Held),
    ) {
        let transfer = Transfer {
            read: command.read,
            write: command.write,
            expected_in: expected.data_in,
            expected_out: expected.data_out,
            data_sn: 0,
            reserved_bytes: 0,
        };
        let mut request = Command {
            task: TaskTag(0),
            lun: command.lun,
            cdb: command.cdb,
            cdb_extra,
            attribute: attribute(command.attribute),
            data_out: Payload::new(),
            expected_in: expected.data_in as usize,
            expected_out: expected.data_out as usize,
        };
        let wanted = request.expected_out.min(limits::TRANSFER_BYTES_MAX);
        let tag = command.task_tag;
        if data.len() >= wanted && command.is_final {
            request.data_out = data;
            request.task =
                self.tasks.insert(tag, command.lun, command.immediate, Work::Running(transfer), Some(held));
            link.effect(Effect::Command(request));
        } else {
            let collecting = Collecting::new(request, transfer, wanted, data, !command.is_final);
            let work = Work::Collecting(Box::new(collecting));
            let task = self.tasks.insert(tag, command.lun, command.immediate, work, Some(held));
            self.advance(link, task);
        }
    }
}

fn attribute(attribute: wire::iscsi::TaskAttribute) -> TaskAttribute {
    match attribute {
        wire::iscsi::TaskAttribute::Untagged => TaskAttribute::Untagged,
        wire::iscsi::TaskAttribute::Simple => TaskAttribute::Simple,
        wire::iscsi::TaskAttribute::Ordered => TaskAttribute::Ordered,
        wire::iscsi::TaskAttribute::HeadOfQueue => TaskAttribute::HeadOfQueue,
        wire::iscsi::TaskAttribute::Aca => TaskAttribute::Aca,
    }
}
