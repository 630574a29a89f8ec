//! 4 KiB at random places, so many at a time, for so many seconds.

use std::time::{Duration, Instant};

use bytes::Bytes;
use clap::{Args, ValueEnum};
use serde_json::{Value, json};

use crate::session::{Result, Session, Unit, failure};

const BYTES: u32 = 4096;
/// A slot is the low 16 bits of a tag.
const DEPTH_MAX: u16 = 1024;

#[derive(Args)]
pub struct Load {
    #[arg(long)]
    pub workload: Workload,
    /// Commands outstanding
    #[arg(long, default_value = "64", value_parser = clap::value_parser!(u16).range(1..=DEPTH_MAX as i64))]
    pub depth: u16,
    #[arg(long, default_value = "5")]
    pub seconds: u64,
    /// Seconds before measuring begins
    #[arg(long, default_value = "1")]
    pub warm_up: u64,
}

#[derive(ValueEnum, Clone, Copy, PartialEq, Eq)]
pub enum Workload {
    Read,
    Write,
    /// Every block once, in order: so that reads find something
    Fill,
}

/// xorshift64*: good enough to choose places, and the same for every run.
struct Places(u64);

impl Places {
    fn next(&mut self, of: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) % of
    }
}

pub fn run(unit: &Unit, load: &Load) -> Result<Value> {
    let mut session = Session::open(unit)?;
    let per_place = u64::from(BYTES / session.block_bytes);
    let places = session.blocks / per_place;
    if load.workload == Workload::Fill {
        return fill(&mut session).map(|bytes| json!({ "filled_bytes": bytes }));
    }
    let mut choice = Places(0x9e37_79b9_7f4a_7c15);
    let data: Vec<Bytes> =
        (0..64u8).map(|n| Bytes::from(vec![n.wrapping_mul(37) ^ 0xa5; BYTES as usize])).collect();
    let began = Instant::now();
    let measured_from = began + Duration::from_secs(load.warm_up);
    let end = measured_from + Duration::from_secs(load.seconds);
    let mut issued = vec![began; usize::from(u16::MAX) + 1];
    let mut latencies_ns: Vec<u32> = Vec::with_capacity(1 << 22);
    let mut now = began;
    while now < end {
        while session.outstanding() < usize::from(load.depth) && session.can_send() {
            let block = choice.next(places) * per_place;
            let tag = match load.workload {
                Workload::Read => session.read(block, BYTES / session.block_bytes)?,
                _ => session.write(block, data[(block % 64) as usize].clone())?,
            };
            issued[tag.slot()] = now;
        }
        session.exchange()?;
        now = Instant::now();
        while let Some((tag, completion)) = session.try_completion()? {
            let expected = if load.workload == Workload::Read { BYTES as usize } else { 0 };
            if completion.status != 0 || completion.data_in.len() != expected {
                return Err(failure(&completion));
            }
            if now >= measured_from {
                latencies_ns.push((now - issued[tag.slot()]).as_nanos().min(u128::from(u32::MAX)) as u32);
            }
        }
    }
    let seconds = (now - measured_from).as_secs_f64();
    latencies_ns.sort_unstable();
    let percentile = |part: f64| latencies_ns.get((latencies_ns.len() as f64 * part) as usize).copied();
    Ok(json!({
        "iops": latencies_ns.len() as f64 / seconds,
        "latency_us_p50": percentile(0.5).unwrap_or_default() / 1000,
        "latency_us_p99": percentile(0.99).unwrap_or_default() / 1000,
        "latency_us_p999": percentile(0.999).unwrap_or_default() / 1000,
    }))
}

/// Writes every block of the unit, 256 KiB at a time; how many bytes.
fn fill(session: &mut Session) -> Result<u64> {
    let piece_blocks = u64::from((256 << 10) / session.block_bytes);
    let mut next = 0;
    let mut choice = Places(1);
    while next < session.blocks || session.outstanding() > 0 {
        while next < session.blocks && session.outstanding() < 16 && session.can_send() {
            let blocks = piece_blocks.min(session.blocks - next);
            let bytes = (blocks * u64::from(session.block_bytes)) as usize;
            let mut data = vec![0; bytes];
            data.chunks_mut(8).for_each(|word| {
                let noise = choice.next(u64::MAX).to_le_bytes();
                let length = word.len();
                word.copy_from_slice(&noise[..length]);
            });
            session.write(next, Bytes::from(data))?;
            next += blocks;
        }
        let (_, completion) = session.next_completion()?;
        if completion.status != 0 {
            return Err(failure(&completion));
        }
    }
    Ok(session.blocks * u64::from(session.block_bytes))
}
