//! Who does not log in: it takes nothing from those who do.

mod common;

use base::Nanos;
use base::limits::LOGINS_PER_SHARD_MAX;
use common::host::{Host, Silent};
use common::{Lab, portal};
use iscsi::initiator::InitiatorParams;

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

/// A login that takes its time is not pushed out by those of another machine.
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

/// Discovery sessions are kept by strangers at no cost: they count with logins, and give way like them.
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
