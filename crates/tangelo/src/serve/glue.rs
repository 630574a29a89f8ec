//! Between the API's words and the engine's: one command, one answer. No decisions.

use std::sync::Arc;

use ::api as shard;
use ::api::{CommandError, CommandErrorKind, Reply};
use control::api;
use control::array::{Answer, Array};
use control::config::PortalConfig;
use engine::ShardMessage;
use tokio::sync::oneshot;
use uring::Mailbox;

use super::keeper::Keeper;
use super::own_files::OwnFiles;
use super::{copies, locate, names, upkeep};

/// The array, as shard 0's mailbox.
pub struct EngineArray {
    shard: Mailbox<ShardMessage>,
    keeper: Keeper,
    own_files: OwnFiles,
}

impl EngineArray {
    pub fn new(shard: Mailbox<ShardMessage>, keeper: Keeper, own_files: OwnFiles) -> EngineArray {
        EngineArray { shard, keeper, own_files }
    }

    /// Stops the array in order: hosts, pools, shards.
    pub async fn shut_down(&self) -> Result<(), String> {
        match self.ask(shard::Command::Shutdown, vec![]).await {
            Ok(Reply::Stopped) => Ok(()),
            Ok(other) => unreachable!("the array answered a shutdown with {other:?}"),
            Err(error) => Err(format!("the array did not stop in order: {}", error.message)),
        }
    }

    /// Has the array take over what the head's file says now. Gives what has changed, in lines for people.
    pub async fn reload(
        &self,
        portals: Vec<PortalConfig>,
        drives: Vec<String>,
    ) -> Result<Vec<String>, String> {
        let portals = portals.into_iter().map(portal_options).collect();
        match self.ask(shard::Command::Reload { portals, drives }, vec![]).await {
            Ok(Reply::Changed(change)) => Ok(change.lines),
            Ok(other) => unreachable!("the array answered a reload with {other:?}"),
            Err(error) => Err(error.message),
        }
    }

    /// Sends at once. Where the future is dropped before the command has changed anything, it changes nothing. `drives`: what it
    /// makes use of.
    fn ask(
        &self,
        command: shard::Command,
        drives: Vec<String>,
    ) -> impl Future<Output = Result<Reply, api::ApiError>> + Send + 'static {
        let (to, from) = oneshot::channel();
        let asking = Arc::new(());
        let waits = Arc::downgrade(&asking);
        let gone = Box::new(move || waits.strong_count() == 0);
        let message = ShardMessage::Control(command, self.keeper.answer(to, drives), gone);
        let sent = self.shard.try_send(message).is_ok();
        async move {
            let _asking = asking;
            let unavailable = |message: &str| {
                api::ApiError::new(api::ErrorCode::Unavailable, message, "try again in a moment")
            };
            if !sent {
                return Err(unavailable("the array has too many commands waiting, or is stopping"));
            }
            let outcome = from.await.map_err(|_| unavailable("the array stopped before it had answered"))?;
            outcome.map_err(api_error)
        }
    }
}

impl Array for EngineArray {
    fn call(&self, command: api::Command) -> Answer {
        if let Err(refusal) = self.own_files.check(&command) {
            return Box::pin(async move { Err(refusal) });
        }
        let drives = match &command {
            api::Command::PoolCreate { pool, dry_run: false } => pool.drives.clone(),
            api::Command::Upkeep { upkeep, dry_run: false, .. } => match upkeep {
                api::Upkeep::DriveAdd(new) => new.drives.clone(),
                api::Upkeep::DriveReplace(replacement) => vec![replacement.new.clone()],
                api::Upkeep::Spare(spares) if !spares.release => spares.drives.clone(),
                _ => Vec::new(),
            },
            _ => Vec::new(),
        };
        if let api::Command::DriveLocate(locating) = &command
            && let Some(answer) = locate::light(locating)
        {
            return Box::pin(async move { answer.map(api::Reply::Changed) });
        }
        let reply = self.ask(engine_command(command), drives);
        Box::pin(async move {
            match reply.await? {
                Reply::Drives(drives) => Ok(api::Reply::Drives(drives.into_iter().map(drive).collect())),
                Reply::Snapshots(snapshots) => {
                    Ok(api::Reply::Snapshots(snapshots.into_iter().map(copies::snapshot).collect()))
                }
                Reply::Changed(change) => Ok(api::Reply::Changed(changed(change))),
                Reply::Status(status) => Ok(api::Reply::Status(Box::new(array_status(*status)))),
                Reply::Problems(problems) => {
                    Ok(api::Reply::Problems(problems.into_iter().map(problem).collect()))
                }
                Reply::Stopped => unreachable!("the API cannot ask for a shutdown"),
            }
        })
    }
}

