//! Volumes as hosts see them: a unit of the shard, with its SCSI state.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

use base::VolumeId;
use scsi::{Identity, LogicalUnit};
use shard::{Replica, Unit, Units};

use crate::directory::target_device;

/// Product revision level that hosts see.
const REVISION: [u8; 4] = *b"0001";

/// A volume as hosts see it; see the header of this file.
pub(crate) struct HostUnit {
    pub(crate) unit: Rc<Unit>,
    pub(crate) logical: LogicalUnit,
}

/// The volumes of one shard.
#[derive(Default)]
pub(crate) struct HostUnits(RefCell<BTreeMap<VolumeId, Rc<HostUnit>>>);

impl HostUnits {
    pub(crate) fn get(&self, volume: VolumeId) -> Option<Rc<HostUnit>> {
        self.0.borrow().get(&volume).cloned()
    }

    /// Applies the new state of the array. Unchanged volumes keep their unit.
    pub(crate) fn apply(&self, replica: &Replica, units: &Units) {
        let target = Arc::new(target_device(replica));
        let keeps_reservations = !replica.pools.is_empty();
        let mut by_id = self.0.borrow_mut();
        let old = std::mem::take(&mut *by_id);
        for volume in replica.catalog.volumes() {
            let Some(unit) = units.get(volume.id) else { continue };
            let same = |before: &&Rc<HostUnit>| {
                Rc::ptr_eq(&before.unit, &unit)
                    && *before.logical.target == *target
                    && before.logical.keeps_reservations == keeps_reservations
            };
            let host_unit = old.get(&volume.id).filter(same).cloned().unwrap_or_else(|| {
                let identity =
                    Identity { naa: volume.naa.bytes(), serial: volume.serial.clone(), revision: REVISION };
                let geometry = unit.geometry();
                let logical = LogicalUnit {
                    identity,
                    geometry,
                    read_only: false,
                    keeps_reservations,
                    target: target.clone(),
                };
                Rc::new(HostUnit { unit, logical })
            });
            by_id.insert(volume.id, host_unit);
        }
    }
}
