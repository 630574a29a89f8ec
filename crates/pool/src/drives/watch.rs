//! Gives up drives that do not answer and return no error either. Tasks that wait for such a drive then continue
//! without it.
//!
//! ```text
//!   an operation exceeds the limit ─► do the others answer? ─ yes ─► all its operations end: the drive is gone
//!                                                            └─ no ──► the cause is elsewhere: keep waiting
//! ```
//!
//! A drive that was given up is treated like any drive that is gone. It is recorded as missing before anything is
//! acknowledged without it. It can come back only when its handle is closed, and closing waits for all operations still
//! in flight. Never are more drives given up than the protection covers. A lane watches only the operations of its own
//! shard; other shards find hung drives themselves.
//!
//! If a drive without I/O is pulled, no operation fails. So lane 0 reads the last block of each drive at every look. An
//! idle pool therefore also notices the loss, and its spare joins before the data is needed. Lane 0 reads the last
//! block because a device that was made smaller still has its first block.

use std::rc::{Rc, Weak};

use base::{AlignedBuffer, BLOCK_BYTES, Nanos};
use env::{DriveHandle, IoError};
use task::{Io, join_all, race};

use crate::decision::Decision;
use crate::format::label_offset_bytes;
use crate::format::table::Column;
use crate::lane::Lane;

/// How often the drives are checked.
const LOOK_EVERY: Nanos = Nanos::from_secs(2);
/// The lane that checks for pulled drives: every pool has it.
const LOOKING_LANE: u16 = 0;
/// How long the others may take to show that they answer.
const ANSWER_TIME: Nanos = Nanos::from_secs(1);

/// Watches a lane's drives as long as the lane lives.
pub(crate) async fn watch_drives(io: Io, lane: Weak<Lane>) {
    loop {
        io.sleep(LOOK_EVERY).await;
        let Some(lane) = lane.upgrade() else { return };
        lane.give_up_hung_drives().await;
        lane.look_for_pulled_drives();
    }
}

impl Lane {
    async fn give_up_hung_drives(self: &Rc<Self>) {
        let _running = self.enter();
        let suspects = self.hung_drives();
        if suspects.is_empty() {
            return;
        }
        let others = self.online_drives().into_iter().map(|(_, handle)| handle);
        let others = others.filter(|handle| !suspects.contains(handle));
        let answers = join_all(others.map(|handle| self.answers(handle)).collect::<Vec<_>>()).await;
        let silent = suspects.len() + answers.iter().filter(|&&answers| !answers).count();
        let (lost, parity) = {
            let membership = self.membership.borrow();
            (membership.lost(), usize::from(membership.protection.parity()))
        };
        if lost + silent > parity {
            Decision::HungTogether.taken();
            return;
        }
        for handle in suspects {
            Decision::HungGivenUp.taken();
            self.io.give_up_drive(handle);
        }
    }

    /// Reads a block of each drive without I/O. A drive that does not answer gets no further read, and is given up like any
    /// other hung drive.
    fn look_for_pulled_drives(self: &Rc<Self>) {
        if self.number != LOOKING_LANE || self.has_ended() {
            return;
        }
        for (drive, handle) in self.online_drives() {
            if self.io.oldest_on_drive(handle).is_none() {
                self.io.spawn(self.clone().look_at(drive, handle));
            }
        }
    }

    async fn look_at(self: Rc<Self>, drive: u8, handle: DriveHandle) {
        let _running = self.enter();
        let gone = self.is_gone(drive, handle).await;
        // its siblings have already recorded that it is out
        let still_in = self.membership.borrow().handle(drive).is_some();
        if gone && still_in {
            Decision::PulledWhileIdle.taken();
            if !self.report_failed_drive(drive, IoError::Gone).await {
                self.fail();
            }
        }
    }

    /// Whether a drive reports that it is gone. Other errors are found by the operations that need the drive.
    async fn is_gone(&self, drive: u8, handle: DriveHandle) -> bool {
        let last = {
            let membership = self.membership.borrow();
            let rows = (membership.chunk_bytes / BLOCK_BYTES as u64) as usize;
            let chunk = membership.members[usize::from(drive)].chunks.saturating_sub(1);
            membership.offset_bytes(Column { drive, chunk }, rows - 1)
        };
        let (_, read) = self.io.drive_read(handle, last, AlignedBuffer::zeroed(1)).await;
        read == Err(IoError::Gone)
    }

    /// Drives in service with an operation older than the limit. Drives that are already out are given up at once.
    fn hung_drives(&self) -> Vec<DriveHandle> {
        let patience = self.options.get().patience.hung_time;
        let now = self.io.now();
        let hangs = |handle: &DriveHandle| {
            let oldest = self.io.oldest_on_drive(*handle);
            patience > Nanos(0) && oldest.is_some_and(|began| now.saturating_sub(began) >= patience)
        };
        let membership = self.membership.borrow();
        let mut suspects = Vec::new();
        for member in &membership.members {
            let Some(handle) = member.handle.filter(hangs) else { continue };
            match member.state.is_readable() {
                true => suspects.push(handle),
                false => self.io.give_up_drive(handle),
            }
        }
        suspects
    }

    async fn answers(&self, handle: DriveHandle) -> bool {
        let read = self.io.drive_read(handle, label_offset_bytes(0, 0), AlignedBuffer::zeroed(1));
        race(read, self.io.sleep(ANSWER_TIME)).await.is_ok()
    }
}
