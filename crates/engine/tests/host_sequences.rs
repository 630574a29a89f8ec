//! Command sequences of hypervisors and clusters, replayed.
//!
//! These tests replace products that cannot run here: VMware ESXi and Windows Server. The sequences follow published
//! descriptions (VAAI and VMFS locking; the storage tests of cluster validation and the arbitration of a cluster's
//! disks), with the opcodes, types and retries that those descriptions name. The tests show that the array answers such
//! sequences as the standards require. They do not show that the products work.

mod common;

use base::Nanos;
use block::Payload;
use bytes::Bytes;
use common::Lab;
use common::host::{Host, cdb, read_10, sense, write_10};
use iscsi::initiator::{Completion, Request};
use wire::scsi::Lun;
use wire::scsi::copy::{CopySegment, CopyTarget, emit_copy};
use wire::scsi::reservation::{ReservationType, ReserveOutList, parse_keys, parse_reservation};

const MIB: u64 = 1 << 20;
const CONFLICT: u8 = 0x18;
const MISCOMPARE: (u8, u8, u8) = (0xE, 0x1D, 0);

const REGISTER: u8 = 0;
const RESERVE: u8 = 1;
const RELEASE: u8 = 2;
const CLEAR: u8 = 3;
const PREEMPT_AND_ABORT: u8 = 5;
const REGISTER_AND_IGNORE: u8 = 6;

/// Hosts on every shard that share two volumes of 32 MiB as LUN 0 and 1.
fn array(seed: u64, shards: u16, hosts: usize) -> (Lab, Vec<Host>) {
    let mut lab = Lab::new(seed, shards, &[]);
    for volume in ["disk", "copy"] {
        lab.create_memory_volume(volume, 32 * MIB);
    }
    let hosts = (0..hosts).map(|index| {
        let (name, initiator) = (format!("node{index}"), format!("iqn.2001-04.com.example:node{index}"));
        lab.create_host(&name, &initiator);
        lab.map("disk", &name, 0, false);
        lab.map("copy", &name, 1, false);
        let host = Host::log_in(&mut lab, index as u16 % shards, &initiator, 1);
        host.settle(&mut lab, 0);
        host.settle(&mut lab, 1);
        host
    });
    let hosts = hosts.collect();
    (lab, hosts)
}

fn input(lun: u16, bytes: &[u8], expected_in: u32) -> Request {
    let mut request = Request::new(Lun::new(lun).unwrap().emit(), cdb(bytes));
    request.expected_in = expected_in;
    request
}

fn output(lun: u16, bytes: &[u8], data: &[u8]) -> Request {
    let mut request = Request::new(Lun::new(lun).unwrap().emit(), cdb(bytes));
    request.data_out = Payload::from(Bytes::copy_from_slice(data));
    request
}

fn good(lab: &mut Lab, host: &Host, request: Request) -> Vec<u8> {
    let completion = host.run(lab, request);
    assert_eq!(completion.status, 0, "{:x?}", sense(&completion));
    completion.data_in.to_vec()
}

/// COMPARE AND WRITE of one block: what ESXi calls ATS.
fn test_and_set(lba: u32, expected: &[u8], new: &[u8]) -> Request {
    let l = lba.to_be_bytes();
    let cdb = [0x89, 0, 0, 0, 0, 0, l[0], l[1], l[2], l[3], 0, 0, 0, 1, 0, 0];
    output(0, &cdb, &[expected, new].concat())
}

fn sector(byte: u8) -> Vec<u8> {
    vec![byte; 512]
}

