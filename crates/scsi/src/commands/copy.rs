//! EXTENDED COPY (LID1) and RECEIVE COPY RESULTS (SPC-4 §6.4, §6.18): block-to-block copies between the logical units
//! that the initiator sees, piece by piece.
//!
//! The whole parameter list is checked before anything is copied. A copy may access only what its initiator
//! may access. A copy that fails ends with COPY ABORTED; the blocks that were already copied stay.

use base::Lba;
use base::limits::{
    COPIES_REMEMBERED_MAX, COPY_BY_REFERENCE_BYTES_MIN, COPY_DESCRIPTORS_BYTES_MAX, COPY_PIECE_BYTES,
    COPY_SEGMENT_BYTES_MAX, COPY_SEGMENTS_MAX, COPY_TARGETS_MAX,
};
use block::{BlockOutput, BlockRequest, BlockResult, Payload};
use bytes::Bytes;
use wire::scsi::Status;
use wire::scsi::copy::{
    COPY_HEADER_BYTES, CopyHeader, CopyLimits, CopySegment, CopyTarget, SEGMENT_BLOCK_TO_BLOCK,
    SEGMENT_DESCRIPTOR_BYTES, TARGET_DESCRIPTOR_BYTES, TARGET_IDENTIFICATION, emit_copy_status,
    emit_failed_segment,
};

use crate::call::Call;
use crate::fault::Fault;
use crate::nexus::Nexus;
use crate::response::{Continuation, Pending, Response, Step};

/// A logical unit that the initiator sees, as the source or destination of a copy.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Peer {
    pub block_bytes: u32,
    pub blocks: u64,
    /// The initiator may read, and write, it now: protection and reservations.
    pub may_read: bool,
    pub may_write: bool,
}

/// NAA designator of a logical unit.
pub type Naa = [u8; 16];

const LIMITS: CopyLimits = CopyLimits {
    targets_max: COPY_TARGETS_MAX as u16,
    segments_max: COPY_SEGMENTS_MAX as u16,
    descriptors_bytes_max: COPY_DESCRIPTORS_BYTES_MAX as u32,
    segment_bytes_max: COPY_SEGMENT_BYTES_MAX as u32,
    concurrent_max: COPIES_REMEMBERED_MAX as u8,
    granularity: 12,
};

/// The body of the third-party copy page.
pub(crate) fn page() -> Vec<u8> {
    LIMITS.emit_page(&[(0x83, &[0x00]), (0x84, &[0x00, 0x03, 0x04])])
}

/// A stretch to copy; bytes are whole blocks of both units.
#[derive(Clone, Copy, Debug)]
struct Segment {
    source: Naa,
    source_lba: u64,
    source_block_bytes: u32,
    destination: Naa,
    destination_lba: u64,
    destination_block_bytes: u32,
    bytes: u64,
}

/// A stretch that may be copied without its data, inside a pool.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CopyStretch {
    pub source: Naa,
    pub source_lba: u64,
    pub destination: Naa,
    pub destination_lba: u64,
    pub bytes: u64,
}

/// Part of a stretch, in whole blocks of both units.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CopyPart {
    pub offset_bytes: u64,
    pub bytes: u64,
}

impl Segment {
    fn stretch(&self) -> CopyStretch {
        CopyStretch {
            source: self.source,
            source_lba: self.source_lba,
            destination: self.destination,
            destination_lba: self.destination_lba,
            bytes: self.bytes,
        }
    }

    fn part(&self, part: CopyPart) -> Segment {
        Segment {
            source_lba: self.source_lba + part.offset_bytes / u64::from(self.source_block_bytes),
            destination_lba: self.destination_lba
                + part.offset_bytes / u64::from(self.destination_block_bytes),
            bytes: part.bytes,
            ..*self
        }
    }
}

/// A copy at work.
#[derive(Debug)]
pub(crate) struct Job {
    list_id: Option<u8>,
    /// What is still to be copied, last segment first.
    left: Vec<Segment>,
    /// What is still to be copied of the current segment as data, last part first. `None`: it has not begun.
    parts: Option<Vec<Segment>>,
    segments_done: u16,
    bytes_done: u64,
    /// How much of the current segment's beginning is being written.
    writing: u64,
}

