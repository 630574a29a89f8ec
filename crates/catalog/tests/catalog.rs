//! The catalog from outside: changes, refusals, bytes.

use base::limits::{LUN_MAX, SNAPSHOTS_AT_ONCE_MAX};
use base::{LayerId, PoolId, VolumeId};
use catalog::{
    Catalog, CatalogError, Change, Host, HostUpdate, Initiator, KeptAccess, KeptAccesses, Naa, NewVolume,
    Setting, VolumeKind,
};

mod common;

use common::*;

#[test]
fn a_volume_gets_an_identity_that_no_other_ever_has() {
    let catalog = sample();
    let first = catalog.find_volume("vm-01").unwrap();
    assert_eq!(first.naa, Naa::derive(catalog.array(), VolumeId(1)));
    assert!(matches!(first.backing, VolumeKind::Pool { pool: PoolId(9), .. }));
    let (naa, serial) = (first.naa, first.serial.clone());
    let catalog = after(
        catalog,
        &[
            Change::RenameVolume { volume: "vm-01".into(), name: name("renamed") },
            Change::DeleteVolume { volume: "vm-02".into(), unmap: false },
            create_volume("vm-02", NewVolume::Pool("fast".into())),
        ],
    );
    let renamed = catalog.find_volume("renamed").unwrap();
    assert_eq!((renamed.naa, &renamed.serial), (naa, &serial));
    let again = catalog.find_volume("vm-02").unwrap();
    assert_eq!(again.id, VolumeId(4), "ids are never reused");
    assert!(catalog.volumes().iter().filter(|v| v.naa == again.naa).count() == 1);
}

#[test]
fn luns_are_dealt_from_the_lowest_free_one() {
    let catalog = after(sample(), &[map("vm-02", "pve1", None), map("old-lun", "pve1", None)]);
    let luns = |c: &Catalog| c.luns_of("pve1").map(|(lun, m)| (lun, m.volume.0)).collect::<Vec<_>>();
    assert_eq!(luns(&catalog), [(0, 2), (1, 3), (5, 1)]);
    let catalog = after(catalog, &[unmap("vm-02", "pve1"), map("vm-02", "pve2", Some(u32::from(LUN_MAX)))]);
    assert_eq!(luns(&catalog), [(1, 3), (5, 1)]);
    let catalog = after(catalog, &[map("vm-02", "pve1", None)]);
    assert_eq!(luns(&catalog), [(0, 2), (1, 3), (5, 1)]);
    assert_eq!(catalog.lun("pve1", 5).unwrap().volume, VolumeId(1));
    assert!(catalog.lun("pve1", 2).is_none() && catalog.lun("pve2", 5).is_none());
}

fn grown_volume() -> Catalog {
    after(sample(), &[resize("vm-01", 2 << 30)])
}

#[test]
fn a_volume_grows_up_to_what_its_layer_has_room_for() {
    let (first, largest) = (1 << 30, 1 << 38);
    let grown = after(sample(), &[resize("vm-01", 2 << 30), resize("vm-01", largest)]);
    let volume = grown.find_volume("vm-01").unwrap();
    assert_eq!((volume.size_bytes, volume.first_size_bytes), (largest, Some(first)));
    assert_eq!(grown.apply(&resize("vm-01", largest + 4096)).unwrap_err().code(), "bad_size");
    let text = String::from_utf8(grown.encode()).unwrap();
    assert_eq!(Catalog::decode(text.as_bytes()), Ok(grown));
    for first in [0, 4095, largest / 512, 1 << 51] {
        let wrong = text.replace("\"first_size_bytes\":1073741824", &format!("\"first_size_bytes\":{first}"));
        assert!(matches!(Catalog::decode(wrong.as_bytes()), Err(CatalogError::Damaged { .. })), "{first}");
    }
    // back again, and beyond the first size, too; what was behind the end is given back before it grows
    let small = after(grown_volume(), &[resize("vm-01", 4096)]);
    let id = small.find_volume("vm-01").unwrap().id;
    assert!(small.find_volume("vm-01").unwrap().untrimmed);
    assert_eq!(small.apply(&resize("vm-01", 8192)).unwrap_err().code(), "bad_size");
    let again = after(small, &[Change::Trimmed { volume: id }, resize("vm-01", 8192)]);
    assert_eq!(Catalog::decode(&again.encode()), Ok(again.clone()));
    assert_eq!(again.find_volume("vm-01").unwrap().first_size_bytes, Some(1 << 30));
    // one that is nowhere needs no room
    let memory = after(sample(), &[create_volume("m", NewVolume::Memory), resize("m", 1 << 50)]);
    assert_eq!(memory.find_volume("m").unwrap().first_size_bytes, None);
    assert!(memory.apply(&resize("m", 4096)).unwrap_err().to_string().contains("not smaller"));
}

