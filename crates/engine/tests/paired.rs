//! The start of an array that two heads serve: with its own pools, and nothing else.

mod common;

use api::{Command, Health, NewBacking, NewPool, NewVolume};
use base::{ArrayId, Nanos};
use common::Lab;
use sim::{DriveNumber, DriveOptions, World};

const GIB: u64 = 1 << 30;

fn add_drives(world: &World, names: &[&str]) -> Vec<DriveNumber> {
    names.iter().map(|path| world.add_drive(DriveOptions::new(path, GIB))).collect()
}

fn create_pool(lab: &mut Lab, name: &str, drives: &[&str]) {
    let pool = NewPool::new(name, "mirror-2", drives.iter().map(|&path| path.to_owned()).collect());
    lab.change(Command::PoolCreate { pool, dry_run: false });
}

fn create_volume(lab: &mut Lab, name: &str) {
    let backing = NewBacking::Pool("fast".to_owned());
    let volume = NewVolume {
        name: name.to_owned(),
        backing,
        size_bytes: Some(GIB),
        block_bytes: 512,
        write_back: false,
    };
    lab.change(Command::VolumeCreate { volume, dry_run: false });
}

fn volumes(lab: &mut Lab) -> Vec<String> {
    lab.status().volumes.iter().map(|volume| volume.name.clone()).collect()
}

/// The array that the head has kept.
fn kept_array(lab: &Lab) -> ArrayId {
    catalog::Catalog::decode(lab.saved.lock().unwrap().as_ref().unwrap()).unwrap().array()
}

fn has_started(lab: &Lab) -> bool {
    lab.started.lock().unwrap().is_some()
}

/// A head of a pair, in term 3, with pool `fast` and a volume.
fn paired(seed: u64) -> (Lab, Vec<DriveNumber>) {
    let world = World::new(seed, None);
    let drives = add_drives(&world, &["/dev/sda", "/dev/sdb"]);
    let mut lab = Lab::in_world(world, 2, &["/dev/sda", "/dev/sdb"]);
    lab.pair = Some((kept_array(&lab), 3));
    lab.kill();
    lab.restart();
    create_pool(&mut lab, "fast", &["/dev/sda", "/dev/sdb"]);
    create_volume(&mut lab, "first");
    (lab, drives)
}

/// Without its pools it starts nothing. What it has kept of an earlier term does not win over what they have.
#[test]
fn a_kept_catalog_of_an_earlier_term_does_not_win_over_the_pools() {
    let (mut lab, drives) = paired(1);
    let array = kept_array(&lab);
    let old = lab.saved.lock().unwrap().clone();
    // the other head owns the array
    lab.pair = Some((array, 4));
    lab.kill();
    lab.restart();
    create_volume(&mut lab, "second");
    // this one owns it again, and its drives come late
    *lab.saved.lock().unwrap() = old;
    lab.pair = Some((array, 5));
    lab.kill();
    drives.iter().for_each(|drive| lab.simulation.world.vanish(*drive, None, false));
    lab.begin_restart();
    lab.pass(Nanos::from_secs(20));
    assert!(!has_started(&lab), "it has answered from what it has kept");
    let absent = lab.absent.lock().unwrap().clone().expect("the head is told");
    assert_eq!(absent.to_string(), "no pool of this array is on the drives of this head");
    drives.iter().for_each(|drive| lab.simulation.world.return_drive(*drive));
    lab.finish_start();
    assert_eq!(volumes(&mut lab), ["first", "second"]);
    lab.kill();
    lab.restart();
    assert_eq!(volumes(&mut lab), ["first", "second"]);
}

/// Drives of another array are left alone, however many there are, and with whatever the head has kept.
#[test]
fn a_head_of_a_pair_starts_no_other_array() {
    let (mut lab, drives) = paired(2);
    let array = kept_array(&lab);
    // a server with an array of its own
    let world = lab.simulation.world.clone();
    lab.kill();
    drives.iter().for_each(|drive| world.vanish(*drive, None, false));
    add_drives(&world, &["/dev/sdc", "/dev/sdd", "/dev/sde"]);
    lab.drives = ["a", "b", "c", "d", "e"].map(|letter| format!("/dev/sd{letter}")).to_vec();
    (lab.pair, *lab.saved.lock().unwrap()) = (None, None);
    lab.restart();
    create_pool(&mut lab, "own", &["/dev/sdc", "/dev/sdd", "/dev/sde"]);
    let own = lab.saved.lock().unwrap().clone();
    // takes over
    for kept in [own, None] {
        *lab.saved.lock().unwrap() = kept;
        lab.pair = Some((array, 4));
        lab.kill();
        lab.begin_restart();
        lab.pass(Nanos::from_secs(20));
        assert!(!has_started(&lab));
        let absent = lab.absent.lock().unwrap().take().expect("the head is told");
        let text = "no pool of this array is on the drives of this head; of other arrays, which it does not serve: own";
        assert_eq!(absent.to_string(), text);
        drives.iter().for_each(|drive| world.return_drive(*drive));
        lab.finish_start();
        let pools: Vec<(String, Health)> =
            lab.status().pools.iter().map(|pool| (pool.name.clone(), pool.health)).collect();
        assert_eq!((kept_array(&lab), pools), (array, vec![("fast".to_owned(), Health::Healthy)]));
        assert_eq!(volumes(&mut lab), ["first"]);
        lab.kill();
        drives.iter().for_each(|drive| world.vanish(*drive, None, false));
    }
}