/// What a nexus remembers of a copy with a list identifier.
#[derive(Clone, Debug)]
pub(crate) struct Record {
    list_id: u8,
    segments: u16,
    bytes: u64,
    /// `None` while it is at work; then its status, and sense data where it failed.
    end: Option<(Status, Option<Bytes>)>,
}

pub(crate) fn extended_copy(call: &mut Call<'_>) -> Result<Step, Fault> {
    let length = u32::from_be_bytes([call.cdb[10], call.cdb[11], call.cdb[12], call.cdb[13]]) as usize;
    if length == 0 {
        call.data_out_bytes = Some(0);
        return call.good();
    }
    if !(COPY_HEADER_BYTES..=COPY_HEADER_BYTES + COPY_DESCRIPTORS_BYTES_MAX).contains(&length) {
        return Err(Fault::ParameterListLength);
    }
    let list = call.take_data_out(length)?.to_vec();
    let header = CopyHeader::parse(&list).ok_or(Fault::ParameterListLength)?;
    let segments = check(call, &header, &list[COPY_HEADER_BYTES..])?;
    let list_id = match header.list_id_usage {
        0 => Some(header.list_id),
        2 => None,
        3 if header.list_id == 0 => None,
        _ => return Err(wrong(if header.list_id_usage == 3 { 0 } else { 1 })),
    };
    if let Some(list_id) = list_id {
        call.nexus.remember_copy(list_id)?;
    }
    let mut left = segments;
    left.reverse();
    let job = Job { list_id, left, parts: None, segments_done: 0, bytes_done: 0, writing: 0 };
    let data_out_bytes = call.data_out_bytes.unwrap_or(0);
    Ok(next(call.nexus, Box::new(job), data_out_bytes))
}

fn wrong(byte: usize) -> Fault {
    Fault::FieldInParameters { byte: byte as u16, bit: None }
}

/// The segments, every one of which can be carried out as things are now.
fn check(call: &Call<'_>, header: &CopyHeader, descriptors: &[u8]) -> Result<Vec<Segment>, Fault> {
    if header.inline_bytes != 0 {
        return Err(Fault::InlineData);
    }
    let (targets, rest) =
        descriptors.split_at_checked(header.targets_bytes).ok_or(Fault::ParameterListLength)?;
    let segments = rest.get(..header.segments_bytes).ok_or(Fault::ParameterListLength)?;
    if rest.len() != segments.len() || !targets.len().is_multiple_of(TARGET_DESCRIPTOR_BYTES) {
        return Err(Fault::ParameterListLength);
    }
    if targets.len() / TARGET_DESCRIPTOR_BYTES > COPY_TARGETS_MAX {
        return Err(Fault::TooManyCopyTargets);
    }
    let targets = targets
        .chunks_exact(TARGET_DESCRIPTOR_BYTES)
        .enumerate()
        .map(|(index, bytes)| check_target(call, COPY_HEADER_BYTES + index * TARGET_DESCRIPTOR_BYTES, bytes))
        .collect::<Result<Vec<_>, _>>()?;
    // other descriptors have other lengths: types are looked at one by one
    let mut list = Vec::new();
    let mut rest = segments;
    while let Some(&code) = rest.first() {
        if code != SEGMENT_BLOCK_TO_BLOCK {
            return Err(Fault::UnsupportedCopySegment);
        }
        let (bytes, next) = rest.split_first_chunk().ok_or(Fault::ParameterListLength)?;
        if list.len() == COPY_SEGMENTS_MAX {
            return Err(Fault::TooManyCopySegments);
        }
        if usize::from(u16::from_be_bytes([bytes[2], bytes[3]])) + 4 != SEGMENT_DESCRIPTOR_BYTES {
            return Err(wrong(COPY_HEADER_BYTES + header.targets_bytes + segments.len() - rest.len() + 2));
        }
        list.push(CopySegment::parse(bytes));
        rest = next;
    }
    let segments = list.iter().map(|segment| check_segment(&targets, segment));
    Ok(segments.collect::<Result<Vec<_>, _>>()?.into_iter().filter(|segment| segment.bytes > 0).collect())
}