fn snapshot(volume: &str, text: &str) -> Change {
    Change::TakeSnapshots { snapshots: vec![(volume.into(), name(text))], created_ms: 5 }
}

fn clone(volume: &str, snapshot: &str, text: &str) -> Change {
    let (volume, snapshot) = (volume.into(), snapshot.into());
    Change::CloneVolume { volume, snapshot, name: name(text), created_ms: 6 }
}

fn layer(catalog: &Catalog, volume: &str) -> LayerId {
    match catalog.find_volume(volume).unwrap().backing {
        VolumeKind::Pool { layer, .. } => layer,
        _ => panic!("not in a pool"),
    }
}

#[test]
fn snapshots_keep_the_layer_and_volumes_go_on_in_another() {
    let before = sample();
    let volume = before.find_volume("vm-01").unwrap().clone();
    let taken = after(before.clone(), &[snapshot("vm-01", "mon"), snapshot("vm-01", "tue")]);
    let kept: Vec<_> = taken.snapshots_of(volume.id).map(|s| (s.name.as_str(), s.layer)).collect();
    assert_eq!(kept[0], ("mon", layer(&before, "vm-01")));
    assert!(kept[1].1 != kept[0].1 && layer(&taken, "vm-01") != kept[1].1);
    let cloned = after(taken.clone(), &[clone("vm-01", "mon", "copy")]);
    let copy = cloned.find_volume("copy").unwrap();
    assert_eq!((copy.size_bytes, copy.clone_of.as_deref()), (volume.size_bytes, Some("vm-01@mon")));
    assert!(copy.naa != volume.naa && copy.serial != volume.serial && copy.id != volume.id);
    let rolled = Change::RollBack { volume: "vm-01".into(), snapshot: "mon".into() };
    assert!(matches!(taken.apply(&rolled), Err(CatalogError::RollbackMapped { .. })));
    let rolled = after(taken.clone(), &[unmap("vm-01", "pve1"), rolled]);
    assert_eq!(rolled.snapshots(), taken.snapshots());
    assert!(!taken.snapshots().iter().any(|s| s.layer == layer(&rolled, "vm-01")));
    let delete = Change::DeleteVolume { volume: "vm-01".into(), unmap: true };
    let refused = cloned.apply(&delete);
    assert!(matches!(refused, Err(CatalogError::VolumeHasSnapshots { snapshots: 2, .. })));
    let forget = |text: &str| Change::DeleteSnapshot { volume: "vm-01".into(), snapshot: text.into() };
    let left = after(cloned, &[forget("tue"), forget("mon"), delete]);
    assert!(left.snapshots().is_empty() && left.find_volume("copy").is_some());
}

#[test]
fn a_layer_that_was_set_aside_becomes_the_content_of_a_volume() {
    let taken = after(sample(), &[snapshot("vm-01", "mon"), clone("vm-01", "mon", "copy")]);
    let aside = taken.next_layer();
    let with_layer = after(taken.clone(), &[Change::SetLayerAside]);
    let size_bytes = taken.find_volume("vm-01").unwrap().size_bytes;
    let replace =
        |volume: &str, size_bytes| Change::ReplaceContent { volume: volume.into(), layer: aside, size_bytes };
    let code = |change: &Change| with_layer.apply(change).unwrap_err().code();
    assert_eq!(code(&replace("vm-01", size_bytes)), "replace_mapped");
    assert_eq!(code(&replace("copy", size_bytes + 4096)), "replace_resized");
    assert_eq!(code(&replace("old-lun", size_bytes)), "not_in_pool");
    assert_eq!(code(&replace("none", size_bytes)), "not_found");
    // blocks stay dealt as they were, and snapshots stay
    for (volume, snapshots) in [("vm-01", 1), ("copy", 0)] {
        let dealt_as = |catalog: &Catalog| {
            let volume = catalog.find_volume(volume).unwrap();
            volume.dealt_as.unwrap_or(layer(catalog, volume.name.as_str()))
        };
        let free = after(with_layer.clone(), &[unmap("vm-01", "pve1")]);
        let replaced = after(free.clone(), &[replace(volume, size_bytes)]);
        let now = replaced.find_volume(volume).unwrap();
        assert_eq!((layer(&replaced, volume), now.stands_on, &now.clone_of), (aside, None, &None));
        assert_eq!(dealt_as(&replaced), dealt_as(&free));
        assert_eq!(replaced.snapshots_of(now.id).count(), snapshots);
        assert_eq!(Catalog::decode(&replaced.encode()).unwrap(), replaced);
        let back = Change::RollBack { volume: "vm-01".into(), snapshot: "mon".into() };
        assert!(Catalog::decode(&after(replaced, &[back]).encode()).is_ok());
    }
}

