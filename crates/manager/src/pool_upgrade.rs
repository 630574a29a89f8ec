//! Moves a pool to the newest disk format, while hosts go on.

use api::{CommandError, CommandErrorKind, PoolStep, Reply};
use pool::FORMAT_VERSION;

use crate::drive_commands::done;
use crate::manager::Manager;

impl Manager {
    /// Does nothing to a pool that has the newest format.
    pub(crate) async fn upgrade_pool(&self, name: &str, dry_run: bool) -> Result<Reply, CommandError> {
        let membership = self.served_pool(name)?;
        let version = membership.version;
        let step = PoolStep::UpgradePool {
            pool: name.to_owned(),
            before_format: version,
            after_format: FORMAT_VERSION,
        };
        let steps = (version < FORMAT_VERSION).then(|| step.into()).into_iter().collect();
        if !dry_run && version < FORMAT_VERSION {
            self.go_ahead()?;
            let (io, heads) = (&self.context.io, self.parameters.heads());
            let upgraded =
                self.alter(membership.pool, async |membership| membership.upgrade(io, heads).await);
            upgraded.await.map_err(|_| {
                let message = format!("too few drives of pool {name} took the new labels: it is offline");
                CommandError::new(
                    CommandErrorKind::Io,
                    message,
                    "`tangelo status` shows what is wrong with its drives",
                )
            })?;
        }
        Ok(done(steps, dry_run, self.pool_made_unless(name, dry_run).await))
    }
}