/// What a target descriptor names, where the initiator sees that.
fn check_target(call: &Call<'_>, at: usize, bytes: &[u8]) -> Result<Option<(Naa, Peer)>, Fault> {
    if bytes[0] != TARGET_IDENTIFICATION {
        return Err(Fault::UnsupportedCopyTarget);
    }
    let target = CopyTarget::parse(bytes.try_into().expect("a whole descriptor"));
    if target.unit_id_type != 0 {
        return Err(wrong(at + 1));
    }
    let naa = target.naa.filter(|_| !target.null);
    let own = |naa: &Naa| (*naa == call.unit.identity.naa).then(|| call.unit.peer(call.nexus));
    Ok(naa.and_then(|naa| own(&naa).or_else(|| (call.peers)(&naa)).map(|peer| (naa, peer))))
}

fn check_segment(targets: &[Option<(Naa, Peer)>], segment: &CopySegment) -> Result<Segment, Fault> {
    let unit = |index: u16| targets.get(usize::from(index)).copied().flatten().ok_or(Fault::CopyUnreachable);
    let ((source, from), (destination, to)) = (unit(segment.source)?, unit(segment.destination)?);
    let counted = if segment.counts_destination { to.block_bytes } else { from.block_bytes };
    let bytes = u64::from(segment.blocks) * u64::from(counted);
    if bytes > COPY_SEGMENT_BYTES_MAX as u64
        || !bytes.is_multiple_of(u64::from(from.block_bytes))
        || !bytes.is_multiple_of(u64::from(to.block_bytes))
    {
        return Err(Fault::CopyRange);
    }
    let within = |peer: &Peer, lba: u64| {
        lba <= peer.blocks && bytes / u64::from(peer.block_bytes) <= peer.blocks - lba
    };
    if !within(&from, segment.source_lba) || !within(&to, segment.destination_lba) {
        return Err(Fault::CopyRange);
    }
    if !from.may_read || !to.may_write {
        return Err(Fault::CopyFailed);
    }
    Ok(Segment {
        source,
        source_lba: segment.source_lba,
        source_block_bytes: from.block_bytes,
        destination,
        destination_lba: segment.destination_lba,
        destination_block_bytes: to.block_bytes,
        bytes,
    })
}

/// Reads the next piece, or ends the copy.
fn next(nexus: &mut Nexus, mut job: Box<Job>, data_out_bytes: usize) -> Step {
    loop {
        let Some(segment) = job.left.last() else {
            let response = Response::good(data_out_bytes);
            job.end(nexus, &response);
            return Step::Done(response);
        };
        match &job.parts {
            None if segment.bytes >= COPY_BY_REFERENCE_BYTES_MIN => {
                let stretch = segment.stretch();
                return Step::Copy(stretch, Continuation { data_out_bytes, pending: Pending::Copy(job) });
            }
            None => job.parts = Some(vec![*segment]),
            Some(parts) => match parts.last() {
                Some(part) => {
                    let bytes = part.bytes.min(COPY_PIECE_BYTES as u64);
                    let blocks = (bytes / u64::from(part.source_block_bytes)) as u32;
                    let request = BlockRequest::Read { lba: Lba(part.source_lba), blocks };
                    let source = part.source;
                    let pending = Pending::Copy(job);
                    return Step::BlockOf(
                        Box::new(source),
                        request,
                        Continuation { data_out_bytes, pending },
                    );
                }
                None => {
                    job.left.pop();
                    job.parts = None;
                    job.segments_done += 1;
                }
            },
        }
    }
}

/// A stretch has been copied by reference but for these parts; `None`: not at all.
pub(crate) fn on_stretch(
    nexus: &mut Nexus,
    mut job: Box<Job>,
    data_out_bytes: usize,
    left: Option<Vec<CopyPart>>,
) -> Step {
    let segment = *job.left.last().expect("it is being copied");
    let parts: Vec<Segment> = match left {
        Some(left) => left.into_iter().rev().map(|part| segment.part(part)).collect(),
        None => vec![segment],
    };
    job.bytes_done += segment.bytes - parts.iter().map(|part| part.bytes).sum::<u64>();
    job.parts = Some(parts);
    next(nexus, job, data_out_bytes)
}

