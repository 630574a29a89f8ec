//! An array without a pool keeps its catalog only in the head's own copy. A change by a host is answered when this copy
//! is durable.

mod common;

use api::{Command, PortalOptions};
use base::Nanos;
use block::Payload;
use common::host::{Host, cdb};
use common::{Lab, portal};
use iscsi::initiator::Request;
use wire::scsi::port_groups::PortGroupState::{self, ActiveNonOptimized, Standby};
use wire::scsi::port_groups::{emit_set_port_groups, parse_port_groups};

const ALPHA: &str = "iqn.2001-04.com.example:alpha";
/// A portal group that the host does not use.
const OTHER: u16 = 2;

/// SET TARGET PORT GROUPS.
fn set(state: PortGroupState) -> Request {
    let list = emit_set_port_groups(&[(OTHER, state)]);
    let mut request = Request::new(0, cdb(&[0xA4, 0x0A, 0, 0, 0, 0, 0, 0, 0, list.len() as u8, 0, 0]));
    request.data_out = Payload::from(list);
    request
}

fn state(lab: &mut Lab, host: &Host) -> PortGroupState {
    let mut request = Request::new(0, cdb(&[0xA3, 0x0A, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0]));
    request.expected_in = 1024;
    let rows = parse_port_groups(&host.run(lab, request).data_in.to_vec()).unwrap();
    rows.iter().find(|row| row.group == OTHER).unwrap().state
}

#[test]
fn what_a_host_has_changed_is_answered_when_it_is_kept() {
    for (seed, shards) in [(1, 1), (2, 2)] {
        let mut lab = Lab::new(seed, shards, &[]);
        lab.create_memory_volume("disk", 1 << 20);
        lab.create_host("alpha", ALPHA);
        lab.map("disk", "alpha", 0, false);
        let mut address = portal(0);
        address.set_port(address.port() + 100);
        let second = PortalOptions { address, group: OTHER, hosts: Vec::new(), forwarded: false };
        let portals = vec![PortalOptions::from(portal(0)), second];
        lab.change(Command::Reload { portals, drives: Vec::new() });
        let host = Host::log_in(&mut lab, shards - 1, ALPHA, 1);
        host.settle(&mut lab, 0);
        let mut before = state(&mut lab, &host);
        for (kept, wanted) in [(true, Standby), (false, ActiveNonOptimized), (true, ActiveNonOptimized)] {
            *lab.slow.lock().unwrap() = Some(Vec::new());
            let tag = host.send(&mut lab, set(wanted));
            lab.pass(Nanos::from_secs(1));
            let saving = lab.slow.lock().unwrap().take().unwrap();
            assert_eq!(saving.len(), 1, "seed {seed}: {wanted:?} is to be kept");
            assert!(host.completion(tag).is_none(), "it is not kept yet");
            saving[0].finish(kept);
            lab.pass(Nanos::from_millis(100));
            let status = host.completion(tag).expect("it is known by now").status;
            assert_eq!(status == 0, kept, "{status}");
            before = if kept { wanted } else { before };
            assert_eq!(state(&mut lab, &host), before, "seed {seed}");
        }
    }
}

/// The catalog says which head serves the array, and where it listens.
#[test]
fn the_catalog_names_the_head_and_its_portals() {
    let mut lab = Lab::new(3, 1, &[]);
    lab.create_memory_volume("disk", 1 << 20);
    lab.create_host("alpha", ALPHA);
    lab.map("disk", "alpha", 0, false);
    let kept = |lab: &Lab| catalog::Catalog::decode(lab.saved.lock().unwrap().as_ref().unwrap()).unwrap();
    let addresses = |lab: &Lab| -> Vec<(std::net::SocketAddr, u16)> {
        let catalog = kept(lab);
        let [head] = catalog.heads() else { panic!("{:?}", catalog.heads()) };
        assert_eq!((head.id, head.name.as_str()), (base::HeadId(1), "test"));
        head.portals.iter().map(|portal| (portal.address, portal.group)).collect()
    };
    assert_eq!(addresses(&lab), [(portal(0), 1)]);
    let mut address = portal(0);
    address.set_port(address.port() + 100);
    let second = PortalOptions { address, group: OTHER, hosts: Vec::new(), forwarded: false };
    let portals = vec![PortalOptions::from(portal(0)), second];
    lab.change(Command::Reload { portals, drives: Vec::new() });
    // the next change is stored with it, also that of a host
    let host = Host::log_in(&mut lab, 0, ALPHA, 1);
    host.settle(&mut lab, 0);
    assert_eq!(host.run(&mut lab, set(Standby)).status, 0);
    assert_eq!(addresses(&lab), [(portal(0), 1), (address, OTHER)]);
    lab.create_host("beta", "iqn.2001-04.com.example:beta");
    assert_eq!(addresses(&lab), [(portal(0), 1), (address, OTHER)]);
}
