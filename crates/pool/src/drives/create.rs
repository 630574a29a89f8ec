//! Whole pools: what a drive holds, making a pool, and claiming it at a start.

use base::limits::{DRIVES_MAX, SHARDS_MAX};
use base::{AlignedBuffer, ArrayId, BLOCK_BYTES, DriveId, Epoch, PoolId, Sequence};
use env::{DriveHandle, DriveInfo, IoError};
use task::{Io, join_all};

use crate::counters::DriveErrors;
use crate::decision::Decision;
use crate::drives::labels::{chunks_of, erase_labels, read_label};
use crate::drives::membership::{Heads, Member, Membership};
use crate::error::{Contradiction, PoolError};
use crate::format::label::{CHUNK_BYTES_MAX, CHUNK_BYTES_MIN, DriveState, Label, LabelDrive, NAME_BYTES_MAX};
use crate::format::root::Root;
use crate::format::{
    FORMAT_VERSION, FORMAT_VERSION_MIN, Features, FormatError, LABEL_REGION_BYTES, root_offset_bytes,
};
use crate::geometry::protection::Protection;

/// The generation of the first labels of a new pool. Labels of the next generation follow only when every drive has one
/// of these. A pool without a label of the next generation is not complete yet.
const FIRST_GENERATION: u64 = 1;

/// The parameters of a new pool.
#[derive(Clone, Debug)]
pub struct CreateOptions {
    pub array: ArrayId,
    pub name: String,
    pub protection: Protection,
    pub width: Option<u8>,
    pub lanes: u16,
    /// If `None`, chosen by the size of the smallest drive; a power of two from 64 KiB to 256 MiB.
    pub chunk_bytes: Option<u64>,
    pub heads: Heads,
    /// Smallest accepted drive; [`base::limits::DRIVE_BYTES_MIN`] except in tests.
    pub drive_bytes_min: u64,
}

/// About a thousand chunks for the smallest drive.
fn chunk_bytes_for(smallest_bytes: u64) -> u64 {
    let wanted = (smallest_bytes / 1024).max(1);
    (1 << wanted.ilog2()).clamp(1 << 20, CHUNK_BYTES_MAX)
}

/// A pool that can be made: everything that can be checked without writing has been checked. There is no other way to
/// make one, so a dry run and the real command make the same checks.
#[derive(Debug)]
pub struct PlannedPool {
    membership: Membership,
    drives: Vec<(DriveHandle, DriveInfo)>,
}

impl PlannedPool {
    pub fn check(
        io: &Io,
        drives: Vec<(DriveHandle, DriveInfo)>,
        options: &CreateOptions,
    ) -> Result<PlannedPool, PoolError> {
        let membership = plan(io, &drives, options)?;
        Ok(PlannedPool { membership, drives })
    }

    /// Makes the pool and claims it. The caller must make sure that nobody needs the content of the drives.
    pub async fn make(self, io: &Io) -> Result<Membership, PoolError> {
        let PlannedPool { mut membership, drives } = self;
        // nothing of an older pool remains, whatever happens next
        for (handle, info) in &drives {
            let erased = erase_labels(io, *handle).await;
            erased.map_err(|error| PoolError::Io { path: info.path.clone(), error })?;
        }
        write_first_roots(io, &membership, &drives).await?;
        membership.generation = FIRST_GENERATION;
        membership.write_first_labels(io).await?;
        // from the first copy of the second label on, the pool exists
        membership.write_labels(io).await.map_err(|_| PoolError::TooManyFailed)?;
        Ok(membership)
    }
}

/// Makes a pool, and claims it.
pub async fn create(
    io: &Io,
    drives: Vec<(DriveHandle, DriveInfo)>,
    options: CreateOptions,
) -> Result<Membership, PoolError> {
    PlannedPool::check(io, drives, &options)?.make(io).await
}

