//! One client: one request at a time. The oracle is told before each is sent and after it is answered.

use std::ops::Range;
use std::rc::Rc;

use base::Nanos;
use task::Io;

use super::administrator::Pass;
use super::profile::Kind;
use super::{Answer, Failure, Layered, Profile, Request, Shared, Subject, VolumePlan};
use crate::oracle::{SECTOR_BYTES, SECTORS_PER_BLOCK, Sector, WriteTicket, fill};
use crate::prng::Prng;

/// Blocks that one read of a verification asks for.
const VERIFY_BLOCKS: u64 = 16;

/// Runs one client until [`Shared::stop`], or until it has made `requests` requests.
pub async fn run_client(
    io: Io,
    shared: Rc<Shared>,
    subject: Rc<dyn Subject>,
    profile: Rc<Profile>,
    volumes: Rc<Vec<VolumePlan>>,
    mut prng: Prng,
    requests: u64,
) {
    let mut client = Client::new(shared.clone(), subject, profile.clone());
    for _ in 0..requests {
        if shared.stop.get() {
            return;
        }
        let volume = shared.growth.borrow().grown(prng.pick(&volumes));
        client.request(&volume, &mut prng).await;
        shared.answered.set(shared.answered.get() + 1);
        if profile.pause_max > 0 {
            io.sleep(Nanos(prng.skewed(0, profile.pause_max))).await;
        }
    }
}

/// Reads everything that anything ever happened to, and some of what was never touched.
pub async fn verify(
    shared: Rc<Shared>,
    subject: Rc<dyn Subject>,
    volumes: Rc<Vec<VolumePlan>>,
    mut prng: Prng,
) {
    let profile = Rc::new(Profile::draw(&mut prng));
    let copies = subject.layers().map_or_else(Vec::new, |layers| layers.copies());
    let copies: Vec<VolumePlan> = copies.into_iter().map(|copy| copy.plan).collect();
    let client = Client::new(shared.clone(), subject, profile);
    for volume in volumes.iter().chain(&copies) {
        let volume = &shared.growth.borrow().grown(volume);
        let Some(mut blocks) = shared.oracle.borrow().touched_blocks(volume.volume) else { continue };
        blocks.extend((0..4).map(|_| prng.below(volume.blocks)));
        blocks.sort_unstable();
        let mut from = 0;
        for block in blocks {
            if block < from || shared.stop.get() {
                continue;
            }
            from = (block + VERIFY_BLOCKS).min(volume.blocks);
            client.read(volume, block * SECTORS_PER_BLOCK..from * SECTORS_PER_BLOCK).await;
        }
    }
}

/// Writes one range, telling the oracle.
pub async fn write_checked(shared: Rc<Shared>, subject: Rc<dyn Subject>, volume: u32, sectors: Range<u64>) {
    let profile = Rc::new(Profile::draw(&mut Prng::new(0)));
    let client = Client::new(shared, subject, profile);
    let blocks = sectors.end.div_ceil(SECTORS_PER_BLOCK);
    client.write(&VolumePlan { volume, blocks, write_back: false }, sectors, false).await;
}

/// Reads one range and checks it.
pub async fn read_checked(shared: Rc<Shared>, subject: Rc<dyn Subject>, volume: u32, sectors: Range<u64>) {
    let profile = Rc::new(Profile::draw(&mut Prng::new(0)));
    let client = Client::new(shared, subject, profile);
    let blocks = sectors.end.div_ceil(SECTORS_PER_BLOCK);
    drop(client.read(&VolumePlan { volume, blocks, write_back: false }, sectors).await);
}

/// Unmaps one range, telling the oracle.
pub async fn zero_checked(shared: Rc<Shared>, subject: Rc<dyn Subject>, volume: u32, sectors: Range<u64>) {
    let profile = Rc::new(Profile::draw(&mut Prng::new(0)));
    let client = Client::new(shared, subject, profile);
    let blocks = sectors.end.div_ceil(SECTORS_PER_BLOCK);
    client.zero(&VolumePlan { volume, blocks, write_back: false }, sectors).await;
}

/// How a write is over.
#[derive(PartialEq, Eq)]
enum Over {
    Answered,
    Aborted,
}

pub(super) struct Client {
    shared: Rc<Shared>,
    subject: Rc<dyn Subject>,
    layers: Option<Rc<dyn Layered>>,
    profile: Rc<Profile>,
    /// Where the next sequential write goes, in blocks.
    next: u64,
}

impl Client {
    pub fn new(shared: Rc<Shared>, subject: Rc<dyn Subject>, profile: Rc<Profile>) -> Client {
        Client { shared, layers: subject.layers(), subject, profile, next: 0 }
    }

    /// Waits while the volume's requests are held back.
    async fn pass(&self, volume: &VolumePlan, write: bool) -> Option<Pass> {
        match &self.layers {
            Some(layers) => Some(layers.gate(volume.volume).enter(write).await),
            None => None,
        }
    }

