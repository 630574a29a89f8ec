//! Figures for monitoring: what they count, and that they go on when hosts log in again.

mod common;

use api::{Command, Load, Metrics, Reply, SessionsLoad};
use base::Nanos;
use common::Lab;
use common::host::{Host, read_10, test_unit_ready, unmap, write_10};
use sim::DriveNumber;

const MIB: u64 = 1 << 20;
const ALPHA: &str = "iqn.2001-04.com.example:alpha";
const BETA: &str = "iqn.2001-04.com.example:beta";

fn metrics(lab: &mut Lab) -> Metrics {
    match lab.command(Command::Metrics) {
        Ok(Reply::Metrics(metrics)) => *metrics,
        other => panic!("metrics gave {other:?}"),
    }
}

fn host(metrics: &Metrics, name: &str) -> SessionsLoad {
    metrics.hosts.iter().find(|(host, _)| host == name).expect("it is there").1.clone()
}

fn volume(metrics: &Metrics, name: &str) -> Load {
    metrics.volumes.iter().find(|volume| volume.name == name).expect("it is there").load.clone()
}

/// Commands and bytes: reads, writes, all else.
fn done(load: &Load) -> [(u64, u64); 3] {
    let traffic = &load.traffic;
    [&traffic.reads, &traffic.writes, &traffic.others].map(|kind| (kind.latency.count(), kind.bytes))
}

fn array(seed: u64, shards: u16) -> Lab {
    let mut lab = Lab::with_pool(seed, shards);
    lab.create_pool_volume("a", false);
    lab.create_memory_volume("b", 16 * MIB);
    lab.create_host("alpha", ALPHA);
    lab.create_host("beta", BETA);
    lab.map("a", "alpha", 0, false);
    lab.map("b", "alpha", 1, false);
    lab.map("b", "beta", 0, true);
    lab
}

#[test]
fn counters_are_what_hosts_did_and_go_on_over_logins() {
    for (seed, shards) in [(1, 1), (2, 3)] {
        let mut lab = array(seed, shards);
        let (mut reads, mut writes, mut others) = (0, 0, 0);
        for round in 0..6u16 {
            let shard = round % shards;
            let alpha = Host::log_in(&mut lab, shard, ALPHA, round as u8);
            // each unit attention takes one TEST UNIT READY, and one more is answered well
            others += alpha.settle(&mut lab, 0).len() as u64 + 1;
            for block in 0..=u32::from(round) {
                alpha.write(&mut lab, 0, block * 8, &[7; 4096]);
                writes += 1;
            }
            alpha.read(&mut lab, 0, 0, 8);
            reads += 1;
            assert_eq!(alpha.run(&mut lab, unmap(0, 64, 8)).status, 0);
            others += 1;
            // while the session is there, and after it has ended: in order, or because its machine has lost power
            let during = metrics(&mut lab);
            let expected = [(reads, reads * 4096), (writes, writes * 4096), (others, 0)];
            assert_eq!(done(&volume(&during, "a")), expected);
            assert_eq!(done(&host(&during, "alpha").load), expected);
            assert_eq!(
                (host(&during, "alpha").sessions, host(&during, "alpha").logins),
                (1, u64::from(round) + 1)
            );
            assert_eq!(
                done(&during.shards[usize::from(shard)].sessions.load)[0].0,
                (reads - 1) / u64::from(shards) + 1
            );
            if round % 2 == 0 {
                alpha.log_out(&mut lab)
            } else {
                alpha.kill(&mut lab)
            }
            lab.pass(Nanos::from_secs(40));
            let after = metrics(&mut lab);
            assert_eq!(done(&volume(&after, "a")), expected);
            assert_eq!(done(&host(&after, "alpha").load), expected);
            assert_eq!(host(&after, "alpha").sessions, 0, "round {round}");
            let mut portals = after.other_portals.clone();
            after.portals.iter().for_each(|(_, load)| portals.merge(load));
            assert_eq!((done(&portals.load), portals.logins), (expected, u64::from(round) + 1));
        }
        let sum: u64 = metrics(&mut lab).lanes.iter().map(|lane| lane.host_written_bytes).sum();
        assert!(sum >= writes * 4096, "{sum}");
    }
}

#[test]
fn commands_count_with_their_kind_their_time_and_their_failure() {
    let mut lab = array(3, 2);
    let (alpha, beta) = (Host::log_in(&mut lab, 0, ALPHA, 1), Host::log_in(&mut lab, 1, BETA, 1));
    alpha.settle(&mut lab, 0);
    alpha.settle(&mut lab, 1);
    beta.settle(&mut lab, 0);
    alpha.write(&mut lab, 1, 0, &[3; 8192]);
    beta.read(&mut lab, 0, 0, 8);
    assert_eq!(beta.run(&mut lab, write_10(0, 0, &[1; 512])).status, 2, "it may only read");
    let outside = alpha.run(&mut lab, read_10(1, u32::MAX - 8, 8));
    assert_eq!(outside.status, 2, "outside of the volume");
    let now = metrics(&mut lab);
    assert_eq!(done(&volume(&now, "b"))[..2], [(2, 4096), (2, 8192)], "both hosts together");
    assert_eq!(done(&host(&now, "beta").load)[..2], [(1, 4096), (1, 0)]);
    let traffic = host(&now, "beta").load.traffic;
    assert_eq!(traffic.writes.failures, 0, "what must not be done is no failure");
    // a write to the pool takes as long as its drives; one to memory ends in its turn
    alpha.write(&mut lab, 0, 0, &[3; 4096]);
    let writes = volume(&metrics(&mut lab), "a").traffic.writes.latency;
    assert!(writes.sum() > Nanos(0) && writes.sum() < Nanos::from_secs(1), "{writes:?}");
    // the pool is gone: commands fail
    (0..4).for_each(|drive| lab.simulation.world.vanish(DriveNumber(drive), None, false));
    let failed = alpha.run(&mut lab, write_10(0, 0, &[3; 4096]));
    assert_eq!(failed.status, 2, "{failed:?}");
    let writes = volume(&metrics(&mut lab), "a").traffic.writes;
    assert_eq!((writes.failures, writes.bytes), (1, 4096));
}