fn plan(
    io: &Io,
    drives: &[(DriveHandle, DriveInfo)],
    options: &CreateOptions,
) -> Result<Membership, PoolError> {
    let min = usize::from(options.protection.width_min());
    if drives.len() < min || drives.len() > DRIVES_MAX {
        return Err(PoolError::Drives { have: drives.len(), min, max: DRIVES_MAX });
    }
    let width = options.protection.width(drives.len(), options.width).map_err(PoolError::Width)?;
    if options.name.is_empty() || options.name.len() > NAME_BYTES_MAX {
        return Err(PoolError::Name);
    }
    if !(1..=SHARDS_MAX).contains(&usize::from(options.lanes)) {
        return Err(PoolError::Lanes);
    }
    for (_, info) in drives {
        if info.size_bytes < options.drive_bytes_min {
            let (path, size_bytes) = (info.path.clone(), info.size_bytes);
            return Err(PoolError::TooSmall { path, size_bytes, min_bytes: options.drive_bytes_min });
        }
    }
    let smallest = drives.iter().map(|(_, info)| info.size_bytes).min().expect("there are drives");
    let chunk_bytes = options.chunk_bytes.unwrap_or_else(|| chunk_bytes_for(smallest));
    assert!(chunk_bytes.is_power_of_two() && (CHUNK_BYTES_MIN..=CHUNK_BYTES_MAX).contains(&chunk_bytes));
    let member = |(handle, info): &(DriveHandle, DriveInfo)| Member {
        id: DriveId(io.random_u128()),
        path: info.path.clone(),
        handle: Some(*handle),
        state: DriveState::Online,
        chunks: chunks_of(info.size_bytes, chunk_bytes),
        since: Epoch(1),
        errors: DriveErrors::default(),
        counted: DriveErrors::default(),
        returned: false,
        slow: false,
        leaving: false,
        label_slot: 1,
    };
    // the oldest format that can say what the pool uses
    let (version, features) = match options.heads {
        Heads::Two => (FORMAT_VERSION, Features::TWO_HEADS),
        Heads::One | Heads::OneOfFormerTwo => (FORMAT_VERSION_MIN, Features::NONE),
    };
    Ok(Membership {
        array: options.array,
        pool: PoolId(io.random_u128()),
        name: options.name.clone(),
        protection: options.protection,
        width,
        lanes: options.lanes,
        chunk_bytes,
        created_ms: io.wall_clock_ms(),
        epoch: Epoch(1),
        generation: 0,
        settled: 0,
        version,
        features,
        members: drives.iter().map(member).collect(),
    })
}

/// The size of the area at the end of drives that holds copies of partition tables and marks of software RAID.
const END_MARKS_BYTES: u64 = 1 << 20;

/// Erases everything that identifies a drive's content, at its beginning and its end. The bytes between remain, but
/// nothing says what they were.
pub async fn wipe(io: &Io, drive: DriveHandle, size_bytes: u64) -> Result<(), IoError> {
    let block = BLOCK_BYTES as u64;
    let blocks = size_bytes / block;
    let beginning = blocks.min(LABEL_REGION_BYTES / block);
    let end = (blocks - beginning).min(END_MARKS_BYTES / block);
    for (first, count) in [(0, beginning), (blocks - end, end)].into_iter().filter(|(_, count)| *count > 0) {
        let zeros = AlignedBuffer::zeroed(count as usize).into_bytes();
        io.drive_write(drive, first * block, vec![zeros], true).await?;
    }
    Ok(())
}

/// An empty checkpoint for every lane, on every drive.
async fn write_first_roots(
    io: &Io,
    membership: &Membership,
    drives: &[(DriveHandle, DriveInfo)],
) -> Result<(), PoolError> {
    for lane in 0..membership.lanes {
        let root = Root {
            pool: membership.pool,
            lane,
            epoch: membership.epoch,
            generation: 1,
            sequence: Sequence(0),
            end: Root::NO_END,
            table_bytes: 0,
            table: Vec::new(),
            segments: Vec::new(),
        };
        let content = AlignedBuffer::copied_from(&root.emit()).into_bytes();
        let offset_bytes = root_offset_bytes(usize::from(lane), 1);
        let write = |handle: DriveHandle| io.drive_write(handle, offset_bytes, vec![content.clone()], true);
        let results = join_all(drives.iter().map(|(handle, _)| write(*handle))).await;
        for ((_, info), result) in drives.iter().zip(results) {
            result.map_err(|error| PoolError::Io { path: info.path.clone(), error })?;
        }
    }
    Ok(())
}

/// A drive with a readable label, and the slot that holds its newest label.
struct Found<'a> {
    drive: &'a (DriveHandle, DriveInfo),
    slot: u8,
    label: Label,
}

