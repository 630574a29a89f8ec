//! The state of cleaning, and what cleaning has found so far. Values only: `clean.rs` and `round.rs` do the work.
//!
//! ```text
//!              choose             chosen, or no segment is worth it
//!   Resting ───────────► Choosing ───────────┐
//!      ▲ ▲  └──────────► Moving ─────────────┤
//!      │ │     move               all moved  │
//!      │ └───────────────────────────────────┘
//!      └──── relieve ─── Starved ◄── starve ── Resting
//! ```
//!
//! In `Choosing` and `Moving`, hosts get room in proportion to the progress of the round. In `Starved`, writes of hosts
//! are refused, because there is nothing to clean, no checkpoint would help, and there is no room. Repairs are not a
//! phase: hosts do not wait for them and lend them no room.

use std::cell::Cell;

use base::{Nanos, Sequence};

use super::pacing::HostPacing;

/// After a search for repairs in vain, the next search waits this long.
const LOOK_AGAIN: Nanos = Nanos::from_secs(1);
/// If nothing was worth cleaning, cleaning looks again after this many batches.
const BATCHES_AGAIN: u64 = 64;
/// Maximum number of rounds that may gain nothing while hosts wait, because the next round may collect the garbage that
/// they make.
const FUTILE_MAX: u32 = 32;

/// What a round is chosen for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum RoundPurpose {
    /// Blocks that lack redundancy are written anew.
    Redundancy,
    /// More room, for a good price.
    Room,
    /// Hosts wait: any gain is worth it.
    AnyRoom,
}

/// What cleaning does to gain room.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Phase {
    Resting,
    /// Segments are chosen for a round.
    Choosing(HostPacing),
    /// The blocks of a round are moved, and the checkpoint after it is written.
    Moving(HostPacing),
    /// There is nothing to clean and no room: writes are refused until something is freed.
    Starved,
}

/// An event that ends or changes a phase.
#[derive(Clone, Copy, Debug)]
enum Event {
    Choose(HostPacing),
    Move(HostPacing),
    /// The choice or the round has ended, completed or not.
    End,
    Starve,
    /// Something was freed.
    Relieve,
}

impl Phase {
    /// The phase after an event. Every other combination is a bug: one task does all cleaning, one step after the
    /// other.
    fn after(self, event: Event) -> Phase {
        match (self, event) {
            (Phase::Resting, Event::Choose(pacing)) => Phase::Choosing(pacing),
            (Phase::Resting, Event::Move(pacing)) => Phase::Moving(pacing),
            (Phase::Choosing(_) | Phase::Moving(_), Event::End) => Phase::Resting,
            (Phase::Resting, Event::Starve) => Phase::Starved,
            (Phase::Starved, Event::Relieve) => Phase::Resting,
            // any task may free something at any time
            (Phase::Resting | Phase::Choosing(_) | Phase::Moving(_), Event::Relieve) => self,
            (phase, event) => panic!("{event:?} while cleaning is {phase:?}"),
        }
    }

    fn pacing(self) -> Option<HostPacing> {
        match self {
            Phase::Choosing(pacing) | Phase::Moving(pacing) => Some(pacing),
            Phase::Resting | Phase::Starved => None,
        }
    }
}

/// What is known of segments that lack redundancy.
#[derive(Clone, Copy)]
enum Repairs {
    /// There may be some: a search is due.
    Due,
    /// A search found none to write anew, and nothing has requested another search since. `lack_room`: there are some,
    /// but no room to write them anew.
    InVain { at: Nanos, lack_room: bool },
}

/// Whether rounds gain anything while hosts wait. One round loses what the next one gains, so only more room than ever
/// before counts.
#[derive(Clone, Copy, Default)]
struct Progress {
    /// Rounds since the room last reached a new maximum.
    futile: u32,
    room_max: usize,
}

/// The next step after the search for repairs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Next {
    /// There is room enough.
    Rest,
    /// Room is low. Nothing was worth cleaning, and too little has been written since.
    AwaitGarbage,
    Clean(RoundPurpose),
}

/// Decides the next step after the search for repairs. `is_low`: the room is so low that cleaning begins.
/// `worth_a_look`: something may be worth cleaning.
pub(crate) fn plan_next(is_low: bool, repairs_lack_room: bool, hosts_wait: bool, worth_a_look: bool) -> Next {
    match (is_low || repairs_lack_room, hosts_wait, worth_a_look) {
        (false, _, _) => Next::Rest,
        (true, true, _) => Next::Clean(RoundPurpose::AnyRoom),
        (true, false, true) => Next::Clean(RoundPurpose::Room),
        (true, false, false) => Next::AwaitGarbage,
    }
}

