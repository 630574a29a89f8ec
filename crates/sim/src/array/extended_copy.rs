//! Hosts copy ranges between LUNs with EXTENDED COPY while all of them write: whole blocks and parts of blocks, one
//! range and several, across lanes, back to the origin, and onto the source itself.
//!
//! A random source of its own decides, so the rest of an array seed is the same as without copies.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::rc::Rc;

use base::Nanos;
use block::Payload;
use iscsi::initiator::{Completion, Request};
use task::Io;
use wire::scsi::Lun;
use wire::scsi::copy::{CopySegment, CopyTarget, emit_copy};

use super::lun::{LunSubject, TASK_ABORTED, Way, sense};
use crate::counts::counted;
use crate::oracle::{Contended, CopyTicket, SECTOR_BYTES, SECTORS_PER_BLOCK};
use crate::prng::Prng;
use crate::workload::{Answer, Failure, Shared, VolumePlan, read_checked};

/// Blocks of one range: more than four map pages.
const BLOCKS_MAX: u64 = 1_200;
/// Of one that overlaps with where it is copied to.
const OVERLAPPING_BLOCKS_MAX: u64 = 6;
const NAA_BYTES: usize = 16;
/// After so many copies that were refused a host copies no more: copied or not, block by block, is soon more than
/// anybody could check.
const REFUSED_MAX: u32 = 6;
/// How often it is looked whether another copy is under way.
const TURN: Nanos = Nanos::from_micros(200);
/// What is read at once.
const READ_SECTORS: usize = 64 * SECTORS_PER_BLOCK as usize;

counted! {
    /// What became of copies, and what they were.
    Seen: "extended copy: " {
        Done = "done",
        Aborted = "aborted",
        Lost = "its connection broke",
        Refused = "copy aborted",
        Interrupted = "a volume that it had reached was reset by another",
        CutOff = "cut off by the end of the array",
        Whole = "of whole blocks",
        Partial = "of parts of blocks",
        Within = "within a volume",
        Overlapping = "onto itself",
        Several = "of several ranges",
        SourceWritten = "its source was written meanwhile",
        DestinationWritten = "its destination was written meanwhile",
    }
}

/// How often the hosts of a run copy.
#[derive(Clone, Copy, Debug)]
pub struct Copies {
    /// Of each host in a round.
    pub count: u32,
    pub pause_max: u64,
}

impl Copies {
    /// More than half of the seeds have them.
    pub fn draw(seed: u64) -> Option<Copies> {
        let mut prng = Prng::new(seed ^ 0x6578_636F_7079);
        let copies = Copies {
            count: *prng.pick(&[3, 10, 40]),
            pause_max: *prng.pick(&[500_000, 4_000_000, 20_000_000]),
        };
        prng.chance(600).then_some(copies)
    }
}

/// Sectors to copy.
#[derive(Clone, Copy, Debug)]
struct Range {
    source: u32,
    from: u64,
    destination: u32,
    to: u64,
    sectors: u64,
}

impl Range {
    fn overlaps(&self) -> bool {
        self.reads_from(self)
    }

    /// Whether it reads what another writes.
    fn reads_from(&self, other: &Range) -> bool {
        self.source == other.destination
            && self.from < other.to + other.sectors
            && other.to < self.from + self.sectors
    }
}

/// One host, as far as it copies.
pub struct CopyHost {
    pub shared: Rc<Shared>,
    pub way: Way,
    /// LUN by the oracle's volume.
    pub luns: BTreeMap<u32, u16>,
    pub volumes: Rc<Vec<VolumePlan>>,
    /// Hosts reserve volumes for themselves, or there is no room under the drives.
    pub may_be_refused: bool,
    /// Copies that were refused so far.
    pub refused: Cell<u32>,
}

