//! A channel: the outstanding requests on one connection or one set of drives. A request that the target wants to be
//! retried keeps its slot and its start time, and the channel sends nothing new before it.

use base::Nanos;
use env::Outcome;

use super::drives::DriveSet;
use super::echo::EchoCodec;
use super::iscsi::IscsiCodec;
use super::login;
use super::retry::{Met, Retried};
use super::shared::Shared;
use super::stream::{Ended, Stream};
use super::world::World;
use crate::place::{Noise, Request};
use crate::target::Target;

/// A request in flight.
#[derive(Clone, Copy)]
struct Issued {
    request: Request,
    /// For the first time.
    at: Nanos,
    /// How often it was sent again.
    tries: u32,
}

/// Requests in flight, by slot.
struct Slots {
    issued: Vec<Option<Issued>>,
    free: Vec<u32>,
}

impl Slots {
    fn new(depth: u32) -> Slots {
        Slots { issued: vec![None; depth as usize], free: (0..depth).rev().collect() }
    }

    fn take(&mut self, request: Request, now: Nanos) -> u32 {
        let slot = self.free.pop().expect("the caller has looked for room");
        self.issued[slot as usize] = Some(Issued { request, at: now, tries: 0 });
        slot
    }

    /// An answer to something that was not asked is the peer's fault.
    fn end(&mut self, slot: u32) -> Result<Issued, String> {
        let issued = self.issued.get_mut(slot as usize).and_then(Option::take);
        let issued = issued.ok_or("an answer to nothing that was asked")?;
        self.free.push(slot);
        Ok(issued)
    }

    /// It is to be sent again.
    fn again(&mut self, slot: u32) -> Result<&mut Issued, String> {
        let issued = self.issued.get_mut(slot as usize).and_then(Option::as_mut);
        issued.ok_or_else(|| "an answer to nothing that was asked".to_owned())
    }
}

/// How soon a closed command window is looked at again.
const WINDOW_PAUSE: Nanos = Nanos::from_millis(1);

fn pause(met: Met, tries: u32) -> Result<Nanos, String> {
    met.pause(tries).ok_or_else(|| format!("a command was sent {} times, and ended with {met}", tries + 1))
}

enum Kind {
    Drives(DriveSet),
    Iscsi(Box<Stream<IscsiCodec>>),
    Echo(Box<Stream<EchoCodec>>),
}

pub struct Channel {
    kind: Kind,
    slots: Slots,
    /// Slots that have ended, not reported yet; kept for its memory.
    ended: Vec<Ended>,
    window_full: u64,
    /// Slots whose requests are to be sent again, and when.
    again: Vec<(Nanos, u32)>,
    retried: Retried,
}

/// A channel that can be used, and what was learnt on the way.
pub struct OpenedChannel {
    pub channel: Channel,
    pub size_bytes: u64,
    /// Requests are multiples of this.
    pub granule_bytes: u32,
    pub facts: Vec<(String, String)>,
}

impl Channel {
    /// `number`: among all channels of the run; `index`: among those of the thread.
    pub fn open(env: &mut World, shared: &Shared, number: u64, index: u32) -> Result<OpenedChannel, String> {
        let depth = shared.job.queue_depth;
        let (kind, size_bytes, granule_bytes, facts) = match &shared.target {
            Target::Drives(paths) => {
                let set = DriveSet::open(env, &shared.drives, paths, index, &shared.job)?;
                let (size, facts) = (set.size_bytes(), set.facts());
                (Kind::Drives(set), size, base::BLOCK_BYTES as u32, facts)
            }
            Target::Iscsi(unit) => {
                let session = login::Session::open(env, unit, number)?;
                let (size, block) = (session.blocks * u64::from(session.block_bytes), session.block_bytes);
                let facts = session.facts();
                let connection = session.connection;
                let codec = IscsiCodec::new(session, depth, shared.job.durable);
                (Kind::Iscsi(Box::new(Stream::new(connection, index, codec))), size, block, facts)
            }
            Target::Echo(_) if shared.job.durable => {
                return Err("nothing of the echo floor is durable".to_owned());
            }
            Target::Echo(address) => {
                let connection = login::connect(env, *address, super::SILENCE_MAX)?;
                let (size, codec) = EchoCodec::open(env, connection)?;
                let facts = vec![("size_bytes".to_owned(), size.to_string())];
                (Kind::Echo(Box::new(Stream::new(connection, index, codec))), size, 512, facts)
            }
        };
        let channel = Channel {
            kind,
            slots: Slots::new(depth),
            ended: Vec::new(),
            window_full: 0,
            again: Vec::new(),
            retried: Retried::new(),
        };
        Ok(OpenedChannel { channel, size_bytes, granule_bytes, facts })
    }

