//! Runs requests of 4 KiB through a simulated shard, sixteen at a time, so that a tool can count their instructions:
//! the counts of two runs with different numbers of requests differ by those of the requests.
//!
//! ```text
//! cargo bench -p engine --bench requests --no-run
//! valgrind --tool=callgrind --toggle-collect='*Shard*turn*' target/release/deps/requests-* memory-read 2000
//! ```
//!
//! The first word is `memory-read`, `memory-write`, `pool-read` or `pool-write`; the pool has parity-1.

#[path = "../tests/common/mod.rs"]
mod common;

use common::Lab;
use common::host::{Host, read_10, write_10};
use iscsi::initiator::Request;

const ALPHA: &str = "iqn.2001-04.com.example:alpha";
/// Requests that are sent before the oldest is waited for.
const DEPTH: usize = 16;
/// Blocks of 4 KiB of the volume that are used.
const BLOCKS: u32 = 512;

/// Sends a request for each of these numbers.
fn drive(lab: &mut Lab, host: &Host, count: u32, request: impl Fn(u32) -> Request) {
    let lbas: Vec<u32> = (0..count).map(|n| n.wrapping_mul(0x9E37_79B9) % BLOCKS * 8).collect();
    for group in lbas.chunks(DEPTH) {
        let tags: Vec<_> = group.iter().map(|&lba| host.send(lab, request(lba))).collect();
        lab.wait(|| tags.iter().all(|&tag| host.completion(tag).is_some()));
        assert!(tags.iter().all(|&tag| host.completion(tag).is_some_and(|done| done.status == 0)));
    }
}

fn main() {
    let words: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with("--")).collect();
    let kind = words.first().map_or("memory-read", String::as_str);
    let count = words.get(1).map_or(100, |word| word.parse().expect("a number of requests"));
    let mut lab = Lab::with_pool(1, 1);
    lab.create_host("alpha", ALPHA);
    match kind.starts_with("pool") {
        true => lab.create_pool_volume("v", false),
        false => lab.create_memory_volume("v", 64 << 20),
    }
    lab.map("v", "alpha", 0, false);
    let host = Host::log_in(&mut lab, 0, ALPHA, 1);
    drop(host.settle(&mut lab, 0));
    let data = vec![7; 4096];
    for lba in 0..BLOCKS {
        host.write(&mut lab, 0, lba * 8, &data);
    }
    match kind.ends_with("write") {
        true => drive(&mut lab, &host, count, |lba| write_10(0, lba, &data)),
        false => drive(&mut lab, &host, count, |lba| read_10(0, lba, 8)),
    }
    println!("{count} requests of {kind}");
}
