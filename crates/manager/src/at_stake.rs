//! Which data depends on a drive that is to be erased, if its label says that it belongs to a pool.

use crate::manager::Manager;
use crate::probed::Probed;
use crate::state::State;
use api::{DriveHolds, NameList, PoolStep};
use pool::Content;

/// Maximum number of volumes that are named.
const NAMED_MAX: usize = 6;

impl Manager {
    /// One step for each of these drives that belongs to an offline pool of this array: without the drive, that pool
    /// may be lost.
    pub(crate) fn losses(&self, drives: &[Probed]) -> Vec<PoolStep> {
        let state = self.state.borrow();
        let risk = |Probed { info, content, .. }: &Probed| {
            let (pool, volumes) = offline_pool(&state, content)?;
            Some(PoolStep::RiskPool { pool, drive: info.path.clone(), volumes })
        };
        drives.iter().filter_map(risk).collect()
    }

    /// What a drive that has a pool's label holds.
    pub(crate) fn labelled(&self, content: &Content) -> Option<DriveHolds> {
        let Content::Member(label) = content else { return None };
        Some(match offline_pool(&self.state.borrow(), content) {
            None => {
                DriveHolds::Member { pool: label.pool_name.clone(), array: Some(label.array.to_string()) }
            }
            Some((pool, volumes)) => DriveHolds::OfflineMember { pool, volumes },
        })
    }
}

/// The offline pool of this array that the label names, and the volumes in it.
fn offline_pool(state: &State, content: &Content) -> Option<(String, NameList)> {
    let Content::Member(label) = content else { return None };
    let entry = state.catalog.pool(label.pool).filter(|_| label.array == state.catalog.array())?;
    if state.is_pool_online(entry.id) {
        return None;
    }
    let inside = |volume: &&catalog::Volume| volume.place().is_some_and(|(pool, _)| pool == entry.id);
    let volumes = state.catalog.all_volumes().filter(inside).map(|volume| volume.name.to_string());
    Some((entry.name.to_string(), NameList::new(volumes, NAMED_MAX)))
}
