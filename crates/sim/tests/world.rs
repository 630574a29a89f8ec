//! Tests of the fault model: what a drive, a crash and a connection can and cannot do.

use std::cell::RefCell;
use std::rc::Rc;

use base::{AlignedBuffer, BLOCK_BYTES, Nanos};
use bytes::{Bytes, BytesMut};
use env::{DriveHandle, IoError};
use sim::{DriveNumber, DriveOptions, FaultKind, ProcessId, Simulation, Stuck, TaskShard, World};
use task::{Io, join_all};

type Shard = Rc<RefCell<TaskShard<u32>>>;

fn world(seed: u64) -> (Simulation, DriveNumber) {
    let world = World::new(seed, None);
    let drive = world.add_drive(DriveOptions::new("/sim/0", 1 << 40));
    (Simulation::new(world), drive)
}

fn start(simulation: &mut Simulation) -> (ProcessId, Shard) {
    let (process, mut shards, _) = simulation.start_task_process::<u32>(0, 1, |_, _| Box::new(|_, _| {}));
    (process, shards.remove(0))
}

fn blocks(byte: u8, count: usize) -> Vec<Bytes> {
    vec![AlignedBuffer::copied_from(&vec![byte; count * BLOCK_BYTES]).into_bytes()]
}

async fn open(io: &Io) -> DriveHandle {
    io.drive_open("/sim/0", true).await.expect("a healthy drive opens").0
}

async fn read_byte(io: &Io, drive: DriveHandle, block: u64) -> Result<u8, IoError> {
    let (buffer, result) = io.drive_read(drive, block * BLOCK_BYTES as u64, AlignedBuffer::zeroed(1)).await;
    result.map(|()| buffer[0])
}

/// Writes block 0 durably, block 1 not, leaves 8 blocks in flight, cuts the power or kills; what is there after.
fn crash(seed: u64, power: bool) -> (u8, u8, Vec<u8>) {
    let (mut simulation, drive) = world(seed);
    let (process, shard) = start(&mut simulation);
    let io = shard.borrow().io().clone();
    let writing = simulation.start(&shard, async move {
        let drive = open(&io).await;
        io.drive_write(drive, 0, blocks(1, 1), true).await.unwrap();
        io.drive_write(drive, BLOCK_BYTES as u64, blocks(2, 1), false).await.unwrap();
        drop(io.drive_write(drive, 8 * BLOCK_BYTES as u64, blocks(3, 8), true));
    });
    simulation.step_until(Default::default(), || writing.borrow().is_some()).unwrap();
    if power {
        simulation.world.power_loss(0);
    } else {
        simulation.world.kill(process);
    }
    simulation.bury();
    let byte = |block| simulation.world.peek(drive, block);
    (
        byte(0)[0],
        byte(1)[0],
        (8..16).flat_map(|block| byte(block).chunks(512).map(|s| s[0]).collect::<Vec<_>>()).collect(),
    )
}

#[test]
fn power_loss_spares_what_was_durable_and_nothing_else_for_sure() {
    let outcomes: Vec<_> = (0..300).map(|seed| crash(seed, true)).collect();
    assert!(outcomes.iter().all(|outcome| outcome.0 == 1), "a durable write survives");
    let kept = outcomes.iter().filter(|outcome| outcome.1 == 2).count();
    assert!((50..250).contains(&kept), "an unflushed write survives sometimes: {kept} of 300");
    let sectors = |outcome: &(u8, u8, Vec<u8>)| outcome.2.iter().filter(|&&sector| sector == 3).count();
    assert!(outcomes.iter().any(|outcome| sectors(outcome) == 0));
    assert!(outcomes.iter().any(|outcome| sectors(outcome) == 64));
    assert!(outcomes.iter().any(|outcome| !sectors(outcome).is_multiple_of(8)), "some blocks tear");
}

#[test]
fn kill_loses_nothing_that_was_completed_and_tears_no_block() {
    let outcomes: Vec<_> = (0..300).map(|seed| crash(seed, false)).collect();
    assert!(outcomes.iter().all(|outcome| (outcome.0, outcome.1) == (1, 2)));
    let whole =
        |outcome: &(u8, u8, Vec<u8>)| outcome.2.chunks(8).all(|block| block.iter().all(|&s| s == block[0]));
    assert!(outcomes.iter().all(whole));
    assert!(
        outcomes.iter().any(|outcome| outcome.2.contains(&3) && outcome.2.contains(&0)),
        "some writes split"
    );
}

