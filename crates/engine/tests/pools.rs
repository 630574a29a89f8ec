//! Pools: made, found at a start, degraded, refused.

mod common;

use api::ProblemCode;
use api::{Command, Reply};
use api::{CommandErrorKind, DriveContent, DriveState, Health, Made, NewBacking, NewPool, NewVolume};
use common::Lab;
use engine::Memory;
use sim::{DriveNumber, DriveOptions, World};

const GIB: u64 = 1 << 30;

fn world(seed: u64, drives: usize) -> (World, Vec<DriveNumber>, Vec<String>) {
    let world = World::new(seed, None);
    let paths: Vec<String> = (0..drives).map(|n| format!("/dev/sd{}", (b'a' + n as u8) as char)).collect();
    let numbers = paths.iter().map(|path| world.add_drive(DriveOptions::new(path, GIB))).collect();
    (world, numbers, paths)
}

fn lab(world: World, shards: u16, paths: &[String]) -> Lab {
    let paths: Vec<&str> = paths.iter().map(String::as_str).collect();
    Lab::in_world(world, shards, &paths)
}

fn pool(name: &str, protection: &str, drives: &[String]) -> NewPool {
    NewPool::new(name, protection, drives.to_vec())
}

fn create(pool: NewPool) -> Command {
    Command::PoolCreate { pool, dry_run: false }
}

fn volume(name: &str, pool: &str) -> Command {
    let backing = NewBacking::Pool(pool.into());
    let volume =
        NewVolume { name: name.into(), backing, size_bytes: Some(GIB), block_bytes: 512, write_back: false };
    Command::VolumeCreate { volume, dry_run: false }
}

#[test]
fn a_pool_is_found_again_with_all_that_describes_the_array() {
    for (seed, shards) in [(1, 1), (2, 2), (3, 3)] {
        let (world, _, paths) = world(seed, 4);
        let mut lab = lab(world, shards, &paths);
        let listed = lab.command(Command::DriveList).unwrap();
        assert!(matches!(&listed, Reply::Drives(drives) if drives.len() == 4
            && drives.iter().all(|drive| drive.content == DriveContent::Blank && drive.size_bytes == GIB)));
        let dry = lab.change(Command::PoolCreate { pool: pool("fast", "parity-1", &paths), dry_run: true });
        assert_eq!(dry.steps.len(), 5, "{dry:?}");
        let change = lab.change(create(pool("fast", "parity-1", &paths)));
        let Some(Made::Pool(made)) = change.made else { panic!("{change:?}") };
        assert_eq!((made.health, made.failures_survivable, made.lanes), (Health::Healthy, 1, shards));
        assert!(made.capacity_bytes > 2 * GIB && made.drives.len() == 4);
        lab.change(volume("vm-01", "fast"));
        lab.create_host("pve1", "iqn.1993-08.org.debian:01:abc");
        lab.map("vm-01", "pve1", 5, false);
        let before = lab.status();
        for clean in [true, false] {
            if clean {
                assert_eq!(lab.command(Command::Shutdown), Ok(Reply::Stopped));
                lab.pass(base::Nanos::from_secs(5));
                assert!(lab.is_stopped());
            }
            lab.kill();
            // another server: only the drives are moved to it
            *lab.saved.lock().unwrap() = None;
            lab.restart();
            assert_eq!(lab.start_result(), Ok(()));
            let after = lab.status();
            assert_eq!(after.health, Health::Healthy, "{:?}", after.problems);
            assert_eq!((&before.array_id, &before.target_name), (&after.array_id, &after.target_name));
            assert_eq!(
                (&before.volumes, &before.hosts, &before.mappings),
                (&after.volumes, &after.hosts, &after.mappings)
            );
        }
    }
}

