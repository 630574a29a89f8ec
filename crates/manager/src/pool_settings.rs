//! Changes the settings of a pool.

use api::{CommandError, NewSettings, Reply};
use catalog::Change;

use crate::manager::Manager;
use crate::settings;

impl Manager {
    /// Changes a pool's settings; without a change, this reports them.
    pub(crate) async fn set_pool(
        &self,
        name: &str,
        new: &NewSettings,
        dry_run: bool,
    ) -> Result<Reply, CommandError> {
        let before =
            self.state.borrow().catalog.find_pool(name).map(|entry| entry.settings).unwrap_or_default();
        let wanted = settings::changed(&before, new);
        let planned = self.plan(&Change::SetPool { pool: name.to_owned(), settings: wanted })?;
        let planned = planned.steps(settings::steps(name, &wanted));
        if !dry_run && wanted != before {
            self.commit(&planned.next).await?;
            self.wake_keeper.notify();
        }
        Ok(planned.reply(dry_run, None))
    }
}
