//! How fast repairs go: rebuilding and scrubbing leave hosts the rest of the time while there are any.

use base::Nanos;

use crate::lane::Lane;

/// The beginning of a piece of repair work.
pub(crate) struct Piece {
    began: Nanos,
    /// Blocks that hosts had read and written by then.
    hosts: u64,
}

impl Lane {
    pub(crate) fn begin_repair(&self) -> Piece {
        Piece { began: self.io.now(), hosts: self.host_blocks() }
    }

    /// Waits as long as the share of repairs asks for. Where no host did anything meanwhile, it does not.
    pub(crate) async fn end_repair(&self, piece: Piece) {
        if self.host_blocks() == piece.hosts {
            return;
        }
        let share = u64::from(self.options.get().repair_share_percent.clamp(1, 100));
        let spent = self.io.now().0 - piece.began.0;
        // no piece is so long that a pause of ten seconds would be wanted for its own sake
        let pause = (spent * (100 - share) / share).min(10_000_000_000);
        if pause > 0 {
            self.io.sleep(Nanos(pause)).await;
        }
    }

    fn host_blocks(&self) -> u64 {
        let counters = self.counters.borrow();
        counters.blocks_read + counters.blocks_written
    }
}
