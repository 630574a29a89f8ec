//! A copy between two logical units that are in one pool, by reference. See `manager/copy_sources.rs`.

use std::rc::Rc;

use pool::CopyRange;
use scsi::{CopyPart, CopyStretch};
use shard::{Answer, CopyAsk, CopyGrant, MANAGER, ManagerCall, Target};

use crate::front::Front;
use crate::units::HostUnit;

/// Makes the destination refer to the source's blocks, as far as possible. Returns what has to be copied as data.
/// `None`: everything.
pub(crate) async fn by_reference(
    front: &Rc<Front>,
    (source, destination): (&HostUnit, &HostUnit),
    stretch: &CopyStretch,
) -> Option<Vec<CopyPart>> {
    let pool = source.unit.pool().filter(|pool| destination.unit.pool() == Some(*pool))?;
    let bytes = |unit: &HostUnit, lba: u64| lba * u64::from(unit.logical.geometry.block_bytes);
    let range = CopyRange {
        source_bytes: bytes(source, stretch.source_lba),
        destination_bytes: bytes(destination, stretch.destination_lba),
        length_bytes: stretch.bytes,
    };
    let overlaps = source.unit.volume == destination.unit.volume
        && range.source_bytes.abs_diff(range.destination_bytes) < range.length_bytes;
    if !range.is_whole() || overlaps {
        return None;
    }
    let (Target::Pool(from), Target::Pool(to)) = (&*source.unit.target, &*destination.unit.target) else {
        return None;
    };
    let (start_bytes, length_bytes) = (range.source_bytes, range.length_bytes);
    let ask = CopyAsk { pool, source: source.unit.volume, start_bytes, length_bytes };
    let Answer::CopyBegun(begun) = front.context.ask(MANAGER, ManagerCall::BeginCopy(ask)).await else {
        unreachable!("the answer to a copy that wants to begin")
    };
    let CopyGrant { below } = begun?;
    let copied = to.copy_from(from, range, below).await;
    front.context.ask(MANAGER, ManagerCall::EndCopy(pool)).await;
    // the error appears again when the data is copied
    let left = copied.ok()?;
    let part = |left: CopyRange| CopyPart {
        offset_bytes: left.source_bytes - range.source_bytes,
        bytes: left.length_bytes,
    };
    Some(left.into_iter().map(part).collect())
}
