//! From the array into a stream of bytes: the raw image, or records without holes.
//!
//! What always holds: pieces are sent in order, and the stream ends well only if all of them were sent. A client that
//! takes nothing for [`STALL_TIME_MAX`] ends it.

use std::collections::VecDeque;
use std::io;
use std::ops::Range;
use std::sync::Arc;

use api::{BulkError, BulkOutput, BulkRequest};
use base::BLOCK_BYTES;
use base::limits::BULK_BYTES_MAX;
use bytes::Bytes;
use tokio::sync::mpsc;

use super::{RunningTransfer, STALL_TIME_MAX, WINDOW, records};
use crate::array::{Array, BulkAnswer};

/// A piece of a stream, or why it breaks off.
pub(crate) type Sent = Result<Bytes, io::Error>;

/// Zeros of the raw image are sent in pieces of this size.
static ZEROS: [u8; 64 << 10] = [0; 64 << 10];

/// An export under way.
pub(crate) struct Export {
    pub(crate) array: Arc<dyn Array>,
    pub(crate) moving: RunningTransfer,
    /// Bytes of the volume.
    pub(crate) range: Range<u64>,
    /// Records without holes, otherwise the raw image.
    pub(crate) records: bool,
    pub(crate) pieces: mpsc::Sender<Sent>,
}

/// Why an export does not go on.
enum Stop {
    Array(BulkError),
    /// The client has gone, or takes nothing.
    Client,
}

impl From<BulkError> for Stop {
    fn from(error: BulkError) -> Stop {
        Stop::Array(error)
    }
}

impl Export {
    /// Until everything is sent, or the client has gone. `Err`: what the stream broke off for.
    pub(crate) async fn run(self) -> Result<(), BulkError> {
        match self.send_all().await {
            Ok(()) | Err(Stop::Client) => Ok(()),
            Err(Stop::Array(error)) => {
                let _ = self.pieces.send(Err(io::Error::other(error.to_string()))).await;
                Err(error)
            }
        }
    }

    async fn send_all(&self) -> Result<(), Stop> {
        let block = BLOCK_BYTES as u64;
        let end = self.range.end.next_multiple_of(block);
        let mut asked = self.range.start / block * block;
        // up to here the image was sent
        let mut sent = self.range.start;
        let mut ranges: VecDeque<Range<u64>> = VecDeque::new();
        let mut reads: VecDeque<(Range<u64>, BulkAnswer)> = VecDeque::new();
        loop {
            while reads.len() < WINDOW {
                let Some(range) = ranges.pop_front() else { break };
                let piece = range.start..range.end.min(range.start + BULK_BYTES_MAX as u64);
                if piece.end < range.end {
                    ranges.push_front(piece.end..range.end);
                }
                reads.push_back((piece.clone(), self.read(&piece)));
            }
            match reads.pop_front() {
                Some((piece, answer)) => {
                    let data = self.data(&piece, answer).await?;
                    self.send_data(piece.start, data, &mut sent).await?;
                }
                None if asked < end => {
                    let extents = BulkRequest::Extents { from_bytes: asked };
                    let BulkOutput::Extents(found) = self.moving.ask(&*self.array, extents).await? else {
                        unreachable!("extents give extents")
                    };
                    asked = found.until_bytes;
                    let inside = found.ranges.into_iter().map(|range| range.start..range.end.min(end));
                    ranges.extend(inside.filter(|range| !range.is_empty()));
                }
                None => break,
            }
        }
        match self.records {
            true => self.send(records::end(self.range.end)).await,
            false => self.send_zeros(&mut sent, self.range.end).await,
        }
    }

    fn read(&self, piece: &Range<u64>) -> BulkAnswer {
        let length_bytes = (piece.end - piece.start) as usize;
        self.moving.send(&*self.array, BulkRequest::Read { offset_bytes: piece.start, length_bytes })
    }

    /// Waits for credit as long as the client is there: it may hold all of it.
    async fn data(&self, piece: &Range<u64>, mut answer: BulkAnswer) -> Result<Vec<Bytes>, Stop> {
        loop {
            match answer.await {
                Ok(BulkOutput::Data(data)) => return Ok(data),
                Ok(other) => unreachable!("a read gives data, not {other:?}"),
                Err(BulkError::NoCredit) if !self.pieces.is_closed() => answer = self.read(piece),
                Err(error) => return Err(error.into()),
            }
        }
    }

    async fn send_data(&self, offset_bytes: u64, data: Vec<Bytes>, sent: &mut u64) -> Result<(), Stop> {
        if self.records {
            let length_bytes: usize = data.iter().map(Bytes::len).sum();
            self.send(records::head(offset_bytes, length_bytes as u64)).await?;
        }
        let mut at = offset_bytes;
        for piece in data {
            let end = at + piece.len() as u64;
            // the first and the last block may be wanted in part
            let wanted = at.max(self.range.start)..end.min(self.range.end);
            if self.records {
                self.send(piece).await?;
            } else if !wanted.is_empty() {
                self.send_zeros(sent, wanted.start).await?;
                self.send(piece.slice((wanted.start - at) as usize..(wanted.end - at) as usize)).await?;
                *sent = wanted.end;
            }
            at = end;
        }
        Ok(())
    }

    async fn send_zeros(&self, sent: &mut u64, until: u64) -> Result<(), Stop> {
        while *sent < until {
            let length = (until - *sent).min(ZEROS.len() as u64);
            self.send(Bytes::from_static(&ZEROS[..length as usize])).await?;
            *sent += length;
        }
        Ok(())
    }

    async fn send(&self, piece: Bytes) -> Result<(), Stop> {
        match tokio::time::timeout(STALL_TIME_MAX, self.pieces.send(Ok(piece))).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(_)) | Err(_) => Err(Stop::Client),
        }
    }
}
