//! A drive or device that was missing at the start, or disappeared while it was served, is served again without a
//! restart.

mod common;

use api::Command;
use api::{
    Change, ChangeStep, Health, NameList, NewBacking, NewPool, NewVolume, PoolStep, PortalOptions, VolumeStep,
};
use api::{ProblemCode, Subject};
use base::Nanos;
use common::Lab;
use common::host::Host;
use sim::{DriveNumber, DriveOptions, World};

const ALPHA: &str = "iqn.2001-04.com.example:alpha";
const GIB: u64 = 1 << 30;

/// Pool `fast` with volume `thin`, LUN 0 of a host, which has written to it.
fn array(seed: u64, protection: &str, count: usize) -> (Lab, Vec<DriveNumber>, Vec<String>) {
    let world = World::new(seed, None);
    let paths: Vec<String> = (0..count).map(|n| format!("/dev/sd{}", (b'a' + n as u8) as char)).collect();
    let numbers = paths.iter().map(|path| world.add_drive(DriveOptions::new(path, GIB))).collect();
    let named: Vec<&str> = paths.iter().map(String::as_str).collect();
    let mut lab = Lab::in_world(world, 2, &named);
    lab.change(Command::PoolCreate { pool: pool("fast", protection, &paths), dry_run: false });
    let backing = NewBacking::Pool("fast".to_owned());
    lab.change(Command::VolumeCreate { volume: volume("thin", backing, Some(GIB)), dry_run: false });
    lab.create_host("alpha", ALPHA);
    lab.map("thin", "alpha", 0, false);
    let host = Host::log_in(&mut lab, 0, ALPHA, 1);
    host.settle(&mut lab, 0);
    host.write(&mut lab, 0, 800, &[7; 4096]);
    host.log_out(&mut lab);
    (lab, numbers, paths)
}

fn pool(name: &str, protection: &str, drives: &[String]) -> NewPool {
    NewPool::new(name, protection, drives.to_vec())
}

fn volume(name: &str, backing: NewBacking, size_bytes: Option<u64>) -> NewVolume {
    NewVolume { name: name.to_owned(), backing, size_bytes, block_bytes: 512, write_back: false }
}

fn read_back(lab: &mut Lab) {
    let host = Host::log_in(lab, 0, ALPHA, 1);
    host.settle(lab, 0);
    assert!(host.read(lab, 0, 800, 8) == [7; 4096]);
    host.log_out(lab);
}

fn reload(lab: &mut Lab, drives: &[String]) -> Change {
    let portals = vec![PortalOptions::from(common::portal(0))];
    lab.change(Command::Reload { portals, drives: drives.to_vec() })
}

#[test]
fn a_pool_whose_drives_come_later_is_opened_by_itself() {
    let (mut lab, drives, _) = array(1, "parity-1", 4);
    lab.kill();
    for drive in &drives[1..] {
        lab.simulation.world.vanish(*drive, None, false);
    }
    lab.restart();
    let problem = lab.status().problems.remove(0);
    assert_eq!((problem.code(), &problem.subject), (ProblemCode::PoolOffline, &Subject::pool("fast")));
    assert!(problem.action().contains("by itself") && !problem.action().contains("restart"), "{problem:?}");
    lab.simulation.world.return_drive(drives[1]);
    lab.pass(Nanos::from_secs(20));
    assert_eq!(lab.status().pools[0].health, Health::Offline, "two are still missing");
    lab.simulation.world.return_drive(drives[2]);
    lab.pass(Nanos::from_secs(20));
    assert_eq!(lab.status().pools[0].health, Health::Degraded, "{:?}", lab.status().problems);
    lab.simulation.world.return_drive(drives[3]);
    lab.pass(Nanos::from_secs(60));
    let status = lab.status();
    assert_eq!((status.health, status.pools[0].failures_survivable), (Health::Healthy, 1), "{status:#?}");
    read_back(&mut lab);
}

