//! Drives fail, come back, are added, emptied and replaced; pools rebuild, scrub, and report their state.

mod common;

use api::{
    ArrayStatus, CommandErrorKind, DriveContent, DriveNote, DriveState, DriveStep, Health, NewSettings,
    NextFailure, PoolActivity, PoolStatus, PoolStep, Upkeep,
};
use api::{Command, Reply};
use api::{ProblemCode, Subject};
use base::Nanos;
use common::pool_bench::{Bench, PIECE, bench, path};

fn pool(name: &str) -> String {
    name.to_owned()
}

fn remove(number: usize) -> Upkeep {
    Upkeep::DriveRemove { pool: pool("fast"), drive: path(number), cancel: false }
}

#[test]
fn a_lost_drive_is_rebuilt_and_the_next_one_may_go() {
    let mut bench = bench(21, "parity-1", 5, 5);
    let next = NextFailure { rebuildable: true, short_bytes: 0 };
    assert_eq!(bench.pool().next_failure, Some(next));
    bench.vanish(1);
    bench.write(10);
    let first = bench.wait_for("aware of the loss", 10, |pool| pool.health == Health::Degraded);
    assert_eq!((first.failures_survivable, first.next_failure), (0, None));
    assert!(first.reason().contains("/dev/sdb is missing"), "{}", first.reason());
    bench.wait_healthy(4, 1);
    bench.check_data();
    let (written, hosts) = (bench.pool().written, u64::from(bench.pieces) * PIECE as u64);
    // the array's own structures are few
    assert!(
        (hosts..hosts + hosts / 100).contains(&written.host_bytes),
        "of both lanes: {written:?}, {hosts}"
    );
    assert!(written.restored_bytes > 0 && written.restored_bytes <= written.moved_bytes, "{written:?}");
    assert!(written.map_bytes > 0, "{written:?}");
    bench.vanish(2);
    bench.check_data();
    bench.wait_healthy(3, 1);
    bench.check_data();
    bench.restart();
    bench.wait_healthy(3, 1);
    assert!(bench.pool().written.host_bytes < hosts / 10, "counted since the start");
    let PoolStatus { capacity_bytes, log_bytes, reserve_bytes, .. } = bench.pool();
    assert!((1..2).contains(&(log_bytes / capacity_bytes)), "{log_bytes} for {capacity_bytes}");
    assert!((1..=log_bytes - capacity_bytes).contains(&reserve_bytes), "{reserve_bytes} of {log_bytes}");
    bench.check_data();
    // its content is from an earlier epoch of the pool
    bench.lab.simulation.world.return_drive(bench.drives[1]);
    bench.lab.pass(Nanos::from_secs(20));
    let Ok(Reply::Drives(drives)) = bench.lab.command(Command::DriveList) else { panic!("no list") };
    let stale = drives.iter().find(|drive| drive.path == "/dev/sdb").unwrap();
    assert_eq!(stale.state, DriveState::Unused);
    assert_eq!(stale.note, Some(DriveNote::OutOfDate { pool: pool("fast"), drive: path(1) }));
    let again = |force: &[String]| Upkeep::DriveAdd {
        pool: pool("fast"),
        drives: vec![path(1)],
        force: force.to_vec(),
    };
    bench.refused(again(&[]), CommandErrorKind::InUse, "a drive of pool fast");
    bench.upkeep(again(&[path(1)]));
    bench.wait_healthy(4, 1);
    bench.restart();
    bench.wait_healthy(4, 1);
    bench.check_data();
}

#[test]
fn a_missing_drive_comes_back_without_a_restart() {
    let mut bench = bench(22, "mirror-2", 2, 2);
    let next = NextFailure { rebuildable: false, short_bytes: 0 };
    assert_eq!((bench.pool().health, bench.pool().next_failure), (Health::Healthy, Some(next)));
    bench.vanish(0);
    bench.write(10);
    let alone = bench.wait_for("aware of the loss", 10, |pool| pool.health == Health::Degraded);
    assert_eq!(alone.failures_survivable, 0);
    assert!(alone.reason().contains("too few drives are left"), "{}", alone.reason());
    // it must not be erased: it will be needed
    bench.lab.simulation.world.return_drive(bench.drives[0]);
    let add = Upkeep::DriveAdd { pool: pool("fast"), drives: vec![path(0)], force: vec![path(0)] };
    bench.refused(add, CommandErrorKind::InUse, "not been rebuilt without it yet");
    bench.wait_healthy(2, 1);
    bench.vanish(1);
    bench.check_data();
}

