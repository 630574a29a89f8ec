//! Hot spares: they join when a drive is lost permanently, not before, and only once.

mod common;

use api::{Command, Reply};
use api::{
    CommandErrorKind, DriveNote, DriveState, Health, NewBacking, NewPool, NewSettings, NewVolume, PoolStatus,
    Upkeep,
};
use api::{ProblemCode, Subject};
use base::Nanos;
use common::Lab;
use common::host::Host;
use sim::{DriveNumber, DriveOptions, World};

const GIB: u64 = 1 << 30;
const INITIATOR: &str = "iqn.1993-08.org.debian:01:abc";
const PIECE: usize = 64 << 10;
const PIECES: u32 = 40;

fn path(number: usize) -> String {
    format!("/dev/sd{}", (b'a' + number as u8) as char)
}

/// A pool of three drives, the minimum for parity-1, more drives, and a host that has written.
struct Bench {
    lab: Lab,
    drives: Vec<DriveNumber>,
}

impl Bench {
    fn new(seed: u64, sizes: &[u64]) -> Bench {
        let world = World::new(seed, None);
        let all = [GIB; 3].iter().chain(sizes).copied().enumerate();
        let drives = all.map(|(n, size)| world.add_drive(DriveOptions::new(&path(n), size))).collect();
        let paths: Vec<String> = (0..3 + sizes.len()).map(path).collect();
        let mut lab = Lab::in_world(world, 2, &paths.iter().map(String::as_str).collect::<Vec<_>>());
        let pool = NewPool::new("fast", "parity-1", (0..3).map(path).collect());
        lab.change(Command::PoolCreate { pool, dry_run: false });
        let (name, backing) = ("vm".into(), NewBacking::Pool("fast".into()));
        let volume = NewVolume { name, backing, size_bytes: Some(GIB), block_bytes: 512, write_back: false };
        lab.change(Command::VolumeCreate { volume, dry_run: false });
        lab.create_host("pve", INITIATOR);
        lab.map("vm", "pve", 0, false);
        let mut bench = Bench { lab, drives };
        bench.with_host(|host, lab| (0..PIECES).for_each(|n| host.write(lab, 0, n * 3000, &piece(n))));
        bench
    }

    fn with_host(&mut self, act: impl FnOnce(&Host, &mut Lab)) {
        let host = Host::log_in(&mut self.lab, 0, INITIATOR, 1);
        host.settle(&mut self.lab, 0);
        act(&host, &mut self.lab);
    }

    fn check_data(&mut self) {
        self.with_host(|host, lab| {
            for n in 0..PIECES {
                assert!(host.read(lab, 0, n * 3000, (PIECE / 512) as u16) == piece(n), "piece {n} differs");
            }
        });
    }

    fn spare(&mut self, numbers: &[usize], release: bool) -> Result<Reply, api::CommandError> {
        let drives = numbers.iter().copied().map(path).collect();
        let upkeep = Upkeep::Spare { pool: "fast".into(), drives, release };
        self.lab.command(Command::Upkeep { upkeep, dry_run: false })
    }

    fn pool(&mut self) -> PoolStatus {
        self.lab.status().pools[0].clone()
    }

    /// Drives of the pool that are online.
    fn members(&mut self) -> Vec<String> {
        let drives = self.pool().drives.into_iter();
        let mut online: Vec<String> =
            drives.filter(|drive| drive.state == DriveState::Online).map(|drive| drive.path).collect();
        online.sort();
        online
    }

    fn spares(&mut self) -> Vec<String> {
        let Ok(Reply::Drives(drives)) = self.lab.command(Command::DriveList) else { panic!("no list") };
        drives.into_iter().filter(|d| d.state == DriveState::Spare).map(|drive| drive.path).collect()
    }

    fn vanish(&mut self, number: usize) {
        self.lab.simulation.world.vanish(self.drives[number], None, false);
        // a host notices the loss
        self.with_host(|host, lab| host.write(lab, 0, 0, &piece(0)));
    }

    fn pass(&mut self, seconds: u64) {
        self.lab.pass(Nanos::from_secs(seconds));
    }

    fn wait_healthy(&mut self) {
        for _ in 0..120 {
            let pool = self.pool();
            if pool.health == Health::Healthy && pool.failures_survivable == 1 && pool.repair.is_none() {
                return;
            }
            self.pass(1);
        }
        panic!("not healthy: {:#?}", self.lab.status());
    }

    fn restart(&mut self) {
        self.lab.kill();
        self.lab.restart();
        assert_eq!(self.lab.start_result(), Ok(()));
    }
}

