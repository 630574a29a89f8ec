//! Raw volumes under hosts that write: a device of an odd size that grows, shrinks, disappears and comes back, while
//! the array is killed and the power goes.
//!
//! Several writers write single sectors, and different writers own the sectors of one 4 KiB block. So a
//! read-modify-write that undoes another writer's change is detected. A sector must hold the last acknowledged write or
//! one that was sent later. Once it has been read with no write in flight, it must stay the same.

use std::cell::{Cell, RefCell};
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::{Arc, Mutex};

use api::{ArrayStatus, Health, NewBacking, NewHost, NewVolume};
use api::{Command, Reply};
use base::Nanos;
use block::Payload;
use bytes::Bytes;
use engine::{Memory, Saving, Shard, ShardMessage, StartParameters};
use env::Env;
use iscsi::initiator::{Completion, InitiatorParams, Request};
use task::Io;

use super::bench::PORTAL;
use super::engine_shard::{ArrayEnv, EngineShard, command};
use super::lun::sense;
use super::notices::CAPACITY_CHANGED;
use super::session::{Ended, HostSession};
use super::set_up::{Started, ToArray, initiator_name};
use crate::drive::{DriveNumber, DriveOptions};
use crate::medium::SECTOR_BYTES;
use crate::prng::Prng;
use crate::process::{Patience, Simulation};
use crate::trace::TraceSink;
use crate::workload::Failure;
use crate::world::{ProcessId, World};

const ARRAY: u16 = 0;
const HOSTS: u16 = 1;
const DEVICE: &str = "/sim/raw";
const VOLUME: &str = "volume";
const HOST: &str = "host0";
const WRITERS: u64 = 6;
/// So many sectors in a row are one writer's; 4 KiB are no multiple of it.
const RUN: u64 = 3;
const ROUNDS: u32 = 2;
const ACTS: u32 = 4;
/// What is noticed by itself is noticed within that.
const NOTICED: Nanos = Nanos::from_secs(10);
/// How long operations of the device take: requests are nearly always under way.
const LATENCY: (Nanos, Nanos) = (Nanos::from_micros(500), Nanos::from_millis(20));

const FOREVER: Nanos = Nanos(u64::MAX);

/// Which write a sector holds; 0: none.
type Tag = u64;

#[derive(Clone, Default)]
struct Sector {
    acknowledged: Tag,
    /// Sent since, with an unknown end.
    maybe: Vec<Tag>,
}

/// What is known of the device and the volume.
struct Known {
    sectors: RefCell<Vec<Sector>>,
    /// Where the volume ends, and where the device does.
    volume_end: Cell<u64>,
    device_end: Cell<u64>,
    /// When the device was last away, or smaller than the volume.
    trouble: Cell<Nanos>,
    tags: Cell<Tag>,
    stop: Cell<bool>,
    writing: Cell<u64>,
    failure: RefCell<Option<String>>,
}

fn content(sector: u64, tag: Tag) -> Vec<u8> {
    let word = if tag == 0 { [0; 16] } else { (u128::from(sector) << 64 | u128::from(tag)).to_le_bytes() };
    word.repeat(SECTOR_BYTES / 16)
}

impl Known {
    /// Checks what was read from a sector on. `settle`: nobody writes, so it stays what it is.
    fn check(&self, first: u64, data: &[u8], settle: bool) -> Result<(), String> {
        let mut sectors = self.sectors.borrow_mut();
        for (index, data) in (first..).zip(data.chunks(SECTOR_BYTES)) {
            let sector = &mut sectors[index as usize];
            let mut may = sector.maybe.iter().copied().chain([sector.acknowledged]);
            let Some(tag) = may.find(|&tag| data == content(index, tag)) else {
                let Sector { acknowledged, maybe } = sector;
                return Err(format!(
                    "sector {index} holds {:x?}, not write {acknowledged:x}, nor one of {maybe:x?}",
                    &data[..16]
                ));
            };
            if settle {
                *sector = Sector { acknowledged: tag, maybe: Vec::new() };
            }
        }
        Ok(())
    }

    fn fail(&self, what: String) {
        self.failure.borrow_mut().get_or_insert(what);
    }
}

/// Who asks hosts' commands.
#[derive(Clone)]
struct Way {
    io: Io,
    session: Rc<HostSession>,
    known: Rc<Known>,
}

