//! Whether a lane runs, and which tasks still work in it.
//!
//! ```text
//!                recovered          no space below a drive
//!   Recovering ────────────► Running ◄──────────► Stalled
//!       └───────── too many drives are gone ─────────┴──► Failed
//!       └───────── closed, from any state ───────────────────────► Closed
//! ```

use std::cell::Cell;

use task::{Io, Notify};

use crate::error::LaneError;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    /// Replayed, but not recorded on the drives: writing the result is retried until it succeeds. If the file system
    /// under the drives is full, reads are served meanwhile.
    Recovering,
    Running,
    /// The file system under the drives is full: batches in flight are retried, new writes refused.
    Stalled,
    /// More drives failed than the protection allows; nothing is written any more.
    Failed,
    Closed,
}

#[derive(Clone, Copy, Debug)]
enum Event {
    /// The result of the recovery is on the drives.
    Recovered,
    /// There is no space below a drive.
    Full,
    /// Entries for which there was no space are committed.
    Committed,
    Failed,
    Closed,
}

impl State {
    /// The state after an event. Every other combination is a bug.
    fn after(self, event: Event) -> State {
        match (self, event) {
            (State::Recovering, Event::Recovered) => State::Running,
            (State::Running | State::Stalled, Event::Full) => State::Stalled,
            (State::Stalled, Event::Committed) => State::Running,
            // a recovery commits its checkpoint's batches
            (State::Recovering | State::Running, Event::Committed) => self,
            (State::Closed, Event::Failed) => State::Closed,
            (_, Event::Failed) => State::Failed,
            (_, Event::Closed) => State::Closed,
            (state, event) => panic!("{event:?} while the lane is {state:?}"),
        }
    }
}

/// The life of a lane.
pub(crate) struct Life {
    state: Cell<State>,
    /// The lane is closing: nothing waits for space below the drive files any longer.
    closing: Cell<bool>,
    /// Tasks and requests that have not ended.
    running: Cell<usize>,
    ended: Notify,
}

impl Life {
    pub fn new(io: &Io) -> Life {
        Life {
            state: Cell::new(State::Recovering),
            closing: Cell::new(false),
            running: Cell::new(0),
            ended: Notify::new(io),
        }
    }

    fn on(&self, event: Event) {
        self.state.set(self.state.get().after(event));
    }

    /// The result of the recovery is on the drives: from now on the lane accepts writes.
    pub fn begin(&self) {
        self.on(Event::Recovered);
    }

    /// There is no space below a drive.
    pub fn stall(&self) {
        self.on(Event::Full);
    }

    /// A batch was committed. Returns whether the lane was stalled until now.
    pub fn resume(&self) -> bool {
        let stalled = self.is_stalled();
        self.on(Event::Committed);
        stalled
    }

    /// Too many drives are gone. `false` if the lane is closed, because then this changes nothing.
    pub fn fail(&self) -> bool {
        self.on(Event::Failed);
        !self.is_closed()
    }

    pub fn begin_closing(&self) {
        self.closing.set(true);
    }

    pub fn close(&self) {
        self.on(Event::Closed);
    }

    /// Whether the lane can write.
    pub fn check_running(&self) -> Result<(), LaneError> {
        match self.state.get() {
            State::Running => Ok(()),
            State::Recovering | State::Stalled => Err(LaneError::OutOfSpace),
            State::Failed | State::Closed => Err(LaneError::Unavailable),
        }
    }

    pub fn is_recovering(&self) -> bool {
        self.state.get() == State::Recovering
    }

    pub fn is_stalled(&self) -> bool {
        self.state.get() == State::Stalled
    }

    pub fn has_failed(&self) -> bool {
        self.state.get() == State::Failed
    }

    pub fn is_closed(&self) -> bool {
        self.state.get() == State::Closed
    }

    pub fn is_closing(&self) -> bool {
        self.closing.get()
    }

    /// Whether the lane does not write any more.
    pub fn has_ended(&self) -> bool {
        matches!(self.state.get(), State::Failed | State::Closed)
    }

    /// A task begins that [`Life::all_ended`] waits for; [`Life::leave`] must follow.
    pub fn enter(&self) {
        self.running.set(self.running.get() + 1);
    }

    pub fn leave(&self) {
        self.running.set(self.running.get() - 1);
        self.ended.notify();
    }

    pub async fn all_ended(&self) {
        while self.running.get() > 0 {
            self.ended.wait().await;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::panic::catch_unwind;

    use super::*;

    #[test]
    fn every_event_has_its_place_in_every_state() {
        use State::{Closed, Failed, Recovering, Running, Stalled};
        let events = [Event::Recovered, Event::Full, Event::Committed, Event::Failed, Event::Closed];
        let bug = None;
        let table = [
            // recovered, full, committed, failed, closed
            (Recovering, [Some(Running), bug, Some(Recovering), Some(Failed), Some(Closed)]),
            (Running, [bug, Some(Stalled), Some(Running), Some(Failed), Some(Closed)]),
            (Stalled, [bug, Some(Stalled), Some(Running), Some(Failed), Some(Closed)]),
            (Failed, [bug, bug, bug, Some(Failed), Some(Closed)]),
            (Closed, [bug, bug, bug, Some(Closed), Some(Closed)]),
        ];
        for (state, row) in table {
            for (event, after) in events.into_iter().zip(row) {
                assert_eq!(catch_unwind(|| state.after(event)).ok(), after, "{event:?} in {state:?}");
            }
        }
    }
}
