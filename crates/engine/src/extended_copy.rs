//! A copy between two logical units that are in one pool, by reference. See `array/copy_sources.rs`.

use std::rc::Rc;

use pool::CopyRange;
use scsi::{CopyPart, CopyStretch};

use crate::array::{CopyAsk, CopyGrant};
use crate::context::{Context, MANAGER};
use crate::message::{Answer, Call};
use crate::unit::{Target, Unit};

/// Has the destination refer to what the source holds, as far as possible; gives what is to be copied as data. `None`:
/// all of it.
pub(crate) async fn by_reference(
    context: &Rc<Context>,
    (source, destination): (&Unit, &Unit),
    stretch: &CopyStretch,
) -> Option<Vec<CopyPart>> {
    let pool = source.pool().filter(|pool| destination.pool() == Some(*pool))?;
    let bytes = |unit: &Unit, lba: u64| lba * u64::from(unit.logical.geometry.block_bytes);
    let range = CopyRange {
        source_bytes: bytes(source, stretch.source_lba),
        destination_bytes: bytes(destination, stretch.destination_lba),
        length_bytes: stretch.bytes,
    };
    let overlaps = source.volume == destination.volume
        && range.source_bytes.abs_diff(range.destination_bytes) < range.length_bytes;
    if !range.is_whole() || overlaps {
        return None;
    }
    let (Target::Pool(from), Target::Pool(to)) = (&*source.target, &*destination.target) else { return None };
    let (start_bytes, length_bytes) = (range.source_bytes, range.length_bytes);
    let ask = CopyAsk { pool, source: source.volume, start_bytes, length_bytes };
    let Answer::CopyBegun(begun) = context.ask(MANAGER, Call::BeginCopy(ask)).await else {
        unreachable!("the answer to a copy that wants to begin")
    };
    let CopyGrant { below } = begun?;
    let copied = to.copy_from(from, range, below).await;
    context.ask(MANAGER, Call::EndCopy(pool)).await;
    // what is wrong shows where the data is copied
    let left = copied.ok()?;
    let part = |left: CopyRange| CopyPart {
        offset_bytes: left.source_bytes - range.source_bytes,
        bytes: left.length_bytes,
    };
    Some(left.into_iter().map(part).collect())
}
