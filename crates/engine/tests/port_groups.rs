//! Portal groups: separate paths, with asymmetric access states that hosts can set (SPC-4 §5.16.2), and portals for
//! selected hosts only.

mod common;

use api::ProblemCode;
use api::{AccessState, ArrayStep, ChangeStep, GroupAccess, NewBacking, NewPool, NewVolume};
use api::{Command, PortalOptions};
use base::Nanos;
use block::Payload;
use common::host::{Host, cdb, inquiry, read_10, sense, test_unit_ready, write_10};
use common::{Lab, portal};
use iscsi::initiator::{Event, Fault, InitiatorParams, Request};
use sim::{DriveOptions, World};
use wire::iscsi::LoginStatus;
use wire::scsi::Lun;
use wire::scsi::port_groups::PortGroupState::{
    self, ActiveNonOptimized, ActiveOptimized, Standby, Unavailable,
};
use wire::scsi::port_groups::{PortGroupRow, PortGroupStatus, emit_set_port_groups, parse_port_groups};

const ALPHA: &str = "iqn.2001-04.com.example:alpha";
const BETA: &str = "iqn.2001-04.com.example:beta";
const MIB: u64 = 1 << 20;
const TRANSITION: (u8, u8, u8) = (2, 0x04, 0x0A);
const STANDBY: (u8, u8, u8) = (2, 0x04, 0x0B);
const UNAVAILABLE: (u8, u8, u8) = (2, 0x04, 0x0C);
const STATE_CHANGED: (u8, u8) = (0x2A, 0x06);

/// The portal of this group on this shard.
fn portal_of(group: u16, shard: u16) -> std::net::SocketAddr {
    let mut address = portal(shard);
    address.set_port(address.port() + 100 * (group - 1));
    address
}

fn options(group: u16, hosts: &[&str]) -> PortalOptions {
    let hosts = hosts.iter().map(|&host| host.to_owned()).collect();
    PortalOptions { address: portal_of(group, 0), group, hosts, forwarded: false }
}

fn reload(lab: &mut Lab, portals: Vec<PortalOptions>) -> Vec<ChangeStep> {
    lab.change(Command::Reload { portals, drives: (0..3).map(drive).collect() }).steps
}

fn drive(number: u16) -> String {
    format!("/dev/nvme{number}n1")
}

/// Two volumes in a pool, LUN 0 and 1 of two hosts, and three portal groups.
fn array(seed: u64, shards: u16) -> Lab {
    let world = World::new(seed, None);
    let drives: Vec<String> = (0..3).map(drive).collect();
    for path in &drives {
        world.add_drive(DriveOptions::new(path, 1 << 30));
    }
    let mut lab = Lab::in_world(world, shards, &drives.iter().map(String::as_str).collect::<Vec<_>>());
    let pool = NewPool::new("fast", "mirror-2", drives);
    lab.change(Command::PoolCreate { pool, dry_run: false });
    for (host, initiator) in [("alpha", ALPHA), ("beta", BETA)] {
        lab.create_host(host, initiator);
    }
    for (lun, name) in [(0, "one"), (1, "two")] {
        let backing = NewBacking::Pool("fast".to_owned());
        let (name, size_bytes) = (name.to_owned(), Some(8 * MIB));
        let volume =
            NewVolume { name: name.clone(), backing, size_bytes, block_bytes: 512, write_back: false };
        lab.change(Command::VolumeCreate { volume, dry_run: false });
        lab.map(&name, "alpha", lun, false);
        lab.map(&name, "beta", lun, false);
    }
    reload(&mut lab, vec![options(1, &[]), options(2, &[]), options(3, &[])]);
    lab
}

fn params(lab: &mut Lab, initiator: &str) -> InitiatorParams {
    InitiatorParams::new(initiator, Some(&lab.status().target_name))
}

