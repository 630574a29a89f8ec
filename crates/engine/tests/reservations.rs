//! Array-wide reservations: they are the same on all shards, are reported to the affected initiators, fence excluded
//! initiators, and are stored on the drives if an initiator requests this.

mod common;

use api::Command;
use api::{NewBacking, NewPool, NewVolume};
use base::Nanos;
use block::Payload;
use common::Lab;
use common::host::{Host, cdb, read_10, sense, task_aborted_status, test_unit_ready, write_10};
use iscsi::initiator::Request;
use sim::{DriveOptions, World};
use wire::iscsi::TaskManagementFunction as Function;
use wire::scsi::reservation::{ReservationType, ReserveOutList, parse_keys, parse_reservation};

const ALPHA: &str = "iqn.2001-04.com.example:alpha";
const BETA: &str = "iqn.2001-04.com.example:beta";
const STUCK: Nanos = Nanos::from_secs(8);
const CONFLICT: u8 = 0x18;

const REGISTER: u8 = 0;
const RESERVE: u8 = 1;
const PREEMPT_AND_ABORT: u8 = 5;
const EXCLUSIVE: u8 = 3;

/// PERSISTENT RESERVE OUT of a host to its LUN 0; `persist` is APTPL.
fn out(action: u8, kind: u8, key: u64, action_key: u64, persist: bool) -> Request {
    let list = ReserveOutList {
        key,
        service_action_key: action_key,
        specify_initiator_ports: false,
        all_target_ports: false,
        persist,
    };
    let mut request = Request::new(0, cdb(&[0x5F, action, kind, 0, 0, 0, 0, 0, 24, 0]));
    request.data_out = Payload::from(list.emit(&[]));
    request
}

fn read_in(lab: &mut Lab, host: &Host, action: u8) -> Vec<u8> {
    let mut request = Request::new(0, cdb(&[0x5E, action, 0, 0, 0, 0, 0, 4, 0, 0]));
    request.expected_in = 1024;
    host.run(lab, request).data_in.to_vec()
}

fn keys(lab: &mut Lab, host: &Host) -> Vec<u64> {
    parse_keys(&read_in(lab, host, 0)).unwrap().1
}

fn status(lab: &mut Lab, host: &Host, request: Request) -> u8 {
    host.run(lab, request).status
}

fn login(lab: &mut Lab, shard: u16, name: &str) -> Host {
    let host = Host::log_in(lab, shard, name, 1);
    host.settle(lab, 0);
    host
}

fn hosts(lab: &mut Lab, volume: &str) {
    for (name, initiator) in [("alpha", ALPHA), ("beta", BETA)] {
        lab.create_host(name, initiator);
        lab.map(volume, name, 0, false);
    }
}

/// A memory volume as LUN 0 of both hosts.
fn in_memory(seed: u64, shards: u16) -> Lab {
    let mut lab = Lab::new(seed, shards, &[]);
    lab.create_memory_volume("disk", 1 << 20);
    hosts(&mut lab, "disk");
    lab
}

#[test]
fn a_reservation_holds_on_every_shard_from_its_answer_on() {
    for (seed, shards) in [(1, 1), (2, 2), (3, 4)] {
        let mut lab = in_memory(seed, shards);
        let alpha = login(&mut lab, 0, ALPHA);
        let beta = login(&mut lab, shards - 1, BETA);
        assert_eq!(status(&mut lab, &alpha, out(REGISTER, 0, 0, 1, false)), 0);
        assert_eq!(status(&mut lab, &beta, out(RESERVE, EXCLUSIVE, 0, 0, false)), CONFLICT);
        assert_eq!(status(&mut lab, &beta, out(REGISTER, 0, 0, 2, false)), 0);
        assert_eq!(keys(&mut lab, &alpha), [1, 2]);
        assert_eq!(status(&mut lab, &alpha, out(RESERVE, EXCLUSIVE, 1, 0, false)), 0);
        assert_eq!(status(&mut lab, &beta, read_10(0, 0, 8)), CONFLICT);
        assert_eq!(status(&mut lab, &beta, test_unit_ready(0)), 0);
        assert_eq!(status(&mut lab, &alpha, write_10(0, 0, &[1; 512])), 0);
        // another session of the same initiator is another nexus
        let second = Host::log_in(&mut lab, 0, ALPHA, 2);
        second.settle(&mut lab, 0);
        assert_eq!(status(&mut lab, &second, write_10(0, 0, &[1; 512])), CONFLICT);
        // a session that logs in again is the same nexus, on whichever shard it is
        alpha.log_out(&mut lab);
        let alpha = login(&mut lab, shards - 1, ALPHA);
        assert_eq!(status(&mut lab, &alpha, write_10(0, 0, &[1; 512])), 0);
        // nothing could store it
        let refused = alpha.run(&mut lab, out(REGISTER, 0, 1, 1, true));
        assert_eq!(sense(&refused), (5, 0x26, 0));
    }
}