fn engine_command(command: api::Command) -> shard::Command {
    use shard::Command as To;
    match command {
        api::Command::DriveList => To::DriveList,
        api::Command::Status => To::Status,
        api::Command::Problems => To::Problems,
        api::Command::PoolCreate { pool, dry_run } => {
            let api::NewPool { name, protection, width, drives, force } = pool;
            To::PoolCreate { pool: shard::NewPool { name, protection, width, drives, force }, dry_run }
        }
        api::Command::VolumeCreate { volume, dry_run } => {
            let api::NewVolume { name, backing, size_bytes, block_bytes, write_back } = volume;
            let backing = match backing {
                api::NewBacking::Pool(pool) => shard::NewBacking::Pool(pool),
                api::NewBacking::Raw(path) => shard::NewBacking::Raw(path),
                api::NewBacking::Memory => shard::NewBacking::Memory,
                api::NewBacking::Null => shard::NewBacking::Null,
            };
            let volume = shard::NewVolume { name, backing, size_bytes, block_bytes, write_back };
            To::VolumeCreate { volume, dry_run }
        }
        api::Command::VolumeResize { name, size_bytes, force, dry_run } => {
            To::VolumeResize { name, size_bytes, force, dry_run }
        }
        api::Command::VolumeAccess { name, access, dry_run } => {
            let access = shard::GroupAccess { group: access.group, state: engine_state(access.state) };
            To::VolumeAccess { name, access, dry_run }
        }
        api::Command::VolumeDelete { name, unmap, eradicate, dry_run } => {
            To::VolumeDelete { name, unmap, eradicate, dry_run }
        }
        api::Command::Upkeep { pool, upkeep, dry_run } => {
            To::Upkeep { upkeep: upkeep::engine_upkeep(pool, upkeep), dry_run }
        }
        api::Command::PoolDelete { name, eradicate, dry_run } => To::PoolDelete { name, eradicate, dry_run },
        api::Command::DriveWipe { wipe: api::DriveWipe { path }, dry_run } => To::DriveWipe { path, dry_run },
        api::Command::DriveClear { clear: api::DriveClear { drive }, dry_run } => {
            To::DriveClear { drive, dry_run }
        }
        api::Command::HostUpdate { name, update, dry_run } => {
            To::HostUpdate { name, update: names::host_update(update), dry_run }
        }
        api::Command::Rename { of, name, dry_run } => To::Rename { of: names::named(of), name, dry_run },
        api::Command::DriveLocate(api::Locating { path, seconds }) => To::DriveLocate { path, seconds },
        api::Command::DrivesFound(paths) => To::DrivesFound(paths),
        api::Command::Copy { order, dry_run } => To::Copy { order: copies::order(order), dry_run },
        api::Command::Schedule { order, dry_run } => {
            To::Schedule { order: copies::schedule_order(order), dry_run }
        }
        api::Command::SnapshotList { volume } => To::SnapshotList { volume },
        api::Command::HostCreate { host, dry_run } => {
            let host = shard::NewHost {
                name: host.name,
                initiators: host.initiators,
                chap: host.chap.map(names::chap),
                mutual_chap: host.mutual_chap.map(names::chap),
            };
            To::HostCreate { host, dry_run }
        }
        api::Command::HostDelete { name, unmap, dry_run } => To::HostDelete { name, unmap, dry_run },
        api::Command::Map { mapping, dry_run } => {
            let api::NewMapping { volume, host, lun, read_only } = mapping;
            To::Map { volume, host, lun, read_only, dry_run }
        }
        api::Command::Unmap { volume, host, dry_run } => To::Unmap { volume, host, dry_run },
    }
}

fn api_error(error: CommandError) -> api::ApiError {
    let code = match error.kind {
        CommandErrorKind::NotFound => api::ErrorCode::NotFound,
        CommandErrorKind::AlreadyExists => api::ErrorCode::AlreadyExists,
        CommandErrorKind::Invalid => api::ErrorCode::Invalid,
        CommandErrorKind::InUse => api::ErrorCode::InUse,
        CommandErrorKind::Unavailable => api::ErrorCode::Unavailable,
        CommandErrorKind::Full => api::ErrorCode::Full,
        CommandErrorKind::Io => api::ErrorCode::Io,
        CommandErrorKind::TimedOut => api::ErrorCode::TimedOut,
        CommandErrorKind::Unfinished => api::ErrorCode::Unfinished,
    };
    api::ApiError::new(code, error.message, error.hint)
}

