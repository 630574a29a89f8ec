//! Asymmetric access: the state in which each target port group reaches a volume, and how states change
//! (SPC-4 §5.16.2).
//!
//! A pure value, the same for every session and shard. Its owner applies changes and distributes the value, as with
//! reservations. A group that loses access passes through *transitioning*:
//!
//! ```text
//!   active/optimized ◄──► active/non-optimized          at once
//!   standby, unavailable ──► any other                  at once
//!   active ──► transitioning ──► standby, unavailable   when all commands that came by the group have ended
//! ```
//!
//! What always holds: at least one group is active; a group is *transitioning* only during a change.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::Refusal;

/// How a portal group reaches a volume (SPC-4 §5.16.2.4).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum AccessState {
    /// All commands are served, as fast as can be.
    ActiveOptimized,
    /// All commands are served; hosts prefer other groups.
    ActiveNonOptimized,
    /// Hosts may look, and not read or write.
    Standby,
    /// Less than that.
    Unavailable,
    /// On its way to another state; cannot be asked for.
    Transitioning,
}

impl AccessState {
    pub const ALL: [AccessState; 5] = [
        AccessState::ActiveOptimized,
        AccessState::ActiveNonOptimized,
        AccessState::Standby,
        AccessState::Unavailable,
        AccessState::Transitioning,
    ];

    /// As people read it.
    pub fn words(self) -> &'static str {
        match self {
            AccessState::ActiveOptimized => "active/optimized",
            AccessState::ActiveNonOptimized => "active/non-optimized",
            AccessState::Standby => "standby",
            AccessState::Unavailable => "unavailable",
            AccessState::Transitioning => "transitioning",
        }
    }

    /// All commands are served.
    pub fn is_active(self) -> bool {
        matches!(self, AccessState::ActiveOptimized | AccessState::ActiveNonOptimized)
    }
}

/// Who changes a state.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Cause {
    /// An initiator, by SET TARGET PORT GROUPS.
    Explicit,
    /// The array.
    Implicit,
}

/// The states of all groups; those that are not named are active/optimized, and were never anything else. Those of a partner that forwards
/// are active/non-optimized instead, whatever they were set to, for as long as it forwards.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct AccessStates {
    groups: BTreeMap<u16, (AccessState, Cause)>,
    forwarded: BTreeSet<u16>,
}

/// A change of states.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Transition {
    /// The states meanwhile, where some group loses access: the commands that came by groups that are *transitioning*
    /// in it have to end first.
    pub passing: Option<AccessStates>,
    pub next: AccessStates,
}

impl AccessStates {
    pub fn of(&self, group: u16) -> AccessState {
        match self.groups.get(&group).map_or(AccessState::ActiveOptimized, |(state, _)| *state) {
            AccessState::ActiveOptimized if self.forwarded.contains(&group) => {
                AccessState::ActiveNonOptimized
            }
            state => state,
        }
    }

    /// States that a restart has left, for those groups that are `known`.
    pub fn kept(states: impl IntoIterator<Item = (u16, AccessState)>, known: &[u16]) -> AccessStates {
        let states = states.into_iter().map(|(group, state)| (group, (state, Cause::Implicit)));
        AccessStates { groups: states.collect(), forwarded: BTreeSet::new() }.among(known)
    }

    /// These states where other groups are `known` from now on. None of them may be left without an active one: then all
    /// are as they were in the beginning.
    pub fn among(&self, known: &[u16]) -> AccessStates {
        match known.is_empty() || known.iter().any(|&group| self.of(group).is_active()) {
            true => self.clone(),
            false => AccessStates { groups: BTreeMap::new(), forwarded: self.forwarded.clone() },
        }
    }

    /// These states while the partner forwards what comes by these groups.
    pub fn forwarded_by(self, groups: &BTreeSet<u16>) -> AccessStates {
        AccessStates { groups: self.groups, forwarded: groups.clone() }
    }

    /// All groups that are not active/optimized, with their states.
    pub fn told(&self) -> impl Iterator<Item = (u16, AccessState)> + '_ {
        let states = self.groups.iter().map(|(&group, &(state, _))| (group, state));
        states.filter(|(_, state)| *state != AccessState::ActiveOptimized)
    }

    /// Who gave the group its state; `None` if it was never changed.
    pub fn cause(&self, group: u16) -> Option<Cause> {
        self.groups.get(&group).map(|(_, cause)| *cause)
    }

    /// What has to happen so that these groups, all of them among those `known`, have these states.
    pub fn plan(
        &self,
        known: &[u16],
        changes: &[(u16, AccessState)],
        cause: Cause,
    ) -> Result<Transition, Refusal> {
        let (mut passing, mut next) = (self.clone(), self.clone());
        let mut loses = false;
        for &(group, state) in changes {
            assert!(known.contains(&group) && state != AccessState::Transitioning, "checked before");
            if self.of(group) == state {
                continue;
            }
            next.groups.insert(group, (state, cause));
            if self.of(group).is_active() && !state.is_active() {
                passing.groups.insert(group, (AccessState::Transitioning, cause));
                loses = true;
            }
        }
        if !known.iter().any(|&group| next.of(group).is_active()) {
            return Err(Refusal::AccessWouldEnd);
        }
        Ok(Transition { passing: loses.then_some(passing), next })
    }
}