#[test]
fn copies_that_cannot_be() {
    let taken = after(sample(), &[snapshot("vm-01", "mon")]);
    let code = |change: &Change| taken.apply(change).unwrap_err().code();
    assert_eq!(code(&snapshot("vm-01", "mon")), "exists");
    assert_eq!(code(&snapshot("old-lun", "mon")), "not_in_pool");
    assert_eq!(code(&clone("vm-01", "tue", "copy")), "not_found");
    assert_eq!(code(&clone("vm-02", "mon", "copy")), "not_found");
    assert_eq!(code(&clone("vm-01", "mon", "vm-02")), "exists");
    let several = |volumes: &[&str]| Change::TakeSnapshots {
        snapshots: volumes.iter().map(|volume| ((*volume).to_owned(), name("all"))).collect(),
        created_ms: 7,
    };
    assert_eq!(code(&several(&[])), "bad_snapshot");
    assert_eq!(code(&several(&["vm-01", "vm-02", "vm-01"])), "bad_snapshot");
    assert_eq!(code(&several(&["vm-01"; SNAPSHOTS_AT_ONCE_MAX + 1])), "bad_snapshot");
    assert_eq!(code(&several(&["vm-01", "old-lun"])), "not_in_pool");
    assert_eq!(after(taken.clone(), &[several(&["vm-01", "vm-02"])]).snapshots().len(), 3);
    let text = String::from_utf8(taken.encode()).unwrap();
    let layer = taken.snapshots()[0].layer.0;
    for (from, to) in [
        (format!("\"layer\":{layer},\"size"), "\"layer\":2,\"size".to_owned()),
        (format!("\"layer\":{layer},\"size"), "\"layer\":999,\"size".to_owned()),
        ("\"snapshots\":[{\"volume\":1".to_owned(), "\"snapshots\":[{\"volume\":3".to_owned()),
    ] {
        let wrong = text.replace(&from, &to);
        assert!(wrong != text && Catalog::decode(wrong.as_bytes()).is_err(), "{from} -> {to}");
    }
}

#[test]
fn sizes_that_a_volume_cannot_have() {
    let cases = [
        (resize("vm-01", 1 << 30), "bad_size", "has 1073741824 bytes already"),
        (resize("vm-01", (1 << 30) + 512), "bad_size", "multiple of 4096"),
        (resize("vm-01", (1 << 38) + 4096), "bad_size", "274877906944 bytes at most"),
        (resize("old-lun", 1 << 40), "bad_size", "as large as its device"),
        (resize("vm", 1 << 40), "not_found", "no volume called \"vm\""),
    ];
    for (change, code, words) in cases {
        let error = sample().apply(&change).unwrap_err();
        assert_eq!(error.code(), code, "{change:?}");
        assert!(error.to_string().contains(words), "{error}");
    }
}

