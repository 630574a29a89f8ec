//! A sample array, and short forms for changes.
#![allow(dead_code, reason = "each test program uses a part of it")]

use base::{ArrayId, PoolId};
use catalog::{Catalog, Change, Chap, Host, Name, NewVolume, WantedNumber};

pub fn name(text: &str) -> Name {
    text.parse().unwrap()
}

pub fn chap(secret: &str) -> Chap {
    Chap::new("user", secret.parse().unwrap()).unwrap()
}

pub fn empty() -> Catalog {
    Catalog::new(ArrayId(0xfeed_beef << 96 | 7), name("tangelo"))
}

pub fn create_volume(text: &str, backing: NewVolume) -> Change {
    Change::CreateVolume {
        name: name(text),
        backing,
        size_bytes: 1 << 30,
        block_bytes: 512,
        write_back: false,
        created_ms: 1,
    }
}

pub fn create_host(text: &str) -> Change {
    let initiators = vec![format!("iqn.1993-08.org.debian:{text}").to_lowercase().parse().unwrap()];
    Change::CreateHost { host: Host { name: name(text), initiators, chap: None, mutual: None } }
}

pub fn map(volume: &str, host: &str, lun: Option<u32>) -> Change {
    Change::Map { volume: volume.into(), host: host.into(), number: WantedNumber::Lun(lun), read_only: false }
}

pub fn unmap(volume: &str, host: &str) -> Change {
    Change::Unmap { volume: volume.into(), host: host.into() }
}

pub fn after(catalog: Catalog, changes: &[Change]) -> Catalog {
    changes.iter().fold(catalog, |catalog, change| {
        let next = catalog.apply(change).unwrap_or_else(|error| panic!("{change:?}: {error}"));
        assert_eq!(next.version(), catalog.version() + 1);
        next
    })
}

pub fn sample() -> Catalog {
    after(
        empty(),
        &[
            Change::AttachPool { id: PoolId(9), name: name("fast") },
            create_volume("vm-01", NewVolume::Pool("fast".into())),
            create_volume("vm-02", NewVolume::Pool("fast".into())),
            create_volume("old-lun", NewVolume::Raw { path: "/dev/sdb".into() }),
            create_host("pve1"),
            create_host("pve2"),
            map("vm-01", "pve1", Some(5)),
        ],
    )
}

pub fn resize(volume: &str, size_bytes: u64) -> Change {
    Change::ResizeVolume { volume: volume.to_owned(), size_bytes }
}
