//! The members of a pool and their states: the pool's label, joined with the drives that are present.

use base::limits::DRIVES_MAX;
use base::{ArrayId, BLOCK_BYTES, DriveId, Epoch, PoolId};
use env::{DriveHandle, DriveInfo, IoError};
use task::{Io, join_all};

use crate::counters::DriveErrors;
use crate::decision::Decision;
use crate::drives::departure::{Departure, lost_as};
use crate::drives::full::NO_SPACE_RETRY;
use crate::drives::labels::{chunks_of, erase_labels, read_label};
use crate::error::PoolError;
use crate::format::label::{DriveState, Label, LabelDrive};
use crate::format::table::Column;
use crate::format::{FORMAT_VERSION, Features, LABEL_REGION_BYTES, label_offset_bytes};
use crate::geometry::protection::Protection;

/// A drive of the pool.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Member {
    pub id: DriveId,
    /// Empty if the drive is not here.
    pub path: String,
    pub handle: Option<DriveHandle>,
    pub state: DriveState,
    pub chunks: u32,
    /// The epoch in which the state last changed.
    pub since: Epoch,
    /// Errors counted before this start.
    pub errors: DriveErrors,
    /// Errors counted since this start; the next label records the sum.
    pub counted: DriveErrors,
    /// The drive was missing at the last start and is here again, or holds an older state than it should: it may lack
    /// what was written meanwhile.
    pub returned: bool,
    /// The drive is being emptied because it is slow: it is read only if its data cannot be rebuilt.
    pub slow: bool,
    /// The drive is about to be taken out for too many errors: it is used still, and does not count as protection.
    pub leaving: bool,
    /// Which of its two slots holds the drive's newest label. The next label goes to the other slot, whatever its
    /// generation: the drive may have missed the previous label, and an interrupted write must leave the drive's newest
    /// label intact.
    pub label_slot: u8,
}

/// Which heads have the array of a pool.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Heads {
    One,
    /// The array had two heads; this one goes on alone.
    OneOfFormerTwo,
    Two,
}

/// An opened pool: cheap to clone, and sent to every shard.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Membership {
    pub array: ArrayId,
    pub pool: PoolId,
    pub name: String,
    pub protection: Protection,
    pub width: u8,
    pub lanes: u16,
    pub chunk_bytes: u64,
    pub created_ms: u64,
    pub epoch: Epoch,
    pub generation: u64,
    /// The newest label generation that has reached every drive that was online then.
    pub settled: u64,
    /// The version of its labels, and what it uses.
    pub version: u16,
    pub features: Features,
    pub members: Vec<Member>,
}

/// Too few drives remain to continue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TooFewDrives;

impl Membership {
    /// Rows of a chunk.
    pub fn rows(&self) -> usize {
        (self.chunk_bytes / BLOCK_BYTES as u64) as usize
    }

    /// Where a row of a column is on its drive.
    pub(crate) fn offset_bytes(&self, column: Column, row: usize) -> u64 {
        LABEL_REGION_BYTES + u64::from(column.chunk) * self.chunk_bytes + row as u64 * BLOCK_BYTES as u64
    }

    pub fn online(&self) -> Vec<bool> {
        self.members.iter().map(|member| member.state == DriveState::Online).collect()
    }

    /// Drives that hold data of the pool and cannot be read.
    pub fn lost(&self) -> usize {
        self.members.iter().filter(|member| member.state.is_lost()).count()
    }

    /// Drives that are lost, or are about to be taken out.
    pub(crate) fn lost_or_leaving(&self) -> usize {
        self.members.iter().filter(|member| member.state.is_lost() || member.leaving).count()
    }

    /// Whether no more drives are lost than the protection allows.
    pub fn is_serviceable(&self) -> bool {
        self.lost() <= usize::from(self.protection.parity())
    }

