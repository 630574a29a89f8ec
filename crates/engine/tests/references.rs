//! EXTENDED COPY inside a pool: it writes only references, and source and destination then change independently.

mod common;

use api::Command;
use api::{ChangeStep, CopyOrder, PoolReferences, PoolStep};
use base::Nanos;
use common::Lab;
use common::copy::{copy_target, extended_copy};
use common::host::{Host, cdb, unmap};
use iscsi::initiator::Request;
use wire::scsi::Lun;

/// Whether a deletion frees space, and whether more comes back later.
fn frees(steps: &[ChangeStep], more_later: bool) -> bool {
    let frees = |step: &ChangeStep| match step {
        ChangeStep::Pool(PoolStep::FreeSpace { at_least, .. }) => *at_least == more_later,
        _ => false,
    };
    steps.iter().any(frees)
}

const ALPHA: &str = "iqn.2001-04.com.example:alpha";
const MIB: u64 = 1 << 20;
const SECTORS: u64 = MIB / 512;

/// Two volumes of 64 MiB in a pool, as LUN 0 and 1 of a host.
fn array(seed: u64, shards: u16, write_back: bool) -> (Lab, Host) {
    let mut lab = Lab::with_pool(seed, shards);
    lab.create_host("alpha", ALPHA);
    for (lun, name) in ["disk", "copy"].into_iter().enumerate() {
        lab.create_pool_volume(name, write_back);
        lab.map(name, "alpha", lun as u16, false);
    }
    let host = login(&mut lab);
    (lab, host)
}

fn login(lab: &mut Lab) -> Host {
    let host = Host::log_in(lab, 0, ALPHA, 1);
    [0, 1].into_iter().for_each(|lun| drop(host.settle(lab, lun)));
    host
}

fn copied(lab: &mut Lab, host: &Host, from: (u16, u64), to: (u16, u64), sectors: u64) {
    let targets = [copy_target(lab, host, 0), copy_target(lab, host, 1)];
    let completion = host.run(lab, extended_copy(0, &targets, from, to, sectors));
    assert_eq!(completion.status, 0, "{from:?} to {to:?}");
}

fn stored(lab: &mut Lab) -> u64 {
    lab.status().pools[0].used_bytes
}

/// Every sector has different content.
fn pattern(tag: u8, sectors: u64) -> Vec<u8> {
    (0..sectors).flat_map(|n| [[tag, n as u8, (n >> 8) as u8, 7].repeat(128)].concat()).collect()
}

fn read(lab: &mut Lab, host: &Host, lun: u16, lba: u64, sectors: u64) -> Vec<u8> {
    let pieces = (0..sectors).step_by(2048).map(|at| (lba + at, (sectors - at).min(2048)));
    pieces.flat_map(|(lba, count)| host.read(lab, lun, lba as u32, count as u16)).collect()
}

fn write(lab: &mut Lab, host: &Host, lun: u16, lba: u64, data: &[u8]) {
    for (n, piece) in data.chunks(MIB as usize).enumerate() {
        host.write(lab, lun, lba as u32 + n as u32 * 2048, piece);
    }
}

#[test]
fn both_sides_go_their_own_ways() {
    for (seed, shards) in [(1, 1), (2, 3), (3, 2)] {
        let (mut lab, host) = array(seed, shards, seed == 3);
        let sectors = 16 * SECTORS;
        let mut source = pattern(1, sectors);
        write(&mut lab, &host, 0, 0, &source);
        let before = stored(&mut lab);
        // in other lanes, in other places of their pages
        let (there, again) = (3 * SECTORS + 24, 40 * SECTORS + 1024);
        copied(&mut lab, &host, (0, 0), (1, there), sectors);
        copied(&mut lab, &host, (0, 0), (0, again), sectors / 2);
        // a copy of a copy
        copied(&mut lab, &host, (1, there), (1, again), sectors / 2);
        let grown = stored(&mut lab) - before;
        assert!(grown < MIB, "seed {seed}: {grown} bytes for 32 MiB");
        let mut copy = source.clone();
        assert!(read(&mut lab, &host, 1, there, sectors) == copy, "seed {seed}");
        // both are overwritten, the copy also in parts of its blocks
        let new = pattern(2, 2 * SECTORS);
        write(&mut lab, &host, 0, 100, &new);
        source[100 * 512..][..new.len()].copy_from_slice(&new);
        for at in [0, 9, 5000] {
            write(&mut lab, &host, 1, there + at, &[9; 3 * 512]);
            copy[at as usize * 512..][..3 * 512].fill(9);
        }
        let check = |lab: &mut Lab, host: &Host| {
            assert!(read(lab, host, 0, 0, sectors) == source, "seed {seed}: the source");
            assert!(read(lab, host, 1, there, sectors) == copy, "seed {seed}: the copy");
            for lun in [0, 1] {
                assert!(read(lab, host, lun, again, sectors / 2) == pattern(1, sectors / 2), "seed {seed}");
            }
        };
        check(&mut lab, &host);
        lab.pass(Nanos::from_secs(20));
        let flush = |lun| Request::new(Lun::new(lun).unwrap().emit(), cdb(&[0x35]));
        [0, 1].into_iter().for_each(|lun| assert_eq!(host.run(&mut lab, flush(lun)).status, 0));
        lab.simulation.world.power_loss(0);
        host.kill(&mut lab);
        lab.restart();
        let host = login(&mut lab);
        check(&mut lab, &host);
        lab.pass(Nanos::from_secs(20));
        check(&mut lab, &host);
        // nothing is left at the end
        let order = CopyOrder::Snapshot { snapshots: vec![("copy".to_owned(), "then".to_owned())] };
        lab.change(Command::Copy { order, dry_run: false });
        copied(&mut lab, &host, (1, there), (0, 20 * SECTORS), SECTORS);
        let (volume, snapshot) = ("copy".to_owned(), "then".to_owned());
        lab.change(Command::Copy { order: CopyOrder::DeleteSnapshot { volume, snapshot }, dry_run: false });
        check(&mut lab, &host);
        for name in ["disk", "copy"] {
            let name = name.to_owned();
            lab.change(Command::VolumeDelete { name, unmap: true, eradicate: true, dry_run: false });
        }
        lab.pass(Nanos::from_secs(60));
        let left = stored(&mut lab);
        assert!(left < MIB, "seed {seed}: {left} bytes are left");
    }
}