#[test]
fn missing_drives_degrade_a_pool_and_too_many_take_it_offline() {
    let (world, drives, paths) = world(4, 5);
    let mut lab = lab(world, 2, &paths);
    lab.change(create(pool("fast", "parity-1", &paths)));
    lab.change(volume("vm-01", "fast"));
    lab.kill();
    lab.simulation.world.vanish(drives[1], None, false);
    lab.restart();
    let status = lab.status();
    assert_eq!((status.health, status.pools[0].failures_survivable), (Health::Degraded, 0));
    assert!(status.problems[0].reason().contains("is missing"), "{:?}", status.problems);
    assert_eq!(status.pools[0].drives[1].state, DriveState::Missing);
    assert_eq!(status.volumes[0].health, Health::Healthy);
    lab.change(volume("vm-02", "fast"));
    lab.kill();
    lab.simulation.world.vanish(drives[2], None, false);
    lab.restart();
    assert_eq!(lab.start_result(), Ok(()), "the rest of the array is served");
    let status = lab.status();
    assert_eq!((status.health, status.pools[0].health), (Health::Offline, Health::Offline));
    assert!(
        status.pools[0].reason().contains("2 drives are missing and only 1 may be"),
        "{}",
        status.pools[0].reason()
    );
    assert_eq!(status.volumes.len(), 2, "known from the head's copy");
    assert_eq!(status.volumes[0].health, Health::Offline);
    let error = lab.command(volume("vm-03", "fast")).unwrap_err();
    assert_eq!(error.kind, CommandErrorKind::Unavailable, "{error}");
    lab.kill();
    // without the head's copy, the only catalog is where nobody can read it
    let kept = lab.saved.lock().unwrap().take();
    lab.restart();
    let error = lab.start_result().unwrap_err();
    assert!(error.message.contains("pool fast, which is offline: 2 drives are missing"), "{error}");
    assert_eq!(*lab.saved.lock().unwrap(), None, "nothing is made up");
    lab.kill();
    *lab.saved.lock().unwrap() = kept;
    lab.simulation.world.return_drive(drives[2]);
    lab.restart();
    let status = lab.status();
    assert_eq!((status.health, status.volumes.len()), (Health::Degraded, 2));
}

#[test]
fn a_drive_that_another_program_has_is_waited_for_and_named() {
    let (world, _, paths) = world(8, 4);
    let mut lab = lab(world, 2, &paths);
    lab.change(create(pool("fast", "parity-1", &paths)));
    lab.change(volume("vm-01", "fast"));
    lab.kill();
    lab.hold(&paths[2]);
    lab.begin_restart();
    lab.pass(base::Nanos::from_secs(1));
    let status = lab.status();
    assert_eq!(status.pools[0].health, Health::Offline);
    let reason = &status.pools[0].reason();
    assert!(reason.contains("it waits for /dev/sdc, which is in use by another process"), "{reason}");
    lab.finish_start();
    let status = lab.status();
    assert_eq!((status.pools[0].health, status.volumes[0].health), (Health::Degraded, Health::Healthy));
    let reason = &status.pools[0].reason();
    assert!(reason.contains("/dev/sdc cannot be used: in use by another process"), "{reason}");
}

#[test]
fn a_pool_that_another_program_may_be_serving_is_left_alone() {
    let (world, _, paths) = world(9, 2);
    let mut lab = lab(world, 1, &paths);
    lab.change(create(pool("fast", "mirror-2", &paths)));
    lab.kill();
    lab.hold(&paths[0]);
    lab.restart();
    let status = lab.status();
    assert_eq!((status.pools[0].name.as_str(), status.pools[0].health), ("fast", Health::Offline));
    let reason = &status.pools[0].reason();
    assert!(reason.contains("another process has 1 of its drives and may be serving it"), "{reason}");
    assert!(reason.contains("/dev/sda cannot be used"), "{reason}");
}

#[test]
fn a_drive_that_fails_under_way_is_recorded() {
    let (world, drives, paths) = world(5, 4);
    let mut lab = lab(world, 2, &paths);
    lab.change(create(pool("fast", "mirror-2", &paths)));
    lab.simulation.world.vanish(drives[3], None, false);
    // a change of the catalog is a write to the pool
    lab.change(volume("vm-01", "fast"));
    lab.change(volume("vm-02", "fast"));
    lab.pass(base::Nanos::from_secs(60));
    let status = lab.status();
    // its data has been rebuilt by now
    assert_eq!(status.pools[0].health, Health::Healthy, "{status:?}");
    assert_eq!((status.pools[0].drives.len(), status.pools[0].failures_survivable), (3, 1));
    lab.kill();
    lab.restart();
    let problems = lab.status().problems;
    assert!(problems.len() == 1 && problems[0].code() == ProblemCode::DriveGivenUp, "{problems:?}");
    assert!(problems[0].since_ms.is_some() && problems[0].reason().contains("was not there any more"));
    lab.change(Command::DriveClear { drive: None, dry_run: false });
    let status = lab.status();
    assert_eq!((status.health, status.volumes.len()), (Health::Healthy, 2));
}

