//! Audits the counts of a lane: counts every block that the map names, and compares the result with the counts that the
//! lane keeps. A block that is counted but not named has leaked. A block that is named twice has two owners. Chunks are
//! audited in the same way: each is free, or in exactly one segment.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use base::{HashSet, LayerId};

use crate::cleaning::round::Round;
use crate::error::LaneError;
use crate::format::page::{MapEntry, PAGE_ENTRIES, Page, PageKey, stored};
use crate::geometry::position::{Position, SegmentId};
use crate::lane::Lane;
use crate::layers::layer::Layer;
use crate::layers::references::References;
use crate::map::tree::{Found, Map};
use crate::space::segments::Segments;

/// How often an audit restarts because something was committed while it counted.
const ATTEMPTS: u32 = 64;

/// What the map names.
#[derive(Default)]
struct Tally {
    places: HashSet<Position>,
    live: BTreeMap<SegmentId, u32>,
    mapped: BTreeMap<LayerId, u64>,
    references: References,
    twice: Option<Position>,
}

impl Tally {
    fn count(&mut self, entry: MapEntry) -> bool {
        let Some(position) = stored(entry) else { return false };
        if !self.places.insert(position) {
            self.twice.get_or_insert(position);
        }
        *self.live.entry(position.segment()).or_default() += 1;
        true
    }
}

/// A drive with a chunk that is owned twice or by nobody: each chunk is free, or in one segment.
fn miscounted_drive(segments: &Segments) -> Option<usize> {
    let mut owners: Vec<(Vec<u32>, usize)> =
        segments.chunks().map(|(free, owned)| (free.clone(), owned)).collect();
    for column in segments.all().flat_map(|segment| segment.columns.columns.iter().flatten()) {
        owners[usize::from(column.drive)].0.push(column.chunk);
    }
    owners.iter_mut().position(|(chunks, owned)| {
        let counted = chunks.len();
        chunks.sort_unstable();
        chunks.dedup();
        chunks.len() != counted || counted != *owned
    })
}

/// A layer with a wrong count of the layers above it, or whose parent does not exist.
fn miscounted_layer(map: &Map) -> Option<LayerId> {
    // layers above are counted first: a visible layer counts for its parent
    fn seen_children(map: &Map, id: LayerId) -> u32 {
        let children = map.layers.iter().filter(|(_, layer)| layer.parent == Some(id));
        let is_seen = |id: LayerId, layer: &Layer| {
            !layer.dropping || layer.merging.is_some() || seen_children(map, id) > 0
        };
        children.filter(|(child, layer)| is_seen(**child, layer)).count() as u32
    }
    let lost_parent = |layer: &Layer| layer.parent.is_some_and(|parent| !map.layers.contains_key(&parent));
    let is_wrong = |id: LayerId, layer: &Layer| {
        !layer.dropping && map.named(layer.name) != id
            || layer.children != seen_children(map, id)
            || !layer.is_to_be_emptied() && lost_parent(layer)
    };
    map.layers.iter().find(|(id, layer)| is_wrong(**id, layer)).map(|(&id, _)| id)
}

impl Lane {
    /// Compares what the map names with the counts that the lane keeps. `Ok(Some(why))`: they differ. `Ok(None)`: they
    /// agree, or the lane was never at rest long enough to tell. No request may be in flight, because the audit also
    /// compares the space promised to writes.
    pub async fn audit(&self) -> Result<Option<String>, LaneError> {
        for _ in 0..ATTEMPTS {
            let before = self.at_rest();
            let tally = self.tally().await?;
            if before.is_some() && before == self.at_rest() {
                return Ok(self.compare(&tally));
            }
            self.io.sleep(base::Nanos::from_millis(10)).await;
        }
        Ok(None)
    }

    /// Changes whenever something is committed or recorded; `None` while entries are on their way.
    fn at_rest(&self) -> Option<(u64, u64)> {
        let log = self.log.borrow();
        let idle = log.is_idle() && !self.map.borrow().is_flushing();
        idle.then(|| (log.committed.0, self.checkpointer.generation()))
    }

