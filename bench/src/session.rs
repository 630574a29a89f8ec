//! One iSCSI session over one blocking socket.
//!
//! What is ready goes out in one piece, then whatever has come is taken in: at depth 64 both are large, and the client
//! costs little.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use bytes::BytesMut;
use clap::Args;
use iscsi::initiator::{Completion, Event, Initiator, InitiatorParams, Request, Tag};

pub type Result<T> = std::result::Result<T, String>;

/// A target that says nothing for so long is given up.
const SILENCE_MAX: Duration = Duration::from_secs(60);
const RECEIVE_BYTES: usize = 1 << 20;
/// LOGICAL UNIT COMMUNICATION FAILURE or BUSY are worth no retry here; UNIT ATTENTION (SPC-4 §5.14) is.
const CHECK_CONDITION: u8 = 0x02;
const UNIT_ATTENTION: u8 = 0x06;

/// A logical unit, and who asks for it.
#[derive(Args)]
pub struct Unit {
    /// Address and port
    #[arg(long)]
    pub portal: String,
    /// Name of the target
    #[arg(long)]
    pub target: String,
    #[arg(long, default_value = "0")]
    pub lun: u16,
    /// Our name
    #[arg(long, default_value = "iqn.2026-11.org.example:bench")]
    pub initiator: String,
}

pub struct Session {
    socket: TcpStream,
    initiator: Initiator,
    input: BytesMut,
    lun: u64,
    /// Logical blocks and their size in bytes.
    pub blocks: u64,
    pub block_bytes: u32,
}

impl Session {
    /// Logs in, clears what is to be reported first, and asks for the capacity.
    pub fn open(unit: &Unit) -> Result<Session> {
        let why = |error: std::io::Error| format!("{}: {error}", unit.portal);
        let socket = TcpStream::connect(&unit.portal).map_err(why)?;
        socket.set_nodelay(true).map_err(why)?;
        socket.set_read_timeout(Some(SILENCE_MAX)).map_err(why)?;
        let mut params = InitiatorParams::new(&unit.initiator, Some(&unit.target));
        // A different ISID for every process: two may run beside each other.
        params.isid[2..6].copy_from_slice(&std::process::id().to_be_bytes());
        let mut session = Session {
            socket,
            initiator: Initiator::new(params),
            input: BytesMut::with_capacity(RECEIVE_BYTES),
            // Flat space addressing from 256 on (SAM-5 §4.7.7.4).
            lun: u64::from(if unit.lun < 256 { unit.lun } else { 0x4000 | unit.lun }) << 48,
            blocks: 0,
            block_bytes: 0,
        };
        while !matches!(session.next_event()?, Event::LoggedIn { .. }) {}
        session.read_capacity()?;
        Ok(session)
    }

    /// READ CAPACITY (16), SBC-3 §5.16.
    fn read_capacity(&mut self) -> Result<()> {
        let mut cdb = [0; 16];
        (cdb[0], cdb[1], cdb[13]) = (0x9e, 0x10, 32);
        for _ in 0..8 {
            let mut request = Request::new(self.lun, cdb);
            request.expected_in = 32;
            self.command(request)?;
            let completion = self.next_completion()?.1;
            if completion.status == 0 {
                let data = completion.data_in.to_vec();
                let (last, size) = (data.get(0..8), data.get(8..12));
                let (Some(last), Some(size)) = (last, size) else {
                    return Err("READ CAPACITY (16) came back too short".to_owned());
                };
                self.blocks = u64::from_be_bytes(last.try_into().expect("eight bytes")) + 1;
                self.block_bytes = u32::from_be_bytes(size.try_into().expect("four bytes"));
                return Ok(());
            }
            let key = completion.sense.get(2).map(|byte| byte & 0x0f);
            if completion.status != CHECK_CONDITION || key != Some(UNIT_ATTENTION) {
                return Err(failure(&completion));
            }
        }
        Err("the unit reports one attention after the other".to_owned())
    }