#[test]
fn a_pool_that_has_lost_too_many_drives_is_served_again_after_a_reload() {
    let (mut lab, drives, paths) = array(2, "mirror-2", 2);
    for drive in &drives {
        lab.simulation.world.vanish(*drive, None, false);
    }
    lab.pass(Nanos::from_secs(30));
    let problem = lab.status().problems.remove(0);
    assert_eq!((problem.code(), &problem.subject), (ProblemCode::PoolOffline, &Subject::pool("fast")));
    assert!(problem.action().contains("reload") && !problem.action().contains("restart"), "{problem:?}");
    // no drive is there yet: this is reported, and does no harm
    reload(&mut lab, &paths);
    assert_eq!(lab.status().pools[0].health, Health::Offline);
    drives.iter().for_each(|drive| lab.simulation.world.return_drive(*drive));
    let steps = reload(&mut lab, &paths).steps;
    assert!(steps.contains(&PoolStep::OpenPool { pool: "fast".to_owned() }.into()), "{steps:?}");
    lab.pass(Nanos::from_secs(30));
    let status = lab.status();
    assert_eq!(status.pools[0].health, Health::Healthy, "{:?}", status.problems);
    read_back(&mut lab);
    // the pool is like any other: it can be closed and opened again
    lab.kill();
    lab.restart();
    read_back(&mut lab);
}

#[test]
fn a_raw_device_that_comes_back_is_taken() {
    let world = World::new(3, None);
    let device = world.add_drive(DriveOptions::new("/dev/sdx", 64 << 20));
    let mut lab = Lab::in_world(world, 2, &[]);
    let raw = volume("old-lun", NewBacking::Raw("/dev/sdx".to_owned()), None);
    lab.change(Command::VolumeCreate { volume: raw, dry_run: false });
    lab.create_host("alpha", ALPHA);
    lab.map("old-lun", "alpha", 0, false);
    let host = Host::log_in(&mut lab, 0, ALPHA, 1);
    host.settle(&mut lab, 0);
    host.write(&mut lab, 0, 800, &[7; 4096]);
    host.log_out(&mut lab);
    lab.kill();
    lab.simulation.world.vanish(device, None, false);
    lab.restart();
    let problem = lab.status().problems.remove(0);
    assert_eq!(problem.subject, Subject::volume("old-lun"));
    assert!(problem.action().contains("by itself"), "{problem:?}");
    lab.pass(Nanos::from_secs(20));
    assert_eq!(lab.status().health, Health::Offline);
    lab.simulation.world.return_drive(device);
    lab.pass(Nanos::from_secs(10));
    assert_eq!(lab.status().health, Health::Healthy, "{:?}", lab.status().problems);
    let host = Host::log_in(&mut lab, 0, ALPHA, 1);
    host.settle(&mut lab, 0);
    host.write(&mut lab, 0, 800, &[7; 4096]);
    host.log_out(&mut lab);
    // the device disappears while it is served: its old handle is useless from then on
    lab.simulation.world.vanish(device, None, false);
    lab.simulation.world.return_drive(device);
    let steps = reload(&mut lab, &[]).steps;
    let taken = VolumeStep::TakeDevice { volume: "old-lun".to_owned(), device: "/dev/sdx".to_owned() };
    assert!(steps.contains(&taken.into()), "{steps:?}");
    read_back(&mut lab);
}

/// Before a drive of an offline pool is erased, the command says what depends on it, without and with `--force`.
#[test]
fn what_a_forced_drive_takes_along_is_said() {
    let (mut lab, drives, paths) = array(4, "mirror-2", 3);
    lab.kill();
    drives[1..].iter().for_each(|drive| lab.simulation.world.vanish(*drive, None, false));
    lab.restart();
    assert_eq!(lab.status().pools[0].health, Health::Offline);
    let new = pool("other", "stripe", &paths[..1]);
    let error = lab.command(Command::PoolCreate { pool: new.clone(), dry_run: false }).unwrap_err();
    assert!(error.message.contains("pool fast, which is offline and has volume thin"), "{error}");
    let forced = NewPool { force: paths[..1].to_vec(), ..new };
    let steps = lab.change(Command::PoolCreate { pool: forced, dry_run: true }).steps;
    let risk = ChangeStep::from(PoolStep::RiskPool {
        pool: "fast".to_owned(),
        drive: paths[0].clone(),
        volumes: NameList::new(["thin"], 1),
    });
    assert!(steps.contains(&risk), "{steps:?}");
    let wipe = Command::DriveWipe { path: paths[0].clone(), dry_run: true };
    let steps = lab.change(wipe).steps;
    assert!(steps.contains(&risk), "{steps:?}");
}
