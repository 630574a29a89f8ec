//! What the head knows and the array does not: the health of drives, with each drive and as a problem of a pool that may lose several to heat;
//! alerts that do not arrive.

mod common;

use std::collections::BTreeMap;

use api::{
    Command, DriveHealth, DriveLink, DriveSelfTest, HeadCall, HeadSource, NewPool, ProblemCode, ProblemFacts,
    Reply, Subject,
};
use common::Lab;
use sim::{DriveOptions, World};

const GIB: u64 = 1 << 30;
const DRIVES: [&str; 4] = ["/dev/sda", "/dev/sdb", "/dev/sdc", "/dev/sdd"];

/// Pool `fast` on the first three drives, which survives one failure.
fn array(seed: u64) -> Lab {
    let world = World::new(seed, None);
    for path in DRIVES {
        world.add_drive(DriveOptions::new(path, GIB));
    }
    let mut lab = Lab::in_world(world, 1, &DRIVES);
    let pool = NewPool::new("fast", "mirror-2", DRIVES[..3].iter().map(|path| (*path).to_owned()).collect());
    lab.change(Command::PoolCreate { pool, dry_run: false });
    lab
}

fn tell(lab: &mut Lab, celsius: &[(&str, i16)]) {
    let health = celsius.iter().map(|(path, celsius)| {
        let health = DriveHealth {
            celsius: Some(*celsius),
            celsius_critical: Some(80),
            near_shutdown: *celsius >= 77,
            self_test: Some(DriveSelfTest { has_passed: true, at_hours: None }),
            link: Some(DriveLink { width: 4, width_max: 4, megatransfers: 8_000, megatransfers_max: 8_000 }),
            ..DriveHealth::default()
        };
        ((*path).to_owned(), health)
    });
    let health: BTreeMap<String, DriveHealth> = health.collect();
    lab.change(Command::Head(HeadCall::DriveHealth(health)));
}

#[test]
fn the_array_says_which_drives_it_knows_and_which_it_uses() {
    let mut lab = array(1);
    let Ok(Reply::DrivePaths(mut drives)) = lab.command(Command::Head(HeadCall::DrivePaths)) else {
        panic!("no drives")
    };
    drives.sort_by(|a, b| a.path.cmp(&b.path));
    let drives: Vec<(&str, bool)> = drives.iter().map(|drive| (drive.path.as_str(), drive.is_used)).collect();
    assert_eq!(drives, [("/dev/sda", true), ("/dev/sdb", true), ("/dev/sdc", true), ("/dev/sdd", false)]);
}

#[test]
fn the_health_of_a_drive_is_shown_with_it() {
    let mut lab = array(2);
    tell(&mut lab, &[("/dev/sda", 41), ("/dev/sdd", 30)]);
    let status = lab.status();
    let celsius = |path: &str| {
        let all = status.pools[0].drives.iter().chain(&status.drives);
        all.filter(|drive| drive.path == path).find_map(|drive| drive.health.as_ref()?.celsius)
    };
    assert_eq!(DRIVES.map(celsius), [Some(41), None, None, Some(30)]);
    // what is not told any more is not known any more
    tell(&mut lab, &[]);
    assert!(lab.status().pools[0].drives.iter().all(|drive| drive.health.is_none()));
}

/// A room that gets hot stops several drives at once. A drive of no pool does not count.
#[test]
fn more_drives_near_their_end_than_a_pool_can_lose_is_a_problem() {
    let mut lab = array(3);
    let codes = |lab: &mut Lab| -> Vec<ProblemCode> {
        lab.status().problems.iter().map(|problem| problem.code()).collect()
    };
    tell(&mut lab, &[("/dev/sda", 78), ("/dev/sdb", 70), ("/dev/sdd", 79)]);
    assert_eq!(codes(&mut lab), [], "the pool survives the loss of one");
    tell(&mut lab, &[("/dev/sda", 78), ("/dev/sdb", 77)]);
    let problem = lab.status().problems[0].clone();
    assert_eq!((problem.code(), &problem.subject), (ProblemCode::PoolOverheats, &Subject::pool("fast")));
    assert_eq!(problem.facts, ProblemFacts::PoolOverheats { drives: 2, survivable: 1 });
    tell(&mut lab, &[("/dev/sda", 70), ("/dev/sdb", 77)]);
    assert_eq!(codes(&mut lab), []);
}

/// What only real hardware can have, as the head would say it.
#[test]
fn what_a_head_says_of_its_drives_is_a_problem() {
    let mut lab = array(4);
    let link = DriveLink { width: 2, width_max: 4, megatransfers: 8_000, megatransfers_max: 8_000 };
    let problems = vec![(Subject::drive("/dev/sda"), ProblemFacts::DriveLinkSlow(link))];
    lab.change(Command::Head(HeadCall::Problems { source: HeadSource::Drives, problems }));
    let problem = lab.status().problems[0].clone();
    assert_eq!((problem.code(), problem.subject), (ProblemCode::DriveLinkSlow, Subject::drive("/dev/sda")));
    assert_eq!(problem.facts.reason(), "its PCIe link runs at x2 8.0 GT/s; drive and slot can x4 8.0 GT/s");
}

#[test]
fn alerts_that_do_not_arrive_are_a_problem_since_they_fail() {
    let mut lab = array(5);
    let facts = ProblemFacts::AlertsNotDelivered {
        error: "mail.example.com:587 cannot be reached: Connection refused".to_owned(),
        failing_since_ms: 1_795_694_400_000,
        untold: 1,
    };
    let problems = vec![(Subject::Channel("mail".to_owned()), facts)];
    lab.change(Command::Head(HeadCall::Problems { source: HeadSource::Alerts, problems }));
    let problem = lab.status().problems[0].clone();
    assert_eq!(
        (problem.code(), problem.since_ms),
        (ProblemCode::AlertsNotDelivered, Some(1_795_694_400_000))
    );
    assert_eq!(problem.subject.to_string(), "channel mail");
    assert!(problem.reason().ends_with("Connection refused; 1 problem is untold"), "{}", problem.reason());
    // another source takes nothing of it back
    lab.change(Command::Head(HeadCall::Problems { source: HeadSource::Drives, problems: vec![] }));
    assert_eq!(lab.status().problems.len(), 1);
    lab.change(Command::Head(HeadCall::Problems { source: HeadSource::Alerts, problems: vec![] }));
    assert_eq!(lab.status().problems, []);
}