/// The state of a lane's cleaning.
pub(crate) struct Cleaner {
    phase: Cell<Phase>,
    repairs: Cell<Repairs>,
    progress: Cell<Progress>,
    /// What was committed when nothing was last found worth cleaning.
    nothing_worth: Cell<Option<Sequence>>,
    /// Number of segments of the last chosen round.
    victims: Cell<usize>,
}

impl Default for Cleaner {
    fn default() -> Cleaner {
        Cleaner {
            phase: Cell::new(Phase::Resting),
            repairs: Cell::new(Repairs::Due),
            progress: Cell::default(),
            nothing_worth: Cell::new(None),
            victims: Cell::new(0),
        }
    }
}

impl Cleaner {
    fn on(&self, event: Event) {
        self.phase.set(self.phase.get().after(event));
    }

    pub fn begin_choosing(&self) {
        self.on(Event::Choose(HostPacing::choosing(self.victims.get())));
    }

    /// Records that a round of this many segments has been chosen.
    pub fn note_victims(&self, victims: usize) {
        self.victims.set(victims);
    }

    pub fn begin_moving(&self, pacing: HostPacing) {
        self.on(Event::Move(pacing));
    }

    /// The choice or the round that paced hosts has ended.
    pub fn end(&self) {
        self.on(Event::End);
    }

    pub fn starve(&self) {
        self.on(Event::Starve);
    }

    /// Something was freed. Returns whether writes were refused until now.
    pub fn relieve(&self) -> bool {
        let starved = self.is_starved();
        self.on(Event::Relieve);
        if starved {
            self.hope_again();
        }
        starved
    }

    pub fn is_starved(&self) -> bool {
        self.phase.get() == Phase::Starved
    }

    /// The pacing of hosts, if there is any.
    pub fn pacing(&self) -> Option<HostPacing> {
        self.phase.get().pacing()
    }

    /// Changes the pacing of hosts; returns it as it was and as it is.
    pub fn change_pacing(&self, change: impl FnOnce(&mut HostPacing)) -> Option<(HostPacing, HostPacing)> {
        let mut phase = self.phase.get();
        let (Phase::Choosing(pacing) | Phase::Moving(pacing)) = &mut phase else { return None };
        let before = *pacing;
        change(pacing);
        let after = *pacing;
        self.phase.set(phase);
        Some((before, after))
    }

    /// Segments that a running round has taken, and for which hosts must not wait.
    pub fn lent(&self, packed: usize) -> usize {
        self.pacing().map_or(0, |pacing| pacing.lent(packed))
    }

    /// Something has lost redundancy, or can now be written anew.
    pub fn want_repairs(&self) {
        self.repairs.set(Repairs::Due);
    }

    /// Whether every segment may be examined for repairs. This is not done for each write that wakes the cleaning task.
    pub fn may_look_for_repairs(&self, now: Nanos) -> bool {
        match self.repairs.get() {
            Repairs::Due => true,
            Repairs::InVain { at, .. } => now.0 > at.0 + LOOK_AGAIN.0,
        }
    }

    /// No round of repairs could be chosen.
    pub fn repairs_in_vain(&self, at: Nanos, lack_room: bool) {
        self.repairs.set(Repairs::InVain { at, lack_room });
    }

    /// Something lacks redundancy, and there is no room to write it anew: cleaning makes room, even if hosts need none.
    pub fn repairs_lack_room(&self) -> bool {
        matches!(self.repairs.get(), Repairs::InVain { lack_room: true, .. })
    }

    pub fn found_nothing_worth(&self, committed: Sequence) {
        self.nothing_worth.set(Some(committed));
    }

    /// If nothing was worth cleaning, enough has to be written before something can be.
    pub fn may_look_for_room(&self, committed: Sequence) -> bool {
        self.nothing_worth.get().is_none_or(|then| committed.0 >= then.0 + BATCHES_AGAIN)
    }

    /// A checkpoint was written: segments that it has settled can be cleaned now.
    pub fn look_anew(&self) {
        self.want_repairs();
        self.nothing_worth.set(None);
    }

