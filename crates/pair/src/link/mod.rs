//! The connection between two heads, as bytes: who is there, in which version they speak, and messages with checksums. One
//! state machine for each connection and each end of it; whoever runs it moves the bytes.
//!
//! ```text
//!   either end:   Hello ──►                      array, head, start, versions, purpose, a random number
//!                       ◄── Hello of the other
//!                 Proof ──►                      HMAC-SHA-256 over both hellos, with the array's key
//!                       ◄── Proof of the other
//!                 frames in both directions
//! ```
//!
//! What always holds: nothing but the two hellos is believed before the proof; a proof is good for one connection and one
//! direction only; a frame is given out whole and checked, or the connection ends; what is kept is bounded by the longest frame
//! that the purpose of the connection allows, and by the hello before the proof.
//! The proof keeps strangers out. It does not protect what is sent afterwards from somebody who can change packets: the network
//! between the heads is the administrator's.

mod frame;
pub mod fuzz;
mod hello;
#[cfg(test)]
mod tests;

use std::fmt;

use base::{ArrayId, HeadId};

use crate::message::Message;

use frame::{Frame, HEADER_BYTES};

pub use frame::{DRIVES_BYTES_MAX, HOSTS_BYTES_MAX, TWINS_BYTES_MAX};
use hello::{HELLO_BYTES, Hello, PROOF_BYTES, is_proof, proof};

/// Versions that this program speaks. The two ends take the highest that both have.
pub const VERSIONS: Versions = Versions { lowest: 1, highest: 1 };

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Versions {
    pub lowest: u16,
    pub highest: u16,
}

/// A start of a head: what was sent to an earlier one never reaches a later one. Random.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Start(pub u128);

/// The secret of the array, which both heads have. It is never shown.
#[derive(Clone)]
pub struct LinkKey(pub [u8; 32]);

/// What a connection is for. Heartbeats never wait behind data, so that a busy head is not taken for a dead one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Purpose {
    /// Messages about ownership: [`Message`].
    Control,
    /// What is written to the partner's drives, as frames.
    Drives,
    /// Which drives of the two heads become twins, as frames.
    Twins,
    /// What a host sends to the partner and is answered, as frames: one connection for each of the host's.
    Hosts,
}

impl Purpose {
    pub(crate) const ALL: [Purpose; 4] = [Purpose::Control, Purpose::Drives, Purpose::Twins, Purpose::Hosts];

    fn number(self) -> u16 {
        match self {
            Purpose::Control => 1,
            Purpose::Drives => 2,
            Purpose::Twins => 3,
            Purpose::Hosts => 4,
        }
    }

    fn of(number: u16) -> Option<Purpose> {
        Purpose::ALL.into_iter().find(|purpose| purpose.number() == number)
    }
}

/// An owner takes what the partner forwards at this distance behind the port of the link.
pub const HOSTS_PORT_BEHIND: u16 = 4;

/// Who this end is, and whom it takes for the other one.
#[derive(Clone, Debug)]
pub struct LinkOptions {
    pub array: ArrayId,
    pub me: HeadId,
    pub start: Start,
    /// The other head of the pair.
    pub other: HeadId,
    pub key: LinkKey,
    pub versions: Versions,
    /// Random, for this connection.
    pub nonce: [u8; 32],
    /// For the end that has opened the connection: why.
    pub purpose: Option<Purpose>,
}

/// What has come over the link.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum LinkEvent {
    /// The other head is there, and has the key.
    Up { start: Start, version: u16, purpose: Purpose },
    /// Over a connection for control.
    Message(Message),
    /// Over any other connection.
    Frame { kind: u16, content: Vec<u8> },
}

