//! The meaning of the kernel's error numbers: one table for drives, one for sockets.

use env::{DriveKind, IoError};

/// The kind of operation on a drive.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Asked {
    Open,
    Read,
    Write,
    Flush,
    Discard,
}

/// The error of an operation on a drive. One table: the block layer's status codes as the kernel translates them
/// (`blk_errors` in block/blk-core.c), what file systems add, and what `open` says.
///
/// ENOSPC of a block device comes from a thin device whose pool is full, and from any device that has become smaller than
/// the place that was written to, as one does that was removed. Who maps it looks at the size first (`drive::is_there`).
pub fn drive_error(kind: DriveKind, asked: Asked, errno: i32) -> IoError {
    let block = kind == DriveKind::BlockDevice;
    match errno {
        libc::ENOENT | libc::ENOTDIR | libc::ELOOP => IoError::NotFound,
        // a write-protected block device: the kernel refuses the write before the device sees it
        libc::EPERM | libc::EACCES if block && asked != Asked::Open => IoError::ReadOnly,
        libc::EACCES | libc::EPERM => IoError::PermissionDenied,
        // another program has opened it exclusively
        libc::EBUSY | libc::ETXTBSY | libc::EWOULDBLOCK if asked == Asked::Open => IoError::Busy,
        // a reservation of another host excludes us
        libc::EBADE => IoError::Reserved,
        libc::EISDIR => IoError::NotADrive,
        libc::ENOSPC | libc::EDQUOT | libc::EFBIG => IoError::NoSpace,
        // EIO: any error; ENODATA: medium; EILSEQ: protection information; EREMOTEIO: the target's own; ERANGE, EBADMSG,
        // EUCLEAN: file systems that found their own data damaged
        libc::EIO
        | libc::ENODATA
        | libc::EILSEQ
        | libc::EREMOTEIO
        | libc::EBADMSG
        | libc::EUCLEAN
        | libc::ERANGE => IoError::Media,
        // ENODEV: offline; ENOLINK: no transport to it; ESTALE: a file of a file server that has forgotten it
        libc::ENODEV
        | libc::ENXIO
        | libc::ENOLINK
        | libc::ENOMEDIUM
        | libc::ESHUTDOWN
        | libc::EHOSTUNREACH
        | libc::ENOTCONN
        | libc::ESTALE => IoError::Gone,
        libc::EROFS => IoError::ReadOnly,
        // ETIMEDOUT: after the kernel's own attempts; ETIME: a duration limit
        libc::ETIMEDOUT | libc::ETIME => IoError::TimedOut,
        // nothing is known to be wrong with the drive: the kernel was short of something for as long as it was asked again
        libc::ENOMEM | libc::EAGAIN | libc::EINTR | libc::EBUSY | libc::ENOBUFS => IoError::TimedOut,
        libc::EMFILE | libc::ENFILE => IoError::TooMany,
        // a read or a write that the device does not know: it cannot be used for what it is
        libc::EOPNOTSUPP if matches!(asked, Asked::Read | Asked::Write) => IoError::Media,
        other => IoError::Other(other),
    }
}

/// The error of an operation on a socket.
pub fn socket_error(errno: i32) -> IoError {
    match errno {
        libc::ECONNRESET
        | libc::ECONNABORTED
        | libc::EPIPE
        | libc::ENOTCONN
        | libc::ESHUTDOWN
        | libc::EBADF
        | libc::ECANCELED => IoError::Closed,
        libc::ECONNREFUSED => IoError::Refused,
        libc::EADDRINUSE => IoError::AddressInUse,
        libc::EADDRNOTAVAIL => IoError::AddressNotAvailable,
        libc::EACCES | libc::EPERM => IoError::PermissionDenied,
        libc::ETIMEDOUT => IoError::TimedOut,
        libc::EMFILE | libc::ENFILE | libc::ENOBUFS | libc::ENOMEM => IoError::TooMany,
        other => IoError::Other(other),
    }
}

/// Whether to ask again: the kernel was interrupted or short of something for a moment.
pub fn is_transient(errno: i32) -> bool {
    matches!(errno, libc::EINTR | libc::EAGAIN)
}

