//! A client that writes self-describing blocks, reads them back all the time, and continues through all faults
//! of the array. It must read what was acknowledged.

mod known;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use base::{BLOCK_BYTES, Nanos};
use bytes::{Bytes, BytesMut};
use env::Env;
use iscsi::initiator::{Completion, Tag};
use wire::scsi::SenseKey;

use crate::place::Random;
use crate::target::Unit;
use crate::worker::retry::{Met, Retried, failure, sense_key};
use crate::worker::{SILENCE_MAX, Session, World};
use known::Known;

const DEPTH: usize = 16;
/// Blocks of 4 KiB of one request.
const REQUEST_BLOCKS_MAX: u64 = 32;
/// A path that is silent for so long is left for the next one, if there is one.
const PATH_PATIENCE: Nanos = Nanos::from_millis(1500);
/// After a session that ended: before the same path is tried again, and before another one.
const AGAIN_AFTER: Duration = Duration::from_millis(100);
const NEXT_PATH_AFTER: Duration = Duration::from_millis(10);
/// Shorter times without an answer are no pauses.
const PAUSE_MIN: Nanos = Nanos::from_millis(100);
/// How long nothing need be served: the daemon is killed and started, drives are waited for.
const PATIENCE: Nanos = Nanos::from_secs(180);

/// How long, and how much.
#[derive(Clone, Default, Debug)]
pub struct Pace {
    pub seconds: u64,
    /// It ends, too, when this file exists.
    pub until: Option<PathBuf>,
    /// Requests a second at most.
    pub rate: Option<u64>,
}

/// What was done.
#[derive(Clone, Default, Debug)]
pub struct Tally {
    pub writes: u64,
    pub reads: u64,
    pub blocks_checked: u64,
    pub sessions: u64,
    /// Commands that ended with an error that asks for another try.
    pub refused: u64,
    /// The longest time in which nothing succeeded.
    pub longest_pause: Nanos,
    /// All of them from 100 ms on.
    pub pauses: Vec<Nanos>,
    /// What was met and is no error, such as UNIT ATTENTION.
    pub retried: Retried,
}

/// A request on its way: blocks from `first` on; of a write, their versions.
struct Asked {
    first: u64,
    blocks: u64,
    versions: Option<Vec<u32>>,
}

enum End {
    /// The session is over; another may go on.
    Broken(String),
    /// The array is wrong.
    Wrong(String),
}

struct Client<'a> {
    /// The same unit by each of its paths.
    paths: &'a [Unit],
    /// The number of the one that is used, counted on and on.
    path: usize,
    known: Known,
    random: Random,
    tally: Tally,
    asked: BTreeMap<Tag, Asked>,
    /// Where the reading of everything, in order, is.
    sweep: u64,
    /// When something last succeeded.
    served: Nanos,
    began: Nanos,
    sent: u64,
    pace: Pace,
}

/// Tortures a unit that reads as zeros for as long as `pace` says, then reads all of it. What is wrong is the error. Each of `paths` is
/// the same unit; one that fails is left for the next one.
pub fn torture(
    env: &mut World,
    paths: &[Unit],
    pace: Pace,
    say: &mut dyn FnMut(&Tally),
) -> Result<Tally, String> {
    let now = env.now();
    let run = env.random_u64();
    let mut client = Client {
        paths,
        path: 0,
        known: Known::new(run, 0),
        random: Random::new(run),
        tally: Tally::default(),
        asked: BTreeMap::new(),
        sweep: 0,
        served: now,
        began: now,
        sent: 0,
        pace,
    };
    let mut told = now;
    loop {
        match client.run_session(env, &mut told, say) {
            Ok(()) => return Ok(client.tally),
            Err(End::Wrong(what)) => return Err(what),
            Err(End::Broken(why)) => client.on_broken(env, &why)?,
        }
    }
}