#[test]
fn a_flush_makes_completed_writes_durable() {
    for seed in 0..100 {
        let (mut simulation, drive) = world(seed);
        let (_, shard) = start(&mut simulation);
        let io = shard.borrow().io().clone();
        let work = async move {
            let drive = open(&io).await;
            join_all((0..9).map(|at| io.drive_write(drive, at << 12, blocks(7, 1), false))).await;
            io.drive_flush(drive).await.unwrap();
        };
        simulation.block_on(&shard, work).unwrap();
        simulation.world.power_loss(0);
        assert!((0..9).all(|block| simulation.world.peek(drive, block)[0] == 7));
    }
}

#[test]
fn a_seed_decides_everything() {
    let run = |seed| {
        let (mut simulation, drive) = world(seed);
        let (_, shard) = start(&mut simulation);
        let io = shard.borrow().io().clone();
        let work = async move {
            let drive = open(&io).await;
            for round in 0..20u8 {
                let writes = (0..8).map(|at| io.drive_write(drive, at << 12, blocks(round, 1), at % 2 == 0));
                join_all(writes).await;
                read_byte(&io, drive, u64::from(io.random_u64() as u8 % 8)).await.unwrap();
            }
        };
        simulation.block_on(&shard, work).unwrap();
        simulation.world.power_loss(0);
        simulation.world.mix(&[u64::from(simulation.world.peek(drive, 3)[0])]);
        (simulation.world.digest(), simulation.world.now())
    };
    assert_eq!(run(5), run(5));
    assert_ne!(run(5).0, run(6).0);
}

#[test]
fn concurrent_operations_complete_in_any_order() {
    let orders: std::collections::BTreeSet<Vec<u64>> = (0..50)
        .map(|seed| {
            let (mut simulation, _) = world(seed);
            let (_, shard) = start(&mut simulation);
            let io = shard.borrow().io().clone();
            let order = Rc::new(RefCell::new(Vec::new()));
            let log = order.clone();
            let work = async move {
                let drive = open(&io).await;
                let write = |at: u64| {
                    let (write, log) = (io.drive_write(drive, at << 12, blocks(1, 1), true), log.clone());
                    async move {
                        write.await.unwrap();
                        log.borrow_mut().push(at);
                    }
                };
                join_all((0..3).map(write)).await;
            };
            simulation.block_on(&shard, work).unwrap();
            order.take()
        })
        .collect();
    assert!(orders.len() >= 5, "{orders:?}");
}

#[test]
fn a_vanished_drive_answers_gone_until_it_returns() {
    let (mut simulation, drive) = world(1);
    let (_, shard) = start(&mut simulation);
    let io = shard.borrow().io().clone();
    let handle = simulation.block_on(&shard, async move { open(&io).await }).unwrap();
    simulation.world.vanish(drive, Some(Nanos::from_millis(5)), true);
    let io = shard.borrow().io().clone();
    let work = async move {
        let while_gone = read_byte(&io, handle, 0).await;
        let flush = io.drive_flush(handle).await;
        io.sleep(Nanos::from_millis(6)).await;
        (while_gone, flush, read_byte(&io, handle, 0).await)
    };
    let seen = simulation.block_on(&shard, work).unwrap();
    assert_eq!(seen, (Err(IoError::Gone), Err(IoError::Gone), Ok(0)));
    let counts = simulation.world.fault_counts();
    assert_eq!((counts.get(FaultKind::DriveVanished), counts.get(FaultKind::DriveReturned)), (1, 1));
}

#[test]
fn a_drive_pulled_and_replugged_needs_to_be_opened_again() {
    let (mut simulation, drive) = world(1);
    let (_, shard) = start(&mut simulation);
    let io = shard.borrow().io().clone();
    let handle = simulation.block_on(&shard, async move { open(&io).await }).unwrap();
    simulation.world.vanish(drive, None, false);
    simulation.world.return_drive(drive);
    let io = shard.borrow().io().clone();
    let work = async move {
        let old = read_byte(&io, handle, 0).await;
        let again = open(&io).await;
        (old, read_byte(&io, again, 0).await)
    };
    assert_eq!(simulation.block_on(&shard, work).unwrap(), (Err(IoError::Gone), Ok(0)));
}

#[test]
fn a_stuck_drive_answers_late_and_two_processes_do_not_share_one() {
    let (mut simulation, drive) = world(2);
    let (first, shard) = start(&mut simulation);
    let io = shard.borrow().io().clone();
    let handle = simulation.block_on(&shard, async move { open(&io).await }).unwrap();
    simulation.world.stick(drive, Nanos::from_secs(9));
    let io = shard.borrow().io().clone();
    let before = simulation.world.now();
    simulation.block_on(&shard, async move { read_byte(&io, handle, 0).await }).unwrap().unwrap();
    assert!(simulation.world.now().saturating_sub(before) >= Nanos::from_secs(9));
    let (_, other) = start(&mut simulation);
    let io = other.borrow().io().clone();
    let refused = simulation.block_on(&other, async move { io.drive_open("/sim/0", true).await.map(|_| ()) });
    assert_eq!(refused.unwrap(), Err(IoError::Busy));
    simulation.world.kill(first);
    let io = other.borrow().io().clone();
    simulation.block_on(&other, async move { open(&io).await }).unwrap();
}

