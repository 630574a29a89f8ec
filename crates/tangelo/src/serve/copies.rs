//! Between the API's words about snapshots and clones and the engine's.

use control::api;
use engine::command as shard;

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
    }
}

pub(super) fn snapshot(snapshot: shard::SnapshotStatus) -> api::Snapshot {
    let shard::SnapshotStatus { volume, name, size_bytes, created_ms, space: taken } = snapshot;
    api::Snapshot { volume, name, size_bytes, created_ms, space: taken.map(space) }
}

pub(super) fn space(space: shard::CopySpace) -> api::CopySpace {
    let shared_bytes = space.shared_bytes();
    let shard::CopySpace { written_bytes, used_bytes, unique_bytes } = space;
    api::CopySpace { written_bytes, used_bytes, unique_bytes, shared_bytes }
}
