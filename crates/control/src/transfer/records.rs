//! A volume without its holes, as bytes.
//!
//! ```text
//!  offset (64 bits, big-endian) | length (the same) | length bytes    ... in order, without overlap
//!  size of the volume           | 0                                   the end
//! ```
//!
//! Between two records there are zeros. A stream without the end is incomplete.

use bytes::{Buf, Bytes, BytesMut};

const HEAD_BYTES: usize = 16;

/// The head of a record.
pub fn head(offset_bytes: u64, length_bytes: u64) -> Bytes {
    let mut head = [0; HEAD_BYTES];
    head[..8].copy_from_slice(&offset_bytes.to_be_bytes());
    head[8..].copy_from_slice(&length_bytes.to_be_bytes());
    Bytes::copy_from_slice(&head)
}

/// The last record.
pub fn end(size_bytes: u64) -> Bytes {
    head(size_bytes, 0)
}

/// What was found in a stream.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Piece {
    Data {
        offset_bytes: u64,
        data: Bytes,
    },
    /// The size of the volume. Nothing follows.
    End {
        size_bytes: u64,
    },
}

/// The stream is not what it should be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RecordError {
    /// A record does not follow the one before it.
    Order,
    /// Something follows the end.
    AfterEnd,
}

/// Takes records out of bytes. Data comes out as it comes in, without waiting for the rest of its record.
#[derive(Default)]
pub struct Parser {
    /// Part of a head.
    head: BytesMut,
    /// Where the next byte of data belongs, and how many of the record are to come.
    at: u64,
    left: u64,
    ended: bool,
}

impl Parser {
    /// The next piece in these bytes, which it removes from them; `None` where they are used up.
    pub fn next(&mut self, bytes: &mut Bytes) -> Result<Option<Piece>, RecordError> {
        while !bytes.is_empty() {
            if self.ended {
                return Err(RecordError::AfterEnd);
            }
            if self.left > 0 {
                let length = usize::try_from(self.left).unwrap_or(usize::MAX).min(bytes.len());
                let (offset_bytes, data) = (self.at, bytes.split_to(length));
                (self.at, self.left) = (self.at + length as u64, self.left - length as u64);
                return Ok(Some(Piece::Data { offset_bytes, data }));
            }
            let length = (HEAD_BYTES - self.head.len()).min(bytes.len());
            self.head.extend_from_slice(&bytes.split_to(length));
            if self.head.len() < HEAD_BYTES {
                break;
            }
            let mut head = std::mem::take(&mut self.head);
            let (offset_bytes, length_bytes) = (head.get_u64(), head.get_u64());
            if offset_bytes < self.at || offset_bytes.checked_add(length_bytes).is_none() {
                return Err(RecordError::Order);
            }
            (self.at, self.left) = (offset_bytes, length_bytes);
            if length_bytes == 0 {
                self.ended = true;
                return Ok(Some(Piece::End { size_bytes: offset_bytes }));
            }
        }
        Ok(None)
    }

    /// Whether the end was there.
    pub fn has_ended(&self) -> bool {
        self.ended
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_come_in_pieces() {
        let whole = [&head(0, 3)[..], b"abc", &head(8, 4), b"defg", &end(20)].concat();
        for size in 1..=whole.len() {
            let (mut parser, mut image, mut ended) = (Parser::default(), vec![b'.'; 20], None);
            for piece in whole.chunks(size) {
                let mut bytes = Bytes::copy_from_slice(piece);
                while let Some(found) = parser.next(&mut bytes).unwrap() {
                    match found {
                        Piece::Data { offset_bytes, data } => {
                            image[offset_bytes as usize..][..data.len()].copy_from_slice(&data);
                        }
                        Piece::End { size_bytes } => ended = Some(size_bytes),
                    }
                }
            }
            assert_eq!((&image[..], ended), (&b"abc.....defg........"[..], Some(20)), "in pieces of {size}");
            assert!(parser.has_ended());
        }
    }

    #[test]
    fn what_no_stream_has() {
        let parse = |bytes: &[u8]| {
            let (mut parser, mut bytes) = (Parser::default(), Bytes::copy_from_slice(bytes));
            loop {
                match parser.next(&mut bytes) {
                    Ok(Some(_)) => {}
                    Ok(None) => return Ok(parser.has_ended()),
                    Err(error) => return Err(error),
                }
            }
        };
        assert_eq!(parse(b""), Ok(false));
        assert_eq!(parse(&[&head(4, 1)[..], b"a", &head(4, 1), b"b"].concat()), Err(RecordError::Order));
        assert_eq!(parse(&head(u64::MAX, 1)), Err(RecordError::Order));
        assert_eq!(parse(&[&end(9)[..], b"x"].concat()), Err(RecordError::AfterEnd));
        assert_eq!(parse(&head(4, 9)), Ok(false));
    }
}
