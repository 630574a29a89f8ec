//! Layers that stay because copies refer to them.

use base::{ArrayId, PoolId};
use catalog::{Catalog, CatalogError, Change, NewVolume};

fn sample() -> Catalog {
    let pool = Change::AttachPool { id: PoolId(9), name: "fast".parse().unwrap() };
    let volume = Change::CreateVolume {
        name: "vm-01".parse().unwrap(),
        backing: NewVolume::Pool("fast".into()),
        size_bytes: 1 << 30,
        block_bytes: 512,
        write_back: false,
        created_ms: 1,
    };
    let empty = Catalog::new(ArrayId(0xfeed_beef << 96 | 7), "tangelo".parse().unwrap());
    empty.apply(&pool).and_then(|catalog| catalog.apply(&volume)).unwrap()
}

#[test]
fn layers_stay_for_copies() {
    let catalog = sample();
    let volume =
        catalog.volumes().iter().find(|volume| volume.place().is_some()).expect("one in a pool").clone();
    let (pool, layer) = volume.place().unwrap();
    let name = volume.name.to_string();
    let frozen = catalog.apply(&Change::FreezeVolume { volume: name.clone(), since_ms: 9 }).unwrap();
    let now = frozen.volume(volume.id).unwrap();
    assert_ne!(now.place(), volume.place(), "it goes on in another");
    assert_eq!(now.dealt_as, volume.dealt_as.or(Some(layer)));
    assert!(frozen.is_copied_from(pool, layer) && frozen.copied_from().len() == 1);
    assert_eq!(Catalog::decode(&frozen.encode()), Ok(frozen.clone()));
    let keep = Change::KeepLayer { pool, layer, volume: volume.id, since_ms: 10 };
    let again = frozen.apply(&keep).unwrap();
    assert_eq!(again.copied_from(), frozen.copied_from(), "twice is once");
    // what a volume is in is never one
    let text = String::from_utf8(frozen.encode()).unwrap();
    let top = now.place().unwrap().1;
    let (from, to) = (format!("\"layer\":{},\"volume\"", layer.0), format!("\"layer\":{},\"volume\"", top.0));
    assert!(text.contains(&from), "{text}");
    let error = Catalog::decode(text.replacen(&from, &to, 1).as_bytes()).unwrap_err();
    assert!(matches!(error, CatalogError::Damaged { .. }), "{error}");
    let forgotten = again.apply(&Change::ForgetLayers { pool, layers: vec![layer] }).unwrap();
    assert!(forgotten.copied_from().is_empty());
    let most = base::limits::COPIED_FROM_PER_VOLUME_MAX;
    let mut full = catalog;
    for _ in 0..most {
        full = full.apply(&Change::FreezeVolume { volume: name.clone(), since_ms: 9 }).unwrap();
    }
    let error = full.apply(&Change::FreezeVolume { volume: name, since_ms: 9 }).unwrap_err();
    assert!(matches!(error, CatalogError::TooMany { .. }), "{error}");
}