impl CopyHost {
    /// Copies now and then, as long as the workload goes on.
    pub async fn run(self, io: Io, copies: Copies) {
        let mut prng = Prng::new(io.random_u64());
        let Some(names) = self.names().await else { return };
        for _ in 0..copies.count {
            io.sleep(Nanos(prng.skewed(0, copies.pause_max))).await;
            if self.shared.stop.get() || self.refused.get() >= REFUSED_MAX {
                return;
            }
            self.copy_something(&names, &mut prng).await;
        }
    }

    /// The names of all volumes, by which copies find them. `None`: the connection broke.
    pub async fn names(&self) -> Option<BTreeMap<u32, [u8; NAA_BYTES]>> {
        let mut names = BTreeMap::new();
        for &volume in self.luns.keys() {
            names.insert(volume, self.name(volume).await?);
        }
        Some(names)
    }

    async fn name(&self, volume: u32) -> Option<[u8; NAA_BYTES]> {
        loop {
            // INQUIRY of the device identification page
            let mut request = self.request(volume, &[0x12, 1, 0x83, 0, 255, 0]);
            request.expected_in = 255;
            let data = |completion: &Completion| {
                (completion.status == 0).then(|| Answer::Data(completion.data_in.to_vec()))
            };
            match self.way.clone().send(request, None, data).await {
                Answer::Data(page) => return naa(&page),
                Answer::Lost | Answer::Aborted if !self.shared.has_failed() => {}
                _ => return None,
            }
        }
    }

    fn request(&self, volume: u32, cdb: &[u8]) -> Request {
        let mut bytes = [0; 16];
        bytes[..cdb.len()].copy_from_slice(cdb);
        Request::new(Lun::new(self.luns[&volume]).expect("a small number").emit(), bytes)
    }

    /// One command, of one range or several.
    pub async fn copy_something(&self, names: &BTreeMap<u32, [u8; NAA_BYTES]>, prng: &mut Prng) {
        let count = if prng.chance(750) { 1 } else { prng.between(2, 3) };
        let mut ranges: Vec<Range> = (0..count).map(|_| self.draw(prng)).collect();
        shorten_circles(&mut ranges);
        if self.shared.out_of_space.get() > 0 || self.may_be_refused {
            // what was refused may have been carried out in part, and there may be much of that
            for range in &ranges {
                self.read(range.source, range.from, range.sectors).await;
            }
        }
        // what copies of copies under way may bring is more than anybody could check
        while self.shared.oracle.borrow().copies_under_way() > 0 {
            self.way.io.sleep(TURN).await;
        }
        let sent_to = if prng.chance(500) { ranges[0].source } else { ranges[0].destination };
        let request = self.extended_copy(sent_to, names, &ranges);
        ranges.iter().for_each(count_range);
        if ranges.len() > 1 {
            Seen::Several.seen();
        }
        let tickets: Vec<CopyTicket> = {
            let mut oracle = self.shared.oracle.borrow_mut();
            let begin = |range: &Range| {
                oracle.begin_copy((range.source, range.from), (range.destination, range.to), range.sectors)
            };
            ranges.iter().map(begin).collect()
        };
        self.shared.world.note(|| format!("> copy {ranges:?}"));
        let (written, may_be_refused) = (Some(ranges[0].destination), self.may_be_refused);
        let answer = self.way.clone().send(request, written, |done| copy_answer(done, may_be_refused)).await;
        self.shared.world.note(|| format!("< copy {ranges:?} = {answer:?}"));
        self.tell_oracle(tickets, answer, &ranges);
        // what has been read is known: else nobody would know in the end what copies of copies may be
        for range in &ranges {
            self.read(range.destination, range.to, range.sectors).await;
        }
    }

    async fn read(&self, volume: u32, first: u64, count: u64) {
        let subject = Rc::new(LunSubject { way: self.way.clone(), luns: self.luns.clone() });
        let end = first + count;
        for first in (first..end).step_by(READ_SECTORS) {
            if self.shared.has_failed() {
                return;
            }
            let sectors = first..(first + READ_SECTORS as u64).min(end);
            read_checked(self.shared.clone(), subject.clone(), volume, sectors).await;
        }
    }

