//! Events: what happens is told once, in order, without gaps, to readers however slow they are.

mod common;

use std::collections::BTreeSet;

use api::{
    Caller, Command, CommandKind, DriveTrouble, Event, EventCode, EventFacts, Expiry, HeadCall, HeadSource,
    JournalTrouble, Keep, NewBacking, NewPool, NewSettings, NewVolume, Origin, PoolOffline, ProblemCode,
    ProblemFacts, RepairKind, Reply, ScheduleOrder, Subject, Upkeep,
};
use base::Nanos;
use base::limits::{EVENT_READERS_MAX, EVENTS_AT_ONCE_MAX, EVENTS_HELD_MAX};
use common::Lab;
use common::host::Host;
use env::IoError;
use sim::{DriveNumber, DriveOptions, World};

const INITIATOR: &str = "iqn.2001-04.com.example:alpha";
const GIB: u64 = 1 << 30;

fn path(number: usize) -> String {
    format!("/dev/sd{}", (b'a' + number as u8) as char)
}

/// Pool `fast` on the first `members` of these drives, with a volume that a host has written to.
fn array(seed: u64, protection: &str, members: usize, drives: usize) -> (Lab, Vec<DriveNumber>) {
    let world = World::new(seed, None);
    let numbers = (0..drives).map(|n| world.add_drive(DriveOptions::new(&path(n), GIB))).collect();
    let paths: Vec<String> = (0..drives).map(path).collect();
    let mut lab = Lab::in_world(world, 2, &paths.iter().map(String::as_str).collect::<Vec<_>>());
    let pool = NewPool::new("fast", protection, paths[..members].to_vec());
    lab.change(Command::PoolCreate { pool, dry_run: false });
    lab.change(new_volume("vm"));
    lab.create_host("pve", INITIATOR);
    lab.map("vm", "pve", 0, false);
    let host = Host::log_in(&mut lab, 0, INITIATOR, 1);
    host.settle(&mut lab, 0);
    for number in 0..40 {
        host.write(&mut lab, 0, number * 3000, &[number as u8; 64 << 10]);
    }
    host.log_out(&mut lab);
    lab.pass(Nanos::from_millis(100));
    (lab, numbers)
}

fn new_volume(name: &str) -> Command {
    let volume = NewVolume {
        name: name.to_owned(),
        backing: NewBacking::Pool("fast".to_owned()),
        size_bytes: Some(128 << 20),
        block_bytes: 512,
        write_back: false,
    };
    Command::VolumeCreate { volume, dry_run: false }
}

fn codes(events: &[Event]) -> Vec<EventCode> {
    events.iter().map(Event::code).collect()
}

/// Lets time pass until these have been told, in this order, with others between them. Returns all since the last look.
fn wait_for(lab: &mut Lab, wanted: &[EventCode], seconds: u64) -> Vec<Event> {
    let mut events: Vec<Event> = Vec::new();
    for _ in 0..seconds {
        events.extend(lab.events());
        let mut told = events.iter().map(Event::code);
        if wanted.iter().all(|wanted| told.any(|code| code == *wanted)) {
            return events;
        }
        lab.pass(Nanos::from_secs(1));
    }
    panic!("not {wanted:?}, but {events:#?}");
}

fn of(events: &[Event], code: EventCode) -> &Event {
    events.iter().find(|event| event.code() == code).unwrap_or_else(|| panic!("no {code}: {events:#?}"))
}

fn upkeep(upkeep: Upkeep) -> Command {
    Command::Upkeep { upkeep, dry_run: false }
}

