//! A wrong clock destroys no data.

mod common;

use api::Command;
use api::{Keep, NewSettings, ScheduleOrder, Upkeep};
use api::{ProblemCode, Subject};
use base::Nanos;
use common::Lab;

const MINUTE: Nanos = Nanos::from_secs(60);
const HOUR_MS: i64 = 3_600_000;
const DAY_MS: i64 = 24 * HOUR_MS;

/// A volume in a pool, of which a schedule keeps two hourly and two daily snapshots.
fn scheduled(seed: u64) -> Lab {
    let mut lab = Lab::with_pool(seed, 2);
    lab.create_pool_volume("disk", false);
    let keep = Keep { hourly: 2, daily: 2, ..Keep::default() };
    let order = ScheduleOrder::Create { name: "often".into(), volumes: vec!["disk".into()], keep };
    lab.change(Command::Schedule { order, dry_run: false });
    lab.pass(Nanos::from_secs(10));
    lab
}

fn snapshots(lab: &mut Lab) -> Vec<u64> {
    match lab.command(Command::SnapshotList { volume: Some("disk".to_owned()) }) {
        Ok(api::Reply::Snapshots(snapshots)) => snapshots.into_iter().map(|one| one.created_ms).collect(),
        other => panic!("{other:?}"),
    }
}

fn hour(lab: &mut Lab) {
    (0..60).for_each(|_| lab.pass(MINUTE));
}

/// The machine is suspended for some hours, and its clocks know it.
fn suspended_hours(lab: &mut Lab, hours: u64) {
    for _ in 0..hours {
        lab.simulation.world.suspend(HOUR_MS as u64);
        lab.pass(Nanos::from_secs(20));
    }
}

fn clock_problems(lab: &mut Lab) -> Vec<ProblemCode> {
    let problems = lab.status().problems;
    problems
        .into_iter()
        .filter(|problem| problem.subject == Subject::Clock)
        .map(|problem| problem.code())
        .collect()
}

fn delete(lab: &mut Lab) {
    lab.change(Command::VolumeDelete {
        name: "disk".to_owned(),
        unmap: true,
        eradicate: false,
        dry_run: false,
    });
}

fn is_in_bin(lab: &mut Lab) -> bool {
    !lab.status().bin.is_empty()
}

/// The array starts once with a clock that is a year ahead: later snapshots are kept, and earlier ones are not deleted
/// because of it.
#[test]
fn a_clock_that_was_a_year_ahead_costs_nothing() {
    let mut lab = scheduled(1);
    hour(&mut lab);
    let before = snapshots(&mut lab);
    assert_eq!(before.len(), 2);
    assert_eq!(clock_problems(&mut lab), []);
    lab.kill();
    lab.simulation.world.set_wall_clock(365 * DAY_MS);
    lab.restart();
    lab.pass(Nanos::from_secs(10));
    assert_eq!(clock_problems(&mut lab), [ProblemCode::ClockDoubted], "at the start it says something else");
    assert_eq!(snapshots(&mut lab).len(), 3, "it was due, and none is deleted");
    lab.kill();
    lab.simulation.world.set_wall_clock(-365 * DAY_MS);
    lab.restart();
    lab.pass(Nanos::from_secs(10));
    let taken = snapshots(&mut lab);
    assert_eq!(taken[..2], before[..]);
    let problems = clock_problems(&mut lab);
    assert!(problems.contains(&ProblemCode::SnapshotsFromFuture), "{problems:?}");
    suspended_hours(&mut lab, 3);
    let later = snapshots(&mut lab);
    assert!(
        later.contains(&before[0]) && later.contains(&taken[2]),
        "the day's first, and the one of the future: {later:?}"
    );
    let newest = *later.last().unwrap();
    assert!(
        newest > before[1] && newest < before[1] + 5 * HOUR_MS as u64,
        "what was just taken is kept: {later:?}"
    );
}

/// With a clock that is behind, snapshots are kept, too; after a steady day the clock is trusted.
#[test]
fn a_clock_that_is_behind_keeps_what_is_taken() {
    let mut lab = scheduled(2);
    hour(&mut lab);
    lab.simulation.world.set_wall_clock(-20 * 365 * DAY_MS);
    lab.pass(Nanos::from_secs(20));
    let problems = clock_problems(&mut lab);
    assert!(problems.contains(&ProblemCode::ClockDoubted), "{problems:?}");
    suspended_hours(&mut lab, 5);
    let taken = snapshots(&mut lab);
    assert!(taken.len() >= 7, "none is deleted while the clock is doubted: {taken:?}");
    suspended_hours(&mut lab, 24);
    assert!(!clock_problems(&mut lab).contains(&ProblemCode::ClockDoubted));
    let kept = snapshots(&mut lab);
    assert!(kept.len() < 7, "it is believed now: {kept:?}");
    assert!(
        kept.iter().rev().take(2).all(|&ms| ms < taken[0] - 10 * 365 * DAY_MS as u64),
        "the last two are kept: {kept:?}"
    );
}

/// The bin counts time that has passed. A clock that is two days ahead does not empty it, a clock that is behind does
/// not keep volumes forever, and time before a start counts, too.
#[test]
fn the_bin_goes_by_time_that_has_passed() {
    let mut lab = Lab::with_pool(3, 2);
    lab.create_pool_volume("disk", false);
    let settings = NewSettings { bin_seconds: Some(6 * 3600), ..NewSettings::default() };
    let name = lab.status().pools[0].name.clone();
    lab.change(Command::Upkeep { upkeep: Upkeep::Set { pool: name, settings }, dry_run: false });
    delete(&mut lab);
    lab.pass(Nanos::from_secs(10));
    lab.simulation.world.set_wall_clock(2 * DAY_MS);
    lab.pass(Nanos::from_secs(60));
    assert!(is_in_bin(&mut lab));
    lab.kill();
    lab.simulation.world.set_wall_clock(200 * DAY_MS);
    lab.restart();
    lab.pass(Nanos::from_secs(60));
    assert!(is_in_bin(&mut lab), "time in which the array did not run is not known");
    suspended_hours(&mut lab, 4);
    lab.kill();
    lab.simulation.world.set_wall_clock(-500 * DAY_MS);
    lab.restart();
    lab.pass(Nanos::from_secs(60));
    assert!(is_in_bin(&mut lab));
    let left_ms = lab.status().bin[0].eradicated_ms - lab.simulation.world.wall_clock_ms();
    assert!(left_ms < 3 * HOUR_MS as u64, "four hours are on record: {left_ms}");
    suspended_hours(&mut lab, 3);
    assert!(!is_in_bin(&mut lab));
}
