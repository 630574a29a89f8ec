//! The speed of parity and checksums, compared with memory bandwidth.
//!
//! The reference reads the same number of bytes and only adds them up. Any code that reads every byte takes at least as
//! long. Rounds are interleaved, and the best of each counts, because other load on the machine can only make a round
//! slower.

use std::hint::black_box;
use std::time::Instant;

use crate::table;
use crate::units;

const ROUNDS: usize = 7;
/// Columns of a row, and bytes of a column, as a batch of a pool has them.
const COLUMNS: usize = 5;
const COLUMN_BYTES: usize = 16 << 10;

/// Throughput of one kernel, in bytes of input a second.
pub struct Speed {
    pub name: &'static str,
    pub in_cache: f64,
    pub from_memory: f64,
}

type Kernel = fn(&[u8], &mut [Vec<u8>; 2]);

const KERNELS: [(&str, Kernel); 5] = [
    ("read (sum of words)", read),
    ("copy", copy),
    ("CRC-32C of 4 KiB blocks", crc),
    ("P (XOR)", xor),
    ("P and Q", p_and_q),
];

fn read(data: &[u8], _: &mut [Vec<u8>; 2]) {
    let words = data.as_chunks::<64>().0;
    let mut sums = [0u64; 8];
    for chunk in words {
        for (sum, word) in sums.iter_mut().zip(chunk.as_chunks::<8>().0) {
            *sum = sum.wrapping_add(u64::from_le_bytes(*word));
        }
    }
    black_box(sums);
}

fn copy(data: &[u8], out: &mut [Vec<u8>; 2]) {
    for column in data.chunks_exact(COLUMN_BYTES) {
        out[0].copy_from_slice(column);
        black_box(&out[0]);
    }
}

fn crc(data: &[u8], _: &mut [Vec<u8>; 2]) {
    for block in data.chunks_exact(base::BLOCK_BYTES) {
        black_box(base::crc32c(block));
    }
}

fn rows(data: &[u8], mut each: impl FnMut(&[&[u8]])) {
    for row in data.chunks_exact(COLUMNS * COLUMN_BYTES) {
        let columns: Vec<&[u8]> = row.chunks_exact(COLUMN_BYTES).collect();
        each(&columns);
    }
}

fn xor(data: &[u8], out: &mut [Vec<u8>; 2]) {
    rows(data, |columns| {
        parity::compute_p(columns, &mut out[0]);
        black_box(&out[0]);
    });
}

fn p_and_q(data: &[u8], out: &mut [Vec<u8>; 2]) {
    let [p, q] = out;
    rows(data, |columns| {
        parity::compute_pq(columns, p, q);
        black_box((&p, &q));
    });
}

/// Measures all kernels, on data that fits the second cache and on data that fits none.
pub fn measure() -> Vec<Speed> {
    let row = COLUMNS * COLUMN_BYTES;
    let [small, large] = [4 * row, (256 << 20) / row * row].map(|bytes| vec![0x5a_u8; bytes]);
    let mut out = [vec![0; COLUMN_BYTES], vec![0; COLUMN_BYTES]];
    let mut best = [[0.0f64; 2]; KERNELS.len()];
    for _ in 0..ROUNDS {
        for (kernel, best) in KERNELS.iter().zip(&mut best) {
            for (data, best) in [&small, &large].into_iter().zip(best) {
                let repeat = (64 << 20) / data.len() + 1;
                let began = Instant::now();
                (0..repeat).for_each(|_| (kernel.1)(black_box(data), &mut out));
                *best = best.max((repeat * data.len()) as f64 / began.elapsed().as_secs_f64());
            }
        }
    }
    let speed = |((name, _), [in_cache, from_memory]): (&(&'static str, Kernel), [f64; 2])| Speed {
        name,
        in_cache,
        from_memory,
    };
    KERNELS.iter().zip(best).map(speed).collect()
}

pub fn report(speeds: &[Speed]) -> String {
    let floor = speeds.first().map_or(1.0, |read| read.from_memory);
    let mut rows = vec![["", "in cache", "from memory", "x read"].map(str::to_owned).to_vec()];
    for speed in speeds {
        let rate = |bytes_s: f64| format!("{} GB/s", units::short(bytes_s / 1e9));
        let ratio = format!("{:.2}", speed.from_memory / floor);
        rows.push(vec![speed.name.to_owned(), rate(speed.in_cache), rate(speed.from_memory), ratio]);
    }
    table::render(&rows)
}
