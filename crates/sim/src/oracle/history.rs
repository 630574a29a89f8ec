//! The history of one block: which writes a read may return, sector by sector.
//!
//! Every write is an interval on the oracle's own clock (which ticks with every call). It took effect at one
//! point within the interval, or never if it failed or was cut off:
//!
//! ```text
//!   begin ───────────────── returned          acknowledged: took effect in here
//!   begin ──────────────────────── crash      cut off: took effect in here, or never
//!   begin ──── seen by a read                 seen: took effect before that read ended
//! ```
//!
//! A read may return a write that began before the read ended and is not dead before the read began. A write
//! is dead from the point at which a write that took effect after it is certain to be there.

use super::SECTORS_PER_BLOCK;
use super::holds::{CopyId, Holds};

/// A point that never comes.
const NEVER: u64 = u64::MAX;

/// Names a write of this history.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WriteId(pub u64);

#[derive(Clone, Debug)]
pub struct Write {
    id: WriteId,
    holds: Holds,
    /// The sectors that it wrote.
    mask: u8,
    begin: u64,
    /// Answered, with whatever result, or cut off.
    returned: u64,
    /// The latest point at which it can have taken effect.
    settled: u64,
    /// Promised to survive power loss.
    stable: bool,
    /// Per sector: from here on it can not be seen any more.
    dead: [u64; SECTORS_PER_BLOCK as usize],
}

impl Write {
    fn covers(&self, sector: usize) -> bool {
        self.mask >> sector & 1 == 1
    }

    /// Nothing of it happens after this point.
    fn over(&self) -> u64 {
        self.returned.min(self.settled)
    }
}

/// Why a read's result is wrong.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Wrong {
    /// No write that may be seen has this version.
    NotPermitted,
    /// Sectors of one block come from two writes that each wrote both.
    Torn,
}

/// All that may still matter of a block's writes.
#[derive(Clone, Debug)]
pub struct History {
    writes: Vec<Write>,
    /// When power was lost last.
    power_lost: u64,
}

impl Default for History {
    /// Never written: zeros.
    fn default() -> History {
        let dead = [NEVER; SECTORS_PER_BLOCK as usize];
        let (begin, returned, settled) = (0, 0, 0);
        let (id, holds) = (WriteId(0), Holds::Version(0));
        let zeros = Write { id, holds, mask: !0, begin, returned, settled, stable: true, dead };
        History { writes: vec![zeros], power_lost: 0 }
    }
}

impl History {
    pub fn begin(&mut self, id: WriteId, version: u64, mask: u8, now: u64) {
        self.begin_any(id, Holds::Version(version), mask, now);
    }

    /// A copy has begun that brings these sectors: what, has to be told ([`History::bring`]).
    pub fn begin_copy(&mut self, id: WriteId, copy: CopyId, mask: u8, now: u64) {
        self.begin_any(id, Holds::copied(copy), mask, now);
    }

    fn begin_any(&mut self, id: WriteId, holds: Holds, mask: u8, now: u64) {
        let dead = [NEVER; SECTORS_PER_BLOCK as usize];
        let (returned, settled) = (NEVER, NEVER);
        self.writes.push(Write { id, holds, mask, begin: now, returned, settled, stable: false, dead });
    }

    /// Copies under way that bring sectors of this block, and which.
    pub fn copies_under_way(&self) -> Vec<(WriteId, CopyId, u8)> {
        let copy = |write: &Write| Some((write.id, write.holds.under_way()?, write.mask));
        self.writes.iter().filter_map(copy).collect()
    }

    /// A copy may bring this.
    pub fn bring(&mut self, id: WriteId, sector: usize, version: u64) {
        if let Some(index) = self.position(id) {
            self.writes[index].holds.bring(sector, version);
        }
    }

    /// What a sector may have held at some point after `since`.
    pub fn held_since(&self, sector: usize, since: u64) -> impl Iterator<Item = &Holds> {
        let fits = move |write: &&Write| write.covers(sector) && write.dead[sector] > since;
        self.writes.iter().filter(fits).map(|write| &write.holds)
    }

    /// Whether a copy may yet bring this version, or have brought it after `since`.
    pub fn copy_may_bring(&self, sector: usize, version: u64, since: u64) -> bool {
        self.held_since(sector, since).any(|holds| holds.is_copied() && holds.may_be(sector, version))
    }

    /// Whether it is not known which version this write has brought.
    pub fn is_uncertain(&self, id: WriteId) -> bool {
        let write = self.position(id).map(|index| &self.writes[index]);
        write.is_some_and(|write| (0..write.dead.len()).any(|sector| write.holds.versions(sector).len() > 1))
    }

