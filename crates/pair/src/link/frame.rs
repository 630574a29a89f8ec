//! Frames: a message, or what users of the link make of it, with its length, kind and checksum.
//!
//! ```text
//!   header, 16 bytes, little-endian, then the content
//!     0  length of the content (4)    4  kind (2)    6  0 (2)
//!     8  CRC-32C of the content (4)  12  CRC-32C of the 12 bytes before (4)
//! ```
//!
//! Kinds of a connection for control: 1 heartbeat, 2 its answer, 3 the register has changed, 4 look at the register. Those of a
//! connection for drives are in `mirror::message`, those of one for twins in `heads::twins`, those of one for hosts in `heads::forward`.

use std::num::NonZeroU64;

use base::{Crc32c, HeadId, Nanos, crc32c};

use super::hello::part;
use super::{LinkError, Purpose};
use crate::message::Message;
use crate::register::{Maintenance, Register, Revision, Term};

pub(super) const HEADER_BYTES: usize = 16;
/// Longest content of a version 1 message.
const MESSAGE_BYTES_MAX: usize = 256;
/// Longest content of a frame between drives: what is written at once, and what is said of it.
pub const DRIVES_BYTES_MAX: usize = (1 << 20) + 256;
/// Longest content of a frame of hosts: a part of what one of them has sent, or is sent.
pub const HOSTS_BYTES_MAX: usize = (256 << 10) + 256;
/// Longest content of a frame about twins: a list of the drives of a head.
pub const TWINS_BYTES_MAX: usize = 128 << 10;

const REGISTER_BYTES: usize = 72;

const HEARTBEAT: u16 = 1;
const HEARTBEAT_ANSWER: u16 = 2;
const CHANGED: u16 = 3;
const LOOK: u16 = 4;

#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Frame {
    pub kind: u16,
    pub content: Vec<u8>,
}

/// The longest content of a frame on a connection for this.
pub(super) fn content_bytes_max(purpose: Purpose) -> usize {
    match purpose {
        Purpose::Control => MESSAGE_BYTES_MAX,
        Purpose::Drives => DRIVES_BYTES_MAX,
        Purpose::Twins => TWINS_BYTES_MAX,
        Purpose::Hosts => HOSTS_BYTES_MAX,
    }
}

/// The longest that a frame of such a connection is.
pub(super) fn frame_bytes_max(purpose: Purpose) -> usize {
    HEADER_BYTES + content_bytes_max(purpose)
}

/// The header of a frame of which the content is in these parts.
pub(super) fn header(kind: u16, parts: &[&[u8]]) -> [u8; HEADER_BYTES] {
    let length: usize = parts.iter().map(|part| part.len()).sum();
    let mut content = Crc32c::new();
    parts.iter().for_each(|part| content.update(part));
    let mut header = [0; HEADER_BYTES];
    header[..4].copy_from_slice(&(length as u32).to_le_bytes());
    header[4..6].copy_from_slice(&kind.to_le_bytes());
    header[8..12].copy_from_slice(&content.finish().to_le_bytes());
    let checksum = crc32c(&header[..12]);
    header[12..].copy_from_slice(&checksum.to_le_bytes());
    header
}

impl Frame {
    pub fn of(message: &Message) -> Frame {
        let mut content = Vec::new();
        let kind = match message {
            Message::Heartbeat { register, sent } => {
                put_register(&mut content, register);
                content.extend_from_slice(&sent.0.to_le_bytes());
                HEARTBEAT
            }
            Message::HeartbeatAnswer { term, sent } => {
                content.extend_from_slice(&term.0.to_le_bytes());
                content.extend_from_slice(&sent.0.to_le_bytes());
                HEARTBEAT_ANSWER
            }
            Message::Changed(register) => {
                put_register(&mut content, register);
                CHANGED
            }
            Message::Look => LOOK,
        };
        Frame { kind, content }
    }

    pub fn encode(&self, send: &mut Vec<u8>) {
        send.extend_from_slice(&header(self.kind, &[&self.content]));
        send.extend_from_slice(&self.content);
    }

    /// The first frame of `bytes` and its length; `None` where it is not whole yet.
    pub fn decode(bytes: &[u8], purpose: Purpose) -> Result<Option<(Frame, usize)>, LinkError> {
        let Some(header) = bytes.first_chunk::<HEADER_BYTES>() else { return Ok(None) };
        if crc32c(&header[..12]) != u32::from_le_bytes(part(header, 12)) {
            return Err(LinkError::Checksum);
        }
        let length = u32::from_le_bytes(part(header, 0));
        if length as usize > content_bytes_max(purpose) {
            return Err(LinkError::TooLong { bytes: length });
        }
        let end = HEADER_BYTES + length as usize;
        let Some(content) = bytes.get(HEADER_BYTES..end) else { return Ok(None) };
        if crc32c(content) != u32::from_le_bytes(part(header, 8)) {
            return Err(LinkError::Checksum);
        }
        let kind = u16::from_le_bytes(part(header, 4));
        Ok(Some((Frame { kind, content: content.to_vec() }, end)))
    }

    pub fn message(&self) -> Result<Message, LinkError> {
        let content = &self.content[..];
        let number = |at| u64::from_le_bytes(part(content, at));
        let message = match (self.kind, content.len()) {
            (HEARTBEAT, length) if length == REGISTER_BYTES + 8 => register(content)
                .map(|register| Message::Heartbeat { register, sent: Nanos(number(REGISTER_BYTES)) }),
            (HEARTBEAT_ANSWER, 16) => {
                Some(Message::HeartbeatAnswer { term: Term(number(0)), sent: Nanos(number(8)) })
            }
            (CHANGED, REGISTER_BYTES) => register(content).map(Message::Changed),
            (LOOK, 0) => Some(Message::Look),
            _ => None,
        };
        message.ok_or(LinkError::Malformed { kind: self.kind })
    }
}

/// Revision, term, owner, partner, writer: 8 + 8 + 3 x 16 bytes; then 8 bytes, of which the lowest bit says whether in sync, and the others
/// since when there is maintenance, 0 for none.
fn put_register(content: &mut Vec<u8>, register: &Register) {
    content.extend_from_slice(&register.revision.0.to_le_bytes());
    content.extend_from_slice(&register.term.0.to_le_bytes());
    for head in [register.owner, register.partner, register.written_by] {
        content.extend_from_slice(&head.0.to_le_bytes());
    }
    let since_ms = register.maintenance.map_or(0, |maintenance| maintenance.since_ms);
    content.extend_from_slice(&(since_ms << 1 | u64::from(register.in_sync)).to_le_bytes());
}

/// `None` where no head writes such a register.
fn register(content: &[u8]) -> Option<Register> {
    let number = |at| u64::from_le_bytes(part(content, at));
    let head = |at| HeadId(u128::from_le_bytes(part(content, at)));
    let maintenance = NonZeroU64::new(number(64) >> 1).map(|since| Maintenance { since_ms: since.get() });
    let register = Register {
        revision: Revision(number(0)),
        term: Term(number(8)),
        owner: head(16),
        partner: head(32),
        written_by: head(48),
        in_sync: number(64) & 1 == 1,
        maintenance,
    };
    (register.owner != register.partner).then_some(register)
}
