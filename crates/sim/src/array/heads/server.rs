//! What the two servers have beside the drives of their array: each its own copy of the catalog, and the second one drives of another
//! array, which it served before it joined.

use std::sync::{Arc, Mutex};

use base::ArrayId;
use bytes::Bytes;
use catalog::Catalog;
use pool::CreateOptions;
use task::Io;

use super::MACHINES;
use crate::drive::DriveOptions;
use crate::prng::Prng;
use crate::world::World;

/// The array of both heads.
pub const ARRAY: ArrayId = ArrayId(7);
/// An array that the second server has drives of.
const OTHER_ARRAY: ArrayId = ArrayId(9);

/// What a head keeps of the catalog in its state directory.
pub type Kept = Arc<Mutex<Option<Bytes>>>;

/// See the header of this file.
pub struct Servers {
    kept: [Kept; 2],
    strangers: Vec<String>,
}

impl Servers {
    /// In half of the runs the second server has more drives of another array than of its own.
    pub fn new(world: &World, drives: usize, prng: &mut Prng) -> Servers {
        let name = "simulated".parse().expect("a valid name");
        let first = Bytes::from(Catalog::new(ARRAY, name).encode());
        let count = if prng.chance(500) { drives + 1 } else { 0 };
        let stranger = |number: usize| {
            let path = format!("/sim/stranger{number}");
            world.add_drive(DriveOptions { machine: MACHINES[1], ..DriveOptions::new(&path, 64 << 20) });
            path
        };
        Servers {
            kept: [Arc::new(Mutex::new(Some(first))), Kept::default()],
            strangers: (0..count).map(stranger).collect(),
        }
    }

    pub fn kept(&self, head: usize) -> Kept {
        self.kept[head].clone()
    }

    /// Paths of the drives of another array.
    pub fn strangers(&self, head: usize) -> &[String] {
        if head == 0 { &[] } else { &self.strangers }
    }
}

/// Makes a pool of another array of these drives.
pub async fn make_other_pool(io: &Io, paths: &[String]) {
    let mut drives = Vec::new();
    for path in paths {
        drives.push(io.drive_open(path, true).await.expect("it is there"));
    }
    let handles: Vec<_> = drives.iter().map(|(handle, _)| *handle).collect();
    let options = CreateOptions {
        array: OTHER_ARRAY,
        name: "other".to_owned(),
        protection: pool::Protection::Stripe,
        width: None,
        lanes: 1,
        heads: pool::Heads::One,
        chunk_bytes: Some(256 << 10),
        drive_bytes_min: 1 << 20,
    };
    pool::create(io, drives, options).await.expect("the drives hold nothing");
    for handle in handles {
        io.drive_close(handle).await.expect("it is open");
    }
}
