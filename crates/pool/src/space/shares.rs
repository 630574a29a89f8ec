//! How full a lane is, who may use the remaining space, and who has to wait. `docs/design/0003-space.md` gives the
//! reasons for the numbers.
//!
//! ```text
//!  segments:  | in use ............ | hosts | cleaning works here | checkpoints |
//!                                    `------------- room ----------------------'
//! ```
//!
//! There are three separate bounds. *Capacity* counts live blocks: beyond it, writes that add blocks are refused.
//! *Room* counts free segments: beyond it, writes wait for cleaning. *Dirty pages*: beyond them, writes wait for a
//! checkpoint. Capacity is set so that there is always garbage to clean when a write waits for room.

use crate::map::tree::Map;
use crate::space::segments::{Extent, Segments};

/// Segments that a checkpoint and rounding may leave partly unused.
const SLACK: usize = 3;
/// Maximum number of pages that a checkpoint has to write, regardless of memory: it bounds what a start has to replay.
const DIRTY_PAGES_MAX: usize = 48 << 10;
/// Minimum number of pages above the leaves in a layer.
const UPPER_PAGES: usize = 2;

/// The division of a lane's space. In segments unless stated otherwise.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Shares {
    /// Free segments, reserved for the log or not.
    pub room: usize,
    /// Segments for a checkpoint of the present changes, and for an empty checkpoint after it.
    pub checkpoint: usize,
    /// Segments for cleaning to work in.
    pub cleaning: usize,
    /// How far above the hosts' limit cleaning begins.
    ahead: usize,
    /// Segments taken by a running round of cleaning, which will return them.
    pub lent: usize,
    /// Maximum number of live blocks.
    pub capacity_blocks: u64,
    /// Maximum number of pages for the next checkpoint: beyond it, writes wait for the checkpoint.
    pub dirty_max: usize,
    /// A checkpoint's table, in blocks.
    table_blocks: usize,
    /// Blocks in a segment of full batches.
    pub packed: usize,
}

impl Shares {
    pub fn new(segments: &Segments, map: &Map) -> Shares {
        Shares::of(segments.extent(), segments, map)
    }

    /// Maximum number of live blocks without a drive, or with a replacement of this many chunks.
    pub fn capacity_without(drive: u8, instead: Option<u32>, segments: &Segments, map: &Map) -> u64 {
        Shares::of(segments.extent_without(drive, instead), segments, map).capacity_blocks
    }

    fn of(extent: Extent, segments: &Segments, map: &Map) -> Shares {
        let Extent { total, packed } = extent;
        let table_blocks = segments.table_blocks(map.layers.len());
        // pages of two checkpoints may be in memory: the pages that are being written, and the next ones
        let dirty_max =
            (map.budget_pages() * 3 / 8).min(DIRTY_PAGES_MAX).min((total / 96).max(1) * packed).max(24);
        let checkpoint = |pages: usize| SLACK + (pages + 2 * table_blocks).div_ceil(packed);

        // the maximum cost of a round of cleaning besides its moved blocks: every map page once, and the checkpoints
        // that keep the dirty pages bounded meanwhile
        let stored = segments.live().saturating_sub(map.mapped()) as usize;
        let pages = (stored + map.exposed_pages()).max(total * packed / 256);
        let above = pages_above(map.layers.len(), dirty_max);
        let checkpoints = pages.div_ceil((dirty_max / 2).max(1));
        let cost = SLACK + (pages + checkpoints * (table_blocks + above)).div_ceil(packed);

        let usable = total.saturating_sub(checkpoint(dirty_max));
        let cleaning = (cost * usable).isqrt() + 1;
        let capacity = (usable + cost).saturating_sub(2 * cleaning);
        let capacity = capacity.min(usable.saturating_sub(cleaning) * 11 / 12);
        Shares {
            room: segments.room(),
            checkpoint: checkpoint(map.pages_to_write()),
            cleaning,
            ahead: (total / 32).clamp(4, 128),
            lent: 0,
            capacity_blocks: (capacity * packed) as u64,
            dirty_max,
            table_blocks,
            packed,
        }
    }

    /// Blocks of each checkpoint of a round, besides the leaf pages.
    pub fn checkpoint_blocks(&self, layers: usize) -> usize {
        self.table_blocks + pages_above(layers, self.dirty_max)
    }

    /// Segments for the pages that the next checkpoint would write now.
    pub fn checkpoint_pages(&self) -> usize {
        self.checkpoint.saturating_sub(SLACK)
    }

    /// The room at which hosts' writes wait.
    pub fn hosts_wait(&self) -> usize {
        self.checkpoint + self.cleaning.saturating_sub(self.lent)
    }

    /// The room at which cleaning begins.
    pub fn cleaning_begins(&self) -> usize {
        self.hosts_wait() + self.ahead
    }

    /// Segments that the log may need before a checkpoint reserves more.
    pub fn working(&self) -> usize {
        (self.cleaning + self.ahead).min(512)
    }
}

/// Pages above those that a checkpoint within a round of cleaning writes.
fn pages_above(layers: usize, dirty_max: usize) -> usize {
    dirty_max.min(UPPER_PAGES * layers + dirty_max / 128)
}
