//! Raw volumes: they serve all sectors of a device, have its size, and are online as long as the device is there.

mod common;

use api::{Command, Reply};
use api::{
    CommandErrorKind, DriveNote, Health, NewBacking, NewPool, NewVolume, PortalOptions, VolumeStatus,
    VolumeStep,
};
use api::{ProblemCode, Subject};
use base::Nanos;
use common::Lab;
use common::host::{Host, cdb, read_10, sense, write_10};
use iscsi::initiator::Request;
use sim::{DriveNumber, DriveOptions, World};

const ALPHA: &str = "iqn.2001-04.com.example:alpha";
const DEVICE: &str = "/dev/sdx";
const MIB: u64 = 1 << 20;
const SECTOR: u64 = 512;
/// Sectors of a device that ends inside a 4 KiB block.
const SECTORS: u64 = 8 * MIB / SECTOR + 3;
const CAPACITY_CHANGED: (u8, u8) = (0x2A, 0x09);
/// The time within which changes of a device are noticed without a command.
const NOTICED: Nanos = Nanos::from_secs(10);

fn raw(block_bytes: u32) -> NewVolume {
    let (name, backing) = ("old-lun".to_owned(), NewBacking::Raw(DEVICE.to_owned()));
    NewVolume { name, backing, size_bytes: None, block_bytes, write_back: false }
}

/// A raw volume as LUN 0 of a host.
fn array(seed: u64, shards: u16) -> (Lab, DriveNumber, Host) {
    let world = World::new(seed, None);
    let device = world.add_drive(DriveOptions::new(DEVICE, SECTORS * SECTOR));
    let mut lab = Lab::in_world(world, shards, &[]);
    lab.change(Command::VolumeCreate { volume: raw(512), dry_run: false });
    lab.create_host("alpha", ALPHA);
    lab.map("old-lun", "alpha", 0, false);
    let host = log_in(&mut lab, shards - 1);
    (lab, device, host)
}

fn log_in(lab: &mut Lab, shard: u16) -> Host {
    let host = Host::log_in(lab, shard, ALPHA, 1);
    host.settle(lab, 0);
    host
}

fn capacity_sectors(lab: &mut Lab, host: &Host) -> u64 {
    let mut request = Request::new(0, cdb(&[0x9E, 0x10, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 32]));
    request.expected_in = 32;
    let data = host.run(lab, request).data_in.to_vec();
    u64::from_be_bytes(data[..8].try_into().expect("32 bytes")) + 1
}

fn volume(lab: &mut Lab) -> VolumeStatus {
    lab.status().volumes.remove(0)
}

fn sectors(byte: u8, count: u64) -> Vec<u8> {
    vec![byte; (count * SECTOR) as usize]
}

#[test]
fn every_sector_of_a_device_is_exported() {
    for shards in [1, 2] {
        let (mut lab, _, host) = array(1, shards);
        assert_eq!(volume(&mut lab).size_bytes, SECTORS * SECTOR);
        assert_eq!(capacity_sectors(&mut lab, &host), SECTORS);
        let last = SECTORS as u32 - 1;
        host.write(&mut lab, 0, last, &sectors(7, 1));
        host.write(&mut lab, 0, last - 7, &sectors(5, 6));
        assert_eq!(host.read(&mut lab, 0, last, 1), sectors(7, 1));
        assert_eq!(
            host.read(&mut lab, 0, last - 7, 8)[..],
            [sectors(5, 6), sectors(0, 1), sectors(7, 1)].concat()
        );
        let behind = host.run(&mut lab, read_10(0, last, 2));
        assert_eq!(sense(&behind), (5, 0x21, 0));
        host.log_out(&mut lab);
        lab.kill();
        lab.restart();
        let host = log_in(&mut lab, 0);
        assert_eq!(host.read(&mut lab, 0, last, 1), sectors(7, 1));
        host.log_out(&mut lab);
    }
}

