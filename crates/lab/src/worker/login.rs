//! Connecting, logging in, and the few commands before a load, with the sans-IO initiator.

use std::net::SocketAddr;
use std::time::Duration;

use base::Nanos;
use bytes::{Bytes, BytesMut};
use env::{ConnectionHandle, Operation, Outcome};
use iscsi::Parameters;
use iscsi::initiator::{Completion, Event, Initiator, InitiatorParams, Request, Tag};

use super::cdb::cdb_16;
use super::retry::{Met, Retried, failure};
use super::world::{SILENCE_MAX, World, wait_at_most};
use crate::target::Unit;

const RECEIVE_BYTES: usize = 512 << 10;

pub fn connect(env: &mut World, address: SocketAddr, patience: Nanos) -> Result<ConnectionHandle, String> {
    match wait_at_most(env, Operation::Connect { address }, patience)? {
        Outcome::Connected { connection, .. } => Ok(connection),
        Outcome::Failed(error) => Err(format!("{address}: {error}")),
        outcome => Err(format!("{address}: {outcome:?}")),
    }
}

/// A session in full feature phase, with nothing outstanding.
pub struct Session {
    pub connection: ConnectionHandle,
    pub initiator: Initiator,
    pub parameters: Parameters,
    input: BytesMut,
    pub lun: u64,
    /// Logical blocks and their size in bytes.
    pub blocks: u64,
    pub block_bytes: u32,
    /// What was met since then and is no error.
    pub retried: Retried,
    /// A target that is silent for so long is given up.
    patience: Nanos,
}

impl Session {
    /// Logs in, clears what is to be reported first, and asks for the capacity. `number` tells the sessions of one
    /// process from each other.
    pub fn open(env: &mut World, unit: &Unit, number: u64) -> Result<Session, String> {
        Session::open_within(env, unit, number, SILENCE_MAX)
    }

    /// The same; a target that does not answer for `patience` is given up, now and later.
    pub fn open_within(
        env: &mut World,
        unit: &Unit,
        number: u64,
        patience: Nanos,
    ) -> Result<Session, String> {
        let why = |error: String| format!("{} at {}: {error}", unit.target, unit.portal);
        let lun = unit.lun_of(number);
        let connection = connect(env, unit.portal, patience)?;
        let mut params = InitiatorParams::new(&unit.initiator, Some(&unit.target));
        // Another ISID for every session, also of processes that run beside each other (RFC 7143 §11.12.5: random).
        params.isid[1..4].copy_from_slice(&std::process::id().to_be_bytes()[1..]);
        params.isid[4..6].copy_from_slice(&(number as u16).to_be_bytes());
        params.wanted.receive_segment_bytes = 1 << 20;
        let mut session = Session {
            connection,
            initiator: Initiator::new(params),
            parameters: Parameters::DEFAULT,
            input: BytesMut::with_capacity(RECEIVE_BYTES),
            // Flat space addressing from 256 on (SAM-5 §4.7.7.4).
            lun: u64::from(if lun < 256 { lun } else { 0x4000 | lun }) << 48,
            blocks: 0,
            block_bytes: 0,
            retried: Retried::new(),
            patience,
        };
        loop {
            if let Event::LoggedIn { parameters, .. } = session.next_event(env).map_err(why)? {
                session.parameters = parameters;
                break;
            }
        }
        session.read_capacity(env).map_err(why)?;
        // What every new session is told first is nothing to tell.
        session.retried.clear();
        Ok(session)
    }

    /// READ CAPACITY (16), SBC-3 §5.16.
    fn read_capacity(&mut self, env: &mut World) -> Result<(), String> {
        let mut cdb = [0; 16];
        (cdb[0], cdb[1], cdb[13]) = (0x9e, 0x10, 32);
        let mut request = Request::new(self.lun, cdb);
        request.expected_in = 32;
        let data = self.carry_out(env, &request)?;
        let (Some(last), Some(size)) = (data.first_chunk::<8>(), data.get(8..).and_then(<[u8]>::first_chunk))
        else {
            return Err("READ CAPACITY (16) came back too short".to_owned());
        };
        self.blocks = u64::from_be_bytes(*last) + 1;
        self.block_bytes = u32::from_be_bytes(*size);
        Ok(())
    }

    /// A command while no other is outstanding, sent again where that is asked for; what it reads.
    pub fn carry_out(&mut self, env: &mut World, request: &Request) -> Result<Vec<u8>, String> {
        for tries in 0.. {
            self.command(request.clone())?;
            let (_, completion) = self.next_completion(env)?;
            if completion.status == 0 {
                return Ok(completion.data_in.to_vec());
            }
            self.before_next_try(&completion, tries)?;
        }
        unreachable!("patience has an end")
    }

