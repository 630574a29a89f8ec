//! Data on its way to a target: slices of the receive buffers, in order, not yet copied.

use bytes::Bytes;

/// Longer data is not prefetched: it is read sequentially, which is fast without prefetching.
const BROUGHT_CLOSER_BYTES_MAX: usize = 16 << 10;

/// An ordered list of byte pieces. Pieces need no alignment. A single piece, which is most of them, needs no memory of
/// its own, and takes no more room than itself: payloads are handed from one layer to the next.
#[derive(Clone, Default)]
pub struct Payload {
    pieces: Pieces,
}

#[derive(Clone)]
enum Pieces {
    /// Empty where there is none.
    One(Bytes),
    Many(Box<Many>),
}

impl Default for Pieces {
    fn default() -> Pieces {
        Pieces::One(Bytes::new())
    }
}

#[derive(Clone)]
struct Many {
    pieces: Vec<Bytes>,
    length_bytes: usize,
}

const _: () = assert!(size_of::<Payload>() == size_of::<Bytes>());

impl Payload {
    pub fn new() -> Payload {
        Payload::default()
    }

    pub fn push(&mut self, piece: Bytes) {
        if piece.is_empty() {
            return;
        }
        match &mut self.pieces {
            Pieces::One(none) if none.is_empty() => *none = piece,
            Pieces::One(first) => {
                let length_bytes = first.len() + piece.len();
                let pieces = vec![std::mem::take(first), piece];
                self.pieces = Pieces::Many(Box::new(Many { pieces, length_bytes }));
            }
            Pieces::Many(many) => {
                many.length_bytes += piece.len();
                many.pieces.push(piece);
            }
        }
    }

    pub fn len(&self) -> usize {
        match &self.pieces {
            Pieces::One(piece) => piece.len(),
            Pieces::Many(many) => many.length_bytes,
        }
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub fn pieces(&self) -> &[Bytes] {
        match &self.pieces {
            Pieces::One(none) if none.is_empty() => &[],
            Pieces::One(piece) => std::slice::from_ref(piece),
            Pieces::Many(many) => &many.pieces,
        }
    }

    /// Bytes `range` of this payload, sharing its memory. Panics where the range is outside.
    pub fn slice(&self, range: std::ops::Range<usize>) -> Payload {
        assert!(range.start <= range.end && range.end <= self.len(), "slice {range:?} of {}", self.len());
        let mut out = Payload::new();
        let mut at = 0;
        for piece in self.pieces() {
            let start = range.start.max(at);
            let end = range.end.min(at + piece.len());
            if start < end {
                out.push(piece.slice(start - at..end - at));
            }
            at += piece.len();
        }
        out
    }

    /// Copies the bytes from `offset_bytes` on into `target`, which must not reach past the end.
    pub fn copy_to(&self, offset_bytes: usize, target: &mut [u8]) {
        self.copy_by(offset_bytes, target, |to, from| to.copy_from_slice(from));
    }

    /// The same, past the caches: for a target that is read long after.
    pub fn stream_to(&self, offset_bytes: usize, target: &mut [u8]) {
        self.copy_by(offset_bytes, target, parity::copy_past_caches);
    }

    /// Prefetches short data that this processor is about to read. It does not wait.
    pub fn bring_closer(&self) {
        if self.len() <= BROUGHT_CLOSER_BYTES_MAX {
            self.pieces().iter().for_each(|piece| parity::bring_closer(piece));
        }
    }

    fn copy_by(&self, offset_bytes: usize, target: &mut [u8], copy: impl Fn(&mut [u8], &[u8])) {
        assert!(offset_bytes + target.len() <= self.len(), "copy past the end of a payload");
        let (mut skip, mut filled) = (offset_bytes, 0);
        for piece in self.pieces() {
            if filled == target.len() {
                break;
            }
            if skip >= piece.len() {
                skip -= piece.len();
                continue;
            }
            let take = (piece.len() - skip).min(target.len() - filled);
            copy(&mut target[filled..filled + take], &piece[skip..skip + take]);
            filled += take;
            skip = 0;
        }
    }

    pub fn to_vec(&self) -> Vec<u8> {
        let mut out = vec![0; self.len()];
        self.copy_to(0, &mut out);
        out
    }
}

impl IntoIterator for Payload {
    type Item = Bytes;
    type IntoIter = IntoIter;

    fn into_iter(self) -> IntoIter {
        match self.pieces {
            Pieces::One(piece) => IntoIter::One(piece),
            Pieces::Many(many) => IntoIter::Many(many.pieces.into_iter()),
        }
    }
}

/// The pieces of a payload, one after the other.
pub enum IntoIter {
    /// Empty when it has been given away.
    One(Bytes),
    Many(std::vec::IntoIter<Bytes>),
}

impl Iterator for IntoIter {
    type Item = Bytes;

    fn next(&mut self) -> Option<Bytes> {
        match self {
            IntoIter::One(piece) if piece.is_empty() => None,
            IntoIter::One(piece) => Some(std::mem::take(piece)),
            IntoIter::Many(pieces) => pieces.next(),
        }
    }
}

impl FromIterator<Bytes> for Payload {
    fn from_iter<I: IntoIterator<Item = Bytes>>(pieces: I) -> Payload {
        let mut payload = Payload::new();
        pieces.into_iter().for_each(|piece| payload.push(piece));
        payload
    }
}

impl From<Vec<Bytes>> for Payload {
    fn from(pieces: Vec<Bytes>) -> Payload {
        pieces.into_iter().collect()
    }
}

impl From<Bytes> for Payload {
    fn from(piece: Bytes) -> Payload {
        Payload { pieces: Pieces::One(piece) }
    }
}

impl From<Vec<u8>> for Payload {
    fn from(bytes: Vec<u8>) -> Payload {
        Bytes::from(bytes).into()
    }
}

impl std::fmt::Debug for Payload {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Payload({} bytes in {} pieces)", self.len(), self.pieces().len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_and_copies_cross_pieces() {
        let mut payload = Payload::new();
        for piece in [&b"abc"[..], b"", b"defg", b"h"] {
            payload.push(Bytes::copy_from_slice(piece));
        }
        assert_eq!((payload.len(), payload.pieces().len()), (8, 3));
        assert_eq!(payload.slice(2..8).to_vec(), b"cdefgh");
        assert_eq!(payload.slice(2..2).to_vec(), b"");
        let mut part = [0; 4];
        payload.copy_to(1, &mut part);
        assert_eq!(&part, b"bcde");
    }
}
