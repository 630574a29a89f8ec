//! How a drive that fails is lost: it is still there and has failed, or it is not there any more.
//!
//! Linux answers operations on a pulled SAS drive with I/O errors at first. Only then does the size of the device become
//! 0. So the error alone does not say that a drive has failed. A drive that is missing may come back and be used; a drive
//! that has failed stays out until it is replaced.

use base::Nanos;
use env::{DriveHandle, IoError};
use task::{Io, race};

use crate::decision::Decision;
use crate::format::label::DriveState;

/// Why a drive is to be taken out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Departure {
    /// An operation ended with this error and was not done: the drive goes whatever the pool has left.
    Failed(IoError),
    /// It has reached an error threshold, and each error was tolerated: it goes only if the pool can do without it at
    /// the moment when this is recorded.
    TooManyErrors,
}

/// How often a drive is measured before it counts as failed.
const MEASURED_TIMES: usize = 5;
/// The time between two measurements, and the time that one may take.
const MEASURE_EVERY: Nanos = Nanos::from_millis(200);

/// The state of a drive that is taken out. It held data up to `end_bytes`. This takes up to two seconds if the drive is
/// still there.
pub(crate) async fn lost_as(
    io: &Io,
    drive: Option<DriveHandle>,
    end_bytes: u64,
    departure: Departure,
) -> DriveState {
    if departure == Departure::Failed(IoError::Gone) {
        return DriveState::Missing;
    }
    let Some(drive) = drive else { return DriveState::Failed };
    for measurement in 0..MEASURED_TIMES {
        if measurement > 0 {
            io.sleep(MEASURE_EVERY).await;
        }
        let measured = race(io.drive_measure(drive), io.sleep(MEASURE_EVERY)).await;
        let is_gone = match measured {
            Ok(Ok(size_bytes)) => size_bytes < end_bytes,
            Ok(Err(error)) => error == IoError::Gone,
            // it does not answer now
            Err(()) => false,
        };
        if is_gone {
            Decision::GoneAfterErrors.taken();
            return DriveState::Missing;
        }
    }
    DriveState::Failed
}
