//! A host in the simulated environment: one iSCSI session of an initiator, driven command by command.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::rc::Rc;

use base::Nanos;
use block::Payload;
use bytes::{Bytes, BytesMut};
use env::ConnectionHandle;
use iscsi::initiator::{Completion, Event, Initiator, InitiatorParams, Request, Tag};
use sim::{Patience, ProcessId, TaskShard};
use task::{Io, Notify};
use wire::iscsi::{TaskManagementFunction, TaskManagementResult};
use wire::scsi::Lun;

use super::Lab;

type Shard = Rc<RefCell<TaskShard<()>>>;

struct Shared {
    initiator: RefCell<Initiator>,
    /// Output may be ready.
    output: Notify,
    completions: RefCell<BTreeMap<Tag, Completion>>,
    results: RefCell<BTreeMap<Tag, TaskManagementResult>>,
    /// Everything else that has happened, in words.
    events: RefCell<Vec<Event>>,
    logged_in: Cell<bool>,
    /// The machine hangs: its kernel keeps the connection, but nobody reads from it.
    hangs: Cell<bool>,
    /// The connection is gone.
    closed: Cell<bool>,
}

/// One session of a host.
pub struct Host {
    shared: Rc<Shared>,
    shard: Shard,
    process: ProcessId,
}

impl Host {
    /// Begins to connect to a portal and to log in.
    pub fn start(lab: &mut Lab, address: SocketAddr, params: InitiatorParams) -> Host {
        Host::start_from(lab, 1, address, params)
    }

    /// The same, on this machine.
    pub fn start_from(lab: &mut Lab, machine: u16, address: SocketAddr, params: InitiatorParams) -> Host {
        let (process, shards, _) =
            lab.simulation.start_task_process::<()>(machine, 1, |_, _| Box::new(|_, ()| {}));
        let shard = shards.into_iter().next().unwrap();
        let io = shard.borrow().io().clone();
        let shared = Rc::new(Shared {
            initiator: RefCell::new(Initiator::new(params)),
            output: Notify::new(&io),
            completions: RefCell::default(),
            results: RefCell::default(),
            events: RefCell::default(),
            logged_in: Cell::new(false),
            hangs: Cell::new(false),
            closed: Cell::new(false),
        });
        drop(lab.simulation.start(&shard, serve(io, shared.clone(), address)));
        Host { shared, shard, process }
    }

    /// A session of this initiator at this shard, logged in, after its first unit attentions.
    pub fn log_in(lab: &mut Lab, shard: u16, initiator: &str, isid: u8) -> Host {
        let host = Host::try_log_in(lab, shard, initiator, isid);
        assert!(host.is_logged_in(), "{:?}", host.events());
        host
    }

    /// Tries to log in.
    pub fn try_log_in(lab: &mut Lab, shard: u16, initiator: &str, isid: u8) -> Host {
        let target = lab.status().target_name;
        let mut params = InitiatorParams::new(initiator, Some(&target));
        params.isid[5] = isid;
        let host = Host::start(lab, super::portal(shard), params);
        let shared = host.shared.clone();
        lab.wait(|| shared.logged_in.get() || shared.closed.get());
        host
    }

    pub fn is_logged_in(&self) -> bool {
        self.shared.logged_in.get()
    }

    pub fn is_closed(&self) -> bool {
        self.shared.closed.get()
    }

    pub fn events(&self) -> Vec<Event> {
        self.shared.events.borrow().clone()
    }

    /// The machine of this host loses power.
    pub fn kill(self, lab: &mut Lab) {
        lab.simulation.world.kill(self.process);
        lab.simulation.bury();
    }

    /// From now on the host sends nothing, whatever it receives.
    pub fn hang(&self) {
        self.shared.hangs.set(true);
    }

    /// Sends a command; its completion is found by the tag.
    pub fn send(&self, lab: &mut Lab, request: Request) -> Tag {
        let shared = self.shared.clone();
        lab.wait(|| shared.initiator.borrow().can_send());
        let tag = self.shared.initiator.borrow_mut().command(request).unwrap();
        self.kick(lab);
        tag
    }

    pub fn completion(&self, tag: Tag) -> Option<Completion> {
        self.shared.completions.borrow().get(&tag).cloned()
    }

    /// Sends a command and waits for it.
    pub fn run(&self, lab: &mut Lab, request: Request) -> Completion {
        let tag = self.send(lab, request);
        let shared = self.shared.clone();
        lab.wait(|| shared.completions.borrow().contains_key(&tag));
        self.completion(tag).unwrap()
    }

    /// Sends a task management request; its result is found by the tag.
    pub fn manage(&self, lab: &mut Lab, function: TaskManagementFunction, lun: u16, of: Option<Tag>) -> Tag {
        let lun = if of.is_none() && function as u8 >= 6 { 0 } else { field(lun) };
        let tag = self.shared.initiator.borrow_mut().task_management(function, lun, of);
        self.kick(lab);
        tag
    }

    pub fn result(&self, tag: Tag) -> Option<TaskManagementResult> {
        self.shared.results.borrow().get(&tag).copied()
    }

