//! A running command: which volumes it may touch, and whether it has to stop.

use std::cell::{Cell, RefCell};

use base::VolumeId;
use iscsi::TaskTag;

use crate::figures::Arrival;

/// How an aborted command ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Abort {
    /// Without an answer: its own initiator aborted it, its session has ended, or its initiator wants no answer (TAS
    /// 0).
    Silent,
    /// With TASK ABORTED: another nexus aborted it.
    Told,
}

/// A command that may touch a volume.
pub(crate) struct RunningCommand {
    pub(crate) task: TaskTag,
    pub(crate) volume: VolumeId,
    pub(crate) arrival: Arrival,
    /// Other volumes that the command has reached, if it is a copy.
    others: RefCell<Vec<VolumeId>>,
    /// The command stops, and its own outcome is not sent.
    aborted: Cell<Option<Abort>>,
    /// The command stops: it was aborted, or it is a copy that another session's reset met at a volume that it had
    /// reached.
    pub(crate) stopped: Cell<bool>,
    /// The command executes block requests, so it does not wait for other commands.
    at_medium: Cell<bool>,
}

impl RunningCommand {
    pub(crate) fn new(task: TaskTag, volume: VolumeId, arrival: Arrival) -> RunningCommand {
        let no = || Cell::new(false);
        let (aborted, stopped, at_medium) = (Cell::default(), no(), no());
        RunningCommand { task, volume, arrival, others: RefCell::default(), aborted, stopped, at_medium }
    }

    /// An abort by the command's own initiator takes precedence over aborts by others, whether earlier or later.
    pub(crate) fn abort(&self, how: Abort) {
        if self.aborted.get() != Some(Abort::Silent) {
            self.aborted.set(Some(how));
        }
        self.stopped.set(true);
    }

    pub(crate) fn aborted(&self) -> Option<Abort> {
        self.aborted.get()
    }

    pub(crate) fn begin_at_medium(&self) {
        self.at_medium.set(true);
    }

    pub(crate) fn is_at_medium(&self) -> bool {
        self.at_medium.get()
    }

    /// From now on the command may touch this volume, too. `false` if it already may.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn its_own_initiator_decides_how_a_command_ends() {
        let end = |order: &[Abort]| {
            let command = RunningCommand::new(TaskTag(1), VolumeId(1), Arrival::SAMPLE);
            order.iter().for_each(|&how| command.abort(how));
            assert_eq!(command.stopped.get(), !order.is_empty());
            command.aborted()
        };
        assert_eq!(end(&[]), None);
        assert_eq!(end(&[Abort::Told]), Some(Abort::Told));
        assert_eq!(end(&[Abort::Told, Abort::Silent]), Some(Abort::Silent));
        assert_eq!(end(&[Abort::Silent, Abort::Told]), Some(Abort::Silent));
    }
}
