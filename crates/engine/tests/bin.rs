//! The bin, promoting clones, and schedules.

mod common;

use api::{
    ChangeStep, CommandErrorKind, CopyOrder, Health, HostStep, Keep, NewBacking, NewPool, NewSettings,
    NewVolume, NotMapped, PoolActivity, PoolStep, ScheduleOrder, SnapshotStatus, SnapshotStep, Upkeep,
    VolumeStep, WasMapped,
};
use api::{Command, Reply};
use api::{ProblemCode, Subject};
use base::Nanos;
use common::Lab;
use common::host::Host;
use sim::{DriveNumber, DriveOptions, World};

const ALPHA: &str = "iqn.2001-04.com.example:alpha";
const MIB: u64 = 1 << 20;
const MINUTE: Nanos = Nanos::from_secs(60);

/// A volume in a pool, as LUN 0 of a host.
fn array(seed: u64, shards: u16, size_bytes: u64) -> Lab {
    array_and_drives(seed, shards, size_bytes).0
}

fn array_and_drives(seed: u64, shards: u16, size_bytes: u64) -> (Lab, Vec<DriveNumber>) {
    let world = World::new(seed, None);
    let drives: Vec<String> = (0..3).map(|n| format!("/dev/nvme{n}n1")).collect();
    let numbers = drives.iter().map(|path| world.add_drive(DriveOptions::new(path, 1 << 30))).collect();
    let mut lab = Lab::in_world(world, shards, &drives.iter().map(String::as_str).collect::<Vec<_>>());
    let pool = NewPool::new("fast", "mirror-3", drives);
    lab.change(Command::PoolCreate { pool, dry_run: false });
    create_volume(&mut lab, "disk", size_bytes);
    lab.create_host("alpha", ALPHA);
    lab.map("disk", "alpha", 0, false);
    (lab, numbers)
}

fn create_volume(lab: &mut Lab, name: &str, size_bytes: u64) {
    lab.change(new_volume(name, size_bytes));
}

fn new_volume(name: &str, size_bytes: u64) -> Command {
    let volume = NewVolume {
        name: name.to_owned(),
        backing: NewBacking::Pool("fast".to_owned()),
        size_bytes: Some(size_bytes),
        block_bytes: 512,
        write_back: false,
    };
    Command::VolumeCreate { volume, dry_run: false }
}

fn login(lab: &mut Lab, luns: &[u16]) -> Host {
    let host = Host::log_in(lab, 0, ALPHA, 1);
    luns.iter().for_each(|lun| drop(host.settle(lab, *lun)));
    host
}

fn order(order: CopyOrder) -> Command {
    Command::Copy { order, dry_run: false }
}

fn delete(name: &str) -> Command {
    Command::VolumeDelete { name: name.to_owned(), unmap: true, eradicate: false, dry_run: false }
}

fn undelete(volume: &str) -> Command {
    order(CopyOrder::Undelete { volume: volume.to_owned() })
}

fn eradicate(volume: &str) -> Command {
    order(CopyOrder::Eradicate { volume: volume.to_owned() })
}

fn promote(volume: &str) -> Command {
    order(CopyOrder::Promote { volume: volume.to_owned() })
}

fn snapshot(volume: &str, name: &str) -> Command {
    order(CopyOrder::Snapshot { snapshots: vec![(volume.to_owned(), name.to_owned())] })
}

fn clone(volume: &str, snapshot: &str, name: &str) -> Command {
    let (volume, snapshot) = (volume.to_owned(), snapshot.to_owned());
    order(CopyOrder::Clone { volume, snapshot, name: name.to_owned() })
}

fn roll_back(volume: &str, snapshot: &str) -> Command {
    order(CopyOrder::RollBack { volume: volume.to_owned(), snapshot: snapshot.to_owned() })
}

fn snapshots(lab: &mut Lab, volume: &str) -> Vec<SnapshotStatus> {
    match lab.command(Command::SnapshotList { volume: Some(volume.to_owned()) }) {
        Ok(Reply::Snapshots(snapshots)) => snapshots,
        other => panic!("{other:?}"),
    }
}

fn names(lab: &mut Lab, volume: &str) -> Vec<String> {
    snapshots(lab, volume).into_iter().map(|snapshot| snapshot.name).collect()
}

fn in_bin(lab: &mut Lab) -> Vec<String> {
    lab.status().bin.into_iter().map(|binned| binned.name).collect()
}

