//! Measures how long a command or a management operation holds its shard: the longest turn of any shard while it runs,
//! on a volume of 64 TiB with many snapshots. The environment is simulated, the processor time is real.
//!
//! `cargo bench -p engine --bench turns [-- SNAPSHOTS [WORDS]]`; WORDS selects the measurements whose names contain
//! them

#[path = "../tests/common/mod.rs"]
mod common;

use std::time::Duration;

use api::{Command, CopyOrder, NewBacking, NewVolume, Upkeep};
use base::Nanos;
use common::Lab;
use common::copy::{copy_target, extended_copy};
use common::host::{Host, cdb, get_lba_status, unmap, write_16};
use iscsi::initiator::Request;

const ALPHA: &str = "iqn.2001-04.com.example:alpha";
const TIB: u64 = 1 << 40;
/// Blocks written between two snapshots, each at another place.
const WRITES: u64 = 4;

struct Bench {
    lab: Lab,
    host: Host,
    /// Blocks written since the first snapshot, at places all over the volume.
    written: u64,
    only: String,
}

fn volume(name: &str) -> Command {
    let (name, backing) = (name.to_owned(), NewBacking::Pool("fast".into()));
    let volume = NewVolume { name, backing, size_bytes: Some(64 * TIB), block_bytes: 512, write_back: false };
    Command::VolumeCreate { volume, dry_run: false }
}

fn copy(order: CopyOrder) -> Command {
    Command::Copy { order, dry_run: false }
}

fn snapshot(n: u64) -> Command {
    copy(CopyOrder::Snapshot { snapshots: vec![("vm".into(), format!("s{n}"))] })
}

fn delete(n: u64) -> Command {
    copy(CopyOrder::DeleteSnapshot { volume: "vm".into(), snapshot: format!("s{n}") })
}

impl Bench {
    fn new(shards: u16, only: String) -> Bench {
        let mut lab = Lab::with_pool(1, shards);
        lab.create_host("alpha", ALPHA);
        for (lun, name) in ["vm", "other"].into_iter().enumerate() {
            lab.change(volume(name));
            lab.map(name, "alpha", lun as u16, false);
        }
        let host = Host::log_in(&mut lab, 0, ALPHA, 1);
        [0, 1].into_iter().for_each(|lun| drop(host.settle(&mut lab, lun)));
        Bench { lab, host, written: 0, only }
    }

    /// Writes a block near the beginning, and one far away.
    fn write_some(&mut self) {
        for _ in 0..WRITES {
            self.written += 1;
            let lba = self.written.wrapping_mul(0x9E37_79B9_7F4A_7C15) % (64 * TIB / 4096) * 8;
            let lba = if self.written.is_multiple_of(2) { self.written * 8 } else { lba };
            let completion = self.host.run(&mut self.lab, write_16(0, lba, &[7; 4096]));
            assert_eq!(completion.status, 0);
        }
    }

    fn act(&mut self, name: &str, act: impl FnOnce(&mut Bench)) {
        if !name.contains(&self.only) {
            return;
        }
        self.lab.longest_turn();
        act(self);
        // the background work that follows
        self.lab.pass(Nanos::from_secs(3));
        say(name, self.lab.longest_turn());
    }

    fn command(&mut self, name: &str, command: Command) {
        self.act(name, |bench| drop(bench.lab.command(command).expect("it can be done")));
    }

    fn request(&mut self, name: &str, request: Request) {
        self.act(name, |bench| {
            let completion = bench.host.run(&mut bench.lab, request);
            assert_eq!(completion.status, 0, "{name}: {:x?}", common::host::sense(&completion));
        });
    }
}

fn say(name: &str, turn: Duration) {
    println!("{:>10.3} ms  {name}", turn.as_secs_f64() * 1e3);
}

/// Zeros from here on, as many as one command may say.
fn write_same(lba: u64) -> Request {
    let mut bytes = [0; 16];
    (bytes[0], bytes[1]) = (0x93, 0x08);
    bytes[2..10].copy_from_slice(&lba.to_be_bytes());
    bytes[10..14].copy_from_slice(&(16_u32 << 11).to_be_bytes());
    let mut request = Request::new(0, cdb(&bytes));
    request.data_out = block::Payload::from(bytes::Bytes::from_static(&[0; 512]));
    request
}

fn main() {
    let mut words = std::env::args().skip(1).filter(|word| !word.starts_with("--"));
    let snapshots: u64 = words.next().map_or(4000, |word| word.parse().expect("a number of snapshots"));
    let mut bench = Bench::new(2, words.collect::<Vec<_>>().join(" "));
    bench.act("a write", Bench::write_some);
    for n in 0..snapshots {
        bench.write_some();
        bench.lab.change(snapshot(n));
    }
    println!("a volume of 64 TiB, {snapshots} snapshots, {} blocks in it", bench.written);
    bench.act("nothing for three seconds", |_| ());
    bench.act("four writes", Bench::write_some);
    bench.command("status", Command::Status);
    bench.command("problems", Command::Problems);
    bench.command("metrics", Command::Metrics);
    bench.command("list of snapshots", Command::SnapshotList { volume: None });
    bench.command("a snapshot", snapshot(snapshots));
    bench.command("the oldest snapshot deleted", delete(0));
    bench.command("one in the middle deleted", delete(snapshots / 2));
    bench.command("the newest deleted", delete(snapshots));
    let clone = CopyOrder::Clone { volume: "vm".into(), snapshot: "s1".into(), name: "clone".into() };
    bench.command("a clone", copy(clone));
    bench.command(
        "the clone deleted for good",
        Command::VolumeDelete { name: "clone".into(), unmap: false, eradicate: true, dry_run: false },
    );
    bench.request("GET LBA STATUS", get_lba_status(0, 0, 64));
    bench.request("UNMAP of 512 MiB", unmap(0, 1 << 20, 1 << 20));
    bench.request("WRITE SAME of 16 MiB", write_same(1 << 24));
    let targets = [copy_target(&mut bench.lab, &bench.host, 0), copy_target(&mut bench.lab, &bench.host, 1)];
    bench.request(
        "EXTENDED COPY of 16 MiB within the pool",
        extended_copy(0, &targets, (0, 0), (1, 1 << 20), 1 << 15),
    );
    let resize =
        |size_bytes| Command::VolumeResize { name: "vm".into(), size_bytes, force: true, dry_run: false };
    bench.command("64 TiB become 1 TiB", resize(TIB));
    bench.command("1 TiB becomes 64 TiB", resize(64 * TIB));
    bench.command(
        "a scrub",
        Command::Upkeep { upkeep: Upkeep::Scrub { pool: "fast".into(), stop: false }, dry_run: false },
    );
    bench.act("a restart", |bench| {
        bench.lab.kill();
        bench.lab.restart();
    });
    bench.host = Host::log_in(&mut bench.lab, 0, ALPHA, 2);
    let left: Vec<u64> = (1..snapshots).filter(|n| *n != snapshots / 2).collect();
    bench.act("all snapshots deleted, one after the other", |bench| {
        left.iter().for_each(|&n| drop(bench.lab.change(delete(n))));
    });
    bench.command(
        "the volume deleted for good",
        Command::VolumeDelete { name: "vm".into(), unmap: true, eradicate: true, dry_run: false },
    );
    bench.act("ten minutes of giving back", |bench| bench.lab.pass(Nanos::from_secs(600)));
}
