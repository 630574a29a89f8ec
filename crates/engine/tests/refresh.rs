//! Clones of one image become clones of the next image, all in one step.

mod common;

use std::collections::BTreeSet;

use api::Command;
use api::{ChangeStep, CommandErrorKind, CopyOrder, NameList, SnapshotStep, VolumeStatus};
use common::Lab;
use common::host::{Host, cdb, inquiry, sense, write_10};
use iscsi::initiator::Request;

const ALPHA: &str = "iqn.2001-04.com.example:alpha";
const MIB: u64 = 1 << 20;
const NEW_UNIT: (u8, u8) = (0x29, 0x00);
const NO_SUCH_LUN: (u8, u8, u8) = (5, 0x25, 0x00);
const OTHER_LUNS: (u8, u8) = (0x3F, 0x0E);

/// A golden image of 64 MiB as LUN 0 of a host.
fn array(seed: u64) -> Lab {
    let mut lab = Lab::with_pool(seed, 2);
    lab.create_pool_volume("golden", false);
    lab.create_host("alpha", ALPHA);
    lab.map("golden", "alpha", 0, false);
    lab
}

fn copy(order: CopyOrder) -> Command {
    Command::Copy { order, dry_run: false }
}

fn snapshot(volume: &str, name: &str) -> Command {
    copy(CopyOrder::Snapshot { snapshots: vec![(volume.to_owned(), name.to_owned())] })
}

fn clone(volume: &str, snapshot: &str, name: &str) -> Command {
    let (volume, snapshot, name) = (volume.to_owned(), snapshot.to_owned(), name.to_owned());
    copy(CopyOrder::Clone { volume, snapshot, name })
}

fn refresh(volume: &str, snapshot: &str, of: &str, remap: bool) -> CopyOrder {
    let (volume, snapshot, clones_of) = (volume.to_owned(), snapshot.to_owned(), of.to_owned());
    CopyOrder::Refresh { volume, snapshot, clones_of, remap }
}

fn login(lab: &mut Lab, luns: &[u16]) -> Host {
    let host = Host::log_in(lab, 0, ALPHA, 1);
    luns.iter().for_each(|lun| drop(host.settle(lab, *lun)));
    host
}

fn volume(lab: &mut Lab, name: &str) -> VolumeStatus {
    lab.status().volumes.into_iter().find(|volume| volume.name == name).unwrap()
}

/// An image with two snapshots, and clones `desk0` to `desk2` of the first as LUNs 1 to 3.
fn desks(lab: &mut Lab) -> Host {
    let host = login(lab, &[0]);
    host.write(lab, 0, 0, &vec![1; MIB as usize]);
    lab.change(snapshot("golden", "v1"));
    host.write(lab, 0, 8, &vec![2; MIB as usize / 2]);
    lab.change(snapshot("golden", "v2"));
    for n in 0..3u16 {
        lab.change(clone("golden", "v1", &format!("desk{n}")));
        lab.map(&format!("desk{n}"), "alpha", n + 1, false);
    }
    (0..4).for_each(|lun| drop(host.settle(lab, lun)));
    (1..4).for_each(|lun| host.write(lab, lun, 100, &[lun as u8 + 8; 4096]));
    host
}

