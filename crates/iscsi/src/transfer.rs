//! What the answer to a command needs, and the data of a write that is not all there.

use std::collections::VecDeque;

use block::Payload;
use wire::iscsi::{DataOut, RESERVED_TAG};

use crate::api::Command;
use crate::failure::Failure;
use crate::keys::Parameters;

/// What is needed to answer a command.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Transfer {
    pub read: bool,
    pub write: bool,
    pub expected_in: u32,
    pub expected_out: u32,
    /// DataSN and R2TSN, which share one count (RFC 7143 §4.2.2.4).
    pub data_sn: u32,
    /// Of the session's write budget; given back with the answer.
    pub reserved_bytes: usize,
}

/// A write command whose data is not all there.
pub(crate) struct Collecting {
    pub command: Command,
    pub transfer: Transfer,
    /// How much is to be collected; never more than `TRANSFER_BYTES_MAX`.
    pub wanted: usize,
    pub received: usize,
    /// How far it has been asked for, or came unasked.
    pub asked: usize,
    pub data: Payload,
    /// The next DataSN of the unsolicited data, while more of it may come.
    pub unsolicited: Option<u32>,
    pub bursts: VecDeque<Burst>,
    /// A piece was damaged on its way; the rest is awaited, then the command fails (RFC 7143 §7.8).
    pub damaged: bool,
}

/// An R2T that is not (fully) answered.
pub(crate) struct Burst {
    pub target_tag: u32,
    pub data_sn: u32,
    pub end: usize,
}

impl Collecting {
    pub fn new(
        command: Command,
        transfer: Transfer,
        wanted: usize,
        data: Payload,
        more_unsolicited: bool,
    ) -> Collecting {
        Collecting {
            command,
            transfer,
            wanted,
            received: data.len(),
            asked: data.len(),
            data,
            unsolicited: more_unsolicited.then_some(0),
            bursts: VecDeque::new(),
            damaged: false,
        }
    }

    /// Takes note of a Data-Out of `length` bytes, which must be exactly what comes next.
    pub fn on_data(&mut self, pdu: &DataOut, length: usize, parameters: &Parameters) -> Result<(), Failure> {
        let in_place = pdu.offset_bytes as usize == self.received;
        let end = self.received + length;
        if pdu.target_tag == RESERVED_TAG {
            let Some(data_sn) = self.unsolicited else { return Err(Failure::UnexpectedUnsolicitedData) };
            let most = self.transfer.expected_out.min(parameters.first_burst_bytes) as usize;
            if !in_place || pdu.data_sn != data_sn || end > most {
                return Err(Failure::IncorrectAmountOfData);
            }
            let ended = pdu.is_final || end == most;
            self.unsolicited = (!ended).then_some(data_sn.wrapping_add(1));
            (self.received, self.asked) = (end, end);
            return Ok(());
        }
        let Some(burst) = self.bursts.front_mut().filter(|burst| burst.target_tag == pdu.target_tag) else {
            return Err(Failure::IncorrectAmountOfData);
        };
        let last = end == burst.end;
        if !in_place || pdu.data_sn != burst.data_sn || end > burst.end || last != pdu.is_final {
            return Err(Failure::IncorrectAmountOfData);
        }
        burst.data_sn = burst.data_sn.wrapping_add(1);
        self.received = end;
        if last {
            self.bursts.pop_front();
        }
        Ok(())
    }

    /// Nothing that was asked for, or announced, is on its way.
    pub fn is_quiet(&self) -> bool {
        self.unsolicited.is_none() && self.bursts.is_empty()
    }
}
