//! Pools of every released format open in this program with all their data. A fixture is what the drives held when the
//! power failed. The program of its time makes it once, and it is never made again:
//!
//! ```text
//!   MAKE_FIXTURE=1 cargo test -p engine --test old_formats      writes the fixture of the current format, if there is none
//! ```
//!
//! A fixture is a list of blocks that are not zero, without the zeros at their ends: drive (1 byte), block (4 bytes),
//! length (2 bytes), content; numbers are little-endian.
#![allow(clippy::disallowed_methods, reason = "fixtures are files")]

mod common;

use std::path::PathBuf;

use api::{AccessState, Command, CopyOrder, GroupAccess, Health, NewPool, NewSettings, Upkeep};
use base::BLOCK_BYTES;
use common::Lab;
use common::copy::{copy_target, extended_copy};
use common::host::{Host, unmap};
use sim::{DriveNumber, DriveOptions, World};

const ALPHA: &str = "iqn.2001-04.com.example:alpha";
const DRIVE_BYTES: u64 = 1 << 30;
const SECTORS: u32 = 2048;

/// All fixtures, the oldest first.
const FIXTURES: [&str; 3] = ["pool-5-catalog-11", "pool-5-catalog-12", "pool-6-catalog-12"];

fn path(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(name)
}

fn drives() -> Vec<String> {
    (0..4).map(|n| format!("/dev/nvme{n}n1")).collect()
}

fn world_with_drives(seed: u64) -> (World, Vec<DriveNumber>) {
    let world = World::new(seed, None);
    let numbers = drives().iter().map(|path| world.add_drive(DriveOptions::new(path, DRIVE_BYTES))).collect();
    (world, numbers)
}

fn lab(world: World) -> Lab {
    Lab::in_world(world, 2, &drives().iter().map(String::as_str).collect::<Vec<_>>())
}

/// The content of a volume: every sector says which it is, and of which version.
fn content(version: u8, from: u32, sectors: u32) -> Vec<u8> {
    (from..from + sectors)
        .flat_map(|n| [[version, n as u8, (n >> 8) as u8, 0xA5].repeat(128)].concat())
        .collect()
}

/// Stores something of every kind: checkpoints and batches after them, stacked layers, references, holes, and every
/// kind of record in the catalog.
fn make(lab: &mut Lab) {
    let pool = NewPool::new("fast", "parity-1", drives());
    lab.change(Command::PoolCreate { pool, dry_run: false });
    let settings =
        NewSettings { repair_share_percent: Some(33), bin_seconds: Some(7000), ..NewSettings::default() };
    lab.change(Command::Upkeep { upkeep: Upkeep::Set { pool: "fast".into(), settings }, dry_run: false });
    upgrade(lab);
    lab.create_host("alpha", ALPHA);
    for (lun, name) in ["vm", "other"].into_iter().enumerate() {
        lab.create_pool_volume(name, lun == 1);
        lab.map(name, "alpha", lun as u16, false);
    }
    let host = log_in(lab, 1);
    host.write(lab, 0, 0, &content(1, 0, SECTORS));
    let copy = |order| Command::Copy { order, dry_run: false };
    lab.change(copy(CopyOrder::Snapshot { snapshots: vec![("vm".into(), "before".into())] }));
    let clone = CopyOrder::Clone { volume: "vm".into(), snapshot: "before".into(), name: "clone".into() };
    lab.change(copy(clone));
    lab.map("clone", "alpha", 2, true);
    [0, 1].into_iter().for_each(|lun| drop(host.settle(lab, lun)));
    host.write(lab, 0, 512, &content(2, 512, 512));
    let targets = [copy_target(lab, &host, 0), copy_target(lab, &host, 1)];
    assert_eq!(host.run(lab, extended_copy(0, &targets, (0, 0), (1, 4096), 1024)).status, 0);
    assert_eq!(host.run(lab, unmap(0, 1024, 512)).status, 0);
    let access = GroupAccess { group: 1, state: AccessState::ActiveNonOptimized };
    lab.change(Command::VolumeAccess { name: "other".into(), access, dry_run: false });
    lab.create_pool_volume("deleted", false);
    lab.change(Command::VolumeDelete {
        name: "deleted".into(),
        unmap: false,
        eradicate: false,
        dry_run: false,
    });
    lab.simulation.world.power_loss(0);
}

/// Moves the pool to the format of today.
fn upgrade(lab: &mut Lab) {
    let upkeep = |dry_run| Command::Upkeep { upkeep: Upkeep::Upgrade { pool: "fast".into() }, dry_run };
    let before = lab.status().pools[0].format;
    lab.change(upkeep(true));
    assert_eq!(lab.status().pools[0].format, before, "a dry run has changed it");
    lab.change(upkeep(false));
    lab.change(upkeep(false));
    assert_eq!(lab.status().pools[0].format, pool::FORMAT_VERSION);
}