fn minutes(lab: &mut Lab, count: u32) {
    (0..count).for_each(|_| lab.pass(MINUTE));
}

fn power_cut(lab: &mut Lab, host: Host) {
    lab.simulation.world.power_loss(0);
    host.kill(lab);
    lab.restart();
}

/// A deleted volume comes back unchanged, with its snapshots, mappings and identity, even after a start in between.
#[test]
fn what_was_deleted_comes_back() {
    for (seed, shards) in [(1, 1), (2, 3)] {
        let mut lab = array(seed, shards, 64 * MIB);
        let host = login(&mut lab, &[0]);
        host.write(&mut lab, 0, 0, &vec![1; MIB as usize]);
        lab.change(snapshot("disk", "mon"));
        host.write(&mut lab, 0, 0, &vec![2; MIB as usize / 2]);
        let before = lab.status();
        let dry = Command::VolumeDelete { name: "disk".into(), unmap: true, eradicate: false, dry_run: true };
        let (volume, size_bytes) = ("disk".to_owned(), 64 * MIB);
        let bin = VolumeStep::BinVolume { volume, size_bytes, seconds: 86_400, snapshots: 1 };
        assert_eq!(lab.change(dry).steps, [bin.into()]);
        assert_eq!(lab.status().volumes.len(), 1);
        lab.change(delete("disk"));
        assert_eq!(in_bin(&mut lab), ["disk"]);
        assert!(lab.status().volumes.is_empty() && lab.status().mappings.is_empty());
        let binned = lab.status().bin.remove(0);
        assert_eq!((binned.snapshots, (binned.eradicated_ms - binned.deleted_ms) / 1000), (1, 86_400));
        assert_eq!(binned.space.unwrap().used_bytes, MIB * 3 / 2);
        let taken = lab.command(new_volume("disk", MIB)).unwrap_err();
        assert_eq!(taken.kind, CommandErrorKind::AlreadyExists);
        assert!(taken.hint.contains("undelete"), "{taken}");
        power_cut(&mut lab, host);
        assert_eq!(in_bin(&mut lab), ["disk"]);
        let back = lab.change(undelete("disk"));
        let (volume, host_name) = ("disk".to_owned(), "alpha".to_owned());
        let again = HostStep::RestoreMapping { volume, host: host_name, number: WasMapped::Lun(0) };
        assert_eq!(back.steps[1..], [again.into()]);
        let after = lab.status();
        assert_eq!(
            (&after.volumes[0].naa, &after.volumes[0].serial),
            (&before.volumes[0].naa, &before.volumes[0].serial)
        );
        assert_eq!((after.mappings, after.volumes[0].space), (before.mappings, before.volumes[0].space));
        let host = login(&mut lab, &[0]);
        assert!(host.read(&mut lab, 0, 0, 1024) == vec![2; MIB as usize / 2]);
        assert!(host.read(&mut lab, 0, 1024, 1024) == vec![1; MIB as usize / 2]);
        lab.unmap("disk", "alpha");
        lab.change(roll_back("disk", "mon"));
        lab.map("disk", "alpha", 0, false);
        host.settle(&mut lab, 0);
        assert!(host.read(&mut lab, 0, 0, 2048) == vec![1; MIB as usize]);
        for (command, kind) in
            [(undelete("disk"), CommandErrorKind::NotFound), (eradicate("disk"), CommandErrorKind::NotFound)]
        {
            assert_eq!(lab.command(command).unwrap_err().kind, kind);
        }
    }
}

/// A deletion frees what it announced: the blocks of the volume and of its snapshots, but not blocks that a clone has,
/// too.
#[test]
fn what_is_eradicated_gives_back_what_is_said() {
    let mut lab = array(8, 2, 64 * MIB);
    let host = login(&mut lab, &[0]);
    host.write(&mut lab, 0, 0, &vec![1; MIB as usize]);
    lab.change(snapshot("disk", "mon"));
    lab.change(clone("disk", "mon", "copy"));
    host.write(&mut lab, 0, 0, &vec![2; MIB as usize / 2]);
    lab.change(snapshot("disk", "tue"));
    host.write(&mut lab, 0, 0, &vec![3; MIB as usize / 4]);
    lab.change(delete("disk"));
    let said = lab.change(eradicate("disk")).steps;
    let free = |bytes| ChangeStep::from(PoolStep::FreeSpace { bytes, at_least: false });
    let gone = VolumeStep::EradicateVolume { volume: "disk".to_owned(), snapshots: 2 };
    assert_eq!(said, [gone.into(), free(MIB * 3 / 4)]);
    // and all blocks that nobody else has
    let whole = Command::VolumeDelete { name: "copy".into(), unmap: true, eradicate: true, dry_run: false };
    assert_eq!(lab.change(whole).steps[1], free(MIB));
}

