//! Operations on drives: how they begin and end, how they are delayed, and what happens to them when their process
//! ends.

use std::collections::BTreeSet;

use base::Nanos;
use bytes::Bytes;
use env::{DriveHandle, IoError, Operation, Outcome};

use crate::drive::{Drive, DriveNumber, fails, write_blocks};
use crate::fault::FaultKind;
use crate::medium::{Mood, SECTOR_BYTES};
use crate::world::{EventKind, Handle, InFlight, Inner, ProcessId};

use base::BLOCK_BYTES;

/// In [`InFlight::mark`]: this read took its content when it was submitted.
const SERVED_AT_SUBMISSION: u64 = 1;

impl Inner {
    pub(crate) fn submit_to_drive(&mut self, mut in_flight: InFlight) {
        let number = match &in_flight.operation {
            Operation::DriveOpen { path, .. } => {
                let path = path.clone();
                let at = self.drives.iter().position(|drive| drive.options.path == path);
                at.map(|index| DriveNumber(index as u32))
            }
            operation => {
                let handle = drive_of(operation).map(|handle| self.handle(in_flight.process, handle));
                assert!(handle.is_none_or(|handle| handle.open), "an operation on a handle that was closed");
                let drive = handle.map(|handle| &self.drives[handle.drive.0 as usize]);
                check_alignment(operation, drive.is_some_and(|drive| drive.has_had_tail));
                handle.map(|handle| handle.drive)
            }
        };
        let Some(number) = number else {
            let id = self.begin(in_flight);
            return self.schedule(Nanos::from_micros(5), EventKind::Operation(id));
        };
        let drive = &mut self.drives[number.0 as usize];
        let mut latency = drive.draw_latency(&mut self.prng, &mut self.counts);
        if matches!(in_flight.operation, Operation::DriveWrite { .. }) {
            latency = latency + drive.writes_later;
        }
        in_flight.mark = match in_flight.operation {
            Operation::DriveFlush { .. } => drive.medium.flush_point(),
            Operation::DriveRead { .. } if self.prng.chance(400) => SERVED_AT_SUBMISSION,
            _ => 0,
        };
        let now = self.now;
        let (process, shard, token) = (in_flight.process, in_flight.shard, in_flight.token);
        self.trace.line(now, || {
            format!("p{}.{shard} op {} {}", process.0, token.0, describe(&in_flight.operation, number))
        });
        if in_flight.mark == SERVED_AT_SUBMISSION
            && matches!(in_flight.operation, Operation::DriveRead { .. })
        {
            (in_flight.operation, in_flight.mark) = self.serve_early(in_flight.process, in_flight.operation);
        }
        let id = self.begin(in_flight);
        self.schedule(latency, EventKind::Operation(id));
    }

    pub(crate) fn handle(&self, process: ProcessId, handle: DriveHandle) -> Handle {
        let handles = &self.processes[process.0 as usize].handles;
        let found = handles.get(handle.0 as usize).copied();
        found.expect("a drive handle that this process was given")
    }

    /// A drive that is stuck answers later, one that is gone at once; a handle is closed after all else.
    pub(crate) fn is_drive_operation_held_up(&mut self, id: u64) -> bool {
        let in_flight = &self.operations[&id];
        if let Operation::DriveOpen { path, .. } = &in_flight.operation {
            let at = |drive: &&Drive| drive.present && drive.options.path == *path;
            let opened = self.drives.iter().find(at).map(|drive| drive.stuck_until);
            return self.is_held_until(id, opened.unwrap_or_default());
        }
        let Some(named) = drive_of(&in_flight.operation) else { return false };
        if matches!(in_flight.operation, Operation::DriveClose { .. }) {
            let process = in_flight.process;
            let same =
                |other: &InFlight| other.process == process && drive_of(&other.operation) == Some(named);
            if self.operations.iter().any(|(&other, flying)| other != id && same(flying)) {
                self.schedule(Nanos::from_micros(20), EventKind::Operation(id));
                return true;
            }
        }
        let in_flight = &self.operations[&id];
        let handle = self.handle(in_flight.process, named);
        let drive = &self.drives[handle.drive.0 as usize];
        let until = if drive.present { drive.stuck_until } else { Nanos(0) };
        self.is_held_until(id, until)
    }

    fn is_held_until(&mut self, id: u64, until: Nanos) -> bool {
        if until <= self.now {
            return false;
        }
        let delay = Nanos(self.prng.below(1_000_000));
        self.schedule_at(until + delay, EventKind::Operation(id));
        true
    }

