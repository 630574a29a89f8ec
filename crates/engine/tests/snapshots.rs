//! Snapshots, clones and rollback, while hosts write and the power fails.

mod common;

use api::{Command, Reply};
use api::{CommandErrorKind, CopyOrder, CopySpace, SnapshotStatus, SnapshotStep};
use base::Nanos;
use common::Lab;
use common::host::{Host, sense, write_10};
use sim::DriveNumber;

const ALPHA: &str = "iqn.2001-04.com.example:alpha";
const MIB: u64 = 1 << 20;

/// A volume of 64 MiB in a pool, as LUN 0 of a host.
fn array(seed: u64, shards: u16) -> Lab {
    let mut lab = Lab::with_pool(seed, shards);
    lab.create_pool_volume("disk", false);
    lab.create_host("alpha", ALPHA);
    lab.map("disk", "alpha", 0, false);
    lab
}

fn login(lab: &mut Lab, shard: u16, luns: &[u16]) -> Host {
    let host = Host::log_in(lab, shard, ALPHA, 1);
    luns.iter().for_each(|lun| drop(host.settle(lab, *lun)));
    host
}

fn copy(order: CopyOrder) -> Command {
    Command::Copy { order, dry_run: false }
}

fn snapshot(name: &str) -> Command {
    snapshots(&["disk"], name)
}

/// Of all these volumes at one moment.
fn snapshots(volumes: &[&str], name: &str) -> Command {
    let snapshots = volumes.iter().map(|volume| ((*volume).to_owned(), name.to_owned())).collect();
    copy(CopyOrder::Snapshot { snapshots })
}

fn delete(snapshot: &str) -> Command {
    copy(CopyOrder::DeleteSnapshot { volume: "disk".to_owned(), snapshot: snapshot.to_owned() })
}

fn clone(snapshot: &str, name: &str) -> Command {
    clone_of("disk", snapshot, name)
}

fn clone_of(volume: &str, snapshot: &str, name: &str) -> Command {
    let (volume, snapshot) = (volume.to_owned(), snapshot.to_owned());
    copy(CopyOrder::Clone { volume, snapshot, name: name.to_owned() })
}

fn roll_back(snapshot: &str) -> Command {
    copy(CopyOrder::RollBack { volume: "disk".to_owned(), snapshot: snapshot.to_owned() })
}

fn list(lab: &mut Lab) -> Vec<SnapshotStatus> {
    match lab.command(Command::SnapshotList { volume: Some("disk".to_owned()) }) {
        Ok(Reply::Snapshots(snapshots)) => snapshots,
        other => panic!("{other:?}"),
    }
}

fn power_cut(lab: &mut Lab, host: Host) {
    lab.simulation.world.power_loss(0);
    host.kill(lab);
    lab.restart();
}

