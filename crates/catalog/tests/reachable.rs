//! Invariants of the catalog, after any sequence of changes and after decoding any bytes.

mod common;

use base::{PoolId, VolumeId};
use catalog::{Catalog, Change, Host, HostUpdate, NewVolume};
use common::*;
use proptest::prelude::*;

fn any_renaming() -> impl Strategy<Value = Change> {
    let volume = prop::sample::select(vec!["a", "b", "c", "d"]);
    prop_oneof![
        Just(Change::EmptyBin { pool: "fast".into() }),
        Just(Change::RenamePool { pool: "fast".into(), name: name("slow") }),
        Just(Change::RenamePool { pool: "slow".into(), name: name("fast") }),
        (volume.clone(), volume.clone(), volume.clone()).prop_map(|(v, s, n)| Change::RenameSnapshot {
            volume: v.into(),
            snapshot: s.into(),
            name: name(n)
        }),
        (volume.clone(), volume.clone())
            .prop_map(|(s, n)| Change::RenameSchedule { schedule: s.into(), name: name(n) }),
    ]
}

/// Of the device of a raw volume.
fn any_growth() -> impl Strategy<Value = Change> {
    (0u32..6, 0u64..20).prop_map(|(id, times)| Change::DeviceGrew {
        volume: VolumeId(id),
        size_bytes: times * ((1 << 30) + 512),
    })
}

fn any_change() -> impl Strategy<Value = Change> {
    let volume = prop::sample::select(vec!["a", "b", "c", "d"]);
    let host = prop::sample::select(vec!["h1", "h2", "h3"]);
    let backing = prop_oneof![
        Just(NewVolume::Null),
        Just(NewVolume::Memory),
        Just(NewVolume::Pool("fast".into())),
        "/[a-c]".prop_map(|path| NewVolume::Raw { path }),
    ];
    let initiators = prop::collection::vec("iqn\\.2000-0[1-9]\\.io\\.[a-d]", 0..3);
    let secret = prop::option::of("[a-b]{12}");
    prop_oneof![
        (volume.clone(), backing).prop_map(|(v, backing)| create_volume(v, backing)),
        (volume.clone(), volume.clone())
            .prop_map(|(v, n)| Change::RenameVolume { volume: v.into(), name: name(n) }),
        (volume.clone(), 0u64..600).prop_map(|(v, times)| resize(v, times * ((1 << 30) + 2048))),
        any_growth(),
        (volume.clone(), any::<bool>())
            .prop_map(|(v, unmap)| Change::DeleteVolume { volume: v.into(), unmap }),
        (volume.clone(), any::<bool>()).prop_map(|(v, unmap)| Change::BinVolume {
            volume: v.into(),
            unmap,
            deleted_ms: 4
        }),
        volume.clone().prop_map(|v| Change::UndeleteVolume { volume: v.into() }),
        volume.clone().prop_map(|v| Change::EradicateVolume { volume: v.into() }),
        volume.clone().prop_map(|v| Change::PromoteVolume { volume: v.into() }),
        prop::collection::vec((volume.clone(), volume.clone()), 0..3).prop_map(|named| {
            let snapshots = named.into_iter().map(|(v, n)| (v.into(), name(n))).collect();
            Change::TakeSnapshots { snapshots, created_ms: 2 }
        }),
        (volume.clone(), volume.clone())
            .prop_map(|(v, n)| Change::DeleteSnapshot { volume: v.into(), snapshot: n.into() }),
        (volume.clone(), volume.clone())
            .prop_map(|(v, n)| Change::RollBack { volume: v.into(), snapshot: n.into() }),
        (volume.clone(), volume.clone()).prop_map(|(v, n)| Change::CopyVolume {
            volume: v.into(),
            name: name(n),
            created_ms: 3,
        }),
        (volume.clone(), volume.clone(), volume.clone()).prop_map(|(v, s, n)| Change::CloneVolume {
            volume: v.into(),
            snapshot: s.into(),
            name: name(n),
            created_ms: 3,
        }),
        (host.clone(), initiators, secret.clone(), secret).prop_map(|(h, initiators, one, other)| {
            Change::CreateHost {
                host: Host {
                    name: name(h),
                    initiators: initiators.iter().map(|i| i.parse().unwrap()).collect(),
                    chap: one.map(|s| chap(&s)),
                    mutual: other.map(|s| chap(&s)),
                },
            }
        }),
        (host.clone(), host.clone()).prop_map(|(h, n)| Change::ModifyHost {
            host: h.into(),
            update: HostUpdate { name: Some(name(n)), ..HostUpdate::default() },
        }),
        (host.clone(), any::<bool>()).prop_map(|(h, unmap)| Change::DeleteHost { host: h.into(), unmap }),
        (volume.clone(), host.clone(), prop::option::of(0u32..4)).prop_map(|(v, h, lun)| map(v, h, lun)),
        (volume.clone(), host).prop_map(|(v, h)| unmap(v, h)),
        Just(Change::AttachPool { id: PoolId(1), name: name("fast") }),
        Just(Change::DetachPool { pool: "fast".into() }),
        any_renaming(),
    ]
}

proptest! {
    /// Whatever the changes, what came out is a catalog that its own bytes give back: decoding checks all that
    /// always holds.
    #[test]
    fn every_reachable_catalog_survives_its_bytes(changes in prop::collection::vec(any_change(), 0..60)) {
        let mut catalog = empty();
        for change in &changes {
            if let Ok(next) = catalog.apply(change) {
                catalog = next;
            }
            prop_assert_eq!(Catalog::decode(&catalog.encode()), Ok(catalog.clone()));
        }
    }

    /// Bytes from a disk: any answer, but an answer.
    #[test]
    fn decoding_never_panics(cut in 0usize..4000, flips in prop::collection::vec((0usize..4000, any::<u8>()), 0..4)) {
        let mut bytes = sample().encode();
        bytes.truncate(bytes.len().saturating_sub(cut % 50 * 80));
        for (at, value) in flips {
            if let Some(byte) = bytes.get_mut(at) {
                *byte = value;
            }
        }
        if let Ok(catalog) = Catalog::decode(&bytes) {
            let _ = catalog.apply(&create_volume("z", NewVolume::Null));
        }
    }
}
