//! A command that is at work: which volumes it may touch, and whether it is to stop.

use std::cell::{Cell, RefCell};

use base::VolumeId;
use iscsi::TaskTag;

/// A command that may touch a volume.
pub(crate) struct RunningCommand {
    pub(crate) task: TaskTag,
    pub(crate) volume: VolumeId,
    /// Other volumes that it has reached: a copy's.
    others: RefCell<Vec<VolumeId>>,
    /// It is not answered any more, and goes no further.
    pub(crate) aborted: Cell<bool>,
    /// It goes no further: it was aborted, or is a copy that somebody else's reset met at a volume that it had reached.
    pub(crate) stopped: Cell<bool>,
    /// It executes block requests: it waits for nobody else.
    at_medium: Cell<bool>,
}

impl RunningCommand {
    pub(crate) fn new(task: TaskTag, volume: VolumeId) -> RunningCommand {
        let no = || Cell::new(false);
        let (aborted, stopped, at_medium) = (no(), no(), no());
        RunningCommand { task, volume, others: RefCell::default(), aborted, stopped, at_medium }
    }

    pub(crate) fn abort(&self) {
        self.aborted.set(true);
        self.stopped.set(true);
    }

    pub(crate) fn begin_at_medium(&self) {
        self.at_medium.set(true);
    }

    pub(crate) fn is_at_medium(&self) -> bool {
        self.at_medium.get()
    }

    /// From now on it may touch this volume, too. `false` where that is so already.
    pub(crate) fn reach(&self, volume: VolumeId) -> bool {
        let is_new = !self.touches(volume);
        if is_new {
            self.others.borrow_mut().push(volume);
        }
        is_new
    }

    /// Whether it may touch this volume.
    pub(crate) fn touches(&self, volume: VolumeId) -> bool {
        self.volume == volume || self.others.borrow().contains(&volume)
    }
}