/// A LUN that another volume has by now stays with that volume.
#[test]
fn a_number_that_was_given_away_stays_where_it_is() {
    let mut lab = array(3, 2, 64 * MIB);
    let host = login(&mut lab, &[0]);
    lab.change(delete("disk"));
    create_volume(&mut lab, "other", 64 * MIB);
    lab.map("other", "alpha", 0, false);
    host.settle(&mut lab, 0);
    host.write(&mut lab, 0, 0, &[9; 4096]);
    let back = lab.change(undelete("disk"));
    let (volume, host_name) = ("disk".to_owned(), "alpha".to_owned());
    let why = NotMapped::Taken(WasMapped::Lun(0));
    assert_eq!(back.steps[1..], [HostStep::DropMapping { volume, host: host_name, why }.into()]);
    assert_eq!(lab.status().mappings.len(), 1);
    assert!(host.read(&mut lab, 0, 0, 8) == [9; 4096]);
}

/// A volume leaves the bin when its time is over, or by command. It frees its blocks, except those of a clone.
#[test]
fn the_bin_empties_itself() {
    let mut lab = array(4, 2, 64 * MIB);
    let host = login(&mut lab, &[0]);
    host.write(&mut lab, 0, 0, &vec![1; MIB as usize]);
    lab.change(snapshot("disk", "mon"));
    lab.change(clone("disk", "mon", "copy"));
    host.write(&mut lab, 0, 4096, &vec![2; 4 * MIB as usize]);
    create_volume(&mut lab, "by-hand", 64 * MIB);
    lab.change(delete("by-hand"));
    let settings = NewSettings { bin_seconds: Some(120), ..NewSettings::default() };
    let set = Command::Upkeep { upkeep: Upkeep::Set { pool: "fast".into(), settings }, dry_run: false };
    let steps = lab.change(set).steps;
    let in_bin_for = PoolStep::SetPool {
        pool: "fast".to_owned(),
        setting: "bin_seconds".to_owned(),
        value: Some(120),
        is_default: false,
    };
    assert!(steps.contains(&in_bin_for.into()), "{steps:?}");
    lab.change(delete("disk"));
    let full = lab.status().pools[0].used_bytes;
    lab.change(eradicate("by-hand"));
    lab.pass(MINUTE);
    assert_eq!(in_bin(&mut lab), ["disk"]);
    power_cut(&mut lab, host);
    // the last record before the power failure may be 15 s old
    minutes(&mut lab, 1);
    lab.pass(Nanos::from_secs(25));
    assert_eq!(in_bin(&mut lab), [""; 0]);
    lab.pass(MINUTE);
    let left = lab.status().pools[0].used_bytes;
    // the pool's own structures use some, too
    assert!(left + 4 * MIB - MIB / 4 <= full, "{full} bytes before, {left} after");
    lab.map("copy", "alpha", 0, false);
    let host = login(&mut lab, &[0]);
    assert!(host.read(&mut lab, 0, 0, 2048) == vec![1; MIB as usize]);
    create_volume(&mut lab, "disk", 64 * MIB);
    // without a bin, a volume is deleted at once, but not while it has snapshots
    let settings = NewSettings { bin_seconds: Some(0), ..NewSettings::default() };
    lab.change(Command::Upkeep { upkeep: Upkeep::Set { pool: "fast".into(), settings }, dry_run: false });
    lab.change(snapshot("disk", "tue"));
    assert_eq!(lab.command(delete("disk")).unwrap_err().kind, CommandErrorKind::InUse);
    lab.change(order(CopyOrder::DeleteSnapshot { volume: "disk".into(), snapshot: "tue".into() }));
    lab.change(delete("disk"));
    assert!(in_bin(&mut lab).is_empty());
}