    /// The drive of a column, if it can be used.
    pub fn handle(&self, drive: u8) -> Option<DriveHandle> {
        let member = self.members.get(usize::from(drive))?;
        member.handle.filter(|_| member.state.is_readable())
    }

    fn label(&self, member: &Member) -> Label {
        let drive = |member: &Member| LabelDrive {
            id: member.id,
            state: member.state,
            chunks: member.chunks,
            since: member.since,
            errors: member.errors.plus(member.counted),
        };
        Label {
            array: self.array,
            pool: self.pool,
            pool_name: self.name.clone(),
            drive: member.id,
            generation: self.generation,
            epoch: self.epoch,
            protection: self.protection,
            width: self.width,
            lanes: self.lanes,
            chunk_bytes: self.chunk_bytes,
            created_ms: self.created_ms,
            settled: self.settled,
            version: self.version,
            features: self.features,
            drives: self.members.iter().map(drive).collect(),
        }
    }

    /// Records a drive as gone on all other drives. On success, the new membership is durable, or the drive is kept:
    /// it has too many errors, but is there, and the pool cannot do without it. `is_needed`: whether some lane may need
    /// it for its data.
    pub async fn take_out(
        &mut self,
        io: &Io,
        drive: u8,
        departure: Departure,
        is_needed: impl AsyncFnOnce(&Membership) -> bool,
    ) -> Result<(), TooFewDrives> {
        let index = usize::from(drive);
        // while it is measured, others may go
        let state = self.lost_as(io, index, departure).await;
        let may_stay = departure == Departure::TooManyErrors && state == DriveState::Failed;
        if may_stay && (!self.can_spare_one() || is_needed(self).await) {
            Decision::CondemnedKept.taken();
            return Ok(());
        }
        let before = self.members[index].clone();
        self.set_state(index, state);
        let recorded = self.write_labels(io).await;
        if recorded.is_err() && may_stay {
            // others have just gone: every lane still uses this one
            Decision::CondemnedTakenBack.taken();
            let Member { state, since, .. } = before;
            (self.members[index].state, self.members[index].since) = (state, since);
            return self.write_labels(io).await;
        }
        recorded
    }

    /// Whether one more drive may be lost.
    pub fn can_spare_one(&self) -> bool {
        self.lost() < usize::from(self.protection.parity())
    }