#[test]
fn what_is_gone_is_counted_together() {
    let mut lab = array(4, 2);
    let (alpha, beta) = (Host::log_in(&mut lab, 0, ALPHA, 1), Host::log_in(&mut lab, 1, BETA, 1));
    alpha.settle(&mut lab, 1);
    beta.settle(&mut lab, 0);
    alpha.write(&mut lab, 1, 0, &[3; 4096]);
    beta.read(&mut lab, 0, 0, 8);
    let before = metrics(&mut lab);
    lab.change(Command::VolumeDelete { name: "b".into(), unmap: true, eradicate: true, dry_run: false });
    let after = metrics(&mut lab);
    assert_eq!(after.other_volumes.traffic, volume(&before, "b").traffic);
    // the session of a host that is removed ends, and counts with what is gone
    lab.change(Command::HostDelete { name: "beta".into(), unmap: true, dry_run: false });
    beta.wait_closed(&mut lab);
    lab.pass(Nanos::from_secs(5));
    let after = metrics(&mut lab);
    assert_eq!(after.hosts.len(), 1);
    assert_eq!(done(&after.other_hosts.load)[0], (1, 4096));
    // a renamed host has its sessions, and what it did before counts with what is gone
    alpha.log_out(&mut lab);
    let of = api::Named::Host("alpha".into());
    lab.change(Command::Rename { of, name: "gamma".into(), dry_run: false });
    let after = metrics(&mut lab);
    assert_eq!(done(&host(&after, "gamma").load)[1].0, 0);
    assert_eq!(done(&after.other_hosts.load)[..2], [(1, 4096), (1, 4096)]);
}

#[test]
fn commands_in_flight_and_refused_logins_are_told() {
    let mut lab = array(5, 2);
    let alpha = Host::log_in(&mut lab, 0, ALPHA, 1);
    alpha.settle(&mut lab, 0);
    (0..4).for_each(|drive| lab.simulation.world.stick(DriveNumber(drive), Nanos::from_secs(2)));
    let tags: Vec<_> = (0..8).map(|n| alpha.send(&mut lab, write_10(0, n * 8, &[1; 4096]))).collect();
    lab.pass(Nanos::from_millis(500));
    let now = metrics(&mut lab);
    assert_eq!((volume(&now, "a").in_flight, host(&now, "alpha").load.in_flight), (8, 8));
    assert!(now.pool_drives.iter().all(|drive| drive.in_flight > 0), "{:?}", now.pool_drives);
    lab.wait(|| tags.iter().all(|&tag| alpha.completion(tag).is_some()));
    let now = metrics(&mut lab);
    assert_eq!(volume(&now, "a").in_flight, 0);
    let writes = volume(&now, "a").traffic.writes.latency;
    assert!(writes.count() == 8 && writes.sum() > Nanos::from_secs(8), "{writes:?}");
    assert_eq!(alpha.run(&mut lab, test_unit_ready(0)).status, 0);
    let stranger = Host::try_log_in(&mut lab, 0, "iqn.2001-04.com.example:stranger", 1);
    stranger.wait_closed(&mut lab);
    lab.pass(Nanos::from_secs(5));
    let refused: u64 = metrics(&mut lab).shards.iter().map(|shard| shard.sessions.refused_logins).sum();
    assert_eq!(refused, 1);
}

/// A scrape of a thousand volumes and many sessions takes no long turn.
#[test]
fn a_scrape_of_a_thousand_volumes_takes_short_turns() {
    let mut lab = Lab::new(6, 2, &[]);
    lab.create_host("alpha", ALPHA);
    for number in 0..1000u16 {
        let name = format!("v{number}");
        lab.create_memory_volume(&name, MIB);
        lab.map(&name, "alpha", number, false);
    }
    let alpha = Host::log_in(&mut lab, 1, ALPHA, 1);
    for lun in 0..1000 {
        // a unit attention, which is a command as well
        alpha.run(&mut lab, test_unit_ready(lun));
    }
    lab.longest_turn();
    let now = metrics(&mut lab);
    let turn = lab.longest_turn();
    assert_eq!(now.volumes.iter().filter(|volume| volume.load.traffic.commands() == 1).count(), 1000);
    assert!(turn < std::time::Duration::from_millis(20), "{turn:?}");
}
