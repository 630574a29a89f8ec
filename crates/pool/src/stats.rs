//! The statistics of a lane.

use base::Nanos;

use crate::counters::LaneCounters;
use crate::drives::fault_response::note_needed;
use crate::drives::latency::{DriveLatency, DriveTotals};
use crate::drives::membership::Membership;
use crate::integrity::loss;
use crate::integrity::scrubber::ScrubStats;
use crate::lane::Lane;
use crate::space::shares::Shares;

/// A lane's state in numbers. Blocks are of 4 KiB.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct LaneStats {
    /// The lane's number in its pool.
    pub lane: u16,
    pub counters: LaneCounters,
    /// Blocks that volumes can use.
    pub capacity_blocks: u64,
    /// Blocks that volumes could use without a drive, by the drive's index.
    pub capacity_without: Vec<u64>,
    /// Blocks in use, map pages among them.
    pub live_blocks: u64,
    /// Live blocks that belong to layers; the rest is the map itself.
    pub mapped_blocks: u64,
    /// Blocks of layers that are references; they use no live blocks.
    pub reference_blocks: u64,
    pub segments_total: usize,
    /// Blocks of one segment filled with full batches.
    pub segment_blocks: usize,
    pub segments_free: usize,
    /// Blocks of segments that are kept free: with less, cleaning begins.
    pub reserve_blocks: u64,
    /// Segments in which some batch lacks a column, or which have a column on a drive that is not online. Segments
    /// whose blocks cannot be moved do not count, here and in the exposed blocks.
    pub segments_degraded: usize,
    /// Live blocks by how many columns of their segment are lost: blocks at index 1 survive one failure less than the
    /// protection promises, and so on. Segments with damage, or with a column on a drive that is being emptied, count
    /// at index 0; whole segments do not count.
    pub exposed_blocks: [u64; 3],
    /// Columns that the most exposed live block has lost, whether it can be moved or not.
    pub lost_columns_max: usize,
    /// Maximum number of columns useless for rebuilding in the segment of any live block: lost ones, and those that
    /// lack something or may do so. Segments whose blocks cannot be moved do not count.
    pub exposed_columns_max: usize,
    /// Recent errors of each drive that this lane has met, by kind, by drive index.
    pub recent_faults: Vec<[u32; 3]>,
    /// Drives that may hold the only copy of some data of this lane, by drive index.
    pub needs_drive: Vec<bool>,
    /// Live blocks that can neither be read nor rebuilt, as far as is known.
    pub lost_blocks: u64,
    pub scrub: ScrubStats,
    /// By drive index.
    pub drive_latency: Vec<DriveLatency>,
    /// What this lane has read and written, by drive index.
    pub drive_totals: Vec<DriveTotals>,
    /// Operations on drives that have not ended, by drive index, of all the pool's lanes on a shard: the first of them has
    /// the count, the others have none.
    pub drives_in_flight: Vec<usize>,
    /// Entries that wait for a batch, and batches that are being written.
    pub waiting_entries: usize,
    pub batches_in_flight: usize,
    /// Memory for the map, in bytes.
    pub map_budget_bytes: usize,
    pub map_pages_cached: usize,
    pub map_pages_dirty: usize,
    /// Leaf pages that were looked up in memory, and how many of them were not there.
    pub map_lookups: u64,
    pub map_misses: u64,
    /// Writes wait or are refused because the file system under the drives is full.
    pub stalled: bool,
    /// Drives below which there was no space.
    pub short_of_space: Vec<u8>,
    /// When there was last no space below a drive.
    pub short_of_space_at: Option<Nanos>,
    /// Too many drives have failed.
    pub failed: bool,
}

/// How many more drives may fail without loss of data, as far as is known, according to the most exposed block.
/// Undetected corruption is not included; a scrub finds it.
pub fn failures_survivable(membership: &Membership, lanes: &[&LaneStats]) -> u8 {
    let parity = usize::from(membership.protection.parity());
    let worst =
        lanes.iter().map(|lane| lane.exposed_columns_max.max(lane.lost_columns_max)).max().unwrap_or(0);
    parity.saturating_sub(worst.max(membership.lost_or_leaving())) as u8
}

impl LaneStats {
    /// Whether some data of the lane may be readable only as long as this drive is there.
    pub fn needs(&self, drive: u8) -> bool {
        self.needs_drive.get(usize::from(drive)).copied().unwrap_or(true)
    }
}

impl Lane {
    pub fn stats(&self) -> LaneStats {
        let segments = self.segments.borrow();
        let map = self.map.borrow();
        let (mut degraded, mut exposed, mut lost_columns_max, mut exposed_columns_max) = (0, [0; 3], 0, 0);
        let mut needs_drive = vec![false; segments.drives().count()];
        for (_, segment) in segments.iter().filter(|(_, segment)| segment.used_rows > 0) {
            note_needed(&segments, segment, &mut needs_drive);
            let lost = segments.lost_columns(segment);
            if segment.live > 0 {
                lost_columns_max = lost_columns_max.max(lost.min(2));
            }
            if segment.stuck {
                continue;
            }
            if segment.live > 0 {
                exposed_columns_max = exposed_columns_max.max(segments.exposed_columns(segment));
            }
            degraded += usize::from(!segment.lacking.is_nothing() || lost > 0);
            if lost > 0 || segments.wants_rewriting(segment) {
                exposed[lost.min(2)] += u64::from(segment.live);
            }
        }
        let shares = Shares::new(&segments, &map);
        let log = self.log.borrow();
        LaneStats {
            lane: self.number,
            counters: self.counters.borrow().clone(),
            capacity_blocks: shares.capacity_blocks,
            capacity_without: segments
                .drives()
                .map(|drive| Shares::capacity_without(drive, None, &segments, &map))
                .collect(),
            live_blocks: segments.live(),
            mapped_blocks: map.mapped(),
            reference_blocks: map.references.total(),
            segments_total: segments.total_segments(),
            segment_blocks: segments.packed_blocks(),
            segments_free: segments.free_segments(),
            reserve_blocks: (shares.cleaning_begins() * shares.packed) as u64,
            segments_degraded: degraded,
            exposed_blocks: exposed,
            lost_columns_max,
            exposed_columns_max,
            recent_faults: self.recent_faults(),
            needs_drive,
            lost_blocks: loss::lost_blocks(&segments),
            scrub: self.scrub_stats(),
            drive_latency: self.health.latencies(),
            drive_totals: self.health.totals(),
            drives_in_flight: Vec::new(),
            waiting_entries: log.pending.len(),
            batches_in_flight: log.in_flight.len(),
            map_budget_bytes: map.budget_bytes(),
            map_pages_cached: map.cached_pages(),
            map_pages_dirty: map.dirty_pages(),
            map_lookups: map.hits,
            map_misses: map.misses,
            stalled: self.life.is_stalled() || self.life.is_recovering(),
            short_of_space: self.health.full(),
            short_of_space_at: self.health.full_at(),
            failed: self.life.has_failed(),
        }
    }

    /// Blocks mapped by a layer, without those of the layers below; 0 if it does not exist.
    pub fn layer_blocks(&self, layer: base::LayerId) -> u64 {
        let map = self.map.borrow();
        map.layers.get(&map.named(layer)).map_or(0, |layer| layer.mapped)
    }
}
