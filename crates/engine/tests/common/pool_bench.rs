//! An array with a pool, whose drives fail while a host works.

use api::{
    ChangeStep, Command, CommandErrorKind, Health, NewBacking, NewPool, NewVolume, PoolStatus, Upkeep,
};
use base::Nanos;
use sim::{DriveNumber, DriveOptions, World};

use super::Lab;
use super::host::Host;

pub const GIB: u64 = 1 << 30;
pub const INITIATOR: &str = "iqn.1993-08.org.debian:01:abc";
pub const PIECE: usize = 64 << 10;

/// An array with one pool and one volume, a host that has written to it, and what it wrote.
pub struct Bench {
    pub lab: Lab,
    pub drives: Vec<DriveNumber>,
    pub host: Option<Host>,
    pub pieces: u32,
}

pub fn path(number: usize) -> String {
    format!("/dev/sd{}", (b'a' + number as u8) as char)
}

/// The first `members` of `drives` drives make up the pool.
pub fn bench(seed: u64, protection: &str, members: usize, drives: usize) -> Bench {
    let world = World::new(seed, None);
    let numbers = (0..drives).map(|n| world.add_drive(DriveOptions::new(&path(n), GIB))).collect();
    let paths: Vec<String> = (0..drives).map(path).collect();
    let mut lab = Lab::in_world(world, 2, &paths.iter().map(String::as_str).collect::<Vec<_>>());
    let pool = NewPool::new("fast", protection, paths[..members].to_vec());
    lab.change(Command::PoolCreate { pool, dry_run: false });
    let backing = NewBacking::Pool("fast".into());
    let volume =
        NewVolume { name: "vm".into(), backing, size_bytes: Some(GIB), block_bytes: 512, write_back: false };
    lab.change(Command::VolumeCreate { volume, dry_run: false });
    lab.create_host("pve", INITIATOR);
    lab.map("vm", "pve", 0, false);
    let mut bench = Bench { lab, drives: numbers, host: None, pieces: 0 };
    bench.log_in();
    bench.write(40);
    bench
}

pub fn piece(number: u32) -> Vec<u8> {
    (0..PIECE).map(|byte| (byte as u32 ^ number.wrapping_mul(0x9E37_79B9) >> 8) as u8).collect()
}

impl Bench {
    pub fn log_in(&mut self) {
        let host = Host::log_in(&mut self.lab, 0, INITIATOR, 1);
        host.settle(&mut self.lab, 0);
        self.host = Some(host);
    }

    /// Writes this many more pieces.
    pub fn write(&mut self, count: u32) {
        let host = self.host.as_ref().unwrap();
        for number in self.pieces..self.pieces + count {
            // distributed over both lanes
            host.write(&mut self.lab, 0, number * 3000, &piece(number));
        }
        self.pieces += count;
    }

    pub fn check_data(&mut self) {
        let host = self.host.as_ref().unwrap();
        for number in 0..self.pieces {
            let read = host.read(&mut self.lab, 0, number * 3000, (PIECE / 512) as u16);
            assert!(read == piece(number), "piece {number} differs");
        }
    }

    pub fn pool(&mut self) -> PoolStatus {
        self.lab.status().pools[0].clone()
    }

    pub fn wait_for(&mut self, what: &str, seconds: u64, done: impl Fn(&PoolStatus) -> bool) -> PoolStatus {
        for _ in 0..seconds {
            let pool = self.pool();
            if done(&pool) {
                return pool;
            }
            self.lab.pass(Nanos::from_secs(1));
        }
        panic!("not {what} within {seconds} s: {:#?}", self.lab.status());
    }

    pub fn wait_healthy(&mut self, drives: usize, survives: u8) {
        let what = format!("healthy with {drives} drives, surviving {survives}");
        self.wait_for(&what, 120, |pool| {
            let state = (pool.health, pool.failures_survivable, pool.drives.len());
            state == (Health::Healthy, survives, drives) && pool.repair.is_none()
        });
    }

    pub fn upkeep(&mut self, upkeep: Upkeep) -> Vec<ChangeStep> {
        self.lab.change(Command::Upkeep { upkeep, dry_run: false }).steps
    }

    pub fn refused(&mut self, upkeep: Upkeep, kind: CommandErrorKind, text: &str) {
        for dry_run in [true, false] {
            let error = self.lab.command(Command::Upkeep { upkeep: upkeep.clone(), dry_run }).unwrap_err();
            assert_eq!(error.kind, kind, "{error}");
            assert!(error.message.contains(text), "{error} does not say {text}");
        }
    }

    pub fn restart(&mut self) {
        self.host = None;
        self.lab.kill();
        self.lab.restart();
        assert_eq!(self.lab.start_result(), Ok(()));
        self.log_in();
    }

    /// Overwrites some of the first chunk of each lane from outside.
    pub fn spoil(&mut self, number: usize) {
        for block in (20..500).step_by(40) {
            let block = pool::LABEL_REGION_BYTES / 4096 + block;
            self.lab.simulation.world.poke(self.drives[number], block, &[0xA5; 4096]);
        }
    }

    pub fn vanish(&mut self, number: usize) {
        self.lab.simulation.world.vanish(self.drives[number], None, false);
    }
}
