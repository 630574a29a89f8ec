//! What schema 12 added: initiators and namespaces of NVMe, registrations of NVMe hosts, heads, and the term of ownership.

mod common;

use base::HeadId;
use catalog::{
    Catalog, CatalogError, Change, Head, HeadPortal, Host, Initiator, KeptHold, KeptRegistrant,
    KeptRegistration, KeptReservations, UnitNumber, WantedNumber,
};
use common::{after, create_host, map, name, sample, unmap};

const NQN: &str = "nqn.2014-08.org.nvmexpress:uuid:2cf8a3e1-0000-4b1e-9f6e-1f9c2f0b7a11";

fn attach(volume: &str, host: &str, namespace: Option<u32>) -> Change {
    let number = WantedNumber::Namespace(namespace);
    Change::Map { volume: volume.into(), host: host.into(), number, read_only: false }
}

fn head(id: u128, groups: &[u16]) -> Head {
    let portal =
        |&group: &u16| HeadPortal { address: format!("10.0.0.{group}:3260").parse().unwrap(), group };
    Head { id: HeadId(id), name: name("head"), portals: groups.iter().map(portal).collect() }
}

fn served_by(mut catalog: Catalog, head: Head) -> Catalog {
    catalog.set_served_by(head, 0);
    catalog
}

fn decoded(catalog: &Catalog) -> Catalog {
    Catalog::decode(&catalog.encode()).unwrap()
}

/// The catalog with this replaced in its JSON.
fn broken(catalog: &Catalog, from: &str, to: &str) -> CatalogError {
    let text = String::from_utf8(catalog.encode()).unwrap();
    assert!(text.contains(from), "{text} lacks {from}");
    Catalog::decode(text.replacen(from, to, 1).as_bytes()).unwrap_err()
}

#[test]
fn a_host_has_initiators_of_several_kinds() {
    let names = ["iqn.2001-04.com.example:a", NQN, "10:00:00:90:fa:12:34:56"];
    let initiators: Vec<Initiator> = names.iter().map(|name| name.parse().unwrap()).collect();
    let host = Host { name: name("both"), initiators, chap: None, mutual: None };
    let catalog = after(sample(), &[Change::CreateHost { host }]);
    assert_eq!(decoded(&catalog), catalog);
    let of = |initiator: &str| catalog.host_of_initiator(initiator).map(|host| host.name.as_str());
    assert_eq!(of("IQN.2001-04.com.example:A"), Some("both"));
    // an iSCSI login cannot claim to be an initiator of another transport
    assert_eq!((of(NQN), of(names[2])), (None, None));
}

#[test]
fn a_volume_is_a_lun_and_a_namespace_of_one_host() {
    let catalog = after(sample(), &[attach("vm-01", "pve1", None), attach("vm-02", "pve1", Some(7))]);
    let numbers = |catalog: &Catalog| -> Vec<(UnitNumber, u32)> {
        catalog.mappings_of_host("pve1").map(|one| (one.number, one.volume.0)).collect()
    };
    let expected = [(UnitNumber::Lun(5), 1), (UnitNumber::Namespace(1), 1), (UnitNumber::Namespace(7), 2)];
    assert_eq!(numbers(&catalog), expected);
    assert_eq!(catalog.luns_of("pve1").map(|(lun, _)| lun).collect::<Vec<_>>(), [5]);
    assert_eq!(decoded(&catalog), catalog);
    let refused = |change: &Change| catalog.apply(change).unwrap_err().to_string();
    let text = "volume \"vm-01\" is namespace 1 of host \"pve1\" already";
    assert_eq!(refused(&attach("vm-01", "pve1", None)), text);
    let text = "namespace 7 of host \"pve1\" is volume \"vm-02\" already";
    assert_eq!(refused(&attach("old-lun", "pve1", Some(7))), text);
    for impossible in [0, 16385, u32::MAX] {
        assert!(refused(&attach("old-lun", "pve1", Some(impossible))).contains("go from 1 to 16384"));
    }
    // both numbers are freed, and stay the volume's own
    let gone = after(catalog, &[unmap("vm-01", "pve1"), attach("old-lun", "pve1", None)]);
    assert_eq!(gone.mapping_at("pve1", UnitNumber::Namespace(2)).map(|one| one.volume.0), Some(3));
    let back = after(gone, &[attach("vm-01", "pve1", None), map("vm-01", "pve1", None)]);
    assert_eq!(numbers(&back)[..2], expected[..2]);
    assert_eq!(decoded(&back), back);
    for (from, to) in [
        ("\"namespace\":1", "\"namespace\":0"),
        ("\"namespace\":1", "\"namespace\":1,\"lun\":3"),
        ("\"namespace\":1,", ""),
        ("\"namespace\":1", "\"namespace\":7"),
    ] {
        assert!(matches!(broken(&back, from, to), CatalogError::Damaged { .. }), "{from} -> {to}");
    }
}

