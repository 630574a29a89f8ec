//! Single cases.

use std::collections::BTreeMap;

use env::IoError;
use pair::{CommitRule, StoreEvent};

use crate::geometry::Geometry;
use crate::message::TwinNews;
use crate::order::{CopyError, CopyId, Order, OwnDrive, RequestId};
use crate::owner::Mirror;
use crate::record::{Record, Synchrony, TwinId};
use crate::twin::TwinState;

const KIB: u64 = 1024;

fn geometry() -> Geometry {
    Geometry::new(512 * KIB, 64 * KIB, 16 * KIB)
}

fn own(record: Option<Record>) -> OwnDrive {
    OwnDrive { id: TwinId(1), geometry: geometry(), record }
}

fn mirror_of(records: Vec<Option<Record>>, tolerated: usize) -> Mirror {
    let mut mirror = Mirror::new(tolerated);
    records.into_iter().enumerate().for_each(|(drive, record)| mirror.add(drive, own(record)));
    mirror
}

fn there(record: Option<&Record>) -> TwinNews {
    TwinNews::There { opening: 1, record: record.cloned() }
}

fn news(twins: &[TwinNews]) -> BTreeMap<usize, TwinNews> {
    twins.iter().cloned().enumerate().collect()
}

/// Three drives, in sync, with nothing marked.
fn in_sync(tolerated: usize) -> Mirror {
    let record = Record {
        twin: TwinId(1),
        generation: 1,
        synchrony: Synchrony(9),
        region_bytes: 64 * KIB,
        mirrored_bytes: 512 * KIB,
        marked: crate::Bits::empty(8),
    };
    let mut mirror = mirror_of(vec![Some(record.clone()); 3], tolerated);
    mirror.set_rule(CommitRule::Own);
    mirror.copy();
    mirror.on_partner(&news(&[(); 3].map(|()| there(Some(&record)))), true);
    assert!(mirror.take_orders().contains(&Order::Tell(StoreEvent::NearlyCopied)));
    mirror.set_rule(CommitRule::Both);
    assert_eq!(mirror.take_orders(), [Order::Tell(StoreEvent::Covered)]);
    mirror.joined(Synchrony(10));
    records(&mut mirror);
    mirror
}

/// Writes the records that are due; returns the other orders.
fn records(mirror: &mut Mirror) -> Vec<Order> {
    let mut others = Vec::new();
    loop {
        let orders = mirror.take_orders();
        if orders.is_empty() {
            return others;
        }
        for order in orders {
            match order {
                Order::Record { drive, .. } => mirror.on_recorded(drive, Ok(())),
                other => others.push(other),
            }
        }
    }
}

#[test]
fn a_write_waits_for_its_mark_and_for_both_drives() {
    let mut mirror = in_sync(1);
    let request = RequestId(1);
    mirror.write(request, 0, (0, 4096), true);
    let orders = mirror.take_orders();
    let [Order::Record { drive: 0, record }] = &orders[..] else { panic!("a mark first, not {orders:?}") };
    assert!(record.marked.has(0) && record.marked.len() == 1);
    mirror.on_recorded(0, Ok(()));
    assert_eq!(mirror.take_orders(), [Order::Begin { request, far: true }]);
    mirror.on_own(request, Ok(()));
    assert_eq!(mirror.take_orders(), [], "the partner has not answered");
    mirror.on_far(request, Ok(()));
    assert_eq!(mirror.take_orders(), [Order::Done { request, result: Ok(()) }]);
    // the region is marked: the next write begins at once
    mirror.write(RequestId(2), 0, (8192, 4096), true);
    assert_eq!(mirror.take_orders(), [Order::Begin { request: RequestId(2), far: true }]);
}

#[test]
fn a_mark_that_cannot_be_written_fails_the_write() {
    let mut mirror = in_sync(1);
    mirror.write(RequestId(1), 2, (0, 4096), true);
    mirror.take_orders();
    mirror.on_recorded(2, Err(IoError::Gone));
    let orders = mirror.take_orders();
    assert!(
        orders.contains(&Order::Done { request: RequestId(1), result: Err(IoError::Gone) }),
        "{orders:?}"
    );
}

#[test]
fn a_partner_that_loses_a_drive_stays_and_one_that_loses_more_must_leave() {
    let mut mirror = in_sync(1);
    for (number, drive) in [(1, 0), (2, 1)] {
        mirror.write(RequestId(number), drive, (0, 4096), true);
        records(&mut mirror);
        mirror.on_own(RequestId(number), Ok(()));
    }
    mirror.on_far(RequestId(1), Err(IoError::Media));
    assert_eq!(mirror.twin_state(0), TwinState::Out);
    assert_eq!(mirror.take_orders(), [Order::Done { request: RequestId(1), result: Ok(()) }]);
    // nothing is sent to a twin that is out
    mirror.write(RequestId(3), 0, (4096, 4096), true);
    assert_eq!(mirror.take_orders(), [Order::Begin { request: RequestId(3), far: false }]);
    mirror.on_own(RequestId(3), Ok(()));
    mirror.take_orders();
    mirror.on_far(RequestId(2), Err(IoError::Media));
    assert!(mirror.take_orders().contains(&Order::PartnerIsUnfit));
}