#[test]
fn the_life_of_snapshots_and_clones() {
    for (seed, shards) in [(1, 1), (2, 3)] {
        let mut lab = array(seed, shards);
        let host = login(&mut lab, 0, &[0]);
        host.write(&mut lab, 0, 0, &vec![1; MIB as usize]);
        let Command::Copy { order, .. } = snapshot("mon") else { unreachable!() };
        let dry = Command::Copy { order, dry_run: true };
        let take = SnapshotStep::TakeSnapshot { volume: "disk".to_owned(), snapshot: "mon".to_owned() };
        assert_eq!(lab.change(dry).steps, [take.into()]);
        assert!(list(&mut lab).is_empty());
        lab.change(snapshot("mon"));
        host.write(&mut lab, 0, 0, &vec![2; MIB as usize / 2]);
        lab.change(snapshot("tue"));
        host.write(&mut lab, 0, 0, &[3; 4096]);
        lab.change(clone("mon", "copy"));
        lab.map("copy", "alpha", 1, false);
        host.settle(&mut lab, 0);
        host.settle(&mut lab, 1);
        assert!(host.read(&mut lab, 1, 0, 2048) == vec![1; MIB as usize]);
        host.write(&mut lab, 1, 8, &[4; 4096]);
        assert_eq!(lab.command(snapshot("mon")).unwrap_err().kind, CommandErrorKind::AlreadyExists);
        assert_eq!(lab.command(roll_back("mon")).unwrap_err().kind, CommandErrorKind::InUse);
        let volume =
            Command::VolumeDelete { name: "disk".to_owned(), unmap: true, eradicate: true, dry_run: false };
        assert_eq!(lab.command(volume.clone()).unwrap_err().kind, CommandErrorKind::InUse);
        let space = |written_bytes, used_bytes, unique_bytes| {
            Some(CopySpace::new(written_bytes, used_bytes, unique_bytes))
        };
        let spaces: Vec<_> = list(&mut lab).iter().map(|one| one.space).collect();
        // the clone and the second snapshot are both above the first; the volume hides a block of the second
        assert_eq!(spaces, [space(MIB, MIB, 0), space(MIB / 2, MIB * 3 / 2, 4096)], "seed {seed}");
        let volumes = lab.status().volumes;
        assert_eq!(volumes[0].space, space(4096, MIB * 3 / 2 + 4096, 4096), "seed {seed}");
        assert_eq!(volumes[1].space, space(4096, MIB + 4096, 4096), "seed {seed}");
        assert_eq!([&volumes[0].clone_of, &volumes[1].clone_of], [&None, &Some("disk@mon".to_owned())]);
        power_cut(&mut lab, host);
        let host = login(&mut lab, 0, &[0, 1]);
        assert!(host.read(&mut lab, 0, 0, 16)[4000..4100] == [[3; 96].as_slice(), &[2; 4]].concat());
        assert!(host.read(&mut lab, 1, 0, 16) == [[1; 4096], [4; 4096]].concat());
        lab.unmap("disk", "alpha");
        lab.change(roll_back("tue"));
        lab.map("disk", "alpha", 0, false);
        host.settle(&mut lab, 0);
        assert!(host.read(&mut lab, 0, 0, 1024) == vec![2; MIB as usize / 2]);
        assert!(host.read(&mut lab, 0, 1024, 1024) == vec![1; MIB as usize / 2]);
        lab.change(delete("mon"));
        lab.change(delete("tue"));
        lab.pass(base::Nanos::from_secs(5));
        power_cut(&mut lab, host);
        let host = login(&mut lab, 0, &[0, 1]);
        assert!(host.read(&mut lab, 0, 0, 1024) == vec![2; MIB as usize / 2]);
        assert!(host.read(&mut lab, 1, 0, 16) == [[1; 4096], [4; 4096]].concat());
        lab.change(volume);
        host.settle(&mut lab, 1);
        assert!(host.read(&mut lab, 1, 16, 2032) == vec![1; 2032 * 512]);
        assert!(list_of_missing(&mut lab));
    }
}

#[test]
fn a_copy_of_a_volume_is_its_own() {
    for (seed, shards) in [(11, 1), (12, 3)] {
        let mut lab = array(seed, shards);
        let host = login(&mut lab, 0, &[0]);
        host.write(&mut lab, 0, 0, &vec![1; MIB as usize]);
        lab.change(snapshot("mon"));
        host.write(&mut lab, 0, 0, &[2; 4096]);
        let whole = || CopyOrder::CopyVolume { volume: "disk".to_owned(), name: "whole".to_owned() };
        let dry = lab.change(Command::Copy { order: whole(), dry_run: true });
        let copied = SnapshotStep::CopyVolume { copy: "whole".to_owned(), volume: "disk".to_owned() };
        assert_eq!((dry.steps, lab.status().volumes.len()), (vec![copied.into()], 1));
        lab.change(copy(whole()));
        assert_eq!(lab.command(copy(whole())).unwrap_err().kind, CommandErrorKind::AlreadyExists);
        lab.map("whole", "alpha", 1, false);
        host.settle(&mut lab, 0);
        host.settle(&mut lab, 1);
        // both change independently
        host.write(&mut lab, 0, 8, &[3; 4096]);
        host.write(&mut lab, 1, 16, &[4; 4096]);
        let expected = [[2; 4096], [1; 4096], [4; 4096], [1; 4096]].concat();
        assert!(host.read(&mut lab, 1, 0, 32) == expected, "seed {seed}");
        let volumes = lab.status().volumes;
        assert_eq!(volumes[1].clone_of.as_deref(), Some("disk"));
        assert!(volumes[0].naa != volumes[1].naa && volumes[0].size_bytes == volumes[1].size_bytes);
        let used = volumes[1].space.unwrap().used_bytes;
        assert_eq!(used, MIB + 2 * 4096, "seed {seed}: it shares what was there");
        // it is no clone of a snapshot: a refresh of those does not affect it
        let refresh = CopyOrder::Refresh {
            volume: "disk".to_owned(),
            snapshot: "mon".to_owned(),
            clones_of: "disk".to_owned(),
            remap: true,
        };
        assert_eq!(lab.command(copy(refresh)).unwrap_err().kind, CommandErrorKind::NotFound);
        // and it stays when the other is deleted, also across a power failure
        lab.change(delete("mon"));
        lab.change(Command::VolumeDelete {
            name: "disk".to_owned(),
            unmap: true,
            eradicate: true,
            dry_run: false,
        });
        lab.pass(base::Nanos::from_secs(5));
        power_cut(&mut lab, host);
        let host = login(&mut lab, 0, &[1]);
        assert!(host.read(&mut lab, 1, 0, 32) == expected, "seed {seed}");
        assert!(host.read(&mut lab, 1, 32, 2016) == vec![1; 2016 * 512], "seed {seed}");
    }
}

