//! Problems that no other test raises: each is reported by its code.

mod common;

use api::{
    ArrayStatus, Command, Keep, NewBacking, NewPool, NewVolume, ProblemCode, ProblemFacts, Reply,
    ScheduleOrder, Subject,
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
        let pool = NewPool { name: name.to_owned(), protection, width: None, drives, force: Vec::new() };
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