fn piece(number: u32) -> Vec<u8> {
    (0..PIECE).map(|byte| (byte as u32 ^ number.wrapping_mul(0x9E37_79B9) >> 8) as u8).collect()
}

#[test]
fn the_smallest_that_is_large_enough_joins_when_a_drive_is_lost_for_good() {
    let mut bench = Bench::new(61, &[4 * GIB, 2 * GIB]);
    bench.spare(&[3, 4], false).unwrap();
    assert_eq!(bench.spares(), [path(3), path(4)]);
    bench.restart();
    assert_eq!(bench.spares(), [path(3), path(4)], "they are remembered");
    bench.vanish(1);
    bench.pass(40);
    bench.wait_healthy();
    assert_eq!(bench.members(), [path(0), path(2), path(4)]);
    assert_eq!(bench.spares(), [path(3)]);
    // the lost data is of an earlier epoch now; the next loss gets the next spare
    bench.lab.simulation.world.return_drive(bench.drives[1]);
    bench.vanish(0);
    bench.pass(40);
    bench.wait_healthy();
    assert_eq!(bench.members(), [path(2), path(3), path(4)]);
    assert!(bench.spares().is_empty());
    bench.check_data();
}

#[test]
fn a_drive_that_comes_back_soon_needs_none() {
    let mut bench = Bench::new(62, &[GIB]);
    bench.spare(&[3], false).unwrap();
    bench.vanish(2);
    bench.pass(1);
    assert_eq!(bench.members(), [path(0), path(1)]);
    bench.lab.simulation.world.return_drive(bench.drives[2]);
    bench.wait_healthy();
    bench.pass(60);
    assert_eq!((bench.members().len(), bench.spares()), (3, vec![path(3)]));
    bench.check_data();
}

#[test]
fn sudden_ends_do_not_use_a_second_one() {
    // the keeper's first round after the loss records it; when the pool is rebuilt, the spare joins
    for kill_at in (0..4_000).step_by(100).chain((30_000..33_000).step_by(500)) {
        let mut bench = Bench::new(63, &[GIB, GIB]);
        bench.spare(&[3, 4], false).unwrap();
        bench.vanish(0);
        bench.lab.pass(Nanos::from_millis(kill_at));
        bench.restart();
        bench.pass(60);
        bench.wait_healthy();
        bench.pass(60);
        assert_eq!((bench.members().len(), bench.spares().len()), (3, 1), "killed after {kill_at} ms");
        bench.check_data();
    }
}

#[test]
fn what_is_not_blank_is_no_spare_and_never_erased() {
    let mut bench = Bench::new(64, &[GIB, 2 * GIB]);
    let mut ext4 = vec![0; 4096];
    ext4[0x438..0x43a].copy_from_slice(b"\x53\xef");
    bench.lab.simulation.world.poke(bench.drives[3], 0, &ext4);
    let refused = bench.spare(&[3], false).unwrap_err();
    assert!(refused.kind == CommandErrorKind::InUse && refused.hint.contains("drive wipe"), "{refused}");
    bench.lab.simulation.world.poke(bench.drives[3], 0, &[0; 4096]);
    bench.spare(&[3, 4], false).unwrap();
    assert_eq!(bench.spare(&[3], false).unwrap_err().kind, CommandErrorKind::AlreadyExists);
    assert_eq!(bench.spare(&[0], true).unwrap_err().kind, CommandErrorKind::NotFound);
    // a file system was made on it meanwhile
    bench.lab.simulation.world.poke(bench.drives[3], 0, &ext4);
    bench.vanish(1);
    bench.pass(45);
    bench.wait_healthy();
    assert_eq!(bench.members(), [path(0), path(2), path(4)]);
    assert_eq!(bench.lab.simulation.world.peek(bench.drives[3], 0)[0x438..0x43a], *b"\x53\xef");
    let status = bench.lab.status();
    let problem =
        status.problems.iter().find(|problem| problem.subject == Subject::drive("/dev/sdd")).unwrap();
    assert_eq!(problem.code(), ProblemCode::SpareUnusable);
    assert!(problem.reason().contains("spare of pool fast and could not join it: it holds"), "{problem:?}");
    bench.spare(&[3], true).unwrap();
    bench.lab.change(Command::DriveClear { drive: None, dry_run: false });
    assert_eq!(problems(&mut bench), [""; 0]);
}

