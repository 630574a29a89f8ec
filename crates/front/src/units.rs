//! Volumes as hosts see them: a unit of the shard, with its SCSI state.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

use base::VolumeId;
use scsi::{Identity, LogicalUnit};
use shard::{Replica, Unit, Units};

use crate::directory::target_device;
use crate::figures::Figures;

/// Product revision level that hosts see.
const REVISION: [u8; 4] = *b"0001";

/// A volume as hosts see it; see the header of this file.
pub(crate) struct HostUnit {
    pub(crate) unit: Rc<Unit>,
    pub(crate) logical: LogicalUnit,
    /// What the commands of this shard's sessions have done here. They stay with the volume when it gets another unit.
    pub(crate) figures: Rc<Figures>,
}

/// The volumes of one shard.
#[derive(Default)]
pub(crate) struct HostUnits(RefCell<BTreeMap<VolumeId, Rc<HostUnit>>>);

impl HostUnits {
    pub(crate) fn get(&self, volume: VolumeId) -> Option<Rc<HostUnit>> {
        self.0.borrow().get(&volume).cloned()
    }

    /// The figures of all volumes.
    pub(crate) fn figures(&self) -> Vec<(VolumeId, Rc<Figures>)> {
        self.0.borrow().iter().map(|(volume, unit)| (*volume, unit.figures.clone())).collect()
    }

    /// Applies the new state of the array. Unchanged volumes keep their unit. Returns the figures of volumes that are gone;
    /// their last commands may still be running.
    pub(crate) fn apply(&self, replica: &Replica, units: &Units) -> Vec<Rc<Figures>> {
        let target = Arc::new(target_device(replica));
        let keeps_reservations = !replica.pools.is_empty();
        let mut by_id = self.0.borrow_mut();
        let mut old = std::mem::take(&mut *by_id);
        for volume in replica.catalog.volumes() {
            let Some(unit) = units.get(volume.id) else { continue };
            let same = |before: &Rc<HostUnit>| {
                Rc::ptr_eq(&before.unit, &unit)
                    && *before.logical.target == *target
                    && before.logical.keeps_reservations == keeps_reservations
            };
            let before = old.remove(&volume.id);
            let host_unit = before.clone().filter(|before| same(before)).unwrap_or_else(|| {
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
                let figures = before.map(|before| before.figures.clone()).unwrap_or_default();
                Rc::new(HostUnit { unit, logical, figures })
            });
            by_id.insert(volume.id, host_unit);
        }
        old.into_values().map(|unit| unit.figures.clone()).collect()
    }
}