    /// Whether something else was written to the same sectors while this write was under way.
    pub fn is_contended(&self, id: WriteId) -> bool {
        let Some(index) = self.position(id) else { return false };
        let own = &self.writes[index];
        let beside = |other: &Write| other.mask & own.mask != 0 && other.over() > own.begin;
        self.writes.iter().any(|other| other.id != id && beside(other))
    }

    fn position(&self, id: WriteId) -> Option<usize> {
        self.writes.iter().position(|write| write.id == id)
    }

    /// The write was acknowledged. What was over before it began is overwritten.
    pub fn acknowledged(&mut self, id: WriteId, stable: bool, now: u64) {
        let Some(index) = self.position(id) else { return };
        let write = &mut self.writes[index];
        (write.returned, write.settled) = (now, write.settled.min(now));
        write.stable = stable;
        write.holds.close();
        self.bury_before(index, now);
    }

    /// Everything that was over before this write began can not be seen after `now`.
    fn bury_before(&mut self, index: usize, now: u64) {
        let (begin, mask) = (self.writes[index].begin, self.writes[index].mask);
        for other in self.writes.iter_mut().filter(|other| other.over() < begin) {
            for sector in (0..other.dead.len()).filter(|sector| mask >> sector & 1 == 1) {
                other.dead[sector] = other.dead[sector].min(now);
            }
        }
    }

    /// The write was answered with an error: it may have taken effect, or do so in recovery after a crash.
    pub fn failed(&mut self, id: WriteId, now: u64) {
        if let Some(index) = self.position(id) {
            self.writes[index].returned = now;
            self.writes[index].holds.close();
        }
    }

    /// The write was aborted, and is over: it has taken effect by now, or never will.
    pub fn aborted(&mut self, id: WriteId, now: u64) {
        if let Some(index) = self.position(id) {
            let write = &mut self.writes[index];
            (write.returned, write.settled) = (now, write.settled.min(now));
            write.holds.close();
        }
    }

    /// The write was answered with a promise that it changed nothing. `false`: it had been seen.
    pub fn refused(&mut self, id: WriteId) -> bool {
        let Some(index) = self.position(id) else { return true };
        let unseen = self.writes[index].settled == NEVER;
        self.writes.remove(index);
        unseen
    }

    /// A flush that began after the write was acknowledged has been answered.
    pub fn flushed(&mut self, id: WriteId) {
        if let Some(index) = self.position(id) {
            self.writes[index].stable = true;
        }
    }

    /// The process ended: what was in flight has taken effect by now, or never will.
    pub fn crashed(&mut self, power_lost: bool, write_back: bool, now: u64) {
        for write in &mut self.writes {
            write.settled = write.settled.min(now);
            write.returned = write.returned.min(now);
            write.holds.close();
        }
        if !power_lost {
            return;
        }
        self.power_lost = now;
        if write_back {
            for index in 0..self.writes.len() {
                for sector in 0..SECTORS_PER_BLOCK as usize {
                    if self.is_restorable(index, sector) {
                        self.writes[index].dead[sector] = NEVER;
                    }
                }
            }
        }
    }

    /// Whether power loss may bring this write's sector back: nothing stable is certain to be above it.
    fn is_restorable(&self, index: usize, sector: usize) -> bool {
        let write = &self.writes[index];
        write.covers(sector)
            && !self
                .writes
                .iter()
                .any(|other| other.stable && other.covers(sector) && other.begin > write.over())
    }

    /// Checks what a read that began at `began` and ends `now` saw of this block: version by sector, where read.
    pub fn observe(
        &mut self,
        seen: &[Option<u64>; SECTORS_PER_BLOCK as usize],
        began: u64,
        now: u64,
    ) -> Result<(), (usize, Wrong)> {
        let mut single: [Option<usize>; SECTORS_PER_BLOCK as usize] = Default::default();
        for (sector, version) in seen.iter().enumerate() {
            let Some(version) = *version else { continue };
            let matches = self.matches(sector, version, began, now);
            match matches[..] {
                [] => return Err((sector, Wrong::NotPermitted)),
                [one] => single[sector] = Some(one),
                _ => {}
            }
        }
        if let Some(sector) = self.torn(&single) {
            return Err((sector, Wrong::Torn));
        }
        for (sector, version) in seen.iter().enumerate() {
            if let Some(version) = *version {
                self.learn(sector, version, began, now);
            }
        }
        Ok(())
    }