#[test]
fn changes_are_told_with_who_made_them() {
    let (mut lab, _) = array(1, "mirror-2", 2, 2);
    let events = lab.events();
    assert_eq!(events[0].sequence, 1);
    assert_eq!(codes(&events)[..2], [EventCode::DaemonStarted, EventCode::PoolOpened]);
    let made = |event: &Event| match &event.facts {
        EventFacts::ChangeMade { command, origin: Origin::Daemon, steps, .. } => {
            assert!(!steps.is_empty());
            Some((*command, event.subject.clone()))
        }
        _ => None,
    };
    let changes: Vec<(CommandKind, Subject)> = events.iter().filter_map(made).collect();
    let volume = || Subject::volume("vm");
    let expected = [
        (CommandKind::PoolCreate, Subject::pool("fast")),
        (CommandKind::VolumeCreate, volume()),
        (CommandKind::HostCreate, Subject::Host("pve".to_owned())),
        (CommandKind::Map, volume()),
    ];
    assert_eq!(changes, expected);
    let sessions: Vec<EventCode> = codes(&events)
        .into_iter()
        .filter(|code| matches!(code, EventCode::SessionBegan | EventCode::SessionEnded))
        .collect();
    assert_eq!(sessions, [EventCode::SessionBegan, EventCode::SessionEnded]);

    let origin = Origin::Local { user: 1000, name: None, process: Some(7) };
    let caller = Caller::new(origin.clone(), || false);
    let answer = lab.send_command_from(new_volume("vm"), caller);
    lab.wait(|| answer.lock().unwrap().is_some());
    let mut dry = new_volume("other");
    if let Command::VolumeCreate { dry_run, .. } = &mut dry {
        *dry_run = true;
    }
    lab.change(dry);
    lab.pass(Nanos::from_secs(1));
    let events = lab.events();
    assert_eq!(codes(&events), [EventCode::ChangeRefused], "a dry run is no event");
    let EventFacts::ChangeRefused { command, origin: by, .. } = &events[0].facts else { unreachable!() };
    assert_eq!((command, by), (&CommandKind::VolumeCreate, &origin));
}

#[test]
fn numbers_go_on_over_a_restart() {
    let (mut lab, _) = array(2, "mirror-2", 2, 2);
    lab.events();
    let newest = lab.newest_event;
    // a reader that waits gets the last ones
    let read = |lab: &mut Lab, after| lab.send_command(Command::Events { after, limit: 9, wait: true });
    let mut answer = read(&mut lab, newest);
    let stopped = lab.send_command(Command::Shutdown);
    let mut events: Vec<Event> = Vec::new();
    loop {
        lab.wait(|| answer.lock().unwrap().is_some());
        let Some(Ok(Reply::Events(page))) = answer.lock().unwrap().take() else { panic!("no events") };
        events.extend(page.events);
        if codes(&events).contains(&EventCode::DaemonStopped) {
            break;
        }
        answer = read(&mut lab, events.last().unwrap().sequence);
    }
    lab.wait(|| stopped.lock().unwrap().is_some());
    assert_eq!(codes(&events), [EventCode::PoolClosed, EventCode::DaemonStopped]);
    assert_eq!(events[0].facts, EventFacts::PoolClosed { why: PoolOffline::Stopping });
    lab.newest_event = events[1].sequence;
    lab.restart();
    let again = lab.events();
    assert_eq!(codes(&again)[..2], [EventCode::DaemonStarted, EventCode::PoolOpened]);
    assert_eq!(again[0].sequence, events[1].sequence + 1);
    assert_eq!(again[1].facts, EventFacts::PoolOpened { drives: 2, lost_drives: 0 });
}

#[test]
fn a_drive_that_goes_and_comes_back_is_told_with_the_problem() {
    let (mut lab, drives) = array(3, "mirror-2", 3, 3);
    lab.events();
    lab.simulation.world.vanish(drives[1], None, false);
    let events = wait_for(&mut lab, &[EventCode::DriveGivenUp, EventCode::ProblemBegan], 20);
    let given_up = of(&events, EventCode::DriveGivenUp);
    assert_eq!(given_up.subject, Subject::drive(path(1)));
    let facts = EventFacts::DriveGivenUp { pool: "fast".to_owned(), trouble: DriveTrouble::Missing };
    assert_eq!(given_up.facts, facts);
    let EventFacts::ProblemBegan { problem } = &of(&events, EventCode::ProblemBegan).facts else {
        unreachable!()
    };
    assert_eq!((problem.code(), &problem.subject), (ProblemCode::PoolDegraded, &Subject::pool("fast")));
    assert!(problem.since_ms.is_some(), "it is known when it began");
    let status = lab.status();
    assert_eq!(status.problems[0].since_ms, problem.since_ms);
    lab.simulation.world.return_drive(drives[1]);
    let events = wait_for(&mut lab, &[EventCode::DriveReturned, EventCode::ProblemEnded], 120);
    let EventFacts::ProblemEnded { problem } = &of(&events, EventCode::ProblemEnded).facts else {
        unreachable!()
    };
    assert_eq!(problem.subject, Subject::pool("fast"));
}