    /// How a drive is lost: see [`lost_as`].
    fn lost_as<'a>(
        &self,
        io: &'a Io,
        index: usize,
        departure: Departure,
    ) -> impl Future<Output = DriveState> + use<'a> {
        let end_bytes = LABEL_REGION_BYTES + u64::from(self.members[index].chunks) * self.chunk_bytes;
        lost_as(io, self.handle(index as u8), end_bytes, departure)
    }

    /// Adds a drive to the pool; nobody needs its content. On success, this is recorded.
    pub async fn add(&mut self, io: &Io, handle: DriveHandle, info: &DriveInfo) -> Result<(), PoolError> {
        if self.members.len() >= DRIVES_MAX {
            return Err(PoolError::Drives { have: self.members.len() + 1, min: 1, max: DRIVES_MAX });
        }
        let erased = erase_labels(io, handle).await;
        erased.map_err(|error| PoolError::Io { path: info.path.clone(), error })?;
        self.members.push(Member {
            id: DriveId(io.random_u128()),
            path: info.path.clone(),
            handle: Some(handle),
            state: DriveState::Online,
            chunks: chunks_of(info.size_bytes, self.chunk_bytes),
            since: self.epoch,
            errors: DriveErrors::default(),
            counted: DriveErrors::default(),
            returned: false,
            slow: false,
            leaving: false,
            label_slot: 1,
        });
        // its own label first: the others must not name a drive that does not know of it and would count as missing
        self.generation += 1;
        for (index, result) in self.write_to(io, vec![self.members.len() - 1]).await {
            if let Err(error) = result {
                self.members.remove(index);
                return Err(PoolError::Io { path: info.path.clone(), error });
            }
        }
        Decision::DriveAdded.taken();
        self.write_labels(io).await.map_err(|_| PoolError::TooManyFailed)
    }

    /// Stops new writes to a drive, so that it can be emptied. On success, this is recorded.
    pub async fn drain(&mut self, io: &Io, drive: u8) -> Result<(), TooFewDrives> {
        Decision::DrainBegun.taken();
        self.set_state(usize::from(drive), DriveState::Draining);
        self.write_labels(io).await
    }

    /// Like [`Membership::drain`], for a slow drive; a drive that is being emptied already is from then on read only if
    /// necessary.
    pub async fn drain_slow(&mut self, io: &Io, drive: u8) -> Result<(), TooFewDrives> {
        self.members[usize::from(drive)].slow = true;
        self.drain(io, drive).await
    }

    /// Keeps a drive that was to be emptied. On success, this is recorded.
    pub async fn keep(&mut self, io: &Io, drive: u8) -> Result<(), TooFewDrives> {
        assert_eq!(
            self.members[usize::from(drive)].state,
            DriveState::Draining,
            "only that can be called off"
        );
        self.set_state(usize::from(drive), DriveState::Online);
        self.members[usize::from(drive)].slow = false;
        self.write_labels(io).await
    }

    /// Records that nothing of the pool is on a drive any more. If the drive can be reached, its labels are erased.
    pub async fn retire(&mut self, io: &Io, drive: u8) -> Result<(), TooFewDrives> {
        let handle = self.handle(drive);
        Decision::DriveRetired.taken();
        self.set_state(usize::from(drive), DriveState::Removed);
        self.write_labels(io).await?;
        self.members[usize::from(drive)].handle = None;
        if let Some(handle) = handle {
            // a drive that cannot be written keeps a label that the pool's other drives contradict
            let _ = erase_labels(io, handle).await;
        }
        Ok(())
    }

    /// Takes back a drive that was missing. On success, this is recorded.
    pub async fn take_back(
        &mut self,
        io: &Io,
        drive: u8,
        handle: DriveHandle,
        path: &str,
    ) -> Result<(), TooFewDrives> {
        let label_slot = read_label(io, handle).await.map_or(1, |(slot, _)| slot);
        let member = &mut self.members[usize::from(drive)];
        assert_eq!(member.state, DriveState::Missing, "only a drive that was missing comes back");
        member.label_slot = label_slot;
        (member.handle, member.path, member.returned) = (Some(handle), path.to_owned(), true);
        Decision::DriveTakenBack.taken();
        self.set_state(usize::from(drive), DriveState::Online);
        self.write_labels(io).await
    }

    /// Renames the pool. On success, this is recorded.
    pub async fn rename(&mut self, io: &Io, name: &str) -> Result<(), TooFewDrives> {
        if self.name == name {
            return Ok(());
        }
        self.name = name.to_owned();
        self.write_labels(io).await
    }

    /// Moves the pool to the newest format. On success, every drive has it; programs of before cannot open the pool any more.
    pub async fn upgrade(&mut self, io: &Io, heads: Heads) -> Result<(), TooFewDrives> {
        Decision::FormatUpgraded.taken();
        self.version = FORMAT_VERSION;
        self.features = self.features_for(heads);
        // an interrupted upgrade leaves labels of both versions: the newest one counts
        self.write_labels(io).await
    }

    /// What its labels are to say where these heads have it.
    pub(crate) fn features_for(&self, heads: Heads) -> Features {
        match heads {
            _ if self.version < FORMAT_VERSION => Features::NONE,
            Heads::Two => self.features.with(Features::TWO_HEADS),
            Heads::One | Heads::OneOfFormerTwo => self.features.without(Features::TWO_HEADS),
        }
    }

    fn set_state(&mut self, index: usize, state: DriveState) {
        let epoch = self.epoch;
        let member = &mut self.members[index];
        // a drive that is out stays out for the reason that was recorded first
        if member.state.is_readable() || !state.is_lost() {
            member.state = state;
            member.since = epoch;
        }
    }

    /// Writes the label of a pool that is being made; every drive must accept it.
    pub(crate) async fn write_first_labels(&mut self, io: &Io) -> Result<(), PoolError> {
        let results = self.write_to(io, (0..self.members.len()).collect()).await;
        for (index, result) in results {
            result.map_err(|error| PoolError::Io { path: self.members[index].path.clone(), error })?;
        }
        Ok(())
    }

    /// Writes the label to some drives, to the slot beside each drive's newest label.
    async fn write_to(&mut self, io: &Io, drives: Vec<usize>) -> Vec<(usize, Result<(), IoError>)> {
        let write = async |&index: &usize| {
            let member = &self.members[index];
            let offset_bytes = label_offset_bytes(0, 1 - usize::from(member.label_slot));
            let label = base::AlignedBuffer::copied_from(&self.label(member).emit());
            let drive = self.handle(index as u8).expect("online drives are open");
            io.drive_write(drive, offset_bytes, vec![label.into_bytes()], true).await
        };
        let results = join_all(drives.iter().map(write)).await;
        let results: Vec<_> = drives.into_iter().zip(results).collect();
        for (index, _) in results.iter().filter(|(_, result)| result.is_ok()) {
            self.members[*index].label_slot ^= 1;
        }
        results
    }

    /// Drives whose newest label is not what was written.
    pub async fn wrong_labels(&self, io: &Io) -> Vec<u8> {
        let handle = |drive: u8| self.handle(drive).map(|handle| (drive, handle));
        let drives: Vec<_> = (0..self.members.len() as u8).filter_map(handle).collect();
        let labels = join_all(drives.iter().map(|&(_, handle)| read_label(io, handle))).await;
        let newest = (self.epoch, self.generation);
        let is_right = |label: &Label| label.pool == self.pool && (label.epoch, label.generation) >= newest;
        let wrong = drives.into_iter().zip(labels).filter(|(_, read)| match read {
            Ok((_, label)) => !is_right(label),
            Err(_) => true,
        });
        wrong.map(|((drive, _), _)| drive).collect()
    }

    /// Writes the labels anew, over the wrong newest labels of these drives: the drives' other labels stay until then.
    pub async fn rewrite_labels(&mut self, io: &Io, wrong: &[u8]) -> Result<(), TooFewDrives> {
        Decision::LabelsRewritten.taken();
        for &drive in wrong {
            self.members[usize::from(drive)].label_slot ^= 1;
        }
        self.write_labels(io).await
    }

    /// Writes a new generation of the label to every online drive, and repeats until a round succeeds on all remaining
    /// drives. Drives that refuse it are taken out.
    pub async fn write_labels(&mut self, io: &Io) -> Result<(), TooFewDrives> {
        loop {
            if !self.is_serviceable() {
                return Err(TooFewDrives);
            }
            self.generation += 1;
            let online: Vec<usize> =
                (0..self.members.len()).filter(|&index| self.handle(index as u8).is_some()).collect();
            let (mut failed, mut full) = (Vec::new(), false);
            for (index, result) in self.write_to(io, online).await {
                match result {
                    Ok(()) => {}
                    // not the drive's fault: retried
                    Err(IoError::NoSpace) => full = true,
                    Err(error) => failed.push((index, error)),
                }
            }
            let states =
                failed.iter().map(|&(index, error)| self.lost_as(io, index, Departure::Failed(error)));
            for (state, &(index, _)) in join_all(states.collect::<Vec<_>>()).await.into_iter().zip(&failed) {
                Decision::LabelRefused.taken();
                self.set_state(index, state);
            }
            if failed.is_empty() && !full {
                self.settled = self.generation;
                return Ok(());
            }
            if full {
                io.sleep(NO_SPACE_RETRY).await;
            }
        }
    }
}
