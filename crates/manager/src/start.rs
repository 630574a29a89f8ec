//! How the array starts: it finds its identity and its parts, then it serves hosts.
//!
//! No portal listens before every shard knows the array. So a host never misses a LUN that is only late.

use std::rc::Rc;

use base::ArrayId;
use bytes::Bytes;
use catalog::Catalog;

use crate::manager::Manager;
use api::{CatalogPlace, CommandError, EventFacts, StartFailure, Subject};

impl Manager {
    /// Starts the array, and reports the result.
    pub async fn start(self: Rc<Self>) {
        self.began.set(self.context.io.now());
        let version = env!("CARGO_PKG_VERSION").to_owned();
        self.record(Subject::Array, EventFacts::DaemonStarted { version });
        self.context.io.spawn(self.clone().watch_problems());
        let result = self.bring_up().await;
        if let Err(error) = &result {
            *self.failure.borrow_mut() = Some(error.clone());
        }
        self.ready.open();
        self.problems_may_differ();
        if result.is_ok() {
            self.context.io.spawn(self.clone().watch_space());
            self.context.io.spawn(self.clone().keep());
            self.context.io.spawn(self.clone().watch_portals());
            self.context.io.spawn(self.clone().watch_absent());
            self.context.io.spawn(self.clone().watch_raw_devices());
        }
        let started = self.started.borrow_mut().take().expect("an array starts once");
        started(result.map_err(CommandError::from));
    }

    async fn bring_up(&self) -> Result<(), StartFailure> {
        let kept = self.parameters.state.borrow_mut().take();
        let kept = kept.map(|bytes| decode(&bytes, CatalogPlace::StateDirectory)).transpose()?;
        let catalog = match &self.parameters.pair {
            Some(pair) => self.open_pools_of_pair(pair, kept).await?,
            None => match self.open_pools(kept, None).await? {
                Some(catalog) => catalog,
                None => self.new_catalog()?,
            },
        };
        self.state.borrow_mut().catalog = catalog;
        self.free_former_twins().await;
        self.record_head(&self.parameters.portals)?;
        self.see_clock();
        self.name_missing();
        self.settle_pools().await?;
        let bytes = Bytes::from(self.state.borrow().catalog.encode());
        drop((self.parameters.save_state)(bytes));
        self.open_raw_volumes().await;
        self.broadcast().await;
        self.trim_all().await;
        self.listen(self.parameters.portals.clone()).await;
        self.broadcast().await;
        Ok(())
    }

    /// The catalog of a new array.
    fn new_catalog(&self) -> Result<Catalog, StartFailure> {
        let name = self.parameters.array_name.parse()?;
        Ok(Catalog::new(ArrayId(self.context.io.random_u128()), name))
    }
}

/// Reads a stored catalog.
pub(crate) fn decode(bytes: &[u8], place: CatalogPlace) -> Result<Catalog, StartFailure> {
    Catalog::decode(bytes).map_err(|error| StartFailure::CatalogUnreadable { place, fault: error.into() })
}
