//! A head that is alone, and drives that have records of their twins.
//!
//! What always holds: such a head writes to no drive that has a record. If it did, the drive and its twin would differ, and pass for equal
//! when they met. A head that was one of a pair erases the records first; any other one leaves the drives alone.

use env::{DriveHandle, IoError};

use crate::manager::Manager;
use crate::probed::Probed;
use api::DriveContent;

/// Why a drive must not be used.
pub(crate) enum TwinRefusal {
    /// An array of two heads uses it, and this head is not one of them.
    OfTwoHeads,
    Drive(IoError),
}

impl Manager {
    /// To be called before a drive of a pool is used.
    pub(crate) async fn forget_twin(&self, drive: DriveHandle) -> Result<(), TwinRefusal> {
        let io = &self.context.io;
        if self.parameters.was_paired {
            pool::erase_twin_record(io, drive).await.map_err(TwinRefusal::Drive)?;
        } else if self.parameters.pair.is_none()
            && pool::has_twin_record(io, drive).await.map_err(TwinRefusal::Drive)?
        {
            return Err(TwinRefusal::OfTwoHeads);
        }
        Ok(())
    }

    /// At the start: drives that hold nothing but such a record are free.
    pub(crate) async fn free_former_twins(&self) {
        if !self.parameters.was_paired {
            return;
        }
        let foreign: Vec<String> = {
            let state = self.state.borrow();
            let foreign = state.drives.iter().filter(|drive| drive.content == DriveContent::Foreign);
            foreign.map(|drive| drive.path.clone()).collect()
        };
        let mut is_changed = false;
        for path in foreign {
            let Ok(Probed { handle, .. }) = self.open_and_probe(&path).await else { continue };
            // one that cannot be erased stays refused as what it is
            is_changed |= pool::erase_lone_twin_record(&self.context.io, handle).await.unwrap_or(false);
            self.close_drive(handle).await;
        }
        if is_changed {
            self.look_at_drives().await;
        }
    }
}
