//! The address of a request, and the data that it writes: cheap, and the same for the same seed.

use base::AlignedBuffer;
use bytes::Bytes;

use crate::job::{Job, Pattern, Skew};

/// xorshift64*: good enough to choose places.
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Random {
        // a step of splitmix64: seeds that are near each other begin far apart, and none is zero
        let mut state = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
        state = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        Random((state ^ (state >> 27)) | 1)
    }

    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    pub fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(bound)) >> 64) as u64
    }
}

/// One request to come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Request {
    pub write: bool,
    pub offset_bytes: u64,
    pub length_bytes: u32,
}

/// The places of one channel.
pub struct Places {
    random: Random,
    pattern: Pattern,
    skew: Option<Skew>,
    read_percent: u8,
    block_bytes: u32,
    /// In blocks: where this channel's sequential part begins and ends, and where it is.
    first: u64,
    end: u64,
    next: u64,
}

impl Places {
    /// Channel `index` of `count`, on a target of `size_bytes`. Random requests go everywhere; sequential ones stay in
    /// the channel's own part, again and again.
    pub fn new(job: &Job, size_bytes: u64, index: u64, count: u64) -> Result<Places, String> {
        let span = job.span_bytes.map_or(size_bytes, |span| span.min(size_bytes));
        let blocks = span / u64::from(job.block_bytes);
        let (first, end) = match job.pattern {
            Pattern::Random => (0, blocks),
            Pattern::Sequential => (blocks * index / count, blocks * (index + 1) / count),
        };
        if first == end {
            return Err(format!(
                "{} has no room for {count} x {}: use smaller blocks or fewer channels",
                base::units::size(span),
                base::units::size(job.block_bytes.into())
            ));
        }
        let random = Random::new(job.seed.wrapping_mul(0x1_0000).wrapping_add(index));
        let Job { pattern, skew, read_percent, block_bytes, .. } = *job;
        Ok(Places { random, pattern, skew, read_percent, block_bytes, first, end, next: first })
    }

    fn random_block(&mut self) -> u64 {
        let Some(skew) = self.skew else { return self.random.below(self.end) };
        let hot = (self.end * u64::from(skew.places_percent) / 100).max(1);
        if hot == self.end || self.random.below(100) < u64::from(skew.requests_percent) {
            self.random.below(hot)
        } else {
            hot + self.random.below(self.end - hot)
        }
    }

    pub fn next(&mut self) -> Request {
        let block = match self.pattern {
            Pattern::Random => self.random_block(),
            Pattern::Sequential => {
                let block = self.next;
                self.next = if block + 1 == self.end { self.first } else { block + 1 };
                block
            }
        };
        let write = match self.read_percent {
            100 => false,
            0 => true,
            percent => self.random.below(100) >= u64::from(percent),
        };
        Request { write, offset_bytes: block * u64::from(self.block_bytes), length_bytes: self.block_bytes }
    }
}

/// What is written: noise that no drive can compress, another piece for each request.
pub struct Noise {
    data: Bytes,
    turn: usize,
}

/// Pieces that the noise begins at.
const PIECES: usize = 64;

impl Noise {
    pub fn new(block_bytes: u32, seed: u64) -> Noise {
        let bytes = block_bytes as usize + PIECES * base::BLOCK_BYTES;
        let mut data = AlignedBuffer::zeroed(bytes.div_ceil(base::BLOCK_BYTES));
        let mut random = Random::new(seed);
        data.chunks_exact_mut(8).for_each(|word| word.copy_from_slice(&random.next().to_le_bytes()));
        Noise { data: data.into_bytes(), turn: 0 }
    }

    /// `length` bytes, aligned to 4 KiB.
    pub fn next(&mut self, length: u32) -> Bytes {
        self.turn = (self.turn + 1) % PIECES;
        let start = self.turn * base::BLOCK_BYTES;
        self.data.slice(start..start + length as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sequential_channels_cover_everything_once_a_round() {
        let job = Job { pattern: Pattern::Sequential, block_bytes: 4096, read_percent: 0, ..Job::default() };
        let mut seen = vec![0; 100];
        for channel in 0..3 {
            let mut places = Places::new(&job, 100 * 4096, channel, 3).expect("room");
            let blocks = (places.end - places.first) as usize;
            for _ in 0..2 * blocks {
                let request = places.next();
                assert!(request.write);
                seen[(request.offset_bytes / 4096) as usize] += 1;
            }
        }
        assert!(seen.iter().all(|&times| times == 2), "{seen:?}");
        assert!(Places::new(&job, 2 * 4096, 0, 3).is_err());
    }

    #[test]
    fn random_places_lie_within_the_span_and_mix_as_told() {
        let job = Job { read_percent: 70, span_bytes: Some(50 * 4096), ..Job::default() };
        let mut places = Places::new(&job, 100 * 4096, 0, 1).expect("room");
        let requests: Vec<Request> = (0..10_000).map(|_| places.next()).collect();
        assert!(requests.iter().all(|request| request.offset_bytes < 50 * 4096));
        let writes = requests.iter().filter(|request| request.write).count();
        assert!((2_700..3_300).contains(&writes), "{writes}");
        let mut again = Places::new(&job, 100 * 4096, 0, 1).expect("room");
        assert!(requests.iter().all(|request| *request == again.next()), "the seed decides");
    }
    #[test]
    fn a_skew_sends_most_requests_to_few_places_and_some_everywhere() {
        let job = Job { skew: "90/10".parse().ok(), ..Job::default() };
        let mut places = Places::new(&job, 1000 * 4096, 0, 1).expect("room");
        let mut times = vec![0; 1000];
        (0..100_000).for_each(|_| times[(places.next().offset_bytes / 4096) as usize] += 1);
        let hot = times[..100].iter().sum::<u32>();
        assert!((89_000..91_000).contains(&hot), "{hot}");
        let (least, most) = (times[..100].iter().min(), times[..100].iter().max());
        assert!(
            least > Some(&750) && most < Some(&1050),
            "evenly within the hot part: {least:?} to {most:?}"
        );
        assert!(times[100..].iter().all(|&times| times < 40), "and within the rest");
        assert!(times[100..].iter().filter(|&&times| times > 0).count() > 890, "all of it");
        // a target of one block is hot as a whole
        let mut places = Places::new(&job, 4096, 0, 1).expect("room");
        assert!((0..100).all(|_| places.next().offset_bytes == 0));
    }
}