    async fn tally(&self) -> Result<Tally, LaneError> {
        let mut tally = Tally::default();
        let layers: Vec<(LayerId, u8, MapEntry)> =
            self.map.borrow().layers.iter().map(|(&id, layer)| (id, layer.height, layer.root)).collect();
        for (layer, height, root) in layers {
            let mut leaves: BTreeSet<PageKey> = self.map.borrow().cached_of(layer, 1).into_iter().collect();
            let mut todo = vec![PageKey { layer, level: height, index: 0 }];
            if !tally.count(root) {
                todo.clear();
            }
            while let Some(key) = todo.pop() {
                if key.level == 1 {
                    leaves.insert(key);
                    continue;
                }
                let Some(page) = self.page(key).await? else { continue };
                for index in (0..PAGE_ENTRIES).filter(|&index| tally.count(page.entry(index))) {
                    let below = key.index * PAGE_ENTRIES as u64 + index as u64;
                    todo.push(PageKey { layer, level: key.level - 1, index: below });
                }
            }
            for key in leaves {
                let Some(page) = self.page(key).await? else { continue };
                (0..PAGE_ENTRIES).for_each(|index| tally.references.come(page.entry(index)));
                let mapped = (0..PAGE_ENTRIES).filter(|&index| tally.count(page.entry(index))).count();
                *tally.mapped.entry(layer).or_default() += mapped as u64;
            }
        }
        Ok(tally)
    }

    async fn page(&self, key: PageKey) -> Result<Option<Rc<Page>>, LaneError> {
        loop {
            let found = self.map.borrow_mut().find(key);
            match found {
                Found::Cached(page) => return Ok(Some(page)),
                Found::Absent => return Ok(None),
                Found::Load(key, entry) => self.load_page(key, entry).await?,
            }
        }
    }

    fn compare(&self, tally: &Tally) -> Option<String> {
        if let Some(position) = tally.twice {
            return Some(format!("{position:?} is named twice"));
        }
        let promised = self.promises.blocks();
        if promised > 0 {
            return Some(format!("{promised} blocks are promised to writes that have ended"));
        }
        let segments = self.segments.borrow();
        if let Some(drive) = miscounted_drive(&segments) {
            return Some(format!("a chunk of drive {drive} is owned twice, or by nobody"));
        }
        for (id, named) in &tally.live {
            if segments.find(*id).is_none() {
                return Some(format!("the map names {named} blocks of segment {}, which is not there", id.0));
            }
        }
        for (id, segment) in segments.iter() {
            let named = tally.live.get(id).copied().unwrap_or(0);
            if named != segment.live {
                return Some(format!("segment {}: {named} blocks are named, {} counted", id.0, segment.live));
            }
        }
        let total: u64 = tally.live.values().map(|&live| u64::from(live)).sum();
        if total != segments.live() {
            return Some(format!("{total} blocks are named, {} counted in all", segments.live()));
        }
        let map = self.map.borrow();
        if tally.references != map.references {
            return Some(format!(
                "references: {:?} are named, {:?} counted",
                tally.references.counts(),
                map.references.counts()
            ));
        }
        if let Some(layer) = miscounted_layer(&map) {
            return Some(format!(
                "layer {}: what stands on it, what it stands on, or its name is not right",
                layer.0
            ));
        }
        let named = |id| tally.mapped.get(id).copied().unwrap_or(0);
        let wrong = map.layers.iter().find(|(id, layer)| named(id) != layer.mapped);
        wrong.map(|(id, layer)| {
            format!("layer {}: {} blocks are named, {} counted", id.0, named(id), layer.mapped)
        })
    }

    /// Whether stored blocks lack redundancy, could have it, and there is room to write them anew.
    pub fn repairs_are_due(&self) -> bool {
        let (shares, layers) = (self.shares(), self.map.borrow().layers.len());
        let round = Round::new(self);
        let segments = self.segments.borrow();
        segments.iter().any(|(_, segment)| {
            segment.live > 0
                && !segment.stuck
                && segments.wants_rewriting(segment)
                && self.has_room_for_repair(&round, segment.live, layers, &shares)
        })
    }
}