    pub fn wait_result(&self, lab: &mut Lab, tag: Tag) -> TaskManagementResult {
        let shared = self.shared.clone();
        lab.wait(|| shared.results.borrow().contains_key(&tag));
        self.result(tag).unwrap()
    }

    pub fn wait_closed(&self, lab: &mut Lab) {
        let shared = self.shared.clone();
        lab.wait(|| shared.closed.get());
    }

    pub fn send_targets(&self, lab: &mut Lab) -> Vec<Event> {
        self.shared.initiator.borrow_mut().send_targets("All");
        self.kick(lab);
        let shared = self.shared.clone();
        lab.wait(|| shared.events.borrow().iter().any(|event| matches!(event, Event::Targets(_))));
        self.events()
    }

    pub fn log_out(&self, lab: &mut Lab) {
        self.shared.initiator.borrow_mut().logout();
        self.kick(lab);
        self.wait_closed(lab);
    }

    fn kick(&self, lab: &mut Lab) {
        let shared = self.shared.clone();
        drop(lab.simulation.start(&self.shard, async move { shared.output.notify() }));
    }

    /// TEST UNIT READY until the unit attentions are over: their additional sense codes.
    pub fn settle(&self, lab: &mut Lab, lun: u16) -> Vec<(u8, u8)> {
        let mut seen = Vec::new();
        loop {
            let completion = self.run(lab, test_unit_ready(lun));
            match (completion.status, sense(&completion)) {
                (0, _) => return seen,
                (2, (6, code, qualifier)) => seen.push((code, qualifier)),
                (status, sense) => panic!("status {status:#x}, sense {sense:x?}"),
            }
            assert!(seen.len() < 20, "unit attentions without end: {seen:x?}");
        }
    }

    pub fn write(&self, lab: &mut Lab, lun: u16, lba: u32, data: &[u8]) {
        let completion = self.run(lab, write_10(lun, lba, data));
        assert_eq!(completion.status, 0, "{:x?}", sense(&completion));
    }

    pub fn read(&self, lab: &mut Lab, lun: u16, lba: u32, blocks: u16) -> Vec<u8> {
        let completion = self.run(lab, read_10(lun, lba, blocks));
        assert_eq!(completion.status, 0, "{:x?}", sense(&completion));
        completion.data_in.to_vec()
    }

    /// The LUNs that REPORT LUNS gives.
    pub fn luns(&self, lab: &mut Lab) -> Vec<u16> {
        let mut request = Request::new(0, cdb(&[0xA0, 0, 0, 0, 0, 0, 0, 0, 0x10, 0, 0, 0]));
        request.expected_in = 0x1000;
        let completion = self.run(lab, request);
        assert_eq!(completion.status, 0, "{:x?}", sense(&completion));
        let data = completion.data_in.to_vec();
        let entries = data[8..].chunks_exact(8).map(|entry| u64::from_be_bytes(entry.try_into().unwrap()));
        entries.map(|entry| Lun::parse(entry).unwrap().number()).collect()
    }
}

async fn serve(io: Io, shared: Rc<Shared>, address: SocketAddr) {
    let Ok((connection, _)) = io.connect(address).await else {
        shared.closed.set(true);
        return;
    };
    io.spawn(send(io.clone(), shared.clone(), connection));
    let mut input = BytesMut::new();
    loop {
        input.reserve(shared.initiator.borrow().receive_bytes_wanted().max(1 << 16));
        let before = input.len();
        let (buffer, result) = io.receive(connection, input).await;
        input = buffer;
        if result.is_err() || input.len() == before {
            break;
        }
        if shared.hangs.get() {
            continue;
        }
        shared.initiator.borrow_mut().on_receive(&mut input, &mut || io.random_u64());
        take_events(&shared);
        shared.output.notify();
    }
    let _ = io.close_connection(connection).await;
    shared.closed.set(true);
}

fn take_events(shared: &Shared) {
    while let Some(event) = { shared.initiator.borrow_mut().next_event() } {
        match event {
            Event::Completed(tag, completion) => {
                shared.completions.borrow_mut().insert(tag, completion);
            }
            Event::TaskManagement { tag, result, .. } => {
                shared.results.borrow_mut().insert(tag, result);
            }
            Event::LoggedIn { .. } => shared.logged_in.set(true),
            other => shared.events.borrow_mut().push(other),
        }
    }
}

async fn send(io: Io, shared: Rc<Shared>, connection: ConnectionHandle) {
    loop {
        let output = shared.initiator.borrow_mut().take_output();
        if output.is_empty() {
            shared.output.wait().await;
        } else if io.send(connection, output).await.is_err() {
            return;
        }
    }
}

/// Connections that send nothing.
pub struct Silent(Rc<Cell<usize>>);