    /// Ends a drive operation and gives its outcome.
    pub(crate) fn finish_drive(&mut self, in_flight: InFlight) -> Outcome {
        let process = in_flight.process;
        match in_flight.operation {
            Operation::DriveOpen { path, writable } => self.open(process, &path, writable),
            Operation::DriveClose { drive } => {
                let handle = self.handle(process, drive);
                self.process(process).handles[drive.0 as usize].open = false;
                if handle.writable {
                    self.drives[handle.drive.0 as usize].writers.retain(|&(_, writer)| writer != process);
                }
                Outcome::Done
            }
            Operation::DriveRead { drive, offset_bytes, mut buffer } => {
                let result = match self.usable(process, drive) {
                    Err(error) => Err(error),
                    Ok(_) if in_flight.mark == SERVED_AT_SUBMISSION => Ok(()),
                    Ok(number) => self.read_now(number, offset_bytes, &mut buffer),
                };
                Outcome::DriveRead(buffer, result)
            }
            Operation::DriveWrite { drive, offset_bytes, data, durable } => {
                let writable = self.handle(process, drive).writable;
                let result = match self.usable(process, drive) {
                    Ok(_) if !writable => Err(IoError::ReadOnly),
                    Ok(number) if !self.may_write(process, number) => {
                        self.refused_writes += 1;
                        Err(IoError::Reserved)
                    }
                    Ok(number) => {
                        let drive = &mut self.drives[number.0 as usize];
                        drive.write(offset_bytes, &data, durable, &mut self.prng, &mut self.counts)
                    }
                    Err(error) => {
                        self.interrupt_by_vanishing(self.handle(process, drive), offset_bytes, &data);
                        Err(error)
                    }
                };
                done(result)
            }
            Operation::DriveFlush { drive } => done(self.usable(process, drive).and_then(|number| {
                let drive = &mut self.drives[number.0 as usize];
                if drive.dying {
                    return Err(IoError::Media);
                }
                drive.flush(in_flight.mark, &mut self.prng, &mut self.counts);
                Ok(())
            })),
            Operation::DriveMeasure { drive } => match self.usable(process, drive) {
                Ok(number) => Outcome::DriveMeasured(self.drives[number.0 as usize].options.size_bytes),
                Err(error) => Outcome::Failed(error),
            },
            Operation::DriveReservation { drive, ask } => {
                let asked = self.usable(process, drive).and_then(|number| self.reserve(process, number, ask));
                match asked {
                    Ok(Some(reservation)) => Outcome::DriveReservation(reservation),
                    Ok(None) => Outcome::Done,
                    Err(error) => Outcome::Failed(error),
                }
            }
            Operation::DriveDiscard { drive, offset_bytes, length_bytes } => done(
                self.usable(process, drive).map(|number| self.discard(number, offset_bytes, length_bytes)),
            ),
            operation => unreachable!("{operation:?} is not for a drive"),
        }
    }

    fn usable(&self, process: ProcessId, handle: DriveHandle) -> Result<DriveNumber, IoError> {
        let handle = self.handle(process, handle);
        let drive = &self.drives[handle.drive.0 as usize];
        let is_reached = self.reaches(self.machine_of_process(process), handle.drive);
        if !drive.present || handle.appearance != drive.appearance || !is_reached {
            return Err(IoError::Gone);
        }
        Ok(handle.drive)
    }

    fn open(&mut self, process: ProcessId, path: &str, writable: bool) -> Outcome {
        let Some(index) = self.drives.iter().position(|drive| drive.present && drive.options.path == path)
        else {
            return Outcome::Failed(IoError::NotFound);
        };
        let machine = self.machine_of_process(process);
        if !self.reaches(machine, DriveNumber(index as u32)) {
            return Outcome::Failed(IoError::NotFound);
        }
        let drive = &mut self.drives[index];
        if fails(&mut drive.failing.opens) {
            return Outcome::Failed(IoError::Busy);
        }
        if writable {
            if drive.writers.iter().any(|&(other, _)| other == machine || !drive.options.shared) {
                return Outcome::Failed(IoError::Busy);
            }
            drive.writers.push((machine, process));
        }
        let (info, appearance) = (drive.info(), drive.appearance);
        let handles = &mut self.process(process).handles;
        handles.push(Handle { drive: DriveNumber(index as u32), writable, open: true, appearance });
        Outcome::DriveOpened(DriveHandle(handles.len() as u32 - 1), info)
    }

    /// A write that was in flight when its drive went may be there when the drive comes back.
    fn interrupt_by_vanishing(&mut self, handle: Handle, offset_bytes: u64, data: &[Bytes]) {
        let drive = &mut self.drives[handle.drive.0 as usize];
        if handle.writable && handle.appearance == drive.appearance {
            let mood = Mood::draw(&mut self.prng, drive.options.tearing);
            drive.interrupt_write(offset_bytes, data, true, mood, &mut self.prng, &mut self.counts);
        }
    }