/// Decides which of `drives` make up the pool, and claims its next epoch. The caller passes all drives that carry a
/// label of one pool; the newest label decides which of them belong to it. Another process holds `held` more drives.
pub async fn claim(
    io: &Io,
    drives: Vec<(DriveHandle, DriveInfo)>,
    held: usize,
    heads: Heads,
) -> Result<Membership, PoolError> {
    let found = join_all(drives.iter().map(|(handle, _)| read_label(io, *handle))).await;
    let mut labels: Vec<Found> = Vec::new();
    for (drive, found) in drives.iter().zip(found) {
        match found {
            Ok((slot, label)) => labels.push(Found { drive, slot, label }),
            Err(FormatError::FutureVersion(version)) => {
                return Err(PoolError::FutureVersion { path: drive.1.path.clone(), version });
            }
            Err(FormatError::UnknownFeatures(features)) => {
                return Err(PoolError::UnknownFeatures { path: drive.1.path.clone(), features });
            }
            Err(FormatError::Damaged | FormatError::Foreign) => {}
        }
    }
    let newest = labels.iter().map(|found| &found.label).max_by_key(|label| (label.epoch, label.generation));
    let newest = newest.ok_or(PoolError::NoLabel)?.clone();
    if newest.epoch == Epoch(1) && newest.generation <= FIRST_GENERATION {
        Decision::ClaimUnfinished.taken();
        return Err(PoolError::Unfinished);
    }
    if heads == Heads::One && newest.features.has(Features::TWO_HEADS) {
        return Err(PoolError::OfTwoHeads);
    }
    labels.retain(|found| found.label.pool == newest.pool);
    check_chunks(&newest, &labels)?;
    if labels.iter().any(|found| found.label.generation != newest.generation) {
        Decision::ClaimLabelsDiffer.taken();
    }
    let highest = labels.iter().map(|found| found.label.epoch).max().expect("there is a label");
    let mut membership = join_members(&newest, &labels);
    membership.epoch = Epoch(highest.0 + 1);
    membership.features = membership.features_for(heads);
    for member in &mut membership.members {
        if member.handle.is_none() && member.state.is_readable() {
            Decision::ClaimMissing.taken();
            member.state = DriveState::Missing;
            member.since = membership.epoch;
        }
        if member.returned {
            member.since = membership.epoch;
        }
    }
    if !membership.is_serviceable() {
        Decision::ClaimRefusedMissing.taken();
        let lost = membership.members.iter().filter(|member| member.state.is_lost());
        return Err(PoolError::TooManyMissing {
            missing: lost.map(|member| member.id).collect(),
            allowed: usize::from(membership.protection.parity()),
        });
    }
    if held + usize::from(membership.protection.parity()) >= membership.members.len() {
        return Err(PoolError::Held { held });
    }
    check_outdated(&membership)?;
    // the second label says that every drive has the first: from then on an older state is recognized
    for _ in 0..2 {
        membership.write_labels(io).await.map_err(|_| PoolError::TooManyFailed)?;
    }
    Ok(membership)
}

/// Maximum length of a chunk list that is allocated on a label's word alone: for a present drive, and for a missing one.
const CHUNKS_BELIEVED: u32 = 1 << 20;
const CHUNKS_BELIEVED_MISSING: u32 = 1 << 26;

/// Compares the size that a label gives for a drive with the drive itself, before memory is allocated for its chunks.
fn check_chunks(newest: &Label, labels: &[Found]) -> Result<(), PoolError> {
    let most = |known: &LabelDrive| {
        let here = labels.iter().find(|found| found.label.drive == known.id);
        let own = here.map(|found| chunks_of(found.drive.1.size_bytes, newest.chunk_bytes));
        own.map_or(CHUNKS_BELIEVED_MISSING, |own| own.max(CHUNKS_BELIEVED))
    };
    match newest.drives.iter().all(|known| known.chunks <= most(known)) {
        true => Ok(()),
        false => Err(PoolError::Contradiction { lane: 0, what: Contradiction::ChunksBeyondDrive }),
    }
}

/// Drives that missed writes cannot confirm what was acknowledged meanwhile: together with the missing drives, they may
/// be at most as many as the protection covers.
fn check_outdated(membership: &Membership) -> Result<(), PoolError> {
    let outdated: Vec<DriveId> =
        membership.members.iter().filter(|member| member.returned).map(|member| member.id).collect();
    let (missing, allowed) = (membership.lost(), usize::from(membership.protection.parity()));
    if outdated.is_empty() || outdated.len() + missing <= allowed {
        return Ok(());
    }
    Decision::ClaimRefusedOutdated.taken();
    Err(PoolError::TooManyOutdated { outdated, missing, allowed })
}

/// The newest label's drives, joined with those that are here. A drive that was missing and is here again is online
/// again: every block is checked against its checksum, so missed writes are noticed and rewritten.
fn join_members(newest: &Label, labels: &[Found]) -> Membership {
    let member = |known: &LabelDrive| {
        let here = labels.iter().find(|found| found.label.drive == known.id);
        let here = here.filter(|_| known.state != DriveState::Removed);
        let outdated =
            known.state.is_readable() && here.is_some_and(|found| found.label.generation < newest.settled);
        let was_missing = here.is_some() && known.state == DriveState::Missing;
        for (decision, is_so) in [(Decision::ClaimReturned, was_missing), (Decision::ClaimOutdated, outdated)]
        {
            if is_so {
                decision.taken();
            }
        }
        let returned = was_missing || outdated;
        Member {
            id: known.id,
            path: here.map(|found| found.drive.1.path.clone()).unwrap_or_default(),
            handle: here.map(|found| found.drive.0),
            state: if was_missing { DriveState::Online } else { known.state },
            slow: false,
            leaving: false,
            chunks: known.chunks,
            since: known.since,
            errors: known.errors,
            counted: DriveErrors::default(),
            returned,
            label_slot: here.map_or(1, |found| found.slot),
        }
    };
    Membership {
        array: newest.array,
        pool: newest.pool,
        name: newest.pool_name.clone(),
        protection: newest.protection,
        width: newest.width,
        lanes: newest.lanes,
        chunk_bytes: newest.chunk_bytes,
        created_ms: newest.created_ms,
        epoch: newest.epoch,
        generation: newest.generation,
        settled: newest.settled,
        version: newest.version,
        features: newest.features,
        members: newest.drives.iter().map(member).collect(),
    }
}
