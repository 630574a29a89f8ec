//! The whole path: hosts, shards, lanes, drives. Acknowledged data is there after any failure.

mod common;

use api::Command;
use api::{Health, NewBacking, NewPool, NewVolume};
use api::{ProblemCode, Subject};
use base::Nanos;
use common::Lab;
use common::host::{Host, cdb, read_10, sense, write_10};
use iscsi::initiator::Request;
use sim::{DriveNumber, DriveOptions, World};
use wire::iscsi::TaskManagementFunction;

const ALPHA: &str = "iqn.2001-04.com.example:alpha";
const BETA: &str = "iqn.2001-04.com.example:beta";
const SECTORS: u64 = (16 << 20) / 512;

/// A pool of five drives with a volume that both hosts have as LUN 0.
fn array(seed: u64, shards: u16, protection: &str, write_back: bool) -> (Lab, Vec<DriveNumber>) {
    let world = World::new(seed, None);
    let paths: Vec<String> = (0..5).map(|n| format!("/dev/nvme{n}n1")).collect();
    let drives = paths.iter().map(|path| world.add_drive(DriveOptions::new(path, 1 << 30))).collect();
    let mut lab = Lab::in_world(world, shards, &paths.iter().map(String::as_str).collect::<Vec<_>>());
    let pool = NewPool::new("fast", protection, paths);
    lab.change(Command::PoolCreate { pool, dry_run: false });
    let volume = NewVolume {
        name: "vm-01".into(),
        backing: NewBacking::Pool("fast".into()),
        size_bytes: Some(SECTORS * 512),
        block_bytes: 512,
        write_back,
    };
    lab.change(Command::VolumeCreate { volume, dry_run: false });
    lab.create_host("alpha", ALPHA);
    lab.create_host("beta", BETA);
    lab.map("vm-01", "alpha", 0, false);
    lab.map("vm-01", "beta", 0, false);
    (lab, drives)
}

fn login(lab: &mut Lab, shard: u16, name: &str) -> Host {
    let host = Host::log_in(lab, shard, name, 1);
    host.settle(lab, 0);
    host
}

/// What the volume must hold, by sectors.
struct Model(Vec<u8>);

impl Model {
    fn write_some(&mut self, lab: &mut Lab, hosts: &[Host], rounds: usize) {
        let mut random = lab.simulation.world.fork_prng();
        for _ in 0..rounds {
            let sectors = random.skewed(1, 600);
            let lba = random.between(0, SECTORS - sectors);
            let byte = random.between(1, 255) as u8;
            let data: Vec<u8> = (0..sectors * 512).map(|n| byte ^ (n / 512) as u8).collect();
            let host = &hosts[random.between(0, hosts.len() as u64 - 1) as usize];
            host.write(lab, 0, lba as u32, &data);
            self.0[(lba * 512) as usize..][..data.len()].copy_from_slice(&data);
        }
    }

    fn check(&self, lab: &mut Lab, host: &Host) {
        for (index, expected) in self.0.chunks(1 << 20).enumerate() {
            let found = host.read(lab, 0, index as u32 * 2048, 2048);
            assert!(found == expected, "MiB {index} differs");
        }
    }
}

/// LOG SENSE of the logical block provisioning page, which a volume of a pool has from the beginning.
#[test]
fn a_new_volume_can_tell_of_its_pools_space_at_once() {
    for shards in [1, 3] {
        let (mut lab, _) = array(5, shards, "parity-1", false);
        let alpha = login(&mut lab, shards - 1, ALPHA);
        let mut request = Request::new(0, cdb(&[0x4D, 0, 0x40 | 0x0C, 0, 0, 0, 0, 0, 64, 0]));
        request.expected_in = 64;
        let answer = alpha.run(&mut lab, request);
        assert_eq!((answer.status, sense(&answer)), (0, (0, 0, 0)));
        assert_eq!(answer.data_in.to_vec()[..4], [0x8C, 0, 0, 24]);
    }
}

#[test]
fn acknowledged_writes_survive_power_loss_and_the_loss_of_drives() {
    for (seed, shards, protection, losable) in
        [(1, 1, "parity-1", 1), (2, 3, "parity-2", 2), (3, 2, "mirror-3", 2)]
    {
        let (mut lab, drives) = array(seed, shards, protection, false);
        let mut model = Model(vec![0; (SECTORS * 512) as usize]);
        for lost in [Some(0), Some(1).filter(|_| losable > 1)] {
            let hosts = [login(&mut lab, 0, ALPHA), login(&mut lab, shards - 1, BETA)];
            model.check(&mut lab, &hosts[0]);
            model.write_some(&mut lab, &hosts, 20);
            if let Some(lost) = lost {
                lab.simulation.world.vanish(drives[lost], None, false);
                model.write_some(&mut lab, &hosts, 20);
                model.check(&mut lab, &hosts[1]);
            }
            // in the middle of things
            for host in &hosts {
                host.send(&mut lab, read_10(0, 0, 8));
            }
            lab.simulation.world.power_loss(0);
            hosts.into_iter().for_each(|host| host.kill(&mut lab));
            lab.restart();
            assert_eq!(lab.start_result(), Ok(()), "seed {seed}");
        }
        let host = login(&mut lab, 0, ALPHA);
        model.check(&mut lab, &host);
        assert_eq!(lab.status().health, Health::Degraded);
    }
}