#[test]
fn a_partner_that_became_unfit_while_the_register_was_asked_must_leave_all_the_same() {
    let mut mirror = in_sync(0);
    mirror.write(RequestId(1), 0, (0, 4096), true);
    records(&mut mirror);
    mirror.on_own(RequestId(1), Ok(()));
    mirror.on_far(RequestId(1), Err(IoError::Media));
    assert!(mirror.take_orders().contains(&Order::PartnerIsUnfit));
    // the register says "in sync" only now
    mirror.joined(Synchrony(9));
    assert_eq!(mirror.take_orders(), [Order::PartnerIsUnfit]);
    mirror.set_rule(CommitRule::Own);
    assert!(mirror.take_orders().contains(&Order::Done { request: RequestId(1), result: Ok(()) }));
}

#[test]
fn a_drive_that_the_partner_has_opened_again_does_not_count() {
    let opened = |drives: [u64; 3]| {
        let twins = drives.map(|opening| TwinNews::There { opening, record: None });
        news(&twins)
    };
    let mut mirror = in_sync(0);
    mirror.on_partner(&opened([1, 1, 1]), true);
    assert!(!mirror.take_orders().contains(&Order::PartnerIsUnfit));
    mirror.on_partner(&opened([1, 2, 1]), true);
    assert!(mirror.take_orders().contains(&Order::PartnerIsUnfit), "its cache may be lost");
    mirror.set_rule(CommitRule::Own);
    mirror.copy();
    mirror.on_partner(&opened([1, 2, 1]), true);
    assert_eq!(mirror.twin_state(1), TwinState::Sound);
}

#[test]
fn a_new_drive_is_filled_while_writes_go_to_it() {
    let mut mirror = in_sync(1);
    mirror.write(RequestId(1), 0, (0, 4096), true);
    records(&mut mirror);
    mirror.on_far(RequestId(1), Err(IoError::Gone));
    mirror.on_own(RequestId(1), Ok(()));
    mirror.take_orders();
    let again = TwinNews::There { opening: 2, record: None };
    mirror.on_partner(&news(&[again, there(None), there(None)]), true);
    assert_eq!([0, 1].map(|drive| mirror.twin_state(drive)), [TwinState::Filling, TwinState::Sound]);
    let mut copied = 0;
    loop {
        let orders = records(&mut mirror);
        if orders.is_empty() {
            break;
        }
        for order in orders {
            match order {
                Order::Copy { copy, drive: 0, length_bytes, .. } => {
                    copied += length_bytes;
                    mirror.on_copied(copy, Ok(()));
                }
                Order::TellSynchrony { drives, .. } => {
                    let has_all = copied == 512 * KIB;
                    assert_eq!(drives.contains(&0), has_all, "when the new drive has everything")
                }
                other => panic!("{other:?}"),
            }
        }
    }
    assert_eq!((copied, mirror.twin_state(0)), (512 * KIB, TwinState::Sound));
}

#[test]
fn a_partner_of_another_synchrony_lacks_everything() {
    let mut mirror = in_sync(1);
    mirror.set_rule(CommitRule::Own);
    mirror.stop_copying();
    assert_eq!(mirror.lacking_bytes(), 0, "nothing was written since");
    let other = Record {
        twin: TwinId(1),
        generation: 4,
        synchrony: Synchrony(9),
        region_bytes: 64 * KIB,
        mirrored_bytes: 512 * KIB,
        marked: crate::Bits::empty(8),
    };
    let same = Record { synchrony: Synchrony(10), ..other.clone() };
    mirror.copy();
    mirror.on_partner(&news(&[there(Some(&same)), there(Some(&other)), there(None)]), false);
    assert_eq!(mirror.lacking_bytes(), 2 * 512 * KIB, "the one with an older record, and the one without");
}

#[test]
fn a_piece_that_was_read_for_an_old_connection_is_not_wanted() {
    let mut mirror = mirror_of(vec![None], 0);
    mirror.set_rule(CommitRule::Own);
    mirror.copy();
    let pieces = |mirror: &mut Mirror| {
        mirror.on_partner(&news(&[there(None)]), true);
        let copy = |order| match order {
            Order::Copy { copy, .. } => Some(copy),
            _ => None,
        };
        mirror.take_orders().into_iter().filter_map(copy).collect::<Vec<_>>()
    };
    let old = pieces(&mut mirror);
    let new = pieces(&mut mirror);
    assert!(!old.is_empty() && old.len() == new.len());
    assert!(old.iter().all(|&copy| !mirror.wants(copy)) && new.iter().all(|&copy| mirror.wants(copy)));
}

