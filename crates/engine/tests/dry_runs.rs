//! A dry run refuses what the real command would refuse, in the same words, and accepts what the real command then
//! does.

mod common;

use api::Command;
use api::NewPool;
use common::Lab;
use sim::{DriveOptions, World};

const GIB: u64 = 1 << 30;

/// Eight drives of 1 GiB, and one that is too small for a pool.
fn array(seed: u64) -> Lab {
    let world = World::new(seed, None);
    let mut paths: Vec<String> = (0..8).map(path).collect();
    for path in &paths {
        world.add_drive(DriveOptions::new(path, GIB));
    }
    world.add_drive(DriveOptions::new("/dev/small", GIB / 2));
    paths.push("/dev/small".to_owned());
    Lab::in_world(world, 2, &paths.iter().map(String::as_str).collect::<Vec<_>>())
}

fn path(number: usize) -> String {
    format!("/dev/nvme{number}n1")
}

#[test]
fn a_pool_is_made_where_a_dry_run_says_so_and_nowhere_else() {
    let (mut lab, mut made) = (array(1), 0);
    for protection in ["stripe", "mirror-2", "mirror-3", "parity-1", "parity-2", "raid-5"] {
        for drives in [0, 1, 2, 3, 4, 8] {
            for width in [None, Some(0), Some(1), Some(2), Some(3), Some(8), Some(9), Some(255)] {
                for small in [false, true] {
                    let mut drives: Vec<String> = (0..drives).map(path).collect();
                    drives.extend(small.then(|| "/dev/small".to_owned()));
                    let pool = NewPool { width, ..NewPool::new("fast", protection, drives) };
                    let dry = lab.command(Command::PoolCreate { pool: pool.clone(), dry_run: true });
                    let act = lab.command(Command::PoolCreate { pool: pool.clone(), dry_run: false });
                    assert_eq!(dry.as_ref().err(), act.as_ref().err(), "{pool:?}");
                    if act.is_ok() {
                        // its drives are in use now
                        (lab, made) = (array(1), made + 1);
                    }
                }
            }
        }
    }
    assert!(made > 20, "only {made} pools were made");
}
