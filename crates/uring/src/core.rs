//! The core of a shard's environment: it begins operations, takes completions, and ends operations. It does not handle
//! messages.
//!
//! What always holds: every operation that was begun ends with exactly one entry in `ready`; its buffers stay in
//! its slot until the kernel has completed it, also when this value is dropped in between.

use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::sync::Arc;

use base::{AlignedBuffer, BLOCK_BYTES, Nanos, ShardId};
use bytes::Bytes;
use env::{Completion, DriveHandle, DriveKind, IoError, Operation, Outcome, Token};
use io_uring::types::{CancelBuilder, Fd};
use io_uring::{opcode, squeue};
use rustix::net::Shutdown;

use crate::drive::helper::{Answers, Done, Helper, Job, Order};
use crate::drive::{Drive, DriveUse, Drives, ShardDrives, memory};
use crate::errno::{Asked, drive_error, is_transient};
use crate::mailbox::Doorbell;
use crate::ring::{Entry, Ring};
use crate::slots::{Slots, Work};
use crate::socket::listen::Addresses;
use crate::socket::{Connection, Listener, Table};

/// Completions that are not of a slot.
const DOORBELL: u64 = u64::MAX;
const CANCEL: u64 = u64::MAX - 1;

/// How long dropping waits for the kernel to let go of buffers; then they are leaked rather than freed.
const DROP_NS_MAX: Nanos = Nanos::from_secs(10);

/// What the shards of a process have in common.
#[derive(Default)]
pub struct Common {
    pub drives: Arc<Drives>,
    pub addresses: Addresses,
    pub helper: Helper,
}

pub struct Core {
    pub(crate) ring: Ring,
    pub(crate) slots: Slots,
    /// Operations that have ended, not reported yet.
    pub(crate) ready: Vec<Completion>,
    pub(crate) connections: Table<Connection>,
    pub(crate) listeners: Table<Listener>,
    pub(crate) common: Arc<Common>,
    drives: ShardDrives,
    /// Drives that are closed as soon as they are no longer in use.
    closing: Vec<(Token, Arc<Drive>)>,
    answers: Arc<Answers>,
    /// Slots that helper threads work for.
    helped: usize,
    doorbell: Arc<Doorbell>,
    /// Where the ring puts what it reads from the doorbell.
    doorbell_value: Box<[u8; 8]>,
    doorbell_armed: bool,
    entries: Vec<Entry>,
    /// Being dropped: nothing is asked of the kernel again.
    ending: bool,
}

impl Core {
    /// To be made on the thread that uses it.
    pub fn new(shard: ShardId, common: Arc<Common>, doorbell: Arc<Doorbell>) -> std::io::Result<Core> {
        let mut core = Core {
            ring: Ring::new()?,
            slots: Slots::default(),
            ready: Vec::new(),
            connections: Table::default(),
            listeners: Table::default(),
            drives: ShardDrives::new(shard, common.drives.clone()),
            common,
            closing: Vec::new(),
            answers: Arc::new(Answers::new(doorbell.clone())),
            helped: 0,
            doorbell,
            doorbell_value: Box::new([0; 8]),
            doorbell_armed: false,
            entries: Vec::new(),
            ending: false,
        };
        core.arm_doorbell();
        Ok(core)
    }

    pub fn submit(&mut self, token: Token, operation: Operation) {
        if let Err(error) = self.begin(token, operation) {
            self.ready.push(Completion { token, outcome: Outcome::Failed(error) });
        }
    }

