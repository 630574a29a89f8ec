//! Renaming, changing hosts' credentials, and removing pools and drives, while hosts keep using what they still have.

mod common;

use api::{Command, Reply};
use api::{
    CommandErrorKind, DriveContent, DriveNote, HostUpdate, Named, NewBacking, NewChap, NewPool, NewVolume,
    PortalOptions,
};
use common::Lab;
use common::host::Host;
use sim::{DriveOptions, World};

const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;
const ALPHA: &str = "iqn.2001-04.com.example:alpha";
const SECOND: &str = "iqn.2001-04.com.example:alpha-2";

fn rename(of: Named, name: &str) -> Command {
    Command::Rename { of, name: name.into(), dry_run: false }
}

fn update(host: &str, update: HostUpdate) -> Command {
    Command::HostUpdate { name: host.into(), update, dry_run: false }
}

fn delete_pool(eradicate: bool) -> Command {
    Command::PoolDelete { name: "fast".into(), eradicate, dry_run: false }
}

fn in_pool(name: &str) -> (DriveContent, String) {
    (DriveContent::Member, format!("pool {name}"))
}

fn blank() -> (DriveContent, String) {
    (DriveContent::Blank, String::new())
}

fn content(lab: &mut Lab, path: &str) -> (DriveContent, String) {
    match lab.command(Command::DriveList) {
        Ok(Reply::Drives(drives)) => {
            let drive = drives.into_iter().find(|drive| drive.path == path).expect("it is configured");
            (drive.content, drive.detail)
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn hosts_go_on_while_everything_gets_another_name() {
    let mut lab = Lab::with_pool(1, 2);
    lab.create_pool_volume("a", false);
    lab.create_host("alpha", ALPHA);
    lab.map("a", "alpha", 0, false);
    let alpha = Host::log_in(&mut lab, 1, ALPHA, 1);
    alpha.settle(&mut lab, 0);
    alpha.write(&mut lab, 0, 8, &[7; 512]);
    let snapshot = api::CopyOrder::Snapshot { snapshots: vec![("a".into(), "mon".into())] };
    lab.change(Command::Copy { order: snapshot, dry_run: false });
    for (of, name) in [
        (Named::Snapshot { volume: "a".into(), snapshot: "mon".into() }, "tue"),
        (Named::Volume("a".into()), "b"),
        (Named::Pool("fast".into()), "slow"),
        (Named::Host("alpha".into()), "omega"),
    ] {
        let dry = lab.change(Command::Rename { of: of.clone(), name: name.into(), dry_run: true });
        let done = lab.change(rename(of, name));
        assert_eq!(dry.steps, done.steps);
    }
    assert_eq!(alpha.read(&mut lab, 0, 8, 1), [7; 512], "the session goes on, and its LUN is the same");
    let status = lab.status();
    assert_eq!((status.sessions.len(), status.sessions[0].host.as_str()), (1, "omega"));
    assert_eq!((status.pools[0].name.as_str(), status.volumes[0].name.as_str()), ("slow", "b"));
    let taken = lab.command(rename(Named::Volume("b".into()), "b")).unwrap_err();
    assert_eq!(taken.kind, CommandErrorKind::AlreadyExists);
    for of in [
        Named::Volume("a".into()),
        Named::Pool("fast".into()),
        Named::Host("alpha".into()),
        Named::Schedule("none".into()),
        Named::Snapshot { volume: "b".into(), snapshot: "mon".into() },
    ] {
        assert_eq!(lab.command(rename(of, "c")).unwrap_err().kind, CommandErrorKind::NotFound);
    }
    // the labels have the name, too: only the drives are moved to the new server
    lab.kill();
    *lab.saved.lock().unwrap() = None;
    lab.restart();
    assert_eq!(lab.status().pools[0].name, "slow");
    assert_eq!(content(&mut lab, "/dev/nvme0n1"), in_pool("slow"));
}

#[test]
fn a_portal_that_names_its_hosts_keeps_them() {
    let mut lab = Lab::new(2, 1, &[]);
    lab.create_host("alpha", ALPHA);
    let portal = |hosts: &[&str]| PortalOptions {
        hosts: hosts.iter().map(|&host| host.to_owned()).collect(),
        ..common::portal(0).into()
    };
    let reload = |hosts: &[&str]| Command::Reload { portals: vec![portal(hosts)], drives: Vec::new() };
    lab.change(reload(&["alpha"]));
    let refused = lab.command(rename(Named::Host("alpha".into()), "omega")).unwrap_err();
    assert_eq!(refused.kind, CommandErrorKind::InUse, "{refused}");
    lab.change(reload(&["alpha", "omega"]));
    lab.change(rename(Named::Host("alpha".into()), "omega"));
}

#[test]
fn initiators_and_secrets_change_and_sessions_that_stay_valid_go_on() {
    let mut lab = Lab::new(3, 2, &[]);
    lab.create_memory_volume("a", 16 * MIB);
    lab.create_host("alpha", ALPHA);
    lab.map("a", "alpha", 0, false);
    let stays = Host::log_in(&mut lab, 0, ALPHA, 1);
    stays.settle(&mut lab, 0);
    let add = HostUpdate { add_initiators: vec![SECOND.into()], ..HostUpdate::default() };
    lab.change(update("alpha", add.clone()));
    let goes = Host::log_in(&mut lab, 1, SECOND, 1);
    goes.settle(&mut lab, 0);
    let twice = lab.command(update("alpha", add)).unwrap_err();
    assert_eq!(twice.kind, CommandErrorKind::Invalid, "{twice}");
    let chap = Some(NewChap { user: "alpha".into(), secret: "a long enough secret".into() });
    lab.change(update("alpha", HostUpdate { chap, ..HostUpdate::default() }));
    stays.write(&mut lab, 0, 1, &[1; 512]);
    assert!(!Host::try_log_in(&mut lab, 0, ALPHA, 2).is_logged_in(), "the next login needs the secret");
    let remove = HostUpdate { remove_initiators: vec![SECOND.to_uppercase()], ..HostUpdate::default() };
    lab.change(update("alpha", remove.clone()));
    goes.wait_closed(&mut lab);
    assert_eq!(stays.read(&mut lab, 0, 1, 1), [1; 512]);
    assert_eq!(lab.command(update("alpha", remove)).unwrap_err().kind, CommandErrorKind::NotFound);
    let last = HostUpdate { remove_initiators: vec![ALPHA.into()], ..HostUpdate::default() };
    assert_eq!(lab.command(update("alpha", last)).unwrap_err().kind, CommandErrorKind::Invalid);
    lab.change(update("alpha", HostUpdate { no_chap: true, ..HostUpdate::default() }));
    assert!(Host::try_log_in(&mut lab, 0, ALPHA, 2).is_logged_in());
}

#[test]
fn a_pool_is_deleted_when_nothing_in_it_is_needed() {
    let mut lab = Lab::with_pool(4, 2);
    lab.create_pool_volume("a", false);
    let refused = lab.command(delete_pool(true)).unwrap_err();
    assert!(refused.kind == CommandErrorKind::InUse && refused.message.contains('a'), "{refused}");
    let bin = Command::VolumeDelete { name: "a".into(), unmap: false, eradicate: false, dry_run: false };
    lab.change(bin);
    let refused = lab.command(delete_pool(false)).unwrap_err();
    assert!(refused.hint.contains("undelete"), "what is in the bin can still be brought back: {refused}");
    let dry = lab.change(Command::PoolDelete { name: "fast".into(), eradicate: true, dry_run: true });
    assert_eq!(lab.status().pools.len(), 1);
    let done = lab.change(delete_pool(true));
    assert_eq!(dry.steps, done.steps);
    assert_eq!(done.steps.len(), 2 + 4, "{done:?}");
    let status = lab.status();
    assert!(status.pools.is_empty() && status.bin.is_empty(), "{status:?}");
    for drive in 0..4 {
        assert_eq!(content(&mut lab, &format!("/dev/nvme{drive}n1")), blank());
    }
    lab.kill();
    lab.restart();
    assert!(lab.status().pools.is_empty());
    assert_eq!(lab.command(delete_pool(true)).unwrap_err().kind, CommandErrorKind::NotFound);
}

/// A deletion that is interrupted at any moment has not begun, or continues at the next start: no part of a pool ever
/// remains.
#[test]
fn a_deletion_that_is_cut_off_is_carried_on() {
    let mut deleted = 0;
    for steps in (0..400).step_by(7) {
        let mut lab = Lab::with_pool(5, 1);
        lab.create_memory_volume("beside", MIB);
        let _answer = lab.send_command(delete_pool(false));
        for _ in 0..steps {
            lab.simulation.step();
        }
        lab.kill();
        lab.restart();
        let status = lab.status();
        assert_eq!(status.volumes.len(), 1, "{steps}: what is not in the pool stays");
        deleted += usize::from(status.pools.is_empty());
        let contents: Vec<_> =
            (0..4).map(|drive| content(&mut lab, &format!("/dev/nvme{drive}n1"))).collect();
        let expected = match status.pools.is_empty() {
            true => blank(),
            false => in_pool("fast"),
        };
        assert!(contents.iter().all(|content| *content == expected), "{steps}: {contents:?}");
    }
    assert!(deleted > 3, "hardly any deletion got so far");
}

#[test]
fn a_drive_that_was_away_does_not_bring_a_deleted_pool_back() {
    let world = World::new(6, None);
    let paths: Vec<String> = (0..4).map(|n| format!("/dev/sd{n}")).collect();
    let numbers: Vec<_> = paths.iter().map(|path| world.add_drive(DriveOptions::new(path, GIB))).collect();
    let mut lab = Lab::in_world(world, 1, &paths.iter().map(String::as_str).collect::<Vec<_>>());
    let pool = NewPool::new("fast", "parity-1", paths.clone());
    lab.change(Command::PoolCreate { pool, dry_run: false });
    lab.simulation.world.vanish(numbers[3], None, false);
    lab.pass(base::Nanos::from_secs(10));
    lab.change(delete_pool(false));
    lab.simulation.world.return_drive(numbers[3]);
    lab.change(Command::Reload { portals: vec![common::portal(0).into()], drives: paths.clone() });
    assert!(lab.status().pools.is_empty());
    assert_eq!(content(&mut lab, "/dev/sd3"), in_pool("fast"));
    let Ok(Reply::Drives(drives)) = lab.command(Command::DriveList) else { panic!("no list") };
    let note = &drives.iter().find(|drive| drive.path == "/dev/sd3").unwrap().note;
    let deleted = DriveNote::PoolDeleted { pool: "fast".to_owned(), drive: "/dev/sd3".to_owned() };
    assert_eq!(*note, Some(deleted));
    let wipe = |dry_run| Command::DriveWipe { path: "/dev/sd3".into(), dry_run };
    assert_eq!(lab.change(wipe(true)).steps, lab.change(wipe(false)).steps);
    assert_eq!(content(&mut lab, "/dev/sd3"), blank());
}

#[test]
fn what_is_in_use_is_not_wiped() {
    let mut lab = Lab::with_pool(7, 1);
    let wipe = |path: &str| Command::DriveWipe { path: path.into(), dry_run: false };
    assert_eq!(lab.command(wipe("/dev/nvme0n1")).unwrap_err().kind, CommandErrorKind::InUse);
    assert_eq!(lab.command(wipe("/dev/none")).unwrap_err().kind, CommandErrorKind::NotFound);
    lab.simulation.world.add_drive(DriveOptions::new("/dev/raw", 64 * MIB));
    let volume = NewVolume {
        name: "raw".into(),
        backing: NewBacking::Raw("/dev/raw".into()),
        size_bytes: None,
        block_bytes: 512,
        write_back: false,
    };
    lab.change(Command::VolumeCreate { volume, dry_run: false });
    assert_eq!(lab.command(wipe("/dev/raw")).unwrap_err().kind, CommandErrorKind::InUse);
}

/// The catalog knows initiators of other transports. A host of one could not log in, so it is not made.
#[test]
fn initiators_of_transports_that_are_not_served_are_refused() {
    let mut lab = Lab::new(9, 1, &[]);
    lab.create_host("alpha", "iqn.2001-04.com.example:alpha");
    for (initiator, transport) in
        [("nqn.2014-08.org.nvmexpress:uuid:1", "NVMe"), ("10:00:00:90:fa:12:34:56", "Fibre Channel")]
    {
        let host = api::NewHost {
            name: "omega".into(),
            initiators: vec![initiator.into()],
            chap: None,
            mutual_chap: None,
        };
        let add = HostUpdate { add_initiators: vec![initiator.into()], ..HostUpdate::default() };
        let name = "alpha".to_owned();
        for command in [
            Command::HostCreate { host, dry_run: false },
            Command::HostUpdate { name, update: add, dry_run: false },
        ] {
            let refused = lab.command(command).unwrap_err();
            assert_eq!(refused.kind, CommandErrorKind::Invalid);
            assert!(refused.message.contains(transport), "{refused}");
        }
    }
    assert_eq!(lab.status().hosts.len(), 1);
}