/// A new datastore: the device is identified, its offloads are found, a partition table and metadata are written.
#[test]
fn esxi_makes_a_datastore() {
    let (mut lab, hosts) = array(1, 2, 1);
    let host = &hosts[0];
    good(&mut lab, host, input(0, &[0x12, 0, 0, 0, 96, 0], 96));
    let pages = good(&mut lab, host, input(0, &[0x12, 1, 0, 0, 255, 0], 255));
    for page in [0x80, 0x83, 0xB0, 0xB1, 0xB2] {
        assert!(pages[4..].contains(&page), "{pages:x?}");
        let data = good(&mut lab, host, input(0, &[0x12, 1, page, 0, 255, 0], 255));
        assert_eq!(data[1], page);
        match page {
            // MAXIMUM COMPARE AND WRITE LENGTH and MAXIMUM UNMAP LBA COUNT: without them nothing is offloaded
            0xB0 => assert!(data[5] >= 1 && data[20..24] != [0; 4], "{data:x?}"),
            // LBPU
            0xB2 => assert_ne!(data[5] & 0x80, 0, "{data:x?}"),
            _ => {}
        }
    }
    let capacity = good(&mut lab, host, input(0, &[0x9E, 0x10, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 32], 32));
    let last = u64::from_be_bytes(capacity[..8].try_into().unwrap());
    assert_eq!((last, capacity[14] & 0x80), (32 * MIB / 512 - 1, 0x80), "LBPME");
    // partition table, first and second copy
    assert_eq!(host.read(&mut lab, 0, 0, 34), [0; 34 * 512]);
    host.write(&mut lab, 0, 0, &[0x47; 34 * 512]);
    host.write(&mut lab, 0, last as u32 - 32, &[0x47; 33 * 512]);
    // the file system's heartbeats, locks and bitmaps are zeroed by WRITE SAME (16) of one zero block
    host.write(&mut lab, 0, 2048, &[1; 64 * 512]);
    let same = [0x93, 0, 0, 0, 0, 0, 0, 0, 0x08, 0, 0, 0, 0x20, 0, 0, 0];
    good(&mut lab, host, output(0, &same, &sector(0)));
    assert_eq!(host.read(&mut lab, 0, 2048, 64), [0; 64 * 512]);
    // the first lock is taken and released
    good(&mut lab, host, test_and_set(2048, &sector(0), &sector(1)));
    good(&mut lab, host, test_and_set(2048, &sector(1), &sector(0)));
    assert_eq!(host.read(&mut lab, 0, last as u32 - 32, 33), [0x47; 33 * 512]);
}

/// Every host renews its slot by compare and write. Another host that finds it stale takes it, and the first host
/// notices this by MISCOMPARE.
#[test]
fn ats_heartbeats_and_a_lock_that_is_taken_over() {
    for (seed, shards) in [(2, 1), (3, 3)] {
        let (mut lab, hosts) = array(seed, shards, 3);
        let slot = |index: usize| 4096 + index as u32;
        for beat in 0..5 {
            let tags: Vec<_> = hosts
                .iter()
                .enumerate()
                .map(|(n, host)| host.send(&mut lab, test_and_set(slot(n), &sector(beat), &sector(beat + 1))))
                .collect();
            lab.wait(|| hosts.iter().zip(&tags).all(|(host, &tag)| host.completion(tag).is_some()));
            let done = hosts.iter().zip(tags).all(|(host, tag)| host.completion(tag).unwrap().status == 0);
            assert!(done, "neighbouring slots disturb each other");
        }
        // the second host takes over the first one's slot
        assert_eq!(hosts[1].read(&mut lab, 0, slot(0), 1), sector(5));
        good(&mut lab, &hosts[1], test_and_set(slot(0), &sector(5), &sector(0xFE)));
        let late = hosts[0].run(&mut lab, test_and_set(slot(0), &sector(5), &sector(6)));
        assert_eq!((late.status, sense(&late)), (2, MISCOMPARE));
        assert_eq!(hosts[0].read(&mut lab, 0, slot(0), 1), sector(0xFE));
        // all hosts want one lock at once: one gets it, in every round
        for lock in 0..20 {
            one_of_all_gets_the_lock(&mut lab, &hosts, 8192 + lock);
        }
    }
}

fn one_of_all_gets_the_lock(lab: &mut Lab, hosts: &[Host], lba: u32) {
    let owner = |n: usize| sector(n as u8 + 1);
    let tags: Vec<_> = hosts
        .iter()
        .enumerate()
        .map(|(n, host)| host.send(lab, test_and_set(lba, &sector(0), &owner(n))))
        .collect();
    lab.wait(|| hosts.iter().zip(&tags).all(|(host, &tag)| host.completion(tag).is_some()));
    let completions: Vec<Completion> =
        hosts.iter().zip(tags).map(|(host, tag)| host.completion(tag).unwrap()).collect();
    let winners: Vec<usize> = (0..hosts.len()).filter(|&n| completions[n].status == 0).collect();
    assert_eq!(winners.len(), 1, "{completions:?}");
    for lost in completions.iter().filter(|completion| completion.status != 0) {
        assert_eq!((lost.status, sense(lost)), (2, MISCOMPARE));
    }
    assert_eq!(hosts[0].read(lab, 0, lba, 1), owner(winners[0]));
}

