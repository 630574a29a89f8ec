//! A drive that is exported as it is: LBA 0 is the drive's first byte.
//!
//! The drive accepts only whole, aligned 4 KiB blocks; a volume may have 512-byte blocks. The last 4 KiB block may be
//! incomplete: a drive ends with its last sector, and a disk with a GPT has its backup header there. So:
//! - a read fetches the 4 KiB blocks around its range and returns the requested part;
//! - a write that begins or ends inside a 4 KiB block reads this block first and writes it back as a whole;
//! - if the drive ends inside a 4 KiB block, a write of this block ends with the drive;
//! - writes (and COMPARE AND WRITE) that touch the same 4 KiB blocks are executed one after the other. Reads do
//!   not wait: a read concurrent with a write returns each logical block as it was before or after the write.
//!
//! ```text
//!   request            ├───────────────────────┤
//!   4 KiB blocks   │ head    │         │    tail │      head and tail are read, then all three are written
//! ```
//!
//! A drive may become larger or smaller than the volume. Access behind the drive's end is a medium error.
//!
//! It must not hold data back after the answer, and must not change anything outside a request's logical blocks.

use std::cell::Cell;
use std::ops::Range;
use std::rc::Rc;

use base::limits::TRANSFER_BYTES_MAX;
use base::{AlignedBuffer, BLOCK_BYTES, Lba};
use bytes::Bytes;
use env::{DriveHandle, DriveInfo, IoError};
use task::Io;

use crate::payload::Payload;
use crate::range_lock::RangeLock;
use crate::request::{BlockError, BlockOutput, BlockRequest, BlockResult, BlockTarget, Geometry};

/// An open drive as a volume. The drive's opener closes it, after this is gone.
pub struct Raw {
    io: Io,
    drive: DriveHandle,
    geometry: Geometry,
    /// Where the drive ends, as far as is known.
    end_bytes: u64,
    locks: RangeLock,
    /// The drive is about to be closed: nothing is asked of it any more.
    retired: Rc<Cell<bool>>,
    /// One transfer's worth of zeros, aligned as the drive wants it.
    zeros: Bytes,
}

/// Zeros kept for `WriteZeroes`; repeated for larger ranges.
const ZEROS_BYTES: usize = 256 << 10;

impl Raw {
    /// A drive as a volume of this shape. With `write_back`, writes are answered before they are on stable storage, where
    /// the drive has a volatile cache.
    pub fn new(io: &Io, drive: DriveHandle, info: &DriveInfo, geometry: Geometry) -> Raw {
        let block_bytes = geometry.block_bytes;
        assert!(block_bytes == 512 || block_bytes == 4096, "{block_bytes}-byte logical blocks");
        let write_back = geometry.write_back && info.volatile_cache;
        Raw {
            io: io.clone(),
            drive,
            geometry: Geometry { thin: false, write_back, ..geometry },
            end_bytes: info.end_bytes,
            locks: RangeLock::new(io),
            retired: Rc::default(),
            zeros: AlignedBuffer::zeroed(ZEROS_BYTES / BLOCK_BYTES).into_bytes(),
        }
    }

    /// How many logical blocks a drive has for a volume.
    pub fn blocks_of(info: &DriveInfo, block_bytes: u32) -> u64 {
        info.end_bytes / u64::from(block_bytes)
    }

    /// The same open drive after it, or the volume, got another size. Requests to either take turns with each other.
    pub fn resized(&self, info: &DriveInfo, geometry: Geometry) -> Raw {
        let (locks, retired) = (self.locks.clone(), self.retired.clone());
        Raw { locks, retired, ..Raw::new(&self.io, self.drive, info, geometry) }
    }

    /// The drive is about to be closed. Requests that are at work begin no further operation, and end as on a drive that is
    /// not there.
    pub fn retire(&self) {
        self.retired.set(true);
    }

    fn drive(&self) -> Result<DriveHandle, BlockError> {
        if self.retired.get() { Err(BlockError::NotReady) } else { Ok(self.drive) }
    }

    /// The first block of a request that the drive does not have, where there is one.
    fn check_reach(&self, request: &BlockRequest) -> Result<(), BlockError> {
        let Some((lba, blocks)) = request.extent(self.geometry.block_bytes) else { return Ok(()) };
        if self.bytes(lba, blocks).end <= self.end_bytes {
            return Ok(());
        }
        let first_behind = Lba(self.end_bytes / u64::from(self.geometry.block_bytes));
        Err(BlockError::Medium { lba: lba.max(first_behind) })
    }

