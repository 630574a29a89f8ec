//! One thread of a load: it keeps every channel full, and measures the latency of every request.
//!
//! ```text
//!   connect, log in ─► ready ─(all are)─► warm up ─► measure ─► drain ─► tally
//! ```
//! What always holds: a channel never has more than its queue depth outstanding; the latency of a request runs from
//! when it could be sent until its last byte has arrived; nothing is allocated per request.

mod cdb;
mod channel;
mod drives;
mod echo;
mod iscsi;
mod login;
pub mod retry;
#[cfg(test)]
pub mod scripted;
mod shared;
mod stream;
#[cfg(test)]
mod tests;
mod world;

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use base::Nanos;
use env::{Completion, Env, Event, Wait};

use self::channel::Channel;
use crate::cpu::{CpuUse, Sample};
use crate::job::Limit;
use crate::measure::Tally;
use crate::place::{Noise, Places, Request};

pub use login::Session;
pub use retry::Retried;
pub use shared::Shared;
pub use world::World;
pub(crate) use world::{SILENCE_MAX, wait_for};

/// What a thread hands back.
pub struct Finished {
    pub tally: Tally,
    /// Seconds measured.
    pub seconds: f64,
    /// What was agreed on or found out, for the settings of the result.
    pub facts: Vec<(String, String)>,
    /// Times that a channel had to hold back because the target's command window was full.
    pub window_full: u64,
    /// Commands that were sent again, by why.
    pub retried: Retried,
    pub cpu: CpuUse,
}

/// A thread that is ready to begin.
pub struct Worker {
    env: World,
    channels: Vec<Channel>,
    places: Vec<Places>,
    noise: Noise,
    facts: Vec<(String, String)>,
    shared: Arc<Shared>,
    /// When some request is to be sent again.
    again: Nanos,
}

/// Where in the run the loop is.
struct Times {
    measured_from: Nanos,
    end: Nanos,
    /// Bytes that this thread may still ask for, where the run is bounded by data.
    bytes_left: Option<u64>,
}

impl Worker {
    /// Connects; thread `index` of the job's.
    pub fn new(mut env: World, index: u16, shared: Arc<Shared>) -> Result<Worker, String> {
        let job = &shared.job;
        let mut channels = Vec::new();
        let mut places = Vec::new();
        let mut facts = Vec::new();
        let count = u64::from(job.channels) * u64::from(job.threads);
        for channel in 0..job.channels {
            let number = u64::from(index) * u64::from(job.channels) + u64::from(channel);
            let opened = Channel::open(&mut env, &shared, number, channel)?;
            places.push(Places::new(job, opened.size_bytes, number, count)?);
            if !opened.granule_bytes.is_power_of_two()
                || !job.block_bytes.is_multiple_of(opened.granule_bytes)
            {
                return Err(format!(
                    "blocks of {} bytes do not fit a target of {}-byte blocks",
                    job.block_bytes, opened.granule_bytes
                ));
            }
            facts = opened.facts;
            channels.push(opened.channel);
        }
        let noise = Noise::new(job.block_bytes, job.seed ^ u64::from(index));
        Ok(Worker { env, channels, places, noise, facts, shared, again: Nanos::MAX })
    }

    /// Runs the load, once the start is given.
    pub fn run(mut self) -> Result<Finished, String> {
        let mut tally = Tally::new(self.shared.job.interval_ms);
        let times = self.await_start();
        let before = Sample::of_thread();
        let seconds = self.work(times, &mut tally)?;
        let cpu = before.until(&Sample::of_thread(), 0);
        let window_full = self.channels.iter().map(Channel::window_full).sum();
        let mut retried = Retried::new();
        self.channels.iter().for_each(|channel| retry::add(&mut retried, channel.retried()));
        Ok(Finished { tally, seconds, facts: self.facts, window_full, retried, cpu })
    }