/// A piece has been read, or written, or neither.
pub(crate) fn on_piece(
    nexus: &mut Nexus,
    mut job: Box<Job>,
    data_out_bytes: usize,
    result: BlockResult,
) -> Step {
    match result {
        Ok(BlockOutput::Data(data)) => {
            let segment = job.part();
            let (destination, lba) = (segment.destination, Lba(segment.destination_lba));
            job.writing = data.len() as u64;
            let request = BlockRequest::Write { lba, data, durable: false };
            let pending = Pending::Copy(job);
            Step::BlockOf(Box::new(destination), request, Continuation { data_out_bytes, pending })
        }
        Ok(_) => {
            job.written();
            next(nexus, job, data_out_bytes)
        }
        Err(block::BlockError::Aborted) => {
            job.abandon(nexus);
            let status = Status::TaskAborted;
            Step::Done(Response { status, sense: None, data_in: Payload::new(), data_out_bytes })
        }
        Err(_) => {
            let mut sense = Fault::CopyFailed.sense();
            sense.information = Some(u64::from(job.segments_done));
            let response = Response::check(sense, nexus.sense_format(), data_out_bytes);
            job.end(nexus, &response);
            Step::Done(response)
        }
    }
}

impl Job {
    /// The part whose pieces are being copied.
    fn part(&mut self) -> &mut Segment {
        self.parts.as_mut().and_then(|parts| parts.last_mut()).expect("it is being copied")
    }

    fn written(&mut self) {
        let writing = self.writing;
        self.bytes_done += writing;
        let part = self.part();
        part.source_lba += writing / u64::from(part.source_block_bytes);
        part.destination_lba += writing / u64::from(part.destination_block_bytes);
        part.bytes -= writing;
        if part.bytes == 0 {
            self.parts.as_mut().and_then(Vec::pop);
        }
    }

    fn end(&self, nexus: &mut Nexus, response: &Response) {
        let Some(record) = self.list_id.and_then(|list_id| nexus.copy_mut(list_id)) else { return };
        (record.segments, record.bytes) = (self.segments_done, self.bytes_done);
        record.end = Some((response.status, response.sense.clone()));
    }

    /// The command was aborted: nobody will ask for its results.
    pub(crate) fn abandon(&self, nexus: &mut Nexus) {
        if let Some(list_id) = self.list_id {
            nexus.forget_copy(list_id);
        }
    }
}

impl Nexus {
    fn copy_mut(&mut self, list_id: u8) -> Option<&mut Record> {
        self.copies.iter_mut().find(|record| record.list_id == list_id)
    }

    fn forget_copy(&mut self, list_id: u8) {
        self.copies.retain(|record| record.list_id != list_id);
    }

    /// Makes room for a copy's results; those of the oldest copy that has ended go.
    fn remember_copy(&mut self, list_id: u8) -> Result<(), Fault> {
        if self.copies.iter().any(|record| record.list_id == list_id && record.end.is_none()) {
            return Err(Fault::CopyInProgress);
        }
        self.forget_copy(list_id);
        if self.copies.len() == COPIES_REMEMBERED_MAX {
            let oldest = self.copies.iter().position(|record| record.end.is_some());
            self.copies.remove(oldest.ok_or(Fault::NoRoomForCopy)?);
        }
        self.copies.push(Record { list_id, segments: 0, bytes: 0, end: None });
        Ok(())
    }
}

fn answer(call: &Call<'_>, data: Vec<u8>) -> Result<Step, Fault> {
    let allocation = u32::from_be_bytes([call.cdb[10], call.cdb[11], call.cdb[12], call.cdb[13]]);
    call.parameters(data, allocation as usize)
}

/// The copy that the CDB's list identifier names.
fn record<'a>(call: &'a Call<'_>) -> Result<&'a Record, Fault> {
    call.nexus.copies.iter().find(|record| record.list_id == call.cdb[2]).ok_or(Fault::cdb(2))
}

pub(crate) fn copy_status(call: &mut Call<'_>) -> Result<Step, Fault> {
    let record = record(call)?;
    let error = record.end.as_ref().map(|(status, _)| *status != Status::Good);
    answer(call, emit_copy_status(error, record.segments, record.bytes))
}

pub(crate) fn operating_parameters(call: &mut Call<'_>) -> Result<Step, Fault> {
    answer(call, LIMITS.emit_operating_parameters())
}

/// Once told, forgotten (SPC-4 §6.18.5).
pub(crate) fn failed_segment(call: &mut Call<'_>) -> Result<Step, Fault> {
    let record = record(call)?;
    let Some((status, Some(sense))) = record.end.clone() else { return Err(Fault::cdb(2)) };
    let list_id = record.list_id;
    call.nexus.forget_copy(list_id);
    answer(call, emit_failed_segment(status.code(), &sense))
}

const _: () = assert!(COPY_PIECE_BYTES.is_multiple_of(4096));
