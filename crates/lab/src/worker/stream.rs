//! Requests and answers over one TCP connection: headers of 48 bytes, followed by data.
//!
//! All ready requests are one send. Received data is counted and dropped in place,
//! so the client costs as little as possible.

use bytes::{Bytes, BytesMut};
use env::{ConnectionHandle, Env, Operation, Outcome, Token};
use wire::iscsi::{HEADER_BYTES, Header};

use super::retry::Met;
use super::world::World;
use crate::place::{Noise, Request};

const RECEIVE_BYTES: usize = 512 << 10;
const ARENA_BYTES: usize = 64 << 10;
/// What is kept of the data of a failure: sense data and its length.
const FAILURE_BYTES_MAX: usize = 2 + 252;

/// Which of a channel's operations has ended; the low half of its token.
const RECEIVED: u32 = 0;
const SENT: u32 = 1;

/// What goes out next.
pub struct Outgoing {
    pieces: Vec<Bytes>,
    /// Headers behind `pieces`.
    arena: BytesMut,
}

impl Outgoing {
    pub fn header(&mut self, header: &Header) {
        if self.arena.capacity() - self.arena.len() < HEADER_BYTES {
            self.seal();
            self.arena.reserve(ARENA_BYTES);
        }
        self.arena.extend_from_slice(header);
    }

    pub fn data(&mut self, data: Bytes) {
        self.seal();
        self.pieces.push(data);
    }

    fn seal(&mut self) {
        if !self.arena.is_empty() {
            self.pieces.push(self.arena.split().freeze());
        }
    }
}

/// What a header announces.
pub struct Seen {
    /// Bytes behind it.
    pub data_bytes: usize,
    pub ends: Ends,
}

/// What has ended when the bytes behind a header are here.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ends {
    Nothing,
    Done {
        slot: u32,
    },
    /// The bytes tell why.
    Failed {
        slot: u32,
        status: u8,
    },
}

/// A request that was answered, or something that was met instead: then it is to be sent again.
pub struct Ended {
    pub slot: u32,
    pub met: Option<Met>,
}

/// A protocol, as far as a load generator needs it.
pub trait Codec {
    /// Emits a request.
    fn begin(&mut self, slot: u32, request: Request, noise: &mut Noise, out: &mut Outgoing);
    fn on_header(&mut self, header: &Header, out: &mut Outgoing) -> Result<Seen, String>;
    /// A request has failed; `data` is what came behind the header. An error where it is not worth another try.
    fn on_failure(&mut self, status: u8, data: &[u8]) -> Result<Met, String>;
}

pub struct Stream<C> {
    pub codec: C,
    connection: ConnectionHandle,
    index: u32,
    out: Outgoing,
    sending: bool,
    /// At rest between two receives.
    input: Option<BytesMut>,
    started: bool,
    /// A header that has come in part.
    partial: [u8; HEADER_BYTES],
    partial_bytes: usize,
    /// Data still to come, and what ends with it.
    data_missing: usize,
    ending: Ends,
    failure: Vec<u8>,
}

impl<C: Codec> Stream<C> {
    pub fn new(connection: ConnectionHandle, index: u32, codec: C) -> Stream<C> {
        Stream {
            codec,
            connection,
            index,
            out: Outgoing { pieces: Vec::new(), arena: BytesMut::with_capacity(ARENA_BYTES) },
            sending: false,
            input: Some(BytesMut::with_capacity(RECEIVE_BYTES)),
            started: false,
            partial: [0; HEADER_BYTES],
            partial_bytes: 0,
            data_missing: 0,
            ending: Ends::Nothing,
            failure: Vec::new(),
        }
    }

    fn token(&self, detail: u32) -> Token {
        Token(u64::from(self.index) << 32 | u64::from(detail))
    }

    pub fn begin(&mut self, slot: u32, request: Request, noise: &mut Noise) {
        self.codec.begin(slot, request, noise, &mut self.out);
    }

    /// Sends what is ready, and begins to receive.
    pub fn flush(&mut self, env: &mut World) {
        self.out.seal();
        if !self.sending && !self.out.pieces.is_empty() {
            self.sending = true;
            let pieces = Vec::with_capacity(self.out.pieces.len());
            let data = std::mem::replace(&mut self.out.pieces, pieces);
            env.submit(self.token(SENT), Operation::Send { connection: self.connection, data });
        }
        if let Some(buffer) = self.input.take() {
            self.started = true;
            env.submit(self.token(RECEIVED), Operation::Receive { connection: self.connection, buffer });
        }
    }

    pub fn on_completion(
        &mut self,
        env: &mut World,
        detail: u32,
        outcome: Outcome,
        ended: &mut Vec<Ended>,
    ) -> Result<(), String> {
        match (detail, outcome) {
            (SENT, Outcome::Done) => self.sending = false,
            (RECEIVED, Outcome::Received(mut buffer, Ok(()))) if !buffer.is_empty() => {
                self.take(&buffer, ended)?;
                buffer.clear();
                self.input = Some(buffer);
            }
            (RECEIVED, Outcome::Received(_, Ok(()))) => {
                return Err("the target closed the connection".to_owned());
            }
            (_, Outcome::Failed(error) | Outcome::Received(_, Err(error))) => {
                return Err(format!("the connection broke: {error}"));
            }
            (_, outcome) => return Err(format!("the environment answered something else: {outcome:?}")),
        }
        self.flush(env);
        Ok(())
    }

    fn take(&mut self, mut input: &[u8], ended: &mut Vec<Ended>) -> Result<(), String> {
        loop {
            if self.data_missing > 0 {
                let length = self.data_missing.min(input.len());
                if matches!(self.ending, Ends::Failed { .. }) {
                    let room = FAILURE_BYTES_MAX - self.failure.len();
                    self.failure.extend_from_slice(&input[..length.min(room)]);
                }
                self.data_missing -= length;
                input = &input[length..];
                if self.data_missing > 0 {
                    return Ok(());
                }
                self.end(ended)?;
            }
            let header: Header = match input.first_chunk() {
                Some(header) if self.partial_bytes == 0 => {
                    input = &input[HEADER_BYTES..];
                    *header
                }
                _ => {
                    let length = (HEADER_BYTES - self.partial_bytes).min(input.len());
                    self.partial[self.partial_bytes..][..length].copy_from_slice(&input[..length]);
                    self.partial_bytes += length;
                    input = &input[length..];
                    if self.partial_bytes < HEADER_BYTES {
                        return Ok(());
                    }
                    self.partial_bytes = 0;
                    self.partial
                }
            };
            let seen = self.codec.on_header(&header, &mut self.out)?;
            (self.data_missing, self.ending) = (seen.data_bytes, seen.ends);
            if seen.data_bytes == 0 {
                self.end(ended)?;
            }
        }
    }

    /// Everything that a header announced is here.
    fn end(&mut self, ended: &mut Vec<Ended>) -> Result<(), String> {
        match std::mem::replace(&mut self.ending, Ends::Nothing) {
            Ends::Nothing => {}
            Ends::Done { slot } => ended.push(Ended { slot, met: None }),
            Ends::Failed { slot, status } => {
                let met = self.codec.on_failure(status, &self.failure)?;
                self.failure.clear();
                ended.push(Ended { slot, met: Some(met) });
            }
        }
        Ok(())
    }
}
