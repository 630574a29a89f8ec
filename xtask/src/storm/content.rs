//! What blocks hold, and what they may hold: every block says which it is and which write it comes from, and two
//! ledgers know which writes may be there.
//!
//! A block that one session alone writes has a short list of versions that may be there. A block that all write has an
//! interval for each write, on one clock: a write is dead once one that began after it was over is acknowledged.

use std::collections::BTreeSet;

/// Bytes of a block.
pub const BLOCK: usize = 4096;

/// Where a block is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Place {
    pub lun: u16,
    pub block: u64,
}

/// The content of a block at this version; version 0 is zeros.
pub fn content(place: Place, version: u64) -> Vec<u8> {
    if version == 0 {
        return vec![0; BLOCK];
    }
    let mut bytes = Vec::with_capacity(BLOCK);
    bytes.extend_from_slice(&version.to_le_bytes());
    let mut state = version ^ (place.block << 20) ^ u64::from(place.lun) << 56 ^ 0x9E37_79B9_7F4A_7C15;
    while bytes.len() < BLOCK {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        bytes.extend_from_slice(&state.to_le_bytes());
    }
    bytes
}

/// The version that a block holds; `None` where it is torn, or another block's.
pub fn version(place: Place, bytes: &[u8]) -> Option<u64> {
    let version = u64::from_le_bytes(bytes.get(..8)?.try_into().ok()?);
    (content(place, version) == bytes).then_some(version)
}

/// A block that one session alone writes.
#[derive(Clone, Debug)]
pub struct Own {
    /// Versions that may be there; one of them is.
    pub possible: Vec<u64>,
    /// A request is under way.
    pub busy: bool,
}

impl Own {
    pub fn new() -> Own {
        Own { possible: vec![0], busy: false }
    }

    pub fn written(&mut self, version: u64) {
        self.possible = vec![version];
    }

    /// The write was aborted, and is over: it took effect or never will.
    pub fn aborted(&mut self, version: u64) {
        self.possible.push(version);
    }

    /// What a read has shown is there from now on.
    pub fn seen(&mut self, place: Place, bytes: &[u8]) -> Result<(), String> {
        let Some(seen) = version(place, bytes) else { return Err(format!("{place:?} is torn or misplaced")) };
        if !self.possible.contains(&seen) {
            return Err(format!("{place:?} holds version {seen:x}; it may hold {:x?}", self.possible));
        }
        self.possible = vec![seen];
        Ok(())
    }
}

struct Write {
    version: u64,
    began: u64,
    /// Answered or aborted, and in either case over.
    over: Option<u64>,
    acknowledged: bool,
}

/// A block that every session writes.
#[derive(Default)]
pub struct Common {
    writes: Vec<Write>,
    reads: Vec<u64>,
    clock: u64,
    /// Versions that a compare-and-write has replaced.
    replaced: BTreeSet<u64>,
}

impl Common {
    fn tick(&mut self) -> u64 {
        if self.clock == 0 {
            self.writes.push(Write { version: 0, began: 0, over: Some(0), acknowledged: true });
        }
        self.clock += 1;
        self.clock
    }

    pub fn begin_write(&mut self, version: u64) {
        let began = self.tick();
        self.writes.push(Write { version, began, over: None, acknowledged: false });
    }

    /// The write is over; `acknowledged` or not.
    pub fn end_write(&mut self, version: u64, acknowledged: bool) {
        let now = self.tick();
        if let Some(write) = self.writes.iter_mut().find(|write| write.version == version) {
            (write.over, write.acknowledged) = (Some(now), acknowledged);
        }
        self.prune();
    }

    /// The write was refused: it must never have been there.
    pub fn refuse_write(&mut self, version: u64) {
        self.tick();
        self.writes.retain(|write| write.version != version);
    }

    /// A compare-and-write has matched this version.
    pub fn replace(&mut self, place: Place, version: u64) -> Result<(), String> {
        if version != 0 && !self.replaced.insert(version) {
            return Err(format!("{place:?}: two compares matched version {version:x}"));
        }
        Ok(())
    }

