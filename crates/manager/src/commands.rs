//! Commands of the control plane: they wait, change one at a time, and are answered.

use std::rc::Rc;

use api::{
    Caller, Command, CommandError, CommandErrorKind, EventFacts, Reply, ReplyChannel, Subject, Upkeep,
};
use base::limits::CONTROL_QUEUE_MAX;

use shard::{Answer, FrontCall, ManagerCall, Report, ShardCall};

use crate::manager::Manager;
use crate::{drive_commands, order};

impl Manager {
    /// Begins a command; the reply follows when it is done. The queue of commands is bounded.
    pub fn on_command(self: Rc<Self>, command: Command, reply: ReplyChannel, caller: Caller) {
        if let Command::Events { after, limit, wait } = command {
            return self.context.io.clone().spawn(self.tell_events((after, limit, wait), reply, caller));
        }
        if self.commands_waiting.get() >= CONTROL_QUEUE_MAX {
            let message = format!("{CONTROL_QUEUE_MAX} commands are waiting already");
            return reply(Err(CommandError::new(CommandErrorKind::Unavailable, message, "try again later")));
        }
        self.commands_waiting.set(self.commands_waiting.get() + 1);
        self.context.io.clone().spawn(async move {
            self.clone().answer(command, reply, caller).await;
            self.commands_waiting.set(self.commands_waiting.get() - 1);
        });
    }

    /// Carries out a call of a shard to the manager.
    pub async fn handle(&self, call: ManagerCall) -> Answer {
        match call {
            ManagerCall::DriveFailed(pool, drive, departure) => {
                Answer::Recorded(self.drive_failed(pool, drive, departure).await)
            }
            ManagerCall::BeginCopy(ask) => Answer::CopyBegun(self.begin_copy(ask).await),
            ManagerCall::EndCopy(pool) => {
                self.end_copy(pool);
                Answer::Done
            }
            ManagerCall::KeepReservations(volume, kept) => {
                Answer::Reserved(self.keep_reservations(volume, kept).await)
            }
            ManagerCall::KeepAccess(volume, kept) => Answer::Reserved(self.keep_access(volume, kept).await),
            ManagerCall::Report(report) => {
                let refused = matches!(&report.facts, EventFacts::LoginRefused { .. });
                self.record_report(report);
                if refused {
                    // a limit of sessions may be reached
                    self.problems_may_differ();
                }
                Answer::Done
            }
        }
    }

    /// What is answered without the change lock, also while the array starts; any other command is given back.
    async fn answer_at_once(&self, command: Command) -> Result<Reply, Command> {
        match command {
            Command::Status => Ok(Reply::Status(Box::new(self.status().await))),
            Command::Problems => Ok(Reply::Problems(self.all_problems().await)),
            Command::Metrics => Ok(Reply::Metrics(Box::new(self.metrics().await))),
            Command::Report { subject, facts, count } => {
                self.record_command(Report { subject, facts, count });
                Ok(drive_commands::done(Vec::new(), false, None))
            }
            Command::EventsKept(kept) => {
                *self.journal_trouble.borrow_mut() = kept.err();
                self.problems_may_differ();
                Ok(drive_commands::done(Vec::new(), false, None))
            }
            Command::Head(call) => Ok(self.answer_head(call)),
            other => Err(other),
        }
    }

    /// An array that is stopping, or could not start, refuses changes.
    fn check_serves(&self) -> Result<(), CommandError> {
        if self.stopping.get() {
            return Err(CommandError::new(CommandErrorKind::Stopping, "the array is stopping", ""));
        }
        self.failure.borrow().clone().map_or(Ok(()), |failure| Err(failure.into()))
    }

