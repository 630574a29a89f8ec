//! The catalog as JSON bytes. A decoded catalog is checked as a whole, because stored bytes are not trusted.

use base::BLOCK_BYTES;
use base::HashSet;
use base::limits::{
    CATALOG_BYTES_MAX, DELETED_POOLS_MAX, FREED_LUNS_MAX, HOSTS_MAX, MAPPINGS_MAX, POOLS_MAX, SCHEDULES_MAX,
    SNAPSHOTS_MAX, VOLUME_BYTES_MAX, VOLUMES_MAX,
};
use serde::Deserialize;

use crate::error::CatalogError;
use crate::model::{Catalog, SCHEMA_VERSION, VolumeKind};

const SCHEMA_VERSION_MIN: u32 = 1;

const _: () = assert!(CATALOG_BYTES_MAX >= 1024 * BLOCK_BYTES);

impl Catalog {
    /// The catalog as bytes to store. They hold CHAP secrets: not for showing.
    pub fn encode(&self) -> Vec<u8> {
        let bytes = serde_json::to_vec(self).expect("a catalog has nothing that JSON cannot say");
        assert!(bytes.len() <= CATALOG_BYTES_MAX, "the limits of a catalog's parts bound the whole");
        bytes
    }

    /// The catalog that was stored as `bytes`.
    ///
    /// [`CatalogError::FutureSchema`] where a newer program wrote it, [`CatalogError::Damaged`] where it is not
    /// a catalog or breaks what always holds of one.
    pub fn decode(bytes: &[u8]) -> Result<Catalog, CatalogError> {
        if bytes.len() > CATALOG_BYTES_MAX {
            return Err(damaged(format!("{} bytes are more than a catalog can have", bytes.len())));
        }
        #[derive(Deserialize)]
        struct Header {
            schema: u64,
        }
        let header: Header = serde_json::from_slice(bytes).map_err(unreadable)?;
        if header.schema > u64::from(SCHEMA_VERSION) {
            return Err(CatalogError::FutureSchema { found: header.schema, known: SCHEMA_VERSION });
        }
        if header.schema < u64::from(SCHEMA_VERSION_MIN) {
            return Err(damaged(format!("there is no schema {}", header.schema)));
        }
        let mut catalog: Catalog = serde_json::from_slice(bytes).map_err(unreadable)?;
        catalog.schema = SCHEMA_VERSION;
        catalog.check().map_err(|error| match error {
            CatalogError::Damaged { .. } => error,
            other => damaged(other.to_string()),
        })?;
        Ok(catalog)
    }

    /// Everything that the crate's page says always holds.
    fn check(&self) -> Result<(), CatalogError> {
        let counts = [
            ("pools", self.pools.len(), POOLS_MAX),
            ("deleted pools", self.deleted_pools.len(), DELETED_POOLS_MAX),
            ("volumes", self.all_volumes().count(), VOLUMES_MAX),
            ("snapshots", self.all_snapshots().count(), SNAPSHOTS_MAX),
            ("schedules", self.schedules.len(), SCHEDULES_MAX),
            ("hosts", self.hosts.len(), HOSTS_MAX),
            ("mappings", self.mappings.len(), MAPPINGS_MAX),
            ("freed LUNs", self.freed_luns.len(), FREED_LUNS_MAX),
        ];
        for (what, count, max) in counts {
            require(count <= max, || format!("{count} {what}, {max} are possible"))?;
        }
        require(self.version >= 1, || "version 0".to_owned())?;
        self.check_pools()?;
        self.check_volumes()?;
        self.check_reservations().map_err(damaged)?;
        self.check_access().map_err(damaged)?;
        self.check_hosts()?;
        self.check_heads().map_err(damaged)?;
        self.check_mappings().map_err(damaged)
    }

    fn check_pools(&self) -> Result<(), CatalogError> {
        require(self.pools.is_sorted_by(|a, b| a.id < b.id), || "pools out of order".to_owned())?;
        require(unique(self.pools.iter().map(|pool| &pool.name)), || "two pools of one name".to_owned())?;
        self.pools.iter().try_for_each(|pool| pool.settings.check().and(pool.spares.check()))
    }

    fn check_volumes(&self) -> Result<(), CatalogError> {
        require(self.volumes.is_sorted_by(|a, b| a.id < b.id), || "volumes out of order".to_owned())?;
        require(unique(self.all_volumes().map(|v| &v.name)), || "two volumes of one name".to_owned())?;
        require(unique(self.all_volumes().map(|v| v.naa)), || {
            "two volumes of one NAA identifier".to_owned()
        })?;
        require(unique(self.all_volumes().map(|v| &v.serial)), || {
            "two volumes of one serial number".to_owned()
        })?;
        let mut layers = HashSet::default();
        let mut paths = HashSet::default();
        for volume in self.all_volumes() {
            volume.check()?;
            let (id, serial) = (volume.id, &volume.serial);
            require(id.0 < self.next_volume_id, || format!("volume id {id} was not handed out"))?;
            let grown = volume.first_size_bytes.is_none_or(|first| {
                first.is_multiple_of(BLOCK_BYTES as u64) && (1..=VOLUME_BYTES_MAX).contains(&first)
            });
            require(grown, || format!("volume {id} has grown from an impossible size"))?;
            let good = (1..=20).contains(&serial.len()) && serial.bytes().all(|b| b.is_ascii_alphanumeric());
            require(good, || format!("volume {id} has a bad serial number"))?;
            match &volume.backing {
                VolumeKind::Pool { pool, layer } => {
                    require(self.pool(*pool).is_some(), || format!("volume {id} is in an unknown pool"))?;
                    require(layer.0 < self.next_layer_id, || format!("layer {layer} was not handed out"))?;
                    require(layers.insert(*layer), || format!("layer {layer} has two volumes"))?;
                }
                VolumeKind::Raw { path } => {
                    require(paths.insert(path), || format!("{path} is exported twice"))?;
                }
                VolumeKind::Null {} | VolumeKind::Memory {} => {}
            }
        }
        self.check_bin().map_err(damaged)?;
        self.check_schedules().map_err(damaged)?;
        self.check_drives().map_err(damaged)?;
        self.check_copied_from(&layers).map_err(damaged)?;
        self.check_snapshots(layers).map_err(damaged)
    }

    fn check_hosts(&self) -> Result<(), CatalogError> {
        require(self.hosts.is_sorted_by(|a, b| a.name < b.name), || "hosts out of order".to_owned())?;
        require(unique(self.hosts.iter().flat_map(|host| &host.initiators)), || {
            "an initiator belongs to two hosts".to_owned()
        })?;
        self.hosts.iter().try_for_each(|host| host.check())
    }
}

fn unique<T: std::hash::Hash + Eq>(mut items: impl Iterator<Item = T>) -> bool {
    let mut seen = HashSet::default();
    items.all(|item| seen.insert(item))
}

fn require(holds: bool, what: impl FnOnce() -> String) -> Result<(), CatalogError> {
    if holds { Ok(()) } else { Err(damaged(what())) }
}

fn damaged(what: String) -> CatalogError {
    CatalogError::Damaged { what }
}

/// Only where it is unreadable: serde's own message might quote a secret.
fn unreadable(error: serde_json::Error) -> CatalogError {
    let what = match error.classify() {
        serde_json::error::Category::Data => "an unknown, missing or impossible field",
        _ => "not JSON",
    };
    damaged(format!("{what} at line {}, column {}", error.line(), error.column()))
}
