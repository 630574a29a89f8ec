//! A target for tests: a logical unit in memory that follows a script.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;

use base::Nanos;
use bytes::{Bytes, BytesMut};
use iscsi::{Budget, Command, CommandResponse, Connection, ConnectionParams, Directory, Effect, HostAccess};
use wire::scsi::{Sense, SenseCode, SenseFormat, SenseKey, Status};

use crate::target::{INITIATOR, Unit};

const NAME: &str = "iqn.2026-11.org.example:scripted";
pub const BLOCK_BYTES: usize = 512;
pub const READ: u8 = 0x88;
pub const WRITE: u8 = 0x8a;
pub const READ_CAPACITY: u8 = 0x9e;

/// The scripted answer to a command, given its number (from 0) and its CDB. The command is not executed then.
pub type Script = Arc<dyn Fn(u64, &[u8; 16]) -> Option<CommandResponse> + Send + Sync>;

struct Everybody;

impl Directory for Everybody {
    fn target_name(&self) -> &str {
        NAME
    }
    fn find_host(&self, _: &str) -> Option<HostAccess> {
        Some(HostAccess::default())
    }
    fn portals(&self, _: &str) -> Vec<(SocketAddr, u16)> {
        Vec::new()
    }
}

pub fn status(status: Status) -> CommandResponse {
    CommandResponse { status: status.code(), ..CommandResponse::default() }
}

pub fn check_condition(key: SenseKey, code: SenseCode) -> CommandResponse {
    let sense = Some(Sense::new(key, code).emit(SenseFormat::Fixed));
    CommandResponse { sense, ..status(Status::CheckCondition) }
}

/// Serves a unit of zeros for as long as somebody asks; every connection has its own, and its own count of commands.
pub fn serve(blocks: usize, script: Script) -> Unit {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let portal = listener.local_addr().expect("it listens");
    std::thread::spawn(move || {
        for socket in listener.incoming() {
            let (socket, script) = (socket.expect("a client"), script.clone());
            std::thread::spawn(move || attend(socket, blocks, &script));
        }
    });
    Unit { portal, target: NAME.to_owned(), lun: 0, last_lun: 0, initiator: INITIATOR.to_owned() }
}

fn attend(mut socket: TcpStream, blocks: usize, script: &Script) {
    let local_address = socket.local_addr().expect("it is connected");
    let params = ConnectionParams { local_address, portal_group_tag: 1, budget: Budget::new(64 << 20) };
    let mut connection = Connection::new(params, Nanos(0));
    let (mut input, mut piece) = (BytesMut::new(), vec![0; 64 << 10]);
    let (mut memory, mut number) = (vec![0; blocks * BLOCK_BYTES], 0);
    while let Ok(length @ 1..) = socket.read(&mut piece) {
        input.extend_from_slice(&piece[..length]);
        connection.on_receive(&mut input, &Everybody, Nanos(0), &mut || 7);
        loop {
            match connection.next_effect() {
                Some(Effect::LoggedIn(_)) => connection.complete_login(1),
                Some(Effect::Command(command)) => {
                    let scripted = script(number, &command.cdb);
                    let response = scripted.unwrap_or_else(|| carry_out(&command, &mut memory));
                    connection.respond(command.task, response);
                    number += 1;
                }
                Some(_) => return,
                None => break,
            }
        }
        if connection.take_output().iter().any(|data| socket.write_all(data).is_err()) {
            return;
        }
    }
}

fn carry_out(command: &Command, memory: &mut [u8]) -> CommandResponse {
    let word =
        |at: usize| u32::from_be_bytes(command.cdb[at..at + 4].try_into().expect("four bytes")) as usize;
    let range = word(6) * BLOCK_BYTES..(word(6) + word(10)) * BLOCK_BYTES;
    let data_in = match command.cdb[0] {
        READ => memory[range].to_vec(),
        WRITE => {
            memory[range].copy_from_slice(&command.data_out.to_vec());
            Vec::new()
        }
        READ_CAPACITY => {
            let last = (memory.len() / BLOCK_BYTES - 1) as u64;
            [&last.to_be_bytes()[..], &(BLOCK_BYTES as u32).to_be_bytes(), &[0; 20]].concat()
        }
        opcode => panic!("no test sends {opcode:#x}"),
    };
    CommandResponse { data_in: Bytes::from(data_in).into(), ..CommandResponse::default() }
}
