//! Which commands change something, and what.

use super::{CommandKind, EventFacts, Origin};
use crate::{Command, CommandError, CopyOrder, Named, Reply, ScheduleOrder, Subject, Upkeep};

/// Steps of a change, and hosts affected, that an event holds.
const STEPS_MAX: usize = 32;

/// What a command would change.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AskedChange {
    pub kind: CommandKind,
    pub subject: Subject,
}

impl AskedChange {
    /// The event of the change, when it was made or refused; `None` where the command has only answered.
    pub fn event(
        self,
        origin: &Origin,
        result: &Result<Reply, CommandError>,
    ) -> Option<(Subject, EventFacts)> {
        let (command, origin) = (self.kind, origin.clone());
        let facts = match result {
            Ok(Reply::Changed(change)) => {
                let (steps, hosts_affected) = (first(&change.steps), first(&change.hosts_affected));
                EventFacts::ChangeMade { command, origin, steps, hosts_affected }
            }
            Ok(_) => return None,
            Err(cause) => EventFacts::ChangeRefused { command, origin, cause: cause.into() },
        };
        Some((self.subject, facts))
    }
}

fn first<T: Clone>(all: &[T]) -> Vec<T> {
    all.iter().take(STEPS_MAX).cloned().collect()
}

impl Command {
    /// What it changes; `None` where it only asks, or tries without changing anything.
    pub fn asked_change(&self) -> Option<AskedChange> {
        use CommandKind::*;
        let volume = |name: &String| Subject::Volume(name.clone());
        let (dry_run, kind, subject) = match self {
            Command::DriveList
            | Command::DrivesFound(_)
            | Command::SnapshotList { .. }
            | Command::TransferBegin { .. }
            | Command::Status
            | Command::Problems
            | Command::Metrics
            | Command::Events { .. }
            | Command::Report { .. }
            | Command::EventsKept(_)
            | Command::Head(_)
            | Command::Shutdown => return None,
            Command::PoolCreate { pool, dry_run } => (*dry_run, PoolCreate, Subject::pool(&pool.name)),
            Command::PoolDelete { name, dry_run, .. } => (*dry_run, PoolDelete, Subject::pool(name)),
            Command::Upkeep { upkeep, dry_run } => {
                let (kind, subject) = upkeep.asked_change();
                (*dry_run, kind, subject)
            }
            Command::DriveLocate { path, .. } => (false, DriveLocate, Subject::drive(path)),
            Command::VolumeCreate { volume: new, dry_run } => (*dry_run, VolumeCreate, volume(&new.name)),
            Command::VolumeResize { name, dry_run, .. } => (*dry_run, VolumeResize, volume(name)),
            Command::VolumeAccess { name, dry_run, .. } => (*dry_run, VolumeAccess, volume(name)),
            Command::VolumeDelete { name, dry_run, .. } => (*dry_run, VolumeDelete, volume(name)),
            Command::Copy { order, dry_run } => {
                let (kind, subject) = order.asked_change();
                (*dry_run, kind, subject)
            }
            Command::TransferComplete { volume: name, .. } => (false, VolumeImport, volume(name)),
            Command::Schedule { order, dry_run } => match order {
                ScheduleOrder::Create { name, .. } => {
                    (*dry_run, ScheduleCreate, Subject::Schedule(name.clone()))
                }
                ScheduleOrder::Delete { name } => (*dry_run, ScheduleDelete, Subject::Schedule(name.clone())),
            },
            Command::HostCreate { host, dry_run } => (*dry_run, HostCreate, Subject::Host(host.name.clone())),
            Command::HostUpdate { name, dry_run, .. } => (*dry_run, HostSet, Subject::Host(name.clone())),
            Command::HostDelete { name, dry_run, .. } => (*dry_run, HostDelete, Subject::Host(name.clone())),
            Command::Rename { of, dry_run, .. } => (*dry_run, Rename, of.subject()),
            Command::DriveWipe { path, dry_run } => (*dry_run, DriveWipe, Subject::drive(path)),
            Command::DriveClear { drive, dry_run } => {
                (*dry_run, DriveClear, drive.as_ref().map_or(Subject::Array, Subject::drive))
            }
            Command::Map { volume: name, dry_run, .. } => (*dry_run, Map, volume(name)),
            Command::Unmap { volume: name, dry_run, .. } => (*dry_run, Unmap, volume(name)),
            Command::Reload { .. } => (false, Reload, Subject::Array),
        };
        (!dry_run).then_some(AskedChange { kind, subject })
    }
}

impl Upkeep {
    fn asked_change(&self) -> (CommandKind, Subject) {
        match self {
            Upkeep::DriveAdd { pool, .. } => (CommandKind::DriveAdd, Subject::pool(pool)),
            Upkeep::DriveRemove { drive, .. } => (CommandKind::DriveRemove, Subject::drive(drive)),
            Upkeep::DriveReplace { old, .. } => (CommandKind::DriveReplace, Subject::drive(old)),
            Upkeep::Spare { pool, .. } => (CommandKind::DriveSpare, Subject::pool(pool)),
            Upkeep::Scrub { pool, .. } => (CommandKind::PoolScrub, Subject::pool(pool)),
            Upkeep::Set { pool, .. } => (CommandKind::PoolSet, Subject::pool(pool)),
            Upkeep::Upgrade { pool } => (CommandKind::PoolUpgrade, Subject::pool(pool)),
        }
    }
}

impl CopyOrder {
    fn asked_change(&self) -> (CommandKind, Subject) {
        use CommandKind::*;
        let of = |volume: &str, snapshot: &str| Subject::Snapshot(format!("{volume}@{snapshot}"));
        match self {
            CopyOrder::Snapshot { snapshots } => match snapshots.as_slice() {
                [(volume, snapshot)] => (SnapshotCreate, of(volume, snapshot)),
                _ => (SnapshotCreate, Subject::Array),
            },
            CopyOrder::DeleteSnapshot { volume, snapshot } => (SnapshotDelete, of(volume, snapshot)),
            CopyOrder::RollBack { volume, snapshot } => (SnapshotRollBack, of(volume, snapshot)),
            CopyOrder::Clone { volume, snapshot, .. } => (SnapshotClone, of(volume, snapshot)),
            CopyOrder::Refresh { volume, snapshot, .. } => (SnapshotRefresh, of(volume, snapshot)),
            CopyOrder::CopyVolume { volume, .. } => (VolumeCopy, Subject::volume(volume)),
            CopyOrder::Promote { volume } => (VolumePromote, Subject::volume(volume)),
            CopyOrder::Undelete { volume } => (VolumeUndelete, Subject::volume(volume)),
            CopyOrder::Eradicate { volume } => (VolumeEradicate, Subject::volume(volume)),
        }
    }
}

impl Named {
    pub fn subject(&self) -> Subject {
        match self {
            Named::Volume(name) => Subject::volume(name),
            Named::Pool(name) => Subject::pool(name),
            Named::Host(name) => Subject::Host(name.clone()),
            Named::Snapshot { volume, snapshot } => Subject::Snapshot(format!("{volume}@{snapshot}")),
            Named::Schedule(name) => Subject::Schedule(name.clone()),
        }
    }
}