/// Each change is refused, with this code and words of this message, and is no change.
#[test]
fn refusals() {
    let catalog = sample();
    let volume = |size_bytes, block_bytes, backing| Change::CreateVolume {
        name: name("new"),
        backing,
        size_bytes,
        block_bytes,
        write_back: false,
        created_ms: 0,
    };
    let pve1: Initiator = "iqn.1993-08.org.debian:pve1".parse().unwrap();
    let host = |initiators: &[&str], chap, mutual| Change::CreateHost {
        host: Host {
            name: name("new"),
            initiators: initiators.iter().map(|i| i.parse().unwrap()).collect(),
            chap,
            mutual,
        },
    };
    let other = "iqn.2000-01.com.example";
    let table = [
        (create_volume("vm-01", NewVolume::Null), "exists", "a volume called \"vm-01\" already"),
        (create_volume("x", NewVolume::Pool("slow".into())), "not_found", "no pool called \"slow\""),
        (create_volume("x", NewVolume::Raw { path: "sdb".into() }), "bad_path", "absolute path"),
        (
            create_volume("x", NewVolume::Raw { path: "/dev/sdb".into() }),
            "in_use",
            "as volume \"old-lun\" already",
        ),
        (volume(0, 512, NewVolume::Null), "bad_size", "0 bytes"),
        (volume(4097, 512, NewVolume::Null), "bad_size", "multiple of 4096"),
        (volume((1 << 50) + 4096, 512, NewVolume::Null), "bad_size", "1 PiB"),
        (volume(4096, 1024, NewVolume::Null), "bad_block_size", "1024"),
        (Change::DeleteVolume { volume: "vm-01".into(), unmap: false }, "in_use", "mapped to host pve1"),
        (Change::DeleteVolume { volume: "vm".into(), unmap: true }, "not_found", "no volume called \"vm\""),
        (Change::RenameVolume { volume: "vm-01".into(), name: name("vm-02") }, "exists", "vm-02"),
        (
            Change::DeleteHost { host: "pve1".into(), unmap: false },
            "in_use",
            "has 1 volume mapped to it: vm-01",
        ),
        (create_host("pve1"), "exists", "host called \"pve1\""),
        (host(&[], None, None), "bad_initiator", "at least one"),
        (host(&[other, other], None, None), "bad_initiator", "named twice"),
        (host(&[pve1.as_str()], None, None), "initiator_in_use", "belongs to host \"pve1\" already"),
        (host(&[other], None, Some(chap("mutual-secret"))), "bad_chap", "needs one-way"),
        (
            host(&[other], Some(chap("same-secret-12")), Some(chap("same-secret-12"))),
            "bad_chap",
            "different secrets",
        ),
        (map("vm-01", "pve1", None), "already_mapped", "LUN 5 of host \"pve1\" already"),
        (map("vm-02", "pve1", Some(5)), "lun_in_use", "LUN 5 of host \"pve1\" is volume \"vm-01\""),
        (map("vm-02", "pve1", Some(16384)), "bad_lun", "0 to 16383"),
        (map("vm-02", "pve1", Some(u32::MAX)), "bad_lun", "0 to 16383"),
        (map("vm-02", "pve3", None), "not_found", "no host called \"pve3\""),
        (unmap("vm-02", "pve1"), "not_mapped", "not mapped to host \"pve1\""),
        (Change::AttachPool { id: PoolId(10), name: name("fast") }, "exists", "fast"),
        (Change::AttachPool { id: PoolId(9), name: name("other") }, "exists", "other"),
        (Change::DetachPool { pool: "fast".into() }, "in_use", "2 volumes: vm-01, vm-02"),
    ];
    for (change, code, words) in table {
        let error = catalog.apply(&change).expect_err(&format!("{change:?}"));
        assert_eq!(error.code(), code, "{change:?}");
        assert!(error.to_string().contains(words), "{change:?}: {error}");
    }
}

#[test]
fn deleting_with_unmap_takes_the_mappings_along() {
    let catalog = after(sample(), &[map("vm-01", "pve2", None)]);
    let gone = after(catalog.clone(), &[Change::DeleteVolume { volume: "vm-01".into(), unmap: true }]);
    assert_eq!((gone.mappings().len(), gone.volumes().len()), (0, 2));
    let gone = after(catalog, &[Change::DeleteHost { host: "pve1".into(), unmap: true }]);
    assert_eq!((gone.mappings().len(), gone.hosts().len()), (1, 1));
}

#[test]
fn a_host_changes_name_and_credentials_and_keeps_its_luns() {
    let update = HostUpdate {
        name: Some(name("aaa")),
        chap: Setting::Set(chap("one-way-secret")),
        mutual: Setting::Set(chap("mutual-secret")),
        ..HostUpdate::default()
    };
    let catalog = after(sample(), &[map("vm-02", "pve2", Some(1))]);
    let catalog = after(catalog, &[Change::ModifyHost { host: "pve2".into(), update }]);
    assert!(catalog.find_host("pve2").is_none());
    assert_eq!(catalog.lun("aaa", 1).unwrap().volume, VolumeId(2));
    let host = catalog.host_of_initiator("IQN.1993-08.org.debian:pve2").unwrap();
    assert_eq!(host.chap.as_ref().unwrap().secret.expose(), "one-way-secret");
    assert!(!format!("{catalog:?}").contains("-secret"), "a secret was printed");

    let clear = HostUpdate { chap: Setting::Clear, ..HostUpdate::default() };
    let refused = catalog.apply(&Change::ModifyHost { host: "aaa".into(), update: clear });
    assert_eq!(refused, Err(CatalogError::MutualAlone));
    assert_eq!(Catalog::decode(&catalog.encode()), Ok(catalog));
}

