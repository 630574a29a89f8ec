//! Workload and oracle against stand-ins: a correct store passes every seed; the oracle detects each store that
//! breaks a promise.

use std::cell::Cell;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;

use base::{AlignedBuffer, BLOCK_BYTES};
use env::DriveHandle;
use sim::oracle::SECTOR_BYTES;
use sim::workload::{
    Answer, Bench, Course, Failure, LaneSlot, Profile, Request, Runner, Session, Shared, Subject, VolumePlan,
};
use sim::{DriveOptions, Prng, Simulation, World};
use task::{Io, Semaphore};

/// How the stand-in breaks its promises.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Bug {
    None,
    /// Answers a write when it has been submitted.
    EarlyAcknowledgement,
    /// Forgets that write-through means durable.
    NotDurable,
    /// Reads, changes and writes a block without keeping others out.
    LostUpdate,
    /// Answers a flush without flushing.
    NoFlush,
    /// Now and then reads the block beside.
    WrongPlace,
    /// Compares, then writes, with others in between.
    CompareNotAtomic,
    /// Answers an unmap without doing anything.
    NoZero,
}

/// Volume blocks at fixed places of one drive, written in place: right only where blocks never tear.
struct Direct {
    io: Io,
    drive: DriveHandle,
    write_back: bool,
    bug: Bug,
    one_at_a_time: Semaphore,
    served: Cell<u64>,
}

impl Direct {
    fn place(&self, block: u64) -> u64 {
        block * BLOCK_BYTES as u64
    }

    async fn read(&self, first: u64, blocks: u64) -> AlignedBuffer {
        self.served.set(self.served.get() + 1);
        let shift = u64::from(self.bug == Bug::WrongPlace && self.served.get().is_multiple_of(50));
        let buffer = AlignedBuffer::zeroed(blocks as usize);
        let (buffer, result) = self.io.drive_read(self.drive, self.place(first + shift), buffer).await;
        result.expect("the drive is healthy");
        buffer
    }

    async fn write(&self, first: u64, data: AlignedBuffer, durable: bool) {
        let durable = (durable || !self.write_back) && self.bug != Bug::NotDurable;
        let write = self.io.drive_write(self.drive, self.place(first), vec![data.into_bytes()], durable);
        if self.bug != Bug::EarlyAcknowledgement {
            write.await.expect("the drive is healthy");
        }
    }

    async fn execute(self: Rc<Self>, request: Request) -> Answer {
        let exclusive = !matches!(self.bug, Bug::LostUpdate | Bug::CompareNotAtomic);
        let _alone = if exclusive { Some(self.one_at_a_time.acquire(1).await) } else { None };
        let blocks = |start: u64, end: u64| (start / 8, end.div_ceil(8) - start / 8);
        match request {
            Request::Read { sectors, .. } => {
                let (first, count) = blocks(sectors.start, sectors.end);
                let buffer = self.read(first, count).await;
                let skip = (sectors.start % 8) as usize * SECTOR_BYTES;
                Answer::Data(
                    buffer[skip..skip + (sectors.end - sectors.start) as usize * SECTOR_BYTES].to_vec(),
                )
            }
            Request::Write { first, data, durable, .. } => {
                self.merge(first, &data, durable).await;
                Answer::Done
            }
            Request::Zero { sectors, .. } => {
                if self.bug != Bug::NoZero {
                    let zeros = vec![0; (sectors.end - sectors.start) as usize * SECTOR_BYTES];
                    self.merge(sectors.start, &zeros, false).await;
                }
                Answer::Done
            }
            Request::CompareAndWrite { first, expected, data, durable, .. } => {
                let (block, count) = blocks(first, first + (data.len() / SECTOR_BYTES) as u64);
                let buffer = self.read(block, count).await;
                let skip = (first % 8) as usize * SECTOR_BYTES;
                if buffer[skip..skip + expected.len()] != expected {
                    return Answer::Miscompare;
                }
                self.merge(first, &data, durable).await;
                Answer::Done
            }
            Request::Flush { .. } => {
                if self.bug != Bug::NoFlush {
                    self.io.drive_flush(self.drive).await.expect("the drive is healthy");
                }
                Answer::Done
            }
        }
    }