    pub(crate) async fn carry_out(
        self: Rc<Self>,
        command: Command,
        order: &Rc<order::Order>,
    ) -> Result<Reply, CommandError> {
        let command = match self.answer_at_once(command).await {
            Ok(reply) => return Ok(reply),
            Err(command) => command,
        };
        if let Some(answer) = self.before_start(&command).await {
            return answer;
        }
        if command == Command::Shutdown {
            return self.shut_down().await;
        }
        self.check_serves()?;
        if let Command::SnapshotList { volume } = command {
            // counting takes long if there are many; changes need not wait for it
            return self.list_snapshots(volume).await;
        }
        let lock = self.lock_changes(order).await?;
        if let Command::DriveLocate { path, seconds } = &command {
            drop(lock);
            return self.clone().locate_drive(path, *seconds).await;
        }
        match command {
            Command::DriveLocate { .. } => unreachable!("answered above"),
            Command::Upkeep { upkeep, dry_run } => self.upkeep(upkeep, dry_run).await,
            Command::DrivesFound(paths) => {
                self.parameters.drives.replace(paths);
                Ok(drive_commands::done(Vec::new(), false, None))
            }
            Command::Status
            | Command::Problems
            | Command::Metrics
            | Command::Events { .. }
            | Command::Report { .. }
            | Command::EventsKept(_)
            | Command::Head(_)
            | Command::Shutdown
            | Command::SnapshotList { .. } => unreachable!("answered above"),
            Command::Reload { portals, drives } => self.reload(portals, drives).await,
            Command::DriveList => Ok(Reply::Drives(self.list_drives().await)),
            Command::PoolCreate { pool, dry_run } => self.create_pool(pool, dry_run).await,
            Command::PoolDelete { name, eradicate, dry_run } => {
                self.delete_pool(&name, eradicate, dry_run).await
            }
            Command::VolumeCreate { volume, dry_run } => self.create_volume(volume, dry_run).await,
            Command::VolumeResize { name, size_bytes, force, dry_run } => {
                self.resize_volume(&name, size_bytes, force, dry_run).await
            }
            Command::VolumeAccess { name, access, dry_run } => self.set_access(&name, access, dry_run).await,
            Command::VolumeDelete { name, unmap, eradicate, dry_run } => {
                self.delete_volume(&name, unmap, eradicate, dry_run).await
            }
            Command::Copy { order, dry_run } => self.copy(order, dry_run).await,
            Command::TransferBegin { .. } | Command::TransferComplete { .. } => self.transfer(command).await,
            Command::Schedule { order, dry_run } => self.schedule(order, dry_run).await,
            Command::HostCreate { host, dry_run } => self.create_host(host, dry_run).await,
            Command::HostUpdate { name, update, dry_run } => self.update_host(&name, &update, dry_run).await,
            Command::Rename { of, name, dry_run } => self.rename(&of, &name, dry_run).await,
            Command::DriveWipe { path, dry_run } => self.wipe_drive(&path, dry_run).await,
            Command::DriveClear { drive, dry_run } => self.clear_drives(drive.as_deref(), dry_run).await,
            Command::HostDelete { name, unmap, dry_run } => self.delete_host(&name, unmap, dry_run).await,
            Command::Map { volume, host, lun, read_only, dry_run } => {
                self.map(&volume, &host, lun, read_only, dry_run).await
            }
            Command::Unmap { volume, host, dry_run } => self.unmap(&volume, &host, dry_run).await,
        }
    }

    async fn upkeep(&self, upkeep: Upkeep, dry_run: bool) -> Result<Reply, CommandError> {
        match upkeep {
            Upkeep::DriveAdd { pool, drives, force } => {
                self.add_drives(&pool, &drives, &force, dry_run).await
            }
            Upkeep::DriveRemove { pool, drive, cancel } => {
                self.remove_drive(&pool, &drive, cancel, dry_run).await
            }
            Upkeep::DriveReplace { pool, old, new, force } => {
                self.replace_drive(&pool, &old, &new, force, dry_run).await
            }
            Upkeep::Spare { pool, drives, release } => {
                self.set_spares(&pool, &drives, release, dry_run).await
            }
            Upkeep::Scrub { pool, stop } => self.scrub_pool(&pool, stop, dry_run).await,
            Upkeep::Set { pool, settings } => self.set_pool(&pool, &settings, dry_run).await,
            Upkeep::Upgrade { pool } => self.upgrade_pool(&pool, dry_run).await,
        }
    }

    /// Stops everything, in order: hosts, then pools, then shards. Shard 0 is last, after its reply.
    pub(crate) async fn shut_down(self: &Rc<Self>) -> Result<Reply, CommandError> {
        if self.stopping.replace(true) {
            return Ok(Reply::Stopped);
        }
        drop(self.keeping.acquire(1).await);
        let _lock = self.changes.acquire(1).await;
        self.context.ask_all(|| FrontCall::Quiesce).await;
        self.close_pools().await;
        self.context.ask_others(|| ShardCall::Stop).await;
        let version = env!("CARGO_PKG_VERSION").to_owned();
        self.record(Subject::Array, EventFacts::DaemonStopped { version });
        self.tell_last_events().await;
        let context = self.context.clone();
        // the reply goes out first: it is sent before this task runs
        self.context.io.spawn(async move { drop(context.ask(context.shard, ShardCall::Stop).await) });
        Ok(Reply::Stopped)
    }
}