    /// Begins an operation. Where that fails, the operation has no buffer to give back.
    fn begin(&mut self, token: Token, operation: Operation) -> Result<(), IoError> {
        match operation {
            Operation::DriveOpen { path, writable } => {
                // nothing but a lack of threads gives it back
                self.help(token, Job::Open { path, writable }).map_err(|_| IoError::TooMany)?;
            }
            Operation::DriveClose { drive } => {
                let drive = self.common.drives.remove(drive)?;
                self.closing.push((token, drive));
                self.close_unused();
            }
            Operation::DriveRead { drive, offset_bytes, buffer } => {
                self.drive_read(token, drive, offset_bytes, buffer);
            }
            Operation::DriveWrite { drive, offset_bytes, data, durable } => {
                let length = check_pieces(&data);
                let (drive, _) = self.use_drive(drive, offset_bytes, length as u64, true)?;
                if length == 0 || drive.in_memory {
                    memory::write(&drive, offset_bytes, &data, length)?;
                    self.end(token, Outcome::Done);
                } else {
                    self.start(token, Work::Write { drive, offset_bytes, data, length, done: 0, durable });
                }
            }
            Operation::DriveFlush { drive } => {
                let drive = self.drives.begin(drive)?;
                match drive.in_memory {
                    true => self.end(token, Outcome::Done),
                    false => self.start(token, Work::Flush { drive }),
                }
            }
            Operation::DriveMeasure { drive } => {
                let drive = self.drives.begin(drive)?;
                self.help(token, Job::Measure(drive.to_sendable())).map_err(|_| IoError::TooMany)?;
            }
            Operation::DriveReservation { drive, ask } => {
                let drive = self.drives.begin(drive)?.to_sendable();
                self.help(token, Job::Reserve { drive, ask }).map_err(|_| IoError::TooMany)?;
            }
            Operation::DriveDiscard { drive, offset_bytes, length_bytes } => {
                let (drive, _) = self.use_drive(drive, offset_bytes, length_bytes, true)?;
                self.discard(token, drive, offset_bytes, length_bytes);
            }
            Operation::Listen { address } => self.listen(token, address)?,
            Operation::ListenForwarded { .. } => return Err(IoError::AddressNotAvailable),
            Operation::CloseListener { listener } => self.close_listener(token, listener)?,
            Operation::Accept { listener } => self.accept(token, listener)?,
            Operation::Connect { address } => self.connect(token, address)?,
            Operation::Receive { connection, buffer } => self.receive(token, connection, buffer),
            Operation::Send { connection, data } => self.send(token, connection, data)?,
            Operation::CloseConnection { connection } => self.close_connection(token, connection)?,
        }
        Ok(())
    }

    /// Counts an operation on a range of a drive in, if the range is there and may be written where it will be. With the
    /// length that the drive has of it: a read may go beyond the end, to the end of a 4 KiB block.
    fn use_drive(
        &mut self,
        drive: DriveHandle,
        offset: u64,
        length: u64,
        write: bool,
    ) -> Result<(DriveUse, u64), IoError> {
        let drive = self.drives.begin(drive)?;
        let aligned = offset.is_multiple_of(BLOCK_BYTES as u64) && drive.takes_length(length);
        assert!(aligned, "{offset}+{length} is not aligned");
        if write && !drive.writable {
            return Err(IoError::ReadOnly);
        }
        match drive.part_within(offset, length) {
            Some(part) if part == length || !write => Ok((drive, part)),
            _ => Err(IoError::Media),
        }
    }

    fn drive_read(&mut self, token: Token, drive: DriveHandle, offset_bytes: u64, mut buffer: AlignedBuffer) {
        let result = match self.use_drive(drive, offset_bytes, buffer.len() as u64, false) {
            Err(error) => Err(error),
            Ok((drive, length)) if length == 0 || drive.in_memory => {
                memory::read(&drive, offset_bytes, &mut buffer[..length as usize])
            }
            Ok((drive, length)) => {
                let (length, done) = (length as usize, 0);
                return self.start(token, Work::Read { drive, offset_bytes, buffer, length, done });
            }
        };
        self.end(token, Outcome::DriveRead(buffer, result));
    }

    fn discard(&mut self, token: Token, drive: DriveUse, offset_bytes: u64, length_bytes: u64) {
        if length_bytes == 0 {
            return self.end(token, Outcome::Done);
        }
        if drive.in_memory {
            return self
                .end(token, after_discard(drive.kind, memory::discard(&drive, offset_bytes, length_bytes)));
        }
        if drive.kind != DriveKind::BlockDevice {
            return self.start(token, Work::Discard { drive, offset_bytes, length_bytes });
        }
        let job = Job::Discard { drive: drive.to_sendable(), offset_bytes, length_bytes };
        if self.help(token, job).is_err() {
            self.end(token, Outcome::Done); // a hint that nobody takes
        }
    }