impl Way {
    /// Carries a command out; unit attentions are taken note of by the session. `None`: the connection is lost.
    async fn ask(&self, request: &Request) -> Option<Completion> {
        loop {
            match self.session.command(request.clone(), None).await {
                Ended::Completed(completion) if completion.status == 2 && sense(&completion).0 == 6 => {}
                Ended::Completed(completion) => return Some(completion),
                Ended::Aborted | Ended::Lost => return None,
            }
        }
    }

    async fn read(&self, first: u64, count: u64) -> Option<Completion> {
        let mut request = Request::new(0, cdb_16(0x88, first, count));
        request.expected_in = (count * SECTOR_BYTES as u64) as u32;
        self.ask(&request).await
    }

    async fn capacity(&self) -> Option<u64> {
        let mut cdb = [0; 16];
        (cdb[0], cdb[1], cdb[13]) = (0x9E, 0x10, 32);
        let mut request = Request::new(0, cdb);
        request.expected_in = 32;
        let data = self.ask(&request).await?.data_in.to_vec();
        Some(u64::from_be_bytes(data.get(..8)?.try_into().expect("eight bytes")) + 1)
    }

    /// Writes to sectors of its own until it is told to stop, now and then at the end of the volume.
    async fn write_on(self, writer: u64) {
        while !self.known.stop.get() {
            let drawn = self.io.random_u64();
            let end = self.known.volume_end.get();
            let runs = end.div_ceil(RUN);
            let back = if drawn.is_multiple_of(4) { drawn >> 8 } else { (drawn >> 8) % 12 } % runs;
            let run = (runs - 1 - back) / WRITERS * WRITERS + writer;
            let first = run * RUN + (drawn >> 40) % RUN;
            if first < end {
                let count = (1 + (drawn >> 48) % RUN).min(end - first).min((run + 1) * RUN - first);
                self.write(first, count).await;
            }
            self.io.sleep(Nanos(drawn % 1_000_000)).await;
        }
        self.known.writing.set(self.known.writing.get() - 1);
    }

    async fn write(&self, first: u64, count: u64) {
        let (tag, began) = (self.known.tags.get() + 1, self.io.now());
        self.known.tags.set(tag);
        let range = first as usize..(first + count) as usize;
        for sector in &mut self.known.sectors.borrow_mut()[range.clone()] {
            sector.maybe.push(tag);
        }
        let mut request = Request::new(0, cdb_16(0x8A, first, count));
        let data = (first..first + count).flat_map(|sector| content(sector, tag)).collect::<Vec<u8>>();
        request.data_out = Payload::from(Bytes::from(data));
        match self.ask(&request).await {
            Some(completion) if completion.status == 0 => {
                for sector in &mut self.known.sectors.borrow_mut()[range] {
                    *sector = Sector { acknowledged: tag, maybe: Vec::new() };
                }
            }
            Some(completion)
                if self.known.trouble.get() >= began && [2, 3].contains(&sense(&completion).0) => {}
            Some(other) => self.known.fail(format!("a write at {first}+{count} ends with {other:?}")),
            None => {}
        }
    }

    /// With nobody writing: reads everything, and believes it from now on.
    async fn verify(&self) -> Result<(), String> {
        let end = self.known.volume_end.get();
        for first in (0..end).step_by(64) {
            let completion = self.read(first, 64.min(end - first)).await.ok_or("the connection is lost")?;
            if completion.status != 0 {
                return Err(format!("sector {first} cannot be read: {:x?}", sense(&completion)));
            }
            self.known.check(first, &completion.data_in.to_vec(), true)?;
        }
        Ok(())
    }
}

fn cdb_16(code: u8, lba: u64, blocks: u64) -> [u8; 16] {
    let mut cdb = [0; 16];
    cdb[0] = code;
    cdb[2..10].copy_from_slice(&lba.to_be_bytes());
    cdb[10..14].copy_from_slice(&(blocks as u32).to_be_bytes());
    cdb
}

/// What happens to the device.
struct Director {
    way: Way,
    world: World,
    device: DriveNumber,
    outside: ToArray,
    prng: RefCell<Prng>,
}

impl Director {
    async fn act(&self) -> Result<(), String> {
        let act = self.prng.borrow_mut().below(4);
        match act {
            0 | 1 => self.grow().await,
            2 => self.shrink().await,
            _ => self.vanish().await,
        }
    }

    async fn status(&self) -> Result<ArrayStatus, String> {
        match command(&self.way.io, &self.outside, Command::Status).await {
            Ok(Reply::Status(status)) => Ok(*status),
            other => Err(format!("status: {other:?}")),
        }
    }

