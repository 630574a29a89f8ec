//! The program is killed, or the power fails, in the middle of changes. Answered changes are there afterwards. Other
//! changes are there completely or not at all. The array always starts.

mod common;

use std::collections::BTreeSet;

use api::Command;
use api::{Health, NewBacking, NewPool, NewVolume};
use common::Lab;
use sim::{DriveOptions, Patience, World};

const GIB: u64 = 1 << 30;

fn volume(name: &str, pool: &str) -> NewVolume {
    NewVolume {
        name: name.to_owned(),
        backing: NewBacking::Pool(pool.to_owned()),
        size_bytes: Some(GIB),
        block_bytes: 512,
        write_back: false,
    }
}

fn pool(name: &str, drives: &[String]) -> Command {
    let pool = NewPool {
        // what a pool whose creation failed has left there
        force: drives.to_vec(),
        ..NewPool::new(name, "parity-1", drives.to_vec())
    };
    Command::PoolCreate { pool, dry_run: false }
}

/// Sends a command and lets at most this number of events happen. Returns whether it was carried out; `None`: not
/// answered.
fn try_command(lab: &mut Lab, command: Command, events: u64) -> Option<bool> {
    let answer = lab.send_command(command);
    let check = answer.clone();
    let patience = Patience { events, ..Patience::default() };
    let _ = lab.simulation.step_until(patience, || check.lock().unwrap().is_some());
    answer.lock().unwrap().take().map(|result| result.is_ok())
}

fn end_suddenly(lab: &mut Lab, power: bool, forget: bool) {
    if power {
        lab.simulation.world.power_loss(0);
    } else {
        lab.kill();
    }
    if forget {
        // the drives move to another server
        *lab.saved.lock().unwrap() = None;
    }
    lab.restart();
}

#[test]
fn volumes_come_and_go_whole() {
    for seed in 0..40 {
        let world = World::new(seed, None);
        let mut random = world.fork_prng();
        let paths: Vec<String> = (0..3).map(|n| format!("/dev/sd{n}")).collect();
        for path in &paths {
            world.add_drive(DriveOptions::new(path, GIB));
        }
        let shards = random.between(1, 3) as u16;
        let mut lab = Lab::in_world(world, shards, &paths.iter().map(String::as_str).collect::<Vec<_>>());
        lab.change(pool("fast", &paths));
        let mut there: BTreeSet<String> = BTreeSet::new();
        for round in 0..12 {
            let name = format!("v{round}");
            let delete = there.first().cloned().filter(|_| random.chance(400));
            let command = match &delete {
                Some(name) => Command::VolumeDelete {
                    name: name.clone(),
                    unmap: false,
                    eradicate: true,
                    dry_run: false,
                },
                None => Command::VolumeCreate { volume: volume(&name, "fast"), dry_run: false },
            };
            let subject = delete.clone().unwrap_or(name);
            let done = try_command(&mut lab, command, random.skewed(1, 2_000));
            assert_ne!(done, Some(false), "seed {seed}: {subject} was refused");
            if done.is_none() || random.chance(300) {
                end_suddenly(&mut lab, random.chance(500), random.chance(500));
                assert_eq!(lab.start_result(), Ok(()), "seed {seed}");
            }
            let status = lab.status();
            assert_eq!(status.health, Health::Healthy, "seed {seed}: {:?}", status.problems);
            let now: BTreeSet<String> = status.volumes.into_iter().map(|volume| volume.name).collect();
            let mut with = there.clone();
            let mut without = there.clone();
            with.insert(subject.clone());
            without.remove(&subject);
            let carried_out = if delete.is_some() { &without } else { &with };
            match done {
                Some(_) => assert_eq!(&now, carried_out, "seed {seed} round {round}: an answered change"),
                None => assert!(now == with || now == without, "seed {seed} round {round}: {now:?}"),
            }
            there = now;
        }
    }
}

#[test]
fn a_pool_comes_to_be_whole_or_can_be_made_again() {
    for seed in 0..60 {
        let world = World::new(seed, None);
        let mut random = world.fork_prng();
        let paths: Vec<String> = (0..3).map(|n| format!("/dev/sd{n}")).collect();
        for path in &paths {
            world.add_drive(DriveOptions::new(path, GIB));
        }
        let mut lab = Lab::in_world(world, 2, &paths.iter().map(String::as_str).collect::<Vec<_>>());
        let array = lab.status().array_id;
        let done = try_command(&mut lab, pool("fast", &paths), random.skewed(1, 2_000));
        assert_ne!(done, Some(false), "seed {seed}");
        end_suddenly(&mut lab, random.chance(500), false);
        assert_eq!(lab.start_result(), Ok(()), "seed {seed}");
        let status = lab.status();
        assert_eq!(status.array_id, array);
        let online = status.pools.iter().any(|pool| pool.health == Health::Healthy);
        assert!(online || done.is_none(), "seed {seed}: an answered pool: {:?}", status.problems);
        if !online {
            lab.change(pool("again", &paths));
        }
        let name = if online { "fast" } else { "again" };
        lab.change(Command::VolumeCreate { volume: volume("v", name), dry_run: false });
    }
}