/// A start that waits is stopped in order, and learns of drives that are found.
#[test]
fn a_start_that_waits_for_its_pools_follows_commands() {
    let (mut lab, drives) = paired(3);
    lab.pair = Some((kept_array(&lab), 4));
    lab.kill();
    drives.iter().for_each(|drive| lab.simulation.world.vanish(*drive, None, false));
    let paths = std::mem::take(&mut lab.drives);
    lab.begin_restart();
    lab.pass(Nanos::from_secs(2));
    drives.iter().for_each(|drive| lab.simulation.world.return_drive(*drive));
    lab.pass(Nanos::from_secs(2));
    assert!(!has_started(&lab), "it knows no paths");
    lab.command(Command::DrivesFound(paths)).unwrap();
    lab.finish_start();
    assert_eq!(volumes(&mut lab), ["first"]);
    lab.kill();
    drives.iter().for_each(|drive| lab.simulation.world.vanish(*drive, None, false));
    lab.begin_restart();
    lab.pass(Nanos::from_secs(2));
    lab.command(Command::Shutdown).unwrap();
    assert!(!has_started(&lab));
}

/// A head that is alone again erases the records of twins before it writes: on the drives of its pools, on one that comes back later, and
/// on one that holds nothing else. What somebody else has written stays.
#[test]
fn a_head_that_is_alone_again_forgets_the_twins_of_its_drives() {
    let (mut lab, drives) = paired(4);
    let world = lab.simulation.world.clone();
    let other = add_drives(&world, &["/dev/sdc", "/dev/sdd"]);
    lab.drives = ["a", "b", "c", "d"].map(|letter| format!("/dev/sd{letter}")).to_vec();
    let record: Vec<u8> = [b"TNGMIRR\x01".as_slice(), &[7; 4088]].concat();
    lab.kill();
    for drive in drives.iter().chain(&other) {
        // the second slot
        world.poke(*drive, 2, &record);
    }
    // data of somebody else behind it
    world.poke(other[1], 9, &[1; 4096]);
    let is_twin = |drive: DriveNumber| world.peek(drive, 2).starts_with(b"TNGMIRR");
    (lab.pair, lab.was_paired) = (None, true);
    world.vanish(drives[1], None, false);
    lab.restart();
    assert_eq!(volumes(&mut lab), ["first"]);
    assert_eq!([drives[0], drives[1], other[0], other[1]].map(is_twin), [false, true, false, true]);
    create_volume(&mut lab, "second");
    world.return_drive(drives[1]);
    for _ in 0..60 {
        lab.pass(Nanos::from_secs(1));
        if lab.status().pools[0].health == Health::Healthy {
            break;
        }
    }
    assert_eq!(lab.status().pools[0].health, Health::Healthy);
    assert!(!is_twin(drives[1]), "it was written to, and its record is there");
    // a head that never was one of a pair leaves them alone
    lab.kill();
    world.poke(other[0], 2, &record);
    lab.was_paired = false;
    lab.restart();
    assert!(is_twin(other[0]));
}

/// A head that has lost the files that say that it is one of a pair, or got the drives of one: it must not write to them, because the
/// other head would not know.
#[test]
fn a_head_that_is_not_one_of_a_pair_does_not_write_to_its_drives() {
    for record in [b"TNGMIRR\x01", b"TNGSHAR\x01"] {
        let (mut lab, drives) = paired(5);
        let world = lab.simulation.world.clone();
        let record: Vec<u8> = [record.as_slice(), &[7; 4088]].concat();
        lab.kill();
        world.poke(drives[1], 0, &record);
        let labels = |drive: &DriveNumber| [4, 8].map(|block| world.peek(*drive, block));
        let before: Vec<_> = drives.iter().map(labels).collect();
        lab.pair = None;
        lab.restart();
        let pool = lab.status().pools.remove(0);
        assert_eq!(pool.health, Health::Offline);
        assert!(format!("{:?}", lab.status().problems).contains("OfTwoHeads"), "{:?}", lab.status().problems);
        lab.pass(Nanos::from_secs(60));
        assert_eq!(drives.iter().map(labels).collect::<Vec<_>>(), before, "it has written");
        // one that was of a pair goes on alone
        lab.kill();
        lab.was_paired = true;
        lab.restart();
        let status = lab.status();
        assert_eq!(status.pools[0].health, Health::Healthy, "{:?}", status.problems);
        assert_eq!(volumes(&mut lab), ["first"]);
    }
}