#[test]
fn a_drive_is_emptied_and_leaves() {
    let mut bench = bench(23, "parity-1", 4, 5);
    let dry = bench.lab.change(Command::Upkeep { upkeep: remove(0), dry_run: true });
    assert_eq!(dry.steps, [DriveStep::EmptyDrive { drive: path(0), pool: pool("fast") }.into()]);
    bench.upkeep(remove(0));
    bench.wait_healthy(3, 1);
    bench.check_data();
    let Ok(Reply::Drives(drives)) = bench.lab.command(Command::DriveList) else { panic!("no list") };
    assert_eq!((&drives[0].content, drives[0].state), (&DriveContent::Blank, DriveState::Unused));
    bench.refused(remove(1), CommandErrorKind::InUse, "3 drives in service, and parity-1 needs 3");
    bench.refused(remove(0), CommandErrorKind::NotFound, "no drive /dev/sda");
    let cancel = Upkeep::DriveRemove { pool: pool("fast"), drive: path(1), cancel: true };
    bench.refused(cancel, CommandErrorKind::Invalid, "not being emptied");
    bench.restart();
    bench.wait_healthy(3, 1);
    bench.check_data();
}

#[test]
fn a_drive_takes_the_place_of_one_that_works_and_of_one_that_does_not() {
    let mut bench = bench(24, "parity-1", 3, 5);
    let mut ext4 = vec![0; 4096];
    ext4[0x438..0x43a].copy_from_slice(b"\x53\xef");
    bench.lab.simulation.world.poke(bench.drives[3], 0, &ext4);
    let replace = |old: String, new: usize, force| Upkeep::DriveReplace {
        pool: pool("fast"),
        old,
        new: path(new),
        force,
    };
    bench.refused(replace(path(0), 3, false), CommandErrorKind::InUse, "an ext2/3/4 file system");
    bench.refused(replace(path(0), 1, true), CommandErrorKind::InUse, "is a drive of pool fast");
    bench.refused(replace(path(4), 3, true), CommandErrorKind::NotFound, "no drive /dev/sde");
    bench.upkeep(replace(path(0), 3, true));
    bench.wait_healthy(3, 1);
    bench.check_data();
    bench.vanish(1);
    bench.write(5);
    let pool = bench.wait_for("aware of the loss", 10, |pool| pool.health == Health::Degraded);
    let id = pool.drives.iter().find(|drive| drive.state == DriveState::Missing).unwrap().id.clone();
    bench.upkeep(replace(id[..8].to_owned(), 4, false));
    bench.wait_healthy(3, 1);
    bench.vanish(3);
    bench.check_data();
}

#[test]
fn a_scrub_finds_rot_and_repairs_it() {
    let mut bench = bench(25, "parity-1", 3, 3);
    bench.write(160);
    bench.spoil(1);
    let scrub = |stop| Upkeep::Scrub { pool: pool("fast"), stop };
    bench.refused(scrub(true), CommandErrorKind::Invalid, "not being scrubbed");
    bench.upkeep(scrub(false));
    let pool = bench.wait_for("scrubbed", 60, |pool| pool.scrub.last.is_some());
    let last = pool.scrub.last.unwrap();
    assert!(last.complete && last.repaired > 0 && last.unreadable == 0, "{last:?}");
    let is_recent = |activity: &PoolActivity| match activity {
        PoolActivity::Scrubbed { last: ended, ago_ms } => *ended == last && *ago_ms < 3_600_000,
        _ => false,
    };
    assert!(pool.activity.iter().any(is_recent), "{pool:?}");
    bench.wait_healthy(3, 1);
    bench.upkeep(scrub(false));
    let again =
        bench.wait_for("scrubbed again", 60, |pool| pool.scrub.last.unwrap().ended_ms > last.ended_ms);
    assert_eq!(again.scrub.last.unwrap().repaired, 0, "what was found is in order now");
    bench.check_data();
    bench.restart();
    assert_eq!(bench.pool().scrub.last, again.scrub.last, "the result survives a restart");
}

#[test]
fn a_scrub_writes_a_rotten_label_anew() {
    let mut bench = bench(29, "parity-1", 3, 3);
    for block in [4, 8] {
        bench.lab.simulation.world.poke(bench.drives[1], block, &[0xA5; 4096]);
    }
    let scrub = || Upkeep::Scrub { pool: pool("fast"), stop: false };
    bench.upkeep(scrub());
    let last = bench.wait_for("scrubbed", 60, |pool| pool.scrub.last.is_some()).scrub.last.unwrap();
    assert_eq!((last.repaired, last.unreadable), (1, 0));
    bench.upkeep(scrub());
    let again =
        bench.wait_for("scrubbed again", 60, |pool| pool.scrub.last.unwrap().ended_ms > last.ended_ms);
    assert_eq!(again.scrub.last.unwrap().repaired, 0, "what was found is in order now");
    bench.restart();
    assert_eq!(bench.pool().health, Health::Healthy, "no drive is strange to the pool");
}