#[test]
fn a_lost_drive_is_rebuilt_and_leaves() {
    let (mut lab, drives) = array(4, "mirror-2", 3, 3);
    lab.events();
    lab.simulation.world.vanish(drives[1], None, false);
    let wanted = [EventCode::RepairBegan, EventCode::RepairEnded, EventCode::DriveLeft];
    let events = wait_for(&mut lab, &wanted, 300);
    let EventFacts::RepairBegan { what, bytes } = of(&events, EventCode::RepairBegan).facts else {
        unreachable!()
    };
    assert!(what == RepairKind::Rebuilding && bytes > 0);
    assert_eq!(of(&events, EventCode::DriveLeft).subject, Subject::drive(path(1)));
    // the second loss is more than the pool can do without
    lab.simulation.world.vanish(drives[0], None, false);
    lab.simulation.world.vanish(drives[2], None, false);
    let events = wait_for(&mut lab, &[EventCode::PoolFailed, EventCode::ProblemBegan], 60);
    let failed = EventFacts::PoolFailed { why: PoolOffline::TooManyFailed };
    assert_eq!(of(&events, EventCode::PoolFailed).facts, failed);
}

#[test]
fn drives_that_an_administrator_moves_are_told() {
    let (mut lab, _) = array(5, "mirror-2", 3, 4);
    lab.events();
    let (pool, drive) = ("fast".to_owned(), path(3));
    lab.change(upkeep(Upkeep::DriveAdd { pool: pool.clone(), drives: vec![drive], force: Vec::new() }));
    let events = wait_for(&mut lab, &[EventCode::DriveJoined, EventCode::ChangeMade], 5);
    assert_eq!(of(&events, EventCode::DriveJoined).subject, Subject::drive(path(3)));
    let remove = |cancel| upkeep(Upkeep::DriveRemove { pool: pool.clone(), drive: path(0), cancel });
    lab.change(remove(false));
    lab.change(remove(true));
    let events = wait_for(&mut lab, &[EventCode::DriveEmptying, EventCode::DriveKept], 5);
    assert_eq!(of(&events, EventCode::DriveKept).subject, Subject::drive(path(0)));
    lab.change(remove(false));
    wait_for(&mut lab, &[EventCode::DriveEmptying, EventCode::DriveLeft], 120);
}

#[test]
fn scrubs_and_schedules_and_the_bin_are_told() {
    let (mut lab, _) = array(6, "mirror-2", 2, 2);
    let pool = || "fast".to_owned();
    lab.events();
    lab.change(upkeep(Upkeep::Scrub { pool: pool(), stop: false }));
    let events = wait_for(&mut lab, &[EventCode::ScrubBegan, EventCode::ScrubEnded], 120);
    let ended = EventFacts::ScrubEnded { complete: true, repaired: 0, unreadable: 0 };
    assert_eq!(of(&events, EventCode::ScrubEnded).facts, ended);

    let keep = Keep { hourly: 1, ..Keep::default() };
    let order = ScheduleOrder::Create { name: "often".to_owned(), volumes: vec!["vm".to_owned()], keep };
    lab.change(Command::Schedule { order, dry_run: false });
    let mut expired = Vec::new();
    for _ in 0..150 {
        lab.pass(Nanos::from_secs(60));
        expired.extend(lab.facts().into_iter().filter_map(|facts| match facts {
            EventFacts::SnapshotsTaken { volumes, expired } => {
                assert_eq!(volumes, ["vm"]);
                Some(expired)
            }
            _ => None,
        }));
    }
    assert!(
        expired.len() >= 2 && expired[0] == 0 && expired[1..].iter().all(|&count| count == 1),
        "{expired:?}"
    );
    assert_eq!(EventCode::SnapshotsTaken.to_string(), "snapshots-taken");

    lab.change(new_volume("old"));
    let settings = NewSettings { bin_seconds: Some(60), ..NewSettings::default() };
    lab.change(upkeep(Upkeep::Set { pool: pool(), settings }));
    let name = "old".to_owned();
    lab.change(Command::VolumeDelete { name, unmap: false, eradicate: false, dry_run: false });
    let events = wait_for(&mut lab, &[EventCode::VolumeExpired], 120);
    let expired = of(&events, EventCode::VolumeExpired);
    assert_eq!(expired.subject, Subject::volume("old"));
    assert_eq!(expired.facts, EventFacts::VolumeExpired { pool: pool(), why: Expiry::Overdue });
}

