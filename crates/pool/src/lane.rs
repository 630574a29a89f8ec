//! A lane: one independent log of a pool, on one shard.
//!
//! ```text
//!  execute ─► write.rs ─► queue.rs (pending → batch → drives → commit in order) ─► map, segments
//!          └► read.rs ─► map ─► cells.rs (drives, checksums, rebuilding)
//!  in the background: log task, checkpoint/writer.rs, clean.rs
//! ```
//!
//! The lane owns parts: `Cleaner`, `Checkpointer`, `Scrubber`, `Merger`, `DriveHealth`, `Life`, and others. Each part
//! has private state and does not know the lane. An operation that needs several parts is a method of the lane, in the
//! folder of its subject. A part is borrowed only for one synchronous step, never across an await.

use std::cell::{Cell, RefCell};
use std::future::Future;
use std::rc::Rc;

use crate::drives::departure::Departure;
use base::Nanos;
use task::{Io, Notify, OneshotReceiver};

use crate::checkpoint::checkpointer::Checkpointer;
use crate::cleaning::cleaner::Cleaner;
use crate::counters::LaneCounters;
use crate::decision::Decision;
use crate::drives::evidence::Patience;
use crate::drives::health::DriveHealth;
use crate::drives::membership::{Member, Membership};
use crate::error::LaneError;
use crate::format::label::DriveState;
use crate::integrity::scrubber::Scrubber;
use crate::layers::merger::Merger;
use crate::life::Life;
use crate::log::queue::{Log, Tickets};
use crate::map::tree::Map;
use crate::requests::hold_table::Holds;
use crate::space::promises::Promises;
use crate::space::segments::Segments;
use crate::space::shares::Shares;

/// What a lane asks of the owner of the whole pool.
pub trait LaneHost {
    /// A drive does not answer any more, refuses writes, or has too many errors. The future ends when this is recorded
    /// on the remaining drives and [`Lane::set_membership`] has been called, or when the drive is kept; `false` if it
    /// cannot be recorded, or too many drives have failed.
    fn drive_failed(&self, drive: u8, departure: Departure) -> OneshotReceiver<bool>;
}

/// How a lane runs.
#[derive(Clone, Copy, Debug)]
pub struct LaneOptions {
    /// Memory for map pages, in bytes.
    pub map_budget_bytes: usize,
    /// A checkpoint is written at least this often while there are changes.
    pub checkpoint_interval: Nanos,
    /// The share of time that rebuilding and scrubbing may take while hosts are served, in percent, 1 to 100.
    pub repair_share_percent: u8,
    /// The error thresholds of a drive.
    pub patience: Patience,
}

impl Default for LaneOptions {
    fn default() -> Self {
        LaneOptions {
            map_budget_bytes: 256 << 20,
            checkpoint_interval: Nanos::from_secs(30),
            repair_share_percent: 50,
            patience: Patience::default(),
        }
    }
}

/// One lane. See the header of this file.
pub struct Lane {
    pub(crate) io: Io,
    pub(crate) number: u16,
    pub(crate) options: Cell<LaneOptions>,
    pub(crate) host: Rc<dyn LaneHost>,
    pub(crate) membership: RefCell<Membership>,
    pub(crate) segments: RefCell<Segments>,
    pub(crate) map: RefCell<Map>,
    pub(crate) log: RefCell<Log>,
    pub(crate) tickets: Tickets,
    pub(crate) holds: RefCell<Holds>,
    pub(crate) life: Life,
    pub(crate) counters: RefCell<LaneCounters>,
    /// There is work for the log task.
    pub(crate) log_work: Notify,
    /// A batch was committed, or will never be.
    pub(crate) committed: Notify,
    /// Space may have become free, or the checkpoint has moved on.
    pub(crate) space: Notify,
    /// There is work for the background task (checkpoint, cleaning).
    pub(crate) background: Notify,
    pub(crate) cleaner: Cleaner,
    pub(crate) checkpointer: Checkpointer,
    pub(crate) merger: Merger,
    pub(crate) scrubber: Scrubber,
    /// What the drives have done recently.
    pub(crate) health: DriveHealth,
    /// Blocks for which space is promised to writes that are not committed yet.
    pub(crate) promises: Promises,
    /// Map pages that walks have looked at since other tasks last ran.
    pub(crate) walked: Cell<u32>,
    /// A write waits because the file system under a drive is full.
    pub(crate) full: Notify,
}

impl Lane {
    pub(crate) fn new(
        io: &Io,
        number: u16,
        membership: Membership,
        host: Rc<dyn LaneHost>,
        options: LaneOptions,
    ) -> Lane {
        let chunks: Vec<u32> = membership.members.iter().map(|member| member.chunks).collect();
        let rows = membership.rows();
        let mut segments = Segments::new(
            membership.protection,
            membership.width,
            rows,
            &chunks,
            (number, membership.lanes),
            membership.epoch,
        );
        segments.set_drives(drives_of(&membership));
        Lane {
            io: io.clone(),
            number,
            options: Cell::new(options),
            host,
            membership: RefCell::new(membership),
            segments: RefCell::new(segments),
            map: RefCell::new(Map::new(options.map_budget_bytes)),
            log: RefCell::new(Log::default()),
            holds: RefCell::default(),
            life: Life::new(io),
            counters: RefCell::new(LaneCounters::default()),
            log_work: Notify::new(io),
            tickets: Tickets::new(io),
            committed: Notify::new(io),
            space: Notify::new(io),
            background: Notify::new(io),
            cleaner: Cleaner::default(),
            checkpointer: Checkpointer::new(io),
            merger: Merger::default(),
            scrubber: Scrubber::default(),
            health: DriveHealth::default(),
            promises: Promises::default(),
            walked: Cell::new(0),
            full: Notify::new(io),
        }
    }