#[test]
fn nothing_is_overwritten_unless_it_is_named() {
    let (world, drives, paths) = world(6, 6);
    let mut ext4 = vec![0; 4096];
    ext4[0x438..0x43a].copy_from_slice(b"\x53\xef");
    world.poke(drives[0], 0, &ext4);
    let mut lab = lab(world, 1, &paths);
    let refused = |lab: &mut Lab, pool: NewPool, kind, text: &str| {
        let error = lab.command(create(pool)).unwrap_err();
        assert_eq!(error.kind, kind, "{error}");
        assert!(error.message.contains(text), "{error} does not say {text}");
        assert!(!error.hint.is_empty() || kind == CommandErrorKind::Invalid, "{error}");
    };
    use CommandErrorKind::{AlreadyExists, InUse, Invalid, NotFound};
    let first = &paths[..3];
    refused(&mut lab, pool("a", "parity-1", first), InUse, "/dev/sda holds an ext2/3/4 file system");
    assert_eq!(lab.simulation.world.peek(drives[0], 0), ext4);
    refused(&mut lab, pool("a", "raid-5", &paths[1..4]), Invalid, "\"raid-5\"");
    refused(&mut lab, pool("a", "parity-2", first), Invalid, "at least 4 drives");
    refused(&mut lab, pool("a", "mirror-2", &[paths[1].clone(), paths[1].clone()]), Invalid, "named twice");
    refused(
        &mut lab,
        pool("a", "mirror-2", &[paths[1].clone(), "/dev/none".into()]),
        NotFound,
        "/dev/none: not found",
    );
    let wrong = NewPool { force: vec!["/dev/sdz".into()], ..pool("a", "parity-1", first) };
    refused(&mut lab, wrong, Invalid, "/dev/sdz");
    let forced = NewPool { force: vec![paths[0].clone()], ..pool("a", "parity-1", first) };
    lab.change(create(forced));
    refused(&mut lab, pool("a", "mirror-2", &paths[3..5]), AlreadyExists, "\"a\"");
    refused(&mut lab, pool("b", "mirror-2", &paths[2..4]), InUse, "/dev/sdc is a drive of pool a");
    lab.change(create(pool("b", "mirror-2", &paths[3..5])));
    let status = lab.status();
    assert_eq!((status.health, status.pools.len()), (Health::Healthy, 2));
    assert_eq!(status.drives.len(), 1, "one is left: {:?}", status.drives);
}

#[test]
fn drives_of_another_array_are_left_alone() {
    let (world, _, paths) = world(7, 3);
    let mut lab = lab(world, 1, &paths);
    lab.change(create(pool("fast", "parity-1", &paths)));
    let first = lab.status().array_id;
    lab.kill();
    // a head that already has its own array
    *lab.saved.lock().unwrap() = None;
    let mut other = Lab::in_world(lab.simulation.world.clone(), 1, &[]);
    other.create_memory_volume("scratch", 1 << 20);
    *lab.saved.lock().unwrap() = other.saved.lock().unwrap().clone();
    other.kill();
    lab.restart();
    let status = lab.status();
    assert_ne!(status.array_id, first);
    assert_eq!((status.pools.len(), status.volumes.len()), (0, 1));
    assert!(
        status.problems.iter().any(|problem| problem.code() == ProblemCode::DriveOfAnotherArray),
        "{:?}",
        status.problems
    );
    let error = lab.command(create(pool("mine", "parity-1", &paths))).unwrap_err();
    assert!(error.message.contains("pool fast"), "{error}");
}

#[test]
fn all_pools_share_the_memory_for_maps() {
    const MAP_BYTES: u64 = 32 << 20;
    for (seed, shards) in [(40, 1), (41, 2)] {
        let (world, _, paths) = world(seed, 6);
        let named: Vec<&str> = paths.iter().map(String::as_str).collect();
        let memory = Memory { map_bytes: MAP_BYTES as usize, ..Memory::default() };
        let mut lab = Lab::with_memory(world, shards, &named, memory);
        let of_pools = |lab: &mut Lab| -> Vec<u64> {
            lab.status().pools.iter().map(|pool| pool.map.memory_bytes).collect()
        };
        let all = MAP_BYTES * u64::from(shards);
        lab.change(create(pool("one", "parity-1", &paths[..3])));
        assert_eq!(of_pools(&mut lab), [all]);
        lab.change(create(pool("two", "parity-1", &paths[3..])));
        assert_eq!(of_pools(&mut lab), [all / 2; 2]);
        lab.kill();
        lab.restart();
        assert_eq!(of_pools(&mut lab), [all / 2; 2], "in whatever order they were opened");
    }
}
