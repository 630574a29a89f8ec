//! Questions to the register, and when the next may be asked. An answer to an earlier question does no harm: it tells what
//! the register held at some time, and only a newer revision than the known one counts.

use base::Nanos;

use crate::register::{Register, Revision};

/// A question to the register. Each is answered by its content after the change, whether or not that was made.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Question {
    Read,
    /// Write `new` if the register still has revision `expected`.
    CompareAndSet {
        expected: Revision,
        new: Register,
    },
}

#[derive(Debug, Default)]
pub(crate) struct Asking {
    asked_at: Option<Nanos>,
    answered_at: Option<Nanos>,
}

impl Asking {
    pub(crate) fn on_asked(&mut self, now: Nanos) {
        self.asked_at = Some(now);
    }

    pub(crate) fn on_answered(&mut self, now: Nanos) {
        self.answered_at = Some(now);
    }

    /// Whether `pause` has passed since the last question.
    pub(crate) fn may_ask(&self, now: Nanos, pause: Nanos) -> bool {
        self.asked_at.is_none_or(|at| now.saturating_sub(at) >= pause)
    }

    /// Whether the register has answered within the last `time`.
    pub(crate) fn answered_within(&self, now: Nanos, time: Nanos) -> bool {
        self.answered_at.is_some_and(|at| now.saturating_sub(at) <= time)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn questions_keep_their_distance_and_answers_grow_old() {
        let mut asking = Asking::default();
        let at = Nanos::from_millis;
        assert!(asking.may_ask(at(0), at(200)));
        asking.on_asked(at(0));
        assert!(!asking.may_ask(at(199), at(200)));
        assert!(asking.may_ask(at(200), at(200)));
        assert!(!asking.answered_within(at(201), at(500)));
        asking.on_answered(at(202));
        assert!(asking.answered_within(at(702), at(500)) && !asking.answered_within(at(703), at(500)));
    }
}
