//! Hosts of an array with memory volumes: what they see, and how changes of the array affect them.

mod common;

use api::Command;
use api::{NewChap, NewHost};
use common::Lab;
use common::host::{Host, read_10, sense, test_unit_ready, write_10};
use iscsi::initiator::{Event, Fault, InitiatorParams};
use iscsi::{Chap, Secret};
use wire::iscsi::LoginStatus;

const MIB: u64 = 1 << 20;
const ALPHA: &str = "iqn.2001-04.com.example:alpha";
const BETA: &str = "iqn.2001-04.com.example:beta";

/// Two hosts; volume a is LUN 0 of alpha and LUN 7 of beta (read-only), volume b LUN 300 of alpha.
fn array(seed: u64, shards: u16) -> Lab {
    let mut lab = Lab::new(seed, shards, &[]);
    lab.create_memory_volume("a", 16 * MIB);
    lab.create_memory_volume("b", 16 * MIB);
    lab.create_host("alpha", ALPHA);
    lab.create_host("beta", BETA);
    lab.map("a", "alpha", 0, false);
    lab.map("a", "beta", 7, true);
    lab.map("b", "alpha", 300, false);
    lab
}

fn pattern(seed: u8, bytes: usize) -> Vec<u8> {
    (0..bytes).map(|n| (n as u8).wrapping_mul(31) ^ (n >> 8) as u8 ^ seed).collect()
}

#[test]
fn what_is_written_is_read_by_every_shard_and_host() {
    for (seed, shards) in [(1, 1), (2, 3), (3, 4)] {
        let mut lab = array(seed, shards);
        let alpha = Host::log_in(&mut lab, 0, ALPHA, 1);
        assert_eq!(alpha.luns(&mut lab), [0, 300]);
        assert_eq!(alpha.settle(&mut lab, 0), [(0x29, 0x00)]);
        assert_eq!(alpha.settle(&mut lab, 300), [(0x29, 0x00)]);
        let (small, large) = (pattern(1, 512), pattern(2, 3 * MIB as usize));
        alpha.write(&mut lab, 0, 1, &small);
        alpha.write(&mut lab, 0, 4095, &large);
        alpha.write(&mut lab, 300, 1, &pattern(3, 512));
        let beta = Host::log_in(&mut lab, shards - 1, BETA, 1);
        assert_eq!(beta.luns(&mut lab), [7]);
        beta.settle(&mut lab, 7);
        assert_eq!(beta.read(&mut lab, 7, 1, 1), small);
        assert!(beta.read(&mut lab, 7, 4095, (large.len() / 512) as u16) == large);
        assert_eq!(alpha.read(&mut lab, 300, 1, 1), pattern(3, 512));
        let refused = beta.run(&mut lab, write_10(7, 1, &small));
        assert_eq!((refused.status, sense(&refused)), (2, (7, 0x27, 0)), "read-only");
        let foreign = beta.run(&mut lab, read_10(0, 1, 1));
        assert_eq!((foreign.status, sense(&foreign)), (2, (5, 0x25, 0)), "no such LUN");
        let status = lab.status();
        assert_eq!(status.sessions.len(), 2);
        let session = status.sessions.iter().find(|session| session.host == "alpha").unwrap();
        assert_eq!(session.written_bytes, (2 * small.len() + large.len()) as u64);
        alpha.log_out(&mut lab);
        lab.pass(base::Nanos::from_secs(1));
        assert_eq!(lab.status().sessions.len(), 1);
    }
}

#[test]
fn strangers_and_liars_do_not_get_in() {
    let mut lab = array(4, 2);
    let stranger = Host::try_log_in(&mut lab, 0, "iqn.2001-04.com.example:stranger", 1);
    let refused =
        |status| move |event: &Event| matches!(event, Event::Failed(Fault::LoginRefused(s)) if *s == status);
    assert!(!stranger.is_logged_in());
    assert!(
        stranger.events().iter().any(refused(LoginStatus::AuthorizationFailed)),
        "{:?}",
        stranger.events()
    );
    let secret = "a long enough secret";
    let host = NewHost {
        name: "guarded".into(),
        initiators: vec!["iqn.2001-04.com.example:guarded".into()],
        chap: Some(NewChap { user: "user".into(), secret: secret.into() }),
        mutual_chap: Some(NewChap { user: "array".into(), secret: "another long secret".into() }),
    };
    lab.change(Command::HostCreate { host, dry_run: false });
    let target = lab.status().target_name;
    let params = |secret: &str| {
        let mut params = InitiatorParams::new("iqn.2001-04.com.example:guarded", Some(&target));
        let chap =
            |user: &str, secret: &str| Chap { user: user.into(), secret: Secret(secret.as_bytes().to_vec()) };
        params.chap = Some(chap("user", secret));
        params.mutual = Some(chap("array", "another long secret"));
        params
    };
    let liar = Host::start(&mut lab, common::portal(1), params("a wrong guess here"));
    liar.wait_closed(&mut lab);
    assert!(liar.events().iter().any(refused(LoginStatus::AuthenticationFailed)), "{:?}", liar.events());
    let friend = Host::start(&mut lab, common::portal(1), params(secret));
    lab.pass(base::Nanos::from_secs(1));
    assert!(friend.is_logged_in(), "{:?}", friend.events());
    assert!(friend.luns(&mut lab).is_empty());
}