fn log_in(lab: &mut Lab, isid: u8) -> Host {
    let host = Host::log_in(lab, 0, ALPHA, isid);
    [0, 1].into_iter().for_each(|lun| drop(host.settle(lab, lun)));
    host
}

fn dump(world: &World, drives: &[DriveNumber]) -> Vec<u8> {
    let mut all = Vec::new();
    for (index, &drive) in drives.iter().enumerate() {
        for block in 0..DRIVE_BYTES / BLOCK_BYTES as u64 {
            let content = world.peek(drive, block);
            let Some(last) = content.iter().rposition(|&byte| byte != 0) else { continue };
            all.push(index as u8);
            all.extend((block as u32).to_le_bytes());
            all.extend((last as u16 + 1).to_le_bytes());
            all.extend(&content[..=last]);
        }
    }
    all
}

fn load(world: &World, drives: &[DriveNumber], mut fixture: &[u8]) {
    while let Some((head, rest)) = fixture.split_first_chunk::<7>() {
        let block = u32::from_le_bytes([head[1], head[2], head[3], head[4]]);
        let length = usize::from(u16::from_le_bytes([head[5], head[6]]));
        let mut content = rest[..length].to_vec();
        content.resize(BLOCK_BYTES, 0);
        world.poke(drives[usize::from(head[0])], block.into(), &content);
        fixture = &rest[length..];
    }
    assert!(fixture.is_empty(), "a fixture ends with a whole block");
}

fn check_content(lab: &mut Lab, host: &Host) {
    let after: Vec<u8> =
        [content(1, 0, 512), content(2, 512, 512), vec![0; 512 * 512], content(1, 1536, 512)].concat();
    assert!(host.read(lab, 0, 0, SECTORS as u16) == after, "the volume");
    let copied = [content(1, 0, 512), content(2, 512, 512)].concat();
    assert!(host.read(lab, 1, 4096, 1024) == copied, "what was copied");
    let _ = host.settle(lab, 2);
    assert!(host.read(lab, 2, 0, SECTORS as u16) == content(1, 0, SECTORS), "the clone of a snapshot");
}

fn check_catalog(lab: &mut Lab) {
    let status = lab.status();
    assert_eq!(status.pools[0].health, Health::Healthy, "{:?}", status.problems);
    let names: Vec<&str> = status.volumes.iter().map(|volume| volume.name.as_str()).collect();
    assert_eq!(names, ["vm", "other", "clone"]);
    assert_eq!((status.bin.len(), status.mappings.len(), status.hosts.len()), (1, 3, 1));
    let settings = status.pools[0].settings;
    assert_eq!((settings.repair_share_percent, settings.bin_seconds), (33, 7000));
    let access = &status.volumes[1].access[0];
    assert_eq!((access.group, access.state), (1, AccessState::ActiveNonOptimized));
}

#[test]
fn pools_of_every_released_format_open() {
    for (seed, name) in FIXTURES.into_iter().enumerate() {
        let fixture = std::fs::read(path(name)).expect("the fixture is there");
        let (world, numbers) = world_with_drives(seed as u64 + 40);
        load(&world, &numbers, &fixture);
        let mut lab = lab(world);
        check_catalog(&mut lab);
        let host = log_in(&mut lab, 2);
        check_content(&mut lab, &host);
        upgrade(&mut lab);
        // the pool stays in use: it is written, gets a snapshot, is started again, and is read completely
        host.write(&mut lab, 1, 0, &content(3, 0, 64));
        let snapshots = vec![("vm".to_owned(), "after".to_owned())];
        lab.change(Command::Copy { order: CopyOrder::Snapshot { snapshots }, dry_run: false });
        lab.kill();
        lab.restart();
        let host = log_in(&mut lab, 3);
        assert_eq!(host.read(&mut lab, 1, 0, 64), content(3, 0, 64));
        check_content(&mut lab, &host);
        check_catalog(&mut lab);
        let scrub = Upkeep::Scrub { pool: "fast".into(), stop: false };
        lab.change(Command::Upkeep { upkeep: scrub, dry_run: false });
        lab.pass(base::Nanos::from_secs(60));
        let pool = &lab.status().pools[0];
        assert_eq!((pool.health, pool.lost_bytes), (Health::Healthy, 0));
    }
}

/// The newest fixture has today's formats: before a format changes, a fixture of the present format must be made.
#[test]
fn there_is_a_fixture_of_the_formats_of_today() {
    let today = format!("pool-{}-catalog-{}", pool::FORMAT_VERSION, catalog::SCHEMA_VERSION);
    if std::env::var_os("MAKE_FIXTURE").is_some() && !path(&today).exists() {
        let (world, numbers) = world_with_drives(7);
        let mut lab = lab(world.clone());
        make(&mut lab);
        std::fs::write(path(&today), dump(&world, &numbers)).expect("it can be written");
    }
    assert_eq!(FIXTURES.last(), Some(&today.as_str()), "see the top of this file");
    assert!(path(&today).exists());
}