/// The same for a drive, where the block layer may be short of memory (BLK_STS_RESOURCE) or of something in the device
/// (BLK_STS_DEV_RESOURCE).
pub fn is_transient_of_drive(errno: i32) -> bool {
    is_transient(errno) || matches!(errno, libc::ENOMEM | libc::EBUSY)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_that_lead_to_different_repairs_are_told_apart() {
        use Asked::{Flush, Open, Read, Write};
        use DriveKind::{BlockDevice, File};
        // (errno, what a block device means by it at a write, what a file means by it)
        let rows = [
            (libc::ENOSPC, IoError::NoSpace, IoError::NoSpace),
            (libc::EDQUOT, IoError::NoSpace, IoError::NoSpace),
            (libc::ENODEV, IoError::Gone, IoError::Gone),
            (libc::ENXIO, IoError::Gone, IoError::Gone),
            (libc::ENOLINK, IoError::Gone, IoError::Gone),
            (libc::ENOMEDIUM, IoError::Gone, IoError::Gone),
            (libc::ESTALE, IoError::Gone, IoError::Gone),
            (libc::EIO, IoError::Media, IoError::Media),
            (libc::EREMOTEIO, IoError::Media, IoError::Media),
            (libc::EILSEQ, IoError::Media, IoError::Media),
            (libc::ENODATA, IoError::Media, IoError::Media),
            (libc::EUCLEAN, IoError::Media, IoError::Media),
            (libc::EBADE, IoError::Reserved, IoError::Reserved),
            (libc::ETIMEDOUT, IoError::TimedOut, IoError::TimedOut),
            (libc::ETIME, IoError::TimedOut, IoError::TimedOut),
            (libc::EAGAIN, IoError::TimedOut, IoError::TimedOut),
            (libc::ENOMEM, IoError::TimedOut, IoError::TimedOut),
            (libc::EBUSY, IoError::TimedOut, IoError::TimedOut),
            (libc::EROFS, IoError::ReadOnly, IoError::ReadOnly),
            (libc::EPERM, IoError::ReadOnly, IoError::PermissionDenied),
            (libc::EACCES, IoError::ReadOnly, IoError::PermissionDenied),
            (libc::EOPNOTSUPP, IoError::Media, IoError::Media),
            (libc::EINVAL, IoError::Other(libc::EINVAL), IoError::Other(libc::EINVAL)),
        ];
        for (errno, of_device, of_file) in rows {
            assert_eq!(drive_error(BlockDevice, Write, errno), of_device, "{errno}");
            assert_eq!(drive_error(File, Write, errno), of_file, "{errno}");
        }
        let rest = [
            (BlockDevice, Open, libc::EBUSY, IoError::Busy),
            (BlockDevice, Open, libc::EACCES, IoError::PermissionDenied),
            (BlockDevice, Open, libc::ENXIO, IoError::Gone),
            (File, Open, libc::ENOENT, IoError::NotFound),
            (File, Open, libc::EMFILE, IoError::TooMany),
            (BlockDevice, Read, libc::EOPNOTSUPP, IoError::Media),
            (BlockDevice, Read, libc::EIO, IoError::Media),
            (BlockDevice, Flush, libc::EIO, IoError::Media),
            (BlockDevice, Flush, libc::EOPNOTSUPP, IoError::Other(libc::EOPNOTSUPP)),
        ];
        for (kind, asked, errno, expected) in rest {
            assert_eq!(drive_error(kind, asked, errno), expected, "{kind:?} {asked:?} {errno}");
        }
        let socket = [
            (libc::ECONNRESET, IoError::Closed),
            (libc::EPIPE, IoError::Closed),
            (libc::ECONNREFUSED, IoError::Refused),
            (libc::EADDRINUSE, IoError::AddressInUse),
            (libc::EADDRNOTAVAIL, IoError::AddressNotAvailable),
            (libc::EMFILE, IoError::TooMany),
            (libc::EIO, IoError::Other(libc::EIO)),
        ];
        for (errno, expected) in socket {
            assert_eq!(socket_error(errno), expected);
        }
    }
}