    /// When the read began, for [`Common::end_read`].
    pub fn begin_read(&mut self) -> u64 {
        let now = self.tick();
        self.reads.push(now);
        now
    }

    pub fn drop_read(&mut self, began: u64) {
        self.reads.retain(|&other| other != began);
    }

    /// The version that was read, where that may be.
    pub fn end_read(&mut self, place: Place, began: u64, bytes: &[u8]) -> Result<u64, String> {
        self.tick();
        let seen = version(place, bytes).ok_or_else(|| format!("{place:?} is torn or misplaced"));
        let result = seen.and_then(|seen| {
            let known = self.writes.iter().find(|write| write.version == seen);
            let Some(write) = known else {
                return Err(format!("{place:?} holds version {seen:x}, which was refused or overwritten"));
            };
            match self.buried_by(write, began) {
                Some(later) => {
                    Err(format!("{place:?} holds version {seen:x}, which version {later:x} has overwritten"))
                }
                None => Ok(seen),
            }
        });
        self.drop_read(began);
        self.prune();
        result
    }

    /// The acknowledged write that lies wholly between this one and `now`.
    fn buried_by(&self, write: &Write, now: u64) -> Option<u64> {
        let over = write.over?;
        let between = |later: &&Write| {
            later.acknowledged && later.began > over && later.over.is_some_and(|end| end < now)
        };
        self.writes.iter().find(between).map(|later| later.version)
    }

    /// Forgets writes that no read can show any more.
    fn prune(&mut self) {
        let oldest = self.reads.iter().copied().min().unwrap_or(self.clock);
        let dead: Vec<u64> = self
            .writes
            .iter()
            .filter(|write| self.buried_by(write, oldest).is_some())
            .map(|write| write.version)
            .collect();
        self.writes.retain(|write| !dead.contains(&write.version));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HERE: Place = Place { lun: 1, block: 77 };

    #[test]
    fn blocks_say_who_they_are() {
        for good in [0, 1, u64::MAX] {
            assert_eq!(version(HERE, &content(HERE, good)), Some(good));
        }
        let mut torn = content(HERE, 5);
        torn[2048..].copy_from_slice(&content(HERE, 6)[2048..]);
        assert_eq!(version(HERE, &torn), None);
        assert_eq!(version(Place { lun: 2, ..HERE }, &content(HERE, 5)), None);
        assert_eq!(version(Place { block: 78, ..HERE }, &content(HERE, 5)), None);
    }

    #[test]
    fn an_aborted_write_is_there_or_not_for_ever() {
        let mut own = Own::new();
        own.written(1);
        own.aborted(2);
        assert!(own.clone().seen(HERE, &content(HERE, 2)).is_ok());
        assert!(own.clone().seen(HERE, &content(HERE, 0)).is_err());
        own.seen(HERE, &content(HERE, 1)).unwrap();
        assert!(own.seen(HERE, &content(HERE, 2)).unwrap_err().contains("holds version 2"), "it landed late");
    }

    #[test]
    fn common_blocks_show_no_write_that_another_has_followed() {
        let mut common = Common::default();
        let read = |common: &mut Common, version| {
            let began = common.begin_read();
            common.end_read(HERE, began, &content(HERE, version))
        };
        assert_eq!(read(&mut common, 0), Ok(0));
        common.begin_write(1);
        common.begin_write(2);
        common.end_write(1, true);
        assert_eq!((read(&mut common, 1), read(&mut common, 2)), (Ok(1), Ok(2)));
        assert!(read(&mut common, 0).is_err(), "lost");
        common.end_write(2, false);
        let early = common.begin_read();
        common.begin_write(3);
        common.end_write(3, true);
        assert!(common.end_read(HERE, early, &content(HERE, 2)).is_ok());
        assert!(read(&mut common, 2).is_err(), "late");
        common.begin_write(4);
        common.refuse_write(4);
        assert!(read(&mut common, 4).is_err());
        assert!(common.replace(HERE, 3).is_ok() && common.replace(HERE, 3).is_err());
    }
}
