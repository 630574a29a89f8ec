//! Operations in flight. A slot owns everything that the kernel reads or writes for its operation. Its addresses
//! do not change from before the submission until the completion has been taken.

use base::AlignedBuffer;
use bytes::{Bytes, BytesMut};
use env::{ConnectionHandle, ListenerHandle, Token};
use io_uring::types::{Fd, FsyncFlags};
use io_uring::{opcode, squeue};
use rustix::net::SocketAddrAny;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

use crate::drive::DriveUse;

/// Pieces handed to the kernel at once (`IOV_MAX`).
const PIECES_MAX: usize = 1024;
/// Bytes of one contiguous read or write at once; the kernel itself stops at 2 GiB - 4 KiB.
const TRANSFER_BYTES_MAX: usize = 1 << 30;
/// Times that the kernel may say "try again" about one operation.
const RETRIES_MAX: u8 = 100;
/// `IORING_RECVSEND_POLL_FIRST`: wait for data before the first attempt.
const POLL_FIRST: u16 = 1;

/// An operation with what it needs, and how far it has come.
pub enum Work {
    Read {
        drive: DriveUse,
        offset_bytes: u64,
        buffer: AlignedBuffer,
        /// Less than the buffer's where the drive ends inside its last block.
        length: usize,
        done: usize,
    },
    Write {
        drive: DriveUse,
        offset_bytes: u64,
        data: Vec<Bytes>,
        length: usize,
        done: usize,
        durable: bool,
    },
    Flush {
        drive: DriveUse,
    },
    /// Of a file: a hole is punched.
    Discard {
        drive: DriveUse,
        offset_bytes: u64,
        length_bytes: u64,
    },
    /// A helper thread does it: the kernel knows nothing of this slot.
    ByHelper,
    Accept {
        listener: ListenerHandle,
        socket: RawFd,
    },
    Connect {
        socket: OwnedFd,
        address: SocketAddrAny,
    },
    Receive {
        connection: ConnectionHandle,
        socket: RawFd,
        buffer: BytesMut,
        poll_first: bool,
    },
    Send {
        connection: ConnectionHandle,
        socket: RawFd,
        data: Vec<Bytes>,
        length: usize,
        done: usize,
    },
}

pub struct Slot {
    token: Token,
    work: Option<Work>,
    retries: u8,
    pieces: Vec<libc::iovec>,
    header: libc::msghdr,
}

impl Slot {
    fn new() -> Slot {
        // SAFETY: all zeros is a valid msghdr: null pointers and lengths of zero.
        let header = unsafe { std::mem::zeroed() };
        Slot { token: Token(0), work: None, retries: 0, pieces: Vec::new(), header }
    }

    /// The submission of what is left to do. Points into the slot, and into buffers that the slot owns.
    fn entry(&mut self) -> squeue::Entry {
        match self.work.as_mut().expect("a slot in flight has work") {
            Work::Read { drive, offset_bytes, buffer, length, done } => {
                let rest = &mut buffer[*done..*length];
                let length = rest.len().min(TRANSFER_BYTES_MAX) as u32;
                opcode::Read::new(Fd(drive.descriptor()), rest.as_mut_ptr(), length)
                    .offset(*offset_bytes + *done as u64)
                    .build()
            }
            Work::Write { drive, offset_bytes, data, done, durable, .. } => {
                fill_pieces(&mut self.pieces, data, *done);
                let (fd, offset) = (Fd(drive.descriptor()), *offset_bytes + *done as u64);
                let flags = if *durable { libc::RWF_DSYNC } else { 0 };
                match &self.pieces[..] {
                    [piece] => {
                        let length = piece.iov_len.min(TRANSFER_BYTES_MAX) as u32;
                        let write = opcode::Write::new(fd, piece.iov_base.cast(), length);
                        write.offset(offset).rw_flags(flags).build()
                    }
                    pieces => {
                        let write = opcode::Writev::new(fd, pieces.as_ptr(), pieces.len() as u32);
                        write.offset(offset).rw_flags(flags).build()
                    }
                }
            }
            Work::Flush { drive } => {
                opcode::Fsync::new(Fd(drive.descriptor())).flags(FsyncFlags::DATASYNC).build()
            }
            Work::Discard { drive, offset_bytes, length_bytes } => {
                let mode = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
                let fallocate = opcode::Fallocate::new(Fd(drive.descriptor()), *length_bytes);
                fallocate.offset(*offset_bytes).mode(mode).build()
            }
            Work::ByHelper => unreachable!("the helper's work is not submitted to the ring"),
            Work::Accept { socket, .. } => {
                let nowhere = std::ptr::null_mut();
                let accept = opcode::Accept::new(Fd(*socket), nowhere, nowhere.cast());
                accept.flags(libc::SOCK_CLOEXEC).build()
            }
            Work::Connect { socket, address } => {
                opcode::Connect::new(Fd(socket.as_raw_fd()), address.as_ptr().cast(), address.addr_len())
                    .build()
            }
            Work::Receive { socket, buffer, poll_first, .. } => {
                let space = buffer.spare_capacity_mut();
                let length = space.len().min(TRANSFER_BYTES_MAX) as u32;
                let receive = opcode::Recv::new(Fd(*socket), space.as_mut_ptr().cast(), length);
                receive.ioprio(if *poll_first { POLL_FIRST } else { 0 }).build()
            }
            Work::Send { socket, data, done, .. } => {
                fill_pieces(&mut self.pieces, data, *done);
                let flags = libc::MSG_NOSIGNAL | libc::MSG_WAITALL;
                match &mut self.pieces[..] {
                    [piece] => {
                        let length = piece.iov_len.min(TRANSFER_BYTES_MAX) as u32;
                        opcode::Send::new(Fd(*socket), piece.iov_base.cast(), length).flags(flags).build()
                    }
                    pieces => {
                        self.header.msg_iov = pieces.as_mut_ptr();
                        self.header.msg_iovlen = pieces.len() as _;
                        opcode::SendMsg::new(Fd(*socket), &self.header).flags(flags as u32).build()
                    }
                }
            }
        }
    }
}

