//! A head that has just started. It asks the register until that answers; out of reach means to wait.

use base::Nanos;

use super::{Action, Head, Role};
use crate::asking::Question;
use crate::decision::Decision;
use crate::register::Register;

impl Head {
    pub(super) fn tick_booting(&mut self, now: Nanos, out: &mut Vec<Action>) {
        self.ask(now, self.timing.question, Question::Read, out);
    }

    /// The register has answered. A head that finds itself the owner takes a new term, alone: it cannot know what it had acknowledged,
    /// nor what its partner did meanwhile.
    pub(super) fn settle(&mut self, now: Nanos, content: Register, out: &mut Vec<Action>) {
        let Role::Booting { proposed } = &mut self.role else {
            unreachable!("only a head that boots settles")
        };
        let is_own_term = *proposed == Some(content);
        self.register = Some(content);
        if content.other(self.me).is_none() {
            self.role = Role::Outside;
            out.push(Action::Note(Decision::Forgotten));
        } else if content.owner != self.me {
            self.become_partner(now, out);
        } else if is_own_term {
            self.become_owner(now, out);
        } else {
            let new = content.restarted();
            *proposed = Some(new);
            self.swap(now, Nanos(0), new, out);
        }
    }
}