    /// Reads somewhere.
    pub async fn read_some(&self, volume: &VolumePlan, prng: &mut Prng) {
        let (first, blocks) = self.profile.range(volume, prng);
        drop(self.read(volume, first * SECTORS_PER_BLOCK..(first + blocks) * SECTORS_PER_BLOCK).await);
    }

    pub async fn request(&mut self, volume: &VolumePlan, prng: &mut Prng) {
        let durable = prng.chance(self.profile.durable_permille);
        if self.profile.contended
            && let Some((first, sectors)) = self.profile.straddling_range(volume, prng)
        {
            let sectors = first..first + sectors;
            return match self.profile.kind(prng) {
                Kind::CompareAndWrite => self.compare_and_write(volume, sectors, durable, prng).await,
                Kind::Read => drop(self.read(volume, sectors).await),
                _ => self.write(volume, sectors, durable).await,
            };
        }
        let whole =
            |(first, blocks): (u64, u64)| first * SECTORS_PER_BLOCK..(first + blocks) * SECTORS_PER_BLOCK;
        let kind = self.profile.kind(prng);
        let range = self.profile.range(volume, prng);
        let (small, small_length) = self.profile.small_range(volume, prng);
        match kind {
            Kind::Read if prng.chance(200) => drop(self.read(volume, small..small + small_length).await),
            Kind::Read => drop(self.read(volume, whole(range)).await),
            Kind::Write => self.write(volume, whole(range), durable).await,
            Kind::SequentialWrite => {
                let first = if self.next + range.1 <= volume.blocks { self.next } else { 0 };
                self.next = first + range.1;
                self.write(volume, whole((first, range.1)), durable).await;
            }
            Kind::SmallWrite => self.write(volume, small..small + small_length, durable).await,
            Kind::Zero if prng.chance(100) => self.zero(volume, small..small + small_length).await,
            Kind::Zero => self.zero(volume, whole(range)).await,
            Kind::Flush => self.flush(volume).await,
            Kind::CompareAndWrite => {
                let block = range.0 * SECTORS_PER_BLOCK;
                let sectors = match self.profile.straddling_range(volume, prng) {
                    Some((first, sectors)) if prng.chance(300) => first..first + sectors,
                    _ if prng.chance(700) => block..block + SECTORS_PER_BLOCK,
                    _ => small..small + 1,
                };
                self.compare_and_write(volume, sectors, durable, prng).await;
            }
        }
    }

    async fn execute(&self, request: Request) -> Answer {
        self.shared.world.note(|| format!("> {request}"));
        let text = self.shared.world.is_traced().then(|| request.to_string());
        let answer = self.subject.execute(request).await;
        self.shared.world.note(|| {
            let short = match &answer {
                Answer::Data(data) => format!("{} bytes", data.len()),
                other => format!("{other:?}"),
            };
            format!("< {} = {short}", text.unwrap_or_default())
        });
        answer
    }

    fn refuse(&self, request: impl FnOnce() -> String, answer: &Answer) {
        if self.shared.lenient.get() {
            return self.shared.refused.set(self.shared.refused.get() + 1);
        }
        let answer = match answer {
            Answer::Data(data) => format!("{} bytes of data", data.len()),
            other => format!("{other:?}"),
        };
        self.shared.fail(Failure::Refused { request: request(), answer });
    }

    /// The data, where it was read and the oracle has nothing against it.
    pub async fn read(&self, volume: &VolumePlan, sectors: Range<u64>) -> Option<Vec<u8>> {
        let _pass = self.pass(volume, false).await;
        let ticket = self.shared.oracle.borrow_mut().begin_read(volume.volume, sectors.clone());
        let answer = self.execute(Request::Read { volume: volume.volume, sectors: sectors.clone() }).await;
        let Answer::Data(data) = answer else {
            self.shared.oracle.borrow_mut().fail_read(&ticket);
            if matches!(answer, Answer::Lost | Answer::Aborted) {
                return None;
            }
            self.refuse(|| format!("read volume {} sectors {sectors:?}", volume.volume), &answer);
            return None;
        };
        let checked = self.shared.oracle.borrow_mut().end_read(&ticket, &data);
        if let Err(violation) = checked {
            self.shared.fail(Failure::Violation(violation));
            return None;
        }
        Some(data)
    }

    /// Which versions were read from a sector on; the oracle has let them pass.
    pub fn versions(&self, volume: &VolumePlan, first: u64, seen: &[u8]) -> Vec<u64> {
        let oracle = self.shared.oracle.borrow();
        let version = |(sector, bytes)| match oracle.identify(volume.volume, sector, bytes) {
            Sector::Version(version) => version,
            other => unreachable!("the oracle has let {other:?} pass"),
        };
        (first..).zip(seen.chunks_exact(SECTOR_BYTES)).map(version).collect()
    }

    async fn write(&self, volume: &VolumePlan, sectors: Range<u64>, durable: bool) {
        while self.write_once(volume, sectors.clone(), durable).await == Over::Aborted
            && self.subject.sends_again()
        {}
    }