#[test]
fn one_joins_for_a_drive_that_is_too_slow_and_could_not_be_spared() {
    let mut bench = Bench::new(65, &[GIB]);
    bench.spare(&[3], false).unwrap();
    let settings = NewSettings { slow_seconds: Some(3), ..NewSettings::default() };
    let upkeep = Upkeep::Set { pool: "fast".into(), settings };
    bench.lab.change(Command::Upkeep { upkeep, dry_run: false });
    for (index, &drive) in bench.drives.iter().enumerate() {
        let world = &bench.lab.simulation.world;
        world.set_latency(drive, Nanos::from_micros(100), Nanos::from_micros(300));
        world.slow_down(drive, if index == 1 { 50 } else { 1 });
    }
    for _ in 0..12 {
        bench.with_host(|host, lab| {
            for _ in 0..60 {
                (0..PIECES).for_each(|n| drop(host.read(lab, 0, n * 3000, (PIECE / 512) as u16)));
                lab.pass(Nanos::from_millis(20));
            }
        });
        if bench.members() == [path(0), path(2), path(3)] {
            return bench.wait_healthy();
        }
    }
    panic!("it has not been replaced: {:#?}", bench.lab.status());
}

/// Without reads and writes, a pulled drive is noticed all the same, and its spare joins before any data is requested.
#[test]
fn a_drive_that_is_pulled_from_an_idle_array_is_missing_and_replaced() {
    for seed in 31..34 {
        let mut bench = Bench::new(seed, &[GIB, GIB]);
        bench.spare(&[3], false).unwrap();
        bench.pass(120);
        let pulled = bench.drives[1];
        bench.lab.simulation.world.vanish(pulled, None, false);
        bench.pass(10);
        // missing, or the pool has repaired the loss already: there is little to rebuild
        assert!(!bench.members().contains(&path(1)), "{:#?}", bench.pool());
        bench.pass(60);
        assert_eq!(bench.members(), [path(0), path(2), path(3)]);
        bench.wait_healthy();
        bench.check_data();
    }
}

/// A drive does not answer, for longer than the kernel tries: it is given up, the spare joins, and no caller that asks
/// about drives waits for it. When it answers again, it is back.
#[test]
fn a_drive_that_hangs_holds_up_neither_its_spare_nor_whoever_asks() {
    for seed in 41..44 {
        let mut bench = Bench::new(seed, &[GIB, GIB]);
        bench.spare(&[3], false).unwrap();
        bench.pass(120);
        bench.lab.simulation.world.stick(bench.drives[1], Nanos::from_secs(600));
        for _ in 0..24 {
            bench.pass(5);
            let asked = bench.lab.send_command(Command::DriveList);
            bench.pass(7);
            assert!(asked.lock().unwrap().is_some(), "`drive list` waits for a drive that hangs");
        }
        assert_eq!(bench.members(), [path(0), path(2), path(3)], "{:#?}", bench.pool());
        bench.wait_healthy();
        bench.check_data();
        bench.pass(500);
        let Ok(Reply::Drives(drives)) = bench.lab.command(Command::DriveList) else { panic!("no list") };
        let back = drives.iter().find(|drive| drive.path == path(1) && drive.state == DriveState::Unused);
        assert!(back.is_some(), "{drives:#?}");
    }
}

/// The catalog takes its time to record that a spare has joined: until then the spare is no drive that is not there.
#[test]
fn a_spare_that_has_just_joined_is_no_problem() {
    let mut bench = Bench::new(51, &[GIB]);
    bench.spare(&[3], false).unwrap();
    for &drive in &bench.drives {
        bench.lab.simulation.world.set_latency(drive, Nanos::from_millis(300), Nanos::from_millis(500));
    }
    bench.lab.simulation.world.vanish(bench.drives[1], None, false);
    for _ in 0..1200 {
        bench.lab.pass(Nanos::from_millis(100));
        let status = bench.lab.status();
        let spare = status.problems.iter().find(|problem| problem.code() == ProblemCode::SpareUnusable);
        assert_eq!(spare, None);
    }
    assert_eq!(bench.members(), [path(0), path(2), path(3)], "{:#?}", bench.pool());
}

/// One spare of two pools: the one that needs it first takes it, and the other says so.
#[test]
fn a_spare_that_another_pool_has_taken_is_said_to_be_in_it() {
    let mut bench = Bench::new(52, &[GIB; 4]);
    let pool = NewPool::new("slow", "parity-1", (3..6).map(path).collect());
    bench.lab.change(Command::PoolCreate { pool, dry_run: false });
    bench.spare(&[6], false).unwrap();
    let upkeep = Upkeep::Spare { pool: "slow".into(), drives: vec![path(6)], release: false };
    bench.lab.change(Command::Upkeep { upkeep, dry_run: false });
    bench.vanish(1);
    bench.pass(120);
    assert_eq!(bench.members(), [path(0), path(2), path(6)]);
    let said = problems(&mut bench);
    let reason = "it is a spare of pool slow and could not join it: it holds a drive of pool fast";
    assert!(said.contains(&format!("drive {}: {reason}", path(6))), "{said:#?}");
}