    fn await_start(&mut self) -> Times {
        let start = loop {
            match self.shared.start.get() {
                Some(start) => break *start,
                None if self.shared.stop.load(Relaxed) => break Instant::now(),
                None => std::thread::sleep(Duration::from_micros(200)),
            }
        };
        std::thread::sleep(start.saturating_duration_since(Instant::now()));
        let start = self.env.now();
        let job = &self.shared.job;
        let nanos = |seconds: f64| Nanos((seconds * 1e9) as u64);
        let (measured_from, bytes_left) = match job.limit {
            Limit::Seconds(_) => (start + nanos(job.warm_up_seconds), None),
            Limit::Bytes(bytes) => (start, Some(bytes / u64::from(job.threads))),
        };
        let end = match job.limit {
            Limit::Seconds(seconds) => measured_from + nanos(seconds),
            Limit::Bytes(_) => Nanos::MAX,
        };
        Times { measured_from, end, bytes_left }
    }

    /// The loop. Gives the seconds that were measured.
    fn work(&mut self, mut times: Times, tally: &mut Tally) -> Result<f64, String> {
        let mut events: Vec<Event<()>> = Vec::new();
        let mut dirty: Vec<usize> = (0..self.channels.len()).collect();
        let mut outstanding = 0u64;
        let mut now = self.env.now();
        let mut heard = now;
        let (mut operations, mut bytes) = (0, 0);
        loop {
            let stopping = now >= times.end || self.shared.stop.load(Relaxed);
            if self.again != Nanos::MAX && (stopping || now >= self.again) {
                outstanding -= self.send_again(now, stopping);
                dirty.extend(0..self.channels.len());
            }
            for &index in &dirty {
                if !stopping {
                    outstanding += self.fill(index, now, &mut times.bytes_left);
                }
                self.channels[index].flush(&mut self.env);
            }
            dirty.clear();
            if outstanding == 0 && (stopping || times.bytes_left.is_some_and(|left| left == 0)) {
                break;
            }
            self.env.poll(&mut events, Wait::Until(self.again.min(heard + SILENCE_MAX)));
            now = self.env.now();
            if events.is_empty() && now >= heard + SILENCE_MAX {
                return Err("the target has been silent for a minute".to_owned());
            }
            heard = if events.is_empty() { heard } else { now };
            for event in events.drain(..) {
                let Event::Completion(Completion { token, outcome }) = event else { continue };
                let index = (token.0 >> 32) as usize;
                self.channels[index].on_completion(
                    &mut self.env,
                    token.0 as u32,
                    outcome,
                    now,
                    |Request { write, length_bytes, .. }, issued| {
                        outstanding -= 1;
                        operations += 1;
                        bytes += u64::from(length_bytes);
                        if now >= times.measured_from && now < times.end {
                            let (took, at) = (now - issued, now - times.measured_from);
                            tally.record(write, length_bytes, took.0, at.0);
                        }
                    },
                )?;
                self.again = self.channels[index].next_again().map_or(self.again, |due| due.min(self.again));
                if dirty.last() != Some(&index) {
                    dirty.push(index);
                }
            }
            self.shared.operations.fetch_add(std::mem::take(&mut operations), Relaxed);
            self.shared.bytes.fetch_add(std::mem::take(&mut bytes), Relaxed);
        }
        let end = now.min(times.end);
        Ok((end.0.saturating_sub(times.measured_from.0)) as f64 / 1e9)
    }

    /// Sends again what is due, or gives it up where the run ends. How many requests were given up.
    fn send_again(&mut self, now: Nanos, stopping: bool) -> u64 {
        let mut given_up = 0;
        self.again = Nanos::MAX;
        for channel in &mut self.channels {
            match stopping {
                true => given_up += channel.give_up(),
                false => channel.send_again(&mut self.env, &mut self.noise, now),
            }
            self.again = channel.next_again().map_or(self.again, |due| due.min(self.again));
        }
        given_up
    }

    /// Fills a channel up to its depth. How many requests were added.
    fn fill(&mut self, index: usize, now: Nanos, bytes_left: &mut Option<u64>) -> u64 {
        let (channel, places) = (&mut self.channels[index], &mut self.places[index]);
        let mut added = 0;
        while channel.has_room() {
            if let Some(left) = bytes_left {
                if *left < u64::from(self.shared.job.block_bytes) {
                    *left = 0;
                    break;
                }
                *left -= u64::from(self.shared.job.block_bytes);
            }
            channel.begin(&mut self.env, places.next(), &mut self.noise, now);
            added += 1;
        }
        added
    }
}