    /// Whether the target lets one more command in.
    pub fn can_send(&self) -> bool {
        self.initiator.can_send()
    }

    pub fn outstanding(&self) -> usize {
        self.initiator.outstanding()
    }

    /// READ (16) or WRITE (16) of whole blocks, SBC-3 §5.15 and §5.38; it goes out with the next wait.
    pub fn read(&mut self, block: u64, blocks: u32) -> Result<Tag> {
        let mut request = Request::new(self.lun, cdb_16(0x88, block, blocks));
        request.expected_in = blocks * self.block_bytes;
        self.command(request)
    }

    pub fn write(&mut self, block: u64, data: bytes::Bytes) -> Result<Tag> {
        let blocks = data.len() as u32 / self.block_bytes;
        let mut request = Request::new(self.lun, cdb_16(0x8a, block, blocks));
        request.data_out = data.into();
        self.command(request)
    }

    fn command(&mut self, request: Request) -> Result<Tag> {
        self.initiator.command(request).map_err(|_| "the target's window is full".to_owned())
    }

    /// Waits for a command to end; one that failed is an error of the caller's choice.
    pub fn next_completion(&mut self) -> Result<(Tag, Completion)> {
        loop {
            if let Event::Completed(tag, completion) = self.next_event()? {
                return Ok((tag, completion));
            }
        }
    }

    /// What has ended already, without waiting.
    pub fn try_completion(&mut self) -> Result<Option<(Tag, Completion)>> {
        while let Some(event) = self.initiator.next_event() {
            match event {
                Event::Completed(tag, completion) => return Ok(Some((tag, completion))),
                Event::Failed(fault) => return Err(format!("the session ended: {fault:?}")),
                _ => {}
            }
        }
        Ok(None)
    }

    fn next_event(&mut self) -> Result<Event> {
        loop {
            match self.initiator.next_event() {
                Some(Event::Failed(fault)) => return Err(format!("the session ended: {fault:?}")),
                Some(event) => return Ok(event),
                None => self.exchange()?,
            }
        }
    }

    /// Sends everything that is ready, then waits for something to come.
    pub fn exchange(&mut self) -> Result<()> {
        let why = |error: std::io::Error| match error.kind() {
            ErrorKind::WouldBlock | ErrorKind::TimedOut => {
                "the target has been silent for a minute".to_owned()
            }
            _ => format!("the connection broke: {error}"),
        };
        let output = self.initiator.take_output();
        if output.len() == 1 {
            self.socket.write_all(&output[0]).map_err(why)?;
        } else if !output.is_empty() {
            self.socket.write_all(&output.concat()).map_err(why)?;
        }
        let mut room = [0; 256 << 10];
        let received = self.socket.read(&mut room).map_err(why)?;
        if received == 0 {
            return Err("the target closed the connection".to_owned());
        }
        self.input.extend_from_slice(&room[..received]);
        // Randomness is for CHAP's challenges alone, which nobody is asked for here.
        self.initiator.on_receive(&mut self.input, &mut || 0x5eed);
        Ok(())
    }
}

/// Status and sense data of a command that did not succeed.
pub fn failure(completion: &Completion) -> String {
    format!("a command ended with status {:#04x}, sense {:02x?}", completion.status, &completion.sense[..])
}

fn cdb_16(opcode: u8, block: u64, blocks: u32) -> [u8; 16] {
    let mut cdb = [0; 16];
    cdb[0] = opcode;
    cdb[2..10].copy_from_slice(&block.to_be_bytes());
    cdb[10..14].copy_from_slice(&blocks.to_be_bytes());
    cdb
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cdb_is_big_endian() {
        let cdb = cdb_16(0x88, 0x0102_0304_0506, 0x0708);
        assert_eq!(cdb, [0x88, 0, 0, 0, 1, 2, 3, 4, 5, 6, 0, 0, 7, 8, 0, 0]);
    }
}
