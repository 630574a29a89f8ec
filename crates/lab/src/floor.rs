//! The echo floor: the same bytes in and out of the same amount of memory, over TCP, without a protocol.
//!
//! It is the reference for a target of any protocol. Headers are as large as iSCSI's. Payload is sent from memory
//! without a copy, or copied into memory once. All ready answers are one send. There is no status, no check except
//! bounds, and reads and writes do not share memory: reads come from a separate area, which is filled at the start.
//!
//! ```text
//!   greeting  | "echo floor 1" | size      |         answers and requests are 48 bytes, little-endian
//!   request   | kind | slot | length | offset |    data follows if kind is WRITE
//!   answer    | slot | data bytes |                data follows if something was read
//! ```

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::mpsc::Sender;

use base::{Nanos, ShardId};
use bytes::{Bytes, BytesMut};
use env::{Completion, ConnectionHandle, Env, Event, ListenerHandle, Operation, Outcome, Token, Wait};
use uring::{Options, UringEnv, spawn_shards};
use wire::iscsi::{HEADER_BYTES, Header};

use crate::place::Random;

const MAGIC: [u8; 12] = *b"echo floor 1";
pub const READ: u32 = 1;
pub const WRITE: u32 = 2;
const RECEIVE_BYTES: usize = 512 << 10;
const ARENA_BYTES: usize = 64 << 10;

fn word(header: &Header, at: usize) -> u32 {
    u32::from_le_bytes(header[at..at + 4].try_into().expect("four bytes"))
}

/// What the server says first.
pub struct Greeting;

impl Greeting {
    fn emit(size_bytes: u64) -> Header {
        let mut header = [0; HEADER_BYTES];
        header[..12].copy_from_slice(&MAGIC);
        header[16..24].copy_from_slice(&size_bytes.to_le_bytes());
        header
    }

