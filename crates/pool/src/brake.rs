//! Hosts and a round of cleaning go on side by side: neither do the hosts come to a stand until the round has ended, nor do
//! they use its room up at the beginning of it.
//!
//! ```text
//!  segments:  | in use | hosts ....... | used by the round so far | cleaning | checkpoints |
//!                       `- a share of it for each share of the round that is done
//! ```
//!
//! What a round takes it gives back when it ends, so hosts are not to wait because of it: it is *lent*. Beyond the
//! first of them, the segments that hosts may use are dealt out as the round gets on.

use crate::lane::Lane;
use crate::round::Round;
use crate::space::Shares;

/// A round that is under way.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Brake {
    /// Blocks that it is to move, and has moved.
    blocks: usize,
    moved: usize,
    /// What it costs beyond cleaning's share, in segments: that is the hosts'.
    excess: usize,
    /// Room when it began, and the part of that which was the hosts'.
    room: usize,
    hosts: usize,
}

impl Brake {
    fn new(round: &Round<'_>, layers: usize, shares: &Shares) -> Brake {
        let cost = round.cost_with(0, layers, shares);
        let excess = cost.saturating_sub(shares.cleaning);
        let hosts = shares.room.saturating_sub(shares.hosts_wait() + excess);
        Brake { blocks: round.moves.len(), moved: 0, excess, room: shares.room, hosts }
    }

    /// Segments that the round has taken so far, and hosts are not to wait for.
    fn lent(&self, packed: usize) -> usize {
        (self.moved / packed).saturating_sub(self.excess)
    }

    /// Whether hosts have used more of the room than the round is done.
    fn is_on(&self, shares: &Shares) -> bool {
        let used = self.room.saturating_sub(shares.room + self.moved / shares.packed);
        used > 1 + self.hosts * self.moved / self.blocks.max(1)
    }
}

impl Lane {
    /// Until the result is dropped, hosts go on in step with a round.
    pub(crate) fn apply_brake(&self, round: &Round<'_>) -> Braked<'_> {
        let layers = self.map.borrow().layers.len();
        self.brake.set(Some(Brake::new(round, layers, &self.shares())));
        Braked(self)
    }

    /// The round that is under way has moved so many blocks more.
    pub(crate) fn round_gets_on(&self, blocks: usize) {
        let further = |brake: Brake| Brake { moved: brake.moved + blocks, ..brake };
        self.brake.set(self.brake.get().map(further));
        self.space.notify();
        self.log_work.notify();
    }

    pub(crate) fn lent(&self, packed: usize) -> usize {
        self.brake.get().map_or(0, |brake| brake.lent(packed))
    }

    /// Whether hosts' writes should wait until the round that is under way is further.
    pub(crate) fn is_ahead_of_cleaning(&self) -> bool {
        self.brake.get().is_some_and(|brake| brake.is_on(&self.shares()))
    }
}

/// Hosts are in step with a round.
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

    fn shares(room: usize) -> Shares {
        let mut shares = Shares::default();
        (shares.room, shares.packed) = (room, 10);
        shares
    }

    #[test]
    fn hosts_use_their_room_as_the_round_gets_on() {
        let brake = Brake { blocks: 100, moved: 0, excess: 0, room: 32, hosts: 8 };
        assert!(!brake.is_on(&shares(31)) && brake.is_on(&shares(30)), "one at once");
        let brake = Brake { moved: 50, ..brake };
        assert_eq!(brake.lent(10), 5);
        // five are the round's own
        assert!(!brake.is_on(&shares(32 - 5 - 5)) && brake.is_on(&shares(32 - 5 - 6)));
        let brake = Brake { moved: 100, ..brake };
        assert!(!brake.is_on(&shares(32 - 10 - 9)));
    }

    #[test]
    fn what_a_round_costs_beyond_cleanings_share_is_not_lent() {
        let brake = Brake { blocks: 300, moved: 100, excess: 8, room: 50, hosts: 18 };
        assert_eq!(brake.lent(10), 2);
        assert_eq!(Brake { moved: 50, ..brake }.lent(10), 0);
    }
}
