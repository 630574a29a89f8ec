//! Between the API's words about snapshots and clones and the engine's.

use ::api as shard;
use control::api;

pub(super) fn order(order: api::CopyOrder) -> shard::CopyOrder {
    use shard::CopyOrder as To;
    match order {
        api::CopyOrder::Snapshot(api::NewSnapshots { snapshots }) => {
            let named = |api::NewSnapshot { volume, name }| (volume, name);
            To::Snapshot { snapshots: snapshots.into_iter().map(named).collect() }
        }
        api::CopyOrder::DeleteSnapshot { volume, snapshot } => To::DeleteSnapshot { volume, snapshot },
        api::CopyOrder::RollBack { volume, snapshot } => To::RollBack { volume, snapshot },
        api::CopyOrder::Clone { volume, snapshot, clone } => To::Clone { volume, snapshot, name: clone.name },
        api::CopyOrder::CopyVolume { volume, copy } => To::CopyVolume { volume, name: copy.name },
        api::CopyOrder::Refresh { volume, snapshot, refresh } => {
            let api::Refresh { clones_of, remap } = refresh;
            To::Refresh { volume, snapshot, clones_of, remap }
        }
        api::CopyOrder::Promote { volume } => To::Promote { volume },
        api::CopyOrder::Undelete { volume } => To::Undelete { volume },
        api::CopyOrder::Eradicate { volume } => To::Eradicate { volume },
    }
}

pub(super) fn snapshot(snapshot: shard::SnapshotStatus) -> api::Snapshot {
    let shard::SnapshotStatus { volume, name, size_bytes, created_ms, schedule, space: taken } = snapshot;
    api::Snapshot { volume, name, size_bytes, created_ms, schedule, space: taken.map(space) }
}

pub(super) fn space(space: shard::CopySpace) -> api::CopySpace {
    let shared_bytes = space.shared_bytes();
    let shard::CopySpace { written_bytes, used_bytes, unique_bytes } = space;
    api::CopySpace { written_bytes, used_bytes, unique_bytes, shared_bytes }
}

pub(super) fn binned(binned: shard::BinnedStatus) -> api::Binned {
    let shard::BinnedStatus { name, pool, size_bytes, deleted_ms, eradicated_ms, snapshots, space: taken } =
        binned;
    api::Binned { name, pool, size_bytes, deleted_ms, eradicated_ms, snapshots, space: taken.map(space) }
}

pub(super) fn schedule_order(order: api::ScheduleOrder) -> shard::ScheduleOrder {
    match order {
        api::ScheduleOrder::Create(api::NewSchedule { name, volumes, keep }) => {
            let api::Keep { hourly, daily, weekly, monthly } = keep;
            let keep = shard::Keep { hourly, daily, weekly, monthly };
            shard::ScheduleOrder::Create { name, volumes, keep }
        }
        api::ScheduleOrder::Delete { name } => shard::ScheduleOrder::Delete { name },
    }
}

pub(super) fn schedule(schedule: shard::ScheduleStatus) -> api::Schedule {
    let shard::ScheduleStatus { name, volumes, keep, last_ms, next_ms, snapshots } = schedule;
    let shard::Keep { hourly, daily, weekly, monthly } = keep;
    let keep = api::Keep { hourly, daily, weekly, monthly };
    api::Schedule { name, volumes, keep, last_ms, next_ms, snapshots }
}