    pub fn number(&self) -> u16 {
        self.number
    }

    /// Operations of this shard on each drive of the pool that have not ended, by drive index: those of all the pool's
    /// lanes here.
    pub fn drives_in_flight(&self) -> Vec<usize> {
        let handles: Vec<_> = self.membership.borrow().members.iter().map(|member| member.handle).collect();
        self.io.in_flight_on(&handles)
    }

    /// Adopts a membership: drives have failed, come back, joined, or are being emptied. New segments use only online
    /// drives. What is on the other drives is written anew if there is space.
    pub fn set_membership(&self, membership: Membership) {
        let before = self.membership.replace(membership);
        let membership = self.membership.borrow();
        for (index, (then, now)) in before.members.iter().zip(&membership.members).enumerate() {
            match (then.state.is_readable(), now.state.is_readable()) {
                (true, false) => self.mark_unsettled(index as u8),
                (false, true) => self.try_what_is_lost_again(),
                _ => {}
            }
            if then.slow && !now.slow {
                self.health.forget_latency(index as u8);
            }
        }
        self.segments.borrow_mut().set_drives(drives_of(&membership));
        self.leave_unusable();
        self.relieve();
        self.want_repairs();
        self.space.notify();
        self.log_work.notify();
    }

    /// Segments on a drive that accepts nothing new are no longer written to or reserved. Otherwise their content could
    /// not be written anew if no host writes.
    pub(crate) fn leave_unusable(&self) {
        let place = self.log.borrow().place;
        let place = place.filter(|&(id, _)| !self.segments.borrow().is_whole(id));
        if let Some((id, row)) = place {
            self.seal(id, row);
        }
        if self.segments.borrow_mut().drop_unusable() || place.is_some() {
            self.want_checkpoint();
        }
    }

    /// Changes the pacing of repairs and the error thresholds from now on.
    pub fn tune(&self, repair_share_percent: u8, patience: Patience) {
        self.options.set(LaneOptions { repair_share_percent, patience, ..self.options.get() });
    }

    /// Sets the memory of the map, in bytes, from now on.
    pub fn set_map_budget(&self, bytes: usize) {
        self.map.borrow_mut().set_budget(bytes);
    }

    /// A drive is out: if it comes back, it may lack what had not been flushed.
    fn mark_unsettled(&self, drive: u8) {
        let durable = self.log.borrow().durable();
        for segment in self.segments.borrow_mut().iter_mut() {
            if segment.used_rows > 0 && segment.last > durable {
                segment.lacks_on(drive);
            }
        }
    }

    /// Segments of this lane that have a column on a drive. When it is 0, nothing on the drive is needed.
    pub fn segments_on_drive(&self, drive: u8) -> usize {
        self.segments.borrow().on_drive(drive)
    }

    /// Blocks that are stored, and how many could be without a drive, or with a replacement of this many chunks.
    pub fn space_without(&self, drive: u8, instead: Option<u32>) -> (u64, u64) {
        let segments = self.segments.borrow();
        (segments.live(), Shares::capacity_without(drive, instead, &segments, &self.map.borrow()))
    }

    pub(crate) fn check_running(&self) -> Result<(), LaneError> {
        self.life.check_running()
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.life.has_ended()
    }

    /// Abandons everything that waits for the log: too many drives are gone.
    pub(crate) fn fail(&self) {
        if self.life.fail() {
            Decision::LaneFailed.taken();
        }
        self.log.borrow_mut().abandon();
        self.committed.notify();
        self.space.notify();
        self.log_work.notify();
        self.background.notify();
    }

    /// Starts a task that [`Lane::close`] waits for.
    pub(crate) fn spawn(self: &Rc<Self>, future: impl Future<Output = ()> + 'static) {
        let running = self.enter();
        self.io.spawn(async move {
            future.await;
            drop(running);
        });
    }

    /// Counts as running until dropped.
    pub(crate) fn enter(self: &Rc<Self>) -> Running {
        self.life.enter();
        Running(self.clone())
    }

    /// Writes a last checkpoint, so that the next start has nothing to replay, and ends every task. When this ends, the
    /// lane accesses no drive any more.
    pub async fn close(self: &Rc<Self>) -> Result<(), LaneError> {
        self.life.begin_closing();
        let result = if self.life.is_recovering() {
            // nothing was accepted that a checkpoint could keep
            Ok(())
        } else if self.life.is_stalled() {
            // the checkpoint would wait for space, which may never become free
            Err(LaneError::OutOfSpace)
        } else {
            self.write_checkpoint().await
        };
        self.life.close();
        self.fail();
        self.life.all_ended().await;
        result
    }
}

/// What the segments must know of each drive.
fn drives_of(membership: &Membership) -> impl Iterator<Item = (u32, bool, bool)> + '_ {
    let known =
        |member: &Member| (member.chunks, member.state == DriveState::Online, member.state.is_readable());
    membership.members.iter().map(known)
}

/// A task or request of a lane that has not ended.
pub(crate) struct Running(Rc<Lane>);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.life.leave();
    }
}