#[test]
fn access_states_of_a_volume_survive_other_changes() {
    let catalog = sample();
    let id = catalog.find_volume("vm-01").unwrap().id;
    let access = KeptAccesses::from([(2, KeptAccess::Standby), (3, KeptAccess::ActiveNonOptimized)]);
    // an administrator's change that was planned before
    let planned =
        catalog.apply(&Change::RenameVolume { volume: "vm-01".into(), name: name("vm-09") }).unwrap();
    let kept = catalog.keep_access(id, access.clone()).unwrap();
    assert_eq!(kept.version(), catalog.version() + 1);
    let both = planned.after(&kept);
    assert_eq!(
        both.volume(id).map(|volume| (volume.name.as_str(), &volume.access)),
        Some(("vm-09", &access))
    );
    assert_eq!(Catalog::decode(&both.encode()), Ok(both.clone()));
    let text = String::from_utf8(both.encode()).unwrap();
    for (from, to) in [("\"2\":\"standby\"", "\"0\":\"standby\""), ("\"standby\"", "\"lying_down\"")] {
        assert!(text.contains(from), "{text}");
        let error = Catalog::decode(text.replacen(from, to, 1).as_bytes()).unwrap_err();
        assert!(matches!(error, CatalogError::Damaged { .. }), "{from} -> {to}: {error}");
    }
    assert!(catalog.keep_access(base::VolumeId(99), access).is_err());
}

#[test]
fn bytes_from_the_future_and_bytes_that_are_wrong_are_refused() {
    let text = String::from_utf8(sample().encode()).unwrap();
    let decode = |text: &str| Catalog::decode(text.as_bytes()).unwrap_err();
    let future = text.replacen("\"schema\":12", "\"schema\":13,\"new\":[]", 1);
    assert_eq!(decode(&future), CatalogError::FutureSchema { found: 13, known: 12 });
    assert!(decode(&future).hint().unwrap().contains("newer Tangelo"));
    let breakages = [
        ("\"schema\":12", "\"schema\":0"),
        ("\"schema\":12", "\"schema\":12,\"unknown\":1"),
        ("\"version\":8", "\"version\":0"),
        ("\"next_volume_id\":4", "\"next_volume_id\":3"),
        ("\"next_layer_id\":3", "\"next_layer_id\":2"),
        ("\"name\":\"vm-01\"", "\"name\":\"vm-02\""),
        ("\"name\":\"vm-01\"", "\"name\":\"vm 01\""),
        ("\"block_bytes\":512", "\"block_bytes\":513"),
        ("\"size_bytes\":1073741824", "\"size_bytes\":1073741825"),
        ("\"layer\":2", "\"layer\":1"),
        ("\"lun\":5", "\"lun\":16384"),
        ("\"lun\":5,\"volume\":1", "\"lun\":5,\"volume\":9"),
        ("\"host\":\"pve1\"", "\"host\":\"pve9\""),
        ("debian:pve1", "debian:pve2"),
        ("\"name\":\"pve1\"", "\"name\":\"pve3\""),
        ("\"pool\":\"00", "\"pool\":\"01"),
        ("\"path\":\"/dev/sdb\"", "\"path\":\"sdb\""),
        ("\"read_only\":false", "\"read_only\":0"),
        ("\"naa\":\"6", "\"naa\":\"5"),
    ];
    for (from, to) in breakages {
        assert!(text.contains(from), "the sample lacks {from}: {text}");
        let error = decode(&text.replacen(from, to, 1));
        assert!(matches!(error, CatalogError::Damaged { .. }), "{from} -> {to}: {error}");
    }
}

#[test]
fn what_is_rolled_back_has_room_by_the_size_that_it_has_then() {
    let size = |size_bytes| resize("vm-01", size_bytes);
    let taken = after(sample(), &[unmap("vm-01", "pve1"), snapshot("vm-01", "large"), size(4096)]);
    let cloned = after(taken, &[snapshot("vm-01", "small"), clone("vm-01", "small", "copy")]);
    let promoted = after(cloned, &[Change::PromoteVolume { volume: "copy".into() }]);
    let rolled_back = Change::RollBack { volume: "copy".into(), snapshot: "large".into() };
    let again = after(promoted, &[rolled_back]);
    assert_eq!(Catalog::decode(&again.encode()), Ok(again.clone()), "what is stored can be read");
    assert_eq!(again.find_volume("copy").unwrap().size_bytes, 1 << 30);
    assert_eq!(again.find_volume("copy").unwrap().first_size_bytes, None);
}
