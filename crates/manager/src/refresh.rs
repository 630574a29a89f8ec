//! Clones of an image become clones of another image, all in one change of the catalog.
//!
//! A host must not find other data in a volume that it knows without a notification. So the mappings of mapped clones
//! are hidden meanwhile: their commands end, the contents change, and the host then sees each clone as a new logical
//! unit (29h/00h, 3Fh/0Eh). The mappings stay in the catalog, so a crash does not remove them.

use std::collections::BTreeSet;

use base::{LayerId, PoolId, VolumeId};
use catalog::{Change, Volume};
use task::join_all;

use crate::change::Planned;
use crate::manager::Manager;
use api::{CommandError, CopyOrder, NameList, Reply, SnapshotStep};

/// Maximum number of names that are listed.
const NAMES_MAX: usize = 8;

impl Manager {
    pub(crate) async fn refresh_clones(
        &self,
        order: &CopyOrder,
        dry_run: bool,
    ) -> Result<Reply, CommandError> {
        let CopyOrder::Refresh { volume, snapshot, clones_of, remap } = order.clone() else {
            unreachable!("it is to refresh clones");
        };
        let change = Change::RefreshClones {
            volume: volume.clone(),
            snapshot: snapshot.clone(),
            clones_of: clones_of.clone(),
            remap,
        };
        let mut planned = self.plan(&change)?;
        let (image, clones) = {
            let catalog = &self.state.borrow().catalog;
            let of = catalog.find_volume(&volume).expect("the plan found it");
            let image = catalog.find_snapshot(of.id, &snapshot).expect("the plan found it").layer;
            (image, catalog.clones_of(&clones_of, &volume).cloned().collect::<Vec<Volume>>())
        };
        let pool = planned.next.find_volume(&volume).and_then(Volume::place).expect("it is in a pool").0;
        let entry = planned.next.pool(pool).expect("the pool of a volume").name.to_string();
        self.check_pool_online(&entry)?;
        let mapped = self.tell_hosts(&mut planned, &clones);
        let names = clones.iter().map(|clone| clone.name.as_str());
        let clones_named = NameList::new(names, NAMES_MAX);
        planned =
            planned.step(SnapshotStep::RefreshClones { clones: clones_named, clones_of, volume, snapshot });
        if dry_run {
            return Ok(planned.reply(true, None));
        }
        self.switch(&planned, &clones, image, mapped).await?;
        Ok(planned.reply(false, None))
    }

    /// Adds the hosts of the clones to the affected ones; returns the mapped clones.
    fn tell_hosts(&self, planned: &mut Planned, clones: &[Volume]) -> BTreeSet<VolumeId> {
        let mut hosts: BTreeSet<String> = planned.hosts_affected.drain(..).collect();
        let mut mapped = BTreeSet::new();
        for clone in clones {
            for mapping in planned.next.mappings_of(clone.id) {
                hosts.insert(mapping.host.to_string());
                mapped.insert(clone.id);
            }
        }
        planned.hosts_affected = hosts.into_iter().collect();
        mapped
    }

    async fn switch(
        &self,
        planned: &Planned,
        clones: &[Volume],
        image: LayerId,
        mapped: BTreeSet<VolumeId>,
    ) -> Result<(), CommandError> {
        self.state.borrow_mut().hidden = mapped;
        // ends when no command on them is running
        self.broadcast().await;
        let grown: Vec<(VolumeId, LayerId)> = clones.iter().map(|clone| (clone.id, image)).collect();
        let done = self.grow_volumes(planned, &grown).await;
        self.state.borrow_mut().hidden.clear();
        self.broadcast().await;
        done?;
        let left: Vec<(PoolId, LayerId)> = clones.iter().filter_map(Volume::place).collect();
        join_all(left.into_iter().map(|(pool, layer)| self.drop_layer(pool, layer)).collect::<Vec<_>>())
            .await;
        Ok(())
    }
}
