//! Hosts and a round of cleaning go on side by side: neither do the hosts come to a stand until the round has ended, nor do
//! they use its room up at the beginning of it.
//!
//! ```text
//!  segments:  | in use | hosts ....... | used by the round so far | cleaning | checkpoints |
//!                       `- a share of it for each share of the round that is done
//! ```
//!
//! What a round takes it gives back when it ends, so hosts are not to wait because of it: it is *lent*. The room that hosts
//! may use is dealt out as the round gets on, batch by batch: a part of it while the round is chosen, the rest while blocks
//! are moved and the checkpoint after it is written.

use crate::cleaning::round::Round;
use crate::format::header::Entry;
use crate::lane::Lane;
use crate::log::batch::Built;
use crate::space::shares::Shares;

/// While a round is chosen, hosts may use one part in so many of their room.
const CHOOSING_PARTS: usize = 2;
/// Hosts may be ahead by this part of what is dealt out.
const AHEAD_SHARE: usize = 32;

/// Work that hosts are kept in step with. In blocks where nothing else is said.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Brake {
    /// All of the work, and what is done of it.
    total: usize,
    done: usize,
    /// What hosts have used meanwhile.
    used: usize,
    /// Of the hosts' room, so much is dealt out: one part in so many.
    parts: usize,
    /// Moved so far.
    moved: usize,
    /// What the round costs beyond cleaning's share, in segments: that is the hosts'.
    excess: usize,
    /// Of the map, that its checkpoints write.
    pages: usize,
}

impl Brake {
    /// While a round is chosen that takes about so many victims.
    fn choosing(victims: usize) -> Brake {
        Brake { total: victims.max(1), parts: CHOOSING_PARTS, ..Brake::default() }
    }

    fn of_round(round: &Round<'_>, layers: usize, shares: &Shares) -> Brake {
        let excess = round.cost_with(0, layers, shares).saturating_sub(shares.cleaning);
        let total = round.blocks_with(0, layers, shares).max(1);
        Brake { total, parts: 1, excess, pages: total.saturating_sub(round.moves.len()), ..Brake::default() }
    }

    /// Segments that the round has taken so far, and hosts are not to wait for.
    fn lent(&self, packed: usize) -> usize {
        (self.moved / packed).saturating_sub(self.excess)
    }

    /// Whether hosts have used more of their room than is done. Theirs is what they have used, and what is left until they would
    /// have to wait, but for what the round is still going to take of it.
    fn is_on(&self, shares: &Shares) -> bool {
        let takes = self.excess.saturating_sub(self.moved / shares.packed)
            + self.pages.div_ceil(shares.packed).saturating_sub(shares.checkpoint_pages());
        let left = shares.room.saturating_sub(shares.hosts_wait() + 1 + takes) * shares.packed;
        let dealt = (self.done + self.total / AHEAD_SHARE).min(self.total);
        self.used > (self.used + left) * dealt / (self.total * self.parts)
    }
}

impl Lane {
    /// Until the result is dropped, hosts go on in step with the choice of a round.
    pub(crate) fn brake_while_choosing(&self) -> Braked<'_> {
        self.brake.set(Some(Brake::choosing(self.chosen.get())));
        Braked(self)
    }

    /// Until the result is dropped, hosts go on in step with a round.
    pub(crate) fn apply_brake(&self, round: &Round<'_>) -> Braked<'_> {
        let layers = self.map.borrow().layers.len();
        self.brake.set(Some(Brake::of_round(round, layers, &self.shares())));
        Braked(self)
    }

    /// A victim more has been chosen.
    pub(crate) fn choice_gets_on(&self) {
        self.change_brake(|brake| brake.done += 1);
    }

    /// A batch has its place: what is in it is done, or used.
    pub(crate) fn placed(&self, built: &Built) {
        if self.brake.get().is_none() {
            return;
        }
        let (mut moved, mut pages, mut others) = (0, 0, 0);
        for entry in &built.header.entries {
            match entry {
                Entry::Move { .. } => moved += 1,
                Entry::Page { .. } | Entry::Table { .. } => pages += 1,
                _ => others += 1,
            }
        }
        let segments = self.segments.borrow();
        let place = usize::from(built.header.rows) * segments.packed_blocks() / segments.rows;
        drop(segments);
        self.change_brake(|brake| {
            brake.moved += moved;
            if brake.moved > 0 {
                brake.done += moved + pages;
            }
            if others > 0 {
                brake.used += place.saturating_sub(moved + pages);
            }
        });
    }

    fn change_brake(&self, change: impl FnOnce(&mut Brake)) {
        let Some(before) = self.brake.get() else { return };
        let mut brake = before;
        change(&mut brake);
        self.brake.set(Some(brake));
        let shares = self.shares();
        if before.lent(shares.packed) != brake.lent(shares.packed) {
            self.log_work.notify();
            self.space.notify();
        } else if before.is_on(&shares) && !brake.is_on(&shares) {
            self.space.notify();
        }
    }

    pub(crate) fn lent(&self, packed: usize) -> usize {
        self.brake.get().map_or(0, |brake| brake.lent(packed))
    }

    /// Whether hosts' writes should wait until the round that is under way is further.
    pub(crate) fn is_ahead_of_cleaning(&self) -> bool {
        self.brake.get().is_some_and(|brake| brake.is_on(&self.shares()))
    }
}

/// Hosts are in step with something.
pub(crate) struct Braked<'a>(&'a Lane);

impl Drop for Braked<'_> {
    fn drop(&mut self) {
        self.0.brake.set(None);
        self.0.space.notify();
        self.0.log_work.notify();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Hosts wait at a room of 20 segments of ten blocks.
    fn shares(room: usize) -> Shares {
        let mut shares = Shares::default();
        (shares.room, shares.packed, shares.cleaning) = (room, 10, 20);
        shares
    }

    #[test]
    fn hosts_use_their_room_as_the_round_gets_on() {
        let brake = Brake { total: 3200, parts: 1, ..Brake::default() };
        let used = |used, room| Brake { used, ..brake }.is_on(&shares(room));
        assert!(!used(0, 21) && !used(20, 84) && used(21, 84), "a little at once");
        let brake = Brake { done: 1500, ..brake };
        let used = |used, room| Brake { used, ..brake }.is_on(&shares(room));
        assert!(!used(320, 53) && used(321, 53), "half of it when half of it is done");
        assert!(!used(321, 54), "what is freed is theirs, too");
        let brake = Brake { done: 9999, ..brake };
        assert!(!Brake { used: 9999, ..brake }.is_on(&shares(0)), "it does not go on any more");
        let choosing = Brake { done: 9, ..Brake::choosing(3) };
        assert!(
            !Brake { used: 20, ..choosing }.is_on(&shares(23))
                && Brake { used: 21, ..choosing }.is_on(&shares(23))
        );
    }

    #[test]
    fn what_a_round_costs_beyond_cleanings_share_is_not_lent() {
        let brake = Brake { total: 100, parts: 1, moved: 100, excess: 8, ..Brake::default() };
        assert_eq!((brake.lent(10), Brake { moved: 50, ..brake }.lent(10)), (2, 0));
        let begun = Brake { done: 100, moved: 0, used: 1, ..brake };
        assert!(!begun.is_on(&shares(30)) && !begun.is_on(&shares(28)));
    }
}
