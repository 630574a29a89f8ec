//! The clocks, and the system's randomness.

use std::time::{SystemTime, UNIX_EPOCH};

use base::Nanos;
use rustix::time::{ClockId, clock_gettime};

/// The monotonic clock.
pub fn now() -> Nanos {
    read(ClockId::Monotonic)
}

/// The monotonic clock that goes on while the machine is suspended.
pub fn uptime() -> Nanos {
    read(ClockId::Boottime)
}

fn read(clock: ClockId) -> Nanos {
    let time = clock_gettime(clock);
    Nanos(time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64)
}

pub fn wall_clock_ms() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as u64)
}

/// Random numbers from the system, fetched many at a time.
#[derive(Default)]
pub struct Random {
    drawn: Vec<u64>,
}

impl Random {
    const BATCH: usize = 128;

    pub fn next(&mut self) -> u64 {
        if self.drawn.is_empty() {
            let mut bytes = [0; 8 * Random::BATCH];
            getrandom::fill(&mut bytes).expect("the system gives random bytes");
            let numbers = bytes.as_chunks::<8>().0.iter().map(|bytes| u64::from_ne_bytes(*bytes));
            self.drawn.extend(numbers);
        }
        self.drawn.pop().expect("just filled")
    }
}