/// At every moment, each block of the destination has its old or its new content, and the source is intact.
#[test]
fn the_power_goes_in_the_middle_of_a_copy() {
    let mut copied = [0; 2];
    for seed in 100..124 {
        let (mut lab, host) = array(seed, 2, false);
        let sectors = 4 * SECTORS;
        let (source, old) = (pattern(1, sectors), pattern(5, sectors));
        write(&mut lab, &host, 0, 0, &source);
        write(&mut lab, &host, 1, 8, &old);
        let targets = [copy_target(&mut lab, &host, 0), copy_target(&mut lab, &host, 1)];
        let copy = host.send(&mut lab, extended_copy(0, &targets, (0, 0), (1, 8), sectors));
        lab.pass(Nanos(1 + (seed - 100) * 130_000));
        let answered = host.completion(copy).is_some();
        lab.simulation.world.power_loss(0);
        host.kill(&mut lab);
        lab.restart();
        let host = login(&mut lab);
        assert!(read(&mut lab, &host, 0, 0, sectors) == source, "seed {seed}: the source");
        let there = read(&mut lab, &host, 1, 8, sectors);
        let mut new = 0;
        for at in (0..there.len()).step_by(4096) {
            let block = at..at + 4096;
            let is_new = there[block.clone()] == source[block.clone()];
            assert!(is_new || there[block.clone()] == old[block], "seed {seed}, byte {at}");
            new += usize::from(is_new);
        }
        assert!(!answered || new == there.len() / 4096, "seed {seed}: answered, and gone");
        copied[usize::from(new > 0)] += 1;
        // the layer that was frozen for it causes no problem
        write(&mut lab, &host, 0, 0, &old);
        lab.pass(Nanos::from_secs(12));
        let again = read(&mut lab, &host, 1, 8, sectors);
        assert!(again == there && read(&mut lab, &host, 0, 0, sectors) == old, "seed {seed}");
    }
    assert!(copied.iter().all(|&count| count > 2), "cut off before and after: {copied:?}");
}

/// Blocks that are references, and blocks that only references keep; together with the latter, the volumes' use is the
/// whole use.
fn references(lab: &mut Lab) -> (u64, u64) {
    let status = lab.status();
    let PoolReferences { copied_bytes, kept_bytes } = status.pools[0].references;
    let volumes = status.volumes.iter().map(|volume| volume.space);
    let spaces = volumes.chain(status.bin.iter().map(|binned| binned.space));
    let held = spaces.map(|space| space.unwrap().used_bytes).sum::<u64>() + kept_bytes;
    let used = status.pools[0].used_bytes;
    // the map, and the catalog
    assert!((held..held + MIB).contains(&used), "{used} bytes are used, {held} are accounted for");
    (copied_bytes / 4096, kept_bytes / 4096)
}

/// Blocks that only a copy keeps, because the source has unmapped them, are freed when the copy is gone, and are
/// reported until then.
#[test]
fn what_a_copy_has_kept_is_not_said_to_be_nothing() {
    let (mut lab, host) = array(1, 2, false);
    let (sectors, order) = (16 * SECTORS, |name: &str| {
        let name = name.to_owned();
        Command::VolumeDelete { name, unmap: true, eradicate: true, dry_run: false }
    });
    write(&mut lab, &host, 0, 0, &pattern(1, sectors));
    copied(&mut lab, &host, (0, 0), (1, 0), sectors);
    assert_eq!(host.run(&mut lab, unmap(0, 0, sectors as u32)).status, 0);
    let before = stored(&mut lab);
    assert!(before >= 16 * MIB, "{before}: the copy keeps it");
    let steps = lab.change(order("copy")).steps;
    assert!(frees(&steps, true), "{steps:?}");
    lab.pass(Nanos::from_secs(30));
    let after = stored(&mut lab);
    assert!(after + 15 * MIB < before, "{after} after {before}");
    let steps = lab.change(order("disk")).steps;
    assert!(frees(&steps, false), "no copy is left: {steps:?}");
}

