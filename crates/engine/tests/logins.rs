//! Connections that never log in take nothing away from hosts that do.

mod common;

use api::Command;
use api::{EventCode, EventFacts, LoginLimit, LoginRefusal, ProblemCode, Subject};
use api::{NewChap, NewHost};
use base::Nanos;
use base::limits::{LOGINS_PER_SHARD_MAX, SESSIONS_PER_HOST_MAX};
use common::host::{Host, Silent};
use common::{Lab, portal};
use iscsi::initiator::{Event, Fault, InitiatorParams};
use iscsi::{Chap, Secret};
use wire::iscsi::LoginStatus;

const ALPHA: &str = "iqn.2001-04.com.example:alpha";
/// The machine that hosts are on, and another one.
const HOSTS: u16 = 1;
const OTHER: u16 = 3;

fn array(seed: u64) -> Lab {
    let mut lab = Lab::new(seed, 1, &[]);
    lab.create_memory_volume("disk", 1 << 20);
    lab.create_host("alpha", ALPHA);
    lab.map("disk", "alpha", 0, false);
    lab
}

#[test]
fn connections_that_say_nothing_shut_nobody_out() {
    for (seed, machine) in [(1, OTHER), (2, HOSTS)] {
        let mut lab = array(seed);
        let silent = Silent::connect(&mut lab, machine, portal(0), 300);
        lab.pass(Nanos::from_millis(100));
        assert_eq!(silent.open(), LOGINS_PER_SHARD_MAX, "the others have given way");
        let began = lab.simulation.world.now();
        let host = Host::log_in(&mut lab, 0, ALPHA, 1);
        host.settle(&mut lab, 0);
        assert!(lab.simulation.world.now() < began + Nanos::from_secs(1));
        assert!(silent.open() >= LOGINS_PER_SHARD_MAX - 2);
    }
}

/// A slow login is not displaced by logins from another machine.
#[test]
fn a_slow_login_outlasts_a_flood_from_elsewhere() {
    let mut lab = array(3);
    let slow = Silent::connect(&mut lab, HOSTS, portal(0), 3);
    let flood = Silent::connect(&mut lab, OTHER, portal(0), 400);
    lab.pass(Nanos::from_millis(500));
    assert_eq!((slow.open(), flood.open()), (3, LOGINS_PER_SHARD_MAX - 3));
    let seen = lab.simulation.world.now();
    lab.pass(Nanos::from_secs(20));
    assert_eq!((slow.open(), flood.open()), (0, 0), "since {seen:?} they have timed out");
}

/// Idle discovery sessions of strangers cost others nothing: they count like logins in progress, and give way like
/// them.
#[test]
fn discovery_sessions_shut_nobody_out() {
    let mut lab = array(4);
    let strangers: Vec<Host> = (0..150)
        .map(|number| {
            let params = InitiatorParams::new(&format!("iqn.2001-04.com.example:stranger{number}"), None);
            let host = Host::start(&mut lab, portal(0), params);
            lab.wait(|| host.is_logged_in() || host.is_closed());
            host
        })
        .collect();
    let host = Host::log_in(&mut lab, 0, ALPHA, 1);
    host.settle(&mut lab, 0);
    lab.pass(Nanos::from_millis(100));
    let open = strangers.iter().filter(|stranger| !stranger.is_closed()).count();
    assert!((LOGINS_PER_SHARD_MAX - 1..=LOGINS_PER_SHARD_MAX).contains(&open), "{open}");
}

/// One initiator with always different ISIDs.
fn session(lab: &mut Lab, initiator: &str, number: u16) -> Host {
    let target = lab.status().target_name;
    let mut params = InitiatorParams::new(initiator, Some(&target));
    params.isid[4..].copy_from_slice(&number.to_be_bytes());
    let host = Host::start(lab, portal(0), params);
    lab.wait(|| host.is_logged_in() || host.is_closed());
    host
}

/// The refusals among the events since the last look, and how many occurrences each stands for.
fn refusals(lab: &mut Lab) -> Vec<(LoginRefusal, u64)> {
    let refused = |event: api::Event| match event.facts {
        EventFacts::LoginRefused { refusal, .. } => Some((refusal, event.count)),
        _ => None,
    };
    lab.events().into_iter().filter_map(refused).collect()
}

