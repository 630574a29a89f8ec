//! A volume is made larger while hosts use it: they are notified, nothing is lost, and the new blocks are zeros.

mod common;

use api::Command;
use api::{CommandErrorKind, CopyOrder, Made, NewBacking, NewPool, NewVolume, VolumeStep};
use common::Lab;
use common::host::{Host, cdb, read_10, sense, write_10};
use iscsi::initiator::Request;
use sim::{DriveOptions, World};

const ALPHA: &str = "iqn.2001-04.com.example:alpha";
const BETA: &str = "iqn.2001-04.com.example:beta";
const MIB: u64 = 1 << 20;
const CAPACITY_CHANGED: (u8, u8, u8) = (6, 0x2A, 0x09);

/// A volume of 1 MiB, in memory or in a pool, as LUN 0 of both hosts.
fn array(seed: u64, shards: u16, in_pool: bool) -> Lab {
    let world = World::new(seed, None);
    let drives: Vec<String> = (0..3).map(|n| format!("/dev/nvme{n}n1")).collect();
    for path in &drives {
        world.add_drive(DriveOptions::new(path, 1 << 30));
    }
    let mut lab = Lab::in_world(world, shards, &drives.iter().map(String::as_str).collect::<Vec<_>>());
    let backing = if in_pool {
        let (name, protection) = ("fast".to_owned(), "mirror-2".to_owned());
        let pool = NewPool::new(name.clone(), protection, drives);
        lab.change(Command::PoolCreate { pool, dry_run: false });
        NewBacking::Pool(name)
    } else {
        NewBacking::Memory
    };
    let (name, size_bytes) = ("disk".to_owned(), Some(MIB));
    let volume = NewVolume { name, backing, size_bytes, block_bytes: 512, write_back: false };
    lab.change(Command::VolumeCreate { volume, dry_run: false });
    for (name, initiator) in [("alpha", ALPHA), ("beta", BETA)] {
        lab.create_host(name, initiator);
        lab.map("disk", name, 0, false);
    }
    lab
}

fn login(lab: &mut Lab, shard: u16, name: &str) -> Host {
    let host = Host::log_in(lab, shard, name, 1);
    host.settle(lab, 0);
    host
}

fn resize(size_bytes: u64, dry_run: bool) -> Command {
    Command::VolumeResize { name: "disk".to_owned(), size_bytes, force: false, dry_run }
}

fn shrink(size_bytes: u64) -> Command {
    Command::VolumeResize { name: "disk".to_owned(), size_bytes, force: true, dry_run: false }
}

/// READ CAPACITY (10) and (16), which must say the same.
fn capacity_bytes(lab: &mut Lab, host: &Host) -> u64 {
    let mut ten = Request::new(0, cdb(&[0x25]));
    ten.expected_in = 8;
    let ten = host.run(lab, ten);
    assert_eq!(ten.status, 0, "{:x?}", sense(&ten));
    let last = u32::from_be_bytes(ten.data_in.to_vec()[..4].try_into().unwrap());
    let mut sixteen = Request::new(0, cdb(&[0x9E, 0x10, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 32]));
    sixteen.expected_in = 32;
    let sixteen = host.run(lab, sixteen).data_in.to_vec();
    assert_eq!(u64::from_be_bytes(sixteen[..8].try_into().unwrap()), u64::from(last));
    (u64::from(last) + 1) * 512
}

