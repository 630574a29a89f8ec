//! A drive with silent corruption: its own damage is no reason to keep it in service, and `status` reports only what is
//! known.

mod common;

use api::Command;
use api::{DriveState, Health, NewBacking, NewPool, NewSettings, NewVolume, PoolStatus, Upkeep};
use api::{ProblemCode, ProblemFacts, Subject};
use base::Nanos;
use common::Lab;
use common::host::Host;
use sim::{DriveNumber, DriveOptions, World};

const GIB: u64 = 1 << 30;
const INITIATOR: &str = "iqn.1993-08.org.debian:01:abc";
const PIECE: usize = 256 << 10;
const PIECES: u32 = 120;

struct Bench {
    lab: Lab,
    drives: Vec<DriveNumber>,
    host: Host,
}

fn piece(number: u32) -> Vec<u8> {
    (0..PIECE).map(|byte| (byte as u32 ^ number.wrapping_mul(0x9E37_79B9) >> 8) as u8).collect()
}

/// A pool of `drives` drives on three lanes, and a host that has written 30 MiB.
fn bench(seed: u64, protection: &str, drives: usize) -> Bench {
    let world = World::new(seed, None);
    let paths: Vec<String> = (0..drives).map(|n| format!("/dev/sd{n}")).collect();
    let numbers = paths.iter().map(|path| world.add_drive(DriveOptions::new(path, GIB))).collect();
    let mut lab = Lab::in_world(world, 3, &paths.iter().map(String::as_str).collect::<Vec<_>>());
    let pool = NewPool::new("fast", protection, paths);
    lab.change(Command::PoolCreate { pool, dry_run: false });
    let (name, backing) = ("vm".into(), NewBacking::Pool("fast".into()));
    let volume = NewVolume { name, backing, size_bytes: Some(GIB), block_bytes: 512, write_back: false };
    lab.change(Command::VolumeCreate { volume, dry_run: false });
    lab.create_host("pve", INITIATOR);
    lab.map("vm", "pve", 0, false);
    let host = Host::log_in(&mut lab, 0, INITIATOR, 1);
    host.settle(&mut lab, 0);
    (0..PIECES).for_each(|n| host.write(&mut lab, 0, n * 3000, &piece(n)));
    Bench { lab, drives: numbers, host }
}

impl Bench {
    fn pool(&mut self) -> PoolStatus {
        self.lab.status().pools[0].clone()
    }

    fn upkeep(&mut self, upkeep: Upkeep) {
        self.lab.change(Command::Upkeep { upkeep, dry_run: false });
    }

    fn scrub(&mut self) {
        self.upkeep(Upkeep::Scrub { pool: "fast".into(), stop: false });
    }

    fn check_data(&mut self) {
        for n in 0..PIECES {
            let read = self.host.read(&mut self.lab, 0, n * 3000, (PIECE / 512) as u16);
            assert!(read == piece(n), "piece {n} differs");
        }
    }

    /// Whether this drive is in service.
    fn serves(&mut self, drive: usize) -> bool {
        let path = format!("/dev/sd{drive}");
        self.pool().drives.iter().any(|drive| drive.path == path && drive.state == DriveState::Online)
    }
}

#[test]
fn a_rotting_drive_is_taken_out_and_the_pool_is_whole_again() {
    for seed in 1..4 {
        let mut bench = bench(seed, "parity-2", 6);
        bench.lab.simulation.world.overwrite(bench.drives[2], 1000);
        bench.scrub();
        let mut out = None;
        for second in 0..240 {
            bench.lab.pass(Nanos::from_secs(1));
            if !bench.serves(2) {
                out = out.or(Some(second));
            }
            let pool = bench.pool();
            if out.is_some() && pool.health == Health::Healthy && pool.failures_survivable == 2 {
                break;
            }
        }
        assert!(out.is_some(), "it has rotted everywhere, and still serves: {:#?}", bench.pool());
        let pool = bench.pool();
        assert_eq!(
            (pool.health, pool.failures_survivable),
            (Health::Healthy, 2),
            "{:#?}",
            bench.lab.status()
        );
        bench.check_data();
    }
}

