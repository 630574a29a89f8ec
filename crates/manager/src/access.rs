//! Access states: how the administrator sets and reads them.

use base::VolumeId;
use catalog::CatalogError;
use reservation::{AccessState, Cause};
use shard::{AccessAsk, FrontCall};

use crate::manager::Manager;
use api::{self, ArrayStep, CommandError, CommandErrorKind, GroupAccess, Reply};

impl Manager {
    /// Sets another access state of a portal group for a volume. Answered when no command by a group that loses access
    /// is running any more, and every host has been notified.
    pub(crate) async fn set_access(
        &self,
        name: &str,
        wanted: GroupAccess,
        dry_run: bool,
    ) -> Result<Reply, CommandError> {
        let volume = {
            let state = self.state.borrow();
            let missing = || CatalogError::NotFound { kind: "volume", name: name.to_owned() };
            state.catalog.find_volume(name).ok_or_else(missing)?.id
        };
        let before = self.check_access(volume, wanted)?;
        let step = ArrayStep::SetAccess {
            volume: name.to_owned(),
            group: wanted.group,
            before,
            after: wanted.state,
        };
        if !dry_run {
            let ask = AccessAsk { volume, by: None, changes: vec![(wanted.group, wanted.state)] };
            self.context.request(FrontCall::SetAccess(ask)).await.map_err(|_| {
                let message = format!("the access states of volume {name} could not be changed");
                let hint = "a host may be changing them, or no pool can be written; look at `tangelo status`";
                CommandError::new(CommandErrorKind::Unavailable, message, hint)
            })?;
        }
        let hosts = {
            let state = self.state.borrow();
            state.catalog.mappings_of(volume).map(|mapping| mapping.host.to_string()).collect()
        };
        let made = if dry_run { None } else { self.made_volume(volume).await };
        Ok(Reply::Changed(api::Change { dry_run, steps: vec![step.into()], hosts_affected: hosts, made }))
    }

    /// The present state of the group, if it may have the new one.
    fn check_access(&self, volume: VolumeId, wanted: GroupAccess) -> Result<AccessState, CommandError> {
        let refused =
            |message: String, hint: String| Err(CommandError::new(CommandErrorKind::Invalid, message, hint));
        if wanted.state == AccessState::Transitioning {
            let hint = "give active-optimized, active-non-optimized, standby or unavailable";
            return refused("transitioning is not a state to be in".to_owned(), hint.to_owned());
        }
        let unit = self.context.units.get(volume).expect("shard 0 knows every volume of the catalog");
        let known = self.groups();
        if !known.contains(&wanted.group) {
            let list = known.iter().map(u16::to_string).collect::<Vec<_>>().join(", ");
            let hint =
                format!("it has {list}; `[listen] iscsi` in the head's file says which portals are in which");
            return refused(format!("the array has no portal group {}", wanted.group), hint);
        }
        let now = unit.access.borrow().clone();
        if now.plan(&known, &[(wanted.group, wanted.state)], Cause::Implicit).is_err() {
            let message = "no portal group would be active, and hosts would lose the volume".to_owned();
            return refused(message, "make another group active first".to_owned());
        }
        Ok(now.of(wanted.group))
    }

    /// Portal groups, as shards know them.
    fn groups(&self) -> Vec<u16> {
        self.context.replica.borrow().groups.iter().copied().collect()
    }

    /// The access state of each portal group for a volume.
    pub(crate) fn volume_access(&self, volume: VolumeId) -> Vec<GroupAccess> {
        let Some(unit) = self.context.units.get(volume) else { return Vec::new() };
        let states = unit.access.borrow().clone();
        self.groups().into_iter().map(|group| GroupAccess { group, state: states.of(group) }).collect()
    }
}