    /// The size of the memory.
    pub fn parse(header: &Header) -> Result<u64, String> {
        if header[..12] != MAGIC {
            return Err("this is no echo floor of this version".to_owned());
        }
        Ok(u64::from_le_bytes(header[16..24].try_into().expect("eight bytes")))
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Request {
    pub kind: u32,
    pub slot: u32,
    pub length_bytes: u32,
    pub offset_bytes: u64,
}

impl Request {
    pub fn emit(&self) -> Header {
        let mut header = [0; HEADER_BYTES];
        header[0..4].copy_from_slice(&self.kind.to_le_bytes());
        header[4..8].copy_from_slice(&self.slot.to_le_bytes());
        header[8..12].copy_from_slice(&self.length_bytes.to_le_bytes());
        header[16..24].copy_from_slice(&self.offset_bytes.to_le_bytes());
        header
    }

    /// None: no such request.
    fn parse(header: &Header, size_bytes: u64) -> Option<Request> {
        let offset_bytes = u64::from_le_bytes(header[16..24].try_into().expect("eight bytes"));
        let request = Request {
            kind: word(header, 0),
            slot: word(header, 4),
            length_bytes: word(header, 8),
            offset_bytes,
        };
        let end = offset_bytes.checked_add(u64::from(request.length_bytes))?;
        (matches!(request.kind, READ | WRITE) && request.length_bytes > 0 && end <= size_bytes)
            .then_some(request)
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Answer {
    pub slot: u32,
    pub data_bytes: u32,
}

impl Answer {
    fn emit(&self) -> Header {
        let mut header = [0; HEADER_BYTES];
        header[0..4].copy_from_slice(b"done");
        header[4..8].copy_from_slice(&self.slot.to_le_bytes());
        header[8..12].copy_from_slice(&self.data_bytes.to_le_bytes());
        header
    }

    pub fn parse(header: &Header) -> Result<Answer, String> {
        if header[0..4] != *b"done" {
            return Err("the echo floor answered something else".to_owned());
        }
        Ok(Answer { slot: word(header, 4), data_bytes: word(header, 8) })
    }
}

/// How the floor is served.
#[derive(Clone, Debug)]
pub struct Floor {
    pub listen: SocketAddr,
    pub size_bytes: u64,
    /// One thread on each; anywhere, one thread, where there is none.
    pub cores: Vec<usize>,
}

/// Serves until the process ends, or until every listener has failed. `listening` is told the address.
pub fn serve(floor: &Floor, listening: Sender<SocketAddr>) -> Result<(), String> {
    let mut noise = vec![0; floor.size_bytes as usize];
    let mut random = Random::new(7);
    noise.chunks_exact_mut(8).for_each(|word| word.copy_from_slice(&random.next().to_le_bytes()));
    let source = Bytes::from(noise);
    let options = Options { cores: floor.cores.clone(), ..Options::new(floor.cores.len().max(1) as u16) };
    let address = Arc::new(std::sync::Mutex::new(floor.listen));
    let size_bytes = floor.size_bytes;
    let shards = spawn_shards(&options, move |env: UringEnv<()>| {
        let mut server = Server::new(env, source, size_bytes);
        if let Err(why) = server.listen(&address, &listening) {
            eprintln!("echo floor: {why}");
            return;
        }
        drop(listening);
        server.run();
    });
    for thread in shards.map_err(|error| error.to_string())?.threads {
        thread.join().map_err(|_| "a thread of the echo floor panicked")?;
    }
    Ok(())
}

/// One client.
struct Client {
    /// Requests that have come in part, and the write whose data is coming.
    partial: BytesMut,
    writing: Option<(Request, usize)>,
    out: Vec<Bytes>,
    arena: BytesMut,
    sending: bool,
}

/// A client keeps its place until its connection is closed: what was in flight on it ends before.
enum Place {
    Free,
    Open(ConnectionHandle, Box<Client>),
    Closing,
}

struct Server {
    env: UringEnv<()>,
    source: Bytes,
    /// What writes go to.
    memory: Vec<u8>,
    clients: Vec<Place>,
    listener: Option<ListenerHandle>,
}

const ACCEPTED: u32 = u32::MAX;
const RECEIVED: u32 = 0;
const SENT: u32 = 1;
const CLOSED: u32 = 2;

fn token(client: usize, what: u32) -> Token {
    Token((client as u64) << 32 | u64::from(what))
}

impl Server {
    fn new(env: UringEnv<()>, source: Bytes, size_bytes: u64) -> Server {
        let mut memory = vec![0; size_bytes as usize];
        // touched, so that no page is made while the clock runs
        memory.chunks_mut(base::BLOCK_BYTES).for_each(|page| page[0] = 1);
        Server { env, source, memory, clients: Vec::new(), listener: None }
    }

    /// The first thread finds a port where none is named; the others listen at the same.
    fn listen(
        &mut self,
        address: &std::sync::Mutex<SocketAddr>,
        listening: &Sender<SocketAddr>,
    ) -> Result<(), String> {
        while self.env.shard() != ShardId(0) && address.lock().expect("nobody panics with it").port() == 0 {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        let mut address = address.lock().expect("nobody panics with it");
        match super::worker::wait_for(&mut self.env, Operation::Listen { address: *address })? {
            Outcome::Listening(listener, bound) => {
                *address = bound;
                self.listener = Some(listener);
                // whoever asked may have gone: it is served all the same
                let _ = listening.send(bound);
                Ok(())
            }
            outcome => Err(format!("{address}: {outcome:?}")),
        }
    }

    fn run(&mut self) {
        let listener = self.listener.expect("it listens");
        self.env.submit(token(0, ACCEPTED), Operation::Accept { listener });
        let mut events = Vec::new();
        let mut dirty = Vec::new();
        loop {
            self.env.poll(&mut events, Wait::Until(self.env.now() + Nanos::from_secs(3600)));
            for event in events.drain(..) {
                let Event::Completion(Completion { token, outcome }) = event else { continue };
                let (client, what) = ((token.0 >> 32) as usize, token.0 as u32);
                if what == ACCEPTED {
                    self.on_accepted(outcome);
                    self.env.submit(token, Operation::Accept { listener });
                } else {
                    self.on_completion(client, what, outcome);
                    dirty.push(client);
                }
            }
            for client in dirty.drain(..) {
                self.flush(client);
            }
        }
    }

    fn on_accepted(&mut self, outcome: Outcome) {
        let Outcome::Accepted { connection, .. } = outcome else { return };
        let mut arena = BytesMut::with_capacity(ARENA_BYTES);
        arena.extend_from_slice(&Greeting::emit(self.memory.len() as u64));
        let partial = BytesMut::with_capacity(2 * HEADER_BYTES);
        let client = Box::new(Client { partial, writing: None, out: Vec::new(), arena, sending: false });
        let free = self.clients.iter().position(|place| matches!(place, Place::Free));
        let index = free.unwrap_or_else(|| {
            self.clients.push(Place::Free);
            self.clients.len() - 1
        });
        self.clients[index] = Place::Open(connection, client);
        let buffer = BytesMut::with_capacity(RECEIVE_BYTES);
        self.env.submit(token(index, RECEIVED), Operation::Receive { connection, buffer });
        self.flush(index);
    }

    fn on_completion(&mut self, index: usize, what: u32, outcome: Outcome) {
        if what == CLOSED {
            self.clients[index] = Place::Free;
            return;
        }
        let Place::Open(connection, client) = &mut self.clients[index] else { return };
        let connection = *connection;
        match (what, outcome) {
            (RECEIVED, Outcome::Received(mut buffer, Ok(())))
                if !buffer.is_empty() && client.take(&buffer, &self.source, &mut self.memory).is_some() =>
            {
                buffer.clear();
                return self.env.submit(token(index, RECEIVED), Operation::Receive { connection, buffer });
            }
            (SENT, Outcome::Done) => {
                client.sending = false;
                return;
            }
            _ => {}
        }
        // gone, or not one of ours
        self.clients[index] = Place::Closing;
        self.env.submit(token(index, CLOSED), Operation::CloseConnection { connection });
    }

    fn flush(&mut self, index: usize) {
        let Place::Open(connection, client) = &mut self.clients[index] else { return };
        client.seal();
        if !client.sending && !client.out.is_empty() {
            client.sending = true;
            let pieces = Vec::with_capacity(client.out.len());
            let data = std::mem::replace(&mut client.out, pieces);
            self.env.submit(token(index, SENT), Operation::Send { connection: *connection, data });
        }
    }
}

impl Client {
    /// Carries requests out. None: nonsense.
    fn take(&mut self, mut input: &[u8], source: &Bytes, memory: &mut [u8]) -> Option<()> {
        loop {
            if let Some((request, done)) = &mut self.writing {
                let length = (request.length_bytes as usize - *done).min(input.len());
                let at = request.offset_bytes as usize + *done;
                memory[at..at + length].copy_from_slice(&input[..length]);
                *done += length;
                input = &input[length..];
                if *done < request.length_bytes as usize {
                    return Some(());
                }
                let slot = request.slot;
                self.writing = None;
                self.header(&Answer { slot, data_bytes: 0 });
            }
            let header: Header = match input.first_chunk() {
                Some(header) if self.partial.is_empty() => {
                    input = &input[HEADER_BYTES..];
                    *header
                }
                _ => {
                    let length = (HEADER_BYTES - self.partial.len()).min(input.len());
                    self.partial.extend_from_slice(&input[..length]);
                    input = &input[length..];
                    let Some(header) = self.partial.first_chunk() else { return Some(()) };
                    let header = *header;
                    self.partial.clear();
                    header
                }
            };
            let request = Request::parse(&header, memory.len() as u64)?;
            if request.kind == WRITE {
                self.writing = Some((request, 0));
            } else {
                self.header(&Answer { slot: request.slot, data_bytes: request.length_bytes });
                self.seal();
                let start = request.offset_bytes as usize;
                self.out.push(source.slice(start..start + request.length_bytes as usize));
            }
        }
    }

    fn header(&mut self, answer: &Answer) {
        if self.arena.capacity() - self.arena.len() < HEADER_BYTES {
            self.seal();
            self.arena.reserve(ARENA_BYTES);
        }
        self.arena.extend_from_slice(&answer.emit());
    }

    fn seal(&mut self) {
        if !self.arena.is_empty() {
            self.out.push(self.arena.split().freeze());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_is_understood() {
        assert_eq!(Greeting::parse(&Greeting::emit(77)), Ok(77));
        assert!(Greeting::parse(&[0; 48]).is_err());
        let request = Request { kind: WRITE, slot: 3, length_bytes: 4096, offset_bytes: 8192 };
        assert_eq!(Request::parse(&request.emit(), 12288), Some(request));
        assert_eq!(Request::parse(&request.emit(), 12287), None, "outside of the memory");
        assert_eq!(Request::parse(&Request { kind: 9, ..request }.emit(), 1 << 20), None);
        let answer = Answer { slot: 9, data_bytes: 512 };
        assert_eq!(Answer::parse(&answer.emit()), Ok(answer));
    }
}
