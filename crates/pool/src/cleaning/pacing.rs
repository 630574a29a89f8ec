//! Pacing: hosts and background work leave each other a share. They share room during a round of cleaning, and time
//! during repairs.
//!
//! **Room.** Hosts write while a round of cleaning runs. They do not stop until the round ends, and they do not use up
//! the room of the round at its beginning.
//!
//! ```text
//!  segments:  | in use | hosts ....... | used by the round so far | cleaning | checkpoints |
//!                       `- grows in proportion to the progress of the round
//! ```
//!
//! A round returns the room that it takes when it ends. This room is *lent*, so hosts do not wait because of it. Hosts
//! get their room in portions as the round progresses, batch by batch: a part while the round is chosen, the rest while
//! blocks are moved and the checkpoint after the round is written.
//!
//! **Time.** While hosts are active, rebuilding and scrubbing leave them a share of the time: after each piece of work
//! they pause for as long as this share requires.
//!
//! Values only: `clean.rs` and `space/waiting.rs` decide who waits, and for what.

use base::Nanos;

use crate::space::shares::Shares;

/// While a round is chosen, hosts may use one part of their room, if the room is divided into this many parts.
const CHOOSING_PARTS: usize = 2;
/// How far hosts may be ahead, as a fraction of the room that they were given.
const AHEAD_SHARE: usize = 32;
/// Maximum length of a pause after a piece of repair work.
const PAUSE_MAX: Nanos = Nanos::from_secs(10);

/// Cleaning that paces hosts. Sizes are in blocks unless stated otherwise.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct HostPacing {
    /// The size of the work, and how much of it is done.
    total: usize,
    done: usize,
    /// What hosts have used meanwhile.
    used: usize,
    /// One part of the hosts' room is given out, if the room is divided into this many parts.
    parts: usize,
    /// Blocks moved so far.
    moved: usize,
    /// The cost of the round beyond cleaning's share, in segments: it is taken from the hosts' share.
    excess: usize,
    /// Blocks of map pages that its checkpoints write.
    pages: usize,
}

impl HostPacing {
    /// While a round of about this many segments is chosen.
    pub fn choosing(victims: usize) -> HostPacing {
        HostPacing { total: victims.max(1), parts: CHOOSING_PARTS, ..HostPacing::default() }
    }

    /// While a round moves blocks and writes checkpoints: it writes `total` blocks, `pages` of them map pages, and may
    /// take `excess` segments beyond cleaning's share.
    pub fn of_round(total: usize, pages: usize, excess: usize) -> HostPacing {
        HostPacing { total: total.max(1), parts: 1, excess, pages, ..HostPacing::default() }
    }

    /// Records that another segment has been chosen.
    pub fn note_victim(&mut self) {
        self.done += 1;
    }

    /// Records that a batch has its place: it holds moves of the round, map pages, and other entries, and takes `place`
    /// blocks.
    pub fn note_batch(&mut self, moves: usize, pages: usize, others: usize, place: usize) {
        self.moved += moves;
        if self.moved > 0 {
            self.done += moves + pages;
        }
        if others > 0 {
            self.used += place.saturating_sub(moves + pages);
        }
    }

    /// Segments that the round has taken so far, and for which hosts must not wait.
    pub fn lent(&self, packed: usize) -> usize {
        (self.moved / packed).saturating_sub(self.excess)
    }

    /// Whether hosts have used more of their room than the fraction of the work that is done. Their room is what they
    /// have used, plus what remains until they would have to wait, minus what the round is still going to take of it.
    pub fn is_ahead(&self, shares: &Shares) -> bool {
        let takes = self.excess.saturating_sub(self.moved / shares.packed)
            + self.pages.div_ceil(shares.packed).saturating_sub(shares.checkpoint_pages());
        let left = shares.room.saturating_sub(shares.hosts_wait() + 1 + takes) * shares.packed;
        let dealt = (self.done + self.total / AHEAD_SHARE).min(self.total);
        self.used > (self.used + left) * dealt / (self.total * self.parts)
    }
}

/// A running piece of repair work.
pub(crate) struct RepairPiece {
    pub began: Nanos,
    /// Blocks that hosts had read and written at its beginning.
    pub host_blocks: u64,
}

impl RepairPiece {
    /// How long repairs pause after this piece, so that they take `share_percent` of the time. If no host was active
    /// meanwhile, there is no pause.
    pub fn pause(&self, now: Nanos, host_blocks: u64, share_percent: u8) -> Nanos {
        if host_blocks == self.host_blocks {
            return Nanos(0);
        }
        let share = u64::from(share_percent.clamp(1, 100));
        let spent = now.0 - self.began.0;
        Nanos((spent * (100 - share) / share).min(PAUSE_MAX.0))
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
        let pacing = HostPacing { total: 3200, parts: 1, ..HostPacing::default() };
        let used = |used, room| HostPacing { used, ..pacing }.is_ahead(&shares(room));
        assert!(!used(0, 21) && !used(20, 84) && used(21, 84), "a little at once");
        let pacing = HostPacing { done: 1500, ..pacing };
        let used = |used, room| HostPacing { used, ..pacing }.is_ahead(&shares(room));
        assert!(!used(320, 53) && used(321, 53), "half of it when half of it is done");
        assert!(!used(321, 54), "what is freed is theirs, too");
        let pacing = HostPacing { done: 9999, ..pacing };
        assert!(!HostPacing { used: 9999, ..pacing }.is_ahead(&shares(0)), "it does not go on any more");
        let choosing = HostPacing { done: 9, ..HostPacing::choosing(3) };
        assert!(
            !HostPacing { used: 20, ..choosing }.is_ahead(&shares(23))
                && HostPacing { used: 21, ..choosing }.is_ahead(&shares(23))
        );
    }

    #[test]
    fn what_a_round_costs_beyond_cleanings_share_is_not_lent() {
        let pacing = HostPacing { total: 100, parts: 1, moved: 100, excess: 8, ..HostPacing::default() };
        assert_eq!((pacing.lent(10), HostPacing { moved: 50, ..pacing }.lent(10)), (2, 0));
        let begun = HostPacing { done: 100, moved: 0, used: 1, ..pacing };
        assert!(!begun.is_ahead(&shares(30)) && !begun.is_ahead(&shares(28)));
    }

    #[test]
    fn repairs_rest_as_long_as_their_share_asks_for() {
        let piece = RepairPiece { began: Nanos(1000), host_blocks: 7 };
        assert_eq!(piece.pause(Nanos(1400), 8, 50), Nanos(400));
        assert_eq!(piece.pause(Nanos(1400), 8, 25), Nanos(1200));
        assert_eq!(piece.pause(Nanos(1400), 8, 100), Nanos(0));
        assert_eq!(piece.pause(Nanos(1400), 7, 25), Nanos(0), "no host is there");
        assert_eq!(piece.pause(Nanos::from_secs(60), 8, 1), PAUSE_MAX);
    }
}
