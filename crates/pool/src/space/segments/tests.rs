//! Tests of the segments' bookkeeping.

use super::*;

fn segments(protection: Protection, width: u8, chunks: &[u32]) -> Segments {
    Segments::new(protection, width, 16, chunks, (0, 1), Epoch(1))
}

#[test]
fn allocates_until_the_estimate_says_and_gives_back() {
    let mut all = segments(Protection::Parity1, 3, &[10, 20, 15, 12]);
    let total = all.total_segments();
    let mut made = Vec::new();
    while let Some(id) = all.allocate() {
        made.push(id);
        let drives: Vec<u8> =
            all.get(id).columns.columns.iter().flatten().map(|column| column.drive).collect();
        assert_eq!(drives.len(), 3);
        assert!(drives.iter().all(|drive| drives.iter().filter(|other| *other == drive).count() == 1));
    }
    assert!(made.len().abs_diff(total) <= 1, "{} made, {total} promised", made.len());
    assert_eq!(all.free_segments(), 0);
    for id in made {
        all.release(id);
    }
    assert_eq!(all.free_segments(), total);
    assert!(all.allocate().is_some_and(|id| id.0 > total as u32), "ids are not reused");
}

#[test]
fn a_read_segment_is_not_reused() {
    let mut all = segments(Protection::Stripe, 1, &[1]);
    let id = all.allocate().expect("one chunk");
    all.pin(id);
    all.release(id);
    assert!(all.find(id).is_none() && all.allocate().is_none());
    assert!(all.unpin(id));
    assert!(all.allocate().is_some());
}

#[test]
fn leaves_offline_drives_out() {
    let mut all = segments(Protection::Parity1, 4, &[10, 10, 10, 10]);
    all.set_online(vec![true, true, false, true]);
    let id = all.allocate().expect("three drives are enough");
    assert_eq!(all.get(id).columns.columns.len(), 3);
    let mut mirror = segments(Protection::Mirror2, 2, &[10, 10]);
    mirror.set_online(vec![true, false]);
    assert_eq!(mirror.free_segments(), 10);
    let id = mirror.allocate().expect("degraded");
    assert_eq!(mirror.get(id).columns.columns, [Some(Column { drive: 0, chunk: 0 }), None]);
}

#[test]
fn what_was_set_aside_and_is_given_up_is_known_until_it_is_free() {
    let mut all = segments(Protection::Parity1, 3, &[10, 10, 10]);
    let ids: Vec<SegmentId> = std::iter::from_fn(|| all.allocate()).take(4).collect();
    ids.iter().for_each(|&id| all.enqueue(id));
    assert!(!all.drop_unusable() && !all.has_given_up());
    all.set_online(vec![true, false, true]);
    assert!(all.drop_unusable() && all.has_given_up() && all.queue().is_empty());
    ids.iter().for_each(|&id| all.release(id));
    assert!(!all.has_given_up());
}

#[test]
fn lanes_share_drives_without_sharing_chunks() {
    let mut one = Segments::new(Protection::Stripe, 1, 16, &[7], (0, 2), Epoch(1));
    let mut two = Segments::new(Protection::Stripe, 1, 16, &[7], (1, 2), Epoch(1));
    let chunks = |all: &mut Segments| {
        std::iter::from_fn(|| all.allocate().map(|id| all.get(id).columns.columns[0].expect("online").chunk))
            .collect::<Vec<_>>()
    };
    assert_eq!(chunks(&mut one), [0, 2, 4, 6]);
    assert_eq!(chunks(&mut two), [1, 3, 5]);
}

#[test]
fn without_a_drive_there_may_be_as_many_segments_but_narrower_ones() {
    let mut all = segments(Protection::Parity1, 4, &[100; 4]);
    let Extent { total, packed } = all.extent();
    let without = all.extent_without(1, None);
    assert_eq!((total, without.total), (100, 100));
    assert!((packed * 2 / 3..packed * 3 / 4).contains(&without.packed), "{} of {packed}", without.packed);
    all.set_online(vec![true, false, true, true]);
    assert_eq!(all.extent(), without, "as was said beforehand");
    assert_eq!(all.extent_without(1, None), without);
    let mirror = segments(Protection::Mirror2, 2, &[100; 4]);
    assert_eq!((mirror.extent().total, mirror.extent_without(0, None).total), (200, 150));
    let alone = segments(Protection::Stripe, 1, &[100]);
    assert_eq!(alone.extent_without(0, None).total, 0);
    let more = |instead| segments(Protection::Parity1, 4, &[100; 4]).extent_without(1, Some(instead)).total;
    assert_eq!((more(40), more(100), more(300)), (40, 100, 100), "with another in its place");
}