fn problems(bench: &mut Bench) -> Vec<String> {
    let problems = bench.lab.status().problems.into_iter();
    problems.map(|problem| format!("{}: {}", problem.subject, problem.reason())).collect()
}

fn clear(bench: &mut Bench, drive: &str) -> Result<Reply, api::CommandError> {
    bench.lab.command(Command::DriveClear { drive: Some(drive.to_owned()), dry_run: false })
}

/// After a rebuild onto a spare, `status` reports the failure until an administrator acknowledges it. The failed drive
/// is refused by every command that does not name it with --force, also after a restart.
#[test]
fn what_failed_is_remembered_when_it_is_mended() {
    let mut bench = Bench::new(8, &[GIB]);
    bench.spare(&[3], false).unwrap();
    bench.vanish(0);
    bench.pass(40);
    bench.wait_healthy();
    bench.pass(10);
    let is_told = |problems: &[String], what: &str| problems.iter().any(|problem| problem.contains(what));
    for restarted in [false, true] {
        let told = problems(&mut bench);
        assert!(
            is_told(&told, "drive /dev/sda: it (") && is_told(&told, "with spare /dev/sdd in its place"),
            "{told:?}"
        );
        let codes: Vec<ProblemCode> = bench.lab.status().problems.iter().map(|one| one.code()).collect();
        assert_eq!(codes, [ProblemCode::DriveGivenUp, ProblemCode::NoSpareLeft]);
        if !restarted {
            bench.restart();
            bench.pass(10);
        }
    }
    // it is back, and blank: an administrator has wiped it
    let world = bench.lab.simulation.world.clone();
    world.return_drive(bench.drives[0]);
    let (path, dry_run) = (path(0), false);
    bench.lab.change(Command::DriveWipe { path: path.clone(), dry_run });
    let Ok(Reply::Drives(drives)) = bench.lab.command(Command::DriveList) else { panic!("no list") };
    let listed = drives.iter().find(|drive| drive.path == path).unwrap();
    assert!(matches!(listed.note, Some(DriveNote::NotTrusted { .. })), "{listed:?}");
    let add = |force: Vec<String>| {
        let drives = vec![path.clone()];
        Command::Upkeep { upkeep: Upkeep::DriveAdd { pool: "fast".into(), drives, force }, dry_run }
    };
    let refused = bench.lab.command(add(Vec::new())).unwrap_err();
    assert_eq!(refused.kind, CommandErrorKind::InUse);
    assert!(refused.hint.contains("--force"), "{refused}");
    assert_eq!(bench.spare(&[0], false).unwrap_err().kind, CommandErrorKind::InUse);
    clear(&mut bench, "/dev/sda").unwrap();
    assert_eq!(problems(&mut bench), [""; 0]);
    assert_eq!(clear(&mut bench, "/dev/sda").unwrap_err().kind, CommandErrorKind::NotFound);
    bench.lab.command(add(Vec::new())).expect_err("taken note of is not trusted");
    bench.lab.change(add(vec![path.clone()]));
    bench.pass(10);
    assert_eq!(bench.members().len(), 4);
    assert_eq!(problems(&mut bench), [""; 0]);
    bench.check_data();
}

/// A drive that is missing after a start keeps its earlier name.
#[test]
fn a_missing_drive_has_its_name_after_a_restart() {
    let mut bench = Bench::new(9, &[]);
    bench.pass(10);
    bench.lab.kill();
    bench.lab.simulation.world.vanish(bench.drives[1], None, false);
    bench.lab.restart();
    let drives = bench.pool().drives;
    let missing: Vec<_> = drives.iter().filter(|drive| drive.state == DriveState::Missing).collect();
    assert_eq!((missing[0].path.as_str(), missing[0].serial.as_str()), ("/dev/sdb", "/dev/sdb"));
    assert!(problems(&mut bench).iter().any(|problem| problem.contains("/dev/sdb is missing")));
    bench.lab.simulation.world.return_drive(bench.drives[1]);
    bench.pass(20);
    bench.wait_healthy();
    assert_eq!(problems(&mut bench), [""; 0]);
    bench.check_data();
}