fn log_in(lab: &mut Lab, group: u16, shard: u16, initiator: &str) -> Host {
    let params = params(lab, initiator);
    let host = Host::start(lab, portal_of(group, shard), params);
    lab.pass(Nanos::from_secs(1));
    assert!(host.is_logged_in(), "{:?}", host.events());
    (0..2).for_each(|lun| drop(host.settle(lab, lun)));
    host
}

fn report(lab: &mut Lab, host: &Host, lun: u16) -> Vec<PortGroupRow> {
    let mut request =
        Request::new(Lun::new(lun).unwrap().emit(), cdb(&[0xA3, 0x0A, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0]));
    request.expected_in = 1024;
    let completion = host.run(lab, request);
    assert_eq!(completion.status, 0, "{:x?}", sense(&completion));
    parse_port_groups(&completion.data_in.to_vec()).unwrap()
}

fn states(lab: &mut Lab, host: &Host, lun: u16) -> Vec<(u16, PortGroupState)> {
    report(lab, host, lun).into_iter().map(|row| (row.group, row.state)).collect()
}

/// SET TARGET PORT GROUPS for LUN 0.
fn set(changes: &[(u16, PortGroupState)]) -> Request {
    let list = emit_set_port_groups(changes);
    let mut request = Request::new(0, cdb(&[0xA4, 0x0A, 0, 0, 0, 0, 0, 0, 0, list.len() as u8, 0, 0]));
    request.data_out = Payload::from(list);
    request
}

fn outcome(lab: &mut Lab, host: &Host, request: Request) -> (u8, (u8, u8, u8)) {
    let completion = host.run(lab, request);
    (completion.status, sense(&completion))
}

#[test]
fn a_hosts_states_are_kept_by_every_shard_and_told_to_all_others() {
    for (seed, shards) in [(1, 1), (2, 3)] {
        let mut lab = array(seed, shards);
        let last = shards - 1;
        let (first, second) = (log_in(&mut lab, 1, 0, ALPHA), log_in(&mut lab, 2, last, ALPHA));
        let other = log_in(&mut lab, 3, 0, BETA);
        let rows = report(&mut lab, &second, 0);
        let told: Vec<_> = rows.iter().map(|row| (row.group, row.preferred, row.ports.clone())).collect();
        assert_eq!(told, [(1, false, vec![1]), (2, false, vec![2]), (3, false, vec![3])]);
        assert_eq!(outcome(&mut lab, &first, set(&[(2, Standby), (3, ActiveNonOptimized)])), (0, (0, 0, 0)));
        let expected = [(1, ActiveOptimized), (2, Standby), (3, ActiveNonOptimized)];
        assert_eq!(states(&mut lab, &first, 0), expected, "and nobody tells the one who asked");
        // a command that is served in any state notifies the others
        for host in [&second, &other] {
            let told = host.run(&mut lab, test_unit_ready(0));
            assert_eq!(sense(&told), (6, STATE_CHANGED.0, STATE_CHANGED.1));
            assert_eq!(states(&mut lab, host, 0), expected);
        }
        for refused in [test_unit_ready(0), read_10(0, 0, 1), write_10(0, 0, &[1; 512])] {
            assert_eq!(outcome(&mut lab, &second, refused), (2, STANDBY));
        }
        assert_eq!(second.run(&mut lab, inquiry(0)).status, 0);
        other.write(&mut lab, 0, 0, &[3; 512]);
        // another volume is not affected
        second.write(&mut lab, 1, 0, &[4; 512]);
        assert_eq!(states(&mut lab, &second, 1)[1], (2, ActiveOptimized));
        // a path that has lost access can restore its access itself
        assert_eq!(
            outcome(&mut lab, &second, set(&[(2, ActiveOptimized), (1, Unavailable)])),
            (0, (0, 0, 0))
        );
        assert_eq!(second.read(&mut lab, 0, 0, 1), [3; 512]);
        assert_eq!(first.run(&mut lab, test_unit_ready(0)).status, 2);
        assert_eq!(outcome(&mut lab, &first, test_unit_ready(0)), (2, UNAVAILABLE));
        // a later session finds the states as they are
        let params = InitiatorParams { isid: [2; 6], ..params(&mut lab, ALPHA) };
        let later = Host::start(&mut lab, portal_of(1, last), params);
        lab.pass(Nanos::from_secs(1));
        assert_eq!(sense(&later.run(&mut lab, test_unit_ready(0))), (6, 0x29, 0x00));
        assert_eq!(outcome(&mut lab, &later, test_unit_ready(0)), (2, UNAVAILABLE));
        let none_left = [(1, Standby), (2, Standby), (3, Standby)];
        let _ = outcome(&mut lab, &other, test_unit_ready(0));
        assert_eq!(outcome(&mut lab, &other, set(&none_left)), (2, (4, 0x67, 0x0A)));
        assert_eq!(states(&mut lab, &other, 0)[1], (2, ActiveOptimized), "nothing has changed");
    }
}