#[test]
fn a_journal_that_cannot_be_written_is_a_problem_until_it_can() {
    let mut lab = Lab::new(7, 1, &[]);
    lab.pass(Nanos::from_secs(1));
    lab.events();
    let trouble = JournalTrouble { path: "/state/events.jsonl".into(), error: IoError::NoSpace };
    lab.change(Command::EventsKept(Err(trouble)));
    let events = wait_for(&mut lab, &[EventCode::ProblemBegan], 5);
    assert_eq!(events.len(), 1, "{events:#?}");
    let codes: Vec<ProblemCode> = lab.status().problems.iter().map(|problem| problem.code()).collect();
    assert_eq!(codes, [ProblemCode::EventsNotKept]);
    lab.change(Command::EventsKept(Ok(())));
    wait_for(&mut lab, &[EventCode::ProblemEnded], 5);
    assert_eq!(lab.status().problems, []);
}

/// What fills is one problem that changes, not one that ends and another that begins.
#[test]
fn a_problem_that_gets_worse_has_changed() {
    let (mut lab, drives) = array(8, "mirror-3", 4, 4);
    lab.events();
    lab.simulation.world.vanish(drives[1], None, false);
    wait_for(&mut lab, &[EventCode::ProblemBegan], 20);
    lab.simulation.world.vanish(drives[2], None, false);
    let events = wait_for(&mut lab, &[EventCode::ProblemChanged], 20);
    let EventFacts::ProblemChanged { before, problem } = &of(&events, EventCode::ProblemChanged).facts else {
        unreachable!()
    };
    assert_eq!((&before.subject, &problem.subject), (&Subject::pool("fast"), &Subject::pool("fast")));
    assert_ne!(before.key(), problem.key());
}

#[test]
fn a_slow_reader_is_told_how_many_it_has_missed() {
    let mut lab = Lab::new(9, 1, &[]);
    let report = || Command::Report {
        subject: Subject::Address("10.0.0.66".to_owned()),
        facts: EventFacts::ApiRefused {},
        count: 1,
    };
    lab.events();
    let first = lab.newest_event;
    let too_many = EVENTS_HELD_MAX as u64 + 100;
    for _ in 0..too_many {
        lab.change(report());
    }
    let page = |lab: &mut Lab, after| {
        let ask = Command::Events { after, limit: usize::MAX, wait: true };
        match lab.command(ask) {
            Ok(Reply::Events(page)) => page,
            other => panic!("{other:?}"),
        }
    };
    let told = page(&mut lab, first);
    assert_eq!((told.dropped, told.events.len()), (100, EVENTS_AT_ONCE_MAX));
    assert_eq!(told.events[0].sequence, first + 101);
    assert_eq!(told.newest, first + too_many);
    // one that has everything waits for the next, and not for ever
    let began = lab.simulation.world.now();
    let none = page(&mut lab, first + too_many);
    assert!(none.events.is_empty() && lab.simulation.world.now() - began >= Nanos::from_secs(30));
    let waiting: Vec<_> = (0..EVENT_READERS_MAX)
        .map(|_| lab.send_command(Command::Events { after: first + too_many, limit: 9, wait: true }))
        .collect();
    lab.pass(Nanos::from_secs(1));
    let one_more = lab.command(Command::Events { after: first + too_many, limit: 9, wait: true });
    assert!(one_more.is_err(), "readers are bounded: {one_more:?}");
    lab.change(report());
    lab.wait(|| waiting.iter().all(|answer| answer.lock().unwrap().is_some()));
}

/// Strangers under always new names try to log in all the time.
#[test]
fn a_flood_of_logins_costs_few_events() {
    let mut lab = Lab::new(10, 2, &[]);
    lab.create_memory_volume("disk", 1 << 20);
    lab.events();
    for number in 0..320 {
        Host::try_log_in(&mut lab, 0, &format!("iqn.2001-04.com.example:stranger{number}"), 1);
        Host::try_log_in(&mut lab, 0, "iqn.2001-04.com.example:the-same", 1);
    }
    lab.pass(Nanos::from_secs(130));
    let events = lab.events();
    assert!(events.len() < 300, "{}", events.len());
    assert_eq!(of(&events, EventCode::EventsHeldBack).subject, Subject::Array);
    let refused = |event: &&Event| {
        matches!(event.facts, EventFacts::LoginRefused { .. } | EventFacts::EventsHeldBack { .. })
    };
    let counted: u64 = events.iter().filter(refused).map(|event| event.count).sum();
    assert_eq!(counted, 640, "each is counted");
    let codes = codes(&events);
    assert!(codes.contains(&EventCode::LoginRefused));
}