    /// Has a helper thread do what may block. Gives the job back where it cannot.
    fn help(&mut self, token: Token, job: Job) -> Result<(), Job> {
        let slot = self.slots.begin(token, Work::ByHelper);
        let order = Order { job, answers: self.answers.clone(), slot };
        if let Err(order) = self.common.helper.submit(order) {
            drop(self.slots.take(slot));
            self.slots.finish(slot);
            return Err(order.job);
        }
        self.helped += 1;
        Ok(())
    }

    /// Closes drives that are no longer in use.
    fn close_unused(&mut self) {
        let (unused, used) = std::mem::take(&mut self.closing).into_iter().partition(|(_, d)| d.is_unused());
        self.closing = used;
        for (token, drive) in unused {
            if let Err(Job::Close(drive)) = self.help(token, Job::Close(drive)) {
                // there can be no thread: better here than never
                drive.close();
                self.end(token, Outcome::Done);
            }
        }
    }

    /// Puts an operation into a slot and queues its submission.
    pub(crate) fn start(&mut self, token: Token, work: Work) {
        let index = self.slots.begin(token, work);
        self.push(index);
    }

    pub(crate) fn push(&mut self, index: u32) {
        let entry = self.slots.entry(index);
        // SAFETY: all that the entry points to is owned by the slot, which keeps it, at its address and untouched,
        // until the completion has been taken; when this is dropped before, it waits for that, or leaks the slots.
        unsafe { self.ring.push(entry) };
    }

    pub(crate) fn end(&mut self, token: Token, outcome: Outcome) {
        self.ready.push(Completion { token, outcome });
    }

    fn arm_doorbell(&mut self) {
        let value = self.doorbell_value.as_mut_ptr();
        let read = opcode::Read::new(Fd(self.doorbell.descriptor()), value, 8).build().user_data(DOORBELL);
        // SAFETY: the value is in a box of its own, which is freed only when the completion has been taken.
        unsafe { self.ring.push(read) };
        self.doorbell_armed = true;
    }

    fn on_doorbell(&mut self, result: i32) {
        self.doorbell_armed = false;
        if !self.ending {
            assert!(result == 8 || is_transient(-result), "reading the doorbell: {result}");
            self.arm_doorbell();
        }
    }

    /// Whether something has happened that [`Core::work`] would report.
    pub fn has_something(&mut self) -> bool {
        !self.ready.is_empty() || self.ring.has_completions() || (self.helped > 0 && !self.answers.is_empty())
    }

    /// How long to sleep at most, whatever may come.
    pub fn patience(&self) -> Option<Nanos> {
        // a drive that closes may be held by other shards, which do not ring when they are done
        (!self.closing.is_empty()).then_some(Nanos::from_millis(1))
    }

    /// Takes the completions that are there and works on them: operations go on, or end in `ready`.
    pub fn work(&mut self) {
        let mut entries = std::mem::take(&mut self.entries);
        self.ring.take(&mut entries);
        for entry in entries.drain(..) {
            match entry.user_data {
                DOORBELL => self.on_doorbell(entry.result),
                CANCEL => {}
                slot => self.on_completion(u32::try_from(slot).expect("we gave out an index"), entry),
            }
        }
        self.entries = entries;
        if self.helped > 0 {
            for (slot, done) in self.answers.take() {
                self.on_helped(slot, done);
            }
        }
        if !self.closing.is_empty() && !self.ending {
            self.close_unused();
        }
    }

    fn on_helped(&mut self, slot: u32, done: Done) {
        self.helped -= 1;
        drop(self.slots.take(slot));
        let outcome = match done {
            Done::Opened(Ok((drive, info))) if !self.ending => match self.common.drives.add(drive) {
                Ok(handle) => Outcome::DriveOpened(handle, info),
                Err(error) => Outcome::Failed(error),
            },
            // nobody waits for it any more: it is closed again
            Done::Opened(Ok(_)) => Outcome::Failed(IoError::Gone),
            Done::Opened(Err(error)) => Outcome::Failed(error),
            Done::Closed => Outcome::Done,
            Done::Measured(result) => result.map_or_else(Outcome::Failed, Outcome::DriveMeasured),
            Done::Reserved(result) => match result {
                Ok(Some(reservation)) => Outcome::DriveReservation(reservation),
                Ok(None) => Outcome::Done,
                Err(error) => Outcome::Failed(error),
            },
            Done::Discarded(result) => after_discard(DriveKind::BlockDevice, result),
        };
        self.finish(slot, outcome);
    }

