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
use crate::log::queue::{Blocks, Ticket};
use crate::map::tree::within_leaf;
use crate::reading::read::Read;
use crate::requests::holds::HoldId;

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
        let appended = match data {
            Some(data) => self.append_held(id, data, durable).await.map(Some),
            None => Ok(None),
        };
        // later writers are behind it in the log
        self.let_go(id);
        match appended? {
            Some(ticket) => ticket.wait().await,
            None => Ok(()),
        }
    }

    fn let_go(&self, id: HoldId) {
        self.holds.borrow_mut().remove(id);
        self.committed.notify();
    }

    async fn append_held(
        self: &Rc<Self>,
        id: HoldId,
        data: Payload,
        durable: bool,
    ) -> Result<Rc<Ticket>, LaneError> {
        let (layer, block, blocks) = self.holds.borrow().get(id);
        assert_eq!(data.len(), blocks as usize * BLOCK_BYTES, "all that is held is written");
        let (data, ticket) = (Blocks::from(data), Ticket::new(&self.io));
        let mut at = 0;
        while at < blocks {
            let count = within_leaf(block + at, blocks - at);
            self.log_room().await?;
            let admitted = self.admit(layer, block + at, count, Some(id)).await?;
            self.append_admitted(&admitted, durable, &ticket, |of| data.source((of - block) as usize));
            at += count;
        }
        self.counters.borrow_mut().blocks_written += blocks;
        Ok(ticket)
    }
}