    fn bytes(&self, lba: Lba, blocks: u64) -> Range<u64> {
        let block_bytes = u64::from(self.geometry.block_bytes);
        lba.0 * block_bytes..(lba.0 + blocks) * block_bytes
    }

    async fn read(&self, range: Range<u64>) -> Result<Bytes, BlockError> {
        let span = aligned(&range);
        let buffer = self.read_span(span.clone(), &range).await?;
        let from = (range.start - span.start) as usize;
        Ok(buffer.into_bytes().slice(from..from + (range.end - range.start) as usize))
    }

    /// Reads whole 4 KiB blocks; an error is told as one of `range`.
    async fn read_span(&self, span: Range<u64>, range: &Range<u64>) -> Result<AlignedBuffer, BlockError> {
        let blocks = ((span.end - span.start) / BLOCK_BYTES as u64) as usize;
        let (buffer, result) =
            self.io.drive_read(self.drive()?, span.start, AlignedBuffer::uncleared(blocks)).await;
        match result {
            Ok(()) => Ok(buffer),
            // which block is it? Each by itself tells, or reads fine this time
            Err(IoError::Media) if blocks > 1 => self.read_each(span, range, buffer).await,
            Err(error) => Err(self.failure(error, span.start.max(range.start))),
        }
    }

    async fn read_each(
        &self,
        span: Range<u64>,
        range: &Range<u64>,
        mut whole: AlignedBuffer,
    ) -> Result<AlignedBuffer, BlockError> {
        for index in 0..whole.blocks() {
            let offset = span.start + (index * BLOCK_BYTES) as u64;
            let (block, result) = self.io.drive_read(self.drive()?, offset, AlignedBuffer::zeroed(1)).await;
            result.map_err(|error| self.failure(error, offset.max(range.start)))?;
            whole.block_mut(index).copy_from_slice(&block);
        }
        Ok(whole)
    }

    async fn write(&self, start: u64, data: &Payload, durable: bool) -> Result<(), BlockError> {
        let range = start..start + data.len() as u64;
        let _turn = self.locks.acquire(aligned(&range)).await;
        self.write_in_turn(range, data, durable).await
    }

    /// The caller holds the 4 KiB blocks around `range`.
    async fn write_in_turn(
        &self,
        range: Range<u64>,
        data: &Payload,
        durable: bool,
    ) -> Result<(), BlockError> {
        let span = aligned(&range);
        let mut buffer = AlignedBuffer::zeroed(((span.end - span.start) / BLOCK_BYTES as u64) as usize);
        let last = buffer.blocks() - 1;
        let head_is_partial = range.start != span.start;
        let write_end = span.end.min(self.end_bytes);
        let tail_is_partial = range.end < write_end;
        if head_is_partial || (tail_is_partial && last == 0) {
            let head = self.read_span(span.start..span.start + BLOCK_BYTES as u64, &range).await?;
            buffer.block_mut(0).copy_from_slice(&head);
        }
        if tail_is_partial && last > 0 {
            let tail = self.read_span(span.end - BLOCK_BYTES as u64..span.end, &range).await?;
            buffer.block_mut(last).copy_from_slice(&tail);
        }
        let from = (range.start - span.start) as usize;
        data.copy_to(0, &mut buffer[from..from + data.len()]);
        let data = buffer.into_bytes().slice(..(write_end - span.start) as usize);
        self.write_aligned(span.start, vec![data], durable, range.start).await
    }

    async fn write_aligned(
        &self,
        offset: u64,
        data: Vec<Bytes>,
        durable: bool,
        first: u64,
    ) -> Result<(), BlockError> {
        let durable = durable || !self.geometry.write_back;
        let result = self.io.drive_write(self.drive()?, offset, data, durable).await;
        result.map_err(|error| self.failure(error, first))
    }

    async fn write_zeroes(&self, range: Range<u64>) -> Result<(), BlockError> {
        let _turn = self.locks.acquire(aligned(&range)).await;
        let mut at = range.start;
        while at < range.end {
            let next_block = (at + 1).next_multiple_of(BLOCK_BYTES as u64);
            let whole_end = range.end - range.end % BLOCK_BYTES as u64;
            if at.is_multiple_of(BLOCK_BYTES as u64) && at < whole_end {
                let length = (whole_end - at).min(TRANSFER_BYTES_MAX as u64);
                self.write_aligned(at, self.aligned_zeros(length as usize), false, at).await?;
                at += length;
            } else {
                let end = next_block.min(range.end);
                let zeros = Payload::from(self.zeros.slice(..(end - at) as usize));
                self.write_in_turn(at..end, &zeros, false).await?;
                at = end;
            }
        }
        Ok(())
    }