#[test]
fn preempt_and_abort_fences_a_write_that_is_under_way() {
    for (seed, shards, told) in [(10, 1, true), (11, 3, true), (12, 2, false)] {
        let world = World::new(seed, None);
        let drive = world.add_drive(DriveOptions::new("/dev/sdx", 64 << 20));
        let mut lab = Lab::in_world(world, shards, &[]);
        let volume = NewVolume {
            name: "raw".into(),
            backing: NewBacking::Raw("/dev/sdx".into()),
            size_bytes: None,
            block_bytes: 512,
            write_back: false,
        };
        lab.change(Command::VolumeCreate { volume, dry_run: false });
        hosts(&mut lab, "raw");
        let alpha = login(&mut lab, 0, ALPHA);
        let beta = login(&mut lab, shards - 1, BETA);
        for (host, key) in [(&alpha, 1), (&beta, 2)] {
            assert_eq!(status(&mut lab, host, out(REGISTER, 0, 0, key, false)), 0);
        }
        assert_eq!(status(&mut lab, &alpha, out(RESERVE, EXCLUSIVE, 1, 0, false)), 0);
        assert_eq!(status(&mut lab, &alpha, task_aborted_status(0, told)), 0);
        lab.simulation.world.stick(drive, STUCK);
        let late = alpha.send(&mut lab, write_10(0, 8, &[1; 4096]));
        lab.pass(Nanos::from_secs(1));
        let preempt = beta.send(&mut lab, out(PREEMPT_AND_ABORT, EXCLUSIVE, 2, 1, false));
        lab.pass(Nanos::from_secs(1));
        assert!(beta.completion(preempt).is_none(), "the write may still land");
        // the excluded host gets the answer when its write has ended, and changes nothing
        let early = alpha.send(&mut lab, write_10(0, 8, &[9; 4096]));
        lab.pass(Nanos::from_secs(1));
        assert!(alpha.completion(early).is_none());
        lab.pass(STUCK);
        assert_eq!(beta.completion(preempt).unwrap().status, 0);
        // TASK ABORTED; or nothing, and a unit attention instead (SAM-5 §5.6.3)
        let told_of_it = alpha.completion(late).map(|done| done.status);
        assert_eq!(told_of_it, told.then_some(0x40));
        assert_eq!(sense(&alpha.completion(early).unwrap()), (6, 0x2A, 0x05));
        let more = alpha.settle(&mut lab, 0);
        assert_eq!(more, if told { vec![] } else { vec![(0x2F, 0x00)] });
        assert_eq!(status(&mut lab, &alpha, write_10(0, 8, &[9; 4096])), CONFLICT);
        beta.write(&mut lab, 0, 8, &[2; 4096]);
        lab.pass(STUCK);
        assert_eq!(beta.read(&mut lab, 0, 8, 8), [2; 4096]);
        assert_eq!(keys(&mut lab, &beta), [2]);
    }
}

#[test]
fn what_reserve_has_reserved_is_free_when_its_session_ends_or_the_unit_is_reset() {
    let reserve = || Request::new(0, cdb(&[0x16]));
    let mut lab = in_memory(20, 2);
    let beta = login(&mut lab, 0, BETA);
    for end in 0..3 {
        let alpha = login(&mut lab, 1, ALPHA);
        assert_eq!(status(&mut lab, &alpha, reserve()), 0);
        assert_eq!(status(&mut lab, &beta, test_unit_ready(0)), CONFLICT);
        match end {
            0 => alpha.log_out(&mut lab),
            1 => {
                alpha.kill(&mut lab);
                lab.pass(Nanos::from_secs(60));
            }
            _ => {
                let reset = beta.manage(&mut lab, Function::LogicalUnitReset, 0, None);
                beta.wait_result(&mut lab, reset);
            }
        }
        beta.settle(&mut lab, 0);
        assert_eq!(status(&mut lab, &beta, reserve()), 0, "end {end}");
        assert_eq!(status(&mut lab, &beta, Request::new(0, cdb(&[0x17]))), 0);
    }
}

