//! Imports of what was exported, and what the volume of imports holds.

use std::collections::{BTreeMap, BTreeSet};

use api::{BulkOutput, BulkRequest, Command, TransferOrder};
use base::BLOCK_BYTES;
use bytes::Bytes;

use super::{BLOCK, MOVED, Mover, Seen, Stop};
use crate::array::engine_shard::command;

/// The checksum of each block that is not zeros.
pub type Content = BTreeMap<u64, u32>;

impl Mover {
    /// Replaces what the own volume holds. Some give up before the end.
    pub(super) async fn import(&self, image: &[u8]) -> Result<(), Stop> {
        let (volume, length_bytes) = (MOVED.to_owned(), Some(image.len() as u64));
        let moving = self.begin(TransferOrder::Import { volume, length_bytes, overwrite: true }).await?;
        let content = content_of(image);
        let gives_up_at = if self.draw(4) == 0 { self.draw(image.len() as u64) } else { u64::MAX };
        let mut blocks = content.keys().copied().peekable();
        while let Some(first) = blocks.next() {
            let most = 1 + self.draw(256);
            let mut end = first + 1;
            while end - first < most && blocks.next_if_eq(&end).is_some() {
                end += 1;
            }
            if first * BLOCK >= gives_up_at {
                Seen::Abandoned.seen();
                return Err(Stop::Vanished);
            }
            let data = &image[(first * BLOCK) as usize..(end * BLOCK) as usize];
            let credit = match self.ask(&moving, BulkRequest::Credit { length_bytes: data.len() }).await? {
                BulkOutput::Credit(credit) => credit,
                other => return Err(self.fail(format!("credit gave {other:?}"))),
            };
            self.check_bound()?;
            let data = vec![Bytes::copy_from_slice(data)];
            self.ask(&moving, BulkRequest::Write { offset_bytes: first * BLOCK, data, credit }).await?;
        }
        self.records.pending.borrow_mut().push(content.clone());
        let complete =
            Command::TransferComplete { transfer: moving.grant.transfer, volume: MOVED.to_owned() };
        match command(&self.io, &self.outside, complete).await {
            Ok(_) => {
                Seen::Imported.seen();
                self.records.pending.borrow_mut().clear();
                *self.records.content.borrow_mut() = content;
                Ok(())
            }
            Err(error) => {
                self.check_refusal("the end of an import", &error);
                Err(Stop::Refused)
            }
        }
    }

    /// Reads the own volume: it is what was imported last, or may be what was being imported.
    pub(super) async fn check_moved(&self) {
        if !self.records.has_volume.get() {
            return;
        }
        let order = TransferOrder::Export { volume: MOVED.to_owned(), snapshot: None };
        let Ok(moving) = self.begin(order).await else { return };
        let Ok(image) = self.read_all(&moving, None, None).await else { return };
        let found = content_of(&image);
        let mut pending = self.records.pending.borrow_mut();
        let mut content = self.records.content.borrow_mut();
        if found != *content && !pending.contains(&found) {
            let differs = |other: &Content| {
                let both = found.keys().chain(other.keys());
                both.filter(|block| found.get(block) != other.get(block)).collect::<BTreeSet<_>>().len()
            };
            let blocks = differs(&content);
            self.fail(format!("{MOVED} differs from what was imported in {blocks} blocks"));
        }
        if !pending.is_empty() {
            Seen::CutOff.seen();
        }
        pending.clear();
        *content = found;
    }
}

fn content_of(image: &[u8]) -> Content {
    let blocks = image.chunks(BLOCK_BYTES).enumerate();
    let mapped = blocks.filter(|(_, block)| block.iter().any(|&byte| byte != 0));
    mapped.map(|(index, block)| (index as u64, base::crc32c(block))).collect()
}
