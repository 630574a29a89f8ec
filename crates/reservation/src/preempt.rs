//! PREEMPT and PREEMPT AND ABORT (SPC-4 §5.13.11.4, §5.13.11.5).

use super::apply::{Change, Notice};
use super::{Refusal, Registrant, Registration, ReservationType, all_hold};

/// What a PREEMPT does, by the reservation that it meets (SPC-4 figure 8).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Plan {
    /// Takes registrations away, and leaves the reservation.
    Registrations,
    /// Takes the reservation over, and the registrations of these away.
    Reservation,
    Refuse,
}

impl Change<'_> {
    pub(super) fn preempt(
        &mut self,
        key: u64,
        victim: u64,
        kind: ReservationType,
        abort: bool,
    ) -> Result<(), Refusal> {
        self.check_key(key)?;
        let is_known = self.next.registrations.iter().any(|one| one.key == victim);
        let plan = match self.next.held_key() {
            Some((_, held)) if all_hold(held) && victim == 0 => Plan::Reservation,
            Some((holder, held)) if !all_hold(held) && holder == victim => Plan::Reservation,
            _ if victim == 0 => Plan::Refuse,
            _ => Plan::Registrations,
        };
        match plan {
            Plan::Refuse => return Err(Refusal::NoVictim),
            Plan::Registrations if !is_known => return Err(Refusal::Conflict),
            Plan::Registrations => {
                let gone = self.take_away(|one| one.key == victim);
                self.tell_preempted(&gone, abort);
                // where every registered nexus held it and none is left, nobody holds it
                if self.next.registrations.is_empty() {
                    self.next.held = None;
                }
            }
            Plan::Reservation => {
                let before = self.next.held.as_ref().expect("there is one to preempt").kind;
                let by = self.by.clone();
                // every other registration, where all of them held it
                let goes = |one: &Registration| {
                    one.registrant != by && if all_hold(before) { true } else { one.key == victim }
                };
                let gone = self.take_away(goes);
                self.next.held = Some(self.hold(kind));
                self.tell_preempted(&gone, abort);
                if before != kind {
                    self.tell_others(Notice::ReservationsReleased);
                }
            }
        }
        self.count();
        Ok(())
    }

    fn take_away(&mut self, goes: impl Fn(&Registration) -> bool) -> Vec<Registrant> {
        let (gone, stay) = self.next.registrations.drain(..).partition(goes);
        self.next.registrations = stay;
        let gone: Vec<Registration> = gone;
        gone.into_iter().map(|one| one.registrant).collect()
    }

    fn tell_preempted(&mut self, gone: &[Registrant], abort: bool) {
        let others = gone.iter().filter(|nexus| *nexus != self.by);
        self.notices.extend(others.map(|nexus| (nexus.clone(), Notice::RegistrationsPreempted)));
        if abort {
            self.abort.extend(gone.iter().cloned());
        }
    }
}