/// A virtual disk is moved: EXTENDED COPY without list identifier in segments of 4 MiB, then UNMAP of the source.
#[test]
fn esxi_clones_and_frees_the_source() {
    let (mut lab, hosts) = array(4, 3, 2);
    let naa = |lab: &mut Lab, lun: u16| -> [u8; 16] {
        let data = good(lab, &hosts[0], input(lun, &[0x12, 1, 0x83, 0, 255, 0], 255));
        let mut rest = &data[4..];
        loop {
            let length = usize::from(rest[3]);
            if rest[1] & 0xF == 3 && length == 16 {
                return rest[4..20].try_into().unwrap();
            }
            rest = &rest[4 + length..];
        }
    };
    let targets: Vec<[u8; 32]> = [0, 1]
        .map(|lun| CopyTarget { unit_id_type: 0, null: false, naa: Some(naa(&mut lab, lun)) }.emit(512))
        .to_vec();
    let block = |n: u32| vec![n as u8 + 1; MIB as usize];
    for n in 0..16 {
        hosts[0].write(&mut lab, 0, n * 2048, &block(n));
    }
    for n in 0..4u64 {
        let (source_lba, destination_lba) = (n * 8192, n * 8192 + 2048);
        let (source, destination) = (0, 1);
        let segment = CopySegment {
            counts_destination: true,
            source,
            destination,
            blocks: 8192,
            source_lba,
            destination_lba,
        };
        let list = emit_copy(0, 3, &targets, &[segment]);
        let l = (list.len() as u32).to_be_bytes();
        let copy = [0x83, 0, 0, 0, 0, 0, 0, 0, 0, 0, l[0], l[1], l[2], l[3], 0, 0];
        good(&mut lab, &hosts[0], output(0, &copy, &list));
    }
    let mut unmap = vec![0, 22, 0, 16, 0, 0, 0, 0];
    unmap.extend([0u64.to_be_bytes().as_slice(), &32768u32.to_be_bytes(), &[0; 4]].concat());
    good(&mut lab, &hosts[0], output(0, &[0x42, 0, 0, 0, 0, 0, 0, 0, 24, 0], &unmap));
    for n in 0..16 {
        assert!(hosts[1].read(&mut lab, 1, 2048 + n * 2048, 2048) == block(n), "MiB {n} of the copy");
        assert!(hosts[1].read(&mut lab, 0, n * 2048, 2048) == [0; MIB as usize], "MiB {n} of the source");
    }
}

/// PERSISTENT RESERVE OUT to LUN 0.
fn out(action: u8, kind: u8, key: u64, action_key: u64) -> Request {
    let list = ReserveOutList {
        key,
        service_action_key: action_key,
        specify_initiator_ports: false,
        all_target_ports: false,
        persist: false,
    };
    output(0, &[0x5F, action, kind, 0, 0, 0, 0, 0, 24, 0], &list.emit(&[]))
}

fn status(lab: &mut Lab, host: &Host, request: Request) -> u8 {
    host.run(lab, request).status
}

fn keys(lab: &mut Lab, host: &Host) -> Vec<u64> {
    let data = good(lab, host, input(0, &[0x5E, 0, 0, 0, 0, 0, 0, 4, 0, 0], 1024));
    let mut keys = parse_keys(&data).unwrap().1;
    keys.sort_unstable();
    keys
}

fn held(lab: &mut Lab, host: &Host) -> Option<(u64, ReservationType)> {
    let data = good(lab, host, input(0, &[0x5E, 1, 0, 0, 0, 0, 0, 4, 0, 0], 1024));
    parse_reservation(&data).unwrap().1
}

fn key(node: usize) -> u64 {
    0x1000_0000 + node as u64
}

/// Types 5 and 6 are for registrants and have one holder; of 7 and 8 every registrant is a holder.
fn all_hold(kind: u8) -> bool {
    kind >= 7
}

