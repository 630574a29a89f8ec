//! GET LBA STATUS: correct answers in as few descriptors as possible, on volumes of any size.

mod common;

use std::collections::BTreeSet;

use api::Command;
use api::{CopyOrder, NewBacking, NewVolume};
use common::Lab;
use common::host::{Host, get_lba_status, sense, unmap, write_16};
use wire::scsi::provisioning::{LbaStatus, parse_lba_status};

const ALPHA: &str = "iqn.2001-04.com.example:alpha";
const TIB: u64 = 1 << 40;
/// Logical blocks of 512 bytes in a block of the pool.
const PER_BLOCK: u64 = 8;

/// A volume of this size in a pool on as many lanes as there are shards, and the host that has it.
fn array(seed: u64, shards: u16, size_bytes: u64) -> (Lab, Host) {
    let mut lab = Lab::with_pool(seed, shards);
    let backing = NewBacking::Pool("fast".into());
    let (name, size_bytes) = ("vm".into(), Some(size_bytes));
    let volume = NewVolume { name, backing, size_bytes, block_bytes: 512, write_back: false };
    lab.change(Command::VolumeCreate { volume, dry_run: false });
    lab.create_host("alpha", ALPHA);
    lab.map("vm", "alpha", 0, false);
    let host = Host::log_in(&mut lab, 0, ALPHA, 1);
    host.settle(&mut lab, 0);
    (lab, host)
}

/// One command with room for this number of descriptors.
fn ask(host: &Host, lab: &mut Lab, lba: u64, room: u32) -> Vec<LbaStatus> {
    let completion = host.run(lab, get_lba_status(0, lba, room));
    assert_eq!(completion.status, 0, "{:x?}", sense(&completion));
    parse_lba_status(&completion.data_in.to_vec()).expect("a list of descriptors")
}

/// Asks as QEMU does: with room for one descriptor, continuing where it ends. Returns the mapped stretches, and the
/// number of commands.
fn map_of(host: &Host, lab: &mut Lab, end: u64) -> (Vec<(u64, u64)>, usize) {
    let (mut lba, mut commands) = (0, 0);
    let mut mapped: Vec<(u64, u64)> = Vec::new();
    while lba < end {
        let told = ask(host, lab, lba, 1);
        assert_eq!((told.len(), told[0].lba), (1, lba));
        let next = lba + u64::from(told[0].blocks);
        if told[0].mapped {
            match mapped.last_mut() {
                Some(last) if last.1 == lba => last.1 = next,
                _ => mapped.push((lba, next)),
            }
        }
        (lba, commands) = (next, commands + 1);
    }
    assert_eq!(lba, end);
    (mapped, commands)
}

#[test]
fn an_empty_volume_of_any_size_is_told_in_a_few_words() {
    for (seed, shards) in [(1, 1), (2, 2), (3, 3)] {
        let (mut lab, host) = array(seed, shards, 64 * TIB);
        let end = 64 * TIB / 512;
        let (mapped, commands) = map_of(&host, &mut lab, end);
        // a descriptor counts 32 bits of blocks: 2 TiB
        assert_eq!((mapped, commands), (vec![], 33), "{shards} shards");
        assert_eq!(ask(&host, &mut lab, 0, 64).len(), 33, "one command has it all");
        // blocks here and there, on all levels of the map, and at the very end
        let mut written = BTreeSet::from([0, 1 << 24, (1 << 32) + 4096 * 3, 1 << 36, end - PER_BLOCK]);
        written.extend([(1 << 36) + 256 * PER_BLOCK, (1 << 36) + 3 * 256 * PER_BLOCK]);
        for &lba in &written {
            let completion = host.run(&mut lab, write_16(0, lba, &[7; 4096]));
            assert_eq!(completion.status, 0);
        }
        let truth: Vec<(u64, u64)> = written.iter().map(|&lba| (lba, lba + PER_BLOCK)).collect();
        let (mapped, commands) = map_of(&host, &mut lab, end);
        assert_eq!(mapped, truth, "{shards} shards");
        assert!(commands < 60, "{commands} commands");
        // from the log, with nothing in memory
        lab.kill();
        lab.restart();
        let host = Host::log_in(&mut lab, 0, ALPHA, 2);
        host.settle(&mut lab, 0);
        assert_eq!(map_of(&host, &mut lab, end).0, truth, "{shards} shards, after a restart");
    }
}

/// Blocks that are written, unmapped, snapshotted and written again at random are reported correctly, whatever was
/// asked before.
#[test]
fn what_is_told_is_what_was_written() {
    for (seed, shards) in [(11, 1), (12, 2), (13, 3)] {
        let (mut lab, host) = array(seed, shards, TIB);
        let mut random = lab.simulation.world.fork_prng();
        let end = TIB / 512;
        let mut model: BTreeSet<u64> = BTreeSet::new();
        for round in 0..6 {
            for _ in 0..12 {
                // close together, so that stretches meet and end at pages and lanes
                let block = random.between(0, 2000);
                let blocks = random.between(1, 300);
                let data = vec![random.between(1, 255) as u8; (blocks * 4096) as usize];
                let completion = host.run(&mut lab, write_16(0, block * PER_BLOCK, &data));
                assert_eq!(completion.status, 0, "{:x?}", sense(&completion));
                model.extend(block..block + blocks);
            }
            let (block, blocks) = (random.between(0, 2000), random.between(1, 900));
            let request = unmap(0, block * PER_BLOCK, (blocks * PER_BLOCK) as u32);
            let completion = host.run(&mut lab, request);
            assert_eq!(completion.status, 0, "{:x?}", sense(&completion));
            model.retain(|at| !(block..block + blocks).contains(at));
            let mut truth: Vec<(u64, u64)> = Vec::new();
            for &block in &model {
                match truth.last_mut() {
                    Some(last) if last.1 == block * PER_BLOCK => last.1 += PER_BLOCK,
                    _ => truth.push((block * PER_BLOCK, (block + 1) * PER_BLOCK)),
                }
            }
            let (mapped, commands) = map_of(&host, &mut lab, end);
            assert_eq!(mapped, truth, "{shards} shards, round {round}");
            // one for each stretch, mapped or not
            assert!(commands <= 2 * truth.len() + 2, "{commands} for {} stretches", truth.len());
            if round % 2 == 1 {
                let snapshots = vec![("vm".into(), format!("s{round}"))];
                let order = CopyOrder::Snapshot { snapshots };
                lab.change(Command::Copy { order, dry_run: false });
            }
            if round == 3 {
                lab.pass(base::Nanos::from_secs(60));
            }
        }
    }
}
