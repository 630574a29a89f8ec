//! How the catalog changes: a change is checked, made durable, and announced to every shard.

use base::VolumeId;
use bytes::Bytes;
use catalog::{Catalog, CatalogError, Change, KeptAccesses, KeptReservations};
use reservation::Refusal;

use crate::manager::Manager;
use api::{self, ChangeStep, CommandError, Made, Reply};

/// A change of the catalog that has been checked but not made.
pub(crate) struct Planned {
    pub(crate) next: Catalog,
    pub(crate) steps: Vec<ChangeStep>,
    /// Hosts that gain or lose access by it.
    pub(crate) hosts_affected: Vec<String>,
}

impl Manager {
    /// Checks a change against the catalog as it is now.
    pub(crate) fn plan(&self, change: &Change) -> Result<Planned, CommandError> {
        let state = self.state.borrow();
        let next = state.catalog.apply(change)?;
        let hosts_affected = hosts_affected(&state.catalog, &next);
        Ok(Planned { next, steps: Vec::new(), hosts_affected })
    }

    /// Makes the catalog durable, then adopts it here and on every shard.
    pub(crate) async fn commit(&self, next: &Catalog) -> Result<(), CommandError> {
        self.waits_for("it waits for another change of the catalog to be stored");
        let storing = self.storing.acquire(1).await;
        self.go_ahead()?;
        self.waits_for("it waits for the catalog to be stored in the pools");
        let next = next.clone().after(&self.state.borrow().catalog);
        self.store(next).await?;
        drop(storing);
        self.waits_for("it waits for all shards to take it over");
        self.broadcast().await;
        Ok(())
    }

    /// Makes the catalog durable, then adopts it here.
    async fn store(&self, next: Catalog) -> Result<(), CommandError> {
        let bytes = Bytes::from(next.encode());
        self.store_catalog(&bytes).await?;
        // the receiver of the copy answers when it is durable
        drop((self.parameters.save_state)(bytes));
        self.state.borrow_mut().catalog = next;
        Ok(())
    }

    /// The same for a change by a host, which a shard answers: if no pool holds the catalog, this waits for the head's
    /// copy.
    async fn store_for_host(&self, next: Catalog) -> Result<(), Refusal> {
        let bytes = Bytes::from(next.encode());
        let in_a_pool = !self.state.borrow().online().is_empty();
        self.store_catalog(&bytes).await.map_err(|_| Refusal::NotKept)?;
        let saving = (self.parameters.save_state)(bytes);
        if !in_a_pool && !saving.ended(&self.context.io).await {
            return Err(Refusal::NotKept);
        }
        self.state.borrow_mut().catalog = next;
        Ok(())
    }

    /// Makes a volume's reservations survive a restart, or removes them. Administrators' changes may run at the same
    /// time.
    pub(crate) async fn keep_reservations(
        &self,
        volume: VolumeId,
        reservations: Option<KeptReservations>,
    ) -> Result<(), Refusal> {
        let _storing = self.storing.acquire(1).await;
        let next = self.state.borrow().catalog.keep_reservations(volume, reservations);
        let next = next.map_err(|error| match error {
            CatalogError::TooMany { .. } => Refusal::NoRoom,
            _ => Refusal::NoSuchUnit,
        })?;
        self.store_for_host(next).await
    }

    /// Makes a volume's access states survive a restart, in the same way.
    pub(crate) async fn keep_access(&self, volume: VolumeId, access: KeptAccesses) -> Result<(), Refusal> {
        let _storing = self.storing.acquire(1).await;
        let next = self.state.borrow().catalog.keep_access(volume, access);
        self.store_for_host(next.map_err(|_| Refusal::NoSuchUnit)?).await
    }
}

impl Planned {
    pub(crate) fn step(mut self, step: impl Into<ChangeStep>) -> Planned {
        self.steps.push(step.into());
        self
    }

    pub(crate) fn steps<S: Into<ChangeStep>>(self, steps: impl IntoIterator<Item = S>) -> Planned {
        steps.into_iter().fold(self, Planned::step)
    }

    /// The answer to the command, with the object that it made; a dry run has made nothing.
    pub(crate) fn reply(self, dry_run: bool, made: Option<Made>) -> Reply {
        assert!(!dry_run || made.is_none(), "a dry run makes nothing");
        Reply::Changed(api::Change { dry_run, steps: self.steps, hosts_affected: self.hosts_affected, made })
    }
}

/// Hosts whose mappings, volume sizes or credentials differ.
fn hosts_affected(before: &Catalog, after: &Catalog) -> Vec<String> {
    let of = |catalog: &Catalog, host: &str| {
        let size = |volume| catalog.volume(volume).map(|volume| volume.size_bytes);
        let luns: Vec<_> = catalog
            .mappings_of_host(host)
            .map(|m| (m.number, m.volume, m.read_only, size(m.volume)))
            .collect();
        (luns, catalog.find_host(host).cloned())
    };
    let mut names: Vec<&str> =
        before.hosts().iter().chain(after.hosts()).map(|host| host.name.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    names.retain(|name| of(before, name) != of(after, name));
    names.into_iter().map(str::to_owned).collect()
}
