//! Drives in memory: files of tmpfs and ramfs. Their operations need no waiting, so plain system calls execute them at
//! once. The ring would pass each to a worker thread, because these file systems do not support asynchronous
//! I/O. (If the system has swapped pages out, the calls wait. A machine that swaps is slow anyway.)

use std::io::IoSlice;

use bytes::Bytes;
use env::{DriveKind, IoError};
use rustix::fs::FallocateFlags;
use rustix::io::Errno;

use super::DriveUse;
use super::transfer::{Next, next};
use crate::errno::{Asked, drive_error};

/// Pieces written by one system call.
const PIECES_MAX: usize = 32;
/// Times in a row that a system call may come back with nothing done.
const RETRIES_MAX: u32 = 100;

/// Whether a file system keeps its files in memory, by its magic number (statfs(2)).
pub fn is_in_memory(file_system: u64) -> bool {
    const TMPFS: u64 = 0x0102_1994;
    const RAMFS: u64 = 0x8584_58F6;
    matches!(file_system, TMPFS | RAMFS)
}

pub fn read(drive: &DriveUse, offset_bytes: u64, buffer: &mut [u8]) -> Result<(), IoError> {
    transfer(buffer.len(), |done| {
        rustix::io::pread(drive.borrow(), &mut buffer[done..], offset_bytes + done as u64)
    })
}

pub fn write(drive: &DriveUse, offset_bytes: u64, data: &[Bytes], length: usize) -> Result<(), IoError> {
    transfer(length, |done| {
        let mut pieces = [IoSlice::new(&[]); PIECES_MAX];
        let (mut count, mut skip) = (0, done);
        for piece in data {
            if skip >= piece.len() {
                skip -= piece.len();
                continue;
            }
            if count == PIECES_MAX {
                break;
            }
            pieces[count] = IoSlice::new(&piece[std::mem::take(&mut skip)..]);
            count += 1;
        }
        rustix::io::pwritev(drive.borrow(), &pieces[..count], offset_bytes + done as u64)
    })
}

/// A result in the manner of a completion.
pub fn discard(drive: &DriveUse, offset_bytes: u64, length_bytes: u64) -> i32 {
    let mode = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
    rustix::fs::fallocate(drive.borrow(), mode, offset_bytes, length_bytes)
        .map_or_else(|e| -e.raw_os_error(), |()| 0)
}

/// These drives are files.
fn failure(errno: Option<i32>) -> IoError {
    errno.map_or(IoError::Media, |errno| drive_error(DriveKind::File, Asked::Write, errno))
}

/// Calls `step` with the bytes done so far until all `length` are.
fn transfer(length: usize, mut step: impl FnMut(usize) -> Result<usize, Errno>) -> Result<(), IoError> {
    let (mut done, mut retries) = (0, 0);
    while done < length {
        let result = step(done).map_or_else(|error| -error.raw_os_error(), |bytes| bytes as i32);
        match next(done, length, result) {
            Next::Done => return Ok(()),
            Next::Failed(errno) => return Err(failure(errno)),
            Next::Continue(reached) if reached > done => (done, retries) = (reached, 0),
            Next::Continue(_) if retries < RETRIES_MAX => retries += 1,
            Next::Continue(_) => return Err(IoError::Media),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transfers_go_on_where_they_stopped() {
        let mut steps = [Ok(4096), Err(Errno::INTR), Ok(100), Ok(4096)].into_iter();
        let mut asked = Vec::new();
        let result = transfer(8192, |done| {
            asked.push(done);
            steps.next().expect("no more than needed")
        });
        assert_eq!((result, asked), (Ok(()), vec![0, 4096, 4096, 4096]));
        assert_eq!(transfer(8192, |_| Ok(0)), Err(IoError::Media));
        assert_eq!(transfer(8192, |_| Ok(100)), Err(IoError::Media));
        assert_eq!(transfer(8192, |_| Err(Errno::NOSPC)), Err(IoError::NoSpace));
    }
}