#[test]
fn a_record_of_another_drive_is_none() {
    let foreign = Record {
        twin: TwinId(2),
        generation: 4,
        synchrony: Synchrony(9),
        region_bytes: 64 * KIB,
        mirrored_bytes: 512 * KIB,
        marked: crate::Bits::empty(8),
    };
    let mut mirror = mirror_of(vec![Some(foreign)], 0);
    mirror.set_rule(CommitRule::Own);
    assert_eq!(mirror.lacking_bytes(), 512 * KIB, "it says nothing of this drive");
}

#[test]
fn a_drive_that_is_added_is_asked_for_and_one_that_is_removed_is_forgotten() {
    let mut mirror = in_sync(1);
    mirror.set_rule(CommitRule::Own);
    mirror.copy();
    mirror.on_partner(&news(&[(); 3].map(|()| there(None))), true);
    mirror.take_orders();
    let lacking = mirror.lacking_bytes();
    mirror.add(3, own(None));
    assert_eq!(mirror.take_orders(), [Order::Reconnect], "what it has of this drive is not known");
    mirror.on_partner(&news(&[(); 3].map(|()| there(None))), true);
    assert_eq!(mirror.take_orders(), [Order::Reconnect], "it was asked before the drive was added");
    mirror.on_partner(&news(&[(); 4].map(|()| there(None))), true);
    let copies =
        |orders: Vec<Order>| orders.iter().filter(|order| matches!(order, Order::Copy { .. })).count();
    assert_eq!(copies(mirror.take_orders()), 8);
    assert_eq!(mirror.lacking_bytes(), lacking + 512 * KIB);
    mirror.remove(0);
    assert_eq!(mirror.lacking_bytes(), lacking, "three drives, as before");
    assert_eq!(
        copies(mirror.take_orders()),
        8,
        "the next drive's pieces, in place of those of the one that was removed"
    );
    assert_eq!(mirror.drives().map(|(drive, ..)| drive).collect::<Vec<_>>(), [1, 2, 3]);
}

#[test]
fn an_owner_that_closes_its_drives_does_not_forget_what_the_partner_lacks() {
    let mut mirror = in_sync(0);
    mirror.set_rule(CommitRule::Own);
    mirror.copy();
    let lacks_all = |mirror: &mut Mirror, drives: std::ops::Range<usize>| {
        let twins: Vec<TwinNews> = drives.map(|_| there(None)).collect();
        mirror.on_partner(&news(&twins), true);
        mirror.take_orders();
    };
    lacks_all(&mut mirror, 0..3);
    (0..3).for_each(|drive| mirror.remove(drive));
    let nearly = Order::Tell(StoreEvent::NearlyCopied);
    assert!(!mirror.take_orders().contains(&nearly), "nothing is copied of what it has closed");
    mirror.set_rule(CommitRule::Both);
    assert!(!mirror.take_orders().contains(&Order::Tell(StoreEvent::Covered)));
}

#[test]
fn a_drive_that_is_added_in_sync_makes_the_partner_leave_and_waits_for_that() {
    let mut mirror = in_sync(1);
    mirror.add(3, own(None));
    assert_eq!(mirror.take_orders(), [Order::PartnerIsUnfit, Order::Reconnect]);
    let request = RequestId(1);
    mirror.write(request, 3, (0, 4096), true);
    assert_eq!(records(&mut mirror), [Order::Begin { request, far: true }]);
    mirror.on_own(request, Ok(()));
    assert_eq!(mirror.take_orders(), [], "it waits");
    mirror.set_rule(CommitRule::Own);
    assert!(mirror.take_orders().contains(&Order::Done { request, result: Ok(()) }));
}

#[test]
fn what_the_partner_lacks_of_a_drive_that_has_left_its_pool_does_not_count() {
    let mut mirror = in_sync(0);
    mirror.set_rule(CommitRule::Own);
    mirror.copy();
    let lacks_the_first = |drives: std::ops::Range<usize>| {
        let twins = drives.map(|drive| if drive == 0 { TwinNews::Absent } else { there(None) });
        twins.enumerate().collect::<BTreeMap<usize, TwinNews>>()
    };
    mirror.on_partner(&lacks_the_first(0..3), true);
    let id = mirror.id(0).expect("it is there");
    mirror.remove(0);
    let covered = |mirror: &mut Mirror| {
        for _ in 0..100 {
            for order in mirror.take_orders() {
                match order {
                    Order::Copy { copy, .. } => mirror.on_copied(copy, Ok(())),
                    Order::Tell(StoreEvent::NearlyCopied) => return true,
                    _ => {}
                }
            }
        }
        false
    };
    assert!(!covered(&mut mirror), "the pool may be closed in order, and the partner lacks this drive");
    mirror.forget(id);
    assert!(covered(&mut mirror));
}

