//! A channel: requests outstanding on one connection or one set of drives, whatever its kind.

use base::Nanos;
use env::Outcome;

use super::drives::DriveSet;
use super::echo::EchoCodec;
use super::iscsi::IscsiCodec;
use super::stream::Stream;
use super::{Shared, World, login};
use crate::place::{Noise, Request};
use crate::target::Target;

/// Requests in flight, by slot.
pub struct Slots {
    issued: Vec<Option<(bool, u32, Nanos)>>,
    free: Vec<u32>,
}

impl Slots {
    fn new(depth: u32) -> Slots {
        Slots { issued: vec![None; depth as usize], free: (0..depth).rev().collect() }
    }

    fn take(&mut self, request: Request, now: Nanos) -> u32 {
        let slot = self.free.pop().expect("the caller has looked for room");
        self.issued[slot as usize] = Some((request.write, request.length_bytes, now));
        slot
    }

    /// An answer to something that was not asked is the peer's fault.
    fn end(&mut self, slot: u32) -> Result<(bool, u32, Nanos), String> {
        let issued = self.issued.get_mut(slot as usize).and_then(Option::take);
        let issued = issued.ok_or("an answer to nothing that was asked")?;
        self.free.push(slot);
        Ok(issued)
    }
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
    ended: Vec<u32>,
    window_full: u64,
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
                let writable = shared.job.read_percent < 100;
                let set = DriveSet::open(
                    env,
                    &shared.drives,
                    paths,
                    writable,
                    (index, depth),
                    shared.job.block_bytes,
                )?;
                let (size, facts) = (set.size_bytes(), set.facts());
                (Kind::Drives(set), size, base::BLOCK_BYTES as u32, facts)
            }
            Target::Iscsi(unit) => {
                let session = login::Session::open(env, unit, number)?;
                let (size, block) = (session.blocks * u64::from(session.block_bytes), session.block_bytes);
                let facts = session.facts();
                let connection = session.connection;
                let codec = IscsiCodec::new(session, depth);
                (Kind::Iscsi(Box::new(Stream::new(connection, index, codec))), size, block, facts)
            }
            Target::Echo(address) => {
                let connection = login::connect(env, *address)?;
                let (size, codec) = EchoCodec::open(env, connection)?;
                let facts = vec![("size_bytes".to_owned(), size.to_string())];
                (Kind::Echo(Box::new(Stream::new(connection, index, codec))), size, 512, facts)
            }
        };
        let channel = Channel { kind, slots: Slots::new(depth), ended: Vec::new(), window_full: 0 };
        Ok(OpenedChannel { channel, size_bytes, granule_bytes, facts })
    }

    /// Whether one more request may begin.
    pub fn has_room(&mut self) -> bool {
        if self.slots.free.is_empty() {
            return false;
        }
        let open = match &self.kind {
            Kind::Iscsi(stream) => stream.codec.window_is_open(),
            Kind::Drives(_) | Kind::Echo(_) => true,
        };
        self.window_full += u64::from(!open);
        open
    }

    pub fn window_full(&self) -> u64 {
        self.window_full
    }

    /// Begins a request; it goes out with the next flush.
    pub fn begin(&mut self, env: &mut World, request: Request, noise: &mut Noise, now: Nanos) {
        let slot = self.slots.take(request, now);
        match &mut self.kind {
            Kind::Drives(set) => set.begin(env, slot, request, noise),
            Kind::Iscsi(stream) => stream.begin(slot, request, noise),
            Kind::Echo(stream) => stream.begin(slot, request, noise),
        }
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
        mut on_end: impl FnMut(bool, u32, Nanos),
    ) -> Result<(), String> {
        match &mut self.kind {
            Kind::Drives(set) => set.on_completion(detail, outcome, &mut self.ended)?,
            Kind::Iscsi(stream) => stream.on_completion(env, detail, outcome, &mut self.ended)?,
            Kind::Echo(stream) => stream.on_completion(env, detail, outcome, &mut self.ended)?,
        }
        for slot in self.ended.drain(..) {
            let (write, length, issued) = self.slots.end(slot)?;
            on_end(write, length, issued);
        }
        Ok(())
    }
}
