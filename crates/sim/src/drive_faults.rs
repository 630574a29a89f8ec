//! Faults that the workload injects into drives from outside. Each is counted, and affects only one drive.

use std::collections::BTreeSet;

use base::{BLOCK_BYTES, Nanos};

use crate::drive::{Drive, DriveNumber, Failing};
use crate::fault::{FaultKind, FaultRates};
use crate::medium::{Medium, Mood};
use crate::world::{EventKind, Inner, World};

/// What a drive held at some time.
pub struct Snapshot(Medium);

impl Inner {
    /// See [`World::vanish`].
    fn vanish(&mut self, drive: DriveNumber, back_after: Option<Nanos>, handles_survive: bool) {
        let vanished = &mut self.drives[drive.0 as usize];
        vanished.dying = false;
        if !std::mem::replace(&mut vanished.present, false) {
            return;
        }
        self.counts.add(FaultKind::DriveVanished);
        vanished.appearance += u32::from(!handles_survive);
        vanished.writers.retain(|_| handles_survive);
        let mut prng = self.prng.fork();
        let mood = Mood::draw(&mut prng, vanished.options.tearing);
        vanished.medium.lose_cache(mood, &mut prng, &mut self.counts);
        let now = self.now;
        self.trace.line(now, || format!("drive {} vanishes, back after {back_after:?}", drive.0));
        if let Some(delay) = back_after {
            self.schedule(delay, EventKind::DriveReturns(drive));
        }
    }

    /// The system notices that a drive was pulled, unless it has come back.
    pub(crate) fn notice_pulled(
        &mut self,
        drive: DriveNumber,
        pull: u32,
        back_after: Option<Nanos>,
        handles_survive: bool,
    ) {
        let pulled = &self.drives[drive.0 as usize];
        if pulled.dying && pulled.pulls == pull {
            self.vanish(drive, back_after, handles_survive);
        }
    }
}

/// What the workload may do to drives. Each is counted.
impl World {
    /// Sets how often a drive misbehaves from now on.
    /// The drives of a machine lose what they had not flushed, as when its power goes. Its processes have ended before.
    pub fn lose_caches(&self, machine: u16) {
        self.0.borrow_mut().lose_drive_caches(machine);
    }

    pub fn set_fault_rates(&self, drive: DriveNumber, rates: FaultRates) {
        self.0.borrow_mut().drives[drive.0 as usize].rates = rates;
    }

    /// The drive disappears with what its cache held; operations on it fail. With `back_after` it returns, and
    /// old handles work again where `handles_survive`.
    pub fn vanish(&self, drive: DriveNumber, back_after: Option<Nanos>, handles_survive: bool) {
        self.0.borrow_mut().vanish(drive, back_after, handles_survive);
    }

    /// The drive is pulled, and the system notices it late: for this time it has its size, and every read, write and
    /// flush is an error. Then it disappears as by [`World::vanish`].
    pub fn pull(
        &self,
        drive: DriveNumber,
        errors_for: Nanos,
        back_after: Option<Nanos>,
        handles_survive: bool,
    ) {
        let mut inner = self.0.borrow_mut();
        let now = inner.now;
        let pulled = &mut inner.drives[drive.0 as usize];
        if !pulled.present || std::mem::replace(&mut pulled.dying, true) {
            return;
        }
        pulled.pulls += 1;
        let pull = pulled.pulls;
        inner.counts.add(FaultKind::DrivePulled);
        inner.trace.line(now, || format!("drive {} is pulled, and vanishes after {errors_for:?}", drive.0));
        inner.schedule(errors_for, EventKind::DriveVanishes { drive, pull, back_after, handles_survive });
    }

    /// The drive ends in its middle from now on, as a device that was made smaller: what lay beyond is gone.
    pub fn halve(&self, drive: DriveNumber) {
        let mut inner = self.0.borrow_mut();
        let now = inner.now;
        let halved = &mut inner.drives[drive.0 as usize];
        let half = halved.size_blocks() / 2 * BLOCK_BYTES as u64;
        halved.set_size(half);
        inner.trace.line(now, || format!("drive {} has half its size", drive.0));
    }

