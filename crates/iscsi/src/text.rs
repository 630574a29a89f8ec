//! Text requests in full feature phase: SendTargets, and a new MaxRecvDataSegmentLength (RFC 7143 §11.10,
//! §11.11, appendix C).
//!
//! One exchange at a time. Both directions may use several PDUs; both are bounded. An unknown initiator
//! sees nothing.

use std::net::SocketAddr;

use base::limits;
use bytes::Bytes;
use wire::iscsi::{Lengths, RESERVED_TAG, RejectReason, TextPairs, TextRequest, TextResponse, emit_pair};

use crate::api::{Directory, SessionKind};
use crate::frame::Pdu;
use crate::keys::{self, Answer, Parameters, Rule};
use crate::link::Link;
use crate::params::ConnectionParams;
use crate::session::{Session, TextExchange};

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
        for (address, tag) in reachable(&portals, params.local_address) {
            emit_pair(out, "TargetAddress", &format!("{address},{tag}"));
        }
    }
}

/// The addresses at which the target is found, each once. A wildcard stands for the addresses of its own family (sockets of
/// the other do not take them); of those the one is known by which the asking connection came in.
fn reachable(portals: &[(SocketAddr, u16)], local: SocketAddr) -> Vec<(SocketAddr, u16)> {
    let is_named = |address| portals.iter().any(|(named, _)| *named == address);
    let mut found: Vec<(SocketAddr, u16)> = Vec::new();
    for &(portal, tag) in portals {
        let address = match portal.ip().is_unspecified() {
            false => portal,
            true if portal.is_ipv4() != local.is_ipv4() => continue,
            true => SocketAddr::new(local.ip(), portal.port()),
        };
        // a socket of that very address is preferred to a wildcard's
        let shadowed = address != portal && is_named(address);
        if !shadowed && !found.iter().any(|(other, _)| *other == address) {
            found.push((address, tag));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_listened_on_is_named_and_nothing_twice() {
        let show = |local: &str, portals: &[(&str, u16)]| {
            let portals: Vec<_> =
                portals.iter().map(|(address, tag)| (address.parse().unwrap(), *tag)).collect();
            let found = reachable(&portals, local.parse().unwrap());
            found.iter().map(|(address, tag)| format!("{address},{tag}")).collect::<Vec<_>>()
        };
        let both = [("0.0.0.0:3260", 1), ("[::]:3260", 1)];
        assert_eq!(show("192.0.2.7:3260", &both), ["192.0.2.7:3260,1"]);
        assert_eq!(show("[2001:db8::5]:3260", &both), ["[2001:db8::5]:3260,1"]);
        // of another family, nothing is known that is listened on
        assert_eq!(show("192.0.2.7:3260", &[("[::]:3261", 2), ("192.0.2.7:3260", 1)]), ["192.0.2.7:3260,1"]);
        assert_eq!(
            show("[2001:db8::5]:9", &[("0.0.0.0:3260", 1), ("10.0.0.1:3260", 2)]),
            ["10.0.0.1:3260,2"]
        );
        // by another port of the same address
        let ports = [("0.0.0.0:3260", 1), ("0.0.0.0:3261", 2)];
        assert_eq!(show("192.0.2.7:3260", &ports), ["192.0.2.7:3260,1", "192.0.2.7:3261,2"]);
        // named and meant by a wildcard: whoever connects to it meets the named one, and its group
        let named = [("0.0.0.0:3260", 1), ("192.0.2.7:3260", 2)];
        assert_eq!(show("192.0.2.7:3260", &named), ["192.0.2.7:3260,2"]);
        let twice = [("10.0.0.1:3260", 1), ("10.0.0.1:3260", 1)];
        assert_eq!(show("10.0.0.1:3260", &twice), ["10.0.0.1:3260,1"]);
    }
}
