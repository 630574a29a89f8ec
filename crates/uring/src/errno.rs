//! What the kernel's error numbers mean to us: one table for drives, one for sockets.

use env::IoError;

/// The error of an operation on a drive: the block layer's status codes as the kernel translates them
/// (`blk_status_to_errno`), and those of file systems and of `open`.
pub fn drive_error(errno: i32) -> IoError {
    match errno {
        libc::ENOENT | libc::ENOTDIR => IoError::NotFound,
        libc::EACCES | libc::EPERM => IoError::PermissionDenied,
        libc::EBUSY | libc::ETXTBSY | libc::EWOULDBLOCK => IoError::Busy,
        libc::EISDIR => IoError::NotADrive,
        libc::ENOSPC | libc::EDQUOT => IoError::NoSpace,
        libc::EIO | libc::ENODATA | libc::EILSEQ | libc::EREMOTEIO | libc::EBADMSG | libc::EUCLEAN => {
            IoError::Media
        }
        libc::ENODEV | libc::ENXIO | libc::ENOLINK | libc::ENOMEDIUM | libc::ESHUTDOWN | libc::ESTALE => {
            IoError::Gone
        }
        libc::EROFS => IoError::ReadOnly,
        libc::ETIMEDOUT => IoError::TimedOut,
        libc::EMFILE | libc::ENFILE => IoError::TooMany,
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_that_lead_to_different_repairs_are_told_apart() {
        let drive = [
            (libc::EIO, IoError::Media),
            (libc::ENODATA, IoError::Media),
            (libc::ENODEV, IoError::Gone),
            (libc::ENXIO, IoError::Gone),
            (libc::ENOSPC, IoError::NoSpace),
            (libc::EROFS, IoError::ReadOnly),
            (libc::EINVAL, IoError::Other(libc::EINVAL)),
        ];
        for (errno, expected) in drive {
            assert_eq!(drive_error(errno), expected);
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