/// As long as a volume or snapshot uses the copied layer, it counts there; afterwards it counts with the copies alone,
/// to the block.
#[test]
fn what_copies_read_elsewhere_and_what_only_they_keep_is_told_to_the_block() {
    for (seed, shards) in [(1, 1), (2, 3)] {
        let (mut lab, host) = array(seed, shards, false);
        let (blocks, sectors) = (4 * MIB / 4096, 4 * SECTORS);
        let there = 7 * SECTORS + 24;
        write(&mut lab, &host, 0, 0, &pattern(1, sectors));
        assert_eq!(references(&mut lab), (0, 0), "seed {seed}");
        copied(&mut lab, &host, (0, 0), (1, there), sectors);
        assert_eq!(references(&mut lab), (blocks, 0), "seed {seed}: the source stands on what was copied");
        // both are overwritten: 256 blocks of the source, 100 whole ones and part of one of the copy
        write(&mut lab, &host, 0, 0, &pattern(2, SECTORS));
        write(&mut lab, &host, 1, there, &pattern(3, 800));
        write(&mut lab, &host, 1, there + 1000 * 8 + 3, &[4; 512]);
        let left = blocks - 101;
        assert_eq!(references(&mut lab), (left, 0), "seed {seed}: overwritten");
        lab.pass(Nanos::from_secs(2));
        // from the present source: blocks written since are frozen, too, above the earlier ones
        copied(&mut lab, &host, (0, 0), (1, 30 * SECTORS), 2 * SECTORS);
        let left = left + 512;
        assert_eq!(references(&mut lab), (left, 0), "seed {seed}: copied again");
        // a snapshot of the copy holds its references, too; overwriting them then removes none of them
        let snapshot = ("copy".to_owned(), "then".to_owned());
        let order = CopyOrder::Snapshot { snapshots: vec![snapshot.clone()] };
        lab.change(Command::Copy { order, dry_run: false });
        write(&mut lab, &host, 1, 30 * SECTORS, &pattern(5, SECTORS));
        assert_eq!(references(&mut lab), (left, 0), "seed {seed}: a snapshot of the copy");
        let (volume, snapshot) = snapshot;
        lab.change(Command::Copy { order: CopyOrder::DeleteSnapshot { volume, snapshot }, dry_run: false });
        lab.pass(Nanos::from_secs(20));
        let left = left - 256;
        assert_eq!(references(&mut lab), (left, 0), "seed {seed}: the snapshot is gone");
        // a snapshot above the copied layer is reason enough to keep it, also in the bin
        let order = CopyOrder::Snapshot { snapshots: vec![("disk".to_owned(), "last".to_owned())] };
        lab.change(Command::Copy { order, dry_run: false });
        let name = "disk".to_owned();
        lab.change(Command::VolumeDelete { name, unmap: true, eradicate: false, dry_run: false });
        lab.pass(Nanos::from_secs(20));
        assert_eq!(references(&mut lab), (left, 0), "seed {seed}: the source is in the bin");
        lab.change(Command::Copy {
            order: CopyOrder::Eradicate { volume: "disk".to_owned() },
            dry_run: false,
        });
        lab.pass(Nanos::from_secs(20));
        assert_eq!(references(&mut lab), (left, blocks + 256), "seed {seed}: the source is gone");
        lab.simulation.world.power_loss(0);
        host.kill(&mut lab);
        lab.restart();
        let host = Host::log_in(&mut lab, 0, ALPHA, 1);
        host.settle(&mut lab, 1);
        assert_eq!(references(&mut lab), (left, blocks + 256), "seed {seed}: after a start");
        // nothing refers to the second of the two states any more: the first takes over its blocks
        write(&mut lab, &host, 1, 31 * SECTORS, &pattern(6, SECTORS));
        let flush = || Request::new(Lun::new(1).unwrap().emit(), cdb(&[0x35]));
        assert_eq!(host.run(&mut lab, flush()).status, 0);
        lab.pass(Nanos::from_secs(20));
        assert_eq!(
            references(&mut lab),
            (blocks - 101, blocks),
            "seed {seed}: what was copied again is gone"
        );
        write(&mut lab, &host, 1, there, &pattern(7, sectors));
        assert_eq!(references(&mut lab), (0, blocks), "seed {seed}: no reference is left");
        assert_eq!(host.run(&mut lab, flush()).status, 0);
        lab.pass(Nanos::from_secs(20));
        assert_eq!(references(&mut lab), (0, 0), "seed {seed}: given back");
    }
}