/// How many connections were closed unheard, by the events since the last look.
fn blocked(lab: &mut Lab) -> u64 {
    let blocked = |event: &api::Event| event.code() == EventCode::AddressBlocked;
    lab.events().into_iter().filter(blocked).map(|event| event.count).sum()
}

#[test]
fn one_host_does_not_take_every_session() {
    let mut lab = array(5);
    lab.create_host("beta", "iqn.2001-04.com.example:beta");
    let all = SESSIONS_PER_HOST_MAX as u16;
    let mut sessions: Vec<Host> = (0..all).map(|number| session(&mut lab, ALPHA, number)).collect();
    assert!(sessions.iter().all(Host::is_logged_in));
    assert_eq!(lab.status().problems, []);
    for number in [all, all + 1] {
        let refused = session(&mut lab, ALPHA, number);
        let told =
            |event: &Event| matches!(event, Event::Failed(Fault::LoginRefused(LoginStatus::OutOfResources)));
        assert!(refused.events().iter().any(told), "{:?}", refused.events());
    }
    let refusal = LoginRefusal::TooManySessions(LoginLimit::Host);
    assert_eq!(refusals(&mut lab), [(refusal, 1)], "the second one is counted");
    let problems = lab.status().problems;
    assert_eq!(problems.len(), 1);
    assert_eq!(problems[0].code(), ProblemCode::LoginsRefused);
    assert_eq!(problems[0].subject, Subject::Host("alpha".to_owned()));
    assert!(problems[0].reason().contains("2 logins"), "{}", problems[0].reason());
    // another host is not affected, and a host that is logged in may log in anew
    assert!(session(&mut lab, "iqn.2001-04.com.example:beta", 1).is_logged_in());
    assert!(session(&mut lab, ALPHA, 7).is_logged_in());
    sessions.swap_remove(3).log_out(&mut lab);
    assert!(session(&mut lab, ALPHA, all).is_logged_in());
    lab.pass(Nanos::from_secs(601));
    assert_eq!(lab.status().problems, [], "that was long ago");
    assert_eq!(refusals(&mut lab), [(refusal, 1)]);
}

/// An attacker tries secrets from one machine while the owner logs in from another.
#[test]
fn guessing_a_secret_gets_slower_and_holds_up_nobody_else() {
    let mut lab = array(6);
    let chap = Some(NewChap { user: "user".into(), secret: "the right secret".into() });
    let (name, initiator) = ("gamma".to_owned(), "iqn.2001-04.com.example:gamma".to_owned());
    let host = NewHost { name, initiators: vec![initiator.clone()], chap, mutual_chap: None };
    lab.change(Command::HostCreate { host, dry_run: false });
    let target = lab.status().target_name;
    let attempt = |lab: &mut Lab, machine: u16, secret: &str| {
        let mut params = InitiatorParams::new(&initiator, Some(&target));
        params.chap = Some(Chap { user: "user".into(), secret: Secret(secret.as_bytes().to_vec()) });
        let began = lab.simulation.world.now();
        let host = Host::start_from(lab, machine, portal(0), params);
        lab.wait(|| host.is_logged_in() || host.is_closed());
        (host.is_logged_in(), lab.simulation.world.now() - began)
    };
    let soon = Nanos::from_millis(90);
    for number in 0..12 {
        let (let_in, took) = attempt(&mut lab, OTHER, "a wrong one, surely");
        assert!(!let_in);
        assert_eq!(took < soon, number < 3, "{number}: {took:?}");
        assert!(number < 10 || took > Nanos::from_secs(4), "{number}: {took:?}");
    }
    let (let_in, took) = attempt(&mut lab, HOSTS, "the right secret");
    assert!(let_in && took < soon, "{took:?}");
    // from the address of the attacker a login takes longer, but works
    let (let_in, took) = attempt(&mut lab, OTHER, "the right secret");
    assert!(let_in && took > Nanos::from_secs(4), "{took:?}");
    // of many connections at once, those that would wait for too long are closed, which is reported
    assert_eq!(blocked(&mut lab), 0);
    let crowd = Silent::connect(&mut lab, OTHER, portal(0), 8);
    lab.pass(Nanos::from_secs(1));
    assert!(crowd.open() < 8);
    assert!(blocked(&mut lab) > 0);
}