#[test]
fn what_blocks_of_4_kib_leave_out_is_said() {
    let world = World::new(2, None);
    world.add_drive(DriveOptions::new(DEVICE, SECTORS * SECTOR));
    let mut lab = Lab::in_world(world, 1, &[]);
    let steps = lab.change(Command::VolumeCreate { volume: raw(4096), dry_run: true }).steps;
    let left_out = VolumeStep::LeaveOutBytes { device: DEVICE.to_owned(), bytes: 1536 };
    assert_eq!(steps[1..], [left_out.into()]);
    let steps = lab.change(Command::VolumeCreate { volume: raw(512), dry_run: true }).steps;
    assert_eq!(steps.len(), 1, "{steps:?}");
    lab.change(Command::VolumeCreate { volume: raw(4096), dry_run: false });
    assert_eq!(volume(&mut lab).size_bytes, 8 * MIB);
    // an invalid block size is an error, and the program continues
    let error = lab.command(Command::VolumeCreate { volume: raw(0), dry_run: true }).unwrap_err();
    assert_eq!(error.kind, CommandErrorKind::InUse, "{error}");
}

#[test]
fn a_raw_volume_grows_with_its_device() {
    for shards in [1, 3] {
        let (mut lab, device, host) = array(3, shards);
        let mut end = SECTORS;
        host.write(&mut lab, 0, end as u32 - 1, &sectors(7, 1));
        for more in [2, 8, 1 << 12] {
            lab.simulation.world.resize(device, (end + more) * SECTOR);
            lab.pass(NOTICED);
            assert_eq!(host.settle(&mut lab, 0), [CAPACITY_CHANGED], "told once");
            assert_eq!(capacity_sectors(&mut lab, &host), end + more);
            assert_eq!(volume(&mut lab).size_bytes, (end + more) * SECTOR);
            assert_eq!(lab.status().health, Health::Healthy);
            host.write(&mut lab, 0, end as u32, &sectors(9, more));
            assert_eq!(host.read(&mut lab, 0, end as u32 - 1, 2), [sectors(7, 1), sectors(9, 1)].concat());
            host.write(&mut lab, 0, (end + more) as u32 - 1, &sectors(7, 1));
            end += more;
        }
        lab.pass(NOTICED);
        assert_eq!(host.settle(&mut lab, 0), []);
        // while the array is down, too
        host.log_out(&mut lab);
        lab.kill();
        lab.simulation.world.resize(device, (end + 5) * SECTOR);
        lab.restart();
        assert_eq!(volume(&mut lab).size_bytes, end * SECTOR, "what hosts were told of stays");
        lab.pass(NOTICED);
        assert_eq!(volume(&mut lab).size_bytes, (end + 5) * SECTOR);
        let host = log_in(&mut lab, 0);
        assert_eq!(host.read(&mut lab, 0, end as u32 - 1, 1), sectors(7, 1));
        host.log_out(&mut lab);
    }
}

#[test]
fn a_device_that_became_smaller_fails_behind_its_end_and_is_a_problem() {
    let (mut lab, device, host) = array(4, 2);
    let end = 4 * MIB / SECTOR + 5;
    host.write(&mut lab, 0, end as u32 - 1, &sectors(7, 1));
    lab.simulation.world.resize(device, end * SECTOR);
    lab.pass(NOTICED);
    let status = lab.status();
    let problem = &status.problems[0];
    assert_eq!((problem.health(), problem.code()), (Health::Degraded, ProblemCode::VolumeDeviceSmaller));
    assert_eq!(problem.subject, Subject::volume("old-lun"));
    assert!(
        status.problems[0].reason().contains("became smaller: 4.0 MiB of 8.0 MiB are left"),
        "{status:#?}"
    );
    assert_eq!(
        (status.volumes[0].health, status.volumes[0].size_bytes),
        (Health::Degraded, SECTORS * SECTOR)
    );
    assert_eq!(host.settle(&mut lab, 0), [], "hosts were told of a size, which stays");
    assert_eq!(host.read(&mut lab, 0, end as u32 - 1, 1), sectors(7, 1));
    for lba in [end as u32 - 1, SECTORS as u32 - 2] {
        assert_eq!(sense(&host.run(&mut lab, read_10(0, lba, 2))), (3, 0x11, 0));
        assert_eq!(sense(&host.run(&mut lab, write_10(0, lba, &sectors(1, 2)))), (3, 0x0C, 0));
    }
    host.write(&mut lab, 0, end as u32 - 1, &sectors(8, 1));
    // a start refuses a device that lacks sectors which a host believes to be there
    host.log_out(&mut lab);
    lab.kill();
    lab.restart();
    let problem = lab.status().problems.remove(0);
    assert_eq!((problem.health(), problem.code()), (Health::Offline, ProblemCode::VolumeDeviceUnusable));
    assert!(problem.reason().contains("it has 4.0 MiB now, less than the volume"), "{problem:?}");
    lab.simulation.world.resize(device, SECTORS * SECTOR);
    lab.pass(NOTICED);
    assert_eq!(lab.status().health, Health::Healthy);
    // and while it is served
    lab.simulation.world.resize(device, end * SECTOR);
    lab.pass(NOTICED);
    assert_eq!(lab.status().health, Health::Degraded);
    lab.simulation.world.resize(device, SECTORS * SECTOR);
    lab.pass(NOTICED);
    assert_eq!(lab.status().health, Health::Healthy);
    let host = log_in(&mut lab, 1);
    assert_eq!(host.read(&mut lab, 0, SECTORS as u32 - 1, 1).len(), 512);
    host.log_out(&mut lab);
}

