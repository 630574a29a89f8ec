//! Problems that no other test raises: each is reported by its code.

mod common;

use std::collections::BTreeSet;

use api::{
    ArrayStatus, Command, EventCode, Keep, NewBacking, NewPool, NewVolume, Problem, ProblemCode,
    ProblemFacts, Reply, ScheduleOrder, Subject,
};
use base::Nanos;
use common::Lab;
use sim::{DriveNumber, DriveOptions, World};

/// Pools of two drives each, with one volume each.
fn array(seed: u64, protection: &str, pools: &[&str]) -> (Lab, Vec<[DriveNumber; 2]>) {
    let world = World::new(seed, None);
    let path = |pool: &str, n: usize| format!("/dev/{pool}{n}");
    let drive = |pool: &str, n| world.add_drive(DriveOptions::new(&path(pool, n), 1 << 30));
    let numbers = pools.iter().map(|pool| [drive(pool, 0), drive(pool, 1)]).collect();
    let paths: Vec<String> = pools.iter().flat_map(|pool| [path(pool, 0), path(pool, 1)]).collect();
    let mut lab = Lab::in_world(world, 2, &paths.iter().map(String::as_str).collect::<Vec<_>>());
    for &name in pools {
        let drives = vec![path(name, 0), path(name, 1)];
        let protection = protection.to_owned();
        let pool = NewPool::new(name, protection, drives);
        lab.change(Command::PoolCreate { pool, dry_run: false });
        let volume = NewVolume {
            name: format!("in-{name}"),
            backing: NewBacking::Pool(name.to_owned()),
            size_bytes: Some(64 << 20),
            block_bytes: 512,
            write_back: false,
        };
        lab.change(Command::VolumeCreate { volume, dry_run: false });
    }
    (lab, numbers)
}

fn codes(status: &ArrayStatus) -> Vec<ProblemCode> {
    status.problems.iter().map(|problem| problem.code()).collect()
}

#[test]
fn an_array_that_starts_or_stops_says_so() {
    let (mut lab, _) = array(1, "mirror-2", &["fast"]);
    lab.kill();
    lab.begin_restart();
    let status = lab.status();
    assert!(codes(&status).contains(&ProblemCode::ArrayStarting), "{status:#?}");
    lab.finish_start();
    assert_eq!(codes(&lab.status()), []);
    let stopped = lab.send_command(Command::Shutdown);
    let status = lab.status();
    assert!(stopped.lock().unwrap().is_none(), "it is not done yet");
    assert_eq!(codes(&status)[0], ProblemCode::ArrayStopping);
}

/// A pool that is being made is not offline: it is not there yet.
#[test]
fn a_new_pool_is_no_problem() {
    let (mut lab, _) = array(6, "mirror-2", &["fast"]);
    for n in 0..2 {
        lab.simulation.world.add_drive(DriveOptions::new(&format!("/dev/new{n}"), 1 << 30));
    }
    lab.events();
    let drives = vec!["/dev/new0".to_owned(), "/dev/new1".to_owned()];
    let pool = NewPool::new("new", "mirror-2", drives);
    let made = lab.send_command(Command::PoolCreate { pool, dry_run: false });
    while made.lock().unwrap().is_none() {
        assert_eq!(codes(&lab.status()), []);
        lab.pass(Nanos::from_micros(100));
    }
    assert!(made.lock().unwrap().as_ref().is_some_and(Result::is_ok));
    lab.pass(Nanos::from_secs(1));
    let said = lab.facts();
    assert!(said.iter().all(|facts| facts.code() != EventCode::ProblemBegan), "{said:#?}");
}

/// Without the head's own copy of the catalog, and with too few drives of the only pool, the array is unknown.
#[test]
fn an_array_that_cannot_start_says_why() {
    let (mut lab, drives) = array(2, "stripe", &["fast"]);
    lab.kill();
    *lab.saved.lock().unwrap() = None;
    lab.simulation.world.vanish(drives[0][1], None, false);
    lab.begin_restart();
    lab.pass(Nanos::from_secs(30));
    assert!(lab.start_result().is_err());
    let status = lab.status();
    assert_eq!(codes(&status)[0], ProblemCode::ArrayFailed, "{status:#?}");
    assert_eq!(status.problems[0].subject, Subject::Array);
}

