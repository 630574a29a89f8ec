//! The output of a target's connection in all phases: bytes, effects, status numbers, the end.

use std::collections::VecDeque;

use bytes::Bytes;
use wire::iscsi::{Header, Lengths, Numbers, Reject, RejectReason};

use crate::api::{CloseReason, Effect};
use crate::output::Output;

pub(crate) struct Link {
    pub output: Output,
    effects: VecDeque<Effect>,
    /// The next one to use.
    pub stat_sn: u32,
    closed: bool,
}

/// The CmdSN window as it is now, for the header of a response.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Window {
    pub exp_cmd_sn: u32,
    pub max_cmd_sn: u32,
}

impl Link {
    pub fn new() -> Link {
        Link { output: Output::new(), effects: VecDeque::new(), stat_sn: 0, closed: false }
    }

    /// Numbers of a PDU that carries a status: uses up one StatSN.
    pub fn status_numbers(&mut self, window: Window) -> Numbers {
        let numbers = self.peek_numbers(window);
        self.stat_sn = self.stat_sn.wrapping_add(1);
        numbers
    }

    /// Numbers of a PDU that carries none.
    pub fn peek_numbers(&self, window: Window) -> Numbers {
        Numbers { stat_sn: self.stat_sn, exp_cmd_sn: window.exp_cmd_sn, max_cmd_sn: window.max_cmd_sn }
    }

    pub fn effect(&mut self, effect: Effect) {
        if !self.closed {
            self.effects.push_back(effect);
        }
    }

    pub fn next_effect(&mut self) -> Option<Effect> {
        self.effects.pop_front()
    }

    /// Nothing is received any more and no other effect follows.
    pub fn close(&mut self, reason: CloseReason) {
        self.effect(Effect::Close(reason));
        self.closed = true;
    }

    pub fn is_closed(&self) -> bool {
        self.closed
    }

    /// Refuses a PDU (RFC 7143 §11.17); its header goes back with the answer.
    pub fn reject(&mut self, reason: RejectReason, offending: &Header, window: Window) {
        let numbers = self.status_numbers(window);
        let header = Reject { reason, numbers }.emit(Lengths::data(offending.len()));
        self.output.push_small(&header, offending);
    }

    /// Refuses a PDU after which nothing can be trusted any more.
    pub fn reject_and_close(&mut self, reason: RejectReason, offending: &Header, window: Window) {
        self.reject(reason, offending, window);
        self.close(match reason {
            RejectReason::DataDigestError => CloseReason::DataDigestError,
            _ => CloseReason::ProtocolError,
        });
    }

    pub fn push_text(&mut self, header: &Header, text: Vec<u8>) {
        self.output.push(header, [Bytes::from(text)]);
    }
}
