//! How a session's commands are aborted: by its own initiator, or by another one.

use std::rc::Rc;

use base::VolumeId;
use wire::scsi::{Lun, Status};

use crate::session::{Abort, LunNexus, RunningCommand, Session};

/// Commands that are aborted but may still be at work.
pub(crate) type Aborted = Vec<(Rc<Session>, Vec<Rc<RunningCommand>>)>;

impl Session {
    /// Marks the commands that `choose` picks as aborted; they are not answered any more.
    pub(crate) fn abort(&self, choose: impl Fn(&RunningCommand) -> bool) -> Vec<Rc<RunningCommand>> {
        self.abort_how(Abort::Silent, choose)
    }

    fn abort_how(&self, how: Abort, choose: impl Fn(&RunningCommand) -> bool) -> Vec<Rc<RunningCommand>> {
        let chosen = self.at_work(choose);
        chosen.iter().for_each(|command| command.abort(how));
        self.aborting.notify();
        chosen
    }

    /// Aborts the commands of this nexus at a LUN because another nexus requested it (SAM-5 §5.6.3). With TAS each
    /// command ends with TASK ABORTED, otherwise without an answer. A command that still receives its data ends at
    /// once, the others as soon as they cannot touch the volume any more. Returns the latter, and whether a unit
    /// attention is due: some command was aborted and ends without an answer.
    pub(crate) fn abort_for_another(&self, number: u16, lun: &LunNexus) -> (Vec<Rc<RunningCommand>>, bool) {
        let told = lun.nexus.borrow().is_told_of_aborts();
        let how = if told { Abort::Told } else { Abort::Silent };
        let commands = self.abort_how(how, |command| command.volume == lun.volume);
        let mut protocol = self.protocol.borrow_mut();
        let is_its = |field| Lun::parse(field).is_ok_and(|other| other.number() == number);
        let status = told.then_some(Status::TaskAborted.code());
        let collecting = protocol.end_collecting(&is_its, status);
        drop(protocol);
        lun.tasks.fence();
        self.output.notify();
        let attention_due = !told && (collecting || !commands.is_empty());
        (commands, attention_due)
    }

    /// Stops copies that were sent to another volume and have reached this one. They are answered. Their initiator gets
    /// no other notification about them.
    pub(crate) fn interrupt(&self, volumes: &[VolumeId]) -> Vec<Rc<RunningCommand>> {
        let chosen = self.at_work(|command| {
            !volumes.contains(&command.volume) && volumes.iter().any(|&volume| command.touches(volume))
        });
        chosen.iter().for_each(|command| command.stopped.set(true));
        self.aborting.notify();
        chosen
    }
}

/// Waits until none of these commands can touch its volume.
pub(crate) async fn wait_for(aborted: &Aborted) {
    for (session, commands) in aborted {
        session.wait_for(commands).await;
    }
}