    fn aligned_zeros(&self, mut bytes: usize) -> Vec<Bytes> {
        let mut pieces = Vec::with_capacity(bytes.div_ceil(ZEROS_BYTES));
        while bytes > 0 {
            let take = bytes.min(ZEROS_BYTES);
            pieces.push(self.zeros.slice(..take));
            bytes -= take;
        }
        pieces
    }

    /// Tells the drive of the whole 4 KiB blocks within the range.
    async fn discard(&self, range: Range<u64>) -> Result<(), BlockError> {
        let start = range.start.next_multiple_of(BLOCK_BYTES as u64);
        let end = range.end - range.end % BLOCK_BYTES as u64;
        if start >= end {
            return Ok(());
        }
        let _turn = self.locks.acquire(start..end).await;
        let result = self.io.drive_discard(self.drive()?, start, end - start).await;
        result.map_err(|error| self.failure(error, start))
    }

    async fn compare_and_write(
        &self,
        start: u64,
        expected: &Payload,
        data: &Payload,
        durable: bool,
    ) -> Result<(), BlockError> {
        let range = start..start + data.len() as u64;
        let _turn = self.locks.acquire(aligned(&range)).await;
        let now = self.read(range.clone()).await?;
        if let Some(at) = now.iter().zip(expected.to_vec()).position(|(have, want)| *have != want) {
            return Err(BlockError::Miscompare { offset_bytes: at as u32 });
        }
        self.write_in_turn(range, data, durable).await
    }

    /// What the drive's failure at this byte means to the host.
    fn failure(&self, error: IoError, at: u64) -> BlockError {
        match error {
            IoError::Media | IoError::Other(_) => {
                BlockError::Medium { lba: Lba(at / u64::from(self.geometry.block_bytes)) }
            }
            IoError::NoSpace => BlockError::OutOfSpace,
            IoError::ReadOnly | IoError::PermissionDenied => BlockError::WriteProtected,
            IoError::NotFound
            | IoError::Busy
            | IoError::Reserved
            | IoError::Unsupported
            | IoError::NotADrive
            | IoError::Gone
            | IoError::Closed
            | IoError::Refused
            | IoError::AddressInUse
            | IoError::AddressNotAvailable
            | IoError::TimedOut
            | IoError::TooMany => BlockError::NotReady,
        }
    }
}

/// The whole 4 KiB blocks around a range.
fn aligned(range: &Range<u64>) -> Range<u64> {
    range.start - range.start % BLOCK_BYTES as u64..range.end.next_multiple_of(BLOCK_BYTES as u64)
}

impl BlockTarget for Raw {
    fn geometry(&self) -> Geometry {
        self.geometry
    }

    async fn execute(&self, request: BlockRequest) -> BlockResult {
        self.geometry.assert_valid(&request);
        self.check_reach(&request)?;
        match request {
            BlockRequest::Read { lba, blocks } => {
                let data = self.read(self.bytes(lba, u64::from(blocks))).await?;
                return Ok(BlockOutput::Data(data.into()));
            }
            BlockRequest::Write { lba, data, durable } => {
                self.write(self.bytes(lba, 0).start, &data, durable).await?;
            }
            BlockRequest::WriteZeroes { lba, blocks } => self.write_zeroes(self.bytes(lba, blocks)).await?,
            BlockRequest::Unmap { lba, blocks } => self.discard(self.bytes(lba, blocks)).await?,
            BlockRequest::CompareAndWrite { lba, expected, data, durable } => {
                self.compare_and_write(self.bytes(lba, 0).start, &expected, &data, durable).await?;
            }
            BlockRequest::Flush => {
                let result = self.io.drive_flush(self.drive()?).await;
                result.map_err(|error| self.failure(error, 0))?;
            }
            BlockRequest::MapStatus { blocks, .. } => {
                return Ok(BlockOutput::MapStatus { mapped: true, blocks });
            }
        }
        Ok(BlockOutput::None)
    }
}