/// One of the volumes of a schedule lacks the last snapshot, because its pool was offline.
#[test]
fn a_schedule_names_what_it_has_left_out() {
    let (mut lab, drives) = array(3, "mirror-2", &["fast", "slow"]);
    let keep = Keep { hourly: 1, ..Keep::default() };
    let volumes = vec!["in-fast".to_owned(), "in-slow".to_owned()];
    let order = ScheduleOrder::Create { name: "often".to_owned(), volumes, keep };
    lab.change(Command::Schedule { order, dry_run: false });
    lab.pass(Nanos::from_secs(10));
    drives[1].iter().for_each(|&drive| lab.simulation.world.vanish(drive, None, false));
    for _ in 0..61 {
        lab.pass(Nanos::from_secs(60));
    }
    let status = lab.status();
    let left_out = status.problems.iter().find(|one| one.code() == ProblemCode::ScheduleIncomplete);
    let left_out = left_out.unwrap_or_else(|| panic!("{status:#?}"));
    assert_eq!(left_out.facts, ProblemFacts::ScheduleIncomplete { volume: "in-slow".to_owned() });
    assert_eq!(left_out.subject, Subject::Schedule("often".to_owned()));
    let Ok(Reply::Problems(problems)) = lab.command(Command::Problems) else { panic!("no problems") };
    assert_eq!(problems, status.problems);
}

/// Lets time pass in short steps until there are no problems, apart from errors of drives, which are shown for an hour;
/// returns the codes of those that there were.
fn until_healthy(lab: &mut Lab) -> BTreeSet<ProblemCode> {
    let mut seen = BTreeSet::new();
    for _ in 0..60_000 {
        let now = codes(&lab.status());
        if now.iter().all(|&code| code == ProblemCode::DriveErrors) {
            return seen;
        }
        seen.extend(now);
        lab.pass(Nanos::from_millis(1));
    }
    panic!("not healthy within a minute: {:#?}", lab.status().problems);
}

fn wait_for(lab: &mut Lab, code: ProblemCode) -> Problem {
    for _ in 0..60 {
        if let Some(found) = lab.status().problems.into_iter().find(|problem| problem.code() == code) {
            return found;
        }
        lab.pass(Nanos::from_secs(1));
    }
    panic!("no {code} within a minute: {:#?}", lab.status().problems);
}

/// A mirror of two drives cannot rebuild with one; what was written meanwhile lacks a copy until it has come back.
#[test]
fn a_rebuild_without_drives_waits_for_them() {
    let (mut lab, drives) = array(4, "mirror-2", &["fast"]);
    lab.simulation.world.vanish(drives[0][1], None, false);
    let lacks = wait_for(&mut lab, ProblemCode::RebuildLacksDrives);
    assert_eq!(lacks.subject, Subject::pool("fast"));
    (0..20).for_each(|n| lab.create_pool_volume(&format!("meanwhile-{n}"), false));
    lab.simulation.world.return_drive(drives[0][1]);
    let seen = until_healthy(&mut lab);
    assert!(seen.contains(&ProblemCode::SegmentsIncomplete), "{seen:?}");
}

/// The file system below the drives is full, while the array runs and when it starts.
#[test]
fn a_pool_without_space_below_it_says_so() {
    let (mut lab, drives) = array(5, "mirror-2", &["fast"]);
    let fill =
        |lab: &Lab, full| drives[0].iter().for_each(|&drive| lab.simulation.world.set_no_space(drive, full));
    fill(&lab, true);
    let create = |name: &str| {
        let volume = common::memory_volume(name, 1 << 20);
        Command::VolumeCreate { volume, dry_run: false }
    };
    let mut tries = 0;
    while lab.command(create(&format!("try-{tries}"))).is_ok() {
        tries += 1;
        assert!(tries < 1000, "changes of the catalog need no space");
    }
    let short = wait_for(&mut lab, ProblemCode::NoSpaceBelow);
    let paths = vec!["/dev/fast0".to_owned(), "/dev/fast1".to_owned()];
    assert_eq!(short.facts, ProblemFacts::NoSpaceBelow { paths });
    fill(&lab, false);
    until_healthy(&mut lab);
    assert!(lab.command(create("last")).is_ok());

    lab.kill();
    fill(&lab, true);
    lab.restart();
    assert_eq!(lab.start_result(), Ok(()), "what is there is served");
    let undone = wait_for(&mut lab, ProblemCode::StartIncomplete);
    assert_eq!(undone.subject, Subject::Array);
}
