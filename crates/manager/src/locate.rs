//! Shows where a drive is: the drive is read for half of every second, so that its activity light blinks.

use std::rc::Rc;

use base::{AlignedBuffer, BLOCK_BYTES, Nanos};
use env::DriveHandle;

use crate::drive_commands::done;
use crate::error::drive_error;
use crate::manager::Manager;
use crate::probed::Probed;
use api::{CommandError, CommandErrorKind, DriveStep, Reply};

/// Maximum number of drives that blink at once.
const LOCATING_MAX: usize = 8;
const SECONDS_MAX: u32 = 3600;
const HALF: Nanos = Nanos::from_millis(500);
/// Blocks of one read.
const READ_BLOCKS: usize = 16;

impl Manager {
    pub(crate) async fn locate_drive(
        self: Rc<Self>,
        path: &str,
        seconds: u32,
    ) -> Result<Reply, CommandError> {
        if !(1..=SECONDS_MAX).contains(&seconds) {
            let message = format!("{seconds} seconds are not possible");
            return Err(CommandError::new(CommandErrorKind::Invalid, message, "give 1 to 3600"));
        }
        if self.locating.get() >= LOCATING_MAX {
            let message = format!("{LOCATING_MAX} drives are blinking already");
            return Err(CommandError::new(CommandErrorKind::InUse, message, "wait for one to end"));
        }
        let io = &self.context.io;
        let opened = self.open_to_look(path).await.map_err(|error| drive_error(path, error))?;
        let Probed { handle, info, .. } = opened;
        self.locating.set(self.locating.get() + 1);
        let manager = self.clone();
        io.spawn(async move {
            manager.blink(handle, info.size_bytes, seconds).await;
            manager.close_drive(handle).await;
            manager.locating.set(manager.locating.get() - 1);
        });
        let step = DriveStep::BlinkDrive { drive: path.to_owned(), seconds };
        Ok(done(vec![step.into()], false, None))
    }

    async fn blink(&self, handle: DriveHandle, size_bytes: u64, seconds: u32) {
        let io = &self.context.io;
        let places = (size_bytes / (READ_BLOCKS * BLOCK_BYTES) as u64).max(1);
        let blocks = READ_BLOCKS.min((size_bytes / BLOCK_BYTES as u64) as usize).max(1);
        for _ in 0..seconds {
            let on_until = io.now() + HALF;
            while io.now() < on_until && !self.stopping.get() {
                let place = io.random_u64() % places * (READ_BLOCKS * BLOCK_BYTES) as u64;
                let (_, result) = io.drive_read(handle, place, AlignedBuffer::zeroed(blocks)).await;
                if result.is_err() {
                    io.sleep(Nanos::from_millis(50)).await;
                }
                // enough for the light, but no load
                io.sleep(Nanos::from_millis(5)).await;
            }
            if self.stopping.get() {
                return;
            }
            io.sleep(HALF).await;
        }
    }
}
