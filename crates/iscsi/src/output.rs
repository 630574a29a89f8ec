//! From PDUs to bytes to send, for both ends: headers are gathered, payload is borrowed.
//!
//! Headers and small data of consecutive PDUs share one piece. Larger data is passed on without a copy. All pieces
//! together are one send.

use base::Crc32c;
use bytes::{BufMut, Bytes, BytesMut};
use wire::iscsi::{Header, Lengths, padding};

/// Data up to this length is copied beside its header: cheaper than a piece of its own.
const COPY_BYTES_MAX: usize = 256;
const HEADER_ARENA_BYTES: usize = 8 << 10;

/// Output that has not been taken yet.
pub(crate) struct Output {
    pub header_digest: bool,
    pub data_digest: bool,
    pieces: Vec<Bytes>,
    /// Headers that follow `pieces`.
    arena: BytesMut,
    queued_bytes: usize,
}

impl Output {
    pub fn new() -> Output {
        Output {
            header_digest: false,
            data_digest: false,
            pieces: Vec::new(),
            arena: BytesMut::new(),
            queued_bytes: 0,
        }
    }

    /// Queues a PDU without data, or with a little.
    pub fn push_small(&mut self, header: &Header, data: &[u8]) {
        self.put_header(header, &[]);
        debug_assert_eq!(Lengths::of(header).data, data.len());
        self.put_copied(data);
        let crc = self.data_digest.then(|| {
            let mut crc = Crc32c::new();
            crc.update(data);
            crc
        });
        self.put_trailer(data.len(), crc);
    }

    /// Queues a PDU whose data is these pieces, in order.
    pub fn push(&mut self, header: &Header, data: impl IntoIterator<Item = Bytes>) {
        self.push_with_additional(header, &[], data);
    }

    /// Queues a PDU with additional headers (a multiple of four bytes).
    pub fn push_with_additional(
        &mut self,
        header: &Header,
        additional: &[u8],
        data: impl IntoIterator<Item = Bytes>,
    ) {
        self.put_header(header, additional);
        let (mut length, mut crc) = (0, self.data_digest.then(Crc32c::new));
        for piece in data {
            length += piece.len();
            if let Some(crc) = &mut crc {
                crc.update(&piece);
            }
            if piece.len() <= COPY_BYTES_MAX {
                self.put_copied(&piece);
            } else {
                self.seal();
                self.queued_bytes += piece.len();
                self.pieces.push(piece);
            }
        }
        debug_assert_eq!(Lengths::of(header).data, length);
        self.put_trailer(length, crc);
    }

    /// Everything queued, in order.
    pub fn take(&mut self) -> Vec<Bytes> {
        self.seal();
        self.queued_bytes = 0;
        std::mem::take(&mut self.pieces)
    }

    pub fn is_empty(&self) -> bool {
        self.queued_bytes == 0
    }

    pub fn queued_bytes(&self) -> usize {
        self.queued_bytes
    }

    fn put_header(&mut self, header: &Header, additional: &[u8]) {
        if self.arena.capacity() - self.arena.len() < 2 * header.len() {
            self.arena.reserve(HEADER_ARENA_BYTES);
        }
        self.put_copied(header);
        self.put_copied(additional);
        if self.header_digest {
            let mut crc = Crc32c::new();
            crc.update(header);
            crc.update(additional);
            self.put_copied(&crc.finish().to_le_bytes());
        }
    }

    /// Padding, and the digest over data and padding (RFC 7143 §11.2.3). `crc`: of the data.
    fn put_trailer(&mut self, length: usize, crc: Option<Crc32c>) {
        let pad = &[0; 3][..padding(length)];
        self.put_copied(pad);
        if let Some(mut crc) = crc.filter(|_| length > 0) {
            crc.update(pad);
            self.put_copied(&crc.finish().to_le_bytes());
        }
    }

    fn put_copied(&mut self, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        self.arena.put_slice(bytes);
        self.queued_bytes += bytes.len();
    }

    fn seal(&mut self) {
        if !self.arena.is_empty() {
            self.pieces.push(self.arena.split().freeze());
        }
    }
}