#[test]
fn discovery_names_the_target_and_its_portals() {
    let mut lab = array(5, 2);
    let host = Host::start(&mut lab, common::portal(1), InitiatorParams::new(ALPHA, None));
    lab.pass(base::Nanos::from_secs(1));
    assert!(host.is_logged_in(), "{:?}", host.events());
    let events = host.send_targets(&mut lab);
    let [Event::Targets(targets)] = &events[..] else { panic!("{events:?}") };
    assert_eq!(targets.len(), 1);
    assert_eq!(targets[0].name, lab.status().target_name);
    assert_eq!(targets[0].addresses, [format!("{},1", common::PORTAL)]);
}

/// A host that knew another volume by a LUN must look again before any command reaches the new one.
#[test]
fn another_volume_at_the_same_lun_is_told() {
    let mut lab = array(16, 2);
    let alpha = Host::log_in(&mut lab, 1, ALPHA, 1);
    [0, 300].iter().for_each(|&lun| drop(alpha.settle(&mut lab, lun)));
    lab.create_memory_volume("c", MIB);
    lab.unmap("a", "alpha");
    // the LUN is not assigned again automatically
    lab.change(map_anywhere("c", "alpha"));
    assert_eq!(alpha.luns(&mut lab), [1, 300]);
    assert_eq!(alpha.settle(&mut lab, 1), [(0x29, 0x00), (0x3F, 0x0E)], "no other volume was there");
    lab.unmap("c", "alpha");
    lab.map("c", "alpha", 0, false);
    let wrong = alpha.run(&mut lab, write_10(0, 0, &[1; 512]));
    assert_eq!(sense(&wrong), (6, 0x29, 0x00), "nothing is written");
    assert_eq!(alpha.settle(&mut lab, 0), [(0x3F, 0x03), (0x3F, 0x0E)]);
    // its own volume again, for which nothing has changed except that it is there
    lab.unmap("c", "alpha");
    lab.change(map_anywhere("c", "alpha"));
    assert_eq!(alpha.settle(&mut lab, 0), [(0x29, 0x00), (0x3F, 0x0E)]);
    let anew = Host::log_in(&mut lab, 0, ALPHA, 2);
    assert_eq!(anew.settle(&mut lab, 0), [(0x29, 0x00)], "a new session has known no other");
}

fn map_anywhere(volume: &str, host: &str) -> Command {
    let (volume, host) = (volume.to_owned(), host.to_owned());
    Command::Map { volume, host, lun: None, read_only: false, dry_run: false }
}

#[test]
fn a_change_of_mappings_is_told_and_takes_effect_at_once() {
    let mut lab = array(6, 3);
    let alpha = Host::log_in(&mut lab, 1, ALPHA, 1);
    let beta = Host::log_in(&mut lab, 2, BETA, 1);
    for lun in [0, 300] {
        alpha.settle(&mut lab, lun);
    }
    beta.settle(&mut lab, 7);
    lab.create_memory_volume("c", MIB);
    lab.map("c", "alpha", 1, false);
    assert_eq!(alpha.settle(&mut lab, 0), [(0x3F, 0x0E)], "reported LUNs have changed");
    assert_eq!(alpha.settle(&mut lab, 300), [(0x3F, 0x0E)]);
    assert_eq!(alpha.settle(&mut lab, 1)[0], (0x29, 0x00), "a new LUN");
    assert_eq!(alpha.luns(&mut lab), [0, 1, 300]);
    assert_eq!(beta.run(&mut lab, test_unit_ready(7)).status, 0, "the other host is not disturbed");
    lab.unmap("a", "alpha");
    let gone = alpha.run(&mut lab, read_10(0, 0, 1));
    assert_eq!((gone.status, sense(&gone)), (2, (5, 0x25, 0)));
    assert_eq!(beta.run(&mut lab, test_unit_ready(7)).status, 0);
    assert_eq!(beta.read(&mut lab, 7, 0, 1), [0; 512]);
    lab.change(Command::VolumeDelete { name: "a".into(), unmap: true, eradicate: true, dry_run: false });
    let gone = beta.run(&mut lab, read_10(7, 0, 1));
    assert_eq!((gone.status, sense(&gone)), (2, (5, 0x25, 0)));
    lab.change(Command::HostDelete { name: "alpha".into(), unmap: true, dry_run: false });
    alpha.wait_closed(&mut lab);
    assert!(!beta.is_closed());
    assert_eq!(lab.status().sessions.len(), 1);
}

