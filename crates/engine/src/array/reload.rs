//! The head's file has changed while the array runs: other portals, other drives to look at. Sessions on portals
//! that stay are not disturbed; those on portals that go end when their hosts leave.

use std::net::SocketAddr;

use bytes::Bytes;

use super::{Array, Portal};
use crate::command::{Change, CommandError, Reply};
use crate::message::{Answer, Call};

impl Array {
    /// Takes over what the head's file says now, and opens pools whose drives have come with it.
    pub(super) async fn reload(
        &self,
        portals: Vec<SocketAddr>,
        drives: Vec<String>,
    ) -> Result<Reply, CommandError> {
        let mut lines = self.change_portals(portals).await;
        self.parameters.drives.replace(drives);
        lines.extend(self.open_found_pools().await?);
        self.broadcast().await;
        Ok(Reply::Changed(Change { dry_run: false, lines, hosts_affected: Vec::new(), made: None }))
    }

    async fn change_portals(&self, wanted: Vec<SocketAddr>) -> Vec<String> {
        let before = std::mem::take(&mut self.state.borrow_mut().portals);
        let (stay, go): (Vec<Portal>, Vec<Portal>) =
            before.into_iter().partition(|portal| wanted.contains(&portal.address) && portal.result.is_ok());
        let gone: Vec<SocketAddr> = go.iter().filter_map(|portal| portal.result.ok()).collect();
        self.context.ask_all(|| Call::Unlisten(gone.clone())).await;
        let new: Vec<SocketAddr> = wanted
            .into_iter()
            .filter(|address| stay.iter().all(|portal| portal.address != *address))
            .collect();
        self.state.borrow_mut().portals = stay;
        self.listen(new.clone()).await;
        let closed = gone.iter().map(|address| format!("no longer listen on {address}"));
        let opened = new.iter().map(|address| format!("listen on {address}"));
        closed.chain(opened).collect()
    }

    /// Opens those pools of this array that are not open and whose drives are among those looked at now.
    async fn open_found_pools(&self) -> Result<Vec<String>, CommandError> {
        self.look_at_drives().await;
        let array = self.state.borrow().catalog.array();
        let mut lines = Vec::new();
        for (id, found) in self.found_pools().into_iter().filter(|(_, found)| found.array == array) {
            if self.state.borrow().online().iter().any(|membership| membership.pool == id) {
                continue;
            }
            self.forget_pool(id);
            self.claim_pool(id, &found).await;
            lines.push(format!("open pool {id}"));
        }
        if !lines.is_empty() {
            self.settle_pools().await?;
            let bytes = Bytes::from(self.state.borrow().catalog.encode());
            (self.parameters.save_state)(bytes);
            self.look_at_drives().await;
        }
        Ok(lines)
    }

    /// Listens on these addresses too: here first, which settles port 0, then on the other shards.
    pub(super) async fn listen(&self, wanted: Vec<SocketAddr>) {
        let answer = self.context.ask(self.context.shard, Call::Listen(wanted.clone())).await;
        let Answer::Listening(bound) = answer else { unreachable!("the answer to listening") };
        let addresses: Vec<_> = bound.iter().filter_map(|result| result.ok()).collect();
        let others = self.context.ask_others(|| Call::Listen(addresses.clone())).await;
        // where the system lets one shard alone have an address, that shard serves it alone
        drop(others);
        let portals = wanted.into_iter().zip(bound).map(|(address, result)| Portal { address, result });
        self.state.borrow_mut().portals.extend(portals);
    }
}
