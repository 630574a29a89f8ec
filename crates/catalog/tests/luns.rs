//! Which LUN a mapping gets if none is given: not a number that the host knows for another volume.

mod common;

use base::limits::FREED_LUNS_MAX;
use catalog::{Catalog, Change, HostUpdate, NewVolume};
use common::{after, create_host, create_volume, map, name, sample, unmap};

fn memory(text: &str) -> Change {
    create_volume(text, NewVolume::Memory)
}

/// Host `pve9` and volumes a to e, which are not mapped.
fn array() -> Catalog {
    let volumes = ["a", "b", "c", "d", "e"].map(memory);
    after(after(sample(), &[create_host("pve9")]), &volumes)
}

fn lun(catalog: &Catalog, host: &str, volume: &str) -> Option<u16> {
    let id = catalog.find_volume(volume)?.id;
    catalog.luns_of(host).find(|(_, mapping)| mapping.volume == id).map(|(lun, _)| lun)
}

/// Maps it where nothing is asked for; where it is then.
fn given(catalog: &mut Catalog, volume: &str) -> u16 {
    *catalog = after(catalog.clone(), &[map(volume, "pve9", None)]);
    assert_eq!(Catalog::decode(&catalog.encode()).as_ref(), Ok(&*catalog));
    lun(catalog, "pve9", volume).unwrap()
}

#[test]
fn a_freed_number_is_not_given_to_another_volume_while_there_is_a_new_one() {
    let mut catalog = array();
    assert_eq!(["a", "b", "c"].map(|volume| given(&mut catalog, volume)), [0, 1, 2]);
    catalog = after(catalog, &[unmap("b", "pve9")]);
    assert_eq!(given(&mut catalog, "d"), 3, "1 was b");
    catalog = after(catalog, &[unmap("a", "pve9")]);
    assert_eq!(given(&mut catalog, "b"), 1, "its own");
    // who asks for a number gets it, and then it is b's no more
    catalog = after(catalog, &[unmap("b", "pve9"), map("e", "pve9", Some(1)), unmap("e", "pve9")]);
    assert_eq!(given(&mut catalog, "b"), 4);
    assert_eq!(given(&mut catalog, "e"), 1);
    assert_eq!(given(&mut catalog, "a"), 0);
}

#[test]
fn numbers_are_freed_by_whatever_ends_a_mapping_and_go_with_their_host() {
    let mut catalog = array();
    assert_eq!(["a", "b", "c"].map(|volume| given(&mut catalog, volume)), [0, 1, 2]);
    let delete = Change::DeleteVolume { volume: "a".into(), unmap: true };
    let rename = Change::ModifyHost {
        host: "pve9".into(),
        update: HostUpdate { name: Some(name("other")), ..HostUpdate::default() },
    };
    let back = Change::ModifyHost {
        host: "other".into(),
        update: HostUpdate { name: Some(name("pve9")), ..HostUpdate::default() },
    };
    catalog = after(catalog, &[delete, rename, back]);
    assert_eq!(given(&mut catalog, "d"), 3, "0 was a, which is gone");
    let unmapped = ["b", "c", "d"].map(|volume| unmap(volume, "pve9"));
    let gone = Change::DeleteHost { host: "pve9".into(), unmap: false };
    catalog = after(after(catalog, &unmapped), &[gone, create_host("pve9")]);
    assert_eq!(Catalog::decode(&catalog.encode()).as_ref(), Ok(&catalog));
    assert_eq!(given(&mut catalog, "d"), 0, "a new host knows nothing");
}

#[test]
fn the_number_that_was_freed_first_comes_first_when_there_is_no_other_below_256() {
    let mut catalog = after(array(), &[map("a", "pve9", Some(255))]);
    for lun in (0..255).rev() {
        catalog = after(catalog, &[map("b", "pve9", Some(lun)), unmap("b", "pve9")]);
    }
    assert_eq!(given(&mut catalog, "c"), 254);
    assert_eq!(given(&mut catalog, "d"), 253);
    assert_eq!(given(&mut catalog, "b"), 0, "the last that it had");
}

#[test]
fn only_the_last_are_remembered_and_nothing_impossible_is_believed() {
    let mut catalog = array();
    for lun in 0..FREED_LUNS_MAX as u32 + 3 {
        catalog = after(catalog, &[map("b", "pve9", Some(lun)), unmap("b", "pve9")]);
    }
    assert_eq!(given(&mut catalog, "c"), 0, "that was too long ago");
    let text = String::from_utf8(catalog.encode()).unwrap();
    let freed = text.find("\"freed_luns\":[").expect("they are kept");
    let first = r#"{"host":"pve9","lun":3,"#;
    assert!(text[freed..].contains(first));
    for wrong in [r#"{"host":"nobody","lun":3,"#, r#"{"host":"pve9","lun":0,"#, r#"{"host":"pve9","lun":4,"#]
    {
        let text = [&text[..freed], &text[freed..].replacen(first, wrong, 1)].concat();
        assert!(Catalog::decode(text.as_bytes()).is_err(), "{wrong}");
    }
}

#[test]
fn a_catalog_of_schema_8_knows_no_freed_numbers() {
    let catalog = sample();
    let text = String::from_utf8(catalog.encode()).unwrap();
    assert!(!text.contains("freed_luns"));
    let older = text.replacen("\"schema\":12", "\"schema\":8", 1);
    assert_ne!(older, text);
    assert_eq!(Catalog::decode(older.as_bytes()), Ok(catalog));
}
