//! The bin, copying volumes, and promoting clones.

use base::{ArrayId, PoolId};
use catalog::{Catalog, Change, Host, Name, NewVolume, WantedNumber};

fn name(text: &str) -> Name {
    text.parse().unwrap()
}

fn after(catalog: Catalog, changes: &[Change]) -> Catalog {
    changes.iter().fold(catalog, |catalog, change| {
        let next = catalog.apply(change).unwrap_or_else(|error| panic!("{change:?}: {error}"));
        assert_eq!(Catalog::decode(&next.encode()), Ok(next.clone()));
        next
    })
}

fn code(catalog: &Catalog, change: &Change) -> &'static str {
    catalog.apply(change).expect_err(&format!("{change:?}")).code()
}

fn create(volume: &str, backing: NewVolume) -> Change {
    let name = name(volume);
    Change::CreateVolume {
        name,
        backing,
        size_bytes: 1 << 20,
        block_bytes: 512,
        write_back: false,
        created_ms: 1,
    }
}

fn snapshot(volume: &str, text: &str) -> Change {
    Change::TakeSnapshots { snapshots: vec![(volume.into(), name(text))], created_ms: 2 }
}

fn clone(volume: &str, snapshot: &str, to: &str) -> Change {
    Change::CloneVolume { volume: volume.into(), snapshot: snapshot.into(), name: name(to), created_ms: 3 }
}

fn bin(volume: &str) -> Change {
    Change::BinVolume { volume: volume.into(), unmap: true, deleted_ms: 4 }
}

fn undelete(volume: &str) -> Change {
    Change::UndeleteVolume { volume: volume.into() }
}

fn eradicate(volume: &str) -> Change {
    Change::EradicateVolume { volume: volume.into() }
}

fn promote(volume: &str) -> Change {
    Change::PromoteVolume { volume: volume.into() }
}

fn delete_snapshot(volume: &str, snapshot: &str) -> Change {
    Change::DeleteSnapshot { volume: volume.into(), snapshot: snapshot.into() }
}

fn host(text: &str) -> Change {
    let initiators = vec![format!("iqn.2000-01.io:{text}").parse().unwrap()];
    Change::CreateHost { host: Host { name: name(text), initiators, chap: None, mutual: None } }
}

fn map(volume: &str, host: &str, lun: u32) -> Change {
    Change::Map {
        volume: volume.into(),
        host: host.into(),
        number: WantedNumber::Lun(Some(lun)),
        read_only: false,
    }
}

/// A volume with two snapshots, mapped to two hosts.
fn sample() -> Catalog {
    let catalog = Catalog::new(ArrayId(1), name("array"));
    let pool = || NewVolume::Pool("fast".into());
    let changes = [
        Change::AttachPool { id: PoolId(9), name: name("fast") },
        create("a", pool()),
        create("b", pool()),
        host("one"),
        host("two"),
        snapshot("a", "mon"),
        snapshot("a", "tue"),
        map("a", "one", 0),
        map("a", "two", 5),
    ];
    after(catalog, &changes)
}

fn snapshots(catalog: &Catalog, volume: &str) -> Vec<String> {
    let id = catalog.find_volume(volume).unwrap().id;
    catalog.snapshots_of(id).map(|snapshot| snapshot.name.to_string()).collect()
}

#[test]
fn there_and_back() {
    let before = sample();
    let gone = after(before.clone(), &[bin("a")]);
    assert!(gone.find_volume("a").is_none() && gone.mappings().is_empty() && gone.snapshots().is_empty());
    assert_eq!(
        gone.find_binned("a").map(|binned| (binned.snapshots.len(), binned.mappings.len())),
        Some((2, 2))
    );
    let back = after(gone.clone(), &[undelete("a")]);
    assert_eq!(
        (back.volumes(), back.snapshots(), back.mappings()),
        (before.volumes(), before.snapshots(), before.mappings())
    );
    for change in [create("a", NewVolume::Null), clone("b", "x", "a")] {
        assert!(["exists", "not_found"].contains(&code(&gone, &change)));
    }
    assert_eq!(code(&gone, &create("a", NewVolume::Null)), "exists");
    assert_eq!(code(&gone, &Change::RenameVolume { volume: "b".into(), name: name("a") }), "exists");
    assert_eq!(code(&gone, &undelete("b")), "not_found");
    assert_eq!(code(&gone, &eradicate("b")), "not_found");
    assert_eq!(code(&gone, &Change::DetachPool { pool: "fast".into() }), "in_use");
    let mapped = Change::BinVolume { volume: "a".into(), unmap: false, deleted_ms: 4 };
    assert_eq!(code(&before, &mapped), "in_use");
    let raw = after(before, &[create("raw", NewVolume::Raw { path: "/dev/sdb".into() })]);
    assert_eq!(code(&raw, &bin("raw")), "not_in_pool");
    let empty = after(gone, &[eradicate("a"), create("a", NewVolume::Null)]);
    assert!(empty.bin().is_empty());
}

