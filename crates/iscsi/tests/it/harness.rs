//! A target with one or two hosts, an initiator, and the connection between them; and a raw client that sends bytes.

use std::net::SocketAddr;

use base::Nanos;
use bytes::{Bytes, BytesMut};
use iscsi::initiator::{Completion, Event, Initiator, InitiatorParams, Tag};
use iscsi::{
    Budget, Chap, CloseReason, Command, CommandResponse, Connection, ConnectionParams, Directory, Effect,
    HostAccess, Secret, SessionIdentity, TaskManagement,
};
use wire::iscsi::{HEADER_BYTES, Header, Lengths, padding};

pub const TARGET: &str = "iqn.2026-11.org.tangelo:array";
pub const HOST: &str = "iqn.1993-08.org.debian:01:host";
pub const CHAP_HOST: &str = "iqn.1993-08.org.debian:01:chap";
pub const MUTUAL_HOST: &str = "iqn.1993-08.org.debian:01:mutual";

pub fn chap(user: &str, secret: &str) -> Chap {
    Chap { user: user.to_string(), secret: Secret(secret.as_bytes().to_vec()) }
}

pub struct Hosts;

impl Directory for Hosts {
    fn target_name(&self) -> &str {
        TARGET
    }

    fn target_alias(&self) -> &str {
        "test array"
    }

    fn find_host(&self, initiator_name: &str) -> Option<HostAccess> {
        let host = chap("host", "twelve chars");
        match initiator_name {
            HOST => Some(HostAccess::default()),
            CHAP_HOST => Some(HostAccess { chap: Some(host), mutual: None }),
            MUTUAL_HOST => Some(HostAccess { chap: Some(host), mutual: Some(chap("array", "other secret")) }),
            _ => None,
        }
    }

    fn portals(&self, _: &str) -> Vec<(SocketAddr, u16)> {
        vec![("0.0.0.0:3260".parse().unwrap(), 1), ("[2001:db8::5]:3261".parse().unwrap(), 2)]
    }
}

pub fn connection() -> Connection {
    let local_address = "192.0.2.7:3260".parse().unwrap();
    let budget = Budget::new(512 << 20);
    Connection::new(ConnectionParams { local_address, portal_group_tag: 1, budget }, Nanos(0))
}

/// Random numbers that are the same in every run.
pub fn counter() -> impl FnMut() -> u64 {
    let mut state = 0x9E37_79B9_7F4A_7C15u64;
    move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    }
}

/// A target and an initiator with a wire between them.
pub struct Pair {
    pub target: Connection,
    pub initiator: Initiator,
    pub logged_in: Option<SessionIdentity>,
    pub commands: Vec<Command>,
    pub task_management: Vec<TaskManagement>,
    pub events: Vec<Event>,
    pub closed: Option<CloseReason>,
    pub random: Box<dyn FnMut() -> u64>,
    to_target: (Vec<u8>, BytesMut),
    to_initiator: (Vec<u8>, BytesMut),
}

impl Pair {
    pub fn new(params: InitiatorParams) -> Pair {
        Pair {
            target: connection(),
            initiator: Initiator::new(params),
            logged_in: None,
            commands: Vec::new(),
            task_management: Vec::new(),
            events: Vec::new(),
            closed: None,
            random: Box::new(counter()),
            to_target: Default::default(),
            to_initiator: Default::default(),
        }
    }

    /// Logged in, or not; see the events.
    pub fn after_login(params: InitiatorParams) -> Pair {
        let mut pair = Pair::new(params);
        pair.run();
        pair
    }

    /// A session of the plain host.
    pub fn session(wanted: iscsi::Parameters) -> Pair {
        let params = InitiatorParams { wanted, ..InitiatorParams::new(HOST, Some(TARGET)) };
        let mut pair = Pair::after_login(params);
        assert!(matches!(pair.events.remove(0), Event::LoggedIn { .. }), "no login");
        pair
    }

    /// Moves bytes until both ends are quiet.
    pub fn run(&mut self) {
        while self.step(usize::MAX) {}
    }

