//! Text requests in full feature phase: SendTargets, and a new MaxRecvDataSegmentLength (RFC 7143 §11.10,
//! §11.11, appendix C).
//!
//! One exchange at a time. Both directions may be spread over several PDUs; both are bounded. An initiator
//! that is not known is shown nothing.

use std::net::SocketAddr;

use base::limits;
use bytes::Bytes;
use wire::iscsi::{Lengths, RESERVED_TAG, RejectReason, TextPairs, TextRequest, TextResponse, emit_pair};

use crate::api::{Directory, SessionKind};
use crate::connection::ConnectionParams;
use crate::frame::Pdu;
use crate::keys::{self, Answer, Parameters, Rule};
use crate::link::Link;
use crate::session::Session;

/// An exchange that is not over.
pub(crate) struct TextExchange {
    initiator_tag: u32,
    target_tag: u32,
    received: Vec<u8>,
    /// What is left of the answer.
    answer: Bytes,
}

impl Session {
    pub fn on_text_request(
        &mut self,
        link: &mut Link,
        params: &ConnectionParams,
        pdu: &Pdu,
        directory: &dyn Directory,
    ) {
        let request = match TextRequest::parse(&pdu.header) {
            Ok(request) => request,
            Err(reason) => return self.reject_numbered(link, &pdu.header, reason),
        };
        if !self.is_admitted(link, &pdu.header) {
            return;
        }
        if let Err(reason) = self.on_text(link, params, &request, pdu, directory) {
            self.text = None;
            link.reject(reason, &pdu.header, self.window());
        }
    }

    fn on_text(
        &mut self,
        link: &mut Link,
        params: &ConnectionParams,
        request: &TextRequest,
        pdu: &Pdu,
        directory: &dyn Directory,
    ) -> Result<(), RejectReason> {
        let mut exchange = match self.text.take() {
            _ if request.task_tag == RESERVED_TAG => return Err(RejectReason::InvalidPduField),
            _ if request.target_tag == RESERVED_TAG => TextExchange {
                initiator_tag: request.task_tag,
                target_tag: self.target_tags.next(),
                received: Vec::new(),
                answer: Bytes::new(),
            },
            Some(open) if (open.initiator_tag, open.target_tag) == (request.task_tag, request.target_tag) => {
                open
            }
            _ => return Err(RejectReason::ProtocolError),
        };
        if !exchange.answer.is_empty() {
            if !pdu.data.is_empty() {
                return Err(RejectReason::ProtocolError); // it is our turn
            }
            self.send_text(link, request, exchange);
            return Ok(());
        }
        if exchange.received.len() + pdu.data.len() > limits::LOGIN_TEXT_BYTES_MAX {
            return Err(RejectReason::OutOfResources);
        }
        for piece in pdu.data.pieces() {
            exchange.received.extend_from_slice(piece);
        }
        if !request.proceed {
            let received = std::mem::take(&mut exchange.received);
            exchange.answer = Bytes::from(self.answer_text(params, &received, directory)?);
        }
        self.send_text(link, request, exchange);
        Ok(())
    }

    /// Sends what fits into one PDU; what does not waits to be asked for.
    fn send_text(&mut self, link: &mut Link, request: &TextRequest, mut exchange: TextExchange) {
        let length = exchange.answer.len().min(self.parameters.send_segment_bytes as usize);
        let part = exchange.answer.split_to(length);
        let proceed = !exchange.answer.is_empty();
        let is_final = request.is_final && !proceed;
        let response = TextResponse {
            is_final,
            proceed,
            lun: request.lun,
            task_tag: request.task_tag,
            target_tag: if is_final { RESERVED_TAG } else { exchange.target_tag },
            numbers: link.status_numbers(self.window()),
        };
        link.output.push(&response.emit(Lengths::data(part.len())), [part]);
        self.text = (!is_final).then_some(exchange);
    }

    fn answer_text(
        &mut self,
        params: &ConnectionParams,
        text: &[u8],
        directory: &dyn Directory,
    ) -> Result<Vec<u8>, RejectReason> {
        let mut out = Vec::new();
        for (count, pair) in TextPairs::new(text).enumerate() {
            let (name, value) = pair.map_err(|_| RejectReason::ProtocolError)?;
            if count >= limits::TEXT_KEYS_MAX {
                return Err(RejectReason::OutOfResources);
            }
            match keys::find(name).map(|key| (key, key.rule)) {
                None => emit_pair(&mut out, name, keys::NOT_UNDERSTOOD),
                Some((_, Rule::Text)) => self.send_targets(params, value, directory, &mut out),
                Some((key, Rule::Segment)) => {
                    let kind = self.identity.kind;
                    let answer = keys::answer(key, value, kind, Parameters::TARGET, &mut self.parameters);
                    if let Answer::Word(word) = answer {
                        emit_pair(&mut out, name, word);
                    }
                }
                Some(_) => emit_pair(&mut out, name, keys::REJECT), // settled for good when logging in
            }
        }
        Ok(out)
    }

    /// RFC 7143 appendix C: All in discovery sessions, one's own target in normal ones, or by name.
    fn send_targets(
        &self,
        params: &ConnectionParams,
        which: &str,
        directory: &dyn Directory,
        out: &mut Vec<u8>,
    ) {
        let target = directory.target_name();
        let normal = self.identity.kind == SessionKind::Normal;
        let wanted = match which {
            "All" if normal => return emit_pair(out, "SendTargets", keys::REJECT),
            "" if !normal => return emit_pair(out, "SendTargets", keys::REJECT),
            "All" | "" => true,
            name => name.eq_ignore_ascii_case(target),
        };
        let portals = directory.portals(&self.identity.initiator_name);
        let known = directory.find_host(&self.identity.initiator_name).is_some();
        // one that may come by no portal sees no target
        if !wanted || !known || portals.is_empty() {
            return;
        }
        emit_pair(out, "TargetName", target);
        for (address, tag) in portals {
            let address = match address.ip().is_unspecified() {
                true => SocketAddr::new(params.local_address.ip(), address.port()),
                false => address,
            };
            emit_pair(out, "TargetAddress", &format!("{address},{tag}"));
        }
    }
}