#[cfg(test)]
mod tests {
    use AccessState::{ActiveNonOptimized, ActiveOptimized, Standby, Transitioning, Unavailable};

    use super::*;

    const GROUPS: [u16; 3] = [1, 2, 3];

    fn after(states: &AccessStates, changes: &[(u16, AccessState)]) -> AccessStates {
        states.plan(&GROUPS, changes, Cause::Explicit).unwrap().next
    }

    /// Every state to every other: at once, or by way of *transitioning*.
    #[test]
    fn a_group_that_loses_access_passes_through_transitioning() {
        for from in AccessState::ALL.into_iter().filter(|state| *state != Transitioning) {
            for to in AccessState::ALL.into_iter().filter(|state| *state != Transitioning) {
                let before = after(&AccessStates::default(), &[(2, from)]);
                let transition = before.plan(&GROUPS, &[(2, to)], Cause::Implicit).unwrap();
                let loses = from.is_active() && matches!(to, Standby | Unavailable);
                assert_eq!(transition.passing.is_some(), loses, "{from:?} to {to:?}");
                let passing = transition.passing.map(|passing| (passing.of(1), passing.of(2)));
                assert!(passing.is_none_or(|passing| passing == (ActiveOptimized, Transitioning)));
                assert_eq!(transition.next.of(2), to);
                let cause = if from == to { before.cause(2) } else { Some(Cause::Implicit) };
                assert_eq!(transition.next.cause(2), cause);
                assert_eq!(transition.next.cause(3), None);
            }
        }
    }

    #[test]
    fn what_a_restart_leaves_fits_the_groups_that_are_there() {
        let states = after(&AccessStates::default(), &[(1, Standby), (2, ActiveOptimized), (3, Unavailable)]);
        assert_eq!(states.told().collect::<Vec<_>>(), [(1, Standby), (3, Unavailable)]);
        let kept = AccessStates::kept(states.told(), &GROUPS);
        assert_eq!(GROUPS.map(|group| kept.of(group)), [Standby, ActiveOptimized, Unavailable]);
        assert_eq!((kept.cause(1), kept.cause(2)), (Some(Cause::Implicit), None));
        assert_eq!(AccessStates::kept(states.told(), &[1, 3]), AccessStates::default());
        assert_eq!(states.among(&[2, 3]), states);
        assert_eq!(states.among(&[1]), AccessStates::default());
    }

    #[test]
    fn a_partner_that_forwards_is_never_optimized() {
        let set = after(&AccessStates::default(), &[(2, ActiveNonOptimized), (3, Standby)]);
        let states = set.forwarded_by(&BTreeSet::from([1, 3]));
        assert_eq!(GROUPS.map(|group| states.of(group)), [ActiveNonOptimized, ActiveNonOptimized, Standby]);
        // what was set stays, and what follows from forwarding is not kept
        assert_eq!(states.told().collect::<Vec<_>>(), [(2, ActiveNonOptimized), (3, Standby)]);
        let woken = after(&states, &[(3, ActiveOptimized)]);
        assert_eq!(woken.of(3), ActiveNonOptimized);
        let swapped = woken.forwarded_by(&BTreeSet::from([2]));
        assert_eq!(
            GROUPS.map(|group| swapped.of(group)),
            [ActiveOptimized, ActiveNonOptimized, ActiveOptimized]
        );
    }

    #[test]
    fn one_group_stays_active() {
        let states = after(&AccessStates::default(), &[(1, Standby), (2, Unavailable)]);
        for last in [Standby, Unavailable] {
            let refused = states.plan(&GROUPS, &[(3, last)], Cause::Explicit);
            assert_eq!(refused, Err(Refusal::AccessWouldEnd));
        }
        let swapped = after(&states, &[(3, Standby), (1, ActiveNonOptimized)]);
        assert_eq!((swapped.of(1), swapped.of(3)), (ActiveNonOptimized, Standby));
        assert_eq!(after(&swapped, &[]), swapped);
    }
}
