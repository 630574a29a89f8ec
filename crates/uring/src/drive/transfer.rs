//! How a read or write continues after the kernel has done a part of it, or has failed.

use crate::errno::is_transient_of_drive;
use base::BLOCK_BYTES;

/// What follows from one completion.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Next {
    /// All bytes are transferred.
    Done,
    /// Ask for the rest, from this byte on; where that is no progress, a bounded number of times.
    Continue(usize),
    /// With an error number; none: the drive ends before this place.
    Failed(Option<i32>),
}

/// `done` of `length` bytes were transferred before; `result` is the completion's: bytes, or a negated error number.
///
/// Direct I/O goes on at whole blocks only, so a part of a block counts as none. Nothing at all means that the file
/// ends here: the drive cannot read or write this place.
pub fn next(done: usize, length: usize, result: i32) -> Next {
    if result < 0 {
        return match is_transient_of_drive(-result) {
            true => Next::Continue(done),
            false => Next::Failed(Some(-result)),
        };
    }
    let reached = done + result as usize;
    assert!(reached <= length, "the kernel transferred more than it was asked to");
    if reached == length {
        return Next::Done;
    }
    match result {
        0 => Next::Failed(None),
        _ => Next::Continue(reached - reached % BLOCK_BYTES),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_result_leads_somewhere() {
        let block = BLOCK_BYTES;
        let rows = [
            (0, block, block as i32, Next::Done),
            (block, 3 * block, 2 * block as i32, Next::Done),
            (0, 3 * block, block as i32, Next::Continue(block)),
            (block, 4 * block, block as i32 + 512, Next::Continue(2 * block)),
            (block, 4 * block, 512, Next::Continue(block)),
            (0, block, 0, Next::Failed(None)),
            (block, 2 * block, 0, Next::Failed(None)),
            (0, block, -libc::EINTR, Next::Continue(0)),
            (block, 2 * block, -libc::EAGAIN, Next::Continue(block)),
            (0, block, -libc::ENOMEM, Next::Continue(0)),
            (0, block, -libc::EIO, Next::Failed(Some(libc::EIO))),
            (block, 2 * block, -libc::ENOSPC, Next::Failed(Some(libc::ENOSPC))),
            (0, block, -libc::ENODEV, Next::Failed(Some(libc::ENODEV))),
        ];
        for (done, length, result, expected) in rows {
            assert_eq!(next(done, length, result), expected, "{done} {length} {result}");
        }
    }
}