fn changed(change: shard::Change) -> api::Changed {
    let made = change.made.map(|made| match made {
        shard::Made::Pool(made) => api::Made::Pool(Box::new(pool(*made))),
        shard::Made::Volume(made) => api::Made::Volume(Box::new(volume(*made))),
        shard::Made::Host(made) => api::Made::Host(host(made)),
        shard::Made::Mapping(made) => api::Made::Mapping(mapping(made)),
        shard::Made::Snapshots(made) => {
            api::Made::Snapshots(made.into_iter().map(copies::snapshot).collect())
        }
    });
    let shard::Change { dry_run, lines, hosts_affected, .. } = change;
    api::Changed { schema: api::SCHEMA, dry_run, lines, hosts_affected, made }
}

fn health(health: shard::Health) -> api::Health {
    match health {
        shard::Health::Healthy => api::Health::Healthy,
        shard::Health::Degraded => api::Health::Degraded,
        shard::Health::Offline => api::Health::Offline,
    }
}

fn array_status(status: shard::ArrayStatus) -> api::ArrayStatus {
    api::ArrayStatus {
        array_id: status.array_id,
        target_name: status.target_name,
        health: health(status.health),
        problems: status.problems.into_iter().map(problem).collect(),
        shards: status.shards,
        uptime_ms: status.uptime_ms,
        portals: status.portals.into_iter().map(portal).collect(),
        drives: status.drives.into_iter().map(drive).collect(),
        pools: status.pools.into_iter().map(pool).collect(),
        volumes: status.volumes.into_iter().map(volume).collect(),
        bin: status.bin.into_iter().map(copies::binned).collect(),
        schedules: status.schedules.into_iter().map(copies::schedule).collect(),
        hosts: status.hosts.into_iter().map(host).collect(),
        mappings: status.mappings.into_iter().map(mapping).collect(),
        sessions: status.sessions.into_iter().map(session).collect(),
    }
}

fn problem(problem: shard::Problem) -> api::Problem {
    let shard::Problem { subject, reason, action, .. } = problem;
    api::Problem { health: health(problem.health), subject, reason, action }
}

/// A portal of the head's file, as the engine takes it.
pub fn portal_options(portal: PortalConfig) -> shard::PortalOptions {
    shard::PortalOptions { address: portal.address, group: portal.group, hosts: portal.hosts }
}

fn portal(portal: shard::PortalStatus) -> api::Portal {
    api::Portal { address: portal.address, group: portal.group, hosts: portal.hosts, error: portal.error }
}

fn drive(drive: shard::DriveStatus) -> api::Drive {
    let (content, detail) = match drive.content {
        shard::DriveContent::Blank => (api::Content::Blank, String::new()),
        shard::DriveContent::Foreign(what) => (api::Content::Foreign, what),
        shard::DriveContent::Member(pool) => (api::Content::Member, format!("pool {pool}")),
        shard::DriveContent::FutureVersion => (api::Content::FutureVersion, String::new()),
        shard::DriveContent::Damaged(what) => (api::Content::Damaged, what),
        shard::DriveContent::Unreadable(why) => (api::Content::Unreadable, why),
    };
    let state = match drive.state {
        shard::DriveState::Unused => api::DriveState::Unused,
        shard::DriveState::Spare => api::DriveState::Spare,
        shard::DriveState::Exported => api::DriveState::Exported,
        shard::DriveState::Online => api::DriveState::Online,
        shard::DriveState::Missing => api::DriveState::Missing,
        shard::DriveState::Failed => api::DriveState::Failed,
        shard::DriveState::Draining => api::DriveState::Draining,
    };
    let shard::DriveErrors { read, write, checksum } = drive.errors;
    api::Drive {
        path: drive.path,
        size_bytes: drive.size_bytes,
        model: drive.model,
        serial: drive.serial,
        bay: drive.bay,
        state,
        content,
        detail,
        pool: drive.pool,
        errors: api::DriveErrors { read, write, checksum },
        read_latency_us: drive.read_latency_us,
        write_latency_us: drive.write_latency_us,
        id: drive.id,
        note: drive.note,
    }
}

