//! Applies a changed configuration file of the head while the array runs: other portals, other drives to look at.
//! Sessions on portals that remain are not disturbed. Sessions on removed portals end when their hosts log out.

use std::net::SocketAddr;

use base::PoolId;

use shard::{Answer, FrontCall};

use crate::manager::Manager;
use crate::state::Portal;
use api::{Change, CommandError, PortalOptions, Reply};

impl Manager {
    /// Adopts the changed configuration file of the head, and opens pools whose drives are new in it.
    pub(crate) async fn reload(
        &self,
        portals: Vec<PortalOptions>,
        drives: Vec<String>,
    ) -> Result<Reply, CommandError> {
        self.go_ahead()?;
        self.waits_for("it waits for addresses and drives");
        self.record_head(&portals)?;
        let mut lines = self.change_portals(portals).await;
        self.parameters.drives.replace(drives);
        lines.extend(self.open_found_pools().await?);
        lines.extend(self.renew_raw_devices().await);
        self.broadcast().await;
        self.trim_all().await;
        Ok(Reply::Changed(Change { dry_run: false, lines, hosts_affected: Vec::new(), made: None }))
    }

    async fn change_portals(&self, wanted: Vec<PortalOptions>) -> Vec<String> {
        let before = std::mem::take(&mut self.state.borrow_mut().portals);
        let same = |one: &PortalOptions, other: &PortalOptions| {
            (one.address, one.group) == (other.address, other.group)
        };
        let (mut stay, go): (Vec<Portal>, Vec<Portal>) = before.into_iter().partition(|portal| {
            portal.result.is_ok() && wanted.iter().any(|options| same(options, &portal.options))
        });
        let mut lines = Vec::new();
        for portal in &mut stay {
            let options = wanted.iter().find(|options| same(options, &portal.options)).expect("it stays");
            if options.hosts != portal.options.hosts {
                lines.push(format!("{} is for {}", options.address, whom(options)));
                portal.options = options.clone();
            }
        }
        let gone: Vec<SocketAddr> = go.iter().filter_map(|portal| portal.result.ok()).collect();
        self.context.ask_all(|| FrontCall::Unlisten(gone.clone())).await;
        let new: Vec<PortalOptions> = wanted
            .into_iter()
            .filter(|options| stay.iter().all(|portal| portal.options.address != options.address))
            .collect();
        self.state.borrow_mut().portals = stay;
        self.listen(new.clone()).await;
        lines.extend(gone.iter().map(|address| format!("no longer listen on {address}")));
        lines.extend(new.iter().map(|options| format!("listen on {}", options.address)));
        lines
    }

    /// Opens the pools of this array that are not open and whose drives are among those looked at now.
    async fn open_found_pools(&self) -> Result<Vec<String>, CommandError> {
        self.close_failed_pools().await;
        self.look_at_drives().await;
        let found = {
            let (array, mut found) = (self.state.borrow().catalog.array(), self.found_pools());
            let state = self.state.borrow();
            let deleted = |id: PoolId| state.catalog.deleted_pool(id).is_some();
            let open = |id: PoolId| state.pools.iter().any(|pool| pool.id == id && pool.membership.is_some());
            found.retain(|&id, found| found.array == array && !deleted(id) && !open(id));
            found
        };
        self.open_pools_found(found).await
    }

    /// Listens on these addresses, too: first here, which resolves port 0, then on the other shards.
    pub(crate) async fn listen(&self, wanted: Vec<PortalOptions>) {
        let answer = self.context.ask(self.context.shard, FrontCall::Listen(wanted.clone())).await;
        let Answer::Listening(bound) = answer else { unreachable!("the answer to listening") };
        let portals: Vec<Portal> =
            wanted.into_iter().zip(bound).map(|(options, result)| Portal { options, result }).collect();
        let bound: Vec<PortalOptions> = portals.iter().filter_map(Portal::bound).collect();
        let others = self.context.ask_others(|| FrontCall::Listen(bound.clone())).await;
        // if the system lets only one shard have an address, that shard serves it alone
        drop(others);
        self.state.borrow_mut().portals.extend(portals);
    }
}

/// Describes which hosts a portal admits.
fn whom(options: &PortalOptions) -> String {
    if options.hosts.is_empty() { "all hosts".to_owned() } else { options.hosts.join(", ") }
}