    fn discard(&mut self, number: DriveNumber, offset_bytes: u64, length_bytes: u64) {
        let drive = &mut self.drives[number.0 as usize];
        let first = offset_bytes / BLOCK_BYTES as u64;
        let end = (first + length_bytes / BLOCK_BYTES as u64).min(drive.size_blocks());
        for block in first..end {
            // the vast rest of a sparse drive is as undefined as it was
            if drive.medium.is_allocated(block) {
                drive.medium.discard(block, &mut self.prng);
            }
        }
    }

    fn serve_early(&mut self, process: ProcessId, operation: Operation) -> (Operation, u64) {
        let Operation::DriveRead { drive, offset_bytes, mut buffer } = operation else {
            unreachable!("a read")
        };
        let read =
            self.usable(process, drive).and_then(|number| self.read_now(number, offset_bytes, &mut buffer));
        let mark = if read.is_ok() { SERVED_AT_SUBMISSION } else { 0 };
        (Operation::DriveRead { drive, offset_bytes, buffer }, mark)
    }

    fn read_now(
        &mut self,
        number: DriveNumber,
        offset_bytes: u64,
        buffer: &mut base::AlignedBuffer,
    ) -> Result<(), IoError> {
        let first = offset_bytes / BLOCK_BYTES as u64;
        let overlapping = self.writes_in_flight(number, first, first + buffer.blocks() as u64);
        let drive = &mut self.drives[number.0 as usize];
        drive.read(offset_bytes, buffer, &overlapping, &mut self.prng, &mut self.counts)
    }

    pub(crate) fn writes_in_flight(&self, number: DriveNumber, first: u64, end: u64) -> Vec<(u64, Bytes)> {
        let mut ids: Vec<u64> = Vec::new();
        for (&id, in_flight) in &self.operations {
            if let Operation::DriveWrite { drive, offset_bytes, data, .. } = &in_flight.operation {
                let start = offset_bytes / BLOCK_BYTES as u64;
                let length: usize = data.iter().map(Bytes::len).sum();
                let overlaps = start < end && first < start + length.div_ceil(BLOCK_BYTES) as u64;
                if overlaps && self.handle(in_flight.process, *drive).drive == number {
                    ids.push(id);
                }
            }
        }
        ids.sort_unstable();
        let blocks = ids.iter().flat_map(|id| match &self.operations[id].operation {
            Operation::DriveWrite { offset_bytes, data, .. } => write_blocks(*offset_bytes, data),
            _ => unreachable!("writes were picked"),
        });
        blocks.filter(|(block, _)| (first..end).contains(block)).collect()
    }

    /// The process is gone; each of its writes may have been done or not, whole or in part. Where it was killed,
    /// some of its operations go on: the kernel has them.
    pub(crate) fn interrupt_operations(&mut self, ids: &[u64], power_lost: bool) {
        let mut prng = self.prng.fork();
        let keep_or_drop = Mood::draw(&mut prng, false);
        let tearing = Mood::draw(&mut prng, true);
        let going_on = if power_lost { 0 } else { *prng.pick(&[0, 500, 1000]) };
        for id in ids {
            let operation = &self.operations[id].operation;
            if transfers(operation) && prng.chance(going_on) {
                self.counts.add(FaultKind::OperationOutlives);
                continue;
            }
            let in_flight = self.operations.remove(id).expect("it was listed");
            let Operation::DriveWrite { drive, offset_bytes, data, durable } = in_flight.operation else {
                continue;
            };
            let handle = self.handle(in_flight.process, drive);
            let machine = self.machine_of_process(in_flight.process);
            let drive = &mut self.drives[handle.drive.0 as usize];
            let may_write = drive.reservations.may_write(machine);
            if !drive.present || !handle.writable || handle.appearance != drive.appearance || !may_write {
                continue;
            }
            let mood = if power_lost && drive.options.tearing { tearing } else { keep_or_drop };
            let durable = durable || power_lost || !drive.options.volatile_cache;
            drive.interrupt_write(offset_bytes, &data, durable, mood, &mut prng, &mut self.counts);
        }
    }

    /// Drives that a process that has ended held for writing are free, but for those that it still writes to.
    pub(crate) fn free_drives_of(&mut self, process: ProcessId) {
        let flying = self.operations.values().filter(|flying| flying.process == process);
        let held: BTreeSet<DriveNumber> = flying
            .filter_map(|flying| drive_of(&flying.operation))
            .map(|handle| self.handle(process, handle).drive)
            .collect();
        for (index, drive) in self.drives.iter_mut().enumerate() {
            if !held.contains(&DriveNumber(index as u32)) {
                drive.writers.retain(|&(_, writer)| writer != process);
            }
        }
    }

    fn may_write(&self, process: ProcessId, number: DriveNumber) -> bool {
        self.drives[number.0 as usize].reservations.may_write(self.machine_of_process(process))
    }

