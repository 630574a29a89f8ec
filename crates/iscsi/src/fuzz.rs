//! Entry points for fuzzing: any bytes into every parser and into both ends of a connection.
//!
//! Each function must return for any input. Property tests run them here, and
//! coverage-guided fuzzers run them elsewhere.

use std::net::SocketAddr;

use base::{Nanos, limits};
use bytes::{Bytes, BytesMut};
use wire::iscsi::{self as pdu, HEADER_BYTES, Header, Lengths};

use crate::api::{CommandResponse, Directory, Effect, HostAccess, TaskManagementResponse, TaskTag};
use crate::connection::Connection;
use crate::initiator::{Event, Initiator, InitiatorParams};
use crate::keys::Parameters;
use crate::params::ConnectionParams;

const TARGET: &str = "iqn.2026-11.org.tangelo:fuzz";
const HOST: &str = "iqn.2026-11.org.tangelo:host";

/// A directory with one host and no secrets.
pub struct OneHost;

impl Directory for OneHost {
    fn target_name(&self) -> &str {
        TARGET
    }

    fn find_host(&self, initiator_name: &str) -> Option<HostAccess> {
        (initiator_name == HOST).then(HostAccess::default)
    }

    fn portals(&self, _: &str) -> Vec<(SocketAddr, u16)> {
        vec![(SocketAddr::from(([127, 0, 0, 1], 3260)), 1)]
    }
}

/// Every parser. What can be parsed is emitted and parsed again, and must be the same.
pub fn parsers(bytes: &[u8]) {
    let _ = pdu::AdditionalHeaders::parse(bytes);
    let _ = pdu::TextPairs::new(bytes).count();
    let Some(header) = bytes.first_chunk::<HEADER_BYTES>() else { return };
    let lengths = Lengths::of(header);
    macro_rules! both_ways {
        ($($kind:ident $(($lengths:expr))?),* $(,)?) => {
            $(if let Ok(meaning) = pdu::$kind::parse(header) {
                assert_eq!(pdu::$kind::parse(&meaning.emit($($lengths)?)), Ok(meaning));
            })*
        };
    }
    both_ways!(
        ScsiCommand(lengths),
        ScsiResponse(lengths),
        TaskManagementRequest,
        TaskManagementResponse,
        DataOut(lengths),
        DataIn(lengths),
        R2t,
        LoginRequest(lengths),
        LoginResponse(lengths),
        TextRequest(lengths),
        TextResponse(lengths),
        LogoutRequest,
        LogoutResponse,
        NopOut(lengths),
        NopIn(lengths),
        Reject(lengths),
        AsyncMessage(lengths),
        Snack,
    );
}

/// A target's connection that nobody has logged in on.
pub fn fresh_connection() -> Connection {
    let local_address = SocketAddr::from(([127, 0, 0, 1], 3260));
    Connection::new(
        ConnectionParams { local_address, portal_group_tag: 1, budget: crate::Budget::new(1 << 30) },
        Nanos(0),
    )
}

/// The same, after a login with these parameters.
pub fn logged_in_connection(wanted: Parameters) -> Connection {
    let mut target = fresh_connection();
    let params = InitiatorParams { wanted, ..InitiatorParams::new(HOST, Some(TARGET)) };
    let mut initiator = Initiator::new(params);
    let mut random = || 4;
    for _ in 0..4 {
        let mut input = BytesMut::from(&initiator.take_output().concat()[..]);
        target.on_receive(&mut input, &OneHost, Nanos(0), &mut random);
        if let Some(Effect::LoggedIn(_)) = target.next_effect() {
            target.complete_login(1);
        }
        let mut input = BytesMut::from(&target.take_output().concat()[..]);
        initiator.on_receive(&mut input, &mut random);
    }
    let logged_in = matches!(initiator.next_event(), Some(Event::LoggedIn { .. }));
    assert!(logged_in && target.take_output().is_empty());
    target
}