    /// Records the room at the end of a round.
    pub fn note_round(&self, room: usize) {
        let Progress { futile, room_max } = self.progress.get();
        let futile = if room <= room_max { futile + 1 } else { 0 };
        self.progress.set(Progress { futile, room_max: room.max(room_max) });
    }

    /// Whether to run a round that gains nothing: the next round may collect the garbage that it makes.
    pub fn may_hope(&self) -> bool {
        self.progress.get().futile < FUTILE_MAX
    }

    pub fn hope_again(&self) {
        self.progress.set(Progress::default());
    }
}

#[cfg(test)]
mod tests {
    use std::panic::catch_unwind;

    use super::*;

    #[test]
    fn every_event_has_its_place_in_every_phase() {
        let (one, other) = (HostPacing::choosing(3), HostPacing::of_round(100, 10, 2));
        let phases = [Phase::Resting, Phase::Choosing(one), Phase::Moving(other), Phase::Starved];
        let events = [Event::Choose(one), Event::Move(other), Event::End, Event::Starve, Event::Relieve];
        let [resting, choosing, moving, starved] = phases.map(Some);
        let bug = None;
        let table = [
            // choose    move     end        starve      relieve
            [choosing, moving, bug, starved, resting],
            [bug, bug, resting, bug, choosing],
            [bug, bug, resting, bug, moving],
            [bug, bug, bug, bug, resting],
        ];
        for (phase, row) in phases.into_iter().zip(table) {
            for (event, after) in events.into_iter().zip(row) {
                assert_eq!(catch_unwind(|| phase.after(event)).ok(), after, "{event:?} in {phase:?}");
            }
        }
    }

    #[test]
    fn hosts_are_kept_in_step_with_what_cleaning_does() {
        let cleaner = Cleaner::default();
        assert_eq!((cleaner.pacing(), cleaner.change_pacing(HostPacing::note_victim)), (None, None));
        cleaner.note_victims(5);
        cleaner.begin_choosing();
        assert!(
            cleaner.change_pacing(HostPacing::note_victim).is_some_and(|(before, after)| before != after)
        );
        assert!(!cleaner.relieve(), "nobody was refused");
        cleaner.end();
        cleaner.starve();
        assert!(cleaner.is_starved() && cleaner.relieve() && !cleaner.is_starved());
    }

    #[test]
    fn what_comes_next_follows_from_the_room() {
        let (rest, wait) = (Next::Rest, Next::AwaitGarbage);
        let (room, any) = (Next::Clean(RoundPurpose::Room), Next::Clean(RoundPurpose::AnyRoom));
        let table = [
            // low, repairs lack room, hosts wait: without and with something worth a look
            ((false, false, false), [rest, rest]),
            ((false, false, true), [rest, rest]),
            ((false, true, false), [wait, room]),
            ((false, true, true), [any, any]),
            ((true, false, false), [wait, room]),
            ((true, false, true), [any, any]),
            ((true, true, false), [wait, room]),
            ((true, true, true), [any, any]),
        ];
        for ((low, lack, hosts), next) in table {
            assert_eq!([false, true].map(|worth| plan_next(low, lack, hosts, worth)), next);
        }
    }

    #[test]
    fn repairs_are_looked_for_again_after_a_while_or_when_asked_for() {
        let cleaner = Cleaner::default();
        let second = |seconds| Nanos::from_secs(seconds);
        assert!(cleaner.may_look_for_repairs(second(0)) && !cleaner.repairs_lack_room());
        cleaner.repairs_in_vain(second(5), true);
        assert!(!cleaner.may_look_for_repairs(second(6)) && cleaner.repairs_lack_room());
        assert!(cleaner.may_look_for_repairs(second(7)));
        cleaner.want_repairs();
        assert!(cleaner.may_look_for_repairs(second(6)));
    }

    #[test]
    fn only_more_room_than_ever_is_progress() {
        let cleaner = Cleaner::default();
        cleaner.note_round(10);
        (0..FUTILE_MAX).for_each(|round| cleaner.note_round(9 + round as usize % 2));
        assert!(!cleaner.may_hope());
        cleaner.note_round(11);
        assert!(cleaner.may_hope());
        (0..FUTILE_MAX).for_each(|_| cleaner.note_round(11));
        assert!(!cleaner.may_hope());
        cleaner.hope_again();
        assert!(cleaner.may_hope());
    }
}
