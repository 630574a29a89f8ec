//! Builds a batch: pending entries become a header, blocks, parity, and one write per column.
//!
//! Pure: no I/O. Here the bytes of a block are copied once, the only time on their way to the drives, and their
//! checksum is computed. Columns are slices of the same memory.

use base::{AlignedBuffer, BLOCK_BYTES, block_checksum};
use bytes::Bytes;

use crate::format::header::{BatchHeader, Entry};
use crate::geometry::layout::Layout;
use crate::geometry::protection::Shape;
use crate::log::queue::{BatchedEntry, Pending, Source};

/// The data for one column, from the batch's first row on.
pub(crate) struct ColumnWrite {
    /// Index into the segment's columns.
    pub column: usize,
    pub data: Vec<Bytes>,
}

/// A built batch.
pub(crate) struct Built {
    pub header: BatchHeader,
    pub batched: Vec<BatchedEntry>,
    /// Data blocks of the entries, in order.
    pub data: Bytes,
    pub durable: bool,
    pub writes: Vec<ColumnWrite>,
}

/// Builds a batch of `taken`, which must fit. `header` names the place, and gets the entries.
pub(crate) fn build(shape: Shape, mut header: BatchHeader, taken: Vec<Pending>) -> Built {
    let blocks = taken.iter().filter(|pending| pending.source.is_some()).count();
    header.rows = shape.rows_for(blocks).max(1) as u8;
    let durable = taken.iter().any(|pending| pending.durable);
    let mut data = AlignedBuffer::uncleared(blocks);
    let mut batched = Vec::with_capacity(taken.len());
    let mut slot = 0;
    for pending in taken {
        let mut entry = pending.entry;
        assert_eq!(entry.has_data(), pending.source.is_some());
        if let Some(source) = &pending.source {
            let target = data.block_mut(slot);
            match source {
                Source::Payload(payload, offset_bytes) => payload.copy_to(*offset_bytes, target),
                Source::Block(bytes) => target.copy_from_slice(bytes),
            }
            slot += 1;
            let crc = block_checksum(target);
            // a moved block must be the one that the map knows, otherwise damaged data would get a good checksum
            assert!(!matches!(entry, Entry::Move { crc: known, .. } if known != crc));
            entry.set_crc(crc);
        }
        header.entries.push(entry);
        batched.push(pending.into_batched().1);
    }
    let data = data.into_bytes();
    let writes = writes(shape, &header, &data);
    Built { header, batched, data, durable, writes }
}

/// The data for a batch's columns.
pub(crate) fn writes(shape: Shape, header: &BatchHeader, data: &Bytes) -> Vec<ColumnWrite> {
    let mut image = AlignedBuffer::zeroed(1);
    header.emit(&mut image);
    let layout = Layout::new(shape, header.segment, usize::from(header.row), usize::from(header.rows));
    column_writes(&layout, image.into_bytes(), data.clone(), data.len() / BLOCK_BYTES)
}

/// The columns that have a copy of a batch's header.
pub(crate) fn header_columns(shape: Shape, header: &BatchHeader) -> Vec<usize> {
    let layout = Layout::new(shape, header.segment, usize::from(header.row), usize::from(header.rows));
    (0..shape.header_copies()).map(|role| layout.column(role)).collect()
}

/// Removes entries from a batch, whose length does not change. Returns what was removed.
pub(crate) fn take_out(
    header: &mut BatchHeader,
    batched: &mut Vec<BatchedEntry>,
    data: &mut Bytes,
    which: impl Fn(&Entry) -> bool,
) -> Vec<(Entry, BatchedEntry)> {
    let (mut taken, mut kept_riders) = (Vec::new(), Vec::new());
    let (entries, old) = (std::mem::take(&mut header.entries), std::mem::take(data));
    let mut kept = Vec::new();
    let mut slot = 0;
    for (entry, batched) in entries.into_iter().zip(batched.drain(..)) {
        let at = slot * BLOCK_BYTES;
        slot += usize::from(entry.has_data());
        if which(&entry) {
            taken.push((entry, batched));
            continue;
        }
        if entry.has_data() {
            kept.push(old.slice(at..at + BLOCK_BYTES));
        }
        header.entries.push(entry);
        kept_riders.push(batched);
    }
    let mut blocks = AlignedBuffer::uncleared(kept.len());
    kept.iter().enumerate().for_each(|(slot, block)| blocks.block_mut(slot).copy_from_slice(block));
    (*data, *batched) = (blocks.into_bytes(), kept_riders);
    taken
}

/// One write per column that holds something.
pub(crate) fn column_writes(layout: &Layout, header: Bytes, data: Bytes, blocks: usize) -> Vec<ColumnWrite> {
    let mut writes = Vec::with_capacity(layout.shape().width());
    for role in 0..layout.shape().data() {
        let slots = layout.slots(role, blocks);
        let mut pieces = Vec::with_capacity(2);
        if layout.has_header(role) {
            pieces.push(header.clone());
        }
        if !slots.is_empty() {
            pieces.push(data.slice(slots.start * BLOCK_BYTES..slots.end * BLOCK_BYTES));
        }
        if !pieces.is_empty() {
            writes.push(ColumnWrite { column: layout.column(role), data: pieces });
        }
    }
    for (role, parity) in (layout.shape().data()..).zip(parity_columns(layout, &header, &data, blocks)) {
        let data = match layout.has_header(role) {
            true if layout.rows() == 1 => vec![header.clone()],
            true => vec![header.clone(), parity.slice(BLOCK_BYTES..)],
            false => vec![parity],
        };
        writes.push(ColumnWrite { column: layout.column(role), data });
    }
    writes
}

/// P and Q over all rows.
fn parity_columns(layout: &Layout, header: &Bytes, data: &Bytes, blocks: usize) -> Vec<Bytes> {
    let mut columns = vec![AlignedBuffer::zeroed(layout.rows()); layout.shape().parity()];
    for role in 0..layout.shape().data() {
        let slots = layout.slots(role, blocks);
        let first = usize::from(layout.has_header(role)) * BLOCK_BYTES;
        let strip = &data[slots.start * BLOCK_BYTES..slots.end * BLOCK_BYTES];
        for (parity, column) in columns.iter_mut().enumerate() {
            let mut fold = |at: usize, bytes: &[u8]| match parity {
                0 => parity::accumulate_p(&mut column[at..at + bytes.len()], bytes),
                _ => parity::accumulate_q(&mut column[at..at + bytes.len()], bytes, role),
            };
            fold(0, &header[..first]);
            fold(first, strip);
        }
    }
    columns.into_iter().map(AlignedBuffer::into_bytes).collect()
}