    async fn expect(&self, health: Health, when: &str) -> Result<(), String> {
        let status = self.status().await?;
        let found = status.volumes.iter().find(|volume| volume.name == VOLUME).map(|volume| volume.health);
        match (found, status.health) == (Some(health), health) {
            true => Ok(()),
            false => Err(format!("{when}, the volume is {found:?} after ten seconds: {:?}", status.problems)),
        }
    }

    /// By up to two 4 KiB blocks, or by many.
    async fn grow(&self) -> Result<(), String> {
        let known = &self.way.known;
        let more = {
            let mut prng = self.prng.borrow_mut();
            if prng.chance(800) { prng.between(1, 16) } else { prng.between(17, 300) }
        };
        let (began, end) = (self.way.io.now(), known.device_end.get() + more);
        self.world.resize(self.device, end * SECTOR_BYTES as u64);
        known.device_end.set(end);
        known.sectors.borrow_mut().resize(end as usize, Sector::default());
        while self.way.capacity().await != Some(end) {
            if self.way.io.now() > began + NOTICED {
                return Err(format!("nobody has noticed that the device has {end} sectors"));
            }
            self.way.io.sleep(Nanos::from_millis(50)).await;
        }
        if !self.way.session.was_told(0, CAPACITY_CHANGED, began) {
            return Err("the host was not told that the volume has grown".to_owned());
        }
        known.volume_end.set(end);
        Ok(())
    }

    async fn shrink(&self) -> Result<(), String> {
        let (known, io) = (&self.way.known, &self.way.io);
        let whole = known.device_end.get();
        let less = self.prng.borrow_mut().between(1, 20);
        known.trouble.set(FOREVER);
        self.world.resize(self.device, (whole - less) * SECTOR_BYTES as u64);
        known.device_end.set(whole - less);
        io.sleep(NOTICED).await;
        self.expect(Health::Degraded, "of a device that became smaller").await?;
        let behind = self.way.read(whole - 1, 1).await;
        if behind.is_none_or(|completion| sense(&completion) != (3, 0x11, 0)) {
            return Err("what is behind the end of the device is no medium error".to_owned());
        }
        if self.way.capacity().await != Some(whole) {
            return Err("a raw volume has become smaller".to_owned());
        }
        self.world.resize(self.device, whole * SECTOR_BYTES as u64);
        known.device_end.set(whole);
        io.sleep(NOTICED).await;
        self.expect(Health::Healthy, "with a device that has its size again").await?;
        known.trouble.set(io.now());
        Ok(())
    }

    async fn vanish(&self) -> Result<(), String> {
        self.way.known.trouble.set(FOREVER);
        self.world.vanish(self.device, None, false);
        self.way.io.sleep(NOTICED).await;
        self.expect(Health::Offline, "without its device").await?;
        self.world.return_drive(self.device);
        self.way.io.sleep(NOTICED).await;
        self.expect(Health::Healthy, "with its device back").await?;
        self.way.known.trouble.set(self.way.io.now());
        Ok(())
    }

    /// A round: everything is there, then writers and what happens beside them. `whole`: it ends in order, else in its midst.
    async fn round(self, whole: bool) -> Result<(), String> {
        let known = self.way.known.clone();
        self.way.verify().await?;
        known.stop.set(false);
        known.writing.set(WRITERS);
        for writer in 0..WRITERS {
            self.way.io.spawn(self.way.clone().write_on(writer));
        }
        for _ in 0..ACTS {
            self.act().await?;
        }
        if whole {
            known.stop.set(true);
            while known.writing.get() > 0 {
                self.way.io.sleep(Nanos::from_millis(1)).await;
            }
            self.way.verify().await?;
        }
        known.failure.borrow_mut().take().map_or(Ok(()), Err)
    }
}

/// The array's head: what it has stored outlives it.
struct Head {
    simulation: Simulation,
    shards: u16,
    state: Arc<Mutex<Option<Bytes>>>,
}

impl Head {
    fn start(&mut self) -> (ProcessId, ToArray, Started) {
        let world = self.simulation.world.clone();
        let (process, environments, outside) = world.start_process::<ShardMessage>(ARRAY, self.shards);
        let started = Started::default();
        let (place, kept) = (started.clone(), self.state.clone());
        let mut parameters = Some(StartParameters {
            portals: vec![PORTAL.parse::<SocketAddr>().expect("an address").into()],
            drives: Vec::new(),
            head: base::HeadId(1),
            term: 0,
            array_name: "simulated".to_owned(),
            pair: None,
            was_paired: false,
            state: self.state.lock().expect("one thread").clone(),
            save_state: Box::new(move |bytes| {
                *kept.lock().expect("one thread") = Some(bytes);
                Saving::kept()
            }),
            newest_event: 0,
            started: Box::new(move |result| *place.lock().expect("one thread") = Some(result)),
        });
        for (index, environment) in environments.into_iter().enumerate() {
            let environment = ArrayEnv::Alone(environment);
            let shard = Shard::new(environment.shard(), self.shards, parameters.take(), Memory::default());
            let shard = Rc::new(RefCell::new(EngineShard { environment, shard, armed: None }));
            self.simulation.attach(process, index as u16, shard);
        }
        (process, Rc::new(outside), started)
    }
}