    fn matches(&self, sector: usize, version: u64, began: u64, now: u64) -> Vec<usize> {
        let fits = |write: &Write| {
            write.covers(sector)
                && write.holds.may_be(sector, version)
                && write.begin < now
                && write.dead[sector] > began
        };
        (0..self.writes.len()).filter(|&index| fits(&self.writes[index])).collect()
    }

    fn torn(&self, single: &[Option<usize>; SECTORS_PER_BLOCK as usize]) -> Option<usize> {
        let known =
            single.iter().enumerate().filter_map(|(sector, write)| write.map(|write| (sector, write)));
        let known: Vec<(usize, usize)> = known.collect();
        for &(sector, one) in &known {
            for &(other_sector, other) in &known {
                let both = |write: &Write| write.covers(sector) && write.covers(other_sector);
                if one != other && both(&self.writes[one]) && both(&self.writes[other]) {
                    return Some(other_sector);
                }
            }
        }
        None
    }

    /// What was seen took effect before `now`; whatever else was over before the read began lies below it.
    fn learn(&mut self, sector: usize, version: u64, began: u64, now: u64) {
        let matches = self.matches(sector, version, began, now);
        let power_lost = self.power_lost;
        let recovered =
            power_lost > 0 && matches.iter().all(|&index| self.writes[index].settled <= power_lost);
        for (index, write) in self.writes.iter_mut().enumerate() {
            if matches.contains(&index) || !write.covers(sector) {
                continue;
            }
            if write.settled <= began {
                write.dead[sector] = write.dead[sector].min(now);
            }
            if recovered && write.settled <= power_lost {
                // this is what recovery from power loss settled on: the others never rise again
                write.mask &= !(1 << sector);
            }
        }
        if let [one] = matches[..] {
            let write = &mut self.writes[one];
            if write.returned <= began {
                write.holds.settle(sector, version);
            }
            write.settled = write.settled.min(now);
            let (begin, settled) = (write.begin, write.settled);
            for other in self.writes.iter_mut().filter(|other| other.covers(sector) && other.settled < begin)
            {
                other.dead[sector] = other.dead[sector].min(settled.max(now));
            }
        }
    }

    /// As a snapshot has it that was taken between the two: whatever could be seen then is there or not, for ever.
    pub fn frozen(&self, began: u64, now: u64) -> History {
        let mut frozen = self.clone();
        for write in &mut frozen.writes {
            // what was under way is not certain to be there: where it was promised to last says nothing of the snapshot
            write.stable &= write.over() <= began;
            (write.settled, write.returned) = (write.settled.min(now), write.returned.min(now));
            write.holds.close();
            write.dead.iter_mut().filter(|dead| **dead > began).for_each(|dead| *dead = NEVER);
        }
        frozen
    }

    /// When what a sector showed at some point after `since` can have been there: from when and until when.
    pub fn life(&self, sector: usize, version: u64, since: u64) -> Option<(u64, u64)> {
        let fits = |write: &&Write| {
            write.covers(sector) && write.holds.may_be(sector, version) && write.dead[sector] > since
        };
        let lives = self.writes.iter().filter(fits).map(|write| (write.begin, write.dead[sector]));
        lives.reduce(|one, other| (one.0.min(other.0), one.1.max(other.1)))
    }

    /// Whether this version is the only one that a read of the sector within the interval could give.
    pub fn is_certain(&self, sector: usize, version: u64, began: u64, now: u64, except: WriteId) -> bool {
        let visible = |write: &&Write| {
            write.covers(sector) && write.begin < now && write.dead[sector] > began && write.id != except
        };
        self.writes.iter().filter(visible).all(|write| write.holds.is(sector, version))
    }

    /// Forgets what no read that is open (the oldest began at `oldest_read`) or will be can show.
    pub fn prune(&mut self, oldest_read: u64, write_back: bool) {
        if self.writes.len() < 2 {
            return;
        }
        let keeps = |history: &History, index: usize| {
            let write = &history.writes[index];
            (0..write.dead.len()).any(|sector| {
                let alive = write.covers(sector) && write.dead[sector] >= oldest_read;
                alive || (write_back && history.is_restorable(index, sector))
            }) || write.returned == NEVER
        };
        let kept: Vec<bool> = (0..self.writes.len()).map(|index| keeps(self, index)).collect();
        let mut kept = kept.into_iter();
        self.writes.retain(|_| kept.next() == Some(true));
    }

    /// The versions that a read now may give for a sector, for messages.
    pub fn permitted(&self, sector: usize, began: u64) -> Vec<u64> {
        self.held_since(sector, began).flat_map(|holds| holds.versions(sector)).copied().collect()
    }
}

#[cfg(test)]
mod tests;