fn of_pair(facts: Vec<ProblemFacts>) -> Command {
    let problems = facts.into_iter().map(|facts| (Subject::Array, facts)).collect();
    Command::Head(HeadCall::Problems { source: HeadSource::Pair, problems })
}

/// What a head says of its pair is a problem until it says otherwise. Maintenance began when the register says.
#[test]
fn what_a_head_knows_of_its_pair_is_a_problem() {
    let mut lab = Lab::new(9, 1, &[]);
    lab.pass(Nanos::from_secs(1));
    lab.events();
    lab.change(of_pair(vec![ProblemFacts::PairMaintenance { since_ms: 77 }]));
    wait_for(&mut lab, &[EventCode::ProblemBegan], 5);
    let problems: Vec<_> =
        lab.status().problems.iter().map(|problem| (problem.code(), problem.since_ms)).collect();
    assert_eq!(problems, [(ProblemCode::PairMaintenance, Some(77))]);
    lab.change(of_pair(Vec::new()));
    wait_for(&mut lab, &[EventCode::ProblemEnded], 5);
    assert_eq!(lab.status().problems, []);
}

/// What is wrong with fencing, too.
#[test]
fn a_head_that_cannot_fence_the_other_one_is_a_problem() {
    let mut lab = Lab::new(10, 1, &[]);
    let (agent, detail) = ("fence_x".to_owned(), "no answer".to_owned());
    let facts = [
        ProblemFacts::FenceUnusable { agent: agent.clone(), detail: detail.clone() },
        ProblemFacts::HeadNotFenced { agent, detail },
    ];
    lab.change(of_pair(facts.to_vec()));
    let codes: Vec<ProblemCode> = lab.status().problems.iter().map(|problem| problem.code()).collect();
    assert_eq!(codes, [ProblemCode::FenceUnusable, ProblemCode::HeadNotFenced]);
}

/// One source of a head does not speak for another one, and none can flood the list.
#[test]
fn each_source_of_a_head_has_its_own_problems() {
    let mut lab = Lab::new(11, 1, &[]);
    let of_drives = |count: usize| {
        let problem = |index| {
            (
                Subject::drive(format!("/dev/sd{index}")),
                ProblemFacts::DriveSlow { factor: None, emptying: false },
            )
        };
        let mut problems: Vec<_> = (0..count).map(problem).collect();
        // the worst is last, and is told all the same
        problems.push((Subject::pool("fast"), ProblemFacts::SegmentsIncomplete { segments: 1 }));
        Command::Head(HeadCall::Problems { source: HeadSource::Drives, problems })
    };
    let codes = |lab: &mut Lab| -> BTreeSet<ProblemCode> {
        lab.status().problems.iter().map(|problem| problem.code()).collect()
    };
    lab.change(of_pair(vec![ProblemFacts::PairMaintenance { since_ms: 77 }]));
    lab.change(of_drives(1));
    let both = [ProblemCode::DriveSlow, ProblemCode::PairMaintenance, ProblemCode::SegmentsIncomplete];
    assert_eq!(codes(&mut lab), BTreeSet::from(both));
    lab.change(of_pair(vec![]));
    assert_eq!(codes(&mut lab), BTreeSet::from([ProblemCode::DriveSlow, ProblemCode::SegmentsIncomplete]));
    lab.change(of_drives(600));
    let problems = lab.status().problems;
    assert_eq!(problems.len(), base::limits::HEAD_PROBLEMS_MAX);
    assert_eq!(problems[0].code(), ProblemCode::SegmentsIncomplete);
    let left_out = problems.iter().find(|problem| problem.code() == ProblemCode::ProblemsLeftOut);
    let left_out = left_out.expect("it is said").facts.clone();
    assert_eq!(left_out, ProblemFacts::ProblemsLeftOut { left_out: 601 - 511 });
    lab.change(Command::Head(HeadCall::Problems { source: HeadSource::Drives, problems: vec![] }));
    assert_eq!(lab.status().problems, []);
}