/// Before a pool becomes full, volumes leave the bin, the oldest first, and no more of them than necessary.
#[test]
fn the_bin_gives_way_before_its_pool_is_full() {
    let mut lab = array(5, 2, 1 << 30);
    let capacity = lab.status().pools[0].capacity_bytes;
    let host = login(&mut lab, &[0]);
    let write = |lab: &mut Lab, lun: u16, bytes: u64| {
        let chunk = vec![7; 4 * MIB as usize];
        (0..bytes / (4 * MIB)).for_each(|n| host.write(lab, lun, (n * 8192) as u32, &chunk));
    };
    for (lun, name) in [(1, "old"), (2, "new")] {
        create_volume(&mut lab, name, 1 << 30);
        lab.map(name, "alpha", lun, false);
        host.settle(&mut lab, 0);
        host.settle(&mut lab, lun);
        write(&mut lab, lun, capacity / 10);
        lab.pass(Nanos::from_secs(2));
        lab.change(delete(name));
    }
    host.settle(&mut lab, 0);
    let up_to = |percent: u64| capacity / 100 * percent;
    let used = lab.status().pools[0].used_bytes;
    write(&mut lab, 0, up_to(90) - used);
    lab.pass(Nanos::from_secs(30));
    let status = lab.status();
    assert_eq!(status.health, Health::Degraded);
    assert!(
        status
            .problems
            .iter()
            .any(|problem| problem.code() == ProblemCode::BinGivesWay
                && problem.reason().contains("2 volumes")),
        "{:?}",
        status.problems
    );
    assert_eq!(in_bin(&mut lab), ["old", "new"]);
    let more = vec![7; 4 * MIB as usize];
    let start = (1 << 30) / 512 - 8192 * 20;
    (0..(capacity / 100 * 3).div_ceil(4 * MIB))
        .for_each(|n| host.write(&mut lab, 0, start + n as u32 * 8192, &more));
    lab.pass(Nanos::from_secs(60));
    assert_eq!(in_bin(&mut lab), ["new"]);
    lab.pass(Nanos::from_secs(120));
    assert_eq!(in_bin(&mut lab), ["new"], "one was enough");
    let activity = lab.status().pools.remove(0).activity;
    let gone = activity.into_iter().filter_map(|activity| match activity {
        PoolActivity::VolumeGaveWay { volume, .. } => Some(volume),
        _ => None,
    });
    assert_eq!(gone.collect::<Vec<_>>(), ["old"]);
}

/// A promoted clone has the snapshots below it and can be rolled back to them; its origin can be deleted.
#[test]
fn a_promoted_clone_stands_on_its_own_snapshots() {
    let mut lab = array(6, 3, 64 * MIB);
    let host = login(&mut lab, &[0]);
    for (byte, name) in [(1, "mon"), (2, "tue"), (3, "wed")] {
        host.write(&mut lab, 0, 0, &[byte; 4096]);
        lab.change(snapshot("disk", name));
    }
    lab.change(clone("disk", "tue", "copy"));
    lab.change(snapshot("copy", "own"));
    let Command::Copy { order, .. } = promote("copy") else { unreachable!() };
    let dry = lab.change(Command::Copy { order, dry_run: true });
    let moved = |snapshot: &str| {
        let (from_volume, to_volume) = ("disk".to_owned(), "copy".to_owned());
        let snapshot = snapshot.to_owned();
        ChangeStep::from(SnapshotStep::MoveSnapshot { snapshot, from_volume, to_volume })
    };
    assert_eq!(dry.steps, [moved("mon"), moved("tue")]);
    assert_eq!(names(&mut lab, "disk"), ["mon", "tue", "wed"]);
    lab.change(promote("copy"));
    assert_eq!(names(&mut lab, "disk"), ["wed"]);
    assert_eq!(names(&mut lab, "copy"), ["mon", "tue", "own"]);
    let clone_of =
        |lab: &mut Lab| -> Vec<_> { lab.status().volumes.into_iter().map(|v| v.clone_of).collect() };
    assert_eq!(clone_of(&mut lab), [Some("copy@tue".to_owned()), None]);
    assert_eq!(lab.command(promote("copy")).unwrap_err().kind, CommandErrorKind::Invalid);
    power_cut(&mut lab, host);
    assert_eq!(names(&mut lab, "copy"), ["mon", "tue", "own"]);
    let host = login(&mut lab, &[0]);
    assert!(host.read(&mut lab, 0, 0, 8) == [3; 4096]);
    lab.change(delete("disk"));
    lab.change(eradicate("disk"));
    lab.pass(Nanos::from_secs(20));
    lab.change(roll_back("copy", "mon"));
    lab.map("copy", "alpha", 0, false);
    host.settle(&mut lab, 0);
    assert!(host.read(&mut lab, 0, 0, 8) == [1; 4096]);
    lab.unmap("copy", "alpha");
    lab.change(roll_back("copy", "own"));
    lab.map("copy", "alpha", 0, false);
    host.settle(&mut lab, 0);
    assert!(host.read(&mut lab, 0, 0, 8) == [2; 4096]);
}