    fn tell_oracle(&self, tickets: Vec<CopyTicket>, answer: Answer, ranges: &[Range]) {
        let mut oracle = self.shared.oracle.borrow_mut();
        match answer {
            Answer::Done => {
                Seen::Done.seen();
                let contended: Vec<Contended> =
                    tickets.into_iter().map(|ticket| oracle.end_copy(ticket)).collect();
                if contended.iter().any(|one| one.source) {
                    Seen::SourceWritten.seen();
                }
                if contended.iter().any(|one| one.destination) {
                    Seen::DestinationWritten.seen();
                }
            }
            Answer::Aborted => {
                Seen::Aborted.seen();
                tickets.iter().for_each(|ticket| oracle.abort_copy(ticket));
            }
            other => {
                tickets.iter().for_each(|ticket| oracle.fail_copy(ticket));
                match other {
                    Answer::Lost => Seen::Lost.seen(),
                    // what was refused for want of space under the drives may yet come to be
                    Answer::Miscompare => {
                        Seen::Refused.seen();
                        self.refused.set(self.refused.get() + 1);
                    }
                    other => {
                        let (request, answer) = (format!("copy {ranges:?}"), format!("{other:?}"));
                        self.shared.fail(Failure::Refused { request, answer });
                    }
                }
            }
        }
    }

    fn draw(&self, prng: &mut Prng) -> Range {
        let source = prng.pick(&self.volumes);
        let destination = if prng.chance(300) { source } else { prng.pick(&self.volumes) };
        let blocks = prng.skewed(1, source.blocks.min(destination.blocks).min(BLOCKS_MAX));
        let mut range = Range {
            source: source.volume,
            from: prng.below(source.blocks - blocks + 1) * SECTORS_PER_BLOCK,
            destination: destination.volume,
            to: prng.below(destination.blocks - blocks + 1) * SECTORS_PER_BLOCK,
            sectors: blocks * SECTORS_PER_BLOCK,
        };
        if range.source == range.destination && prng.chance(200) {
            range.to = range.from.saturating_sub(prng.below(OVERLAPPING_BLOCKS_MAX) * SECTORS_PER_BLOCK);
        }
        if range.overlaps() {
            // each sector may be any of those that are copied, one after the other, until it is read
            range.sectors = range.sectors.min(OVERLAPPING_BLOCKS_MAX * SECTORS_PER_BLOCK);
        }
        if prng.chance(300) {
            let cut = |prng: &mut Prng| prng.below(SECTORS_PER_BLOCK / 2);
            let (first, second) = (cut(prng), cut(prng));
            range.from += first;
            range.to += second;
            range.sectors -= first.max(second) + cut(prng).min(SECTORS_PER_BLOCK / 2 - 1);
        }
        range
    }

    fn extended_copy(
        &self,
        sent_to: u32,
        names: &BTreeMap<u32, [u8; NAA_BYTES]>,
        ranges: &[Range],
    ) -> Request {
        let target = |name: &[u8; NAA_BYTES]| CopyTarget { unit_id_type: 0, null: false, naa: Some(*name) };
        let targets: Vec<_> = names.values().map(|name| target(name).emit(SECTOR_BYTES as u32)).collect();
        let index = |volume: u32| names.keys().position(|&known| known == volume).expect("named") as u16;
        let segment = |range: &Range| CopySegment {
            counts_destination: true,
            source: index(range.source),
            destination: index(range.destination),
            blocks: range.sectors as u16,
            source_lba: range.from,
            destination_lba: range.to,
        };
        let list = emit_copy(0, 3, &targets, &ranges.iter().map(segment).collect::<Vec<_>>());
        let l = (list.len() as u32).to_be_bytes();
        let cdb = [0x83, 0, 0, 0, 0, 0, 0, 0, 0, 0, l[0], l[1], l[2], l[3], 0, 0];
        let mut request = self.request(sent_to, &cdb);
        request.data_out = Payload::from(list);
        request
    }
}

