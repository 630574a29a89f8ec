//! Applies a changed configuration file of the head while the array runs: other portals, other drives to look at.
//! Sessions on portals that remain are not disturbed. Sessions on removed portals end when their hosts log out.

use std::net::SocketAddr;

use base::PoolId;

use shard::{Answer, FrontCall};

use crate::manager::Manager;
use crate::state::Portal;
use api::{ArrayStep, Change, ChangeStep, CommandError, PoolStep, PortalOptions, Reply};

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
        let portals = self.change_portals(portals).await;
        self.parameters.drives.replace(drives);
        let pools = self.open_found_pools().await?;
        let devices = self.renew_raw_devices().await;
        self.broadcast().await;
        self.trim_all().await;
        let steps = portals.into_iter().map(ChangeStep::from);
        let steps = steps.chain(pools.into_iter().map(ChangeStep::from));
        let steps = steps.chain(devices.into_iter().map(ChangeStep::from)).collect();
        Ok(Reply::Changed(Change { dry_run: false, steps, hosts_affected: Vec::new(), made: None }))
    }

    async fn change_portals(&self, wanted: Vec<PortalOptions>) -> Vec<ArrayStep> {
        let before = std::mem::take(&mut self.state.borrow_mut().portals);
        let same = |one: &PortalOptions, other: &PortalOptions| {
            (one.address, one.group) == (other.address, other.group)
        };
        let (mut stay, go): (Vec<Portal>, Vec<Portal>) = before.into_iter().partition(|portal| {
            portal.result.is_ok() && wanted.iter().any(|options| same(options, &portal.options))
        });
        let mut steps = Vec::new();
        for portal in &mut stay {
            let options = wanted.iter().find(|options| same(options, &portal.options)).expect("it stays");
            if options.hosts != portal.options.hosts {
                let portal_address = options.address.to_string();
                steps.push(ArrayStep::AdmitHosts { portal: portal_address, hosts: options.hosts.clone() });
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
        let listen = |address: &SocketAddr, stop| ArrayStep::ListenOn { address: address.to_string(), stop };
        steps.extend(gone.iter().map(|address| listen(address, true)));
        steps.extend(new.iter().map(|options| listen(&options.address, false)));
        steps
    }

    /// Opens the pools of this array that are not open and whose drives are among those looked at now.
    async fn open_found_pools(&self) -> Result<Vec<PoolStep>, CommandError> {
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
