//! Events that a shard reports to shard 0, which numbers and keeps them. What happens again and again is counted here
//! before it is sent, so a flood costs shard 0 a bounded number of messages.

use std::rc::Rc;

use api::{EventFacts, Subject};

use crate::context::{Context, MANAGER};
use crate::limiter::WINDOW;
use crate::message::ManagerCall;
use crate::news::Report;

impl Context {
    /// Reports an event that a peer can cause as often as it likes.
    pub fn report(self: &Rc<Context>, subject: Subject, facts: EventFacts) {
        let now = self.io.now();
        let report = self.reports.limiter.borrow_mut().see(subject, facts, now);
        match report {
            Some(report) => self.send_report(report),
            None if !self.reports.waits.replace(true) => {
                let context = Rc::downgrade(self);
                let io = self.io.clone();
                self.io.spawn(async move {
                    while let Some(due) = context.upgrade().and_then(|context| context.next_report()) {
                        io.sleep_until(due).await;
                        let Some(context) = context.upgrade() else { return };
                        let reports = context.reports.limiter.borrow_mut().due(io.now());
                        reports.into_iter().for_each(|report| context.send_report(report));
                    }
                });
            }
            None => {}
        }
    }

    /// When the next report is due; the task that waits ends where there is none.
    fn next_report(&self) -> Option<base::Nanos> {
        let due = self.reports.limiter.borrow().next_due();
        self.reports.waits.set(due.is_some());
        due
    }

    /// Reports what was held back, at the end of the shard's service.
    pub fn report_held_back(&self) {
        let later = self.io.now() + WINDOW;
        let reports = self.reports.limiter.borrow_mut().due(later);
        reports.into_iter().for_each(|report| self.send_report(report));
    }

    fn send_report(&self, report: Report) {
        // nobody waits for the answer
        drop(self.ask(MANAGER, ManagerCall::Report(report)));
    }
}