/// Bytes before login, in chunks whose size the first byte gives.
pub fn connection_before_login(bytes: &[u8]) {
    let mut target = fresh_connection();
    let has_logged_in = feed(&mut target, bytes);
    target.on_tick(Nanos(limits::LOGIN_NS_MAX));
    assert!(has_logged_in || !target.wants_receive());
}

/// Bytes after login, as they are.
pub fn connection_after_login(bytes: &[u8]) {
    let mut target = logged_in_connection(Parameters { initial_r2t: false, ..Parameters::DEFAULT });
    feed(&mut target, bytes);
}

/// Whether a login came to its end.
fn feed(target: &mut Connection, bytes: &[u8]) -> bool {
    let Some((&first, bytes)) = bytes.split_first() else { return false };
    let (mut input, mut has_logged_in) = (BytesMut::new(), false);
    for chunk in bytes.chunks(1 + usize::from(first)) {
        input.extend_from_slice(chunk);
        target.on_receive(&mut input, &OneHost, Nanos(1), &mut || 4);
        while let Some(effect) = target.next_effect() {
            if matches!(effect, Effect::LoggedIn(_)) {
                target.complete_login(7);
                has_logged_in = true;
            }
        }
        target.take_output();
    }
    has_logged_in
}

/// PDUs after login that are nearly right: each record of 50 bytes is a control byte, a data length and a
/// header, whose lengths are made true and whose numbers and tags may be. Commands are answered now, later
/// or never.
pub fn session_after_login(bytes: &[u8]) {
    let digest = bytes.first().is_some_and(|byte| byte & 1 == 1);
    let wanted = Parameters { initial_r2t: !digest, max_outstanding_r2t: 3, ..Parameters::DEFAULT };
    let mut target = logged_in_connection(wanted);
    let mut seen = Seen { exp_cmd_sn: 1, max_cmd_sn: None, asked: Vec::new() };
    let mut held = Vec::new();
    for record in bytes.chunks_exact(2 + HEADER_BYTES) {
        let control = record[0];
        let Some(header) = record[2..].first_chunk::<HEADER_BYTES>() else { return };
        let (header, length) = plausible(header, control, usize::from(record[1]), &mut seen);
        let mut input = BytesMut::from(&header[..]);
        input.extend_from_slice(&[control; 256][..length + pdu::padding(length)]);
        target.on_receive(&mut input, &OneHost, Nanos(1), &mut || 4);
        while let Some(effect) = target.next_effect() {
            match effect {
                Effect::Command(command) => held.push(command.task),
                Effect::TaskManagement(request) => {
                    target.respond_task_management(request.task, TaskManagementResponse::Complete);
                }
                Effect::LoggedIn(_) => unreachable!("it is logged in"),
                Effect::Close(_) => return,
            }
        }
        answer(&mut target, &mut held, control);
        for header in headers(&target.take_output()) {
            seen.take_note(&header);
        }
    }
}

/// What a host has learnt from the target's PDUs.
struct Seen {
    exp_cmd_sn: u32,
    max_cmd_sn: Option<u32>,
    asked: Vec<pdu::R2t>,
}

impl Seen {
    fn take_note(&mut self, header: &Header) {
        let (exp, max) = (word(header, 28), word(header, 32));
        let went_back = self.max_cmd_sn.is_some_and(|before| max.wrapping_sub(before) >= 1 << 31);
        assert!(!went_back, "MaxCmdSN went back");
        (self.exp_cmd_sn, self.max_cmd_sn) = (exp, Some(max));
        if header[0] == pdu::Opcode::R2t as u8 {
            self.asked.extend(pdu::R2t::parse(header));
        }
    }
}