#[test]
fn mappings_come_back_where_they_can() {
    let forget = |host: &str| Change::DeleteHost { host: host.into(), unmap: true };
    let renamed = catalog::HostUpdate { name: Some(name("uno")), ..Default::default() };
    let gone = after(sample(), &[bin("a")]);
    // a host of the same name is another host
    let other = after(gone.clone(), &[forget("two"), host("two"), undelete("a")]);
    assert_eq!(other.mappings().len(), 1);
    let taken = after(gone.clone(), &[map("b", "one", 0), undelete("a")]);
    let one = taken.lun("one", 0).and_then(|mapping| taken.volume(mapping.volume)).unwrap();
    assert_eq!((one.name.as_str(), taken.mappings().len()), ("b", 2));
    let changes = [Change::ModifyHost { host: "one".into(), update: renamed }, undelete("a")];
    assert!(after(gone, &changes).lun("uno", 0).is_some());
}

#[test]
fn a_clone_takes_over_what_it_stands_on() {
    let catalog = after(sample(), &[snapshot("a", "wed"), clone("a", "tue", "c"), snapshot("c", "own")]);
    let clone_of = |catalog: &Catalog, volume: &str| catalog.find_volume(volume).unwrap().clone_of.clone();
    assert_eq!(clone_of(&catalog, "c").as_deref(), Some("a@tue"));
    let promoted = after(catalog.clone(), &[promote("c")]);
    assert_eq!(
        (snapshots(&promoted, "a"), snapshots(&promoted, "c")),
        (vec!["wed".into()], vec!["mon".into(), "tue".into(), "own".into()])
    );
    assert_eq!((clone_of(&promoted, "a").as_deref(), clone_of(&promoted, "c")), (Some("c@tue"), None));
    // and back again
    let again = after(promoted.clone(), &[promote("a")]);
    assert_eq!(snapshots(&again, "a"), ["mon", "tue", "wed"]);
    assert_eq!(code(&promoted, &promote("c")), "cannot_promote");
    assert_eq!(code(&catalog, &promote("a")), "cannot_promote");
    let twice = after(catalog.clone(), &[snapshot("c", "mon")]);
    assert_eq!(code(&twice, &promote("c")), "cannot_promote");
    // what a clone of a clone stands on is its origin's as far as it goes
    let deep = after(catalog.clone(), &[clone("c", "own", "d"), promote("d")]);
    assert_eq!(
        (snapshots(&deep, "d"), snapshots(&deep, "a")),
        (vec!["own".to_owned()], vec!["mon".into(), "tue".into(), "wed".into()])
    );
    let binned = after(catalog.clone(), &[bin("a")]);
    assert!(binned.apply(&promote("c")).unwrap_err().hint().unwrap().contains("undelete a"));
    // without its snapshot it stands on the one before, and without any on nothing of the other's
    let older = after(catalog.clone(), &[delete_snapshot("a", "tue"), promote("c")]);
    assert_eq!(
        (snapshots(&older, "a"), snapshots(&older, "c")),
        (vec!["wed".to_owned()], vec!["mon".into(), "own".into()])
    );
    let none = after(catalog, &[delete_snapshot("a", "mon"), delete_snapshot("a", "tue")]);
    assert_eq!(code(&none, &promote("c")), "cannot_promote");
    let gone = after(binned, &[eradicate("a")]);
    assert!(gone.find_volume("c").unwrap().stands_on.is_some(), "its own snapshot");
    assert_eq!(code(&gone, &promote("c")), "cannot_promote");
}

#[test]
fn bytes_with_a_bin_that_cannot_be_are_refused() {
    let text = String::from_utf8(after(sample(), &[bin("a")]).encode()).unwrap();
    for (from, to) in [
        ("\"host\":\"one\"", "\"host\":\"six\""),
        ("\"name\":\"a\"", "\"name\":\"b\""),
        ("\"stands_on\":1", "\"stands_on\":3"),
    ] {
        assert!(text.contains(from), "the sample lacks {from}: {text}");
        assert_eq!(
            Catalog::decode(text.replacen(from, to, 1).as_bytes()).unwrap_err().code(),
            "damaged",
            "{to}"
        );
    }
}