#[test]
fn waiting_for_what_never_comes_is_a_deadlock() {
    let (mut simulation, _) = world(3);
    let (_, shard) = start(&mut simulation);
    let io = shard.borrow().io().clone();
    let (_sender, receiver) = task::oneshot::<u8>(&io);
    assert_eq!(simulation.block_on(&shard, receiver).unwrap_err(), Stuck::Deadlock);
}

#[test]
fn bytes_cross_a_connection_in_order_in_random_pieces() {
    for seed in 0..40 {
        let mut simulation = Simulation::new(World::new(seed, None));
        let (_, server) = start(&mut simulation);
        let (_, client) = start(&mut simulation);
        let io = server.borrow().io().clone();
        let address = simulation.block_on(&server, {
            let io = io.clone();
            async move { io.listen("127.0.0.1:0".parse().unwrap()).await.unwrap() }
        });
        let (listener, address) = address.unwrap();
        let received = simulation.start(&server, async move {
            let (connection, _, local) = io.accept(listener).await.unwrap();
            assert_eq!(local, address);
            let mut all = BytesMut::with_capacity(256);
            loop {
                let before = all.len();
                all.reserve(256);
                let (buffer, result) = io.receive(connection, all).await;
                all = buffer;
                result.unwrap();
                if all.len() == before {
                    break all;
                }
            }
        });
        let sent: Vec<u8> = (0..20_000u32).map(|at| (at * 7 % 251) as u8).collect();
        let io = client.borrow().io().clone();
        let data = Bytes::from(sent.clone());
        let work = async move {
            let (connection, _) = io.connect(address).await.unwrap();
            io.send(connection, vec![data.slice(..9_000), data.slice(9_000..)]).await.unwrap();
            io.close_connection(connection).await.unwrap();
        };
        simulation.block_on(&client, work).unwrap();
        simulation.step_until(Default::default(), || received.borrow().is_some()).unwrap();
        assert!(received.borrow().as_deref() == Some(&sent[..]), "seed {seed}");
    }
}

#[test]
fn a_killed_peer_breaks_the_connection_and_frees_its_address() {
    let mut simulation = Simulation::new(World::new(4, None));
    let (process, server) = start(&mut simulation);
    let (_, client) = start(&mut simulation);
    let address = "127.0.0.1:3260".parse().unwrap();
    let io = server.borrow().io().clone();
    let accepted = simulation.start(&server, async move {
        let (listener, _) = io.listen(address).await.unwrap();
        io.accept(listener).await.unwrap()
    });
    let io = client.borrow().io().clone();
    let connection = simulation.block_on(&client, async move {
        loop {
            match io.connect(address).await {
                Ok((connection, _)) => return connection,
                Err(error) => assert_eq!(error, IoError::Refused),
            }
        }
    });
    let connection = connection.unwrap();
    simulation.step_until(Default::default(), || accepted.borrow().is_some()).unwrap();
    let io = client.borrow().io().clone();
    let receiving =
        simulation.start(&client, async move { io.receive(connection, BytesMut::with_capacity(9)).await.1 });
    simulation.world.kill(process);
    simulation.bury();
    simulation.step_until(Default::default(), || receiving.borrow().is_some()).unwrap();
    assert_eq!(*receiving.borrow(), Some(Err(IoError::Closed)));
    let (_, again) = start(&mut simulation);
    let io = again.borrow().io().clone();
    simulation.block_on(&again, async move { io.listen(address).await.map(|_| ()) }).unwrap().unwrap();
}

#[test]
fn messages_between_shards_arrive_in_order() {
    let mut simulation = Simulation::new(World::new(9, None));
    let seen: Rc<RefCell<Vec<u32>>> = Rc::default();
    let log = seen.clone();
    let (_, shards, outboxes) = simulation.start_task_process::<u32>(0, 2, move |_, _| {
        let log = log.clone();
        Box::new(move |_, message| log.borrow_mut().push(message))
    });
    let outbox = outboxes[0].clone();
    let work = async move { (0..500).for_each(|at| outbox.borrow_mut().push_back((base::ShardId(1), at))) };
    simulation.block_on(&shards[0], work).unwrap();
    let check = seen.clone();
    simulation.step_until(Default::default(), || check.borrow().len() == 500).unwrap();
    assert!(seen.borrow().iter().copied().eq(0..500));
}