fn give(lab: &mut Lab, group: u16, state: AccessState) -> Result<api::Reply, api::CommandError> {
    let access = GroupAccess { group, state };
    lab.command(Command::VolumeAccess { name: "one".to_owned(), access, dry_run: false })
}

fn told(lab: &mut Lab) -> Vec<(u16, AccessState)> {
    let volumes = lab.status().volumes;
    volumes[0].access.iter().map(|access| (access.group, access.state)).collect()
}

/// States that the administrator sets are notified to every host, seen by all, and survive a power failure; so do
/// states that a host sets.
#[test]
fn an_administrators_states_are_told_and_survive_a_power_loss() {
    for seed in 0..12 {
        let shards = 1 + u16::try_from(seed % 3).unwrap();
        let head_start = Nanos::from_micros(50 * seed);
        let mut lab = array(seed, shards);
        let (first, second) = (log_in(&mut lab, 1, 0, ALPHA), log_in(&mut lab, 2, shards - 1, BETA));
        let writes: Vec<_> = (0..8).map(|n| second.send(&mut lab, write_10(0, n, &[7; 512]))).collect();
        lab.pass(head_start);
        let changed = give(&mut lab, 2, AccessState::Standby).unwrap();
        let api::Reply::Changed(change) = changed else { panic!("{changed:?}") };
        let (before, after) = (AccessState::ActiveOptimized, AccessState::Standby);
        let step = ArrayStep::SetAccess { volume: "one".to_owned(), group: 2, before, after };
        assert_eq!(change.steps, [step.into()]);
        assert_eq!(change.hosts_affected, ["alpha", "beta"]);
        // ended commands are being answered; commands that arrived later are refused, the first with the notification
        lab.pass(Nanos::from_secs(1));
        let ends: Vec<_> =
            writes.into_iter().map(|write| second.completion(write).expect("all end")).collect();
        let of = |wanted| ends.iter().filter(|end| end.status != 0 && sense(end) == wanted).count();
        let news = of((6, STATE_CHANGED.0, STATE_CHANGED.1));
        let served = ends.iter().filter(|end| end.status == 0).count();
        assert_eq!(served + of(TRANSITION) + of(STANDBY) + news, ends.len(), "{ends:?}");
        assert!(news <= 1);
        for (host, knows) in [(&first, 0), (&second, news)] {
            for _ in knows..1 {
                let told = sense(&host.run(&mut lab, test_unit_ready(0)));
                assert_eq!(told, (6, STATE_CHANGED.0, STATE_CHANGED.1));
            }
        }
        assert_eq!(outcome(&mut lab, &second, read_10(0, 0, 1)), (2, STANDBY));
        let row = &report(&mut lab, &first, 0)[1];
        assert_eq!((row.state, row.status), (Standby, PortGroupStatus::Implicit));
        // a host can set one, too, in addition to the other state
        assert_eq!(outcome(&mut lab, &first, set(&[(3, ActiveNonOptimized)])), (0, (0, 0, 0)));
        let expected = [
            (1, AccessState::ActiveOptimized),
            (2, AccessState::Standby),
            (3, AccessState::ActiveNonOptimized),
        ];
        assert_eq!(told(&mut lab), expected);
        lab.simulation.world.power_loss(0);
        lab.restart();
        reload(&mut lab, vec![options(1, &[]), options(2, &[]), options(3, &[])]);
        assert_eq!(told(&mut lab), expected);
        let first = log_in(&mut lab, 1, 0, ALPHA);
        let rows = report(&mut lab, &first, 0);
        assert_eq!(
            rows.iter().map(|row| row.state).collect::<Vec<_>>(),
            [ActiveOptimized, Standby, ActiveNonOptimized]
        );
        // without the last active group, hosts would have no path
        reload(&mut lab, vec![options(2, &[])]);
        assert_eq!(told(&mut lab), [(2, AccessState::ActiveOptimized)]);
    }
}