#[test]
fn clones_are_the_new_image_and_who_they_were() {
    let mut lab = array(1);
    let host = desks(&mut lab);
    lab.change(snapshot("desk1", "mine"));
    let before: Vec<_> = (0..3).map(|n| volume(&mut lab, &format!("desk{n}"))).collect();
    let order = |remap| refresh("golden", "v2", "golden@v1", remap);
    let refused = lab.command(copy(order(false))).unwrap_err();
    assert_eq!(refused.kind, CommandErrorKind::InUse);
    assert!(refused.hint.contains("--remap"), "{refused}");
    let none = lab.command(copy(refresh("golden", "v2", "golden@v0", true))).unwrap_err();
    assert_eq!(none.kind, CommandErrorKind::NotFound);
    let dry = lab.change(Command::Copy { order: order(true), dry_run: true });
    let step = SnapshotStep::RefreshClones {
        clones: NameList::new(["desk0", "desk1", "desk2"], 8),
        clones_of: "golden@v1".to_owned(),
        volume: "golden".to_owned(),
        snapshot: "v2".to_owned(),
    };
    assert_eq!(dry.steps, [step.into()]);
    // a command in flight ends before, or finds that the LUN is gone
    let under_way = host.send(&mut lab, write_10(1, 300, &[77; 4096]));
    let change = lab.change(copy(order(true)));
    assert_eq!(change.hosts_affected, ["alpha"]);
    let ended = host.completion(under_way).expect("it has ended");
    assert!(ended.status == 0 || sense(&ended) == NO_SUCH_LUN, "{:x?}", sense(&ended));
    for lun in 1..4u16 {
        let told = host.settle(&mut lab, lun);
        assert!(told.contains(&NEW_UNIT) && told.contains(&OTHER_LUNS), "LUN {lun}: {told:x?}");
        assert!(host.read(&mut lab, lun, 8, 1024) == vec![2; MIB as usize / 2], "LUN {lun}");
        assert!(
            host.read(&mut lab, lun, 0, 8) == [1; 4096] && host.read(&mut lab, lun, 1032, 8) == [1; 4096]
        );
    }
    assert!(!host.settle(&mut lab, 0).contains(&NEW_UNIT), "the image is as it was");
    for (n, before) in before.iter().enumerate() {
        let now = volume(&mut lab, &format!("desk{n}"));
        assert_eq!((&now.naa, &now.serial, now.id), (&before.naa, &before.serial, before.id));
        assert_eq!((now.clone_of.as_deref(), now.snapshots), (Some("golden@v2"), before.snapshots));
    }
    // the old content of a clone is there, and the clone can return to it
    lab.unmap("desk1", "alpha");
    let (volume, snapshot) = ("desk1".to_owned(), "mine".to_owned());
    lab.change(copy(CopyOrder::RollBack { volume, snapshot }));
    lab.map("desk1", "alpha", 2, false);
    (0..4).for_each(|lun| drop(host.settle(&mut lab, lun)));
    assert!(host.read(&mut lab, 2, 100, 8) == [10; 4096]);
}

#[test]
fn the_power_goes_while_clones_are_refreshed() {
    let (mut done, mut undone) = (0, 0);
    for seed in 0..24 {
        let mut lab = array(100 + seed);
        let host = desks(&mut lab);
        let _answer = lab.send_command(copy(refresh("golden", "v2", "golden", true)));
        lab.pass(base::Nanos::from_micros(60 * seed));
        lab.simulation.world.power_loss(0);
        host.kill(&mut lab);
        lab.restart();
        let host = login(&mut lab, &[0, 1, 2, 3]);
        let all: Vec<bool> = (1..4u16).map(|lun| host.read(&mut lab, lun, 100, 8) == [2; 4096]).collect();
        assert!(all.iter().all(|one| *one == all[0]), "seed {seed}: {all:?}");
        for lun in (1..4u16).filter(|_| !all[0]) {
            assert!(host.read(&mut lab, lun, 100, 8) == [lun as u8 + 8; 4096], "seed {seed}");
        }
        *if all[0] { &mut done } else { &mut undone } += 1;
    }
    assert!(done > 0 && undone > 0, "{done} done, {undone} not");
}