impl Silent {
    pub fn connect(lab: &mut Lab, machine: u16, address: SocketAddr, count: usize) -> Silent {
        let (_, shards, _) = lab.simulation.start_task_process::<()>(machine, 1, |_, _| Box::new(|_, ()| {}));
        let io = shards[0].borrow().io().clone();
        let (open, tried) = (Rc::new(Cell::new(0)), Rc::new(Cell::new(0)));
        for _ in 0..count {
            let (io, open, tried) = (io.clone(), open.clone(), tried.clone());
            let silent = async move {
                let connected = io.connect(address).await;
                tried.set(tried.get() + 1);
                let Ok((connection, _)) = connected else { return };
                open.set(open.get() + 1);
                let _ended = io.receive(connection, BytesMut::with_capacity(64)).await;
                open.set(open.get() - 1);
            };
            drop(lab.simulation.start(&shards[0], silent));
        }
        lab.wait(|| tried.get() == count);
        Silent(open)
    }

    /// How many are still open.
    pub fn open(&self) -> usize {
        self.0.get()
    }
}

fn field(lun: u16) -> u64 {
    Lun::new(lun).unwrap().emit()
}

pub fn cdb(bytes: &[u8]) -> [u8; 16] {
    let mut cdb = [0; 16];
    cdb[..bytes.len()].copy_from_slice(bytes);
    cdb
}

pub fn test_unit_ready(lun: u16) -> Request {
    Request::new(field(lun), [0; 16])
}

pub fn inquiry(lun: u16) -> Request {
    let mut request = Request::new(field(lun), cdb(&[0x12, 0, 0, 0, 96, 0]));
    request.expected_in = 96;
    request
}

pub fn reserve_6(lun: u16) -> Request {
    Request::new(field(lun), cdb(&[0x16, 0, 0, 0, 0, 0]))
}

/// MODE SELECT (6) of the control page's TAS.
pub fn task_aborted_status(lun: u16, told: bool) -> Request {
    let tas = if told { 0x40 } else { 0 };
    let page = [0x0A, 0x0A, 0x22, 0x10, 0, tas, 0, 0, 0, 0, 0, 0];
    let mut request = Request::new(field(lun), cdb(&[0x15, 0x10, 0, 0, 16, 0]));
    request.data_out = Payload::from([&[0; 4][..], &page].concat());
    request
}

/// In logical blocks of 512 bytes.
pub fn write_10(lun: u16, lba: u32, data: &[u8]) -> Request {
    let (l, b) = (lba.to_be_bytes(), ((data.len() / 512) as u16).to_be_bytes());
    let mut request = Request::new(field(lun), cdb(&[0x2A, 0, l[0], l[1], l[2], l[3], 0, b[0], b[1], 0]));
    request.data_out = Payload::from(Bytes::copy_from_slice(data));
    request
}

/// In logical blocks of 512 bytes.
pub fn write_16(lun: u16, lba: u64, data: &[u8]) -> Request {
    let mut command = cdb(&[0x8A]);
    command[2..10].copy_from_slice(&lba.to_be_bytes());
    command[10..14].copy_from_slice(&((data.len() / 512) as u32).to_be_bytes());
    let mut request = Request::new(field(lun), command);
    request.data_out = Payload::from(Bytes::copy_from_slice(data));
    request
}

/// UNMAP with one descriptor.
pub fn unmap(lun: u16, lba: u64, blocks: u32) -> Request {
    let list = [&[0, 22, 0, 16, 0, 0, 0, 0], &lba.to_be_bytes()[..], &blocks.to_be_bytes(), &[0; 4]].concat();
    let mut request = Request::new(field(lun), cdb(&[0x42, 0, 0, 0, 0, 0, 0, 0, 24]));
    request.data_out = Payload::from(list);
    request
}

/// GET LBA STATUS with room for this number of descriptors.
pub fn get_lba_status(lun: u16, lba: u64, room: u32) -> Request {
    let mut command = cdb(&[0x9E, 0x12]);
    command[2..10].copy_from_slice(&lba.to_be_bytes());
    command[10..14].copy_from_slice(&(8 + 16 * room).to_be_bytes());
    let mut request = Request::new(field(lun), command);
    request.expected_in = 8 + 16 * room;
    request
}

/// In logical blocks of 512 bytes.
pub fn read_10(lun: u16, lba: u32, blocks: u16) -> Request {
    let (l, b) = (lba.to_be_bytes(), blocks.to_be_bytes());
    let mut request = Request::new(field(lun), cdb(&[0x28, 0, l[0], l[1], l[2], l[3], 0, b[0], b[1], 0]));
    request.expected_in = u32::from(blocks) * 512;
    request
}

/// Sense key, additional sense code and qualifier; zeros where there is no sense data.
pub fn sense(completion: &Completion) -> (u8, u8, u8) {
    let sense = &completion.sense;
    if sense.len() < 14 { (0, 0, 0) } else { (sense[2] & 0xF, sense[12], sense[13]) }
}

impl Lab {
    /// Runs the simulated environment until this holds.
    pub fn wait(&mut self, done: impl FnMut() -> bool) {
        let patience = Patience { time: Nanos::from_secs(300), ..Patience::default() };
        self.simulation.step_until(patience, done).unwrap();
    }
}