#[test]
fn what_an_administrator_cannot_set() {
    let mut lab = array(3, 2);
    for (group, state, words) in [
        (4, AccessState::Standby, "no portal group 4"),
        (1, AccessState::Transitioning, "not a state to be in"),
    ] {
        let error = give(&mut lab, group, state).unwrap_err();
        assert!(error.message.contains(words), "{error}");
        assert!(!error.hint.is_empty());
    }
    for group in [1, 2] {
        give(&mut lab, group, AccessState::Unavailable).unwrap();
    }
    let error = give(&mut lab, 3, AccessState::Standby).unwrap_err();
    assert!(error.message.contains("no portal group would be active"), "{error}");
    let access = GroupAccess { group: 1, state: AccessState::Standby };
    let missing = Command::VolumeAccess { name: "none".to_owned(), access, dry_run: false };
    assert!(lab.command(missing).unwrap_err().message.contains("no volume called"));
    let dry = Command::VolumeAccess { name: "one".to_owned(), access, dry_run: true };
    lab.command(dry).unwrap();
    assert_eq!(told(&mut lab)[0], (1, AccessState::Unavailable), "a dry run changes nothing");
}

/// Writes by a path that loses access end before the change does: each takes effect or is refused, and none takes
/// effect later.
#[test]
fn nothing_that_came_by_a_lost_path_lands_later() {
    let mut refused = 0;
    for seed in 10..30 {
        let mut lab = array(seed, 3);
        let (first, second) = (log_in(&mut lab, 1, 0, ALPHA), log_in(&mut lab, 2, 2, ALPHA));
        let writes: Vec<_> =
            (0..16).map(|n| second.send(&mut lab, write_10(0, n * 8, &[n as u8 + 1; 4096]))).collect();
        lab.pass(Nanos::from_micros(20 * (seed - 9)));
        assert_eq!(outcome(&mut lab, &first, set(&[(2, Standby)])), (0, (0, 0, 0)));
        let seen = first.read(&mut lab, 0, 0, 128);
        lab.pass(Nanos::from_secs(2));
        assert!(first.read(&mut lab, 0, 0, 128) == seen, "seed {seed}: a write landed late");
        for (n, tag) in writes.into_iter().enumerate() {
            let write = second.completion(tag).expect("every command is answered");
            let there = seen[n * 4096..(n + 1) * 4096] == [n as u8 + 1; 4096];
            assert_eq!(there, write.status == 0, "seed {seed}, write {n}: {:x?}", sense(&write));
            refused += u32::from(!there);
        }
    }
    assert!(refused > 0, "some writes come too late");
}

