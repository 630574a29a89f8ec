//! Holds blocks, so that a compare-and-write over several lanes is one step for everybody else.
//!
//! ```text
//!   volume   lane 0              lane 2                 lanes in ascending order, so there is no deadlock
//!   hold ──► held, content
//!   hold ────────────────────►   held, content
//!   compare
//!   release ► written, let go ─► written, let go        or only let go, if the compare failed
//! ```
//!
//! What always holds: between a hold and its release, only the release changes these blocks. Earlier writes to them
//! have been committed. There are as many holds as compare-and-writes in flight, and the transports limit these.

use std::rc::Rc;

use base::{BLOCK_BYTES, LayerId};
use block::Payload;

use crate::error::LaneError;
use crate::lane::Lane;
use crate::log::queue::Ticket;
use crate::reading::read::Read;
use crate::requests::hold_table::HoldId;

impl Lane {
    /// Waits until nobody holds one of the blocks. Entries appended in the same step conflict with no hold.
    pub(crate) async fn wait_until_free(
        &self,
        layer: LayerId,
        block: u64,
        blocks: u64,
    ) -> Result<(), LaneError> {
        while self.holds.borrow().keep_out(layer, block, blocks, None) {
            self.check_running()?;
            self.committed.wait().await;
        }
        Ok(())
    }

    /// Holds blocks, and returns their content.
    pub(crate) async fn hold(
        self: &Rc<Self>,
        layer: LayerId,
        block: u64,
        blocks: u64,
    ) -> Result<(HoldId, Read), LaneError> {
        self.check_writable(layer, block + blocks - 1)?;
        loop {
            self.wait_until_free(layer, block, blocks).await?;
            self.wait_until_settled(layer, block, blocks).await?;
            if !self.holds.borrow().keep_out(layer, block, blocks, None) {
                break;
            }
        }
        let id = self.holds.borrow_mut().add(layer, block, blocks);
        match self.read_blocks(layer, block, blocks).await {
            Ok(read) => Ok((id, read)),
            Err(error) => {
                self.let_go(id);
                Err(error)
            }
        }
    }

    /// Writes `data`, if there is any, over the held blocks, and releases them.
    pub(crate) async fn release(
        self: &Rc<Self>,
        id: HoldId,
        data: Option<Payload>,
        durable: bool,
    ) -> Result<(), LaneError> {
        let ticket = Ticket::new(&self.io);
        let appended = match data {
            Some(data) => {
                let held = self.holds.borrow().get(id);
                assert_eq!(data.len(), held.2 as usize * BLOCK_BYTES, "all that is held is written");
                self.append_blocks(held, &data.into(), Some(id), durable, &ticket).await
            }
            None => Ok(()),
        };
        // later writers are behind it in the log
        self.let_go(id);
        ticket.end(appended).await
    }

    fn let_go(&self, id: HoldId) {
        self.holds.borrow_mut().remove(id);
        self.committed.notify();
    }
}