/// The storage tests of cluster validation, for every type that clusters use: who may reserve, write, read, release.
#[test]
fn cluster_validation_of_every_registrants_type() {
    for (kind, shards) in [(5, 1), (6, 2), (7, 3), (8, 4)] {
        let (mut lab, nodes) = array(u64::from(kind), shards, 4);
        let (first, second, outsider) = (&nodes[0], &nodes[1], &nodes[3]);
        assert_eq!(status(&mut lab, first, out(RESERVE, kind, key(0), 0)), CONFLICT, "not registered");
        for (node, host) in nodes[..3].iter().enumerate() {
            assert_eq!(status(&mut lab, host, out(REGISTER, 0, 0, key(node))), 0);
            assert_eq!(
                status(&mut lab, host, out(REGISTER, 0, 0, key(node))),
                CONFLICT,
                "registered already"
            );
            assert_eq!(status(&mut lab, host, out(REGISTER_AND_IGNORE, 0, 0, key(node))), 0);
        }
        assert_eq!(keys(&mut lab, outsider), [key(0), key(1), key(2)]);
        assert_eq!(status(&mut lab, first, out(RESERVE, kind, key(0), 0)), 0);
        let again = if all_hold(kind) { 0 } else { CONFLICT };
        assert_eq!(status(&mut lab, second, out(RESERVE, kind, key(1), 0)), again, "type {kind}");
        let holder = if all_hold(kind) { 0 } else { key(0) };
        assert_eq!(held(&mut lab, outsider), Some((holder, ReservationType::from_code(kind).unwrap())));
        for host in &nodes[..3] {
            host.write(&mut lab, 0, 0, &sector(kind));
        }
        assert_eq!(status(&mut lab, outsider, write_10(0, 0, &sector(1))), CONFLICT);
        let reads = if kind.is_multiple_of(2) { CONFLICT } else { 0 };
        assert_eq!(status(&mut lab, outsider, read_10(0, 0, 1)), reads, "type {kind}");
        assert_eq!(status(&mut lab, outsider, out(CLEAR, 0, key(3), 0)), CONFLICT);
        // the holder releases: all other registered nexuses are notified
        assert_eq!(status(&mut lab, first, out(RELEASE, kind, key(0), 0)), 0);
        assert_eq!(second.settle(&mut lab, 0), [(0x2A, 0x04)], "type {kind}");
        assert_eq!(held(&mut lab, first), None);
        outsider.write(&mut lab, 0, 0, &sector(1));
        nodes[2].settle(&mut lab, 0);
        assert_eq!(status(&mut lab, &nodes[2], out(CLEAR, 0, key(2), 0)), 0);
        assert_eq!(first.settle(&mut lab, 0), [(0x2A, 0x03)], "type {kind}");
        assert!(keys(&mut lab, first).is_empty());
    }
}

/// Arbitration: the owner becomes silent with a write in flight, and all others try to take its place at once. One
/// succeeds. The old owner is shut out until it registers again, and its write does not take effect later.
#[test]
fn arbitration_storms_leave_one_owner() {
    for (kind, shards) in [(5, 1), (5, 3), (6, 2), (7, 4), (8, 2)] {
        let (mut lab, nodes) = array(100 + u64::from(kind), shards, 4);
        for (node, host) in nodes.iter().enumerate() {
            assert_eq!(status(&mut lab, host, out(REGISTER_AND_IGNORE, 0, 0, key(node))), 0);
        }
        assert_eq!(status(&mut lab, &nodes[0], out(RESERVE, kind, key(0), 0)), 0);
        let mut owner = 0;
        for _ in 0..12 {
            owner = arbitrate(&mut lab, &nodes, kind, owner);
        }
    }
}

fn arbitrate(lab: &mut Lab, nodes: &[Host], kind: u8, owner: usize) -> usize {
    nodes.iter().for_each(|host| drop(host.settle(lab, 0)));
    let quiet = nodes[owner].send(lab, write_10(0, 64, &sector(owner as u8 + 1)));
    let challengers: Vec<usize> = (0..nodes.len()).filter(|&node| node != owner).collect();
    let tags: Vec<_> = challengers
        .iter()
        .map(|&node| nodes[node].send(lab, out(PREEMPT_AND_ABORT, kind, key(node), key(owner))))
        .collect();
    let answered = |index: usize| nodes[challengers[index]].completion(tags[index]);
    lab.wait(|| (0..tags.len()).all(|index| answered(index).is_some()));
    let statuses: Vec<u8> = (0..tags.len()).map(|index| answered(index).unwrap().status).collect();
    let winner = statuses.iter().position(|&status| status == 0).expect("one wins");
    let others = statuses.iter().filter(|&&status| status == CONFLICT).count();
    assert_eq!(others, statuses.len() - 1, "{statuses:x?}");
    let winner = challengers[winner];
    let holder = if all_hold(kind) { 0 } else { key(winner) };
    assert_eq!(held(lab, &nodes[winner]), Some((holder, ReservationType::from_code(kind).unwrap())));
    assert!(!keys(lab, &nodes[winner]).contains(&key(owner)));
    nodes[winner].write(lab, 0, 64, &sector(0xEE));
    let told = nodes[owner].settle(lab, 0).contains(&(0x2A, 0x05));
    // if the write came late, its status said so then
    let late = nodes[owner].completion(quiet).is_some_and(|write| sense(&write) == (6, 0x2A, 0x05));
    assert!(told || late, "the old owner is told");
    assert_eq!(status(lab, &nodes[owner], write_10(0, 64, &sector(0xDD))), CONFLICT);
    lab.pass(Nanos::from_secs(3));
    assert_eq!(nodes[winner].read(lab, 0, 64, 1), sector(0xEE), "a write landed late");
    assert_eq!(status(lab, &nodes[owner], out(REGISTER_AND_IGNORE, 0, 0, key(owner))), 0);
    nodes[owner].write(lab, 0, 65, &sector(1));
    winner
}
