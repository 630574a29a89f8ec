//! The status of the array, as the administrator sees it.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::net::SocketAddr;

use base::VolumeId;
use catalog::{Catalog, Mapping, VolumeKind};
use env::IoError;

use shard::{Answer, FrontCall, pool_layer};

use crate::manager::Manager;
use api::{
    ArrayStatus, HostStatus, Made, MappingStatus, PortalOptions, PortalStatus, Problem, ProblemFacts,
    SessionStatus, StartFailure, StoreFailure, Subject, VolumeBacking, VolumeCondition, VolumeStatus,
};

impl Manager {
    pub(crate) async fn status(&self) -> ArrayStatus {
        let answers = self.context.ask_all(|| FrontCall::Sessions).await;
        let mut sessions = Vec::new();
        for answer in answers {
            let Answer::Sessions(of_shard) = answer else {
                unreachable!("the answer to a question for sessions")
            };
            sessions.extend(of_shard);
        }
        let (pools, pool_problems): (Vec<_>, Vec<_>) = self.pool_statuses().await.into_iter().unzip();
        let drives = self.known_drives();
        let volumes: Vec<VolumeId> =
            self.state.borrow().catalog.volumes().iter().map(|volume| volume.id).collect();
        let volumes = self.volume_statuses(&volumes).await;
        let bin = self.bin_statuses().await;
        let problems = self.sorted_problems(pool_problems.into_iter().flatten()).await;
        let state = self.state.borrow();
        let catalog = &state.catalog;
        let hosts = catalog.hosts().iter().filter_map(|host| self.host_status(host.name.as_str(), &sessions));
        ArrayStatus {
            array_id: catalog.array().to_string(),
            target_name: catalog.target().to_owned(),
            health: Problem::health_of(&problems),
            problems,
            shards: self.context.shards,
            uptime_ms: self.uptime_ms(),
            portals: self.portal_statuses(),
            drives,
            pools,
            volumes,
            bin,
            schedules: self.schedule_statuses(),
            hosts: hosts.collect(),
            mappings: catalog.luns().map(|(lun, mapping)| mapping_status(catalog, lun, mapping)).collect(),
            sessions,
        }
    }

    pub(crate) fn uptime_ms(&self) -> u64 {
        self.context.io.now().saturating_sub(self.began.get()).0 / 1_000_000
    }

    pub(crate) fn portal_statuses(&self) -> Vec<PortalStatus> {
        let state = self.state.borrow();
        let portals = state.portals.iter().map(|portal| match &portal.result {
            Ok(address) => portal_status(&portal.options, address, None),
            Err(error) => portal_status(&portal.options, &portal.options.address, Some(*error)),
        });
        portals.collect()
    }

    /// Only the problems, which are worked out whenever something has changed.
    pub(crate) async fn all_problems(&self) -> Vec<Problem> {
        let of_pools = self.pool_statuses().await.into_iter().flat_map(|(_, problems)| problems);
        self.sorted_problems(of_pools).await
    }

    pub(crate) async fn sorted_problems(&self, of_pools: impl Iterator<Item = Problem>) -> Vec<Problem> {
        let mut problems = self.problems();
        problems.extend(of_pools);
        problems.extend(self.schedule_problems());
        problems.extend(self.clock_problems());
        problems.extend(self.spare_problems());
        problems.extend(self.login_problems().await);
        problems.extend(self.remembered_problems());
        problems.extend(self.file_problems());
        self.watch.date(&mut problems);
        Problem::sort(&mut problems);
        problems
    }

    /// The present state of a volume that was made or changed.
    pub(crate) async fn made_volume(&self, id: VolumeId) -> Option<Made> {
        self.volume_statuses(&[id]).await.pop().map(Box::new).map(Made::Volume)
    }

    async fn volume_statuses(&self, volumes: &[VolumeId]) -> Vec<VolumeStatus> {
        let place = |id: &VolumeId| {
            let (pool, layer) = self.state.borrow().catalog.volume(*id)?.place()?;
            Some((pool, pool_layer(layer)))
        };
        let mut spaces = BTreeMap::new();
        for (pool, _) in volumes.iter().filter_map(place) {
            if let Entry::Vacant(entry) = spaces.entry(pool) {
                entry.insert(self.copy_spaces(pool).await);
            }
        }
        // in one pass: there may be thousands of volumes and snapshots
        let mut snapshots: BTreeMap<VolumeId, u64> = BTreeMap::new();
        for snapshot in self.state.borrow().catalog.snapshots() {
            *snapshots.entry(snapshot.volume).or_default() += 1;
        }
        let status = |id: &VolumeId| {
            let space = place(id).and_then(|(pool, layer)| spaces.get(&pool)?.get(&layer).copied());
            let snapshots = snapshots.get(id).copied().unwrap_or(0);
            Some(VolumeStatus { space, snapshots, ..self.volume_status(*id)? })
        };
        volumes.iter().filter_map(status).collect()
    }