    async fn write_once(&self, volume: &VolumePlan, sectors: Range<u64>, durable: bool) -> Over {
        let _pass = self.pass(volume, true).await;
        let ticket = self.shared.oracle.borrow_mut().begin_write(volume.volume, sectors.clone());
        let mut data = vec![0; (sectors.end - sectors.start) as usize * SECTOR_BYTES];
        let family = self.shared.oracle.borrow().family(volume.volume);
        fill(family, sectors.start, ticket.version, &mut data);
        self.shared.world.note(|| format!("version {} is for sectors {sectors:?}", ticket.version));
        let request = Request::Write { volume: volume.volume, first: sectors.start, data, durable };
        let answer = self.execute(request).await;
        let what = || format!("write volume {} sectors {sectors:?}", volume.volume);
        self.end_write(ticket, answer, durable, what)
    }

    /// Tells the oracle what came of a write.
    fn end_write(
        &self,
        ticket: WriteTicket,
        answer: Answer,
        durable: bool,
        what: impl FnOnce() -> String,
    ) -> Over {
        match answer {
            Answer::Done => self.shared.oracle.borrow_mut().end_write(ticket, durable),
            Answer::OutOfSpace => self.out_of_space(&ticket),
            Answer::Lost => self.shared.oracle.borrow_mut().fail_write(&ticket),
            Answer::Aborted => {
                self.shared.oracle.borrow_mut().abort_write(&ticket);
                return Over::Aborted;
            }
            answer => {
                self.shared.oracle.borrow_mut().fail_write(&ticket);
                self.refuse(what, &answer);
            }
        }
        Over::Answered
    }

    fn out_of_space(&self, ticket: &WriteTicket) {
        self.shared.out_of_space.set(self.shared.out_of_space.get() + 1);
        // it is there or not, and does not land later
        self.shared.oracle.borrow_mut().abort_write(ticket);
    }

    async fn zero(&self, volume: &VolumePlan, sectors: Range<u64>) {
        while self.zero_once(volume, sectors.clone()).await == Over::Aborted && self.subject.sends_again() {}
    }

    async fn zero_once(&self, volume: &VolumePlan, sectors: Range<u64>) -> Over {
        let _pass = self.pass(volume, true).await;
        let ticket = self.shared.oracle.borrow_mut().begin_zero(volume.volume, sectors.clone());
        let answer = self.execute(Request::Zero { volume: volume.volume, sectors: sectors.clone() }).await;
        let what = || format!("zero volume {} sectors {sectors:?}", volume.volume);
        self.end_write(ticket, answer, false, what)
    }

    async fn flush(&self, volume: &VolumePlan) {
        let ticket = self.shared.oracle.borrow_mut().begin_flush(volume.volume);
        match self.execute(Request::Flush { volume: volume.volume }).await {
            Answer::Done => self.shared.oracle.borrow_mut().end_flush(ticket),
            Answer::OutOfSpace => self.shared.out_of_space.set(self.shared.out_of_space.get() + 1),
            Answer::Lost | Answer::Aborted => {}
            answer => self.refuse(|| format!("flush volume {}", volume.volume), &answer),
        }
    }

    /// Mostly compares with what was just read; sometimes with a version that never was.
    async fn compare_and_write(
        &self,
        volume: &VolumePlan,
        sectors: Range<u64>,
        durable: bool,
        prng: &mut Prng,
    ) {
        let Some(seen) = self.read(volume, sectors.clone()).await else { return };
        let _pass = self.pass(volume, true).await;
        let mut expected = self.versions(volume, sectors.start, &seen);
        if prng.chance(150) {
            *expected.last_mut().expect("at least one sector") = u64::MAX;
        }
        let ticket = self.shared.oracle.borrow_mut().begin_compare(volume.volume, sectors.clone());
        let request = Request::CompareAndWrite {
            volume: volume.volume,
            first: sectors.start,
            expected: self.shared.oracle.borrow().compose(volume.volume, sectors.start, &expected),
            data: self.shared.oracle.borrow().compose(
                volume.volume,
                sectors.start,
                &vec![ticket.version; expected.len()],
            ),
            durable,
        };
        let answer = self.execute(request).await;
        let mut oracle = self.shared.oracle.borrow_mut();
        let checked = match answer {
            Answer::Done => oracle.end_compare_matched(ticket, &expected, durable),
            Answer::Miscompare => oracle.end_compare_missed(&ticket, &expected),
            Answer::OutOfSpace => {
                drop(oracle);
                return self.out_of_space(&ticket);
            }
            Answer::Lost => return oracle.fail_write(&ticket),
            Answer::Aborted => return oracle.abort_write(&ticket),
            answer => {
                oracle.fail_write(&ticket);
                drop(oracle);
                return self
                    .refuse(|| format!("compare and write volume {} {sectors:?}", volume.volume), &answer);
            }
        };
        drop(oracle);
        if let Err(violation) = checked {
            self.shared.fail(Failure::Violation(violation));
        }
    }
}
