//! The statistics of a lane.

use crate::counters::LaneCounters;
use crate::drives::care::note_needed;
use crate::drives::latency::DriveLatency;
use crate::drives::membership::Membership;
use crate::integrity::loss;
use crate::integrity::scrubber::ScrubStats;
use crate::lane::Lane;
use crate::space::shares::Shares;

/// A lane's state in numbers. Blocks are of 4 KiB.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct LaneStats {
    pub counters: LaneCounters,
    /// Blocks that volumes can use.
    pub capacity_blocks: u64,
    /// Those that they could use without a drive, by its index.
    pub capacity_without: Vec<u64>,
    /// Blocks in use, map pages among them.
    pub live_blocks: u64,
    /// Of the live blocks, those of layers; the rest is the map itself.
    pub mapped_blocks: u64,
    /// Blocks of layers that are references; they take none of the live ones.
    pub reference_blocks: u64,
    pub segments_total: usize,
    /// Blocks that one segment takes when it is filled with full batches.
    pub segment_blocks: usize,
    pub segments_free: usize,
    /// Blocks of segments that are kept free: where less is, cleaning begins.
    pub reserve_blocks: u64,
    /// Segments in which some batch lacks a column, or which have a column on a drive that is not online; those of which
    /// nothing more can be moved do not count, here and in the exposed blocks.
    pub segments_degraded: usize,
    /// Live blocks by how many columns of their segment are lost: what stands at index 1 would survive one failure
    /// less than the protection promises, and so on. Segments with damage, or with a column on a drive that is
    /// being emptied, count at index 0, where the whole ones do not.
    pub exposed_blocks: [u64; 3],
    /// Columns that the most exposed live blocks have lost, whether they can be moved or not.
    pub lost_columns_max: usize,
    /// Columns of no use to rebuild from that the most exposed live blocks have, at most: those that are lost, and those of which
    /// it is known that they lack something, or may be. What nothing more can be moved of does not count.
    pub exposed_columns_max: usize,
    /// Drives of which this lane has met so many errors lately, of each kind, by drive index.
    pub recent_faults: Vec<[u32; 3]>,
    /// Drives without which this lane might have something that stands nowhere else, by drive index.
    pub needs_drive: Vec<bool>,
    /// Live blocks that can neither be read nor rebuilt, as far as is known.
    pub lost_blocks: u64,
    pub scrub: ScrubStats,
    /// By drive index.
    pub drive_latency: Vec<DriveLatency>,
    /// Memory for the map, in bytes.
    pub map_budget_bytes: usize,
    pub map_pages_cached: usize,
    pub map_pages_dirty: usize,
    /// Leaf pages that were looked for in memory, and those of them that were not there.
    pub map_lookups: u64,
    pub map_misses: u64,
    /// Writes wait or are refused because the file system under the drives is full.
    pub stalled: bool,
    /// Below these drives there was none.
    pub short_of_space: Vec<u8>,
    /// Too many drives have failed.
    pub failed: bool,
}

/// How many more drives may fail without loss of data, as far as is known: worked out from the worst block that there is.
/// What rots unnoticed is not known; a scrub finds it.
pub fn failures_survivable(membership: &Membership, lanes: &[&LaneStats]) -> u8 {
    let parity = usize::from(membership.protection.parity());
    let worst =
        lanes.iter().map(|lane| lane.exposed_columns_max.max(lane.lost_columns_max)).max().unwrap_or(0);
    parity.saturating_sub(worst.max(membership.lost())) as u8
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
        LaneStats {
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
            map_budget_bytes: map.budget_bytes(),
            map_pages_cached: map.cached_pages(),
            map_pages_dirty: map.dirty_pages(),
            map_lookups: map.hits,
            map_misses: map.misses,
            stalled: self.life.is_stalled() || self.life.is_recovering(),
            short_of_space: self.health.full(),
            failed: self.life.has_failed(),
        }
    }

    /// Blocks mapped by a layer, without those of the layers below; 0 for one that does not exist.
    pub fn layer_blocks(&self, layer: base::LayerId) -> u64 {
        let map = self.map.borrow();
        map.layers.get(&map.named(layer)).map_or(0, |layer| layer.mapped)
    }
}
