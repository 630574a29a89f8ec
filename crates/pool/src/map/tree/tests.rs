//! The map in memory, without a lane.

use super::*;
use crate::geometry::position::{Position, SegmentId};

const LAYER: LayerId = LayerId(4);

fn entry(segment: u32) -> MapEntry {
    MapEntry { position: Position::new(SegmentId(segment), 0, 1, 0), crc: segment }
}

#[test]
fn heights() {
    assert_eq!(height_for(1), 1);
    assert_eq!(height_for(256), 1);
    assert_eq!(height_for(257), 2);
    assert_eq!(height_for(1 << 38), 5);
}

#[test]
fn what_is_not_cached_is_found_through_its_parents() {
    let mut map = Map::new(1 << 20);
    map.add_layer(LAYER, None, 2);
    let (key, index) = leaf(LAYER, 300);
    assert!(matches!(map.find(key), Found::Absent));
    map.layer_mut(LAYER).root = entry(7);
    let root = PageKey { layer: LAYER, level: 2, index: 0 };
    assert!(matches!(map.find(key), Found::Load(wanted, at) if wanted == root && at == entry(7)));
    let mut page = Page::new(root);
    page.set(1, entry(8), 1);
    map.insert_loaded(root, entry(7), page);
    assert!(matches!(map.find(key), Found::Load(wanted, at) if wanted == key && at == entry(8)));
    map.insert_loaded(key, entry(9), Page::new(key));
    assert!(map.cached(key).is_none(), "read from a place that is not the page's any more");
    map.insert_loaded(key, entry(8), Page::new(key));
    assert_eq!(map.set(key, index, entry(3), 5), MapEntry::ABSENT);
    assert_eq!(map.dirty_pages(), 1);
}

#[test]
fn silence_is_as_long_as_it_is() {
    const PAGE: u64 = PAGE_ENTRIES as u64;
    let mut map = Map::new(1 << 20);
    map.add_layer(LAYER, None, 5);
    assert_eq!(map.silent_until(LAYER, 7), Silence::Until(u64::MAX), "an empty layer");
    // only in memory: no page above names it
    let far = PAGE.pow(3) + 5 * PAGE;
    map.create(leaf(LAYER, far).0);
    assert_eq!(map.silent_until(LAYER, 7), Silence::Until(far));
    assert_eq!(map.silent_until(LAYER, far + 9), Silence::Speaks);
    assert_eq!(map.silent_until(LAYER, far + PAGE), Silence::Until(u64::MAX));
    // in the log: the page above says where the next one is
    let root = PageKey { layer: LAYER, level: 5, index: 0 };
    map.layer_mut(LAYER).root = entry(7);
    assert_eq!(map.silent_until(LAYER, 0), Silence::Load(root, entry(7)));
    let mut page = Page::new(root);
    page.set(3, entry(8), 1);
    map.insert_loaded(root, entry(7), page);
    assert_eq!(map.silent_until(LAYER, 0), Silence::Until(far));
    assert_eq!(map.silent_until(LAYER, far + PAGE), Silence::Until(3 * PAGE.pow(4)));
    let below = PageKey { layer: LAYER, level: 4, index: 3 };
    assert_eq!(map.silent_until(LAYER, 3 * PAGE.pow(4) + 1), Silence::Load(below, entry(8)));
    assert_eq!(map.silent_until(LAYER, 4 * PAGE.pow(4)), Silence::Until(PAGE.pow(5)));
    assert_eq!(map.silent_until(LayerId(99), 0), Silence::Until(u64::MAX), "no such layer");
}

#[test]
fn a_flush_sees_the_page_as_it_was() {
    let mut map = Map::new(1 << 20);
    map.add_layer(LAYER, None, 1);
    let (key, index) = leaf(LAYER, 3);
    map.create(key);
    map.set(key, index, entry(1), 1);
    let flushed = map.begin_flush(1);
    map.set(key, index, entry(2), 2);
    assert_eq!(flushed[0].1.entry(index), entry(1));
    map.end_flush(key, true);
    assert_eq!(map.dirty_pages(), 1, "changed again since");
}

#[test]
fn evicts_only_what_it_may() {
    let mut map = Map::new(8 * PAGE_BYTES);
    map.add_layer(LAYER, None, 2);
    let key = |index| PageKey { layer: LAYER, level: 1, index };
    for index in 0..4 {
        map.create(key(index));
        map.set(key(index), 0, entry(1), 1);
    }
    for index in 4..200 {
        map.create(key(index));
    }
    assert!(map.cached_pages() <= 5 + CLEAN_MIN);
    assert!((0..4).all(|index| map.cached(key(index)).is_some()));
}

#[test]
fn what_was_used_lately_stays_and_the_budget_changes() {
    let mut map = Map::new(1000 * PAGE_BYTES);
    map.add_layer(LAYER, None, 2);
    let key = |index| PageKey { layer: LAYER, level: 1, index };
    let within = |map: &Map, percent: usize| map.cached_pages() * 100 <= map.budget_pages() * percent;
    for index in 0..5_000 {
        map.create(key(index));
        assert!(matches!(map.find(key(0)), Found::Cached(_)) && within(&map, 103));
    }
    map.set(key(0), 0, entry(1), 1);
    map.set_budget(100 * PAGE_BYTES);
    assert!(within(&map, 103) && map.cached(key(0)).is_some());
    map.set_budget(2000 * PAGE_BYTES);
    (5_000..9_000).for_each(|index| map.create(key(index)));
    assert!(within(&map, 103) && map.cached_pages() * 100 > map.budget_pages() * 99);
    assert!(map.cached(key(0)).is_some());
}