#[test]
fn a_second_login_of_the_same_name_replaces_the_first() {
    let mut lab = array(7, 3);
    let first = Host::log_in(&mut lab, 1, ALPHA, 1);
    let beside = Host::log_in(&mut lab, 1, ALPHA, 2);
    first.settle(&mut lab, 0);
    first.write(&mut lab, 0, 0, &pattern(1, 4096));
    let second = Host::log_in(&mut lab, 2, ALPHA, 1);
    first.wait_closed(&mut lab);
    assert!(!beside.is_closed(), "another ISID is another session");
    second.settle(&mut lab, 0);
    assert_eq!(second.read(&mut lab, 0, 0, 8), pattern(1, 4096));
    assert_eq!(lab.status().sessions.len(), 2);
    // after the host's machine has died, its name is free again
    second.kill(&mut lab);
    let third = Host::log_in(&mut lab, 0, ALPHA, 1);
    third.settle(&mut lab, 0);
    assert_eq!(lab.status().sessions.len(), 2);
}

#[test]
fn an_array_that_stops_lets_its_hosts_go() {
    let mut lab = array(8, 3);
    let alpha = Host::log_in(&mut lab, 2, ALPHA, 1);
    let beta = Host::log_in(&mut lab, 0, BETA, 1);
    alpha.settle(&mut lab, 0);
    assert!(lab.command(Command::Shutdown).is_ok());
    alpha.wait_closed(&mut lab);
    beta.wait_closed(&mut lab);
    lab.pass(base::Nanos::from_secs(5));
    assert!(lab.is_stopped());
}

#[test]
fn a_thousand_connections_come_and_go() {
    let mut lab = array(9, 2);
    for round in 0..1000u32 {
        let host = Host::try_log_in(&mut lab, (round % 2) as u16, ALPHA, (round % 5) as u8);
        if round % 3 > 0 {
            // in the middle of a write
            host.send(&mut lab, write_10(0, 0, &pattern(round as u8, 65536)));
        }
        host.kill(&mut lab);
    }
    lab.pass(base::Nanos::from_secs(60));
    assert_eq!(lab.status().sessions.len(), 0);
    let last = Host::log_in(&mut lab, 0, ALPHA, 1);
    last.settle(&mut lab, 0);
    last.write(&mut lab, 0, 0, &pattern(1, 512));
}

/// More reads at once than fit the session's room: each gets its turn, also a large one.
#[test]
fn many_large_reads_at_once_are_all_answered() {
    let mut lab = array(10, 2);
    let alpha = Host::log_in(&mut lab, 1, ALPHA, 1);
    alpha.settle(&mut lab, 0);
    let data = pattern(5, 4 * MIB as usize);
    alpha.write(&mut lab, 0, 0, &data);
    let reads: Vec<_> = (0..100u32)
        .map(|n| {
            let (lba, blocks) = if n % 10 == 3 { (0, 8192) } else { (n * 8, 1 + n as u16 * 13) };
            (lba, blocks, alpha.send(&mut lab, read_10(0, lba, blocks)))
        })
        .collect();
    lab.wait(|| reads.iter().all(|&(.., tag)| alpha.completion(tag).is_some()));
    for (lba, blocks, tag) in reads {
        let completion = alpha.completion(tag).unwrap();
        let expected = &data[lba as usize * 512..][..usize::from(blocks) * 512];
        assert!(completion.status == 0 && completion.data_in.to_vec() == expected, "{lba} {blocks}");
    }
}