    async fn merge(&self, first: u64, data: &[u8], durable: bool) {
        let end = first + (data.len() / SECTOR_BYTES) as u64;
        let (block, count) = (first / 8, end.div_ceil(8) - first / 8);
        let mut buffer = self.read(block, count).await;
        let skip = (first % 8) as usize * SECTOR_BYTES;
        buffer[skip..skip + data.len()].copy_from_slice(data);
        self.write(block, buffer, durable).await;
    }
}

struct Shareable(Rc<Direct>);

impl Subject for Shareable {
    fn execute(&self, request: Request) -> Pin<Box<dyn Future<Output = Answer>>> {
        Box::pin(self.0.clone().execute(request))
    }
}

struct DirectBench {
    bug: Bug,
    write_back: bool,
}

impl Bench for DirectBench {
    fn start(&mut self, simulation: &mut Simulation, _: u32) -> Session {
        let (process, shards, _) = simulation.start_task_process::<()>(0, 1, |_, _| Box::new(|_, ()| {}));
        let io = shards[0].borrow().io().clone();
        let opening = sim::workload::Opening::default();
        let (place, tasks, bug, write_back) = (opening.clone(), io.clone(), self.bug, self.write_back);
        io.spawn(async move {
            let until = tasks.now() + pool::BUSY_PATIENCE;
            let opened = pool::open_when_free(&tasks, "/sim/0", until).await;
            let (drive, _) = opened.expect("the drive is healthy");
            // what an earlier process left in the cache was promised
            tasks.drive_flush(drive).await.expect("the drive is healthy");
            let one_at_a_time = Semaphore::new(&tasks, 1);
            let direct = Direct { io: tasks, drive, write_back, bug, one_at_a_time, served: Cell::new(0) };
            let subject: Rc<dyn Subject> = Rc::new(Shareable(Rc::new(direct)));
            *place.borrow_mut() = Some(Ok(subject));
        });
        let volumes = Rc::new(vec![VolumePlan { volume: 1, blocks: 50, write_back: self.write_back }]);
        Session { process, lanes: vec![LaneSlot { process, shard: 0, io, opening, volumes }] }
    }

    fn close(&mut self, _: &World, _: &Session) -> Vec<Rc<Cell<bool>>> {
        Vec::new()
    }
    fn inject(&mut self, _: &World, _: &mut Prng) {}
    fn heal(&mut self, _: &World) {}
    fn collect(&mut self, _: &Session) {}
}

fn run(seed: u64, bug: Bug) -> (Result<(), Failure>, u64) {
    let world = World::new(seed, None);
    let mut prng = Prng::new(seed ^ 0xABCD);
    world.add_drive(DriveOptions { tearing: false, ..DriveOptions::new("/sim/0", 1 << 30) });
    let shared = Shared::new(world.clone());
    let write_back = prng.chance(500) || bug == Bug::NoFlush;
    shared.oracle.borrow_mut().add_volume(1, write_back);
    let mut bench = DirectBench { bug, write_back };
    let course = Course { rounds: 4, ..Course::draw(&mut prng) };
    let profile = Profile::draw(&mut prng);
    let mut runner = Runner::new(Simulation::new(world.clone()), shared, &mut bench, course, profile, prng);
    (runner.run(), world.digest())
}

#[test]
fn a_store_that_keeps_its_promises_passes_every_seed() {
    for seed in 0..150 {
        let (result, _) = run(seed, Bug::None);
        assert_eq!(result, Ok(()), "seed {seed}");
    }
}

#[test]
fn every_broken_promise_is_caught() {
    for bug in [
        Bug::EarlyAcknowledgement,
        Bug::NotDurable,
        Bug::LostUpdate,
        Bug::NoFlush,
        Bug::WrongPlace,
        Bug::CompareNotAtomic,
        Bug::NoZero,
    ] {
        let caught = (0..60).filter(|&seed| matches!(run(seed, bug).0, Err(Failure::Violation(_)))).count();
        assert!(caught >= 3, "{bug:?} was caught by {caught} of 60 seeds");
    }
}

#[test]
fn a_run_is_the_same_every_time() {
    for seed in 0..10 {
        assert_eq!(run(seed, Bug::LostUpdate), run(seed, Bug::LostUpdate));
    }
}