#[test]
fn schedules_take_and_expire_their_own() {
    const HOUR: u64 = 3_600_000;
    let keep = catalog::Retention { hourly: 2, daily: 1, ..Default::default() };
    let create = |volumes: &[&str], keep| Change::CreateSchedule {
        name: name("often"),
        volumes: volumes.iter().map(|&volume| volume.to_owned()).collect(),
        keep,
    };
    let mut catalog = after(sample(), &[create(&["b", "a"], keep)]);
    assert_eq!(code(&sample(), &create(&["a", "a"], keep)), "bad_snapshot");
    assert_eq!(code(&sample(), &create(&[], keep)), "bad_snapshot");
    assert_eq!(code(&sample(), &create(&["x"], keep)), "not_found");
    assert_eq!(code(&sample(), &create(&["a"], catalog::Retention::default())), "bad_setting");
    assert_eq!(code(&sample(), &create(&["a"], catalog::Retention { weekly: 1001, ..keep })), "bad_setting");
    assert_eq!(code(&catalog, &create(&["a"], keep)), "exists");
    for hour in 1..6 {
        let now_ms = 1_700_000_000_000 + hour * HOUR;
        let schedule = catalog.find_schedule("often").unwrap();
        assert!(schedule.is_due(now_ms));
        let volumes = catalog.scheduled(schedule).map(|volume| volume.id).collect();
        let run = Change::RunSchedule { schedule: "often".into(), volumes, now_ms, keep_all: false };
        catalog = after(catalog, &[run]);
        assert!(!catalog.find_schedule("often").unwrap().is_due(now_ms));
    }
    let often = ["often-20231115T0013Z", "often-20231115T0213Z", "often-20231115T0313Z"];
    assert_eq!(snapshots(&catalog, "b"), often);
    assert_eq!(snapshots(&catalog, "a"), [["mon", "tue"].as_slice(), &often].concat());
    // a clone of what expires stands on what is left
    catalog = after(catalog, &[clone("b", often[1], "c")]);
    let run = Change::RunSchedule {
        schedule: "often".into(),
        volumes: vec![catalog.find_volume("b").unwrap().id],
        now_ms: 1_700_000_000_000 + 6 * HOUR,
        keep_all: false,
    };
    catalog = after(catalog, &[run, promote("c")]);
    assert_eq!(snapshots(&catalog, "c"), [often[0]]);
    let gone = after(catalog.clone(), &[bin("a")]);
    let schedule = gone.find_schedule("often").unwrap();
    assert_eq!((schedule.volumes.len(), gone.scheduled(schedule).count()), (2, 1));
    assert_eq!(after(gone, &[eradicate("a")]).find_schedule("often").unwrap().volumes.len(), 1);
    let ended = after(catalog, &[Change::DeleteSchedule { schedule: "often".into() }]);
    assert!(ended.schedules().is_empty() && snapshots(&ended, "b").len() == 2);
}

/// Copying a volume gives both a new layer; the copy is none of its clones, and can take its place.
#[test]
fn a_volume_is_copied_as_a_whole() {
    let copy =
        |volume: &str, to: &str| Change::CopyVolume { volume: volume.into(), name: name(to), created_ms: 3 };
    let before = sample();
    let copied = after(before.clone(), &[copy("a", "whole")]);
    let place = |catalog: &Catalog, volume: &str| catalog.find_volume(volume).unwrap().place().unwrap().1;
    let (old, of, whole) = (
        before.find_volume("a").unwrap(),
        copied.find_volume("a").unwrap(),
        copied.find_volume("whole").unwrap(),
    );
    assert!(place(&copied, "a") > place(&before, "a") && place(&copied, "whole") > place(&before, "a"));
    assert_ne!(place(&copied, "a"), place(&copied, "whole"));
    assert_eq!((whole.stands_on, whole.dealt_as), (old.stands_on, of.dealt_as));
    assert_eq!((whole.size_bytes, whole.clone_of.as_deref()), (old.size_bytes, Some("a")));
    assert!(
        whole.naa != of.naa && whole.serial != of.serial && copied.mappings_of(whole.id).next().is_none()
    );
    assert_eq!(copied.clones_of("a", "other").count(), 0);
    let promoted = after(copied, &[promote("whole")]);
    let id = promoted.find_volume("whole").unwrap().id;
    assert!(promoted.snapshots().iter().all(|snapshot| snapshot.volume == id));
    assert!(promoted.find_volume("a").unwrap().clone_of.as_deref().unwrap().starts_with("whole@"));
    assert_eq!(code(&before, &copy("a", "a")), "exists");
    assert_eq!(code(&before, &copy("nothing", "whole")), "not_found");
    let memory = after(before, &[create("memory", NewVolume::Memory)]);
    assert_eq!(code(&memory, &copy("memory", "whole")), "not_in_pool");
}