    /// The drive ends elsewhere from now on: at a multiple of 512 bytes.
    pub fn resize(&self, drive: DriveNumber, size_bytes: u64) {
        let mut inner = self.0.borrow_mut();
        let now = inner.now;
        inner.drives[drive.0 as usize].set_size(size_bytes);
        inner.trace.line(now, || format!("drive {} has {size_bytes} bytes", drive.0));
    }

    /// A drive that vanished is there again, with what it held.
    pub fn return_drive(&self, drive: DriveNumber) {
        self.0.borrow_mut().return_drive(drive);
    }

    pub fn is_present(&self, drive: DriveNumber) -> bool {
        let drive = &self.0.borrow().drives[drive.0 as usize];
        drive.present && !drive.dying
    }

    /// The drive answers nothing until `time` from now; nothing happens where it is stuck already, or was for
    /// most of the time since it last was not.
    pub fn stick(&self, drive: DriveNumber, time: Nanos) {
        let mut inner = self.0.borrow_mut();
        let now = inner.now;
        let stuck = &mut inner.drives[drive.0 as usize];
        if now < stuck.stuck_again {
            return;
        }
        stuck.stuck_until = now + time;
        stuck.stuck_again = now + Nanos(time.0 * 3);
        inner.counts.add(FaultKind::DriveStuck);
        inner.trace.line(now, || format!("drive {} is stuck for {time:?}", drive.0));
    }

    /// From now on the drive takes so many times as long as it did at first for everything.
    pub fn slow_down(&self, drive: DriveNumber, times: u64) {
        let mut inner = self.0.borrow_mut();
        let now = inner.now;
        inner.drives[drive.0 as usize].slowness = times;
        if times > 1 {
            inner.counts.add(FaultKind::SlowDrive);
        }
        inner.trace.line(now, || format!("drive {} is {times} times slower", drive.0));
    }

    /// From now on writes that begin take so much longer; reads and flushes do not.
    pub fn delay_writes(&self, drive: DriveNumber, time: Nanos) {
        self.0.borrow_mut().drives[drive.0 as usize].writes_later = time;
    }

    /// How long operations of the drive take, at least and at most.
    pub fn set_latency(&self, drive: DriveNumber, least: Nanos, most: Nanos) {
        self.0.borrow_mut().drives[drive.0 as usize].latency = (least, most);
    }

    /// So many of the drive's next attempts of each kind fail; none any more if these are zero.
    pub fn fail_next(&self, drive: DriveNumber, failing: Failing) {
        let mut inner = self.0.borrow_mut();
        let now = inner.now;
        inner.drives[drive.0 as usize].failing = failing;
        inner.trace.line(now, || format!("the next attempts of drive {} fail: {failing:?}", drive.0));
    }

    /// The file system below a file drive is full, or has space again.
    pub fn set_no_space(&self, drive: DriveNumber, full: bool) {
        let mut inner = self.0.borrow_mut();
        let now = inner.now;
        let drive = &mut inner.drives[drive.0 as usize];
        if std::mem::replace(&mut drive.no_space, full) && !full {
            drive.space_since = now;
        }
    }

    /// Whether the file system below any drive was full at some moment since then.
    pub fn was_full_since(&self, since: Nanos) -> bool {
        let full = |drive: &Drive| drive.no_space || drive.space_since > since;
        self.0.borrow().drives.iter().any(full)
    }

    /// Puts garbage over so much of what was ever written to the drive, its labels first.
    pub fn overwrite(&self, drive: DriveNumber, permille: usize) {
        let mut inner = self.0.borrow_mut();
        let inner = &mut *inner;
        inner.drives[drive.0 as usize].overwrite(permille, &mut inner.prng, &mut inner.counts);
    }

    /// What the drive holds now.
    pub fn snapshot(&self, drive: DriveNumber) -> Snapshot {
        let mut medium = self.0.borrow().drives[drive.0 as usize].medium.clone();
        medium.flush(u64::MAX);
        Snapshot(medium)
    }