fn pool(pool: shard::PoolStatus) -> api::Pool {
    api::Pool {
        name: pool.name,
        id: pool.id,
        protection: pool.protection,
        width: pool.width,
        lanes: pool.lanes,
        health: health(pool.health),
        reason: pool.reason,
        failures_survivable: pool.failures_survivable,
        next_failure: pool.next_failure.map(|next| {
            let shard::NextFailure { rebuildable, short_bytes } = next;
            api::NextFailure { rebuildable, short_bytes }
        }),
        provisioned_bytes: pool.provisioned_bytes,
        capacity_bytes: pool.capacity_bytes,
        used_bytes: pool.used_bytes,
        lost_bytes: pool.lost_bytes,
        log_bytes: pool.log_bytes,
        reserve_bytes: pool.reserve_bytes,
        references: pool_references(pool.references),
        written: pool_writes(pool.written),
        map: pool_map(pool.map),
        drives: pool.drives.into_iter().map(drive).collect(),
        settings: upkeep::settings(pool.settings),
        repair: pool.repair.map(upkeep::repair),
        scrub: upkeep::scrub(pool.scrub),
        activity: pool.activity,
    }
}

fn pool_references(references: shard::PoolReferences) -> api::PoolReferences {
    let shard::PoolReferences { copied_bytes, kept_bytes } = references;
    api::PoolReferences { copied_bytes, kept_bytes }
}

fn pool_writes(written: shard::PoolWrites) -> api::PoolWrites {
    let shard::PoolWrites { host_bytes, moved_bytes, restored_bytes, map_bytes } = written;
    api::PoolWrites { host_bytes, moved_bytes, restored_bytes, map_bytes }
}

fn pool_map(map: shard::PoolMap) -> api::PoolMap {
    let shard::PoolMap { bytes, memory_bytes, cached_bytes, lookups, misses } = map;
    api::PoolMap { bytes, memory_bytes, cached_bytes, lookups, misses }
}

fn group_access(access: shard::GroupAccess) -> api::GroupAccess {
    use api::AccessState as To;
    let state = match access.state {
        shard::AccessState::ActiveOptimized => To::ActiveOptimized,
        shard::AccessState::ActiveNonOptimized => To::ActiveNonOptimized,
        shard::AccessState::Standby => To::Standby,
        shard::AccessState::Unavailable => To::Unavailable,
        shard::AccessState::Transitioning => To::Transitioning,
    };
    api::GroupAccess { group: access.group, state }
}

fn engine_state(state: api::AccessState) -> shard::AccessState {
    use shard::AccessState as To;
    match state {
        api::AccessState::ActiveOptimized => To::ActiveOptimized,
        api::AccessState::ActiveNonOptimized => To::ActiveNonOptimized,
        api::AccessState::Standby => To::Standby,
        api::AccessState::Unavailable => To::Unavailable,
        api::AccessState::Transitioning => To::Transitioning,
    }
}

fn volume(volume: shard::VolumeStatus) -> api::Volume {
    let backing = match volume.backing {
        shard::VolumeBacking::Pool(pool) => api::Backing::Pool(pool),
        shard::VolumeBacking::Raw(path) => api::Backing::Raw(path),
        shard::VolumeBacking::Memory => api::Backing::Memory,
        shard::VolumeBacking::Null => api::Backing::Null,
    };
    api::Volume {
        id: volume.id,
        name: volume.name,
        backing,
        size_bytes: volume.size_bytes,
        block_bytes: volume.block_bytes,
        write_back: volume.write_back,
        naa: volume.naa,
        serial: volume.serial,
        health: health(volume.health),
        reason: volume.reason,
        access: volume.access.into_iter().map(group_access).collect(),
        clone_of: volume.clone_of,
        snapshots: volume.snapshots,
        space: volume.space.map(copies::space),
    }
}

fn host(host: shard::HostStatus) -> api::Host {
    let shard::HostStatus { name, initiators, chap_user, mutual_chap_user, sessions } = host;
    api::Host { name, initiators, chap_user, mutual_chap_user, sessions: sessions as u64 }
}

fn mapping(mapping: shard::MappingStatus) -> api::Mapping {
    let shard::MappingStatus { volume, host, lun, read_only } = mapping;
    api::Mapping { volume, host, lun, read_only }
}

fn session(session: shard::SessionStatus) -> api::Session {
    api::Session {
        initiator: session.initiator,
        host: session.host,
        peer: session.peer,
        portal: session.portal,
        shard: session.shard,
        discovery: session.discovery,
        commands: session.commands,
        read_bytes: session.read_bytes,
        written_bytes: session.written_bytes,
    }
}