    /// Whether one more request may begin.
    pub fn has_room(&mut self) -> bool {
        if self.slots.free.is_empty() || !self.again.is_empty() {
            return false;
        }
        let open = self.window_is_open();
        self.window_full += u64::from(!open);
        open
    }

    fn window_is_open(&self) -> bool {
        match &self.kind {
            Kind::Iscsi(stream) => stream.codec.window_is_open(),
            Kind::Drives(_) | Kind::Echo(_) => true,
        }
    }

    pub fn window_full(&self) -> u64 {
        self.window_full
    }

    /// What was met and is no error.
    pub fn retried(&self) -> &Retried {
        &self.retried
    }

    /// Begins a request; it goes out with the next flush.
    pub fn begin(&mut self, env: &mut World, request: Request, noise: &mut Noise, now: Nanos) {
        let slot = self.slots.take(request, now);
        self.send(env, slot, request, noise);
    }

    fn send(&mut self, env: &mut World, slot: u32, request: Request, noise: &mut Noise) {
        match &mut self.kind {
            Kind::Drives(set) => set.begin(env, slot, request, noise),
            Kind::Iscsi(stream) => stream.begin(slot, request, noise),
            Kind::Echo(stream) => stream.begin(slot, request, noise),
        }
    }

    /// When the next request is to be sent again, where there is one.
    pub fn next_again(&self) -> Option<Nanos> {
        self.again.iter().map(|(due, _)| *due).min()
    }

    /// Sends again what is due, as far as the target lets it in; it goes out with the next flush.
    pub fn send_again(&mut self, env: &mut World, noise: &mut Noise, now: Nanos) {
        let mut waiting = std::mem::take(&mut self.again);
        waiting.retain_mut(|(due, slot)| {
            if *due > now {
                return true;
            }
            if !self.window_is_open() {
                *due = now + WINDOW_PAUSE;
                return true;
            }
            let issued = self.slots.issued[*slot as usize].expect("it keeps its slot");
            self.send(env, *slot, issued.request, noise);
            false
        });
        self.again = waiting;
    }

    /// Forgets what is to be sent again; how many requests that was.
    pub fn give_up(&mut self) -> u64 {
        let waiting = std::mem::take(&mut self.again);
        for (_, slot) in &waiting {
            self.slots.end(*slot).expect("it keeps its slot");
        }
        waiting.len() as u64
    }

    pub fn flush(&mut self, env: &mut World) {
        match &mut self.kind {
            Kind::Drives(_) => {}
            Kind::Iscsi(stream) => stream.flush(env),
            Kind::Echo(stream) => stream.flush(env),
        }
    }

    /// Takes what the environment says about this channel; `on_end` is told of each request that has ended.
    pub fn on_completion(
        &mut self,
        env: &mut World,
        detail: u32,
        outcome: Outcome,
        now: Nanos,
        mut on_end: impl FnMut(Request, Nanos),
    ) -> Result<(), String> {
        match &mut self.kind {
            Kind::Drives(set) => set.on_completion(detail, outcome, &mut self.ended)?,
            Kind::Iscsi(stream) => stream.on_completion(env, detail, outcome, &mut self.ended)?,
            Kind::Echo(stream) => stream.on_completion(env, detail, outcome, &mut self.ended)?,
        }
        for Ended { slot, met } in self.ended.drain(..) {
            match met {
                None => {
                    let Issued { request, at, .. } = self.slots.end(slot)?;
                    on_end(request, at);
                }
                Some(met) => {
                    met.count(&mut self.retried);
                    let issued = self.slots.again(slot)?;
                    self.again.push((now + pause(met, issued.tries)?, slot));
                    issued.tries += 1;
                }
            }
        }
        Ok(())
    }
}