    /// Ends the operation of a slot whose work has been taken out.
    pub(crate) fn finish(&mut self, slot: u32, outcome: Outcome) {
        let token = self.slots.finish(slot);
        self.end(token, outcome);
    }

    /// Asks the kernel for the rest, or once more for the same.
    pub(crate) fn again(&mut self, slot: u32, work: Work) {
        assert!(!self.ending, "nothing is asked of the kernel when ending");
        self.slots.put_back(slot, work);
        self.push(slot);
    }

    /// Whether an operation that the kernel has not done may be asked for again.
    pub(crate) fn may_retry(&mut self, slot: u32) -> bool {
        !self.ending && self.slots.may_retry(slot)
    }

    pub(crate) fn is_ending(&self) -> bool {
        self.ending
    }

    /// Shuts every socket down, cancels operations where the kernel can, and waits until the kernel holds no buffer.
    fn end_everything(&mut self) {
        self.ending = true;
        for listener in self.listeners.iter().filter(|listener| listener.closing.is_none()) {
            shut_down(&listener.socket);
            self.common.addresses.forget(listener.address);
        }
        self.connections.iter().for_each(|connection| shut_down(&connection.socket));
        self.doorbell.announce_sleep();
        self.doorbell.ring();
        let cancel: squeue::Entry = opcode::AsyncCancel2::new(CancelBuilder::any()).build().user_data(CANCEL);
        // SAFETY: a cancellation points to no memory.
        unsafe { self.ring.push(cancel) };
        let deadline = crate::clock::now() + DROP_NS_MAX;
        while self.slots.in_flight() > self.helped || self.doorbell_armed {
            if crate::clock::now() >= deadline {
                // The kernel may still write to them: better lost than given to somebody else.
                std::mem::forget(std::mem::take(&mut self.slots));
                std::mem::forget(std::mem::take(&mut self.doorbell_value));
                return;
            }
            self.ring.wait(Some(Nanos::from_millis(100)));
            self.work();
        }
    }
}

impl Drop for Core {
    fn drop(&mut self) {
        self.end_everything();
        // Drives that are still closing are used by other shards: they close with the last reference.
    }
}

/// A discard that is not supported is as good as done.
pub(crate) fn after_discard(kind: DriveKind, result: i32) -> Outcome {
    match -result {
        ..=0 | libc::EOPNOTSUPP | libc::ENOSYS | libc::ENOTTY => Outcome::Done,
        errno => Outcome::Failed(drive_error(kind, Asked::Discard, errno)),
    }
}

/// Asserts that the pieces are as direct I/O needs them, but for the length of the last. Their length together.
fn check_pieces(data: &[Bytes]) -> usize {
    for (index, piece) in data.iter().enumerate() {
        let whole = index + 1 == data.len() || piece.len().is_multiple_of(BLOCK_BYTES);
        let aligned = piece.as_ptr().addr().is_multiple_of(BLOCK_BYTES) && whole;
        assert!(aligned || piece.is_empty(), "a piece of {} bytes to write is not aligned", piece.len());
    }
    data.iter().map(Bytes::len).sum()
}

pub(crate) fn shut_down(socket: &OwnedFd) {
    // It fails where the peer has gone or nobody ever came: then there is nothing to shut down.
    let _ = rustix::net::shutdown(socket.as_fd(), Shutdown::Both);
}

/// The descriptor that an accept has made.
pub(crate) fn accepted(result: i32) -> OwnedFd {
    assert!(result >= 0);
    // SAFETY: the kernel has just made the descriptor for us, and nobody else knows it.
    let socket = unsafe { OwnedFd::from_raw_fd(result) };
    assert!(socket.as_raw_fd() == result);
    socket
}