    /// Moves at most `chunk` bytes each way. False: nothing is on its way.
    pub fn step(&mut self, chunk: usize) -> bool {
        self.to_target.0.extend(self.initiator.take_output().concat());
        let moved = move_bytes(&mut self.to_target, chunk);
        self.target.on_receive(&mut self.to_target.1, &Hosts, Nanos(1), &mut *self.random);
        self.collect_effects();
        self.to_initiator.0.extend(self.target.take_output().concat());
        let back = move_bytes(&mut self.to_initiator, chunk);
        self.initiator.on_receive(&mut self.to_initiator.1, &mut *self.random);
        while let Some(event) = self.initiator.next_event() {
            self.events.push(event);
        }
        moved | back | self.initiator.has_output() | self.target.has_output()
    }

    pub fn collect_effects(&mut self) {
        while let Some(effect) = self.target.next_effect() {
            assert_eq!(self.closed, None, "an effect after the last one: {effect:?}");
            match effect {
                Effect::LoggedIn(identity) => {
                    self.logged_in = Some(identity);
                    self.target.complete_login(0x1234);
                }
                Effect::Command(command) => self.commands.push(command),
                Effect::TaskManagement(request) => self.task_management.push(request),
                Effect::Close(reason) => self.closed = Some(reason),
            }
        }
    }

    /// The one completion there is.
    pub fn completion(&mut self) -> (Tag, Completion) {
        self.run();
        match self.events.pop() {
            Some(Event::Completed(tag, completion)) => {
                assert!(self.events.is_empty(), "{:?}", self.events);
                (tag, completion)
            }
            other => panic!("no completion but {other:?}"),
        }
    }
}

fn move_bytes((from, to): &mut (Vec<u8>, BytesMut), chunk: usize) -> bool {
    let chunk = chunk.min(from.len());
    to.extend_from_slice(&from[..chunk]);
    from.drain(..chunk);
    chunk > 0 || !from.is_empty()
}

/// A PDU as bytes: header and data.
pub type Frame = (Header, Vec<u8>);

/// Cuts what a target sent (without digests) into PDUs.
pub fn frames(output: &[Bytes]) -> Vec<Frame> {
    let (bytes, mut at, mut found) = (output.concat(), 0, Vec::new());
    while at < bytes.len() {
        let header: Header = bytes[at..at + HEADER_BYTES].try_into().unwrap();
        let length = Lengths::of(&header).data;
        let data = bytes[at + HEADER_BYTES..at + HEADER_BYTES + length].to_vec();
        at += HEADER_BYTES + length + padding(length);
        found.push((header, data));
    }
    found
}

/// A client that says what it likes.
pub struct Raw {
    pub target: Connection,
    pub effects: Vec<Effect>,
}

impl Raw {
    pub fn new() -> Raw {
        Raw { target: connection(), effects: Vec::new() }
    }

    /// Logged in with these offers, straight to the operational stage; CmdSN starts at 1.
    pub fn logged_in(offers: &str) -> Raw {
        let mut raw = Raw::new();
        let text = format!("InitiatorName={HOST}\nTargetName={TARGET}\n{offers}");
        let answers = raw.login(0x87, &text);
        assert_eq!(answers.len(), 1);
        assert_eq!((answers[0].0[1], &answers[0].0[36..38]), (0x87, &[0, 0][..]), "{answers:?}");
        raw.effects.clear();
        raw
    }

    /// One login request; lines of `text` become pairs.
    pub fn login(&mut self, flags: u8, text: &str) -> Vec<Frame> {
        let mut header = [0; HEADER_BYTES];
        (header[0], header[1]) = (0x43, flags);
        header[8..14].copy_from_slice(&[0x80, 0, 0, 0, 0, 9]);
        header[27] = 1;
        self.send(header, &pairs(text))
    }

    /// A PDU whose data length is made true; what comes back.
    pub fn send(&mut self, mut header: Header, data: &[u8]) -> Vec<Frame> {
        header[4..8].copy_from_slice(&(data.len() as u32).to_be_bytes());
        let mut bytes = header.to_vec();
        bytes.extend_from_slice(data);
        bytes.resize(bytes.len() + padding(data.len()), 0);
        self.send_bytes(&bytes)
    }

    pub fn send_bytes(&mut self, bytes: &[u8]) -> Vec<Frame> {
        let mut input = BytesMut::from(bytes);
        self.target.on_receive(&mut input, &Hosts, Nanos(1), &mut counter());
        while let Some(effect) = self.target.next_effect() {
            if matches!(effect, Effect::LoggedIn(_)) {
                self.target.complete_login(0x1234);
            }
            self.effects.push(effect);
        }
        frames(&self.target.take_output())
    }