fn list_of_missing(lab: &mut Lab) -> bool {
    assert!(
        matches!(lab.command(Command::SnapshotList { volume: None }), Ok(Reply::Snapshots(all)) if all.is_empty())
    );
    let asked = lab.command(Command::SnapshotList { volume: Some("disk".to_owned()) });
    asked.is_err_and(|error| error.kind == CommandErrorKind::NotFound)
}

/// The place of the `n`th write of a chain: all over the volume, and so over all lanes.
fn place(n: u32) -> u32 {
    n * 37 % 128 * 1024
}

/// A host writes one block after the other, each when the one before is acknowledged. At whatever moment a snapshot is
/// taken, it contains a prefix of these writes, which includes all that were acknowledged before the request.
#[test]
fn a_snapshot_is_one_moment_of_all_lanes() {
    for seed in 20..32 {
        let mut lab = array(seed, 3);
        let host = login(&mut lab, (seed % 3) as u16, &[0]);
        let before = 5 + (seed % 7) as u32;
        (0..before).for_each(|n| host.write(&mut lab, 0, place(n), &[n as u8 + 1; 4096]));
        let answer = lab.send_command(snapshot("now"));
        for n in before..60 {
            let write = host.run(&mut lab, write_10(0, place(n), &[n as u8 + 1; 4096]));
            assert_eq!(write.status, 0, "seed {seed}");
        }
        lab.wait(|| answer.lock().unwrap().is_some());
        assert!(answer.lock().unwrap().as_ref().is_some_and(|answer| answer.is_ok()), "seed {seed}");
        lab.change(clone("now", "copy"));
        lab.map("copy", "alpha", 1, true);
        host.settle(&mut lab, 0);
        host.settle(&mut lab, 1);
        let there: Vec<bool> =
            (0..60).map(|n| host.read(&mut lab, 1, place(n), 8) == [n as u8 + 1; 4096]).collect();
        let first = there.iter().position(|there| !there).unwrap_or(60);
        assert!(first >= before as usize, "seed {seed}: {first} of {before}");
        assert!(there[first..].iter().all(|there| !there), "seed {seed}: {there:?}");
        (0..60).for_each(|n| assert!(host.read(&mut lab, 0, place(n), 8) == [n as u8 + 1; 4096]));
    }
}

/// A host writes one block after the other, in turn to two volumes, as databases do with their log and their tables:
/// snapshots of both at one moment contain a prefix of all writes.
#[test]
fn snapshots_of_several_volumes_are_one_moment() {
    for seed in 40..52 {
        let mut lab = array(seed, 3);
        lab.create_pool_volume("log", false);
        lab.map("log", "alpha", 1, false);
        let host = login(&mut lab, (seed % 3) as u16, &[0, 1]);
        let lun = |n: u32| (n % 2) as u16;
        let before = 5 + (seed % 7) as u32;
        (0..before).for_each(|n| host.write(&mut lab, lun(n), place(n), &[n as u8 + 1; 4096]));
        let answer = lab.send_command(snapshots(&["disk", "log"], "now"));
        for n in before..60 {
            let write = host.run(&mut lab, write_10(lun(n), place(n), &[n as u8 + 1; 4096]));
            assert_eq!(write.status, 0, "seed {seed}");
        }
        lab.wait(|| answer.lock().unwrap().is_some());
        assert!(answer.lock().unwrap().as_ref().is_some_and(|answer| answer.is_ok()), "seed {seed}");
        lab.change(clone_of("disk", "now", "disk-then"));
        lab.change(clone_of("log", "now", "log-then"));
        lab.map("disk-then", "alpha", 2, true);
        lab.map("log-then", "alpha", 3, true);
        (0..4).for_each(|lun| drop(host.settle(&mut lab, lun)));
        let there: Vec<bool> =
            (0..60).map(|n| host.read(&mut lab, lun(n) + 2, place(n), 8) == [n as u8 + 1; 4096]).collect();
        let first = there.iter().position(|there| !there).unwrap_or(60);
        assert!(first >= before as usize, "seed {seed}: {first} of {before}");
        assert!(there[first..].iter().all(|there| !there), "seed {seed}: {there:?}");
        let all = lab.command(Command::SnapshotList { volume: None });
        assert!(matches!(all, Ok(Reply::Snapshots(all)) if all.len() == 2));
    }
}