/// Each lane by itself has met fewer errors than the threshold; all together the drive has made more.
#[test]
fn the_limit_is_the_drives_over_all_lanes() {
    let mut bench = bench(7, "parity-1", 5);
    bench.lab.simulation.world.overwrite(bench.drives[1], 1000);
    let limit = |checksum_errors| NewSettings { checksum_errors, ..NewSettings::default() };
    bench.upkeep(Upkeep::Set { pool: "fast".into(), settings: limit(Some(1_000_000)) });
    bench.scrub();
    bench.lab.pass(Nanos::from_secs(30));
    assert!(bench.serves(1), "nothing is too many yet");
    let errors: u64 = bench.pool().drives.iter().map(|drive| drive.errors.checksum).sum();
    assert!(errors > 30, "{errors}");
    // more than any of three lanes can have met if each has a share, fewer than all together
    let between = errors as u32 * 9 / 10;
    bench.upkeep(Upkeep::Set { pool: "fast".into(), settings: limit(Some(between)) });
    bench.lab.pass(Nanos::from_secs(60));
    assert!(!bench.serves(1), "{errors} errors, {between} allowed: {:#?}", bench.pool());
    bench.check_data();
}

/// With as many drives out as the protection allows, another drive with silent corruption stays, and `status` says why.
#[test]
fn a_drive_that_stays_in_spite_of_its_errors_is_told() {
    let mut bench = bench(11, "parity-1", 5);
    let settings = NewSettings {
        checksum_errors: Some(8),
        // what the first drive held is not rebuilt before the second has made its errors
        repair_share_percent: Some(1),
        ..NewSettings::default()
    };
    bench.upkeep(Upkeep::Set { pool: "fast".into(), settings });
    bench.lab.simulation.world.overwrite(bench.drives[1], 1000);
    bench.lab.simulation.world.vanish(bench.drives[0], None, false);
    for n in 0..PIECES {
        // some of it is lost, which is not the subject of this test
        bench.host.run(&mut bench.lab, common::host::read_10(0, n * 3000, 64));
    }
    let mut told = None;
    for _ in 0..20 {
        bench.lab.pass(Nanos::from_millis(500));
        let problems = bench.lab.status().problems;
        told = told.or(problems
            .into_iter()
            .find(|problem| matches!(problem.facts, ProblemFacts::DriveErrors { kept: Some(_), .. })));
    }
    let told = told.unwrap_or_else(|| panic!("{:#?}", bench.lab.status()));
    assert_eq!(
        (told.code(), &told.subject),
        (ProblemCode::DriveErrors, &Subject::drive("/dev/sd1")),
        "{told:?}"
    );
}

/// While a scrub finds damage, the pool never claims to survive more failures than it would: as many drives as it says
/// are pulled, and everything is read.
#[test]
fn what_is_said_to_be_survived_is_survived() {
    for (seed, wait) in [(21, 0), (22, 1), (23, 2), (24, 4), (25, 8)] {
        let mut bench = bench(seed, "parity-2", 6);
        // it is never taken out: what it lacks stays where it is until it is written anew
        let slow = NewSettings {
            checksum_errors: Some(1_000_000),
            repair_share_percent: Some(1),
            ..NewSettings::default()
        };
        bench.upkeep(Upkeep::Set { pool: "fast".into(), settings: slow });
        bench.lab.simulation.world.overwrite(bench.drives[0], 500);
        bench.scrub();
        bench.lab.pass(Nanos::from_millis(200 + 700 * wait));
        while bench.pool().scrub.running {
            bench.lab.pass(Nanos::from_millis(50));
        }
        let said = bench.pool().failures_survivable;
        for drive in 0..usize::from(said) {
            let pulled = bench.drives[5 - drive];
            bench.lab.simulation.world.vanish(pulled, None, false);
        }
        bench.check_data();
    }
}
