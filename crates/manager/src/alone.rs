//! A head that is alone and was one of a pair: its drives may still have records of their twins.
//!
//! What always holds: such a head writes to no drive that has a record. If it did, the drive and its former twin would differ, and pass
//! for equal if they met again.

use env::{DriveHandle, IoError};

use crate::manager::Manager;
use crate::probed::Probed;
use api::DriveContent;

impl Manager {
    /// To be called before a drive of a pool is used.
    pub(crate) async fn forget_twin(&self, drive: DriveHandle) -> Result<(), IoError> {
        match self.parameters.was_paired {
            true => pool::erase_twin_record(&self.context.io, drive).await.map(|_| ()),
            false => Ok(()),
        }
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
