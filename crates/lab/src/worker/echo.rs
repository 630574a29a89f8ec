//! The client's side of the echo floor. The server's side is in `floor.rs`.

use env::{ConnectionHandle, Operation, Outcome};
use wire::iscsi::Header;

use super::retry::Met;
use super::stream::{Codec, Ends, Outgoing, Seen};
use super::world::{World, wait_for};
use crate::floor::{Answer, Greeting, READ, Request as Ask, WRITE};
use crate::place::{Noise, Request};

pub struct EchoCodec;

impl EchoCodec {
    /// Reads the greeting: how much memory there is.
    pub fn open(env: &mut World, connection: ConnectionHandle) -> Result<(u64, EchoCodec), String> {
        let mut buffer = bytes::BytesMut::with_capacity(size_of::<Header>());
        loop {
            if let Some(header) = buffer.first_chunk() {
                return Ok((Greeting::parse(header)?, EchoCodec));
            }
            let before = buffer.len();
            match wait_for(env, Operation::Receive { connection, buffer })? {
                Outcome::Received(received, Ok(())) if received.len() > before => buffer = received,
                _ => return Err("the echo floor closed the connection".to_owned()),
            }
        }
    }
}

impl Codec for EchoCodec {
    fn begin(&mut self, slot: u32, request: Request, noise: &mut Noise, out: &mut Outgoing) {
        let Request { write, offset_bytes, length_bytes } = request;
        let kind = if write { WRITE } else { READ };
        out.header(&Ask { kind, slot, length_bytes, offset_bytes }.emit());
        if write {
            out.data(noise.next(length_bytes));
        }
    }

    fn on_header(&mut self, header: &Header, _: &mut Outgoing) -> Result<Seen, String> {
        let answer = Answer::parse(header)?;
        Ok(Seen { data_bytes: answer.data_bytes as usize, ends: Ends::Done { slot: answer.slot } })
    }

    fn on_failure(&mut self, _: u8, _: &[u8]) -> Result<Met, String> {
        Err("the echo floor has no word for failures".to_owned())
    }
}