#[test]
fn what_is_stored_on_a_drive_without_a_twin_keeps_the_partner_out() {
    let mut mirror = in_sync(1);
    mirror.take_orders();
    mirror.set_stores_alone(true);
    assert!(mirror.partner_counts(), "until it has left");
    assert!(mirror.take_orders().contains(&Order::PartnerIsUnfit));
    mirror.set_rule(CommitRule::Own);
    assert!(!mirror.partner_counts());
    mirror.copy();
    let nearly = Order::Tell(StoreEvent::NearlyCopied);
    let sound = [(); 3].map(|()| there(None));
    mirror.on_partner(&news(&sound), true);
    assert!(!mirror.take_orders().contains(&nearly));
    mirror.set_stores_alone(false);
    assert!(!mirror.take_orders().contains(&Order::PartnerIsUnfit), "said once");
}

#[test]
fn a_partner_does_not_join_as_long_as_a_pool_is_absent() {
    let mut mirror = mirror_of(vec![None; 3], 0);
    mirror.set_whole(false);
    mirror.set_rule(CommitRule::Own);
    mirror.copy();
    mirror.on_partner(&news(&[(); 3].map(|()| there(None))), true);
    let nearly = Order::Tell(StoreEvent::NearlyCopied);
    let mut lacking = true;
    while lacking {
        let orders = mirror.take_orders();
        assert!(!orders.contains(&nearly));
        let copies = orders.iter().filter_map(|order| match order {
            Order::Copy { copy, .. } => Some(*copy),
            _ => None,
        });
        let copies: Vec<_> = copies.collect();
        lacking = !copies.is_empty();
        copies.into_iter().for_each(|copy| mirror.on_copied(copy, Ok(())));
    }
    mirror.set_whole(true);
    assert!(mirror.take_orders().contains(&nearly));
}

#[test]
fn without_any_drive_there_is_nothing_to_be_in_sync_with() {
    let mut mirror = mirror_of(vec![], 0);
    mirror.set_rule(CommitRule::Own);
    mirror.copy();
    mirror.on_partner(&news(&[]), true);
    assert!(!mirror.take_orders().contains(&Order::Tell(StoreEvent::NearlyCopied)));
}

/// A drive that hangs is absent. A report would end the connection, again and again, and nothing would be copied to the others.
#[test]
fn a_partner_that_does_not_count_is_copied_to_although_a_drive_of_it_is_absent() {
    let mut mirror = in_sync(0);
    mirror.set_rule(CommitRule::Own);
    mirror.copy();
    mirror.take_orders();
    let one_hangs = news(&[TwinNews::Absent, there(None), there(None)]);
    mirror.on_partner(&one_hangs, true);
    let orders = mirror.take_orders();
    let copies: Vec<(CopyId, usize)> = orders.iter().filter_map(copy_of).collect();
    assert!(!copies.is_empty() && copies.iter().all(|(_, drive)| *drive != 0), "{orders:?}");
    // so does one whose drive fails now
    mirror.on_copied(copies[0].0, Err(CopyError::Far));
    let all = [orders, mirror.take_orders()].concat();
    assert!(!all.contains(&Order::PartnerIsUnfit) && !all.contains(&Order::Reconnect), "{all:?}");
}

/// What has failed while the head decided to wait for the partner again was not reported: the partner did not count.
#[test]
fn a_partner_that_is_unfit_when_it_is_to_count_must_leave() {
    let mut mirror = in_sync(0);
    mirror.set_rule(CommitRule::Own);
    mirror.copy();
    mirror.on_partner(&news(&[(); 3].map(|()| TwinNews::Absent)), true);
    mirror.take_orders();
    mirror.set_rule(CommitRule::Both);
    assert!(mirror.take_orders().contains(&Order::PartnerIsUnfit));
    mirror.write(RequestId(1), 0, (0, 4096), true);
    records(&mut mirror);
    mirror.on_own(RequestId(1), Ok(()));
    assert_eq!(mirror.take_orders(), [], "nothing is done before it has left");
    mirror.set_rule(CommitRule::Own);
    assert!(mirror.take_orders().contains(&Order::Done { request: RequestId(1), result: Ok(()) }));
}

fn copy_of(order: &Order) -> Option<(CopyId, usize)> {
    match order {
        Order::Copy { copy, drive, .. } => Some((*copy, *drive)),
        _ => None,
    }
}