    /// What this machine has under way on a drive is aborted: of its writes, nothing, a part or all has been done by then. Each ends later,
    /// and changes nothing any more.
    pub(crate) fn abort(&mut self, machine: u16, number: DriveNumber) {
        let mut prng = self.prng.fork();
        let is_meant = |(_, flying): &(&u64, &InFlight)| {
            let drive = drive_of(&flying.operation);
            self.machine_of_process(flying.process) == machine
                && drive.is_some_and(|drive| self.handle(flying.process, drive).drive == number)
        };
        let mut ids: Vec<u64> = self.operations.iter().filter(is_meant).map(|(&id, _)| id).collect();
        ids.sort_unstable();
        for id in ids {
            let Operation::DriveWrite { offset_bytes, data, durable, .. } = &self.operations[&id].operation
            else {
                continue;
            };
            let (offset_bytes, data, durable) = (*offset_bytes, data.clone(), *durable);
            let mood = Mood::draw(&mut prng, false);
            let drive = &mut self.drives[number.0 as usize];
            drive.interrupt_write(offset_bytes, &data, durable, mood, &mut prng, &mut self.counts);
        }
    }

    pub(crate) fn lose_drive_caches(&mut self, machine: u16) {
        let mut prng = self.prng.fork();
        for drive in
            self.drives.iter_mut().filter(|drive| drive.options.machine == machine && !drive.options.shared)
        {
            let mood = Mood::draw(&mut prng, drive.options.tearing);
            drive.medium.lose_cache(mood, &mut prng, &mut self.counts);
        }
    }

    pub(crate) fn return_drive(&mut self, number: DriveNumber) {
        let drive = &mut self.drives[number.0 as usize];
        if !drive.present || drive.dying {
            drive.present = true;
            drive.dying = false;
            self.counts.add(FaultKind::DriveReturned);
            let now = self.now;
            self.trace.line(now, || format!("drive {} returns", number.0));
        }
    }
}

fn done(result: Result<(), IoError>) -> Outcome {
    result.map_or_else(Outcome::Failed, |()| Outcome::Done)
}

/// The drive that an operation is for.
pub(crate) fn drive_of(operation: &Operation) -> Option<DriveHandle> {
    match operation {
        Operation::DriveClose { drive }
        | Operation::DriveRead { drive, .. }
        | Operation::DriveWrite { drive, .. }
        | Operation::DriveFlush { drive }
        | Operation::DriveMeasure { drive }
        | Operation::DriveReservation { drive, .. }
        | Operation::DriveDiscard { drive, .. } => Some(*drive),
        _ => None,
    }
}

/// Whether the kernel goes on with an operation when its process has ended.
fn transfers(operation: &Operation) -> bool {
    matches!(
        operation,
        Operation::DriveRead { .. } | Operation::DriveWrite { .. } | Operation::DriveFlush { .. }
    )
}

/// Direct I/O takes whole, aligned blocks, and where a drive has ended inside one (`sectors`), whole sectors at the end of a
/// write; breaking that is a bug of the code under test.
fn check_alignment(operation: &Operation, sectors: bool) {
    let whole = |bytes: u64| bytes.is_multiple_of(BLOCK_BYTES as u64);
    match operation {
        Operation::DriveRead { offset_bytes, .. } => assert!(whole(*offset_bytes), "read at {offset_bytes}"),
        Operation::DriveWrite { offset_bytes, data, .. } => {
            assert!(whole(*offset_bytes), "write at {offset_bytes}");
            for (index, piece) in data.iter().enumerate() {
                let may_be_short = sectors && index + 1 == data.len();
                let unit = if may_be_short { SECTOR_BYTES } else { BLOCK_BYTES };
                let aligned = (piece.as_ptr() as usize).is_multiple_of(BLOCK_BYTES);
                assert!(
                    aligned && piece.len().is_multiple_of(unit),
                    "a piece of {} bytes is not aligned",
                    piece.len()
                );
            }
        }
        _ => {}
    }
}

fn describe(operation: &Operation, drive: DriveNumber) -> String {
    let at = |offset_bytes: &u64| offset_bytes / BLOCK_BYTES as u64;
    match operation {
        Operation::DriveRead { offset_bytes, buffer, .. } => {
            format!("read drive {} block {} +{}", drive.0, at(offset_bytes), buffer.blocks())
        }
        Operation::DriveWrite { offset_bytes, data, durable, .. } => {
            let blocks = data.iter().map(Bytes::len).sum::<usize>() / BLOCK_BYTES;
            let how = if *durable { " durably" } else { "" };
            format!("write drive {} block {} +{blocks}{how}", drive.0, at(offset_bytes))
        }
        other => format!("{other:?} (drive {})", drive.0),
    }
}