/// Why a connection ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LinkError {
    /// The bytes are not those of a head.
    NotALink,
    /// A head of another array.
    OtherArray { array: ArrayId },
    /// A head that is not the partner of this one.
    NotThePartner { head: HeadId },
    /// It has this head's own id: a copy of its state directory.
    Myself,
    /// No version is spoken by both.
    NoCommonVersion { ours: Versions, theirs: Versions },
    /// The connection is for something that this version does not know.
    UnknownPurpose { number: u16 },
    /// Both ends say that they have opened the connection, or neither does.
    OneEndOpens,
    /// It does not have the array's key.
    WrongKey,
    /// A frame whose checksum is wrong.
    Checksum,
    /// A frame that is longer than the longest.
    TooLong { bytes: u32 },
    /// A frame of a kind that this version does not have, or whose content makes no sense.
    Malformed { kind: u16 },
}

#[derive(Debug)]
enum State {
    AwaitsHello,
    AwaitsProof { theirs: Hello, version: u16, purpose: Purpose },
    Up { purpose: Purpose },
    Ended,
}

/// One end of a connection.
#[derive(Debug)]
pub struct Link {
    options: LinkOptions,
    state: State,
    received: Vec<u8>,
}

impl fmt::Debug for LinkKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("LinkKey(..)")
    }
}

impl Link {
    /// Adds what is to be sent first to `send`.
    pub fn new(options: LinkOptions, send: &mut Vec<u8>) -> Link {
        let link = Link { options, state: State::AwaitsHello, received: Vec::new() };
        send.extend_from_slice(&link.hello().encode());
        link
    }

    fn hello(&self) -> Hello {
        let LinkOptions { array, me, start, versions, nonce, purpose, .. } = self.options;
        Hello { array, head: me, start, versions, nonce, purpose }
    }

    pub fn is_up(&self) -> bool {
        matches!(self.state, State::Up { .. })
    }

    /// Adds a message to `send`. The link must be up, and for control.
    pub fn send(&self, message: &Message, send: &mut Vec<u8>) {
        let is_for_control = matches!(self.state, State::Up { purpose: Purpose::Control });
        assert!(is_for_control, "messages are sent over a link for control that is up");
        Frame::of(message).encode(send);
    }

    /// The header of a frame, of which the content is in these parts: together at most what the purpose allows ([`DRIVES_BYTES_MAX`] and so
    /// on). It is sent before them, over a link that is up and not for control.
    pub fn frame_header(&self, kind: u16, parts: &[&[u8]]) -> [u8; HEADER_BYTES] {
        let State::Up { purpose } = self.state else { panic!("frames are sent over a link that is up") };
        assert_ne!(purpose, Purpose::Control, "a link for control has messages");
        let length: usize = parts.iter().map(|part| part.len()).sum();
        assert!(length <= frame::content_bytes_max(purpose), "{length} bytes are too long for a frame");
        frame::header(kind, parts)
    }

    /// Bytes have come. Adds what is to be answered to `send`. After an error the connection is to be closed.
    pub fn receive(&mut self, bytes: &[u8], send: &mut Vec<u8>) -> Result<Vec<LinkEvent>, LinkError> {
        self.received.extend_from_slice(bytes);
        let mut events = Vec::new();
        let mut taken = 0;
        loop {
            match self.step(taken, send) {
                Ok(Some((bytes, event))) => {
                    taken += bytes;
                    events.extend(event);
                }
                Ok(None) => break,
                Err(why) => {
                    self.state = State::Ended;
                    self.received = Vec::new();
                    return Err(why);
                }
            }
        }
        self.received.drain(..taken);
        Ok(events)
    }

    /// The longest that is kept between two calls.
    pub fn buffered_bytes_max(&self) -> usize {
        match self.state {
            State::Up { purpose } => frame::frame_bytes_max(purpose),
            _ => HELLO_BYTES + PROOF_BYTES,
        }
    }