#[test]
fn reservations_that_are_to_persist_survive_sudden_ends_on_the_drives() {
    for (seed, shards) in [(30, 1), (31, 3)] {
        let world = World::new(seed, None);
        let paths: Vec<String> = ["a", "b", "c"].iter().map(|letter| format!("/dev/sd{letter}")).collect();
        for path in &paths {
            world.add_drive(DriveOptions::new(path, 1 << 30));
        }
        let names: Vec<&str> = paths.iter().map(String::as_str).collect();
        let mut lab = Lab::in_world(world, shards, &names);
        let pool = NewPool::new("pool", "parity-1", paths.clone());
        lab.change(Command::PoolCreate { pool, dry_run: false });
        let volume = NewVolume {
            name: "disk".into(),
            backing: NewBacking::Pool("pool".into()),
            size_bytes: Some(1 << 30),
            block_bytes: 512,
            write_back: false,
        };
        lab.change(Command::VolumeCreate { volume, dry_run: false });
        hosts(&mut lab, "disk");
        let restart = |lab: &mut Lab| {
            lab.kill();
            // only the drives are moved to the new server
            *lab.saved.lock().unwrap() = None;
            lab.restart();
            lab.start_result().unwrap();
        };
        let alpha = login(&mut lab, 0, ALPHA);
        assert_eq!(status(&mut lab, &alpha, out(REGISTER, 0, 0, 1, true)), 0);
        let kind = ReservationType::ExclusiveAccessRegistrantsOnly;
        assert_eq!(status(&mut lab, &alpha, out(RESERVE, kind.code(), 1, 0, false)), 0);
        restart(&mut lab);
        let beta = login(&mut lab, shards - 1, BETA);
        assert_eq!(status(&mut lab, &beta, read_10(0, 0, 8)), CONFLICT);
        assert_eq!(parse_reservation(&read_in(&mut lab, &beta, 1)), Some((0, Some((1, kind)))));
        // an administrator's change does not affect them
        lab.create_host("gamma", "iqn.2001-04.com.example:gamma");
        restart(&mut lab);
        let alpha = login(&mut lab, 0, ALPHA);
        assert_eq!(status(&mut lab, &alpha, write_10(0, 0, &[1; 512])), 0);
        assert_eq!(keys(&mut lab, &alpha), [1]);
        // a registration without APTPL revokes it for all
        assert_eq!(status(&mut lab, &alpha, out(REGISTER, 0, 1, 7, false)), 0);
        restart(&mut lab);
        let beta = login(&mut lab, 0, BETA);
        assert_eq!(status(&mut lab, &beta, read_10(0, 0, 8)), 0);
        assert_eq!(keys(&mut lab, &beta), [0; 0]);
    }
}

/// Sends a command until it returns no unit attention any more.
fn insist(lab: &mut Lab, host: &Host, request: &Request) -> u8 {
    loop {
        let completion = host.run(lab, request.clone());
        if (completion.status, sense(&completion).0) != (2, 6) {
            return completion.status;
        }
    }
}

/// The nodes of a cluster take the disk from each other while all of them write, on a drive that stalls: after a
/// PREEMPT AND ABORT is answered, no write of an older holder takes effect.
#[test]
fn a_fencing_storm_never_lets_a_late_write_through() {
    const REGISTER_AND_IGNORE: u8 = 6;
    const BLOCKS: u16 = 64;
    let mut shut_out = 0;
    for seed in 40..44 {
        let shards = 1 + (seed % 3) as u16;
        let world = World::new(seed, None);
        let drive = world.add_drive(DriveOptions::new("/dev/sdx", 64 << 20));
        let mut lab = Lab::in_world(world, shards, &[]);
        let volume = NewVolume {
            name: "raw".into(),
            backing: NewBacking::Raw("/dev/sdx".into()),
            size_bytes: None,
            block_bytes: 512,
            write_back: false,
        };
        lab.change(Command::VolumeCreate { volume, dry_run: false });
        lab.create_host("alpha", ALPHA);
        lab.map("raw", "alpha", 0, false);
        // four nexuses of one host, as paths of a cluster's nodes are
        let nodes: Vec<Host> = (0..4u8)
            .map(|node| {
                let host = Host::log_in(&mut lab, u16::from(node) % shards, ALPHA, node + 1);
                host.settle(&mut lab, 0);
                host
            })
            .collect();
        let mut random = lab.simulation.world.fork_prng();
        let mut holder = 0;
        let key = |node: usize| node as u64 + 1;
        let register = |node: usize| out(REGISTER_AND_IGNORE, 0, 0, key(node), false);
        assert_eq!(insist(&mut lab, &nodes[0], &register(0)), 0);
        assert_eq!(insist(&mut lab, &nodes[0], &out(RESERVE, EXCLUSIVE, key(0), 0, false)), 0);
        for round in 0..12u8 {
            for (node, host) in nodes.iter().enumerate() {
                assert_eq!(insist(&mut lab, host, &register(node)), 0);
            }
            if random.chance(600) {
                lab.simulation.world.stick(drive, Nanos::from_millis(random.between(1, 4000)));
            }
            for (node, host) in nodes.iter().enumerate() {
                for _ in 0..random.between(1, 4) {
                    let lba = random.between(0, u64::from(BLOCKS) - 8) as u32;
                    host.send(&mut lab, write_10(0, lba, &[0x80 | node as u8; 4096]));
                }
            }
            lab.pass(Nanos::from_micros(random.between(0, 2000)));
            let next = (holder + random.between(1, 3) as usize) % nodes.len();
            let take = out(PREEMPT_AND_ABORT, EXCLUSIVE, key(next), key(holder), false);
            assert_eq!(insist(&mut lab, &nodes[next], &take), 0, "seed {seed}, round {round}");
            let stamp = vec![round + 1; usize::from(BLOCKS) * 512];
            nodes[next].write(&mut lab, 0, 0, &stamp);
            assert_eq!(insist(&mut lab, &nodes[holder], &read_10(0, 0, 8)), CONFLICT);
            shut_out += 1;
            lab.pass(Nanos::from_secs(5));
            let read = nodes[next].read(&mut lab, 0, 0, BLOCKS);
            assert!(read == stamp, "seed {seed}, round {round}: an older holder's write has landed");
            holder = next;
        }
    }
    assert_eq!(shut_out, 48);
}