#[test]
fn a_device_that_goes_while_nothing_is_asked_of_it_is_noticed_and_taken_back() {
    let (mut lab, device, host) = array(5, 2);
    host.write(&mut lab, 0, 800, &sectors(7, 8));
    lab.pass(Nanos::from_secs(60));
    lab.simulation.world.vanish(device, None, false);
    lab.pass(NOTICED);
    let problem = lab.status().problems.remove(0);
    assert_eq!(
        (problem.code(), &problem.subject),
        (ProblemCode::VolumeDeviceUnusable, &Subject::volume("old-lun"))
    );
    assert!(problem.reason().contains("the drive is gone"), "{problem:?}");
    let refused = host.run(&mut lab, read_10(0, 800, 8));
    assert_eq!(sense(&refused).0, 2, "not ready");
    lab.simulation.world.return_drive(device);
    lab.pass(NOTICED);
    assert_eq!(lab.status().health, Health::Healthy, "{:?}", lab.status().problems);
    assert_eq!(host.read(&mut lab, 0, 800, 8), sectors(7, 8));
    // one that is larger when it is back
    lab.simulation.world.vanish(device, None, false);
    lab.pass(NOTICED);
    lab.simulation.world.resize(device, (SECTORS + 1) * SECTOR);
    lab.simulation.world.return_drive(device);
    lab.pass(Nanos(2 * NOTICED.0));
    assert_eq!(host.settle(&mut lab, 0), [CAPACITY_CHANGED]);
    assert_eq!(capacity_sectors(&mut lab, &host), SECTORS + 1);
}

/// A device that hangs does not count as gone, delays nobody who looks at devices, and is checked only once at a time.
#[test]
fn a_device_that_hangs_is_waited_for() {
    let (mut lab, device, host) = array(6, 2);
    lab.simulation.world.stick(device, Nanos::from_secs(100));
    lab.pass(Nanos::from_secs(60));
    assert_eq!(lab.status().health, Health::Healthy);
    lab.change(Command::Reload { portals: vec![PortalOptions::from(common::portal(0))], drives: Vec::new() });
    lab.pass(Nanos::from_secs(60));
    lab.simulation.world.vanish(device, None, false);
    lab.pass(NOTICED);
    assert_eq!(lab.status().health, Health::Offline);
    drop(host);
}

#[test]
fn a_drive_of_a_pool_that_grew_is_shown_with_what_is_not_used() {
    let world = World::new(7, None);
    let paths = ["/dev/sda".to_owned(), "/dev/sdb".to_owned()];
    let drives = paths.each_ref().map(|path| world.add_drive(DriveOptions::new(path, 1 << 30)));
    let mut lab = Lab::in_world(world, 1, &["/dev/sda", "/dev/sdb"]);
    let pool = NewPool::new("fast", "mirror-2", paths.to_vec());
    lab.change(Command::PoolCreate { pool, dry_run: false });
    let shown = |lab: &mut Lab| {
        let Ok(Reply::Drives(drives)) = lab.command(Command::DriveList) else { panic!("no drives") };
        drives.into_iter().map(|drive| (drive.size_bytes, drive.note)).collect::<Vec<_>>()
    };
    assert_eq!(shown(&mut lab), [(1 << 30, None), (1 << 30, None)]);
    lab.simulation.world.resize(drives[1], 3 << 30);
    let now = shown(&mut lab);
    assert_eq!((&now[0], now[1].0), (&(1 << 30, None), 3 << 30));
    let is_larger =
        |note: &DriveNote| matches!(note, DriveNote::Larger { unused_bytes: 2_147_000_000.., .. });
    assert!(now[1].1.as_ref().is_some_and(is_larger), "{now:?}");
}
