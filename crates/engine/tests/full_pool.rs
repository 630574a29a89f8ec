//! A pool becomes full while hosts use it. The hosts are warned once (38h/07h). Writes that need space are refused
//! (27h/07h), and nothing else is. Service resumes when space is freed.

mod common;

use api::{Command, EventFacts, Health, NewBacking, NewPool, NewVolume, ProblemCode};
use base::Nanos;
use base::limits::SPACE_THRESHOLD_PERCENT;
use common::Lab;
use common::host::{Host, cdb, sense, write_10};
use iscsi::initiator::Request;
use sim::{DriveNumber, DriveOptions, World};

const ALPHA: &str = "iqn.2001-04.com.example:alpha";
const BETA: &str = "iqn.2001-04.com.example:beta";
const THRESHOLD_CROSSED: (u8, u8) = (0x38, 0x07);
const SPACE_ALLOCATION_FAILED: (u8, u8, u8) = (7, 0x27, 0x07);

/// One write: 4 MiB.
const PIECE_BLOCKS: u32 = 1024;
/// The provisioned size of the volume: four times that of its pool.
const VOLUME_PIECES: u32 = 1024;

fn array(seed: u64, shards: u16, protection: &str, count: usize) -> (Lab, Vec<DriveNumber>) {
    let world = World::new(seed, None);
    let drives: Vec<String> = (0..count).map(|n| format!("/dev/nvme{n}n1")).collect();
    let numbers = drives.iter().map(|path| world.add_drive(DriveOptions::new(path, 1 << 30))).collect();
    let mut lab = Lab::in_world(world, shards, &drives.iter().map(String::as_str).collect::<Vec<_>>());
    let protection = protection.to_owned();
    let pool = NewPool::new("fast", protection, drives);
    lab.change(Command::PoolCreate { pool, dry_run: false });
    let volume = NewVolume {
        name: "thin".to_owned(),
        backing: NewBacking::Pool("fast".to_owned()),
        size_bytes: Some(u64::from(VOLUME_PIECES * PIECE_BLOCKS) * 4096),
        block_bytes: 4096,
        write_back: false,
    };
    lab.change(Command::VolumeCreate { volume, dry_run: false });
    for (name, initiator) in [("alpha", ALPHA), ("beta", BETA)] {
        lab.create_host(name, initiator);
        lab.map("thin", name, 0, false);
    }
    (lab, numbers)
}

/// The problems now.
fn codes(lab: &mut Lab) -> Vec<ProblemCode> {
    lab.status().problems.iter().map(|problem| problem.code()).collect()
}

/// The problems that have begun since the last call.
fn begun(lab: &mut Lab) -> Vec<ProblemCode> {
    let began = |facts| match facts {
        EventFacts::ProblemBegan { problem } | EventFacts::ProblemChanged { problem, .. } => {
            Some(problem.code())
        }
        _ => None,
    };
    lab.facts().into_iter().filter_map(began).collect()
}

fn content(piece: u32) -> Vec<u8> {
    vec![(piece % 251) as u8 + 1; PIECE_BLOCKS as usize * 4096]
}

/// READ or WRITE (10) of a piece, by its operation code.
fn piece_cdb(operation_code: u8, piece: u32) -> [u8; 16] {
    let [a, b, c, d] = (piece * PIECE_BLOCKS).to_be_bytes();
    cdb(&[operation_code, 0, a, b, c, d, 0, (PIECE_BLOCKS >> 8) as u8, PIECE_BLOCKS as u8])
}

fn read(lab: &mut Lab, host: &Host, piece: u32) -> Vec<u8> {
    let mut request = Request::new(0, piece_cdb(0x28, piece));
    request.expected_in = PIECE_BLOCKS * 4096;
    let answer = host.run(lab, request);
    assert_eq!(answer.status, 0, "{:x?}", sense(&answer));
    answer.data_in.to_vec()
}

/// Writes a piece: GOOD, or the sense. A unit attention in between is counted and skipped.
fn write(lab: &mut Lab, host: &Host, piece: u32, warnings: &mut u32) -> Result<(), (u8, u8, u8)> {
    loop {
        let mut request = write_10(0, 0, &content(piece));
        request.cdb = piece_cdb(0x2A, piece);
        let answer = host.run(lab, request);
        match sense(&answer) {
            _ if answer.status == 0 => return Ok(()),
            (6, code, qualifier) if (code, qualifier) == THRESHOLD_CROSSED => *warnings += 1,
            other => return Err(other),
        }
    }
}

/// Writes pieces until one is refused; returns how many were written.
fn fill(lab: &mut Lab, host: &Host, from: u32, warnings: &mut u32) -> u32 {
    for piece in from..VOLUME_PIECES {
        if let Err(why) = write(lab, host, piece, warnings) {
            assert_eq!(why, SPACE_ALLOCATION_FAILED, "piece {piece}");
            return piece;
        }
        // so that a threshold is seen before the pool is full
        lab.pass(Nanos::from_secs(1));
    }
    panic!("a volume four times its pool could be written whole");
}

fn unmap(lab: &mut Lab, host: &Host, pieces: std::ops::Range<u32>) {
    let request =
        common::host::unmap(0, u64::from(pieces.start * PIECE_BLOCKS), pieces.len() as u32 * PIECE_BLOCKS);
    let answer = host.run(lab, request);
    assert_eq!(answer.status, 0, "{:x?}", sense(&answer));
}

