//! Renames objects. Their identities, and so what hosts see, do not change.
//!
//! The name in the catalog counts. The labels of a pool's drives also hold the pool's name: it is written there next,
//! or, after a crash in between, at the next start.

use base::PoolId;
use catalog::{CatalogError, Change, HostUpdate, Name};

use crate::manager::Manager;
use api::{ArrayStep, CommandError, CommandErrorKind, Named, Reply};

impl Manager {
    pub(crate) async fn rename(&self, of: &Named, name: &str, dry_run: bool) -> Result<Reply, CommandError> {
        let name: Name = name.parse()?;
        let change = self.renaming(of, &name)?;
        let pool = match of {
            Named::Pool(old) => self.state.borrow().catalog.find_pool(old).map(|entry| entry.id),
            _ => None,
        };
        let planned =
            self.plan(&change)?.step(ArrayStep::Rename { what: of.subject(), name: name.to_string() });
        if dry_run {
            return Ok(planned.reply(true, None));
        }
        self.commit(&planned.next).await?;
        if let Some(id) = pool {
            self.name_pool(id, &name).await;
        }
        Ok(planned.reply(false, None))
    }

    fn renaming(&self, of: &Named, name: &Name) -> Result<Change, CommandError> {
        let name = name.clone();
        Ok(match of {
            Named::Volume(volume) => Change::RenameVolume { volume: volume.clone(), name },
            Named::Pool(pool) => Change::RenamePool { pool: pool.clone(), name },
            Named::Snapshot { volume, snapshot } => {
                Change::RenameSnapshot { volume: volume.clone(), snapshot: snapshot.clone(), name }
            }
            Named::Schedule(schedule) => Change::RenameSchedule { schedule: schedule.clone(), name },
            Named::Host(host) => {
                if self.state.borrow().catalog.find_host(host).is_none() {
                    return Err(CatalogError::NotFound { kind: "host", name: host.clone() }.into());
                }
                self.check_portals_admit(host, &name)?;
                let update = HostUpdate { name: Some(name), ..HostUpdate::default() };
                Change::ModifyHost { host: host.clone(), update }
            }
        })
    }

    /// Refuses if a portal in the configuration file of the head names this host: it would shut out the renamed host.
    fn check_portals_admit(&self, host: &str, name: &Name) -> Result<(), CommandError> {
        let state = self.state.borrow();
        let shut_out = state.portals.iter().map(|portal| &portal.options).find(|options| {
            !options.hosts.is_empty() && options.admits(host) && !options.admits(name.as_str())
        });
        let Some(portal) = shut_out else { return Ok(()) };
        Err(CommandError::new(
            CommandErrorKind::InUse,
            format!(
                "portal {} names the hosts that may log in, and {name} is not among them",
                portal.address
            ),
            format!(
                "add \"{name}\" to its `hosts` in the head's file, have it read again (SIGHUP), and try again"
            ),
        ))
    }

    /// Renames a pool here and in the labels of its drives.
    pub(crate) async fn name_pool(&self, id: PoolId, name: &Name) {
        if let Some(pool) = self.state.borrow_mut().pool_mut(id) {
            pool.name = name.to_string();
        }
        let served = self.state.borrow().is_pool_online(id);
        if served {
            let io = &self.context.io;
            // if too few drives are left for this, the pool is offline and reports why
            let _ = self.alter(id, async |membership| membership.rename(io, name.as_str()).await).await;
        }
    }
}