/// The pieces from byte `skip` on, as many as go at once.
fn fill_pieces(pieces: &mut Vec<libc::iovec>, data: &[Bytes], mut skip: usize) {
    pieces.clear();
    for piece in data {
        if skip >= piece.len() {
            skip -= piece.len();
            continue;
        }
        let rest = &piece[skip..];
        skip = 0;
        pieces.push(libc::iovec { iov_base: rest.as_ptr().cast_mut().cast(), iov_len: rest.len() });
        if pieces.len() == PIECES_MAX {
            return;
        }
    }
}

/// All slots of a shard. As many as operations were ever in flight at once, which those who submit them bound.
#[derive(Default)]
pub struct Slots {
    #[expect(clippy::vec_box, reason = "the kernel points into a slot, which must stay where it is")]
    slots: Vec<Box<Slot>>,
    free: Vec<u32>,
}

impl Slots {
    pub fn in_flight(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    pub fn begin(&mut self, token: Token, work: Work) -> u32 {
        let index = self.free.pop().unwrap_or_else(|| {
            self.slots.push(Box::new(Slot::new()));
            u32::try_from(self.slots.len() - 1).expect("memory ends before")
        });
        let slot = &mut self.slots[index as usize];
        assert!(slot.work.is_none(), "slot {index} is in flight");
        (slot.token, slot.work, slot.retries) = (token, Some(work), 0);
        index
    }

    /// The submission for a slot in flight, named by its index.
    pub fn entry(&mut self, index: u32) -> squeue::Entry {
        self.slots[index as usize].entry().user_data(u64::from(index))
    }

    /// Takes the work out of a slot whose completion has arrived: to be put back or finished.
    pub fn take(&mut self, index: u32) -> Work {
        self.slots[index as usize].work.take().expect("a completion is of an operation in flight")
    }

    pub fn put_back(&mut self, index: u32, work: Work) {
        self.slots[index as usize].work = Some(work);
    }

    /// Whether the kernel may be asked once more for something that it has not done.
    pub fn may_retry(&mut self, index: u32) -> bool {
        let slot = &mut self.slots[index as usize];
        slot.retries += 1;
        slot.retries <= RETRIES_MAX
    }

    pub fn finish(&mut self, index: u32) -> Token {
        let slot = &mut self.slots[index as usize];
        assert!(slot.work.is_none(), "finished with its work in the slot");
        slot.pieces.clear();
        self.free.push(index);
        slot.token
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_begin_anywhere_and_end_at_the_bound() {
        let data: Vec<Bytes> = (0..3000u32).map(|i| Bytes::from(vec![i as u8; (i % 3) as usize])).collect();
        let whole: Vec<u8> = data.iter().flatten().copied().collect();
        let mut pieces = Vec::new();
        for skip in [0, 1, 2, 3, 1500, whole.len() - 1] {
            fill_pieces(&mut pieces, &data, skip);
            let mut at = skip;
            for piece in &pieces {
                assert!(piece.iov_len > 0);
                // SAFETY: the piece points into `data`, which is alive.
                let bytes = unsafe { std::slice::from_raw_parts(piece.iov_base.cast::<u8>(), piece.iov_len) };
                assert_eq!(bytes, &whole[at..at + piece.iov_len]);
                at += piece.iov_len;
            }
            assert!(pieces.len() == PIECES_MAX || at == whole.len(), "ended early");
        }
    }

    #[test]
    fn slots_are_reused() {
        let mut slots = Slots::default();
        let first = slots.begin(Token(1), Work::ByHelper);
        let second = slots.begin(Token(2), Work::ByHelper);
        assert_eq!(slots.in_flight(), 2);
        drop(slots.take(first));
        assert_eq!(slots.finish(first), Token(1));
        assert_eq!(slots.begin(Token(3), Work::ByHelper), first);
        drop(slots.take(second));
        assert_eq!(slots.finish(second), Token(2));
        assert_eq!(slots.in_flight(), 1);
    }
}