#[test]
fn hosts_are_told_and_find_their_data_and_zeros_behind_it() {
    for (seed, shards, in_pool) in [(1, 1, false), (2, 3, false), (3, 1, true), (4, 3, true)] {
        let mut lab = array(seed, shards, in_pool);
        let hosts = [login(&mut lab, 0, ALPHA), login(&mut lab, shards - 1, BETA)];
        hosts[0].write(&mut lab, 0, 0, &vec![7; MIB as usize]);
        let dry = lab.change(resize(3 * MIB, true));
        let (before_bytes, after_bytes) = (MIB, 3 * MIB);
        let step = VolumeStep::ResizeVolume { volume: "disk".to_owned(), before_bytes, after_bytes };
        assert_eq!((dry.steps, dry.made), (vec![step.into()], None));
        assert_eq!(capacity_bytes(&mut lab, &hosts[1]), MIB);
        let change = lab.change(resize(3 * MIB, false));
        assert_eq!(change.hosts_affected, ["alpha", "beta"]);
        assert!(matches!(change.made, Some(Made::Volume(volume)) if volume.size_bytes == 3 * MIB));
        for host in &hosts {
            let told = host.run(&mut lab, read_10(0, 0, 1));
            assert_eq!((told.status, sense(&told)), (2, CAPACITY_CHANGED), "seed {seed}");
            assert_eq!(capacity_bytes(&mut lab, host), 3 * MIB);
        }
        assert!(hosts[1].read(&mut lab, 0, 0, 2048) == [7; MIB as usize]);
        assert!(hosts[1].read(&mut lab, 0, 2048, 4096) == [0; 2 * MIB as usize]);
        // across the old end
        hosts[1].write(&mut lab, 0, 2040, &[9; 8192]);
        assert!(hosts[0].read(&mut lab, 0, 2040, 16) == [9; 8192]);
        hosts[1].write(&mut lab, 0, 6143, &[9; 512]);
        let outside = hosts[0].run(&mut lab, read_10(0, 6144, 1));
        assert_eq!(sense(&outside), (5, 0x21, 0));
        lab.simulation.world.power_loss(0);
        hosts.into_iter().for_each(|host| host.kill(&mut lab));
        lab.restart();
        let host = login(&mut lab, 0, ALPHA);
        if in_pool {
            assert_eq!(capacity_bytes(&mut lab, &host), 3 * MIB);
            assert!(host.read(&mut lab, 0, 2040, 16) == [9; 8192]);
            lab.change(resize(256 * MIB, false));
            host.settle(&mut lab, 0);
            host.write(&mut lab, 0, (256 * MIB / 512 - 16) as u32, &[5; 8192]);
            assert!(host.read(&mut lab, 0, (256 * MIB / 512 - 16) as u32, 16) == [5; 8192]);
        }
    }
}

#[test]
fn a_volume_does_not_outgrow_its_layer() {
    let mut lab = array(5, 2, true);
    let cases = [
        (MIB, CommandErrorKind::Invalid, "has 1048576 bytes already"),
        (2 * MIB + 512, CommandErrorKind::Invalid, "multiple of 4096"),
        (256 * MIB + 4096, CommandErrorKind::Full, "256 times the size it was made with"),
    ];
    for (size_bytes, kind, text) in cases {
        let error = lab.command(resize(size_bytes, false)).unwrap_err();
        assert_eq!(error.kind, kind, "{error}");
        assert!(error.message.contains(text), "{error}");
    }
    // grown to the edge in steps, the limit stays where it was
    lab.change(resize(256 * MIB, false));
    assert_eq!(lab.command(resize(257 * MIB, false)).unwrap_err().kind, CommandErrorKind::Full);
    assert_eq!(lab.status().volumes[0].size_bytes, 256 * MIB);
}

/// The shards learn the new size one after the other: meanwhile, a write to the new part is refused or done.
#[test]
fn writes_to_what_is_new_race_with_the_change() {
    for (seed, in_pool) in (10..20).flat_map(|seed| [(seed, false), (seed, true)]) {
        let mut lab = array(seed, 3, in_pool);
        let hosts = [login(&mut lab, 1, ALPHA), login(&mut lab, 2, BETA)];
        let answer = lab.send_command(resize(2 * MIB, false));
        let mut told = [false; 2];
        for (index, host) in hosts.iter().enumerate() {
            loop {
                let write = host.run(&mut lab, write_10(0, 2048 + index as u32 * 8, &[3; 4096]));
                match (write.status, sense(&write)) {
                    (0, _) => break,
                    (2, CAPACITY_CHANGED) => told[index] = true,
                    // not there yet, here or at the volume's home
                    (2, (5, 0x21, 0) | (2, 4, _)) => {}
                    other => panic!("seed {seed}: {other:x?}"),
                }
            }
        }
        assert_eq!(told, [true; 2], "seed {seed}");
        lab.wait(|| answer.lock().unwrap().is_some());
        assert!(hosts[0].read(&mut lab, 0, 2048, 16) == [3; 8192], "seed {seed}");
    }
}