    /// After a command that was sent again so many times has ended with something else than GOOD: counts what was met, and
    /// waits as long as it asks for. An error where the command is not worth another try.
    pub fn before_next_try(&mut self, completion: &Completion, tries: u32) -> Result<(), String> {
        let Completion { status, sense, .. } = completion;
        let pause = Met::of(*status, sense).and_then(|met| {
            met.count(&mut self.retried);
            met.pause(tries)
        });
        let pause = pause.ok_or_else(|| failure(*status, sense))?;
        std::thread::sleep(Duration::from_nanos(pause.0));
        Ok(())
    }

    /// Whether the target lets one more command in.
    pub fn can_send(&self) -> bool {
        self.initiator.can_send()
    }

    /// READ (16) of whole blocks; it goes out with the next wait.
    pub fn read(&mut self, block: u64, blocks: u32) -> Result<Tag, String> {
        let mut request = Request::new(self.lun, cdb_16(0x88, block, blocks));
        request.expected_in = blocks * self.block_bytes;
        self.command(request)
    }

    /// WRITE (16) of whole blocks.
    pub fn write(&mut self, block: u64, blocks: u32, data: Bytes) -> Result<Tag, String> {
        let mut request = Request::new(self.lun, cdb_16(0x8a, block, blocks));
        request.data_out.push(data);
        self.command(request)
    }

    /// Gives the connection up, whatever is on its way.
    pub fn close(self, env: &mut World) {
        // one that is broken is closed, too
        let _ = wait_at_most(env, Operation::CloseConnection { connection: self.connection }, self.patience);
    }

    /// Any command; it goes out with the next wait.
    pub fn command(&mut self, request: Request) -> Result<Tag, String> {
        self.initiator.command(request).map_err(|_| "the target's window is full".to_owned())
    }

    /// Waits for a command to end; one that failed is an error of the caller's choice.
    pub fn next_completion(&mut self, env: &mut World) -> Result<(Tag, Completion), String> {
        loop {
            if let Event::Completed(tag, completion) = self.next_event(env)? {
                return Ok((tag, completion));
            }
        }
    }

    fn next_event(&mut self, env: &mut World) -> Result<Event, String> {
        loop {
            match self.initiator.next_event() {
                Some(Event::Failed(fault)) => return Err(format!("the session ended: {fault:?}")),
                Some(event) => return Ok(event),
                None => self.exchange(env)?,
            }
        }
    }

    /// Sends everything that is ready, then waits for something to come.
    fn exchange(&mut self, env: &mut World) -> Result<(), String> {
        let connection = self.connection;
        let data = self.initiator.take_output();
        if !data.is_empty()
            && let Outcome::Failed(error) =
                wait_at_most(env, Operation::Send { connection, data }, self.patience)?
        {
            return Err(format!("the connection broke: {error}"));
        }
        let mut buffer = std::mem::take(&mut self.input);
        buffer.reserve(self.initiator.receive_bytes_wanted().max(RECEIVE_BYTES / 2));
        let before = buffer.len();
        match wait_at_most(env, Operation::Receive { connection, buffer }, self.patience)? {
            Outcome::Received(received, Ok(())) if received.len() > before => self.input = received,
            Outcome::Received(_, Ok(())) => return Err("the target closed the connection".to_owned()),
            outcome => return Err(format!("the connection broke: {outcome:?}")),
        }
        // Randomness is for CHAP's challenges alone, which nobody is asked for here.
        self.initiator.on_receive(&mut self.input, &mut || 0x5eed);
        Ok(())
    }

    /// What was agreed on, for the settings of a result.
    pub fn facts(&self) -> Vec<(String, String)> {
        let Parameters { immediate_data, initial_r2t, first_burst_bytes, max_burst_bytes, .. } =
            self.parameters;
        let yes = |is: bool| if is { "Yes" } else { "No" }.to_owned();
        let facts = [
            ("iscsi.ImmediateData", yes(immediate_data)),
            ("iscsi.InitialR2T", yes(initial_r2t)),
            ("iscsi.FirstBurstLength", first_burst_bytes.to_string()),
            ("iscsi.MaxBurstLength", max_burst_bytes.to_string()),
            ("iscsi.MaxRecvDataSegmentLength.target", self.parameters.send_segment_bytes.to_string()),
            ("iscsi.MaxRecvDataSegmentLength.initiator", self.parameters.receive_segment_bytes.to_string()),
            ("iscsi.HeaderDigest", yes(self.parameters.header_digest)),
            ("iscsi.DataDigest", yes(self.parameters.data_digest)),
            ("logical_block_bytes", self.block_bytes.to_string()),
            ("size_bytes", (self.blocks * u64::from(self.block_bytes)).to_string()),
        ];
        facts.map(|(name, value)| (name.to_owned(), value)).into()
    }
}
