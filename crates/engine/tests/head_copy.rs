//! An array without a pool keeps what it is in the head's own copy alone: what a host has changed is answered when that is durable.

mod common;

use base::Nanos;
use block::Payload;
use common::Lab;
use common::host::{Host, cdb};
use engine::Command;
use engine::command::{NewBacking, NewVolume};
use iscsi::initiator::Request;
use sim::{DriveOptions, World};
use wire::scsi::reservation::{ReserveOutList, parse_keys};

const ALPHA: &str = "iqn.2001-04.com.example:alpha";

/// REGISTER, to be kept (APTPL).
fn register(key: u64, action_key: u64) -> Request {
    let list = ReserveOutList {
        key,
        service_action_key: action_key,
        specify_initiator_ports: false,
        all_target_ports: false,
        persist: true,
    };
    let mut request = Request::new(0, cdb(&[0x5F, 0, 0, 0, 0, 0, 0, 0, 24, 0]));
    request.data_out = Payload::from(list.emit(&[]));
    request
}

fn keys(lab: &mut Lab, host: &Host) -> Vec<u64> {
    let mut request = Request::new(0, cdb(&[0x5E, 0, 0, 0, 0, 0, 0, 4, 0, 0]));
    request.expected_in = 1024;
    parse_keys(&host.run(lab, request).data_in.to_vec()).unwrap().1
}

#[test]
fn what_a_host_has_changed_is_answered_when_it_is_kept() {
    for (seed, shards) in [(1, 1), (2, 2)] {
        let world = World::new(seed, None);
        world.add_drive(DriveOptions::new("/dev/sdx", 64 << 20));
        let mut lab = Lab::in_world(world, shards, &[]);
        let volume = NewVolume {
            name: "old-lun".to_owned(),
            backing: NewBacking::Raw("/dev/sdx".to_owned()),
            size_bytes: None,
            block_bytes: 512,
            write_back: false,
        };
        lab.change(Command::VolumeCreate { volume, dry_run: false });
        lab.create_host("alpha", ALPHA);
        lab.map("old-lun", "alpha", 0, false);
        let host = Host::log_in(&mut lab, shards - 1, ALPHA, 1);
        host.settle(&mut lab, 0);
        for (kept, before, after) in [(true, 0, 1), (false, 1, 2), (true, 1, 3)] {
            *lab.slow.lock().unwrap() = Some(Vec::new());
            let tag = host.send(&mut lab, register(before, after));
            lab.pass(Nanos::from_secs(1));
            let saving = lab.slow.lock().unwrap().take().unwrap();
            assert_eq!(saving.len(), 1);
            assert!(host.completion(tag).is_none(), "it is not kept yet");
            saving[0].finish(kept);
            lab.pass(Nanos::from_millis(100));
            let status = host.completion(tag).expect("it is known by now").status;
            assert_eq!(status == 0, kept, "{status}");
            assert_eq!(keys(&mut lab, &host), if kept { vec![after] } else { vec![before] });
        }
    }
}