    fn volume_status(&self, id: VolumeId) -> Option<VolumeStatus> {
        let state = self.state.borrow();
        let volume = state.catalog.volume(id)?;
        let (backing, condition) = match &volume.backing {
            VolumeKind::Pool { pool, .. } => {
                let name =
                    state.catalog.pool(*pool).map_or_else(|| pool.to_string(), |pool| pool.name.to_string());
                let condition = match state.is_pool_online(*pool) {
                    true => VolumeCondition::Healthy,
                    false => VolumeCondition::PoolOffline { pool: name.clone() },
                };
                (VolumeBacking::Pool(name), condition)
            }
            VolumeKind::Raw { path } => (VolumeBacking::Raw(path.clone()), self.raw_condition(volume, path)),
            VolumeKind::Memory {} => (VolumeBacking::Memory, VolumeCondition::Healthy),
            VolumeKind::Null {} => (VolumeBacking::Null, VolumeCondition::Healthy),
        };
        Some(VolumeStatus {
            id: id.0,
            name: volume.name.to_string(),
            backing,
            size_bytes: volume.size_bytes,
            block_bytes: volume.block_bytes,
            write_back: volume.write_back,
            naa: volume.naa.to_string(),
            serial: volume.serial.clone(),
            health: condition.health(),
            condition,
            access: self.volume_access(id),
            clone_of: volume.clone_of.clone(),
            snapshots: 0,
            space: None,
        })
    }

    /// A host, with the number of its own sessions among `sessions`.
    pub(crate) fn host_status(&self, name: &str, sessions: &[SessionStatus]) -> Option<HostStatus> {
        let state = self.state.borrow();
        let host = state.catalog.find_host(name)?;
        Some(HostStatus {
            name: name.to_owned(),
            initiators: host.initiators.iter().map(|initiator| initiator.to_string()).collect(),
            chap_user: host.chap.as_ref().map(|chap| chap.user.clone()),
            mutual_chap_user: host.mutual.as_ref().map(|chap| chap.user.clone()),
            sessions: sessions.iter().filter(|session| session.host == name).count() as u64,
        })
    }

    /// The problems, without those of pools.
    fn problems(&self) -> Vec<Problem> {
        let mut problems = Vec::new();
        let (failure, unsettled) = (self.failure.borrow(), self.unsettled.borrow());
        let array = array_problems(self.stopping.get(), failure.as_ref(), self.ready.is_open(), &unsettled);
        problems.extend(array.into_iter().map(|facts| Problem::new(Subject::Array, facts)));
        let state = self.state.borrow();
        for portal in &state.portals {
            if let Err(error) = portal.result {
                let subject = Subject::Portal(portal.options.address.to_string());
                problems.push(Problem::new(subject, ProblemFacts::PortalNotListening { error }));
            }
        }
        problems.extend(state.drives.iter().filter_map(|drive| {
            let (_, array) = drive.member_of.filter(|(_, array)| *array != state.catalog.array())?;
            let facts = ProblemFacts::DriveOfAnotherArray { array: array.to_string() };
            Some(Problem::new(Subject::drive(&drive.path), facts))
        }));
        problems.extend(self.raw_problems());
        let trouble = self.journal_trouble.borrow().clone();
        let not_kept =
            trouble.map(|trouble| Problem::new(Subject::Array, ProblemFacts::EventsNotKept(trouble)));
        problems.extend(not_kept);
        problems.extend(self.head_problems.all());
        problems
    }
}

/// The problems of the array as a whole; `unsettled`: what could not be repaired at the start.
fn array_problems(
    stopping: bool,
    failure: Option<&StartFailure>,
    ready: bool,
    unsettled: &[StoreFailure],
) -> Vec<ProblemFacts> {
    let state = match failure {
        _ if stopping => Some(ProblemFacts::ArrayStopping {}),
        Some(cause) => Some(ProblemFacts::ArrayFailed { cause: cause.clone() }),
        None if !ready => Some(ProblemFacts::ArrayStarting {}),
        None => None,
    };
    let incomplete = unsettled.iter().map(|cause| ProblemFacts::StartIncomplete { cause: cause.clone() });
    state.into_iter().chain(incomplete).collect()
}

fn portal_status(options: &PortalOptions, address: &SocketAddr, error: Option<IoError>) -> PortalStatus {
    PortalStatus {
        address: address.to_string(),
        group: options.group,
        hosts: options.hosts.clone(),
        forwarded: options.forwarded,
        error,
    }
}

pub(crate) fn mapping_status(catalog: &Catalog, lun: u16, mapping: &Mapping) -> MappingStatus {
    let volume = catalog.volume(mapping.volume).expect("the catalog maps volumes that it has");
    MappingStatus {
        volume: volume.name.to_string(),
        host: mapping.host.to_string(),
        lun,
        read_only: mapping.read_only,
    }
}

#[cfg(test)]
mod tests {
    use api::{LaneFailure, NotStored, PoolOffline, ProblemCode};

    use super::*;

    #[test]
    fn the_state_of_the_array_comes_before_what_the_start_left_undone() {
        let cause = StartFailure::CatalogOffline { pool: "fast".to_owned(), why: PoolOffline::NotFound };
        let gap =
            StoreFailure { pool: "fast".to_owned(), what: NotStored::Layer, error: LaneFailure::OutOfSpace };
        let codes = |stopping, failure, ready, unsettled: &[StoreFailure]| {
            let problems = array_problems(stopping, failure, ready, unsettled);
            problems.iter().map(ProblemFacts::code).collect::<Vec<_>>()
        };
        assert_eq!(codes(false, None, true, &[]), []);
        assert_eq!(codes(false, None, false, &[]), [ProblemCode::ArrayStarting]);
        assert_eq!(codes(false, Some(&cause), true, &[]), [ProblemCode::ArrayFailed]);
        assert_eq!(codes(true, Some(&cause), true, &[]), [ProblemCode::ArrayStopping]);
        let undone = std::slice::from_ref(&gap);
        assert_eq!(codes(false, None, true, undone), [ProblemCode::StartIncomplete]);
        assert_eq!(
            array_problems(false, None, true, undone),
            [ProblemFacts::StartIncomplete { cause: gap.clone() }]
        );
    }
}