fn pool_with_volume() -> Catalog {
    let attach = Change::AttachPool { id: PoolId(1), name: name("fast") };
    after(Catalog::new(ArrayId(1), name("array")), &[attach, create("a", NewVolume::Pool("fast".into()))])
}

#[test]
fn a_pool_is_forgotten_when_nothing_of_it_is_left_and_does_not_come_back() {
    let catalog = pool_with_volume();
    assert_eq!(code(&catalog, &Change::DetachPool { pool: "fast".into() }), "in_use");
    let catalog = after(catalog, &[bin("a")]);
    let refused = catalog.apply(&Change::DetachPool { pool: "fast".into() }).unwrap_err();
    assert!(refused.hint().unwrap().contains("--eradicate"), "the bin keeps its pool: {refused}");
    let empty = Change::EmptyBin { pool: "fast".into() };
    let catalog = after(catalog, &[empty, Change::DetachPool { pool: "fast".into() }]);
    assert!(catalog.find_pool("fast").is_none() && catalog.bin().is_empty());
    assert_eq!(catalog.deleted_pool(PoolId(1)).map(|deleted| deleted.name.as_str()), Some("fast"));
    let many = (2..=100u64).flat_map(|id| {
        let attach = Change::AttachPool { id: PoolId(id.into()), name: name("fast") };
        [attach, Change::DetachPool { pool: "fast".into() }]
    });
    let catalog = after(catalog, &many.collect::<Vec<_>>());
    assert!(catalog.deleted_pool(PoolId(1)).is_none(), "only the last ones are remembered");
    assert!(catalog.deleted_pool(PoolId(100)).is_some());
}

#[test]
fn whoever_brings_a_volume_back_learns_which_hosts_are_gone() {
    let host = Host {
        name: name("pve1"),
        initiators: vec!["iqn.1993-08.org.debian:pve1".parse().unwrap()],
        chap: None,
        mutual: None,
    };
    let map = Change::Map {
        volume: "a".into(),
        host: "pve1".into(),
        number: WantedNumber::Lun(None),
        read_only: false,
    };
    let delete = Change::DeleteHost { host: "pve1".into(), unmap: false };
    let catalog = after(pool_with_volume(), &[Change::CreateHost { host }, map, bin("a"), delete]);
    assert_eq!(catalog.find_binned("a").unwrap().hosts_gone, [name("pve1")]);
    let catalog = after(catalog, &[undelete("a")]);
    assert!(catalog.mappings().is_empty());
}

#[test]
fn snapshots_and_schedules_change_their_names() {
    let keep = catalog::Retention { hourly: 1, ..catalog::Retention::default() };
    let schedule = Change::CreateSchedule { name: name("hourly"), volumes: vec!["a".into()], keep };
    let id = pool_with_volume().find_volume("a").unwrap().id;
    let run = |schedule: &str, now_ms| Change::RunSchedule {
        schedule: schedule.into(),
        volumes: vec![id],
        now_ms,
        keep_all: false,
    };
    let rename = Change::RenameSchedule { schedule: "hourly".into(), name: name("a-new-one") };
    let catalog = after(pool_with_volume(), &[schedule, run("hourly", 1), snapshot("a", "mine"), rename]);
    assert!(catalog.find_schedule("hourly").is_none());
    // what it took before is still its own: it goes when the next one comes
    let catalog = after(catalog, &[run("a-new-one", 7_200_000)]);
    let left: Vec<&str> = catalog.snapshots().iter().map(|snapshot| snapshot.name.as_str()).collect();
    assert_eq!(left, ["mine", "a-new-one-19700101T0200Z"]);
    let rename = |from: &str, to: &str| Change::RenameSnapshot {
        volume: "a".into(),
        snapshot: from.into(),
        name: name(to),
    };
    assert_eq!(code(&catalog, &rename("mine", "a-new-one-19700101T0200Z")), "exists");
    assert_eq!(code(&catalog, &rename("yours", "ours")), "not_found");
    let catalog = after(catalog, &[rename("mine", "ours")]);
    assert!(catalog.find_snapshot(id, "ours").is_some());
}
