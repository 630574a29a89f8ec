//! How the array of a pair starts: with pools of this array, and of no other. A head that does not find them waits. The other head may
//! have all of them, so nothing is answered meanwhile, and nothing is stored.
//!
//! What always holds: a catalog that names pools counts only if one of them is there. The head's own copy may be of an earlier term
//! than what the pools have.

use std::fmt;
use std::rc::Rc;

use api::{Command, CommandError, CommandErrorKind, Reply, StartFailure};
use base::{ArrayId, Nanos};
use catalog::Catalog;

use crate::drive_commands;
use crate::manager::Manager;

/// Between two looks for pools.
const LOOK: Nanos = Nanos::from_millis(500);
/// How often a command looks whether the array has started.
const LOOK_FOR_START: Nanos = Nanos::from_millis(10);

/// What a head of a pair knows of its array.
pub struct PairedArray {
    pub array: ArrayId,
    /// Called whenever the start has found no pool of the array.
    pub waits: Box<dyn Fn(PoolsAbsent) + Send>,
}

/// No pool of the array is there.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct PoolsAbsent {
    /// Pools of the array that cannot be opened, and why.
    pub offline: Vec<(String, String)>,
    /// Pools of other arrays that are on this head's drives.
    pub others: Vec<String>,
}

impl fmt::Display for PoolsAbsent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("no pool of this array is on the drives of this head")?;
        for (pool, why) in &self.offline {
            write!(f, "; pool {pool} is offline: {why}")?;
        }
        if !self.others.is_empty() {
            write!(f, "; of other arrays, which it does not serve: {}", self.others.join(", "))?;
        }
        Ok(())
    }
}

impl Manager {
    /// Opens the pools of the pair's array, and gives the newest catalog. Waits until one is there, unless the array has none.
    pub(crate) async fn open_pools_of_pair(
        &self,
        pair: &PairedArray,
        kept: Option<Catalog>,
    ) -> Result<Catalog, StartFailure> {
        let kept = kept.filter(|kept| kept.array() == pair.array);
        loop {
            match self.open_pools(kept.clone(), Some(pair.array)).await {
                Ok(Some(catalog)) if self.may_serve(&catalog, kept.is_some()) => return Ok(catalog),
                Ok(_) | Err(StartFailure::CatalogOffline { .. }) => {}
                Err(failure) => return Err(failure),
            }
            (pair.waits)(self.pools_absent(pair.array));
            self.waits_for_pools.set(true);
            self.context.io.sleep(LOOK).await;
            while self.stopping.get() {
                self.context.io.sleep(LOOK).await;
            }
            self.waits_for_pools.set(false);
            self.state.borrow_mut().pools.clear();
        }
    }

    /// `is_kept`: this head has a copy of the catalog. Without one and without pools it cannot know what the array has.
    fn may_serve(&self, catalog: &Catalog, is_kept: bool) -> bool {
        !self.state.borrow().online().is_empty() || is_kept && catalog.pools().is_empty()
    }

    fn pools_absent(&self, array: ArrayId) -> PoolsAbsent {
        let state = self.state.borrow();
        let offline =
            |pool: &crate::state::Pool| Some((pool.name.clone(), pool.offline.as_ref()?.to_string()));
        let found = self.found_pools();
        let others = found.values().filter(|found| found.array != array).map(|found| found.name.clone());
        PoolsAbsent { offline: state.pools.iter().filter_map(offline).collect(), others: others.collect() }
    }

    /// Waits until the array has started. What is to be done before is done, and answered.
    pub(crate) async fn before_start(
        self: &Rc<Self>,
        command: &Command,
    ) -> Option<Result<Reply, CommandError>> {
        if self.parameters.pair.is_none() {
            self.ready.pass().await;
        }
        while !self.ready.is_open() {
            match command {
                Command::DrivesFound(paths) => {
                    self.parameters.drives.replace(paths.clone());
                    return Some(Ok(drive_commands::done(Vec::new(), false, None)));
                }
                Command::Shutdown if self.waits_for_pools.get() => return Some(self.shut_down().await),
                Command::Reload { .. } if self.waits_for_pools.get() => {
                    let message = "no pool of this array is there: the start waits for one";
                    let hint = "read the file again when the array has started, or restart the daemon";
                    return Some(Err(CommandError::new(CommandErrorKind::Unavailable, message, hint)));
                }
                _ => self.context.io.sleep(LOOK_FOR_START).await,
            }
        }
        None
    }
}