#[test]
fn settings_hold_and_scrubs_come_by_the_clock() {
    let mut bench = bench(26, "mirror-2", 2, 2);
    let set = |settings| Upkeep::Set { pool: pool("fast"), settings };
    let wrong = NewSettings { repair_share_percent: Some(0), ..NewSettings::default() };
    bench.refused(set(wrong), CommandErrorKind::Invalid, "cannot be 0: it goes from 1 to 100");
    let settings = NewSettings {
        repair_share_percent: Some(30),
        read_errors: Some(7),
        scrub_every_seconds: Some(1800),
        ..NewSettings::default()
    };
    let steps = bench.upkeep(set(settings));
    let share = PoolStep::SetPool {
        pool: pool("fast"),
        setting: "repair_share_percent".to_owned(),
        value: Some(30),
        is_default: false,
    };
    assert!(steps.contains(&share.into()), "{steps:?}");
    bench.restart();
    let pool = bench.pool();
    assert_eq!((pool.settings.repair_share_percent, pool.settings.read_errors), (30, 7));
    assert_eq!(pool.scrub.last, None);
    assert_eq!(pool.activity, [PoolActivity::NeverScrubbed {}]);
    bench.lab.pass(Nanos::from_secs(1830));
    let first = bench.pool().scrub.last.expect("one was due");
    bench.lab.pass(Nanos::from_secs(1830));
    let second = bench.pool().scrub.last.expect("there is one");
    assert!(second.complete && second.ended_ms > first.ended_ms);
    let never = NewSettings { scrub_every_seconds: Some(0), ..NewSettings::default() };
    bench.upkeep(set(never));
    assert_eq!(bench.pool().settings.scrub_every_seconds, None);
    let defaults = NewSettings { defaults: true, ..NewSettings::default() };
    bench.upkeep(set(defaults));
    assert_eq!(bench.pool().settings.scrub_every_seconds, Some(30 * 24 * 60 * 60), "once a month");
}

#[test]
fn errors_are_counted_for_ever() {
    let mut bench = bench(27, "mirror-2", 2, 2);
    bench.write(160);
    bench.spoil(0);
    bench.upkeep(Upkeep::Scrub { pool: pool("fast"), stop: false });
    bench.wait_for("scrubbed", 60, |pool| pool.scrub.last.is_some());
    bench.check_data();
    let counted = bench.pool().drives[0].errors;
    assert!(counted.checksum > 0, "{counted:?}");
    for _ in 0..2 {
        bench.host = None;
        assert_eq!(bench.lab.command(Command::Shutdown), Ok(Reply::Stopped));
        bench.lab.pass(Nanos::from_secs(5));
        bench.restart();
        assert_eq!(bench.pool().drives[0].errors, counted);
    }
}

impl Bench {
    fn slow_down(&mut self, numbers: &[usize], times: u64) {
        for (index, &drive) in self.drives.iter().enumerate() {
            let (least, most) = (Nanos::from_micros(100), Nanos::from_micros(300));
            self.lab.simulation.world.set_latency(drive, least, most);
            self.lab.simulation.world.slow_down(drive, if numbers.contains(&index) { times } else { 1 });
        }
    }

    /// A host reads repeatedly.
    fn work(&mut self, seconds: u64) {
        let until = self.lab.simulation.world.now() + Nanos::from_secs(seconds);
        while self.lab.simulation.world.now() < until {
            self.check_data();
            self.lab.pass(Nanos::from_millis(150));
        }
    }
}

#[test]
fn a_drive_that_is_slow_among_its_siblings_is_emptied() {
    let mut bench = bench(28, "parity-1", 5, 5);
    let settings = NewSettings { slow_seconds: Some(6), ..NewSettings::default() };
    bench.upkeep(Upkeep::Set { pool: pool("fast"), settings });
    for (slow, seconds) in [(&[0, 1, 2, 3, 4][..], 15), (&[2], 4), (&[], 8)] {
        bench.slow_down(slow, 50);
        bench.work(seconds);
        let pool = bench.pool();
        assert!(pool.drives.iter().all(|drive| drive.state == DriveState::Online), "{pool:#?}");
    }
    assert!(bench.pool().drives[2].read_latency_us.is_some_and(|latency| (80..400).contains(&latency)));
    bench.slow_down(&[2], 50);
    let mut told = String::new();
    for _ in 0..60 {
        bench.work(1);
        let status = bench.lab.status();
        let problem = status.problems.iter().find(|problem| problem.subject == Subject::drive("/dev/sdc"));
        told = problem.map_or(told, |problem| problem.reason());
        if status.pools[0].drives.len() == 4 {
            break;
        }
        assert_eq!(status.pools[0].failures_survivable, 1, "it is never less protected for it");
    }
    assert!(told.contains("slower than its siblings; it is being emptied"), "{told}");
    bench.wait_healthy(4, 1);
    bench.check_data();
    let Ok(Reply::Drives(drives)) = bench.lab.command(Command::DriveList) else { panic!("no list") };
    let left = drives.iter().find(|drive| drive.path == "/dev/sdc").unwrap();
    assert_eq!(left.note, Some(DriveNote::Emptied { pool: pool("fast") }));
}

