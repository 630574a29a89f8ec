//! The array's management through its commands, without a host.

mod common;

use api::ProblemCode;
use api::{Command, Reply};
use api::{
    CommandErrorKind, Health, Made, NewBacking, NewChap, NewHost, NewVolume, VolumeBacking, VolumeStep,
};
use common::{Lab, memory_volume};
use sim::{DriveOptions, Patience, World};

const MIB: u64 = 1 << 20;

#[test]
fn what_is_made_is_there_and_what_is_not_is_not() {
    for shards in [1, 3] {
        let mut lab = Lab::new(1, shards, &[]);
        assert_eq!(lab.start_result(), Ok(()));
        let command = Command::VolumeCreate { volume: memory_volume("scratch", 16 * MIB), dry_run: true };
        let dry = lab.change(command);
        let create = VolumeStep::CreateVolume {
            volume: "scratch".to_owned(),
            size_bytes: 16 * MIB,
            backing: VolumeBacking::Memory,
        };
        assert!(dry.dry_run && dry.made.is_none(), "{dry:?}");
        assert_eq!(dry.steps, [create.into()]);
        assert!(lab.status().volumes.is_empty());
        lab.create_memory_volume("scratch", 16 * MIB);
        lab.create_host("pve1", "iqn.1993-08.org.debian:01:abc");
        let map = Command::Map {
            volume: "scratch".into(),
            host: "pve1".into(),
            lun: None,
            read_only: true,
            dry_run: false,
        };
        let change = lab.change(map);
        assert_eq!(change.hosts_affected, ["pve1"]);
        assert!(matches!(change.made, Some(Made::Mapping(mapping)) if mapping.lun == 0 && mapping.read_only));
        let status = lab.status();
        assert_eq!(status.health, Health::Healthy, "{:?}", status.problems);
        assert_eq!((status.volumes.len(), status.hosts.len(), status.mappings.len()), (1, 1, 1));
        assert_eq!(status.portals[0].address, common::PORTAL);
        assert_eq!(status.shards, shards);
    }
}

#[test]
fn refusals_name_what_is_wrong_and_what_to_do() {
    let mut lab = Lab::new(2, 1, &[]);
    lab.create_memory_volume("a", MIB);
    lab.create_host("h", "iqn.1993-08.org.debian:01:abc");
    lab.map("a", "h", 3, false);
    let delete = |unmap| Command::VolumeDelete { name: "a".into(), unmap, eradicate: true, dry_run: false };
    let volume = |name: &str, backing, size_bytes| Command::VolumeCreate {
        volume: NewVolume { name: name.into(), backing, size_bytes, block_bytes: 512, write_back: false },
        dry_run: false,
    };
    let cases = [
        (delete(false), CommandErrorKind::InUse, "host h"),
        (volume("a", NewBacking::Memory, Some(MIB)), CommandErrorKind::AlreadyExists, "\"a\""),
        (volume("b", NewBacking::Memory, None), CommandErrorKind::Invalid, "needs a size"),
        (volume("b", NewBacking::Null, Some(MIB + 1)), CommandErrorKind::Invalid, "multiple of 4096"),
        (volume("b c", NewBacking::Null, Some(MIB)), CommandErrorKind::Invalid, "' '"),
        (volume("b", NewBacking::Pool("fast".into()), Some(MIB)), CommandErrorKind::NotFound, "\"fast\""),
        (
            volume("b", NewBacking::Raw("/dev/none".into()), None),
            CommandErrorKind::NotFound,
            "/dev/none: not found",
        ),
    ];
    for (command, kind, text) in cases {
        let error = lab.command(command).unwrap_err();
        assert_eq!(error.kind, kind, "{error}");
        assert!(error.message.contains(text), "{error} does not say {text}");
        assert!(!error.hint.is_empty() || kind == CommandErrorKind::Invalid, "{error} has no hint");
    }
    lab.change(delete(true));
    let status = lab.status();
    assert!(status.volumes.is_empty() && status.mappings.is_empty() && status.hosts.len() == 1);
}

#[test]
fn an_array_without_pools_comes_back_from_the_state_directory() {
    let mut lab = Lab::new(3, 2, &[]);
    lab.create_memory_volume("a", MIB);
    let host = NewHost {
        name: "h".into(),
        initiators: vec!["iqn.1993-08.org.debian:01:abc".into()],
        chap: Some(NewChap { user: "u".into(), secret: "a secret of some length".into() }),
        mutual_chap: None,
    };
    lab.change(Command::HostCreate { host, dry_run: false });
    let before = lab.status();
    assert_eq!(lab.command(Command::Shutdown), Ok(Reply::Stopped));
    lab.pass(base::Nanos::from_secs(5));
    assert!(lab.is_stopped());
    lab.kill();
    lab.restart();
    let after = lab.status();
    assert_eq!((before.array_id, before.target_name), (after.array_id, after.target_name));
    assert_eq!((before.volumes, before.hosts), (after.volumes, after.hosts));
}

#[test]
fn a_state_that_cannot_be_read_is_left_alone() {
    let mut lab = Lab::new(4, 1, &[]);
    lab.kill();
    *lab.saved.lock().unwrap() = Some(bytes::Bytes::from_static(b"{\"schema\": 999, \"new\": true}"));
    lab.restart();
    let error = lab.start_result().unwrap_err();
    assert!(error.message.contains("999"), "{error}");
    let command = Command::VolumeCreate { volume: memory_volume("a", MIB), dry_run: false };
    assert_eq!(lab.command(command), Err(error));
    assert_eq!(lab.status().health, Health::Offline);
    assert!(lab.saved.lock().unwrap().as_ref().unwrap().ends_with(b"\"new\": true}"));
}

#[test]
fn a_raw_volume_is_its_device() {
    let world = World::new(5, None);
    let device = world.add_drive(DriveOptions::new("/dev/sdx", 64 * MIB));
    let mut lab = Lab::in_world(world, 2, &[]);
    let volume = NewVolume {
        name: "old-lun".into(),
        backing: NewBacking::Raw("/dev/sdx".into()),
        size_bytes: None,
        block_bytes: 512,
        write_back: false,
    };
    let change = lab.change(Command::VolumeCreate { volume: volume.clone(), dry_run: false });
    assert!(matches!(change.made, Some(Made::Volume(made)) if made.size_bytes == 64 * MIB));
    let twice = NewVolume { name: "again".into(), ..volume };
    let error = lab.command(Command::VolumeCreate { volume: twice, dry_run: false }).unwrap_err();
    assert_eq!(error.kind, CommandErrorKind::InUse, "{error}");
    lab.kill();
    lab.simulation.world.vanish(device, None, false);
    lab.restart();
    let status = lab.status();
    assert_eq!((status.health, status.volumes[0].health), (Health::Offline, Health::Offline));
    assert_eq!(status.problems[0].code(), ProblemCode::VolumeDeviceUnusable);
}

#[test]
fn commands_that_come_while_the_array_starts_are_answered_when_it_has() {
    let mut lab = Lab::new(6, 2, &[]);
    let answers: Vec<_> = (0..20)
        .map(|n| {
            let volume = memory_volume(&format!("v{n}"), MIB);
            lab.send_command(Command::VolumeCreate { volume, dry_run: false })
        })
        .collect();
    let all = answers.clone();
    let done = || all.iter().all(|answer| answer.lock().unwrap().is_some());
    lab.simulation.step_until(Patience::default(), done).unwrap();
    assert!(answers.iter().all(|answer| answer.lock().unwrap().as_ref().unwrap().is_ok()));
    assert_eq!(lab.status().volumes.len(), 20);
}