#[test]
fn what_cannot_become_the_image_is_refused() {
    let mut lab = array(2);
    let host = desks(&mut lab);
    lab.create_pool_volume("other", false);
    lab.change(snapshot("other", "v1"));
    lab.change(snapshot("desk2", "mine"));
    let refused = lab.command(copy(refresh("other", "v1", "golden@v1", true))).unwrap_err();
    assert!(refused.message.contains("\"desk2\"") && refused.message.contains("snapshots"), "{refused}");
    let (volume, snapshot) = ("desk2".to_owned(), "mine".to_owned());
    lab.change(copy(CopyOrder::DeleteSnapshot { volume, snapshot }));
    lab.change(copy(refresh("other", "v1", "golden@v1", true)));
    (0..4).for_each(|lun| drop(host.settle(&mut lab, lun)));
    assert!(host.read(&mut lab, 3, 0, 256) == vec![0; 256 * 512]);
    host.write(&mut lab, 3, 5000, &vec![9; MIB as usize]);
    assert!(host.read(&mut lab, 3, 5000, 2048) == vec![9; MIB as usize]);
}

/// The answer to an INQUIRY for a page of vital product data (SPC-4 §7.8).
fn vital_product_data(lab: &mut Lab, host: &Host, lun: u16, page: u8) -> Vec<u8> {
    let cdb = cdb(&[0x12, 1, page, 1, 0, 0]);
    let request = Request { cdb, expected_in: 256, ..inquiry(lun) };
    host.run(lab, request).data_in.to_vec()
}

/// A desktop farm: one image, 500 linked clones. All read what they share and write their own blocks; all are refreshed
/// at once, through a crash.
#[test]
fn five_hundred_desks_share_one_image() {
    const DESKS: u16 = 500;
    let mut lab = array(500);
    let host = login(&mut lab, &[0]);
    host.write(&mut lab, 0, 0, &vec![1; MIB as usize]);
    lab.change(snapshot("golden", "v1"));
    for n in 1..=DESKS {
        lab.change(clone("golden", "v1", &format!("desk{n}")));
        lab.map(&format!("desk{n}"), "alpha", n, false);
    }
    let used = |lab: &mut Lab| lab.status().pools[0].used_bytes;
    let shared = used(&mut lab);
    assert!(shared < 8 * MIB, "{shared} bytes for 500 clones that nobody has written to");
    for n in 1..=DESKS {
        host.settle(&mut lab, n);
        assert!(host.read(&mut lab, n, u32::from(n) % 2000, 8) == [1; 4096], "desk {n}");
        host.write(&mut lab, n, 8, &[n as u8; 4096]);
    }
    let own = used(&mut lab) - shared;
    assert!(own < u64::from(DESKS) * 40_960, "{own} bytes for 500 blocks of 4 KiB and their maps");
    let volumes = lab.status().volumes;
    let naas: BTreeSet<_> = volumes.iter().map(|volume| &volume.naa).collect();
    let serials: BTreeSet<_> = volumes.iter().map(|volume| &volume.serial).collect();
    assert_eq!((naas.len(), serials.len()), (501, 501));
    for page in [0x80, 0x83] {
        let told = [0, 1, 2].map(|lun| vital_product_data(&mut lab, &host, lun, page));
        assert!(told[0] != told[1] && told[1] != told[2] && told[0].len() > 8, "page {page:#x}: {told:x?}");
    }
    host.settle(&mut lab, 0);
    host.write(&mut lab, 0, 0, &vec![2; MIB as usize]);
    lab.change(snapshot("golden", "v2"));
    lab.kill();
    lab.restart();
    assert_eq!(lab.start_result(), Ok(()));
    let change = lab.change(copy(refresh("golden", "v2", "golden@v1", true)));
    let refreshed = match &change.steps[..] {
        [ChangeStep::Snapshot(SnapshotStep::RefreshClones { clones, .. })] => clones.total,
        other => panic!("{other:?}"),
    };
    assert_eq!(refreshed, 500);
    let host = login(&mut lab, &[0]);
    for n in 1..=DESKS {
        host.settle(&mut lab, n);
        assert!(host.read(&mut lab, n, 8, 8) == [2; 4096], "desk {n}");
    }
    assert!(used(&mut lab) < shared + 8 * MIB, "what the desks had written is given back");
}