    /// The drive holds again what it held when the snapshot was taken.
    pub fn put_back(&self, drive: DriveNumber, snapshot: Snapshot) {
        let mut inner = self.0.borrow_mut();
        inner.drives[drive.0 as usize].medium = snapshot.0;
        inner.counts.add(FaultKind::DrivePutBack);
        let now = inner.now;
        inner.trace.line(now, || format!("drive {} is put back to an older state", drive.0));
    }

    /// Flips one bit somewhere in what the drive holds.
    pub fn rot_somewhere(&self, drive: DriveNumber) {
        let mut inner = self.0.borrow_mut();
        let inner = &mut *inner;
        inner.drives[drive.0 as usize].rot_somewhere(&mut inner.prng, &mut inner.counts);
    }

    /// Flips one bit of a block, if anything was ever written there.
    pub fn rot(&self, drive: DriveNumber, block: u64, bit: usize) -> bool {
        let mut inner = self.0.borrow_mut();
        let rotten = inner.drives[drive.0 as usize].medium.rot(block, bit);
        if rotten {
            inner.counts.add(FaultKind::BitRot);
        }
        rotten
    }

    /// Makes a block unreadable until it is rewritten.
    pub fn spoil(&self, drive: DriveNumber, block: u64) {
        let mut inner = self.0.borrow_mut();
        let inner = &mut *inner;
        inner.drives[drive.0 as usize].spoil(block, &mut inner.counts);
    }

    /// Makes some block of what is stored unreadable until it is rewritten.
    pub fn spoil_somewhere(&self, drive: DriveNumber) {
        let mut inner = self.0.borrow_mut();
        let inner = &mut *inner;
        let spoilt = &mut inner.drives[drive.0 as usize];
        if let Some(block) = spoilt.medium.some_allocated(&mut inner.prng) {
            spoilt.spoil(block, &mut inner.counts);
        }
    }

    /// Rots, or makes unreadable, some block of what is stored from this block on.
    pub fn damage_beyond(&self, drive: DriveNumber, first: u64) {
        let mut inner = self.0.borrow_mut();
        let inner = &mut *inner;
        let damaged = &mut inner.drives[drive.0 as usize];
        let (prng, counts) = (&mut inner.prng, &mut inner.counts);
        let Some(block) = damaged.medium.some_allocated(prng).filter(|&block| block >= first) else { return };
        match prng.chance(500) {
            true => damaged.spoil(block, counts),
            false if damaged.medium.rot(block, prng.index(BLOCK_BYTES * 8)) => counts.add(FaultKind::BitRot),
            false => {}
        }
    }

    /// Whether a write to the drive is in flight.
    pub fn is_written_to(&self, drive: DriveNumber) -> bool {
        !self.0.borrow().writes_in_flight(drive, 0, u64::MAX).is_empty()
    }

    /// Writes that the drive has ended.
    pub fn writes_ended(&self, drive: DriveNumber) -> u64 {
        self.0.borrow().drives[drive.0 as usize].writes
    }

    /// What a drive's block holds now, as a read would see it if the drive were well.
    pub fn peek(&self, drive: DriveNumber, block: u64) -> Vec<u8> {
        let mut content = vec![0; BLOCK_BYTES];
        self.0.borrow().drives[drive.0 as usize].medium.read(block, &mut content);
        content
    }

    /// Blocks from this one on in which two drives differ.
    pub fn differing_blocks(&self, one: DriveNumber, other: DriveNumber, from: u64) -> Vec<u64> {
        let written = |drive: DriveNumber| {
            let inner = self.0.borrow();
            inner.drives[drive.0 as usize].medium.allocated().into_iter().collect::<BTreeSet<u64>>()
        };
        let mut all = written(one);
        all.extend(written(other));
        all.into_iter()
            .filter(|&block| block >= from && self.peek(one, block) != self.peek(other, block))
            .collect()
    }

    /// Puts content onto a drive from outside, durably.
    pub fn poke(&self, drive: DriveNumber, block: u64, content: &[u8]) {
        self.0.borrow_mut().drives[drive.0 as usize].medium.write(block, content.into(), true);
    }
}
