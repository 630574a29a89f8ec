//! A session's connection: bytes between the initiator and a blocking socket.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use bytes::BytesMut;
use iscsi::initiator::{Event, Initiator, InitiatorParams, Request, Tag};
use wire::iscsi::TaskManagementFunction;

use super::plan;

/// How long a turn waits for something to come.
const TURN: Duration = Duration::from_millis(2);
/// A login takes less, however busy the machine.
const LOGIN: Duration = Duration::from_secs(60);
/// Pause before another attempt.
const AGAIN: Duration = Duration::from_millis(20);
/// Sessions of one host, which differ in their ISID.
const SESSIONS_PER_HOST: usize = 8;
const RECEIVE_BYTES: usize = 64 << 10;

/// The name of the host with this number.
pub fn initiator_name(host: usize) -> String {
    format!("iqn.2026-11.org.example:storm{host}")
}

pub fn hosts(sessions: usize) -> usize {
    sessions.div_ceil(SESSIONS_PER_HOST)
}

/// See the module's words.
pub struct Link {
    address: SocketAddr,
    params: InitiatorParams,
    stream: TcpStream,
    initiator: Initiator,
    input: BytesMut,
    /// What one read of the socket gives.
    received: Vec<u8>,
    random: u64,
}

impl Link {
    /// Logs in as the session with this number.
    pub fn log_in(address: SocketAddr, target: &str, number: usize) -> Result<Link, String> {
        Link::log_in_as(address, target, number / SESSIONS_PER_HOST, (number % SESSIONS_PER_HOST) as u16)
    }

    /// Logs in as one of a host's sessions.
    pub fn log_in_as(address: SocketAddr, target: &str, host: usize, session: u16) -> Result<Link, String> {
        let mut params = InitiatorParams::new(&initiator_name(host), Some(target));
        params.isid[4..].copy_from_slice(&session.to_be_bytes());
        Link::open(address, params)
    }

    /// The same session, on a new connection.
    pub fn again(&self) -> Result<Link, String> {
        Link::open(self.address, self.params.clone())
    }

    fn open(address: SocketAddr, params: InitiatorParams) -> Result<Link, String> {
        let deadline = Instant::now() + LOGIN;
        loop {
            match Link::try_open(address, &params, deadline) {
                Ok(link) => return Ok(link),
                Err(error) if Instant::now() > deadline => return Err(format!("no login: {error}")),
                Err(_) => std::thread::sleep(AGAIN),
            }
        }
    }

    fn try_open(address: SocketAddr, params: &InitiatorParams, deadline: Instant) -> Result<Link, String> {
        let stream = TcpStream::connect(address).map_err(|error| error.to_string())?;
        let configured = stream
            .set_nodelay(true)
            .and_then(|()| stream.set_read_timeout(Some(TURN)))
            .and_then(|()| stream.set_write_timeout(Some(LOGIN)));
        configured.map_err(|error| error.to_string())?;
        let mut link = Link {
            address,
            params: params.clone(),
            stream,
            initiator: Initiator::new(params.clone()),
            input: BytesMut::new(),
            received: vec![0; RECEIVE_BYTES],
            random: 1,
        };
        while Instant::now() < deadline {
            if !link.turn()? {
                return Err("the connection was closed".to_owned());
            }
            match link.next_event() {
                Some(Event::LoggedIn { .. }) => return Ok(link),
                Some(other) => return Err(format!("{other:?}")),
                None => {}
            }
        }
        Err("the login takes too long".to_owned())
    }

    /// Sends what is ready and receives what is there. `false`: the connection is gone.
    pub fn turn(&mut self) -> Result<bool, String> {
        for bytes in self.initiator.take_output() {
            match self.stream.write_all(&bytes) {
                Ok(()) => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    return Err("the daemon takes no data".to_owned());
                }
                Err(_) => return Ok(false),
            }
        }
        match self.stream.read(&mut self.received) {
            Ok(0) => return Ok(false),
            Ok(count) => self.input.extend_from_slice(&self.received[..count]),
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
            Err(_) => return Ok(false),
        }
        let random = &mut self.random;
        self.initiator.on_receive(&mut self.input, &mut || {
            *random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            *random
        });
        Ok(true)
    }

    pub fn next_event(&mut self) -> Option<Event> {
        self.initiator.next_event()
    }

    pub fn can_send(&self) -> bool {
        self.initiator.can_send()
    }

    pub fn send(&mut self, request: Request) -> Tag {
        self.initiator.command(request).expect("asked before")
    }

    pub fn manage(&mut self, function: TaskManagementFunction, lun: u16, of: Option<Tag>) -> Tag {
        let whole_target = matches!(
            function,
            TaskManagementFunction::TargetWarmReset | TaskManagementFunction::TargetColdReset
        );
        let field = if whole_target { 0 } else { plan::lun_field(lun) };
        self.initiator.task_management(function, field, of)
    }

    /// Sends what is ready, and does not wait for an answer.
    pub fn push(&mut self) {
        for bytes in self.initiator.take_output() {
            let _sent = self.stream.write_all(&bytes);
        }
    }

    /// Ends the connection without a word.
    pub fn drop_now(&mut self) {
        // it may be gone already
        let _gone = self.stream.shutdown(Shutdown::Both);
    }

    pub fn log_out(mut self) {
        self.initiator.logout();
        while let Ok(true) = self.turn() {
            if self.initiator.is_over() {
                return;
            }
        }
    }
}