/// Blocks behind the new end are given up only with --force, and never seen again, even after a power failure in the
/// middle.
#[test]
fn a_volume_that_gets_smaller_forgets_what_was_behind() {
    for seed in 30..42 {
        let mut lab = array(seed, 1 + (seed % 3) as u16, true);
        let host = login(&mut lab, 0, ALPHA);
        lab.change(resize(8 * MIB, false));
        host.settle(&mut lab, 0);
        host.write(&mut lab, 0, 0, &vec![1; MIB as usize]);
        host.write(&mut lab, 0, 6 * 2048, &vec![6; MIB as usize]);
        let snapshots = vec![("disk".to_owned(), "before".to_owned())];
        let order = CopyOrder::Snapshot { snapshots };
        if seed % 2 == 0 {
            lab.change(Command::Copy { order, dry_run: false });
        }
        let used = lab.status().volumes[0].space.unwrap().used_bytes;
        let refused = lab.command(resize(4 * MIB, false)).unwrap_err();
        assert_eq!(refused.kind, CommandErrorKind::InUse);
        assert!(refused.message.contains("holds data behind 4 MiB") && refused.hint.contains("--force"));
        lab.change(resize(7 * MIB, false));
        let told = host.settle(&mut lab, 0);
        assert!(told.contains(&(0x2A, 0x09)), "{told:x?}");
        if seed % 4 < 2 {
            let answer = lab.send_command(shrink(4 * MIB));
            lab.pass(base::Nanos((seed - 29) * 400_000));
            let answered = answer.lock().unwrap().is_some();
            lab.simulation.world.power_loss(0);
            host.kill(&mut lab);
            lab.restart();
            let now = lab.status().volumes[0].size_bytes;
            assert!(now == 4 * MIB || now == 7 * MIB && !answered, "seed {seed}: {now}");
            if now == 7 * MIB {
                lab.change(shrink(4 * MIB));
            }
        } else {
            lab.change(shrink(4 * MIB));
            host.kill(&mut lab);
        }
        let host = login(&mut lab, 0, ALPHA);
        assert_eq!(capacity_bytes(&mut lab, &host), 4 * MIB);
        assert_eq!(sense(&host.run(&mut lab, read_10(0, 4 * 2048, 1))), (5, 0x21, 0));
        if seed % 2 == 1 {
            assert_eq!(lab.status().volumes[0].space.unwrap().used_bytes, used - MIB, "seed {seed}");
        }
        lab.change(resize(8 * MIB, false));
        host.settle(&mut lab, 0);
        assert!(host.read(&mut lab, 0, 0, 2048) == vec![1; MIB as usize]);
        assert!(host.read(&mut lab, 0, 4 * 2048, 4 * 2048) == vec![0; 4 * MIB as usize], "seed {seed}");
        if seed % 2 == 0 {
            // its earlier content, with the earlier size
            lab.change(resize(9 * MIB, false));
            lab.unmap("disk", "alpha");
            lab.unmap("disk", "beta");
            let (volume, snapshot) = ("disk".to_owned(), "before".to_owned());
            lab.change(Command::Copy { order: CopyOrder::RollBack { volume, snapshot }, dry_run: false });
            lab.map("disk", "alpha", 0, false);
            host.settle(&mut lab, 0);
            assert_eq!(capacity_bytes(&mut lab, &host), 8 * MIB);
            assert!(host.read(&mut lab, 0, 6 * 2048, 2048) == vec![6; MIB as usize]);
        }
    }
}

/// Two hosts write all over a volume that becomes smaller: writes behind the new end are refused, and no others.
#[test]
fn writes_to_what_goes_away_race_with_the_change() {
    for seed in 50..60 {
        let mut lab = array(seed, 3, true);
        lab.change(resize(4 * MIB, false));
        let hosts = [login(&mut lab, 1, ALPHA), login(&mut lab, 2, BETA)];
        let answer = lab.send_command(shrink(2 * MIB));
        let tags: Vec<_> = (0..40u32)
            .map(|n| hosts[n as usize % 2].send(&mut lab, write_10(0, n % 8 * 1024, &[3; 4096])))
            .collect();
        lab.wait(|| answer.lock().unwrap().is_some());
        lab.pass(base::Nanos::from_secs(1));
        for (n, tag) in tags.into_iter().enumerate() {
            let write = hosts[n % 2].completion(tag).expect("a second is long");
            let refused = [(5, 0x21, 0), CAPACITY_CHANGED, (2, 4, 0)].contains(&sense(&write));
            assert!(write.status == 0 || refused, "seed {seed}: {:x?}", sense(&write));
        }
        hosts.iter().for_each(|host| drop(host.settle(&mut lab, 0)));
        lab.change(resize(4 * MIB, false));
        hosts.iter().for_each(|host| drop(host.settle(&mut lab, 0)));
        assert!(hosts[0].read(&mut lab, 0, 2 * 2048, 2 * 2048) == vec![0; 2 * MIB as usize], "seed {seed}");
    }
}