#[test]
fn aborted_writes_to_a_pool_do_not_land_later() {
    let (mut lab, drives) = array(4, 3, "parity-1", false);
    let alpha = login(&mut lab, 0, ALPHA);
    let beta = login(&mut lab, 2, BETA);
    let data = |byte: u8| vec![byte; 3 << 20];
    alpha.write(&mut lab, 0, 100, &data(1));
    lab.simulation.world.stick(drives[0], Nanos::from_secs(5));
    let stuck = alpha.send(&mut lab, write_10(0, 100, &data(2)));
    lab.pass(Nanos::from_secs(1));
    let reset = beta.manage(&mut lab, TaskManagementFunction::LogicalUnitReset, 0, None);
    beta.wait_result(&mut lab, reset);
    beta.settle(&mut lab, 0);
    beta.write(&mut lab, 0, 100, &data(3));
    lab.pass(Nanos::from_secs(20));
    let aborted = alpha.completion(stuck).expect("TAS is 1: whoever is aborted is told");
    assert_eq!(aborted.status, 0x40);
    assert!(beta.read(&mut lab, 0, 100, 6144) == data(3));
}

#[test]
fn a_write_back_volume_keeps_what_was_flushed() {
    let (mut lab, _) = array(5, 2, "parity-1", true);
    let alpha = login(&mut lab, 1, ALPHA);
    let mut model = Model(vec![0; (SECTORS * 512) as usize]);
    model.write_some(&mut lab, std::slice::from_ref(&alpha), 60);
    let mut synchronize = write_10(0, 0, &[]);
    synchronize.cdb = common::host::cdb(&[0x35]);
    assert_eq!(alpha.run(&mut lab, synchronize).status, 0);
    lab.simulation.world.power_loss(0);
    alpha.kill(&mut lab);
    lab.restart();
    let alpha = login(&mut lab, 0, ALPHA);
    model.check(&mut lab, &alpha);
}

#[test]
fn a_volume_that_is_deleted_gives_its_space_back_and_its_successor_is_empty() {
    let (mut lab, _) = array(6, 2, "parity-1", false);
    let alpha = login(&mut lab, 1, ALPHA);
    for index in 0..7 {
        alpha.write(&mut lab, 0, index * 4096, &vec![7; 2 << 20]);
    }
    let used = lab.status().pools[0].used_bytes;
    lab.change(Command::VolumeDelete { name: "vm-01".into(), unmap: true, eradicate: true, dry_run: false });
    let gone = alpha.run(&mut lab, read_10(0, 0, 8));
    assert_eq!(sense(&gone), (5, 0x25, 0));
    lab.pass(Nanos::from_secs(120));
    let after = lab.status().pools[0].used_bytes;
    assert!(after + (12 << 20) < used, "{used} bytes before, {after} after");
    let volume = NewVolume {
        name: "vm-01".into(),
        backing: NewBacking::Pool("fast".into()),
        size_bytes: Some(SECTORS * 512),
        block_bytes: 4096,
        write_back: false,
    };
    lab.change(Command::VolumeCreate { volume, dry_run: false });
    lab.map("vm-01", "alpha", 0, false);
    alpha.settle(&mut lab, 0);
    let mut read = read_10(0, 0, 8);
    read.expected_in = 8 * 4096;
    let completion = alpha.run(&mut lab, read);
    assert!(completion.status == 0 && completion.data_in.to_vec() == vec![0; 8 * 4096]);
}

#[test]
fn a_pool_that_lost_too_many_drives_says_so_to_its_hosts() {
    let (mut lab, drives) = array(7, 2, "parity-1", false);
    let alpha = login(&mut lab, 1, ALPHA);
    alpha.write(&mut lab, 0, 0, &[1; 4096]);
    lab.simulation.world.vanish(drives[0], None, false);
    lab.simulation.world.vanish(drives[1], None, false);
    let refused = alpha.run(&mut lab, write_10(0, 0, &[2; 4096]));
    assert_eq!((refused.status, sense(&refused).0), (2, 2), "not ready");
    let status = lab.status();
    assert_eq!((status.health, status.pools[0].health), (Health::Offline, Health::Offline));
    assert_eq!(status.volumes[0].health, Health::Offline);
    lab.kill();
    drives[..2].iter().for_each(|&drive| lab.simulation.world.return_drive(drive));
    lab.restart();
    let alpha = login(&mut lab, 0, ALPHA);
    let found = alpha.read(&mut lab, 0, 0, 8);
    assert!(found == [1; 4096] || found == [2; 4096], "the refused write is there as a whole or not at all");
}

#[test]
fn a_drive_that_returns_wrong_bytes_is_pointed_out_and_its_errors_are_not_seen() {
    let (mut lab, drives) = array(8, 2, "parity-1", false);
    let hosts = [login(&mut lab, 1, ALPHA)];
    let mut model = Model(vec![0; (SECTORS * 512) as usize]);
    model.write_some(&mut lab, &hosts, 30);
    for _ in 0..200 {
        lab.simulation.world.rot_somewhere(drives[2]);
    }
    model.check(&mut lab, &hosts[0]);
    let status = lab.status();
    assert_eq!(status.health, Health::Degraded, "{:?}", status.pools);
    assert!(status.pools[0].drives[2].errors.checksum > 0);
    assert!(
        status.problems.iter().any(|problem| problem.code() == ProblemCode::DriveErrors
            && problem.subject == Subject::drive("/dev/nvme2n1")),
        "{:?}",
        status.problems
    );
}