    pub fn closed(&self) -> Option<CloseReason> {
        match self.effects.last() {
            Some(Effect::Close(reason)) => Some(*reason),
            _ => None,
        }
    }

    /// The commands that the engine was given, by task.
    pub fn take_commands(&mut self) -> Vec<Command> {
        let effects = std::mem::take(&mut self.effects);
        effects.into_iter().filter_map(|e| if let Effect::Command(c) = e { Some(c) } else { None }).collect()
    }

    pub fn good(&mut self, command: &Command) -> Vec<Frame> {
        self.target.respond(command.task, CommandResponse::default());
        frames(&self.target.take_output())
    }
}

/// `a=b` lines as text of the wire.
pub fn pairs(lines: &str) -> Vec<u8> {
    lines.lines().flat_map(|line| [line.as_bytes(), b"\0"].concat()).collect()
}

/// Text of the wire as lines.
pub fn lines(text: &[u8]) -> String {
    String::from_utf8(text.to_vec()).unwrap().replace('\0', "\n").trim_end().to_string()
}

/// Bytes that tell where they are from.
pub fn pattern(seed: usize, length: usize) -> Vec<u8> {
    (0..length).map(|i| (i ^ (i >> 8) ^ (i >> 16) ^ seed.wrapping_mul(31)) as u8).collect()
}

/// The same in uneven pieces.
pub fn pieces(bytes: &[u8], size: usize) -> Vec<Bytes> {
    bytes.chunks(size.max(1)).map(Bytes::copy_from_slice).collect()
}

/// Headers by hand, for [`Raw`].
pub mod by_hand {
    use wire::iscsi::{
        DataOut, Header, Lengths, RESERVED_TAG, ScsiCommand, TaskAttribute, TaskManagementFunction,
        TaskManagementRequest,
    };

    /// Byte 1 of a SCSI command.
    pub const READ: u8 = 0xc0;
    pub const WRITE: u8 = 0xa0;
    /// Unsolicited data follows.
    pub const WRITE_MORE: u8 = 0x20;
    pub const NO_DATA: u8 = 0x80;

    pub fn command(flags: u8, task_tag: u32, cmd_sn: u32, expected_bytes: u32) -> Header {
        ScsiCommand {
            immediate: false,
            is_final: flags & 0x80 != 0,
            read: flags & 0x40 != 0,
            write: flags & 0x20 != 0,
            attribute: TaskAttribute::Simple,
            lun: 0,
            task_tag,
            expected_bytes,
            cmd_sn,
            exp_stat_sn: 0,
            cdb: [0; 16],
        }
        .emit(Lengths::default())
    }

    pub fn data_out(
        is_final: bool,
        task_tag: u32,
        target_tag: u32,
        data_sn: u32,
        offset_bytes: u32,
    ) -> Header {
        DataOut { is_final, lun: 0, task_tag, target_tag, exp_stat_sn: 0, data_sn, offset_bytes }
            .emit(Lengths::default())
    }

    pub fn unsolicited(is_final: bool, task_tag: u32, data_sn: u32, offset_bytes: u32) -> Header {
        data_out(is_final, task_tag, RESERVED_TAG, data_sn, offset_bytes)
    }

    pub fn task_management(function: TaskManagementFunction, task_tag: u32, referenced_tag: u32) -> Header {
        TaskManagementRequest {
            immediate: true,
            function: Some(function),
            lun: 0,
            task_tag,
            referenced_tag,
            cmd_sn: 0,
            exp_stat_sn: 0,
            ref_cmd_sn: 0,
            exp_data_sn: 0,
        }
        .emit()
    }
}

/// The sense key, additional sense code and qualifier of a SCSI response with CHECK CONDITION.
pub fn sense_of(frame: &Frame) -> (u8, u8, u8) {
    let (header, data) = frame;
    assert_eq!((header[0], header[3]), (0x21, 2), "{frame:?}");
    assert_eq!(usize::from(u16::from_be_bytes([data[0], data[1]])), data.len() - 2);
    (data[4] & 15, data[14], data[15])
}

pub fn word(header: &Header, at: usize) -> u32 {
    u32::from_be_bytes(header[at..at + 4].try_into().unwrap())
}