fn schedule(order: ScheduleOrder) -> Command {
    Command::Schedule { order, dry_run: false }
}

/// A schedule takes snapshots of all volumes at one moment and deletes old ones, also across a power failure.
#[test]
fn snapshots_come_and_go_by_themselves() {
    let mut lab = array(7, 2, 64 * MIB);
    create_volume(&mut lab, "log", 64 * MIB);
    let host = login(&mut lab, &[0]);
    let keep = Keep { hourly: 2, ..Keep::default() };
    let volumes = vec!["disk".to_owned(), "log".to_owned()];
    lab.change(schedule(ScheduleOrder::Create { name: "often".into(), volumes, keep }));
    lab.change(snapshot("disk", "mine"));
    lab.pass(Nanos::from_secs(10));
    assert_eq!(names(&mut lab, "log").len(), 1);
    let mut host = Some(host);
    let mut before = 0;
    for hour in 1..5u8 {
        let writer = host.take().unwrap_or_else(|| login(&mut lab, &[0]));
        writer.write(&mut lab, 0, 0, &vec![hour; MIB as usize]);
        match hour {
            3 => power_cut(&mut lab, writer),
            _ => host = Some(writer),
        }
        minutes(&mut lab, 60);
        let (of_disk, of_log) = (snapshots(&mut lab, "disk"), snapshots(&mut lab, "log"));
        assert_eq!((of_disk.len(), of_log.len()), (3, 2), "hour {hour}: {of_disk:?}");
        assert!(of_disk.iter().any(|one| one.name == "mine" && one.schedule.is_none()));
        let newest = of_disk.last().unwrap();
        assert_eq!((&newest.name, newest.created_ms), (&of_log[1].name, of_log[1].created_ms));
        assert!(newest.name.starts_with("often-") && newest.schedule.as_deref() == Some("often"));
        assert!(newest.created_ms >= before + 3_000_000, "hour {hour}");
        before = newest.created_ms;
    }
    let status = lab.status().schedules.remove(0);
    assert_eq!(
        (status.volumes, status.snapshots, status.last_ms),
        (vec!["disk".into(), "log".into()], 4, Some(before))
    );
    assert!(status.next_ms > before && status.next_ms <= before + 3_600_000);
    // volumes in the bin are left alone
    lab.change(delete("log"));
    minutes(&mut lab, 60);
    assert_eq!(lab.status().bin[0].snapshots, 2);
    lab.change(schedule(ScheduleOrder::Delete { name: "often".into() }));
    minutes(&mut lab, 61);
    assert_eq!(names(&mut lab, "disk").len(), 3);
    assert!(lab.status().schedules.is_empty());
}

/// What a schedule cannot do is reported, with the reason, and done when it is possible.
#[test]
fn a_schedule_that_cannot_do_its_work_says_so() {
    let (mut lab, drives) = array_and_drives(8, 2, 64 * MIB);
    let keep = Keep { hourly: 1, ..Keep::default() };
    let order = ScheduleOrder::Create { name: "often".into(), volumes: vec!["disk".into()], keep };
    lab.change(schedule(order));
    lab.pass(Nanos::from_secs(10));
    assert_eq!(lab.status().health, Health::Healthy);
    drives.iter().for_each(|&drive| lab.simulation.world.vanish(drive, None, false));
    minutes(&mut lab, 61);
    let (problems, often) = (lab.status().problems, Subject::Schedule("often".to_owned()));
    assert!(
        problems
            .iter()
            .any(|problem| problem.code() == ProblemCode::ScheduleFailed && problem.subject == often),
        "{problems:?}"
    );
    drives.iter().for_each(|&drive| lab.simulation.world.return_drive(drive));
    lab.kill();
    lab.restart();
    lab.pass(Nanos::from_secs(10));
    assert_eq!((lab.status().problems, names(&mut lab, "disk").len()), (Vec::new(), 1));
}
