//! Hosts send more than a shard has room for: some commands are refused and served later, and nothing is lost.

mod common;

use common::Lab;
use common::host::{Host, read_10, sense, write_10};
use engine::Memory;
use iscsi::initiator::Request;
use sim::World;

const BUSY: u8 = 0x08;
const TASK_SET_FULL: u8 = 0x28;
const MIB: usize = 1 << 20;
/// Blocks of a transfer: 128 KiB.
const BLOCKS: u32 = 256;
const TRANSFERS: u32 = 40;

/// Hosts of one shard that has room for 1 MiB, with a volume that they share.
fn array(seed: u64, hosts: usize) -> (Lab, Vec<Host>) {
    let mut lab =
        Lab::with_memory(World::new(seed, None), 2, &[], Memory { data_bytes: MIB, ..Memory::default() });
    // on the other shard, so that reads and writes take their time
    lab.create_memory_volume("far", 256 << 20);
    lab.create_memory_volume("near", 256 << 20);
    let hosts = (0..hosts).map(|index| {
        let (name, initiator) = (format!("node{index}"), format!("iqn.2001-04.com.example:node{index}"));
        lab.create_host(&name, &initiator);
        lab.map("far", &name, 0, false);
        lab.map("near", &name, 1, false);
        let host = Host::log_in(&mut lab, 0, &initiator, 1);
        (0..2).for_each(|lun| drop(host.settle(&mut lab, lun)));
        host
    });
    let hosts = hosts.collect();
    (lab, hosts)
}

/// Sends everything at once, and repeats refused commands until all are done; returns how often a command was refused.
fn flood(lab: &mut Lab, hosts: &[Host], request: impl Fn(usize, u32) -> Request) -> (usize, Vec<Vec<u8>>) {
    let mut left: Vec<(usize, u32)> =
        (0..hosts.len()).flat_map(|host| (0..TRANSFERS).map(move |index| (host, index))).collect();
    let mut refused = 0;
    let mut data = vec![Vec::new(); left.len()];
    while !left.is_empty() {
        let tags: Vec<_> =
            left.iter().map(|&(host, index)| hosts[host].send(lab, request(host, index))).collect();
        lab.wait(|| left.iter().zip(&tags).all(|(&(host, _), &tag)| hosts[host].completion(tag).is_some()));
        let mut again = Vec::new();
        for (&(host, index), tag) in left.iter().zip(tags) {
            let completion = hosts[host].completion(tag).unwrap();
            match completion.status {
                0 => data[host * TRANSFERS as usize + index as usize] = completion.data_in.to_vec(),
                BUSY | TASK_SET_FULL => again.push((host, index)),
                status => panic!("status {status:#x}, {:x?}", sense(&completion)),
            }
        }
        assert!(again.len() < left.len(), "nothing gets through");
        refused += again.len();
        left = again;
    }
    (refused, data)
}

#[test]
fn writes_and_reads_without_room_are_refused_and_done_later() {
    for (seed, lun) in [(1, 0), (2, 1)] {
        let (mut lab, hosts) = array(seed, 3);
        let mark = |host: usize, index: u32| (host as u32 * TRANSFERS + index) as u8;
        let lba = |host: usize, index: u32| (host as u32 * TRANSFERS + index) * BLOCKS;
        let (refused, _) = flood(&mut lab, &hosts, |host, index| {
            write_10(lun, lba(host, index), &[mark(host, index); 128 << 10])
        });
        assert!(refused > 0, "there was room for all writes");
        let (refused, data) =
            flood(&mut lab, &hosts, |host, index| read_10(lun, lba(host, index), BLOCKS as u16));
        assert!(refused > 0 || lun == 1, "there was room for all reads");
        for (number, data) in data.into_iter().enumerate() {
            assert!(data == [number as u8; 128 << 10], "transfer {number}");
        }
        // all room was returned: a command that needs the whole room is served at once
        hosts[0].write(&mut lab, lun, 0, &[1; MIB - (64 << 10)]);
        assert!(hosts[1].read(&mut lab, lun, 0, 1920) == [1; MIB - (64 << 10)]);
    }
}
