//! Drives become shared ones, when a pool is made on them or gets them. The owner writes their records; the partner must find each of them
//! by its record.
//!
//! What always holds: no drive that holds anything becomes a shared one, unless its owner was told that this is wanted; a drive that the
//! partner does not see has no record afterwards, unless it had one before.

use std::rc::Rc;

use base::AlignedBuffer;
use env::{DriveHandle, IoError};
use mirror::{RECORD_BYTES, TwinId};
use pair::RoleName;
use task::Io;

use super::{ClaimKey, SharedRecord};
use crate::head::RunningHead;
use crate::record::{self, DriveRecord};
use crate::twins::{Talk, TwinsError};

/// Which drives are to become shared ones.
#[derive(Clone, Default, Debug)]
pub struct SharedWish {
    pub drives: Vec<String>,
    /// Those of them whose content may be lost.
    pub force: Vec<String>,
    /// Look whether they can be. Whether the partner sees them is found only when they have records.
    pub dry_run: bool,
}

/// A drive, opened, as long as it becomes a shared one.
struct New {
    path: String,
    handle: DriveHandle,
    id: TwinId,
    had_record: bool,
}

impl RunningHead {
    /// Makes shared drives of drives of this head, which owns the array.
    pub async fn make_shared(self: Rc<Self>, wish: SharedWish) -> Result<(), TwinsError> {
        if self.role() != RoleName::Owner {
            return Err(TwinsError::NotOwner);
        }
        let mut new = Vec::new();
        let mut result = self.prepare(&wish, &mut new).await;
        if result.is_ok() && !wish.dry_run {
            result = self.show_to_partner(&new).await;
        }
        for drive in new {
            if result.is_err() && !drive.had_record && !wish.dry_run {
                // it stays as blank as it was; what cannot be written now is found as a free shared drive the next time
                let _next_time = write(self.io(), drive.handle, &[0; RECORD_BYTES]).await;
            }
            let _gone_already = self.io().drive_close(drive.handle).await;
        }
        result
    }

    /// Looks at the drives, and writes their records.
    async fn prepare(&self, wish: &SharedWish, new: &mut Vec<New>) -> Result<(), TwinsError> {
        for path in &wish.drives {
            let error = |error| TwinsError::Own { path: path.clone(), error };
            let (handle, _) = self.io().drive_open(path, true).await.map_err(error)?;
            // until it is known to have none, nothing is taken away from it
            new.push(New { path: path.clone(), handle, id: TwinId(0), had_record: true });
            let found = record::read(self.io(), handle).await.map_err(error)?;
            if !wish.force.contains(path) {
                let what = self.surroundings().what_it_holds(self.io(), handle, found.is_some()).await;
                what.map_or(Ok(()), |what| Err(TwinsError::Holds { path: path.clone(), what }))?;
            }
            self.check_reservation(path, handle).await?;
            let array = self.identity().array;
            let drive = new.last_mut().expect("just pushed");
            match found {
                Some(DriveRecord::Shared(record)) if record.array == array => drive.id = record.drive,
                _ => {
                    (drive.id, drive.had_record) = (TwinId(self.io().random_u128()), false);
                    let record = SharedRecord { array, drive: drive.id };
                    if !wish.dry_run {
                        make_shared(self.io(), handle, record).await.map_err(error)?;
                    }
                }
            }
        }
        Ok(())
    }

    /// Whether the owner can hold the drive.
    async fn check_reservation(&self, path: &str, handle: DriveHandle) -> Result<(), TwinsError> {
        let path = path.to_owned();
        match self.io().drive_reservation(handle).await {
            Err(IoError::Unsupported) => Err(TwinsError::NoReservations { path }),
            Err(error) => Err(TwinsError::Own { path, error }),
            Ok(found) => {
                let term = self.owned_term().ok_or(TwinsError::NotOwner)?;
                let own = ClaimKey::new(self.identity(), term);
                match found.holder.filter(|holder| own.is_later(holder.key).is_none()) {
                    Some(holder) => Err(TwinsError::Reserved { path, key: holder.key }),
                    None => Ok(()),
                }
            }
        }
    }

    /// The partner finds all of them.
    async fn show_to_partner(self: &Rc<Self>, new: &[New]) -> Result<(), TwinsError> {
        let talk = Talk::begin(self).await.ok_or(TwinsError::Unreachable)?;
        let offered = talk.offered().await;
        talk.wire.close();
        let offered = offered?;
        let sees = |id: TwinId| offered.iter().any(|drive| drive.twin == Some(id.0));
        let unseen: Vec<String> =
            new.iter().filter(|drive| !sees(drive.id)).map(|drive| drive.path.clone()).collect();
        if unseen.is_empty() { Ok(()) } else { Err(TwinsError::NotSeen { paths: unseen, offered }) }
    }
}

/// Makes a drive one that both heads see. It held nothing that matters.
pub async fn make_shared(io: &Io, handle: DriveHandle, record: SharedRecord) -> Result<(), IoError> {
    write(io, handle, &record.encode()).await
}

async fn write(io: &Io, handle: DriveHandle, bytes: &[u8]) -> Result<(), IoError> {
    io.drive_write(handle, 0, vec![AlignedBuffer::copied_from(bytes).into_bytes()], true).await
}