/// Shortens ranges that read what one of the others writes, and write what one reads: where ranges of one command form a
/// circle, each sector may be any of those along the way around and around, until it is read.
fn shorten_circles(ranges: &mut [Range]) {
    for index in 0..ranges.len() {
        let range = ranges[index];
        let others =
            || ranges.iter().enumerate().filter(|&(other, _)| other != index).map(|(_, range)| range);
        if others().any(|other| range.reads_from(other)) && others().any(|other| other.reads_from(&range)) {
            ranges[index].sectors = range.sectors.min(OVERLAPPING_BLOCKS_MAX * SECTORS_PER_BLOCK);
        }
    }
}

fn count_range(range: &Range) {
    let whole = |sectors: u64| sectors.is_multiple_of(SECTORS_PER_BLOCK);
    match whole(range.from) && whole(range.to) && whole(range.sectors) {
        true => Seen::Whole.seen(),
        false => Seen::Partial.seen(),
    }
    if range.source == range.destination {
        Seen::Within.seen();
        if range.overlaps() {
            Seen::Overlapping.seen();
        }
    }
}

/// What a status means; `None`: try again.
fn copy_answer(completion: &Completion, may_be_refused: bool) -> Option<Answer> {
    match (completion.status, sense(completion)) {
        (0x00, _) => Some(Answer::Done),
        // copied in part: a second time it would not read what the first has read
        (TASK_ABORTED, _) => Some(Answer::Aborted),
        (0x08 | 0x18 | 0x28, _) | (0x02, (0x6 | 0x2, ..)) => None,
        (0x02, (0xA, 0x0D, 0x02)) if may_be_refused => {
            Seen::Interrupted.seen();
            Some(Answer::Miscompare)
        }
        (0x02, (0xA, 0x0D, 0x01)) if may_be_refused => Some(Answer::Miscompare),
        (0x02, (0xB, ..)) => Some(Answer::Lost),
        (status, sense) => Some(Answer::Failed(format!("status {status:#04x}, sense {sense:x?}"))),
    }
}

/// The NAA name among the designators of a device identification page.
fn naa(page: &[u8]) -> Option<[u8; NAA_BYTES]> {
    let mut rest = page.get(4..)?;
    while rest.get(1)? & 0xF != 3 || usize::from(*rest.get(3)?) != NAA_BYTES {
        rest = rest.get(4 + usize::from(*rest.get(3)?)..)?;
    }
    rest.get(4..4 + NAA_BYTES)?.try_into().ok()
}

const _: () = assert!(BLOCKS_MAX * SECTORS_PER_BLOCK <= u16::MAX as u64);

#[cfg(test)]
mod tests {
    use super::*;

    /// Seed 1795420202002127 swapped two ranges of hundreds of blocks with an offset, and its oracle never finished.
    #[test]
    fn ranges_of_a_circle_are_short() {
        let range = |source, from, destination, to| Range { source, from, destination, to, sectors: 4_000 };
        let (there, back, other) = (range(1, 0, 2, 0), range(2, 8, 1, 0), range(2, 0, 3, 0));
        let lengths = |mut ranges: Vec<Range>| {
            shorten_circles(&mut ranges);
            ranges.iter().map(|range| range.sectors).collect::<Vec<_>>()
        };
        assert_eq!(lengths(vec![there, back]), [48, 48]);
        assert_eq!(lengths(vec![there, other, range(3, 0, 1, 0)]), [48, 48, 48]);
        assert_eq!(lengths(vec![there, other]), [4_000, 4_000], "a chain has an end");
        assert_eq!(lengths(vec![range(1, 0, 1, 8)]), [4_000], "drawn short by itself");
    }
}