impl Client<'_> {
    /// One session, until everything is done.
    fn run_session(
        &mut self,
        env: &mut World,
        told: &mut Nanos,
        say: &mut dyn FnMut(&Tally),
    ) -> Result<(), End> {
        let unit = &self.paths[self.path % self.paths.len()];
        let patience = if self.paths.len() > 1 { PATH_PATIENCE } else { SILENCE_MAX };
        let session = Session::open_within(env, unit, self.tally.sessions, patience);
        let mut session = session.map_err(End::Broken)?;
        let result = self.work(env, &mut session, told, say);
        session.close(env);
        result
    }

    fn work(
        &mut self,
        env: &mut World,
        session: &mut Session,
        told: &mut Nanos,
        say: &mut dyn FnMut(&Tally),
    ) -> Result<(), End> {
        self.tally.sessions += 1;
        let blocks = session.blocks * u64::from(session.block_bytes) / BLOCK_BYTES as u64;
        if self.known.blocks() == 0 {
            self.known = Known::new(env.random_u64(), blocks);
        } else if self.known.blocks() != blocks {
            return Err(End::Wrong(format!("the unit has {blocks} blocks and had {}", self.known.blocks())));
        }
        let mut last_sweep = false;
        loop {
            if !last_sweep && self.is_over(env.now()) {
                // from here on everything is read once more
                (last_sweep, self.sweep) = (true, 0);
            }
            while self.asked.len() < DEPTH && session.can_send() && (last_sweep || self.may_send(env.now())) {
                if !self.ask(session, last_sweep)? {
                    break;
                }
            }
            if self.asked.is_empty() && last_sweep && self.sweep >= self.known.blocks() {
                return Ok(());
            }
            if self.asked.is_empty() && !session.can_send() {
                return Err(End::Broken("the target lets nothing in".to_owned()));
            }
            if self.asked.is_empty() {
                std::thread::sleep(Duration::from_millis(1));
                continue;
            }
            let (tag, completion) = session.next_completion(env).map_err(End::Broken)?;
            self.on_completion(env, tag, completion)?;
            if env.now().saturating_sub(*told) > Nanos::from_secs(10) {
                *told = env.now();
                say(&self.tally);
            }
        }
    }

    fn is_over(&self, now: Nanos) -> bool {
        now.saturating_sub(self.began) >= Nanos::from_secs(self.pace.seconds)
            || self.pace.until.as_ref().is_some_and(|file| file.exists())
    }

    fn may_send(&self, now: Nanos) -> bool {
        let allowed = |rate| now.saturating_sub(self.began).0 / 1_000_000 * rate / 1000;
        self.pace.rate.is_none_or(|rate| self.sent < allowed(rate))
    }

    /// Something succeeded.
    fn on_success(&mut self, now: Nanos) {
        let pause = now.saturating_sub(self.served);
        self.tally.longest_pause = self.tally.longest_pause.max(pause);
        if pause >= PAUSE_MIN {
            self.tally.pauses.push(pause);
        }
        self.served = now;
    }

    /// Sends one more request; `false` where there is nothing to ask now.
    fn ask(&mut self, session: &mut Session, last_sweep: bool) -> Result<bool, End> {
        let unit_blocks = BLOCK_BYTES as u32 / session.block_bytes;
        let all = self.known.blocks();
        let mut length = 1 + self.random.next() % REQUEST_BLOCKS_MAX;
        let choice = self.random.next() % 4;
        let first = match choice {
            _ if last_sweep => self.sweep,
            0 => self.sweep % all,
            // a tenth of the unit is hot
            1 => self.random.next() % (all / 10).max(1),
            _ => self.random.next() % all,
        };
        length = length.min(all.saturating_sub(first));
        let busy = |asked: &Asked| asked.first < first + length && first < asked.first + asked.blocks;
        if length == 0 || self.asked.values().any(busy) {
            return Ok(false);
        }
        let block = first * u64::from(unit_blocks);
        let count = length as u32 * unit_blocks;
        let write = !last_sweep && (choice == 1 || choice == 2);
        let (tag, versions) = if write {
            let mut data = BytesMut::zeroed(length as usize * BLOCK_BYTES);
            let pieces = data.chunks_exact_mut(BLOCK_BYTES).enumerate();
            let versions =
                pieces.map(|(index, to)| self.known.next_content(first + index as u64, to)).collect();
            (session.write(block, count, data.freeze()), Some(versions))
        } else {
            if last_sweep || choice == 0 {
                self.sweep = first + length;
            }
            (session.read(block, count), None)
        };
        self.asked.insert(tag.map_err(End::Broken)?, Asked { first, blocks: length, versions });
        self.sent += 1;
        Ok(true)
    }

    fn on_completion(&mut self, env: &World, tag: Tag, completion: Completion) -> Result<(), End> {
        let asked =
            self.asked.remove(&tag).ok_or_else(|| End::Wrong("an answer to no command".to_owned()))?;
        let blocks = asked.first..asked.first + asked.blocks;
        if completion.status != 0 {
            return self.on_failure(env, &asked, &completion);
        }
        self.on_success(env.now());
        if let Some(versions) = asked.versions {
            self.tally.writes += 1;
            blocks.zip(versions).for_each(|(block, version)| self.known.written(block, version));
            return Ok(());
        }
        let data = Bytes::from(completion.data_in.to_vec());
        if data.len() as u64 != asked.blocks * BLOCK_BYTES as u64 {
            return Err(End::Wrong(format!("a read of {} blocks gave {} bytes", asked.blocks, data.len())));
        }
        for (block, content) in blocks.zip(data.chunks_exact(BLOCK_BYTES)) {
            self.known.read(block, content).map_err(|what| End::Wrong(format!("MISMATCH: {what}")))?;
        }
        self.tally.reads += 1;
        self.tally.blocks_checked += asked.blocks;
        Ok(())
    }

    /// A command was refused: tried again another time, for as long as there is patience. Data that cannot be read
    /// is lost data.
    fn on_failure(&mut self, env: &World, asked: &Asked, completion: &Completion) -> Result<(), End> {
        let Completion { status, sense, .. } = completion;
        let why = failure(*status, sense);
        if sense_key(sense) == Some(SenseKey::MediumError) {
            let what = format!("blocks {} to {}: {why}", asked.first, asked.first + asked.blocks);
            return Err(End::Wrong(what));
        }
        match Met::of(*status, sense) {
            Some(met) => {
                met.count(&mut self.tally.retried);
                let pause = met.pause(0).expect("the first of many");
                std::thread::sleep(Duration::from_nanos(pause.0));
            }
            None => self.tally.refused += 1,
        }
        self.forget(asked);
        if asked.versions.is_none() {
            self.sweep = self.sweep.min(asked.first);
        }
        match env.now().saturating_sub(self.served) > PATIENCE {
            true => Err(End::Wrong(format!("nothing succeeds any more: {why}"))),
            false => Ok(()),
        }
    }

    fn forget(&mut self, asked: &Asked) {
        for (block, &version) in (asked.first..).zip(asked.versions.iter().flatten()) {
            self.known.unanswered(block, version);
        }
    }

    /// What was on its way may have happened or not.
    fn on_broken(&mut self, env: &mut World, why: &str) -> Result<(), String> {
        for asked in std::mem::take(&mut self.asked).into_values() {
            self.forget(&asked);
        }
        if env.now().saturating_sub(self.served) > PATIENCE {
            return Err(format!("nobody has served for {} s: {why}", PATIENCE.0 / 1_000_000_000));
        }
        self.path += 1;
        std::thread::sleep(if self.paths.len() > 1 { NEXT_PATH_AFTER } else { AGAIN_AFTER });
        Ok(())
    }
}