/// The thin pool below the drives is full, not the pool: one problem says so, with advice that helps.
#[test]
fn missing_space_below_is_not_called_a_full_pool() {
    let (mut lab, drives) = array(9, 2, "stripe", 1);
    let alpha = Host::log_in(&mut lab, 0, ALPHA, 1);
    alpha.settle(&mut lab, 0);
    let mut warnings = 0;
    lab.simulation.world.set_no_space(drives[0], true);
    let refused = (0..64).find(|&piece| write(&mut lab, &alpha, piece, &mut warnings).is_err());
    let refused = refused.expect("writes are refused");
    for _ in 0..3 {
        let status = lab.status();
        assert_eq!(codes(&mut lab), [ProblemCode::NoSpaceBelow], "{:?}", status.problems);
        let reason = &status.pools[0].reason();
        assert!(reason.contains("no space below /dev/nvme0n1") && !reason.contains("% full"), "{reason}");
        let action = status.problems[0].action();
        assert!(action.contains("thin pool") && !action.contains("add a drive"), "{action}");
        lab.pass(Nanos::from_secs(2));
    }
    // the refusals are remembered a little longer, and are nobody's problem any more
    lab.simulation.world.set_no_space(drives[0], false);
    lab.pass(Nanos::from_secs(2));
    assert_eq!(codes(&mut lab), []);
    assert_eq!(write(&mut lab, &alpha, refused, &mut warnings), Ok(()));
    lab.pass(Nanos::from_secs(1));
    assert_eq!(codes(&mut lab), []);
}

#[test]
fn hosts_are_warned_once_refused_what_needs_space_and_served_again() {
    for (seed, shards) in [(1, 1), (2, 3)] {
        let (mut lab, _) = array(seed, shards, "stripe", 1);
        let alpha = Host::log_in(&mut lab, 0, ALPHA, 1);
        let beta = Host::log_in(&mut lab, shards - 1, BETA, 1);
        alpha.settle(&mut lab, 0);
        beta.settle(&mut lab, 0);
        let mut warnings = 0;
        let full = fill(&mut lab, &alpha, 0, &mut warnings);
        assert!(full > VOLUME_PIECES / 8, "full after {full} pieces");
        assert_eq!(warnings, 1, "of {SPACE_THRESHOLD_PERCENT} %");
        assert_eq!(beta.settle(&mut lab, 0), [THRESHOLD_CROSSED]);

        // the other host, reads and overwrites are served as before
        for piece in [0, full / 2, full - 1] {
            assert!(read(&mut lab, &beta, piece) == content(piece), "piece {piece}");
            assert_eq!(write(&mut lab, &beta, piece, &mut warnings), Ok(()), "an overwrite");
        }
        assert_eq!(write(&mut lab, &beta, full, &mut warnings), Err(SPACE_ALLOCATION_FAILED));

        let begun = begun(&mut lab);
        for code in [ProblemCode::PoolFilling, ProblemCode::PoolNearlyFull] {
            assert!(begun.contains(&code), "{code} is not in {begun:?}");
        }

        // the status names the affected hosts, as long as they are affected
        let status = lab.status();
        let pool = &status.pools[0];
        let said =
            "writes are refused for want of space: of host alpha to volume thin, host beta to volume thin";
        assert!(pool.health == Health::Degraded && pool.reason().contains(said), "{}", pool.reason());
        assert_eq!(status.problems[0].code(), ProblemCode::WritesRefused);
        assert_eq!(pool.provisioned_bytes, 4 << 30);
        lab.pass(Nanos::from_secs(31));
        let pool = lab.status().pools.remove(0);
        assert_eq!(codes(&mut lab), [ProblemCode::PoolNearlyFull]);
        assert!(pool.health == Health::Degraded && pool.reason().contains("38h/07h"), "{}", pool.reason());
        assert!(!pool.reason().contains("writes are refused"), "{}", pool.reason());

        // a third is freed: nobody has to do anything else
        unmap(&mut lab, &alpha, 0..full / 3);
        lab.pass(Nanos::from_secs(5));
        let pool = lab.status().pools.remove(0);
        assert_eq!((pool.health, pool.reason().as_str()), (Health::Healthy, ""));
        assert_eq!(write(&mut lab, &beta, full, &mut warnings), Ok(()));
        assert_eq!(warnings, 1, "one warning until the pool is below the threshold");
        let mut again = 0;
        let second = fill(&mut lab, &alpha, full + 1, &mut again);
        assert_eq!(again, 1, "crossed for the second time");
        assert!(second >= full + full / 4, "{second} after {full}: what was given back is used");
        assert_eq!(beta.settle(&mut lab, 0), [THRESHOLD_CROSSED]);
        assert!(read(&mut lab, &beta, full) == content(full));
    }
}

/// A pool warns before a drive fails that its data would not fit on the others, and reports it when one has failed.
#[test]
fn the_space_for_a_rebuild_is_missed_before_and_after_a_drive_fails() {
    let (mut lab, drives) = array(3, 2, "mirror-2", 3);
    let alpha = Host::log_in(&mut lab, 0, ALPHA, 1);
    alpha.settle(&mut lab, 0);
    let would_lack = |lab: &mut Lab| codes(lab).contains(&ProblemCode::RebuildWouldLackSpace);
    let mut warnings = 0;
    let mut piece = 0;
    while !would_lack(&mut lab) {
        for _ in 0..16 {
            assert_eq!(write(&mut lab, &alpha, piece, &mut warnings), Ok(()), "piece {piece}");
            piece += 1;
        }
    }
    lab.simulation.world.vanish(drives[0], None, false);
    let lacks = |lab: &mut Lab| codes(lab).contains(&ProblemCode::RebuildLacksSpace);
    let seconds = (0..60).find(|_| {
        lab.pass(Nanos::from_secs(1));
        lacks(&mut lab)
    });
    assert!(seconds.is_some(), "{:#?}", lab.status().problems);
    assert!(!would_lack(&mut lab), "it is so already");
}