#[test]
fn two_hosts_that_change_states_at_once_leave_one_result() {
    for seed in 40..60 {
        let mut lab = array(seed, 3);
        let hosts = [log_in(&mut lab, 1, 0, ALPHA), log_in(&mut lab, 2, 1, BETA)];
        let wanted = [set(&[(2, Standby), (3, Unavailable)]), set(&[(1, Standby)])];
        let tags: Vec<_> =
            hosts.iter().zip(wanted).map(|(host, request)| host.send(&mut lab, request)).collect();
        lab.wait(|| hosts.iter().zip(&tags).all(|(host, &tag)| host.completion(tag).is_some()));
        let good = hosts.iter().zip(&tags).filter(|(host, tag)| host.completion(**tag).unwrap().status == 0);
        assert!(good.count() >= 1, "seed {seed}");
        hosts.iter().for_each(|host| drop(host.run(&mut lab, inquiry(0))));
        let _ = hosts.each_ref().map(|host| host.run(&mut lab, test_unit_ready(0)));
        let seen = hosts.each_ref().map(|host| states(&mut lab, host, 0));
        assert_eq!(seen[0], seen[1]);
        let active =
            seen[0].iter().filter(|(_, state)| matches!(state, ActiveOptimized | ActiveNonOptimized));
        assert!(active.count() >= 1, "seed {seed}: {seen:?}");
        assert!(seen[0].iter().all(|(_, state)| *state != PortGroupState::Transitioning));
    }
}

#[test]
fn a_portal_for_some_hosts_lets_nobody_else_in() {
    let mut lab = array(70, 2);
    let steps = reload(&mut lab, vec![options(1, &[]), options(2, &["beta"]), options(3, &[])]);
    let (portal, hosts) = (portal_of(2, 0).to_string(), vec!["beta".to_owned()]);
    assert_eq!(steps, [ArrayStep::AdmitHosts { portal, hosts }.into()]);
    let alpha = params(&mut lab, ALPHA);
    let refused = Host::start(&mut lab, portal_of(2, 0), alpha);
    refused.wait_closed(&mut lab);
    let is_refusal =
        |event: &Event| matches!(event, Event::Failed(Fault::LoginRefused(LoginStatus::AuthorizationFailed)));
    assert!(refused.events().iter().any(is_refusal), "{:?}", refused.events());
    let beta = log_in(&mut lab, 2, 0, BETA);
    for (initiator, groups) in [(ALPHA, vec![1, 3]), (BETA, vec![1, 2, 3])] {
        let looking = Host::start(&mut lab, portal_of(1, 0), InitiatorParams::new(initiator, None));
        lab.pass(Nanos::from_secs(1));
        let events = looking.send_targets(&mut lab);
        let [Event::Targets(targets)] = &events[..] else { panic!("{events:?}") };
        let expected: Vec<String> =
            groups.iter().map(|&group| format!("{},{group}", portal_of(group, 0))).collect();
        assert_eq!(targets[0].addresses, expected);
    }
    // the host loses access to the portal: its session there ends, others stay
    let stays = log_in(&mut lab, 1, 1, BETA);
    reload(&mut lab, vec![options(1, &[]), options(2, &["alpha"]), options(3, &[])]);
    beta.wait_closed(&mut lab);
    assert!(!stays.is_closed());
    log_in(&mut lab, 2, 0, ALPHA);
}

/// An old process may hold the address for a while: the portal opens as soon as the address is free, and hosts log in
/// then.
#[test]
fn a_portal_that_could_not_be_had_is_tried_again() {
    for shards in [1, 3] {
        let mut lab = array(7, shards);
        lab.kill();
        lab.occupy(portal(0), Nanos::from_secs(20));
        lab.restart();
        let status = lab.status();
        let problem =
            status.problems.iter().find(|problem| problem.code() == ProblemCode::PortalNotListening);
        let problem = problem.unwrap_or_else(|| panic!("{:#?}", status.problems));
        assert!(
            problem.action().contains("tried again") && !problem.action().contains("restart"),
            "{problem:?}"
        );
        lab.pass(Nanos::from_secs(22));
        let status = lab.status();
        assert!(status.problems.is_empty(), "{:#?}", status.problems);
        for shard in 0..shards {
            let params = params(&mut lab, ALPHA);
            let host = Host::start(&mut lab, portal_of(1, shard), InitiatorParams { isid: [3; 6], ..params });
            lab.pass(Nanos::from_secs(1));
            assert!(host.is_logged_in(), "shard {shard} of {shards}");
        }
    }
}