#[test]
fn a_registration_is_of_a_nexus_or_of_an_nvme_host() {
    let nexus = KeptRegistrant::Nexus { initiator: "iqn.2001-04.com.example:a,i,0x1".into(), port: 1 };
    let registrations = vec![
        KeptRegistration { registrant: nexus, key: 1 },
        KeptRegistration { registrant: KeptRegistrant::NvmeHost([0xA5; 16]), key: 2 },
    ];
    let kept = KeptReservations { registrations, held: Some(KeptHold { kind: 5, holder: Some(1) }) };
    let catalog = sample().keep_reservations(base::VolumeId(1), Some(kept)).unwrap();
    assert_eq!(decoded(&catalog), catalog);
    let id = "a5".repeat(16);
    for (from, to) in [
        (format!("\"nvme_host\":\"{id}\""), format!("\"nvme_host\":\"{}\"", &id[2..])),
        (format!("\"nvme_host\":\"{id}\""), format!("\"nvme_host\":\"{id}\",\"port\":1")),
        (format!("\"nvme_host\":\"{id}\","), String::new()),
        ("\"port\":1,".to_owned(), String::new()),
    ] {
        assert!(matches!(broken(&catalog, &from, &to), CatalogError::Damaged { .. }), "{from} -> {to}");
    }
}

#[test]
fn one_head_takes_the_place_of_another() {
    let catalog = served_by(sample(), head(1, &[1, 2]));
    assert_eq!(decoded(&catalog), catalog);
    let moved = served_by(catalog.clone(), head(2, &[1]));
    assert_eq!((moved.heads(), moved.version()), (&[head(2, &[1])][..], catalog.version()));
    for (from, to) in [("\"group\":2", "\"group\":65"), ("\"group\":2", "\"group\":0")] {
        assert!(matches!(broken(&catalog, from, to), CatalogError::Damaged { .. }), "{from} -> {to}");
    }
    // two heads have portal groups of their own
    let second = |id: u128, group: u16| {
        format!(
            "[{{\"id\":\"{:032x}\",\"name\":\"b\",\"portals\":[{{\"address\":\"10.0.0.9:3260\",\"group\":{group}}}]}},",
            id
        )
    };
    let text = String::from_utf8(moved.encode()).unwrap();
    let with = |second: &str| {
        let text = text.replacen("\"heads\":[", &format!("\"heads\":{second}"), 1);
        Catalog::decode(text.as_bytes())
    };
    let both = with(&second(1, 2)).unwrap();
    assert_eq!(both.heads().len(), 2);
    assert_eq!(served_by(both.clone(), head(9, &[1])), both, "a pair stays a pair");
    assert!(with(&second(1, 1)).is_err(), "the group is the other head's");
    assert!(with(&second(3, 2)).is_err(), "out of order");
}

#[test]
fn a_later_term_is_newer_whatever_the_versions() {
    let old = after(sample(), &[create_host("a"), create_host("b")]);
    let new = after(sample(), &[Change::BeginTerm { term: 7 }]);
    assert!(new.version() < old.version() && new.is_newer_than(&old) && !old.is_newer_than(&new));
    assert_eq!((decoded(&new), new.term()), (new.clone(), 7));
    let next = after(new.clone(), &[create_host("c")]);
    assert!(next.is_newer_than(&new) && next.term() == 7);
    let planned = after(sample(), &[create_host("d")]).after(&new);
    assert_eq!((planned.term(), planned.version()), (7, new.version() + 1), "planned before the term began");
    for term in [0, 6, 7] {
        let refused = new.apply(&Change::BeginTerm { term });
        assert_eq!(refused, Err(CatalogError::OldTerm { term, now: 7 }));
    }
}