/// A header that is right as far as `control` says, and the length of its data.
fn plausible(bytes: &Header, control: u8, mut length: usize, seen: &mut Seen) -> (Header, usize) {
    const REQUESTS: [u8; 8] = [0x00, 0x01, 0x01, 0x02, 0x04, 0x05, 0x05, 0x10];
    const COMMAND_FLAGS: [u8; 4] = [0x80, 0xc0, 0xa0, 0x20];
    let mut header = *bytes;
    if control & 1 == 0 {
        header[0] = header[0] & 0x40 | REQUESTS[usize::from(header[0] & 7)];
    }
    if control & 2 == 0 {
        header[24..28].copy_from_slice(&seen.exp_cmd_sn.to_be_bytes());
        header[16..19].fill(0); // few task tags
        header[19] &= 31;
    }
    if control & 4 == 0 {
        header[20..23].fill(0); // few transfer tags, short transfers
        header[32..36].fill(0);
        header[36..40].fill(0);
    }
    if control & 8 == 0 && header[0] & 0x3f == 1 {
        header[1] = COMMAND_FLAGS[usize::from(header[1] & 3)];
        length &= usize::from(header[23]);
    }
    if control & 8 == 0
        && header[0] & 0x3f == 5
        && let Some(r2t) = seen.asked.pop()
    {
        length = length.max(r2t.desired_bytes as usize).min(255);
        let data_out = pdu::DataOut {
            is_final: length >= r2t.desired_bytes as usize,
            lun: r2t.lun,
            task_tag: r2t.task_tag,
            target_tag: r2t.target_tag,
            exp_stat_sn: 0,
            data_sn: 0,
            offset_bytes: r2t.offset_bytes,
        };
        length = length.min(r2t.desired_bytes as usize);
        header = data_out.emit(Lengths::default());
    }
    header[4] = 0;
    header[5..8].copy_from_slice(&[0, 0, length as u8]);
    (header, length)
}

fn answer(target: &mut Connection, held: &mut Vec<TaskTag>, control: u8) {
    match control >> 5 {
        0..4 => {
            while let Some(task) = held.pop() {
                let data_in = Bytes::from_static(&[7; 1500]).into();
                target.respond(task, CommandResponse { data_in, ..CommandResponse::default() });
            }
        }
        4 => held.drain(..).for_each(|task| target.forget(task)),
        _ => {}
    }
}

/// Headers of the PDUs in an output without digests.
pub fn headers(output: &[Bytes]) -> Vec<Header> {
    let (bytes, mut at, mut found) = (output.concat(), 0, Vec::new());
    while let Some(header) = bytes.get(at..).and_then(|rest| rest.first_chunk::<HEADER_BYTES>()) {
        let lengths = Lengths::of(header);
        at += HEADER_BYTES + lengths.additional_headers + lengths.data + pdu::padding(lengths.data);
        found.push(*header);
    }
    assert_eq!(at, bytes.len(), "the output is whole PDUs");
    found
}

fn word(header: &Header, at: usize) -> u32 {
    u32::from_be_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]])
}

/// Bytes into an initiator that is logging in.
pub fn initiator(bytes: &[u8]) {
    let mut initiator = Initiator::new(InitiatorParams::new(HOST, Some(TARGET)));
    let mut input = BytesMut::from(bytes);
    initiator.on_receive(&mut input, &mut || 4);
    while initiator.next_event().is_some() {}
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn parsers_return(bytes in proptest::collection::vec(any::<u8>(), 0..120)) {
            parsers(&bytes);
        }

        #[test]
        fn anything_before_login(bytes in proptest::collection::vec(any::<u8>(), 0..600), opcode: u8) {
            connection_before_login(&bytes);
            let mut bytes = bytes;
            if bytes.len() > 9 {
                bytes[1] = [0x43, opcode][usize::from(opcode & 1)];
                bytes[2] &= 0x87;
                bytes[5..7].fill(0);
                bytes[7] &= 1;
            }
            connection_before_login(&bytes);
            initiator(&bytes);
        }

        #[test]
        fn anything_after_login(bytes in proptest::collection::vec(any::<u8>(), 0..600)) {
            connection_after_login(&bytes);
        }

        #[test]
        fn nearly_right_pdus(bytes in proptest::collection::vec(any::<u8>(), 0..4000)) {
            session_after_login(&bytes);
        }
    }
}
