//! COMPARE AND WRITE of blocks on several lanes, from sessions on several shards. Exactly one command succeeds. It
//! writes all of its blocks, the others write none, and a concurrent write to the same blocks takes effect before or
//! after it.

mod common;

use api::Command;
use api::{NewBacking, NewPool, NewVolume};
use block::Payload;
use bytes::Bytes;
use common::Lab;
use common::host::{Host, cdb, sense, write_10};
use iscsi::initiator::Request;
use sim::{DriveOptions, World};

const MISCOMPARE: (u8, u8, u8) = (0xE, 0x1D, 0);
/// Logical blocks of a map page, which belongs to one lane.
const PAGE: u32 = 2048;

/// A volume in a pool with as many lanes as there are shards, and a host on every shard that has it as LUN 0.
fn array(seed: u64, shards: u16) -> (Lab, Vec<Host>) {
    let world = World::new(seed, None);
    let drives: Vec<String> = (0..3).map(|n| format!("/dev/nvme{n}n1")).collect();
    for path in &drives {
        world.add_drive(DriveOptions::new(path, 1 << 30));
    }
    let mut lab = Lab::in_world(world, shards, &drives.iter().map(String::as_str).collect::<Vec<_>>());
    let (name, protection) = ("fast".to_owned(), "parity-1".to_owned());
    let pool = NewPool::new(name.clone(), protection, drives);
    lab.change(Command::PoolCreate { pool, dry_run: false });
    let volume = NewVolume {
        name: "disk".to_owned(),
        backing: NewBacking::Pool(name),
        size_bytes: Some(8 << 20),
        block_bytes: 512,
        write_back: false,
    };
    lab.change(Command::VolumeCreate { volume, dry_run: false });
    let hosts = (0..shards).map(|shard| {
        let (name, initiator) = (format!("node{shard}"), format!("iqn.2001-04.com.example:node{shard}"));
        lab.create_host(&name, &initiator);
        lab.map("disk", &name, 0, false);
        let host = Host::log_in(&mut lab, shard, &initiator, 1);
        host.settle(&mut lab, 0);
        host
    });
    let hosts = hosts.collect();
    (lab, hosts)
}

fn compare_and_write(lba: u32, expected: &[u8], new: &[u8]) -> Request {
    let (l, blocks) = (lba.to_be_bytes(), (new.len() / 512) as u8);
    let bytes = [0x89, 0, 0, 0, 0, 0, l[0], l[1], l[2], l[3], 0, 0, 0, blocks, 0, 0];
    let mut request = Request::new(0, cdb(&bytes));
    request.data_out = Payload::from(Bytes::from([expected, new].concat()));
    request
}

/// All hosts write the same blocks at once; returns the winner's content.
fn round(lab: &mut Lab, hosts: &[Host], lba: u32, before: &[u8], mark: u8) -> Vec<u8> {
    let new = |host: usize| vec![mark + host as u8; before.len()];
    let tags: Vec<_> = hosts
        .iter()
        .enumerate()
        .map(|(index, host)| host.send(lab, compare_and_write(lba, before, &new(index))))
        .collect();
    lab.wait(|| hosts.iter().zip(&tags).all(|(host, &tag)| host.completion(tag).is_some()));
    let ends: Vec<_> = hosts.iter().zip(tags).map(|(host, tag)| host.completion(tag).unwrap()).collect();
    let winners: Vec<usize> = (0..hosts.len()).filter(|&index| ends[index].status == 0).collect();
    assert_eq!(winners.len(), 1, "{ends:?}");
    for lost in ends.iter().filter(|end| end.status != 0) {
        assert_eq!((lost.status, sense(lost)), (2, MISCOMPARE));
    }
    new(winners[0])
}

#[test]
fn one_of_all_wins_every_round() {
    for (seed, shards) in [(1, 2), (2, 3), (3, 4)] {
        let (mut lab, hosts) = array(seed, shards);
        // around every border: with four lanes they wrap, so the order of lanes is not the order of pages
        for (page, before, blocks) in [(1, 4, 8), (2, 1, 2), (3, 3, 50), (4, 100, 200), (5, 8, 16)] {
            let lba = page * PAGE - before;
            let mut content = vec![0; blocks as usize * 512];
            for turn in 0..6u8 {
                content = round(&mut lab, &hosts, lba, &content, 10 * turn + 1);
                let seen = hosts[usize::from(turn) % hosts.len()].read(&mut lab, 0, lba, blocks as u16);
                assert!(seen == content, "seed {seed}, page {page}, turn {turn}");
            }
            let neighbour = hosts[0].read(&mut lab, 0, lba - 1, 1);
            assert!(neighbour == [0; 512] && hosts[0].read(&mut lab, 0, lba + blocks, 1) == [0; 512]);
        }
    }
}

/// A write that begins together with a compare-and-write is wholly before it (then it does not match) or wholly after.
#[test]
fn writes_of_the_same_blocks_come_before_or_after() {
    let (mut matched, mut missed) = (0, 0);
    for seed in 10..40 {
        let (mut lab, hosts) = array(seed, 3);
        let lba = PAGE - 4;
        let (one, two) = (vec![1; 8 * 512], vec![2; 8 * 512]);
        let write = hosts[1].send(&mut lab, write_10(0, PAGE + 2, &[9; 512]));
        let swap = hosts[0].send(&mut lab, compare_and_write(lba, &[0; 8 * 512], &one));
        let next = hosts[2].send(&mut lab, compare_and_write(lba, &one, &two));
        lab.wait(|| {
            hosts[1].completion(write).is_some()
                && hosts[0].completion(swap).is_some()
                && hosts[2].completion(next).is_some()
        });
        assert_eq!(hosts[1].completion(write).unwrap().status, 0);
        let (swap, next) = (hosts[0].completion(swap).unwrap(), hosts[2].completion(next).unwrap());
        let seen = hosts[2].read(&mut lab, 0, lba, 8);
        let base = match (swap.status, next.status) {
            (0, 0) => two,
            (0, 2) => one,
            (2, 2) => vec![0; 8 * 512],
            other => panic!("seed {seed}: {other:?}"),
        };
        // no compare matches after the write, so it is there
        let mut with_write = base;
        with_write[6 * 512..7 * 512].fill(9);
        assert!(seen == with_write, "seed {seed}");
        if swap.status == 0 { matched += 1 } else { missed += 1 }
    }
    assert!(matched > 0 && missed > 0, "both orders happen: {matched}, {missed}");
}