#[test]
fn a_slow_drive_that_the_pool_needs_stays_and_is_pointed_out() {
    let mut bench = bench(29, "parity-1", 3, 4);
    let settings = NewSettings { slow_seconds: Some(3), ..NewSettings::default() };
    bench.upkeep(Upkeep::Set { pool: pool("fast"), settings });
    bench.slow_down(&[1], 50);
    bench.work(25);
    let status = bench.lab.status();
    let problem =
        status.problems.iter().find(|problem| problem.subject == Subject::drive("/dev/sdb")).unwrap();
    assert_eq!(problem.code(), ProblemCode::DriveSlow);
    assert!(problem.reason().contains("the pool cannot do without it"), "{problem:?}");
    assert_eq!(status.pools[0].drives.len(), 3);
    bench.upkeep(Upkeep::DriveAdd { pool: pool("fast"), drives: vec![path(3)], force: Vec::new() });
    for _ in 0..60 {
        bench.work(1);
        if bench.pool().drives.len() == 3 {
            break;
        }
    }
    bench.wait_healthy(3, 1);
    bench.vanish(0);
    bench.check_data();
}

#[test]
fn a_scrub_reads_what_was_written_last() {
    let mut bench = bench(30, "parity-1", 3, 3);
    bench.spoil(1);
    bench.upkeep(Upkeep::Scrub { pool: pool("fast"), stop: false });
    let first = bench.wait_for("scrubbed", 60, |pool| pool.scrub.last.is_some()).scrub.last.unwrap();
    assert!(first.complete && first.repaired > 0 && first.unreadable == 0, "{first:?}");
    bench.wait_healthy(3, 1);
    bench.vanish(0);
    bench.check_data();
}

impl Bench {
    /// Scrubs, and returns the status some time later.
    fn scrub(&mut self) -> ArrayStatus {
        let before = self.pool().scrub.last;
        self.upkeep(Upkeep::Scrub { pool: pool("fast"), stop: false });
        self.wait_for("scrubbed", 60, |pool| !pool.scrub.running && pool.scrub.last != before);
        // until after the next checkpoint
        self.lab.pass(Nanos::from_secs(40));
        self.lab.status()
    }
}

/// Checks that the status reports lost data and announces no repair of it.
fn says_that_data_is_lost(status: &ArrayStatus) {
    let pool = &status.pools[0];
    assert!(pool.lost_bytes > 0 && pool.health == Health::Degraded, "{status:#?}");
    let worst = &status.problems[0];
    assert_eq!(worst.code(), ProblemCode::DataLost, "{status:#?}");
    assert!(worst.action().contains("from a backup"), "{status:#?}");
    assert!(pool.reason().contains("damaged beyond repair"), "{status:#?}");
    assert!(!format!("{status:?}").contains("being written anew"), "{status:#?}");
    assert_eq!(pool.repair, None);
}

#[test]
fn lost_data_is_reported_for_as_long_as_it_is_lost() {
    let mut bench = bench(31, "parity-1", 3, 3);
    bench.write(160);
    bench.spoil(0);
    bench.spoil(1);
    for _ in 0..3 {
        let status = bench.scrub();
        assert!(status.pools[0].scrub.last.unwrap().unreadable > 0, "{status:#?}");
        says_that_data_is_lost(&status);
    }
    bench.restart();
    bench.lab.pass(Nanos::from_secs(10));
    says_that_data_is_lost(&bench.lab.status());
    let pieces = std::mem::take(&mut bench.pieces);
    bench.write(pieces);
    let status = bench.lab.status();
    assert_eq!(status.pools[0].lost_bytes, 0, "{status:#?}");
    assert_eq!(status.problems[0].code(), ProblemCode::DataDoubted, "{status:#?}");
    let status = bench.scrub();
    assert!(status.pools[0].health == Health::Healthy && status.pools[0].reason().is_empty(), "{status:#?}");
    assert!(!status.problems.iter().any(|problem| problem.subject == Subject::pool("fast")), "{status:#?}");
    bench.check_data();
}