    /// Takes one piece from what was received; how long it was. `None` where it is not whole yet.
    fn step(
        &mut self,
        from: usize,
        send: &mut Vec<u8>,
    ) -> Result<Option<(usize, Option<LinkEvent>)>, LinkError> {
        let rest = &self.received[from..];
        match &self.state {
            State::AwaitsHello => {
                Hello::check_beginning(rest)?;
                let Some(bytes) = rest.first_chunk::<HELLO_BYTES>() else { return Ok(None) };
                let theirs = Hello::decode(bytes)?;
                let (version, purpose) = self.check(&theirs)?;
                let is_opener = self.options.purpose.is_some();
                send.extend_from_slice(&proof(&self.options.key, is_opener, &self.hello(), &theirs));
                self.state = State::AwaitsProof { theirs, version, purpose };
                Ok(Some((HELLO_BYTES, None)))
            }
            &State::AwaitsProof { ref theirs, version, purpose } => {
                let Some(bytes) = rest.first_chunk::<PROOF_BYTES>() else { return Ok(None) };
                let (key, is_opener) = (&self.options.key, theirs.purpose.is_some());
                if !is_proof(bytes, key, is_opener, theirs, &self.hello()) {
                    return Err(LinkError::WrongKey);
                }
                let up = LinkEvent::Up { start: theirs.start, version, purpose };
                self.state = State::Up { purpose };
                Ok(Some((PROOF_BYTES, Some(up))))
            }
            &State::Up { purpose } => {
                let Some((frame, length)) = Frame::decode(rest, purpose)? else { return Ok(None) };
                let event = match purpose {
                    Purpose::Control => LinkEvent::Message(frame.message()?),
                    Purpose::Drives | Purpose::Twins | Purpose::Hosts => {
                        LinkEvent::Frame { kind: frame.kind, content: frame.content }
                    }
                };
                Ok(Some((length, Some(event))))
            }
            State::Ended => Err(LinkError::NotALink),
        }
    }

    /// The version that both speak and what the connection is for, if the other end is the partner.
    fn check(&self, theirs: &Hello) -> Result<(u16, Purpose), LinkError> {
        let ours = self.options.versions;
        if theirs.array != self.options.array {
            return Err(LinkError::OtherArray { array: theirs.array });
        }
        if theirs.head == self.options.me {
            return Err(LinkError::Myself);
        }
        if theirs.head != self.options.other {
            return Err(LinkError::NotThePartner { head: theirs.head });
        }
        let version = ours.highest.min(theirs.versions.highest);
        if version < ours.lowest.max(theirs.versions.lowest) {
            return Err(LinkError::NoCommonVersion { ours, theirs: theirs.versions });
        }
        match (self.options.purpose, theirs.purpose) {
            (Some(purpose), None) | (None, Some(purpose)) => Ok((version, purpose)),
            _ => Err(LinkError::OneEndOpens),
        }
    }
}

impl fmt::Display for LinkError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LinkError::NotALink => write!(f, "what is at the other end is no head of Tangelo"),
            LinkError::OtherArray { array } => {
                write!(f, "the head at the other end belongs to array {array}")
            }
            LinkError::NotThePartner { head } => {
                write!(f, "head {head} is not the partner of this one")
            }
            LinkError::Myself => {
                write!(f, "the head at the other end has the id of this one: its state directory was copied")
            }
            LinkError::NoCommonVersion { ours, theirs } => write!(
                f,
                "the other head speaks versions {} to {} of the link, this one {} to {}; upgrade the older one by one release after the other",
                theirs.lowest, theirs.highest, ours.lowest, ours.highest
            ),
            LinkError::UnknownPurpose { number } => {
                write!(
                    f,
                    "the other head opened a connection for something that this version does not know ({number})"
                )
            }
            LinkError::OneEndOpens => {
                write!(f, "of the two ends of a connection exactly one must have opened it")
            }
            LinkError::WrongKey => write!(f, "the head at the other end does not have the key of this array"),
            LinkError::Checksum => write!(f, "a message over the link has a wrong checksum"),
            LinkError::TooLong { bytes } => {
                write!(f, "a message over the link has {bytes} bytes, which is too long")
            }
            LinkError::Malformed { kind } => {
                write!(f, "a message of kind {kind} over the link makes no sense")
            }
        }
    }
}
