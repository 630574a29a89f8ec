//! Copying: the partner gets the pieces that it lacks, while hosts write.
//!
//! What always holds: a piece is not written while it is copied.

use super::Mirror;
use crate::order::{CopyError, CopyId, Order};
use crate::twin::TwinState;

/// Pieces that are copied at a time.
const COPIES_MAX: usize = 8;

impl Mirror {
    /// Whether a piece that was read is to be sent: the connection for which it was read still stands. Otherwise it could overwrite what
    /// was written since.
    pub fn wants(&self, copy: CopyId) -> bool {
        self.copies.contains_key(&copy)
    }

    /// A piece is on the partner's drive, or could not be read or written; in the latter case the twin is out.
    pub fn on_copied(&mut self, copy: CopyId, result: Result<(), CopyError>) {
        let Some((drive, piece)) = self.copies.remove(&copy) else { return };
        let twin = self.twin(drive);
        twin.copying.remove(&piece);
        match result {
            Ok(()) => {
                twin.lacking.remove(piece);
                if twin.lacking.is_empty() && twin.state == TwinState::Filling {
                    twin.state = TwinState::Sound;
                    // the new drive has no record yet
                    self.tell_synchrony();
                    self.end_what_is_done();
                }
            }
            // the partner's copy has there what it had: as little use as the own one, until the pool writes it anew
            Err(CopyError::Own) => {
                twin.lacking.remove(piece);
                self.unreadable += 1;
            }
            Err(CopyError::Far) => self.lose_twins(&[drive]),
        }
        self.go_on();
    }

    pub fn copy(&mut self) {
        self.is_copying = true;
        self.told = None;
        self.go_on();
    }

    /// The partner is gone. What was on its way to it is lacking.
    pub fn stop_copying(&mut self) {
        (self.is_copying, self.knows_partner) = (false, false);
        self.copy_again();
        self.out.push(Order::Reconnect);
        self.go_on();
    }

    /// No piece is on its way any more.
    pub(super) fn copy_again(&mut self) {
        for (drive, piece) in std::mem::take(&mut self.copies).into_values() {
            self.twin(drive).copying.remove(&piece);
        }
    }

    pub(super) fn forget_copies(&mut self, drive: usize) {
        self.copies.retain(|_, (copied, _)| *copied != drive);
        self.twin(drive).copying.clear();
    }

    pub(super) fn begin_copies(&mut self) {
        if !self.is_copying || !self.knows_partner {
            return;
        }
        for (&drive, twin) in self.twins.iter_mut().filter(|(_, twin)| twin.state != TwinState::Out) {
            let mut from = 0;
            while let Some(piece) = twin.lacking.next(from).filter(|_| self.copies.len() < COPIES_MAX) {
                from = piece + 1;
                if twin.copying.contains(&piece) || twin.is_written(piece) {
                    continue;
                }
                twin.copying.insert(piece);
                self.serial += 1;
                let copy = CopyId(self.serial);
                self.copies.insert(copy, (drive, piece));
                let (offset_bytes, length_bytes) = twin.geometry.extent(piece);
                self.out.push(Order::Copy { copy, drive, offset_bytes, length_bytes });
            }
        }
    }
}