/// Waits until the array has started, and makes what is not there. Gives the target's name.
async fn prepare(io: &Io, outside: &ToArray, started: Started, first: bool) -> Result<String, String> {
    loop {
        if let Some(started) = started.lock().expect("one thread").take() {
            started.map_err(|error| format!("the array does not start: {error}"))?;
            break;
        }
        io.sleep(Nanos::from_micros(100)).await;
    }
    let (backing, name) = (NewBacking::Raw(DEVICE.to_owned()), VOLUME.to_owned());
    let volume = NewVolume { name, backing, size_bytes: None, block_bytes: 512, write_back: false };
    let (name, initiators) = (HOST.to_owned(), vec![initiator_name(0)]);
    let host = NewHost { name, initiators, chap: None, mutual_chap: None };
    let (volume_name, host_name) = (VOLUME.to_owned(), HOST.to_owned());
    let map =
        Command::Map { volume: volume_name, host: host_name, lun: Some(0), read_only: false, dry_run: false };
    let all =
        [Command::VolumeCreate { volume, dry_run: false }, Command::HostCreate { host, dry_run: false }, map];
    for wanted in all.into_iter().filter(|_| first) {
        command(io, outside, wanted).await.map_err(|error| error.to_string())?;
    }
    match command(io, outside, Command::Status).await {
        Ok(Reply::Status(status)) => Ok(status.target_name),
        other => Err(format!("status: {other:?}")),
    }
}

/// See the module's words.
pub fn run_raw_devices(seed: u64, trace: Option<TraceSink>) -> Result<(), Failure> {
    let mut prng = Prng::new(seed ^ 0x7261_775F_6465_7669);
    let world = World::new(seed, trace);
    let end = 8 * prng.between(8, 60) + prng.between(0, 7);
    let size_bytes = end * SECTOR_BYTES as u64;
    let device =
        world.add_drive(DriveOptions { tearing: prng.chance(500), ..DriveOptions::new(DEVICE, size_bytes) });
    world.set_latency(device, LATENCY.0, LATENCY.1);
    let known = Rc::new(Known {
        sectors: RefCell::new(vec![Sector::default(); end as usize]),
        volume_end: Cell::new(end),
        device_end: Cell::new(end),
        trouble: Cell::default(),
        tags: Cell::new(0),
        stop: Cell::new(false),
        writing: Cell::new(0),
        failure: RefCell::default(),
    });
    let shards = prng.between(1, 3) as u16;
    let mut head = Head { simulation: Simulation::new(world.clone()), shards, state: Arc::default() };
    for round in 0..ROUNDS {
        let (process, outside, started) = head.start();
        let (clients, tasks, _) =
            head.simulation.start_task_process::<()>(HOSTS, 1, |_, _| Box::new(|_, ()| {}));
        let (io, known, world_of_round) = (tasks[0].borrow().io().clone(), known.clone(), world.clone());
        let (first, whole, draws) = (round == 0, prng.chance(500) || round + 1 == ROUNDS, prng.fork());
        let done = head.simulation.start(&tasks[0], async move {
            let target = prepare(&io, &outside, started, first).await?;
            let params = InitiatorParams::new(&initiator_name(0), Some(&target));
            let session = HostSession::new(&io, PORTAL.parse().expect("an address"), params);
            io.spawn(session.clone().run());
            let way = Way { io, session, known };
            let prng = RefCell::new(draws);
            Director { way, world: world_of_round, device, outside, prng }.round(whole).await
        });
        let seen = done.clone();
        let waited = head.simulation.step_until(Patience::default(), || seen.borrow().is_some());
        waited.map_err(|why| Failure::Stuck { what: "a round with a raw device".to_owned(), why })?;
        done.borrow_mut().take().expect("it is done").map_err(Failure::Broken)?;
        match prng.chance(500) {
            true => world.power_loss(ARRAY),
            false => world.kill(process),
        }
        world.end_quietly(clients);
        head.simulation.bury();
    }
    Ok(())
}
