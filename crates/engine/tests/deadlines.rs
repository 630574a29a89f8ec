//! Commands are answered in time, and an abandoned command does not take effect later.

mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use api::{Caller, Command, Origin, Reply};
use api::{CommandError, CommandErrorKind, NewBacking, NewHost, NewPool, NewVolume, Upkeep};
use base::Nanos;
use common::{Answer, Lab};
use sim::{DriveNumber, DriveOptions, World};

const INITIATOR: &str = "iqn.2001-04.com.example:alpha";
const GIB: u64 = 1 << 30;

fn path(number: usize) -> String {
    format!("/dev/sd{}", (b'a' + number as u8) as char)
}

/// A pool of three drives, and two drives beside it.
fn bench(seed: u64) -> (Lab, Vec<DriveNumber>) {
    let world = World::new(seed, None);
    let drives = (0..5).map(|n| world.add_drive(DriveOptions::new(&path(n), GIB))).collect();
    let paths: Vec<String> = (0..5).map(path).collect();
    let mut lab = Lab::in_world(world, 2, &paths.iter().map(String::as_str).collect::<Vec<_>>());
    lab.change(new_pool("fast", 0..3));
    (lab, drives)
}

fn new_pool(name: &str, drives: std::ops::Range<usize>) -> Command {
    let protection = if drives.len() < 3 { "stripe" } else { "parity-1" };
    let drives = drives.map(path).collect();
    let pool = NewPool::new(name, protection, drives);
    Command::PoolCreate { pool, dry_run: false }
}

fn new_volume(name: &str) -> Command {
    let backing = NewBacking::Pool("fast".into());
    let volume =
        NewVolume { name: name.into(), backing, size_bytes: Some(GIB), block_bytes: 512, write_back: false };
    Command::VolumeCreate { volume, dry_run: false }
}

fn add(drive: usize) -> Command {
    let (pool, drives, force) = ("fast".into(), vec![path(drive)], Vec::new());
    Command::Upkeep { upkeep: Upkeep::DriveAdd { pool, drives, force }, dry_run: false }
}

fn pass(lab: &mut Lab, seconds: u64) {
    (0..seconds).for_each(|_| lab.pass(Nanos::from_secs(1)));
}

fn taken(answer: &Answer) -> Option<Result<Reply, CommandError>> {
    answer.lock().unwrap().take()
}

fn refusal(answer: &Answer) -> CommandError {
    taken(answer).expect("it is answered in time").expect_err("it could not be done")
}

/// Drives that do not open delay the commands that need them and the next one, for a limited time. All get the
/// reason, and none takes effect when the drives open at last.
#[test]
fn what_was_given_up_does_not_happen_later() {
    let (mut lab, drives) = bench(1);
    drives[3..].iter().for_each(|&drive| lab.simulation.world.stick(drive, Nanos::from_secs(200)));
    let adds = [lab.send_command(add(3)), lab.send_command(add(4))];
    pass(&mut lab, 1);
    let makes = lab.send_command(new_volume("disk"));
    pass(&mut lab, 38);
    assert!(adds.iter().chain([&makes]).all(|answer| answer.lock().unwrap().is_none()));
    pass(&mut lab, 15);
    let [first, second] = adds.each_ref().map(refusal);
    assert_eq!((first.kind, second.kind), (CommandErrorKind::Io, CommandErrorKind::TimedOut));
    assert!(first.message.contains("/dev/sdd"), "a drive that does not answer is named in time: {first}");
    assert!(second.message.contains("opened and looked at: /dev/sde"), "{second}");
    let third = refusal(&makes);
    assert_eq!(third.kind, CommandErrorKind::TimedOut);
    assert!(third.message.contains("an earlier change; that one says: it waits for drives"), "{third}");
    pass(&mut lab, 200);
    let status = lab.status();
    assert!(status.volumes.is_empty(), "{:?}", status.volumes);
    assert_eq!(status.pools[0].drives.len(), 3);
    lab.change(new_volume("disk"));
    lab.change(add(3));
}

/// A command that has begun a change is completed, and its caller is told that it was accepted.
#[test]
fn what_was_accepted_goes_on() {
    let (mut lab, drives) = bench(2);
    drives[..3].iter().for_each(|&drive| lab.simulation.world.stick(drive, Nanos::from_secs(100)));
    let host =
        NewHost { name: "alpha".into(), initiators: vec![INITIATOR.into()], chap: None, mutual_chap: None };
    let makes = lab.send_command(Command::HostCreate { host, dry_run: false });
    let second = lab.send_command(new_volume("other"));
    pass(&mut lab, 60);
    let accepted = refusal(&makes);
    assert_eq!(accepted.kind, CommandErrorKind::Unfinished, "{accepted}");
    assert!(accepted.message.contains("it waits for the catalog to be stored"), "{accepted}");
    assert_eq!(refusal(&second).kind, CommandErrorKind::TimedOut);
    pass(&mut lab, 100);
    let status = lab.status();
    assert_eq!((status.hosts.len(), status.volumes.len()), (1, 0));
}

/// A command whose caller has gone is abandoned.
#[test]
fn who_has_gone_gets_nothing() {
    let (mut lab, drives) = bench(3);
    lab.simulation.world.stick(drives[3], Nanos::from_secs(20));
    let adds = lab.send_command(add(3));
    let gone = Arc::new(AtomicBool::new(false));
    let leaves = gone.clone();
    let makes = lab.send_command_from(
        new_volume("disk"),
        Caller::new(Origin::Daemon, move || leaves.load(Ordering::Relaxed)),
    );
    let patient = lab.send_command(new_volume("other"));
    pass(&mut lab, 5);
    gone.store(true, Ordering::Relaxed);
    pass(&mut lab, 30);
    assert!(matches!(taken(&adds), Some(Ok(_))) && matches!(taken(&patient), Some(Ok(_))));
    assert_eq!(refusal(&makes).kind, CommandErrorKind::TimedOut);
    let names: Vec<String> = lab.status().volumes.into_iter().map(|volume| volume.name).collect();
    assert_eq!(names, ["other"]);
}