/// The power fails at any moment of a command: it was carried out or not, and nothing else has changed.
#[test]
fn the_power_goes_in_the_middle_of_orders() {
    let mut carried_out = [0; 4];
    for seed in 100..148 {
        let mut lab = array(seed, 2);
        let host = login(&mut lab, 0, &[0]);
        (0..20).for_each(|n| host.write(&mut lab, 0, place(n), &[1; 4096]));
        lab.change(snapshot("old"));
        (0..10).for_each(|n| host.write(&mut lab, 0, place(n), &[2; 4096]));
        let kind = (seed % 4) as usize;
        let order = match kind {
            0 => snapshot("new"),
            1 => clone("old", "copy"),
            2 => delete("old"),
            _ => {
                lab.unmap("disk", "alpha");
                roll_back("old")
            }
        };
        let answer = lab.send_command(order);
        // the space that a deletion frees is counted before
        let step = if kind == 2 { 400_000 } else { 80_000 };
        lab.pass(base::Nanos(1 + (seed - 100) * step));
        let answered = answer.lock().unwrap().is_some();
        power_cut(&mut lab, host);
        let names: Vec<String> = list(&mut lab).into_iter().map(|one| one.name).collect();
        let volumes: Vec<String> = lab.status().volumes.into_iter().map(|volume| volume.name).collect();
        if kind == 3 {
            lab.map("disk", "alpha", 0, false);
        }
        let host = login(&mut lab, 0, &[0]);
        let done = match kind {
            0 => names.len() == 2,
            1 => volumes.iter().any(|name| name == "copy"),
            2 => names.is_empty(),
            _ => host.read(&mut lab, 0, place(0), 8) == [1; 4096],
        };
        assert!(done || !answered, "seed {seed}: answered, and gone");
        carried_out[kind] += usize::from(done);
        let newer = if kind == 3 && done { 1 } else { 2 };
        for n in 0..20 {
            let wanted = if n < 10 { newer } else { 1 };
            assert!(host.read(&mut lab, 0, place(n), 8) == [wanted; 4096], "seed {seed}, block {n}");
        }
        host.write(&mut lab, 0, place(3), &[7; 4096]);
        assert!(host.read(&mut lab, 0, place(3), 8) == [7; 4096]);
    }
    // interrupted before, and after, each kind was carried out
    assert!(carried_out.iter().all(|&done| (1..12).contains(&done)), "{carried_out:?}");
}

/// The file systems under the drives become full at any moment: until the snapshot is recorded or dropped, the volume
/// refuses writes, and only for want of space. When there is space, it accepts writes without a command.
#[test]
fn a_snapshot_that_cannot_be_recorded_is_want_of_space_to_hosts() {
    const SPACE_ALLOCATION_FAILED: (u8, u8, u8) = (7, 0x27, 0x07);
    let mut failed = 0;
    for events in (0..160).step_by(5) {
        let mut lab = array(3, 1);
        let host = login(&mut lab, 0, &[0]);
        host.write(&mut lab, 0, 0, &[1; 4096]);
        let answer = lab.send_command(snapshot("mon"));
        for _ in 0..events {
            assert!(lab.simulation.step());
        }
        let fill = |lab: &Lab, full| {
            (0..4).for_each(|drive| lab.simulation.world.set_no_space(DriveNumber(drive), full));
        };
        fill(&lab, true);
        lab.pass(Nanos::from_secs(15));
        // if there is space for a moment, the lane no longer waits for it, and a part of the command is done
        for moment in [0, events, 20, 40] {
            fill(&lab, false);
            (0..moment).for_each(|_| assert!(lab.simulation.step()));
            fill(&lab, true);
            let written = host.run(&mut lab, write_10(0, 0, &[2; 4096]));
            assert!(
                written.status == 0 || sense(&written) == SPACE_ALLOCATION_FAILED,
                "after {events}, {moment} events: {written:?}"
            );
            lab.pass(Nanos::from_secs(2));
        }
        fill(&lab, false);
        lab.pass(Nanos::from_secs(75));
        let answer = answer.lock().unwrap().take().expect("it is answered");
        failed += u32::from(answer.is_err());
        host.write(&mut lab, 0, 0, &[3; 4096]);
        power_cut(&mut lab, host);
        let host = login(&mut lab, 0, &[0]);
        assert_eq!(host.read(&mut lab, 0, 0, 8), [3; 4096], "after {events} events");
    }
    assert!(failed > 0, "every snapshot was recorded in time");
}
